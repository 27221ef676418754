"""A waiting line: callers are served in the order they came, as soon as something can be given to them (T12).

turn() → attempt(wish) gives at once, or the caller waits
serve() → whenever something changed: everybody in the line is tried again, the first first

Nobody polls. One who can't be served does not hold up another whom something else suits: what he could not use is all
that those behind him get. A caller that is cancelled after it was served gives back what it got.
"""

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

Asked = TypeVar("Asked")
Given = TypeVar("Given")


class Line(Generic[Asked, Given]):
    """See the top of this file."""

    def __init__(self, attempt: Callable[[Asked], Given | None], give_back: Callable[[Given], None]) -> None:
        self._attempt = attempt
        self._give_back = give_back
        self._waiting: list[tuple[Asked, asyncio.Future[Given]]] = []

    def __len__(self) -> int:
        return len(self._waiting)

    async def turn(
        self, wish: Asked, *, seconds: float, too_late: Callable[[], Exception], first: bool = False
    ) -> Given:
        """What is given for `wish`, after `seconds` at the latest; `first` goes before all who wait."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Given] = loop.create_future()
        self._waiting.insert(0 if first else len(self._waiting), (wish, future))
        self.serve()
        clock = None if future.done() else loop.call_later(seconds, self._give_up, wish, future, too_late)
        try:
            return await future
        except asyncio.CancelledError:
            self._leave(future)
            if not future.cancelled() and future.exception() is None:
                self._give_back(future.result())
            raise
        finally:
            if clock is not None:
                clock.cancel()

    def serve(self) -> None:
        """Give what can be given, in order."""
        for wish, future in self._waiting[:]:
            if future.done():  # cancelled: its caller takes it out of the line when it runs
                continue
            try:
                given = self._attempt(wish)
            except Exception as error:
                self._leave(future)
                future.set_exception(error)
                continue
            if given is not None:
                self._leave(future)
                future.set_result(given)

    def send_away(self, error: Callable[[], Exception]) -> None:
        """Nobody will be served any more."""
        for _, future in self._waiting:
            if not future.done():
                future.set_exception(error())
        self._waiting.clear()

    def _give_up(self, wish: Asked, future: "asyncio.Future[Given]", too_late: Callable[[], Exception]) -> None:
        if not future.done():
            self._leave(future)
            future.set_exception(too_late())

    def _leave(self, future: "asyncio.Future[Given]") -> None:
        self._waiting = [each for each in self._waiting if each[1] is not future]
