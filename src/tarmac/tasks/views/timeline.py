"""PURE: what a person sees of a task, folded from its log: the timeline, and the audit log (who decided what, and why).

Each event adds or changes one item of the timeline. `add` returns what changed, so a client is sent only that.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import msgspec

from tarmac.models.messages import Blob, Image, Reasoning, Text, ToolUse
from tarmac.tasks import events as e
from tarmac.tasks.events import CallJudged, ModelSaid, QuestionAnswered, QuestionAsked, TaskEvent
from tarmac.tasks.signals import ProgressMade, Signal
from tarmac.tasks.views.model_history import text_of

Kind = Literal[
    "text",
    "reasoning",
    "api_req_started",
    "api_req_retried",
    "api_response",
    "tool",
    "command_output",
    "error",
    "completion_result",
    "user_feedback",
    "shell_integration_warning",
    "ignore_error",
    "checkpoint_created",
    "condense_context",
    "subtask_result",
    "mode_changed",
    "notice",
]
State = Literal["", "running", "done", "failed", "denied", "skipped", "interrupted", "queued", "withdrawn"]


class Item(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A message to a person (`say`) or a question (`ask`)."""

    id: int  # the number of the fact that made it
    place: int = 0  # in the timeline
    at: float
    type: Literal["say", "ask"]
    kind: Kind | e.Ask
    text: str = ""
    images: tuple[Blob, ...] = ()
    state: State = ""
    answered: bool = False
    answer: e.QuestionAnswered | None = None
    call: str | None = None
    partial: bool = False  # more of it is to come
    progress: str = ""  # how far it has come, while it runs
    checkpoint: int | None = None  # of a call: the fact to rewind to, to take back what it changed
    about: e.TaskEvent | None = None  # the latest fact behind it, for those who show more


def timeline(events: Iterable[e.TaskEvent]) -> list[Item]:
    """What a person sees."""
    found = Timeline()
    for event in events:
        found.add(event)
    return found.items


