"""May this call be made? The policy's word, the person's level of trust, or the person themselves (S13, P6, P7).

wants ─judge→ verdicts ─deny→ told ─allow→ Leave(go)
                       └ask→ covered by the level? → nobody there? → a question, bound to the bytes → Leave(go)

Every verdict is in the log, with whose word it was: that is the audit log. A yes is spent just before the call acts,
and on nothing but what was shown.
"""

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Final, Literal

from tarmac.errors import TarmacError
from tarmac.models.messages import Image, Part, Text, ToolUse
from tarmac.policy import Action, Execute, ReadFile, Verdict, WriteFile
from tarmac.policy.approval import (
    Answer,
    AnswerKind,
    Approval,
    Authority,
    GrantScope,
    Pending,
    Request,
    Resolution,
    Resolved,
    authority,
    denied_text,
    grant_used,
    make_request,
    no_person_text,
)
from tarmac.policy.verdict import SuggestedGrant
from tarmac.tasks.auto import covers
from tarmac.tasks.desk import Desk, now
from tarmac.tasks.events import CallId, CallJudged, Noted, QuestionAnswered
from tarmac.tasks.questions import Questions
from tarmac.tools.aside import aside
from tarmac.tools.tool import Go, Ready, Want

MOST_EDITS: Final = 10  # of one command by one person: each is judged, and asked about, anew


@dataclass(frozen=True, slots=True)
class Spend:
    """A yes, and what it is for."""

    approval: Approval
    want: Want


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
    """What follows: the call may act (`go`), or why not (`told`)."""

    go: Go | None = None
    told: str = ""
    resolution: Resolution = Resolution.DENIED
    remarks: tuple[Part, ...] = ()  # what the person said with their yes, or their no
    spends: tuple[Spend, ...] = ()


class Approvals:
    """Judges the calls of one task."""

    def __init__(self, desk: Desk, questions: Questions) -> None:
        self._desk = desk
        self._questions = questions

    async def permit(self, use: ToolUse, ready: Ready, *, void: Callable[[], bool] = bool) -> Leave:
        """Judge all that the call wants, and ask where somebody must be asked, unless it is `void` by then."""
        wants, edited = ready.wants, None
        for _ in range(MOST_EDITS):
            verdicts = [await self._judge(want) for want in wants]
            by_level = [covers(self._desk.settings.auto, v, w.action) for v, w in zip(verdicts, wants, strict=True)]
            self._record(use, verdicts, by_level)
            denied = [n for n, each in enumerate(verdicts) if each.decision == "deny"]
            asked = [n for n, each in enumerate(verdicts) if each.decision == "ask" and not by_level[n]]
            batch = all(isinstance(each.action, ReadFile) for each in wants)  # of which some may be read
            if denied and not (batch and len(denied) < len(wants)):
                told = "\n".join(denied_text(wants[n].action, verdicts[n]) for n in denied)
                return Leave(told=told)
            go = Go(verdicts=tuple(verdicts), approved=any(by_level), command=edited, refused=frozenset(denied))
            if not asked:
                return Leave(go=go, resolution=Resolution.ALLOWED)
            if not self._desk.attended:
                return self._nobody(use, [verdicts[n] for n in asked])
            answer = await self._ask(use, ready, wants, verdicts, asked, edited=edited, void=void)
            if answer.anew is None:
                return self._leave(go, answer, batch=batch)
            edited = answer.anew.command
            wants = tuple(replace(each, action=answer.anew) if n in asked else each for n, each in enumerate(wants))
        return Leave(told="The command was changed too many times, and was not run.")

    def spend(self, leave: Leave, ready: Ready) -> str:
        """Use up what allowed the call, just before it acts; why it may not, or ""."""
        desk = self._desk
        for each in leave.spends:
            why = _another_file(each.want, ready) or each.approval.use(
                _about_to(each.want, ready, leave.go),
                task=desk.task,
                terminal=ready.terminal,
                content=each.want.content,
                now=time.monotonic(),
            )
            if why:
                return f"{why[0].upper()}{why[1:]}, and it was not done."
        if desk.grants and leave.go:
            for verdict in leave.go.verdicts:
                if grant := grant_used(verdict):
                    desk.grants.use(grant)
        return ""

    # Judging

    async def _judge(self, want: Want) -> Verdict:
        return await self._desk.policy.judge(want.action, workspace=self._desk.workspace, task=self._desk.task)

    def _record(self, use: ToolUse, verdicts: Sequence[Verdict], by_level: Sequence[bool]) -> None:
        for verdict, covered in zip(verdicts, by_level, strict=True):
            by = Authority.LEVEL if covered else authority(verdict)
            decision = "allow" if covered else verdict.decision
            self._judged(use, verdict, decision=decision, by=by)

    def _judged(self, use: ToolUse, verdict: Verdict, *, decision: Literal["allow", "ask", "deny"], by: str) -> None:
        self._desk.add(
            CallJudged(
                at=now(),
                call=CallId(use.id),
                decision=decision,
                risk=verdict.risk,
                reason=verdict.reason,
                part=verdict.part,
                by=by,
            )
        )

    def _nobody(self, use: ToolUse, verdicts: Sequence[Verdict]) -> Leave:
        for verdict in verdicts:
            self._judged(use, verdict, decision="deny", by=Authority.NOBODY)
        return Leave(told=no_person_text(verdicts), resolution=Resolution.NOBODY)

    # Asking

    async def _ask(
        self,
        use: ToolUse,
        ready: Ready,
        wants: Sequence[Want],
        verdicts: Sequence[Verdict],
        asked: Sequence[int],
        *,
        edited: str | None,
        void: Callable[[], bool],
    ) -> "_Answered":
        timeout = self._desk.settings.approval_timeout
        size = sum(len(wants[n].before or b"") + len(wants[n].content or b"") for n in asked)
        requests = await aside(size, lambda: [self._request(wants[n], verdicts[n], ready, timeout) for n in asked])
        title = ready.title if edited is None else f"Running `{edited}`"
        found = _Answered()

        def check(answer: Answer) -> None:
            resolved = [
                Pending(request, wants[n].action).answer(answer, now=time.monotonic())
                for n, request in zip(asked, requests, strict=True)
            ]
            found.take(resolved, [(n, wants[n]) for n in asked])

        commands = any(not isinstance(wants[n].action, ReadFile | WriteFile) for n in asked)
        answered = await self._questions.ask(
            "command" if commands else "tool",
            title,
            call=CallId(use.id),
            details=json.dumps({"title": title, "requests": [each.as_data() for each in requests]}),
            timeout=timeout,
            check=check,
            void=void,
        )
        if answered.answer is AnswerKind.SKIP:  # nobody answered: `check` was not asked
            check(Answer(AnswerKind.SKIP))
        found.remarks = _remarks(answered)
        await self._grant(found, verdicts[asked[0]], answered)
        return found

    def _request(self, want: Want, verdict: Verdict, ready: Ready, timeout: float | None) -> Request:
        return make_request(
            want.action,
            verdict,
            task=self._desk.task,
            terminal=ready.terminal,
            before=want.before,
            content=want.content,
            outside=want.outside,
            protected=want.protected,
            now=time.monotonic(),
            timeout=timeout,
        )

    async def _grant(self, found: "_Answered", verdict: Verdict, answered: QuestionAnswered) -> None:
        """Remember an "always"; that it can't be remembered does not take the yes back."""
        desk = self._desk
        if found.grant is None or desk.grants is None:
            return
        try:
            await asyncio.to_thread(
                desk.grants.add,
                found.grant,
                scope=found.scope.value,
                risk=verdict.risk,
                workspace=desk.workspace,
                task=desk.task,
                origin=answered.by,
            )
        except TarmacError as error:
            desk.add(Noted(at=now(), what="error", text=f"this could not be allowed for good: {error.what}"))

    def _leave(self, go: Go, answer: "_Answered", *, batch: bool) -> Leave:
        if not answer.spends or (answer.refused and not batch):
            return Leave(told=answer.told, resolution=answer.resolution, remarks=answer.images)
        refused = go.refused | answer.refused
        return Leave(
            go=replace(go, approved=True, refused=refused),
            resolution=Resolution.ALLOWED,
            remarks=answer.remarks,
            spends=tuple(answer.spends),
        )


