"""HTTP under /api/: what the page asks for once."""

import asyncio
import gzip
import json
import time
from pathlib import Path
from typing import Any

import pytest
from tests.web.served import Served, page, served
from tests.web.test_guard import request
from tests.web.test_page_socket import SCRIPT, asked, script

from tarmac.policy.grants import GrantFile
from tarmac.policy.verdict import SuggestedGrant
from tarmac.server.open_task import TaskHistory


class Reader:
    """Asks with a proof."""

    def __init__(self, server: Served) -> None:
        self._server, self._proof = server, server.proof()

    async def get(self, path: str) -> Any:
        status, _, body = await request(self._server, "GET", path, authorization=f"Bearer {self._proof}")
        return json.loads(body) if status == 200 else status

    async def raw(self, path: str) -> tuple[int, dict[str, str], bytes]:
        return await request(self._server, "GET", path, authorization=f"Bearer {self._proof}")

    async def post(self, path: str, body: object) -> Any:
        headers = {"authorization": f"Bearer {self._proof}", "content_type": "application/json"}
        return json.loads((await request(self._server, "POST", path, json.dumps(body).encode(), **headers))[2])


@pytest.mark.shell
async def test_a_task_is_read_in_parts(tmp_path: Path) -> None:
    """A4: the timeline by place, the records, a command's output, usage by day."""
    text = SCRIPT.replace("touch made-by-the-agent", "printf 'a\\\\nb\\\\n'; touch x").replace(
        'text = "I will look."', 'text = "I will look."\nusage = { input = 100, output = 7 }'
    )
    async with served(tmp_path, script=script(tmp_path, text)) as server, page(server.port, server.proof()) as one:
        reader = Reader(server)
        task = (await one.do("create", text="make the file"))["task"]
        question = await asked(one, task, "command")
        await one.do("answer", task=task, question=question["question"], kind="yes")
        await asked(one, task, "completion_result")
        whole = await reader.get(f"/api/tasks/{task}/timeline")
        assert [each["n"] for each in whole["items"]] == list(range(whole["length"]))
        part = await reader.get(f"/api/tasks/{task}/timeline?before=3&limit=2")
        assert part["items"] == whole["items"][1:3]
        tool = next(each for each in whole["items"] if each["kind"] == "tool" and each["state"] == "done")
        assert (tool["about"]["exit_code"], tool["about"]["kind"]) == (0, "tool_finished")
        asks = next(each for each in whole["items"] if each["kind"] == "command")
        assert asks["about"]["details"]["requests"][0]["kind"] == "Execute" and asks["answer"]["by"] == "web"
        records = (await reader.get(f"/api/tasks/{task}/records"))["records"]
        assert [each["seq"] for each in records] == list(range(1, len(records) + 1))
        if any(each["kind"] == "command_output" for each in records):
            status, headers, body = await reader.raw(f"/api/tasks/{task}/output/{tool['call']}?from=0&size=3")
            assert (status, body[:1], int(headers["x-size"]) > 3) == (200, b"a", True)
        usage = await reader.get("/api/usage")
        assert (usage["days"][0]["input"], usage["days"][0]["output"], len(usage["days"])) == (100, 7, 1)
        found = await reader.get("/api/tasks?q=make%20the%20file")
        assert found["found"][0]["task"] == task
        assert await reader.get("/api/tasks/none/timeline") == 404
        assert await reader.get(f"/api/tasks/{task}/blob/{'0' * 64}") == 404
        assert await reader.get(f"/api/tasks/{task}/timeline?limit=many") == 400


async def test_the_script_is_sent_compressed_to_who_can_read_that(tmp_path: Path) -> None:
    """A4: over a slow line, the page is there four times sooner."""
    async with served(tmp_path) as server:
        plain = await request(server, "GET", "/assets/a1.js")
        packed = await request(server, "GET", "/assets/a1.js", accept_encoding="br, gzip")
        assert "content-encoding" not in plain[1] and packed[1]["content-encoding"] == "gzip"
        assert gzip.decompress(packed[2]) == plain[2] == b"export {}\n"
        assert packed[1]["vary"] == "accept-encoding"


async def test_settings_have_their_default_and_origin(tmp_path: Path) -> None:
    """A4: a settings page with each value's default and origin."""
    async with served(tmp_path, auto="edits") as server:
        values = (await Reader(server).get("/api/settings"))["values"]
        assert (values["auto"]["value"], values["auto"]["default"]) == ("edits", "ask")
        assert values["auto"]["origin"]["place"] != "default" == values["mode"]["origin"]["place"]
        assert all(set(each) >= {"value", "default", "origin", "about"} for each in values.values())


async def test_grants_are_listed_and_taken_back(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        grants = GrantFile(server.server.state.store.folder.parent / "grants.json")
        made = grants.add(SuggestedGrant("line", "make"), scope="everywhere", risk="medium", workspace=tmp_path)
        reader = Reader(server)
        assert [each["id"] for each in (await reader.get("/api/grants"))["grants"]] == [made.id]
        assert (await reader.post("/api/grants/revoke", {"id": made.id}))["revoked"]["id"] == made.id
        assert (await reader.get("/api/grants"))["grants"] == []
        assert "error" in await reader.post("/api/grants/revoke", {"id": made.id})


async def test_the_composer_completes_files_commands_and_modes(tmp_path: Path) -> None:
    """A4: the same /commands and @files as at the terminal; a project's own command is expanded when it is said."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "app.py").touch()
    (tmp_path / ".tarmac" / "commands").mkdir(parents=True)
    (tmp_path / ".tarmac" / "commands" / "ship.md").write_text("Ship it to $1, please.")
    async with served(tmp_path, script=script(tmp_path)) as server, page(server.port, server.proof()) as one:
        reader = Reader(server)
        assert (await reader.get("/api/files?q=app"))["files"] == ["src/app.py"]
        offered = {each["name"]: each for each in (await reader.get("/api/commands"))["commands"]}
        assert offered["ship"]["what"] == "Ship it to $1, please." and "edits" in offered["auto"]["values"]
        assert "code" in [each["slug"] for each in (await reader.get("/api/modes"))["modes"]]
        task = (await one.do("create", text="/ship mars"))["task"]
        await one.until(lambda: one.tasks.get(task, {}).get("title") == "Ship it to mars, please.")
        assert (await one.ask("create", text="/shipp mars"))["error"]["what"] == "there is no command /shipp"


async def test_ten_thousand_items_open_within_a_second(tmp_path: Path) -> None:
    """A4: the last page of a long timeline; the figure is in the benchmarks, this only notices a disaster."""
    async with served(tmp_path) as server:
        store = server.server.state.store
        from tarmac.tasks.events import Noted

        async with store.create(workspace=tmp_path) as log:
            for number in range(10_000):
                log.add(Noted(at=time.time(), what="notice", text=f"line {number}"))
            await log.commit()
            task = log.folder.name
        reader = Reader(server)
        began = time.monotonic()
        found = await reader.get(f"/api/tasks/{task}/timeline")
        took = time.monotonic() - began
        assert (found["length"], len(found["items"]), found["items"][-1]["text"]) == (10_000, 200, "line 9999")
        assert took < 5
        past = await asyncio.to_thread(TaskHistory.read, store.folder / task)
        assert [each.place for each in past.changed_since(9_990)] == list(range(9989, 10_000))
