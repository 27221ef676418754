"""A task as Roo-Code's files: what it was made of when it came from there, with what happened since behind it."""

import base64
import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from tarmac.errors import BadRequest, FileUnavailable
from tarmac.models.messages import Blob, Image, Message, Part, Reasoning, Text, ToolResult, ToolUse, Usage
from tarmac.tasks import events as e
from tarmac.tasks.roo import API, ITEM, METADATA, OLD_API, UI, Object, RooTask, read_task
from tarmac.tasks.views.metadata import metadata
from tarmac.tasks.views.model_history import model_messages, text_of

Fetch = Callable[[str], bytes | None]
_TOOLS: Final = {
    "read_file": "readFile",
    "write_to_file": "newFileCreated",
    "apply_diff": "appliedDiff",
    "insert_content": "editedExistingFile",
    "search_and_replace": "editedExistingFile",
    "search_files": "searchFiles",
    "list_files": "listFilesTopLevel",
    "switch_mode": "switchMode",
    "update_todo_list": "updateTodoList",
    "run_slash_command": "runSlashCommand",
    "new_task": "newTask",
}

_TOLD: Final = frozenset({*e.RESTING, "api_req_failed", "mistake_limit_reached", "auto_approval_limit"})


# The conversation


def api_messages(events: list[e.TaskEvent], fetch: Fetch) -> list[Object]:
    """What the model would get now, as Anthropic messages with `ts`."""
    persons = {event.text for event in events if isinstance(event, e.UserSaid | e.MessageQueued)}
    times = _times(events)
    found: list[Object] = []
    last = 0
    for message in model_messages(events):
        at = next((times[key] for part in message.parts if (key := _key(part)) in times), 0)
        last = max(at, last + 1)
        content = [block for part in message.parts for block in _block(message, part, persons, fetch)]
        found.append({"role": message.role, "content": content, "ts": last})
    return found


def _times(events: Iterable[e.TaskEvent]) -> dict[object, int]:
    """When each part was said, by what tells it from others."""
    times: dict[object, int] = {}
    for event in events:
        match event:
            case e.ModelSaid(parts=parts):
                times |= {_key(part): milliseconds(event.at) for part in parts}
            case e.ToolFinished(call=call):
                times["result", call] = milliseconds(event.at)
            case e.UserSaid(text=text) | e.ModelTold(text=text) | e.MessageQueued(text=text):
                times["text", text] = milliseconds(event.at)
    return times


def _key(part: Part) -> object:
    match part:
        case ToolUse(id=call):
            return "call", call
        case ToolResult(call=call):
            return "result", call
        case Text(text=text) | Reasoning(text=text):
            return "text", text
    return None


def _block(message: Message, part: Part, persons: set[str], fetch: Fetch) -> list[Object]:
    match part:
        case Text(text=text) if message.role == "user" and text in persons:
            return [{"type": "text", "text": f"<user_message>\n{text}\n</user_message>"}]
        case Text(text=text):
            return [{"type": "text", "text": text}]
        case Reasoning(text=text):
            return [{"type": "reasoning", "text": text, "summary": []}]
        case Image(blob=blob):
            return [_image(blob, fetch)]
        case ToolUse(id=call, name=name, arguments=arguments):
            return [{"type": "tool_use", "id": call, "name": name, "input": _input(arguments)}]
        case ToolResult(call=call, content=content, failed=failed):
            blocks = [block for each in content for block in _block(message, each, set(), fetch)]
            result: Object = {"type": "tool_result", "tool_use_id": call, "content": blocks}
            return [result | ({"is_error": True} if failed else {})]
    return []


def _image(blob: Blob, fetch: Fetch) -> Object:
    data = fetch(blob.sha256)
    if data is None:
        return {"type": "text", "text": "[an image was here, and is lost]"}
    encoded = base64.b64encode(data).decode()
    return {"type": "image", "source": {"type": "base64", "media_type": blob.media_type, "data": encoded}}


def _input(arguments: str) -> object:
    try:
        given = json.loads(arguments)
    except (ValueError, RecursionError):
        given = None
    return given if isinstance(given, dict) else {"__arguments__": arguments}


# What the person saw


