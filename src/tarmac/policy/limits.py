"""Limits on memory and processes for a sandbox, by control groups: where this user may make them, and only there.

groups = make_groups(memory=…, processes=…) → folders, whose `cgroup.procs` the sandbox's first process writes itself to

Both kinds of cgroups are looked for: version 1 (a tree for each resource) and 2 (one tree; only below a folder that
hands its controllers down). A limit counts as set when the kernel says so on being asked. Nobody else's groups are
changed, and none is left for one with looser limits. Version 2 has not been tried.
"""

import os
import secrets
import signal
import time
from dataclasses import dataclass
from pathlib import Path

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
