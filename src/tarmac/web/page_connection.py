"""One page's WebSocket: its first frame proves who it is, then verbs come in and frames go out.

text frames  read_message() → a method of PageConnection → reply
state, feeds, viewers → tell(frame) → queue → the page

A page that does not read is cut off once 8 MiB wait for it. It connects again, and says what it has seen.
"""

import asyncio
import secrets
import time
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Final

from starlette.websockets import WebSocket, WebSocketDisconnect

from tarmac import __version__
from tarmac.errors import BadRequest, TarmacError
from tarmac.events import TaskId, TerminalId
from tarmac.show.pictures import pictures_in
from tarmac.show.records import record, signal_record
from tarmac.tasks.auto import LEVELS
from tarmac.tasks.conversation import expand_command
from tarmac.tasks.events import MessageId, QuestionId
from tarmac.tasks.signals import OutputStreamed, Signal
from tarmac.web import shapes
from tarmac.web import verbs as v
from tarmac.web.access import Access
from tarmac.web.feed import FactTold, TaskFeed
from tarmac.web.shapes import Json
from tarmac.web.state import WebState
from tarmac.web.viewer import Viewer

TO_PROVE: Final = 2.0  # seconds from the connection to its proof
MOST_WAITING: Final = 8 << 20  # characters of frames that a page has not taken
MOST_CAUGHT_UP: Final = 2000  # facts; a page that missed more reads the timeline anew
MOST_OUTPUT: Final = 64 << 10  # bytes of commands' output …
OUTPUT_EVERY: Final = 0.1  # … in so many seconds
MOST_AT_ONCE: Final = 32  # slow verbs of one page under way
NO_PROOF, WRONG_PROOF, TOO_SLOW = 4408, 4401, 4429  # how a socket is closed


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


