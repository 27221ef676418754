"""Judge what a call wants, and say what a person or a client answered about it.

want ─policy, level, grants→ Judged ─ask→ Asker.ask(Question) → Answered | NotAsked → Permission
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Literal, Protocol

from tarmac.errors import TarmacError
from tarmac.events import CallId, TaskId
from tarmac.models.messages import Image, Part, Text
from tarmac.policy import Action, Execute, ReadFile, Verdict, WriteFile
from tarmac.policy.approval import (
    Answer,
    Approval,
    Authority,
    Pending,
    Request,
    Resolution,
    Resolved,
    authority,
    grant_used,
    make_request,
)
from tarmac.policy.grants import GrantFile
from tarmac.policy.verdict import Basis
from tarmac.tools.tool import Go, Ready, Want


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question about one call: a request for each thing that somebody must allow."""

    call: CallId
    title: str
    requests: tuple[Request, ...]
    actions: tuple[Action, ...]
    verdicts: tuple[Verdict, ...]

    @property
    def command(self) -> bool:
        """Whether it is about more than files."""
        return any(not isinstance(each, ReadFile | WriteFile) for each in self.actions)

    def resolve(self, answer: Answer, *, now: float) -> list[Resolved]:
        """What an answer means for each request. BadRequest for one that makes no sense."""
        pairs = zip(self.requests, self.actions, strict=True)
        return [Pending(request, action).answer(answer, now=now) for request, action in pairs]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """A person answered, or `AnswerKind.SKIP`: they were asked and did not."""

    answer: Answer
    at: float  # when, by the monotonic clock
    by: str = ""  # who, for the log; empty: the question and its answer are in the log themselves
    images: tuple[Image, ...] = ()  # pictures that came with it, as the model gets them

    @property
    def remarks(self) -> tuple[Part, ...]:
        """What the person added to a yes, for the model."""
        text = self.answer.text
        words = (Text(f"The person approved this and says: {text}"),) if text else ()
        return (*words, *self.images)


@dataclass(frozen=True, slots=True, kw_only=True)
class NotAsked:
    """No answer came, and why."""

    resolution: Resolution
    told: str  # to the agent
    by: str = ""  # for the log


class Postponed(Exception):
    """Raised by an asker: the call ends without a result, and the same call comes again with the answer."""


