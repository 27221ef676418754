"""Our terminals for an agent we host, over MCP: one registry, one asker, one log, whichever way it takes.

the agent → bridge → its server ─ serve() → mcp.ToolServer → Shared (a Workspace): tools, terminals of the hosted task
                                          ├ LentAsker: judged and asked as all that the agent does is
                                          └ LentRecorder: in the log and on the screen of the hosted task

`tarmac.acp` and `tarmac.mcp` don't know each other; this is where they meet.
"""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from weakref import WeakValueDictionary

from tarmac.acp.host.agent_permission import HostAsker
from tarmac.acp.host.bridge_server import Write
from tarmac.acp.host.hosted import HostedTask
from tarmac.app import App
from tarmac.calls.call_judge import Answered, Asker, Judged, NotAsked, Permission, Question
from tarmac.calls.pipeline import Call, CallResult, Recorder
from tarmac.config import Config
from tarmac.events import TerminalId
from tarmac.mcp.catalog import CatalogEntry
from tarmac.mcp.client import CannotAsk, Client, Form, FormReply, Tail, ToolAnswer
from tarmac.mcp.client_asker import OpenQuestions, waiting
from tarmac.mcp.pipes import serve_lines
from tarmac.mcp.recorder import finished, started
from tarmac.mcp.secret_page import SecretRequests
from tarmac.mcp.tool_server import ToolServer
from tarmac.mcp.workspace import Images, Workspace
from tarmac.policy import Action, Execute, Verdict
from tarmac.policy.approval import Resolution
from tarmac.tasks.call_recorder import Live, record_verdicts
from tarmac.tasks.context import now
from tarmac.tasks.events import CallId, Noted, Outcome
from tarmac.tools.tool import Bench, Go, Ready, Want
from tarmac.tools.tool import Live as Shown

IDLE: Final = "The person is asked only while you work on what they said: this was not done."
STOPPED: Final = "The person stopped this turn: what ran was ended, and nothing more was done."


class LentAsker:
    """Asks as the hosted task does. The call waits up to a limit; the same call again finds the answer."""

    def __init__(
        self, hosted: HostedTask, questions: "OpenQuestions[Answered | NotAsked]", call: CallId, *, until: float
    ) -> None:
        self._hosted = hosted
        self._questions = questions
        self._call = call
        self._until = until

    def unavailable(self, actions: Sequence[Action], verdicts: Sequence[Verdict]) -> NotAsked | None:
        return HostAsker(self._hosted.client.permission, self._call).unavailable(actions, verdicts)

    async def ask(self, question: Question) -> Answered | NotAsked:
        (request,), (action,) = question.requests, question.actions
        # what the agent asked for by session/request_permission names no shell
        same = Want(action=Execute(action.command, cwd=action.cwd)) if isinstance(action, Execute) else None
        asker = HostAsker(self._hosted.client.permission, self._call, same=same)
        patience = self._until - time.monotonic()
        found = await self._questions.ask(request.digest, lambda: asker.ask(question), patience, stale=_cancelled)
        if found is None:
            return NotAsked(resolution=Resolution.PENDING, told=waiting(action))
        if isinstance(found, NotAsked) and _cancelled(found):
            return replace(found, told=STOPPED if self._hosted.running else IDLE)
        return found


def _cancelled(found: Answered | NotAsked) -> bool:
    return isinstance(found, NotAsked) and found.resolution is Resolution.CANCELLED


class LentRecorder:
    """Records one call in the hosted task's own log, under the agent's own name for it if it told of it."""

    def __init__(self, hosted: HostedTask, call: CallId) -> None:
        self._hosted = hosted
        self.id = call  # in the log
        self._told = False  # it is in the log
        self._begun = False  # the agent has told its beginning
        self._began = time.monotonic()

    def judged(self, call: Call, judged: Sequence[Judged]) -> None:
        record_verdicts(self._hosted.state, call.id, judged)

    async def decided(self, call: Call, ready: Ready, permission: Permission) -> None:
        """Nothing is told of a call that still waits for its answer, nor of one that only looks."""
        for note in permission.notes:
            self._hosted.state.add(Noted(at=now(), what="error", text=note))
        if permission.resolution is Resolution.PENDING or not (ready.wants or ready.command):
            return
        self._told, command = True, permission.edited or ready.command
        theirs = self._hosted.client.updates.adopt(command) if command else None
        if theirs is None:
            self._hosted.client.updates.told_elsewhere(call.name)
        elif theirs.started:  # it is on the screen already, under the agent's own name for it
            self.id, self._begun = CallId(theirs.id), True

    async def started(self, call: Call, ready: Ready, go: Go) -> None:
        self._began = time.monotonic()
        if self._told and not self._begun:
            await self._hosted.state.append(started(call, self.id, ready, go))

    def finished(self, call: Call, result: CallResult) -> None:
        self._finish(call, result.ready, result.outcome, result.text, result.done.exit_code if result.done else None)

    def cancelled(self, call: Call, ready: Ready) -> None:
        self._finish(call, ready, "interrupted", "The client cancelled the call.")

    def _finish(
        self, call: Call, ready: Ready | None, outcome: Outcome, text: str, exit_code: int | None = None
    ) -> None:
        if self._told and ready is not None:
            seconds = round(time.monotonic() - self._began, 4)
            fact = finished(call, self.id, ready, outcome, text, exit_code=exit_code, seconds=seconds)
            self._hosted.state.add(fact)


