"""A hosted agent: its process, and its session with the verbs of a task: say something, answer, stop it, let it run.

It is a task of Tarmac. Its log has what was said, run, asked and answered. The agent's process starts and ends with the
task. It leads a session of its own and talks over pipes, and no process that it started outlives the task. It gets our
environment without Tarmac's own variables. Keys of models stay, because the agent uses them. The end of its standard
error is kept for error messages.
"""

import asyncio
import base64
import os
import secrets
import signal
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Protocol

from tarmac.acp.host.agent_client import AgentClient
from tarmac.acp.host.bridge_server import BridgeServer, Write
from tarmac.acp.host.handshake import Met
from tarmac.acp.host.parameters import Object, object_of, text_of
from tarmac.acp.host.version_two import VersionTwo
from tarmac.acp.rpc_peer import FdReader, FdWriter, RpcPeer
from tarmac.errors import BadRequest, PeerGone, PeerRefused
from tarmac.events import TaskId
from tarmac.models.messages import NO_USAGE, Text
from tarmac.policy.approval import Answer, Picture
from tarmac.tasks import events as e
from tarmac.tasks import signals as s
from tarmac.tasks.context import Ended, Why, now
from tarmac.tasks.questions import Questions
from tarmac.tasks.signals import Listener
from tarmac.tasks.state import TaskState
from tarmac.tasks.views.metadata import Metadata
from tarmac.terminals.environment import COOKIE
from tarmac.terminals.exec import Outlet
from tarmac.terminals.process import birthmark, prctl, processes, signals
from tarmac.terminals.process.child import Child, used_up

LEAVE: Final = 1.0  # seconds to go by itself, once its input has ended
GRACE: Final = 2.0  # seconds between SIGTERM and SIGKILL
MOST_KEPT: Final = 64 << 10  # bytes of standard error


class AgentProcess:
    """A running agent. Start it in an event loop; `aclose` ends it and all that it started."""

    def __init__(self, argv: Sequence[str], *, cwd: Path, environ: Mapping[str, str]) -> None:
        self._cookie = f"host.{secrets.token_hex(6)}"
        env = {name: value for name, value in environ.items() if not name.startswith("TARMAC_")}
        env |= {COOKIE: self._cookie, "PWD": str(cwd)}  # some believe PWD more than the kernel
        self._errors = bytearray()
        self._exited = asyncio.Event()
        self.status: int | None = None  # the exit code, or minus the signal
        fds: list[int] = []
        outlet: Outlet | None = None
        try:
            try:
                outlet = Outlet(self._complained)
                theirs_in, ours_out = os.pipe()
                fds += [theirs_in, ours_out]
                ours_in, theirs_out = os.pipe()
                fds += [ours_in, theirs_out]
            except OSError as error:
                raise used_up(error, "cannot open a pipe") from error
            self._child = Child(
                argv,
                cwd=cwd,
                env=env,
                stdin=theirs_in,
                stdout=theirs_out,
                stderr=outlet.theirs,
                prepare=prctl.die_with_parent,
            )
        except BaseException:
            if outlet is not None:
                outlet.close()
            for fd in fds:
                os.close(fd)
            raise
        self._outlet = outlet
        outlet.close_theirs()
        os.close(theirs_in)
        os.close(theirs_out)
        self._fds = [ours_in, ours_out]
        for fd in self._fds:
            os.set_blocking(fd, False)
        self.reader, self.writer = FdReader(ours_in), FdWriter(ours_out)
        outlet.resume()
        self._child.watch(self._ended)

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def last_words(self) -> str:
        """The end of what it printed on standard error."""
        lines = bytes(self._errors).decode("utf-8", "replace").strip().splitlines()
        return "\n".join(lines[-6:])

    def describe_end(self) -> str:
        """How it ended, in words; empty while it runs."""
        if self.status is None:
            return ""
        if self.status < 0:
            return f"it was ended by {signal.Signals(-self.status).name}"
        return f"it ended with exit code {self.status}"

    async def exited(self, seconds: float) -> bool:
        """Wait for its end, up to a time."""
        try:
            async with asyncio.timeout(seconds):
                await self._exited.wait()
        except TimeoutError:
            return False
        return True

    def _complained(self, data: bytes) -> None:
        self._errors += data
        del self._errors[:-MOST_KEPT]

    def _ended(self, status: int) -> None:
        self.status = status
        self._outlet.drain()
        self._exited.set()

    def _all(self) -> set[processes.Process]:
        """The agent, what is below it, and what it left behind."""
        own = processes.look(self._child.pid) if self._child.status is None else None
        return processes.descendants(self._child.pid) | ({own} if own else set()) | birthmark.orphans(self._cookie)

    async def aclose(self) -> None:
        """Close its input. Then send SIGTERM, then SIGKILL, to the agent and all that it started."""
        for fd in reversed(self._fds):
            loop = asyncio.get_running_loop()
            loop.remove_reader(fd)
            loop.remove_writer(fd)
            os.close(fd)
        self._fds = []
        try:
            if self._child.status is None:
                await self.exited(LEAVE)
        finally:
            await asyncio.shield(self._end())

    async def _end(self) -> None:
        await signals.end(self._all, grace=GRACE)
        if not await self.exited(1.0):
            self._child.forget()
        self._outlet.close()


