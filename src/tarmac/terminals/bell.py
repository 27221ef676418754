"""Waiting without polling: whoever waits is woken by a ring or by the clock, and looks for itself what changed."""

import asyncio
import time

HEARTBEAT = 1.0  # seconds between two looks at the clock while we wait
FROZEN = 1.0  # seconds; woken this late, we were stopped: a suspended machine, SIGSTOP, the cgroup freezer


def stopped_since(due: float) -> float:
    """For how long we were stopped, if we were to be woken at `due` (time.monotonic()): that time counts for nobody."""
    late = time.monotonic() - due
    return late if late > FROZEN else 0.0


class Bell:
    """Any number of waiters, one ring."""

    __slots__ = ("waiters",)

    def __init__(self) -> None:
        self.waiters: list[asyncio.Future[None]] = []

    def ring(self) -> None:
        for waiter in self.waiters:
            _set(waiter)

    async def wait_with(self, alarm: "Alarm", due: float) -> None:
        """Return at the next ring, or when it is `due` (time.monotonic()), or when the alarm goes off for another."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        self.waiters.append(waiter)
        alarm.set(self, due, loop)
        try:
            await waiter
        finally:
            alarm.forget(self)
            self.waiters.remove(waiter)

    async def wait(self, seconds: float | None = None) -> None:
        """Return at the next ring, or after `seconds`."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        self.waiters.append(waiter)
        clock = loop.call_later(seconds, _set, waiter) if seconds is not None else None
        try:
            await waiter
        finally:
            if clock is not None:
                clock.cancel()
            self.waiters.remove(waiter)


class Alarm:
    """One timer for many waits, mostly left to run out: to set and cancel one for each costs as much as a command.

    It goes off at the earliest time that was asked for, perhaps by somebody gone since; who waits looks at the clock.
    """

    __slots__ = ("_bells", "_due", "_timer")

    def __init__(self) -> None:
        self._bells: list[Bell] = []
        self._due = float("inf")
        self._timer: asyncio.TimerHandle | None = None

    def set(self, bell: Bell, due: float, loop: asyncio.AbstractEventLoop) -> None:
        self._bells.append(bell)
        if due < self._due:
            self.stop()
            self._due, self._timer = due, loop.call_later(due - time.monotonic(), self._go_off)

    def forget(self, bell: Bell) -> None:
        self._bells.remove(bell)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._due, self._timer = float("inf"), None

    def _go_off(self) -> None:
        self._due, self._timer = float("inf"), None
        for bell in self._bells[:]:
            bell.ring()


async def until_ready(fd: int, *, write: bool = False) -> bool:
    """Wait until `fd` can be read from, or written to. False for a regular file: it always can."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    try:
        if write:
            loop.add_writer(fd, _set, ready)
        else:
            loop.add_reader(fd, _set, ready)
    except PermissionError:
        await asyncio.sleep(0)
        return False
    try:
        await ready
    finally:
        if write:
            loop.remove_writer(fd)
        else:
            loop.remove_reader(fd)
    return True


def _set(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_result(None)
