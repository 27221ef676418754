"""A prompt_toolkit application in the lower part of the screen, below the terminal's own scrollback.

print_above(text)   erase, print, draw again: one write, so nothing flickers
lend()              another program has the terminal during the block

prompt_toolkit's own way to print above (`in_terminal`) leaves the raw mode for a moment. An Enter that is pressed in
that moment arrives as a newline, and the terminal takes Ctrl-D for itself. So we print in raw mode. Private names of
prompt_toolkit are used in this module only.
"""

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TextIO

from prompt_toolkit.application import Application, in_terminal
from prompt_toolkit.application.current import set_app
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys
from prompt_toolkit.output import Output
from prompt_toolkit.output.vt100 import Vt100_Output


class FrameOutput(Vt100_Output):
    """A terminal to which a whole frame is written at once."""

    _in_frame = False

    @contextmanager
    def frame(self) -> Iterator[None]:
        """Write all of the block at its end."""
        self._in_frame = True
        try:
            yield
        finally:
            self._in_frame = False
            self.flush()

    def flush(self) -> None:
        if not self._in_frame:
            super().flush()


def frame_output(stdout: TextIO) -> Output:
    """The terminal behind a stream."""
    return FrameOutput.from_pty(stdout, term=os.environ.get("TERM"))


class InlineApplication(Application[None]):
    """An application that leaves the screen alone while another program has it."""

    lent = False
    _stale_reports = 0  # answers to where the cursor was, before something was printed

    @property
    def busy(self) -> bool:
        """Whether the terminal is somebody else's for now: a program's, or a shell's after Ctrl-Z."""
        return self.lent or self._running_in_terminal

    def print_above(self, text: str) -> None:
        """Print whole lines above it. Not while it is `busy`."""
        if not self.is_running:
            self._write(text)
        elif isinstance(self.output, FrameOutput):
            with self.output.frame():
                self._print_and_draw(text)
        else:
            self._print_and_draw(text)

    def _print_and_draw(self, text: str) -> None:
        self.renderer.erase()
        self._write(text)
        self._stale_reports = len(self.renderer._waiting_for_cpr_futures)
        self._request_absolute_cursor_position()
        self._redraw()

    def _write(self, text: str) -> None:
        self.output.write_raw(text.replace("\n", "\r\n"))
        self.output.flush()

    @asynccontextmanager
    async def lend(self) -> AsyncIterator[None]:
        """Let another program have the terminal during the block."""
        self.lent = True
        try:
            with set_app(self):
                async with in_terminal():
                    yield
        finally:
            self.lent = False

    def type(self, keys: list[KeyPress] | bytes) -> None:
        """Take these keys as if they were pressed now."""
        if isinstance(keys, bytes):
            parsed: list[KeyPress] = []
            parser = Vt100Parser(parsed.append)
            parser.feed_and_flush(keys.decode("utf-8", "replace"))
            keys = parsed
        if keys:
            self.key_processor.feed_multiple(keys)
            self.key_processor.process_keys()

    def take_cursor_report(self, press: KeyPress) -> bool:
        """Whether a key is the terminal's answer to where the cursor is. The renderer is told, unless it is stale.

        A stale one promises too much room below, and the renderer would scroll the screen to fill it.
        """
        if press.key != Keys.CPRResponse:
            return False
        if self._stale_reports and self.renderer._waiting_for_cpr_futures:
            self._stale_reports -= 1
            self.renderer._waiting_for_cpr_futures.popleft().set_result(None)
            return True
        self.renderer.report_absolute_cursor_row(int(press.data[2:-1].partition(";")[0]))
        return True

    def _on_resize(self) -> None:
        """Draw it in the new size. prompt_toolkit would erase another program's screen, too."""
        if not self.busy:
            super()._on_resize()
