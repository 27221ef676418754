"""Finding and ending all that a shell started, with real processes that would rather stay."""

import asyncio
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import uuid4

import pytest

from tarmac.terminals.process import prctl, processes
from tarmac.terminals.process.processes import Process, descendants, look, state, sweep
from tarmac.terminals.process.signals import continue_if_stopped, end, signal_all

pytestmark = [pytest.mark.skipif(sys.platform != "linux", reason="asks the Linux kernel"), pytest.mark.slow]

PATIENCE = 30.0
PYTHON = os.path.realpath(sys.executable)
PYTHON_NAME = Path(PYTHON).name[:15]  # as the kernel cuts it
DAEMON = """
import os, time
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
print("ready", flush=True)
time.sleep(1000)
"""
RUNAWAY = """
import os, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
while True:
    if os.fork():
        os._exit(0)
"""
MAIN_THREAD_GONE = """
import ctypes, threading, time
threading.Thread(target=time.sleep, args=(1000,)).start()
ctypes.CDLL(None).pthread_exit(None)
"""
FORKS_IN_A_THREAD = """
import subprocess, threading
thread = threading.Thread(target=subprocess.run, args=(["sleep", "1000"],))
thread.start()
thread.join()
"""
IGNORES_TERM = """
trap '' TERM HUP INT
echo ready
while :; do sleep 1000; done
"""
KEEPS_FORKING = """
trap '' TERM
echo ready
while :; do sleep 1000 & setsid sleep 1000 & sleep 0.01; done
"""


@dataclass
class Tree:
    """A shell that is a subreaper, as in a terminal; what it started is below it."""

    shell: subprocess.Popen[bytes]
    cookie: bytes

    @property
    def pid(self) -> int:
        return self.shell.pid

    def find(self) -> set[Process]:
        return descendants(self.pid)

    def says(self) -> bytes:
        assert self.shell.stdout
        return self.shell.stdout.readline()

    def names(self) -> list[str]:
        return sorted(processes.name(each.pid) for each in self.find())

    def until_below(self, *names: str) -> set[Process]:
        """Wait until exactly these are below the shell; return them."""
        until(lambda: self.names() == sorted(names), lambda: f"below: {self.names()}")
        return self.find()


@contextmanager
def shell(script: str) -> Iterator[Tree]:
    """Run a script in bash, a session leader and subreaper, which then stays; end all it started afterwards."""
    prctl.prepare()
    cookie = f"TARMAC_TEST={uuid4().hex}".encode()
    name, _, value = cookie.partition(b"=")
    started = subprocess.Popen(
        ["bash", "-c", f"{script}\nread"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environb, name: value},
        start_new_session=True,
        preexec_fn=prctl.become_subreaper,
    )
    try:
        yield Tree(started, cookie)
    finally:
        while rest := descendants(started.pid):
            signal_all(rest, signal.SIGKILL)
        started.kill()
        started.wait()
        while rest := sweep(session=started.pid, cookie=cookie):
            signal_all(rest, signal.SIGKILL)
        assert started.stdin and started.stdout
        started.stdin.close()
        started.stdout.close()


def until(holds: Callable[[], object], what: Callable[[], str] = str) -> None:
    deadline = time.monotonic() + PATIENCE
    pause = 0.001
    while not holds():
        assert time.monotonic() < deadline, what()
        time.sleep(pause)
        pause = min(pause * 2, 0.02)


def identity(pid: int) -> Process:
    found = look(pid)
    assert found
    return found


def test_all_below_a_shell_are_found_wherever_they_hid() -> None:
    script = "sleep 1000 & setsid sleep 1000 & nohup sleep 1000 & env -i sleep 1000 & (sleep 1000 &);"
    with shell(f"{script} {PYTHON} -c '{DAEMON}'") as tree:
        tree.says()
        tree.until_below("sleep", "sleep", "sleep", "sleep", "sleep", PYTHON_NAME)


def test_children_of_any_thread_are_found() -> None:
    with shell(f"{PYTHON} -c '{FORKS_IN_A_THREAD}'") as tree:
        tree.until_below(PYTHON_NAME, "sleep")


def test_a_zombie_is_not_living() -> None:
    with shell("sh -c 'sleep 0 & echo $!; exec sleep 1000'") as tree:
        zombie = int(tree.says())
        until(lambda: state(zombie) == "Z")
        assert look(zombie) is None
        tree.until_below("sleep")


