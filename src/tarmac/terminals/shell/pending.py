"""An end that is told but not yet certain: the shell was not in front when its end mark came."""

import time

from tarmac.terminals.result import Ending

MOST_HELD = 1 << 20


class Pending:
    """An end mark that came while the shell was not in front, and what came after it."""

    def __init__(self, ending: Ending) -> None:
        self.ending = ending
        self.at = time.monotonic()
        self.held = bytearray()
        self.note = (
            f"the shell told its end (exit code {ending.exit_code}) and is not back at its prompt: a prompt hook runs"
        )

    def hold(self, data: bytes) -> bool:
        """Whether `data` is kept back: a prompt hook prints little."""
        if len(self.held) + len(data) > MOST_HELD:
            return False
        self.held += data
        return True