class Shared(Workspace):
    """The hosted task's workspace, as its agent uses it over MCP."""

    def __init__(self, app: App, hosted: HostedTask) -> None:
        super().__init__(app, task=hosted.id, ask=_never)
        self._hosted = hosted
        self.judge = hosted.client.permission.judge
        self._lent: OpenQuestions[Answered | NotAsked] = OpenQuestions()
        self._recorders: WeakValueDictionary[CallId, LentRecorder] = WeakValueDictionary()  # of calls being made
        self._calls: set[asyncio.Task[ToolAnswer]] = set()

    async def aclose(self) -> None:
        self._lent.forget()
        await super().aclose()

    def checkpoint(self, call: Call, ready: Ready, go: Go) -> AbstractAsyncContextManager[None]:
        return self._hosted.state.checkpoints.around(call, ready, go)

    def new_call(self) -> CallId:
        return CallId(f"mcp-{secrets.token_hex(4)}")

    def asker(self, client: Client, call: Call, *, until: float) -> Asker:
        return LentAsker(self._hosted, self._lent, call.id, until=until)

    def recorder(self, client: Client, call: Call) -> Recorder:
        self._recorders[call.id] = made = LentRecorder(self._hosted, call.id)
        return made

    async def call(self, name: str, arguments: Mapping[str, Any], client: Client, *, end: float) -> ToolAnswer:
        """As any client's; the end of the turn is the end of it."""
        made = asyncio.create_task(super().call(name, arguments, client, end=end))
        self._calls.add(made)
        made.add_done_callback(self._calls.discard)
        try:
            await asyncio.wait({made})
        except asyncio.CancelledError:
            made.cancel()
            await asyncio.wait({made})
            raise
        return ToolAnswer(text=STOPPED, error=True) if made.cancelled() else made.result()

    def cancel(self) -> None:
        for each in list(self._calls):
            each.cancel()

    def bench(
        self,
        end: float,
        tail: Tail,
        call: CallId | None = None,
        images: Images | None = None,
        asked: SecretRequests | None = None,
        *,
        viewer: str | None = None,
    ) -> Bench:
        bench = super().bench(end, tail, call, images, asked, viewer=viewer)
        if call is None:
            return bench
        made: list[Live] = []

        def live() -> Live:  # made when it acts: by then it may have another name
            if not made:
                made.append(Live(self._hosted.state, self._recorders[call].id))
            return made[0]

        def show(shown: Shown) -> None:
            tail.show(shown)
            live().show(shown)

        def started(terminal: TerminalId, spool: Path) -> None:
            live().started(terminal, spool)

        async def recorded() -> None:
            await live().recorded()

        return replace(bench, show=show, started=started, recorded=recorded)


class Offering(ToolServer):
    """The server, which knows whether its tools were asked for."""

    listed = False

    def tools(self) -> Sequence[CatalogEntry]:
        self.listed = True
        return super().tools()


async def serve(place: Shared, pieces: AsyncIterator[bytes], write: Write, offered: asyncio.Event) -> None:
    """One connection of the agent, to its end; `offered` is set when it has been told which tools there are."""
    server = Offering(load=_unused, workspace=place.workspace, hosted=place)

    async def written(data: bytes) -> None:
        await write(data)
        if server.listed:
            offered.set()

    try:
        await serve_lines(server, pieces, written)
    finally:
        await place.aclose()
        await server.aclose()


def _unused(_: Path) -> Config:
    raise AssertionError("the place is open already")


async def _never(_: Form) -> FormReply:
    raise CannotAsk("the host asks by itself")
