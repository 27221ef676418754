"""Who waits for input on a terminal, told of real programs on a real PTY."""

import fcntl
import os
import pickle
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tarmac.terminals.process import prctl, processes, signals
from tarmac.terminals.process.tty_probe import Waiting, Wants, probe, slave_device, slave_path

pytestmark = [pytest.mark.skipif(sys.platform != "linux", reason="asks the Linux kernel"), pytest.mark.slow]

PATIENCE = 30.0
PYTHON = os.path.realpath(sys.executable)
PYTHON_NAME = Path(PYTHON).name[:15]  # as the kernel cuts it
ENVIRONMENT = {**os.environ, "TERM": "xterm", "PS1": "$ ", "INPUTRC": "/dev/null", "HISTFILE": ""}


@dataclass
class Screen:
    """A program on a terminal of its own, and what it has written there."""

    master: int
    pid: int
    written: bytes = b""

    def type(self, text: bytes) -> None:
        os.write(self.master, text)

    def probe(self) -> Waiting | None:
        return probe(self.master, self.pid)

    def until(self, holds: Callable[[], object]) -> None:
        """Read what is written until something holds."""
        deadline = time.monotonic() + PATIENCE
        while not holds():
            assert time.monotonic() < deadline, f"never came; written: {self.written!r}"
            if select.select([self.master], [], [], 0.005)[0]:
                self.written += os.read(self.master, 65536)

    def until_written(self, text: bytes) -> None:
        self.until(lambda: text in self.written)

    def until_waiting(self) -> Waiting:
        """The first answer that is not "nobody"."""
        found: Waiting | None = None

        def waits() -> bool:
            nonlocal found
            found = self.probe()
            return found is not None

        self.until(waits)
        assert found
        return found

    def wants(self) -> tuple[Wants, str]:
        now = self.until_waiting()
        return now.wants, now.name

    def answers(self) -> set[Waiting | None]:
        """What fifty probes say."""
        return {self.probe() for _ in range(50)}


@contextmanager
def on_terminal(*argv: str) -> Iterator[Screen]:
    """Run a program as leader and subreaper of the session of a new PTY; end all it started afterwards."""
    prctl.prepare()
    master, slave = os.openpty()

    def take_over() -> None:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        prctl.become_subreaper()

    leader = subprocess.Popen(
        argv, stdin=slave, stdout=slave, stderr=slave, env=ENVIRONMENT, start_new_session=True, preexec_fn=take_over
    )
    try:
        yield Screen(master, leader.pid)
    finally:
        while rest := processes.descendants(leader.pid):
            signals.signal_all(rest, signal.SIGKILL)
        leader.kill()
        leader.wait()
        os.close(master)
        os.close(slave)


def python(code: str) -> tuple[str, ...]:
    return (PYTHON, "-c", code)


SELECTOR = """
import selectors, sys
with selectors.{kind}() as s:
    s.register(0, selectors.EVENT_READ)
    s.select({timeout})
"""
NESTED_EPOLL = """
import select
inner, outer = select.epoll(), select.epoll()
inner.register(0, select.EPOLLIN)
outer.register(inner.fileno(), select.EPOLLIN)
outer.poll()
"""
RAW = "import tty; tty.setcbreak(0); "
READER_THREAD = """
import sys, threading
threading.Thread(target=sys.stdin.readline, daemon=True).start()
threading.Event().wait()
"""
LEADER_THREAD_GONE = """
import ctypes, os, threading
threading.Thread(target=lambda: os.read(0, 1)).start()
ctypes.CDLL(None).pthread_exit(None)
"""


