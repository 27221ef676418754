"""PURE: facts of our log as Roo-Code's two histories: what the model got, and what the person saw.

Both are for that program to open and go on with, so they hold what it needs, in its words; approvals, judgements and
the like, which it keeps elsewhere or nowhere, are left out.
"""

import base64
import json
from collections.abc import Callable, Iterable
from typing import Final

from tarmac.models.messages import Blob, Image, Message, Part, Reasoning, Text, ToolResult, ToolUse, Usage
from tarmac.tasks import events as e
from tarmac.tasks.roo.task_files import Object
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
