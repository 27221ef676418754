"""Whether the kernel tells who waits for input and what a command started, and whether it keeps commands to reading."""

import asyncio
import dataclasses
import os
import platform
import signal
import sys
import tempfile
import time
from pathlib import Path

from tarmac.errors import TarmacError
from tarmac.terminals.doctor.check import Case, Finding, Findings, aside
from tarmac.terminals.open import make_terminal
from tarmac.terminals.process import processes, signals
from tarmac.terminals.process.confinement import LEAST_ABI, SIGNALS_ABI, Means, landlock_abi, means
from tarmac.terminals.shell.dialects import KNOWN, find_shell
from tarmac.terminals.terminal import Terminal

PATIENCE = 3.0
SCOPES = {0: "all of the user's own", 1: "descendants, which is enough", 2: "administrators only", 3: "nobody"}


async def check_kernel(case: Case) -> Findings:
    """The platform, /proc, waiting for input, daemons, text in UTF-8."""
    yield _platform()
    yield _proc()
    with tempfile.TemporaryDirectory(prefix="tarmac-doctor-") as folder:
        settings = dataclasses.replace(case.settings, start_up_files=False, spool_directory=Path(folder))
        try:
            terminal = await make_terminal(cwd="/", shell=_some_shell(case), settings=settings, environ=case.environ)
        except TarmacError as error:
            yield Finding(name="a terminal", level="problem", what=error.what, advice=error.hint)
            return
        try:
            yield await _probe(terminal)
            yield await _locale(terminal)
            daemon, lost = await _daemon(terminal)
        finally:
            await terminal.aclose()
        yield lost or _custody(daemon)


def _some_shell(case: Case) -> str:
    for name in (*case.shells, *KNOWN):
        try:
            find_shell(name, environ=case.environ)
        except TarmacError:
            continue
        return name
    return KNOWN[0]


def _platform() -> Finding:
    system, machine = platform.system(), platform.machine()
    what = f"{system} {platform.release()} on {machine}, Python {platform.python_version()}"
    facts = {"system": system, "release": platform.release(), "machine": machine, "python": platform.python_version()}
    if sys.platform != "linux":
        return Finding(
            name="system",
            level="warning",
            what=what,
            advice="Tarmac is tested on Linux only: it may not notice questions and daemons here",
            facts=facts,
        )
    return Finding(name="system", level="ok", what=what, facts=facts)


def _proc() -> Finding:
    """What we can see of other processes. Each of these may be forbidden separately."""
    if not processes.has_proc():
        return Finding(
            name="/proc",
            level="warning",
            what="not mounted: Tarmac asks `ps` for processes, and can't tell which command waits for input",
            advice="mount it: mount -t proc proc /proc",
        )
    try:
        Path("/proc/self/syscall").read_bytes()
    except OSError as error:
        return Finding(
            name="/proc",
            level="warning",
            what=f"/proc/self/syscall can't be read ({error.strerror}): input is guessed from terminal modes",
            advice="a container profile may hide it: allow reading /proc/*/syscall (seccomp, AppArmor, SELinux)",
        )
    scope = _number("/proc/sys/kernel/yama/ptrace_scope")
    facts = {"ptrace_scope": scope}
    if scope is not None and scope >= 2 and os.geteuid() != 0:
        return Finding(
            name="/proc",
            level="warning",
            what=f"Yama restricts who can inspect processes: {SCOPES.get(scope, 'few')} (ptrace_scope {scope})",
            advice="sysctl kernel.yama.ptrace_scope=1; else input is guessed from terminal modes",
            facts=facts,
        )
    yama = "no Yama" if scope is None else f"ptrace_scope {scope}: {SCOPES.get(scope, 'unknown')}"
    return Finding(name="/proc", level="ok", what=f"system calls can be read ({yama})", facts=facts)


