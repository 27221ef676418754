"""A thread that runs blocking calls one after another and reports each result on the event loop.

give(work, then)   calls then(result, error) on the event loop
do(work)           returns a future

`asyncio.to_thread` takes half as long again: idle threads of its pool wake each other up, and its futures have locks. A
log is written several times a turn (ADR 55). If the system allows no more threads, the work runs on the event loop.
"""

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import TypeVar

Result = TypeVar("Result")


class WorkerThread:
    """The thread starts with the first call, ends with close(), and starts again with the next call."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._waiting: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def give(self, work: Callable[[], Result], then: Callable[[Result | None, BaseException | None], None]) -> None:
        """Run `work` after everything that was given before it."""
        loop = asyncio.get_running_loop()

        def job() -> None:
            result, failed = None, None
            try:
                result = work()
            except BaseException as error:  # whatever it is, it is for the one who waits
                failed = error
            try:
                loop.call_soon_threadsafe(then, result, failed)
            except RuntimeError:  # the loop is closed: nobody waits
                pass

        if self._thread is None:
            thread = threading.Thread(target=_work, args=(self._waiting,), name=self._name, daemon=True)
            try:
                thread.start()
            except RuntimeError:  # the system allows no more threads: do it here, and try again with the next
                job()
                return
            self._thread = thread
        self._waiting.put(job)

    async def do(self, work: Callable[[], Result]) -> Result:
        """Return the result of `work`. Cancelling the caller does not stop the work."""
        done: asyncio.Future[Result] = asyncio.get_running_loop().create_future()

        def then(result: Result | None, error: BaseException | None) -> None:
            if done.done():
                return
            if error is not None:
                done.set_exception(error)
            else:
                done.set_result(result)  # type: ignore[arg-type]  # None only where that is the result

        self.give(work, then)
        return await done

    def close(self) -> None:
        """End the thread after all work it was given."""
        if self._thread is not None:
            self._waiting.put(None)
            self._thread, self._waiting = None, SimpleQueue()


def _work(waiting: "SimpleQueue[Callable[[], None] | None]") -> None:
    while (job := waiting.get()) is not None:
        job()
