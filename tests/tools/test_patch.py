"""apply_patch: the format Codex models know."""

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarmac.errors import EditFailed
from tarmac.tools.edit import FileChange, plan_patch

FILES = {
    "app.py": "class A:\n    def run(self):\n        pass\n\nclass B:\n    def run(self):\n        pass\n",
    "list.txt": "one\ntwo\nthree\n",
}


def plan(body: str, files: dict[str, str] = FILES) -> list[FileChange]:
    return plan_patch(f"*** Begin Patch\n{body}\n*** End Patch", files.get)


def after(body: str, path: str = "list.txt") -> str | None:
    return next(each.after for each in plan(body) if each.path == path)


def test_add_delete_update_and_move_in_one_patch() -> None:
    """S10: each change with the text before and after; nothing is written yet."""
    changes = plan(
        "*** Add File: new/x.txt\n+hello\n+\n*** Delete File: app.py\n"
        "*** Update File: list.txt\n*** Move to: kept.txt\n@@\n one\n-two\n+2"
    )
    assert changes == [
        FileChange("new/x.txt", None, "hello\n\n", whole=True),
        FileChange("app.py", FILES["app.py"], None),
        FileChange("list.txt", FILES["list.txt"], None),
        FileChange("kept.txt", None, "one\n2\nthree\n", moved_from="list.txt", whole=True),
    ]


def test_an_anchor_says_which_place() -> None:
    patch = "*** Update File: app.py\n{}\n     def run(self):\n-        pass\n+        go()"
    with pytest.raises(EditFailed, match="2 places match: lines 2, 6"):
        plan(patch.format("@@"))
    text = after(patch.format("@@ class B:"), "app.py")
    assert text is not None
    assert text.index("go()") > text.index("class B")
    assert after(patch.format("@@ class A"), "app.py") != text


@pytest.mark.parametrize(
    "body",
    [
        "*** Update File: list.txt\n@@\n-two\n+2",
        "*** Update File: list.txt\n-two\n+2",
        "  *** Update File: list.txt  \n@@ -2,1 +2,1 @@\n-two\n+2",
        "*** Update File: list.txt\n@@ one\n-two\n+2\n three\n*** End of File",
        "*** Update File: list.txt\n@@\n one  \n-two\n+2",
    ],
)
def test_ways_in_which_models_write_the_same_change(body: str) -> None:
    assert after(body) == "one\n2\nthree\n"


def test_a_here_document_and_missing_marks_are_understood() -> None:
    change = "*** Update File: list.txt\n@@\n-two\n+2\n"
    for patch in (f"apply_patch <<'EOF'\n*** Begin Patch\n{change}EOF", change, f"{change}*** End Patch"):
        assert [each.after for each in plan_patch(patch, FILES.get)] == ["one\n2\nthree\n"]


def test_a_patch_that_begins_and_does_not_end_is_refused() -> None:
    """S10: it may have been cut off in the middle of a file."""
    with pytest.raises(EditFailed, match="may have been cut off"):
        plan_patch("*** Begin Patch\n*** Add File: new.txt\n+one\n+tw", FILES.get)


def test_new_lines_without_context_go_to_the_end_or_after_their_anchor() -> None:
    assert after("*** Update File: list.txt\n@@\n+four") == "one\ntwo\nthree\nfour\n"
    assert after("*** Update File: list.txt\n@@ one\n+1.5") == "one\n1.5\ntwo\nthree\n"


def test_context_that_differs_in_white_space_stays_as_the_file_has_it() -> None:
    files = {"a": "\tif x:\n\t\told()\t\n\n\tdone()\n"}
    changes = plan("*** Update File: a\n@@\n     if x:\n-        old()\n+        new()\n \n     done()", files)
    assert changes[0].after == "\tif x:\n\t\tnew()\n\n\tdone()\n"


def test_one_change_that_finds_no_place_and_nothing_is_planned() -> None:
    """S10: all or nothing, with every reason."""
    with pytest.raises(EditFailed) as caught:
        plan("*** Add File: x\n+x\n*** Update File: list.txt\n@@\n-nowhere\n+y\n*** Delete File: gone")
    assert str(caught.value) == (
        "the patch was not applied, no file was changed:\n"
        "list.txt, block 1: not found, nor anything like it; the text is from another file, or the file was changed\n"
        "hint: read the file again\n"
        "gone does not exist"
    )


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ("", "changes no file"),
        ("*** Frobnicate File: x", "line 2 of the patch, '\\*\\*\\* Frobnicate File: x': unknown"),
        ("*** Update File: list.txt", "no change for list.txt"),
        ("*** Add File: x\nno plus", "line 3 of the patch, 'no plus': each line of a new file begins with +"),
        ("*** Update File: list.txt\n@@\nno mark", "begins with a space"),
        ("*** Add File:", "the name of the file is missing"),
    ],
)
def test_a_malformed_patch_says_where(body: str, what: str) -> None:
    with pytest.raises(EditFailed, match=what):
        plan(body)


LINES = st.lists(st.sampled_from(["a", "b", "", "  c", "*** End Patch", "@@ x", "+d"]), min_size=1, max_size=14)


@given(LINES, LINES, st.integers(1, 3))
def test_a_patch_made_from_two_texts_gives_the_second_or_is_refused_as_ambiguous(
    old: list[str], new: list[str], context: int
) -> None:
    """S10: never a third text."""
    rows = []
    for group in difflib.SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(context):
        rows.append("@@")
        for tag, a, b, c, d in group:
            rows += [f" {line}" for line in old[a:b]] if tag == "equal" else [f"-{line}" for line in old[a:b]]
            rows += [] if tag == "equal" else [f"+{line}" for line in new[c:d]]
    before, expected = "\n".join([*old, ""]), "\n".join([*new, ""])
    if old == new:
        return
    try:
        changes = plan("\n".join(["*** Update File: f", *rows]), {"f": before})
    except EditFailed as error:
        assert "places match" in error.what
        assert len({line.strip() for line in old}) < len(old)
    else:
        assert [each.after for each in changes] == [expected]
