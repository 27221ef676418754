"""Our terminals for an agent we host, over MCP: one registry, one asking, one log, whichever way it takes.

the agent → bridge → hatch ─ serve() → mcp's door → Shared (a Place): tools, terminals of the hosted task
                                          ├ Asking: judged and asked as all that the agent does is
                                          └ Telling: in the log and on the screen of the hosted task

`tarmac.acp` and `tarmac.mcp` don't know each other; this is where they meet.
"""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from tarmac.acp.host.hatch import Write
from tarmac.acp.host.hosted import Hosted
from tarmac.app import App
from tarmac.config import Config
from tarmac.events import TerminalId
from tarmac.mcp.catalog import Entry
from tarmac.mcp.client import CannotAsk, Client, Question, Reply
from tarmac.mcp.door import Answer, Door
from tarmac.mcp.permission import Leave, Permission
from tarmac.mcp.pipes import serve_lines
from tarmac.mcp.place import Place
from tarmac.mcp.progress import Tail
from tarmac.mcp.record import Line, Record
from tarmac.mcp.wording import waiting
from tarmac.models.messages import ToolUse
from tarmac.policy import Execute
from tarmac.policy.approval import digest
from tarmac.tasks.approvals import Leave as Said
from tarmac.tasks.events import CallId
from tarmac.tasks.live import Live
from tarmac.tools.tool import Bench, Go, Ready, Want
from tarmac.tools.tool import Live as Shown

GOOD_FOR: Final = 600.0  # seconds that an answer waits for the call that asked to come again
IDLE: Final = "The person is asked only while you work on what they said: this was not done."
STOPPED: Final = "The person stopped this turn: what ran was ended, and nothing more was done."

_call: ContextVar[CallId] = ContextVar("call")  # the one that is being made


@dataclass(frozen=True, slots=True, kw_only=True)
class Given(Leave):
    """What the task's approvals said to a call."""

    said: Said | None = None
    waits: bool = False  # nobody has answered yet


class Asking(Permission):
    """Asks as the hosted task does: the same questions, on the same screen, with the same memory."""

    def __init__(self, app: App, hosted: Hosted) -> None:
        desk = hosted.desk
        super().__init__(
            policy=desk.policy, grants=app.grants, auto=desk.settings.auto, workspace=desk.workspace, task=desk.task
        )
        self._hosted = hosted
        self._waiting: dict[str, asyncio.Task[Said | None]] = {}  # by what they are about
        self.changed: dict[CallId, str] = {}  # what the person made of a call

    async def permit(self, ready: Ready, client: Client, *, patience: float) -> Leave:
        """Wait for the person, up to a time; then the call ends, and the same call again finds the answer."""
        if not ready.wants:
            return Leave(go=Go())
        (want,) = ready.wants
        key = digest(want.action, task=self._hosted.id, terminal=ready.terminal)
        asking = self._waiting.get(key)
        if asking is None or (asking.done() and (asking.cancelled() or asking.result() is None)):  # of an old turn
            asking = self._waiting[key] = asyncio.create_task(self._judge_and_ask(ready, want))
            asyncio.get_running_loop().call_later(GOOD_FOR, self._drop, key, asking)
        try:
            await asyncio.wait({asking}, timeout=max(patience, 0))
        except asyncio.CancelledError:  # the call was taken back, and with it its question
            self._drop(key, asking)
            raise
        if not asking.done():
            return Given(told=waiting(want.action), waits=True)
        if self._waiting.get(key) is not asking:  # of two calls that waited, the other has taken the answer
            return await self.permit(ready, client, patience=patience)
        del self._waiting[key]
        said = None if asking.cancelled() else asking.result()
        if said is None:
            return Given(told=STOPPED if self._hosted.running else IDLE)
        if said.go is not None and said.go.command is not None:
            self.changed[_call.get()] = said.go.command
        approval = said.spends[0].approval if said.spends else None
        return Given(go=said.go, told=said.told, approval=approval, said=said)

    async def _judge_and_ask(self, ready: Ready, want: Want) -> Said | None:
        use = ToolUse(_call.get(), "mcp", "{}")
        action = want.action
        # what the agent asked for by session/request_permission names no shell
        same = Want(action=Execute(action.command, cwd=action.cwd)) if isinstance(action, Execute) else None
        return await self._hosted.client.permission.permit(use, ready, same=same)

    def _drop(self, key: str, asking: "asyncio.Task[Said | None]") -> None:
        if self._waiting.get(key) is asking:
            del self._waiting[key]
            asking.cancel()

    def spend(self, leave: Leave, ready: Ready) -> str:
        if not isinstance(leave, Given) or leave.said is None:
            return ""
        return self._hosted.client.permission.spend(leave.said, ready)

    def forget(self) -> None:
        for key, asking in list(self._waiting.items()):
            self._drop(key, asking)


