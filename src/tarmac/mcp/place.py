"""A workspace with its terminals, as MCP clients use it: every call goes through here."""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any, Final

from tarmac.app import App, open_app
from tarmac.config import Config
from tarmac.errors import BadArguments, BadRequest, TarmacError, ToolFailed
from tarmac.events import TaskId
from tarmac.mcp import results
from tarmac.mcp.catalog import BY_NAME, MOST_SECONDS, Entry
from tarmac.mcp.client import Ask, Client, Hosted
from tarmac.mcp.door import Answer
from tarmac.mcp.outputs import Listed, Outputs
from tarmac.mcp.own import CheckCommand, OpenTerminal
from tarmac.mcp.permission import Permission
from tarmac.mcp.progress import Tail, telling
from tarmac.mcp.record import Record
from tarmac.mcp.wording import how_to_allow
from tarmac.models.messages import Blob, Text
from tarmac.policy import Execute
from tarmac.terminals.events import CommandStarted, TerminalClosedEvent, TerminalEvent
from tarmac.tools import decoding
from tarmac.tools.file_access import directory
from tarmac.tools.tool import Bench, Done, Ready, Reply, Suggestion, TodoItem, Tool, Want

AT_ONCE: Final = 32  # commands that run in one workspace; the next ones wait for their turn
LEAST: Final = 2.0  # seconds a command is waited for, however long a person took to say yes
FOR_TERMINAL: Final = 6.0  # seconds to wait for a terminal when all are in use
GRACE: Final = 6.5  # seconds after its end that a call may take; then it is told that it goes on
TOO_LATE: Final = "This takes longer than a call may, and goes on; nobody will be told. list_terminals shows what runs."
TERMINALS: Final = 16  # of one workspace: subagents of a client share them


@asynccontextmanager
async def open_place(config: Config) -> "AsyncIterator[Place]":
    """A workspace, until the server ends."""
    bounds = {
        "terminals.max_per_task": max(config.terminals.max_per_task, TERMINALS),
        "terminals.lease_timeout": min(config.terminals.lease_timeout, FOR_TERMINAL),
    }
    async with open_app(replace(config, values={**config.values, **bounds})) as app:
        place = Place(app)
        try:
            yield place
        finally:
            await place.aclose()


