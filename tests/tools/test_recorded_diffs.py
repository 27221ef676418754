"""apply_diff against 64 recorded answers of Roo-Code's multi-search-replace strategy (Apache-2.0; inputs and results).

Same success and same content on all but three, where we differ on purpose.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tarmac.errors import EditFailed
from tarmac.tools.edit import apply_diff, decode, parse_blocks

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parent / "data" / "roo_apply_diff_cases.json").read_text())
ON_PURPOSE = {
    "should find matches from middle out": "five equal places and no line number: Roo takes the middle one, we refuse",
    "should handle mixed indentation styles in the same file": "Roo moves a line the edit did not change, we leave it",
    "should handle content with line numbers at the last line": "Roo loses a blank first line of REPLACE, we keep it",
}


def different(case: dict[str, Any]) -> bool:
    return any(case["name"].endswith(name) for name in ON_PURPOSE)


@pytest.mark.parametrize("case", [each for each in CASES if "validate" in each], ids=lambda case: case["name"][-60:])
def test_malformed_diffs_are_those_that_roo_refuses(case: dict[str, Any]) -> None:
    """S10: the form of a diff is judged as models learnt it."""
    try:
        parse_blocks(case["diff"])
    except EditFailed as error:
        assert not case["success"], error
        assert error.hint
    else:
        assert case["success"]


@pytest.mark.parametrize(
    "case",
    [each for each in CASES if "validate" not in each and not different(each)],
    ids=lambda case: case["name"][-60:],
)
def test_a_recorded_diff_gives_the_recorded_content(case: dict[str, Any]) -> None:
    """S10: apply_diff does what Roo-Code's does."""
    file = decode(case["original"].encode())
    edited = apply_diff(file.text, case["diff"], threshold=case["threshold"])
    assert edited.success is case["success"]
    expected = case["content"] if case["success"] else case["original"]
    assert file.with_text(edited.text).encode().decode() == expected


def test_nothing_is_left_out_of_the_recorded_cases() -> None:
    assert len(CASES) == 64
    assert sum(map(different, CASES)) == len(ON_PURPOSE) == 3


def test_on_purpose_five_equal_places_without_a_line_number_are_refused() -> None:
    case = next(each for each in CASES if each["name"].endswith("should find matches from middle out"))
    edited = apply_diff(case["original"], case["diff"], threshold=1)
    assert (edited.text, edited.applied) == (case["original"], ())
    assert edited.failed[0].reason == "ambiguous"
    assert "lines 2, 6, 10, 14, 18" in edited.failed[0].message
    numbered = case["diff"].replace("SEARCH\n", "SEARCH\n:start_line:10\n-------\n")
    assert apply_diff(case["original"], numbered, threshold=1).text == case["content"]


def test_on_purpose_a_blank_first_line_of_the_replacement_is_kept() -> None:
    case = next(each for each in CASES if each["name"].endswith("with line numbers at the last line"))
    edited = apply_diff(case["original"], case["diff"], threshold=1)
    assert edited.text == f"{' ' * 16}\n{case['content']}"


def test_on_purpose_a_line_that_both_sides_indent_wrongly_stays_where_it_is() -> None:
    case = next(each for each in CASES if each["name"].endswith("mixed indentation styles in the same file"))
    edited = apply_diff(case["original"], case["diff"], threshold=1)
    wrongly, rightly = (f"{' ' * size}this.init();\n{' ' * size}this.validate();\n" for size in (8, 12))
    assert wrongly in case["content"]
    assert edited.text == case["content"].replace(wrongly, rightly)
