"""Terminals lent to tasks, and terminals that stay by their id (T3–T12, T14, T24).

lease(cwd, task) → the waiting line (line.py) → the ladder (reuse.py) over what there is (stock.py)
  → made ready (lending.py): reused, from the warm pool, or opened → released, and still bound to the task

Choosing and claiming happen in one step of the event loop; all that takes time comes after, with the claim in hand.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Self, Unpack

from tarmac.errors import BadRequest, OutOfTerminals, TerminalNotFound
from tarmac.events import TaskId
from tarmac.paths import check_directory
from tarmac.terminals import heat
from tarmac.terminals.events import TerminalEvent, tell
from tarmac.terminals.execution import Execution
from tarmac.terminals.lending import Lending
from tarmac.terminals.result import Result
from tarmac.terminals.reuse import Wish
from tarmac.terminals.settings import OnTimeout, PathContribution, Settings
from tarmac.terminals.shells import Shell, find_shell
from tarmac.terminals.stock import Ask, Claim, Entry, Switch, Until
from tarmac.terminals.terminal import DEFAULT, Default, Listener, Origin, Provider, Terminal
from tarmac.terminals.unread import unread_output

if TYPE_CHECKING:
    from tarmac.terminals.watching import Conditions, Happened

AFTER_EDIT = 0.3
COOLING = 5.0
LOOK_AGAIN = 0.3


class TerminalRegistry:
    """Lends terminals to tasks, keeps others by their id; `async with` closes all of them."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self._lending = Lending(self.settings, self._tell)
        self._stock = self._lending.stock
        self._paths: dict[str, PathContribution] = {}
        self._shells: dict[tuple[str | None, str | None], Shell] = {}
        self._listeners: list[Listener] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close every terminal; one that fails to close keeps no other from closing."""
        await self._lending.aclose()

    # Lending

    @asynccontextmanager
    async def lease(
        self, *, cwd: Path | str, task: str | None = None, provider: Provider = "pty", shell: str | None = None
    ) -> AsyncIterator[Terminal]:
        """A terminal for a block: nobody else gets it meanwhile. Its first command runs in `cwd`, or not at all.

        Afterwards it stays bound to `task`, with all that was set in it, until `release_for_task`.
        """
        entry = await self._lend("released", cwd, task, provider, shell)
        claim = entry.claim
        try:
            yield entry.terminal
        finally:
            if entry.claim is claim:
                self._lending.release(entry)

    async def get_or_create(
        self, *, cwd: Path | str, task: str | None = None, provider: Provider = "pty", shell: str | None = None
    ) -> Terminal:
        """The same without a block: it is yours until its first command has ended, or `release(terminal)`."""
        return (await self._lend("run", cwd, task, provider, shell)).terminal

    async def _lend(
        self, until: Until, cwd: Path | str, task: str | None, provider: Provider, shell: str | None
    ) -> Entry:
        here, kind = check_directory(cwd if isinstance(cwd, Path) else Path(cwd)), self.shell(shell)
        if provider not in ("pty", "exec"):
            raise BadRequest(f"provider is 'pty' or 'exec', not {provider!r}")
        wish = Wish(cwd=here, task=_task(task), provider=provider, shell=kind.path)
        return await self._lending.lend(Ask(wish=wish, claim=Claim(until, wish.task), shell=kind, provider=provider))

    def shell(self, name: str | None = None) -> Shell:
        """The shell of that name, or the one used by default. Looked for once: a search through PATH costs."""
        wanted = (name, os.environ.get("PATH"))
        if wanted not in self._shells:
            self._shells[wanted] = find_shell(name)
        return self._shells[wanted]

    def release(self, terminal: Terminal) -> None:
        """End the claim on it, whoever has it; one that was kept by its id may be lent from now on."""
        entry = self._stock.entries.get(terminal.id)
        if entry is not None:
            self._lending.release(entry)

    def release_for_task(self, task: str) -> list[Terminal]:
        """The task is done: its terminals become background ones, which any task may get; commands go on (T9)."""
        released = []
        for entry in list(self._stock):
            if entry.terminal.task == task and entry.terminal.origin != "person":
                entry.terminal.task = None
                released.append(entry.terminal)
                if entry.claim is not None and entry.claim.until != "released":
                    self._lending.release(entry)
        self._lending.forget(TaskId(task))
        self._lending.changed()
        return released

    async def end_task(self, task: str) -> None:
        """The task was aborted or deleted: its terminals are closed, and all that runs in them ends (T9).

        Also those that it has left in the background, unless another task has had them since.
        """
        mine = [each for each in self._stock if each.terminal.origin != "person" and _is_of(each, task)]
        self._lending.forget(TaskId(task))
        self._lending.drop(*mine)
        await asyncio.gather(*(self._lending.upkeep.close_behind(each) for each in mine))

    async def warm_up(self, *, cwd: Path | str | None = None, shell: str | None = None) -> None:
        """Fill the warm pool now; by itself that happens after the first lease."""
        self._lending.check_open()
        here = check_directory(Path(cwd) if cwd is not None else Path.cwd())
        await self._lending.upkeep.fill(here, self.shell(shell))

    def why(self, terminal: Terminal) -> str:
        """Why its task got this one, in a sentence."""
        return self._entry(terminal.id).why

    def switches(self, id: str) -> list[Switch]:
        """The moves to other directories for which it was lent, with what its commands had changed by then (T8)."""
        return list(self._entry(id).switches or ())

    # Terminals by id

    def adopt(self, terminal: Terminal, why: str) -> None:
        """Have one that somebody else opened among ours, by its id, while it is open; nobody is lent it."""
        self._lending.check_open()
        if terminal.task is not None and self._stock.count(terminal.task) >= self.settings.max_per_task:
            raise OutOfTerminals(
                f"task {terminal.task} has its {self.settings.max_per_task} terminals (max_per_task)",
                hint="end one of its commands, or close a terminal",
            )
        entry = self._stock.add(terminal, claim=Claim("killed", terminal.task), why=f"{terminal.id} {why}")
        entry.users = frozenset({terminal.task})
        terminal.subscribe(self._lending.on_event)
        terminal.opened()

    async def open(
        self,
        *,
        name: str = "",
        cwd: Path | str | None = None,
        shell: str | None = None,
        provider: Provider = "pty",
        task: str | None = None,
        origin: Origin = "agent",
    ) -> Terminal:
        """Open a terminal that stays until it is killed or the registry is closed; it is lent to nobody."""
        here = check_directory(Path(cwd) if cwd is not None else Path.cwd())
        kind = self.shell(shell)
        ask = Ask(
            wish=Wish(cwd=here, task=_task(task), provider=provider, shell=kind.path),
            claim=Claim("killed", _task(task)),
            shell=kind,
            provider=provider,
            new=True,
            name=name,
            origin=origin,
        )
        entry = await self._lending.lend(ask)
        entry.why = f"opened {entry.terminal.id}: it was asked for"
        return entry.terminal

    def get(self, id: str) -> Terminal:
        return self._entry(id).terminal

    def _entry(self, id: str) -> Entry:
        entry = self._stock.entries.get(id)
        if entry is None or entry.warm:
            known = ", ".join(each.terminal.id for each in self._stock) or "none"
            raise TerminalNotFound(f"Terminal {id} not found", hint=f"open terminals: {known}")
        return entry

    def listing(self, *, busy: bool | None = None, task: str | None = None) -> list[Terminal]:
        """The open terminals, oldest first: all, or those of a task."""
        found = (each.terminal for each in self._stock)
        return [each for each in found if busy in (None, each.busy) and task in (None, each.task)]

    def background(self, *, busy: bool | None = None) -> list[Terminal]:
        """Those that belong to no task."""
        return [each for each in self.listing(busy=busy) if each.task is None]

    @property
    def waiting(self) -> int:
        """How many callers wait for a terminal at a bound."""
        return self._lending.waiting

    @property
    def active(self) -> Terminal | None:
        """The one that was last focused, else last used (T31)."""
        latest = max(self._stock, key=lambda each: (each.focused, each.used_at), default=None)
        return latest.terminal if latest is not None else None

    def focus(self, id: str) -> None:
        """A person looks at it."""
        self._entry(id).focused = time.monotonic()

    async def run(
        self, id: str, command: str, *, timeout: float | Default | None = DEFAULT, on_timeout: OnTimeout = "leave"
    ) -> Result:
        """Run a command in the terminal of that id."""
        return await self.get(id).run(command, timeout=timeout, on_timeout=on_timeout)

    async def start(self, id: str, command: str) -> Execution:
        return await self.get(id).start(command)

    async def send(self, id: str, text: str | bytes) -> None:
        """Type into the command that runs there."""
        terminal = self.get(id)
        if terminal.current is None:
            raise BadRequest(f"nothing is running in terminal {id}", hint="run a command first")
        await terminal.current.send(text)

    async def waiting_for(self, *ids: str, **conditions: "Unpack[Conditions]") -> "Happened":
        """Wait for the first of `conditions` in any of these terminals, or of all that are busy."""
        from tarmac.terminals.watching import first_of

        return await first_of([self.get(id) for id in ids] or self.listing(busy=True), **conditions)

    async def interrupt(self, id: str) -> None:
        terminal = self.get(id)
        if terminal.current is not None:
            await terminal.current.interrupt()

    async def kill(self, id: str) -> None:
        """Close the terminal of that id and end all in it; an unknown one is not an error."""
        entry = self._stock.entries.get(id)
        if entry is not None and not entry.warm:
            self._lending.drop(entry)
            await self._lending.upkeep.close_behind(entry)

    # Output

    async def read(self, id: str) -> list[Result]:
        """Results nobody has read yet, oldest first, and last what the running command printed so far."""
        terminal = self.readable(id)
        results = [await each.result() for each in terminal.unread]
        if terminal.current is not None:
            results.append(await terminal.current.so_far())
        return results

    async def unread_output(self, id: str) -> str:
        """What was printed there that nobody has read yet, as text; of a running command whole lines only (T10)."""
        return await unread_output(self.readable(id))

    def readable(self, id: str) -> Terminal:
        """Also one that is closed, while there is something in it that nobody has read (T9)."""
        gone = self._lending.upkeep.gone.get(id)
        return gone if gone is not None and (gone.unread or gone.current) else self.get(id)

    @property
    def gone(self) -> list[Terminal]:
        """Closed ones with something left that nobody has read, oldest first (T9)."""
        return [each for each in self._lending.upkeep.gone.values() if each.unread]

    def is_hot(self, id: str) -> bool:
        """Whether its command has just printed something, or seems to be compiling (T10)."""
        return heat.is_hot(self.get(id).current)

    async def cool(self, task: str | None = None, *, edited: bool = False) -> None:
        """Wait for a good moment to look: none of the task's and the background's commands is hot, or 5 s (T24)."""
        own = self.listing(busy=True, task=task) if task is not None else []
        running = [each.current for each in (*own, *self.background(busy=True)) if each.current is not None]
        if running and edited:
            await asyncio.sleep(AFTER_EDIT)
        end = time.monotonic() + COOLING
        for execution in running:
            while (left := min(heat.hot_until(execution), end) - time.monotonic()) > 0:
                if execution.waiting is not None:  # it prints nothing more before somebody types
                    break
                await execution.ended(min(left, LOOK_AGAIN))

    # The rest

    def contribute_path(self, name: str, directory: Path, *, description: str = "") -> None:
        """Put `directory` in front of PATH in terminals opened from now on; the same name again replaces it (T33)."""
        if not name or ":" in str(directory) or "\0" in str(directory):
            raise BadRequest(f"{directory} can't be in PATH, or {name!r} is no name")
        self._paths[name] = PathContribution(name=name, directory=directory, description=description)
        paths = (*self.settings.path_contributions, *self._paths.values())
        self._stock.settings = replace(self.settings, path_contributions=paths)

    @property
    def path_contributions(self) -> tuple[PathContribution, ...]:
        return tuple(self._paths.values())

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` with every event of every terminal; the returned function ends that."""
        self._listeners.append(listener)

        def unsubscribe() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return unsubscribe

    def _tell(self, event: TerminalEvent) -> None:
        tell(self._listeners[:], event)


def _task(task: str | None) -> TaskId | None:
    if task == "":
        raise BadRequest("a task's id is not empty", hint="leave it out for a terminal of no task")
    return None if task is None else TaskId(task)


def _is_of(entry: Entry, task: str) -> bool:
    """Bound to it; or bound to nobody, and used by it alone."""
    owner = entry.terminal.task
    return owner == task or (owner is None and entry.users == {task})
