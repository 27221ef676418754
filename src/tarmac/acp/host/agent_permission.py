"""May the agent do this? The policy decides first, then the person.

terminal/create, fs/* ─ Ready ─ pipeline: judge, ask, record, act, record ─→ Done | Refused
session/request_permission ─ known input → judged and asked │ else → asked as it stands ─→ an option, by its KIND

A yes to a permission request for a command is valid for one `terminal/create` with the same bytes in the same
directory. A yes to a file is valid for one `fs/write_text_file` with the same bytes, over the content that the person
saw. So the person answers once if an agent asks first and then acts.
"""

import asyncio
import json
import shlex
import time
from collections import deque
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

from tarmac.acp.host.parameters import Object, block_text, object_of, objects_of, text_of
from tarmac.acp.rpc_peer import Refused
from tarmac.acp.wire import CANCELLED, DENIED, INTERNAL_ERROR
from tarmac.calls.call_judge import Answered, Approved, Judged, NotAsked, Permission, Question
from tarmac.calls.pipeline import Call, CallResult, Pipeline, Recorder
from tarmac.errors import TarmacError
from tarmac.file_system import read_bytes
from tarmac.policy import Action, Execute, Verdict
from tarmac.policy.approval import Answer, AnswerKind, Resolution, proven_as
from tarmac.policy.verdict import ReadFile, WriteFile
from tarmac.policy.visible import shortened
from tarmac.tasks.auto import reaches
from tarmac.tasks.call_recorder import record_verdicts
from tarmac.tasks.context import now
from tarmac.tasks.events import CallId, Noted, ToolFinished
from tarmac.tasks.questions import ActingAgent, Questions, TaskAsker
from tarmac.tasks.repetition import STUCK
from tarmac.tasks.state import TaskState
from tarmac.tasks.tool_calls import judge_of
from tarmac.tools.edit.unified_diff import patched
from tarmac.tools.execute_command import short
from tarmac.tools.tool import Done, Go, Ready, Want

Turn = Literal["none", "running", "cancelled"]  # of the agent: a person is asked while one is running

T = TypeVar("T")

MOST_PATCHED: Final = 1 << 20  # bytes of a file that a patch is applied to, to show what would be in it
LENT: Final = (  # the tools that are told as they act, the longer names first
    "run_persistent_command", "open_persistent_terminal", "kill_persistent_terminal", "send_to_terminal", "run_command",
)  # fmt: skip
LONGEST: Final = 8_000  # characters of each thing that an agent shows with its question
AGAIN: Final = "The agent made this call several times in a row, with the same result."
STOPPED: Final = "the person cancelled this turn"
_CANCELLED: Final = NotAsked(resolution=Resolution.CANCELLED, told=STOPPED)
_ACTS: Final = ("execute", "edit", "delete", "move")  # what is never allowed unseen
_FOLDERS: Final = ("cwd", "workdir", "working_directory", "dir_path", "directory")
_COMMANDS: Final = {"command", "cmd"}
_KNOWN: Final = {  # of a command's input: what changes nothing about what is run
    *_COMMANDS, *_FOLDERS, "description", "timeout", "timeout_ms", "is_background", "run_in_background",
    "call_id", "parsed_cmd", "reason",
}  # fmt: skip
_PATHS: Final = ("file_path", "filePath", "path", "abs_path", "absolute_path", "target_file", "filename")


