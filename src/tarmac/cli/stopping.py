"""What a signal to Tarmac does: everything it started ends first, then Tarmac, with 128 + the signal.

SIGINT may be softer: while a command runs it is that command that is interrupted (`Stop.interrupt`). A second one
ends us like the others. A signal that was ignored when we started (nohup, a background job) stays ignored.
"""

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
LAST_WORDS = 10.0  # closing has deadlines of its own; this is for the day they fail


class Stop:
    """Which signal came, and who wants to hear of an interrupt first."""

    def __init__(self) -> None:
        self.number: int | None = None  # the first one
        self.interrupt: Callable[[], bool] | None = None  # True: it is taken care of
        self.elsewhere: Callable[[], bool] = bool  # whether an interrupt is for another program before the person


def run(body: Callable[[Stop], Awaitable[int]]) -> int:
    """Run `body` in an event loop to its end, or to ours; the exit code."""
    return asyncio.run(_main(body))


async def _main(body: Callable[[Stop], Awaitable[int]]) -> int:
    stop = Stop()
    loop, us = asyncio.get_running_loop(), asyncio.current_task()
    assert us is not None

    def on_signal(number: int) -> None:
        if number == signal.SIGINT and stop.elsewhere():
            return
        first, stop.number = stop.number is None, stop.number or number
        if not (first and number == signal.SIGINT and stop.interrupt is not None and stop.interrupt()):
            us.cancel()

    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, on_signal, number)
    try:
        code = await body(stop)
    except asyncio.CancelledError:
        if stop.number is None:
            raise
        code = 0
    finally:
        # Impatient signals cut short the wait for what is being closed, not the closing; nor does one that comes now.
        end = loop.time() + LAST_WORDS
        while (others := asyncio.all_tasks() - {us}) and (left := end - loop.time()) > 0:
            us.uncancel()
            try:
                await asyncio.wait(others, timeout=left)
            except asyncio.CancelledError:
                continue
    return code if stop.number is None else 128 + stop.number


@asynccontextmanager
async def meanwhile(work: Coroutine[object, object, None]) -> AsyncIterator[asyncio.Task[None]]:
    """`work` runs during the block; what is left of it then is cancelled."""
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
