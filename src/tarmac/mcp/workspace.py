"""A workspace with its terminals, as MCP clients use it: every call goes through here."""

import asyncio
import itertools
import json
import secrets
import time
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tarmac.app import App, open_app
from tarmac.calls.call_judge import Asker, Judge
from tarmac.calls.pipeline import Call, CallResult, Pipeline, Recorder
from tarmac.config import Config
from tarmac.errors import BadArguments, BadRequest, TarmacError, ToolFailed
from tarmac.events import CallId, TaskId, TerminalId
from tarmac.mcp.catalog import BY_NAME, COMMAND_RESULT, MOST_SECONDS, CatalogEntry, CheckCommand, OpenWorkspaceTerminal
from tarmac.mcp.client import Ask, Client, HostedClient, Tail, ToolAnswer, telling
from tarmac.mcp.client_asker import GOOD_FOR, ClientAsker, ClientQuestions, how_to_allow
from tarmac.mcp.recorder import WorkspaceLog, WorkspaceRecorder
from tarmac.mcp.resources import ListedOutput, Outputs, ResourceChanges
from tarmac.mcp.secret_page import SecretPage, SecretRequests
from tarmac.models.messages import Blob, Image, Text
from tarmac.policy import Execute, Verdict
from tarmac.policy.visible import visible
from tarmac.tasks.auto import covers
from tarmac.tasks.repetition import STUCK, Repetition, fingerprint
from tarmac.terminals.events import CommandStarted, TerminalClosedEvent, TerminalEvent
from tarmac.terminals.terminal import Terminal
from tarmac.tools import call_decoder, terminal_access
from tarmac.tools.file_access import directory, looking
from tarmac.tools.report import SECRET_ALONE, SLOW
from tarmac.tools.tool import Bench, Done, Go, Ready, Reply, Suggestion, TodoItem, Tool

if TYPE_CHECKING:
    from tarmac.fleet.open_address import WorkingPlace

AT_ONCE: Final = 32  # commands that run in one workspace; the next ones wait for their turn
LEAST: Final = 2.0  # seconds a command is waited for, however long a person took to say yes
FOR_TERMINAL: Final = 6.0  # seconds to wait for a terminal when all are in use
GRACE: Final = 6.5  # seconds after its end that a call may take; then it is told that it goes on
TOO_LATE: Final = "This takes longer than a call may, and goes on; nobody will be told. list_terminals shows what runs."
MOST_SESSIONS: Final = 64  # whose calls are compared
PATIENT: Final = {"wait_for_terminal"}  # waiting again is not a repetition
TERMINALS: Final = 16  # of one workspace: subagents of a client share them


@asynccontextmanager
async def open_workspace(config: Config, place: "WorkingPlace | None" = None) -> "AsyncIterator[Workspace]":
    """A workspace, until the server ends."""
    bounds = {
        "terminals.max_per_task": max(config.terminals.max_per_task, TERMINALS),
        "terminals.lease_timeout": min(config.terminals.lease_timeout, FOR_TERMINAL),
    }
    async with open_app(replace(config, values={**config.values, **bounds}), place=place) as app:
        opened = Workspace(app)
        try:
            yield opened
        finally:
            await opened.aclose()


