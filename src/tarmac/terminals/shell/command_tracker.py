"""Follow the command of a live shell. Each fact from its session is a transition of `state`.

Evidence for an end, in this order: the end mark, the prompt's mark with the same number, waitpid, asked. (An interrupt
discards the rest of the line and our end mark with it. Then the prompt's mark is the end.) Without any of them the
command has not ended.
"""

import asyncio
import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from tarmac.errors import TarmacError
from tarmac.terminals import events
from tarmac.terminals.execution import Execution
from tarmac.terminals.process import processes
from tarmac.terminals.result import Ending, Evidence, Reason
from tarmac.terminals.shell.keyboard import Keyboard
from tarmac.terminals.shell.monitor import HOOK_PATIENCE, give_up
from tarmac.terminals.shell.session import Session, Turn
from tarmac.terminals.shell.shell_process import kills_in
from tarmac.terminals.shell.state import (
    MOST_HELD,
    Asked,
    Begun,
    ByPerson,
    EndTold,
    Given,
    Idle,
    Loading,
    Restarting,
    Running,
    State,
)
from tarmac.vt.cells import cursor_after
from tarmac.vt.marks import Mark, add_hint

INTERRUPTED = 130
KILLED = 137
STOPS = {147, 148, 149, 150}  # 128 + SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU


def was_killed_for_memory(execution: Execution, ending: Ending, before: bytes, now: Callable[[], bytes]) -> bool:
    """Whether the kernel killed it for lack of memory: it got a SIGKILL, not ours, and its cgroup counts one more."""
    if execution.cause is not None or KILLED not in (ending.exit_code, *ending.pipestatus):
        return False
    return bool(before) and kills_in(now()) > kills_in(before)


def _has_stopped(session: Session, execution: Execution, status: int, baseline: set[processes.Process]) -> bool:
    """Whether the command ended because what it started was stopped, according to its status or the kernel.

    `baseline` is what ran in the background before it. A stopped child of a command with `&` in it may be a background
    job, which says nothing about the command.
    """
    if status in STOPS:
        return any(processes.state(each.pid) == "T" for each in processes.descendants(session.pid))
    if not session.shell.hides_stops or "&" in execution.command.replace("&&", "") or not session.has_children():
        return False
    return any(_is_stopped_job(each.pid) for each in processes.descendants(session.pid) - baseline)


def _is_stopped_job(pid: int) -> bool:
    """Whether it is stopped and leads its group. What a script left behind in the background does not."""
    found = processes.stat(pid)
    return found is not None and found.state == "T" and found.group == pid


if TYPE_CHECKING:
    from tarmac.terminals.shell.pty_terminal import PtyTerminal


