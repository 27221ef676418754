"""Edits that can't go silently wrong: a doubtful edit is refused with a reason, a clear one is understood."""

import ast
import re
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tools.workshop import Workshop

from tarmac.errors import BadArguments, EditFailed
from tarmac.tools.edit import Block, apply_diff, parse_blocks, plan_patch, search_and_replace, unified_diff

DIFF = "<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE"
PATCH = "*** Begin Patch\n{body}\n*** End Patch"
CLASS = "class A:\n    def f(self):\n        return 1\n\n    def g(self):\n        return 2\n"
PLACEHOLDER = "# ... rest of the methods unchanged ..."


# As many places as were asked for


@pytest.mark.parametrize(
    "spelling", [{"replace_all": False}, {"replace_all": "false"}, {"expected_replacements": 1}, {}]
)
async def test_one_place_was_asked_for_and_there_are_two(shop: Workshop, spelling: dict[str, object]) -> None:
    """S10: `replace_all: false` with several places is refused; so is `old_string` alone, which means one place."""
    path = shop.file("a.txt", "foo bar foo\n")
    arguments = {"file_path": "a.txt", "old_string": "foo", "new_string": "q", **spelling}
    said = await shop.failure("search_and_replace", **arguments)
    assert "2 places match" in said
    assert "replace_all" in said
    assert path.read_text() == "foo bar foo\n"


async def test_all_places_were_asked_for(shop: Workshop) -> None:
    path = shop.file("a.txt", "foo bar foo\n")
    await shop.call("search_and_replace", path="a.txt", search="foo", replace="q")
    await shop.call("search_and_replace", path="a.txt", old_string="q", new_string="w", replace_all=True)
    await shop.call("search_and_replace", path="a.txt", old_str="w", new_str="s", expected_replacements="2")
    assert path.read_text() == "s bar s\n"
    said = await shop.failure("search_and_replace", path="a.txt", search="s", replace="t", expected_replacements=3)
    assert "2 places match (lines 1, 1), and expected_replacements is 3" in said


@given(st.text("ab\n", max_size=20), st.text("ab", min_size=1, max_size=2), st.integers(1, 4))
def test_another_number_of_places_changes_nothing(text: str, search: str, expected: int) -> None:
    edited = search_and_replace(text, search, "X", expected=expected)
    assert edited.text == (text.replace(search, "X") if text.count(search) == expected else text)


# Placeholders


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("apply_diff", {"path": "a.py", "diff": DIFF.format(old=CLASS.rstrip(), new=f"class A:\n    {PLACEHOLDER}")}),
        ("search_and_replace", {"path": "a.py", "search": CLASS, "replace": f"class A:\n    {PLACEHOLDER}\n"}),
        ("insert_content", {"path": "a.py", "line": 2, "content": f"    {PLACEHOLDER}"}),
        ("write_to_file", {"path": "a.py", "content": f"class A:\n    {PLACEHOLDER}\n    pass\n"}),
        ("write_to_file", {"path": "new.py", "content": f"class A:\n    {PLACEHOLDER}\n    pass\n"}),
        (
            "apply_patch",
            {
                "patch": PATCH.format(
                    body=f"*** Update File: a.py\n     def f(self):\n-        return 1\n+        {PLACEHOLDER}\n+    x"
                )
            },
        ),
        (
            "apply_patch",
            {"patch": PATCH.format(body=f"*** Add File: new.py\n+class A:\n+    {PLACEHOLDER}\n+    pass")},
        ),
    ],
)
async def test_a_placeholder_is_refused_by_every_edit_tool(
    shop: Workshop, tool: str, arguments: dict[str, object]
) -> None:
    """S10: code that a placeholder stands for would be lost."""
    path = shop.file("a.py", CLASS)
    said = await shop.failure(tool, **arguments)
    assert "stands for lines that are left out" in said
    assert PLACEHOLDER in said
    assert path.read_text() == CLASS
    assert not (shop.folder / "new.py").exists()


def test_a_placeholder_that_the_file_has_already_may_stay() -> None:
    text = f"class A:\n    {PLACEHOLDER}\n    x = 1\n"
    edited = apply_diff(text, [Block((f"    {PLACEHOLDER}", "    x = 1"), (f"    {PLACEHOLDER}", "    x = 2"))])
    assert edited.text == text.replace("x = 1", "x = 2")


