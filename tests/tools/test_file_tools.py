"""read_file, list_files, search_files and list_code_definition_names, as a model calls them."""

import json
from pathlib import Path

import pytest
from tests.tools.workshop import Workshop, text_of

from tarmac.errors import BadArguments
from tarmac.models.messages import Image
from tarmac.policy import ReadFile
from tarmac.tools.read_file import ReadFile as ReadFileTool
from tarmac.tools.tool import Go
from tarmac.tools.toolbox import toolbox

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(64)


@pytest.mark.parametrize(
    "arguments",
    [
        {"files": [{"path": "a.py", "line_ranges": ["2-3", "5-5"]}]},
        {"files": [{"path": "a.py", "line_ranges": [[2, 3], [5, 5]]}]},
        {"path": "a.py", "line_range": "2-3, 5-5"},
        {"args": {"file": {"path": "a.py", "line_range": ["2-3", "5-5"]}}},
        {"args": {"file": [{"path": "a.py", "line_range": ["2-3", "5-5"]}]}},
        {"args": "<file>\n<path>a.py</path>\n<line_range>2-3</line_range><line_range>5-5</line_range></file>"},
        {"files": '[{"path": "a.py", "line_ranges": ["2-3", "5-5"]}]'},
    ],
)
async def test_a_file_is_asked_for_in_every_shape_models_know(shop: Workshop, arguments: dict[str, object]) -> None:
    """S10, S11: several ranges; the nesting of XML calls."""
    shop.file("a.py", "".join(f"line {n}\n" for n in range(1, 8)))
    done = await shop.call("read_file", **arguments)
    assert text_of(done) == (
        '<files>\n<file>\n<path>a.py</path>\n<content lines="2-3">\n2 | line 2\n3 | line 3\n</content>\n'
        '<content lines="5-5">\n5 | line 5\n</content>\n</file>\n</files>'
    )


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        ({"path": "a.py"}, "1-7"),
        ({"files": ["a.py"]}, "1-7"),
        ({"path": "a.py", "offset": 3, "limit": 2}, "3-4"),
        ({"path": "a.py", "start_line": "2", "end_line": "4"}, "2-4"),
        ({"path": "a.py", "start_line": 6}, "6-7"),
        ({"file_path": "a.py", "path": "a.py"}, "1-7"),
    ],
)
async def test_one_file_may_be_named_alone(shop: Workshop, arguments: dict[str, object], lines: str) -> None:
    shop.file("a.py", "".join(f"line {n}\n" for n in range(1, 8)))
    assert f'<content lines="{lines}">' in await shop.text("read_file", **arguments)


async def test_one_bad_file_does_not_fail_the_others(shop: Workshop) -> None:
    """S10, P8: what is missing, hidden, binary or a folder is told in its place."""
    shop.file(".tarmacignore", "secret.txt\n")
    shop.file("secret.txt", "the secret")
    shop.file("good.txt", "good\n")
    shop.file("data.bin", b"\0\1\2")
    done = await shop.call("read_file", files=["secret.txt", "good.txt", "gone.txt", "data.bin", "."])
    text = text_of(done)
    assert "the secret" not in text
    assert "<path>secret.txt</path>\n<error>Access denied:" in text
    assert "1 | good" in text
    assert "<path>gone.txt</path>\n<error>File not found</error>" in text
    assert "Binary file - content not displayed" in text
    assert "list_files shows what is in it" in text
    assert done.outcome == "done"
    assert {each.path.name for each in done.seen} == {"good.txt", "data.bin"}


async def test_what_is_hidden_is_not_even_asked_about(shop: Workshop) -> None:
    """P8: the person is asked about the files that may be read, each by itself."""
    shop.file(".tarmacignore", "secret.txt\n")
    shop.file("secret.txt", "x")
    ready = await shop.prepare("read_file", files=["secret.txt", "a.txt", "/etc/passwd"])
    assert [each.action for each in ready.wants] == [ReadFile(shop.folder / "a.txt"), ReadFile(Path("/etc/passwd"))]
    assert [each.outside for each in ready.wants] == [False, True]


async def test_what_is_looked_into_is_known_as_a_folder(shop: Workshop) -> None:
    """U5: the question about it says so, by this value."""
    shop.file("sub/a.txt", "x")
    ready = [
        await shop.prepare(name, path=path, **more)
        for name, path, more in (("list_files", "sub", {}), ("search_files", "sub/a.txt", {"regex": "x"}))
    ]
    assert [each.wants[0].folder for each in ready] == [True, False]


