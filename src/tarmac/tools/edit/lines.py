"""A text as lines, and whether the last one is ended: edits are about lines, the last newline is not one of them."""

from collections.abc import Sequence


def split_lines(text: str) -> tuple[list[str], bool]:
    """The lines, and whether the last one ends in a newline. Of an empty text: none, and it will."""
    lines = text.split("\n")
    return (lines[:-1], True) if lines[-1] == "" else (lines, False)


def join_lines(lines: Sequence[str], ended: bool) -> str:
    """The text again."""
    return "\n".join([*lines, ""] if ended and lines else lines)
