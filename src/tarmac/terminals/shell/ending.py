"""How a command ended, from what its shell said and what the kernel shows."""

from collections.abc import Callable
from pathlib import Path

from tarmac.terminals.execution import Execution
from tarmac.terminals.process import processes
from tarmac.terminals.result import Ending, Evidence, Reason
from tarmac.terminals.shell.session import Session

INTERRUPTED = 130
KILLED = 137
STOPS = {147, 148, 149, 150}  # 128 + SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU


def ending_of(
    execution: Execution,
    session: Session,
    *,
    status: int,
    pipestatus: tuple[int, ...],
    evidence: Evidence,
    cwd: Path,
    baseline: set[processes.Process],
) -> Ending:
    """The ending of a command whose shell says `status`. `baseline` is what ran in the background before it."""
    reason: Reason = execution.cause or "done"
    code: int | None = status
    if _has_stopped(session, execution, status, baseline):
        reason = reason if execution.signalled else "stopped"
        code = status if status in STOPS else None
    elif reason in ("interrupted", "killed") and status < 128 and not execution.handled_signal:
        reason = "done"  # it ended by itself before the signal reached it
    return Ending(reason=reason, evidence=evidence, cwd=cwd, exit_code=code, pipestatus=pipestatus)


def was_killed_for_memory(
    execution: Execution, ending: Ending, before: int | None, count: Callable[[], int | None]
) -> bool:
    """Whether the kernel killed it for want of memory: it got SIGKILL, not ours, and its cgroup counts one more."""
    if execution.cause is not None or KILLED not in (ending.exit_code, *ending.pipestatus):
        return False
    return before is not None and (now := count()) is not None and now > before


def _has_stopped(session: Session, execution: Execution, status: int, baseline: set[processes.Process]) -> bool:
    """Whether the command ended because what it started was stopped: by its status, or by the kernel's word.

    A stopped child of a command with `&` in it may be one in the background: that says nothing of the command.
    """
    if status in STOPS:
        return any(processes.state(each.pid) == "T" for each in processes.descendants(session.pid))
    if not session.shell.hides_stops or "&" in execution.command.replace("&&", "") or not session.has_children():
        return False
    return any(_is_stopped_job(each.pid) for each in processes.descendants(session.pid) - baseline)


def _is_stopped_job(pid: int) -> bool:
    """Whether it stands still and leads its group: what a script left behind in the background does not."""
    found = processes.stat(pid)
    return found is not None and found.state == "T" and found.group == pid