class Begun(Line):
    """A call whose beginning the agent has told."""

    async def starts(self) -> None:
        self._began = time.monotonic()


class Telling(Record):
    """What is done over MCP is told in the hosted task's own log."""

    def __init__(self, app: App, hosted: Hosted) -> None:
        super().__init__(app.store, hosted.desk.workspace)
        self._hosted = hosted

    async def judged(self, name: str, client: Client, ready: Ready, leave: Leave) -> Line:
        if (isinstance(leave, Given) and leave.waits) or not (ready.wants or ready.command):
            return Line(None, name, ready, _call.get())
        if isinstance(leave, Given) and leave.go is not None and leave.go.command is not None:
            command = leave.go.command
            ready = replace(ready, command=command, title=f"Running `{command}`", done=f"Ran `{command}`")
        log = self._hosted.desk.log
        theirs = self._hosted.client.telling.adopt(ready.command) if ready.command else None
        if theirs is None:
            self._hosted.client.telling.told_elsewhere(name)
        elif theirs.started:  # it is on the screen already, under the agent's own name for it
            _call.set(CallId(theirs.id))
            return Begun(log, name, ready, CallId(theirs.id))
        return Line(log, name, ready, _call.get())

    async def aclose(self) -> None:
        """The log is the host's."""


class Shared(Place):
    """The hosted task's workspace, as its agent uses it over MCP."""

    def __init__(self, app: App, hosted: Hosted) -> None:
        super().__init__(app, task=hosted.id, ask=_never)
        self._hosted = hosted
        self.asking = Asking(app, hosted)
        self.permission = self.asking
        self.record = Telling(app, hosted)
        self._calls: set[asyncio.Task[Answer]] = set()

    async def call(self, name: str, arguments: Mapping[str, Any], client: Client, *, end: float) -> Answer:
        """As any client's; the end of the turn is the end of it."""
        _call.set(CallId(f"mcp-{secrets.token_hex(4)}"))
        made = asyncio.create_task(super().call(name, arguments, client, end=end))
        self._calls.add(made)
        made.add_done_callback(self._calls.discard)
        try:
            await asyncio.wait({made})
        except asyncio.CancelledError:
            made.cancel()
            await asyncio.wait({made})
            raise
        if made.cancelled():
            return Answer(text=STOPPED, error=True)
        answer = made.result()
        changed = self.asking.changed.pop(_call.get(), None)
        if changed is None:
            return answer
        return replace(answer, text=f"The person changed the command to: {changed}\n{answer.text}")

    def cancel(self) -> None:
        for each in list(self._calls):
            each.cancel()

    def bench(self, end: float, tail: Tail) -> Bench:
        made: list[Live] = []

        def live() -> Live:  # made when it acts: by then it may have another name
            if not made:
                made.append(Live(self._hosted.desk, _call.get()))
            return made[0]

        def show(shown: Shown) -> None:
            tail.show(shown)
            live().show(shown)

        def started(terminal: TerminalId, spool: Path) -> None:
            live().started(terminal, spool)

        return replace(super().bench(end, tail), show=show, started=started)


class Offering(Door):
    """The door, which knows whether its tools were asked for."""

    listed = False

    def tools(self) -> Sequence[Entry]:
        self.listed = True
        return super().tools()


async def serve(place: Shared, pieces: AsyncIterator[bytes], write: Write, offered: asyncio.Event) -> None:
    """One connection of the agent, to its end; `offered` is set when it has been told which tools there are."""
    door = Offering(load=_unused, workspace=place.workspace, hosted=place)

    async def written(data: bytes) -> None:
        await write(data)
        if door.listed:
            offered.set()

    try:
        await serve_lines(door, pieces, written)
    finally:
        await place.aclose()
        await door.aclose()


def _unused(_: Path) -> Config:
    raise AssertionError("the place is open already")


async def _never(_: Question) -> Reply:
    raise CannotAsk("the host asks by itself")
