"""PURE: tasks, questions, timeline items and terminals as the JSON objects of docs/web.md."""

import dataclasses
import json
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from tarmac.events import TaskId
from tarmac.server.trials import TrialReport
from tarmac.show.look import one_line
from tarmac.tasks.auto import Auto
from tarmac.tasks.checkpoints import RestoredFile
from tarmac.tasks.events import MessageQueued, QuestionAsked, TaskEvent, UnknownEvent
from tarmac.tasks.log.records import kind_of, to_plain
from tarmac.tasks.views.metadata import Metadata
from tarmac.tasks.views.timeline import Item
from tarmac.terminals.events import AwaitingInput
from tarmac.terminals.terminal import Terminal
from tarmac.tools.edit.unified_diff import FileDiff

Json = dict[str, Any]

LONGEST: Final = 16_000  # characters of a text in an item's `about`; the records have all of it
SELF_EVIDENT: Final = frozenset(
    {"text", "reasoning", "api_response", "user_feedback", "mode_changed", "notice", "error"}
)


def task_row(
    id: TaskId,
    meta: Metadata,
    *,
    open: bool = False,
    running: bool = False,
    elsewhere: bool = False,
    level: Auto | None = None,
    questions: Sequence[QuestionAsked] = (),
    queue: Sequence[MessageQueued] = (),
    trouble: str = "",
    can_try: bool = False,
) -> Json:
    """A task in the list."""
    return {
        "id": id,
        "number": meta.number,
        "title": meta.name,
        "status": _status(
            meta, running=running, elsewhere=elsewhere, asks=any(each.ask != "command_output" for each in questions)
        ),
        "open": open,
        "elsewhere": elsewhere,
        "running": running,
        "workspace": str(meta.workspace or ""),
        "mode": meta.mode,
        "model": meta.model,
        "level": level,
        "agent": meta.agent,
        "created": meta.created,
        "at": meta.at,
        "cost": meta.total_cost,
        "usage": msgspec.structs.asdict(meta.usage),
        "context": meta.context,
        "context_window": meta.context_window,
        "requests": meta.requests,
        "todos": [{"text": each.text, "status": each.status} for each in meta.todos],
        "questions": [question(id, each, can_try=can_try) for each in questions],
        "queue": [{"message": each.message, "text": each.text} for each in queue],
        "parent": meta.parent,
        "root": meta.root,
        "children": list(meta.children),
        "trouble": trouble,
    }


def _status(meta: Metadata, *, running: bool, elsewhere: bool, asks: bool) -> str:
    if elsewhere or meta.status == "paused":
        return meta.status
    if running:
        return "waiting" if asks else "running"
    if meta.outcome:
        return meta.outcome
    return "waiting" if asks else "saved"


def question(task: TaskId, asked: QuestionAsked, *, can_try: bool = False) -> Json:
    """An open question; its details are an object here. `can_try`: commands can be tried on this machine."""
    about = details(asked.details)
    return {
        "task": task,
        "question": asked.question,
        "ask": asked.ask,
        "text": asked.text,
        "call": asked.call,
        "choices": list(asked.choices),
        "details": about,
        "at": asked.at,
        "can_try": can_try and asked.ask == "command" and len(about.get("requests", ())) == 1,
    }


def details(text: str) -> Json:
    """The JSON in a question's or a result's details; an empty object where there is none."""
    try:
        found = json.loads(text) if text else {}
    except ValueError:
        found = {}
    return found if isinstance(found, dict) else {}


def item(one: Item) -> Json:
    """An item of the timeline."""
    return {
        "n": one.place,
        "id": one.id,
        "at": one.at,
        "type": one.type,
        "kind": one.kind,
        "text": one.text,
        "images": [{"sha256": each.sha256, "size": each.size, "media_type": each.media_type} for each in one.images],
        "state": one.state,
        "answered": one.answered,
        "answer": about(one.answer) if one.answer else None,
        "call": one.call,
        "about": about(one.about) if one.about is not None and one.kind not in SELF_EVIDENT else None,
    }


def about(event: TaskEvent) -> Json:
    """The fact behind an item, its long texts cut."""
    if isinstance(event, UnknownEvent):
        return {"kind": event.kind}
    fields: Json = json.loads(to_plain(event))
    if isinstance(fields.get("details"), str):
        fields["details"] = details(fields["details"])
    return {"kind": kind_of(type(event)), **{name: _short(value) for name, value in fields.items()}}


def _short(value: Any) -> Any:
    match value:
        case str() if len(value) > LONGEST:
            return f"{value[:LONGEST]}\n… {len(value) - LONGEST:,} characters more"
        case list():
            return [_short(each) for each in value]
        case dict():
            return {name: _short(each) for name, each in value.items()}
    return value


def terminal_row(
    terminal: Terminal,
    *,
    number: int,
    last_task: TaskId | None,
    awaits: AwaitingInput | None,
    holder: str | None,
    epoch: int,
) -> Json:
    """A terminal in the list."""
    current = terminal.current if terminal.current is None or not terminal.current.internal else None
    last = terminal.history[-1] if terminal.history else None
    rows, columns = terminal.tape.size
    return {
        "id": terminal.id,
        "number": number,
        "name": terminal.name,
        "task": terminal.task,
        "last_task": last_task,
        "origin": terminal.origin,
        "provider": terminal.provider,
        "cwd": str(terminal.cwd),
        "shell": terminal.shell.name,
        "busy": current is not None,
        "command": current.command if current is not None else None,
        "by_person": current.by_person if current is not None else False,
        "held": terminal.held,
        "holder": holder,
        "epoch": epoch,
        "rows": rows,
        "columns": columns,
        "awaits": {"wants": awaits.wants, "prompt": awaits.prompt, "name": one_line(awaits.name)} if awaits else None,
        "last": {"command": last.command, "exit_code": last.exit_code, "duration": last.duration} if last else None,
    }


def trial(report: TrialReport) -> Json:
    """What a command did on a copy of the workspace."""
    changes = [
        {"path": each.path, "kind": each.kind, "diff": each.diff, "new": each.kind == "added"}
        for each in report.changes
    ]
    return {"changes": changes, "more": report.more, "output": report.output, "exit_code": report.exit_code}


def restored(file: RestoredFile, diff: FileDiff | None = None) -> Json:
    """What going back does, or did, to a file. `diff`: what the task changed in it since."""
    edit = file.edit
    return {
        "path": str(edit.path),
        "fate": file.fate.value,
        "why": file.why,
        "created": edit.before is None,
        "deleted": edit.after is None,
        "diff": diff.text if diff else "",
        "added": diff.added if diff else None,  # lines; None: it is not text
        "removed": diff.removed if diff else None,
    }


def encode(frame: Json) -> str:
    """A frame as text. Lone surrogates of odd file names go through as escapes."""
    try:
        return msgspec.json.encode(frame).decode()
    except UnicodeEncodeError:
        return json.dumps(frame)


def plain(thing: Any) -> Any:
    """A dataclass as JSON values."""
    return json.loads(json.dumps(dataclasses.asdict(thing), default=str))
