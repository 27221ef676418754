"""bubblewrap on this machine: whether it can make a sandbox, by which flags, and what then holds. Found by trying it.

probe("bwrap") → BwrapProgram(path, flags, holds), or SandboxUnavailable, which says why
"""

import os
import secrets
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tarmac.errors import SandboxUnavailable
from tarmac.paths import remove_scratch, scratch_dir
from tarmac.seccomp import sandbox_filter

# Joins the control groups, opens the filter, becomes bwrap. Without any of these it does not start.
JOIN = """
while [ "$1" != -- ]; do echo 0 >"$1/cgroup.procs" || exit 126; shift; done
shift; [ -z "$1" ] || exec 9<"$1" || exit 126; shift; exec "$@"
"""
# What holds, told from within; one word for each.
_TRY = r"""
(: >"$1/made") 2>/dev/null || echo files
[ $$ = 1 ] && [ "$(ls /proc | grep -c '^[0-9]')" -lt 9 ] && echo processes
[ "$(grep -c : /proc/net/dev)" = 1 ] && echo network
grep -q '^CapEff:[[:space:]]*0*$' /proc/self/status && [ ! -w /proc/sys/kernel/core_pattern ] && echo privileges
grep -q '^Seccomp:[[:space:]]*2' /proc/self/status && echo calls
"""


@dataclass(frozen=True, slots=True)
class BwrapProgram:
    """A bwrap that works, and how."""

    path: str
    flags: tuple[str, ...]
    holds: frozenset[str]


_BASE = ("--unshare-pid", "--unshare-ipc", "--unshare-cgroup-try", "--cap-drop", "ALL")
# The best first: in a user namespace that allows no other, in one that does, and for root without.
_WAYS = (("--unshare-user", "--disable-userns"), ("--unshare-user",), ())


@cache
def probe(program: str) -> BwrapProgram:
    """The way that works here, tried out; SandboxUnavailable when none does. Only a success is remembered."""
    path = shutil.which(program)
    if path is None:
        raise SandboxUnavailable(
            f"there is no `{program}` on this machine", hint="install bubblewrap (on Debian: apt install bubblewrap)"
        )
    why = ""
    outside = scratch_dir(os.environ)
    try:
        call_filter = sandbox_filter()
        (outside / "filter").write_bytes(call_filter or b"")
        for way in _WAYS if os.geteuid() == 0 else _WAYS[:2]:
            flags = (*_BASE, *way)
            words = [path, *flags, "--die-with-parent", "--as-pid-1", "--unshare-net", "--ro-bind", "/", "/"]
            words += ["--dev", "/dev", "--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys"]
            words += ["--perms", "1777", "--size", "1048576", "--tmpfs", "/var/tmp"]
            words += [*(["--seccomp", "9"] if call_filter else []), "--", "/bin/sh", "-c", _TRY, "sh", str(outside)]
            tried = subprocess.run(
                ["/bin/sh", "-c", JOIN, "sh", "--", str(outside / "filter"), *words],
                capture_output=True,
                text=True,
                timeout=10,
                check=False,
                stdin=subprocess.DEVNULL,
            )
            holds = frozenset(tried.stdout.split())
            if {"files", "processes", "privileges"} <= holds:
                return BwrapProgram(path, flags, holds)
            why = (
                why or tried.stderr.strip().rpartition("\n")[2] or f"only {', '.join(sorted(holds)) or 'nothing'} held"
            )
    except (OSError, subprocess.TimeoutExpired) as error:
        why = str(error)
    finally:
        remove_scratch(outside)
    raise SandboxUnavailable(
        f"`{program}` can't make a sandbox here: {why}",
        hint="user namespaces may be turned off: see kernel.unprivileged_userns_clone, user.max_user_namespaces",
    )


PREFIX = "tarmac-"
PATIENCE = 0.2  # seconds; the kernel takes a moment to forget the dead


