"""What a terminal shows, for MCP clients: the screen as text, and resources that tell when they change."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import jsonschema
import mcp_types as types
import pytest
from mcp.client.client import Client
from tests.mcp.peers import ERAS, PATIENCE, Person, a_pipe, a_server, call, client_of, connected, refused, until, whole

from tarmac.mcp.resources import EVERY

pytestmark = pytest.mark.shell
each_era = pytest.mark.parametrize("era", ERAS)
MODERN = ERAS[0]
Require = Callable[[str], None]


async def started(client: Client, command: str) -> tuple[str, dict[str, Any]]:
    """A full-screen program in a terminal of its own: the terminal's id, and the result."""
    id = (await call(client, "open_persistent_terminal"))["id"]
    command = f"TERM=xterm-256color {command}"
    return id, await call(client, "run_persistent_command", id=id, command=command, timeout=10)


@each_era
async def test_a_file_is_edited_in_vim_with_one_look_after_the_other(
    tmp_path: Path, era: str, require: Require
) -> None:
    """A3, T28: first all rows, then those that changed; `full` shows all again."""
    require("vim")
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    async with connected(tmp_path, era, Person()) as client:
        schemas = {each.name: each.output_schema for each in (await client.list_tools()).tools}
        id, begun = await started(client, "vim -u NONE -N a.txt")
        again = await call(client, "look_at_terminal", id=id)
        sent = await call(client, "send_to_terminal", id=id, keys="G o")
        typed = await call(client, "send_to_terminal", id=id, text="three", enter=False)
        full = await call(client, "look_at_terminal", id=id, full=True)
        resource = await whole(client, f"tarmac://terminals/{id}/screen")
        listed = [each.uri for each in (await client.list_resources()).resources]
        await call(client, "send_to_terminal", id=id, keys="Escape")
        await call(client, "send_to_terminal", id=id, text=":wq")
    assert "▸ 1 │ ▮one" in begun["output"]  # the call that starts it shows it
    assert "[unchanged: rows 2–40]" in again["output"]
    assert "[unchanged: rows" in sent["output"] + typed["output"]
    assert (again["terminal"]["state"], again["terminal"]["screen"]["alternate"]) == ("waiting", True)
    for name, data in (("look_at_terminal", again), ("send_to_terminal", sent), ("look_at_terminal", full)):
        jsonschema.validate(data, schemas[name])
    for text in (full["output"], resource):
        assert "  1 │ one" in text and "  2 │ two" in text and "▸ 3 │ three▮" in text
    assert f"tarmac://terminals/{id}/screen" in listed
    assert (tmp_path / "a.txt").read_text() == "one\ntwo\nthree\n"


@each_era
async def test_a_secret_on_a_screen_is_withheld(tmp_path: Path, era: str) -> None:
    """A3, S10: the row in which it is typed is not shown, neither by the tool nor by the resource."""
    draw = r"printf '\033[?1049h\033[2J\033[2;1Hsign in\033[5;1H'; read -s -p 'PIN 1234: ' p"
    async with connected(tmp_path, era, Person()) as client:
        id, _ = await started(client, f"true; {draw}")
        shown = [(await call(client, "look_at_terminal", id=id, full=True))["output"]]
        shown.append(await whole(client, f"tarmac://terminals/{id}/screen"))
    for text in shown:
        assert "sign in" in text and "withheld" in text and "1234" not in text


async def test_a_terminal_that_is_not_there_has_no_screen(tmp_path: Path) -> None:
    """A3."""
    async with connected(tmp_path, MODERN) as client:
        assert "Terminal t99 not found" in await refused(client, "look_at_terminal", id="t99")
        with pytest.raises(Exception, match="not found"):
            await client.read_resource("tarmac://terminals/t99/screen")
        with pytest.raises(Exception, match="no resource"):
            await client.read_resource("tarmac://terminals/t99/screen?from=0")


