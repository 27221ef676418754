"""What a table of options can't say: one small function for each program that needs it.

A REPLACEMENT reads all arguments by itself; a FURTHER check sees what the table understood. Both raise Unproven.
"""

import re
from collections.abc import Callable, Sequence

from tarmac.policy.grammar import Reading, Unproven
from tarmac.policy.scripts import check_awk, check_jq, check_sed


def _anything(words: Sequence[str]) -> Reading:
    return Reading(operands=list(words))


_ESCAPES = re.compile(r"\\(e|E|0?33|x1[bB]|u001[bB]|x9[bB]|0?233)")


def _echo(words: Sequence[str]) -> Reading:
    if any(_ESCAPES.search(word) for word in words):
        raise Unproven("it would send control sequences to the terminal")
    return _anything(words)


def _never(words: Sequence[str]) -> Reading:
    raise Unproven("it works on the shell itself")


def _printf(words: Sequence[str]) -> Reading:
    if words[:1] == ["-v"] or (words and words[0].startswith("-v")):
        raise Unproven("printf -v sets a variable")
    if any(re.search(r"%[^a-zA-Z%]*([0-9]{5,}|\*)", word) for word in words[:1]):
        raise Unproven("it may print without end")
    return _echo(words)


def _test(words: Sequence[str]) -> Reading:
    if "-v" in words or "-R" in words:
        raise Unproven("a test of a variable may run what its name holds")
    return _anything(words)


_FIND_TESTS = {
    **dict.fromkeys(
        """
    -daystart -depth -d -follow -ignore_readdir_race -mount -noignore_readdir_race -noleaf -xdev -warn -nowarn
    -empty -executable -false -nogroup -nouser -readable -true -writable -print -print0 -ls -prune -quit -not -a
    -and -o -or ! ( ) , -E -X -x
""".split(),
        0,
    ),
    **dict.fromkeys(
        """
    -maxdepth -mindepth -regextype -amin -anewer -atime -cmin -cnewer -context -ctime -fstype -gid -group
    -ilname -iname -inum -ipath -iregex -iwholename -links -lname -mmin -mtime -name -newer -path -perm -regex
    -samefile -size -type -uid -used -user -wholename -xtype -printf -newermt -newerat -newerct -newerBt
""".split(),
        1,
    ),
}


def _find(words: Sequence[str]) -> Reading:
    """find: its tests and its printing. `-exec` of something that reads is looked at by the caller (`inner`)."""
    reading = Reading()
    rest = list(words)
    while rest and re.fullmatch(r"-[HLP]|-O[0-9]", rest[0]):
        reading.options.append((rest.pop(0), None))
    while rest and not (rest[0].startswith("-") or rest[0] in ("(", "!", ",")):
        reading.paths.append((rest.pop(0), True))  # all below it
    while rest:
        word = rest.pop(0)
        if word in ("-exec", "-execdir", "-ok", "-okdir"):
            end = next((i for i, w in enumerate(rest) if w == ";" or (w == "+" and rest[i - 1 : i] == ["{}"])), None)
            if word != "-exec" or end is None:
                raise Unproven(f"find {word} runs a program")
            reading.options.append(("exec+" if rest[end] == "+" else "exec", "\0".join(rest[:end])))
            del rest[: end + 1]
            continue
        arity = _FIND_TESTS.get(word)
        if arity is None:
            raise Unproven(f"`find` is not known to only read with {word}")
        if arity and not rest:
            raise Unproven(f"find {word} lacks its value")
        reading.options.append((word, rest.pop(0) if arity else None))
    return reading


def _ps(words: Sequence[str]) -> Reading:
    """ps in its three dialects; BSD's `e` would show the processes' environments."""
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word.startswith("--"):
            name, equals, _ = word[2:].partition("=")
            if name not in (
                "sort",
                "pid",
                "ppid",
                "user",
                "format",
                "no-headers",
                "forest",
                "cols",
                "headers",
                "help",
                "width",
            ):
                raise Unproven(f"`ps` is not known with {word}")
            if not equals and name in ("sort", "pid", "ppid", "user", "format") and rest:
                rest.pop(0)
        elif match := re.fullmatch(r"-?([aAcdefFgGhHjlLmMNrRsSTuUvVwxXyZ]*)([opCqtkO]?)(.*)", word):
            if not word.startswith("-") and "e" in match[1]:
                raise Unproven("ps e shows the environment of processes")
            if re.search(r"E|e.*w.*w", match[1]) and not word.startswith("-"):
                raise Unproven("ps may show the environment of processes")
            value = match[3] if match[2] else ""
            if match[2] and not value and rest:
                value = rest.pop(0)
            if not re.fullmatch(r"[\w,.%:=+-]*", value) or (not match[2] and match[3]):
                raise Unproven(f"`ps` is not known with {word}")
            if re.search(r"\benviron", value):
                raise Unproven("ps may show the environment of processes")
        else:
            raise Unproven(f"`ps` is not known with {word}")
    return Reading()


