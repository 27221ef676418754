"""Random histories of leases, commands, releases, deaths and cancellations from several tasks, on real terminals (T11).

After every step: no terminal is given twice, none foreign, none busy, none lost; bounds kept; waiters served in order.
`exec` terminals are cheap, so that many histories can be tried; `pty` ones have shells to be killed, moved and reset.
TARMAC_LONG makes it look for longer, by hand.
"""

import asyncio
import os
import shutil
import signal
import tempfile
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from tarmac.errors import TarmacError
from tarmac.terminals import Settings, TerminalRegistry
from tarmac.terminals.events import ShellEnded, TerminalClosedEvent
from tarmac.terminals.execution import Execution
from tarmac.terminals.shell.pty_terminal import PtyTerminal
from tarmac.terminals.terminal import Provider, Terminal

pytestmark = pytest.mark.shell
PATIENCE = 20.0
T = TypeVar("T")
tasks = st.sampled_from(["A", "B", None])
places = st.sampled_from(["", "a", "a/b", "c"])
# Which of those there are: a number, as what there is may depend on the time of day, and hypothesis' choices may not.
which = st.integers(0, 11)


def pick(those: Sequence[T], number: int) -> T | None:
    return those[number % len(those)] if those else None


@dataclass(eq=False)
class Caller:
    """Somebody who asked for a terminal."""

    name: int
    task: str | None
    place: str
    asking: "asyncio.Task[Terminal]"
    block: AbstractAsyncContextManager[Terminal] | None
    terminal: Terminal | None = None


