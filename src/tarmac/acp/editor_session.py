"""One session of an editor is one task. A prompt says something to it and lets it run; the turn ends when it stands.

prompt → task.say() → task runs → updates … → stopReason
question → editor_questions.py; one that nobody can show ends the turn, and the next prompt is its answer

In v1 the answer to a prompt is the end of its turn. In v2 it comes at once. The session's states tell the rest.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

from tarmac.acp.content import EditorAbilities, EditorDocuments, EditorPrompt, Update, user_message
from tarmac.acp.editor_questions import EditorQuestions
from tarmac.acp.editor_terminal import EditorTerminal
from tarmac.acp.rpc_peer import PeerReply, Refused, RpcPeer
from tarmac.acp.updates import EditorVersionTwo, Updates
from tarmac.acp.wire import DENIED, INTERNAL_ERROR
from tarmac.app import App
from tarmac.errors import EditorSilent, PeerGone, PeerRefused, ToolDenied
from tarmac.models.messages import ToolUse
from tarmac.paths import shown
from tarmac.policy.approval import Answer, AnswerKind
from tarmac.prompts.modes import Modes
from tarmac.server.joined_task import JoinedTask
from tarmac.tasks import events as e
from tarmac.tasks import signals as s
from tarmac.tasks.context import Editor, Ended
from tarmac.tasks.talk import LONGEST, commands, first_line
from tarmac.tasks.task import Task
from tarmac.tools.output import Problem

ANSWERS: Final = 2.0  # seconds to wait for the editor, for each file of each call
WRITES: Final = 5.0  # seconds for a write: the editor may run a formatter
LARGEST: Final = 1 << 20  # characters; the editor is not asked about longer files


class Buffers:
    """The buffers of one session's editor. `tell` shows a text to the user."""

    def __init__(self, peer: RpcPeer, session: str, *, writes: bool, tell: Callable[[str], None]) -> None:
        self._peer, self._session = peer, session
        self._writes = writes  # it offers fs/write_text_file
        self._tell = tell
        self._told: set[Path] = set()

    async def unsaved(self, path: Path, saved: str) -> str | None:
        """The editor's text of a file if it differs from the saved one. EditorSilent if it does not answer in time."""
        if len(saved) > LARGEST:
            return None
        try:
            found = await self._peer.request(
                "fs/read_text_file", {"sessionId": self._session, "path": str(path)}, timeout=ANSWERS
            )
        except TimeoutError:
            what = f"the editor did not say within {ANSWERS:g} s whether {shown(path)} has unsaved changes"
            self._tell_once(
                path, f"Your editor did not answer: {what}. Tarmac uses the saved file. Check it before you save."
            )
            raise EditorSilent(what) from None
        except (PeerGone, PeerRefused):
            return None
        text = found.get("content") if isinstance(found, dict) else None
        return text if isinstance(text, str) and plain(text) != plain(saved) else None

    async def write(self, path: Path, text: str) -> bool:
        """Write a file through the editor. False if the editor offers no writes. EditorSilent if it fails.

        ToolDenied if a person who is asked by the editor did not want it (the editor is `tarmac host`).
        """
        if not self._writes or len(text) > LARGEST:
            return False
        params = {"sessionId": self._session, "path": str(path), "content": text}
        try:
            await self._peer.request("fs/write_text_file", params, timeout=WRITES)
        except TimeoutError:
            what = f"the editor did not write {shown(path)} within {WRITES:g} s"
        except PeerRefused as refusal:
            if refusal.code == DENIED:
                raise ToolDenied(f"{shown(path)} was not written: {refusal.what}") from None
            what = f"the editor could not write {shown(path)}: {refusal.what}"
        except PeerGone:
            return False
        else:
            return True
        self._tell_once(path, f"Tarmac wrote the file itself, because {what}. Reload it before you edit it.")
        raise EditorSilent(what)

    def _tell_once(self, path: Path, text: str) -> None:
        if path not in self._told:
            self._told.add(path)
            self._tell(text)


