"""Who may type: a person or Tarmac. From a person's first byte until the next prompt the keyboard is theirs.

ours ─type()→ coming (a prompt is on its way) → handing (line editor is turned on) → drawing (their prompt)
     ←── taking (line editor is turned off) ←── their line is done ←── theirs (bytes go through) ←─┘

Bytes wait in the states coming, handing, drawing and taking.

The shell would run a half-typed line and our own line as one. So we type nothing while the keyboard is theirs. While a
command runs, their keys go to that command.
"""

import asyncio
import signal
from typing import Literal

from tarmac.terminals.shell.session import Session, Turn

CTRL_C_AGAIN = 0.15
TAKE_BACK_AGAIN = 0.2
LATE_PROMPT = 0.5
LINE_ENDS = b"\r\n\x03\x04\x15"  # after one of these bytes nothing half-typed is left


class Keyboard:
    """The state of who types in one live shell."""

    def __init__(self) -> None:
        self._state: Literal["ours", "coming", "handing", "drawing", "theirs", "taking"] = "ours"
        self._waiting = bytearray()
        self._prompts = 0
        self._beside = False  # they type to a command of ours
        self._half_typed = False  # and have not ended their line

    @property
    def held(self) -> bool:
        return self._state != "ours" or self._beside

    @property
    def switching(self) -> bool:
        """The line editor is being turned on or off: what the terminal shows meanwhile is our own affair."""
        return self._state in ("handing", "taking")

    def type(self, session: Session, keys: bytes, *, running: bool) -> None:
        if self._state == "theirs":
            self._press(session, keys)
        elif self._state in ("coming", "handing", "drawing", "taking"):
            self._waiting += keys
        elif running or not session.prompted or self._half_typed:
            # For the program that runs: whole lines it leaves unread are dropped at its end, half a line stays theirs.
            self._beside = True
            self._half_typed = session.pty.canonical() and keys[-1:] not in LINE_ENDS
            self._press(session, keys)
        else:
            self._waiting += keys
            self._state = "coming"
            if session.prompt_to_come:  # taken for the one after our line, it would have us hand over twice
                asyncio.get_running_loop().call_later(LATE_PROMPT, self._hand_over, session)
            else:
                self._hand_over(session)

    def _hand_over(self, session: Session) -> None:
        if self._state == "coming" and session.alive:
            self._state = "handing"
            session.hand_over()

    def handed_over(self) -> bool:
        """The line editor draws their prompt from now on; whether it was turned on for that."""
        handed = self._state == "handing"
        if handed:
            self._state = "drawing"
        return handed

    def prompt(self, session: Session, turn: Turn) -> None:
        """The shell stands at its prompt, and it is so-and-so's turn."""
        self._prompts += 1
        if turn == "theirs":
            self._state = "theirs"
            keys, self._waiting = bytes(self._waiting), bytearray()
            self._press(session, keys)
        elif turn == "was theirs":
            if self._state != "taking":
                self._state = "taking"
                session.take_back()
                asyncio.get_running_loop().call_later(TAKE_BACK_AGAIN, self._take_back_plainly, session)
        else:
            self._state = "ours"
            self._beside = self._half_typed
            if self._waiting:
                keys, self._waiting = bytes(self._waiting), bytearray()
                self.type(session, keys, running=False)

    def _press(self, session: Session, keys: bytes) -> None:
        """Send keys. Ctrl-C goes as a signal, and takes what was typed before it along."""
        while b"\x03" in keys and session.pty.keys_are_signals():
            _, _, keys = keys.partition(b"\x03")
            session.pty.forget_input()
            session.pty.signal(signal.SIGINT)
            if self._state == "theirs":
                asyncio.get_running_loop().call_later(CTRL_C_AGAIN, self._once_more, session, self._prompts)
        if keys:
            session.pty.write(keys)

    def _take_back_plainly(self, session: Session) -> None:
        """The private keys did nothing, and lines are read as they are: the person turned the line editor off."""
        if self._state == "taking" and session.alive and session.in_front() and session.pty.canonical():
            session.take_back_plainly()

    def _once_more(self, session: Session, prompts: int) -> None:
        """A line editor that is just starting misses a Ctrl-C; a person would press again.

        And fish says nothing of one on an empty line: the terminal is taken back, if the line is empty indeed.
        """
        if self._state == "theirs" and self._prompts == prompts and session.alive and session.in_front():
            if session.shell.pipe:
                session.take_back()
            else:
                session.pty.signal(signal.SIGINT)
