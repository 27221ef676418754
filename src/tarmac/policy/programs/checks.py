"""What a table of options can't say: one small function for each program that needs it.

A check sees what the table understood, and raises Unproven. The arguments of some programs fit no table (find, xargs,
test): such a program has a function in OWN that reads all of them. The last functions are about names that one program
finds and another opens.
"""

import fnmatch
import re
from collections.abc import Callable, Sequence

from tarmac.policy.files import PathStatus
from tarmac.policy.places import is_secret
from tarmac.policy.programs.program import Grammar, ParsedArguments, Trait, known
from tarmac.policy.programs.scripts import check_awk, check_jq, check_sed
from tarmac.policy.verdict import Unproven


def _names(reading: ParsedArguments) -> set[str]:
    return {name for name, _ in reading.options}


def _sed(reading: ParsedArguments) -> None:
    scripts = [value for name, value in reading.options if name in ("e", "expression") and value is not None]
    scripts = scripts or reading.operands[:1]
    if not scripts:
        raise Unproven("sed lacks its script")
    for script in scripts:
        check_sed(script)


def _awk(reading: ParsedArguments) -> None:
    if not reading.operands and _names(reading) & {"version", "help"}:
        return
    if not reading.operands:
        raise Unproven("awk lacks its program")
    check_awk(reading.operands[0])
    if any("=" in operand for operand in reading.operands[1:] if "/" not in operand.partition("=")[0]):
        raise Unproven("awk takes a word with = for an assignment")


def _jq(reading: ParsedArguments) -> None:
    if reading.operands:
        check_jq(reading.operands[0])


def _yq(reading: ParsedArguments) -> None:
    for operand in reading.operands[:2]:
        check_jq("" if operand in ("e", "eval", "ea", "eval-all") else operand)


def _pretty(reading: ParsedArguments) -> None:
    """A format that tells of signatures has them checked, by the program that the configuration names."""
    for name, value in reading.options:
        if name == "submodule" and value and value.startswith("d"):
            raise Unproven("git shows a submodule's changes with that one's own settings")
        if name in ("pretty", "format", "sort") and re.search(r"%[-+ ]?G|%\(signature", value or ""):
            raise Unproven("it starts the program that checks signatures")


def _git_listing(reading: ParsedArguments) -> None:
    _pretty(reading)
    asks = {"l", "list", "contains", "no-contains", "merged", "no-merged", "points-at"}
    if reading.operands and not asks & _names(reading):
        raise Unproven("a name given to it would be made")


_HARMLESS_KEYS = re.compile(r"\^?(alias|user|branch|remote|core|color|diff|merge|pull|push|init)(\\?\.|$)[\w.\\*$-]*")


def _git_config(reading: ParsedArguments) -> None:
    given = _names(reading)
    words = reading.operands
    _no_secrets(reading)
    if {"l", "list"} & given or words[:1] == ["list"]:
        raise Unproven("it prints all settings, which may hold credentials")
    if "get-regexp" in given and not (words and _HARMLESS_KEYS.fullmatch(words[0])):
        raise Unproven("it prints settings that may hold credentials")
    if any(re.search(r"extraheader|insteadof|cookie|helper|proxy", word, re.IGNORECASE) for word in words):
        raise Unproven("it asks for what may hold secrets")
    alone = len(words) == 1 and "." in words[0]
    asks = bool({"get", "get-all", "get-regexp"} & given)
    if not (asks or alone or (words[:1] == ["get"] and len(words) <= 2)):
        raise Unproven("git config with a value sets it")


# What changes only how git prints, each with values that name no program and no file.
_GIT_SETTINGS = re.compile(
    r"""
      (core\.(quotepath|abbrev) | color\.[a-z.]+ | column\.[a-z]+ | advice\.[a-z]+ | i18n\.logoutputencoding
        | log\.(date|decorate|abbrevcommit|follow|mailmap) | blame\.(date|showemail|coloring)
        | diff\.(renames|renamelimit|noprefix|mnemonicprefix|algorithm|colormoved|context|interhunkcontext|relative)
        | status\.(short|branch|relativepaths|renames|showstash|showuntrackedfiles|aheadbehind)
        | grep\.(linenumber|column|fullname|patterntype|extendedregexp))
      = [A-Za-z0-9_%:., +-]*
    | core\.pager = (cat)? | (pager\.[a-z-]+ | log\.showsignature) = false
    """,
    re.VERBOSE | re.IGNORECASE,
)


