"""apply_diff against 64 recorded answers of Roo-Code's multi-search-replace strategy.

The cases are not in this repository. Put `roo_apply_diff_cases.json` into a folder and name it in TARMAC_SUITES.
Each case has a name, the diff, and what Roo-Code made of it.
"""

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tarmac.errors import EditFailed
from tarmac.tools.edit import apply_diff, decode, parse_blocks

pytestmark = pytest.mark.peers
ON_PURPOSE = {
    "should find matches from middle out": "five equal places and no line number: Roo takes the middle one, we refuse",
    "should handle mixed indentation styles in the same file": "Roo moves a line the edit did not change, we leave it",
    "should handle content with line numbers at the last line": "Roo loses a blank first line of REPLACE, we keep it",
}


@cache
def cases() -> list[dict[str, Any]]:
    folder = os.environ.get("TARMAC_SUITES")
    path = Path(folder or ".") / "roo_apply_diff_cases.json"
    if not folder or not path.exists():
        pytest.skip("TARMAC_SUITES names no folder with roo_apply_diff_cases.json: Roo-Code's 64 cases were not run")
    loaded: list[dict[str, Any]] = json.loads(path.read_text())
    return loaded


def named(name: str) -> dict[str, Any]:
    return next(each for each in cases() if each["name"].endswith(name))


def agrees(case: dict[str, Any]) -> bool:
    """Whether we accept and refuse what Roo-Code does, and make the same of it."""
    success = case["result"]["success"]
    if case.get("kind") == "validate":
        try:
            parse_blocks(case["diff"])
        except EditFailed as error:
            return not success and bool(error.hint)
        return bool(success)
    file = decode(case["original"].encode())
    edited = apply_diff(file.text, case["diff"], threshold=case["fuzzy_threshold"])
    expected = case["result"]["content"] if success else case["original"]
    return edited.success is success and file.with_text(edited.text).encode().decode() == expected


def test_all_but_three_cases_are_as_in_roo(capsys: pytest.CaptureFixture[str]) -> None:
    """S10: models that learnt Roo-Code's apply_diff can use ours."""
    different = [each["name"] for each in cases() if not agrees(each)]
    with capsys.disabled():
        print(f"\nRoo-Code apply_diff: {len(cases()) - len(different)} of {len(cases())} cases agree")
        for name in different:
            print(f"  different: {name}")
    assert len(cases()) == 64
    assert sorted(name.rpartition(" > ")[2] for name in different) == sorted(ON_PURPOSE)


def test_on_purpose_five_equal_places_without_a_line_number_are_refused() -> None:
    case = named("should find matches from middle out")
    edited = apply_diff(case["original"], case["diff"], threshold=1)
    assert (edited.text, edited.applied) == (case["original"], ())
    assert edited.failed[0].reason == "ambiguous"
    assert "lines 2, 6, 10, 14, 18" in edited.failed[0].message
    numbered = case["diff"].replace("SEARCH\n", "SEARCH\n:start_line:10\n-------\n")
    assert apply_diff(case["original"], numbered, threshold=1).text == case["result"]["content"]


def test_on_purpose_a_blank_first_line_of_the_replacement_is_kept() -> None:
    case = named("with line numbers at the last line")
    edited = apply_diff(case["original"], case["diff"], threshold=1)
    assert edited.text == f"{' ' * 16}\n{case['result']['content']}"


def test_on_purpose_a_line_that_both_sides_indent_wrongly_stays_where_it_is() -> None:
    case = named("mixed indentation styles in the same file")
    edited = apply_diff(case["original"], case["diff"], threshold=1)
    content = case["result"]["content"]
    wrongly, rightly = (f"{' ' * size}this.init();\n{' ' * size}this.validate();\n" for size in (8, 12))
    assert wrongly in content
    assert edited.text == content.replace(wrongly, rightly)
