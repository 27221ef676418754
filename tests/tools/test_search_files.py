"""search_files with a real ripgrep."""

from pathlib import Path

import pytest

from tarmac.errors import BadRequest, FileUnavailable
from tarmac.tools.search_files import search_files


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/app.py").write_text("import os\n\ndef main():\n    run()\n\n\n\ndef run():\n    pass\n")
    (tmp_path / "src/other.txt").write_bytes(b"def caf\xe9():\r\n")
    (tmp_path / "bin").write_bytes(b"def\0binary")
    return tmp_path


async def test_hits_come_with_context_and_line_numbers(folder: Path) -> None:
    """S10: search_files."""
    hits = await search_files(folder, r"def \w+", file_pattern="*.py")
    assert hits.count == 2
    assert str(hits) == (
        "Found 2 results.\n\n# src/app.py\n 2 | \n>3 | def main():\n 4 |     run()\n----\n"
        " 7 | \n>8 | def run():\n 9 |     pass\n----"
    )


async def test_bytes_that_are_no_text_and_windows_lines(folder: Path) -> None:
    hits = await search_files(folder, "caf")
    assert [line.text for line in hits.files[0].groups[0]] == ["def caf\ufffd():"]


async def test_a_single_file_and_a_pattern_over_lines(folder: Path) -> None:
    hits = await search_files(folder / "src/app.py", r"main\(\):\n\s+run", context=0)
    assert [(line.number, line.found) for line in hits.files[0].groups[0]] == [(3, True), (4, True)]


async def test_results_and_long_lines_are_bounded(folder: Path) -> None:
    (folder / "many").write_text("hit\n" * 1000)
    (folder / "long").write_text("x" * 5000 + "needle" + "y" * 2_000_000 + "\n")
    hits = await search_files(folder, "hit", most=20)
    assert (hits.count, sum(len(group) for file in hits.files for group in file.groups)) == (20, 20)
    assert "at most 20 are shown" in str(hits)
    (folder / "long").write_text("x" * 5000 + "needle" + "y" * 5000 + "\n")
    (line,) = (await search_files(folder, "needle")).files[0].groups[0]
    assert "needle" in line.text
    assert len(line.text) <= 502


async def test_a_line_longer_than_we_read_is_passed_over(folder: Path) -> None:
    (folder / "a-long").write_text("needle " + "y" * 2_000_000 + "\n")
    (folder / "b-short").write_text("needle\n")
    hits = await search_files(folder, "needle")
    assert [file.path for file in hits.files if file.groups] == ["b-short"]


async def test_hidden_files_are_not_shown(folder: Path) -> None:
    """P8: what the ignore file hides is not found."""
    hits = await search_files(folder, "def", hidden=lambda path: path == folder / "src/app.py")
    assert [file.path for file in hits.files] == ["src/other.txt"]


async def test_what_can_go_wrong_is_said(folder: Path) -> None:
    with pytest.raises(BadRequest, match="unclosed group"):
        await search_files(folder, "(")
    with pytest.raises(BadRequest, match="look-around"):
        await search_files(folder, "(?=x)")
    with pytest.raises(FileUnavailable, match="does not exist"):
        await search_files(folder / "gone", "x")
    assert str(await search_files(folder, "nothing like it")) == "No results found."
    assert str(await search_files(folder, "--files")) == "No results found."


async def test_a_search_that_takes_too_long_ends(folder: Path) -> None:
    hits = await search_files(folder, "def", patience=0.0)
    assert hits.truncated == "it took longer than 0 s"