class Asker(Protocol):
    """Puts a question to a person, through one front end."""

    def unavailable(self, actions: Sequence[Action], verdicts: Sequence[Verdict]) -> NotAsked | None:
        """Why nobody can be asked about these; None: somebody can."""

    async def ask(self, question: Question) -> Answered | NotAsked:
        """Wait for the answer. `question.resolve` raises BadRequest for an answer that makes no sense."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Approved:
    """An approval, and what it is for."""

    approval: Approval
    want: Want


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """The decision on a call: it may act (`go`), or the reason why not (`told`)."""

    resolution: Resolution
    go: Go | None = None
    told: str = ""
    by: str = Authority.POLICY  # who decided
    verdicts: tuple[Verdict, ...] = ()
    approved: tuple[Approved, ...] = ()  # used up just before the call acts
    remarks: tuple[Part, ...] = ()  # what the person said with their answer
    notes: tuple[str, ...] = field(default=())  # for the person

    @property
    def edited(self) -> str | None:
        """The command that the person wants instead."""
        return self.go.command if self.go else None


def renamed(want: Want, action: Execute) -> Want:
    """The same want for an edited command."""
    return replace(want, action=action)


OUTDATED = "This would no longer do what was approved, and it was not done"
Covers = Callable[[Verdict, Action], bool]


class ActionPolicy(Protocol):
    """Decides what may be done: `tarmac.policy.Policy`, `DenyAll`, or one of your own."""

    async def judge(self, action: Action, *, workspace: Path, task: TaskId | None = None) -> Verdict: ...


class DenyAll:
    """A policy that denies everything, for programs that embed Tarmac without one."""

    async def judge(self, action: Action, *, workspace: Path, task: TaskId | None = None) -> Verdict:
        return Verdict(
            decision="deny",
            risk="critical",
            reason="this program allows nothing",
            part="",
            explanation="is not allowed here",
            rule="deny.all",
            basis=Basis.SETTING,
        )


def _covers_nothing(_: Verdict, __: Action) -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The decision on one thing that a call wants, before a person is asked."""

    want: Want
    verdict: Verdict
    by_level: bool  # the auto-approval level says yes where the policy would ask

    @property
    def decision(self) -> Literal["allow", "ask", "deny"]:
        return "allow" if self.by_level else self.verdict.decision

    @property
    def by(self) -> Authority:
        return Authority.LEVEL if self.by_level else authority(self.verdict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """Judges the calls of one task or workspace."""

    policy: ActionPolicy
    workspace: Path
    task: TaskId
    grants: GrantFile | None = None
    covers: Covers = _covers_nothing  # whether the auto-approval level says yes in a person's place
    clock: Callable[[], float] = time.monotonic

    async def verdict(self, action: Action) -> Verdict:
        """The policy's word alone."""
        return await self.policy.judge(action, workspace=self.workspace, task=self.task)

    async def judge(self, want: Want) -> Judged:
        verdict = await self.verdict(want.action)
        return Judged(want=want, verdict=verdict, by_level=self.covers(verdict, want.action))

    def request(self, judged: Judged, ready: Ready, timeout: float | None) -> Request:
        """What a person is shown."""
        want = judged.want
        return make_request(
            want.action,
            judged.verdict,
            task=self.task,
            terminal=ready.terminal,
            before=want.before,
            content=want.content,
            folder=want.folder,
            outside=want.outside,
            protected=want.protected,
            now=self.clock(),
            timeout=timeout,
        )

    async def remember(self, resolved: Resolved, judged: Judged, *, origin: str) -> str:
        """Store an "always allow". Why that failed, or "": a failure does not take the yes back."""
        if resolved.grant is None or self.grants is None:
            return ""
        try:
            await asyncio.to_thread(
                self.grants.add,
                resolved.grant,
                scope=resolved.scope.value,
                risk=judged.verdict.risk,
                workspace=self.workspace,
                task=self.task,
                origin=origin,
            )
        except TarmacError as error:
            return f"this could not be allowed for good: {error.what}"
        return ""

    async def outdated(self, permission: Permission, ready: Ready) -> str:
        """Why the person's yes, or the level's, is not for what the call would do now, or "".

        Time has passed, and a process may have put a link where a folder was. Then the same words do something else.
        """
        if permission.go is None or not permission.go.approved or ready.intents:  # files are checked when written
            return ""
        for number, (want, then) in enumerate(zip(ready.wants, permission.verdicts, strict=False)):
            if number in permission.go.refused:
                continue
            now = await self.judge(replace(want, action=_about_to(want, ready, permission.go)))
            if now.decision != "allow" and _shown(now.verdict) != _shown(then):
                return f"{OUTDATED}: now it {now.verdict.explanation}."
        return ""

    def spend(self, permission: Permission, ready: Ready) -> str:
        """Use up what allowed the call, just before it acts. Why it may not act, or ""."""
        for each in permission.approved:
            why = _another_file(each.want, ready) or each.approval.use(
                _about_to(each.want, ready, permission.go),
                task=self.task,
                terminal=ready.terminal,
                content=each.want.content,
                now=self.clock(),
            )
            if why:
                return f"{why[0].upper()}{why[1:]}, and it was not done."
        for verdict in permission.go.verdicts if permission.go and self.grants else ():
            if grant := grant_used(verdict):
                assert self.grants is not None
                self.grants.use(grant)
        return ""


def _shown(verdict: Verdict) -> tuple[object, ...]:
    """What a person was told of it."""
    parts = tuple((each.text, each.risk, each.reason, each.explanation) for each in verdict.parts)
    return verdict.decision, verdict.risk, verdict.reason, verdict.explanation, parts


def _about_to(want: Want, ready: Ready, go: Go | None) -> Action:
    """The action as the call is about to do it: it may have been prepared again since the person was asked."""
    action = ready.wants[0].action if len(ready.wants) == 1 else want.action
    if isinstance(action, Execute) and ready.command is not None:
        edited = go.command if go else None
        return replace(action, command=ready.command if edited is None else edited, cwd=ready.cwd or action.cwd)
    return action


def _another_file(want: Want, ready: Ready) -> str:
    """Why the content that was shown is not what the call will write; empty when it is."""
    if not isinstance(want.action, WriteFile) or want.content is None:
        return ""
    after = {each.path: each.after for each in ready.intents}.get(want.action.path)
    same = after is None or after == sha256(want.content).hexdigest()
    return "" if same else "this is not what was approved"