STOPPED: Final = "the person stopped it"
_WHY: Final[dict[str, Why]] = {
    "max_tokens": "limit",
    "max_turn_requests": "limit",
    "refusal": "refused",
    "cancelled": "interrupted",
}


@dataclass(frozen=True, slots=True)
class UserPrompt:
    """What a person said, and showed."""

    text: str
    images: tuple[Picture, ...] = ()


def prompt_of(words: Iterable[UserPrompt]) -> list[Object]:
    """The content blocks of session/prompt: the words first, then the pictures."""
    words = list(words)
    text = "\n\n".join(each.text for each in words if each.text)
    blocks: list[Object] = [{"type": "text", "text": text}] if text else []
    for data, media in (picture for each in words for picture in each.images):
        blocks.append({"type": "image", "mimeType": media, "data": base64.b64encode(data).decode()})
    return blocks


def how_ended(turn: "asyncio.Task[object]", name: str, *, cancelled: bool) -> Ended:
    """Why the turn ended."""
    error = turn.exception()
    if isinstance(error, PeerGone | PeerRefused):
        if cancelled and isinstance(error, PeerRefused):
            return Ended("interrupted", STOPPED)
        return Ended("failed", error.what)
    if error is not None:
        raise error
    if cancelled:
        return Ended("interrupted", STOPPED)
    reason = text_of(object_of(turn.result()).get("stopReason"))
    why = _WHY.get(reason, "idle")
    return Ended(why, f"{name} stopped: {reason}" if why != "idle" else "")


TO_CONNECT: Final = 0.5  # seconds after it has its session for an agent to start our MCP server
TO_LIST: Final = 5.0  # seconds for it to ask for the tools
TO_READ: Final = 0.1  # seconds to take them in: they came on another pipe than the prompt will
LONGEST_SILENCE: Final = 1800.0  # seconds in a turn, with no command of ours running; then it is given up
SPUN: Final = (
    "your last turn was stopped, because you made the same call again and again ({what}), and its result did not "
    "change. Do something else, or tell the person what blocks you."
)
TO_CANCEL: Final = 10.0  # seconds for an agent to end its turn once it is told to


class Lent(Protocol):
    """Our terminals, as an MCP server that the agent reaches over its bridge."""

    offered: asyncio.Event  # the agent has been told which tools there are

    def prepare(self) -> None:
        """An agent was started, and will connect soon."""

    async def serve(self, pieces: AsyncIterator[bytes], write: Write) -> None:
        """One connection, to its end."""

    def cancel(self) -> None:
        """End the calls under way, because the turn is over."""

    async def aclose(self) -> None:
        """Accept no more connections."""