@pytest.mark.parametrize("line", ["    # ...", "    // ...", "    /* ... */", "    # …"])
def test_an_ellipsis_in_a_comment_is_one_when_lines_go(line: str) -> None:
    old = ("a()", "b()", "c()")
    edited = apply_diff("\n".join(old), [Block(old, ("a()", line))])
    assert edited.failed[0].reason == "placeholder"
    assert apply_diff("\n".join(old), [Block(old, (*old, line))]).success


async def test_prose_may_show_a_placeholder(shop: Workshop) -> None:
    content = "# Guide\n\n```python\n# ... existing code ...\n```\n"
    await shop.call("write_to_file", path="guide.md", content=content)
    assert (shop.folder / "guide.md").read_text() == content


# Indentation

METHOD = "class A:\n    def f(self):\n        return 1\n"


def test_a_replacement_written_from_column_0_moves_to_where_it_belongs() -> None:
    """S10: the first line of the search lost its indentation, and all of the replacement did."""
    edited = apply_diff(METHOD, DIFF.format(old="def f(self):\n        return 1", new="def f(self):\n    return 2"))
    assert edited.text == METHOD.replace("1", "2")
    javascript = "class A {\n    f() {\n        return 1\n    }\n}\n"
    diff = DIFF.format(old="f() {\n        return 1\n    }", new="f() {\n    return 2\n}")
    assert apply_diff(javascript, diff).text == javascript.replace("1", "2")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("        return 1", "return 2"),
        ("    def f(self):\n        return 1", "def f(self):\n    return 2"),
        ("    def f(self):\n        return 1", "    def f(self):\n    return 2"),
        ("def f(self):\n    return 1", "def f(self):\n    return 2"),
    ],
)
def test_a_replacement_that_would_break_indentation_is_re_indented(old: str, new: str) -> None:
    edited = apply_diff(METHOD, DIFF.format(old=old, new=new), path="a.py")
    assert edited.text == METHOD.replace("1", "2")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("        return 1", "        if x:\n        return 2"),
        ("        return 1", "          a()\n        b()\n    c()\n      d()"),
        ("    def f(self):", "    def f(self):\n    def g(self):"),
    ],
)
def test_one_that_nobody_can_indent_is_refused(old: str, new: str) -> None:
    edited = apply_diff(METHOD, DIFF.format(old=old, new=new), path="a.py")
    assert (edited.text, [each.reason for each in edited.failed]) == (METHOD, ["indentation"])
    assert "line " in edited.failed[0].message


def test_two_blocks_that_are_right_only_together_are_applied() -> None:
    text = "def f():\n    if x:\n        a()\n        b()\n    c()\n"
    blocks = [Block(("    if x:",), ("    if y:", "        pass")), Block(("        a()", "        b()"), ("    d()",))]
    edited = apply_diff(text, blocks, path="a.py")
    assert edited.text == "def f():\n    if y:\n        pass\n    d()\n    c()\n"


async def test_every_edit_tool_keeps_the_indentation_of_python(shop: Workshop) -> None:
    path = shop.file("a.py", METHOD)
    patch = "*** Update File: a.py\n@@\n-        return 1\n+return 2"
    await shop.call("apply_patch", patch=PATCH.format(body=patch))
    assert path.read_text() == METHOD.replace("1", "2")
    arguments = {"search": "def f(self):\n        return 2", "replace": "def f(self):\n    return 3"}
    await shop.call("search_and_replace", path="a.py", **arguments)
    assert path.read_text() == METHOD.replace("1", "3")
    await shop.call("insert_content", path="a.py", line=3, content="x = 1\ny = 2\n")
    assert path.read_text() == METHOD.replace("return 1", "x = 1\n        y = 2\n        return 3")
    now = path.read_text()
    for tool, wrong in (
        ("write_to_file", {"content": "class A:\ndef f(self):\nreturn 1\n"}),
        ("search_and_replace", {"search": "        x = 1\n", "replace": "        if x:\n        x = 1\n"}),
        ("insert_content", {"line": 3, "content": "if x:\n# nothing"}),
    ):
        assert "indent" in await shop.failure(tool, path="a.py", **wrong)
    broken = "*** Update File: a.py\n@@\n         x = 1\n+        if x:"
    assert "indent" in await shop.failure("apply_patch", patch=PATCH.format(body=broken))
    assert path.read_text() == now


