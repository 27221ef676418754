"""apply_diff: an edit made from two texts gives the second; a doubtful one changes nothing and says why."""

import difflib
import re
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein

from tarmac.tools.edit import Block, apply_diff, parse_blocks
from tarmac.tools.edit.locate import THRESHOLD

MARKS = ["=======", "<<<<<<< SEARCH", ">>>>>>> REPLACE", "-------", ":start_line:3", r"\=======", r"\\>>>>>>>"]
LINE = st.sampled_from([*MARKS, "a", "b", "  a", "\ta", "", "x = 1", "}", "7 | seven", "“quoted”", "...", "é\udcff"])
TEXT = st.lists(LINE, min_size=1, max_size=14)


def blocks_between(old: list[str], new: list[str], context: int) -> list[Block]:
    """What a careful model would write."""
    groups = difflib.SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(context)
    spans = [(group[0][1], group[-1][2], group[0][3], group[-1][4]) for group in groups]
    return [Block(tuple(old[a:b]), tuple(new[c:d]), a + 1) for a, b, c, d in spans]


def written(block: Block) -> str:
    """A block as text, marks inside it escaped."""

    def escaped(line: str) -> str:
        return re.sub(r"^(\s*\\*)(?=<{7}|={7}|>{7}|-{7}|:start_line:|:end_line:)", r"\1\\", line)

    old, new = ("".join(f"{escaped(line)}\n" for line in lines) for lines in (block.old, block.new))
    return f"<<<<<<< SEARCH\n:start_line:{block.start_line}\n-------\n{old}=======\n{new}>>>>>>> REPLACE\n"


@given(TEXT, TEXT, st.integers(0, 3), st.sampled_from(["\n", "\nlast"]))
def test_an_edit_made_from_two_texts_gives_the_second(old: list[str], new: list[str], context: int, end: str) -> None:
    """S10: whatever the lines are, marks of the format among them, and whether the last one is ended or not."""
    blocks = blocks_between(old, new, context)
    if not all(any(block.old) for block in blocks):
        blocks = [Block(tuple(old), tuple(new), 1)]
    text = "I will change this:\n" + "\nand\n".join(map(written, blocks))
    if old != new and any(old):
        assert parse_blocks(text) == blocks
        edited = apply_diff("\n".join(old) + end, text)
        assert (edited.text, edited.failed) == ("\n".join(new) + end, ())


PASSAGE = st.lists(st.sampled_from("one two three four five six seven".split()), min_size=3, max_size=6)
TYPOS = st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["", "s", "ed", " # no"])), max_size=2)


def mistyped(passage: list[str], typos: list[tuple[int, str]]) -> list[str]:
    lines = [f"the {word} of {word}" for word in passage]
    for at, ending in typos:
        lines[at % len(lines)] += ending
    return lines


@given(PASSAGE, st.lists(TYPOS, min_size=1, max_size=3), TYPOS)
@example(["one", "one", "one"], [[(0, "s"), (1, "s")], [(0, "ed")]], [])
def test_a_similar_place_is_changed_only_when_there_is_no_other(
    passage: list[str], copies: list[list[tuple[int, str]]], typos: list[tuple[int, str]]
) -> None:
    """S10: fuzzy never changes two places, and never one of two that would do."""
    lines = [line for typed in copies for line in ("-- between --", *mistyped(passage, typed))]
    wanted = mistyped(passage, typos)
    edited = apply_diff("\n".join(lines), [Block(tuple(wanted), ("REPLACED",))])
    windows = [lines[at : at + len(wanted)] for at in range(len(lines) - len(wanted) + 1)]
    alike = [Levenshtein.normalized_similarity("\n".join(wanted), "\n".join(window)) for window in windows]
    equal = [sum(map(str.__eq__, wanted, window)) for window in windows]
    fit = [at for at in range(len(windows)) if alike[at] >= THRESHOLD and 2 * equal[at] >= len(wanted)]
    if edited.success:
        (applied,) = edited.applied
        at = applied.first - 1
        assert alike[at] == max(alike)
        assert edited.text.split("\n") == [*lines[:at], "REPLACED", *lines[at + len(wanted) :]]
        if applied.match_kind == "fuzzy":
            assert [each for each in fit if abs(each - at) >= len(wanted)] == []
    else:
        assert edited.text == "\n".join(lines)
        # One that fits is taken, unless another is as much alike without enough equal lines: then nobody knows.
        assert len(fit) != 1 or alike[fit[0]] <= max(alike[: fit[0]] + alike[fit[0] + 1 :])


