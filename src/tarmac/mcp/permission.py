"""May this call be made? The policy's word, the level of trust, or the person, asked through their client (P1, P6).

judge ─deny→ told why ─allow→ go
      └ask→ covered by the level → go │ the client can't ask → told why, the rule, and how to allow it │ asked

A yes is bound to the very bytes, directory and terminal that were shown, and good once. In the older era the call
waits for it, up to a limit: then it ends, the question stays, and the same call again finds the answer. In the
stateless era the question is the call's result, and its answer comes with the same call again.
"""

import asyncio
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from tarmac.errors import TarmacError
from tarmac.events import TaskId
from tarmac.mcp.client import CannotAsk, Client, Question, Reply, Unanswered
from tarmac.mcp.wording import NOT_ASKED, cannot_ask, choices, message, waiting
from tarmac.policy import Action, Policy, SuggestedGrant, Verdict
from tarmac.policy.approval import (
    Always,
    Answer,
    AnswerKind,
    Approval,
    Authority,
    GrantScope,
    Pending,
    Request,
    authority,
    denied_text,
    grant_used,
    make_request,
)
from tarmac.policy.grants import GrantFile
from tarmac.tasks.auto import Auto, covers
from tarmac.tools.tool import Go, Ready, Want

AT_ONCE: Final = 0.2  # seconds: nobody reads and answers a question so fast
GOOD_FOR: Final = 600.0  # seconds that a question stays open
MOST_OPEN: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
    """The call may be made (`go`), or why not (`told`)."""

    go: Go | None = None
    told: str = ""
    approval: Approval | None = None  # to be spent just before it acts
    verdict: Verdict | None = None
    by: str = "policy"  # whose word it was


@dataclass(slots=True)
class _Open:
    """A question that was put to a person."""

    request: Request
    want: Want
    question: Question
    asked: float
    reply: "asyncio.Task[tuple[Reply, float]] | None" = None  # of the older era: the answer, and the time it took


