"""What people wrote down for agents: AGENTS.md, CLAUDE.md, rules of the user and of the workspace (S7).

read_instructions(workspace, user_folder, mode) → Instructions(files, trouble)

In this order, so that what comes later is closer to the task:
  the user's     AGENTS.md · rules/ · rules-MODE/                     in the user's folder
  the project's  AGENTS.md (or AGENT.md) · AGENTS.local.md · CLAUDE.md (or .claude/CLAUDE.md) · CLAUDE.local.md
                 .tarmac/rules/ · .roo/rules/ (or .roorules, or .clinerules) · .roo-code/
  of the mode    .tarmac/rules-MODE/ · .roo/rules-MODE/ (or .roorules-MODE, or .clinerules-MODE)

The project's and those of the mode also of the folders above, up to the top of the repository, the outermost first.
Each file counts once, under its first name, and is bounded; so are all together.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tarmac.policy.ignore import NAME as IGNORE_FILE
from tarmac.prompts.modefile import SLUG
from tarmac.prompts.reading import Unread, files_below, folders_of, name_of, read_text

LONGEST = 32_000  # characters of one file
MOST = 80_000  # of all
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
    """One file, as far as it is told to the model."""

    name: str  # as shown: `AGENTS.md`; the user's with its whole path
    text: str
    left_out: int = 0  # characters that did not fit
    theirs: bool = False  # of the user's own folder, not of the workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Instructions:
    """All of them, in the order in which they are told."""

    files: tuple[Instruction, ...] = ()
    hides_files: bool = False  # there is a .tarmacignore
    trouble: tuple[str, ...] = ()  # files that were not read, and why


@dataclass(frozen=True, slots=True)
class _Source:
    """Files and folders of which the first that has something counts; `workspace`: what they may not lead out of."""

    places: tuple[Path, ...]
    workspace: Path | None  # None: the user's own, which may lead anywhere


def read_instructions(workspace: Path, user_folder: Path, mode: str) -> Instructions:
    """Those for `mode` in `workspace`; never raises for what is in files."""
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
            if not found or not text or text in known:  # CLAUDE.md is often a link to AGENTS.md, or a copy
                continue
            known.add(text)
            if room < 1:
                trouble.append(f"{name}: there is no room for it: instructions have {MOST:,} characters in all")
                continue
            kept = text[:room]
            room -= len(kept)
            left_out = found.left_out + len(text) - len(kept)
            files.append(Instruction(name=name, text=kept, left_out=left_out, theirs=source.workspace is None))
    hides = os.path.lexists(workspace / IGNORE_FILE)
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
    """The files of the first place that has any."""
    for place in source.places:
        if os.path.isdir(place):  # noqa: PTH112 one that may not be looked into is none, and no error
            found, unread = files_below(place, workspace=source.workspace, suffixes=SUFFIXES)
            trouble += unread
        else:
            found = [place] if os.path.lexists(place) else []
        if found:
            return found
    return []