def test_a_file_that_is_broken_already_can_be_repaired_step_by_step() -> None:
    broken = "def f():\nreturn 1\ndef g():\nreturn 2\n"
    assert apply_diff(broken, DIFF.format(old="return 1", new="    return 1"), path="a.py").success


FUNCTIONS = st.lists(st.integers(0, 3), min_size=1, max_size=5)


def function(depths: list[int], name: str) -> str:
    """Nested blocks to these depths, as a method."""
    body = "\n".join(
        f"{'    ' * level}{'if x:' if level < depth else f'{name}()'}" for depth in depths for level in range(depth + 1)
    )
    return f"def f(self):\n{textwrap.indent(body, '    ')}"


@given(FUNCTIONS, FUNCTIONS, st.sampled_from([0, 2, 4, 8]))
def test_a_function_written_from_any_column_leaves_python_that_parses(
    old: list[int], new: list[int], column: int
) -> None:
    """S10: whatever column the model wrote at, the method is where it was."""
    before = "class A:\n" + textwrap.indent(function(old, "old"), "    ") + "\n\n    last = 1\n"
    expected = "class A:\n" + textwrap.indent(function(new, "new"), "    ") + "\n\n    last = 1\n"
    search = textwrap.indent(function(old, "old"), "    ").lstrip()
    replace = textwrap.indent(function(new, "new"), " " * column)
    edited = apply_diff(before, [Block(tuple(search.split("\n")), tuple(replace.split("\n")))], path="a.py")
    if edited.success:
        ast.parse(edited.text)
        assert edited.text == expected or column not in (0, 4)


# Line endings


async def test_crlf_is_kept_in_new_files(shop: Workshop) -> None:
    """S10: a new file is as the model wrote it."""
    await shop.call("write_to_file", path="a.bat", content="a\r\nb\r\n")
    assert (shop.folder / "a.bat").read_bytes() == b"a\r\nb\r\n"
    await shop.call("write_to_file", path="mixed.txt", content="a\r\nb\n")
    assert (shop.folder / "mixed.txt").read_bytes() == b"a\r\nb\n"
    patch = PATCH.format(body="*** Add File: b.bat\n+a\n+b").replace("\n", "\r\n")
    await shop.call("apply_patch", patch=patch)
    assert (shop.folder / "b.bat").read_bytes() == b"a\r\nb\r\n"
    await shop.call("apply_diff", path="c.bat", diff="<<<<<<< SEARCH\r\n=======\r\na\r\nb\r\n>>>>>>> REPLACE\r\n")
    assert (shop.folder / "c.bat").read_bytes() == b"a\r\nb\r\n"
    await shop.call("write_to_file", path="a.bat", content="a\nc\n")
    assert (shop.folder / "a.bat").read_bytes() == b"a\r\nc\r\n"


# Forms that models write


@given(st.integers(5, 9), st.integers(5, 9), st.sampled_from(["a", "a\n\nb", "\tx = 1"]))
def test_marks_of_5_to_9_characters_are_understood(opening: int, closing: int, old: str) -> None:
    """S10: the divider is as long as one of them."""
    for divider in {opening, closing}:
        diff = f"{'<' * opening} SEARCH\n{old}\n{'=' * divider}\nnew\n{'>' * closing} REPLACE"
        assert parse_blocks(diff) == [Block(tuple(old.split("\n")), ("new",))]


def test_a_line_of_another_length_is_content() -> None:
    diff = DIFF.format(old="Title\n=====\nold", new="Title\n=====\nnew")
    assert parse_blocks(diff) == [Block(("Title", "=====", "old"), ("Title", "=====", "new"))]
    with pytest.raises(EditFailed, match="="):
        parse_blocks("<<<<<<< SEARCH\nTitle\n=====\ntext\n>>>>>>> REPLACE")
    with pytest.raises(EditFailed, match="="):
        parse_blocks("<<<<<< SEARCH\nTitle\n======\nold\n=======\nnew\n>>>>>>> REPLACE")