class Workspace:
    """One workspace: its terminals, its judge, and what was printed there."""

    def __init__(self, app: App, *, task: TaskId | None = None, ask: Ask | None = None) -> None:
        """`task`: whose terminals they are, where somebody hosts the client; `ask`: how that one asks the person."""
        self.workspace = app.config.workspace
        self.task = task or TaskId(f"mcp-{secrets.token_hex(4)}")
        self._ask = ask
        self.registry = app.registry
        self.outputs = Outputs()
        self.judge = Judge(
            policy=app.policy,
            workspace=self.workspace,
            task=self.task,
            grants=app.grants,
            covers=partial(covers, app.config.auto),
        )
        self.questions = ClientQuestions()
        self.secret_page = SecretPage()
        self.log = WorkspaceLog(app.store, self.workspace, place=app.place.name if app.place else "")
        self._numbers = itertools.count(1)
        self._app = app
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._late: set[asyncio.Task[ToolAnswer]] = set()  # calls whose clients have their answer already
        self.changes = ResourceChanges(self._visible)
        self.registry.subscribe(self._heard)
        self._opened: dict[str, str | None] = {}  # terminal → the session whose call opened it
        self._seen: dict[Path, str | None] = {}  # the versions of files that clients know, by digest
        self._repetitions: dict[str | None, Repetition] = {}  # by session
        self._left: dict[str, tuple[int, str | None]] = {}  # terminal → the command left running there, and whose it is
        self._resumed: dict[str, asyncio.Task[None]] = {}  # clients whose terminals of earlier servers were looked for

    async def aclose(self) -> None:
        """Nobody calls any more."""
        self.changes.close()
        self.questions.forget()
        for each in self._late:
            each.cancel()
        await asyncio.gather(*self._late, return_exceptions=True)
        await self.secret_page.aclose()
        await self.log.aclose()

    # One call

    async def call(self, name: str, arguments: Mapping[str, Any], client: Client, *, end: float) -> ToolAnswer:
        """Read, judge, ask, run, tell. `end`: when it has to be told what there is."""
        entry = BY_NAME.get(name)
        client = client if self._ask is None else HostedClient(client, self._ask)
        if entry is None:
            raise BadRequest(f"there is no tool `{name}`", hint=f"tools: {', '.join(BY_NAME)}")
        try:
            tool = call_decoder.read(entry.tool, name, dict(arguments))
            if isinstance(tool, CheckCommand):
                return await self._check(tool, client)
            await self._resume(client)
            made = json.dumps(dict(arguments))
            repetition = self._repetition(client)
            if name not in PATIENT and repetition.stuck(name, made):
                return ToolAnswer(text=STUCK.format(name=name), error=True)
            answer = await self._in_time(self._make(entry, tool, client, end), end)
            if name not in PATIENT:
                repetition.finished(
                    name, made, fingerprint([Text(answer.essence or answer.text)], outcome=str(answer.error))
                )
            return answer
        except (BadArguments, ToolFailed) as error:
            return ToolAnswer(text=str(error), error=True)

    async def _resume(self, client: Client) -> None:
        """Take over, once, the terminals that this client left when an earlier server ended or was killed."""
        known_as = self._known_as(client)
        if known_as not in self._resumed:
            self._resumed[known_as] = asyncio.create_task(self._take_over(known_as))
        await asyncio.shield(self._resumed[known_as])

    async def _take_over(self, known_as: str) -> None:
        for each in await self.registry.take_over(known_as):
            each.task = self.task

    def _known_as(self, client: Client) -> str:
        """The session of this client before and after a restart: its name without the version, and the workspace."""
        return f"mcp {client.name.rpartition(' ')[0] or client.name} {self.workspace}"

    def _repetition(self, client: Client) -> Repetition:
        """The calls of this client. Only the latest sessions are kept."""
        found = self._repetitions.pop(client.session, None) or Repetition(self._app.config.limits.max_repetitions)
        self._repetitions[client.session] = found
        if len(self._repetitions) > MOST_SESSIONS:
            del self._repetitions[next(iter(self._repetitions))]
        return found

    async def _in_time(self, work: Coroutine[Any, Any, ToolAnswer], end: float) -> ToolAnswer:
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
        return ToolAnswer(text=TOO_LATE, error=True)

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

    async def _make(self, entry: CatalogEntry, tool: Tool, client: Client, end: float) -> ToolAnswer:
        tail, images = Tail(), Images()
        asked = SecretRequests(self.secret_page, client, self.registry, self.task) if client.can_open else None
        call = Call(
            id=self.new_call(),
            name=entry.name,
            prepare=lambda: tool.prepare(self.bench(end, tail, call.id, images, asked, viewer=client.session)),
            timeout=GOOD_FOR,
            shown=lambda ready: telling(client, tail, lambda: ready.title),
            slot=lambda ready: self._turn(ready, end),
        )
        asker = self.asker(client, call, until=end - LEAST)
        pipeline = Pipeline(self.judge, asker, self.recorder(client, call), checkpoint=self.checkpoint)
        try:
            result = await pipeline.run(call)
        finally:
            if asked is not None:
                await asked.aclose()
        if result.done is None or result.ready is None:
            return ToolAnswer(text=_why(result), error=True)
        self._seen.update({each.path: each.digest for each in result.done.seen})
        answer = self._told(entry, tool, result.done, client)
        answer = replace(answer, images=images.of(result.done))
        return replace(answer, text="\n".join([*_remarks(result), answer.text]), title=result.ready.done)

    def checkpoint(self, call: Call, ready: Ready, go: Go) -> AbstractAsyncContextManager[None]:
        """Held while a call acts, so that what it changes can be undone."""
        checkpoints = self.log.checkpoints
        return checkpoints.around(call, ready, go) if checkpoints else nullcontext()

    def new_call(self) -> CallId:
        """The id of the next call."""
        return CallId(f"c{next(self._numbers)}")

    def asker(self, client: Client, call: Call, *, until: float) -> Asker:
        """Who asks the person about a call."""
        return ClientAsker(client, self.questions, workspace=self.workspace, until=until)

    def recorder(self, client: Client, call: Call) -> Recorder:
        """Where a call is written down."""
        return WorkspaceRecorder(self.log, client.name)

    def _told(self, entry: CatalogEntry, tool: Tool, done: Done, client: Client) -> ToolAnswer:
        data = data_of(entry.name, done) if entry.output is not None else {}
        text = "\n".join(each.text for each in done.content if isinstance(each, Text))
        if entry.name == "open_persistent_terminal":
            if not (isinstance(tool, OpenWorkspaceTerminal) and (tool.stay or tool.outlive)):
                self._opened[data["id"]] = client.session
            terminal = self.registry.get(data["id"])
            terminal.associate(self._known_as(client))
            data["cwd"] = str(terminal.cwd)
        elif uri := self._uri(data, done, client):
            data["output_uri"] = uri
        if entry.output is COMMAND_RESULT:
            data = lean(data)
        if done.outcome == "failed":
            return ToolAnswer(text=text, error=True, essence=done.essence)
        return ToolAnswer(text=text, data=data if entry.output is not None else None, essence=done.essence)

    def _uri(self, data: Mapping[str, Any], done: Done, client: Client) -> str:
        if data.get("terminal_id"):
            if data["running"]:  # it ends with who started it
                self._left[data["terminal_id"]] = (data["number"], client.session)
                self.registry.get(data["terminal_id"]).associate(self._known_as(client))
            return f"tarmac://terminals/{data['terminal_id']}/{data['number']}" if data.get("output_bytes") else ""
        if "terminal" in data and "number" in data["terminal"]:
            return f"tarmac://terminals/{data['terminal']['id']}/{data['terminal']['number']}"
        path = output_path(done) if data.get("truncated") else None
        return self.outputs.keep(str(data.get("command")), path) if path else ""

    async def _check(self, tool: CheckCommand, client: Client) -> ToolAnswer:
        bench = self.bench(time.monotonic() + MOST_SECONDS, Tail())
        action = Execute(tool.command, cwd=await looking(bench, directory, tool.cwd), shell=bench.registry.shell().name)
        verdict = await self.judge.verdict(action)
        data = verdict_data(verdict)
        if verdict.decision == "ask":
            way = how_to_allow(action, verdict, workspace=self.workspace)
            data["asks"] = "the person, through this client" if client.can_ask else way
        lines = [f"{verdict.decision}, {verdict.risk} risk: {data['reason']} (rule: {verdict.rule})"]
        lines += [f"It {data['explanation']}."] if data["explanation"] else []
        lines += [f"Who is asked: {data['asks']}"] if "asks" in data else []
        return ToolAnswer(text="\n".join(lines), data=data)

    def bench(
        self,
        end: float,
        tail: Tail,
        call: CallId | None = None,
        images: "Images | None" = None,
        asked: SecretRequests | None = None,
        *,
        viewer: str | None = None,
    ) -> Bench:
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
            store=(images or Images()).keep,
            seen=self._seen,
            show=tail.show,
            settings=settings,
            alone=True,
            secrets=asked,
            viewer=viewer,
        )

    # What was printed

    def _visible(self, id: TerminalId) -> Terminal | None:
        try:
            return terminal_access.own(self.bench(0, Tail()), id)
        except ToolFailed:
            return None

    def _heard(self, event: TerminalEvent) -> None:
        self.changes.heard(event)
        if isinstance(event, TerminalClosedEvent):
            self._opened.pop(event.terminal, None)
            self._left.pop(event.terminal, None)
        if isinstance(event, CommandStarted) and not event.by_person:
            with suppress(TarmacError):  # it is being opened, by somebody else
                terminal = self.registry.get(event.terminal)
                if terminal.task == self.task:
                    self.outputs.begun(terminal)

    def listing(self) -> list[ListedOutput]:
        """The outputs that can be read."""
        return self.outputs.listing(self.bench(0, Tail()))

    def check_known(self, uri: str) -> None:
        """BadRequest, ToolFailed for an address of nothing here."""
        self.outputs.check_known(self.bench(0, Tail()), uri)

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

    async def subtask(self, mode: str, message: str) -> str:
        raise ToolFailed("There are no subtasks here.")

    async def set_todos(self, todos: tuple[TodoItem, ...]) -> None:
        raise ToolFailed("There is no todo list here.")

    def condense(self, focus: str) -> None:
        """There is no conversation."""

    def output(self, number: int) -> str | None:
        return None

    def slash_command(self, name: str) -> str | None:
        return None

    def slash_commands(self) -> Mapping[str, str]:
        return {}


