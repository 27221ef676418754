"""codebase_search: an index that follows the files, and finds code by the words in its names."""

import asyncio
from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from tests.tools.workshop import Workshop

from tarmac.tools.codebase_search import query_words, split_words


async def test_code_is_found_by_the_words_of_its_names(shop: Workshop, tmp_path: Path) -> None:
    """S10: definitions first, identifiers split; files that are hidden or ignored are not there."""
    shop.bench = replace(shop.bench, cache=tmp_path / "cache")
    shop.file(
        "src/net.py", "import os\n\n\ndef retryFailedRequest(times):\n    return times\n\n\ndef other():\n    pass\n"
    )
    shop.file("src/notes.md", "We retry things now and then.\n" * 3)
    shop.file("hidden.py", "def retry_failed_request(): pass\n")
    shop.file(".tarmacignore", "hidden.py\n")
    found = await shop.text("codebase_search", query="where is a failed request retried or retry done")
    assert found.startswith("# src/net.py:4-7\n4 | def retryFailedRequest(times):")
    assert "hidden.py" not in found
    assert "notes.md" in found


async def test_the_index_follows_the_files(shop: Workshop, tmp_path: Path) -> None:
    """S10: changed, new and deleted files; nothing else is read again."""
    shop.bench = replace(shop.bench, cache=tmp_path / "cache")
    path = shop.file("a.go", "package a\n\nfunc ParseHTTPUrl() {}\n")
    assert "a.go:3" in await shop.text("codebase_search", query="parse url")
    shop.file("a.go", "package a\n\nfunc OpenDoor() {}\n// more\n")
    shop.file("b/c.py", "class ParseUrl:\n    pass\n")
    found = await shop.text("codebase_search", query="parse url")
    assert "b/c.py" in found and "a.go" not in found
    path.unlink()
    assert "Nothing was found" in await shop.text("codebase_search", query="OpenDoor")


async def test_a_folder_narrows_the_search_and_strange_queries_are_no_error(shop: Workshop) -> None:
    """S10."""
    shop.file("one/x.py", "def alpha(): pass\n")
    shop.file("two/x.py", "def alpha(): pass\n")
    assert "two/x.py" in await shop.text("codebase_search", query="alpha", path="two")
    assert "one/x.py" not in await shop.text("codebase_search", query="alpha", path="two")
    for strange in ('"', "alpha AND (", "NEAR(", "alpha*", "col:alpha"):
        query = await shop.failure("codebase_search", query=strange) if not query_words(strange) else ""
        assert query or await shop.text("codebase_search", query=strange)
    assert "no words" in await shop.failure("codebase_search", query="the of")
    assert "not a folder" in await shop.failure("codebase_search", query="x", path="one/x.py")


async def test_a_file_that_is_hidden_later_is_not_shown_and_one_that_is_shown_again_is_found(
    shop: Workshop, tmp_path: Path
) -> None:
    """S10: the index knows a file from before it was hidden."""
    shop.bench = replace(shop.bench, cache=tmp_path / "cache")
    shop.file("codes.py", "def launch_codes(): pass\n")
    assert "codes.py" in await shop.text("codebase_search", query="launch codes")
    rules = shop.file(".tarmacignore", "codes.py\n")
    assert "Nothing was found" in await shop.text("codebase_search", query="launch codes")
    shop.file("more.py", "def launch_codes(): pass\n")
    rules.write_text("more.py\n")
    assert "more.py" not in await shop.text("codebase_search", query="launch codes")
    rules.unlink()
    found = await shop.text("codebase_search", query="launch codes")
    assert "more.py" in found and "codes.py" in found


async def test_several_programs_use_one_index(shop: Workshop, tmp_path: Path) -> None:
    """S10: one brings it up to date, the others wait for it."""
    shop.bench = replace(shop.bench, cache=tmp_path / "cache")
    for number in range(300):
        shop.file(f"pkg{number % 9}/m{number}.py", f"def handler_{number}():\n    return {number}\n\n" * 5)
    shop.file("zebra.py", "class ZebraGateway: pass\n")
    calls = [shop.text("codebase_search", query="zebra gateway") for _ in range(4)]
    assert [each.splitlines()[0] for each in await asyncio.gather(*calls)] == ["# zebra.py:1-1"] * 4


async def test_a_damaged_index_is_made_anew(shop: Workshop, tmp_path: Path) -> None:
    """S10."""
    shop.bench = replace(shop.bench, cache=tmp_path / "cache")
    for number in range(200):
        shop.file(f"m{number}.py", f"def handler_{number}():\n    return {number}\n\n" * 5)
    assert "m7.py" in await shop.text("codebase_search", query="handler_7")
    (index,) = (tmp_path / "cache").glob("*.sqlite3")
    whole = index.read_bytes()
    for damaged in (b"no database" * 500, whole[:4096] + b"\xff" * (len(whole) - 4096), whole[:1000]):
        index.write_bytes(damaged)
        assert "m7.py" in await shop.text("codebase_search", query="handler_7")


def test_identifiers_are_split() -> None:
    assert list(split_words("größe_prüfen 日本")) == ["größe_prüfen", "größe", "prüfen", "日本"]
    assert list(split_words("parseHTTPUrl snake_case X9")) == [
        *("parsehttpurl", "parse", "http", "url", "snake_case", "snake", "case", "x9", "x", "9"),
    ]


@given(st.text(max_size=80))
def test_any_text_has_words_that_sqlite_takes(text: str) -> None:
    assert all(each == each.lower() and '"' not in each for each in split_words(text))
