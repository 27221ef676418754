"""docs/requirements.md lists every requirement, and says truly which ones have tests."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "requirements.md"

_ROW = re.compile(r"^\| ([A-Z]\d+) \| .+ \| (yes|not yet) \|$", re.MULTILINE)
_CITED = re.compile(r'"""([A-Z]\d+)\b')


def cited() -> set[str]:
    """The numbers at the start of docstrings in tests."""
    return {number for file in (ROOT / "tests").rglob("*.py") for number in _CITED.findall(file.read_text())}


def test_every_requirement_is_listed_once() -> None:
    numbers = [number for number, _ in _ROW.findall(PAGE.read_text())]
    last = {"T": 36, "P": 9, "S": 21, "U": 12, "F": 8, "A": 8}
    expected = [f"{kind}{number}" for kind in last for number in range(1, last[kind] + 1)]
    assert numbers == expected


def test_tests_cite_only_requirements_that_are_listed() -> None:
    assert cited() - {number for number, _ in _ROW.findall(PAGE.read_text())} == set()


def test_the_page_says_which_requirements_have_tests() -> None:
    said = {number for number, tests in _ROW.findall(PAGE.read_text()) if tests == "yes"}
    assert said == cited()
