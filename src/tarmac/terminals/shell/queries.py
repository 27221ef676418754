"""Questions of programs to their terminal (`ESC [ 6 n`): answered once the program listens, or never."""

import asyncio

from tarmac.terminals.process.pty import Pty
from tarmac.vt.marks import Query
from tarmac.vt.replies import answer

PATIENCE = 1.0  # how long a question may wait for its program to listen


class Queries:
    """Those of the programs on one PTY."""

    def __init__(self, pty: Pty) -> None:
        self._pty = pty
        self.open: list[tuple[float, bytes]] = []

    def ask(self, query: Query) -> None:
        reply = answer(query, rows=self._pty.rows, columns=self._pty.columns)
        if reply:
            self.open.append((asyncio.get_running_loop().time() + PATIENCE, reply))

    def forget(self) -> None:
        """The command has ended: or the next one gets the answers."""
        self.open.clear()

    def answer(self) -> None:
        """Answer once the program listens for keys. In line mode the answer would wait and be typed into the shell."""
        if not self.open or self._pty.closed:
            return
        loop = asyncio.get_running_loop()
        if self._pty.canonical():
            self.open = [each for each in self.open if each[0] > loop.time()]
            if self.open:
                loop.call_later(0.01, self.answer)
            return
        replies = b"".join(reply for _, reply in self.open)
        self.open.clear()
        self._pty.write(replies)
