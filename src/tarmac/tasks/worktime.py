"""How long a run has worked: by the clock on the wall, without what it stood still for a person (S16).

A person who is asked something may drink a coffee first: a limit on time is for the task, not for them.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class WorkTime:
    """The clock of one run."""

    def __init__(self) -> None:
        self._worked = 0.0  # up to `_since`
        self._since: float | None = time.monotonic()  # None: it stands
        self._stops = 0
        self._limit: tuple[float, Callable[[], None]] | None = None
        self._alarm: asyncio.TimerHandle | None = None

    @property
    def seconds(self) -> float:
        """Of work, so far."""
        return self._worked + (0.0 if self._since is None else time.monotonic() - self._since)

    def ring(self, limit: float, over: Callable[[], None]) -> None:
        """Call `over` after so many seconds of work, unless the clock is `done` before."""
        self._limit = (limit, over)
        self._set_alarm()

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """A person is waited for; several may be at once."""
        self._stops += 1
        if self._stops == 1:
            self._worked, self._since = self.seconds, None
            self._set_alarm()
        try:
            yield
        finally:
            self._stops -= 1
            if not self._stops:
                self._since = time.monotonic()
                self._set_alarm()

    def done(self) -> None:
        """The run is over: nothing rings any more."""
        self._limit = None
        self._set_alarm()

    def _set_alarm(self) -> None:
        if self._alarm:
            self._alarm.cancel()
            self._alarm = None
        if self._limit and self._since is not None:
            limit, over = self._limit
            self._alarm = asyncio.get_running_loop().call_later(limit - self.seconds, over)
