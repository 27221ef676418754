"""What MCP clients did in a workspace, as a task's log: `tarmac tasks` lists it, and every decision is in it (P7).

first judged call → TaskCreated, TaskStarted, UserSaid        each → CallJudged → ToolStarted, durable → ToolFinished

It is the audit log: who asked for what, who said yes or no and why, and what came of it. Calls that only look are not
in it.
"""

import asyncio
import os
import time
from contextlib import AsyncExitStack
from pathlib import Path

import tarmac
from tarmac.mcp.client import Client
from tarmac.mcp.permission import Leave
from tarmac.models.messages import NO_USAGE, Text
from tarmac.tasks.desk import now
from tarmac.tasks.events import (
    CallId,
    CallJudged,
    Outcome,
    TaskCompleted,
    TaskStarted,
    ToolFinished,
    ToolStarted,
    UserSaid,
)
from tarmac.tasks.log import TaskLog
from tarmac.tasks.store import TaskStore
from tarmac.tools.tool import Ready

MODE = "mcp"


class Record:
    """The log of one workspace; made with the first call that is judged."""

    def __init__(self, store: TaskStore, workspace: Path) -> None:
        self._store = store
        self._workspace = workspace
        self._stack = AsyncExitStack()
        self._opening = asyncio.Lock()
        self._log: TaskLog | None = None
        self._calls = 0

    async def judged(self, name: str, client: Client, ready: Ready, leave: Leave) -> "Line":
        """The decision on a call, and where the rest of it is told."""
        if leave.verdict is None:
            return Line(None, name, ready, CallId(""))
        log = await self._open(client)
        self._calls += 1
        line = Line(log, name, ready, CallId(f"c{self._calls}"))
        verdict = leave.verdict
        log.add(
            CallJudged(
                at=now(),
                call=line.call,
                decision="allow" if leave.go is not None else "deny",
                risk=verdict.risk,
                reason=verdict.reason,
                part=verdict.part,
                by=leave.by,
            )
        )
        return line

    async def _open(self, client: Client) -> TaskLog:
        async with self._opening:
            if self._log is None:
                log = await self._stack.enter_async_context(self._store.create(workspace=self._workspace, mode=MODE))
                log.add(TaskStarted(at=now(), pid=os.getpid(), version=tarmac.__version__))
                log.add(
                    UserSaid(at=now(), text=f"The terminals of this workspace were used over MCP by {client.name}.")
                )
                self._log = log
            return self._log

    async def aclose(self) -> None:
        """The server ends."""
        if self._log is not None:
            await self._log.append(TaskCompleted(at=now(), result="The MCP server has ended.", usage=NO_USAGE))
        await self._stack.aclose()


class Line:
    """One call in the log; of one that only looks, nothing is written."""

    def __init__(self, log: TaskLog | None, name: str, ready: Ready, call: CallId) -> None:
        self.call = call
        self._log = log
        self._name = name
        self._ready = ready
        self._began = time.monotonic()

    async def starts(self) -> None:
        """It is about to act: on the disk before it does."""
        if self._log is None:
            return
        self._began = time.monotonic()
        await self._log.append(
            ToolStarted(
                at=now(),
                call=self.call,
                name=self._name,
                title=self._ready.title,
                command=self._ready.command,
                cwd=self._ready.cwd,
                terminal=self._ready.terminal,
            )
        )

    def ended(self, text: str, outcome: Outcome, exit_code: int | None = None) -> None:
        """What came of it."""
        if self._log is None:
            return
        self._log.add(
            ToolFinished(
                at=now(),
                call=self.call,
                name=self._name,
                outcome=outcome,
                content=(Text(text),),
                title=self._ready.done if outcome == "done" else self._ready.title,
                seconds=round(time.monotonic() - self._began, 4),
                exit_code=exit_code,
            )
        )
