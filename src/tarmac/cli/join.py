"""`tarmac join [ID]`: look on while another process works on a task, speak to it, answer its questions.

arguments → the process that has the task → JoinedTask ─TaskDriver→ what is seen

Leaving it stops nothing: the task goes on where it is open.
"""

import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tarmac.cli.exit_status import complain
from tarmac.cli.parser import parse
from tarmac.cli.shutdown import Stop, run
from tarmac.errors import BadRequest, TaskNotFound
from tarmac.show.look import look_of

if TYPE_CHECKING:
    from tarmac.events import TaskId
    from tarmac.server.joined_task import JoinedTask
    from tarmac.tasks.store import Listed, TaskStore


def main(arguments: list[str]) -> int:
    """Join a task; the exit status."""
    given, words = parse("join", arguments)
    id, text = (words[0], " ".join(words[1:])) if words else ("", "")
    try:
        return run(lambda stop: _join(id, text, stop, as_json="json" in given))
    except TaskNotFound as error:
        return complain(error.what, hint=error.hint)


async def _join(id: str, text: str, stop: Stop, *, as_json: bool) -> int:
    from tarmac.cli.tasks import open_store

    store = open_store()
    found = await _which(store, id)
    return await join_task(
        store, found.task, found.metadata.workspace or store.folder, stop, as_json=as_json, text=text
    )


async def join_task(
    store: "TaskStore", id: "TaskId", workspace: Path, stop: Stop, *, as_json: bool, text: str = ""
) -> int:
    """Look on at a task of another process from here, and say `text`; the exit status."""
    from tarmac.app import open_app
    from tarmac.cli.person import is_attended
    from tarmac.cli.task_driver import drive
    from tarmac.config import load_config
    from tarmac.server.joined_task import join

    config = load_config(workspace, os.environ, {})
    async with open_app(config) as app, join(store, id, client="cli") as task:
        task.attended = is_attended(as_json=as_json)
        return await drive(app, task, stop, as_json=as_json, words=text, header=joined_header(task))


async def _which(store: "TaskStore", id: str) -> "Listed":
    """The task of that id; without one the task that is at work, or the one that the person picks."""
    from tarmac.server.joined_task import process_with

    listed = await store.listing()
    if id:
        name = store.path(id).name
        return next(each for each in listed if each.task == name)
    active = [
        each
        for each in listed
        if process_with(store, each.task) and each.metadata.status in ("running", "waiting", "paused")
    ]
    active = [each for each in active if each.metadata.parent is None] or active
    if not active:
        raise BadRequest("no task is running", hint="`tarmac resume` continues an earlier one")
    if len(active) == 1:
        return active[0]
    if not (sys.stdin.isatty() and look_of(sys.stdout, os.environ).live):
        names = ", ".join(each.task for each in active[:5])
        raise BadRequest("several tasks are running", hint=f"say which: tarmac join ID ({names})")
    return await asyncio.to_thread(picked, store, active)


def joined_header(task: "JoinedTask") -> str:
    """What a person should know of a task that another process has open."""
    return f"joined task {task.id} · another process runs it · Ctrl-D leaves it running"


def picked(store: "TaskStore", listed: "list[Listed]") -> "Listed":
    """The task that the person picks from a list."""
    from tarmac.cli.tasks import is_at_work
    from tarmac.show.look import one_line, padded
    from tarmac.show.summary import status, when

    for place, each in enumerate(listed, 1):
        meta = each.metadata
        state = padded(status(meta, at_work=is_at_work(store, each.task)), 11)
        print(f"  {place:>2}  {padded(when(meta.at), 11)} {state} {one_line(meta.name)[:60]}")
    while True:
        try:
            line = input(f"Which task? 1 to {len(listed)} (Enter: 1) ").strip() or "1"
        except EOFError:
            raise BadRequest("no task was chosen") from None
        if line.isdecimal() and 1 <= int(line) <= len(listed):
            return listed[int(line) - 1]
        print(f"  `{one_line(line)}` is not on the list")
