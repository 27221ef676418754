"""What the server keeps, counted in objects: pages and tasks that are gone leave none, and a step leaves its facts."""

import asyncio
import gc
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.web.served import PATIENCE, Page, page, served

STEP = """
[[turn]]
text = "Step {n}."
[[turn.call]]
name = "execute_command"
arguments = {{ command = "echo step-{n}" }}
"""
END = """
[[turn]]
[[turn.call]]
name = "attempt_completion"
arguments = { result = "Counted." }
"""
CYCLES = 12
SETTINGS: dict[str, Any] = {"auto": "all", "policy.cache_size": 2}  # what the policy remembers is limited
# What a task has done is in memory as long as it is open: its facts, and what is folded from them.
CONVERSATION = ("tarmac.tasks.events.", "tarmac.tasks.views.", "tarmac.models.messages.")
ROW = ("tarmac.tasks.store.Listed", "tarmac.tasks.views.metadata.")  # in the list of tasks, 500 at most
# The last thousand commands of a terminal, the last thousand marks of its tape.
BOUNDED = ("tarmac.terminals.terminal.Past", "tarmac.terminals.output.tape.Command")


def script(folder: Path, steps: int) -> Path:
    made = folder / "script.toml"
    made.write_text("".join(STEP.format(n=n) for n in range(steps)) + END)
    return made


def objects() -> Counter[str]:
    """How many there are of each type, of ours and of what serves us. Strings and numbers are not counted."""
    gc.collect()
    kinds = Counter(f"{type(each).__module__}.{type(each).__qualname__}" for each in gc.get_objects())
    ours = ("tarmac.", "asyncio.", "_asyncio.", "websockets.", "uvicorn.", "starlette.", "builtins.coroutine")
    return Counter({kind: count for kind, count in kinds.items() if kind.startswith(ours)})


async def grown(before: Counter[str], *, cycles: int, but: tuple[str, ...] = ()) -> dict[str, int]:
    """The types that grew with the cycles, once what is on its way out is gone."""
    end = time.monotonic() + PATIENCE
    while True:
        found = {kind: count for kind, count in (objects() - before).items() if count > cycles / 2}
        if time.monotonic() > end or not any(not kind.startswith(but) for kind in found):
            return found
        await asyncio.sleep(0.1)


async def completed(at: Page, task: str) -> str:
    """Wait for the result; its question."""
    await at.until(lambda: any(each["ask"] == "completion_result" for each in at.questions(task)))
    return str(at.questions(task)[0]["question"])


@pytest.mark.shell
async def test_pages_that_come_and_go_leave_nothing_in_the_server(tmp_path: Path) -> None:
    """A4: each follows the task, watches its terminal, and has the keyboard for a while."""
    async with served(tmp_path, script=script(tmp_path, 3), **SETTINGS) as server:
        proof = server.proof()
        async with page(server.port, proof) as first:
            task = (await first.do("create", text="count"))["task"]
            await completed(first, task)
            mine = (await first.do("open", task=task))["terminal"]

        async def visit() -> None:
            async with page(server.port, proof) as one:
                await one.do("follow", task=task, after=0)
                for terminal in one.terminals:
                    await one.do("watch", terminal=terminal, **{"from": None})
                epoch = (await one.do("take", terminal=mine))["epoch"]
                await one.do("input", terminal=mine, epoch=epoch, data="half a li")
                await one.until(lambda: "half a li" in one.screen(mine).text())
                await one.do("give", terminal=mine, epoch=epoch)

        for _ in range(3):
            await visit()
        before = objects()
        for _ in range(CYCLES):
            await visit()
        assert await grown(before, cycles=CYCLES) == {}


@pytest.mark.shell
async def test_a_task_that_was_closed_leaves_its_row_in_the_list_and_nothing_else(tmp_path: Path) -> None:
    """A4."""
    async with (
        served(tmp_path, script=script(tmp_path, 2), **SETTINGS) as server,
        page(server.port, server.proof()) as one,
    ):

        async def work() -> None:
            task = (await one.do("create", text="count"))["task"]
            await one.do("follow", task=task, after=0)
            question = await completed(one, task)
            await one.do("answer", task=task, question=question, kind="yes")
            await one.do("shut", task=task)
            await one.do("unfollow", task=task)
            one.frames.clear()

        for _ in range(3):
            await work()
        before = objects()
        for _ in range(CYCLES):
            await work()
        left = await grown(before, cycles=CYCLES, but=ROW)
    assert {kind for kind in left if not kind.startswith(ROW)} == set()
    assert "tarmac.tasks.store.Listed" in left


@pytest.mark.shell
async def test_a_step_leaves_its_facts_and_nothing_else(tmp_path: Path) -> None:
    """A4."""
    steps = 60
    async with (
        served(tmp_path, script=script(tmp_path, 2 * steps), **SETTINGS) as server,
        page(server.port, server.proof()) as one,
    ):
        task = (await one.do("create", text="count"))["task"]
        await one.do("follow", task=task, after=0)

        def done() -> int:
            return len(one.records(task, "tool_finished"))

        await one.until(lambda: done() >= steps // 2)
        before, began = objects(), done()
        await completed(one, task)
        left = await grown(before, cycles=done() - began, but=CONVERSATION + BOUNDED)
    assert {kind for kind in left if not kind.startswith(CONVERSATION + BOUNDED)} == set()
    assert "tarmac.tasks.events.ToolFinished" in left
