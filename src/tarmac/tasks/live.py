"""What a call shows while it runs: signals for who looks on, and now and then how far its output is on the disk."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Final

from tarmac.errors import StateUnavailable, TerminalNotFound
from tarmac.events import TerminalId
from tarmac.tasks.desk import Desk, now
from tarmac.tasks.events import CallId, CommandOutput
from tarmac.tasks.signals import OutputStreamed, ProgressMade
from tarmac.tools.tool import Live as Shown
from tarmac.tools.tool import Output

OFTEN: Final = 1.0  # seconds between two facts about one command's output
TAIL: Final = 16_000  # bytes of it that the model is told when it was cut off


class Live:
    """One call's."""

    def __init__(self, desk: Desk, call: CallId) -> None:
        self._desk = desk
        self._call = call
        self._output: CommandOutput | None = None
        self._told = 0.0

    def started(self, terminal: TerminalId, spool: Path) -> None:
        """A command prints into this spool."""
        self._tell(CommandOutput(at=now(), call=self._call, terminal=terminal, spool=spool, offset=0))

    async def recorded(self) -> None:
        """Return when all that was told is durable."""
        try:
            await self._desk.log.commit()
        except StateUnavailable:  # the call learns of it when it records its result
            pass

    def show(self, shown: Shown) -> None:
        """The next piece of it."""
        if not isinstance(shown, Output):
            self._desk.audience.show(ProgressMade(call=self._call, text=shown.text))
            return
        terminal = shown.terminal or TerminalId("")
        self._desk.audience.show(OutputStreamed(call=self._call, terminal=terminal, data=shown.data))
        if shown.terminal is None and (found := self._desk.under_way.get(self._call)):
            self._desk.under_way[self._call] = replace(found, tail=(found.tail + shown.data)[-TAIL:])
        if self._output and time.monotonic() - self._told > OFTEN:
            self._flush()
            self._tell(replace(self._output, at=now(), offset=shown.end))

    def _flush(self) -> None:
        """What the fact speaks of is on the disk before it."""
        assert self._output
        try:
            current = self._desk.registry.get(self._output.terminal).current
        except TerminalNotFound:
            return
        if current is not None:
            current.spool.flush()

    def _tell(self, output: CommandOutput) -> None:
        self._output, self._told = output, time.monotonic()
        if found := self._desk.under_way.get(self._call):
            self._desk.under_way[self._call] = replace(found, output=output)
        self._desk.add(output)