def test_a_place_that_fits_is_not_taken_where_another_is_more_alike() -> None:
    """S10: hypothesis found it: the first passage has fewer equal lines, the second fewer equal characters."""
    first, second = ["the one of one"] * 3, ["the one of ones", "the one of one # no", "the one of one"]
    wanted = ("the one of ones", "the one of ones", "the one of one")
    text = "\n".join(["--", *first, "--", *second])
    edited = apply_diff(text, [Block(wanted, ("REPLACED",))])
    assert (edited.success, edited.text) == (False, text)


def test_a_line_remembered_wrongly_but_not_changed_stays_as_the_file_has_it() -> None:
    text = "def f():\n    timeout = 30\n    retries = 5\n    return timeout\n\nprint(f())\n"
    old = ("def f():", "    timeout = 10", "    retries = 5", "    return timeout", "", "print(f())")
    new = (*old[:3], "    return timeout * 2", *old[4:])
    edited = apply_diff(text, [Block(old, new)])
    assert edited.text == text.replace("return timeout", "return timeout * 2")
    assert edited.applied[0].match_kind == "fuzzy"


def test_one_changed_name_in_a_single_line_is_no_typing_error() -> None:
    edited = apply_diff("return value_2;\n", [Block(("return value_1;",), ("return 0;",))])
    assert edited.failed[0].reason == "not found"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (("if x:", "  y()"), ("if x:", "  y()", "  z()"), "\tif x:\n\t\ty()\n\t\tz()\n"),
        (
            ("    if x:", "        y()"),
            ("    if x:", "        if z:", "            y()"),
            "\tif x:\n\t\tif z:\n\t\t\ty()\n",
        ),
        (("\tif x:   ", "\t\ty()"), ("\tif x:", "\t\tw()"), "\tif x:\n\t\tw()\n"),
    ],
)
def test_new_lines_are_indented_as_the_place_is(old: tuple[str, ...], new: tuple[str, ...], expected: str) -> None:
    edited = apply_diff("\tif x:\n\t\ty()\n", [Block(old, new)])
    assert (edited.text, edited.applied[0].match_kind) == (expected, "whitespace")


def test_blank_lines_that_the_model_forgot_stay() -> None:
    text = "import os\n\n\ndef f():\n    a()\n\n    b()\n"
    edited = apply_diff(text, [Block(("def f():", "    a()", "    b()"), ("def f():", "    a()", "    c()"))])
    assert (edited.text, edited.applied[0].match_kind) == (text.replace("b()", "c()"), "blank lines")


def test_blank_lines_that_the_model_added_are_not_looked_for() -> None:
    edited = apply_diff("a()\nb()\n", [Block(("", "a()", ""), ("", "c()", ""))])
    assert edited.text == "c()\nb()\n"


def test_two_blocks_that_swap_lines_both_mean_the_text_as_it_was() -> None:
    edited = apply_diff("one\ntwo\n", [Block(("one",), ("two",)), Block(("two",), ("one",))])
    assert (edited.text, edited.failed) == ("two\none\n", ())


def test_a_block_may_build_on_another_one() -> None:
    edited = apply_diff("one\n", [Block(("one",), ("two",)), Block(("two",), ("three",))])
    assert edited.text == "three\n"


def test_blocks_that_fit_are_applied_when_others_do_not() -> None:
    edited = apply_diff("one\ntwo\n", [Block(("nowhere at all",), ("x",)), Block(("two",), ("2",))])
    assert (edited.text, [each.part for each in edited.applied], [each.part for each in edited.failed]) == (
        "one\n2\n",
        [2],
        [1],
    )


def test_two_blocks_for_the_same_lines_are_not_both_applied() -> None:
    edited = apply_diff("one\ntwo\n", [Block(("one", "two"), ("1",)), Block(("two",), ("2",))])
    assert (edited.text, edited.failed[0].reason) == ("1\n", "overlaps")


