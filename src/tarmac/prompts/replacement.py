"""A file that takes the place of the system prompt, all but the role and the custom instructions (S7).

`.tarmac/system-prompt-MODE.md` in the workspace, else `.roo/system-prompt-MODE`, else `system-prompt-MODE.md` in the
user's folder. {{workspace}}, {{mode}}, {{language}}, {{shell}}, {{os}} and {{tools}} in it are filled in; whatever else
stands in double braces stays as it is.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tarmac.prompts.modefile import SLUG
from tarmac.prompts.reading import Unread, folders_of, name_of, read_text

LONGEST = 100_000
VARIABLES = ("workspace", "mode", "language", "shell", "os", "tools")
_SAME = {"operatingSystem": "os"}  # Roo-Code's word for it
_VARIABLE = re.compile(r"\{\{\s*(\w+)\s*\}\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """The text, with its variables, and the file it is from."""

    text: str
    name: str
    theirs: bool = False  # of the user's own folder


def read_replacement(workspace: Path, user_folder: Path, mode: str) -> tuple[Replacement | None, tuple[str, ...]]:
    """What replaces the prompt of `mode`, if anything does; and what was wrong with files."""
    if not SLUG.fullmatch(mode):
        return None, ()
    trouble: list[str] = []
    places: list[tuple[Path, Path | None]] = []
    for folder in reversed(folders_of(workspace)):
        places += [(folder / ".tarmac" / f"system-prompt-{mode}.md", folder)]
        places += [(folder / ".roo" / f"system-prompt-{mode}", folder)]
    for path, inside in (*places, (user_folder / f"system-prompt-{mode}.md", None)):
        name = name_of(path, workspace, own=inside is None)
        try:
            found = read_text(path, workspace=inside, most=LONGEST)
        except Unread as why:
            trouble.append(f"{name}: {why}")
            continue
        if found and found.left_out:
            trouble.append(f"{name}: it is longer than {LONGEST:,} characters")
        elif found and found.text.strip():
            return Replacement(text=found.text.strip(), name=name, theirs=inside is None), tuple(trouble)
    return None, tuple(trouble)


def filled(text: str, values: Mapping[str, str]) -> str:
    """`text` with its variables; once, so that what they stand for is not looked at again."""

    def value(found: re.Match[str]) -> str:
        return values.get(_SAME.get(found[1], found[1]), found[0])

    return _VARIABLE.sub(value, text)