@pytest.mark.parametrize(
    ("argv", "wants", "name"),
    [
        pytest.param(("bash", "-c", "read x"), Wants.LINE, "bash", id="bash read"),
        pytest.param(("bash", "-c", "read -t 100 x"), Wants.LINE, "bash", id="bash read with a timeout"),
        pytest.param(("bash", "-c", "read -s x"), Wants.SECRET, "bash", id="bash read -s"),
        pytest.param(("bash", "-c", "read -n 1 x"), Wants.KEYS, "bash", id="bash read -n"),
        pytest.param(("bash", "-c", "read -e x"), Wants.KEYS, "bash", id="bash read -e"),
        pytest.param(("bash", "-c", "read x < /dev/tty"), Wants.LINE, "bash", id="bash read from /dev/tty"),
        pytest.param(("sh", "-c", "read x"), Wants.LINE, "sh", id="sh read"),
        pytest.param(("cat",), Wants.LINE, "cat", id="cat"),
        pytest.param(("bash", "-c", "cat; :"), Wants.LINE, "cat", id="cat below a shell"),
        pytest.param(("bash", "-c", "cat | sort; :"), Wants.LINE, "cat", id="first of a pipeline"),
        pytest.param(("bash", "-ic", "true | cat /dev/tty"), Wants.LINE, "cat", id="pipeline whose leader is gone"),
        pytest.param(("bash", "-c", "(cat <&3 &) 3<&0; wait; sleep 1000"), Wants.LINE, "cat", id="orphan of the group"),
        pytest.param(python("input('name: ')"), Wants.LINE, PYTHON_NAME, id="input"),
        pytest.param(python("import getpass; getpass.getpass()"), Wants.SECRET, PYTHON_NAME, id="getpass"),
        *(
            pytest.param(
                python(SELECTOR.format(kind=kind, timeout=timeout)), Wants.LINE, PYTHON_NAME, id=f"{kind} {timeout}"
            )
            for kind in ("SelectSelector", "PollSelector", "EpollSelector")
            for timeout in ("", "1000")
        ),
        pytest.param(python(NESTED_EPOLL), Wants.LINE, PYTHON_NAME, id="an epoll in an epoll"),
        pytest.param(python("import os; os.readv(0, [bytearray(9)])"), Wants.LINE, PYTHON_NAME, id="readv"),
        pytest.param(python(RAW + "import os; os.read(0, 1)"), Wants.KEYS, PYTHON_NAME, id="keys"),
        pytest.param(python(READER_THREAD), Wants.LINE, PYTHON_NAME, id="a thread that reads"),
        pytest.param(python(LEADER_THREAD_GONE), Wants.LINE, PYTHON_NAME, id="a thread that outlived the main one"),
    ],
)
def test_a_program_that_waits_for_input_is_told_at_its_first_sight(
    argv: tuple[str, ...], wants: Wants, name: str
) -> None:
    with on_terminal(*argv) as screen:
        assert screen.wants() == (wants, name)
        assert screen.answers() == {screen.probe()}  # and it stays so


@pytest.mark.parametrize("argv", [("vi", "-u", "NONE", "-N"), ("less", "/etc/passwd"), ("top",), ("node",)])
def test_a_full_screen_program_waits_for_keys(argv: tuple[str, ...], require: Callable[[str], None]) -> None:
    require(argv[0])
    with on_terminal(*argv) as screen:
        screen.until(lambda: (now := screen.probe()) and now.wants is Wants.KEYS)


READY = "print('ready', flush=True); "
BLOCKED_ON_A_SOCKET = """
import select, socket
s = socket.create_server(('127.0.0.1', 0))
print('ready', flush=True)
{wait}
"""