@asynccontextmanager
async def hearing(folder: Path, era: str, *endings: str) -> AsyncIterator[tuple[Client, str, list[str]]]:
    """A client that subscribed to resources of one terminal: the terminal's id, and what changed."""
    heard: list[str] = []

    async def hear(message: Any) -> None:
        if isinstance(message, types.ResourceUpdatedNotification):
            heard.append(str(message.params.uri))

    handler = {"message_handler": hear} if era != MODERN else {}  # there the stream tells it
    async with a_server(folder) as server, client_of(server, era, Person(), **handler) as client:
        id = (await call(client, "open_persistent_terminal"))["id"]
        addresses = [f"tarmac://terminals/{id}{each}" for each in endings]
        if era != MODERN:
            for each in addresses:
                await client.session.subscribe_resource(each)
            yield client, id, heard
            return
        async with client.listen(resource_subscriptions=addresses, tools_list_changed=True) as stream:

            async def follow() -> None:
                async for event in stream:
                    heard.append(event.uri)  # type: ignore[union-attr]  # noqa: PERF401

            following = asyncio.create_task(follow())
            try:
                yield client, id, heard
            finally:
                following.cancel()
                await asyncio.gather(following, return_exceptions=True)


@each_era
@pytest.mark.filterwarnings("ignore:resources/subscribe is removed")
async def test_who_subscribed_hears_of_a_change_and_reads_it(tmp_path: Path, era: str) -> None:
    """A3: `resources/subscribe`, or a stream (2026-07-28); only of what was asked for."""
    async with hearing(tmp_path, era, "", "/screen") as (client, id, heard):
        await call(client, "run_persistent_command", id=id, command="X=1; echo said $X")
        await until(lambda: set(heard) == {f"tarmac://terminals/{id}", f"tarmac://terminals/{id}/screen"})
        assert await whole(client, heard[0]) == "said 1\n"
        before = len(heard)
        await call(client, "kill_persistent_terminal", id=id)
        await until(lambda: len(heard) > before)
    assert f"tarmac://terminals/{id}/1" not in heard


@each_era
@pytest.mark.filterwarnings("ignore:resources/subscribe is removed")
async def test_however_much_is_printed_the_news_come_once_a_second(tmp_path: Path, era: str) -> None:
    """A3: rate-limited for each terminal."""
    async with hearing(tmp_path, era, "") as (client, id, heard):
        began = time.monotonic()
        command = "for n in $(seq 600); do echo $n; sleep 0.002; done"
        await call(client, "run_persistent_command", id=id, command=command, timeout=38)
        await until(lambda: len(heard) >= 2)
        lasted = time.monotonic() - began
    assert len(heard) <= lasted / EVERY + 2


@pytest.mark.filterwarnings("ignore:resources/")
async def test_a_subscription_ends_when_it_is_taken_back(tmp_path: Path) -> None:
    """A3: and one to what is not there is refused."""
    async with hearing(tmp_path, "legacy", "", "/screen") as (client, id, heard):
        await client.session.unsubscribe_resource(f"tarmac://terminals/{id}")
        await client.session.unsubscribe_resource("tarmac://terminals/t99")  # nobody minds
        await call(client, "run_persistent_command", id=id, command="X=1; echo said $X")
        await until(lambda: heard)
        for address in ("tarmac://terminals/t99", "tarmac://terminals/t99/screen", f"tarmac://terminals/{id}/9"):
            with pytest.raises(Exception, match=r"not found|no command"):
                await client.session.subscribe_resource(address)
    assert set(heard) == {f"tarmac://terminals/{id}/screen"}


def test_an_open_stream_does_not_keep_the_server(tmp_path: Path) -> None:
    """A3: a client that hangs up with a stream open is gone."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    wanted = {"resourceSubscriptions": ["tarmac://terminals/t1"], "toolsListChanged": True}
    with a_pipe(tmp_path) as pipe:
        pipe.send("subscriptions/listen", {"_meta": meta, "notifications": wanted})
        said = pipe.until(lambda each: each.get("method") == "notifications/subscriptions/acknowledged")
        assert said["params"]["notifications"] == {"resourceSubscriptions": ["tarmac://terminals/t1"]}
        began = time.monotonic()
        assert pipe.close() == 0
        assert time.monotonic() - began < PATIENCE / 2
