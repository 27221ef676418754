"""The policy, the auto-approval level and the grants of one task or workspace, as the pipeline asks them."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Literal

from tarmac.calls.permission import Permission
from tarmac.errors import TarmacError
from tarmac.events import TaskId
from tarmac.policy import Action, Execute, Policy, Verdict, WriteFile
from tarmac.policy.approval import Authority, Request, Resolved, authority, grant_used, make_request
from tarmac.policy.grants import GrantFile
from tarmac.tools.tool import Go, Ready, Want

Covers = Callable[[Verdict, Action], bool]


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

    policy: Policy
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
