"""One client, a page or a front end of another process: verbs come in, replies and frames go out.

text frames  read_message() → a method of ServedClient → reply
running app, feeds, viewers → tell(frame) → queue → the client

A client that does not read is cut off once 8 MiB wait for it. It connects again, and says what it has seen.
"""

import asyncio
import secrets
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final, Protocol

import msgspec

from tarmac import __version__
from tarmac.app import App
from tarmac.errors import BadRequest, DirectoryUnavailable, TarmacError, TerminalNotFound
from tarmac.events import TaskId, TerminalId
from tarmac.paths import state_dir
from tarmac.server import shapes
from tarmac.server import verbs as v
from tarmac.server.joined_task import TO_TRY, JoinedTask
from tarmac.server.joined_terminal import PassedOnTerminal
from tarmac.server.live_terminals import Viewer
from tarmac.server.open_task import FactTold, OpenTask, SubtaskFact, TaskFeed
from tarmac.server.running_app import RunningApp
from tarmac.server.shapes import Json
from tarmac.server.unix_socket import Channel, listen
from tarmac.show.json_records import record, signal_record
from tarmac.show.pictures import pictures_in
from tarmac.tasks.auto import LEVELS
from tarmac.tasks.events import MessageId, QuestionId
from tarmac.tasks.signals import OutputStreamed, Signal
from tarmac.tasks.talk import expand_command

TO_SAY_HELLO: Final = 2.0  # seconds for a front end's first frame
MOST_WAITING: Final = 8 << 20  # characters of frames that a page has not taken
MOST_CAUGHT_UP: Final = 2000  # facts; a page that missed more reads the timeline anew
MOST_OUTPUT: Final = 64 << 10  # bytes of commands' output …
OUTPUT_EVERY: Final = 0.1  # … in so many seconds
MOST_AT_ONCE: Final = 32  # slow verbs of one page under way
TOO_SLOW: Final = 4429  # how a socket is closed


class ClientTransport(Protocol):
    """How frames get to a client and from it. PeerGone: it has left."""

    async def receive(self) -> str | bytes: ...
    async def send_text(self, text: str) -> None: ...
    async def send_bytes(self, data: bytes) -> None: ...
    async def close(self, code: int = 1000, why: str = "") -> None: ...


class OutputBudget:
    """How much of the commands' output is told beside the terminals' own bytes: 64 KiB in a tenth of a second."""

    def __init__(self) -> None:
        self._until = 0.0
        self._left = 0

    def has_room(self, size: int) -> bool:
        now = time.monotonic()
        if now > self._until:
            self._until, self._left = now + OUTPUT_EVERY, MOST_OUTPUT
        self._left -= size
        return self._left >= 0