def test_a_doubled_divider_is_understood_unless_the_file_has_such_a_line() -> None:
    diff = DIFF.format(old="old", new="=======\nnew")
    assert apply_diff("old\n", diff).text == "new\n"
    edited = apply_diff("old\n=======\n", diff)
    assert (edited.text, edited.failed[0].reason) == ("old\n=======\n", "malformed")


def test_the_marks_of_cline_are_understood() -> None:
    assert apply_diff("old\n", "------- SEARCH\nold\n=======\nnew\n+++++++ REPLACE\n").text == "new\n"


FILES = {"list.txt": "one\ntwo\nthree\n", "app.py": "x = 1\n"}


@pytest.mark.parametrize(
    "patch",
    [
        "*** Update File: list.txt\n@@\n-two\n+2",
        "```\n*** Update File: list.txt\n@@\n-two\n+2\n```\n",
        "*** Update File: list.txt\n@@\n-two\n+2\n*** End Patch",
        "--- list.txt\n+++ list.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n",
        "diff --git a/list.txt b/list.txt\nindex 1..2\n--- a/list.txt\n+++ b/list.txt\n@@ -2 +2 @@ one\n-two\n+2\n",
        "```diff\n--- a/list.txt\t2026-01\n+++ b/list.txt\t2026-02\n@@ -20,3 +20,3 @@\n one\n-two\n+2\n three\n```",
        "--- list.txt\n+++ list.txt\n@@ @@\n one\n-two\n+2",
    ],
)
def test_a_patch_without_begin_and_end_and_plain_unified_diffs_are_understood(patch: str) -> None:
    """S10: what other tools call a patch."""
    (change,) = plan_patch(patch, FILES.get)
    assert (change.path, change.after) == ("list.txt", "one\n2\nthree\n")


def test_a_unified_diff_adds_deletes_and_renames() -> None:
    patch = (
        "--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1,2 @@\n+a\n+b\n\\ No newline at end of file\n"
        "--- a/list.txt\n+++ /dev/null\n@@ -1,3 +0,0 @@\n-one\n-two\n-three\n"
        "diff --git a/app.py b/main.py\nsimilarity index 90%\nrename from app.py\nrename to main.py\n"
    )
    changes = plan_patch(patch, FILES.get)
    assert [(each.path, each.after, each.moved_from) for each in changes] == [
        ("new.txt", "a\nb", ""),
        ("list.txt", None, ""),
        ("app.py", None, ""),
        ("main.py", "x = 1\n", "app.py"),
    ]


def test_the_line_numbers_of_a_unified_diff_choose_between_equal_places() -> None:
    files = {"a": "pass\n" + "x\n" * 20 + "pass\n"}
    (change,) = plan_patch("--- a\n+++ a\n@@ -22 +22 @@\n-pass\n+go\n", files.get)
    assert change.after == "pass\n" + "x\n" * 20 + "go\n"


LINES = st.lists(st.sampled_from(["a", "b", "", "  c", "-- d", "++ e", "@@ x"]), min_size=1, max_size=12)


@given(LINES, LINES)
def test_our_own_unified_diff_is_a_patch(old: list[str], new: list[str]) -> None:
    """S10: never a third text."""
    before, after = "\n".join([*old, ""]), "\n".join([*new, ""])
    if before == after:
        return
    try:
        (change,) = plan_patch(unified_diff(before, after, "f").text, {"f": before}.get)
    except EditFailed as error:
        assert "places match" in error.what
    else:
        assert change.after == after


