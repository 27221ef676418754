"""One call, from its preparation to its recorded result.

prepare → Ready ─judge→ Judged … ─ask→ Permission ─recorder.started, durable→ spend → act → recorder.finished
  └ then ← allowed ┘ where the preparation itself has an effect

A call gets exactly one result, whatever happens to it: wrong arguments, a denial, a failure. A person's approval takes
time, so a call that changes no files is prepared again before it acts. If it differs from what was shown, it is not
done. When a call is cancelled, a file that is being written gets a moment to be finished.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Final, Protocol

from tarmac.calls.call_judge import (
    Answered,
    Approved,
    Asker,
    Judge,
    Judged,
    NotAsked,
    Permission,
    Postponed,
    Question,
    renamed,
)
from tarmac.errors import BadArguments, StateUnavailable, TarmacError, ToolDenied, ToolFailed
from tarmac.events import CallId, CallOutcome
from tarmac.models.messages import Image, Part, Text
from tarmac.policy import ReadFile, WriteFile
from tarmac.policy.approval import Authority, Resolution, Resolved, denied_text
from tarmac.tools.file_access import aside
from tarmac.tools.tool import Done, Go, Ready

ENDING: Final = 3.0  # seconds that a cancelled call has to end its processes; most take a few hundredths
FINISHING: Final = 0.7  # seconds that a file being written has to be finished when its call is cancelled
MOST_EDITS: Final = 10  # of one command by a person; each is judged and asked about again

Around = Callable[[Ready], AbstractAsyncContextManager[None]]


def _nothing_around(_: Ready) -> AbstractAsyncContextManager[None]:
    return nullcontext()


def _never_void() -> str:
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call to be made."""

    id: CallId
    name: str  # of the tool
    prepare: Callable[[], Awaitable[Ready]]  # changes nothing; may be called twice
    timeout: float | None = None  # seconds that a question waits for its answer
    void: Callable[[], str] = _never_void  # why it is not made any more, or ""
    shown: Around = _nothing_around  # held from the preparation to the result
    slot: Around = _nothing_around  # held while it acts


@dataclass(frozen=True, slots=True, kw_only=True)
class CallResult:
    """The result of a call."""

    outcome: CallOutcome
    content: tuple[Part, ...]
    ready: Ready | None = None  # None: it could not be prepared
    done: Done | None = None  # None: it did not act, or not to its end
    permission: Permission | None = None  # None: it was not judged
    mistake: str = ""  # what the model did wrong

    @property
    def allowed(self) -> bool:
        """It was allowed, whatever came after that."""
        return self.permission is not None and self.permission.go is not None

    @property
    def unanswered(self) -> bool:
        """A person was asked, and did not answer."""
        return self.permission is not None and self.permission.resolution is Resolution.UNANSWERED

    @property
    def text(self) -> str:
        """Its text."""
        return "\n".join(each.text for each in self.content if isinstance(each, Text))


class NotMade(Exception):
    """Raised by `Call.prepare`: the call is not made, for a reason that is nobody's mistake."""


class Recorder(Protocol):
    """Records what happens to calls."""

    def judged(self, call: Call, judged: Sequence[Judged]) -> None:
        """The verdicts, before a person is asked."""

    async def decided(self, call: Call, ready: Ready, permission: Permission) -> None:
        """The decision, after a person was asked."""

    async def started(self, call: Call, ready: Ready, go: Go) -> None:
        """It is about to act. On disk when this returns, unless it changes nothing."""

    def finished(self, call: Call, result: CallResult) -> None:
        """It has a result."""

    def cancelled(self, call: Call, ready: Ready) -> None:
        """Its caller cancelled it."""


Checkpoint = Callable[[Call, Ready, Go], AbstractAsyncContextManager[None]]


def _no_checkpoint(_: Call, __: Ready, ___: Go) -> AbstractAsyncContextManager[None]:
    return nullcontext()


