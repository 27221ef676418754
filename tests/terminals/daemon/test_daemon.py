"""The terminal daemon itself: whom it serves, what it understands, when it ends things and itself."""

import asyncio
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from tests.terminals.daemon.conftest import daemon_pid, wait_gone

from tarmac.errors import DaemonUnavailable, StateUnavailable
from tarmac.terminals import Settings, attach_terminal, list_terminals, open_terminal
from tarmac.terminals.daemon import VERSION, Refusal, RequestKind
from tarmac.terminals.daemon.connection import Connection, RequestRefused, connect
from tarmac.terminals.daemon.kept_terminal import KeptTerminal
from tarmac.terminals.frames import Frame, FrameParser, encode
from tarmac.terminals.process import processes, tty_probe
from tarmac.terminals.terminal import Terminal

pytestmark = pytest.mark.shell
QUIET = Settings(start_up_files=False)
LOOK = """
import os, sys
from pathlib import Path
from tarmac.terminals.daemon.connection import connect, RequestRefused
try:
    connect(Path(sys.argv[1]), start=False).close()
    print("served")
except RequestRefused as error:
    print("refused", error.code)
"""


def look(folder: Path, script: Path) -> str:
    """A command line that talks to the daemon, and needs nothing of its environment."""
    script.write_text(f"import sys; sys.path[:0] = {sys.path!r}\n{LOOK}")
    return f"{sys.executable} -I {script} {folder}"


def shell_of(terminal: Terminal) -> int:
    assert isinstance(terminal, KeptTerminal)
    assert terminal.session is not None
    return terminal.session.pid


def test_a_refusal_is_read_though_the_daemon_closed_at_once() -> None:
    """F1."""
    ours, theirs = socket.socketpair()
    theirs.sendall(encode(Frame(RequestKind.ERROR, 0, {"code": Refusal.PEER, "what": "it belongs to another user"})))
    theirs.close()
    connection = Connection(ours)
    with pytest.raises(RequestRefused, match="another user") as caught:
        connection.hello()
    connection.close()
    assert caught.value.code == Refusal.PEER


DISGUISES = {
    "plainly": "",
    "no environment": "env -i ",
    "in a session of its own": "setsid -w env -i ",
    "no mark": "ulimit -x unlimited; env -i ",
    "in the place of the shell": "ulimit -x unlimited; exec env -i ",
}


@pytest.mark.parametrize("outlive", [True, False], ids=["shell of the daemon", "shell of a program"])
async def test_what_a_terminal_started_is_refused(daemon: Path, tmp_path: Path, outlive: bool) -> None:
    """F1: by its ancestors, whatever it clears."""
    command = look(daemon, tmp_path / "look.py")
    async with open_terminal(outlive=True, settings=QUIET) as keeps_the_daemon:
        async with open_terminal(outlive=outlive, settings=QUIET) as terminal:
            await terminal.run(":")
            said = {
                name: (await terminal.run(f"{words}{command}", timeout=60)).output.splitlines()[-1]
                for name, words in DISGUISES.items()
            }
            assert said == dict.fromkeys(DISGUISES, "refused peer")
            await terminal.aclose()
        here = await asyncio.to_thread(subprocess.check_output, command.split(), text=True)
        assert here == "served\n"
        await keeps_the_daemon.aclose()


async def test_another_user_is_refused(daemon: Path, tmp_path: Path) -> None:
    """F1: by the kernel's word, and the folder can't be entered."""
    async with open_terminal(outlive=True, settings=QUIET) as terminal:
        assert (daemon.stat().st_mode & 0o777, (daemon / "socket").stat().st_mode & 0o777) == (0o700, 0o600)
        assert {each.stat().st_mode & 0o077 for each in (daemon / "terminals" / terminal.id).rglob("*")} == {0}
        await terminal.aclose()


async def test_newer_and_older_programs_are_understood(daemon: Path) -> None:
    """F1: unknown fields are ignored, an unknown request is refused by its name, garbage ends the connection only."""
    async with open_terminal(outlive=True, settings=QUIET) as terminal:
        connection = connect(daemon, start=False)
        reply = connection.request(RequestKind.HELLO, {"version": VERSION + 7, "wants": ["something new"]})
        assert reply.number("version") == VERSION
        with pytest.raises(RequestRefused) as refused:
            connection.request(99, {"new": True})  # type: ignore[arg-type]
        assert refused.value.code == "unknown kind"
        with pytest.raises(RequestRefused) as refused:
            connection.request(RequestKind.SPAWN, {"id": "../x"})
        assert refused.value.code == "bad request"
        connection._stream.sendall(encode(Frame(98, 0, {"nobody": "asked"})))  # not answered
        assert connection.request(RequestKind.LIST, {}).header["terminals"]
        connection._stream.sendall(b"\xff" * 64)
        assert await asyncio.to_thread(_until_closed, connection)
        assert (await terminal.run("echo still here")).output == "still here\n"
        await terminal.aclose()


