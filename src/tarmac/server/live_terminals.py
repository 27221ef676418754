"""The terminals of this process as clients see them: live rows, and which client has which keyboard."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from tarmac.app import App
from tarmac.errors import BadRequest, TerminalNotFound
from tarmac.events import TaskId, TerminalId
from tarmac.server import shapes
from tarmac.server.shapes import Json
from tarmac.terminals import events
from tarmac.terminals.terminal import Terminal


class ClientLike(Protocol):
    """A connected client, as the state needs it."""

    id: str

    def tell(self, frame: Json) -> None: ...


@dataclass(slots=True)
class KeyboardHold:
    """Who has the keyboard of a terminal."""

    client: ClientLike | None = None
    epoch: int = 0


class LiveTerminals:
    """Those of some apps. `changed` is told of each whose row is another."""

    def __init__(
        self, apps: Callable[[], Iterable[App]], tell: Callable[[Json], object], changed: Callable[[TerminalId], object]
    ) -> None:
        self._apps = apps
        self._tell = tell
        self._changed = changed
        self._numbers: dict[TerminalId, int] = {}
        self._holds: dict[TerminalId, KeyboardHold] = {}
        self._awaits: dict[TerminalId, events.AwaitingInput] = {}
        self._last_tasks: dict[TerminalId, TaskId] = {}  # whose each is, or was before it was released

    def left(self, client: ClientLike) -> None:
        """A client is gone, and with it its hold of keyboards."""
        for id, hold in self._holds.items():
            if hold.client is client:
                hold.client = None
                self._changed(id)

    def get(self, id: str) -> Terminal:
        """The terminal of that id, in whichever workspace."""
        for app in self._apps():
            try:
                return app.registry.get(id)
            except TerminalNotFound:
                continue
        raise TerminalNotFound(f"terminal {id} is not there any more", hint="it was closed")

    def rows(self) -> list[Json]:
        """All of them, as rows."""
        return [self.row(each) for app in self._apps() for each in app.registry.listing()]

    def number(self, id: TerminalId) -> int:
        """How binary frames name it."""
        return self._numbers.setdefault(id, len(self._numbers) + 1)

    def row(self, terminal: Terminal) -> Json:
        hold = self._holds.get(terminal.id, KeyboardHold())
        return shapes.terminal_row(
            terminal,
            number=self.number(terminal.id),
            last_task=self._last_tasks.get(terminal.id),
            awaits=self._awaits.get(terminal.id),
            holder=hold.client.id if hold.client else None,
            epoch=hold.epoch,
        )

    def heard(self, event: events.TerminalEvent) -> None:
        """What the terminals tell."""
        id = event.terminal
        match event:
            case events.DataWritten():
                if self._awaits.pop(id, None) is None:
                    return
            case events.AwaitingInput():
                self._awaits[id] = event
            case events.CommandFinished():
                self._awaits.pop(id, None)
            case events.TerminalClosedEvent():
                for kept in (self._awaits, self._holds, self._last_tasks):
                    kept.pop(id, None)
                self._tell({"type": "terminal_gone", "terminal": id})
                return
        try:
            if (task := self.get(id).task) is not None:
                self._last_tasks[id] = task
        except TerminalNotFound:  # it is just being opened
            pass
        self._changed(id)

    async def close(self, id: str) -> None:
        """End it and all that runs in it."""
        for app in self._apps():
            await app.registry.kill(id)

    def focus(self, id: str) -> None:
        """The person looks at it."""
        for app in self._apps():
            try:
                app.registry.focus(id)
            except TerminalNotFound:
                continue

    # Keyboards

    def take(self, id: str, client: ClientLike) -> int:
        """The keyboard is this client's; the epoch that its input must carry."""
        terminal = self.get(id)
        hold = self._holds.setdefault(terminal.id, KeyboardHold())
        if hold.client is not None and hold.client is not client:
            hold.client.tell({"type": "taken", "terminal": id, "epoch": hold.epoch})
        hold.client, hold.epoch = client, hold.epoch + 1
        self._changed(terminal.id)
        return hold.epoch

    def held(self, id: str, epoch: int) -> Terminal:
        """The terminal, if that epoch still has its keyboard."""
        terminal = self.get(id)
        hold = self._holds.get(terminal.id, KeyboardHold())
        if hold.client is None or hold.epoch != epoch:
            raise BadRequest(f"the keyboard of {id} is not yours", hint="take it first")
        return terminal

    async def give(self, id: str, epoch: int) -> None:
        """The keyboard is the agent's again. A half-typed line is dropped, so that nothing is added to it."""
        terminal = self.held(id, epoch)
        self._holds[terminal.id].client = None
        if terminal.held and terminal.current is None:
            await terminal.type(b"\x03")
        self._changed(terminal.id)

    def resize(self, id: str, epoch: int, *, rows: int, columns: int, always: bool = False) -> None:
        """Only who has the keyboard decides, and not while the agent's own command draws.

        `always`: also then. A page can scroll a terminal of another size, a person's own terminal can't.
        """
        terminal = self.held(id, epoch)
        if terminal.current is not None and not terminal.current.by_person and not always:
            return
        terminal.resize(rows=rows, columns=columns)
        self._changed(terminal.id)

    async def secret(self, id: str, text: str) -> None:
        """Type a secret, if one is asked for right now. It is kept nowhere."""
        terminal = self.get(id)
        if terminal.current is None:
            raise BadRequest(f"nothing runs in {id}: nothing was typed")
        await terminal.current.send_secret(text, timeout=2)
        self._awaits.pop(terminal.id, None)
        self._changed(terminal.id)