def _git_settings(reading: ParsedArguments) -> None:
    """git -c KEY=VALUE, before the command."""
    for name, value in reading.options:
        if name == "c" and not _GIT_SETTINGS.fullmatch(value or ""):
            raise Unproven(f"`git -c {value}` may name a program to run")


def _syntax(reading: ParsedArguments) -> None:
    """bash -n FILE. A word that begins with + or - could end the effect of -n, or have standard input read."""
    if "n" not in _names(reading) or reading.operands[0][:1] in ("", "+", "-"):
        raise Unproven("it may run a script")


def _offline(reading: ParsedArguments) -> None:
    if reading.operands and "n" not in _names(reading):
        raise Unproven("it asks another machine")


def _to_stdout(reading: ParsedArguments) -> None:
    if reading.operands[1:] != ["-"]:
        raise Unproven("it would write a file")


def _reflog(reading: ParsedArguments) -> None:
    _pretty(reading)
    if reading.operands and reading.operands[0] in ("expire", "delete", "drop", "write"):
        raise Unproven("it makes git forget")


def _ls(reading: ParsedArguments) -> None:
    if {"R", "recursive"} & _names(reading):
        _recursive(reading)


def _gzip(reading: ParsedArguments) -> None:
    given = _names(reading)
    if not {"c", "l", "t", "stdout", "to-stdout", "list", "test", "help", "version"} & given:
        raise Unproven("it would write files")
    if {"d", "decompress"} & given and not {"c", "stdout", "to-stdout"} & given:
        raise Unproven("of several modes the last counts: it may write files")


_SECRET_WORD = re.compile(
    r"auth|token|secret|passw|credential|api[-_]?key|private|(^|_)(key|pwd|pass)($|_)", re.IGNORECASE
)


def _no_secrets(reading: ParsedArguments) -> None:
    if any(_SECRET_WORD.search(word) for word in (*reading.operands, *(v or "" for _, v in reading.options))):
        raise Unproven("it asks for what is named like a secret")


def _npm_view(reading: ParsedArguments) -> None:
    _no_secrets(reading)
    if not all(re.fullmatch(r"(@[\w.-]+/)?[\w.-]+(@[\w.^~<>=*-]+)?", word) for word in reading.operands):
        raise Unproven("it may fetch from anywhere")


def _kubectl(reading: ParsedArguments) -> None:
    if any(re.search(r"(^|[,/])secrets?($|[,/.])", word, re.IGNORECASE) for word in reading.operands):
        raise Unproven("it would show secrets of the cluster")
    if any("-file" in (value or "") for _, value in reading.options):
        raise Unproven("it would print another file")
    if "dump" in reading.operands:
        raise Unproven("it would show all of the cluster")


def _docker_inspect(reading: ParsedArguments) -> None:
    if any("env" in (value or "").lower() for name, value in reading.options if name in ("f", "format")):
        raise Unproven("it would show variables, which may hold secrets")


def _cloc(reading: ParsedArguments) -> None:
    if any(name == "vcs" and value not in ("git", "svn", "auto") for name, value in reading.options):
        raise Unproven("--vcs takes a command to run")


def _openssl(reading: ParsedArguments) -> None:
    if any(":" in path for path, _ in reading.paths):
        raise Unproven("openssl takes a name with a colon for an address")


def _recursive(reading: ParsedArguments) -> None:
    reading.paths = [(path, True) for path, _ in reading.paths]  # all below it: as if its content was read


def _getent(reading: ParsedArguments) -> None:
    if any("shadow" in word for word in reading.operands):
        raise Unproven("it shows the hashes of passwords")
    if any(re.match("a?hosts|networks", word) for word in reading.operands[:1]):
        raise Unproven("it asks another machine for a name")