def ui_messages(events: list[e.TaskEvent], fetch: Fetch, *, begun: bool = False) -> list[Object]:
    """What was shown, message by message; each has a `ts` of its own, by which it is known there.

    The first words of a task are the task; where it has `begun` elsewhere, they are an answer.
    """
    calls: dict[str, ToolUse] = {}
    asks = {event.question: event.ask for event in events if isinstance(event, e.QuestionAsked)}
    answered = {event.question for event in events if isinstance(event, e.QuestionAnswered)}
    found: list[Object] = []
    last = 0
    for event in events:
        match event:
            case e.QuestionAsked():
                shown = _question(event, answered=event.question in answered)
            case e.QuestionAnswered(question=question, answer=answer, text=text):
                told = asks.get(question) in _TOLD and answer != "no"  # what they said is a fact of its own
                shown = [_say("user_feedback", text)] if text and not told else []
            case _:
                shown = _shown(event, calls, fetch, first=not (begun or found))
        for message in shown:
            last = max(milliseconds(event.at), last + 1)
            found.append({"ts": last, **message})
    return found


def _shown(event: e.TaskEvent, calls: dict[str, ToolUse], fetch: Fetch, *, first: bool) -> list[Object]:
    match event:
        case e.UserSaid(text=text, images=images) | e.MessageQueued(text=text, images=images):
            kind = "text" if first else "user_feedback"
            pictures = {"images": [_url(each, fetch) for each in images]} if images else {}
            return [_say(kind, text) | pictures]
        case e.ModelSaid(parts=parts, usage=usage, cost=cost):
            calls |= {part.id: part for part in parts if isinstance(part, ToolUse)}
            said = [
                _say("reasoning" if isinstance(p, Reasoning) else "text", p.text)
                for p in parts
                if isinstance(p, Text | Reasoning)
            ]
            return [_say("api_req_started", _request(usage, cost)), *(each for each in said if each["text"])]
        case e.ToolFinished(call=call):
            return _tool(event, calls.get(call))
        case e.Noted(what=what, text=text):
            kinds = {"shell_integration_warning": "shell_integration_warning", "ignore_error": "rooignore_error"}
            return [_say(kinds.get(what, "error"), text)]
        case e.RequestFailed(what=what):
            return [_say("error" if event.retry_in is None else "api_req_retry_delayed", what)]
        case e.CheckpointCreated(checkpoint=checkpoint):
            return [_say("checkpoint_saved", checkpoint)]
        case e.HistoryCondensed(summary=summary, cost=cost, tokens_before=before, tokens_after=after):
            condensed: Object = {
                "cost": cost or 0,
                "prevContextTokens": before or 0,
                "newContextTokens": after or 0,
                "summary": summary,
            }
            return [_say("condense_context", "") | {"contextCondense": condensed}]
        case e.TaskCompleted(result=result):
            return [_say("completion_result", result), _ask("completion_result", "")]
    return []


def _question(asked: e.QuestionAsked, *, answered: bool) -> list[Object]:
    """Those about a call and about the result stand beside these already."""
    match asked.ask:
        case "followup":
            text = json.dumps({"question": asked.text, "suggest": [{"answer": each} for each in asked.choices]})
            return [_ask("followup", text)]
        case "resume_task" | "resume_completed_task":
            return [_ask(asked.ask, "", answered=answered)]
        case "api_req_failed" | "mistake_limit_reached":
            return [_ask(asked.ask, asked.text, answered=answered)]
        case "auto_approval_limit":
            return [_ask("auto_approval_max_req_reached", asked.details, answered=answered)]
    return []


def _tool(event: e.ToolFinished, use: ToolUse | None) -> list[Object]:
    given = _input(use.arguments) if use else {}
    assert isinstance(given, dict)
    output = text_of(event.content)
    if event.name in ("execute_command", "run_command", "run_persistent_command"):
        return [_ask("command", str(given.get("command", ""))), _say("command_output", output)]
    if event.name in ("attempt_completion", "ask_followup_question"):
        return []
    shown: Object = {"tool": _TOOLS.get(event.name, event.name)}
    shown |= {key: given[key] for key in ("path", "diff", "content", "regex", "mode", "reason") if key in given}
    if event.name == "list_files" and given.get("recursive"):
        shown["tool"] = "listFilesRecursive"
    told = [_ask("tool", json.dumps(shown, ensure_ascii=False))]
    return [*told, _say("error", output)] if event.outcome == "failed" else told


def _say(kind: str, text: str) -> Object:
    return {"type": "say", "say": kind, "text": text}


def _ask(kind: str, text: str, *, answered: bool = True) -> Object:
    return {"type": "ask", "ask": kind, "text": text, "isAnswered": answered}


def _request(usage: Usage, cost: float | None) -> str:
    """`tokensIn` is all that the model read, cached or not; a cost that nobody knows is left out."""
    total = usage.input + usage.cache_reads + usage.cache_writes
    info: Object = {"apiProtocol": "anthropic", "tokensIn": total, "tokensOut": usage.output}
    info |= {"cacheWrites": usage.cache_writes, "cacheReads": usage.cache_reads}
    return json.dumps(info | ({} if cost is None else {"cost": cost}))