class Images:
    """The images of one call, in memory: they go to the client and are not kept."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[bytes, str]] = {}

    def keep(self, data: bytes, media: str) -> Blob:
        blob = Blob(sha256=sha256(data).hexdigest(), size=len(data), media_type=media)
        self._kept[blob.sha256] = (data, media)
        return blob

    def of(self, done: Done) -> tuple[tuple[bytes, str], ...]:
        """Those in a result, in order."""
        return tuple(self._kept[each.blob.sha256] for each in done.content if isinstance(each, Image))


def _loop_time(end: float) -> float:
    return asyncio.get_running_loop().time() + max(end - time.monotonic(), 0.0)


def _remarks(result: CallResult) -> Iterator[str]:
    """What the model must know beside the result."""
    if result.permission is None:
        return
    if result.permission.edited is not None:
        yield f"The person changed the command to: {result.permission.edited}"
    yield from (f"Note: {each}." for each in result.permission.notes)


def _why(result: CallResult) -> str:
    """Why a call was not done, with the rule that denied it."""
    verdict = next((each for each in _verdicts(result) if each.decision == "deny"), None)
    return result.text if verdict is None else f"{result.text} (rule: {verdict.rule})."


def _verdicts(result: CallResult) -> tuple[Verdict, ...]:
    return result.permission.verdicts if result.permission else ()


Data = dict[str, Any]
_COMMAND = {"line": "command", "terminal": "terminal_id"}  # names in a report's details, and here
_SHOWN = (
    "command", "exit_code", "signal", "running", "reason", "duration", "cwd", "cwd_after", "terminal_id", "number",
    "awaiting", "prompt", "truncated", "output_bytes", "notes",
)  # fmt: skip
NEXT = {
    "running": "It goes on. wait_for_terminal waits for its end, read_terminal looks, interrupt_terminal ends it.",
    "line": "Answer with send_to_terminal, or end it with interrupt_terminal.",
    "ended": (
        "It only reads, so it ran without a terminal, and was ended when its time was over. Ask for less, or give it a "
        "longer timeout."
    ),
    "secret": SECRET_ALONE,
}


def data_of(name: str, done: Done) -> Data:
    """The structured content of a tool's result."""
    found: Data = dict(done.details)
    match name:
        case "run_command" | "run_persistent_command":
            return _command(found["command"], done.output)
        case "list_terminals":
            return {"terminals": [_present(each) for each in found["terminals"]]}
        case "open_persistent_terminal":
            return _present(found["terminal"])
        case "kill_persistent_terminal":
            return _present(found["terminal"])
        case _:
            found.pop("screen", None)  # it is the output
            return {**found, "terminal": _present(found["terminal"]), "output": done.output}