class ServedClient:
    """One connected client, after it proved who it is."""

    def __init__(self, transport: ClientTransport, running: RunningApp, *, server: str = "", by: str = "web") -> None:
        self.id = secrets.token_hex(4)
        self._transport = transport
        self._running = running
        self._server = server  # another one after each start
        self._by = by  # which front end answers
        self._waiting: deque[str] = deque()
        self._size = 0
        self._news = asyncio.Event()
        self._written = asyncio.Event()  # nothing waits
        self._followed: dict[TaskId, Callable[[], None]] = {}
        self._viewers: dict[TerminalId, tuple[Viewer, asyncio.Task[None]]] = {}
        self._passed_on: dict[str, PassedOnTerminal] = {}  # terminals of other processes
        self._work: set[asyncio.Task[None]] = set()
        self._output = OutputBudget()

    async def run(self) -> None:
        """Serve it until it leaves."""
        self._running.join(self)
        writing = asyncio.create_task(self._write())
        reading = asyncio.create_task(self._read())
        try:
            await self._welcome()
            await asyncio.wait({reading, writing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await self._leave(reading, writing)

    async def _leave(self, *tasks: "asyncio.Task[None]") -> None:
        self._running.leave(self)
        for leave in self._followed.values():
            leave()
        left = [*tasks, *self._work, *(task for _, task in self._viewers.values())]
        for each in left:
            each.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        await asyncio.gather(*(each.aclose() for each in self._passed_on.values()), return_exceptions=True)
        for name in [name for name, client in self._running.known_as.items() if client == self.id]:
            del self._running.known_as[name]
        for task in self._followed:
            await self._running.unfollowed(task)

    async def _welcome(self) -> None:
        config = self._running.config
        self.tell(
            {
                "type": "welcome",
                "version": __version__,
                "workspace": str(config.workspace),
                "model": config.model,
                "mode": config.mode,
                "level": config.auto,
                "levels": list(LEVELS),
                "page": self.id,
                "server": self._server,
            }
        )
        self.tell({"type": "terminals", "terminals": self._running.terminal_rows()})
        self.tell({"type": "tasks", "tasks": await self._running.task_rows()})
        self.tell(self._running.current_frame())

    # Out

    def tell(self, frame: Json) -> None:
        """Send it, after those before it. It never waits."""
        self._written.clear()
        text = shapes.encode(frame)
        self._waiting.append(text)
        self._size += len(text)
        self._news.set()

    async def _write(self) -> None:
        while True:
            while self._waiting:
                if self._size > MOST_WAITING:
                    await self._transport.close(TOO_SLOW, "too much is waiting")
                    return
                text = self._waiting.popleft()
                self._size -= len(text)
                await self._transport.send_text(text)
            self._news.clear()
            self._written.set()
            await self._news.wait()

    async def _send_bytes(self, frame: bytes) -> None:
        """After the text that was told before it: a page knows each terminal whose bytes it gets."""
        await self._written.wait()
        await self._transport.send_bytes(frame)

    # In

    async def _read(self) -> None:
        while True:
            frame = await self._transport.receive()
            if isinstance(frame, bytes):  # clients send text only
                return
            try:
                message = v.read_message(frame)
            except BadRequest as error:
                self._reply(v.read_id(frame), error)
                continue
            work = self._answered(message)
            if isinstance(message, v.SLOW):
                self._beside(work)
            else:
                await work

    def _beside(self, work: Coroutine[object, object, None]) -> None:
        """What takes a while must not hold up what is typed."""
        if len(self._work) >= MOST_AT_ONCE:
            work.close()
            self.tell({"type": "trouble", "what": "too much at once", "hint": "wait for an answer first"})
            return
        task = asyncio.create_task(work)
        self._work.add(task)
        task.add_done_callback(self._work.discard)

    async def _answered(self, message: v.AnyVerb) -> None:
        try:
            ok = await self._do(message)
        except TarmacError as error:
            self._reply(message.id, error)
        except Exception as error:  # a fault of ours: the page is told, and goes on
            context = {"message": f"`{type(message).__name__}` of a client failed", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)
            self._reply(message.id, TarmacError(f"Tarmac failed: {type(error).__name__}", hint="this is a bug"))
        else:
            if message.id is not None:
                self.tell({"type": "reply", "id": message.id, "ok": ok or {}})

    def _reply(self, id: int | str | None, error: TarmacError) -> None:
        what = {"what": error.what, "hint": error.hint}
        if id is None:
            self.tell({"type": "trouble", **what})
        else:
            self.tell({"type": "reply", "id": id, "error": what})

    async def _do(self, message: v.AnyVerb) -> Json | None:
        match message:
            case v.OneTerminal():
                return await self._do_in_terminal(message)
            case v.Open(cwd=cwd, task=of):
                terminal = await self._running.open_terminal(cwd=cwd, task=of)
                return {"terminal": terminal.id}
            case v.Create():
                return await self._create(message)
            case v.OneTask():
                return await self._do_in_task(message)
        return None

    # Tasks

    async def _create(self, said: v.Create) -> Json:
        workspace = await asyncio.to_thread(self._running.workspace, said.cwd)
        text = await asyncio.to_thread(expand_command, said.text, workspace, self._running.config.user_folder)
        pictures = v.pictures(said.images)
        if self._by == "web":  # other front ends have looked for them
            pictures = (*pictures, *await asyncio.to_thread(pictures_in, said.text))
        opened = await self._running.create(
            text, pictures, mode=said.mode, model=said.model, level=said.level, workspace=workspace
        )
        return {"task": opened.task.id}

    async def _do_in_task(self, message: v.OneTask) -> Json | None:
        state = self._running
        match message:
            case v.Follow(after=after, live=live):
                return await self._follow(message.task, after, live=live)
            case v.Unfollow():
                await self._unfollow(TaskId(message.task))
                return None
            case v.Say():
                return await self._say(message)
            case v.Resume():
                await state.resume(message.task)
                return None
            case v.RunTask():
                await self._woken(await state.resume(message.task))
                return None
            case v.Show():
                state.show(TaskId((await asyncio.to_thread(state.store.path, message.task)).name))
                return None
            case v.Delete():
                await state.delete(message.task)
                return None
            case v.Shut():
                await state.shut(message.task)
                return None
            case v.Undo(to=None):
                undone = await (await state.resume(message.task)).task.undo()
                files = [shapes.restored(each) for each in undone.files] if undone else []
                return {"to": undone.to if undone else None, "files": files}
            case v.Undo(to=int(to), files=with_files, conversation=conversation, force=force):
                task = (await state.resume(message.task)).task
                done = await task.rewind(to, files=with_files, conversation=conversation, force=force)
                return {"to": to, "files": [shapes.restored(each) for each in done.files] if done else []}
            case v.UndoPreview(to=to):
                changed = await (await state.resume(message.task)).task.changed_since(to)
                return {"files": [shapes.restored(*each) for each in changed]}
            case v.CondenseTask(focus=focus):
                return {"condensed": await (await state.resume(message.task)).task.condense(focus)}
            case v.Try() | v.KeepTrial() | v.DiscardTrial():
                return await self._try(state.opened(message.task), message)
        opened = state.opened(message.task)
        task = opened.task
        match message:
            case v.AnswerQuestion(question=question):
                running = task.running
                await task.answer(QuestionId(question), v.answer_of(message, self._by))
                await state.trials.discard(QuestionId(question))
                if not running:
                    await self._woken(opened)
            case v.HoldQuestion(question=question):
                task.hold(QuestionId(question))
            case v.Withdraw(message=queued):
                await task.withdraw(MessageId(queued))
            case v.Cancel():
                task.cancel()
            case v.Pause():
                await task.pause()
            case v.Unpause():
                await task.unpause()
            case v.Abort():
                await task.abort()
            case v.Background():
                await opened.to_background(self._by)
            case v.Level(level=level):
                await state.switch_level(opened, level)
            case v.SetMode(mode=mode):
                await task.switch_mode(mode)
            case v.SetModel(model=model):
                await task.switch_model(model)
        return None

    async def _woken(self, opened: OpenTask) -> None:
        """Let it run. The client knows that it does before it has the reply."""
        if not isinstance(opened.task, JoinedTask):
            await opened.wake()
            self._running.flush()
        else:
            opened.task.wake()

    async def _try(self, opened: OpenTask, message: v.Try | v.KeepTrial | v.DiscardTrial) -> Json:
        """A command of a question on a copy of the workspace. What is joined is tried where it is open."""
        question, trials = QuestionId(message.question), self._running.trials
        match message:
            case _ if isinstance(opened.task, JoinedTask):
                verb = {v.Try: "try", v.KeepTrial: "keep", v.DiscardTrial: "discard"}[type(message)]
                return await opened.task.request(verb, question=question, timeout=TO_TRY)
            case v.Try():
                return shapes.trial(await trials.run(opened.task, question))
            case v.KeepTrial():
                return {"failed": await trials.keep(opened.task, question, by=self._by)}
            case v.DiscardTrial():
                await trials.discard(question)
        return {}

    async def _say(self, said: v.Say) -> Json:
        running = self._running
        opened = running.open.get(TaskId(said.task)) or await running.resume(said.task)
        text, pictures = said.text, v.pictures(said.images)
        if self._by == "web":  # other front ends have done this
            config = opened.app.config if opened.app else running.config
            workspace = opened.task.metadata.workspace or config.workspace
            text = await asyncio.to_thread(expand_command, said.text, workspace, config.user_folder)
            pictures = (*pictures, *await asyncio.to_thread(pictures_in, said.text))
        queued = await opened.task.say(text, pictures)
        if queued is None and not isinstance(opened.task, JoinedTask):
            await self._woken(opened)
        return {"message": queued}

    async def _follow(self, id: str, after: int | None, *, live: bool) -> Json:
        task = TaskId(id)
        if live and isinstance(self._running.opened(id).task, JoinedTask):
            raise BadRequest(f"task {id} is open in another process")
        feed = await self._running.feed(id)
        if (leave := self._followed.pop(task, None)) is not None:
            leave()
        missed = feed.seq - after if after is not None else 0
        answer: Json = {
            "seq": feed.seq,
            "length": len(feed.past.timeline.items),
            "reset": not 0 <= missed <= MOST_CAUGHT_UP,
        }
        if after is not None and 0 < missed <= MOST_CAUGHT_UP:
            self._catch_up(task, feed, after)
        if live:
            answer["row"] = self._running.open_row(self._running.opened(id))
        self._followed[task] = feed.follow(lambda thing: self._told(task, thing))
        if self._by == "web" and (opened := self._running.open.get(task)) is not None:
            for each in opened.saying:
                if not feed.past.has_said(each.request):  # the log knows it before its followers do
                    self._told(task, each)
        return answer

    def _catch_up(self, task: TaskId, feed: TaskFeed, after: int) -> None:
        past = feed.past
        facts = [record(seq, event) for seq, event in enumerate(past.events[after:], after + 1)]
        items = [shapes.item(each) for each in past.changed_since(after)]
        self.tell(
            {"type": "records", "task": task, "records": facts, "items": items, "length": len(past.timeline.items)}
        )

    async def _unfollow(self, task: TaskId) -> None:
        if (leave := self._followed.pop(task, None)) is not None:
            leave()
            await self._running.unfollowed(task)

    def _told(self, task: TaskId, thing: FactTold | SubtaskFact | Signal) -> None:
        if isinstance(thing, OutputStreamed) and not self._output.has_room(len(thing.data)):
            return  # the terminal's tab shows all of it, and so does the result
        if isinstance(thing, Signal):
            self.tell({"type": "record", "task": task, "record": signal_record(thing)})
            return
        if isinstance(thing, SubtaskFact):
            if self._by != "web":  # a page sees it in the subtask's own timeline, and the question in the row
                self.tell({"type": "record", "task": task, "record": record(0, thing.event)})
            return
        items = [shapes.item(each) for each in thing.items]
        fact = record(thing.seq, thing.event)
        self.tell({"type": "record", "task": task, "record": fact, "items": items, "length": thing.length})

    # Terminals

    async def _do_in_terminal(self, message: v.OneTerminal) -> Json | None:
        terminals, id = self._running.terminals, message.terminal
        if "@" in id:
            return await (await self._elsewhere(id)).do(msgspec.to_builtins(message))
        match message:
            case v.Watch(offset=offset):
                await self._watch(id, offset)
            case v.Unwatch():
                await self._unwatch(TerminalId(id))
            case v.Ack(offset=offset):
                if (found := self._viewers.get(TerminalId(id))) is not None:
                    found[0].ack(offset)
            case v.Take():
                return {"epoch": terminals.take(id, self)}
            case v.Give(epoch=epoch):
                await terminals.give(id, epoch)
            case v.Input(epoch=epoch, data=data, raw=raw):
                await terminals.held(id, epoch).type(data or raw)
            case v.TypeSecret(data=data):
                await terminals.secret(id, data)
            case v.Resize(epoch=epoch, rows=rows, columns=columns):
                terminals.resize(id, epoch, rows=rows, columns=columns, always=self._by == "cli")
            case v.Select(text=text):
                terminals.get(id).selection = text
            case v.Focus():
                terminals.focus(id)
            case v.Close():
                await terminals.close(id)
            case v.Interrupt():
                if (running := terminals.get(id).current) is not None:
                    await running.interrupt()
        return None

    async def _elsewhere(self, id: str) -> PassedOnTerminal:
        """A terminal of another process. TerminalNotFound: its task is not joined any more."""
        found = self._running.joined_terminal(id)
        passed_on = self._passed_on.get(id)
        if passed_on is not None and (found is None or passed_on.lost):
            del self._passed_on[id]
            await passed_on.aclose()
        if found is None:
            raise TerminalNotFound(f"terminal {id} is not there any more", hint="its task is closed there")
        if id not in self._passed_on:
            task, theirs = found
            number = self._running.terminals.number(TerminalId(id))
            terminal = PassedOnTerminal(
                id, theirs, number, send=self._send_bytes, tell=self.tell, known=self._known_elsewhere
            )
            await terminal.open(task.socket)
            self._passed_on[id] = terminal
        return self._passed_on[id]

    def _known_elsewhere(self, name: str) -> None:
        self._running.known_as[name] = self.id

    async def _watch(self, id: str, offset: int | None) -> None:
        terminal = self._running.terminals.get(id)
        await self._unwatch(terminal.id)
        self._running.flush()
        viewer = Viewer(terminal, self._running.terminals.number(terminal.id), self._send_bytes)
        self._viewers[terminal.id] = viewer, asyncio.create_task(viewer.run(offset))

    async def _unwatch(self, id: TerminalId) -> None:
        if (found := self._viewers.pop(id, None)) is not None:
            found[1].cancel()
            await asyncio.gather(found[1], return_exceptions=True)


async def serve_client(channel: Channel, running: RunningApp) -> None:
    """Serve a front end of another process that has connected to our socket."""
    try:
        async with asyncio.timeout(TO_SAY_HELLO):
            frame = await channel.receive()
    except TimeoutError:
        return
    hello = v.read_hello(frame if isinstance(frame, str) else "")
    await ServedClient(channel, running, by=hello.client).run()


@asynccontextmanager
async def share(app: App, environ: Mapping[str, str]) -> AsyncIterator[RunningApp]:
    """Let other front ends join the tasks of an app while the block lasts. Without a socket, nobody joins."""
    running = RunningApp(app.config, environ, {}, joins=False)
    running.adopt(app)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(running.aclose)
        try:
            await stack.enter_async_context(listen(state_dir(environ), lambda channel: serve_client(channel, running)))
        except (OSError, DirectoryUnavailable):
            pass
        yield running