@pytest.mark.parametrize(
    "argv",
    [
        pytest.param(("bash", "-c", "echo ready; sleep 1000"), id="sleep"),
        pytest.param(("bash", "-c", "echo ready; while :; do :; done"), id="a busy shell"),
        pytest.param(("bash", "-c", "echo ready; sleep 1000 & wait"), id="a shell that waits"),
        pytest.param(("bash", "-c", "stty -echo; echo ready; sleep 1000"), id="echo off, but asleep"),
        pytest.param(("bash", "-c", "stty raw; echo ready; sleep 1000"), id="raw, but asleep"),
        pytest.param(("bash", "-c", "echo ready; sleep 1000 | cat"), id="cat reads a pipe"),
        pytest.param(("bash", "-c", "echo ready; cat <(sleep 1000)"), id="cat reads a slow file"),
        pytest.param(("bash", "-ic", "echo ready; sleep 1000 | sleep 1000"), id="a pipeline with its own group"),
        pytest.param(python(READY + "x = 0\nwhile True: x += 1"), id="a busy loop"),
        pytest.param(python("print('name: ready', flush=True); import time; time.sleep(1000)"), id="only looks so"),
        pytest.param(python(READY + "import threading; k = threading.Lock(); k.acquire(); k.acquire()"), id="a lock"),
        pytest.param(python(BLOCKED_ON_A_SOCKET.format(wait="s.accept()")), id="accept"),
        pytest.param(python(BLOCKED_ON_A_SOCKET.format(wait="select.select([s], [], [])")), id="select on a socket"),
        pytest.param(
            python(BLOCKED_ON_A_SOCKET.format(wait="select.select([s], [], [0])")), id="select for exceptions only"
        ),
        pytest.param(
            python(BLOCKED_ON_A_SOCKET.format(wait="p = select.poll(); p.register(s); p.register(0, 0); p.poll()")),
            id="poll on a socket, the terminal masked",
        ),
        pytest.param(
            python(BLOCKED_ON_A_SOCKET.format(wait="p = select.epoll(); p.register(s); p.poll()")),
            id="epoll on a socket",
        ),
        pytest.param(python(READY + "import asyncio; asyncio.run(asyncio.sleep(1000))"), id="asyncio"),
        pytest.param(
            python(RAW + BLOCKED_ON_A_SOCKET.format(wait="select.select([s], [], [])").lstrip()),
            id="raw, on a socket",
        ),
    ],
)
def test_a_program_that_does_something_else_is_never_said_to_wait(argv: tuple[str, ...]) -> None:
    with on_terminal(*argv) as screen:
        screen.until_written(b"ready")
        assert screen.answers() == {None}


def test_a_second_terminal_is_not_this_one() -> None:
    code = "import os; m, s = os.openpty(); print('ready', flush=True); os.read(s, 1)"
    with on_terminal(*python(code)) as screen:
        screen.until_written(b"ready")
        assert screen.answers() == {None}


def test_a_shell_at_its_prompt_waits_for_keys_and_without_line_editing_for_a_line() -> None:
    with on_terminal("bash", "--norc", "-i") as screen:
        assert screen.until_waiting() == Waiting(Wants.KEYS, _identity(screen.pid), "bash")
    with on_terminal("bash", "--norc", "--noediting", "-i") as screen:
        assert screen.until_waiting() == Waiting(Wants.LINE, _identity(screen.pid), "bash")


def test_in_nested_shells_the_innermost_is_the_one_who_waits() -> None:
    with on_terminal("bash", "--norc", "--noediting", "-i") as screen:
        screen.until_waiting()
        screen.type(b"bash --norc --noediting -i\n")
        screen.until(lambda: (now := screen.probe()) and now.process.pid != screen.pid)
        inner = screen.until_waiting()
        screen.type(b"sh -c 'read x'\n")
        screen.until(lambda: (now := screen.probe()) and now.name == "sh")
        screen.type(b"answer\n")
        screen.until(lambda: screen.probe() == inner)
        screen.type(b"exit\n")
        screen.until(lambda: (now := screen.probe()) and now.process.pid == screen.pid)
    assert inner.is_shell


def test_a_background_job_that_wants_the_terminal_is_not_the_foreground() -> None:
    with on_terminal("bash", "--norc", "--noediting", "-i") as screen:
        screen.until_waiting()
        screen.type(b"cat &\n")
        screen.until(lambda: any(processes.state(each.pid) == "T" for each in processes.descendants(screen.pid)))
        screen.until(screen.probe)
        assert {now.name if now else None for now in screen.answers()} == {"bash"}