async def test_a_patch_in_the_diff_argument_is_understood_when_it_is_for_that_file(shop: Workshop) -> None:
    path = shop.file("src/list.txt", "one\ntwo\nthree\n")
    await shop.call(
        "apply_diff", path="src/list.txt", diff="--- a/src/list.txt\n+++ b/src/list.txt\n@@ -2 +2 @@\n-two\n+2\n"
    )
    await shop.call("apply_diff", path="src/list.txt", diff="@@ -1,2 +1,2 @@\n-one\n+1\n 2\n")
    await shop.call(
        "apply_diff", path="src/list.txt", diff=PATCH.format(body="*** Update File: src/list.txt\n-three\n+3")
    )
    assert path.read_text() == "1\n2\n3\n"
    with pytest.raises(BadArguments, match=r"other\.txt"):
        await shop.call("apply_diff", path="src/list.txt", diff="--- other.txt\n+++ other.txt\n@@ -2 +2 @@\n-two\n+2\n")


async def test_names_that_a_model_made_up_do_not_matter_beside_a_path(shop: Workshop) -> None:
    """S10: `--- original` and `+++ updated` name no file; the path of the call does."""
    path = shop.file("src/list.txt", "one\n\ttwo\nthree\n")
    diff = "--- original.txt\n+++ updated.txt\n@@ -1,3 +1,3 @@\n one\n\ttwo\n-three\n+3\n"  # no space before the tab
    await shop.call("apply_diff", path="src/list.txt", diff=diff)
    assert path.read_text() == "one\n\ttwo\n3\n"


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        ("if a:\n    b = 1\n    c = 2\n", "b = 1\nc = 2", "b = 3\nc = 4", "if a:\n    b = 3\n    c = 4\n"),
        ("{\n\tx = 1;\n}\n", "  x = 1;", "  x = 2;\n  y = 3;", "{\n\tx = 2;\n\ty = 3;\n}\n"),
        (
            "{\n  a: true,\n  b: 3\n};",
            "{\n  a: true\n  b: 3\n};",
            "{\n  a: false,\n  b: 5\n};",
            "{\n  a: false,\n  b: 5\n};",
        ),
        ("a  =  1\n", "a = 1\n", "a = 2\n", "a = 2\n"),
        ("  f( a, b )  {\n}\n", "f(a, b) {", "g(a, b) {", "  g(a, b) {\n}\n"),
        ("if x:\n    y = [ 1 ]\n", "y = [1]", "y = [1, 2]", "if x:\n    y = [1, 2]\n"),
        ("  // note\n\n  f() {}", "\nf() {}", "\n  g() {}", "  // note\n\n  g() {}"),
        ("{\n  a;\n  b;\n}\n", "a ;\nb ;", "  a;\n  if (x) {\n    b;\n  }", "{\n  a;\n  if (x) {\n    b;\n  }\n}\n"),
    ],
)
async def test_one_place_is_found_with_other_white_space(
    shop: Workshop, before: str, old: str, new: str, after: str
) -> None:
    """S10: `old_string` is looked for as the lines of a diff are, if it is not there as written."""
    path = shop.file("a.txt", before)
    said = await shop.text("search_and_replace", path="a.txt", old_string=old, new_string=new)
    assert path.read_text() == after
    assert re.search(r"found at lines \d+-\d+ \((?:with|but|by) ", said)


async def test_white_space_does_not_choose_between_two_places(shop: Workshop) -> None:
    """S10: two places that differ from the search in white space are both left alone."""
    path = shop.file("a.txt", "  x  = 1\n  y\n  x =  1\n")
    shop.file("b.txt", "g( x )\ng (x)\n")
    assert "2 places match" in await shop.failure(
        "search_and_replace", path="a.txt", old_string="x = 1", new_string="x = 2"
    )
    for every in ({"search": "x = 1", "replace": "x"}, {"old_string": "x = 1", "new_string": "x", "replace_all": True}):
        told = await shop.failure("search_and_replace", path="a.txt", **every)
        assert "not found as written; lines 1, 3 differ in white space" in told
    assert "2 places match" in await shop.failure(
        "search_and_replace", path="b.txt", old_string="g(x)", new_string="h(x)"
    )
    assert path.read_text() == "  x  = 1\n  y\n  x =  1\n"


