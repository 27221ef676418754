"""What every test gets: a state directory of its own, and a check that it left nothing behind."""

import asyncio
import os
import shutil
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Started by nohup, or below a program that ignores it: the programs that tests start would ignore it as well.
for _each in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(_each) is signal.SIG_IGN:
        signal.signal(_each, signal.default_int_handler if _each is signal.SIGINT else signal.SIG_DFL)

# CI looks at the same examples each time, so that a red run can be run again; at a desk hypothesis looks for new ones.
# No property fails by the clock: the machine may be busy.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")
settings.register_profile("ci", parent=settings.get_profile("patient"), derandomize=True)
if os.environ.get("TARMAC_REQUIRE_ALL"):
    settings.load_profile("ci")
settings.register_profile(
    "quick", parent=settings.get_profile("patient"), max_examples=15
)  # `make check`: each property a little, all of them each time
if os.environ.get("TARMAC_QUICK"):
    settings.load_profile("quick")


@pytest.fixture(autouse=True)
def own_state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Spools go to a folder of the test's own; start-up files are those of an empty home."""
    home = tmp_path_factory.mktemp("home")
    # a fish that finds none reads all manual pages in the background, for half a minute of CPU
    (home / ".local/share/fish/generated_completions").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("TARMAC_STATE_DIR", str(home / "state"))
    # of the `make test` around us, and of pytest-xdist
    for name in ("MAKELEVEL", "MAKEFLAGS", "MFLAGS", "COLUMNS", "LINES", "PYTEST_XDIST_WORKER"):
        monkeypatch.delenv(name, raising=False)
    yield home


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """No child process and no file descriptor outlives a test."""
    fds, children = _open_files(), _children()
    yield
    end = time.monotonic() + 2.0
    while time.monotonic() < end and (_open_files() > fds or _children() - children):
        time.sleep(0.01)
    assert _children() - children == set(), "processes were left behind"
    assert _open_files() <= fds, f"file descriptors were left open: {_names()}"


@pytest.fixture(autouse=True)
async def no_task_left() -> AsyncIterator[None]:
    """No asyncio task outlives a test that ran in an event loop."""
    before = asyncio.all_tasks()
    yield
    left = {each for each in asyncio.all_tasks() - before if not each.done() and each is not asyncio.current_task()}
    assert left == set(), f"tasks were left running: {left}"


def _open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir())) if Path("/proc/self/fd").exists() else 0


def _names() -> list[str]:
    names = []
    for each in Path("/proc/self/fd").iterdir():
        try:
            names.append(str(each.readlink()))
        except OSError:
            pass
    return sorted(names)


def _children() -> set[int]:
    found: set[int] = set()
    for each in Path("/proc/self/task").glob("*/children"):
        try:
            found.update(map(int, each.read_text().split()))
        except OSError:
            pass
    return found


def lacking(what: str) -> None:
    """This machine can't run the test: skipped loudly, or failed under TARMAC_REQUIRE_ALL."""
    if os.environ.get("TARMAC_REQUIRE_ALL"):
        pytest.fail(f"{what}, and TARMAC_REQUIRE_ALL is set")
    pytest.skip(f"{what}: this proves nothing here")


@pytest.fixture
def require() -> Callable[[str], None]:
    """Call it with the name of a program that the test needs."""

    def need(program: str) -> None:
        if shutil.which(program) is None:
            lacking(f"{program} is not installed")

    return need


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of 256 KiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(command, check=False, capture_output=True).returncode:
        lacking("no right to mount a file system")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)
