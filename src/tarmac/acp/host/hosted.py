"""A hosted agent's session, with the verbs of a task: say something, answer, stop it, let it run.

async with open_hosted(app, ["some-agent", "--acp"], attended=True) as hosted:
    await hosted.say("make the tests pass")
    ended = await hosted.run_until_idle()

It is a task of Tarmac: its log has what was said, run, asked and answered. The agent's process begins with it and ends
with it.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final

import tarmac
from tarmac.acp.host.client import CAPABILITIES, Client
from tarmac.acp.host.launch import Agent
from tarmac.acp.host.reading import Object, object_of, objects_of, text_of, whole_of
from tarmac.acp.peer import Peer
from tarmac.acp.wire import AUTH_REQUIRED
from tarmac.app import App
from tarmac.errors import BadRequest, PeerGone, PeerRefused, StateUnavailable
from tarmac.events import TaskId
from tarmac.models.messages import NO_USAGE
from tarmac.models.provider import Chunk, Load, ModelInfo, Prompt
from tarmac.tasks import events as e
from tarmac.tasks import signals as s
from tarmac.tasks.audience import Listener
from tarmac.tasks.desk import Desk, Ended, now
from tarmac.tasks.metadata import Metadata
from tarmac.tasks.questions import Questions
from tarmac.tasks.task import Picture

VERSION: Final = 1
TO_BEGIN: Final = 120.0  # seconds for initialize, and for session/new: npx may have to fetch it first
TO_CANCEL: Final = 10.0  # seconds for an agent to end its turn once it is told to
_ENDED: Final = {"max_tokens": "limit", "max_turn_requests": "limit", "refusal": "refused", "cancelled": "interrupted"}


@asynccontextmanager
async def open_hosted(
    app: App,
    argv: Sequence[str],
    *,
    attended: bool,
    once: bool = False,
    auth: str = "",
    environ: Mapping[str, str] | None = None,
) -> "AsyncIterator[Hosted]":
    """The agent, started, with a session in the app's workspace. `once`: it is done after its first turn."""
    began, task = False, None
    try:
        async with app.create_desk(_Nobody(), attended=attended) as desk:
            task = desk.task
            hosted = Hosted(desk, argv, once=once, environ=os.environ if environ is None else environ)
            try:
                await hosted.begin(auth)
                began = True
                yield hosted
            finally:
                await hosted.aclose()
    finally:
        if task is not None and not began:  # there is nothing to remember
            await app.store.delete(task)


