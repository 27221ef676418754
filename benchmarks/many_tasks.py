"""A hundred tasks at once in one process, each running commands: how long one callback keeps all others waiting."""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from time import perf_counter

from benchmarks.home import private_home
from benchmarks.loop_lag import timed_callbacks
from benchmarks.rounds import Goal, Row
from tarmac.app import open_app
from tarmac.config import Config

SCRIPT = """[[turn]]
text = "I look around."
[[turn.call]]
name = "read_file"
arguments = { path = "module.py" }
[[turn.call]]
name = "execute_command"
arguments = { command = "touch made; seq 200" }
[[turn]]
[[turn.call]]
name = "execute_command"
arguments = { command = "ls -l | tail -3" }
[[turn]]
[[turn.call]]
name = "attempt_completion"
arguments = { result = "Done." }
"""


def measure(*, quick: bool) -> Iterator[Row]:
    many = 10 if quick else 100
    with private_home() as home:
        longest, what, seconds = asyncio.run(_all(home, many))
    note = f"{what}; all in {seconds:.1f} s"
    goal = Goal("≤", 50, "ours")
    yield Row(what=f"{many} tasks at once, the longest stall", ours=longest * 1e3, unit="ms", goal=goal, note=note)


async def _all(home: Path, many: int) -> tuple[float, str, float]:
    work = home / "work"
    work.mkdir()
    (work / "module.py").write_text("import os\n" * 30)
    (home / "script.toml").write_text(SCRIPT)
    model = f"scripted/{home / 'script.toml'}"
    config = Config(workspace=work, user_folder=home / "none", values={"terminals.max_terminals": many})
    async with open_app(config) as app, AsyncExitStack() as stack:
        tasks = [
            await stack.enter_async_context(app.create_task("Look.", model=model, auto="all", attended=False))
            for _ in range(many)
        ]
        start = perf_counter()
        with timed_callbacks() as longest:
            ended = await asyncio.gather(*(task.run_until_idle() for task in tasks))
        assert {each.why for each in ended} == {"completed"}, ended
        return *longest[0], perf_counter() - start
