"""May the agent do this? The policy's word first, then the person's; and an agent's own questions, answered by kind.

terminal/create, fs/* ─ Want ─ Approvals (judged, asked, logged) ─→ Leave | Refused
session/request_permission ─ known input → Approvals │ else → asked as it stands ─→ an option, by its KIND

A yes to a permission request for a command is good for one `terminal/create` of the same bytes in the same directory:
who asked first and then runs it asks no second time.
"""

import asyncio
import json
import time
from collections import deque
from pathlib import Path
from typing import Final

from tarmac.acp.host.reading import Object, block_text, object_of, objects_of, text_of
from tarmac.acp.peer import Refused
from tarmac.acp.wire import CANCELLED
from tarmac.models.messages import Text, ToolUse
from tarmac.policy import Execute
from tarmac.policy.actions import ReadFile, WriteFile
from tarmac.policy.request import Approval
from tarmac.tasks.approvals import Approvals, Leave
from tarmac.tasks.desk import Desk, now
from tarmac.tasks.events import CallId, ToolFinished
from tarmac.tasks.questions import Questions
from tarmac.tools.tool import Done, Go, Ready, Want

DENIED: Final = -32010  # ours: the policy or the person said no
LONGEST: Final = 8_000  # characters of what an agent shows with its question
_PATHS: Final = ("file_path", "filePath", "path", "abs_path", "absolute_path", "target_file", "filename")


