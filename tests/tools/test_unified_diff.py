"""The diff a person is shown is true: it makes the second text of the first."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tarmac.tools.edit import unified_diff
from tarmac.tools.edit.unified_diff import patched

ANY = st.text(alphabet="ab\n +-\\@", max_size=40)
TEXT = st.lists(st.sampled_from(["a", "b", "c", "", "-x", "+y"]), max_size=25).map("\n".join)


def applied(before: str, diff: str) -> str:
    """A small `patch`: checks context and numbers."""
    old = before.splitlines(keepends=True)
    new: list[str] = []
    done = 0
    for row in re.findall(r"[^\n]*\n(?:\\ No[^\n]*\n)?", diff)[2:]:
        text, bare, _ = row[1:].partition("\n\\ No newline at end of file\n")
        text = text if bare else row[1:]
        if row.startswith("@@"):
            start, size = re.match(r"@@ -(\d+)(?:,(\d+))?", row).groups()  # type: ignore[union-attr]
            first = int(start) - (size != "0")
            new += old[done:first]
            done = first
            continue
        if row[0] in " -":
            assert old[done] == text
            done += 1
        if row[0] in " +":
            new.append(text)
    return "".join([*new, *old[done:]])


@given(TEXT, TEXT, st.integers(0, 3))
def test_the_diff_turns_the_first_text_into_the_second(before: str, after: str, context: int) -> None:
    """P6: what is shown is what will be there."""
    diff = unified_diff(before, after, "f", context=context)
    assert applied(before, diff.text) == after
    assert (diff.text == "") == (before == after)
    rows = [row for row in diff.text.splitlines()[2:] if not row.startswith("@@")]
    assert (diff.added, diff.removed) == (sum(row[:1] == "+" for row in rows), sum(row[:1] == "-" for row in rows))


def test_git_takes_it(tmp_path: Path, require: Callable[[str], None]) -> None:
    require("git")
    before = "".join(f"line {number}\n" for number in range(60)) + "end"
    after = before.replace("line 5\n", "").replace("line 40\n", "line 40\nnew\n").replace("end", "the end")
    (tmp_path / "f.txt").write_text(before)
    diff = unified_diff(before, after, "f.txt")
    assert (diff.added, diff.removed) == (2, 2)
    subprocess.run(["git", "apply", "-p0", "-"], input=diff.text, text=True, cwd=tmp_path, check=True, timeout=20)
    assert (tmp_path / "f.txt").read_text() == after


def test_new_removed_and_long() -> None:
    assert (
        unified_diff(None, "a\nb", "f").text
        == "--- /dev/null\n+++ f\n@@ -0,0 +1,2 @@\n+a\n+b\n\\ No newline at end of file\n"
    )
    assert unified_diff("a\n", None, "f").text == "--- f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"
    long = unified_diff("", "x\n" * 100, "f", most_lines=10)
    assert (long.added, long.left_out) == (100, 93)
    assert long.text.endswith("(93 more lines of the diff left out)\n")


def test_a_file_rewritten_from_top_to_bottom_takes_no_time() -> None:
    before, after = ("".join(f"{word}{number % 97}\n" for number in range(30_000)) for word in ("a", "b"))
    diff = unified_diff(before, after, "f")
    assert (diff.added, diff.removed) == (30_000, 30_000)


@given(ANY | TEXT, ANY | TEXT)
def test_a_diff_can_be_applied(before: str, after: str) -> None:
    """F2: with all that is at the end of a file, and nothing else."""
    diff = str(unified_diff(before, after, "a.txt"))
    assert patched(before, diff) == after if diff else before == after


def test_a_diff_that_does_not_fit_is_not_applied() -> None:
    """F2: a line that is not there, a hunk that is cut off, lines between hunks."""
    whole = "--- a\n+++ b\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
    assert patched("one\ntwo\n", whole) == "one\n2\n"
    for wrong in (whole.replace("two", "three"), whole.replace("-two\n", ""), f"{whole}(2 more lines left out)\n"):
        assert patched("one\ntwo\n", wrong) is None
