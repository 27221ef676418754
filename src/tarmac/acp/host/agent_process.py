"""An agent's process: in a session of its own, spoken to over pipes, and nothing of it outlives it.

Its environment is ours without what is Tarmac's own; keys of models stay, as it is the agent that uses them. What it
prints on standard error is kept, its last part, for the day it fails.
"""

import asyncio
import os
import secrets
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tarmac.acp.rpc_peer import FdReader, FdWriter
from tarmac.terminals.environment import COOKIE
from tarmac.terminals.exec import Outlet
from tarmac.terminals.process import birthmark, prctl, processes, signals
from tarmac.terminals.process.child import Child, used_up

LEAVE: Final = 1.0  # seconds to go by itself, once its input has ended
GRACE: Final = 2.0  # seconds between SIGTERM and SIGKILL
MOST_KEPT: Final = 64 << 10  # bytes of standard error


class AgentProcess:
    """A running agent. Start it in an event loop; `aclose` ends it and all that it started."""

    def __init__(self, argv: Sequence[str], *, cwd: Path, environ: Mapping[str, str]) -> None:
        self._cookie = f"host.{secrets.token_hex(6)}"
        env = {name: value for name, value in environ.items() if not name.startswith("TARMAC_")}
        env |= {COOKIE: self._cookie, "PWD": str(cwd)}  # some believe PWD more than the kernel
        self._errors = bytearray()
        self._exited = asyncio.Event()
        self.status: int | None = None  # the exit code, or minus the signal
        fds: list[int] = []
        outlet: Outlet | None = None
        try:
            try:
                outlet = Outlet(self._complained)
                theirs_in, ours_out = os.pipe()
                fds += [theirs_in, ours_out]
                ours_in, theirs_out = os.pipe()
                fds += [ours_in, theirs_out]
            except OSError as error:
                raise used_up(error, "cannot open a pipe") from error
            self._child = Child(
                argv,
                cwd=cwd,
                env=env,
                stdin=theirs_in,
                stdout=theirs_out,
                stderr=outlet.theirs,
                prepare=prctl.die_with_parent,
            )
        except BaseException:
            if outlet is not None:
                outlet.close()
            for fd in fds:
                os.close(fd)
            raise
        self._outlet = outlet
        outlet.close_theirs()
        os.close(theirs_in)
        os.close(theirs_out)
        self._fds = [ours_in, ours_out]
        for fd in self._fds:
            os.set_blocking(fd, False)
        self.reader, self.writer = FdReader(ours_in), FdWriter(ours_out)
        outlet.resume()
        self._child.watch(self._ended)

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def last_words(self) -> str:
        """The end of what it printed on standard error."""
        lines = bytes(self._errors).decode("utf-8", "replace").strip().splitlines()
        return "\n".join(lines[-6:])

    def describe_end(self) -> str:
        """How it ended, in words; empty while it runs."""
        if self.status is None:
            return ""
        if self.status < 0:
            return f"it was ended by {signal.Signals(-self.status).name}"
        return f"it ended with exit code {self.status}"

    async def exited(self, seconds: float) -> bool:
        """Wait for its end, up to a time."""
        try:
            async with asyncio.timeout(seconds):
                await self._exited.wait()
        except TimeoutError:
            return False
        return True

    def _complained(self, data: bytes) -> None:
        self._errors += data
        del self._errors[:-MOST_KEPT]

    def _ended(self, status: int) -> None:
        self.status = status
        self._outlet.drain()
        self._exited.set()

    def _all(self) -> set[processes.Process]:
        """The agent, what is below it, and what it left behind."""
        own = processes.look(self._child.pid) if self._child.status is None else None
        return processes.descendants(self._child.pid) | ({own} if own else set()) | birthmark.orphans(self._cookie)

    async def aclose(self) -> None:
        """Its input ends, which is the polite way; then SIGTERM, then SIGKILL, for it and all that it started."""
        for fd in reversed(self._fds):
            loop = asyncio.get_running_loop()
            loop.remove_reader(fd)
            loop.remove_writer(fd)
            os.close(fd)
        self._fds = []
        try:
            if self._child.status is None:
                await self.exited(LEAVE)
        finally:
            await asyncio.shield(self._end())

    async def _end(self) -> None:
        await signals.end(self._all, grace=GRACE)
        if not await self.exited(1.0):
            self._child.forget()
        self._outlet.close()