async def test_a_batch_of_files_is_approved_one_by_one(shop: Workshop) -> None:
    """S13: what the person refused is told, the rest is read."""
    shop.file("a.txt", "aaa\n")
    shop.file("b.txt", "bbb\n")
    ready = await shop.prepare("read_file", files=["a.txt", "b.txt"])
    text = text_of(await shop.act(ready, go=Go(approved=True, refused=frozenset([0]))))
    assert "<path>a.txt</path>\n<error>Denied by user</error>" in text
    assert "aaa" not in text
    assert "1 | bbb" in text


async def test_pictures_come_as_pictures(shop: Workshop) -> None:
    """S10: images; by what is in them, not by their names."""
    shop.file("shot.dat", PNG)
    shop.file("fake.png", "no picture\n")
    done = await shop.call("read_file", files=["shot.dat", "fake.png"])
    pictures = [each for each in done.content if isinstance(each, Image)]
    assert [(each.blob.media_type, shop.blobs[each.blob.sha256]) for each in pictures] == [("image/png", PNG)]
    assert "PNG image, 80 bytes, shown as picture 1 of this result" in text_of(done)
    assert "1 | no picture" in text_of(done)


async def test_a_picture_that_is_too_large_is_not_shown(shop: Workshop) -> None:
    shop.settle(largest_image=50)
    shop.file("shot.png", PNG)
    done = await shop.call("read_file", path="shot.png")
    assert len(done.content) == 1
    assert "too large to be shown" in text_of(done)


async def test_more_files_than_the_limit_are_refused(shop: Workshop) -> None:
    """S10: up to 5 files a call."""
    with pytest.raises(BadArguments, match="at most 5 files a call, not 6"):
        await shop.prepare("read_file", files=[f"{n}.txt" for n in range(6)])


@pytest.mark.parametrize("wrong", ["x-y", "first", "-5"])
async def test_what_is_no_range_is_told(shop: Workshop, wrong: str) -> None:
    with pytest.raises(BadArguments, match="is not a range of lines"):
        await shop.prepare("read_file", files=[{"path": "a", "line_ranges": [wrong]}])


def test_a_file_without_a_path_is_told_by_name() -> None:
    with pytest.raises(BadArguments, match=r"missing value for required argument 'files\[0\].path'"):
        toolbox().decode("read_file", json.dumps({"files": [{"line_ranges": ["1-2"]}]}))


def test_decoding_gives_plain_values() -> None:
    call = toolbox().decode("read_file", '{"path": "a.py"}')
    assert isinstance(call, ReadFileTool)
    assert call.files[0].path == "a.py"


async def test_a_link_that_moves_between_the_question_and_the_reading_is_not_followed(shop: Workshop) -> None:
    """P8: what is read is what was judged."""
    shop.file("a.txt", "harmless")
    link = shop.folder / "link"
    link.symlink_to("a.txt")
    ready = await shop.prepare("read_file", path="link")
    link.unlink()
    link.symlink_to("/etc/passwd")
    with pytest.raises(Exception, match="leads to another file"):
        await shop.act(ready)


async def test_folders_are_listed_without_what_is_hidden(shop: Workshop) -> None:
    """S10, P8: list_files."""
    shop.file(".tarmacignore", "private/\n")
    shop.file("private/x.txt", "")
    shop.file("src/app.py", "")
    assert await shop.text("list_files", path=".") == "src/\n.tarmacignore"
    assert await shop.text("list_files", path="", recursive="true") == "src/\nsrc/app.py\n.tarmacignore"
    assert "may not be read" in await shop.failure("list_files", path="private")
    assert "does not exist" in await shop.failure("list_files", path="nowhere")


async def test_searching_shows_no_hidden_file_and_no_credential(shop: Workshop) -> None:
    """S10, P8: search_files."""
    shop.file(".tarmacignore", "private.txt\n")
    for name in ("private.txt", "id_rsa", "notes.txt"):
        shop.file(name, "needle\n")
    text = await shop.text("search_files", path=".", regex="nee+dle")
    assert text == "Found 1 result.\n\n# notes.txt\n>1 | needle\n----"
    assert "the pattern is invalid" in await shop.failure("search_files", regex="(")
    assert await shop.text("search_files", pattern="needle", glob="*.py") == "No results found."


async def test_definitions_of_a_file_and_of_a_folder(shop: Workshop) -> None:
    """S10: list_code_definition_names."""
    shop.file("src/app.py", "class App:\n    def run(self):\n        pass\n")
    expected = "# app.py\n1--3 | class App:\n2--3 |     def run(self):"
    assert await shop.text("list_code_definition_names", path="src/app.py") == expected
    assert await shop.text("list_code_definition_names", path="src") == expected
    shop.file("empty/a.py", "")
    assert await shop.text("list_code_definition_names", path="empty") == "No source code definitions found."