@pytest.mark.parametrize("every", [{}, {"replace_all": True}, {"expected_replacements": 2}])
async def test_all_places_that_differ_in_indentation_are_changed(shop: Workshop, every: dict[str, object]) -> None:
    """S10: each gets the new lines with its own indentation."""
    path = shop.file("a.py", "def f():\n    a()\n    b()\n    if x:\n        a()\n        b()\n")
    said = await shop.text("search_and_replace", path="a.py", search="a()\nb()\n", replace="if c:\n    b()\n", **every)
    assert path.read_text() == "def f():\n    if c:\n        b()\n    if x:\n        if c:\n            b()\n"
    assert "Changed in 2 places." in said
    other = shop.file("b.js", "{\n  a;\n  b;\n}\n{\n\ta;\n\tb;\n}\n")
    await shop.text("search_and_replace", path="b.js", search="a;\nb;\n", replace="", **every)
    assert other.read_text() == "{\n}\n{\n}\n"


async def test_an_unexpected_number_of_places_that_differ_in_indentation_changes_none(shop: Workshop) -> None:
    """S10."""
    path = shop.file("a.py", before := "if x:\n    a()\n    b()\nif y:\n        a()\n        b()\n")
    told = await shop.failure(
        "search_and_replace", path="a.py", search="a()\nb()", replace="c()", expected_replacements=3
    )
    assert "2 places match (lines 2, 5), and expected_replacements is 3" in told
    many = shop.file("many.js", "  a()\n  b()\n" * 60)
    told = await shop.failure("search_and_replace", path="many.js", search="a()\nb()", replace="c()")
    assert "differ in white space" in told and "use_regex" in told
    assert (path.read_text(), many.read_text()) == (before, "  a()\n  b()\n" * 60)


async def test_an_empty_search_makes_a_new_file(shop: Workshop) -> None:
    await shop.call("apply_diff", path="a.txt", diff="<<<<<<< SEARCH\n=======\nhello\n>>>>>>> REPLACE")
    await shop.call("search_and_replace", file_path="b.txt", old_string="", new_string="hello\n")
    assert [(shop.folder / name).read_text() for name in ("a.txt", "b.txt")] == ["hello\n", "hello\n"]
    said = await shop.failure("search_and_replace", file_path="b.txt", old_string="", new_string="other\n")
    assert "the search is empty" in said
    said = await shop.failure("apply_diff", path="a.txt", diff="<<<<<<< SEARCH\n=======\nother\n>>>>>>> REPLACE")
    assert "the search is empty" in said
    said = await shop.failure("search_and_replace", path="c.txt", search="a", replace="b")
    assert "File does not exist" in said


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("search_and_replace", {"filePath": "a.txt", "oldString": "one", "newString": "1", "replaceAll": False}),
        ("search_and_replace", {"path": "a.txt", "old_str": "one", "new_str": "1"}),
        ("search_and_replace", {"target_file": "a.txt", "old_text": "one", "new_text": "1", "instruction": "count"}),
        (
            "search_and_replace",
            {"filename": "a.txt", "search_text": "one", "replacement": "1", "allow_multiple": False},
        ),
        ("write_to_file", {"filePath": "a.txt", "contents": "1\ntwo\n"}),
        ("write_to_file", {"path": "a.txt", "file_text": "1\ntwo\n"}),
        ("apply_diff", {"filePath": "a.txt", "patch": DIFF.format(old="one", new="1")}),
        ("apply_diff", {"target_file": "a.txt", "diff": DIFF.format(old="one", new="1")}),
    ],
)
async def test_other_spellings_of_arguments_are_understood(
    shop: Workshop, tool: str, arguments: dict[str, object]
) -> None:
    """S10: as Claude, Gemini CLI, opencode and Cursor spell them."""
    path = shop.file("a.txt", "one\ntwo\n")
    await shop.call(tool, **arguments)
    assert path.read_text() == "1\ntwo\n"


async def test_insert_line_is_the_line_before_the_new_ones(shop: Workshop) -> None:
    """As Anthropic's text editor has it: 0 is the beginning of the file."""
    path = shop.file("a.txt", "one\ntwo\n")
    await shop.call("insert_content", path="a.txt", insert_line=1, new_str="1.5")
    await shop.call("insert_content", path="a.txt", insert_line=0, insert_text="0")
    assert path.read_text() == "0\none\n1.5\ntwo\n"


# Paths


