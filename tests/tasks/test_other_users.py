"""Other users of the machine: they read nothing of a task, and can't lay a trap in its folders."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.tasks.engine import a_task, call, done, turn

from tarmac.errors import TarmacError
from tarmac.terminals.host.host import runtime_dir

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
SECRET = "a-word-that-nobody-else-reads"


@pytest.fixture
def open_place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that other users can reach, with Tarmac's state in it; and a person whose files anybody may read."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        place.chmod(0o755)
        for variable in ("XDG_STATE_HOME", "XDG_RUNTIME_DIR"):
            monkeypatch.delenv(variable, raising=False)
        monkeypatch.setenv("TARMAC_STATE_DIR", str(place / "state"))
        monkeypatch.setenv("TMPDIR", str(place / "tmp"))
        (place / "tmp").mkdir(mode=0o777)
        (place / "tmp").chmod(0o1777)
        before = os.umask(0)
        try:
            yield place
        finally:
            os.umask(before)


def as_nobody(*words: str) -> str:
    become = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    done = subprocess.run([*become, *words], capture_output=True, text=True, check=False, timeout=60)
    return done.stdout


@pytest.mark.shell
async def test_another_user_reads_nothing_of_a_task_and_changes_nothing(open_place: Path) -> None:
    """P8: log, output, blobs, index and scratch folders, while it runs and after, whatever the umask is."""
    work = open_place / "work"
    runs = turn(call("execute_command", command=f"echo {SECRET}; sh -c 'echo {SECRET} > kept.txt'; sleep 0"))
    async with a_task(work, runs, done(), auto="all") as task:
        (work / "kept.txt").touch(0o600)
        await task.run_until_idle()
        places = [str(open_place / "state"), str(open_place / "tmp")]
        during = as_nobody("grep", "-rl", SECRET, *places)
        writable = as_nobody("find", *places, "-mindepth", "1", "-writable")
    after = as_nobody("grep", "-rl", SECRET, *places)
    kept = [
        each for each in (open_place / "state").rglob("*") if each.is_file() and SECRET.encode() in each.read_bytes()
    ]
    assert kept, "the task has left nothing to read, so that this proves nothing"
    assert (during, after, writable) == ("", "", "")


async def test_a_state_folder_of_another_user_is_not_used(open_place: Path) -> None:
    """P8: they could read what is written there, and put grants into it."""
    state = open_place / "state"
    state.mkdir(parents=True)
    os.chown(state, 65534, 65534)
    with pytest.raises(TarmacError) as refused:
        async with a_task(open_place / "work", done()):
            pass
    assert "another user" in str(refused.value), refused.value


def test_a_socket_folder_that_another_user_made_first_is_not_used_and_locks_nobody_out(open_place: Path) -> None:
    """F2: its name under /tmp is known beforehand."""
    user = 1_900_000_000 + os.getpid()
    trap, state = Path(f"/tmp/tarmac-run-{user}"), open_place / "state"
    trap.mkdir()
    state.mkdir()
    try:
        os.chown(trap, 65534, 65534)
        os.chown(state, user, user)
        reads, writes = os.pipe()
        if (child := os.fork()) == 0:
            os.setresuid(user, user, user)
            try:
                os.write(writes, str(runtime_dir()).encode())
            except BaseException as error:
                os.write(writes, repr(error).encode())
            os._exit(0)
        os.waitpid(child, 0)
        os.close(writes)
        said = os.read(reads, 1000).decode()
        os.close(reads)
        assert said == str(state / "run")
    finally:
        trap.rmdir()
