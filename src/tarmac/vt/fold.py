"""Make clean text short enough, and honest enough, for a model to read.

fold_repeats → show_invisibles → bound: each leaves text that needs nothing as it is.
"""

import re
from dataclasses import dataclass
from itertools import groupby

from tarmac.vt.cells import width_of

# Characters that hide text or reorder it. Joiners and emoji's variation selectors are not among them: scripts
# and emoji need those, and they hide nothing.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0"
    "\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f\U000e0100-\U000e01ef]"
)


def show_invisibles(text: str) -> str:
    """Write characters that hide or reorder text as `<U+202E>`, so that what is read is what is there."""
    if text.isascii():
        return text
    return _INVISIBLE.sub(lambda found: f"<U+{ord(found[0]):04X}>", text)


def fold_repeats(text: str, *, least: int = 3) -> str:
    """Say a line once and how often it came again, where `least` or more equal ones follow each other."""
    lines = text.split("\n")
    end = lines.pop()  # what follows the last newline is not a whole line yet, mostly it is nothing
    if end:
        lines.append(end)
    folded: list[str] = []
    for line, run in groupby(lines):
        count = sum(1 for _ in run)
        if count < least:
            folded += [line] * count
        else:
            folded += [line, _again(line, count - 1)]
    return "\n".join(folded) + "\n" * (not end and bool(lines))


def _again(line: str, more: int) -> str:
    if not line:
        return f"[… {more:,} more empty line{'s' * (more > 1)}]"
    return f"[… the line above {more:,} more time{'s' * (more > 1)}]"


@dataclass(frozen=True, slots=True)
class Bounded:
    """Text that was made to fit."""

    text: str
    truncated: bool


def bound(text: str, *, lines: int = 500, characters: int = 50_000, head_share: float = 0.7) -> Bounded:
    """Keep the head and the tail of `text`, with one line between that says what was left out.

    The notice does not count towards the limits. A line is cut inside only if it is very long.
    """
    if len(text) <= characters and _count_lines(text) <= lines:
        return Bounded(text, False)
    end, start = _ends(text, text, lines, characters, head_share)
    left_out = text[end:start]
    notice = _notice(left_out.count("\n"), _plural(len(left_out), "character"))
    return Bounded(_join(text[:end], notice, text[start:]), True)


def bound_parts(
    head: str,
    tail: str,
    *,
    gap_lines: int,
    gap_bytes: int,
    lines: int = 500,
    characters: int = 50_000,
    head_share: float = 0.7,
) -> Bounded:
    """Like `bound`, for the two ends of an output whose middle, `gap_bytes` of it, is gone already."""
    if not gap_bytes:
        return bound(head + tail, lines=lines, characters=characters, head_share=head_share)
    end, start = _ends(head, tail, lines, characters, head_share)
    left_out = head[end:] + tail[:start]
    notice = _notice(gap_lines + left_out.count("\n"), _plural(gap_bytes + len(left_out.encode()), "byte"))
    return Bounded(_join(head[:end], notice, tail[start:]), True)


def _ends(head: str, tail: str, lines: int, characters: int, head_share: float) -> tuple[int, int]:
    """Where the kept head ends and the kept tail starts: by lines, then by characters.

    A share that one end does not use is the other's. Given the same text twice, too
    long for either limit, the ends do not meet.
    """
    head_lines = max(1, int(lines * head_share), lines - _count_lines(tail))
    end = _after_lines(head, head_lines)
    start = _before_lines(tail, lines - min(head_lines, _count_lines(head)))
    room = max(int(characters * head_share), characters - (len(tail) - start))
    if end > room:
        end = _cut_end(head, room)
    if len(tail) - start > characters - end:
        start = _cut_start(tail, len(tail) - (characters - end))
    return end, start


def _count_lines(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n") and bool(text))


def _after_lines(text: str, count: int) -> int:
    at = 0
    for _ in range(count):
        at = text.find("\n", at) + 1
        if not at:
            return len(text)
    return at


def _before_lines(text: str, count: int) -> int:
    if not count:
        return len(text)
    at = len(text) - text.endswith("\n")
    for _ in range(count):
        at = text.rfind("\n", 0, at)
        if at < 0:
            return 0
    return at + 1


def _cut_end(text: str, at: int) -> int:
    """Where to end so that at most `at` characters stay: after a line if one ends near, never inside a character."""
    if line := text.rfind("\n", at - at // 4, at) + 1:
        return line
    return next((i for i in range(at, max(0, at - 64), -1) if not _is_joined(text, i)), at)


def _cut_start(text: str, at: int) -> int:
    """Where to start so that what is before `at` goes: at a line if one starts near, never inside a character."""
    if line := text.find("\n", max(0, at - 1), at + (len(text) - at) // 4) + 1:
        return line
    return next((i for i in range(at, min(len(text), at + 64)) if not _is_joined(text, i)), at)


def _is_joined(text: str, at: int) -> bool:
    """True if the character at `at` belongs to the one before it: an accent, a part of an emoji."""
    return 0 < at < len(text) and (not width_of[text[at]] or text[at - 1] == "\u200d")


def _join(head: str, notice: str, tail: str) -> str:
    return head + "\n" * (bool(head) and not head.endswith("\n")) + notice + "\n" + tail


def _notice(lines: int, size: str) -> str:
    what = f"{_plural(lines, 'line')} ({size})" if lines else size
    return f"[… {what} left out …]"


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' * (count != 1)}"