async def test_a_wrong_path_names_the_nearest(shop: Workshop) -> None:
    """S10: in every tool that needs the file."""
    shop.file("src/shop/total.py", "x = 1\n")
    shop.file("src/cart/totals.py", "x = 1\n")
    shop.file(".tarmacignore", "hidden\n")
    shop.file("hidden/total.py", "x = 1\n")
    diff = DIFF.format(old="x = 1", new="x = 2")
    said = await shop.failure("apply_diff", path="shop/total.py", diff=diff)
    assert "Did you mean 'src/shop/total.py'?" in said
    assert "hidden" not in said
    assert "'src/cart/totals.py'" in await shop.failure("apply_diff", path="src/cart/total5.py", diff=diff)
    patch = PATCH.format(body="*** Update File: total.py\n-x = 1\n+x = 2")
    assert "Did you mean 'src/shop/total.py'?" in await shop.failure("apply_patch", patch=patch)
    assert "Did you mean 'src/shop/total.py'?" in await shop.text("read_file", path="src/total.py")
    assert "Did you mean" not in await shop.failure("apply_diff", path="quite/other.rs", diff=diff)


async def test_a_file_that_was_never_read_is_not_replaced_without_a_word(shop: Workshop) -> None:
    """S10: by write_to_file, by a patch that adds it, and by a rename onto it."""
    shop.file("a.py", "one\ntwo\n")
    assert "you had not read it: 2 lines were replaced" in await shop.text("write_to_file", path="a.py", content="x\n")
    assert "not read" not in await shop.text("write_to_file", path="a.py", content="y\n")
    shop.file("b.py", "one\n")
    patch = "*** Begin Patch\n*** Add File: b.py\n+x\n*** End Patch"
    assert "you had not read it: 1 lines" in await shop.text("apply_patch", patch=patch)
    shop.file("c.py", "one\n")
    move = "*** Begin Patch\n*** Update File: a.py\n*** Move to: c.py\n@@\n-y\n+z\n*** End Patch"
    assert "you had not read it" in await shop.text("apply_patch", patch=move)


async def test_a_new_file_whose_name_differs_only_in_case_is_told(shop: Workshop) -> None:
    """S10: a wrong path names the nearest, also where a new file is not an error."""
    shop.file("src/Cart.py", "x\n")
    told = await shop.text("write_to_file", path="src/cart.py", content="y\n")
    assert "There is also 'Cart.py', whose name differs only in upper and lower case." in told
    assert "There is also" not in await shop.text("write_to_file", path="src/other.py", content="y\n")


async def test_no_edit_makes_a_text_file_binary(shop: Workshop) -> None:
    """S10: the next edit could not read it."""
    path = shop.file("a.c", 'char x[] = "ab";\n')
    for tool, arguments in (
        ("write_to_file", {"content": "a\0b"}),
        ("search_and_replace", {"search": "ab", "replace": "a\0b"}),
        ("insert_content", {"line": 1, "content": "\0"}),
    ):
        assert "has a NUL character" in await shop.failure(tool, path="a.c", **arguments)
    assert path.read_text() == 'char x[] = "ab";\n'


async def test_messages_of_edits_say_what_helps_next(shop: Workshop) -> None:
    """S10."""
    shop.file("a.py", "total = 0\nTotals = 1\n" + "x = 1\n" * 3_000)
    told = await shop.failure("search_and_replace", path="a.py", search="TOTAL", replace="sum")
    assert "upper and lower case differ at line 1" in told and "set ignore_case" in told and "block" not in told
    same = await shop.failure("search_and_replace", path="a.py", search="total", replace="total")
    assert "hint: if the file is as you want it, go on" in same
    diff = "<<<<<<< SEARCH\nx = 1\n=======\nx = 2\n>>>>>>> REPLACE\n"
    assert "at least 50 places match" in await shop.failure("apply_diff", path="a.py", diff=diff)


async def test_a_patch_with_the_path_beside_it_is_applied(shop: Workshop) -> None:
    """S10: other spellings of arguments."""
    path = shop.file("a.py", "x = 1\n")
    await shop.call("apply_patch", path="a.py", patch="*** Update File: a.py\n@@\n-x = 1\n+x = 2\n")
    assert path.read_text() == "x = 2\n"
