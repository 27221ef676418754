"""Programs under limits that the kernel keeps: processes, memory, open files."""

import os
import resource
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import lacking

TARMAC = (sys.executable, "-m", "tarmac")
PATIENCE = 60.0  # seconds that any of them may take on a busy machine: far more than it needs, and not for ever


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended."""

    status: int
    out: str
    err: str

    @property
    def said(self) -> str:
        return self.out + self.err


@contextmanager
def cgroup(controller: str, **limits: int) -> Iterator[Path]:
    """A control group of its own; `pids_max=3` writes 3 into `pids.max`. What is left in it is killed."""
    for root in (Path("/sys/fs/cgroup") / controller, Path("/sys/fs/cgroup")):
        group = root / f"tarmac-test-{secrets.token_hex(4)}"
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            for name, value in limits.items():
                (group / name.replace("_", ".", 1)).write_text(str(value))
            break
        except OSError:
            group.rmdir()
    else:
        lacking(f"no control group for {controller} can be made")
    try:
        yield group
    finally:
        _emptied(group)
        group.rmdir()


def _emptied(group: Path) -> None:
    end = time.monotonic() + 5
    while pids := (group / "cgroup.procs").read_text().split():
        for pid in pids:
            try:
                os.kill(int(pid), 9)
            except ProcessLookupError:
                pass
        assert time.monotonic() < end, f"{pids} can't be killed"
        time.sleep(0.01)


def joining(group: Path) -> Callable[[], None]:
    """For `preexec_fn`: the new process goes into the group before it does anything else."""
    target = str(group / "cgroup.procs")

    def join() -> None:
        fd = os.open(target, os.O_WRONLY)
        os.write(fd, b"0")
        os.close(fd)

    return join


def with_memory(limit: int) -> Callable[[], None]:
    """For `preexec_fn`: so many bytes of address space."""
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def ended(argv: Sequence[str], prepare: Callable[[], None], *, cwd: Path, stdin: str = "") -> Ended:
    """Run it to its end; one that does not come to an end fails the test."""
    process = subprocess.Popen(
        argv,
        cwd=cwd,
        preexec_fn=prepare,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    )
    try:
        out, err = process.communicate(stdin, timeout=PATIENCE)
    finally:
        process.kill()
        process.wait()
    return Ended(process.returncode, out, err)