def _ip(words: Sequence[str]) -> Reading:
    rest = [
        w for w in words if not re.fullmatch(r"-(4|6|br(ief)?|c(olor)?|j(son)?|p(retty)?|o(neline)?|s|d(etails)?|h)", w)
    ]
    objects = ("a", "addr", "address", "l", "link", "r", "route", "n", "neigh", "neighbour", "rule", "maddr", "tuntap")
    verbs = ("show", "list", "ls", "get", "sh") + ("s",) * (rest[:1] not in (["l"], ["link"]))  # `ip link s` sets
    if not rest or rest[0] not in objects or (len(rest) > 1 and rest[1] not in verbs):
        raise Unproven("`ip` is only known to show")
    return Reading()


def _tar(words: Sequence[str]) -> Reading:
    """tar in its listing form only, `tf`, `-tzf` and `--list`."""
    reading = Reading()
    rest = list(words)
    if rest and not rest[0].startswith("-"):
        rest[0] = "-" + rest[0]
    listing = False
    while rest:
        word = rest.pop(0)
        if word.startswith("--"):
            name, _, value = word[2:].partition("=")
            if name == "list":
                listing = True
            elif name == "file":
                reading.paths.append((value or (rest.pop(0) if rest else ""), True))
            elif name not in (
                "verbose",
                "gzip",
                "bzip2",
                "xz",
                "zstd",
                "wildcards",
                "exclude",
                "full-time",
                "numeric-owner",
            ):
                raise Unproven(f"`tar` is not known to only read with --{name}")
        elif re.fullmatch(r"-[tvzjJaZ]*f?", word) and len(word) > 1:
            listing |= "t" in word
            if word.endswith("f"):
                if not rest:
                    raise Unproven("tar lacks its archive")
                reading.paths.append((rest.pop(0), True))
        elif word.startswith("-"):
            raise Unproven(f"`tar` is not known to only read with {word}")
        else:
            reading.operands.append(word)
    if not listing:
        raise Unproven("`tar` without -t writes")
    if any(":" in path for path, _ in reading.paths):
        raise Unproven("tar takes a name with a colon for another machine")
    return reading


def _kill(words: Sequence[str]) -> Reading:
    """kill -l, kill -0 PID."""
    if not re.fullmatch(r"-[lL]( [A-Z0-9]+)?|-0( [0-9]+)+", " ".join(words)):
        raise Unproven("it ends or steers processes")
    return Reading()


def _jar(words: Sequence[str]) -> Reading:
    if len(words) < 2 or not re.fullmatch(r"-?(tf|tvf)", words[0]):
        raise Unproven("only jar's list is known to only read")
    if any(word.startswith(("-", "@")) for word in words[1:]):
        raise Unproven("only jar's list is known to only read")
    return Reading(paths=[(words[1], True)], operands=list(words[2:]))


REPLACEMENTS: dict[str, Callable[[Sequence[str]], Reading]] = {
    "anything": _anything,
    "echo": _echo,
    "never": _never,
    "printf": _printf,
    "test": _test,
    "find": _find,
    "ps": _ps,
    "ip": _ip,
    "tar": _tar,
    "kill": _kill,
    "jar": _jar,
}


def _names(reading: Reading) -> set[str]:
    return {name for name, _ in reading.options}


def _first(reading: Reading, *known: str, none: bool = False) -> None:
    if not reading.operands:
        if none:
            return
        raise Unproven("without a word it does more than show")
    if reading.operands[0] not in known:
        raise Unproven(f"`{reading.operands[0]}` is not known to only show")


def _sed(reading: Reading) -> None:
    scripts = [value for name, value in reading.options if name in ("e", "expression") and value is not None]
    scripts = scripts or reading.operands[:1]
    if not scripts:
        raise Unproven("sed lacks its script")
    for script in scripts:
        check_sed(script)


def _awk(reading: Reading) -> None:
    if not reading.operands and _names(reading) & {"version", "help"}:
        return
    if not reading.operands:
        raise Unproven("awk lacks its program")
    check_awk(reading.operands[0])
    if any("=" in operand for operand in reading.operands[1:] if "/" not in operand.partition("=")[0]):
        raise Unproven("awk takes a word with = for an assignment")


def _jq(reading: Reading) -> None:
    if reading.operands:
        check_jq(reading.operands[0])


