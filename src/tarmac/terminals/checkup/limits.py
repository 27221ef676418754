"""How many terminals there can be: pseudo-terminals, open files, processes."""

import os
import resource
from collections.abc import Iterator
from pathlib import Path

from tarmac.terminals.checkup.finding import Case, Finding, Findings, Level, aside

FILES_EACH = 6  # descriptors of ours for one terminal (tests/cli/test_doctor.py counts them)
PROCESSES_EACH = 4  # a shell, and what a command starts
SPARE_FILES = 32


async def look_at_limits(case: Case) -> Findings:
    """For each limit, whether `max_terminals` would fit."""
    for finding in await aside(lambda: list(_findings(case.settings.max_terminals))):
        yield finding


def _findings(wanted: int) -> Iterator[Finding]:
    yield _ptys(wanted)
    yield _open_files(wanted)
    yield _processes(wanted)


def _ptys(wanted: int) -> Finding:
    most, used = _number("/proc/sys/kernel/pty/max"), _number("/proc/sys/kernel/pty/nr")
    if most is None or used is None:
        return Finding(name="pseudo-terminals", level="note", what="nobody here can tell how many there may be")
    left = most - used
    return Finding(
        name="pseudo-terminals",
        level=_level(left, wanted),
        what=f"{left:,} of {most:,} are free; a registry opens at most {wanted}",
        advice="" if left >= wanted else "close terminals, or: sysctl kernel.pty.max=4096",
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
        what=f"{soft:,} for each process: room for {room:,} terminals at once",
        advice=""
        if room >= wanted
        else f"ulimit -n {'unlimited' if hard < 0 else min(hard, 4096)}, before Tarmac starts",
        facts={"soft": soft, "hard": None if hard < 0 else hard, "room": room, "wanted": wanted},
    )


def _processes(wanted: int) -> Finding:
    """The user's own limit, or that of the control group, whichever leaves less."""
    rooms: list[tuple[int, str, str]] = []
    soft, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    if soft != resource.RLIM_INFINITY and os.geteuid() != 0:  # root is not held to it
        rooms.append((soft - _threads_of(os.getuid()), f"{soft:,} for this user", "ulimit -u, in limits.conf"))
    for folder in _groups():
        most, used = _number(f"{folder}/pids.max"), _number(f"{folder}/pids.current")
        if most is not None and used is not None:
            rooms.append((most - used, f"{most:,} in this control group", "pids.max; in a container, --pids-limit"))
    if not rooms:
        return Finding(name="processes", level="ok", what="no limit that we would meet", facts={"left": None})
    left, said, remedy = min(rooms)
    need = wanted * PROCESSES_EACH
    return Finding(
        name="processes",
        level=_level(left // PROCESSES_EACH, wanted),
        what=f"{left:,} more can be started ({said})",
        advice="" if left >= need else f"end some, or raise the limit: {remedy}",
        facts={"left": left, "wanted": need},
    )


def _groups() -> Iterator[str]:
    """The control groups we are in, from the innermost to the root; version 2, and version 1's own for pids."""
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
    """All threads of a user: these are what RLIMIT_NPROC counts."""
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
    except (OSError, ValueError):  # "max" is no number: no limit
        return None