def test_the_line_number_decides_between_equal_places_only_when_it_is_clear() -> None:
    text = "\n".join(["x", "pass", "y", "pass", "z", "pass"])
    assert apply_diff(text, [Block(("pass",), ("go",), 4)]).applied[0].first == 4
    assert apply_diff(text, [Block(("pass",), ("go",), 7)]).applied[0].first == 6
    assert apply_diff(text, [Block(("pass",), ("go",), 3)]).failed[0].reason == "ambiguous"


def test_an_empty_file_takes_an_empty_search() -> None:
    assert apply_diff("", [Block((), ("new",))]).text == "new\n"
    assert apply_diff("a\n", [Block((), ("new",))]).failed[0].reason == "empty"


LONG = "".join(f"line {number} of the file\n" for number in range(1, 400))
GOLDEN = {
    "one line differs": (
        'function hello() {\n    console.log("hello")\n}\n',
        Block(("function hello() {", '    console.log("wrong")', "}"), ("x",)),
        """\
block 1: not found; closest are lines 1-3, 88% alike (90% needed)
  1 | function hello() {
-   |     console.log("wrong")
+ 2 |     console.log("hello")
  3 | }
likely cause: 1 line differs: yours (-), the file's (+)
hint: read lines 1-3 again and copy them""",
    ),
    "already done": (
        "def total(items):\n    return sum(items)\n",
        Block(("def total(items):", "    return len(items)"), ("def total(items):", "    return sum(items)")),
        """\
block 1: not found; closest are lines 1-2, 91% alike
  1 | def total(items):
-   |     return len(items)
+ 2 |     return sum(items)
likely cause: the new text is already there, at line 1
hint: read the file before you edit it again""",
    ),
    "ellipsis": (
        "def f():\n    first()\n    second()\n    third()\n",
        Block(("def f():", "    # ...", "    third()"), ("def f():",)),
        """\
block 1: not found; closest are lines 1-3, 52% alike (90% needed)
  1 | def f():
-   |     # ...
-   |     third()
+ 2 |     first()
+ 3 |     second()
likely cause: line 2 of the search is an ellipsis; the search must be the text itself
hint: search for fewer lines, each as it is in the file""",
    ),
    "nothing like it": (
        "print(1)\n",
        Block(("class Completely:", "    different = True"), ("x",)),
        """\
block 1: not found, nor anything like it; the text is from another file, or the file was changed
hint: read the file again""",
    ),
    "case": (
        "SELECT * FROM users\n",
        Block(("select * from users",), ("x",)),
        """\
block 1: not found; closest is line 1, 47% alike (90% needed)
-   | select * from users
+ 1 | SELECT * FROM users
likely cause: upper and lower case differ
hint: copy the text as it is""",
    ),
    "several places": (
        "a\npass\nb\npass\n",
        Block(("pass",), ("x",)),
        """\
block 1: 2 places match: lines 2, 4; nothing was changed there
hint: give :start_line:, or more lines around it""",
    ),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_a_failure_shows_the_closest_place_and_the_likely_cause(name: str) -> None:
    """S10: short enough to act on."""
    text, block, message = GOLDEN[name]
    edited = apply_diff(text, [block])
    assert (edited.text, str(edited.failed[0])) == (text, message)


def test_a_failure_stays_short_however_long_the_search() -> None:
    wanted = tuple(f"LINE {number} of another file {number * 7}" for number in range(1, 300))
    edited = apply_diff(LONG, [Block(wanted, ("x",))])
    assert len(str(edited.failed[0]).splitlines()) <= 30


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("pass\n" * 20_000, ("pass",) * 50 + ("a",)),
        ("\n" * 20_000, ("", "a", "") * 50),
        ("var a=1;" * 100_000, ("var a=2;" * 100_000,)),
        ("".join(f"line {number}\n" for number in range(20_000)), tuple(f"row {number}" for number in range(20_000))),
    ],
    ids=["all lines alike", "all blank", "one long line", "a search as long as the file"],
)
def test_no_search_takes_for_ever(text: str, wanted: tuple[str, ...]) -> None:
    """Nothing hangs: each of these is quick, where comparing all with all would take minutes."""
    start = time.process_time()
    edited = apply_diff(text, [Block(wanted, ("x",))])
    assert not edited.success
    assert len(str(edited.failed[0])) < 6000
    assert time.process_time() - start < 3
