"""How many terminals there can be, and whether their output has a place.

Pseudo-terminals, open files, processes; the folders for kept output and for temporary files.
"""

import os
import resource
from collections.abc import Iterator
from pathlib import Path

from tarmac.errors import TarmacError
from tarmac.paths import private_dir, remove_scratch, scratch_dir, state_dir
from tarmac.terminals.doctor.check import Case, Finding, Findings, Level, aside

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
