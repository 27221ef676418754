"""The result of a command: readable output, how it ended, and the evidence for that."""

import asyncio
import re
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from tarmac.terminals.settings import Settings
from tarmac.vt.buffer import HeadTail
from tarmac.vt.fold import bound_parts, fold_repeats, show_invisibles
from tarmac.vt.sieve import is_binary
from tarmac.vt.text import Renderer, overwritten, overwritten_notice

Reason = Literal[
    "done",
    "timeout",
    "idle",
    "interrupted",
    "killed",
    "stopped",
    "awaiting input",
    "terminal closed",
    "left running",
    "not run",
    "connection lost",
    "daemon lost",
]
Evidence = Literal["mark", "waitpid", "asked", "told", "unknown"]  # told: by who ran it elsewhere

SLICE = 64 << 10  # rendered at a time: a few milliseconds, so that nobody waits for a big result


class Ending(NamedTuple):
    """How an execution ended, as its provider knows it."""

    reason: Reason
    evidence: Evidence
    cwd: Path
    exit_code: int | None = None
    pipestatus: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()
    signal: int = 0  # that ended the process itself, where `waitpid` said so


class Result(NamedTuple):  # as fixed as a frozen dataclass, and made in a third of the time
    """A command's result. A non-zero exit is data here, never an exception."""

    command: str
    output: str  # escapes removed, carriage returns and backspaces applied, bounded
    exit_code: int | None  # None: unknown, or still running; never 0 by assumption
    signal: str | None  # "SIGINT": the shell's word for it is an exit code above 128
    reason: Reason
    duration: float
    cwd: Path  # where the terminal stands now
    truncated: bool  # `output` is not all of it; the whole is at `output_path`
    evidence: Evidence
    output_path: Path | None  # the raw bytes; None when there were none
    output_bytes: int = 0
    pipestatus: tuple[int, ...] = ()  # of a pipeline, each command's own
    binary: bool = False
    forged_marks: int = 0  # somebody printed marks that look like ours
    fresh_shell: bool = False  # the shell before had died; this ran in a new one
    awaiting: str | None = None  # "line", "secret", "keys", "unknown": it waits for somebody to type
    prompt: str = ""  # what it asks
    notes: tuple[str, ...] = ()
    overwritten: tuple[str, ...] = ()  # text that a carriage return or a backspace hid

    @property
    def running(self) -> bool:
        """Whether the command still runs: then this is what is known so far. Not when nobody can tell."""
        return self.evidence == "unknown" and self.reason in ("left running", "idle", "awaiting input", "timeout")

    def for_model(self) -> str:
        """The output for a model: repeated lines folded, hidden text and invisible characters made visible."""
        return show_invisibles(with_overwritten(fold_repeats(self.output), self.overwritten))

    def as_dict(self) -> dict[str, object]:
        """The fields, as JSON can carry them."""
        return {
            "command": self.command,
            "output": self.output,
            "exit_code": self.exit_code,
            "signal": self.signal,
            "reason": self.reason,
            "duration": round(self.duration, 6),
            "cwd": show_path(self.cwd),
            "truncated": self.truncated,
            "evidence": self.evidence,
            "output_path": show_path(self.output_path) if self.output_path else None,
            "output_bytes": self.output_bytes,
            "pipestatus": list(self.pipestatus),
            "binary": self.binary,
            "forged_marks": self.forged_marks,
            "fresh_shell": self.fresh_shell,
            "awaiting": self.awaiting,
            "prompt": self.prompt,
            "notes": list(self.notes),
        }


def show_path(path: Path) -> str:
    """A path as text that any encoder takes: bytes that are not UTF-8 are shown as they are escaped."""
    return str(path).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def signal_name(exit_code: int | None) -> str | None:
    """The signal behind an exit code above 128, as shells tell it."""
    if exit_code is None or not 128 < exit_code <= 192:
        return None
    try:
        return signal.Signals(exit_code - 128).name
    except ValueError:
        return f"SIGRT{exit_code - 128}" if exit_code - 128 > 31 else None


@dataclass(frozen=True, slots=True)
class Rendered:
    """An output as text."""

    text: str
    truncated: bool
    binary: bool
    overwritten: tuple[str, ...] = ()


NOTHING = Rendered("", False, False)
SMALL = 8 << 10
_LONE_RETURN = re.compile(rb"\r+(?!\n|\Z)")
_PLAIN = re.compile(rb"(?:[\t\n -~]|\r\n)*")  # what needs no rendering


async def render(kept: HeadTail, settings: Settings) -> Rendered:
    """The bytes we kept of an output as bounded, readable text."""
    head, tail = kept.head, kept.tail
    if not settings.compress_progress_bar:
        head, tail = _LONE_RETURN.sub(b"\n", head), _LONE_RETURN.sub(b"\n", tail)
    if kept.total <= SMALL and (plain := _PLAIN.fullmatch(head + tail)):
        text = plain.group().decode("ascii").replace("\r\n", "\n")
        if text.count("\n") <= settings.output_line_limit and len(text) <= settings.output_character_limit:
            return Rendered(text, False, False)
    if is_binary(head):
        start = head[:32].hex(" ")
        return Rendered(f"[binary output, {kept.total:,} bytes, beginning {start}]\n", True, True)
    lines, characters, share = settings.output_line_limit, settings.output_character_limit, settings.output_head_share
    if not kept.dropped:
        text, _ = await _text(head + tail, settings)
        bounded = bound_parts(text, "", gap_lines=0, gap_bytes=0, lines=lines, characters=characters, head_share=share)
        return Rendered(bounded.text, bounded.truncated, False, overwritten(head + tail))
    # Of each end only as much as can be shown; the tail begins anywhere, so from its next whole line.
    reach = 4 * characters  # bytes that surely make so many characters
    front, used = await _text(head[:reach] if _is_plain(head) else head, settings, enough=lines)
    tail = tail[-reach:] if _is_plain(tail) else tail
    back, _ = await _text(tail[tail.find(b"\n", 0, 4096) + 1 :], settings)
    missed = head[used:]
    bounded = bound_parts(
        front,
        back,
        gap_lines=kept.dropped_lines + missed.count(b"\n"),
        gap_bytes=kept.dropped + len(missed),
        lines=lines,
        characters=characters,
        head_share=share,
    )
    return Rendered(bounded.text, True, False, overwritten(head + b"\n" + kept.tail))


def with_overwritten(text: str, hidden: tuple[str, ...]) -> str:
    """An output for a model, with a last line for text that was hidden."""
    return text if not hidden else text + "\n" * (bool(text) and not text.endswith("\n")) + overwritten_notice(hidden)


def _is_plain(data: bytes) -> bool:
    """Whether nothing in it rewrites what was there before."""
    return b"\r" not in data and b"\x1b" not in data and b"\b" not in data


async def _text(data: bytes, settings: Settings, *, enough: int | None = None) -> tuple[str, int]:
    """`data` as text, and how much of it was used: no more than surely gives `enough` lines."""
    renderer = Renderer(rows=settings.rows)
    used = 0
    while used < len(data) and (enough is None or renderer.settled <= enough):
        if used:
            await asyncio.sleep(0)
        renderer.feed(data[used : used + SLICE])
        used = min(used + SLICE, len(data))
    return renderer.finish(), used
