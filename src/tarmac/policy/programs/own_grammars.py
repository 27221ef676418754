"""Programs whose arguments no table of options can say: each reads all of them by itself, or raises Unproven."""

import re
from collections.abc import Callable, Sequence

from tarmac.policy.programs.grammar import Reading, Unproven


def _anything(words: Sequence[str]) -> Reading:
    return Reading(operands=list(words))


_ESCAPES = re.compile(r"\\(e|E|0?33|x1[bB]|u001[bB]|x9[bB]|0?233)")


def _echo(words: Sequence[str]) -> Reading:
    if any(_ESCAPES.search(word) for word in words):
        raise Unproven("it would send control sequences to the terminal")
    return _anything(words)


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


_XXD_VALUES = ("c", "cols", "g", "groupsize", "l", "len", "n", "name", "o", "offset", "s", "seek", "skip")
_XXD_FLAGS = frozenset(
    """
    a autoskip b bits C capitalize d decimal e E EBCDIC h help i include p ps plain postscript u upper v version
""".split()
)


def _xxd(words: Sequence[str]) -> Reading:
    """xxd reads its options by its own rules: long names with one dash, nothing bundled; a second file is written."""
    reading = Reading()
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


OWN: dict[str, Callable[[Sequence[str]], Reading]] = {
    "anything": _anything,
    "echo": _echo,
    "printf": _printf,
    "test": _test,
    "find": _find,
    "ps": _ps,
    "ip": _ip,
    "tar": _tar,
    "kill": _kill,
    "jar": _jar,
    "xxd": _xxd,
}
