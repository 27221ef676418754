"""Look after the command of a live shell: does it run, does it wait for input, is its shell back without a word?

a timer → Monitor.look() → the kernel is asked, ever more rarely → load it again, ask for its status, tell that it waits
            └ InputDetector.look() → tty_probe.probe() → a Waiting with its prompt, told once for each wait

The kernel is asked only after a moment of quiet, and less and less often. A wait is still noticed within half a
second. A wait with a timeout (`select`) counts if it has lasted, or if nothing was computed meanwhile. A program that
only looks at the keyboard between two pieces of work does not wait for anybody.
"""

import asyncio
import os
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from tarmac.terminals.execution import Execution
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
HOOK_PATIENCE = 1.0  # a command whose end was told waits so long for a prompt hook
HOOK_LIMIT = 18  # looks, some 30 seconds: what a prompt hook runs that keeps a command from its start is ended then
FREED = 3  # looks more, until the shell must have taken the command
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
            if session.waits():
                if not self._load_again(state, session):
                    return
            elif state.looks >= HOOK_LIMIT:
                session.when_read(partial(self._free, state, session))  # its start mark may be on the way
        elif isinstance(state, EndTold) and not session.in_front():
            if time.monotonic() - state.at > HOOK_PATIENCE:
                self._terminal.tracker.hook_hangs(state, session)
                return
            pause = HOOK_PATIENCE / 4
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

    def _free(self, state: Loading, session: Session) -> None:
        """A prompt hook keeps the command from its start: what it runs is ended; if that is no help, the shell."""
        if self._terminal.tracker.state is not state or not session.alive or session.waits():
            return
        if not state.freed:
            state.freed = state.looks
            state.given.execution.note(session.end_hook())
        elif state.looks >= state.freed + FREED:
            give_up(session)

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


_SHELLS = frozenset(["ash", "bash", "dash", "ksh", "mksh", "rbash", "sh", "zsh"])  # not fish: its -C runs, then asks
_READ_COMMANDS = frozenset(["pdb", "code", "asyncio", "IPython", "ptpython", "bpython", "sqlite3"])  # python -m …
_VERSION = re.compile(r"[\d.]+$")


def runs_a_script(name: str, words: Sequence[str]) -> bool:
    """Whether the process `name`, started with `words`, runs a script or a piece of code, and reads no commands."""
    plain = _VERSION.sub("", name.lstrip("-"))
    if plain in _SHELLS:
        return _shell(words[1:])
    if plain in ("python", "pypy"):
        return _python(words[1:])
    if plain in ("node", "nodejs"):
        return _node(words[1:])
    return False


def _shell(words: Sequence[str]) -> bool:
    rest = iter(words)
    for word in rest:
        if word[:1] not in ("-", "+"):
            return True  # a script, or after -c the code
        if word in ("-", "--"):
            return word == "--" and next(rest, None) is not None
        if word.startswith("--"):
            if word in ("--rcfile", "--init-file"):
                next(rest, None)
            elif word == "--interactive":
                return False
        elif "i" in word or "s" in word:
            return False
        elif "o" in word.lower():
            next(rest, None)
    return False


def _python(words: Sequence[str]) -> bool:
    rest = iter(words)
    for word in rest:
        if not word.startswith("-"):
            return True
        if word.startswith("-m"):
            return (word[2:] or next(rest, "")) not in _READ_COMMANDS
        if word == "-" or (word[1:2] != "-" and "i" in word):
            return False
        if word[1:2] != "-" and "c" in word:
            return True
        if word in ("-W", "-X", "--check-hash-based-pycs"):
            next(rest, None)
    return False


def _node(words: Sequence[str]) -> bool:
    """Its options are many, and some take a word: only what comes first is sure."""
    first = words[0] if words else "-"
    return first in ("-e", "-p", "--eval", "--print") or not (first.startswith("-") or first == "inspect")


if TYPE_CHECKING:
    from tarmac.terminals.execution import Execution
    from tarmac.terminals.shell.session import Session

QUIET = 0.1  # nobody is asked before
FIRST_PAUSE = 0.1
SELDOM = 0.35
AGAIN = 0.02  # a new wait is seen twice: what was printed before it may still be on its way through the kernel
LASTING = 0.1  # of one timed wait
IDLE = 0.3  # of many timed waits in a row, with no work between


