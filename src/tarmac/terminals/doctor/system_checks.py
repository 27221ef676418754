"""Checks of the kernel, the limits and the folders.

Does the kernel tell who waits for input and what a command started? Can it keep commands from writing? How many
terminals can there be (pseudo-terminals, open files, processes)? Is there room for kept output and temporary files?
"""

import asyncio
import dataclasses
import os
import platform
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tarmac.errors import TarmacError
from tarmac.paths import private_dir, remove_scratch, scratch_dir, state_dir
from tarmac.terminals.doctor import Case, Finding, Findings, Level, aside
from tarmac.terminals.open import make_terminal
from tarmac.terminals.process import processes, signals
from tarmac.terminals.process.confinement import LEAST_ABI, SIGNALS_ABI, Means, landlock_abi, means
from tarmac.terminals.shell.dialects import KNOWN, find_shell
from tarmac.terminals.terminal import NewTerminal, Terminal

PATIENCE = 3.0
SCOPES = {0: "all of the user's own", 1: "descendants, which is enough", 2: "administrators only", 3: "nobody"}


async def check_kernel(case: Case) -> Findings:
    """The platform, /proc, waiting for input, daemons, text in UTF-8."""
    yield _platform()
    yield _proc()
    with tempfile.TemporaryDirectory(prefix="tarmac-doctor-") as folder:
        settings = dataclasses.replace(case.settings, start_up_files=False, spool_directory=Path(folder))
        new = NewTerminal(cwd=Path("/"), shell=_some_shell(case), settings=settings, environ=case.environ)
        try:
            terminal = await make_terminal(new)
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


async def check_confinement(case: Case) -> Findings:
    """Landlock and seccomp, or bubblewrap, or nothing."""
    yield await aside(_found)


def _found() -> Finding:
    abi = landlock_abi()
    facts = {"by": means().value, "landlock": abi}
    match means():
        case Means.LANDLOCK:
            signals = "" if abi >= SIGNALS_ABI else "; seccomp blocks their signals"
            return Finding(
                name="confinement",
                level="ok",
                what=f"commands that run without a question can only read (Landlock {abi}, seccomp){signals}",
                facts=facts,
            )
        case Means.BUBBLEWRAP:
            why = f"Landlock {abi} is too old" if abi else "this kernel has no Landlock"
            return Finding(
                name="confinement",
                level="ok",
                what=f"commands that run without a question can only read (bubblewrap, because {why})",
                facts=facts,
            )
    return Finding(
        name="confinement",
        level="warning",
        what="commands can't be confined on this machine, so only a few well-known ones run without a question",
        advice=f"use a Linux kernel with Landlock {LEAST_ABI} or newer (6.2), or install bubblewrap",
        facts=facts,
    )


FILES_EACH = 6  # descriptors of ours for one terminal (tests/cli/test_doctor.py counts them)
PROCESSES_EACH = 4  # a shell, and what a command starts
SPARE_FILES = 32
ROOMY = 4  # full spools: a disk with less room than this gets a warning
SCRATCH = 16 << 20


async def check_limits(case: Case) -> Findings:
    """For each limit, whether `max_terminals` would fit."""
    for finding in await aside(lambda: list(_limits(case.settings.max_terminals))):
        yield finding


def _limits(wanted: int) -> Iterator[Finding]:
    yield _ptys(wanted)
    yield _open_files(wanted)
    yield _processes(wanted)


def _ptys(wanted: int) -> Finding:
    most, used = _number("/proc/sys/kernel/pty/max"), _number("/proc/sys/kernel/pty/nr")
    if most is None or used is None:
        return Finding(name="pseudo-terminals", level="note", what="the limit is not known")
    left = most - used
    return Finding(
        name="pseudo-terminals",
        level=_level(left, wanted),
        what=f"{left:,} of {most:,} are free; a pool opens at most {wanted}",
        advice="" if left >= wanted else f"close terminals, or: sysctl kernel.pty.max={max(4096, 2 * most)}",
        facts={"most": most, "used": used, "wanted": wanted},
    )


def _open_files(wanted: int) -> Finding:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 16  # noqa: PTH112, PTH208
    if soft == resource.RLIM_INFINITY:
        return Finding(name="open files", level="ok", what="no limit", facts={"soft": None})
    room = max(0, soft - used - SPARE_FILES) // FILES_EACH
    return Finding(
        name="open files",
        level=_level(room, wanted),
        what=f"{soft:,} for each process: enough for {room:,} terminals at once",
        advice=""
        if room >= wanted
        else f"ulimit -n {'unlimited' if hard < 0 else min(hard, 4096)}, before Tarmac starts",
        facts={"soft": soft, "hard": None if hard < 0 else hard, "room": room, "wanted": wanted},
    )


