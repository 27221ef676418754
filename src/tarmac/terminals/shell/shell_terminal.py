"""The half of a live shell's terminal that listens: what its session tells becomes the fate of the command in front.

on_started → on_output… → on_ended (or on_prompt, or on_exit) → Ending

Evidence for an end, in this order: the end mark; the prompt's mark with the same number (after an interrupt the rest
of the line, and our end mark with it, is discarded); waitpid; asked. Without any of them the command has not ended.
"""

import asyncio
import os
import time
from collections.abc import Mapping
from pathlib import Path

from tarmac.errors import TarmacError, TerminalClosed
from tarmac.events import TaskId, TerminalId
from tarmac.terminals import environment, events
from tarmac.terminals.bell import Bell
from tarmac.terminals.execution import Execution
from tarmac.terminals.input.input_detection import Attention
from tarmac.terminals.input.keyboard import Keyboard
from tarmac.terminals.process import processes, signals
from tarmac.terminals.process.tty_probe import Waiting, Wants
from tarmac.terminals.result import Ending, Evidence, Reason
from tarmac.terminals.settings import Settings
from tarmac.terminals.shell.owner import Turn
from tarmac.terminals.shell.pending import Pending
from tarmac.terminals.shell.session import Session
from tarmac.terminals.shell.shell_lifecycle import Keeper
from tarmac.terminals.shell.shells import Shell
from tarmac.terminals.terminal import Origin, Terminal, echo_of
from tarmac.vt.marks import Mark

LOAD_PATIENCE = 0.2  # the start mark comes within this, or we look why not
SOON = 0.02
PROBE_EVERY = (0.1, 0.2, 0.5, 1.0, 2.0)
SPEECHLESS = 0.5  # a shell that is asked and does not answer in this time never will
INTERRUPTED = 130
KILLED = 137
STOPS = {147, 148, 149, 150}  # 128 + SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU


