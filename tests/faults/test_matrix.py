"""The published fault matrix says what the tests say."""

import re
from pathlib import Path

from tests.faults.matrix import ROWS, table

TESTS = Path(__file__).parent.parent
PAGE = TESTS.parent / "docs" / "faults.md"


def test_the_page_has_the_table() -> None:
    assert table() in PAGE.read_text(), "run: python -m tests.faults.matrix, and put it into docs/faults.md"


def test_every_test_that_the_matrix_names_exists() -> None:
    there = {
        name
        for path in TESTS.rglob("test_*.py")
        for name in re.findall(r"^(?:async )?def (test_\w+)", path.read_text(), re.MULTILINE)
    }
    assert [each for row in ROWS for each in row.tests if each not in there] == []


def test_each_row_is_proven_or_says_why_not() -> None:
    assert [row.number for row in ROWS] == list(range(1, 41))
    for row in ROWS:
        assert row.tests if row.verdict in ("holds", "partly") else row.note
        assert row.verdict != "partly" or row.note