class HostedTask:
    """An agent at work for a person. Get one from `open_hosted`."""

    def __init__(
        self,
        state: TaskState,
        argv: Sequence[str],
        *,
        once: bool,
        patience: float,
        environ: Mapping[str, str],
        name: str = "",
    ) -> None:
        """`once`: end after the first turn. `patience`: seconds for each answer before that."""
        self.state = state
        self._once = once
        self._patience = patience
        self._questions = Questions(state.context.log)
        self._words: list[UserPrompt] = []
        self._said_last = ""  # by the agent, in this run
        self._turn: asyncio.Task[object] | None = None
        self.longest_silence = LONGEST_SILENCE
        self._cancelled = asyncio.Event()
        self.lent: Lent | None = None
        self.bridge: BridgeServer | None = None
        self._unlisted: BridgeServer | None = None  # whose tools the agent may not know yet
        self.met = Met(name or os.path.basename(argv[0]))  # noqa: PTH119
        self.session = ""
        self.client = AgentClient(state, self._questions, self._show)
        self.agent = AgentProcess(argv, cwd=state.context.workspace, environ=environ)
        self.peer = RpcPeer(self.agent.reader, self.agent.writer, self.client, name=self.name, answers_nonsense=False)
        self._serving = asyncio.create_task(self.peer.run())

    # What it is

    @property
    def id(self) -> TaskId:
        return self.state.context.task

    @property
    def name(self) -> str:
        return self.met.name

    @property
    def afterwards(self) -> str:
        if self.met.resumes:
            return f"`tarmac host --resume {self.id} -- …` goes on"
        return f"`tarmac tasks show {self.id}` tells what it did"

    @property
    def metadata(self) -> Metadata:
        return self.state.metadata

    @property
    def attended(self) -> bool:
        return self.state.attended

    @property
    def running(self) -> bool:
        return self._turn is not None

    @property
    def questions(self) -> tuple[e.QuestionAsked, ...]:
        return self._questions.open

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """As Task.subscribe."""
        return self.state.audience.subscribe(listener)

    def _show(self, thing: e.TaskEvent | s.Signal) -> None:
        if isinstance(thing, s.Signal):
            self.state.audience.show(thing)
        else:
            if isinstance(thing, e.ModelSaid):
                said = "".join(part.text for part in thing.parts if isinstance(part, Text))
                self._said_last = said.strip() or self._said_last
            self.state.add(thing)

    def note(self, text: str) -> None:
        """Show a note to people. The agent does not get it."""
        self.state.add(e.Noted(at=now(), what="notice", text=text))

    # Its beginning

    async def ask(self, method: str, params: Object) -> object:
        """Send a request that the agent must answer before it can work.

        PeerGone says how it failed, with its last words.
        """
        return await self._request(method, params, self._patience)

    async def _request(self, method: str, params: Object, seconds: float | None) -> object:
        try:
            return await self.peer.request(method, params, timeout=seconds)
        except TimeoutError:
            why = f"{self.name} did not answer {method} in {seconds:g} s"
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

    def has_session(self, session: str) -> None:
        """The agent has a session now."""
        self.session, self._unlisted = session, self.bridge

    # What a person does

    async def say(self, text: str, images: Sequence[Picture] = ()) -> e.MessageId | None:
        """Send the next prompt. If the agent is at work, it is sent after this turn."""
        if not text.strip() and not images:
            raise BadRequest("the message is empty")
        if images and not self.met.images:
            raise BadRequest(f"{self.name} takes no images")
        blobs = [await asyncio.to_thread(self.state.context.log.blobs.keep, data, media) for data, media in images]
        await self.state.context.log.append(e.UserSaid(at=now(), text=text, images=tuple(blobs)))
        self._words.append(UserPrompt(text, tuple(images)))
        return None

    async def answer(self, question: e.QuestionId, answer: Answer) -> None:
        """As Task.answer. The agent is told only the decision."""
        if answer.images:
            raise BadRequest("an agent can't be given pictures with an answer", hint="say it without them")
        await self._questions.answer(question, answer)

    def type_secrets(self) -> None:
        """As Task.type_secrets."""
        self.state.types_secrets = True

    def hold(self, question: e.QuestionId) -> None:
        """As Task.hold."""
        self._questions.hold(question)

    def cancel(self) -> None:
        """Stop the turn. The agent is told, and its open questions are answered with "cancelled"."""
        if self._turn is None or self._cancelled.is_set():
            return
        self._cancelled.set()
        self.client.cancel()
        if self.lent is not None:
            self.lent.cancel()
        self.peer.notify("session/cancel", {"sessionId": self.session})

    # Running

    async def run_until_idle(self) -> Ended:
        """Send what was said, and wait for the end of the turn.

        If the agent dies, the turn fails, with the agent's last words.
        """
        await self._tools_known()
        self._said_last = ""
        ended = Ended("idle")
        while self._words and ended.why == "idle":
            words, self._words = self._words, []
            ended = await self._prompt(words)
        if ended.why == "idle" and self._once:
            await self.state.context.log.append(e.TaskCompleted(at=now(), result="", usage=NO_USAGE))
            return Ended("completed", self._said_last)
        return replace(ended, text=self._said_last) if ended.why == "idle" else ended

    async def _tools_known(self) -> None:
        """Wait for the tools of its servers before the first turn.

        codex-acp, for one, asks its model without waiting.
        """
        bridge, self._unlisted = self._unlisted, None
        if bridge is None or self.lent is None:
            return
        try:
            async with asyncio.timeout(TO_CONNECT):
                await bridge.came.wait()
        except TimeoutError:
            if not await asyncio.to_thread(bridge.starts):
                return  # it needs none of them, or looks for them later
        try:
            async with asyncio.timeout(TO_LIST):
                await self.lent.offered.wait()
            await asyncio.sleep(TO_READ)
        except TimeoutError:
            pass

    async def _prompt(self, words: Sequence[UserPrompt]) -> Ended:
        remarks, self.client.permission.remarks = self.client.permission.remarks, []
        before: list[Object] = [{"type": "text", "text": f"(From Tarmac: {' '.join(remarks)})"}] if remarks else []
        params: Object = {"sessionId": self.session, "prompt": [*before, *prompt_of(words)]}
        self._cancelled.clear()
        self.client.begin()
        self._turn = asyncio.create_task(self._take_turn(params))
        watching = asyncio.create_task(self._overdue())
        spinning = asyncio.create_task(self._spinning())
        try:
            await asyncio.wait({self._turn, watching}, return_when=asyncio.FIRST_COMPLETED)
            if spinning.done():
                return spinning.result()
            if not self._turn.done():
                return watching.result()
            ended = how_ended(self._turn, self.name, cancelled=self._cancelled.is_set())
            if ended.why == "failed":
                self.state.add(e.Noted(at=now(), what="error", text=str(self._turn.exception())))
            return ended
        except asyncio.CancelledError:
            self.cancel()
            raise
        finally:
            turn, self._turn = self._turn, None
            for each in (turn, watching, spinning):
                each.cancel()
            await asyncio.gather(turn, watching, spinning, return_exceptions=True)
            self.client.flush()
            await self.state.context.log.commit()  # all that was told is on the disk, and shown

    async def _take_turn(self, params: Object) -> object:
        """One turn. A question that the agent sends after its answer comes too late."""
        self.client.permission.turn = "running"
        try:
            self.client.idle.clear()
            answer = await self._request("session/prompt", params, None)
            return answer if self.client.version_two is None else await self._until_idle(self.client.version_two)
        finally:
            self.client.cancel()
            self.client.permission.turn = "none"

    async def _until_idle(self, session: VersionTwo) -> object:
        """In version 2 the answer to the prompt does not end the turn."""
        idle = asyncio.create_task(self.client.idle.wait())
        try:
            await asyncio.wait({idle, self._serving}, return_when=asyncio.FIRST_COMPLETED)
            if not idle.done():
                await self.agent.exited(1.0)
                end = self.agent.describe_end()
                why = f"{self.name} left in the middle of a turn"
                raise PeerGone(f"{why}{f': {end}' if end else ''}", hint=self._hint())
            if session.stop_reason == "error":
                raise PeerRefused(f"{self.name} failed: {session.error or 'it does not say why'}")
            return {"stopReason": session.stop_reason}
        finally:
            idle.cancel()

    async def _overdue(self) -> Ended:
        """Return when the agent is to be given up: it was silent for too long, or did not stop when told to."""
        while not self._cancelled.is_set():
            left = self.longest_silence - self.client.silence
            if left <= 0:
                self.cancel()
                return Ended("failed", f"{self.name} said nothing for {self.longest_silence:g} s")
            try:
                async with asyncio.timeout(left):
                    await self._cancelled.wait()
            except TimeoutError:
                pass
        await asyncio.sleep(TO_CANCEL)
        return Ended("interrupted", f"{self.name} did not end its turn when told to")

    async def _spinning(self) -> Ended:
        """Stop the turn of an agent that makes one call of its own again and again. The next prompt says why."""
        await self.client.spun.wait()
        what = self.client.updates.spinning
        self.client.permission.remarks.append(SPUN.format(what=what))
        self.note(f"the turn was stopped, as {self.name} goes in circles: {what}")
        self.cancel()
        return Ended("limit", f"{self.name} goes in circles: {what}, again and again, with the same result")

    async def aclose(self) -> None:
        """End the agent, its commands and all that it started. Leave the log in order."""
        self.client.cancel()
        try:
            if self.bridge is not None:
                await self.bridge.aclose()
            if self.lent is not None:
                await self.lent.aclose()
            await self.client.terminals.aclose()
        finally:
            try:
                await self.peer.aclose()
                await asyncio.gather(self._serving, return_exceptions=True)
            finally:
                await self.agent.aclose()
        self.client.flush()
        self.state.add(e.TaskSaved(at=now()))