def _about_to(want: Want, ready: Ready, go: Go | None) -> Action:
    """The action as it will be done: of a command, the line and directory that the call is about to use."""
    if not isinstance(want.action, Execute) or ready.command is None:
        return want.action
    edited = go.command if go else None
    command = ready.command if edited is None else edited
    return replace(want.action, command=command, cwd=ready.cwd or want.action.cwd)


def _another_file(want: Want, ready: Ready) -> str:
    """Why the content that was shown is not what the call will write; empty when it is."""
    if not isinstance(want.action, WriteFile) or want.content is None:
        return ""
    after = {each.path: each.after for each in ready.intents}.get(want.action.path)
    same = after is None or after == sha256(want.content).hexdigest()
    return "" if same else "this is not what was approved"


class _Answered:
    """What a person's answer to one question means for each thing that it was about."""

    def __init__(self) -> None:
        self.told = ""
        self.resolution = Resolution.DENIED
        self.anew: Execute | None = None
        self.grant: SuggestedGrant | None = None
        self.scope = GrantScope.TASK
        self.spends: list[Spend] = []
        self.refused: frozenset[int] = frozenset()
        self.remarks: tuple[Part, ...] = ()

    @property
    def images(self) -> tuple[Part, ...]:
        return tuple(each for each in self.remarks if isinstance(each, Image))

    def take(self, resolved: Sequence[Resolved], wants: Sequence[tuple[int, Want]]) -> None:
        first = next((each for each in resolved if each.approval is None), resolved[0])
        self.told, self.resolution = first.told, first.resolution
        self.anew = resolved[0].anew
        self.grant, self.scope = resolved[0].grant, resolved[0].scope
        pairs = list(zip(resolved, wants, strict=True))
        self.spends = [Spend(each.approval, want) for each, (_, want) in pairs if each.approval]
        self.refused = frozenset(n for each, (n, _) in pairs if each.approval is None)


def _remarks(answered: QuestionAnswered) -> tuple[Part, ...]:
    """What a person added to a yes, for the model."""
    words = (Text(f"The person approved this and says: {answered.text}"),) if answered.text else ()
    return (*words, *(Image(each) for each in answered.images))