class Lending(RuleBasedStateMachine):
    """A registry with narrow bounds, and what we know it must have done."""

    provider: Provider

    @initialize(per_task=st.integers(1, 3), most=st.integers(2, 4), warm=st.integers(0, 1))
    def open(self, per_task: int, most: int, warm: int) -> None:
        self.folder = Path(tempfile.mkdtemp())
        (self.folder / "a" / "b").mkdir(parents=True)
        (self.folder / "c").mkdir()
        self.runner = asyncio.Runner()
        self.bounds = Settings(max_per_task=per_task, max_terminals=most, warm_pool=warm, max_directory_changes=2)
        self.registry = TerminalRegistry(self.bounds)
        self.callers: list[Caller] = []  # who waits or has one, in the order they asked
        self.owners: dict[str, str | None] = {}  # by terminal
        self.known: dict[str, Terminal] = {}
        self.running: list[tuple[Terminal, Execution]] = []
        self.numbers = 0

    def do(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do something, then let everything come to rest."""

        async def whole() -> T:
            async with asyncio.timeout(PATIENCE):
                result = await work()
                await self.rest()
                return result

        return self.runner.run(whole())

    async def rest(self) -> None:
        """Until each caller has its terminal or stands in line. (Others than the registry's own word there is not.)"""
        while True:
            for _ in range(10):
                await asyncio.sleep(0)
            asking = [each.asking for each in self.callers if not each.asking.done()]
            leaving = [each for each in self.known.values() if not each.alive and each in self.registry.listing()]
            held = [each.terminal for each in self.callers]
            if len(asking) == self.registry.waiting and all(each in held for each in leaving):
                break
            await asyncio.sleep(0.002)
        for caller in self.callers[:]:
            if caller.terminal is None and caller.asking.done():
                self.served(caller)

    def served(self, caller: Caller) -> None:
        if caller.asking.cancelled():
            self.callers.remove(caller)
            return
        terminal = caller.terminal = caller.asking.result()
        others = [each.terminal for each in self.callers if each is not caller]
        assert terminal not in others, "given twice"
        owner = self.owners.get(terminal.id)
        assert owner in (None, caller.task), "another task's"
        assert (terminal.task, terminal.busy, terminal.closed) == (caller.task, False, False)
        assert (terminal.provider, terminal.origin) == (self.provider, "agent")
        before = self.callers[: self.callers.index(caller)]
        passed = [each for each in before if (each.task, each.place) == (caller.task, caller.place)]
        assert all(each.terminal is not None for each in passed), "overtaken"
        self.owners[terminal.id] = caller.task
        self.known[terminal.id] = terminal

    # What can happen

    @rule(task=tasks, place=places, block=st.booleans())
    def ask(self, task: str | None, place: str, block: bool) -> None:
        self.do(lambda: self.asked(task, place, block=block))

    async def asked(self, task: str | None, place: str, *, block: bool) -> Caller:
        cwd = self.folder / place
        context = self.registry.lease(cwd=cwd, task=task, provider=self.provider) if block else None
        getting: Coroutine[None, None, Terminal]
        if context is not None:
            getting = context.__aenter__()
        else:
            getting = self.registry.get_or_create(cwd=cwd, task=task, provider=self.provider)
        self.numbers += 1
        caller = Caller(self.numbers, task, place, asyncio.ensure_future(getting), context)
        self.callers.append(caller)
        return caller

    @rule(task=tasks, places=st.lists(places, min_size=1, max_size=4))
    def use(self, task: str | None, places: list[str]) -> None:
        """As an agent does: a terminal for each command, one after the other."""
        for place in places:
            caller = self.do(lambda place=place: self.asked(task, place, block=True))  # type: ignore[misc]
            if caller.terminal is None:
                break  # it waits
            self.do(lambda caller=caller: self.ran(caller, caller.terminal))  # type: ignore[misc]
            self.do(lambda caller=caller: self.left(caller))  # type: ignore[misc]

    def having(self) -> list[Caller]:
        return [each for each in self.callers if each.terminal is not None and not each.terminal.busy]

    def waiting(self) -> list[Caller]:
        return [each for each in self.callers if each.terminal is None]

    @rule(number=which)
    def run(self, number: int) -> None:
        """A command runs where it was asked for; without a block the claim ends with it."""
        caller = pick(self.having(), number)
        if caller is None or caller.terminal is None:
            return
        terminal = caller.terminal
        self.do(lambda: self.ran(caller, terminal))

    async def ran(self, caller: Caller, terminal: Terminal) -> None:
        mark = f"OF{caller.task}" if self.provider == "pty" else ""
        first = not any(past.command.startswith(f": {caller.name};") for past in terminal.history)
        result = await terminal.run(f": {caller.name}; pwd; echo $MARK; MARK={mark}", timeout=PATIENCE)
        where, found = result.output.split("\n")[:2]
        assert (result.exit_code, found) in ((0, ""), (0, mark)), "what another task set is still there"
        if first:
            assert Path(where) == self.folder / caller.place
        if caller.block is None:
            self.callers.remove(caller)

    @rule(number=which)
    def start(self, number: int) -> None:
        caller = pick(self.having(), number)
        if caller is None or caller.terminal is None:
            return
        terminal = caller.terminal

        async def work() -> None:
            execution = await terminal.start("echo up; read x")
            async for _ in execution:
                break
            self.running.append((terminal, execution))

        self.do(work)

    @rule(number=which, kill=st.booleans())
    def finish(self, number: int, kill: bool) -> None:
        one = pick(self.running, number)
        if one is None:
            return
        self.running.remove(one)

        async def work() -> None:
            await (one[1].kill() if kill else one[1].send("\n"))
            await one[1].result(PATIENCE)
            self.free_once(one[0])

        self.do(work)

    def free_once(self, terminal: Terminal) -> None:
        """Whoever had it without a block has it no more."""
        self.callers = [each for each in self.callers if each.terminal is not terminal or each.block is not None]

    @rule(number=which)
    def release(self, number: int) -> None:
        """Leave the block, or say release()."""
        caller = pick([each for each in self.callers if each.terminal], number)
        if caller is None:
            return
        self.do(lambda: self.left(caller))

    async def left(self, caller: Caller) -> None:
        self.callers.remove(caller)
        if caller.block is not None:
            await caller.block.__aexit__(None, None, None)
        else:
            assert caller.terminal is not None
            self.registry.release(caller.terminal)

    @rule(number=which)
    def give_up(self, number: int) -> None:
        caller = pick(self.waiting(), number)
        if caller is None:
            return

        async def work() -> None:
            caller.asking.cancel()
            await asyncio.wait([caller.asking])

        self.do(work)

    @rule(task=st.sampled_from(["A", "B"]), place=places, turns=st.integers(0, 30))
    def change_ones_mind(self, task: str, place: str, turns: int) -> None:
        """Ask, and be cancelled anywhere on the way."""

        async def work() -> None:
            asking = asyncio.ensure_future(
                self.registry.get_or_create(cwd=self.folder / place, task=task, provider=self.provider)
            )
            for _ in range(turns):
                await asyncio.sleep(0)
            asking.cancel()
            await asyncio.wait([asking])
            if not asking.cancelled():
                terminal = asking.result()
                assert self.owners.get(terminal.id) in (None, task)
                self.owners[terminal.id], self.known[terminal.id] = task, terminal
                self.registry.release(terminal)

        self.do(work)

    @rule(task=st.sampled_from(["A", "B"]), end=st.booleans())
    def task_is_over(self, task: str, end: bool) -> None:
        ended = [each for each in self.registry.listing() if self.owners.get(each.id) == task]
        self.owners = {id: None if owner == task else owner for id, owner in self.owners.items()}

        async def work() -> None:
            if end:
                await self.registry.end_task(task)
                self.forget(*ended)
            else:
                self.registry.release_for_task(task)
                for each in ended:
                    self.free_once(each)

        self.do(work)

    def forget(self, *gone: Terminal) -> None:
        self.callers = [each for each in self.callers if each.terminal is None or not each.terminal.closed]
        self.running = [each for each in self.running if not each[0].closed]
        assert all(each.closed for each in gone)

    @rule(number=which, how=st.sampled_from(["aclose", "kill", "SIGKILL"]))
    def die(self, number: int, how: str) -> None:
        terminal = pick(self.registry.listing(), number)
        if terminal is None:
            return

        async def work() -> None:
            if how == "SIGKILL" and isinstance(terminal, PtyTerminal) and terminal.session is not None:
                await self.kill_shell(terminal, terminal.session.pid)
            else:
                await (terminal.aclose() if how == "aclose" else self.registry.kill(terminal.id))
            self.forget()

        self.do(work)

    async def kill_shell(self, terminal: PtyTerminal, pid: int) -> None:
        if not terminal.alive:
            return
        dead, closed = asyncio.Event(), asyncio.Event()
        terminal.subscribe(lambda each: dead.set() if isinstance(each, ShellEnded) else None)
        terminal.subscribe(lambda each: closed.set() if isinstance(each, TerminalClosedEvent) else None)
        os.kill(pid, signal.SIGKILL)
        await dead.wait()
        was_running = [each for each in self.running if each[0] is terminal]
        for each in was_running:
            assert (await each[1].result(PATIENCE)).reason == "terminal closed"
            self.running.remove(each)
            self.free_once(terminal)
        if not any(each.terminal is terminal for each in self.callers):
            await closed.wait()

    # What must hold

    @invariant()
    def bounds_are_kept(self) -> None:
        if hasattr(self, "registry"):
            assert len(self.registry.listing()) <= self.bounds.max_terminals
            for task in ("A", "B"):
                assert len(self.registry.listing(task=task)) <= self.bounds.max_per_task

    @invariant()
    def nothing_is_lost(self) -> None:
        """What lives and was given is listed, by its owner; whoever waits does so for a reason.

        The pool's own count has warm shells too, also one that is being made just now.
        """
        if not hasattr(self, "registry"):
            return
        listed = self.registry.listing()
        for terminal in self.known.values():
            assert (terminal in listed) == (not terminal.closed)
        held = [each.terminal for each in self.callers]
        free = [each for each in listed if each not in held and not each.busy and each.alive]
        for caller in self.waiting():
            own = self.registry.listing(task=caller.task) if caller.task else []
            full = bool(caller.task) and len(own) >= self.bounds.max_per_task
            assert full or self.registry._entries.count() >= self.bounds.max_terminals, "it waits for nothing"
            assert not [each for each in (own if full else listed) if each in free], "a spare one would make room"

    def teardown(self) -> None:
        if hasattr(self, "runner"):
            self.runner.run(self.close())
            self.runner.close()
            shutil.rmtree(self.folder)

    async def close(self) -> None:
        left = [each.asking for each in self.callers if not each.asking.done()]
        await self.registry.aclose()
        for each in await asyncio.gather(*left, return_exceptions=True):
            assert isinstance(each, TarmacError), "who waits is told"
        for caller in self.callers:
            if caller.block is not None and caller.terminal is not None:
                await caller.block.__aexit__(None, None, None)
        assert self.registry.listing() == []


class OverPipes(Lending):
    provider = "exec"


class OnShells(Lending):
    provider = "pty"


@pytest.mark.parametrize(("machine", "histories", "steps"), [(OverPipes, 20, 30), (OnShells, 15, 30)])
def test_any_history_keeps_the_promises(machine: type[Lending], histories: int, steps: int) -> None:
    """T11, T12: see the top of this file."""
    more = int(os.environ.get("TARMAC_LONG", "1"))
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=histories * more,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
