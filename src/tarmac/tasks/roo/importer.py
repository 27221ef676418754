"""PURE: a task of Roo-Code as facts of our log.

The conversation with the model is made of `api`, message by message; costs, times, errors, checkpoints and the end come
from `ui`. Where there is no `api` (it was lost), what the person saw stands in for it. What has no place here (who
approved what, live output) is in the files themselves, which are kept with the task.
"""

import base64
import binascii
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from tarmac.models.messages import NO_USAGE, Blob, Image, Part, Reasoning, Text, ToolUse, Usage
from tarmac.policy.approval import AnswerKind
from tarmac.tasks import events as e
from tarmac.tasks.events import CallId, RequestId
from tarmac.tasks.roo import Object, RooTask


def blocks(message: Object) -> list[Object]:
    """What a message is made of; a plain text is a block, too."""
    content = message.get("content")
    if message.get("type") == "reasoning":
        return [message]
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return [each for each in content if isinstance(each, dict)] if isinstance(content, list) else []


def seconds(message: Object) -> float:
    """When it was; 0: it does not say."""
    at = message.get("ts")
    return at / 1000 if isinstance(at, int | float) and at > 0 else 0.0


def arguments(given: object) -> str:
    """Of a tool call, as JSON text."""
    if isinstance(given, dict) and set(given) == {"__arguments__"}:  # what exporter.py makes of broken JSON
        return str(given["__arguments__"])
    return json.dumps({} if given is None else given, ensure_ascii=False)


def title(name: str, use: ToolUse | None) -> str:
    """A call in the past tense."""
    try:
        given = json.loads(use.arguments) if use else {}
    except ValueError:
        given = {}
    subject = given.get("command") or given.get("path") or given.get("file_path") if isinstance(given, dict) else ""
    if name == "execute_command":
        return f"Ran `{subject}`"
    verb = {"read_file": "Read", "write_to_file": "Wrote", "apply_diff": "Edited", "search_files": "Searched"}.get(name)
    return f"{verb} {subject}" if verb and subject else f"{name} {subject}".strip() if subject else name


def spending(message: Object) -> tuple[Usage, float | None]:
    """What a request took, by its `api_req_started`."""
    try:
        info = json.loads(str(message.get("text") or "{}"))
    except ValueError:
        return NO_USAGE, None
    if not isinstance(info, dict):
        return NO_USAGE, None

    def count(name: str) -> int:
        value = info.get(name)
        return int(value) if isinstance(value, int | float) and value > 0 else 0

    cached = count("cacheReads") + count("cacheWrites")
    total = count("tokensIn")  # with what was cached, since 2025; before that without
    cost = info.get("cost")
    usage = Usage(
        input=total - cached if total >= cached else total,
        output=count("tokensOut"),
        cache_reads=count("cacheReads"),
        cache_writes=count("cacheWrites"),
    )
    return usage, float(cost) if isinstance(cost, int | float) else None


Keep = Callable[[bytes, str], Blob]  # stores an image
_PERSON: Final = re.compile(r"\s*<(user_message|task|feedback|answer)>\n?(.*?)\n?</\1>\s*", re.DOTALL)
_WORKSPACE: Final = re.compile(r"^# Current W(?:orkspace|orking) Directory \((.+?)\)", re.MULTILINE)
_NOTES: Final[dict[str, str]] = {
    "error": "error",
    "diff_error": "error",
    "condense_context_error": "error",
    "shell_integration_warning": "shell_integration_warning",
    "rooignore_error": "ignore_error",
    "api_req_retried": "notice",
    "api_req_retry_delayed": "notice",
    "subtask_result": "notice",
    "user_feedback_diff": "notice",
}

_ASKS: Final[dict[str, e.Ask]] = {  # those about a call are told by the call
    "completion_result": "completion_result",
    "resume_task": "resume_task",
    "resume_completed_task": "resume_completed_task",
    "api_req_failed": "api_req_failed",
    "mistake_limit_reached": "mistake_limit_reached",
    "auto_approval_max_req_reached": "auto_approval_limit",
}


def workspace_of(task: RooTask) -> Path | None:
    """Where it worked, by its own word or by what it told the model."""
    if isinstance(said := task.item.get("workspace"), str) and said.startswith("/"):
        return Path(said)
    for message in task.api:
        for block in blocks(message):
            if found := _WORKSPACE.search(str(block.get("text", ""))):
                return Path(found[1]) if found[1].startswith("/") else None
    return None


def began(task: RooTask) -> float:
    """When its first message was."""
    return next((at for message in (*task.ui, *task.api) if (at := seconds(message))), 0.0)


def facts_of(task: RooTask, keep: Keep, *, first: int) -> list[e.TaskEvent]:
    """Its facts; the first of them will have the number `first` in the log."""
    return _Taking(task, keep, first).all()


