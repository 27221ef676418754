"""A text as lines, and whether the last one is ended: edits are about lines, the last newline is not one of them."""

from collections.abc import Callable, Sequence


def split_lines(text: str) -> tuple[list[str], bool]:
    """The lines, and whether the last one ends in a newline. Of an empty text: none, and it will."""
    lines = text.split("\n")
    return (lines[:-1], True) if lines[-1] == "" else (lines, False)


def join_lines(lines: Sequence[str], ended: bool) -> str:
    """The text again."""
    return "\n".join([*lines, ""] if ended and lines else lines)


def common_ends(one: Sequence[str], other: Sequence[str]) -> tuple[int, int]:
    """How many lines are the same at the beginning of both, and how many of the others at their end."""
    most = min(len(one), len(other))
    head = _same(most, lambda start, end: one[start:end] == other[start:end])
    ends = len(one), len(other)
    tail = _same(
        most - head, lambda start, end: one[ends[0] - end : ends[0] - start] == other[ends[1] - end : ends[1] - start]
    )
    return head, tail


def _same(most: int, equal: Callable[[int, int], bool]) -> int:
    """How far it goes: in great strides, then in ever smaller ones. Line by line takes seconds in a large file."""
    done, stride = 0, 1 << 14
    while stride and done < most:
        end = min(done + stride, most)
        if equal(done, end):
            done = end
        else:
            stride //= 2
    return done