def _yq(reading: Reading) -> None:
    for operand in reading.operands[:2]:
        check_jq("" if operand in ("e", "eval", "ea", "eval-all") else operand)


def _date(reading: Reading) -> None:
    for operand in reading.operands:
        if not operand.startswith("+"):
            raise Unproven("date with such a word sets the clock")


def _pretty(reading: Reading) -> None:
    """A format that tells of signatures has them checked, by the program that the configuration names."""
    for name, value in reading.options:
        if name in ("pretty", "format", "sort") and re.search(r"%[-+ ]?G|%\(signature", value or ""):
            raise Unproven("it starts the program that checks signatures")


def _git_listing(reading: Reading) -> None:
    _pretty(reading)
    asks = {"l", "list", "contains", "no-contains", "merged", "no-merged", "points-at"}
    if reading.operands and not asks & _names(reading):
        raise Unproven("a name given to it would be made")


def _git_remote(reading: Reading) -> None:
    _first(reading, "get-url", none=True)


def _git_config(reading: Reading) -> None:
    asks = {"l", "list", "get", "get-all", "get-regexp"} & _names(reading)
    words = reading.operands
    _no_secrets(reading)
    if any(re.search(r"extraheader|insteadof|cookie|helper|proxy|^\.\*", word, re.IGNORECASE) for word in words):
        raise Unproven("it asks for what may hold secrets")
    alone = len(words) == 1 and "." in words[0]
    if not (asks or alone or words[:1] == ["list"] or (words[:1] == ["get"] and len(words) <= 2)):
        raise Unproven("git config with a value sets it")


def _dry(reading: Reading) -> None:
    if not {"n", "dry-run"} & _names(reading):
        raise Unproven("without -n it does more than say what it would do")


def _offline(reading: Reading) -> None:
    if reading.operands and "n" not in _names(reading):
        raise Unproven("it asks another machine")


def _tee(reading: Reading) -> None:
    if not set(reading.operands) <= {"/dev/null", "/dev/stderr", "/dev/stdout"}:
        raise Unproven("it writes files")


def _needs_p(reading: Reading) -> None:
    if not {"p", "print-cache"} & _names(reading):
        raise Unproven("without -p it would change the machine")


def _fuser(reading: Reading) -> None:
    if not all(re.fullmatch(r"[0-9]+/(tcp|udp)", word) for word in reading.operands):
        raise Unproven("only ports are known")


def _to_stdout(reading: Reading) -> None:
    if reading.operands[1:] != ["-"]:
        raise Unproven("it would write a file")


def _git_apply(reading: Reading) -> None:
    if not {"stat", "numstat", "summary", "check"} & _names(reading):
        raise Unproven("it changes files")


def _reflog(reading: Reading) -> None:
    _pretty(reading)
    if reading.operands and reading.operands[0] in ("expire", "delete", "drop", "write"):
        raise Unproven("it makes git forget")


def _kubectl(reading: Reading) -> None:
    if any(re.search(r"(^|[,/])secrets?($|[,/.])", word, re.IGNORECASE) for word in reading.operands):
        raise Unproven("it would show secrets of the cluster")
    if any("-file" in (value or "") for _, value in reading.options):
        raise Unproven("it would print another file")
    if "dump" in reading.operands:
        raise Unproven("it would show all of the cluster")


def _pager(reading: Reading) -> None:
    if any(operand.startswith("+") for operand in reading.operands):
        raise Unproven("a pager's + gives it a command")
    if not reading.operands and not reading.options:
        return


def _ls(reading: Reading) -> None:
    if {"R", "recursive"} & _names(reading):
        _recursive(reading)


def _seq(reading: Reading) -> None:
    if not all(re.fullmatch(r"-?[0-9.]{1,7}", word) for word in reading.operands):
        raise Unproven("it may print without end")


def _sleep(reading: Reading) -> None:
    if not all(re.fullmatch(r"[0-9.]{1,3}[sm]?", word) for word in reading.operands):
        raise Unproven("it waits for very long")


def _top(reading: Reading) -> None:
    if not {"b", "l"} & _names(reading):
        raise Unproven("it needs a terminal")


def _gzip(reading: Reading) -> None:
    given = _names(reading)
    if not {"c", "l", "t", "stdout", "to-stdout", "list", "test", "help", "version"} & given:
        raise Unproven("it would write files")
    if {"d", "decompress"} & given and not {"c", "stdout", "to-stdout"} & given:
        raise Unproven("of several modes the last counts: it may write files")


def _unzip(reading: Reading) -> None:
    if not {"l", "v", "Z", "t", "p", "c"} & _names(reading):
        raise Unproven("it would write files")


