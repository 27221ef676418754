"""What MCP clients did in a workspace, as a task's log: `tarmac tasks` lists it, and every decision is in it.

first judged call → TaskCreated, TaskStarted, UserSaid        each → CallJudged → ToolStarted, durable → ToolFinished

It is the audit log: who asked for what, who said yes or no and why, and what came of it. Calls that only look are not
in it.
"""

import asyncio
import os
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import tarmac
from tarmac.calls.call_judge import Judged, Permission
from tarmac.calls.pipeline import Call, CallResult
from tarmac.models.messages import NO_USAGE, Text
from tarmac.tasks.checkpoints import Checkpoints
from tarmac.tasks.context import now
from tarmac.tasks.events import (
    CallId,
    CallJudged,
    Noted,
    Outcome,
    TaskCompleted,
    TaskStarted,
    ToolFinished,
    ToolStarted,
    UserSaid,
)
from tarmac.tasks.log import TaskLog
from tarmac.tasks.store import TaskStore
from tarmac.tools.tool import Go, Ready

MODE = "mcp"


class WorkspaceLog:
    """The log of one workspace; made with the first call that is judged."""

    def __init__(self, store: TaskStore, workspace: Path, *, place: str = "") -> None:
        self._store = store
        self._workspace = workspace
        self._place = place
        self._stack = AsyncExitStack()
        self._opening = asyncio.Lock()
        self._log: TaskLog | None = None
        self.checkpoints: Checkpoints | None = None  # None: nothing was judged yet

    async def open(self, client: str) -> TaskLog:
        async with self._opening:
            if self._log is None:
                made = self._store.create(workspace=self._workspace, mode=MODE, place=self._place)
                log = await self._stack.enter_async_context(made)
                log.add(TaskStarted(at=now(), pid=os.getpid(), version=tarmac.__version__))
                log.add(UserSaid(at=now(), text=f"The terminals of this workspace were used over MCP by {client}."))
                self._log = log
                self.checkpoints = Checkpoints(log, self._workspace, place=self._place)
            return self._log

    async def aclose(self) -> None:
        """The server ends."""
        if self.checkpoints is not None:
            await self.checkpoints.aclose()
        if self._log is not None:
            await self._log.append(TaskCompleted(at=now(), result="The MCP server has ended.", usage=NO_USAGE))
        await self._stack.aclose()


class WorkspaceRecorder:
    """Records one call of a client."""

    def __init__(self, log: WorkspaceLog, client: str) -> None:
        self._workspace = log
        self._client = client
        self._log: TaskLog | None = None  # None: nothing was judged, so nothing is written
        self._began = time.monotonic()

    def judged(self, call: Call, judged: Sequence[Judged]) -> None:
        """Written with the decision."""

    async def decided(self, call: Call, ready: Ready, permission: Permission) -> None:
        if not permission.verdicts:
            return
        self._log = await self._workspace.open(self._client)
        verdict = permission.verdicts[0]
        self._log.add(
            CallJudged(
                at=now(),
                call=call.id,
                decision="allow" if permission.go is not None else "deny",
                risk=verdict.risk,
                reason=verdict.reason,
                part=verdict.part,
                by=permission.by,
            )
        )
        for note in permission.notes:
            self._log.add(Noted(at=now(), what="error", text=note))

    async def started(self, call: Call, ready: Ready, go: Go) -> None:
        if self._log is None:
            return
        self._began = time.monotonic()
        await self._log.append(started(call, call.id, ready, go))

    def finished(self, call: Call, result: CallResult) -> None:
        self._finish(call, result.ready, result.outcome, result.text, result.done.exit_code if result.done else None)

    def cancelled(self, call: Call, ready: Ready) -> None:
        self._finish(call, ready, "interrupted", "The client cancelled the call.")

    def _finish(
        self, call: Call, ready: Ready | None, outcome: Outcome, text: str, exit_code: int | None = None
    ) -> None:
        if self._log is None or ready is None:
            return
        seconds = round(time.monotonic() - self._began, 4)
        self._log.add(finished(call, call.id, ready, outcome, text, exit_code=exit_code, seconds=seconds))


def started(call: Call, id: CallId, ready: Ready, go: Go) -> ToolStarted:
    """The fact that a call is about to act, by the id it has in the log."""
    return ToolStarted(
        at=now(),
        call=id,
        name=call.name,
        title=ready.title,
        command=go.command or ready.command,
        cwd=ready.cwd,
        terminal=ready.terminal,
    )


def finished(
    call: Call, id: CallId, ready: Ready, outcome: Outcome, text: str, *, exit_code: int | None, seconds: float
) -> ToolFinished:
    """The fact of a call's result."""
    return ToolFinished(
        at=now(),
        call=id,
        name=call.name,
        outcome=outcome,
        content=(Text(text),),
        title=ready.done if outcome == "done" else ready.title,
        seconds=seconds,
        exit_code=exit_code,
    )