class Hosted:
    """An agent at work for a person. Get one from `open_hosted`."""

    def __init__(self, desk: Desk, argv: Sequence[str], *, once: bool, environ: Mapping[str, str]) -> None:
        self._desk = desk
        self._once = once
        self._questions = Questions(desk.log)
        self._words: list[str] = []
        self._turn: asyncio.Task[object] | None = None
        self._cancelled = asyncio.Event()
        self.name = os.path.basename(argv[0])  # noqa: PTH119
        self.session = ""
        self.client = Client(desk, self._questions, self._show)
        self.agent = Agent(argv, cwd=desk.workspace, environ=environ)
        self.peer = Peer(self.agent.reader, self.agent.writer, self.client, name=self.name, answers_nonsense=False)
        self._serving = asyncio.create_task(self.peer.run())

    # What it is

    @property
    def id(self) -> TaskId:
        return self._desk.task

    @property
    def afterwards(self) -> str:
        return f"`tarmac tasks show {self.id}` tells what it did"

    @property
    def metadata(self) -> Metadata:
        return self._desk.metadata

    @property
    def attended(self) -> bool:
        return self._desk.attended

    @property
    def running(self) -> bool:
        return self._turn is not None

    @property
    def questions(self) -> tuple[e.QuestionAsked, ...]:
        return self._questions.open

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """As Task.subscribe."""
        return self._desk.audience.subscribe(listener)

    def _show(self, thing: e.TaskEvent | s.Signal) -> None:
        if isinstance(thing, s.Signal):
            self._desk.audience.show(thing)
        else:
            self._desk.log.add(thing)

    # Its beginning

    async def begin(self, auth: str = "") -> None:
        """initialize, authenticate if told how, session/new."""
        self._desk.add(e.TaskStarted(at=now(), pid=os.getpid(), version=tarmac.__version__))
        info = {"name": "tarmac", "title": "Tarmac", "version": tarmac.__version__}
        offer = {"protocolVersion": VERSION, "clientCapabilities": CAPABILITIES, "clientInfo": info}
        answer = object_of(await self._request("initialize", offer, TO_BEGIN))
        _check_version(answer, self.name)
        told = object_of(answer.get("agentInfo"))
        self.name = text_of(told.get("title")) or text_of(told.get("name")) or self.name
        if text_of(told.get("version")):
            self.name += f" {text_of(told.get('version'))}"
        methods = [text_of(each.get("id")) for each in objects_of(answer.get("authMethods"))]
        if auth:
            await self._request("authenticate", {"methodId": auth}, TO_BEGIN)
        try:
            new = await self._request("session/new", {"cwd": str(self._desk.workspace), "mcpServers": []}, TO_BEGIN)
        except PeerRefused as error:
            if error.code == AUTH_REQUIRED:
                known = ", ".join(filter(None, methods))
                hint = "log in with the agent's own command first" + (f", or --auth with one of: {known}" * bool(known))
                raise PeerRefused(f"{self.name} wants you to log in", hint=hint, code=error.code) from None
            raise
        self.session = text_of(object_of(new).get("sessionId"))
        if not self.session:
            raise PeerRefused(f"{self.name} gave no session: it answered session/new without a sessionId")

    async def _request(self, method: str, params: Object, seconds: float | None) -> object:
        try:
            return await self.peer.request(method, params, timeout=seconds)
        except TimeoutError:
            why = f"{self.name} did not answer {method} in {seconds:.0f} s"
            raise PeerGone(why, hint=self._hint()) from None
        except PeerGone as error:
            await self.agent.exited(1.0)
            end = self.agent.describe_end()
            raise PeerGone(f"{error.what}{f': {end}' if end else ''}", hint=self._hint()) from None

    def _hint(self) -> str:
        words = self.agent.last_words
        if words:
            return f"it said: {words}"
        if self.client.nonsense:
            return f"does it speak ACP? It printed: {self.client.first_nonsense}"
        return ""

    # What a person does

    async def say(self, text: str, images: Sequence[Picture] = ()) -> e.MessageId | None:
        """The next prompt; while it works, it is sent after this turn."""
        if not text.strip():
            raise BadRequest("there is nothing said")
        if images:
            raise BadRequest("pictures are not sent to hosted agents yet")
        await self._desk.log.append(e.UserSaid(at=now(), text=text))
        self._words.append(text)
        return None

    async def answer(
        self,
        question: e.QuestionId,
        answer: e.Answer,
        *,
        text: str = "",
        choices: Iterable[e.Choice] = (),
        edited: str | None = None,
        always: str = "",
        grant: int = 0,
        by: str = "",
    ) -> None:
        """As Task.answer."""
        scope = f"{always}:{grant}" if always and grant else always
        fact = e.QuestionAnswered(
            at=now(),
            question=question,
            answer=answer,
            text=text,
            choices=tuple(choices),
            edited=edited,
            always=scope,
            by=by,
        )
        await self._questions.answer(fact)

    def cancel(self) -> None:
        """Stop the turn: the agent is told, and all that it asked about is answered with "cancelled"."""
        if self._turn is None or self._cancelled.is_set():
            return
        self._cancelled.set()
        self.client.permission.cancel()
        self.peer.notify("session/cancel", {"sessionId": self.session})

    # Running

    async def run_until_idle(self) -> Ended:
        """Send what was said, and wait for the end of the turn; the agent's death is a failure, told with its words."""
        ended = Ended("idle")
        while self._words and ended.why == "idle":
            text, self._words = "\n\n".join(self._words), []
            ended = await self._prompt(text)
        if ended.why == "idle" and self._once:
            await self._desk.log.append(e.TaskCompleted(at=now(), result="", usage=NO_USAGE))
            return Ended("completed")
        return ended

    async def _prompt(self, text: str) -> Ended:
        params: Object = {"sessionId": self.session, "prompt": [{"type": "text", "text": text}]}
        self._cancelled.clear()
        self._turn = asyncio.create_task(self._request("session/prompt", params, None))
        watching = asyncio.create_task(self._patience())
        try:
            await asyncio.wait({self._turn, watching}, return_when=asyncio.FIRST_COMPLETED)
            if not self._turn.done():
                return Ended("interrupted", f"{self.name} did not end its turn when told to")
            return self._how_ended(self._turn)
        except asyncio.CancelledError:
            self.cancel()
            raise
        finally:
            turn, self._turn = self._turn, None
            for each in (turn, watching):
                each.cancel()
            await asyncio.gather(turn, watching, return_exceptions=True)
            self.client.flush()
            await self._settled()

    def _how_ended(self, turn: "asyncio.Task[object]") -> Ended:
        error = turn.exception()
        if isinstance(error, PeerGone | PeerRefused):
            if self._cancelled.is_set() and isinstance(error, PeerRefused):
                return Ended("interrupted", "the person stopped it")
            self._desk.add(e.Noted(at=now(), what="error", text=str(error)))
            return Ended("failed", error.what)
        if error is not None:
            raise error
        reason = text_of(object_of(turn.result()).get("stopReason"))
        if self._cancelled.is_set():
            return Ended("interrupted", "the person stopped it")
        why = _ENDED.get(reason, "idle")
        return Ended(why, f"{self.name} stopped: {reason}" if why != "idle" else "")  # type: ignore[arg-type]

    async def _patience(self) -> None:
        await self._cancelled.wait()
        await asyncio.sleep(TO_CANCEL)

    async def _settled(self) -> None:
        """All that was told is on the disk, and shown."""
        try:
            await self._desk.log.commit()
        except StateUnavailable as error:
            raise StateUnavailable(error.what, hint=error.hint) from error

    async def aclose(self) -> None:
        """End the agent, its commands and all it started; leave the log in order."""
        self.client.permission.cancel()
        try:
            await self.client.terminals.aclose()
        finally:
            try:
                await self.peer.aclose()
                await asyncio.gather(self._serving, return_exceptions=True)
            finally:
                await self.agent.aclose()
        self.client.flush()
        self._desk.add(e.TaskSaved(at=now()))


def _check_version(answer: Object, name: str) -> None:
    """By its shape: some agents say 2 and speak 1."""
    version = whole_of(answer.get("protocolVersion"))
    if version == VERSION or "agentCapabilities" in answer:
        return
    if version is None:
        raise PeerRefused(f"{name} answered initialize without a protocolVersion: that is no ACP")
    raise PeerRefused(f"{name} speaks version {version} of ACP only; Tarmac speaks {VERSION}")


class _Nobody:
    """No model is asked here: the agent has its own."""

    info = ModelInfo(id="hosted/agent")

    async def stream(self, prompt: Prompt, *, load: Load) -> AsyncGenerator[Chunk, None]:
        raise BadRequest("a hosted agent has a model of its own")
        yield  # makes it a generator

    async def aclose(self) -> None:
        pass