def _until_closed(connection: Connection) -> bool:
    connection._stream.settimeout(20)
    with connection._stream as stream:
        while data := stream.recv(4096):
            assert FrameParser().feed(data)
    return True


async def test_what_nobody_wants_is_ended_and_the_daemon_leaves(daemon: Path, tmp_path: Path) -> None:
    """F1: after its time to live, also what ignores a hang-up."""
    async with open_terminal(outlive=True, settings=QUIET) as terminal:
        job = int((await terminal.run("(trap '' HUP TERM; exec sleep 1000) & echo $!")).output.split()[-1])
        shell, pid = shell_of(terminal), daemon_pid(daemon)
        assert pid is not None
        await terminal.leave(seconds=0.2)
    for each in (shell, job, pid):
        await asyncio.to_thread(wait_gone, each)
    assert await list_terminals() == []
    assert not (daemon / "socket").exists()


async def test_a_long_time_to_live_does_not_end_the_daemon(daemon: Path) -> None:
    """F1: a month is more milliseconds than the kernel waits at once."""
    async with open_terminal(outlive=True, settings=QUIET) as terminal:
        await terminal.leave(seconds=30 * 86400)
    pid = daemon_pid(daemon)  # it has looked at its times twice, for the end of one connection and for this one
    assert pid is not None
    (left,) = await list_terminals()
    assert left.alive
    assert left.expires is not None and left.expires > 29 * 86400
    assert daemon_pid(daemon) == pid


async def test_numbers_that_make_no_sense_are_refused(daemon: Path) -> None:
    """F1: the daemon goes on, and its shells with it."""
    async with open_terminal(outlive=True, settings=QUIET) as terminal:
        assert isinstance(terminal, KeptTerminal)
        connection = terminal.keeper._need()
        shell = shell_of(terminal)
        for kind, header in (
            (RequestKind.SYSTEM_CALL, {"pid": shell, "file": "syscall", "offset": 10**30}),
            (RequestKind.LEAVE, {"time_to_live": float("nan")}),
            (RequestKind.LEAVE, {"time_to_live": 10**400}),
        ):
            with pytest.raises(RequestRefused) as refused:
                connection.request(kind, header)
            assert refused.value.code == Refusal.BAD_REQUEST
        assert (await terminal.run("echo still here")).output == "still here\n"
        await terminal.aclose()


@pytest.mark.parametrize("names", [("socket",), ("socket", "lock")], ids="-".join)
async def test_a_removed_socket_is_made_again(daemon: Path, names: tuple[str, ...]) -> None:
    """F1: until then nobody is told that the shells are gone, and no second daemon is started."""
    async with open_terminal(outlive=True, settings=QUIET) as terminal:
        connection = connect(daemon, start=False)
        os.kill(connection.daemon, signal.SIGSTOP)  # it must not be faster than we are
        try:
            for name in names:
                (daemon / name).unlink()
            with pytest.raises(DaemonUnavailable, match="somebody removed its socket"):
                await list_terminals()
            with pytest.raises(DaemonUnavailable, match="somebody removed its socket"):
                async with open_terminal(outlive=True, settings=QUIET):
                    pass
            with pytest.raises(DaemonUnavailable, match="somebody removed its socket"):
                await attach_terminal(terminal.id)
        finally:
            os.kill(connection.daemon, signal.SIGCONT)
        for _ in range(2):  # it looks after each request, and every 10 s
            connection.request(RequestKind.HELLO, {"version": VERSION})
        assert [each.alive for each in await list_terminals()] == [True]
        connection.close()
        await terminal.aclose()


async def test_links_among_the_terminals_stop_no_daemon(daemon: Path, tmp_path: Path) -> None:
    """F1. An old one is removed. What it leads to stays."""
    theirs = tmp_path / "theirs"
    theirs.write_text("stays")
    (daemon / "terminals").mkdir(parents=True)
    for name, target in (("dangling", "nowhere"), ("old", str(tmp_path))):
        link = daemon / "terminals" / name
        link.symlink_to(target)
        os.utime(link, (0, 0), follow_symlinks=False)
    async with open_terminal(outlive=True, settings=QUIET) as terminal:
        assert (await terminal.run("echo up")).output == "up\n"
        await terminal.aclose()
    assert not list((daemon / "terminals").iterdir())
    assert theirs.read_text() == "stays"


