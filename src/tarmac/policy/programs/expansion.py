"""The words of a command as its program gets them, patterns expanded here and now; Unproven where that is uncertain."""

import fnmatch
import itertools
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from tarmac.policy.budget import note
from tarmac.policy.parse.words import Word
from tarmac.policy.places import Ground, expand, listable
from tarmac.policy.plan import SYSTEM_PATH, search_path
from tarmac.policy.programs.program import known
from tarmac.policy.verdict import Unproven

MOST_WORDS = 64  # that braces may become
_SWITCH = "|[0-3]|true|false|yes|no|always|never"
_LOCALE = r"(?!.*\.\.)[A-Za-z][A-Za-z0-9_.@-]*"  # no slash: a locale is a name, never a file of the workspace
# What may stand in front of a command, and the values that only change how its answer looks.
_VARIABLES = {
    **dict.fromkeys(("LANG", "LC_ALL", "LC_CTYPE", "LC_COLLATE", "LC_MESSAGES", "LC_NUMERIC", "LC_TIME"), _LOCALE),
    "TZ": r"[A-Z][A-Za-z_]*([+-][0-9]{1,2})?(/[A-Z][A-Za-z_+-]*[0-9]{0,2}){0,2}",
    **dict.fromkeys(("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "PY_COLORS"), _SWITCH),
    **dict.fromkeys(("COLUMNS", "LINES"), "[0-9]{1,4}"),
    "TERM": "dumb|xterm|xterm-color|xterm-256color|vt100|linux|screen|screen-256color",
    **dict.fromkeys(("PAGER", "GIT_PAGER", "GH_PAGER", "SYSTEMD_PAGER", "AWS_PAGER", "BAT_PAGER"), "|cat"),
    "MANPAGER": "cat",
    "MANWIDTH": "[0-9]{1,4}",
    **dict.fromkeys(("GIT_OPTIONAL_LOCKS", "GIT_TERMINAL_PROMPT"), "0"),
    **dict.fromkeys(("PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "HOMEBREW_NO_AUTO_UPDATE"), "1"),
    "DEBIAN_FRONTEND": "noninteractive",
}
_BRACED = re.compile(r"\{([A-Za-z0-9_./+@%:=*?,-]*,[A-Za-z0-9_./+@%:=*?,-]*)\}")
_AROUND = re.compile(r"[A-Za-z0-9_./+@%:=*?,-]*")


def variables(assigns: Sequence[tuple[str, Word | None]]) -> tuple[str, ...]:
    """`LC_ALL=C sort`: the words for `env` in front; Unproven when one could do more than change looks."""
    found: list[str] = []
    for name, value in assigns:
        if value is None or not value.literal or name not in _VARIABLES:
            raise Unproven("it sets a variable for the command")
        if not re.fullmatch(_VARIABLES[name], value.text or ""):
            raise Unproven(f"it sets {name} to what is not known to be harmless")
        found.append(f"{name}={value.text}")
    return ("env", *found) if found else ()


def braces(word: Word) -> list[str]:
    """`{a,b}.py` → a.py b.py: lists of plain letters, side by side; Unproven for sequences, nesting and quotes."""
    text = word.text or ""
    pieces = _BRACED.split(text)
    if not word.plain or len(pieces) == 1 or not all(map(_AROUND.fullmatch, pieces[::2])):
        raise Unproven("it holds a brace expansion")
    choices = [[piece] if number % 2 == 0 else piece.split(",") for number, piece in enumerate(pieces)]
    found = ["".join(each) for each in itertools.islice(itertools.product(*choices), MOST_WORDS + 1)]
    if len(found) > MOST_WORDS or not all(found):
        raise Unproven("it holds a brace expansion")
    return found


def program_name(path: str, *, workspace: str) -> str:
    """`/usr/bin/git` → git: a program where nobody in the workspace can put one. Other words stay as they are."""
    folder, _, name = path.rpartition("/")
    if folder not in SYSTEM_PATH or not re.fullmatch(r"[A-Za-z0-9][\w.+-]*", name):
        return path
    return name if folder in search_path("", workspace=Path(os.path.realpath(workspace))) else path


def written_out(word: Word) -> Iterator[tuple[str, bool]]:
    """The words that `word` stands for, and whether each is a pattern."""
    if not word.brace:
        yield word.text or "", word.glob
        return
    for text in braces(word):
        yield text, "*" in text or "?" in text


MOST_NAMES = 500  # that a pattern may become
MOST_FOLDERS = 40  # in a pattern
# Letters of other alphabets that look like ours.
_LOOKALIKES = frozenset("аеорсухіјѕһԁԛԝАВЕКМНОРСТУХІЈЅαοινρτυκΑΒΕΖΗΙΚΜΝΟΡΤΥΧ")


def expand_words(words: Sequence[Word], ground: Ground) -> tuple[str, ...]:
    """The words as the program gets them; Unproven when that isn't certain."""
    found: list[str] = []
    exists = os.path.isdir(ground.cwd)
    harmless = _any_option_reads(words[0].text)
    for word in words:
        if word.text is None:
            raise Unproven(f"`{word.source}` is not known before it runs")
        if word.home:
            raise Unproven("~ leads out of the workspace")
        for text, pattern in written_out(word):
            found += _names(word, text, ground, exists=exists, option=not harmless) if pattern else [text]
    return tuple(found)


def names_of(word: Word, ground: Ground) -> list[str]:
    """What one word of a loop's list becomes; no option, as nothing is run with it alone."""
    if word.text is None or word.home:
        raise Unproven(f"`{word.source}` is not known before it runs")
    exists = os.path.isdir(ground.cwd)
    found: list[str] = []
    for text, pattern in written_out(word):
        found += _names(word, text, ground, exists=exists, option=False) if pattern else [text]
    return found


def _names(word: Word, pattern: str, ground: Ground, *, exists: bool, option: bool) -> list[str]:
    """What a pattern becomes here and now; itself when nothing matches. `option`: a name must not become one."""
    if not word.plain or re.search(r"\[[\^:]|\[\[|\\", pattern):
        raise Unproven(f"the pattern `{word.source}` is not read here")
    if not listable(ground.locate(re.split(r"[*?\[]", pattern)[0].rpartition("/")[0] or ".")):
        raise Unproven(f"`{word.source}` gives names from outside of the workspace")
    names = sorted(_matching(pattern, ground.cwd)) if exists else []
    if len(names) > MOST_NAMES:
        raise Unproven(f"`{word.source}` matches more than {MOST_NAMES} names")
    if not exists and option and pattern[0] in "*?[":
        raise Unproven(f"a name that matches `{word.source}` could be an option")
    if not names and _may_be_secret(pattern):
        raise Unproven(f"`{word.source}` may be a file of secrets")
    return names or [pattern]


def _matching(pattern: str, cwd: str) -> list[str]:
    """What the shell would put for a pattern of * and ?; hidden names only when asked for."""
    note(cwd)
    parts = pattern.split("/")
    if len(parts) > MOST_FOLDERS:
        raise Unproven(f"a pattern of more than {MOST_FOLDERS} folders is not read here")
    for depth in range(1, len(parts)):  # a change in any folder it looks into may give other names
        note(os.path.join(cwd, *parts[:depth]))
    return expand(pattern, cwd) if len(pattern) < 4096 else []


def _may_be_secret(pattern: str) -> bool:
    """Whether a pattern that says something, more than `*`, could mean a file of secrets."""
    name = pattern.rpartition("/")[2]
    samples = (
        ".env",
        ".env.local",
        ".netrc",
        ".npmrc",
        ".pypirc",
        ".git-credentials",
        "id_rsa",
        "server.pem",
        "server.key",
    )
    return len(re.sub(r"[*?\[\]]", "", name)) >= 2 and any(fnmatch.fnmatchcase(each, name) for each in samples)


def _any_option_reads(name: str | None) -> bool:
    grammar = known(name).reads
    return grammar is not None and grammar.harmless_options


def looks_alike(word: str) -> bool:
    """Whether a word could be taken for another: Latin letters mixed with lookalikes, or nothing but lookalikes."""
    if word.isascii() or _LOOKALIKES.isdisjoint(word):
        return False
    letters = [character for character in word if character.isalpha()]
    return any(character.isascii() for character in letters) or _LOOKALIKES.issuperset(letters)