def _url(blob: Blob, fetch: Fetch) -> str:
    return f"data:{blob.media_type};base64,{base64.b64encode(fetch(blob.sha256) or b'').decode()}"


def milliseconds(at: float) -> int:
    """A time as that program has it."""
    return round(min(max(at, 0.0), 1e11) * 1000)


def write_task(events: list[e.TaskEvent], fetch: Fetch, folder: Path, *, force: bool = False) -> Path:
    """Make `folder`, with its four files: all of it, or nothing."""
    if folder.exists() and not force:
        raise BadRequest(f"{folder} already exists", hint="--force overwrites it")
    files = files_of(events, fetch, name=folder.name)
    new = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}")
    try:
        new.mkdir(parents=True)
        for name, content in files.items():
            (new / name).write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8", errors="replace")
        if folder.exists():
            shutil.rmtree(folder)
        os.rename(new, folder)  # noqa: PTH104
    except OSError as error:
        shutil.rmtree(new, ignore_errors=True)
        raise FileUnavailable(f"{folder} can't be written: {error.strerror}") from None
    return folder


def files_of(events: list[e.TaskEvent], fetch: Fetch, *, name: str) -> dict[str, object]:
    """Name → content."""
    origin = _origin(events)
    before = _kept(origin, fetch) if origin else RooTask(name, Path())
    since = events[origin.last :] if origin else events
    return {
        API: [*before.api, *api_messages(since, fetch)],
        UI: [*before.ui, *ui_messages(since, fetch, begun=bool(before.ui))],
        ITEM: before.item if origin and before.item and not _news(since) else _item(events, before, name),
        METADATA: before.metadata if origin and not _news(since) else _files(events, before.metadata),
    }


def _origin(events: list[e.TaskEvent]) -> e.TaskImported | None:
    """Where it came from, unless its past was changed since: then what is there now is all that counts."""
    found = next((each for each in events if isinstance(each, e.TaskImported) and each.source == "roo"), None)
    if found is None:
        return None
    for event in events[found.last :]:
        match event:
            case e.HistoryRewound(to=reach) | e.HistoryCondensed(first=reach) if reach <= found.last:
                return None
    return found


def _kept(origin: e.TaskImported, fetch: Fetch) -> RooTask:
    """The files as they came; of damaged ones what was taken."""
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "task"
        folder.mkdir()
        for file in origin.files:
            if Path(file.name).name in (API, OLD_API, UI, ITEM, METADATA):
                (folder / Path(file.name).name).write_bytes(fetch(file.blob.sha256) or b"")
        return read_task(folder, salvage=True)


def _news(since: list[e.TaskEvent]) -> bool:
    return any(isinstance(each, e.UserSaid | e.ModelSaid | e.ToolFinished | e.MessageQueued) for each in since)


def _item(events: list[e.TaskEvent], before: RooTask, name: str) -> Object:
    meta = metadata(events)
    usage = meta.usage
    item: Object = {
        "id": name,
        "number": meta.number,
        "ts": milliseconds(meta.at),
        "task": meta.name,
        "tokensIn": usage.input + usage.cache_reads + usage.cache_writes,
        "tokensOut": usage.output,
        "cacheWrites": usage.cache_writes,
        "cacheReads": usage.cache_reads,
        "totalCost": meta.cost,
        "workspace": str(meta.workspace),
        "mode": meta.mode,
        "status": "completed" if meta.outcome == "completed" else "active",
    }
    if meta.root:
        item["rootTaskId"] = meta.root
    if meta.parent:
        item["parentTaskId"] = meta.parent
    return {**before.item, **item}


def _files(events: list[e.TaskEvent], before: Object) -> Object:
    """The files that the task knows, each once, with when it was read and edited."""
    known = before.get("files_in_context")
    found: dict[str, Object] = {}
    for event in events:
        if isinstance(event, e.FileSeen):
            entry = found.setdefault(
                str(event.path),
                {
                    "path": str(event.path),
                    "record_state": "active",
                    "record_source": "read_tool",
                    "roo_read_date": None,
                    "roo_edit_date": None,
                    "user_edit_date": None,
                },
            )
            entry["record_source"] = "read_tool" if event.how == "read" else "roo_edited"
            entry["roo_read_date" if event.how == "read" else "roo_edit_date"] = milliseconds(event.at)
    return {"files_in_context": [*(known if isinstance(known, list) else []), *found.values()]}
