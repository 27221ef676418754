"""What a signal to Tarmac does: everything it started ends first, then Tarmac, with 128 + the signal.

SIGINT may be softer: while a command runs it is that command that is interrupted (`Stop.interrupt`). A second one
ends us like the others. A signal that was ignored when we started (nohup, a background job) stays ignored.
"""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from threading import Lock
from typing import Generic, ParamSpec, TypeVar

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
LAST_WORDS = 10.0  # closing has deadlines of its own; this is for the day they fail

P = ParamSpec("P")
T = TypeVar("T")


class Stop:
    """Which signal came, and who wants to hear of an interrupt first."""

    def __init__(self) -> None:
        self.number: int | None = None  # the first one
        self.interrupt: Callable[[], bool] | None = None  # True: it is taken care of
        self.elsewhere: Callable[[], bool] = bool  # whether an interrupt is for another program before the person


def run(body: Callable[[Stop], Awaitable[int]]) -> int:
    """Run `body` in an event loop to its end, or to ours; the exit code."""
    runner = asyncio.Runner()
    try:
        return runner.run(_main(body))
    finally:
        try:
            runner.close()
        except RuntimeError:  # no thread could be started to wait for the others; the interpreter waits for them
            pass


class _Executor(ThreadPoolExecutor):
    """Threads for blocking work. Where the system allows no more of them, the event loop does the work itself.

    Nothing that is given to it waits for the event loop, so that is slower and never a deadlock.
    """

    _closed = False

    def submit(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> "Future[T]":
        job = _Job(partial(work, *args, **kwargs))
        try:
            super().submit(job.run)
        except RuntimeError:
            if self._closed:
                raise
            job.run()
        return job.future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._closed = True
        super().shutdown(wait, cancel_futures=cancel_futures)


class _Job(Generic[T]):
    """Work that is done once: a thread may still find it in the queue after the event loop has done it."""

    def __init__(self, work: Callable[[], T]) -> None:
        self.future: Future[T] = Future()
        self._work = work
        self._taken = Lock()

    def run(self) -> None:
        if not self._taken.acquire(blocking=False) or not self.future.set_running_or_notify_cancel():
            return
        try:
            result = self._work()
        except BaseException as error:  # whatever it is, it is for the caller
            self.future.set_exception(error)
        else:
            self.future.set_result(result)


async def _main(body: Callable[[Stop], Awaitable[int]]) -> int:
    stop = Stop()
    loop, us = asyncio.get_running_loop(), asyncio.current_task()
    assert us is not None
    loop.set_default_executor(_Executor())
    if sys.version_info < (3, 12) and hasattr(os, "pidfd_open"):  # the watcher of Python 3.11 starts a thread a process
        watcher = asyncio.PidfdChildWatcher()
        watcher.attach_loop(loop)
        asyncio.set_child_watcher(watcher)

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
