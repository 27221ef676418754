"""`tarmac tasks`: which tasks there are, what was said in them and sent to the model, taken out and thrown away.

Every list looks at the logs themselves: what exists is shown, and what can't be read is shown with the reason.
"""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, get_args

import msgspec

from tarmac.cli.exit_status import complain
from tarmac.cli.parser import Given, number, parse, suggest
from tarmac.cli.shutdown import run
from tarmac.errors import BadRequest, PeerGone, TaskInUse, TaskNotFound
from tarmac.events import TaskId
from tarmac.models.messages import Image, Part, Reasoning, Text, ToolResult, ToolUse
from tarmac.models.provider import Prompt
from tarmac.paths import state_dir
from tarmac.show.look import Look, cut, harmless, look_of, one_line, padded
from tarmac.show.summary import money, size, status, when
from tarmac.tasks.log.disk import Blobs
from tarmac.tasks.log.reader import BLOBS
from tarmac.tasks.log.writer import writer_of
from tarmac.tasks.store import Listed, Sort, TaskStore
from tarmac.tasks.views.metadata import Metadata
from tarmac.terminals.daemon.takeover import end_terminals_of


def prompt_record(prompt: Prompt) -> dict[str, object]:
    """As a JSON object."""
    return {
        "system": prompt.system,
        "tools": [
            {"name": each.name, "description": each.description, "parameters": each.parameters} for each in prompt.tools
        ],
        "messages": msgspec.to_builtins(list(prompt.messages)),
    }


def prompt_lines(prompt: Prompt) -> Iterator[str]:
    """As text, in the order in which it is sent."""
    yield f"=== system\n\n{harmless(prompt.system)}"
    for tool in prompt.tools:
        yield f"\n=== tool {harmless(tool.name)}\n\n{harmless(tool.description)}\n{json.dumps(tool.parameters)}"
    for message in prompt.messages:
        yield f"\n=== {message.role}"
        for part in message.parts:
            yield f"\n{harmless(_part(part))}"


def _part(part: Part) -> str:
    match part:
        case Text(text=text):
            return text
        case Reasoning(text=text):
            return f"[reasoning] {text}"
        case Image(blob=blob):
            return f"[image {blob.media_type}, {blob.size:,} bytes]"
        case ToolUse(id=call, name=name, arguments=arguments):
            return f"[call {call}] {name} {arguments}"
        case ToolResult(call=call, content=content, failed=failed):
            return f"[{'failed' if failed else 'result'} {call}]\n" + "\n".join(map(_part, content))
    return ""


TAKES: Final = {
    "list": {"json", "workspace", "sort", "limit", "all"},
    "show": {"json"},
    "audit": {"json"},
    "usage": {"json"},
    "prompt": {"json"},
    "search": {"json", "limit"},
    "export": {"format", "to", "force", "settings", "json"},
    "pause": {"json"},
    "unpause": {"json"},
    "cancel": {"json"},
    "clear": {"json"},
    "delete": {"yes", "json"},
    "checkpoints": {"json"},
    "diff": {"to", "json"},
    "restore": {"to", "files", "conversation", "both", "yes", "force", "json"},
}
CONTROLS: Final = {"pause": "paused", "unpause": "unpaused", "cancel": "cancelled", "clear": "cleared"}
TO_STOP: Final = 30.0  # seconds for a task to stop what it does
NARROW: Final = 70  # columns; below, a list leaves time and cost out
SHOWN: Final = 20  # of a list, unless told otherwise
COLOURS: Final = {"completed": "32", "running": "36", "waiting": "35", "aborted": "31", "paused": "35"}


def main(arguments: list[str]) -> int:
    """Do one of them; the exit code."""
    given, words = parse("tasks", arguments)
    action, rest = (words[0], words[1:]) if words else ("list", [])
    if action not in TAKES:
        hint = suggest(action, list(TAKES)) or f"one of {', '.join(TAKES)}; `tarmac tasks show {action}` shows a task"
        raise BadRequest(f"`{action}` is not a command of `tarmac tasks`", hint=hint)
    for name in given.keys() - TAKES[action]:
        raise BadRequest(f"`tasks {action}` takes no --{name}", hint="`tarmac tasks --help`")
    if action == "list" and rest:
        raise BadRequest(f"`tasks list` takes no `{rest[0]}`", hint=f"tarmac tasks show {rest[0]}")
    if action == "search" and not rest:
        raise BadRequest("no search text was given", hint="tarmac tasks search 'two words'")
    if action == "export" and "settings" in given:
        return _give_settings(rest, given)
    if action not in ("list", "search") and (not rest if action in ("delete", *CONTROLS) else len(rest) != 1):
        raise BadRequest(f"`tasks {action}` takes the id of a task", hint="`tarmac tasks` lists them")
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")
    store = open_store()
    do: Callable[[], Awaitable[int]] = {
        "list": lambda: _list(store, given),
        "show": lambda: _show(store, rest[0], given),
        "audit": lambda: _audit(store, rest[0], given),
        "usage": lambda: _usage(store, rest[0], given),
        "prompt": lambda: _prompt(store, rest[0], given),
        "search": lambda: _search(store, " ".join(rest), given),
        "export": lambda: _export(store, rest[0], given),
        **{each: lambda: control(store, action, rest, given) for each in CONTROLS},
        "delete": lambda: _delete(store, rest, given),
        "checkpoints": lambda: _go_back(store, action, rest[0], given),
        "diff": lambda: _go_back(store, action, rest[0], given),
        "restore": lambda: _go_back(store, action, rest[0], given),
    }[action]
    try:
        return run(lambda stop: do())
    except (TaskNotFound, TaskInUse) as error:
        return complain(error.what, hint=error.hint, code=1)


