"""A task that another process has open, used from this process: follow it, talk to it, answer its questions.

async with join(store, id, client="cli") as task:
    task.subscribe(listener)

Only the other process writes the log. This process reads the log, and follows the task through the other's socket:
events and signals come in, verbs go out. When the other process ends, the task can be resumed here.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tarmac.errors import BadRequest, DirectoryUnavailable, PeerGone, PeerRefused, TaskInUse, TerminalNotFound
from tarmac.events import TaskId
from tarmac.policy.approval import Answer, Picture
from tarmac.server.joined_terminal import JoinedTerminal
from tarmac.server.live_terminals import HEAD
from tarmac.server.trials import ChangeShown, TrialReport
from tarmac.server.unix_socket import TO_ANSWER, AppConnection, Channel, ClientName, Json, connect, pasted, sockets_of
from tarmac.show.json_records import read_record, read_signal
from tarmac.tasks.auto import Auto
from tarmac.tasks.checkpoints import Fate, Restoration, RestoredFile
from tarmac.tasks.context import Ended, now
from tarmac.tasks.events import (
    FileEdit,
    MessageDelivered,
    MessageId,
    MessageQueued,
    Noted,
    QuestionAnswered,
    QuestionAsked,
    QuestionId,
    TaskEvent,
    UserSaid,
)
from tarmac.tasks.log.reader import read_log
from tarmac.tasks.log.writer import is_alive, writer_of
from tarmac.tasks.signals import TaskListeners
from tarmac.tasks.store import TaskStore
from tarmac.tasks.views.file_history import FileHistory
from tarmac.tasks.views.metadata import Metadata
from tarmac.tools.edit.unified_diff import FileDiff

if TYPE_CHECKING:
    from tarmac.app import App
    from tarmac.tasks.task import Task

TO_RESTORE: Final = 90.0  # seconds for files to be compared or restored in another process
TO_TRY: Final = 90.0  # seconds for a trial there
TO_CONDENSE: Final = 300.0  # seconds for a model to summarize
MOST_RECENT: Final = 100  # facts that are shown to who joins


def process_with(store: TaskStore, task: TaskId) -> int | None:
    """The process that works on a task, if it is another one and lives."""
    pid = writer_of(store.folder / task)
    return pid if pid and is_alive(pid) else None


@asynccontextmanager
async def join(store: TaskStore, task: TaskId, *, client: ClientName) -> AsyncIterator["JoinedTask"]:
    """Join a task where it is open. TaskInUse: the process that has it does not accept connections."""
    joined = await open_joined(store, task, client=client)
    try:
        yield joined
    finally:
        await joined.aclose()


@asynccontextmanager
async def resume_or_join(
    app: "App", id: str, *, client: ClientName, **options: Any
) -> AsyncIterator["Task | JoinedTask"]:
    """Open an earlier task, or join it if another process has it. `options` are those of `App.resume_task`."""
    async with AsyncExitStack() as stack:
        task: Task | JoinedTask
        try:
            task = await stack.enter_async_context(app.resume_task(id, **options))
        except TaskInUse:
            found = TaskId((await asyncio.to_thread(app.store.path, id)).name)
            task = await stack.enter_async_context(join(app.store, found, client=client))
        yield task


async def open_joined(store: TaskStore, task: TaskId, *, client: ClientName) -> "JoinedTask":
    """As `join`; close it with `aclose`."""
    pid = process_with(store, task)
    why = "it does not accept connections"
    for path in sockets_of(store.folder.parent, pid) if pid else ():
        try:
            channel = await connect(path)
        except (PeerGone, PeerRefused, DirectoryUnavailable) as error:
            why = error.what
            continue
        joined = JoinedTask(task, store.folder / task, channel, path)
        try:
            await joined.open(client)
        except (PeerGone, PeerRefused, BadRequest) as error:
            why = error.what
            await joined.aclose()
            continue
        except BaseException:
            await joined.aclose()
            raise
        return joined
    if not pid:
        raise BadRequest(f"no process works on the task {task}", hint=f"`tarmac resume {task}` continues it")
    hint = f"`tarmac tasks show {task}` tells what it does; end that process to go on with it here"
    raise TaskInUse(f"process {pid} is working on the task {task}, and can't be joined: {why}", pid=pid, hint=hint)


class JoinedTask(TaskListeners):
    """A joined task. It has the verbs of a Task that can be sent as messages; see `tarmac.tasks.task`."""

    def __init__(self, id: TaskId, folder: Path, channel: Channel, socket: Path) -> None:
        super().__init__()
        self.id = id
        self.metadata = Metadata()
        self.attended = True
        self.recent: tuple[TaskEvent, ...] = ()  # what happened before it was joined, since the person's last words
        self.running = False
        self.level: Auto = "ask"
        self.terminals: dict[str, Json] = {}  # rows of docs/web.md
        self.changed: Callable[[], object] = bool  # its row is another
        self.terminal_changed: Callable[[Json], object] = bool  # the row of a terminal of this task is another
        self.terminal_gone: Callable[[str], object] = bool  # that of this id
        self.socket = socket  # of the process that has it open
        self._folder = folder
        self._connection = AppConnection(channel, heard=self._heard, drawn=self._drawn, lost=self._closed)
        self._looked_at: dict[int, JoinedTerminal] = {}  # by number
        self._questions: dict[QuestionId, QuestionAsked] = {}
        self._queue: tuple[MessageQueued, ...] = ()
        self._seq = 0
        self._loaded = False
        self._early: dict[int, TaskEvent] = {}  # heard before what comes before them was read
        self._moved = asyncio.Event()
        self._terminals_moved = asyncio.Event()
        self._gone = False
        self._why = ""  # it is gone
        self._left = False

    async def open(self, client: ClientName) -> None:
        """Follow it from now on; what was before is read from its log."""
        await self._connection.open(client)
        self._row((await self.request("follow", live=True))["row"])
        past = (await asyncio.to_thread(read_log, self._folder)).events
        for event in past:
            self.metadata.add(event)
        spoken = [place for place, event in enumerate(past) if isinstance(event, UserSaid | MessageDelivered)]
        self.recent = tuple(past[spoken[-1] if spoken else 0 :][-MOST_RECENT:])
        self._seq, self._loaded = len(past), True
        self._take_early()

    # What it is

    @property
    def afterwards(self) -> str:
        """What a person can do with it later."""
        return f"`tarmac join {self.id}` joins it again"

    @property
    def questions(self) -> tuple[QuestionAsked, ...]:
        """The open questions of the task and its subtasks."""
        return tuple(self._questions.values())

    @property
    def queue(self) -> tuple[MessageQueued, ...]:
        return self._queue

    @property
    def gone(self) -> bool:
        """Whether the process that had it open is gone, or has closed it."""
        return self._gone

    # Its terminals

    @property
    def terminal_rows(self) -> list[Json]:
        """Those of this task; each is a row of docs/web.md."""
        return [row for row in self.terminals.values() if row["task"] == self.id]

    def had(self, row: Json) -> bool:
        """Whether a terminal belongs to this task, or did before it was released."""
        return self.id in (row["task"], row.get("last_task"))

    @property
    def asks_for_secret(self) -> bool:
        """Whether one of its commands waits for a secret."""
        return any(wants_secret(row) for row in self.terminal_rows)

    @asynccontextmanager
    async def attached(self, id: str) -> AsyncIterator[JoinedTerminal]:
        """Show a terminal and have its keyboard, during the block."""
        row = self.terminals.get(id)
        if row is None:
            raise TerminalNotFound(f"terminal {id} is not there any more", hint="it was closed")
        terminal = self._looked_at[row["number"]] = JoinedTerminal(self._connection, row)
        try:
            await terminal.take()
            yield terminal
        finally:
            del self._looked_at[row["number"]]
            await terminal.leave()

    async def terminals_moved(self) -> None:
        """Wait until the row of one of its terminals changes, or the task is gone."""
        self._terminals_moved.clear()
        await self._terminals_moved.wait()

    async def send_secret(self, terminal: str, secret: str) -> None:
        """Type a secret for the command that asks for it there. BadRequest: none does."""
        await self._connection.request("secret", terminal=terminal, data=secret)

    def to_background(self) -> None:
        """Stop waiting for the commands that run."""
        self.post("background")

    # What it changed

    async def file_history(self) -> FileHistory:
        """The points to go back to."""
        history = FileHistory()
        for event in (await asyncio.to_thread(read_log, self._folder)).events:
            history.add(event)
        return history

    async def changed_since(self, to: int | None) -> list[tuple[RestoredFile, FileDiff | None]]:
        """As `Task.changed_since`."""
        rows = (await self.request("undo_preview", to=to, timeout=TO_RESTORE))["files"]
        return [(_restored(row), _diff(row)) for row in rows]

    async def undo(self) -> Restoration | None:
        """As `Task.undo`."""
        done = await self.request("undo", timeout=TO_RESTORE)
        return None if done["to"] is None else _restoration(done)

    async def rewind(
        self, to: int, *, files: bool = True, conversation: bool = True, force: bool = False
    ) -> Restoration | None:
        """As `Task.rewind`."""
        done = await self.request(
            "undo", to=to, files=files, conversation=conversation, force=force, timeout=TO_RESTORE
        )
        return _restoration(done) if files else None

    async def condense(self, focus: str = "") -> bool:
        """As `Task.condense`."""
        return bool((await self.request("condense", focus=focus, timeout=TO_CONDENSE))["condensed"])

    # Trials of commands

    async def try_command(self, question: QuestionId) -> TrialReport:
        """Run the command of a question on a copy, where the task is open."""
        return _trial(await self.request("try", question=question, timeout=TO_TRY))

    async def keep_trial(self, question: QuestionId, kept: Callable[[list[str]], object]) -> None:
        """Make the changes of the trial, which answers the question. `kept` hears what could not be changed."""
        kept([str(each) for each in (await self.request("keep", question=question, timeout=TO_TRY))["failed"]])

    async def discard_trial(self, question: QuestionId) -> None:
        await self.request("discard", question=question)

    # What a person does

    async def say(self, text: str, images: Sequence[Picture] = ()) -> MessageId | None:
        reply = await self.request("say", text=text, images=pasted(images))
        return MessageId(reply["message"]) if reply.get("message") else None

    async def withdraw(self, message: MessageId) -> None:
        await self.request("withdraw", message=message)

    async def answer(self, question: QuestionId, answer: Answer) -> None:
        always = {"scope": answer.always.scope, "offer": answer.always.offer} if answer.always else None
        await self.request(
            "answer",
            question=question,
            kind=answer.kind.value,
            text=answer.text,
            images=pasted(answer.images),
            always=always,
            edited=answer.edited,
            choices=[{"path": str(each.path), "answer": each.answer.value} for each in answer.choices],
        )

    def hold(self, question: QuestionId) -> None:
        self.post("hold", question=question)

    def cancel(self) -> None:
        self.post("cancel")

    def wake(self) -> None:
        self.post("run")

    def type_secrets(self) -> None:
        """Secrets are typed where the task is open, or in the page."""

    async def pause(self) -> None:
        await self.request("pause")

    async def unpause(self) -> None:
        await self.request("unpause")

    async def abort(self, why: str = "") -> None:
        await self.request("abort")

    async def shut(self) -> None:
        """Close it where it is open; the task stays."""
        await self.request("shut")

    async def delete(self) -> None:
        await self.request("delete")

    async def switch_mode(self, mode: str, why: str = "") -> None:
        await self.request("mode", mode=mode)

    async def switch_model(self, model: str) -> None:
        await self.request("model", model=model)

    async def switch_level(self, level: Auto) -> None:
        await self.request("level", level=level)

    async def run_until_idle(self) -> Ended:
        """Wait while it works there. Cancelling this does not stop it."""
        while self.running and not (self._gone or self._left):
            self._moved.clear()
            await self._moved.wait()
        if self._gone:
            return Ended("failed", self._why)
        match self.metadata.outcome:
            case "completed":
                return Ended("completed")
            case "aborted":
                return Ended("aborted")
        return Ended("idle")

    def leave(self) -> None:
        """Leave the task. It goes on in the process that has it open."""
        self._left = True
        self._moved.set()

    # The connection

    async def request(self, do: str, *, timeout: float = TO_ANSWER, **fields: object) -> Json:
        """Send a verb about it, and wait for the reply. As `AppConnection.request`."""
        return await self._connection.request(do, timeout=timeout, task=self.id, **fields)

    def post(self, do: str, **fields: object) -> None:
        """Say a verb about it without waiting."""
        self._connection.post(do, task=self.id, **fields)

    def _closed(self) -> None:
        """It is no longer open there."""
        if self._gone:
            return
        self._gone, self.running = True, False
        self._why = f"the process that ran this task has ended or closed it: `tarmac resume {self.id}` continues it"
        if not self._folder.exists():
            self._why = "this task was deleted"
        self._terminals_moved.set()
        for terminal in self._looked_at.values():
            terminal.end(self._why)
        self._questions.clear()
        if self._loaded:
            self._tell(None, Noted(at=now(), what="notice", text=self._why))
        self._moved.set()
        self.changed()

    def _heard(self, frame: Json) -> None:
        match frame:
            case {"type": "record", "task": self.id, "record": {"signal": _} as record}:
                if self._loaded and (signal := read_signal(record)) is not None:
                    self._tell(None, signal)
            case {"type": "record", "task": self.id, "record": {"seq": int(seq)} as record} if seq:
                if seq > self._seq:
                    self._early[seq] = read_record(record)
                    self._take_early()
            case {"type": "record", "task": self.id, "record": record}:  # of a subtask: it is in no log of ours
                if self._loaded:
                    self._fact(None, read_record(record))
            case {"type": "task", "task": {"id": self.id} as row}:
                self._row(row)
            case {"type": "tasks", "tasks": list(rows)}:
                for row in rows:
                    if row["id"] == self.id:
                        self._row(row)
            case {"type": "task_gone", "task": self.id}:
                self._closed()
            case {"type": "terminals", "terminals": list(rows)}:
                self.terminals = {row["id"]: row for row in rows}
                for row in filter(self.had, rows):
                    self.terminal_changed(row)
            case {"type": "terminal", "terminal": row}:
                self.terminals[row["id"]] = row
                self._terminals_moved.set()
                if self.had(row):
                    self.terminal_changed(row)
            case {"type": "terminal_gone", "terminal": id}:
                row = self.terminals.pop(id, None)
                self._terminals_moved.set()
                self.terminal_gone(id)
                if row and (looked_at := self._looked_at.get(row["number"])) is not None:
                    looked_at.end("it was closed")
            case {"type": "taken", "terminal": id}:
                for each in self._looked_at.values():
                    if each.id == id:
                        each.end("another window has taken its keyboard")
            case {"type": "trouble", "what": str(what), "hint": hint} if self._loaded:
                self._tell(None, Noted(at=now(), what="notice", text=f"{what}{f' ({hint})' if hint else ''}"))

    def _drawn(self, frame: bytes) -> None:
        kind, number, offset = HEAD.unpack_from(frame)
        if (terminal := self._looked_at.get(number)) is not None:
            terminal.drawn(kind, offset, frame[HEAD.size :])

    def _take_early(self) -> None:
        while self._loaded and (event := self._early.pop(self._seq + 1, None)) is not None:
            self._seq += 1
            self.metadata.add(event)
            self._fact(self._seq, event)

    def _fact(self, seq: int | None, event: TaskEvent) -> None:
        match event:
            case QuestionAsked(question=question):
                self._questions[question] = event
            case QuestionAnswered(question=question):
                self._questions.pop(question, None)
        self._tell(seq, event)

    def _row(self, row: Json) -> None:
        if not row["open"]:
            self._closed()
            return
        self.running, self.level = bool(row["running"]), row["level"] or "ask"
        known = self._questions
        self._questions = {
            QuestionId(each["question"]): known.get(each["question"]) or _question(each) for each in row["questions"]
        }
        self._queue = tuple(
            MessageQueued(at=0.0, message=MessageId(each["message"]), text=each["text"]) for each in row["queue"]
        )
        self._moved.set()
        self.changed()

    async def aclose(self) -> None:
        """Leave it. It goes on where it is open. May be called twice."""
        self._gone = True
        await self._connection.aclose()


def wants_secret(row: Json) -> bool:
    """Whether a command in the terminal of this row waits for a secret."""
    return bool(row["awaits"]) and row["awaits"]["wants"] == "secret"


def _restoration(done: Json) -> Restoration:
    return Restoration(to=done["to"], files=tuple(_restored(row) for row in done["files"]))


def _restored(row: Json) -> RestoredFile:
    """A restored file as the other process describes it, without its content."""
    before, after = None if row["created"] else "", None if row["deleted"] else ""
    return RestoredFile(
        edit=FileEdit(path=Path(row["path"]), before=before, after=after), fate=Fate(row["fate"]), why=row["why"]
    )


def _trial(row: Json) -> TrialReport:
    changes = tuple(ChangeShown(each["path"], each["kind"], each["diff"]) for each in row["changes"])
    return TrialReport(changes, row["more"], row["output"], row["exit_code"])


def _diff(row: Json) -> FileDiff | None:
    return None if row["added"] is None else FileDiff(row["diff"], row["added"], row["removed"])


def _question(row: Json) -> QuestionAsked:
    return QuestionAsked(
        at=row["at"],
        question=QuestionId(row["question"]),
        ask=row["ask"],
        text=row["text"],
        call=row["call"],
        choices=tuple(row["choices"]),
        details=json.dumps(row["details"]) if row["details"] else "",
    )
