"""The mistakes that models make, on real code: an edit made with one of them is the edit that was meant, or none."""

import argparse
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tarmac.tools.edit import Block, apply_diff

Lines = list[str]
SOURCE = Path(argparse.__file__).read_text().split("\n")
WORDS = [line.strip() for line in SOURCE if line.strip()]
SAMPLES = 25


def occurs_once(lines: Lines) -> bool:
    words = [line.strip() for line in lines if line.strip()]
    return sum(WORDS[at : at + len(words)] == words for at in range(len(WORDS))) == 1


def margin(lines: Lines) -> int:
    return min(len(line) - len(line.lstrip()) for line in lines if line.strip())


def moved_left(old: Lines, new: Lines) -> tuple[Lines, Lines]:
    by = margin(old)
    return [line[by:] for line in old], [line[by:] for line in new]


def first_line_trimmed(old: Lines, new: Lines) -> tuple[Lines, Lines]:
    return [old[0].lstrip(), *old[1:]], [new[0].lstrip(), *new[1:]]


def blank_lines_forgotten(old: Lines, new: Lines) -> tuple[Lines, Lines]:
    return [line for line in old if line.strip()], [line for line in new if line.strip()]


def trailing_spaces(old: Lines, new: Lines) -> tuple[Lines, Lines]:
    return [f"{line}  " for line in old], new


def tabs(old: Lines, new: Lines) -> tuple[Lines, Lines]:
    return [line.replace("    ", "\t") for line in old], [line.replace("    ", "\t") for line in new]


def curly_quotes(old: Lines, new: Lines) -> tuple[Lines, Lines]:
    return [line.replace("'", "’") for line in old], [line.replace("'", "’") for line in new]


def a_context_line_mistyped(old: Lines, new: Lines) -> tuple[Lines, Lines]:
    wrong = f"{old[0]}x"
    return [wrong, *old[1:]], [wrong, *new[1:]]


@pytest.mark.parametrize(
    ("mistake", "at_least"),
    [
        (moved_left, 1),
        (first_line_trimmed, 1),
        (blank_lines_forgotten, 1),
        (trailing_spaces, 1),
        (tabs, 1),
        (curly_quotes, 1),
        (a_context_line_mistyped, 0.6),
    ],
)
def test_an_edit_with_a_mistake_is_the_one_that_was_meant_or_none(
    mistake: Callable[[Lines, Lines], tuple[Lines, Lines]], at_least: float
) -> None:
    """S10: never a third text, and seldom none, where the passage itself occurs once."""
    chance = random.Random(mistake.__name__)
    seen: Counter[str] = Counter()
    while seen.total() < SAMPLES:
        size = chance.randint(4, 9)
        first = chance.randrange(len(SOURCE) - size)
        old = SOURCE[first : first + size]
        at = chance.randrange(1, size)
        if not old[0].strip() or not old[at].strip() or not occurs_once(old):
            continue
        indent = old[at][: len(old[at]) - len(old[at].lstrip())]
        new = [*old[:at], f"{indent}first_new_line()", f"{indent}second_new_line()", *old[at + 1 :]]
        expected = [*SOURCE[:first], *new, *SOURCE[first + size :]]
        wrong_old, wrong_new = mistake(old, new)
        edited = apply_diff("\n".join(SOURCE), [Block(tuple(wrong_old), tuple(wrong_new))])
        if edited.success:
            assert edited.text.split("\n") == expected, (first, edited.applied)
        seen["meant" if edited.success else edited.failed[0].reason] += 1
    assert seen["meant"] >= at_least * SAMPLES, seen