def _man(reading: Reading) -> None:
    if any(not re.fullmatch(r"[A-Za-z0-9_.+:-]+|\[", word) or ".." in word for word in reading.operands):
        raise Unproven("man of a file may run what is in it")


_SECRET_WORD = re.compile(
    r"auth|token|secret|passw|credential|api[-_]?key|private|(^|_)(key|pwd|pass)($|_)", re.IGNORECASE
)


def _no_secrets(reading: Reading) -> None:
    if any(_SECRET_WORD.search(word) for word in (*reading.operands, *(v or "" for _, v in reading.options))):
        raise Unproven("it asks for what is named like a secret")


def _npm_view(reading: Reading) -> None:
    _no_secrets(reading)
    if not all(re.fullmatch(r"(@[\w.-]+/)?[\w.-]+(@[\w.^~<>=*-]+)?", word) for word in reading.operands):
        raise Unproven("it may fetch from anywhere")


def _go_list(reading: Reading) -> None:
    if any("@" in word for word in reading.operands):
        raise Unproven("it may fetch from anywhere")


def _cloc(reading: Reading) -> None:
    if any(name == "vcs" and value not in ("git", "svn", "auto") for name, value in reading.options):
        raise Unproven("--vcs takes a command to run")


def _brew(reading: Reading) -> None:
    if any(word.startswith(("/", ".")) or word.endswith(".rb") for word in reading.operands):
        raise Unproven("a formula in a file is run")


def _compose_config(reading: Reading) -> None:
    if not {"q", "quiet", "services", "volumes", "images", "profiles"} & _names(reading):
        raise Unproven("it prints what .env and others hold")


def _no_files(reading: Reading) -> None:
    if any("/" in word for word in reading.operands):
        raise Unproven("it would read another file")


def _docker_inspect(reading: Reading) -> None:
    if any("env" in (value or "").lower() for name, value in reading.options if name in ("f", "format")):
        raise Unproven("it would show variables, which may hold secrets")


def _openssl(reading: Reading) -> None:
    if any(":" in path for path, _ in reading.paths):
        raise Unproven("openssl takes a name with a colon for an address")


def _recursive(reading: Reading) -> None:
    reading.paths = [(path, True) for path, _ in reading.paths]  # all below it: as if its content was read


def _rpm(reading: Reading) -> None:
    if not {"q", "query", "version"} & _names(reading):
        raise Unproven("only rpm's questions are known")


def _getent(reading: Reading) -> None:
    if any("shadow" in word for word in reading.operands):
        raise Unproven("it shows the hashes of passwords")
    if any(re.match("a?hosts|networks", word) for word in reading.operands[:1]):
        raise Unproven("it asks another machine for a name")


def _service(reading: Reading) -> None:
    if reading.operands[1:] != ["status"] and (reading.operands or not reading.options):
        raise Unproven("only a service's status is known to only read")


FURTHER: dict[str, Callable[[Reading], None]] = {
    "ls": _ls,
    "seq": _seq,
    "sleep": _sleep,
    "sed": _sed,
    "awk": _awk,
    "jq": _jq,
    "yq": _yq,
    "date": _date,
    "pretty": _pretty,
    "git-listing": _git_listing,
    "git-remote": _git_remote,
    "git-config": _git_config,
    "git-apply": _git_apply,
    "dry": _dry,
    "offline": _offline,
    "tee": _tee,
    "needs-p": _needs_p,
    "fuser": _fuser,
    "to-stdout": _to_stdout,
    "reflog": _reflog,
    "kubectl": _kubectl,
    "pager": _pager,
    "top": _top,
    "gzip": _gzip,
    "unzip": _unzip,
    "man": _man,
    "recursive": _recursive,
    "rpm": _rpm,
    "getent": _getent,
    "npm-view": _npm_view,
    "go-list": _go_list,
    "cloc": _cloc,
    "brew": _brew,
    "compose-config": _compose_config,
    "no-secrets": _no_secrets,
    "no-files": _no_files,
    "docker-inspect": _docker_inspect,
    "openssl": _openssl,
    "status": lambda reading: _first(reading, "status", none=True),
    "apt-cache": lambda reading: _first(
        reading, "show", "search", "policy", "depends", "rdepends", "showpkg", "pkgnames", "madison", "stats"
    ),
    "service": _service,
    "tput": lambda reading: _first(reading, "cols", "lines", "colors", "longname", "size"),
    "systemctl": lambda reading: _first(
        reading,
        "status",
        "list-units",
        "list-unit-files",
        "list-timers",
        "list-sockets",
        "list-dependencies",
        "list-jobs",
        "is-active",
        "is-enabled",
        "is-failed",
        "is-system-running",
        "show",
        "cat",
        "get-default",
        none=True,
    ),
}