def _give_settings(words: list[str], given: Given) -> int:
    """Roo-Code's other files: no task is needed for them."""
    from tarmac.cli.roo_settings import give_settings

    if words or given.get("to", ["-"])[-1] == "-" or given.get("format", ["roo"])[-1] != "roo":
        raise BadRequest("--settings exports no task", hint="tarmac tasks export --settings --to DIR")
    for path in give_settings(Path(given["to"][-1]), force="force" in given):
        print(path)
    return 0


def open_store() -> TaskStore:
    """Where this user's tasks are."""
    return TaskStore(state_dir(os.environ) / "tasks")


# List


async def _list(store: TaskStore, given: Given) -> int:
    sort = given.get("sort", ["newest"])[-1]
    if sort not in get_args(Sort):
        raise BadRequest(f"tasks can't be sorted by `{sort}`", hint=", ".join(get_args(Sort)))
    workspace = Path(given["workspace"][-1]).absolute() if "workspace" in given else None
    found = await store.listing(sort=sort, workspace=workspace)  # type: ignore[arg-type]
    limit = None if "all" in given else number(given, "limit", None if "json" in given else SHOWN)
    if "json" in given:
        for each in found[:limit]:
            at_work = is_at_work(store, each.task)
            said = status(each.metadata, at_work=at_work)
            stopped = {"status": said} if said == "stopped" else {}
            print(json.dumps(as_data(each) | stopped | {"at_work": at_work}))
        return 0
    if not found:
        print(f"no tasks{f' in {one_line(str(workspace))}' if workspace else ' yet'}")
        print('  hint: tarmac run "make the tests pass" starts one; tarmac demo shows how that looks')
        return 0
    look = look_of(sys.stdout, os.environ)
    when_, cost = ("", "") if look.columns < NARROW else (f"{'WHEN':<12}", f"{'COST':>9}  ")
    print(look.paint("2", f"{'ID':<12}{when_}{'STATUS':<13}{cost}TASK"))
    for depth, each in tree(found)[:limit]:
        print(_line(each, look, at_work=is_at_work(store, each.task), depth=depth))
    if limit is not None and len(found) > limit:
        print(look.paint("2", f"{len(found) - limit} more; --all shows them, `tarmac tasks search` finds them"))
    return 0


def tree(listed: Sequence[Listed]) -> list[tuple[int, Listed]]:
    """PURE: subtasks behind their parents, with how deep each is; the order stays otherwise."""
    known = {each.task for each in listed}
    below: dict[TaskId | None, list[Listed]] = {}
    for each in listed:
        parent = each.metadata.parent
        below.setdefault(parent if parent in known and parent != each.task else None, []).append(each)

    found: list[tuple[int, Listed]] = []
    left = [(0, each) for each in reversed(below.get(None, []))]
    while left:
        depth, each = left.pop()
        found.append((depth, each))
        children = sorted(below.get(each.task, []), key=lambda child: -child.metadata.number)
        left += [(depth + 1, child) for child in children]
    return found


def is_at_work(store: TaskStore, task: TaskId) -> bool:
    """Whether a process works on it. (A killed one leaves its number behind: it must be alive.)"""
    pid = writer_of(store.folder / task)
    try:
        os.kill(pid or 0, 0)
    except ProcessLookupError:
        return False
    except OSError:  # another user's: it is there
        pass
    return pid is not None


def _line(listed: Listed, look: Look, *, at_work: bool, depth: int = 0) -> str:
    meta = listed.metadata
    said = "unreadable" if listed.trouble else status(meta, at_work=at_work)
    narrow = look.columns < NARROW
    start = f"{padded(one_line(listed.task), 11)} " + ("" if narrow else f"{when(meta.at):<12}")
    middle = look.paint("31" if listed.trouble else COLOURS.get(said, "2"), f"{said:<13}")
    cost = "" if narrow else f"{'-' if not meta.requests else money(meta.total_cost):>9}  "
    room = look.columns - 1 - 12 - 13 - (0 if narrow else 12 + 11)
    branch = f"{'  ' * (depth - 1)}└ " if depth else ""
    return f"{start}{middle}{cost}{cut(branch + one_line(listed.trouble or meta.name), max(room, 8))}"