async def test_without_its_folder_nothing_is_kept(daemon: Path) -> None:
    """F1: nobody could find the shells any more."""
    async with open_terminal(outlive=True, settings=QUIET) as terminal:
        shell, pid = shell_of(terminal), daemon_pid(daemon)
        assert pid is not None
        await asyncio.to_thread(shutil.rmtree, daemon)
        with pytest.raises(StateUnavailable, match=r"^cannot store what another program needs: No such file"):
            await terminal.run("echo too late")
    for each in (shell, pid):
        await asyncio.to_thread(wait_gone, each, 30)


async def test_a_stopped_daemon_is_not_said_to_be_gone(daemon: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """F1."""
    async with open_terminal(outlive=True, settings=QUIET) as terminal:
        pid = daemon_pid(daemon)
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        try:
            with monkeypatch.context() as impatient:
                impatient.setattr("tarmac.terminals.daemon.connection.PATIENCE", 0.5)
                with pytest.raises(DaemonUnavailable, match=rf"\(process {pid}\) did not answer") as silent:
                    await list_terminals()
        finally:
            os.kill(pid, signal.SIGCONT)
        assert silent.value.hint == f"if it is stopped, `kill -CONT {pid}` continues it"
        assert [each.alive for each in await list_terminals()] == [True]
        await terminal.aclose()


async def test_it_is_small_and_nobodys_child(daemon: Path) -> None:
    """F1: 15 MB at most, in a session of its own."""
    async with open_terminal(outlive=True, settings=QUIET) as terminal:
        await terminal.run("seq 10000")
        pid = daemon_pid(daemon)
        assert pid is not None
        stat = processes.stat(pid)
        assert stat is not None
        assert stat.session not in (os.getsid(0), 0)
        assert stat.parent != os.getpid()
        status = Path(f"/proc/{pid}/status").read_text()
        resident = int(status.partition("VmRSS:")[2].split()[0])
        assert resident <= 15 * 1024
        await terminal.aclose()


async def test_a_wait_for_input_is_seen_where_only_ancestors_may_look(
    daemon: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F1: the kernel (Yama) hides system calls from programs that are no ancestors. The daemon is one."""
    real = processes.read

    def hidden(path: str) -> bytes:
        if path.endswith("/syscall"):
            raise PermissionError(path)
        return real(path)

    async with open_terminal(outlive=True, settings=QUIET) as terminal:
        monkeypatch.setattr(tty_probe, "read", hidden)
        monkeypatch.setattr(processes, "read", hidden)
        execution = await terminal.start("read -p 'Name? ' name; echo hello $name")
        happened = await execution.waiting_for(input=True, timeout=30)
        assert happened.waiting is not None
        assert (happened.waiting.wants, happened.waiting.prompt) == ("line", "Name? ")
        await execution.send("you\n")
        assert (await execution.result(timeout=20)).output == "Name? you\nhello you\n"
        await terminal.aclose()


async def test_without_opt_in_no_daemon_is_started(daemon: Path) -> None:
    """F1: nothing is left running."""
    async with open_terminal(settings=Settings(start_up_files=False, outlive=True)) as terminal:  # that is for pools
        await terminal.run(":")
    assert not daemon.exists()
    with pytest.raises(DaemonUnavailable, match="no terminal daemon runs"):
        connect(daemon, start=False)


async def test_a_shell_of_a_killed_daemon_is_restored(daemon: Path, tmp_path: Path) -> None:
    """T34: a new shell with directory, variables and scrollback; what ran is told as lost."""
    (tmp_path / "sub").mkdir()
    async with open_terminal(cwd=tmp_path, outlive=True, settings=QUIET) as terminal:
        await terminal.run("export COLOUR=green API_TOKEN=hunter2; cd sub; echo painted")
        id, shell = terminal.id, shell_of(terminal)
    again = await attach_terminal(id)
    running = await again.start("echo half; sleep 1000")
    await running.waiting_for(pattern="half", timeout=20)
    await again.leave()
    pid = daemon_pid(daemon)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    await asyncio.to_thread(wait_gone, shell)
    (left,) = await list_terminals()
    assert (left.id, left.alive, left.cwd) == (id, False, tmp_path / "sub")
    restored = await attach_terminal(id)
    lost = await restored.executions[-1].result()
    assert (lost.command, lost.reason, lost.exit_code, lost.output) == (
        "echo half; sleep 1000",
        "daemon lost",
        None,
        "half\n",
    )
    assert b"painted" in restored.tape.read(0, restored.tape.end)
    result = await restored.run("echo $COLOUR-$API_TOKEN")
    assert (result.output, result.cwd, result.fresh_shell) == ("green-\n", tmp_path / "sub", True)
    await restored.aclose()
    assert await list_terminals() == []


def test_a_peers_process_is_known_by_the_socket(tmp_path: Path) -> None:
    """F1: SO_PEERCRED is what the daemon asks."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        pid, uid, _ = struct.unpack("iii", ours.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    assert (pid, uid) == (os.getpid(), os.geteuid())