def _plain_values(reading: ParsedArguments) -> None:
    """For scripts that split what they are given, and make commands of it."""
    words = (*reading.operands[1:], *(value or "" for _, value in reading.options))
    if not all(re.fullmatch(r"[\w./@%+=:,-]*", word) and not word.startswith("-") for word in words):
        raise Unproven("it is a script, which may split such a word")


def _service(reading: ParsedArguments) -> None:
    if any(not re.fullmatch(r"[A-Za-z0-9][\w.@-]*", word) for word in reading.operands):
        raise Unproven("a service is a plain name")
    if reading.operands[1:] != ["status"] and (reading.operands or not reading.options):
        raise Unproven("only a service's status is known to only read")


Check = Callable[[ParsedArguments], None]


def _lsof(reading: ParsedArguments) -> None:
    """Without -n it looks up names for the addresses that it shows."""
    if ("i" in _names(reading) or not reading.options) and "n" not in _names(reading):
        raise Unproven("it asks another machine for names")


_FURTHER = (
    _ls, _sed, _awk, _jq, _yq, _pretty, _git_listing, _git_config, _git_settings, _syntax, _offline, _to_stdout,
    _reflog, _gzip, _recursive, _getent, _kubectl, _npm_view, _docker_inspect, _plain_values, _lsof, _cloc,
    _no_secrets, _openssl, _service,
)  # fmt: skip
# By the names that the tables call them by: `check="git-config"`.
FURTHER: dict[str, Check] = {each.__name__.strip("_").replace("_", "-"): each for each in _FURTHER}


def _anything(words: Sequence[str]) -> ParsedArguments:
    return ParsedArguments(operands=list(words))


_ESCAPES = re.compile(r"\\(e|E|0?33|x1[bB]|u001[bB]|x9[bB]|0?233)")


def _echo(words: Sequence[str]) -> ParsedArguments:
    if any(_ESCAPES.search(word) for word in words):
        raise Unproven("it would send control sequences to the terminal")
    return _anything(words)


def _printf(words: Sequence[str]) -> ParsedArguments:
    if words[:1] == ["-v"] or (words and words[0].startswith("-v")):
        raise Unproven("printf -v sets a variable")
    if any(re.search(r"%[^a-zA-Z%]*([0-9]{5,}|\*)", word) for word in words[:1]):
        raise Unproven("it may print without end")
    return _echo(words)


def _test(words: Sequence[str]) -> ParsedArguments:
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


def _find(words: Sequence[str]) -> ParsedArguments:
    """find: its tests and its printing. `-exec` of something that reads is looked at by the caller (`inner`)."""
    reading = ParsedArguments()
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


_PS_VALUES = ("sort", "pid", "ppid", "user", "format")


def _ps(words: Sequence[str]) -> ParsedArguments:
    """ps in its three dialects; BSD's `e` would show the processes' environments."""
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word.startswith("--"):
            name, equals, _ = word[2:].partition("=")
            if name not in {*_PS_VALUES, "no-headers", "forest", "cols", "headers", "help", "width"}:
                raise Unproven(f"`ps` is not known with {word}")
            if not equals and name in _PS_VALUES and rest:
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
    return ParsedArguments()


def _ip(words: Sequence[str]) -> ParsedArguments:
    rest = [
        w for w in words if not re.fullmatch(r"-(4|6|br(ief)?|c(olor)?|j(son)?|p(retty)?|o(neline)?|s|d(etails)?|h)", w)
    ]
    objects = ("a", "addr", "address", "l", "link", "r", "route", "n", "neigh", "neighbour", "rule", "maddr", "tuntap")
    verbs = ("show", "list", "ls", "get", "sh") + ("s",) * (rest[:1] not in (["l"], ["link"]))  # `ip link s` sets
    if not rest or rest[0] not in objects or (len(rest) > 1 and rest[1] not in verbs):
        raise Unproven("`ip` is only known to show")
    return ParsedArguments()


_TAR_NAMES = frozenset("verbose gzip bzip2 xz zstd wildcards exclude full-time numeric-owner".split())