class Permission:
    """Judges the calls of one workspace."""

    def __init__(
        self,
        *,
        policy: Policy,
        grants: GrantFile,
        auto: Auto,
        workspace: Path,
        task: TaskId,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.policy = policy
        self._grants = grants
        self._auto = auto
        self._workspace = workspace
        self._task = task
        self._clock = clock
        self._open: OrderedDict[str, _Open] = OrderedDict()  # by the question's id

    async def judge(self, want: Want) -> Verdict:
        return await self.policy.judge(want.action, workspace=self._workspace, task=self._task)

    async def permit(self, ready: Ready, client: Client, *, patience: float) -> Leave:
        """Judge what the call wants; ask, where somebody must be asked and can be. Unanswered, in the stateless era."""
        if not ready.wants:
            return Leave(go=Go())
        (want,) = ready.wants
        verdict = await self.judge(want)
        if verdict.decision == "deny":
            return Leave(told=f"{denied_text(want.action, verdict)} (rule: {verdict.rule}).", verdict=verdict)
        by_level = covers(self._auto, verdict, want.action)
        if verdict.decision == "allow" or by_level:
            by = Authority.LEVEL if by_level else authority(verdict)
            return Leave(go=Go(verdicts=(verdict,), approved=by_level), verdict=verdict, by=by)
        if not client.can_ask:
            return self._unasked(want.action, verdict, "this client cannot ask")
        request = make_request(
            want.action, verdict, task=self._task, terminal=ready.terminal, now=self._clock(), timeout=GOOD_FOR
        )
        try:
            found = await self._ask(request, want, verdict, client, patience)
        except CannotAsk as error:
            return self._unasked(want.action, verdict, f"this client cannot ask: {error}")
        if found is None:
            return Leave(told=waiting(want.action), verdict=verdict, by="nobody yet")
        leave = await self._decide(*found, verdict)
        return replace(leave, by=f"the person, through {client.name or 'a client'}") if leave.by == "policy" else leave

    def spend(self, leave: Leave, ready: Ready) -> str:
        """Use up what allowed the call, just before it acts: why it may not, or ""."""
        for want in ready.wants:
            if leave.approval is not None:
                why = leave.approval.use(want.action, task=self._task, terminal=ready.terminal, now=self._clock())
                if why:
                    return f"{why[0].upper()}{why[1:]}, and it was not done."
        if leave.verdict is not None and (grant := grant_used(leave.verdict)):
            self._grants.use(grant)
        return ""

    def forget(self) -> None:
        """Nobody waits for answers any more."""
        for each in self._open.values():
            if each.reply is not None:
                each.reply.cancel()
        self._open.clear()

    # Asking

    async def _ask(
        self, request: Request, want: Want, verdict: Verdict, client: Client, patience: float
    ) -> tuple[_Open, Reply, float] | None:
        """The question, its answer and how long that took; None: not yet."""
        self._drop_old()
        if client.answered is not None:
            id, reply = client.answered
            found = self._open.get(id)
            if found is not None and found.reply is None and found.request.digest == request.digest:
                del self._open[id]  # once, whatever the answer
                return found, reply, self._clock() - found.asked
        found = next((each for each in self._open.values() if self._is(each, request, client)), None)
        if found is None:
            found = self._put(request, want, verdict, client)
        if found.reply is None:
            found.asked = self._clock()
            raise Unanswered(found.question)
        try:
            await asyncio.wait({found.reply}, timeout=patience)
        except asyncio.CancelledError:  # the call was taken back, and with it its question
            found.reply.cancel()
            self._open.pop(found.question.id, None)
            raise
        if not found.reply.done():
            return None
        # Of two calls that waited for the same answer one takes it; the other asks anew.
        if self._open.pop(found.question.id, None) is None:
            return await self._ask(request, want, verdict, client, patience)
        reply, took = found.reply.result()
        return found, reply, took

    def _is(self, each: _Open, request: Request, client: Client) -> bool:
        return each.request.digest == request.digest and (each.reply is not None) == (not client.stateless)

    def _put(self, request: Request, want: Want, verdict: Verdict, client: Client) -> _Open:
        question = Question(
            id=secrets.token_urlsafe(12), message=message(request, verdict, client.name), choices=choices(request)
        )
        made = _Open(request, want, question, self._clock())
        if not client.stateless:
            made.reply = asyncio.create_task(self._timed(client, question))
            made.reply.add_done_callback(lambda task: task.cancelled() or task.exception())  # somebody may look, or not
        self._open[question.id] = made
        return made

    async def _timed(self, client: Client, question: Question) -> tuple[Reply, float]:
        began = self._clock()
        reply = await client.ask(question)
        return reply, self._clock() - began

    def _drop_old(self) -> None:
        now = self._clock()
        for id, each in list(self._open.items()):
            if now - each.asked > GOOD_FOR or len(self._open) >= MOST_OPEN:
                del self._open[id]
                if each.reply is not None:
                    each.reply.cancel()

    # Answers

    async def _decide(self, found: _Open, reply: Reply, took: float, verdict: Verdict) -> Leave:
        action = found.want.action
        if reply.action != "accept" and took < AT_ONCE:
            why = "this client cannot ask: it declined by itself, before anybody could have read the question"
            return self._unasked(action, verdict, why)
        if reply.action == "accept" and took < AT_ONCE and (verdict.personal or verdict.risk == "critical"):
            why = "this client said yes by itself, before anybody could have read the question"
            return self._unasked(action, verdict, why)
        if reply.action == "cancel":
            return Leave(told=NOT_ASKED, verdict=verdict)
        try:
            outcome = Pending(found.request, action).answer(_answer(found.request, reply), now=self._clock())
        except TarmacError as error:
            return Leave(told=f"{error.what}: it was not done.", verdict=verdict)
        if outcome.approval is None:
            return Leave(told=outcome.told, verdict=verdict)
        if outcome.grant is not None:
            await self._grant(outcome.grant, verdict)
        return Leave(go=Go(verdicts=(verdict,), approved=True), approval=outcome.approval, verdict=verdict)

    def _unasked(self, action: Action, verdict: Verdict, why: str) -> Leave:
        told = cannot_ask(action, verdict, why, workspace=self._workspace)
        return Leave(told=told, verdict=verdict, by=Authority.NOBODY)

    async def _grant(self, grant: SuggestedGrant, verdict: Verdict) -> None:
        """Remember an "always"; that it can't be remembered does not take the yes back."""
        try:
            await asyncio.to_thread(
                self._grants.add,
                grant,
                scope="workspace",
                risk=verdict.risk,
                workspace=self._workspace,
                origin="mcp",
            )
        except TarmacError:
            pass


def _answer(request: Request, reply: Reply) -> Answer:
    offered = choices(request)
    if reply.action != "accept" or reply.choice == offered[-1]:
        return Answer(AnswerKind.NO, text=reply.feedback)
    if reply.choice == offered[0]:
        return Answer(AnswerKind.YES, text=reply.feedback)
    if reply.choice in offered:
        always = Always(GrantScope.WORKSPACE, offered.index(reply.choice) - 1)
        return Answer(AnswerKind.YES, text=reply.feedback, always=always)
    return Answer(AnswerKind.NO, text=reply.feedback or "(no choice was made)")
