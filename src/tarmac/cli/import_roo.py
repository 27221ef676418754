"""`tarmac import roo DIR`: import the tasks, modes and settings of Roo-Code. Its files are only read."""

import asyncio
import json
import sys
import time
from pathlib import Path

from tarmac.cli.exit_status import complain
from tarmac.cli.parser import parse
from tarmac.cli.roo_settings import settings_of, take_settings
from tarmac.cli.shutdown import run
from tarmac.cli.tasks import open_store
from tarmac.errors import BadRequest, ImportFailed
from tarmac.events import TaskId
from tarmac.paths import shown
from tarmac.show.look import cut, one_line
from tarmac.tasks.events import KeptFile, TaskImported
from tarmac.tasks.roo import RooTask, find_tasks, read_task
from tarmac.tasks.roo.importer import began, facts_of, workspace_of
from tarmac.tasks.store import TaskStore
from tarmac.tasks.views.metadata import metadata


def main(arguments: list[str]) -> int:
    """Import what is there; 1 if some of it could not be imported."""
    given, words = parse("import", arguments)
    if words[:1] != ["roo"]:
        what = f"tasks of `{words[0]}` can't be taken in" if words else "from which program, and from where?"
        raise BadRequest(what, hint="tarmac import roo DIR")
    if len(words) != 2:
        raise BadRequest("`import roo` takes one folder", hint="`tarmac help import` says where Roo-Code has it")
    workspace = Path(given["workspace"][-1]).absolute() if "workspace" in given else None
    folder = Path(words[1])
    settings = settings_of(folder)
    try:
        folders = find_tasks(folder)
    except BadRequest:
        if settings is None:
            raise
        folders = []
    as_json = "json" in given
    code = run(lambda stop: _all(folders, workspace, salvage="salvage" in given, as_json=as_json))
    return max(code, _settings(settings, as_json=as_json)) if settings else code


def _settings(place: Path, *, as_json: bool) -> int:
    """Its modes and servers, which are beside the tasks."""
    failed = 0
    for each in take_settings(place):
        if as_json:
            print(json.dumps(each))
        elif "error" in each:
            complain(str(each["error"]))
        else:
            what = f"mode {each['mode']}" if "mode" in each else f"MCP servers ({each['names']})"
            print(f"{'+' if each['taken'] else '='} {one_line(what)}  {one_line(str(each['title']))}")
        failed |= "error" in each
    return int(failed)


async def _all(folders: list[Path], workspace: Path | None, *, salvage: bool, as_json: bool) -> int:
    store = open_store()
    failed = taken = 0
    for folder in folders:
        try:
            if (store.folder / folder.resolve().name / "log.jsonl").exists():
                _say(folder.name, "was here already", as_json=as_json, taken=False)
                continue
            roo = await asyncio.to_thread(read_task, folder, salvage=salvage)
            if roo.trouble and not (roo.api or roo.ui):
                what = f"nothing in {shown(folder)} could be saved: {'; '.join(roo.trouble)}"
                raise ImportFailed(what, hint="it has no complete message")
            title = await take(store, roo, workspace)
        except ImportFailed as error:
            failed += 1
            if as_json:
                print(json.dumps({"id": folder.name, "error": error.what, "hint": error.hint}))
            else:
                complain(error.what, hint=error.hint)
            continue
        taken += 1
        _say(roo.id, title, as_json=as_json, taken=True, trouble=roo.trouble)
    if not as_json and len(folders) > 1:
        print(f"{taken} taken in, {len(folders) - taken - failed} here already, {failed} failed")
    sys.stdout.flush()
    return 1 if failed else 0


async def take(store: TaskStore, roo: RooTask, workspace: Path | None) -> str:
    """Make a task of it; return its title. Either the whole task is on disk, or nothing."""
    item = roo.item
    mode = item.get("mode")
    where = workspace or workspace_of(roo) or Path.cwd()
    at = began(roo) or time.time()
    root, parent = (
        TaskId(each) if isinstance(each, str) else None for each in (item.get("rootTaskId"), item.get("parentTaskId"))
    )
    task = TaskId(roo.id)
    try:
        async with store.create(
            workspace=where, mode=mode if isinstance(mode, str) else "code", root=root, parent=parent, task=task, at=at
        ) as log:
            facts = await asyncio.to_thread(facts_of, roo, log.blobs.keep, first=3)
            kept = [
                KeptFile(name=name, blob=await asyncio.to_thread(log.blobs.keep, data, "application/json"))
                for name, data in roo.raw.items()
            ]
            origin = TaskImported(at=at, source="roo", name=roo.id, last=2 + len(facts), files=tuple(kept))
            await log.append(origin, *facts)
    except BaseException:
        if (store.folder / task).exists():
            await store.delete(task)
        raise
    return metadata(facts).title or "a task without messages"


def _say(name: str, text: str, *, as_json: bool, taken: bool, trouble: list[str] | None = None) -> None:
    if as_json:
        print(json.dumps({"id": name, "taken": taken, "title": text, "trouble": trouble or []}))
        return
    print(f"{'+' if taken else '='} {one_line(name)}  {cut(one_line(text), 70)}")
    for each in trouble or ():
        print(f"    {one_line(each)}")
