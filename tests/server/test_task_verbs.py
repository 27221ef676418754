"""`tarmac run --server` and `tarmac tasks pause|unpause|cancel|clear|delete`, on a server in a process of its own."""

import asyncio
import json
import os
from functools import partial
from pathlib import Path

import pytest
from tests.cli.conftest import Outcome, read_until, running, tarmac
from tests.server.test_join import proof_of
from tests.web.served import page, program
from tests.web.test_page_socket import asked, script

from tarmac.cli.tasks import control, open_store
from tarmac.errors import TaskNotFound

pytestmark = [pytest.mark.shell, pytest.mark.slow]


async def cli(*arguments: str) -> Outcome:
    return await asyncio.to_thread(partial(tarmac, *arguments))


async def test_a_task_is_created_in_the_server_and_controlled_from_other_processes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """S2, F8: create, show, pause, unpause, cancel, clear and delete; the page sees each at once."""
    with program(tmp_path, script(tmp_path)) as server:
        async with page(server.port, await proof_of(server.port, server.token)) as one:
            made = await cli("run", "--detach", "--json", "--auto", "ask", "--cwd", str(tmp_path), "make the file")
            assert made.code == 0, made.err
            task = json.loads(made.out)["task"]
            await asked(one, task, "command")
            assert (one.tasks[task]["title"], one.tasks[task]["level"]) == ("make the file", "ask")

            assert (await cli("tasks", "pause", task[:6])).out == f"paused: {task} (make the file)\n"
            await one.until(lambda: one.tasks[task]["status"] == "paused")
            store = open_store()

            async def control_(verb: str) -> tuple[int, str, str]:
                return await control(store, verb, [task], {"json": []}), *capsys.readouterr()

            assert await control_("unpause") == (0, f'{{"unpaused": "{task}"}}\n', "")
            await one.until(lambda: one.tasks[task]["status"] == "waiting")
            assert await control_("cancel") == (0, f'{{"cancelled": "{task}"}}\n', "")
            await one.until(lambda: not one.tasks[task]["running"])
            code, out, err = await control_("cancel")
            assert (code, out, err.splitlines()[0]) == (
                1,
                "",
                f"tarmac: task {task} is not running: there is nothing to cancel",
            )
            assert await control_("clear") == (0, f'{{"cleared": "{task}"}}\n', "")
            await one.until(lambda: not one.tasks[task]["open"])
            code, _, err = await control_("pause")
            assert (code, err.splitlines()[0]) == (1, f"tarmac: no process works on the task {task}")
            await one.do("resume", task=task)
            assert json.loads((await cli("tasks", "delete", task, "--yes", "--json")).out) == {"deleted": task}
            await one.until(lambda: task not in one.tasks)


async def test_run_server_joins_what_it_created_and_ends_with_it(tmp_path: Path) -> None:
    """F8: `tarmac run --server` prints the task as `tarmac run` does; when it is done it is still the server's."""
    text = '[[turn]]\ntext = "What next?"\n'
    with program(tmp_path, script(tmp_path, text)) as server:
        async with page(server.port, await proof_of(server.port, server.token)) as one:
            done = await cli("run", "--server", "--json", "--cwd", str(tmp_path), "hello")
            assert done.code == 0, done.err
            end = json.loads(done.out.splitlines()[-1])
            await one.until(lambda: end["task"] in one.tasks)
            row = one.tasks[end["task"]]
            assert (end["end"], row["open"], row["elsewhere"]) == ("idle", True, False)
            assert "What next?" in done.out
            told = await cli("run", "--server", "--cwd", str(tmp_path), "say it once")
            assert (told.code, told.out.count("say it once"), told.out.count("What next?")) == (0, 1, 1), told


async def test_join_in_a_pipe_shows_what_is_asked_and_where_it_is_answered(tmp_path: Path) -> None:
    """F8: the question was open before; it is answered in another window, and the pipe tells the rest."""
    with program(tmp_path, script(tmp_path)) as server:
        async with page(server.port, await proof_of(server.port, server.token)) as one:
            made = await cli("run", "--detach", "--auto", "ask", "--cwd", str(tmp_path), "make the file")
            task = made.out.strip()
            question = await asked(one, task, "command")
            with running("join", task) as joined:
                assert joined.stdout is not None
                shown = joined.stdout.fileno()
                seen = (await asyncio.to_thread(read_until, shown, b"on a terminal, or the page")).decode()
                assert (seen.count("make the file"), "Run this command?" in seen) == (1, True), seen
                assert f"`tarmac join {task}` on a terminal" in seen
                await one.do("answer", task=task, question=question["question"], kind="yes")
                await asyncio.to_thread(read_until, shown, "✓ Done".encode())
                assert await asyncio.to_thread(joined.wait, 60) == 0


async def test_what_can_not_be_controlled_is_said_with_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """S2: an unknown task, one that is done, no server, an option that only the server has."""
    with pytest.raises(TaskNotFound, match="there is no task `nope`"):
        await control(open_store(), "pause", ["nope"], {})
    nobody = await cli("join", "nope", "hello", "--json")
    assert (nobody.code, nobody.err.splitlines()[0]) == (2, "tarmac: there is no task `nope`")
    ran = await cli("run", "--script", str(script(tmp_path)), "--auto", "all", "--cwd", str(tmp_path), "--json", "go")
    task = json.loads(ran.out.splitlines()[-1])["task"]
    assert await control(open_store(), "cancel", [task], {}) == 1
    said = capsys.readouterr().err.splitlines()[0]
    assert said == f"tarmac: task {task} is completed: there is nothing to cancel"
    none = await cli("run", "--server", "hello")
    assert (none.code, none.err.splitlines()[0]) == (2, "tarmac: no `tarmac serve` is running")
    more = await cli("run", "--detach", "--max-cost", "3", "hello")
    assert (more.code, more.err.splitlines()[0]) == (2, "tarmac: a task in the server takes no --max-cost")
    (Path(os.environ["TARMAC_STATE_DIR"]) / "web.json").write_text(
        json.dumps({"pid": os.getpid(), "port": 1, "workspace": "", "open": [], "proofs": [], "secret": ""})
    )
    old = await cli("run", "--detach", "hello")
    assert (old.code, old.err.splitlines()[0]) == (
        2,
        f"tarmac: process {os.getpid()} can't be asked for a task: it does not accept connections",
    )