@dataclass(frozen=True, slots=True)
class _Sample:
    """A timed wait, as it was when first seen."""

    at: float
    thread: int
    ticks: int  # of processor time its process had used
    sleeps: int  # how often its thread had gone to sleep

    def lasts(self, now: "_Sample") -> bool:
        since = now.at - self.at
        return since >= LASTING if now.sleeps == self.sleeps else since >= IDLE


class InputDetector:
    """What was seen of one terminal's running command."""

    def __init__(self) -> None:
        self._number = 0  # of the command
        self._since: _Sample | None = None
        self._believed: tuple[int, int] | None = None  # the thread of a timed wait that lasted, before what was typed
        self._told: tuple[object, ...] | None = None
        self._glimpsed: tuple[object, ...] | None = None
        self._pause = FIRST_PAUSE

    def now(self, session: "Session", execution: "Execution") -> Waiting | None:
        """What it waits for at this moment, as far as that can be believed."""
        if execution.number != self._number:
            self._number, self._pause = execution.number, FIRST_PAUSE
            self._since = self._believed = self._told = self._glimpsed = None
        if execution.last_input > execution.last_output and time.monotonic() - execution.last_input < QUIET:
            return None  # it may not have woken up yet
        seen = session.probe()
        if seen is None or session.pty.has_unread_input():  # what lies there will wake it
            self._since = None
            return None
        if seen.process.pid == session.pid and (session.at_prompt() or session.pty.has_unread_output()):
            return None  # no question of the command's: the shell is back, and its word is on the way
        if seen.timed and (seen.thread, execution.inputs) != self._believed:
            if not self._lasts(seen):
                return None
            self._believed = seen.thread, execution.inputs
        return replace(seen, prompt=execution.prompt(), scripted=_scripted(seen, session))

    def look(self, session: "Session", execution: "Execution") -> tuple[Waiting | None, float]:
        """A wait that nobody was told of yet, or None; and in how many seconds to look again."""
        if execution.number != self._number:
            self._pause = FIRST_PAUSE
        quiet = time.monotonic() - max(execution.last_output, execution.last_input)
        if quiet < QUIET:
            self._pause = FIRST_PAUSE
            return None, QUIET - quiet + 0.005
        seen = self.now(session, execution)
        if seen is None:
            self._glimpsed = None
            if self._told is not None and self._told[0] is not Wants.KEYS:
                self._told = None  # a line was read, or given up: the next wait is another, with the same words or not
            pause = FIRST_PAUSE if self._since is not None else self._pause
            self._pause = min(self._pause * 1.5, SELDOM)
            return None, pause
        glimpse = _identity(seen, execution)
        if glimpse not in (self._told, self._glimpsed):
            self._glimpsed = glimpse
            return None, AGAIN
        return (seen if self.is_news(seen, execution) else None), SELDOM

    def is_news(self, seen: Waiting, execution: "Execution") -> bool:
        """Whether this is another wait than the one told of before; from now on it is told."""
        told, self._told = self._told, _identity(seen, execution)
        return told != self._told

    def _lasts(self, seen: Waiting) -> bool:
        stat = processes.stat(seen.process.pid)
        if stat is None:
            return False
        sample = _Sample(time.monotonic(), seen.thread, stat.ticks, processes.sleeps(seen.process.pid, seen.thread))
        since = self._since
        if since is None or (since.thread, since.ticks) != (sample.thread, sample.ticks):
            self._since = since = sample
        return since.lasts(sample)


def _scripted(seen: Waiting, session: "Session") -> bool:
    """Whether it runs a script. Our own shell, which is not at its prompt, reads for the command: that is one, too."""
    if seen.process.pid == session.pid and not session.replaced():
        return True
    return runs_a_script(seen.name, processes.command_line(seen.process.pid))


def _identity(seen: Waiting, execution: "Execution") -> tuple[object, ...]:
    """What makes it another wait than the one before. A full-screen program redraws what we take for its prompt."""
    asks = seen.wants in (Wants.LINE, Wants.SECRET)
    return seen.wants, seen.process, execution.inputs, seen.prompt if asks else ""
