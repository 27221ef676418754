"""Which terminals of a workspace changed, as the addresses of their resources, for who subscribed to them.

events of terminals ─→ ResourceChanges ─at most once a second for each terminal→ listener(address) …

The first change after a pause is told at once, and the last one of a second is never lost.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from tarmac.events import TerminalId
from tarmac.terminals import events
from tarmac.terminals.terminal import Terminal

EVERY: Final = 1.0  # seconds between two words on one terminal
SOON: Final = 0.05  # seconds until the first one: what is printed together is told together
Listener = Callable[[str], None]


class ResourceChanges:
    """The changes of one workspace. Without listeners nothing is kept."""

    def __init__(self, terminal_of: Callable[[TerminalId], Terminal | None]) -> None:
        """`terminal_of`: the terminal of an id, if the clients of this workspace may see it."""
        self._terminal_of = terminal_of
        self._listeners: list[Listener] = []
        self._changed: dict[TerminalId, set[int]] = {}  # the commands that printed something or ended, not yet told
        self._timers: dict[TerminalId, asyncio.TimerHandle] = {}

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` with the address of each resource that changes. The returned function ends that."""
        self._listeners.append(listener)

        def unsubscribe() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)
            if not self._listeners:
                self.close()

        return unsubscribe

    def close(self) -> None:
        for each in self._timers.values():
            each.cancel()
        self._timers.clear()
        self._changed.clear()
        self._listeners.clear()

    def heard(self, event: events.TerminalEvent) -> None:
        """Something happened in a terminal."""
        if not self._listeners:
            return
        match event:
            case events.CommandStarted(number=number) | events.CommandFinished(number=number):
                self._change(event.terminal, {number})
            case events.AwaitingInput(number=number):
                self._change(event.terminal, {number})
            case events.DataWritten():
                self._change(event.terminal, None)
            case events.TerminalClosedEvent():  # it is not among the others any more
                self._note(event.terminal, set())

    def _change(self, id: TerminalId, numbers: set[int] | None) -> None:
        terminal = self._terminal_of(id)
        if terminal is None:
            return
        if numbers is None:
            numbers = {terminal.current.number} if terminal.current is not None else set()
        self._note(id, numbers)

    def _note(self, id: TerminalId, numbers: set[int]) -> None:
        self._changed.setdefault(id, set()).update(numbers)
        if id not in self._timers:
            self._timers[id] = asyncio.get_running_loop().call_later(SOON, self._tell, id)

    def _tell(self, id: TerminalId) -> None:
        numbers = self._changed.pop(id, None)
        if numbers is None:  # a whole second without news
            del self._timers[id]
            return
        self._timers[id] = asyncio.get_running_loop().call_later(EVERY, self._tell, id)
        for address in addresses(id, numbers):
            for listener in self._listeners[:]:
                listener(address)


def addresses(id: TerminalId, numbers: set[int]) -> list[str]:
    """The resources that change when these commands print something; without any, the screen alone."""
    terminal = f"tarmac://terminals/{id}"
    printed = [terminal, *(f"{terminal}/{number}" for number in sorted(numbers))] if numbers else []
    return [*printed, f"{terminal}/screen"]
