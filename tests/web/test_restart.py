"""The server is killed and started again: its pages come back by themselves, its tasks from their logs."""

import asyncio
import http.client
import json
import os
import signal
from pathlib import Path

import pytest
from tests.cli.conftest import tarmac
from tests.web.served import PATIENCE, Page, Program, page, program, served
from tests.web.test_page_socket import SCRIPT, TALK, asked, script

from tarmac.web.run_file import RunFile, ServerRun


def redeemed(server: Program) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
    try:
        body = json.dumps({"token": server.token})
        connection.request("POST", "/api/session", body, {"content-type": "application/json"})
        return str(json.loads(connection.getresponse().read())["proof"])
    finally:
        connection.close()


async def begun(at: Page, ask: str) -> str:
    task = (await at.do("create", text="make the file"))["task"]
    await asked(at, task, ask)
    return str(task)


@pytest.mark.shell
@pytest.mark.slow
async def test_a_killed_server_comes_back_with_its_port_its_pages_and_its_tasks(tmp_path: Path) -> None:
    """A4, F8: nothing lost, nothing twice: the command that was asked about is asked about again, and runs once."""
    made = script(tmp_path, SCRIPT.replace("touch made-by-the-agent", "echo once >> made-by-the-agent"))
    with program(tmp_path, made) as first:
        proof = await asyncio.to_thread(redeemed, first)
        async with page(first.port, proof) as one:
            task = await begun(one, "command")
            await one.do("follow", task=task, after=0)
            before = one.records(task)
            await asyncio.to_thread(first.kill)
    with program(tmp_path, made) as second:
        assert second.port == first.port
        async with page(second.port, proof) as two:
            again = await asked(two, task, "resume_task")
            await two.do("follow", task=task, after=len(before))
            await two.do("answer", task=task, question=again["question"], kind="yes")
            question = await asked(two, task, "command")
            await two.do("answer", task=task, question=question["question"], kind="yes")
            await asked(two, task, "completion_result")
            seqs = [each["seq"] for each in (*before, *two.records(task))]
            assert seqs == list(range(1, len(seqs) + 1))
            assert (tmp_path / "made-by-the-agent").read_text() == "once\n"


@pytest.mark.slow
async def test_a_server_that_is_ended_leaves_its_tasks_in_order(tmp_path: Path) -> None:
    """F8."""
    with program(tmp_path, script(tmp_path, TALK)) as first:
        proof = await asyncio.to_thread(redeemed, first)
        async with page(first.port, proof) as one:
            task = await begun(one, "followup")
            first.process.send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(first.process.wait, PATIENCE) == 128 + signal.SIGTERM
    shown = await asyncio.to_thread(tarmac, "tasks", "show", task, "--json")
    assert json.loads(shown.out.splitlines()[-1])["kind"] == "task_saved"


@pytest.mark.slow
async def test_a_task_of_another_process_is_followed_and_can_be_taken_over_when_that_has_ended(tmp_path: Path) -> None:
    """A4, F8: a second front end on the same task: the page follows its log, live."""
    made = script(tmp_path, TALK)
    async with served(tmp_path, script=made) as server, page(server.port, server.proof()) as one:
        argv = ["run", "--json", "--script", str(made), "--cwd", str(tmp_path), "paint"]
        running = asyncio.create_task(asyncio.to_thread(tarmac, *argv))
        await one.until(lambda: one.tasks)
        task = next(iter(one.tasks))
        await one.do("follow", task=task, after=0)
        await running
        await one.until(lambda: one.records(task, "task_saved"))
        seqs = [each["seq"] for each in one.records(task)]
        assert seqs == list(range(1, len(seqs) + 1))


def test_what_the_disk_knows_lets_nobody_in_and_only_its_user_reads_it(tmp_path: Path) -> None:
    kept = RunFile(tmp_path / "state")
    assert kept.read() == ServerRun()
    run = ServerRun(pid=os.getpid(), port=5, workspace="/w", open=("a",), proofs=(("digest", 1.0),), secret="s")
    kept.write(run)
    assert kept.read() == run and run.alive
    assert (tmp_path / "state" / "web.json").stat().st_mode & 0o777 == 0o600
    kept.leave()
    assert (kept.read().alive, kept.read().secret, kept.read().port) == (False, "", 5)
    (tmp_path / "state" / "web.json").write_text("{damaged")
    assert kept.read() == ServerRun()