@dataclass(frozen=True, slots=True)
class Groups:
    """What was made, and what is limited by it."""

    folders: tuple[Path, ...] = ()
    memory: bool = False
    processes: bool = False

    def close(self) -> None:
        """End what is left in them, and remove them; one that takes its time goes with the next who makes some."""
        end = time.monotonic() + PATIENCE
        for folder in self.folders:
            while not _remove(folder) and time.monotonic() < end:
                for pid in _lines(folder / "cgroup.procs"):
                    _kill(int(pid))
                time.sleep(0.001)


def make_groups(*, memory: int | None, processes: int | None) -> Groups:
    """Groups with these limits, as far as that is possible; with none of them when it is not."""
    folders: list[Path] = []
    done: set[str] = set()
    wanted = {"memory": memory, "pids": processes}
    for controller, limit in wanted.items():
        if limit is None:
            continue
        for parent, names in _places(controller):
            shared = next((each for each in folders if each.parent == parent), None)
            folder = shared or _make(parent)
            if folder and _limit(folder, names, limit):
                done.add(controller)
                folders += [] if shared else [folder]
                break
            if folder and not shared:
                folder.rmdir()
    return Groups(tuple(folders), memory="memory" in done, processes="pids" in done)


def _places(controller: str) -> list[tuple[Path, tuple[str, ...]]]:
    """Where a group with this controller could be made, best first, and the files that hold its limit."""
    found: list[tuple[Path, tuple[str, ...]]] = []
    mounts = _mounts()
    for line in _lines(Path("/proc/self/cgroup")):
        number, names, path = line.split(":", 2)
        if controller in names.split(","):
            root = mounts.get(controller)
            files = {"memory": ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes"), "pids": ("pids.max",)}
            found += [(root / path.lstrip("/"), files[controller])] if root else []
        elif number == "0" and not names and "" in mounts:
            own = mounts[""] / path.lstrip("/")
            handed_down = [
                each
                for each in (own, *own.parents)
                if each.is_relative_to(mounts[""])
                and controller in " ".join(_lines(each / "cgroup.subtree_control")).split()
            ]
            found += [(each, (f"{controller}.max",)) for each in handed_down]
    return found


def _mounts() -> dict[str, Path]:
    """Controller → where its tree is; "" for the one tree of version 2."""
    found: dict[str, Path] = {}
    for line in _lines(Path("/proc/self/mountinfo")):
        before, _, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        if len(fields) < 5 or len(kind) < 3 or fields[3] != "/":  # a part of a tree only: a container's
            continue
        place = Path(fields[4].encode().decode("unicode_escape"))
        if kind[0] == "cgroup2":
            found.setdefault("", place)
        elif kind[0] == "cgroup":
            for each in kind[2].split(","):
                found.setdefault(each, place)
    return found


def _make(parent: Path) -> Path | None:
    folder = parent / f"{PREFIX}{os.getpid()}-{secrets.token_hex(4)}"
    try:
        _sweep(parent)
        folder.mkdir()
    except OSError:
        return None
    return folder


def _sweep(parent: Path) -> None:
    """Remove what one of us left: rmdir takes only those that are empty of processes."""
    for each in parent.glob(f"{PREFIX}*-*"):
        owner = each.name.removeprefix(PREFIX).partition("-")[0]
        old = time.time() - each.stat().st_mtime > 60  # a new one of ours may be waiting for its first process
        if owner.isdigit() and (old if owner == str(os.getpid()) else not Path(f"/proc/{owner}").exists()):
            _remove(each)


def _remove(folder: Path) -> bool:
    """Whether it is gone: the kernel keeps one with processes in it."""
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        pass


def _limit(folder: Path, names: tuple[str, ...], limit: int) -> bool:
    """Set it; True when the kernel has it. The first file must be there, others are when swap is counted."""
    for name in names:
        file = folder / name
        if not file.exists() and name != names[0]:
            continue
        try:
            file.write_text(str(limit))
        except OSError:
            return False
    page = os.sysconf("SC_PAGE_SIZE")
    said = "".join(_lines(folder / names[0]))
    return said.isdigit() and abs(int(said) - limit) < page


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text().splitlines()
    except OSError:
        return []
