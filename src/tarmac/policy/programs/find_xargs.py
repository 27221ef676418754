"""Names that one program finds and another one opens: find -exec, find | xargs.

Nobody knows them before they are found. So what opens them may get only plain files, that lie below the workspace and
were not looked for by a credential's name; what shows no more than sizes and counts may get any.
"""

import fnmatch
import re
from collections.abc import Callable

from tarmac.policy.paths.files import Look
from tarmac.policy.paths.places import is_secret
from tarmac.policy.programs.grammar import Reading, Unproven

SAMPLE = "a-name-that-is-found"  # stands for one while the command that gets it is proven
Looking = Callable[[str], Look]  # what a name, as it is written, would be here

# What these show of a file is no more than its name, size or a count.
METADATA = frozenset(
    """
    wc ls stat file du basename dirname realpath readlink md5sum sha256sum sha1sum echo
""".split()
)
SEARCHING = frozenset(["grep", "egrep", "fgrep"])  # they print lines with a pattern, not the whole
READERS = frozenset(["cat", "head", "tail"]) | SEARCHING
FILTERS = frozenset(["head", "tail", "sort", "uniq"]) | SEARCHING
_NAME_TESTS = ("-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-regex", "-iregex")
_OTHERWISE = frozenset(
    ["-print", "-printf", "-ls", "-prune", "-quit", "-exec", "-o", "-or", ",", "!", "-not", "(", ")"]
)
_COMMON_SECRETS = """
    .env .env.local .netrc .npmrc .pypirc .pgpass .git-credentials id_rsa id_ed25519
""".split()


def check_found(reading: Reading, opener: str, look: Looking) -> None:
    """Whether `opener` may have what this `find` finds."""
    if opener in METADATA:
        return
    if not _only_plain_files(reading):
        raise Unproven("what find gives may be links that lead out of the workspace")
    names = [value for name, value in reading.options if name in _NAME_TESTS and value]
    telling = [name for name in names if name.rpartition("/")[2].strip("*?.")]
    if not telling and opener not in SEARCHING:
        raise Unproven("it would print every file there is, secrets too")
    for name in names:
        check_pattern(name, look)


def plain_files(words: tuple[str, ...]) -> tuple[str, ...]:
    """`find … | xargs cat` as it is meant: the names of plain files, each whole, whatever blanks it holds."""
    if _OTHERWISE & set(words):
        raise Unproven("what find gives is not known")
    return (*words, "-type", "f", "-print0")


# Options of filters that choose among whole names. Others cut names (-c, -o) or put something before them (-n, -b).
_CHOOSING = {
    **dict.fromkeys(("head", "tail"), re.compile(r"-[0-9]+|-n[0-9]*|-[qz]")),
    "sort": re.compile(r"-[bdfgiMhnRrVsuz]+"),
    **dict.fromkeys(SEARCHING, re.compile(r"-[EFGPviwxz]+|-e")),
}


def of_whole_names(words: tuple[str, ...]) -> tuple[str, ...]:
    """`head -5` between find and xargs, counting names instead of lines."""
    choosing = _CHOOSING.get(words[0])
    if choosing is None:
        raise Unproven("xargs gets names that are not known")
    for word in words[1:]:
        if word.startswith("-") and not choosing.fullmatch(word):
            raise Unproven(f"`{words[0]} {word}` may make other names of those that it gets")
    return (*words, "-z")


def exec_of_plain_files(arguments: list[str]) -> list[str]:
    """`find … -exec cat {} +` as it is meant: of plain files, where nothing else is said of what it finds."""
    words = set(arguments)
    if "-exec" not in words or _OTHERWISE & (words - {"-exec"}) or "-type" in words or arguments.count("-exec") != 1:
        return arguments
    at = arguments.index("-exec")
    opener = arguments[at + 1 : at + 2]
    return [*arguments[:at], "-type", "f", *arguments[at:]] if opener and opener[0] not in METADATA else arguments


def _only_plain_files(reading: Reading) -> bool:
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