def as_data(listed: Listed) -> dict[str, object]:
    """A task as a JSON object."""
    meta = listed.metadata
    return {
        "id": listed.task,
        "number": meta.number,
        "status": meta.status,
        "outcome": meta.outcome,
        "title": meta.name,
        "workspace": None if meta.workspace is None else str(meta.workspace),
        "mode": meta.mode,
        "model": meta.model,
        "created": meta.created,
        "at": meta.at,
        "requests": meta.requests,
        "usage": msgspec.structs.asdict(meta.usage),
        "cost": meta.total_cost,
        "estimated_requests": meta.estimated,
        "failed_requests": meta.failed,
        "context": meta.context,
        "context_window": meta.context_window,
        "tools": {name: {"calls": each.calls, "failures": each.failures} for name, each in meta.tools.items()},
        "root": meta.root,
        "parent": meta.parent,
        "size": listed.size,
        "lost_records": meta.lost,
        "trouble": listed.trouble,
    }


# One of them


async def _show(store: TaskStore, task: str, given: Given) -> int:
    folder = store.path(task)
    reading = await store.read(TaskId(folder.name))
    if "json" in given:
        from tarmac.show.json_records import record

        for seq, event in enumerate(reading.events, 1):
            print(json.dumps(record(seq, event)))
        return 0
    from tarmac.show.renderer import transcript

    look = look_of(sys.stdout, os.environ)
    for piece in transcript(folder.name, reading, look, at_work=is_at_work(store, TaskId(folder.name))):
        sys.stdout.write(piece)
    return 0


async def _audit(store: TaskStore, task: str, given: Given) -> int:
    from tarmac.show.summary import audit_lines
    from tarmac.tasks.views.timeline import audit

    entries = audit((await store.read(TaskId(store.path(task).name))).events)
    if "json" in given:
        for each in entries:
            print(json.dumps({name: getattr(each, name) for name in each.__slots__}))
    elif entries:
        print("\n".join(audit_lines(entries, look_of(sys.stdout, os.environ))))
    else:
        print("it has no decisions")
    return 0


async def _usage(store: TaskStore, task: str, given: Given) -> int:
    from tarmac.show.summary import requests_of, spent, tool_line, usage_lines
    from tarmac.tasks.views.metadata import metadata

    events = (await store.read(TaskId(store.path(task).name))).events
    found = requests_of(events)
    if "json" in given:
        for each in found:
            print(json.dumps(msgspec.to_builtins(each)))
        return 0
    meta = metadata(events)
    if found:
        print("\n".join(usage_lines(found, look_of(sys.stdout, os.environ))))
    print(spent(meta))
    if meta.tools:
        print(f"calls: {tool_line(meta)}")
    return 0


async def _prompt(store: TaskStore, task: str, given: Given) -> int:
    """What the model was sent last: system prompt, tools and messages."""
    from tarmac.tasks.views.model_history import last_prompt

    folder = store.path(task)
    events = (await store.read(TaskId(folder.name))).events
    found = last_prompt(events, Blobs(folder / BLOBS).read)
    if found is None:
        print("nothing was sent to a model yet")
        return 1
    if "json" in given:
        print(json.dumps(prompt_record(found), ensure_ascii=False))
        return 0
    for line in prompt_lines(found):
        print(line)
    return 0


async def _search(store: TaskStore, text: str, given: Given) -> int:
    found = await store.search(text, limit=number(given, "limit", SHOWN) or SHOWN)
    if "json" in given:
        for hit in found:
            print(json.dumps({"task": hit.task, "seq": hit.seq, "who": hit.who, "excerpt": hit.excerpt}))
        return 0 if found else 1
    if not found:
        print(f"no task contains `{one_line(text)}`")
        return 1
    look = look_of(sys.stdout, os.environ)
    names = {each.task: each.metadata.name for each in await store.listing()}
    shown = ""
    for hit in sorted(found, key=lambda hit: [each.task for each in found].index(hit.task)):  # a task's hits together
        if hit.task != shown:
            title = cut(one_line(names.get(hit.task, "")), look.columns - 14)
            print(f"{look.paint('1', one_line(hit.task))}  {title}")
            shown = hit.task
        print(f"  {look.paint('2', f'{hit.who}:'):<6} {cut(one_line(hit.excerpt), look.columns - 12)}")
    return 0


