"""A process that starts tasks in children of its own, ready to be killed: it imports everything once, then forks.

It reads lines `workspace script [task]` and answers each with the child's process id; the child says each fact that is
durable, by its number, and ends when its task has.
"""

import asyncio
import os
import sys
from contextlib import AsyncExitStack
from pathlib import Path

from tarmac.app import open_app
from tarmac.config import Config


async def work(workspace: Path, model: str, task: str | None) -> None:
    async with AsyncExitStack() as stack:
        app = await stack.enter_async_context(open_app(Config(workspace=workspace, user_folder=workspace / "no")))
        opened = (
            app.resume_task(task, model=model, auto="all", attended=False)
            if task
            else app.create_task("Do it.", model=model, auto="all", attended=False)
        )
        running = await stack.enter_async_context(opened)
        running.subscribe(lambda seq, _: say(f"fact {running.id} {seq}") if seq else None)
        say(f"task {running.id} {running.log.seq}")
        ended = await running.run_until_idle()
        say(f"ended {running.id} {ended.why}")


def say(line: str) -> None:
    os.write(1, f"{line}\n".encode())


def main() -> None:
    say("ready")
    for line in sys.stdin:
        workspace, model, *task = line.split()
        pid = os.fork()
        if pid == 0:
            os.setsid()
            try:
                asyncio.run(work(Path(workspace), model, task[0] if task else None))
            finally:
                os._exit(0)
        say(f"pid {pid}")
        os.waitpid(pid, 0)
        say("gone")


if __name__ == "__main__":
    main()