class Timeline:
    """The fold, as it grows. Items keep their places; only rewinding takes some away."""

    def __init__(self) -> None:
        self.seq = 0  # of the last fact that was added
        self.items: list[Item] = []
        self._places: dict[tuple[str, str], int] = {}  # where the item of a call, question, request or message is
        self._running: set[tuple[str, str]] = set()
        self._checkpoints: dict[str, int] = {}  # by call

    def show(self, signal: Signal) -> list[Item]:
        """What is fleeting: how far a call has come. It is in no log."""
        if isinstance(signal, ProgressMade) and ("call", signal.call) in self._running:
            return self._change(("call", signal.call), progress=signal.text)
        return []

    def add(self, event: e.TaskEvent) -> list[Item]:
        """The next fact of the log; the items that are new or changed."""
        self.seq += 1
        match event:
            case e.ModelSaid():
                return self._model_said(event)
            case e.ToolStarted(call=call, title=title):
                return self._put(("call", call), event, "tool", title, state="running", call=call)
            case e.ToolFinished(call=call, title=title, outcome=outcome, content=content, name=name):
                images = tuple(part.blob for part in content if isinstance(part, Image))
                text = title or text_of(content) or name
                return self._put(("call", call), event, "tool", text, state=outcome, call=call, images=images)
            case e.RequestStarted(request=request, model=model):
                return self._put(("request", request), event, "api_req_started", model, state="running")
            case e.UserSaid(text=text, images=images):
                return self._new(event, "user_feedback" if self.items else "text", text, images=images)
            case e.CommandOutput(call=call, spool=spool):
                return self._put(("output", call), event, "command_output", str(spool), call=call)
            case e.QuestionAsked(question=question, ask="resume_task" | "resume_completed_task" as ask, text=text):
                return self._resuming(question, event, ask, text)
            case e.QuestionAsked(question=question, ask=ask, text=text, call=about):
                return self._put(("question", question), event, ask, text, type_="ask", call=about)
            case e.QuestionAnswered(question=question):
                return self._change(("question", question), answered=True, answer=event)
        return self._other(event)

    def _other(self, event: e.TaskEvent) -> list[Item]:
        match event:
            case e.ModelTold(about="mistake", text=text):
                return self._new(event, "error", text)
            case e.RequestFailed(request=request, what=what, hint=hint, retry_in=None):
                told = f"{what}\n  hint: {hint}" if hint else what
                return [*self._change(("request", request), state="failed"), *self._new(event, "error", told)]
            case e.RequestFailed(request=request, what=what):
                failed = self._change(("request", request), state="failed")
                return [*failed, *self._put(("retry", request), event, "api_req_retried", what)]
            case e.MessageQueued(message=message, text=text, images=images):
                return self._put(("message", message), event, "user_feedback", text, state="queued", images=images)
            case e.MessageDelivered(message=message):
                return self._change(("message", message), state="")
            case e.MessageWithdrawn(message=message):
                return self._change(("message", message), state="withdrawn")
            case e.Noted(what=what, text=text):
                return self._new(event, what, text)
            case e.ModeSwitched(mode=mode):
                return self._new(event, "mode_changed", mode)
            case e.HistoryCondensed(summary=summary):
                return self._new(event, "condense_context", summary)
            case e.CheckpointCreated(why=why, partial=partial, call=call):
                if call:
                    self._checkpoints[call] = self.seq
                return self._new(event, "checkpoint_created", f"{why} ({partial})" if partial else why)
            case e.SubtaskFinished(result=result):
                return self._new(event, "subtask_result", result)
            case e.TaskCompleted(result=result):
                return self._new(event, "completion_result", result)
            case e.TaskStarted():
                return self._interrupt()
            case e.HistoryRewound(to=to):
                return self._rewind(to)
            case e.RecordLost(seq=seq, why=why):
                return self._new(event, "error", f"record {seq} of this task is lost: {why}")
            case e.UnknownEvent(kind=kind):
                return self._new(event, "notice", f"`{kind}`: a newer Tarmac knows what this is")
        return []

    def _model_said(self, event: e.ModelSaid) -> list[Item]:
        changed = self._change(("request", event.request), state="done", about=event)
        for part in event.parts:
            match part:
                case Reasoning(text=text) if text:
                    changed += self._new(event, "reasoning", text)
                case Text(text=text) if text:
                    changed += self._new(event, "api_response", text)
        return changed

    def _new(self, event: e.TaskEvent, kind: Kind, text: str, *, images: tuple[Blob, ...] = ()) -> list[Item]:
        place = len(self.items)
        item = Item(id=self.seq, place=place, at=event.at, type="say", kind=kind, text=text, images=images, about=event)
        self.items.append(item)
        return [item]

    def _put(
        self,
        place: tuple[str, str],
        event: e.TaskEvent,
        kind: Kind | e.Ask,
        text: str,
        *,
        type_: Literal["say", "ask"] = "say",
        state: State = "",
        call: str | None = None,
        images: tuple[Blob, ...] = (),
    ) -> list[Item]:
        """The item in that place: changed, when it is still under way or was cut off, else a new one."""
        there = self._places.get(place)
        if there is not None and self.items[there].state in ("running", "interrupted") and state != "running":
            return self._change(place, text=text, state=state, images=images, about=event, **self._kept(call))
        if there is not None and place[0] in ("output", "retry"):
            return self._change(place, text=text, about=event)
        self._places[place] = len(self.items)
        if state == "running":
            self._running.add(place)
        item = Item(
            id=self.seq,
            place=len(self.items),
            at=event.at,
            type=type_,
            kind=kind,
            text=text,
            images=images,
            state=state,
            call=call,
            partial=state == "running",
            checkpoint=self._checkpoints.get(call or ""),
            about=event,
        )
        self.items.append(item)
        return [item]

    def _kept(self, call: str | None) -> dict[str, object]:
        found = self._checkpoints.get(call or "")
        return {} if found is None else {"checkpoint": found}

    def _change(self, place: tuple[str, str], **fields: object) -> list[Item]:
        there = self._places.get(place)
        if there is None:
            return []
        if fields.get("state", "running") != "running":
            self._running.discard(place)
            fields |= {"partial": False, "progress": ""}
        self.items[there] = msgspec.structs.replace(self.items[there], **fields)
        return [self.items[there]]

    def _resuming(self, question: str, event: e.QuestionAsked, ask: e.Ask, text: str) -> list[Item]:
        """Opened again and again, and never answered: it is asked once."""
        last = self.items[-1] if self.items else None
        if last is None or last.kind not in ("resume_task", "resume_completed_task") or last.answered:
            return self._put(("question", question), event, ask, text, type_="ask")
        self._places["question", question] = len(self.items) - 1
        return self._change(("question", question), at=event.at, kind=ask, text=text, about=event)

    def _interrupt(self) -> list[Item]:
        """A process takes the task up: what another left running no longer runs."""
        left = sorted(self._running, key=lambda place: self._places[place])
        return [item for place in left for item in self._change(place, state="interrupted")]

    def _rewind(self, to: int) -> list[Item]:
        while self.items and self.items[-1].id > to:
            self.items.pop()
        self._places = {place: there for place, there in self._places.items() if there < len(self.items)}
        self._running &= self._places.keys()
        return []


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One decision."""

    seq: int  # of the fact
    at: float
    who: str  # "policy", "grant", "rules", "auto-approval", "mode", "nobody to ask"; of an answer the front end
    decision: str  # allow, ask, deny; of an answer yes, no, message, object, skip
    what: str
    why: str
    risk: str = ""
    call: str = ""


def audit(events: Iterable[TaskEvent]) -> list[AuditEntry]:
    """All decisions, in their order."""
    tools: dict[str, str] = {}
    asked: dict[str, QuestionAsked] = {}
    found: list[AuditEntry] = []
    for seq, event in enumerate(events, 1):
        match event:
            case ModelSaid(parts=parts):
                tools |= {part.id: part.name for part in parts if isinstance(part, ToolUse)}
            case QuestionAsked(question=question):
                asked[question] = event
            case CallJudged(call=call, part=part, reason=reason, risk=risk):
                what = ": ".join(each for each in (tools.get(call, ""), part) if each) or call
                entry = AuditEntry(
                    seq=seq,
                    at=event.at,
                    who=event.by,
                    decision=event.decision,
                    what=what,
                    why=reason,
                    risk=risk,
                    call=call,
                )
                found.append(entry)
            case QuestionAnswered(question=question):
                found.append(_answer(seq, event, asked.get(question)))
    return found


def _answer(seq: int, answered: QuestionAnswered, asked: QuestionAsked | None) -> AuditEntry:
    why = [answered.text]
    if answered.edited is not None:
        why.insert(0, f"as: {answered.edited}")
    if answered.always:
        why.insert(0, f"always ({answered.always})")
    return AuditEntry(
        seq=seq,
        at=answered.at,
        who=answered.by or "a person",
        decision=answered.answer,
        what=f"{asked.ask}: {asked.text}" if asked else answered.question,
        why="; ".join(each for each in why if each),
        call=(asked.call if asked else None) or "",
    )
