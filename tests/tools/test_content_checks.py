"""What models put around the content of a file, and what they leave out of it."""

import sysconfig
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarmac.tools.edit import clean_content, find_omissions, is_cut_short, strip_fences, strip_line_numbers


@pytest.mark.parametrize(
    ("content", "path", "expected"),
    [
        ("```python\nx = 1\n```", "a.py", "x = 1\n"),
        ("```\nx = 1\n```\n\n", "a.py", "x = 1\n"),
        ("```python\nx = 1\n", "a.py", "x = 1\n"),
        ("x = 1\n```", "a.py", "x = 1\n"),
        ("x = 1\n", "a.py", "x = 1\n"),
        ("```md\n# T\n\n```sh\nls\n```\n```\n", "README.md", "# T\n\n```sh\nls\n```\n"),
        ("```sh\nls\n```\ntext\n```sh\npwd\n```\n", "README.md", "```sh\nls\n```\ntext\n```sh\npwd\n```\n"),
        ("# T\n\n```sh\nls\n```", "README.md", "# T\n\n```sh\nls\n```"),
    ],
)
def test_a_fence_around_the_content_goes_and_one_inside_stays(content: str, path: str, expected: str) -> None:
    """S10: code fences stripped."""
    assert strip_fences(content, path) == expected


def test_line_numbers_go_when_every_line_has_one_and_they_count_up() -> None:
    assert clean_content("```\n 9 | a\n10 | \n11 |   b\n```", "a.py") == "a\n\n  b\n"
    table = "1 | one\n3 | three\n"
    assert strip_line_numbers(table) == table


@given(st.lists(st.text("ab |1", max_size=4), min_size=1, max_size=8), st.integers(1, 200))
def test_numbered_lines_come_back_as_they_were(lines: list[str], first: int) -> None:
    numbered = "\n".join(f"{number} | {line}" for number, line in enumerate(lines, first))
    assert strip_line_numbers(numbered) == "\n".join(lines)


@pytest.mark.parametrize(
    "line",
    [
        "// rest of code unchanged",
        "# ... existing code ...",
        "/* ... rest of the file remains the same ... */",
        "<!-- rest of content unchanged -->",
        "    // ... previous implementation ...",
        "# Keep the existing imports",
        "{/* rest of component */}",
        "// (other methods remain unchanged)",
        "-- remaining code stays as is",
        "... rest of the function ...",
        "// Rest of the code stays as before",
        "# same code as before",
        "(rest of methods ...)",
        "    (unchanged code …)",
    ],
)
def test_a_comment_that_stands_for_code_is_noticed(line: str) -> None:
    """S10: omission detected; not one that was there before."""
    content = f"def f():\n    return 1\n{line}\n"
    assert [each.line for each in find_omissions(content)] == [3]
    assert find_omissions(content, before=content) == []


@pytest.mark.parametrize(
    "line",
    [
        "x = ...",
        "def f(): ...",
        "# the rest is up to the caller",
        "rest of the code",
        "// handles existing users",
        "...",
        'const msg = "(rest of methods ...)";',
        "(rest of the arguments, ...) = call()",
    ],
)
def test_ordinary_lines_are_no_omissions(line: str) -> None:
    assert find_omissions(line) == []


def test_real_code_has_next_to_no_omissions() -> None:
    """Of the standard library's packages used here, one line in ten thousand at most may be taken for one."""
    folder = Path(sysconfig.get_path("stdlib"))
    texts = [
        path.read_text(errors="replace")
        for name in ("asyncio", "json", "email", "http")
        for path in (folder / name).glob("*.py")
    ]
    lines = sum(text.count("\n") for text in texts)
    assert lines > 20_000
    assert sum(len(find_omissions(text)) for text in texts) <= lines / 10_000


def test_content_that_is_clearly_shorter_than_announced() -> None:
    assert is_cut_short("a\n" * 50, 100)
    assert not is_cut_short("a\n" * 95, 100)
    assert not is_cut_short("a\n", 5)