def _tar(words: Sequence[str]) -> ParsedArguments:
    """tar in its listing form only, `tf`, `-tzf` and `--list`."""
    reading = ParsedArguments()
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
            elif name not in _TAR_NAMES:
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


def _kill(words: Sequence[str]) -> ParsedArguments:
    """kill -l, kill -0 PID."""
    if not re.fullmatch(r"-[lL]( [A-Z0-9]+)?|-0( [0-9]+)+", " ".join(words)):
        raise Unproven("it ends or steers processes")
    return ParsedArguments()


def _jar(words: Sequence[str]) -> ParsedArguments:
    if len(words) < 2 or not re.fullmatch(r"-?(tf|tvf)", words[0]):
        raise Unproven("only jar's list is known to only read")
    if any(word.startswith(("-", "@")) for word in words[1:]):
        raise Unproven("only jar's list is known to only read")
    return ParsedArguments(paths=[(words[1], True)], operands=list(words[2:]))


_XXD_VALUES = ("c", "cols", "g", "groupsize", "l", "len", "n", "name", "o", "offset", "s", "seek", "skip")
_XXD_FLAGS = frozenset(
    """
    a autoskip b bits C capitalize d decimal e E EBCDIC h help i include p ps plain postscript u upper v version
""".split()
)


def _xxd(words: Sequence[str]) -> ParsedArguments:
    """xxd reads its options by its own rules: long names with one dash, nothing bundled; a second file is written."""
    reading = ParsedArguments()
    rest = list(words)
    while rest and rest[0].startswith("-") and len(rest[0]) > 1:
        word = rest.pop(0)
        name = word.removeprefix("-").removeprefix("-")
        if name in _XXD_FLAGS:
            reading.options.append((name, None))
        elif name in _XXD_VALUES and rest and re.fullmatch(r"[+-]?[0-9a-zA-Z_]+", rest[0]):
            reading.options.append((name, rest.pop(0)))
        elif re.fullmatch(r"[cglos][+-]?[0-9]+", name):
            reading.options.append((name[0], name[1:]))
        else:
            raise Unproven(f"`xxd` is not known to only read with {word}")
    if len(rest) > 1:
        raise Unproven("a second file of xxd is written")
    reading.operands = rest
    reading.paths = [(path, True) for path in rest if path != "-"]
    return reading


# By the names that the tables call them by.
OWN: dict[str, Callable[[Sequence[str]], ParsedArguments]] = {
    each.__name__.strip("_"): each
    for each in (_anything, _echo, _printf, _test, _find, _ps, _ip, _tar, _kill, _jar, _xxd)
}


SAMPLE = "a-name-that-is-found"  # stands for one while the command that gets it is proven
Looking = Callable[[str], PathStatus]  # what a name, as it is written, would be here


def has(name: str, *traits: Trait) -> bool:
    """Whether one of these traits is known of a program."""
    return not known(name).traits.isdisjoint(traits)


_NAME_TESTS = ("-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-regex", "-iregex")
_OTHERWISE = frozenset("-print -printf -ls -prune -quit -exec -o -or , ! -not ( )".split())
_COMMON_SECRETS = ".env .env.local .netrc .npmrc .pypirc .pgpass .git-credentials id_rsa id_ed25519".split()


def check_found(reading: ParsedArguments, opener: str, look: Looking) -> None:
    """Whether `opener` may have what this `find` finds."""
    if has(opener, Trait.METADATA):
        return
    if not _only_plain_files(reading):
        raise Unproven("what find gives may be links that lead out of the workspace")
    names = [value for name, value in reading.options if name in _NAME_TESTS and value]
    telling = [name for name in names if name.rpartition("/")[2].strip("*?.")]
    if not telling and not has(opener, Trait.SEARCHES):
        raise Unproven("it would print every file there is, secrets too")
    for name in names:
        check_pattern(name, look)


