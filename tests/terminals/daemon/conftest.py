"""Each test has a daemon of its own, and ends it."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tarmac.errors import DaemonUnavailable
from tarmac.terminals.daemon.connection import connect, daemon_folder
from tarmac.terminals.process.processes import look

pytestmark = pytest.mark.shell


@pytest.fixture
def daemon(own_state: Path) -> Iterator[Path]:
    """The folder of the test's own daemon, which is started by whoever needs it first."""
    folder = daemon_folder(os.environ)
    yield folder
    if (pid := daemon_pid(folder)) is not None:
        os.kill(pid, signal.SIGKILL)  # its shells end with it
        wait_gone(pid)


def daemon_pid(folder: Path) -> int | None:
    """The process of the daemon that runs; None when none does."""
    try:
        connection = connect(folder, start=False)
    except DaemonUnavailable:
        return None
    pid = connection.daemon
    connection.close()
    return pid


def wait_gone(pid: int, seconds: float = 10.0) -> None:
    """Wait until a process has ended. It is not ours, so its end is asked of the kernel."""
    import select

    process = look(pid)
    if process is None:
        return
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        ended = select.poll()
        ended.register(fd, select.POLLIN)
        assert ended.poll(seconds * 1000), f"process {pid} is still there"
    finally:
        os.close(fd)