class Permission:
    """Judges what one hosted agent wants."""

    def __init__(self, desk: Desk, questions: Questions) -> None:
        self._desk = desk
        self._questions = questions
        self._approvals = Approvals(desk, questions)
        self._said: deque[Approval] = deque(maxlen=64)  # yes to permission requests, not used yet
        self._pending: set[asyncio.Task[object]] = set()

    def cancel(self) -> None:
        """The turn is cancelled: whatever is being asked is asked no more."""
        self._said.clear()
        for each in list(self._pending):
            each.cancel()

    # What we are to do ourselves

    async def leave(self, call: str, name: str, title: str, want: Want, *, same: Want | None = None) -> Go:
        """Leave to do it, spent; or Refused with why. A yes to `same` is one to this as well."""
        ready = Ready(title=title, done=title, act=_never, wants=(want,))
        if self._already(want) or (same is not None and self._already(same)):
            verdict = await self._desk.policy.judge(want.action, workspace=self._desk.workspace, task=self._desk.task)
            if verdict.decision != "deny":
                return Go(verdicts=(verdict,), approved=True)
        found = await self._permit(ToolUse(call, name, "{}"), ready)
        if found is None:
            raise Refused(CANCELLED, "the person cancelled this turn")
        if found.go is None:
            self._desk.add(
                ToolFinished(
                    at=now(), call=CallId(call), name=name, outcome="denied", content=(Text(found.told),), title=title
                )
            )
            raise Refused(DENIED, found.told)
        if found.go.command is None and (why := self._approvals.spend(found, ready)):
            raise Refused(DENIED, why)
        return found.go

    def _already(self, want: Want) -> bool:
        """Whether a person said yes to this very command, when the agent asked for it."""
        for each in list(self._said):
            if not each.use(want.action, task=self._desk.task, now=time.monotonic()):
                self._said.remove(each)
                return True
        return False

    async def _permit(self, use: ToolUse, ready: Ready) -> Leave | None:
        """None: cancelled meanwhile."""
        asking = asyncio.create_task(self._approvals.permit(use, ready))
        self._pending.add(asking)
        try:
            await asyncio.wait({asking})
            return None if asking.cancelled() else asking.result()
        finally:
            self._pending.discard(asking)
            asking.cancel()

    # What it asks about

    async def requested(self, params: Object, known: Object) -> Object:
        """The outcome of `session/request_permission`; `known` is the call as its updates told it."""
        call = {**known, **{name: value for name, value in object_of(params.get("toolCall")).items() if value}}
        options = objects_of(params.get("options"))
        wants = self._wants(call)
        title = text_of(call.get("title")) or "a tool"
        if wants:
            said = await self._judged(call, title, wants)
        else:
            said = await self._asked(call, title, options)
        if said is None:
            return {"outcome": {"outcome": "cancelled"}}
        return {"outcome": choose(options, yes=said)}

    async def _judged(self, call: Object, title: str, wants: tuple[Want, ...]) -> bool | None:
        ready = Ready(title=title, done=title, act=_never, wants=wants)
        use = ToolUse(text_of(call.get("toolCallId")) or "?", text_of(call.get("kind")) or "other", "{}")
        found = await self._permit(use, ready)
        if found is None:
            return None
        # Changed by the person, the agent would still run the old one; allowed in part, it would do all of it.
        if found.go is None or found.go.command is not None or found.go.refused:
            return False
        if isinstance(wants[0].action, Execute):
            self._said.extend(each.approval for each in found.spends)
        return True

    async def _asked(self, call: Object, title: str, options: list[Object]) -> bool | None:
        """Nothing of it can be judged: it is for the person alone."""
        kind = text_of(call.get("kind"))
        if self._desk.settings.auto == "all" and kind not in ("execute", "edit", "delete", "move"):
            return True
        if not self._desk.attended:
            return False
        lines = [title, *(block_text(object_of(each.get("content"))) for each in objects_of(call.get("content")))]
        if call.get("rawInput"):
            lines.append(json.dumps(call["rawInput"], ensure_ascii=False, indent=1))
        if not any(each.get("kind") == "allow_once" for each in options):
            lines.append("(The agent takes a yes for good: it offers no other.)")
        asking = asyncio.create_task(
            self._questions.ask(
                "tool",
                "\n".join(each for each in lines if each)[:LONGEST],
                call=CallId(text_of(call.get("toolCallId")) or "?"),
                timeout=self._desk.settings.approval_timeout,
            )
        )
        self._pending.add(asking)
        try:
            await asyncio.wait({asking})
            return None if asking.cancelled() else asking.result().answer == "yes"
        finally:
            self._pending.discard(asking)
            asking.cancel()

    # What can be judged

    def _wants(self, call: Object) -> tuple[Want, ...]:
        """What the call would do, where its input says so; empty: nobody can tell."""
        raw = object_of(call.get("rawInput"))
        kind = text_of(call.get("kind"))
        if command := command_of(raw):
            cwd = text_of(raw.get("cwd")) or text_of(raw.get("workdir"))
            here = Path(cwd) if cwd.startswith("/") else self._desk.workspace / cwd
            return (Want(action=Execute(command, cwd=here)),)
        if kind not in ("edit", "read"):
            return ()
        diffs = [each for each in objects_of(call.get("content")) if each.get("type") == "diff"]
        named = [text_of(raw.get(name)) for name in _PATHS if text_of(raw.get(name))]
        located = [text_of(each.get("path")) for each in objects_of(call.get("locations"))]
        if kind == "read":
            paths = list(dict.fromkeys(filter(None, named or located)))
            return tuple(Want(action=ReadFile(Path(each))) for each in paths)
        if diffs:
            return tuple(self._change(each) for each in diffs if text_of(each.get("path")))
        paths = list(dict.fromkeys(filter(None, named or located)))
        return tuple(self.file_want(Path(each), None, None) for each in paths)

    def _change(self, diff: Object) -> Want:
        old = diff.get("oldText")
        before = old.encode("utf-8", "replace") if isinstance(old, str) else None
        after = text_of(diff.get("newText")).encode("utf-8", "replace")
        return self.file_want(Path(text_of(diff.get("path"))), before, after)

    def file_want(self, path: Path, before: bytes | None, content: bytes | None) -> Want:
        """A file to be written, as the policy and a person look at it."""
        seen = self._desk.files.look(path, cwd=self._desk.workspace, workspace=self._desk.workspace)
        return Want(
            action=WriteFile(path), before=before, content=content, outside=not seen.inside, protected=seen.protected
        )


def command_of(raw: Object) -> str:
    """The command line in a tool's input, as agents name it."""
    for name in ("command", "cmd", "script"):
        found = raw.get(name)
        if isinstance(found, str) and found.strip() and "\0" not in found:
            return found
        if isinstance(found, list) and found and all(isinstance(each, str) for each in found):
            from shlex import join

            return join(found)
    return ""


def choose(options: list[Object], *, yes: bool) -> Object:
    """An option by its kind, never by its name or place. A yes is for once, if that is offered."""
    for kind in ("allow_once", "allow_always") if yes else ("reject_once", "reject_always"):
        for each in options:
            if each.get("kind") == kind and isinstance(each.get("optionId"), str):
                return {"outcome": "selected", "optionId": each["optionId"]}
    return {"outcome": "cancelled"}


async def _never(_: Go) -> Done:
    raise AssertionError("the host acts, not the call")