class Place:
    """One workspace: its terminals, its judge, and what was printed there."""

    def __init__(self, app: App, *, task: TaskId | None = None, ask: Ask | None = None) -> None:
        """`task`: whose terminals they are, where somebody hosts the client; `ask`: how that one asks the person."""
        self.workspace = app.config.workspace
        self.task = task or TaskId(f"mcp-{secrets.token_hex(4)}")
        self._ask = ask
        self.registry = app.registry
        self.outputs = Outputs()
        self.permission = Permission(
            policy=app.policy, grants=app.grants, auto=app.config.auto, workspace=self.workspace, task=self.task
        )
        self.record = Record(app.store, self.workspace)
        self._app = app
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._late: set[asyncio.Task[Answer]] = set()  # calls whose clients have their answer already
        self.registry.subscribe(self._heard)
        self._opened: dict[str, str | None] = {}  # terminal → the session whose call opened it
        self._left: dict[str, tuple[int, str | None]] = {}  # terminal → the command left running there, and whose it is

    async def aclose(self) -> None:
        """Nobody calls any more."""
        self.permission.forget()
        for each in self._late:
            each.cancel()
        await asyncio.gather(*self._late, return_exceptions=True)
        await self.record.aclose()

    # One call

    async def call(self, name: str, arguments: Mapping[str, Any], client: Client, *, end: float) -> Answer:
        """Read, judge, ask, run, tell. `end`: when it has to be told what there is."""
        entry = BY_NAME.get(name)
        client = client if self._ask is None else Hosted(client, self._ask)
        if entry is None:
            raise BadRequest(f"there is no tool `{name}`", hint=f"tools: {', '.join(BY_NAME)}")
        try:
            tool = decoding.read(entry.tool, name, dict(arguments))
            if isinstance(tool, CheckCommand):
                return await self._check(tool, client)
            return await self._in_time(self._make(entry, tool, client, end), end)
        except (BadArguments, ToolFailed) as error:
            return Answer(text=str(error), error=True)

    async def _in_time(self, work: Coroutine[Any, Any, Answer], end: float) -> Answer:
        """Its answer; when even what bounds it takes too long, the word that it goes on."""
        task = asyncio.create_task(work)
        try:
            await asyncio.wait({task}, timeout=max(end + GRACE - time.monotonic(), 0))
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait({task})
            raise
        if task.done():
            return task.result()
        self._late.add(task)
        task.add_done_callback(self._late.discard)
        task.add_done_callback(lambda each: each.cancelled() or each.exception())
        return Answer(text=TOO_LATE, error=True)

    @asynccontextmanager
    async def _turn(self, ready: Ready, end: float) -> AsyncIterator[None]:
        """Only so many commands at once. Who looks, or waits for a person, takes no turn from anybody."""
        if not ready.command:
            yield
            return
        try:
            async with asyncio.timeout_at(_loop_time(end)):
                await self._turns.acquire()
        except TimeoutError:
            raise ToolFailed(f"{AT_ONCE} commands are under way already: nothing was done. Try again.") from None
        try:
            yield
        finally:
            self._turns.release()

    async def _make(self, entry: Entry, tool: Tool, client: Client, end: float) -> Answer:
        tail = Tail()
        ready = await tool.prepare(self.bench(end, tail))
        title = ready.title
        async with telling(client, tail, lambda: title):
            leave = await self.permission.permit(ready, client, patience=end - time.monotonic() - LEAST)
            line = await self.record.judged(entry.name, client, ready, leave)
            try:
                if leave.go is None:
                    line.ended(leave.told, "denied")
                    return Answer(text=leave.told, error=True)
                async with self._turn(ready, end):
                    if leave.approval is not None:  # a person took their time: look again, run what they saw or nothing
                        ready = await tool.prepare(self.bench(end, tail))
                    if why := self.permission.spend(leave, ready):
                        line.ended(why, "denied")
                        return Answer(text=why, error=True)
                    await line.starts()
                    done = await ready.act(leave.go)
            except TarmacError as error:
                line.ended(str(error), "failed")
                raise
            except asyncio.CancelledError:
                line.ended("The client took the call back.", "interrupted")
                raise
        answer = self._told(entry, tool, done, client)
        line.ended(answer.text, "failed" if answer.error else "done", done.exit_code)
        return replace(answer, title=ready.done)

    def _told(self, entry: Entry, tool: Tool, done: Done, client: Client) -> Answer:
        data = results.data_of(entry.name, done)
        text = "\n".join(each.text for each in done.content if isinstance(each, Text))
        if entry.name == "open_persistent_terminal":
            if not (isinstance(tool, OpenTerminal) and tool.stay):
                self._opened[data["id"]] = client.session
            data["cwd"] = str(self.registry.get(data["id"]).cwd)
        elif uri := self._uri(data, done, client.session):
            data["output_uri"] = uri
        if done.outcome == "failed":
            return Answer(text=text, error=True)
        return Answer(text=text, data=data)

    def _uri(self, data: Mapping[str, Any], done: Done, session: str | None) -> str:
        if data.get("terminal_id"):
            if data["running"]:  # it ends with who started it
                self._left[data["terminal_id"]] = (data["number"], session)
            return f"tarmac://terminals/{data['terminal_id']}/{data['number']}" if data.get("output_bytes") else ""
        if "terminal" in data and "number" in data["terminal"]:
            return f"tarmac://terminals/{data['terminal']['id']}/{data['terminal']['number']}"
        path = results.output_path(done) if data.get("truncated") else None
        return self.outputs.keep(str(data.get("command")), path) if path else ""

    async def _check(self, tool: CheckCommand, client: Client) -> Answer:
        bench = self.bench(time.monotonic() + MOST_SECONDS, Tail())
        action = Execute(tool.command, cwd=directory(bench, tool.cwd), shell=bench.registry.shell().name)
        verdict = await self.permission.judge(Want(action=action))
        data = results.verdict_data(verdict)
        if verdict.decision == "ask":
            way = how_to_allow(action, verdict, workspace=self.workspace)
            data["asks"] = "the person, through this client" if client.can_ask else way
        lines = [f"{verdict.decision}, {verdict.risk} risk: {data['reason']} (rule: {verdict.rule})"]
        lines += [f"It {data['explanation']}."] if data["explanation"] else []
        lines += [f"Who is asked: {data['asks']}"] if "asks" in data else []
        return Answer(text="\n".join(lines), data=data)

    def bench(self, end: float, tail: Tail) -> Bench:
        """Where a tool works, until `end`."""
        left = max(min(end - time.monotonic(), MOST_SECONDS), LEAST)
        own = self._app.config.tools
        settings = replace(
            own,
            command_timeout=min(own.command_timeout, 30.0),
            longest_timeout=min(own.longest_timeout, left),
        )
        return Bench(
            workspace=self.workspace,
            cwd=self.workspace,
            task=self.task,
            files=self._app.files,
            registry=self.registry,
            talk=NoTalk(),
            store=_no_store,
            show=tail.show,
            settings=settings,
            alone=True,
        )

    # What was printed

    def _heard(self, event: TerminalEvent) -> None:
        if isinstance(event, TerminalClosedEvent):
            self._opened.pop(event.terminal, None)
            self._left.pop(event.terminal, None)
        if isinstance(event, CommandStarted) and not event.by_person:
            with suppress(TarmacError):  # it is being opened, by somebody else
                terminal = self.registry.get(event.terminal)
                if terminal.task == self.task:
                    self.outputs.begun(terminal)

    def listing(self) -> list[Listed]:
        """The outputs that can be read."""
        return self.outputs.listing(self.bench(0, Tail()))

    async def read(self, uri: str) -> str:
        """One of them."""
        return await self.outputs.read(self.bench(0, Tail()), uri)

    # Clients that go

    async def session_ended(self, session: str) -> None:
        """Close the terminals that this client opened."""
        mine = [terminal for terminal, owner in self._opened.items() if owner == session]
        for each in self.registry.listing(busy=True):
            number, owner = self._left.get(each.id, (0, None))
            if owner == session and each.current is not None and each.current.number == number:
                mine.append(each.id)
        await asyncio.gather(*(self.registry.kill(each) for each in set(mine)))


class NoTalk:
    """There is no task that a tool could speak with."""

    async def ask(self, question: str, suggestions: tuple[Suggestion, ...]) -> Reply:
        raise ToolFailed("Nobody can be asked here.")

    async def complete(self, result: str) -> Reply | None:
        raise ToolFailed("There is no task to complete.")

    async def switch_mode(self, mode: str, why: str) -> str:
        raise ToolFailed("There are no modes here.")

    async def set_todos(self, todos: tuple[TodoItem, ...]) -> None:
        raise ToolFailed("There is no todo list here.")

    def slash_command(self, name: str) -> str | None:
        return None

    def slash_commands(self) -> Mapping[str, str]:
        return {}


def _no_store(_: bytes, __: str) -> Blob:
    raise ToolFailed("Images can't be kept here.")


def _loop_time(end: float) -> float:
    return asyncio.get_running_loop().time() + max(end - time.monotonic(), 0.0)
