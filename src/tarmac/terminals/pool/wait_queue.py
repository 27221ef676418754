"""A queue of callers at a limit. They are served in order, as soon as there is something for them.

get(request) → what `attempt(request)` returns, at once or later
serve() → call it whenever something changed: every caller is tried again, the first one first

A caller that can't be served does not block those behind it. They get only what it could not use. A caller that is
cancelled after it was served gives back what it got.
"""

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

Wanted = TypeVar("Wanted")
Got = TypeVar("Got")


class WaitQueue(Generic[Wanted, Got]):
    """See the top of this file."""

    def __init__(self, attempt: Callable[[Wanted], Got | None], give_back: Callable[[Got], None]) -> None:
        self._attempt = attempt
        self._give_back = give_back
        self._waiting: list[tuple[Wanted, asyncio.Future[Got]]] = []

    def __len__(self) -> int:
        return len(self._waiting)

    async def get(self, wanted: Wanted, *, seconds: float, late: Callable[[], Exception], first: bool = False) -> Got:
        """Wait for `wanted`, or raise `late()` after `seconds`. With `first` it goes before all others."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Got] = loop.create_future()
        self._waiting.insert(0 if first else len(self._waiting), (wanted, future))
        self.serve()
        timer = None if future.done() else loop.call_later(seconds, self._time_out, future, late)
        try:
            return await future
        except asyncio.CancelledError:
            self._remove(future)
            if not future.cancelled() and future.exception() is None:
                self._give_back(future.result())
            raise
        finally:
            if timer is not None:
                timer.cancel()

    def serve(self) -> None:
        """Try every caller, in order."""
        for wanted, future in self._waiting[:]:
            if future.done():  # cancelled: its caller removes it when it runs
                continue
            try:
                got = self._attempt(wanted)
            except Exception as error:
                self._remove(future)
                future.set_exception(error)
                continue
            if got is not None:
                self._remove(future)
                future.set_result(got)

    def close(self, error: Callable[[], Exception]) -> None:
        """Raise `error()` in every caller that waits."""
        for _, future in self._waiting:
            if not future.done():
                future.set_exception(error())
        self._waiting.clear()

    def _time_out(self, future: "asyncio.Future[Got]", late: Callable[[], Exception]) -> None:
        if not future.done():
            self._remove(future)
            future.set_exception(late())

    def _remove(self, future: "asyncio.Future[Got]") -> None:
        self._waiting = [each for each in self._waiting if each[1] is not future]