def plain(text: str) -> str:
    """PURE: a text without what editors change on their own: line endings, a byte order mark, the last newline."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n")


LARGEST_SHOWN: Final = 1 << 20  # bytes of a file whose texts an editor is shown
_STOPS: Final[Mapping[str, str]] = {
    "completed": "end_turn",
    "idle": "end_turn",
    "paused": "end_turn",
    "interrupted": "cancelled",
    "aborted": "cancelled",
    "limit": "max_turn_requests",
    "refused": "refusal",
}


class EditorSession:
    """An open task, as an editor has it."""

    def __init__(
        self,
        app: App,
        task: Task | JoinedTask,
        modes: Modes,
        workspace: Path,
        peer: RpcPeer,
        client: EditorAbilities,
        *,
        model: str,
    ) -> None:
        self.app, self.task, self.modes, self.workspace = app, task, modes, workspace
        self.model = model
        self.owns = AsyncExitStack()  # what is closed with it
        self.unusable_servers: tuple[str, ...] = ()  # MCP servers of the editor, each with the reason; told once
        self._peer = peer
        self._version_two = EditorVersionTwo() if client.version == 2 else None
        self._said: dict[str, object] = {}  # v2: the blocks of a prompt, by its text, until it is in the log
        self._message = asyncio.Event()  # v2: it is, under the id …
        self._message_id = ""
        self._prompts = asyncio.Lock()  # v2: one is accepted after the other
        self._accepted = 0  # v2: how many were
        self._turn: asyncio.Task[None] | None = None  # v2: tells the states of the session
        read = _text_of if app.place is None else _nothing_of
        self._updates = Updates(terminals=client.shows_terminals, workspace=workspace, read=read)
        self._untold: dict[str, int] = {}  # bytes of a call's output left out because the editor did not keep up
        self._window: int | None = None
        self._tools: dict[str, str] = {}  # of each call, which tool
        self._run: asyncio.Task[Ended] | None = None
        self._cancels = 0
        self._titled = bool(task.metadata.title)
        self._standing = asyncio.Event()  # it asked something that the next prompt answers
        self._questions = EditorQuestions(task, peer, client, stand=self._standing.set, read=read)
        self._leave = task.subscribe(self._heard)
        # Its files and terminals are those of the process that has it, or of another place.
        if isinstance(task, JoinedTask) or app.place is not None:
            return
        if client.reads_files:
            task.use_buffers(Buffers(peer, task.id, writes=client.writes_files, tell=self._tell))
        # What a sandbox keeps in must not get out through the editor.
        if client.terminals and app.config.client_terminals and app.config.terminals.sandbox is None:
            self._updates.elsewhere = True
            task.run_elsewhere(self._editor_terminal)

    @property
    def id(self) -> str:
        return self.task.id

    def begin(self) -> None:
        """The editor knows the session: tell it the commands, and ask what is open in a task that is joined."""
        self.send(self.commands())
        for asked in self.task.questions if isinstance(self.task, JoinedTask) else ():
            self._questions.ask(asked, self._tools.get(asked.call or "", ""))

    def look(self, documents: EditorDocuments) -> None:
        """Tell the task what the person's editor shows of its workspace."""
        if isinstance(self.task, JoinedTask):
            return

        def inside(path: Path | None) -> str:
            return str(path.relative_to(self.workspace)) if path and path.is_relative_to(self.workspace) else ""

        current = inside(documents.current)
        self.task.editor = Editor(
            open_files=tuple(filter(None, map(inside, documents.open))),
            current_file=current,
            selected=documents.selected if current else None,
            problems=tuple(Problem(name, each.line, each.text) for each in documents.problems
                           if (name := inside(each.path))),
        )  # fmt: skip

    # Turns

    async def prompt(self, said: EditorPrompt) -> dict[str, object]:
        """Say it and wait until the task stands; the stop reason."""
        ended = await self._until_it_stands(await self._say(said, self._expanded(said.text)))
        if ended is not None and ended.why == "failed":
            raise Refused(INTERNAL_ERROR, ended.told or "the task failed")
        return {"stopReason": _STOPS.get(ended.why, "end_turn") if ended else "end_turn"}

    async def accept(self, said: EditorPrompt, blocks: object) -> PeerReply:
        """v2: say it. The answer has the id of the message; the turn is told by the states of the session."""
        async with self._prompts:
            text = self._expanded(said.text)
            self._message.clear()
            self._said = {text: blocks}
            await self._say(said, text)
            try:
                async with asyncio.timeout(ANSWERS):
                    await self._message.wait()  # it is set, unless another process has the task
            except TimeoutError:
                self._place(time.time(), blocks)
            return PeerReply({"messageId": self._message_id}, then=self._follow)

    def _follow(self) -> None:
        self._accepted += 1
        if self._turn is None or self._turn.done():
            self._state("running")
            self._turn = asyncio.create_task(self._tell_states())

    async def _tell_states(self) -> None:
        """v2: running, until the task stands; then why it does. A prompt that comes meanwhile belongs to the turn."""
        idle: Update = {}
        followed = 0
        while followed != self._accepted and self._run is not None:
            if followed:
                self._state("running")
            followed = self._accepted
            try:
                ended = await self._until_it_stands(self._run)
                idle = {"stopReason": _STOPS.get(ended.why, "end_turn") if ended else "end_turn"}
                failed = (ended.told or "the task failed") if ended and ended.why == "failed" else ""
            except Exception as error:  # a fault of ours: the editor must not wait for the end of this turn
                failed = f"{type(error).__name__}: {error}"
            if failed:
                idle = {"stopReason": "error", "error": {"code": INTERNAL_ERROR, "message": failed}}
        self._state("idle", **idle)

    def _state(self, state: str, **facts: object) -> None:
        self.send({"sessionUpdate": "state_update", "state": state, **facts})

    async def _say(self, said: EditorPrompt, text: str) -> "asyncio.Task[Ended]":
        """Say it; the run that it belongs to."""
        before = self._cancels
        self._standing.clear()
        self._tell_of_servers()
        question = next((each for each in self.task.questions if each.ask == "followup"), None)
        if question is not None:
            answer = Answer(AnswerKind.MESSAGE, text=text, images=tuple(said.pictures), by="acp")
            await self.task.answer(question.question, answer)
        else:
            await self.task.say(text, said.pictures)
        if self._run is None or self._run.done():
            self._run = asyncio.create_task(self._go(before))
        return self._run

    async def _go(self, cancels: int) -> Ended:
        """Run it, unless it was stopped before it began."""
        return await self.task.run_until_idle() if self._cancels == cancels else Ended("interrupted")

    async def _until_it_stands(self, run: "asyncio.Task[Ended]") -> Ended | None:
        """How the run ended; None while it waits for the next prompt."""
        standing = asyncio.create_task(self._standing.wait())
        try:
            await asyncio.wait([run, standing], return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            if self._peer.gone:  # nobody stopped it: it is left in order, by aclose()
                raise
            self.task.cancel()  # the request was cancelled: so is the turn
            await asyncio.wait([run], timeout=5)
        finally:
            standing.cancel()
        return run.result() if run.done() else None

    def cancel(self) -> None:
        """Stop the turn, wherever it is."""
        self._cancels += 1
        if self._run is not None and not self._run.done():
            self.task.cancel()

    def _expanded(self, text: str) -> str:
        """`/name words` as what the project says under that name."""
        name, _, rest = text.removeprefix("/").partition(" ")
        if not text.startswith("/") or "\n" in name:
            return text
        path = commands(self.app.project, self.app.config.user_folder).get(name)
        try:
            return f"{path.read_text('utf-8', 'replace')[:LONGEST]}\n\n{rest}".strip() if path else text
        except OSError:
            return text

    def _tell_of_servers(self) -> None:
        """Once: the person who set them up must not think that they are used."""
        if self.unusable_servers:
            why, self.unusable_servers = "; ".join(self.unusable_servers), ()
            self._tell(f"Tarmac can't use some MCP servers that your editor passes along: {why}.")

    def _tell(self, text: str) -> None:
        self.send({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": f"({text})\n\n"}})

    # What happens in it

    def send(self, update: Update) -> None:
        for each in self._version_two.of(update) if self._version_two else [update]:
            self._peer.notify("session/update", {"sessionId": self.id, "update": each})

    def _echo(self, thing: e.UserSaid | e.MessageQueued | e.QuestionAnswered) -> None:
        """v2: what a person said has its place in the session now; all that see the session are told so."""
        if self._message_id == user_message(thing.at):  # an answer, which comes with the words themselves
            return
        own = thing.text in self._said
        self._place(thing.at, self._said.pop(thing.text, [{"type": "text", "text": thing.text}]))
        if own:
            self._message.set()

    def _place(self, at: float, content: object) -> None:
        self._message_id = user_message(at)
        self.send({"sessionUpdate": "user_message", "messageId": self._message_id, "content": content})

    def _heard(self, _: int | None, thing: e.TaskEvent | s.Signal) -> None:
        if isinstance(thing, s.OutputStreamed | e.ToolFinished):
            if isinstance(thing, s.OutputStreamed) and self._peer.crowded:
                self._untold[thing.call] = self._untold.get(thing.call, 0) + len(thing.data)
                return
            if missed := self._untold.pop(thing.call, 0):
                for each in self._updates.missed(thing.call, missed):
                    self.send(each)
        if self._version_two and (
            isinstance(thing, e.UserSaid | e.MessageQueued)
            or (isinstance(thing, e.QuestionAnswered) and thing.answer == AnswerKind.MESSAGE)
        ):
            self._echo(thing)
        for each in self._updates.of(thing):
            self.send(each)
        match thing:
            case e.UserSaid() if not self._titled and self.task.metadata.title:
                self._titled = True
                self.send({"sessionUpdate": "session_info_update", "title": self.task.metadata.title})
            case e.ModelSaid(parts=parts, usage=usage, cost=cost):
                self._tools |= {part.id: part.name for part in parts if isinstance(part, ToolUse)}
                if self._window:
                    update: Update = {"sessionUpdate": "usage_update", "used": usage.context, "size": self._window}
                    if (spent := self.task.metadata.whole_cost) is not None and cost is not None:
                        update["cost"] = {"amount": round(spent, 6), "currency": "USD"}
                    self.send(update)
            case e.RequestStarted(context_window=window):
                self._window = window
            case e.ModeSwitched() | e.ModelSwitched():
                if isinstance(thing, e.ModelSwitched):
                    self.model = thing.model
                self.send({"sessionUpdate": "config_option_update", "configOptions": self.options()})
            case e.QuestionAsked():
                self._questions.ask(thing, self._tools.get(thing.call or "", ""))
                if self._version_two and self._questions.shows(thing):
                    self._state("requires_action")
            case e.QuestionAnswered(question=question):
                self._questions.closed(question)
                if self._version_two and self._turn and not self._turn.done() and not self._questions.waiting:
                    self._state("running")
            case _:
                pass

    async def _editor_terminal(self, call: e.CallId, cwd: Path) -> EditorTerminal:
        """A terminal of the editor's for a call's command; the call shows it."""

        def shown(theirs: str) -> None:
            for each in self._updates.embedded(call, theirs):
                self.send(each)

        settings = self.app.registry.settings
        terminal = EditorTerminal(self._peer, self.task.id, cwd=cwd, settings=settings, shown=shown)
        self.app.registry.adopt(terminal, "is an editor's")
        return terminal

    # What it is

    def mode_state(self) -> dict[str, object]:
        return {
            "currentModeId": self.task.metadata.mode,
            "availableModes": [
                {"id": each.slug, "name": each.name, **({"description": each.when} if each.when else {})}
                for each in self.modes.all
            ],
        }

    def options(self) -> list[dict[str, object]]:
        """Mode and model, as things to choose."""
        models = list(dict.fromkeys(filter(None, (self.model, self.app.config.model))))
        return [
            {
                "type": "select",
                "id": "mode",
                "name": "Mode",
                "category": "mode",
                "currentValue": self.task.metadata.mode,
                "options": [{"value": each.slug, "name": each.name} for each in self.modes.all],
            },
            {
                "type": "select",
                "id": "model",
                "name": "Model",
                "category": "model",
                "currentValue": self.model,
                "options": [{"value": each, "name": each} for each in models],
            },
        ]

    def commands(self) -> Update:
        """The project's slash commands."""
        found = commands(self.app.project, self.app.config.user_folder)
        listed = [
            {"name": name, "description": first_line(path) or f"From {path.name}", "input": {"hint": "more words"}}
            for name, path in sorted(found.items())
        ]
        return {"sessionUpdate": "available_commands_update", "availableCommands": listed}

    async def aclose(self) -> None:
        """Stop it in order; what was asked is withdrawn. The task stays, unless nothing was ever said to it."""
        self._leave()
        self._questions.close()
        joined = isinstance(self.task, JoinedTask)
        silent = not joined and not self.task.metadata.requests and not self.task.metadata.title
        if isinstance(self.task, JoinedTask):
            self.task.leave()
        await self.owns.aclose()
        if running := [each for each in (self._run, self._turn) if each is not None]:
            await asyncio.wait(running, timeout=10)
        if silent:
            await self.app.store.delete(self.task.id)


def _nothing_of(path: Path) -> None:
    """A file of another place: the editor is shown what changed in it."""


def _text_of(path: Path) -> str | None:
    try:
        if path.stat().st_size > LARGEST_SHOWN:
            return None
        return path.read_text("utf-8")
    except (OSError, ValueError):
        return None
