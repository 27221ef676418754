"""Files that people write for agents: AGENTS.md, CLAUDE.md, rules, and replacements of the system prompt.

read_instructions(workspace, user_folder, mode) → Instructions(files, trouble)
read_replacement(workspace, user_folder, mode) → Replacement | None, trouble

The order of instructions, from general to specific:
  the user's     AGENTS.md · rules/ · rules-MODE/                     in the user's folder
  the project's  AGENTS.md (or AGENT.md) · AGENTS.local.md · CLAUDE.md (or .claude/CLAUDE.md) · CLAUDE.local.md
                 .tarmac/rules/ · .roo/rules/ (or .roorules, or .clinerules) · .roo-code/
  of the mode    .tarmac/rules-MODE/ · .roo/rules-MODE/ (or .roorules-MODE, or .clinerules-MODE)

Project files and mode files are also read from the parent folders, up to the top of the repository, outermost first.
The same text is used once. Each file has a size limit, and all together have one.

A replacement is `.tarmac/system-prompt-MODE.md` or `.roo/system-prompt-MODE` in the workspace, or
`system-prompt-MODE.md` in the user's folder. Its variables ({{workspace}}, {{mode}}, {{language}}, {{shell}}, {{os}},
{{tools}}) are filled in. Other double braces stay.
"""

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from tarmac.policy.files import IGNORE_FILES
from tarmac.prompts.mode import SLUG, Mode
from tarmac.prompts.safe_files import Unread, files_below, folders_of, name_of, read_text

LONGEST = 32_000  # characters of one file
MOST = 80_000  # characters of all files
PROJECT = (
    ("AGENTS.md", "AGENT.md"),
    ("AGENTS.local.md",),
    ("CLAUDE.md", ".claude/CLAUDE.md"),
    ("CLAUDE.local.md",),
    (".tarmac/rules",),
    (".roo/rules", ".roorules", ".clinerules"),
    (".roo-code",),
)
SUFFIXES = (".md", ".mdc", ".markdown", ".txt")


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """One file, as the model sees it."""

    name: str  # `AGENTS.md`; with the full path for a file of the user
    text: str
    left_out: int = 0  # characters over the limit
    theirs: bool = False  # from the user's folder


@dataclass(frozen=True, slots=True, kw_only=True)
class Instructions:
    """All instruction files, in order."""

    files: tuple[Instruction, ...] = ()
    hides_files: bool = False  # there is a .tarmacignore or .rooignore file
    trouble: tuple[str, ...] = ()  # files that could not be read, and why


@dataclass(frozen=True, slots=True)
class _Source:
    """Alternatives: the first that exists is used. Its files must be inside `workspace`."""

    places: tuple[Path, ...]
    workspace: Path | None  # None: a link in the user's folder may lead anywhere


def read_instructions(workspace: Path, user_folder: Path, mode: str) -> Instructions:
    """The instructions for `mode` in `workspace`. A bad file never raises."""
    files: list[Instruction] = []
    trouble: list[str] = []
    known: set[str] = set()
    room = MOST
    for source in _sources(workspace, user_folder, mode if SLUG.fullmatch(mode) else ""):
        for path in _first(source, trouble):
            name = name_of(path, workspace, own=source.workspace is None)
            try:
                found = read_text(path, workspace=source.workspace, most=LONGEST)
            except Unread as why:
                trouble.append(f"{name}: {why}")
                continue
            text = found.text.strip() if found else ""
            if not found or not text or text in known:  # CLAUDE.md is often a link to AGENTS.md, or a copy of it
                continue
            known.add(text)
            if room < 1:
                trouble.append(f"{name}: left out: all instructions together have at most {MOST:,} characters")
                continue
            kept = text[:room]
            room -= len(kept)
            left_out = found.left_out + len(text) - len(kept)
            files.append(Instruction(name=name, text=kept, left_out=left_out, theirs=source.workspace is None))
    hides = any(os.path.lexists(workspace / each) for each in IGNORE_FILES)
    return Instructions(files=tuple(files), hides_files=hides, trouble=tuple(trouble))


