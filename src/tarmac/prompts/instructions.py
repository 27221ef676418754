"""What people wrote down for agents: AGENTS.md, CLAUDE.md, rules of the user and of the workspace (S7)."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """One file, as far as it is told to the model."""

    name: str  # as shown: `AGENTS.md`, `~/.config/tarmac/rules/style.md`
    text: str
    left_out: int = 0  # characters that did not fit


@dataclass(frozen=True, slots=True, kw_only=True)
class Instructions:
    """All of them, in the order in which they are told: what comes later is more specific, and counts."""

    files: tuple[Instruction, ...] = ()
    hides_files: bool = False  # there is a .tarmacignore
    trouble: tuple[str, ...] = ()  # files that were not read, and why


def read_instructions(workspace: Path, user_folder: Path, mode: str) -> Instructions:
    """Those for `mode` in `workspace`; never raises for what is in files."""
    raise NotImplementedError