class _Taking:
    def __init__(self, task: RooTask, keep: Keep, first: int) -> None:
        self.task = task
        self.keep = keep
        self.first = first
        self.facts: list[e.TaskEvent] = []
        self.at = began(task)
        self.calls: dict[str, ToolUse] = {}
        self.hidden: dict[str, list[int]] = {}  # by the id of a summary: the numbers of the facts it stands for
        self.spent = [each for each in task.ui if each.get("say") == "api_req_started"]
        self.notes = [
            each
            for each in task.ui
            if each.get("say") in (*_NOTES, "checkpoint_saved") or each.get("ask") in tuple(_ASKS)
        ]
        self.result = self._result_asked()  # the question that it ends with

    def all(self) -> list[e.TaskEvent]:
        for message in self.task.api:
            self.at = seconds(message) or self.at
            self._notes(until=self.at)
            before = len(self.facts)
            self._message(message)
            parent = message.get("condenseParent") or message.get("truncationParent")
            if isinstance(parent, str):
                self.hidden.setdefault(parent, []).extend(range(before, len(self.facts)))
        if not self.task.api:
            self._as_seen()
        self._notes(until=None)
        self._leftover_costs()
        self._end()
        return self.facts

    # The conversation

    def _message(self, message: Object) -> None:
        summary = message.get("condenseId") or message.get("truncationId")
        numbers = self.hidden.get(summary) if isinstance(summary, str) else None
        if numbers and (message.get("isSummary") or message.get("isTruncationMarker")):
            self._add(
                e.HistoryCondensed(
                    at=self.at,
                    first=self.first + min(numbers),
                    last=self.first + max(numbers),
                    summary="\n\n".join(str(block.get("text", "")) for block in blocks(message)),
                    how="truncated" if message.get("isTruncationMarker") else "summarised",
                )
            )
            return
        if message.get("role") == "assistant" or message.get("type") == "reasoning":
            self._assistant(message)
        else:
            for block in blocks(message):
                self._user(block)

    def _assistant(self, message: Object) -> None:
        parts = tuple(part for block in blocks(message) for part in self._said(block))
        if not parts:
            return
        request = RequestId(f"roo-{len(self.facts)}")
        usage, cost = self._spending(seconds(message))
        self._add(e.RequestStarted(at=self.at, request=request, model=""))  # which it was, those files do not say
        stop = "tool_use" if any(isinstance(part, ToolUse) for part in parts) else "end"
        self._add(e.ModelSaid(at=self.at, request=request, parts=parts, stop=stop, usage=usage, cost=cost))  # type: ignore[arg-type]

    def _said(self, block: Object) -> list[Part]:
        match block.get("type"):
            case "text" if block.get("text"):
                return [Text(str(block["text"]))]
            case "thinking":
                return [Reasoning(str(block.get("thinking", "")))]
            case "reasoning":
                summary = block.get("summary")
                lines = (
                    [str(each.get("text", "")) for each in summary if isinstance(each, dict)]
                    if isinstance(summary, list)
                    else []
                )
                return [Reasoning(text)] if (text := str(block.get("text") or "\n".join(lines))) else []
            case "tool_use" | "tool-call":
                call = str(block.get("id") or block.get("toolCallId") or f"call-{len(self.facts)}")
                use = ToolUse(
                    call, str(block.get("name") or block.get("toolName") or ""), arguments(block.get("input"))
                )
                self.calls[call] = use
                return [use]
        return []

    def _user(self, block: Object) -> None:
        match block.get("type"):
            case "tool_result" | "tool-result":
                self._result(block)
            case "image":
                if blob := self._image(block):
                    self._add(e.UserSaid(at=self.at, text="", images=(blob,)))
            case "text":
                self._text(str(block.get("text", "")))

    def _text(self, text: str) -> None:
        if not text:
            return
        if wrapped := _PERSON.fullmatch(text):
            self._add(e.UserSaid(at=self.at, text=wrapped[2]))
        elif text.lstrip().startswith("<environment_details>"):
            self._add(e.ModelTold(at=self.at, text=text, about="environment"))
        elif text.startswith("[TASK RESUMPTION]"):
            self._add(e.ModelTold(at=self.at, text=text, about="resumption"))
        elif text.startswith("[ERROR]"):
            self._add(e.ModelTold(at=self.at, text=text, about="mistake"))
        elif any(isinstance(each, e.UserSaid) for each in self.facts):
            self._add(e.ModelTold(at=self.at, text=text, about="other"))  # results, in the days of XML
        else:
            self._add(e.UserSaid(at=self.at, text=text))

    def _result(self, block: Object) -> None:
        call = str(block.get("tool_use_id") or block.get("toolCallId") or "")
        content, failed = self._content(block)
        use = self.calls.get(call)
        name = use.name if use else str(block.get("toolName") or "unknown")
        self._add(
            e.ToolFinished(
                at=self.at,
                call=CallId(call),
                name=name,
                outcome="failed" if failed or block.get("is_error") is True else "done",
                content=content,
                title=title(name, use),
            )
        )

    def _content(self, block: Object) -> tuple[tuple[Part, ...], bool]:
        failed = False
        content = block.get("content")
        if isinstance(output := block.get("output"), dict):  # of version 2
            failed = "error" in str(output.get("type"))
            content = output.get("value")
        if isinstance(content, str):
            return ((Text(content),) if content else ()), failed
        parts: list[Part] = []
        for each in content if isinstance(content, list) else []:
            if not isinstance(each, dict):
                continue
            if each.get("type") == "image" and (blob := self._image(each)):
                parts.append(Image(blob))
            elif isinstance(text := each.get("text", each.get("value")), str):
                parts.append(Text(text))
        return tuple(parts), failed

    def _image(self, block: Object) -> Blob | None:
        source = block.get("source")
        found = source if isinstance(source, dict) else block
        data = found.get("data") or found.get("image")
        media = str(found.get("media_type") or found.get("mediaType") or "image/png")
        if not isinstance(data, str):
            return None
        if url := re.match(r"data:([\w/+.-]+);base64,", data):
            media, data = url[1], data[url.end() :]
        try:
            return self.keep(base64.b64decode(data, validate=True), media)
        except (binascii.Error, ValueError):
            self._add(e.Noted(at=self.at, what="error", text="an image was damaged in Roo-Code's files"))
            return None

    # What the person saw

    def _as_seen(self) -> None:
        """There is no conversation: the words that were shown stand in for it."""
        for number, message in enumerate(self.task.ui):
            self.at = seconds(message) or self.at
            text = str(message.get("text") or "")
            match message.get("say"):
                case "text" | "completion_result" if text and number:
                    request = RequestId(f"roo-{len(self.facts)}")
                    self._add(
                        e.ModelSaid(
                            at=self.at, request=request, parts=(Text(text),), stop="end", usage=NO_USAGE, cost=0.0
                        )
                    )
                case "text" | "user_feedback" if text:
                    self._add(e.UserSaid(at=self.at, text=text))

    def _notes(self, *, until: float | None) -> None:
        while self.notes and (until is None or seconds(self.notes[0]) <= until):
            message = self.notes.pop(0)
            at, text = seconds(message) or self.at, str(message.get("text") or "")
            if message.get("ask") in tuple(_ASKS):
                if message is not self.result:
                    self._asked(message, at)
            elif message.get("say") == "checkpoint_saved":
                self._add(e.CheckpointCreated(at=at, checkpoint=text, why="in Roo-Code"))
            elif text:
                what = _NOTES[str(message["say"])]
                self._add(e.Noted(at=at, what=what, text=text))  # type: ignore[arg-type]

    def _spending(self, at: float) -> tuple[Usage, float | None]:
        """Of all requests until then that are not counted yet: a failed one was paid for, too."""
        usage, cost, some = NO_USAGE, 0.0, False
        while self.spent and (not at or seconds(self.spent[0]) <= at):
            more, price = spending(self.spent.pop(0))
            usage += more
            if price is not None:
                cost, some = cost + price, True
            if not at:
                break
        return usage, cost if some else None

    def _leftover_costs(self) -> None:
        usage, cost = self._spending(float("inf"))
        for place in reversed(range(len(self.facts))):
            if isinstance(said := self.facts[place], e.ModelSaid) and (usage != NO_USAGE or cost):
                total = None if said.cost is None and cost is None else (said.cost or 0.0) + (cost or 0.0)
                self.facts[place] = replace(said, usage=said.usage + usage, cost=total)
                return

    def _end(self) -> None:
        for text in self.task.trouble:
            self._add(e.Noted(at=self.at, what="error", text=f"in Roo-Code's files: {text}"))
        if self.result or self.task.item.get("status") == "completed":
            results = [str(each.get("text") or "") for each in self.task.ui if each.get("say") == "completion_result"]
            usage, cost = NO_USAGE, self.task.item.get("totalCost")
            price = float(cost) if isinstance(cost, int | float) else None
            self._add(e.TaskCompleted(at=self.at, result=results[-1] if results else "", usage=usage, cost=price))
        if self.result:
            self._asked(self.result, self.at)

    def _result_asked(self) -> Object | None:
        """The question about its result, if it is the last thing but for those of opening it."""
        shown = [each for each in self.task.ui if each.get("ask") not in ("resume_task", "resume_completed_task")]
        return shown[-1] if shown and shown[-1].get("ask") == "completion_result" else None

    def _asked(self, message: Object, at: float) -> None:
        """A question, answered or left: nobody there waits for an answer from here."""
        ask, text = _ASKS[str(message["ask"])], str(message.get("text") or "")
        question = e.QuestionId(f"roo-q{len(self.facts)}")
        limit = text if ask == "auto_approval_limit" else ""
        self._add(e.QuestionAsked(at=at, question=question, ask=ask, text="" if limit else text, details=limit))
        answer = AnswerKind.YES if message.get("isAnswered") is True else AnswerKind.SKIP
        self._add(e.QuestionAnswered(at=at, question=question, answer=answer, by="roo"))

    def _add(self, fact: e.TaskEvent) -> None:
        self.facts.append(fact)
