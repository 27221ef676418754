"""Other ways to write the same words: variables in front that change only looks, braces, a program's whole path.

Each is written out here into what the program would get, and then proven like words typed one by one.
"""

import itertools
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from tarmac.policy.parse.words import Word
from tarmac.policy.plan import SYSTEM_PATH, search_path
from tarmac.policy.programs.grammar import Unproven

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