class PageConnection:
    """One connected page."""

    def __init__(self, socket: WebSocket, state: WebState, access: Access, server: str) -> None:
        self.id = secrets.token_hex(4)
        self._socket = socket
        self._state = state
        self._access = access
        self._server = server
        self._waiting: deque[str] = deque()
        self._size = 0
        self._news = asyncio.Event()
        self._written = asyncio.Event()  # nothing waits
        self._followed: dict[TaskId, Callable[[], None]] = {}
        self._viewers: dict[TerminalId, tuple[Viewer, asyncio.Task[None]]] = {}
        self._work: set[asyncio.Task[None]] = set()
        self._output = OutputBudget()

    async def run(self) -> None:
        """Serve it until it leaves."""
        await self._socket.accept()
        try:
            if not await self._proves_itself():
                return
            self._state.join(self)
            writing = asyncio.create_task(self._write())
            reading = asyncio.create_task(self._read())
            try:
                await self._welcome()
                await asyncio.wait({reading, writing}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                await self._leave(reading, writing)
        except WebSocketDisconnect:
            pass

    async def _leave(self, *tasks: "asyncio.Task[None]") -> None:
        self._state.leave(self)
        for leave in self._followed.values():
            leave()
        left = [*tasks, *self._work, *(task for _, task in self._viewers.values())]
        for each in left:
            each.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        for task in self._followed:
            await self._state.unfollowed(task)

    async def _proves_itself(self) -> bool:
        try:
            async with asyncio.timeout(TO_PROVE):
                frame = await self._socket.receive_text()
        except TimeoutError:
            await self._socket.close(NO_PROOF, "no proof came")
            return False
        except KeyError:  # a binary frame
            frame = ""
        if self._access.knows(v.read_hello(frame)):
            return True
        await self._socket.close(WRONG_PROOF, "the proof is wrong")
        return False

    async def _welcome(self) -> None:
        config = self._state.config
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
        self.tell({"type": "terminals", "terminals": self._state.terminals()})
        self.tell({"type": "tasks", "tasks": await self._state.task_rows()})

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
                    await self._socket.close(TOO_SLOW, "too much is waiting")
                    return
                text = self._waiting.popleft()
                self._size -= len(text)
                await self._socket.send_text(text)
            self._news.clear()
            self._written.set()
            await self._news.wait()

    async def _send_bytes(self, frame: bytes) -> None:
        """After the text that was told before it: a page knows each terminal whose bytes it gets."""
        await self._written.wait()
        await self._socket.send_bytes(frame)

    # In

    async def _read(self) -> None:
        while True:
            try:
                frame = await self._socket.receive_text()
            except KeyError:
                raise WebSocketDisconnect(1003) from None  # pages send text only
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
            context = {"message": f"`{type(message).__name__}` of a page failed", "exception": error}
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
                terminal = await self._state.open_terminal(cwd=cwd, task=of)
                return {"terminal": terminal.id}
            case v.Create():
                return await self._create(message)
            case v.OneTask():
                return await self._do_in_task(message)
        return None

    # Tasks

    async def _create(self, said: v.Create) -> Json:
        workspace = await asyncio.to_thread(self._state.workspace, said.cwd)
        text = await asyncio.to_thread(expand_command, said.text, workspace, self._state.config.user_folder)
        pictures = (*v.pictures(said.images), *await asyncio.to_thread(pictures_in, said.text))
        opened = await self._state.create(
            text, pictures, mode=said.mode, model=said.model, level=said.level, workspace=workspace
        )
        return {"task": opened.task.id}

    async def _do_in_task(self, message: v.OneTask) -> Json | None:
        state = self._state
        match message:
            case v.Follow(after=after):
                return await self._follow(message.task, after)
            case v.Unfollow():
                await self._unfollow(TaskId(message.task))
                return None
            case v.Say():
                return await self._say(message)
            case v.Resume():
                await state.resume(message.task)
                return None
            case v.Run():
                (await state.resume(message.task)).go()
                return None
            case v.Delete():
                await state.delete(message.task)
                return None
            case v.Shut():
                await state.shut(message.task)
                return None
            case v.Undo(to=to, conversation=conversation, force=force):
                task = (await state.resume(message.task)).task
                done = await task.rewind(to, conversation=conversation, force=force)
                return {"files": [shapes.restored(each) for each in done.files] if done else []}
            case v.UndoPreview(to=to):
                points = (await state.resume(message.task)).task.checkpoints
                return {"files": [shapes.restored(*each) for each in await points.diff(points.find(to))]}
        opened = state.opened(message.task)
        task = opened.task
        match message:
            case v.AnswerQuestion(question=question):
                running = task.running
                await task.answer(QuestionId(question), v.answer_of(message))
                if not running:
                    opened.go()
            case v.Hold(question=question):
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
            case v.Level(level=level):
                opened.switch_level(level)
            case v.SwitchMode(mode=mode):
                await task.switch_mode(mode)
            case v.SwitchModel(model=model):
                await task.switch_model(model)
        return None

    async def _say(self, said: v.Say) -> Json:
        opened = self._state.open.get(TaskId(said.task)) or await self._state.resume(said.task)
        config = opened.app.config
        text = await asyncio.to_thread(expand_command, said.text, config.workspace, config.user_folder)
        pictures = (*v.pictures(said.images), *await asyncio.to_thread(pictures_in, said.text))
        queued = await opened.task.say(text, pictures)
        if queued is None:
            opened.go()
        return {"message": queued}

    async def _follow(self, id: str, after: int | None) -> Json:
        feed = await self._state.feed(id)
        task = TaskId(id)
        if (leave := self._followed.pop(task, None)) is not None:
            leave()
        missed = feed.seq - after if after is not None else 0
        answer = {"seq": feed.seq, "length": len(feed.past.timeline.items), "reset": not 0 <= missed <= MOST_CAUGHT_UP}
        if after is not None and 0 < missed <= MOST_CAUGHT_UP:
            self._catch_up(task, feed, after)
        self._followed[task] = feed.follow(lambda thing: self._told(task, thing))
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
            await self._state.unfollowed(task)

    def _told(self, task: TaskId, thing: FactTold | Signal) -> None:
        if isinstance(thing, OutputStreamed) and not self._output.has_room(len(thing.data)):
            return  # the terminal's tab shows all of it, and so does the result
        if isinstance(thing, Signal):
            self.tell({"type": "record", "task": task, "record": signal_record(thing)})
            return
        items = [shapes.item(each) for each in thing.items]
        fact = record(thing.seq, thing.event)
        self.tell({"type": "record", "task": task, "record": fact, "items": items, "length": thing.length})

    # Terminals

    async def _do_in_terminal(self, message: v.OneTerminal) -> Json | None:
        state, id = self._state, message.terminal
        match message:
            case v.Watch(offset=offset):
                await self._watch(id, offset)
            case v.Unwatch():
                await self._unwatch(TerminalId(id))
            case v.Ack(offset=offset):
                if (found := self._viewers.get(TerminalId(id))) is not None:
                    found[0].ack(offset)
            case v.Take():
                return {"epoch": state.take(id, self)}
            case v.Give(epoch=epoch):
                await state.give(id, epoch)
            case v.Input(epoch=epoch, data=data):
                await state.held(id, epoch).type(data)
            case v.Secret(data=data):
                await state.secret(id, data)
            case v.Resize(epoch=epoch, rows=rows, columns=columns):
                state.resize(id, epoch, rows=rows, columns=columns)
            case v.Select(text=text):
                state.terminal(id).selection = text
            case v.Focus():
                state.focus(id)
            case v.Close():
                await state.close_terminal(id)
            case v.Interrupt():
                if (running := state.terminal(id).current) is not None:
                    await running.interrupt()
        return None

    async def _watch(self, id: str, offset: int | None) -> None:
        terminal = self._state.terminal(id)
        await self._unwatch(terminal.id)
        self._state.flush()
        viewer = Viewer(terminal, self._state.number(terminal.id), self._send_bytes)
        self._viewers[terminal.id] = viewer, asyncio.create_task(viewer.run(offset))

    async def _unwatch(self, id: TerminalId) -> None:
        if (found := self._viewers.pop(id, None)) is not None:
            found[1].cancel()
            await asyncio.gather(found[1], return_exceptions=True)