def _processes(wanted: int) -> Finding:
    """The limit of the user or of the control group, whichever leaves less."""
    rooms: list[tuple[int, str, str]] = []
    soft, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    if soft != resource.RLIM_INFINITY and os.geteuid() != 0:  # it does not apply to root
        rooms.append((soft - _threads_of(os.getuid()), f"{soft:,} for this user", "ulimit -u, in limits.conf"))
    for folder in _groups():
        most, used = _number(f"{folder}/pids.max"), _number(f"{folder}/pids.current")
        if most is not None and used is not None:
            rooms.append((most - used, f"{most:,} in this control group", "pids.max; in a container, --pids-limit"))
    if not rooms:
        return Finding(name="processes", level="ok", what="no limit", facts={"left": None})
    left, said, remedy = min(rooms)
    need = wanted * PROCESSES_EACH
    return Finding(
        name="processes",
        level=_level(left // PROCESSES_EACH, wanted),
        what=f"{left:,} more can be started ({said})",
        advice="" if left >= need else f"end some processes, or raise the limit: {remedy}",
        facts={"left": left, "wanted": need},
    )


def _groups() -> Iterator[str]:
    """The control groups we are in, from the innermost to the root: of version 2, and of version 1 for pids."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, place = line.split(":", 2)
        if controllers in ("", "pids"):
            root = Path("/sys/fs/cgroup/pids" if controllers else "/sys/fs/cgroup")
            here = root / place.lstrip("/")
            for folder in (here, *here.parents):
                yield str(folder)
                if folder == root:
                    break


def _threads_of(user: int) -> int:
    """All threads of a user, which is what RLIMIT_NPROC counts."""
    count = 0
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if place.stat().st_uid == user:
                count += len(os.listdir(place / "task"))  # noqa: PTH208
        except OSError:
            continue
    return count


def _level(room: int, wanted: int) -> Level:
    return "ok" if room >= wanted else "warning" if room > 0 else "problem"


def _number(path: str) -> int | None:
    try:
        return int(Path(path).read_text())
    except (OSError, ValueError):  # "max": no limit
        return None


# Files


async def check_storage(case: Case) -> Findings:
    """The folders for kept output and for temporary files."""
    for finding in await aside(lambda: [_spools(case), _scratch(case)]):
        yield finding


def _spools(case: Case) -> Finding:
    base = case.settings.spool_directory or state_dir(case.environ) / "output"
    trial = base / f".doctor-{os.getpid()}"
    try:
        private_dir(base)
        trial.write_bytes(b"x" * 4096)
        trial.unlink()
        free, kept = _free(base), _size(base)
    except TarmacError as error:
        return Finding(name="kept output", level="problem", what=error.what, advice=_ELSEWHERE)
    except OSError as error:
        what = f"can't write to {base}: {error.strerror}. Long output is lost"
        return Finding(name="kept output", level="problem", what=what, advice=_ELSEWHERE)
    facts = {"path": str(base), "free": free, "kept": kept}
    said = f"{base}: {_bytes(free)} free, {_bytes(kept)} kept"
    if free < ROOMY * case.settings.spool_limit:
        advice = f"free some space: one command may keep {_bytes(case.settings.spool_limit)}. Or set TARMAC_STATE_DIR"
        return Finding(name="kept output", level="warning", what=said, advice=advice, facts=facts)
    return Finding(name="kept output", level="ok", what=said, facts=facts)


_ELSEWHERE = "set TARMAC_STATE_DIR to a folder that you own, on a disk with free space"


def _scratch(case: Case) -> Finding:
    """Each shell has a private folder for the commands that it is given."""
    try:
        folder = scratch_dir(case.environ)
        try:
            (folder / "trial").write_bytes(b"x" * 4096)
            free = _free(folder)
        finally:
            remove_scratch(folder)
    except TarmacError as error:
        return Finding(name="temporary files", level="problem", what=error.what, advice=error.hint)
    except OSError as error:
        what = f"can't write to {folder.parent}: {error.strerror}. No command can run"
        return Finding(
            name="temporary files",
            level="problem",
            what=what,
            advice="set TMPDIR to a folder on a disk with free space",
        )
    said = f"{folder.parent}: {_bytes(free)} free"
    if free < SCRATCH:
        return Finding(
            name="temporary files",
            level="warning",
            what=said,
            advice="free some space there, or set TMPDIR to another disk",
        )
    return Finding(name="temporary files", level="ok", what=said, facts={"path": str(folder.parent), "free": free})


def _free(path: Path) -> int:
    found = os.statvfs(path)
    return found.f_bavail * found.f_frsize


def _size(path: Path) -> int:
    return sum(each.stat().st_blocks * 512 for each in path.rglob("*") if each.is_file())


def _bytes(number: int) -> str:
    size, unit = float(number), "bytes"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if size >= 1024:
            size, unit = size / 1024, larger
    return f"{size:.0f} {unit}" if size >= 10 or unit == "bytes" else f"{size:.1f} {unit}"