def output_path(done: Done) -> Path | None:
    """Where all that a command printed is kept, if its result says so."""
    command: Data = done.details.get("command", {})
    found = command.get("output_path")
    return Path(found) if found else None


def _command(details: Data, output: str) -> Data:
    named = {_COMMAND.get(key, key): value for key, value in details.items()}
    made = {key: named[key] for key in _SHOWN if named.get(key) not in (None, "", [])}
    made["output"] = output
    if not made.get("terminal_id"):
        made.pop("number", None)
    if made["running"]:
        awaiting = named.get("awaiting")
        made["next"] = NEXT["running"] if not awaiting else NEXT["secret" if awaiting == "secret" else "line"]
    elif made["reason"] == "timeout" and not made.get("terminal_id"):
        made["next"] = NEXT["ended"]
    return made


def lean(result: Data) -> Data:
    """A command's result without what repeats the call or is as usual: a short output costs few tokens."""
    usual = {"running": False, "reason": "done", "truncated": False}
    kept = {key: value for key, value in result.items() if usual.get(key) != value}
    for repeated in ("command", "cwd", *(() if kept.get("truncated") else ("output_bytes",))):
        kept.pop(repeated, None)
    if kept.get("cwd_after") == result["cwd"]:
        del kept["cwd_after"]
    if not (kept.get("running") or kept.get("truncated")):
        kept.pop("output_uri", None)
    if kept.get("duration", 0) < SLOW:
        kept.pop("duration", None)
    return kept


def _present(found: Data) -> Data:
    return {key: value for key, value in found.items() if value not in (None, "")}


def verdict_data(verdict: Verdict) -> Data:
    """The policy's word."""
    return {
        "decision": verdict.decision,
        "risk": verdict.risk,
        "reason": visible(verdict.reason),
        "rule": visible(verdict.rule),
        "explanation": visible(verdict.explanation),
        "parts": [
            {
                "text": visible(each.text),
                "decision": each.decision,
                "risk": each.risk,
                "reason": visible(each.reason),
                "rule": visible(each.rule),
            }
            for each in verdict.parts
        ],
    }
