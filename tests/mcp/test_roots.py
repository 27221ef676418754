"""Terminals belong to the client's workspace: where it is, each era says in its own way."""

import asyncio
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError
from tests.mcp.peers import ERAS, Person, a_server, call, client_of, ran, refused, whole

pytestmark = pytest.mark.shell
each_era = pytest.mark.parametrize("era", ERAS)


class Working:
    """A client's folders; how often they were asked for."""

    def __init__(self, *folders: Path | str) -> None:
        self.folders, self.asked = folders, 0

    async def __call__(self, _: Any) -> types.ListRootsResult:
        self.asked += 1
        uris = [each if isinstance(each, str) else each.as_uri() for each in self.folders]
        return types.ListRootsResult(roots=[types.Root.model_validate({"uri": each}) for each in uris])


@each_era
async def test_the_workspace_is_where_the_client_works(tmp_path: Path, era: str) -> None:
    """A3: its first root that is a folder of this machine; a name with spaces and a percent sign is one, too."""
    folder = tmp_path / "my project 100%"
    folder.mkdir()
    roots = Working("file://elsewhere/srv", f"file://{tmp_path}/gone", folder)
    async with a_server(None, here=Path("/")) as server, client_of(server, era, list_roots_callback=roots) as client:
        result = await ran(client, "pwd")
    assert result["output"] == f"{folder}\n"


@each_era
async def test_a_client_in_another_folder_has_other_terminals(tmp_path: Path, era: str) -> None:
    """A3: what one opened, and what was printed in it, is not there for a client that works elsewhere."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    first, second = Working(tmp_path / "one"), Working(tmp_path / "two")
    async with a_server(None, here=Path("/")) as server:
        async with client_of(server, era, Person(), list_roots_callback=first) as client:
            id = (await call(client, "open_persistent_terminal"))["id"]
            printed = await call(client, "run_persistent_command", id=id, command="X=1; echo $X; touch made")
            uri = f"tarmac://terminals/{printed['terminal_id']}/{printed['number']}"
            assert await whole(client, uri) == "1\n"
        async with client_of(server, era, Person(), list_roots_callback=second) as client:
            server.roots_changed("")  # in one process two clients share the pipe's place
            assert (await call(client, "list_terminals"))["terminals"] == []
            assert f"Terminal {id} not found" in await refused(client, "read_terminal", id=id)
            with pytest.raises(Exception, match="not found"):
                await client.read_resource(uri)
    assert (tmp_path / "one" / "made").exists()


@each_era
async def test_one_folder_under_two_names_is_one_workspace(tmp_path: Path, era: str) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "link").symlink_to("project")
    roots = Working(tmp_path / "project")
    async with a_server(None, here=Path("/")) as server, client_of(server, era, list_roots_callback=roots) as client:
        await call(client, "open_persistent_terminal")
        roots.folders = (tmp_path / "link",)
        server.roots_changed("")
        assert len((await call(client, "list_terminals"))["terminals"]) == 1


async def test_in_the_stateless_era_a_question_does_not_lose_the_folder(tmp_path: Path) -> None:
    """A3: folder and answer come with two calls; the second needs no third, and the folder can't be changed by then."""
    for name in ("shown", "other"):
        (tmp_path / name).mkdir()
    roots, person = Working(tmp_path / "shown"), Person()
    async with (
        a_server(None, here=Path("/")) as server,
        client_of(server, ERAS[0], person, list_roots_callback=roots) as client,
    ):
        await ran(client, "touch made")
        assert (len(person.questions), roots.asked) == (1, 1)
        assert str(tmp_path / "shown") in person.questions[0]
        session, arguments = client.session, {"command": "touch again"}
        wanted = await session.call_tool("run_command", arguments, allow_input_required=True)
        assert isinstance(wanted, types.InputRequiredResult) and wanted.input_requests
        assert list(wanted.input_requests) == ["roots"]
        asked = await session.call_tool(
            "run_command",
            arguments,
            input_responses={"roots": await roots(None)},
            request_state=wanted.request_state,
            allow_input_required=True,
        )
        assert isinstance(asked, types.InputRequiredResult)
        await asyncio.sleep(0.25)
        roots.folders = (tmp_path / "other",)
        yes: Any = types.ElicitResult(action="accept", content={"decision": "Allow once"})
        done = await session.call_tool(
            "run_command",
            arguments,
            input_responses={"approval": yes, "roots": await roots(None)},
            request_state=asked.request_state,
            allow_input_required=True,
        )
    assert isinstance(done, types.CallToolResult) and not done.is_error
    assert sorted(each.name for each in (tmp_path / "shown").iterdir()) == ["again", "made"]
    assert list((tmp_path / "other").iterdir()) == []


async def test_a_client_that_does_not_answer_where_it_works_is_not_asked_for_ever(tmp_path: Path) -> None:
    async with (
        a_server(None, here=tmp_path) as server,
        client_of(server, ERAS[0], list_roots_callback=Working()) as client,
    ):
        wanted = await client.session.call_tool("run_command", {"command": "pwd"}, allow_input_required=True)
        assert isinstance(wanted, types.InputRequiredResult)
        told = await client.session.call_tool(
            "run_command", {"command": "pwd"}, request_state=wanted.request_state, allow_input_required=True
        )
    assert isinstance(told, types.CallToolResult)
    assert told.structured_content["output"] == f"{tmp_path}\n"


@each_era
async def test_an_address_that_is_nobodys_is_refused_before_the_folders_are_asked_for(tmp_path: Path, era: str) -> None:
    """A3: with the same error in both eras."""
    roots = Working(tmp_path)
    async with a_server(None, here=Path("/")) as server, client_of(server, era, list_roots_callback=roots) as client:
        with pytest.raises(MCPError) as failed:
            await client.read_resource("tarmac://nothing/here")
    assert (failed.value.error.code, roots.asked) == (-32602, 0)