class CommandTracker:
    """The part of a `PtyTerminal` that listens to its session, and holds the state of its command."""

    def __init__(self, terminal: "PtyTerminal") -> None:
        self._terminal = terminal
        self.state: State = Idle()
        self.internal = 0  # the number of our last internal command: its prompt is not reported
        self.withdrawn = 0  # the number of the last command that was taken back before it began
        self._prompt_text: bytearray | None = None  # what the shell shows after an interrupt, before it tells the end
        self._prompt_at: int | None = None  # where on the tape our prompt begins, if nothing else can print after it
        self._compacting: set[asyncio.Task[None]] = set()

    def loading(self, given: Given) -> None:
        """The command is given to the shell."""
        self.state = Loading(given)
        if not given.execution.internal:
            self._prompt_at = None

    async def compacted(self) -> None:
        """Wait until no output is being dropped."""
        for task in list(self._compacting):
            await task

    # What the session reports: the transitions of `state`

    def on_output(self, data: bytes) -> None:
        match self.state:
            case Idle():
                if not self._terminal.keyboard.switching:
                    self._terminal._wrote(data)  # prompts, and jobs that print while nobody runs anything
            case Loading() | Restarting():
                pass  # the echo of our line
            case ByPerson(execution):
                self._feed(execution, self._masked(execution, data))
            case EndTold(given) as told:
                data = self._masked(given.execution, data)
                if not told.hold(data):
                    self._feed(given.execution, data)
            case Running(given) | Asked(given):
                data = self._masked(given.execution, data)
                if self._prompt_text is not None and len(self._prompt_text) + len(data) <= MOST_HELD:
                    self._prompt_text += data
                else:
                    self._feed(given.execution, data)

    def _masked(self, execution: Execution, data: bytes) -> bytes:
        return data if execution.secrets is None else execution.secrets.mask(data)

    def _feed(self, execution: Execution, data: bytes) -> None:
        execution.feed(data)
        if not execution.internal:
            self._terminal._wrote(data)
        if execution.spool.crowded:
            self._compact(execution)

    def on_prompt_text(self) -> None:
        """A prompt follows. The hooks that tell the end come before it, unless an interrupt made zsh skip them."""
        state, session = self.state, self._terminal.session
        if isinstance(state, Running | Asked) and state.given.execution.cause and session and session.in_front():
            self._prompt_text = self._prompt_text or bytearray()

    def on_forged(self, mark: Mark) -> None:
        if (current := self._terminal.current) is not None:
            current.forged_marks += 1
            before = self._terminal.quality
            current.hints = add_hint(current.hints, mark)
            if self._terminal.quality != before:
                self._terminal.tell_quality()
        self.on_output(mark.raw)

    def on_started(self, number: int) -> None:
        match self.state:
            case Loading(given) if given.execution.number == number:
                self.state = Running(given)
                given.execution.begin()
            case _ if number == self.withdrawn and self._terminal.session is not None:
                give_up(self._terminal.session)  # its caller was told that it does not run

    def on_not_started(self) -> None:
        if isinstance(self.state, Loading):
            self._terminal.monitor.look_soon()

    def on_refused(self, number: int, why: str) -> None:
        match self.state:
            case Loading(given, looks=0) if (
                given.execution.number == number and why == "stale" and self._terminal.session
            ):
                give_up(self._terminal.session)  # something changed our number: this shell won't run it
            case Loading(given) if given.execution.number == number:
                notes = (f"the terminal could not move to {os.fsdecode(given.move)}",) if given.move else ()
                given.execution.refused = True
                self.end(given.execution, "not run", "mark", None, notes=notes)

    def on_ended(self, number: int, status: int, pipestatus: tuple[int, ...]) -> None:
        begun, session = self._begun(number), self._terminal.session
        if begun is None or session is None:
            return
        self._terminal._moved(session.directory())
        if self._prompt_text is not None:  # it was not the prompt: the command went on
            text, self._prompt_text = self._prompt_text, None
            self._feed(begun.given.execution, bytes(text))
        self._end_is_told(begun, session, self._ending(begun.given.execution, session, "mark", status, pipestatus))

    def _end_is_told(self, begun: Begun, session: Session, ending: Ending) -> None:
        """An end mark came. It counts if the shell is in front. Else the prompt, the shell's death or time decides."""
        execution = begun.given.execution
        self._give_up(begun)  # two end marks: the first was not the end
        if session.in_front():
            self._finish(execution, ending)
        else:
            self.state = EndTold(begun.given, ending, looks=begun.looks)
            self._terminal.monitor.watch(HOOK_PATIENCE)

    def on_answered(self, number: int, status: int | None, pipestatus: tuple[int, ...]) -> None:
        begun, session = self._begun(number), self._terminal.session
        if begun is None or session is None:
            return
        execution = begun.given.execution
        self._terminal._moved(session.directory())
        if status is None:
            note = "the shell's variables are read-only: it could not note how the command ended"
            self.end(execution, execution.cause or "done", "asked", None, notes=(note,))
        else:
            self._finish(execution, self._ending(execution, session, "asked", status, pipestatus))

    def on_prompt(
        self, number: int, status: int, turn: Turn, pipestatus: tuple[int, ...], *, sure: bool, discarded: bool = False
    ) -> None:
        terminal = self._terminal
        begun, session = self._begun(number), terminal.session
        if session is None:
            return
        if not session.in_front():
            if begun is not None and sure and session.has_died():
                ending = self._ending(begun.given.execution, session, "mark", status, pipestatus)
                self._end_is_told(begun, session, ending)
            return
        terminal._moved(session.directory())
        if isinstance(self.state, ByPerson):
            self.end(self.state.execution, "done", "mark", status)
            turn = "was theirs" if turn == "theirs" else turn  # the person removed our hook, but their line is done
        elif begun is not None:
            if discarded and begun.given.execution.cause:
                status, pipestatus = INTERRUPTED, ()  # whatever zsh reports for a line that it discarded
            self._ended_by_prompt(begun, session, status, pipestatus, sure=sure)
        if turn == "ours" and isinstance(self.state, Idle):
            self._erase_prompt()  # an internal command was loaded at it
            self._prompt_at = None if session.has_children() else terminal.tape.end
        terminal.keyboard.prompt(session, turn)
        if turn == "ours":
            terminal._released.ring()
            if terminal.current is None and number != self.internal:
                terminal._tell_idle()

    def _ended_by_prompt(
        self, begun: Begun, session: Session, status: int, pipestatus: tuple[int, ...], *, sure: bool
    ) -> None:
        execution = begun.given.execution
        if isinstance(begun, EndTold) and sure and begun.ending.exit_code == status:
            self.confirm(begun)
            return
        begun = self._give_up(begun)
        if not sure and execution.cause and status > 128:
            # bash leaves a $? above 128 as it was; a line that it discards with such a status was interrupted.
            self._finish(execution, self._ending(execution, session, "mark", INTERRUPTED, ()))
        elif sure:
            self._finish(execution, self._ending(execution, session, "mark", status, pipestatus))
        else:  # something printed our prompt; or it is the prompt, and our own words are gone
            self._terminal.monitor.look_soon()

    def confirm(self, told: EndTold) -> None:
        """The reported end was right. What came after it was output of a prompt hook."""
        self._finish(told.given.execution, told.ending, at=told.at)

    def hook_hangs(self, told: EndTold, session: Session) -> None:
        """A prompt hook takes long: the command has its result now."""
        name = session.busy_with()
        hook = f"a prompt hook runs `{name}`" if name else "a prompt hook runs"
        told.given.execution.note(f"the shell told its end and is not back at its prompt: {hook}")
        self.confirm(told)

    def _give_up(self, begun: Begun) -> Begun:
        """A reported end was wrong: what came after it is output of the command."""
        if not isinstance(begun, EndTold):
            return begun
        begun.given.execution.feed(bytes(begun.held))
        self.state = running = Running(begun.given, looks=begun.looks)
        return running

    def _begun(self, number: int) -> Begun | None:
        """The command of that number, if it has begun."""
        state = self.state
        if isinstance(state, Running | Asked | EndTold) and state.given.execution.number == number:
            return state
        return None

    def on_handed_over(self) -> None:
        """The shell is about to show its prompt once more, for the person. Viewers see only one, at the left edge."""
        if self._terminal.keyboard.handed_over():
            self._erase_prompt()
            after = self._cursor(self._terminal.tape.end)
            if after is None or after[1]:
                self._terminal._wrote(b"\r\n")

    def _erase_prompt(self) -> None:
        """Erase our prompt where viewers see it, unless something else might go with it."""
        at, self._prompt_at = self._prompt_at, None
        if at is None:
            return
        before, after = self._cursor(at), self._cursor(at, more=True)
        if before is None or after is None:
            return
        row, column = before if before[1] < self._terminal.tape.size[1] else (before[0] + 1, 0)
        if (row, column) < after:
            up = b"\x1b[%dA" % (after[0] - row) if after[0] > row else b""
            self._terminal._wrote(b"%b\x1b[%dG\x1b[J" % (up, column + 1))

    def _cursor(self, offset: int, *, more: bool = False) -> tuple[int, int] | None:
        """Where the cursor was at `offset` of the tape, or with `more` is now. Row 0 is where that line begins."""
        tape = self._terminal.tape
        line = tape.last_line(offset) if offset >= tape.start else None
        if line is None:
            return None
        text = line + tape.read(offset, tape.end) if more else line
        return cursor_after(text.decode("utf-8", "replace"), tape.size[1])

    def on_person_ran(self, command: str) -> None:
        self._prompt_at = None
        if self._terminal.current is None:
            execution = self._terminal._new_execution(command, by_person=True)
            self.state = ByPerson(execution)
            execution.begin()

    def on_exit(self, status: int) -> None:
        code = status if status >= 0 else 128 - status
        self._prompt_at = None
        self._terminal._lifecycle.died(status, leftovers=not self._terminal.closed)
        match self.state:
            case EndTold() as told:
                self.confirm(told)  # it had ended, then its shell did
            case Running(given) | Asked(given):
                self.end(given.execution, given.execution.cause or "terminal closed", "waitpid", code)
            case ByPerson(execution):
                self.end(execution, execution.cause or "terminal closed", "waitpid", code)
            case Restarting() if not self._terminal.closed:
                pass  # the fresh shell exited; the task that runs it decides
            case Loading(given) if not self._terminal.closed and not given.execution.cause and not given.restarted:
                self.state = Restarting(given, asyncio.get_running_loop().create_task(self._run_again(given)))
            case Loading(given) | Restarting(given):
                self._not_run(given.execution)
        self._terminal.keyboard = Keyboard()
        self._terminal._released.ring()
        if self._terminal.session is not None and self._terminal.session.integrated and not self._terminal.closed:
            self._terminal._emit(events.ShellEnded(at=time.monotonic(), terminal=self._terminal.id, status=status))

    async def _run_again(self, given: Given) -> None:
        """The shell died before the command began, so it was not run: run it in a fresh one, once."""
        execution = given.execution
        try:
            await self._terminal._live_shell()
            execution.fresh_shell, notes = self._terminal._lifecycle.take_news()
            execution.notes += notes
            self._terminal._load(self._terminal._need_session(), execution, given.data, given.move, restarted=True)
        except TarmacError:
            self._not_run(execution)

    def _not_run(self, execution: Execution) -> None:
        if not execution.running:
            return
        if self._terminal.closed:
            self.end(execution, "terminal closed", "waitpid", None)
        else:
            notes = ("the shell ended before the command was started",)
            self.end(execution, "not run", "waitpid", None, notes=notes)

    # Ends

    def _ending(
        self, execution: Execution, session: Session, evidence: Evidence, status: int, pipestatus: tuple[int, ...]
    ) -> Ending:
        """The ending of a command whose shell says `status`."""
        reason: Reason = execution.cause or "done"
        code: int | None = status
        if _has_stopped(session, execution, status, self._terminal.baseline):
            reason = reason if execution.signalled else "stopped"
            code = status if status in STOPS else None
        elif reason in ("interrupted", "killed") and status < 128 and not execution.handled_signal:
            reason = "done"  # it ended by itself before the signal reached it
        if reason == "stopped" or (execution.cause and session.has_children()):
            session.has_had_jobs = True
        return Ending(reason, evidence, self._terminal.cwd, code, pipestatus)

    def end(
        self, execution: Execution, reason: Reason, evidence: Evidence, code: int | None, notes: tuple[str, ...] = ()
    ) -> None:
        self._finish(
            execution, Ending(reason=reason, evidence=evidence, cwd=self._terminal.cwd, exit_code=code, notes=notes)
        )

    def _finish(self, execution: Execution, ending: Ending, *, at: float | None = None) -> None:
        state, self.state = self.state, Idle()
        terminal = self._terminal
        if (
            isinstance(state, Running | Asked | EndTold)
            and terminal.session is not None
            and was_killed_for_memory(execution, ending, state.given.oom_kills, terminal.session.oom_kills)
        ):
            execution.note("out of memory: the kernel killed it")
        if execution.secrets is not None and (rest := execution.secrets.rest()):
            self._feed(execution, rest)
        if self._prompt_text is not None:
            text, self._prompt_text = self._prompt_text, None
            terminal._wrote(bytes(text))
        execution.finish(ending, at=at)
        terminal._finished_execution(execution)
        terminal._released.ring()

    def _compact(self, execution: Execution) -> None:
        """Drop the oldest output, in a thread. The program waits meanwhile."""
        session = self._terminal._need_session()
        session.pty.pause()

        async def compact() -> None:
            await asyncio.get_running_loop().run_in_executor(None, execution.spool.compact)
            session.pty.resume()

        task = asyncio.get_running_loop().create_task(compact())
        self._compacting.add(task)
        task.add_done_callback(self._compacting.discard)