def _sources(workspace: Path, user_folder: Path, mode: str) -> Iterator[_Source]:
    yield _Source((user_folder / "AGENTS.md",), None)
    yield _Source((user_folder / "rules",), None)
    if mode:
        yield _Source((user_folder / f"rules-{mode}",), None)
    for_mode = ((f".tarmac/rules-{mode}",), (f".roo/rules-{mode}", f".roorules-{mode}", f".clinerules-{mode}"))
    for kind in (PROJECT, for_mode if mode else ()):
        for folder in folders_of(workspace):
            for names in kind:
                yield _Source(tuple(folder / name for name in names), folder)


def _first(source: _Source, trouble: list[str]) -> list[Path]:
    """The files of the first alternative that has any."""
    for place in source.places:
        if os.path.isdir(place):  # noqa: PTH112 Path.is_dir() raises if the parent is unreadable
            found, unread = files_below(place, workspace=source.workspace, suffixes=SUFFIXES)
            trouble += unread
        else:
            found = [place] if os.path.lexists(place) else []
        if found:
            return found
    return []


LONGEST_REPLACEMENT = 100_000  # characters
_ALIASES = {"operatingSystem": "os"}  # of Roo-Code
_VARIABLE = re.compile(r"\{\{\s*(\w+)\s*\}\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """A text that replaces the system prompt, and its file."""

    text: str
    name: str
    theirs: bool = False  # from the user's folder


def read_replacement(
    workspace: Path, user_folder: Path, mode: str, *, of_workspace: bool = True
) -> tuple[Replacement | None, tuple[str, ...]]:
    """The replacement for `mode`, if there is one, and the problems with files. The workspace's comes first."""
    if not SLUG.fullmatch(mode):
        return None, ()
    trouble: list[str] = []
    places: list[tuple[Path, Path | None]] = []
    for folder in reversed(folders_of(workspace) if of_workspace else ()):
        places += [(folder / ".tarmac" / f"system-prompt-{mode}.md", folder)]
        places += [(folder / ".roo" / f"system-prompt-{mode}", folder)]
    for path, inside in (*places, (user_folder / f"system-prompt-{mode}.md", None)):
        name = name_of(path, workspace, own=inside is None)
        try:
            found = read_text(path, workspace=inside, most=LONGEST_REPLACEMENT)
        except Unread as why:
            trouble.append(f"{name}: {why}")
            continue
        if found and found.left_out:
            trouble.append(f"{name}: longer than {LONGEST_REPLACEMENT:,} characters")
        elif found and found.text.strip():
            return Replacement(text=found.text.strip(), name=name, theirs=inside is None), tuple(trouble)
    return None, tuple(trouble)


def fill_in(text: str, values: Mapping[str, str]) -> str:
    """Replace the variables of a text. Variables inside the values stay."""

    def value(found: re.Match[str]) -> str:
        return values.get(_ALIASES.get(found[1], found[1]), found[0])

    return _VARIABLE.sub(value, text)


def first_heard(workspace: Path, instructions: Instructions, modes: Iterable[Mode], *, told: Path) -> str:
    """Which files of the workspace speak to the model, of those that `told` does not know with this content."""
    said = [(each.name, each.text, each.name) for each in instructions.files if not each.theirs]
    said += [
        (each.origin, repr(each), f"{each.origin}, which sets the mode {each.slug}")
        for each in modes
        if each.source == "workspace"
    ]
    try:
        known = set(told.read_text("ascii").split())
    except (OSError, UnicodeDecodeError):
        known = set()
    sums = {sha256(f"{workspace}\0{name}\0{text}".encode()).hexdigest(): shown for name, text, shown in said}
    new = {digest: shown for digest, shown in sums.items() if digest not in known}
    if not new:
        return ""
    with contextlib.suppress(OSError):  # then it is told again
        told.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with told.open("a") as file:
            file.write("".join(f"{digest}\n" for digest in new))
    return f"this workspace instructs the model in {'; '.join(dict.fromkeys(new.values()))}"