class ShellTerminal(Terminal):
    """A terminal with a live shell in it, as far as it only listens and looks; `PtyTerminal` is what callers use."""

    provider = "pty"

    def __init__(
        self,
        shell: Shell,
        *,
        id: TerminalId,
        cwd: Path,
        settings: Settings,
        base_env: Mapping[str, str],
        name: str = "",
        origin: Origin = "agent",
        task: TaskId | None = None,
    ) -> None:
        super().__init__(id=id, cwd=cwd, settings=settings, name=name, origin=origin, task=task)
        self.shell = shell
        self.env = environment.build(base_env, settings, cookie=self.cookie)
        self._keeper = Keeper(shell, settings, env=self.env, owner=self)
        self.baseline: set[processes.Process] = set()  # what ran in the background when the current command started
        self._pending: Pending | None = None  # an end mark that the prompt must confirm
        self._asked = 0  # the number of the command whose status was asked for
        self._asked_at = 0.0
        self.keyboard = Keyboard()
        self._released = Bell()  # a prompt of ours, the end of a command or of the shell
        self._timer: asyncio.TimerHandle | None = None
        self._probes = 0
        self._had_jobs = False  # bash talks about jobs before its prompt
        self._attention = Attention()
        self._unsure = False  # it looked like a prompt, but its command may still run
        self._asleep = -1  # which sleep of the shell was seen when it should have been busy
        self._again: asyncio.Task[None] | None = None
        self._data = self._move = b""  # what was loaded last
        self._quiet = False  # an internal command: nobody is told
        self._oom_kills: int | None = None  # of its cgroup, when the current command began
        self._withdrawn = 0  # the number of a command that was taken back before it began
        self._compacting: set[asyncio.Task[None]] = set()

    @property
    def session(self) -> Session | None:
        """The live shell."""
        return self._keeper.session

    @property
    def alive(self) -> bool:
        return not self._closed and self.session is not None and self.session.alive

    @property
    def has_jobs(self) -> bool:
        return bool(self.jobs())

    def jobs(self) -> set[processes.Process]:
        """What commands have started in it and still runs."""
        return self._need_session().jobs() if self.alive else set()

    @property
    def shell_version(self) -> str:
        return self.session.version if self.session is not None else ""

    @property
    def quality(self) -> str:
        return "rich" if self.session is not None and self.session.integrated else "none"

    # A line for the shell

    def _load(self, session: Session, execution: Execution, data: bytes, move: bytes) -> None:
        session.pty.forget_input()
        self._pending = None
        self._data, self._move = data, move
        self._oom_kills = session.oom_kills()
        self._had_jobs = self._had_jobs or bool(self.baseline)
        try:
            session.load(execution.number, execution.command, data, cwd=move, jobs=self._had_jobs)
        except TarmacError:  # a full disk, say
            self._end(execution, "not run", "unknown", None)
            raise
        if not self._quiet:  # the shell works meanwhile
            session.fresh = False
            self._wrote(echo_of(execution.command))
        self._probes = 0
        self._asleep = -1
        self._unsure = False
        self._watch(LOAD_PATIENCE)

    async def _live_shell(self) -> None:
        """Have a shell that lives: the present one, or a fresh one in the same directory."""
        self._check_open()
        revived = await self._keeper.revive(self.cwd)
        if revived is not None:
            why, here = revived
            self._had_jobs = False
            self._moved(here)
            self._emit(events.ShellReplaced(at=time.monotonic(), terminal=self.id, why=why))

    def _need_session(self) -> Session:
        if self.session is None or self._closed:
            raise TerminalClosed(f"terminal {self.id} is closed", hint="open another one")
        return self.session

    # What the session tells

    def on_output(self, data: bytes) -> None:
        execution = self.current
        if execution is None:
            if not self.keyboard.switching:
                self._wrote(data)  # prompts, and jobs that print while nobody runs anything
        elif execution.began:
            if execution.secrets is not None:
                data = execution.secrets.mask(data)
            if self._pending is not None and self._pending.hold(data):
                return
            execution.feed(data)
            self._wrote(data)
            if execution.spool.crowded:
                self._compact(execution)

    def on_forged(self, mark: Mark) -> None:
        if self.current is not None:
            self.current.forged_marks += 1
        self.on_output(mark.raw)

    def on_started(self, number: int) -> None:
        execution = self.current
        if execution is not None and execution.number == number:
            execution.begin()
        elif number == self._withdrawn and self.session is not None:
            self._hopeless(self.session)  # it was told that it does not run

    def on_not_started(self) -> None:
        if self.current is not None and not self.current.began:
            self._unsure = True
            self._look_soon()

    def on_refused(self, number: int, why: str) -> None:
        execution, session = self.current, self.session
        if execution is None or session is None or execution.number != number or execution.began:
            return
        if why == "stale" and self._probes == 0:  # somebody played with our number: this shell won't run it
            self._hopeless(session)
            return
        notes = (f"the terminal could not move to {os.fsdecode(self._move)}",) if self._move else ()
        execution.refused = True
        self._end(execution, "not run", "mark", None, notes=notes)

    def on_ended(self, number: int, status: int, pipestatus: tuple[int, ...]) -> None:
        execution, session = self.current, self.session
        if execution is None or session is None or execution.number != number or not execution.began:
            return
        self._moved(session.directory())
        ending = self._ending(execution, "mark", status, pipestatus)
        self._give_up_pending(execution)  # two end marks: the first was a lie
        if session.in_front():
            self._finish(execution, ending)
        else:  # a hook's program is in front already, or a subshell lies: the prompt will tell
            self._hold_end(execution, ending)

    def on_answered(self, number: int, status: int | None, pipestatus: tuple[int, ...]) -> None:
        execution, session = self.current, self.session
        if execution is None or session is None or execution.number != number or not execution.began:
            return
        self._moved(session.directory())
        if status is None:
            note = "the shell's variables are read-only: it could not note how the command ended"
            self._end(execution, execution.cause or "done", "asked", None, notes=(note,))
        else:
            self._finish(execution, self._ending(execution, "asked", status, pipestatus))

    def on_prompt(
        self, number: int, status: int, turn: Turn, pipestatus: tuple[int, ...], *, sure: bool, discarded: bool = False
    ) -> None:
        execution, session = self.current, self.session
        if session is None:
            return
        if not session.in_front():
            if execution is not None and execution.began and execution.number == number and sure and session.has_died():
                self._hold_end(execution, self._ending(execution, "mark", status, pipestatus))
            return
        self._moved(session.directory())
        if execution is not None and execution.by_person:
            self._end(execution, "done", "mark", status)
            turn = "was theirs" if turn == "theirs" else turn  # they took our hook away; but their line is done
        elif execution is not None and execution.began and execution.number == number:
            if discarded and execution.cause:
                status, pipestatus = INTERRUPTED, ()  # whatever zsh says of a line that it did not get through
            self._ended_by_prompt(execution, status, pipestatus, sure=sure)
        self.keyboard.prompt(session, turn)
        if turn == "ours":
            self._released.ring()
            if self.current is None and self._listeners:
                self._emit(events.BecameIdle(at=time.monotonic(), terminal=self.id))

    def _hold_end(self, execution: Execution, ending: Ending) -> None:
        """It ended, by a mark that is yet to be confirmed: by the prompt, or by the death of its shell."""
        self._give_up_pending(execution)
        self._pending = Pending(ending)
        execution.notes.append(self._pending.note)

    def _give_up_pending(self, execution: Execution) -> None:
        """That end mark was none: what came after it is output."""
        pending, self._pending = self._pending, None
        if pending is not None:
            execution.notes.remove(pending.note)
            execution.feed(bytes(pending.held))

    def _ended_by_prompt(self, execution: Execution, status: int, pipestatus: tuple[int, ...], *, sure: bool) -> None:
        pending = self._pending
        if pending is not None and sure and pending.ending.exit_code == status:
            self._finish(execution, pending.ending, at=pending.at)  # what came after it was the hooks'
            return
        self._give_up_pending(execution)
        if not sure and execution.cause and status > 128:
            # bash leaves a $? above 128 as it was; a line that it discards with such a status was interrupted.
            self._finish(execution, self._ending(execution, "mark", INTERRUPTED, ()))
        elif sure:
            self._finish(execution, self._ending(execution, "mark", status, pipestatus))
        else:
            self._unsure = True  # something printed our prompt; or it is the prompt, and our own words are gone: look
            self._look_soon()

    def on_person_ran(self, command: str) -> None:
        if self.current is None:
            self._new_execution(command, by_person=True).begin()

    def on_exit(self, status: int) -> None:
        code = status if status >= 0 else 128 - status
        self._keeper.died(status, leftovers=not self._closed)
        execution = self.current
        if execution is not None:
            if self._pending is not None:
                self._finish(execution, self._pending.ending, at=self._pending.at)  # it had ended, then its shell did
            elif execution.began or execution.by_person:
                self._end(execution, execution.cause or "terminal closed", "waitpid", code)
            elif self._again is None and not self._closed and not execution.cause:
                self._again = asyncio.get_running_loop().create_task(self._run_again(execution))
            else:
                self._not_run(execution)
        self.keyboard = Keyboard()
        self._released.ring()
        if self.session is not None and self.session.integrated and not self._closed:
            self._emit(events.ShellEnded(at=time.monotonic(), terminal=self.id, status=status))

    async def _run_again(self, execution: Execution) -> None:
        """The shell died before the command began, so it was not run: run it in a fresh one, once."""
        try:
            await self._live_shell()
            execution.fresh_shell, notes = self._keeper.take_news()
            execution.notes += notes
            self._load(self._need_session(), execution, self._data, self._move)
            await execution.ended(self.settings.shell_integration_timeout)
        except TarmacError:
            self._not_run(execution)
        finally:
            self._again = None

    def _not_run(self, execution: Execution) -> None:
        if not execution.running:
            return
        if self._closed:
            self._end(execution, "terminal closed", "waitpid", None)
        else:
            notes = ("the shell ended before the command was started",)
            self._end(execution, "not run", "waitpid", None, notes=notes)

    # Ends

    def _ending(self, execution: Execution, evidence: Evidence, status: int, pipestatus: tuple[int, ...]) -> Ending:
        session = self.session
        reason: Reason = execution.cause or "done"
        code: int | None = status
        if session and self._has_stopped(session, execution, status):
            self._had_jobs = True
            reason = reason if execution.signalled else "stopped"
            code = status if status in STOPS else None
        elif reason in ("interrupted", "killed") and status < 128 and not execution.signalled:
            reason = "done"  # it ended by itself before the signal reached it
        return Ending(reason=reason, evidence=evidence, cwd=self.cwd, exit_code=code, pipestatus=pipestatus)

    def _has_stopped(self, session: Session, execution: Execution, status: int) -> bool:
        """Whether the command ended because what it started was stopped: by its status, or by the kernel's word.

        A stopped child of a command with `&` in it may be one in the background: that says nothing of the command.
        """
        if status in STOPS:
            return _has_stopped_child(session.pid, set())
        if not session.shell.hides_stops or "&" in execution.command.replace("&&", "") or not session.has_children():
            return False
        return any(_is_stopped_job(each.pid) for each in processes.descendants(session.pid) - self.baseline)

    def _end(
        self, execution: Execution, reason: Reason, evidence: Evidence, code: int | None, notes: tuple[str, ...] = ()
    ) -> None:
        self._finish(execution, Ending(reason=reason, evidence=evidence, cwd=self.cwd, exit_code=code, notes=notes))

    def _finish(self, execution: Execution, ending: Ending, *, at: float | None = None) -> None:
        if self._pending is not None:
            execution.notes.remove(self._pending.note)
            self._pending = None
        self._name_oom_kill(execution, ending)
        quiet, self._quiet = self._quiet, False
        if quiet:
            self.current = None
        if execution.secrets is not None and (rest := execution.secrets.rest()):
            execution.feed(rest)
            self._wrote(rest)
        execution.finish(ending, at=at)
        if not quiet:
            self._finished_execution(execution)
        self._released.ring()

    def _name_oom_kill(self, execution: Execution, ending: Ending) -> None:
        """Say so if the kernel killed it for want of memory: it got SIGKILL, not ours, and its cgroup counts one."""
        if execution.cause is not None or KILLED not in (ending.exit_code, *ending.pipestatus) or self.session is None:
            return
        before, now = self._oom_kills, self.session.oom_kills()
        if before is not None and now is not None and now > before:
            execution.notes.append("out of memory: the kernel killed it")

    # Looking after a running command

    def _watch(self, seconds: float) -> None:
        """Look after the command in `seconds`. The timer is left to run out, not cancelled: it is cheaper so."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(seconds, self._look)

    def _look_soon(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._watch(SOON)

    def _look(self) -> None:
        """The command has run for a while: is it alive and in step? Asked of the kernel, ever more rarely."""
        self._timer = None
        execution, session = self.current, self.session
        if execution is None or execution.by_person or session is None or not session.alive:
            return  # a person looks after their own: nothing of ours may be typed there
        if time.monotonic() - execution.started_at < LOAD_PATIENCE / 2 and not self._unsure:
            self._watch(LOAD_PATIENCE)  # the timer of a command before this one
            return
        signals.continue_if_stopped(session.pid)  # a shell that stopped itself can't be typed at
        pause = PROBE_EVERY[-1]
        if execution.began and session.at_prompt():
            # It is back, and nobody told: the command took all our hooks away at once. Or we have yet to read it.
            if self.waiting(execution) is None:
                self.ask(execution, session)
        elif execution.began:
            seen, pause = self._attention.look(session, execution)
            if seen is not None:
                self._tell_waiting(seen, execution, session)
        if not execution.began and session.waits():
            # It reads the terminal and never started: our line was eaten, or our functions are gone. Or the machine is
            # busy, and our line on its way: the command would read what we type again. So it is looked at twice.
            if (asleep := processes.sleeps(session.pid)) != self._asleep:
                self._asleep = asleep
                self._watch(LOAD_PATIENCE / 2)
                return
            self._asleep = -1
            if self._probes >= 3:
                self._hopeless(session)
                return
            session.load_again()
        self._probes += 1
        self._watch(min(pause, PROBE_EVERY[min(self._probes, len(PROBE_EVERY) - 1)]))

    def _hopeless(self, session: Session) -> None:
        """The shell takes no command any more. It has not begun this one: end the shell, and say so."""
        os.kill(session.pid, 9)

    def _compact(self, execution: Execution) -> None:
        """Let the oldest output go, in a thread; the program waits meanwhile."""
        session = self._need_session()
        session.pty.pause()

        async def compact() -> None:
            await asyncio.get_running_loop().run_in_executor(None, execution.spool.compact)
            session.pty.resume()

        task = asyncio.get_running_loop().create_task(compact())
        self._compacting.add(task)
        task.add_done_callback(self._compacting.discard)

    # What it waits for

    def ask(self, execution: Execution, session: Session) -> None:
        """The shell is back at its prompt, and no mark told the end: read everything it printed, then ask it."""

        def still_unknown() -> None:
            if self.current is not execution or self.session is not session or not session.waits():
                return
            if self._asked != execution.number:
                self._asked, self._asked_at = execution.number, time.monotonic()
            session.ask(execution.number)

        session.when_read(still_unknown)

    def waiting(self, execution: Execution) -> Waiting | None:
        session = self.session
        if session is None or not session.alive or self.current is not execution:
            return None
        seen = self._attention.now(session, execution) or self._speechless(session, execution)
        if seen is not None and self._attention.is_news(seen, execution):
            self._tell_waiting(seen, execution, session)
        return seen

    def _speechless(self, session: Session, execution: Execution) -> Waiting | None:
        """The shell stands at its prompt and, even when asked, does not say how the command ended: nobody knows."""
        if self._asked != execution.number or time.monotonic() - self._asked_at < SPEECHLESS or not session.at_prompt():
            return None
        shell = processes.look(session.pid)
        if shell is None:
            return None
        note = "the shell is back at its prompt, and does not say how the command ended"
        if note not in execution.notes:
            execution.notes.append(note)
        return Waiting(Wants.LINE, shell, self.shell.name)

    def _tell_waiting(self, seen: Waiting, execution: Execution, session: Session) -> None:
        if seen.is_shell and (seen.process.pid != session.pid or session.replaced()):
            note = f"a nested shell ({seen.name}) waits at its prompt: answer it, or send it `exit`"
            if note not in execution.notes:
                execution.notes.append(note)
        execution.asks()
        self._emit(
            events.AwaitingInput(
                at=time.monotonic(),
                terminal=self.id,
                number=execution.number,
                wants=str(seen.wants),
                name=seen.name,
                prompt=seen.prompt,
            )
        )

    @property
    def held(self) -> bool:
        return self.keyboard.held


def _has_stopped_child(pid: int, but: set[processes.Process]) -> bool:
    return any(processes.state(each.pid) == "T" for each in processes.descendants(pid) - but)


def _is_stopped_job(pid: int) -> bool:
    """Whether it stands still and leads its group: what a script left behind in the background does not."""
    found = processes.stat(pid)
    return found is not None and found.state == "T" and found.group == pid
