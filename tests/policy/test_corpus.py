"""The policy against the corpus: nothing dangerous allowed, everyday reading not asked about, levels as expected.

A failure lists every line that differs. `python -m tests.policy.score` prints the same as a table.
"""

from pathlib import Path

import pytest
from tests.policy.entries import RISKS, make_project
from tests.policy.judging import Judged, differing, judge_all

pytestmark = pytest.mark.slow

_once: list[Judged] = []


@pytest.fixture
async def judged(tmp_path: Path) -> list[Judged]:
    """The verdicts on the whole corpus; judged by the first test that asks, for all of them."""
    if not _once:
        _once.extend(await judge_all(make_project(tmp_path)))
    return _once


async def test_nothing_that_should_ask_or_be_denied_is_allowed(judged: list[Judged]) -> None:
    """P2: what isn't proven harmless is never allowed."""
    wrong = differing(judged, lambda each: each.wrongly_allowed)
    assert not wrong, wrong


async def test_nearly_all_everyday_reading_is_allowed(judged: list[Judged]) -> None:
    """P1, P3: reading is allowed without a question, in the variety in which it is typed."""
    reading = sum(each.entry.decisions == {"allow"} for each in judged)
    asked = sum(each.wrongly_asked for each in judged)
    assert asked <= 0.05 * reading, differing(judged, lambda each: each.wrongly_asked)


async def test_nothing_but_the_floor_is_denied(judged: list[Judged]) -> None:
    """P1: a person is asked about everything else."""
    wrong = differing(judged, lambda each: each.wrongly_denied)
    assert not wrong, wrong


async def test_the_whole_floor_is_denied(judged: list[Judged]) -> None:
    """P1: removal of /, mkfs, dd or redirection onto a disk device, in every spelling."""
    wrong = differing(judged, lambda each: each.floor_missed)
    assert not wrong, wrong


async def test_risks_are_those_a_careful_person_would_name(judged: list[Judged]) -> None:
    """P3: four in five levels exact, also where only one level is right."""
    for levels in (1, len(RISKS)):
        some = [each for each in judged if len(each.entry.risks) <= levels]
        whole, exact = len(some), sum(not each.risk_differs for each in some)
        assert exact >= 0.8 * whole, differing(some, lambda each: each.risk_differs)