async def _delete(store: TaskStore, tasks: list[str], given: Given) -> int:
    folders = {TaskId(store.path(each).name): None for each in tasks}  # all are known before the first is gone
    names = {each.task: each for each in await store.listing()}

    def named(task: TaskId) -> str:
        listed = names.get(task)
        return f"{task} ({cut(one_line(listed.metadata.name), 60)}, {size(listed.size)})" if listed else task

    gone: set[TaskId] = set()
    for task in folders:
        if task in gone:  # with its parent
            continue
        below = await store.below(task)
        subtasks = f" and its {len(below)} subtask{'s' * (len(below) > 1)}" if below else ""
        if "yes" not in given and not _sure(named(task) + subtasks):
            print(f"kept: {task}")
            continue
        for each in (task, *below):
            await _delete_one(store, each, names[each].metadata if each in names else Metadata())
            gone.add(each)
            print(json.dumps({"deleted": each}) if "json" in given else f"deleted: {named(each)}")
    return 0


async def _delete_one(store: TaskStore, task: TaskId, meta: Metadata) -> None:
    from tarmac.tasks.subtasks import remove_left_worktree

    try:
        await store.delete(task)
    except TaskInUse:
        await _delete_elsewhere(store, task)
    except TaskNotFound:  # the process that had its parent deleted both
        pass
    await end_terminals_of(task)
    await remove_left_worktree(task, meta)


async def _delete_elsewhere(store: TaskStore, task: TaskId) -> None:
    """Delete a task that another process has open: that process does it."""
    from tarmac.server.joined_task import join

    async with join(store, task, client="cli") as joined:
        await joined.delete()


async def control(store: TaskStore, action: str, tasks: list[str], given: Given) -> int:
    """Pause, unpause, cancel or clear tasks that other processes run."""
    folders = {store.path(each).name: None for each in tasks}  # all are known before the first is touched
    listed = {each.task: each for each in await store.listing()}
    for task in map(TaskId, folders):
        try:
            await _control_one(store, listed[task], action)
        except (BadRequest, PeerGone) as error:
            return complain(error.what, hint=error.hint, code=1)
        name = cut(one_line(listed[task].metadata.name), 60)
        print(json.dumps({CONTROLS[action]: task}) if "json" in given else f"{CONTROLS[action]}: {task} ({name})")
    return 0


async def _control_one(store: TaskStore, listed: Listed, action: str) -> None:
    from tarmac.server.joined_task import join, process_with

    task, outcome = listed.task, listed.metadata.outcome
    if outcome and not process_with(store, task):
        what = "completed" if outcome == "completed" else "ended"
        raise BadRequest(
            f"task {task} is {what}: there is nothing to {action}", hint=f"`tarmac resume {task}` opens it"
        )
    async with join(store, task, client="cli") as joined:
        if action == "clear":
            await joined.shut()
            return
        if not joined.running:
            hint = f'`tarmac join {task} "…"` says something to it'
            raise BadRequest(f"task {task} is not running: there is nothing to {action}", hint=hint)
        if action == "pause":
            await joined.pause()
        elif action == "unpause":
            await joined.unpause()
        else:
            await joined.request("cancel")
            try:
                async with asyncio.timeout(TO_STOP):
                    await joined.run_until_idle()
            except TimeoutError:
                raise PeerGone(f"task {task} did not stop within {TO_STOP:g} s") from None


def _sure(what: str) -> bool:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise BadRequest("deleting a task is permanent, and nobody can confirm it here", hint="add --yes")
    sys.stderr.write(f"Delete {what} for good? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


async def _go_back(store: TaskStore, action: str, task: str, given: Given) -> int:
    from tarmac.cli import checkpoints

    look, as_json, to = look_of(sys.stdout, os.environ), "json" in given, number(given, "to", None)
    if action == "checkpoints":
        return await checkpoints.list_points(store, task, look, as_json=as_json)
    if action == "diff":
        return await checkpoints.show_diff(store, task, to, look, as_json=as_json)
    if len(given.keys() & {"files", "conversation", "both"}) > 1:
        raise BadRequest("--files, --conversation and --both exclude each other")
    return await checkpoints.restore(
        store,
        task,
        to,
        look,
        files="conversation" not in given,
        conversation="conversation" in given or "both" in given,
        yes="yes" in given,
        force="force" in given,
        as_json=as_json,
    )


async def _export(store: TaskStore, task: str, given: Given) -> int:
    from tarmac.cli.export import export

    folder = store.path(task)
    to = Path(given["to"][-1]) if given.get("to", ["-"])[-1] != "-" else None
    id, form = TaskId(folder.name), given.get("format", ["json" if "json" in given else "markdown"])[-1]
    if "json" in given and form != "json":
        raise BadRequest(f"--json and --format {form} exclude each other")
    return await export(store, id, form, to, force="force" in given, at_work=is_at_work(store, id))