class Pipeline:
    """Makes calls."""

    def __init__(
        self,
        judge: Judge,
        asker: Asker,
        recorder: Recorder,
        *,
        checkpoint: Checkpoint = _no_checkpoint,
    ) -> None:
        """`checkpoint` is entered before the start of a call is recorded, and left when the call has acted."""
        self._judge = judge
        self._asker = asker
        self._recorder = recorder
        self._checkpoint = checkpoint
        self._finished_late: set[CallId] = set()  # cancelled, and done nevertheless

    async def run(self, call: Call) -> CallResult:
        """Make the call. A failure is a result. Only a cancellation and a broken log are raised."""
        ready: Ready | None = None
        try:
            ready = await call.prepare()
            async with call.shown(ready):
                ready, permission = await self._permitted(call, ready)
                result = await self._make(call, ready, permission)
        except ToolDenied as error:
            result = CallResult(outcome="denied", content=(Text(str(error)),), ready=ready)
        except (BadArguments, ToolFailed) as error:
            result = CallResult(outcome="failed", content=(Text(str(error)),), ready=ready, mistake=str(error))
        except NotMade as error:
            result = CallResult(outcome="skipped", content=(Text(str(error)),), ready=ready)
        except (StateUnavailable, Postponed):  # nothing can be recorded, or nothing is decided yet
            raise
        except TarmacError as error:
            result = CallResult(outcome="failed", content=(Text(str(error)),), ready=ready)
        except asyncio.CancelledError:
            if ready is not None and call.id not in self._finished_late:
                self._recorder.cancelled(call, ready)
            self._finished_late.discard(call.id)
            raise
        except Exception as error:  # a bug in a tool must not crash its caller: the result names it
            text = f"The tool failed: {type(error).__name__}: {error}"
            result = CallResult(outcome="failed", content=(Text(text),), ready=ready)
        self._recorder.finished(call, result)
        return result

    # Judging and asking

    async def _permitted(self, call: Call, ready: Ready) -> tuple[Ready, Permission]:
        """The decision, and the call when all of it is prepared. What the preparation needs is decided first."""
        permission = await self.permit(call, ready)
        while ready.then is not None and permission.go is not None:
            if why := self._judge.spend(permission, ready):
                return ready, replace(permission, resolution=Resolution.DENIED, go=None, told=why)
            ready = await ready.then()
            rest = await self.permit(call, ready)
            permission = replace(rest, remarks=(*permission.remarks, *rest.remarks))
        return ready, permission

    async def permit(self, call: Call, ready: Ready) -> Permission:
        """Judge all that the call wants, and ask a person where that is needed."""
        permission = await self._decide(call, ready)
        await self._recorder.decided(call, ready, permission)
        return permission

    async def _decide(self, call: Call, ready: Ready) -> Permission:
        """Judge and ask. An edited command is judged again."""
        wants, edited = ready.wants, None
        for _ in range(MOST_EDITS):
            judged = [await self._judge.judge(want) for want in wants]
            verdicts = tuple(each.verdict for each in judged)
            self._recorder.judged(call, judged)
            denied = frozenset(n for n, each in enumerate(judged) if each.decision == "deny")
            asked = [n for n, each in enumerate(judged) if each.decision == "ask"]
            batch = all(isinstance(each.action, ReadFile) for each in wants)  # a person may allow some of them
            if denied and not (batch and len(denied) < len(wants)):
                told = "\n".join(denied_text(wants[n].action, verdicts[n]) for n in sorted(denied))
                return Permission(resolution=Resolution.DENIED, told=told, verdicts=verdicts)
            by_level = any(each.by_level for each in judged)
            go = Go(verdicts=verdicts, approved=by_level, command=edited, refused=denied)
            if not asked:
                by = judged[0].by if judged else Authority.POLICY
                return Permission(resolution=Resolution.ALLOWED, go=go, verdicts=verdicts, by=by)
            found = await self._ask(call, ready, [judged[n] for n in asked], edited)
            if isinstance(found, NotAsked):
                return Permission(resolution=found.resolution, told=found.told, by=found.by, verdicts=verdicts)
            answered, resolved = found
            anew = resolved[0].anew
            if anew is None:
                files = batch or all(isinstance(each.action, WriteFile) for each in wants)
                return await self._permission(go, answered, resolved, [(n, judged[n]) for n in asked], files=files)
            edited = anew.command
            wants = tuple(renamed(each, anew) if n in asked else each for n, each in enumerate(wants))
        return Permission(resolution=Resolution.DENIED, told="The command was changed too many times, and was not run.")

    async def _ask(
        self, call: Call, ready: Ready, judged: Sequence[Judged], edited: str | None
    ) -> NotAsked | tuple[Answered, list[Resolved]]:
        actions, verdicts = tuple(each.want.action for each in judged), tuple(each.verdict for each in judged)
        if none := self._asker.unavailable(actions, verdicts):
            return none
        size = sum(len(each.want.before or b"") + len(each.want.content or b"") for each in judged)
        requests = await aside(size, lambda: [self._judge.request(each, ready, call.timeout) for each in judged])
        question = Question(
            call=call.id,
            title=ready.title if edited is None else f"Running `{edited}`",
            requests=tuple(requests),
            actions=actions,
            verdicts=verdicts,
        )
        found = await self._asker.ask(question)
        if isinstance(found, NotAsked):
            return found
        try:
            return found, question.resolve(found.answer, now=found.at)
        except TarmacError as error:  # from a front end that does not check answers itself
            return NotAsked(resolution=Resolution.DENIED, told=f"{error.what}: it was not done.", by=found.by)

    async def _permission(
        self,
        go: Go,
        answered: Answered,
        resolved: Sequence[Resolved],
        asked: Sequence[tuple[int, Judged]],
        *,
        files: bool,
    ) -> Permission:
        """What a person's answer permits. Of several `files`, some may be allowed."""
        pairs = list(zip(resolved, asked, strict=True))
        approved = tuple(Approved(approval=each.approval, want=j.want) for each, (_, j) in pairs if each.approval)
        refused = frozenset(n for each, (n, _) in pairs if each.approval is None)
        note = await self._judge.remember(resolved[0], asked[0][1], origin=answered.answer.by)
        notes = (note,) if note else ()
        by = answered.by or Authority.POLICY
        if not approved or (refused and not files):
            first = next(each for each in resolved if each.approval is None)
            images = tuple(each for each in answered.remarks if isinstance(each, Image))
            return Permission(
                resolution=first.resolution, told=first.told, by=by, verdicts=go.verdicts, remarks=images, notes=notes
            )
        return Permission(
            resolution=Resolution.ALLOWED,
            go=replace(go, approved=True, refused=go.refused | refused),
            by=by,
            verdicts=go.verdicts,
            approved=approved,
            remarks=answered.remarks,
            notes=notes,
        )

    # Acting

    async def _make(self, call: Call, ready: Ready, permission: Permission) -> CallResult:
        if why := call.void():
            return CallResult(outcome="skipped", content=(Text(f"[not run: {why}]"),), ready=ready)
        if permission.go is None:
            return _not_done(ready, permission, permission.told)
        async with call.slot(ready):
            if permission.approved and not ready.intents:  # files are checked again when they are written
                ready = await call.prepare()
                while ready.then is not None:  # that was allowed a moment ago
                    ready = await ready.then()
            if permission.edited is not None:
                ready = _edited(ready, permission.edited)
            async with self._checkpoint(call, ready, permission.go):
                await self._recorder.started(call, ready, permission.go)
                if why := self._judge.spend(permission, ready) or await self._judge.outdated(permission, ready):
                    return _not_done(ready, permission, why)
                done = await self._act(call, ready, permission)
        return _done(ready, permission, done)

    async def _act(self, call: Call, ready: Ready, permission: Permission) -> Done:
        """Let the call act. When it is cancelled, a file that is being written gets a moment to be finished."""
        assert permission.go is not None
        acting = asyncio.ensure_future(ready.act(permission.go))
        try:
            return await asyncio.shield(acting)
        except asyncio.CancelledError:
            if ready.intents:
                await asyncio.wait([acting], timeout=FINISHING)
            if acting.done() and not acting.cancelled() and acting.exception() is None:
                self._recorder.finished(call, _done(ready, permission, acting.result()))
                self._finished_late.add(call.id)
            else:
                acting.cancel()
                await asyncio.wait([acting], timeout=ENDING)
            raise


def _done(ready: Ready, permission: Permission, done: Done) -> CallResult:
    return CallResult(
        outcome=done.outcome,
        content=(*done.content, *permission.remarks),
        ready=ready,
        done=done,
        permission=permission,
    )


def _not_done(ready: Ready, permission: Permission, why: str) -> CallResult:
    """The result of a call that does not act. No answer, an ended turn and a person's own act are not denials."""
    outcomes: dict[Resolution, CallOutcome] = {
        Resolution.DONE: "done",
        Resolution.UNANSWERED: "skipped",
        Resolution.CANCELLED: "skipped",
        Resolution.PENDING: "skipped",
    }
    remarks = permission.remarks if permission.go is None else ()
    return CallResult(
        outcome=outcomes.get(permission.resolution, "denied"),
        content=(Text(why), *remarks),
        ready=ready,
        permission=permission,
    )


def _edited(ready: Ready, command: str) -> Ready:
    return replace(ready, title=f"Running `{command}`", done=f"Ran `{command}`")