def test_a_process_whose_main_thread_has_ended_still_lives() -> None:
    with shell(f"{PYTHON} -c '{MAIN_THREAD_GONE}' & echo $!") as tree:
        pid = int(tree.says())
        until(lambda: state(pid) == "Z")
        assert tree.find() == {identity(pid)}


def test_without_the_kernels_lists_the_parents_tell_the_same() -> None:
    with shell("sleep 1000 & (sleep 1000; :) & setsid sleep 1000 &") as tree:
        found = tree.until_below("bash", "sleep", "sleep", "sleep")
        by_scan = {each.process for _, each in processes.below(tree.pid, processes._scan()) if each}
        by_ps = {pid for pid, _ in processes.below(tree.pid, processes._by_ps("-ax"))}
    assert (by_scan, by_ps) == (found, {each.pid for each in found})


def test_a_process_is_known_by_more_than_its_pid() -> None:
    with shell("sleep 1000 &") as tree:
        (sleeper,) = tree.until_below("sleep")
        reused = replace(sleeper, started=sleeper.started + 1)
        assert (signal_all([reused], signal.SIGKILL), look(sleeper.pid)) == (0, sleeper)
        assert signal_all([reused, sleeper], signal.SIGKILL) == 1
        tree.until_below()
        assert signal_all([sleeper], signal.SIGKILL) == 0


def test_a_name_full_of_brackets_and_spaces_does_not_confuse(tmp_path: Path) -> None:
    odd = tmp_path / "a) R 1 (b"
    odd.symlink_to("/bin/sleep")
    with shell(f"'{odd}' 1000 &") as tree:
        (sleeper,) = tree.until_below("a) R 1 (b")
        assert processes.command_line(sleeper.pid) == [str(odd), "1000"]
        until(lambda: state(sleeper.pid) == "S")


def test_what_is_gone_is_told_as_gone() -> None:
    with shell("exit 0") as tree:
        tree.shell.wait()
        assert (look(tree.pid), state(tree.pid), processes.name(tree.pid)) == (None, None, "")
        assert (processes.command_line(tree.pid), tree.find(), continue_if_stopped(tree.pid)) == ([], set(), False)


def test_a_stopped_process_is_continued_and_only_that() -> None:
    with shell("sleep 1000 &") as tree:
        (sleeper,) = tree.until_below("sleep")
        assert not continue_if_stopped(sleeper.pid)
        stop(sleeper)
        assert continue_if_stopped(sleeper.pid)
        until(lambda: state(sleeper.pid) == "S")


async def test_ending_leaves_nothing_below_the_shell_and_the_shell_alone() -> None:
    script = "sleep 1000 & setsid sleep 1000 & nohup sleep 1000 & env -i sleep 1000 & (sleep 1000 &);"
    with shell(f"{script} {PYTHON} -c '{DAEMON}'") as tree:
        tree.says()
        tree.until_below("sleep", "sleep", "sleep", "sleep", "sleep", PYTHON_NAME)
        assert await end(tree.find, grace=PATIENCE) == set()
        assert tree.find() == set()
        assert look(tree.pid)


async def test_only_what_was_found_is_ended() -> None:
    with shell("sleep 1000 & setsid sleep 1000 &") as tree:
        one, other = tree.until_below("sleep", "sleep")
        assert await end(lambda: tree.find() - {other}, grace=PATIENCE) == set()
        assert tree.find() == {other}
        assert await end(lambda: {one, other}, grace=PATIENCE) == set()  # a set that never changes will do
        assert await end(lambda: {one, other}, grace=PATIENCE) == set()


async def test_a_polite_process_may_clean_up_and_what_it_starts_for_that_may_work(tmp_path: Path) -> None:
    done = tmp_path / "done"
    script = tmp_path / "polite.sh"
    script.write_text(f"trap 'bash -c \"sleep 0.1; echo cleaned\" > {done}; exit' TERM\necho ready; sleep 1000 & wait")
    with shell(f"bash {script}") as tree:
        tree.says()
        assert await end(tree.find, grace=PATIENCE) == set()
    assert done.read_text() == "cleaned\n"