class AgentPermission:
    """Judges what one hosted agent wants."""

    def __init__(self, state: TaskState, questions: Questions) -> None:
        self._state = state
        self._questions = questions
        self.judge = judge_of(state)
        self._said: deque[Approved] = deque(maxlen=64)  # yes to permission requests, not used yet
        self._pending: set[asyncio.Task[Any]] = set()
        self.turn: Turn = "none"
        self.agent = "the agent"  # what it calls itself
        self.remarks: list[str] = []  # for the model, with the next prompt: an option has no words

    def cancel(self) -> None:
        """The turn is cancelled. Open questions are withdrawn, and no new ones are asked until it ends."""
        self.turn = "cancelled"
        self._said.clear()
        for each in list(self._pending):
            each.cancel()

    # What we are to do ourselves

    async def run(self, call: CallId, name: str, ready: Ready, recorder: Recorder, *, same: Want | None = None) -> Done:
        """Judge, ask and act. Refused says why not. A yes to `same` counts for this, too."""
        asker = HostAsker(self, call, same=same)
        pipeline = Pipeline(self.judge, asker, recorder, checkpoint=self._state.checkpoints.around)
        result = await pipeline.run(self._call(call, name, ready))
        if result.done is not None:
            return result.done
        if result.outcome == "failed":
            raise Refused(INTERNAL_ERROR, result.text)
        if result.permission is None or result.permission.resolution is Resolution.CANCELLED:
            raise Refused(CANCELLED, STOPPED)
        raise Refused(DENIED, result.text)

    def _call(self, call: CallId, name: str, ready: Ready) -> Call:
        async def prepare() -> Ready:
            return ready

        return Call(
            id=call,
            name=name,
            prepare=prepare,
            timeout=self._state.context.settings.approval_timeout,
            void=lambda: STOPPED if self.turn == "cancelled" else "",
        )

    def approved_before(self, want: Want) -> bool:
        """Whether a person approved exactly this when the agent asked for it. This uses up the approval."""
        task, moment = self._state.context.task, time.monotonic()
        for each in list(self._said):
            if each.want.before == want.before and not each.approval.use(
                want.action, task=task, content=want.content, now=moment
            ):
                self._said.remove(each)
                return True
        return False

    async def cancellable(self, asking: Coroutine[Any, Any, T]) -> T | None:
        """Ask something. None: the turn was cancelled meanwhile."""
        task = asyncio.create_task(asking)
        self._pending.add(task)
        try:
            await asyncio.wait({task})
            return None if task.cancelled() else task.result()
        finally:
            self._pending.discard(task)
            task.cancel()

    # What it asks about

    async def requested(self, params: Object, call: Object, *, again: bool = False) -> Object:
        """The outcome of `session/request_permission` for this call, as its updates and the request tell it.

        `again`: it made this call several times in a row, with the same result. Then only a person can allow it.
        """
        options = objects_of(params.get("options"))
        title = text_of(call.get("title")) or text_of(params.get("title")) or "a tool"
        wants = self._wants(call)
        if again:
            said = await self._asked_again(call, title, options)
        else:
            said = await self._judged(call, title, wants, options) if wants else await self._asked(call, title, options)
        if said is None:
            return {"outcome": {"outcome": "cancelled"}}
        return {"outcome": choose(options, yes=said)}

    async def _judged(self, call: Object, title: str, wants: tuple[Want, ...], options: list[Object]) -> bool | None:
        command = wants[0].action if isinstance(wants[0].action, Execute) else None
        if command is not None and not await self._is_plain(call, command):
            return await self._asked(call, title, options)
        if command is None and (why := await self._described(call, wants)):
            return await self._asked(call, title, options, why)
        ready = Ready(title=title, done=title, act=_never, wants=wants)
        id = CallId(text_of(call.get("toolCallId")) or "?")
        asker = HostAsker(self, id, itself=not lent_tool(text_of(call.get("title"))))
        pipeline = Pipeline(self.judge, asker, HostRecorder(self._state))
        found = await pipeline.permit(self._call(id, text_of(call.get("kind")) or "other", ready), ready)
        if self.turn == "cancelled" or found.resolution is Resolution.CANCELLED:
            return None
        if found.go is None and not self._state.attended:
            if found.resolution is Resolution.NOBODY:
                self._not_asked(title, command.command if command else "")
            else:  # the policy's word, which nobody can change
                self._note(f"not allowed: {found.told}")
        # Changed by the person, the agent would still run the old one; allowed in part, it would do all of it.
        if found.go is None or found.go.command is not None or found.go.refused:
            return False
        self._said.extend(each for each in found.approved if command is not None or each.want.content is not None)
        return True

    async def _asked_again(self, call: Object, title: str, options: list[Object]) -> bool | None:
        """Ask about the call of an agent that goes in circles. What the policy denies stays denied."""
        found = [await self.judge.verdict(each.action) for each in self._wants(call)]
        if any(each.decision == "deny" for each in found):
            return await self._judged(call, title, self._wants(call), options)
        if not self._state.attended:
            self._note(f"not allowed: {AGAIN} {title[:200]}")
            self.remarks.append(STUCK.format(name=title[:200]))
            return False
        said = await self._asked(call, title, options, AGAIN)
        if said is False:
            self.remarks.append(STUCK.format(name=title[:200]))
        return said

    async def _is_plain(self, call: Object, command: Execute) -> bool:
        """Whether what the agent *says* it will run can be judged as a command: the policy's own yes may stand, and a
        person is shown the command alone.

        It is the agent that runs it, in its own way. So nothing may stand beside the command that could change its
        meaning (another machine, a shell, variables), and a proof must not rest on how *we* would run it: git does
        what a workspace's settings say, unless they are switched off. Else a person is shown all of it, and asked.
        """
        state = self._state
        verdict = await self.judge.verdict(command)
        if verdict.decision == "deny" or state.context.settings.auto == "all":
            return True
        claimed = call.get("kind") == "execute" or bool(lent_tool(text_of(call.get("title"))))
        named = set(object_of(call.get("rawInput")))
        if not claimed or not named <= _KNOWN or len(named & _COMMANDS) != 1 or len(named & set(_FOLDERS)) > 1:
            return False
        proven = verdict.decision == "allow" and verdict.plan is not None
        git = any(proven_as(part, "git") for part in verdict.parts)
        return not (proven and git) or reaches(state.context.settings.auto, "workspace")

    async def _described(self, call: Object, wants: tuple[Want, ...]) -> str:
        """Why a person must be asked about files of which only the agent's words tell what becomes of them, else ""."""
        if any(each.content is not None for each in wants) or not _words(call) or not self._state.attended:
            return ""
        state = self._state
        found = [await self.judge.verdict(each.action) for each in wants]
        if any(each.decision == "deny" for each in found) or state.context.settings.auto == "all":
            return ""
        return "; ".join(dict.fromkeys(f"{v.risk} risk: {v.reason}" for v in found if v.decision == "ask"))

    async def _asked(self, call: Object, title: str, options: list[Object], why: str = "") -> bool | None:
        """Ask about a call that can't be judged as a whole. The person sees all that the agent shows."""
        kind = text_of(call.get("kind"))
        if self.turn != "running":
            if self.turn == "none":
                self.between(title)
            return None
        if self._state.context.settings.auto == "all" and kind not in _ACTS and why != AGAIN:
            return True
        if not self._state.attended:
            self._not_asked(title, command_of(object_of(call.get("rawInput"))), kind=kind)
            return False
        lines = [shortened(title, LONGEST // 8), *(shortened(each, LONGEST) for each in _words(call)[:8])]
        if call.get("rawInput"):  # what the tool gets: it stands last, and to its end
            lines.append(shortened(json.dumps(call["rawInput"], ensure_ascii=False, indent=1), LONGEST))
        if not any(each.get("kind") == "allow_once" for each in options):
            lines.append("(The agent takes a yes for good: it offers no other.)")
        lines += [why, f"{self.agent} does this itself, outside Tarmac's terminals."]
        answered = await self.cancellable(
            self._questions.ask(
                "tool",
                "\n".join(each for each in lines if each),
                call=CallId(text_of(call.get("toolCallId")) or "?"),
                timeout=self._state.context.settings.approval_timeout,
            )
        )
        return None if answered is None else answered.answer is AnswerKind.YES

    def task_asker(self, call: CallId, *, itself: bool) -> TaskAsker:
        """Asks as a task does, while a turn is running. `itself`: the agent acts, not Tarmac."""
        agent = ActingAgent(self.agent, itself)
        return TaskAsker(self._state, self._questions, call, void=lambda: self.turn != "running", agent=agent)

    def between(self, what: str) -> None:
        """Between turns nothing is asked: the keys of a next message would answer the question."""
        self._note(f"not asked, as no turn was under way: {what[:200]}")

    def _not_asked(self, title: str, command: str, kind: str = "") -> None:
        """Tell the agent no. Tell the person why, and what would have allowed it."""
        before = "beforehand: --auto LEVEL"
        if command:
            before += f", or `tarmac grants allow -- {shlex.quote(command)}`"
        elif kind in _ACTS:
            before = "the agent does not tell what it would do, so nothing allows it beforehand"
        what = f"`{short(command)}`" if command else title
        self._note(f"not allowed, as nobody is here to be asked: {what} ({before})")

    def _note(self, text: str) -> None:
        self._state.add(Noted(at=now(), what="notice", text=text))

    # What can be judged

    def _wants(self, call: Object) -> tuple[Want, ...]:
        """What the call would do, if its input says so. Empty: nobody can tell."""
        raw = object_of(call.get("rawInput"))
        kind = text_of(call.get("kind"))
        if command := command_of(raw):
            cwd = next((text_of(raw.get(name)) for name in _FOLDERS if text_of(raw.get(name))), "")
            here = Path(cwd) if cwd.startswith("/") else self._state.context.workspace / cwd
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
        if isinstance(patch := diff.get("patch"), str):  # of version 2
            return self._patch(Path(text_of(diff.get("path"))), patch, new=diff.get("new") is True)
        old = diff.get("oldText")
        before = old.encode("utf-8", "replace") if isinstance(old, str) else None
        after = text_of(diff.get("newText")).encode("utf-8", "replace")
        return self.file_want(Path(text_of(diff.get("path"))), before, after)

    def _patch(self, path: Path, patch: str, *, new: bool) -> Want:
        """The file as a patch would change it. Only its path if the patch does not fit."""
        try:
            before = None if new else read_bytes(path, most=MOST_PATCHED)
            after = patched((before or b"").decode(), patch) if patch else None
        except (TarmacError, ValueError):
            return self.file_want(path, None, None)
        return self.file_want(path, before, after.encode("utf-8", "replace") if after is not None else None)

    def file_want(self, path: Path, before: bytes | None, content: bytes | None) -> Want:
        """A file to be written, as the policy and a person see it."""
        here = self._state.context.workspace
        seen = self._state.context.files.look(path, cwd=here, workspace=here)
        return Want(
            action=WriteFile(path, leads_to=seen.path),
            before=before,
            content=content,
            outside=not seen.inside,
            protected=seen.protected,
        )


class HostAsker:
    """Asks about one thing that the agent wants, unless the person said yes to it when the agent asked."""

    def __init__(
        self, permission: AgentPermission, call: CallId, *, same: Want | None = None, itself: bool = False
    ) -> None:
        """`same`: what the agent may have asked about, in other words. `itself`: the agent acts, not Tarmac."""
        self._permission = permission
        self._asker = permission.task_asker(call, itself=itself)
        self._same = same

    def unavailable(self, actions: Sequence[Action], verdicts: Sequence[Verdict]) -> NotAsked | None:
        return self._asker.unavailable(actions, verdicts)

    async def ask(self, question: Question) -> Answered | NotAsked:
        permission = self._permission
        known = [Want(action=question.actions[0]), *([self._same] if self._same else [])]
        if len(question.actions) == 1 and any(permission.approved_before(each) for each in known):
            return Answered(answer=Answer(AnswerKind.YES, by="acp"), at=time.monotonic())
        if permission.turn == "cancelled":
            return _CANCELLED
        found = await permission.cancellable(self._asker.ask(question))
        if isinstance(found, Answered) and found.answer.kind is AnswerKind.SKIP and permission.turn == "none":
            permission.between(question.title)
            return _CANCELLED
        return found or _CANCELLED


class HostRecorder:
    """Records what the agent wants in the task's log: verdicts, and what was not done. The agent tells the rest."""

    def __init__(self, state: TaskState) -> None:
        self.state = state

    def judged(self, call: Call, judged: Sequence[Judged]) -> None:
        record_verdicts(self.state, call.id, judged)

    async def decided(self, call: Call, ready: Ready, permission: Permission) -> None:
        for note in permission.notes:
            self.state.add(Noted(at=now(), what="error", text=note))

    async def started(self, call: Call, ready: Ready, go: Go) -> None:
        """Nothing: the agent reports its own call."""

    def finished(self, call: Call, result: CallResult) -> None:
        if result.outcome == "denied" and result.ready is not None:
            title = result.ready.title
            self.state.add(
                ToolFinished(
                    at=now(), call=call.id, name=call.name, outcome="denied", content=result.content, title=title
                )
            )

    def cancelled(self, call: Call, ready: Ready) -> None:
        """Nothing: the agent knows it."""


def _words(call: Object) -> list[str]:
    """What the agent says of a call."""
    found = (block_text(object_of(each.get("content"))) for each in objects_of(call.get("content")))
    return [each for each in found if each.strip()]


def lent_tool(title: str) -> str:
    """Which of our MCP tools a call's title names (`mcp__tarmac__run_command`, `tarmac/run_command`); or none."""
    words = title.lower()
    return next((each for each in LENT if each in words), "") if "tarmac" in words else ""


def command_of(raw: Object) -> str:
    """The command line in a tool's input, as agents name it."""
    for name in ("command", "cmd", "script"):
        found = raw.get(name)
        if isinstance(found, str) and found.strip() and "\0" not in found:
            return found
        if isinstance(found, list) and found and all(isinstance(each, str) for each in found):
            return shlex.join(found)
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
