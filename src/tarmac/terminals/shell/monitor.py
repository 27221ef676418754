"""Look after the command of a live shell: does it run, does it wait for input, is its shell back without a word?

a timer → look() → the kernel is asked, ever more rarely → load it again, ask for its status, tell that it waits
"""

import asyncio
import os
import time
from typing import TYPE_CHECKING

from tarmac.terminals.execution import Execution
from tarmac.terminals.input.input_detection import InputDetector
from tarmac.terminals.process import processes, signals
from tarmac.terminals.process.tty_probe import Waiting, Wants
from tarmac.terminals.shell.session import Session
from tarmac.terminals.shell.state import Asked, EndTold, Loading, Running

if TYPE_CHECKING:
    from tarmac.terminals.shell.pty_terminal import PtyTerminal

LOAD_PATIENCE = 0.2  # the start mark comes within this, or we look why not
SOON = 0.02
LOOK_EVERY = (0.1, 0.2, 0.5, 1.0, 2.0)
MOST_LOADS = 3  # a shell that does not take a command after so many tries takes none
SPEECHLESS = 0.5  # a shell that is asked and does not answer in this time never will


class Monitor:
    """One terminal's timer, and what it looks for."""

    def __init__(self, terminal: "PtyTerminal") -> None:
        self._terminal = terminal
        self._detector = InputDetector()
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, seconds: float = LOAD_PATIENCE) -> None:
        """Look after the command in `seconds`. The timer is left to run out, not cancelled: it is cheaper so."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(seconds, self.look)

    def look_soon(self) -> None:
        """Something is odd: look at once, even if the command has just been given."""
        self.stop()
        self._timer = asyncio.get_running_loop().call_later(SOON, self.look, True)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def look(self, young_too: bool = False) -> None:
        """The command has run for a while: is it alive and in step?"""
        self._timer = None
        state, session = self._terminal.tracker.state, self._terminal.session
        if not isinstance(state, Loading | Running | Asked | EndTold) or session is None or not session.alive:
            return  # a person looks after their own: nothing of ours may be typed there
        execution = state.given.execution
        if time.monotonic() - execution.started_at < LOAD_PATIENCE / 2 and not young_too:
            self.watch(LOAD_PATIENCE)  # the timer of a command before this one
            return
        signals.continue_if_stopped(session.pid)  # a shell that stopped itself can't be typed at
        pause = LOOK_EVERY[-1]
        if isinstance(state, Loading):
            if session.waits() and not self._load_again(state, session):
                return
        elif session.at_prompt():
            # It is back, and nobody told: the command took all our hooks away at once. Or we have yet to read it.
            if self.waiting(execution) is None:
                self.ask(execution, session)
        else:
            seen, pause = self._detector.look(session, execution)
            if seen is not None:
                self._tell(seen, execution, session)
        state.looks += 1
        self.watch(min(pause, LOOK_EVERY[min(state.looks, len(LOOK_EVERY) - 1)]))

    def _load_again(self, state: Loading, session: Session) -> bool:
        """The shell reads the terminal and the command never began. False: that is all for now.

        Our line was eaten, or our functions are gone. Or the machine is busy, and our line is on its way: the command
        would read what we type again. So it is looked at twice.
        """
        if (asleep := processes.sleeps(session.pid)) != state.asleep:
            state.asleep = asleep
            self.watch(LOAD_PATIENCE / 2)
            return False
        state.asleep = -1
        if state.looks >= MOST_LOADS:
            give_up(session)
            return False
        session.load_again()
        return True

    def ask(self, execution: Execution, session: Session) -> None:
        """The shell is back at its prompt, and no mark told the end: read everything it printed, then ask it."""

        def ask_if_still_unknown() -> None:
            state = self._terminal.tracker.state
            if not isinstance(state, Running | Asked | EndTold) or state.given.execution is not execution:
                return
            if self._terminal.session is not session or not session.waits():
                return
            if isinstance(state, EndTold):  # the shell said so, and is back
                self._terminal.tracker.confirm(state)
                return
            if isinstance(state, Running):
                self._terminal.tracker.state = Asked(state.given, looks=state.looks)
            session.ask(execution.number)

        session.when_read(ask_if_still_unknown)

    def waiting(self, execution: Execution) -> Waiting | None:
        """What the command waits for now, if anything."""
        session = self._terminal.session
        if session is None or not session.alive or self._terminal.current is not execution:
            return None
        seen = self._detector.now(session, execution) or self._speechless(session, execution)
        if seen is not None and self._detector.is_news(seen, execution):
            self._tell(seen, execution, session)
        return seen

    def _speechless(self, session: Session, execution: Execution) -> Waiting | None:
        """The shell stands at its prompt and, even when asked, does not say how the command ended: nobody knows."""
        state = self._terminal.tracker.state
        if not isinstance(state, Asked) or time.monotonic() - state.at < SPEECHLESS or not session.at_prompt():
            return None
        shell = processes.look(session.pid)
        if shell is None:
            return None
        execution.note("the shell is back at its prompt, and does not say how the command ended")
        return Waiting(Wants.LINE, shell, session.shell.name)

    def _tell(self, seen: Waiting, execution: Execution, session: Session) -> None:
        if seen.is_shell and (seen.process.pid != session.pid or session.replaced()):
            execution.note(f"a nested shell ({seen.name}) waits at its prompt: answer it, or send it `exit`")
        execution.asks()
        self._terminal.tell_waiting(seen, execution)


def give_up(session: Session) -> None:
    """The shell takes no command any more: end it."""
    os.kill(session.pid, 9)