async def test_who_ignores_the_request_is_killed_after_the_grace() -> None:
    with shell(f'bash -c "{IGNORES_TERM}"') as tree:
        tree.says()
        start = time.monotonic()
        assert await end(tree.find, grace=0.2) == set()
        assert (tree.find(), time.monotonic() - start >= 0.2) == (set(), True)


async def test_without_grace_nobody_is_asked(tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    with shell(f"bash -c 'trap \"touch {asked}\" TERM; echo ready; while :; do sleep 0.01; done'") as tree:
        tree.says()
        assert await end(tree.find, grace=0) == set()
        assert (tree.find(), asked.exists()) == (set(), False)


async def test_a_stopped_process_is_ended_within_its_grace() -> None:
    with shell("sleep 1000 &") as tree:
        (sleeper,) = tree.until_below("sleep")
        stop(sleeper)
        start = time.monotonic()
        assert await end(tree.find, grace=PATIENCE) == set()
        assert time.monotonic() - start < PATIENCE


async def test_a_process_that_keeps_forking_is_ended_with_all_its_children() -> None:
    with shell(f'bash -c "{KEEPS_FORKING}"') as tree:
        tree.says()
        until(lambda: len(tree.find()) > 9)
        assert await end(tree.find, grace=0.1, patience=PATIENCE) == set()
        assert tree.find() == set()


async def test_a_process_that_runs_away_by_forking_is_caught() -> None:
    """Each lives for a moment only: it forks, and leaves the rest to its child."""
    with shell(f"{PYTHON} -c '{RUNAWAY}'") as tree:
        tree.says()
        assert await end(tree.find, grace=0, patience=PATIENCE) == set()
        assert tree.find() == set()


async def test_ending_lets_other_tasks_run() -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.005)
            ticks += 1

    with shell(f'bash -c "{IGNORES_TERM}"') as tree:
        tree.says()
        ticking = asyncio.create_task(tick())
        await end(tree.find, grace=0.3)
        ticking.cancel()
    assert ticks > 5


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody who may not signal")
def test_who_may_not_be_signalled_is_counted_and_survives() -> None:
    with shell("sleep 1000 &") as tree:
        (sleeper,) = tree.until_below("sleep")

        def ask() -> object:
            return signal_all([sleeper], signal.SIGTERM), asyncio.run(end(tree.find, grace=0.05, patience=0.1))

        assert as_nobody(ask) == (1, {sleeper})
        assert tree.find() == {sleeper}


def test_after_the_shells_sudden_death_its_orphans_are_swept_up() -> None:
    with shell(f"sleep 1000 & setsid sleep 1000 & env -i sleep 1000 & {PYTHON} -c '{DAEMON}'") as tree:
        tree.says()
        orphans = tree.until_below("sleep", "sleep", "sleep", PYTHON_NAME)
        tree.shell.kill()
        tree.shell.wait()
        assert tree.find() == set()
        assert sweep(session=tree.pid, cookie=tree.cookie) == orphans
        spared = next(iter(orphans))
        assert sweep(session=tree.pid, cookie=tree.cookie, exclude={spared.pid}) == orphans - {spared}
        assert len(sweep(session=tree.pid, cookie=tree.cookie[:-1])) == 2  # half a cookie is none


def test_a_sweep_spares_a_session_whose_leader_lives_and_ourselves() -> None:
    with shell("env -i sleep 1000 &") as tree:
        tree.until_below("sleep")
        assert sweep(session=tree.pid, cookie=b"TARMAC_TEST=nobody has this") == set()
    name, value = next(iter(os.environb.items()))
    assert os.getpid() not in {each.pid for each in sweep(session=-1, cookie=name + b"=" + value)}


def stop(process: Process) -> None:
    signal_all([process], signal.SIGSTOP)
    until(lambda: state(process.pid) == "T")


def as_nobody(ask: Callable[[], object]) -> object:
    """Ask in a process of another user."""
    ours, theirs = os.pipe()
    child = os.fork()
    if not child:
        os.setgid(65534)
        os.setuid(65534)
        os.write(theirs, pickle.dumps(ask()))
        os._exit(0)
    os.close(theirs)
    with os.fdopen(ours, "rb") as answer:
        found: object = pickle.loads(answer.read())
    os.waitpid(child, 0)
    return found
