"""The pipe that commands print into: read in the event loop when there is something, held still on demand."""

import asyncio
import os
from collections.abc import Callable

READ_SIZE = 256 << 10
READS_A_WAKE_UP = 8
PIPE_SIZE = 1 << 20
LONGEST_DRAIN = 8 << 20
F_SETPIPE_SZ = 1031


class Outlet:
    """`theirs` is the end to print into; `on_data` gets what was printed, once `resume` was called."""

    def __init__(self, on_data: Callable[[bytes], None]) -> None:
        self._ours, self.theirs = os.pipe2(os.O_CLOEXEC) if hasattr(os, "pipe2") else os.pipe()
        self._on_data = on_data
        self._reading = False
        self._widen()
        os.set_blocking(self._ours, False)

    def _widen(self) -> None:
        """A bigger pipe means fewer wake-ups; its size may be capped for other users than root."""
        import fcntl

        try:
            fcntl.fcntl(self._ours, F_SETPIPE_SZ, PIPE_SIZE)
        except OSError:
            pass

    def resume(self) -> None:
        if self._ours >= 0 and not self._reading:
            asyncio.get_running_loop().add_reader(self._ours, self._readable)
            self._reading = True

    def pause(self) -> None:
        if self._reading:
            asyncio.get_running_loop().remove_reader(self._ours)
            self._reading = False

    def _readable(self) -> None:
        for _ in range(READS_A_WAKE_UP):
            try:
                data = os.read(self._ours, READ_SIZE)
            except (BlockingIOError, InterruptedError):
                return
            if not data:
                self.pause()
                return
            self._on_data(data)
            if not self._reading:  # paused by it
                return

    def close_theirs(self) -> None:
        """We print nothing into it ourselves, so that its end can be seen."""
        if self.theirs >= 0:
            os.close(self.theirs)
            self.theirs = -1

    def drain(self) -> None:
        """What is in the pipe now, but wait for nobody who still holds it."""
        left = LONGEST_DRAIN
        while left > 0 and self._ours >= 0:
            try:
                data = os.read(self._ours, READ_SIZE)
            except OSError:
                return
            if not data:
                return
            left -= len(data)
            self._on_data(data)

    def close(self) -> None:
        self.close_theirs()
        self.pause()
        if self._ours >= 0:
            os.close(self._ours)
            self._ours = -1