async def _probe(terminal: Terminal) -> Finding:
    """Whether we notice that a command waits for input."""
    execution = await terminal.start("cat >/dev/null")
    began = time.monotonic()
    happened = await execution.waiting_for(input=True, timeout=PATIENCE)
    took = time.monotonic() - began
    await execution.kill()
    if happened.what == "input":
        return Finding(
            name="waiting for input",
            level="ok",
            what=f"noticed after {took * 1000:.0f} ms",
            facts={"seconds": round(took, 4)},
        )
    return Finding(
        name="waiting for input",
        level="warning",
        what=f"not noticed within {PATIENCE:g} s",
        advice="commands that ask something will run into their timeout; see /proc above",
    )


async def _daemon(terminal: Terminal) -> tuple[processes.Process | None, Finding | None]:
    """Start a daemon that leaves its session. A finding says when we lose sight of it."""
    command = "sh -c 'setsid sleep 600 >/dev/null 2>&1 & echo $!'"
    result = await terminal.run(command, timeout=PATIENCE, on_timeout="kill")
    word = result.output.strip()
    daemon = processes.look(int(word)) if word.isdigit() else None
    if daemon is None:
        what = f"this test did not work: {result.reason}, {result.output!r}"
        return None, Finding(name="daemons", level="warning", what=what, advice="it needs `setsid`, and /proc or `ps`")
    for _ in range(100):  # until its own parent has ended
        if daemon in terminal.tree(own=False):
            return daemon, None
        await asyncio.sleep(0.01)
    signals.signal_all([daemon], signal.SIGKILL)
    what = "a process that leaves its session can't be found: this kernel has no child-subreaper"
    return None, Finding(name="daemons", level="warning", what=what, advice="end such processes yourself")


def _custody(daemon: processes.Process | None) -> Finding:
    """After its terminal is closed."""
    if daemon is not None and processes.look(daemon.pid) == daemon:
        signals.signal_all([daemon], signal.SIGKILL)
        return Finding(name="daemons", level="warning", what="they outlive their terminal", advice="end them yourself")
    what = "they are found when they leave their session, and end with their terminal"
    return Finding(name="daemons", level="ok", what=what)


async def _locale(terminal: Terminal) -> Finding:
    """Whether programs read their input as UTF-8. `wc -m` asks the C library."""
    result = await terminal.run("printf '\\303\\251' | wc -m", timeout=PATIENCE, on_timeout="kill")
    if result.output.strip() == "1":
        return Finding(name="locale", level="ok", what="programs read and write UTF-8")
    return Finding(
        name="locale",
        level="warning",
        what="programs do not read their input as UTF-8: letters beyond ASCII may be cut or garbled",
        advice="install the locale C.UTF-8, or set LC_ALL to a UTF-8 locale that `locale -a` lists",
        facts={"counted": result.output.strip()},
    )


def _number(path: str) -> int | None:
    try:
        return int(Path(path).read_text())
    except (OSError, ValueError):
        return None


async def check_confinement(case: Case) -> Findings:
    """Landlock and seccomp, or bubblewrap, or nothing."""
    yield await aside(_found)


def _found() -> Finding:
    abi = landlock_abi()
    facts = {"by": means().value, "landlock": abi}
    match means():
        case Means.LANDLOCK:
            signals = "" if abi >= SIGNALS_ABI else "; signals are kept in by seccomp"
            return Finding(
                name="confinement",
                level="ok",
                what=f"Landlock {abi} and seccomp keep commands to reading that run without a question{signals}",
                facts=facts,
            )
        case Means.BUBBLEWRAP:
            why = f"Landlock {abi} is too old" if abi else "this kernel has no Landlock"
            return Finding(
                name="confinement",
                level="ok",
                what=f"bubblewrap keeps commands to reading that run without a question: {why}",
                facts=facts,
            )
    return Finding(
        name="confinement",
        level="warning",
        what="nothing keeps a command to reading here, so only a few well-known ones run without a question",
        advice=f"use a Linux kernel with Landlock {LEAST_ABI} or newer (6.2), or install bubblewrap",
        facts=facts,
    )
