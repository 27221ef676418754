"""Kill −9 at any moment: nothing acknowledged is lost, the task opens and resumes, and knows what happened (S4)."""

import asyncio
import os
import random
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.tasks.engine import Seen, an_app, call, check_pairs, done, messages_of, turn, write_script

from tarmac.models.messages import Text
from tarmac.tasks.events import TaskEvent, ToolFinished, ToolStarted
from tarmac.tasks.log.reader import read_log
from tarmac.tasks.state import digest_of, fate, unfinished
from tarmac.tasks.views.model_history import model_messages

TIMES = int(os.environ.get("TARMAC_KILLS", "25"))
MOST_FACTS = 52  # about as many as the task has
DIFF = "<<<<<<< SEARCH\n:start_line:1\n-------\none\n=======\ntwo\n>>>>>>> REPLACE"
TURNS = (
    turn(call("write_to_file", path="a.txt", content="one\n" * 50), text="First a file."),
    turn(call("read_file", path="a.txt"), call("list_files", path=".")),
    turn(
        call("execute_command", command="echo ran >> runs.txt; sleep 0.02; echo printed"),
        call("write_to_file", path="b.txt", content="b\n"),
    ),
    turn(call("apply_diff", path="a.txt", diff=DIFF)),
    turn(call("execute_command", command="echo ran >> runs.txt; cat a.txt b.txt | wc -l")),
    *[done()] * 40,
)


class Nursery:
    """Children that work on tasks, one at a time."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def start(self, workspace: Path, model: str, task: str = "") -> int:
        assert self._process.stdin
        self._process.stdin.write(f"{workspace} {model} {task}\n".encode())
        return int((await self._next("pid"))[1])

    async def heard(self) -> list[str]:
        """The next thing that the child says."""
        assert self._process.stdout
        return (await self._process.stdout.readline()).decode().split()

    async def _next(self, kind: str) -> list[str]:
        while (line := await self.heard())[:1] != [kind]:
            assert line, "the nursery is gone"
        return line

    async def rest(self) -> list[list[str]]:
        """All that the child still said, until it was gone."""
        said = []
        while (line := await self.heard()) != ["gone"]:
            assert line, "the nursery is gone"
            said.append(line)
        return said


@asynccontextmanager
async def a_nursery(tmp_path: Path) -> AsyncIterator[Nursery]:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(Path(__file__).with_name("nursery.py")), stdin=pipe, stdout=pipe
    )
    try:
        nursery = Nursery(process)
        await nursery._next("ready")
        yield nursery
    finally:
        assert process.stdin
        process.stdin.close()
        await process.wait()


def _check_log(events: list[TaskEvent], acknowledged: int) -> None:
    assert len(events) >= acknowledged, "a fact that was durable is lost"
    check_pairs(model_messages(events))


@pytest.mark.shell
async def test_killed_at_random_moments_a_task_loses_nothing_and_resumes(tmp_path: Path, own_state: Path) -> None:
    """S4: kill −9, 25 times (TARMAC_KILLS for more), each time taken up again until it is done."""
    chance = random.Random(os.environ.get("TARMAC_SEED", "tarmac"))
    work = tmp_path / "work"
    model = write_script(tmp_path / "script.toml", *TURNS)
    killed = interrupted = files = 0
    async with a_nursery(tmp_path) as nursery:
        task = ""
        while killed < TIMES:
            if not task:
                work.mkdir(exist_ok=True)
                for each in work.iterdir():
                    each.unlink()
            child = os.pidfd_open(await nursery.start(work, model, task))
            acknowledged, ended = 0, False
            for _ in range(chance.randrange(MOST_FACTS)):  # near each kind of fact, and a moment after it
                kind, task, value = await nursery.heard()
                ended |= kind == "ended"
                if ended:
                    break
                acknowledged = int(value)
            await asyncio.sleep(chance.uniform(0, 0.03))
            try:
                signal.pidfd_send_signal(child, signal.SIGKILL)
            except ProcessLookupError:  # it was done before
                pass
            finally:
                os.close(child)
            said = await nursery.rest()
            task = next((each[1] for each in said), task)
            ended |= any(each[0] == "ended" for each in said)
            acknowledged = max([acknowledged, *(int(each[2]) for each in said if each[0] != "ended")])
            if not task:  # killed before it had a name
                continue
            events = read_log(own_state / "state/tasks" / task).events
            _check_log(events, acknowledged)
            if ended:
                task = ""
                continue
            killed += 1
            left = unfinished(events)
            interrupted += len(left)
            files += sum(len(each.started.intents) for each in left)
            if killed % 3 == 0:  # else it is killed again while it recovers
                await _resume(work, task, model, events)
                task = ""
    assert killed >= TIMES
    print(f"killed {killed} times, {interrupted} calls interrupted, {files} of files")


async def _resume(work: Path, task: str, model: str, before: list[TaskEvent]) -> None:
    """It is brought to its end, and what it says of interrupted calls is true."""
    fates = {
        each.started.call: [fate(intent, digest_of(intent.path)) for intent in each.started.intents]
        for each in unfinished(before)
    }
    async with an_app(work) as app, app.resume_task(task, model=model, auto="all", attended=False) as resumed:
        seen = Seen(resumed)
        ended = await resumed.run_until_idle()
        assert ended.why == "completed", ended
        await messages_of(resumed)
    finished = {each.call: each for each in seen.all if isinstance(each, ToolFinished)}
    for call_id, expected in fates.items():
        told = finished[call_id]
        assert told.outcome == "interrupted"
        text = "\n".join(part.text for part in told.content if isinstance(part, Text))
        said = re.findall(r"it was changed as intended|it was not changed|neither as before", text)
        words = {"happened": "it was changed as intended", "did not happen": "it was not changed"}
        assert said == [words.get(each, "neither as before") for each in expected]
    started = [each.call for each in (*before, *seen.all) if isinstance(each, ToolStarted)]
    assert len(started) == len(set(started)), "a call was made twice"
    runs = (work / "runs.txt").read_text().count("ran") if (work / "runs.txt").exists() else 0
    commands = [e for e in (*before, *seen.all) if isinstance(e, ToolStarted) and "runs.txt" in (e.command or "")]
    assert runs <= len(commands)
