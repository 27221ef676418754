"""`tarmac mcp --tools`: files for clients, under the same policy; and clients that go in circles."""

import base64
import json
from pathlib import Path

import pytest
from tests.cli.conftest import tarmac
from tests.mcp.peers import ERAS, NO, Person, a_server, client_of, connected, on_pipes, ran, refused, said

pytestmark = pytest.mark.shell
each_era = pytest.mark.parametrize("era", ERAS)
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@each_era
async def test_files_are_read_edited_and_shown_as_pictures(tmp_path: Path, era: str) -> None:
    """A3: reading the workspace asks nobody; an edit shows its diff first, and is asked about."""
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    (tmp_path / "dot.png").write_bytes(PIXEL)
    person = Person()
    async with on_pipes(tmp_path, era, person, "--tools", "files") as client:
        names = [each.name for each in (await client.list_tools()).tools]
        read = await client.call_tool("read_file", {"path": "a.txt"})
        picture = await client.call_tool("read_file", {"path": "dot.png"})
        asked_to_read = len(person.questions)
        edited = await client.call_tool("search_and_replace", {"path": "a.txt", "search": "two", "replace": "three"})
        refused_run = await client.call_tool("search_files", {"path": ".", "regex": "three"})
    assert names == ["read_file", "list_files", "search_files", "write_to_file", "apply_diff", "search_and_replace"]
    assert "2 | two" in said(read)
    assert [base64.b64decode(each.data) for each in picture.content if each.type == "image"] == [PIXEL]
    assert (asked_to_read, edited.is_error, (tmp_path / "a.txt").read_text()) == (0, False, "one\nthree\n")
    assert len(person.questions) == 1 and "a.txt" in person.questions[0]
    assert "three" in said(refused_run)


async def test_an_edit_of_a_client_can_be_taken_back(tmp_path: Path) -> None:
    """A3, S21: its calls make checkpoints, and are a task of the workspace."""
    (tmp_path / "a.txt").write_text("one\n")
    async with on_pipes(tmp_path, ERAS[0], Person(), "--tools", "all") as client:
        edited = await client.call_tool("write_to_file", {"path": "a.txt", "content": "two\n"})
        await ran(client, "echo made > b.txt")
    assert (edited.is_error, (tmp_path / "a.txt").read_text(), (tmp_path / "b.txt").exists()) == (False, "two\n", True)
    task = json.loads(tarmac("tasks", "--json", "--all").out)
    assert tarmac("tasks", "restore", task["id"], "--yes").code == 0
    assert ((tmp_path / "a.txt").read_text(), (tmp_path / "b.txt").exists()) == ("one\n", False)


@each_era
async def test_an_edit_that_is_denied_leaves_the_file_as_it_was(tmp_path: Path, era: str) -> None:
    """A3, P6."""
    (tmp_path / "a.txt").write_text("one\n")
    async with a_server(tmp_path) as server:
        server.offer = "all"
        async with client_of(server, era, Person(NO)) as client:
            told = await refused(client, "write_to_file", path="a.txt", content="other\n")
            assert len((await client.list_tools()).tools) == 17
    assert told.startswith("The person denied this")
    assert (tmp_path / "a.txt").read_text() == "one\n"


@each_era
async def test_a_client_that_goes_in_circles_is_told_so(tmp_path: Path, era: str) -> None:
    """S12, A3: the third equal call with an equal result is not made; another call, or another result, ends that."""
    async with connected(tmp_path, era) as client:
        for _ in range(2):
            assert (await ran(client, "pwd"))["exit_code"] == 0
        told = await refused(client, "run_command", command="pwd")
        assert (await ran(client, "ls"))["exit_code"] == 0
        assert (await ran(client, "pwd"))["exit_code"] == 0
        for number in range(4):
            (tmp_path / "log").write_text(f"{number}\n")
            assert (await ran(client, "cat log"))["output"] == f"{number}\n"
    assert "its result did not change: it was not made" in told


def test_a_wrong_choice_of_tools_is_a_clear_error(tmp_path: Path) -> None:
    outcome = tarmac("mcp", "--tools", "everything", "--cwd", str(tmp_path))
    assert (outcome.code, outcome.out) == (2, "")
    assert "terminals, files, all" in outcome.err and "everything" in outcome.err