def test_a_poll_goes_on_waiting_after_a_stop() -> None:
    """The kernel restarts it under the number of restart_syscall, which a sleep or a lock may have as well."""
    with on_terminal(*python(SELECTOR.format(kind="PollSelector", timeout=""))) as screen:
        before = screen.until_waiting()
        os.kill(screen.pid, signal.SIGSTOP)
        screen.until(lambda: processes.state(screen.pid) == "T")
        assert screen.probe() is None
        assert signals.continue_if_stopped(screen.pid)
        screen.until(lambda: screen.probe() == before)


def test_a_sleep_is_no_poll_after_a_stop() -> None:
    with on_terminal(*python(READY + "import time; time.sleep(1000)")) as screen:
        screen.until_written(b"ready")
        screen.until(lambda: processes.state(screen.pid) == "S")
        os.kill(screen.pid, signal.SIGSTOP)
        screen.until(lambda: processes.state(screen.pid) == "T")
        assert signals.continue_if_stopped(screen.pid)
        screen.until(lambda: processes.state(screen.pid) == "S")
        assert screen.answers() == {None}


def test_a_terminal_that_hung_up_has_nobody_waiting() -> None:
    with on_terminal("true") as screen:
        screen.until(lambda: processes.look(screen.pid) is None)
        assert screen.probe() is None


def test_the_other_side_of_a_terminal_has_its_path_and_its_number() -> None:
    master, slave = os.openpty()
    try:
        assert (slave_path(master), slave_device(master)) == (os.ttyname(slave), os.fstat(slave).st_rdev)
    finally:
        os.close(master)
        os.close(slave)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody who may not look")
@pytest.mark.parametrize(
    ("argv", "wants"),
    [
        pytest.param(("bash", "-c", "read -s x"), Wants.SECRET, id="a secret"),
        pytest.param(("bash", "-c", "read -n 1 x"), Wants.UNKNOWN, id="keys"),
        pytest.param(("bash", "-c", "echo ready; read x"), None, id="a line, which can't be told from a sleep"),
        pytest.param(("bash", "-c", "echo ready; sleep 1000"), None, id="a sleep"),
        pytest.param(("bash", "-c", "stty -echo; echo ready; while :; do :; done"), None, id="echo off, but busy"),
    ],
)
def test_of_processes_we_may_not_look_into_only_the_sure_is_said(argv: tuple[str, ...], wants: Wants | None) -> None:
    with on_terminal(*argv) as screen:
        if wants is None:
            screen.until_written(b"ready")
        else:
            screen.until_waiting()
        stranger = _as_nobody(screen.probe)
        assert (stranger and stranger.wants) == wants


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody who may not look")
def test_su_of_another_user_asks_for_a_secret(require: Callable[[str], None]) -> None:
    """T19: into a setuid program only root may look; the terminal's mode and its sleep tell."""
    require("setpriv")
    with on_terminal("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "su", "daemon") as screen:
        screen.until_written(b"Password: ")
        screen.until(lambda: (now := _as_nobody(screen.probe)) and now.wants is Wants.SECRET)
        found = _as_nobody(screen.probe)
    assert found and found.name == "su"


def test_a_probe_of_an_ordinary_tree_is_quick() -> None:
    with on_terminal("bash", "-c", "echo ready; sh -c 'sleep 1000 | sleep 1000; :'; :") as screen:
        screen.until_written(b"ready")
        screen.until(lambda: len(processes.descendants(screen.pid)) == 3)
        assert min(_seconds(screen.probe) for _ in range(100)) < 0.002


def _identity(pid: int) -> processes.Process:
    found = processes.look(pid)
    assert found
    return found


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _as_nobody(ask: Callable[[], Waiting | None]) -> Waiting | None:
    """Ask in a process of another user, who may see that others are there and little more."""
    ours, theirs = os.pipe()
    child = os.fork()
    if not child:
        os.setgid(65534)
        os.setuid(65534)
        os.write(theirs, pickle.dumps(ask()))
        os._exit(0)
    os.close(theirs)
    with os.fdopen(ours, "rb") as answer:
        found: Waiting | None = pickle.loads(answer.read())
    os.waitpid(child, 0)
    return found