def naming(program: Grammar, reading: ParsedArguments, opener: str, look: Looking) -> str:
    """The option that makes `git ls-files`, `rg -l` … print whole names, if names are all it prints; else Unproven.

    Which files of the workspace these are does not matter to a search: it could search everything. `cat` prints all.
    """
    by, options = set(known(program.name).names_by), {name for name, _ in reading.options}
    if not (whole := known(program.name).whole) or not options <= by.union(known(program.name).naming):
        raise Unproven("what xargs gets may be more than names")
    if by and not options & by:
        raise Unproven("what xargs gets is more than names")
    every = not by or "files" in options
    if every and not has(opener, Trait.SEARCHES, Trait.METADATA):
        globs = [value or "" for name, value in reading.options if name in ("g", "glob", "iglob")]
        patterns = [each for each in globs or reading.operands if not each.startswith((":!", ":^", "!"))]
        if not patterns or not all(re.search(r"\.\w[^/]*$", each) for each in patterns):
            raise Unproven("it would print every file there is, secrets too")
    for pattern in reading.operands if every else ():
        if pattern.startswith(":("):
            raise Unproven(f"`{pattern}` is not read here")
        if not pattern.startswith((":!", ":^")):
            check_pattern(re.sub("^:/?", "", pattern), look)
    return whole


def plain_files(words: tuple[str, ...]) -> tuple[str, ...]:
    """`find … | xargs cat` as it is meant: the names of plain files, each whole, whatever blanks it holds."""
    if _OTHERWISE & set(words):
        raise Unproven("what find gives is not known")
    return (*words, "-type", "f", "-print0")


def of_whole_names(words: tuple[str, ...]) -> tuple[str, ...]:
    """`head -5` between find and xargs, counting names instead of lines."""
    choosing = known(words[0]).choosing
    if not choosing:
        raise Unproven("xargs gets names that are not known")
    for word in words[1:]:
        if word.startswith("-") and not re.fullmatch(choosing, word):
            raise Unproven(f"`{words[0]} {word}` may make other names of those that it gets")
    return (*words, "-z")


def exec_of_plain_files(arguments: list[str]) -> list[str]:
    """`find … -exec cat {} +` as it is meant: of plain files, where nothing else is said of what it finds."""
    words = set(arguments)
    if "-exec" not in words or _OTHERWISE & (words - {"-exec"}) or "-type" in words or arguments.count("-exec") != 1:
        return arguments
    at = arguments.index("-exec")
    opener = arguments[at + 1 : at + 2]
    if not opener or has(opener[0], Trait.METADATA):
        return arguments
    return [*arguments[:at], "-type", "f", *arguments[at:]]


def _only_plain_files(reading: ParsedArguments) -> bool:
    """Whether `-type f` holds for all that is found: at the top of the expression, nothing else instead of it."""
    depth = 0
    holds = False
    before = ""
    for name, value in reading.options:
        depth += (name == "(") - (name == ")")
        if name in ("-L", "-follow") or (depth == 0 and name in ("-o", "-or", ",")):
            return False
        if depth == 0 and (name, value) == ("-type", "f") and before not in ("!", "-not"):
            holds = True
        if name in ("exec", "exec+", "-print", "-print0") and not (holds and depth == 0):
            return False
        before = name
    return holds


def check_pattern(pattern: str, look: Looking, *, certain: bool = True) -> None:
    """A pattern for names must not be one for credentials, or for what is hidden from agents.

    Where it is not certain to be a name of files (`git show fix-token`), only what can hardly be another thing counts.
    """
    bare = re.sub(r"[*?\[\]\\^$]|(/\*+)$", "", pattern).rstrip("/")
    for text in dict.fromkeys((pattern.rstrip("/"), bare)):
        seen = look(text) if text.strip("./") else None
        if seen and (why := seen.credential or seen.ignored or seen.own):
            raise Unproven(f"`{pattern}`: {why}")
        if certain and is_secret(text):
            raise Unproven(f"`{pattern}` looks like credentials")
    if bare.strip(".") and any(fnmatch.fnmatch(each, pattern.rpartition("/")[2]) for each in _COMMON_SECRETS):
        raise Unproven(f"`{pattern}` looks for credentials")
