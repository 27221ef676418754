"""Programs whose arguments no table of options can say: each reads all of them by itself, or raises Unproven."""

import fnmatch
import re
from collections.abc import Callable, Sequence

from tarmac.policy.files import PathStatus
from tarmac.policy.places import is_secret
from tarmac.policy.programs.grammar import ParsedArguments
from tarmac.policy.programs.program import Trait, known
from tarmac.policy.verdict import Unproven


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


def _ps(words: Sequence[str]) -> ParsedArguments:
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
_OTHERWISE = frozenset(
    ["-print", "-printf", "-ls", "-prune", "-quit", "-exec", "-o", "-or", ",", "!", "-not", "(", ")"]
)
_COMMON_SECRETS = """
    .env .env.local .netrc .npmrc .pypirc .pgpass .git-credentials id_rsa id_ed25519
""".split()


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
