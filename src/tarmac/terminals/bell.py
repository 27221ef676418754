"""Waiting without polling: whoever waits is woken by a ring or by the clock, and looks for itself what changed."""

import asyncio


class Bell:
    """Any number of waiters, one ring."""

    __slots__ = ("_waiters",)

    def __init__(self) -> None:
        self._waiters: list[asyncio.Future[None]] = []

    def ring(self) -> None:
        for waiter in self._waiters:
            _set(waiter)

    async def wait(self, seconds: float | None = None) -> None:
        """Return at the next ring, or after `seconds`."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        self._waiters.append(waiter)
        clock = loop.call_later(seconds, _set, waiter) if seconds is not None else None
        try:
            await waiter
        finally:
            if clock is not None:
                clock.cancel()
            self._waiters.remove(waiter)


def _set(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_result(None)
