"""The terminal daemon: the parent of shells that outlive the program that opened them.

    main(folder) → lock, socket → epoll: clients' frames, shells' ends, PTYs that nobody reads, times to live → exit

Each connection holds one terminal for one client. When the connection ends, the daemon reads that terminal into its
journal until another client attaches or the terminal's time to live is over. A daemon that has shells is never
replaced. A daemon without shells exits, so the next one has the installed version.
"""

# ruff: noqa: PTH101, PTH106, PTH108, PTH112, PTH114, PTH208
# (the daemon does without pathlib)

import errno
import fcntl
import math
import os
import resource
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable, Mapping

from tarmac.errors import BadFrame
from tarmac.terminals.daemon import VERSION, Refusal, RequestKind
from tarmac.terminals.daemon.kept_shell import AttachedClient, KeptShell, RequestRejected
from tarmac.terminals.daemon.peers import refusal
from tarmac.terminals.frames import Frame
from tarmac.terminals.process import birthmark, prctl
from tarmac.terminals.process.processes import Process, descendants
from tarmac.terminals.process.watchdog import SCRIPT

LOST_DAYS = 7  # what a killed daemon left can be restored for so long
LINGER = 1.0  # seconds without terminals and clients, before it leaves
FORCE_AFTER = 1.0  # from the hang-up of a shell that nobody wants to its end by force
LOOK_EVERY = 10.0  # seconds, to see whether the socket is still there; epoll also refuses to wait for 25 days
DEATH_PATIENCE = 1000  # milliseconds for a killed shell to be gone


class Daemon:
    """The state of the process. `run()` returns when nothing is left."""

    def __init__(self, folder: str, listener: socket.socket) -> None:
        self._folder = folder
        self._listener = listener
        self._shells: dict[str, KeptShell] = {}
        self._clients: dict[int, AttachedClient] = {}
        self._ready: dict[int, Callable[[], None]] = {}  # by descriptor
        self._epoll = select.epoll()
        self._watch(listener.fileno(), self._accept)
        self._idle_since = time.monotonic()
        self._files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        self._guard: int = -1  # the watchdog's pipe
        self._verbs: Mapping[int, Callable[[AttachedClient, Frame], None]] = {
            RequestKind.HELLO: self._hello,
            RequestKind.LIST: self._list,
            RequestKind.SPAWN: self._spawn,
            RequestKind.ATTACH: self._attach,
            RequestKind.HOLD: self._hold,
            RequestKind.FORGET: self._forget,
            RequestKind.SYSTEM_CALL: self._system_call,
            RequestKind.LEAVE: self._leave,
        }

    # The loop

    def run(self) -> None:
        while not self._is_done():
            for fd, _ in self._epoll.poll(self._pause()):
                ready = self._ready.get(fd)
                if ready is not None:  # else closed by one before it
                    ready()
            if not os.path.lexists("socket"):
                self._listen_again()
            self._end_expired()

    def _is_done(self) -> bool:
        if self._shells or self._clients:
            self._idle_since = time.monotonic()
        return time.monotonic() - self._idle_since > LINGER

    def _pause(self) -> float:
        """Seconds until something is due."""
        now = time.monotonic()
        due = [each.expires_at for each in self._shells.values() if each.expires_at is not None and not each.ending_at]
        due += [each.ending_at for each in self._shells.values() if each.ending_at is not None]
        if not self._shells and not self._clients:
            due.append(self._idle_since + LINGER)
        return min(max(0.0, min(due, default=math.inf) - now), LOOK_EVERY) + 0.001

    def _watch(self, fd: int, ready: Callable[[], None]) -> None:
        self._ready[fd] = ready
        self._epoll.register(fd, select.EPOLLIN)

    def _unwatch(self, fd: int) -> None:
        if self._ready.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    def _listen_again(self) -> None:
        """Somebody removed the socket. If the folder is gone too, nobody finds the terminals, and none is kept."""
        try:
            listener = listen()
        except OSError:
            for shell in self._shells.values():
                shell.time_to_live = 0.0
            return
        self._unwatch(self._listener.fileno())
        self._listener.close()
        self._listener = listener
        self._watch(listener.fileno(), self._accept)

    # Clients

    def _accept(self) -> None:
        try:
            stream, _ = self._listener.accept()
        except OSError:
            return
        stream.setblocking(False)
        pid, uid, _ = struct.unpack("iii", stream.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        client = AttachedClient(stream, pid)
        why = "it belongs to another user" if uid != os.geteuid() else refusal(pid, self._pids())
        if why:
            client.send(Frame(RequestKind.ERROR, 0, {"code": Refusal.PEER, "what": why}))
            client.close()
            return
        self._clients[stream.fileno()] = client
        self._watch(stream.fileno(), lambda: self._readable(client))

    def _pids(self) -> set[int]:
        return {each.pid for each in self._shells.values() if not each.look()}

    def _readable(self, client: AttachedClient) -> None:
        try:
            frames = client.receive()
        except BadFrame:
            frames = None
        if frames is None:
            self._gone(client)
            return
        for frame in frames:
            self._do(client, frame)

    def _do(self, client: AttachedClient, frame: Frame) -> None:
        verb = self._verbs.get(frame.kind)
        try:
            if verb is None:
                raise RequestRejected(Refusal.UNKNOWN_KIND, f"version {VERSION} knows no kind {frame.kind}")
            verb(client, frame)
        except RequestRejected as error:
            told = {"code": error.code, "what": error.what, "errno": error.number}
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            told = {"code": Refusal.BAD_REQUEST, "what": f"{type(error).__name__}: {error}"}
        except OSError as error:
            what = {"what": error.strerror or "", "file": str(error.filename or "")}
            told = {"code": Refusal.FAILED, "errno": error.errno or 0, **what}
        else:
            return
        if frame.request:  # who did not ask is not answered
            client.send(Frame(RequestKind.ERROR, frame.request, told))

    def _gone(self, client: AttachedClient) -> None:
        self._unwatch(client.stream.fileno())
        self._clients.pop(client.stream.fileno(), None)
        client.close()
        self._detach(client)

    def _detach(self, client: AttachedClient) -> None:
        shell, client.shell = client.shell, None
        if shell is not None and self._shells.get(shell.id) is shell:
            shell.left()
            if not shell.look():
                self._watch(shell.master, shell.drain)

    def _ok(
        self, client: AttachedClient, frame: Frame, header: Mapping[str, object], fds: tuple[int, ...] = ()
    ) -> None:
        client.send(Frame(RequestKind.OK, frame.request, header), fds)

    # Requests

    def _hello(self, client: AttachedClient, frame: Frame) -> None:
        self._ok(client, frame, {"version": VERSION, "pid": os.getpid()})

    def _list(self, client: AttachedClient, frame: Frame) -> None:
        now = time.monotonic()
        found = [
            {
                "id": each.id,
                "pid": each.pid,
                "status": each.status if each.look() else None,
                "host": each.host,
                "idle": now - each.left_at if each.host is None else 0.0,
                "time_to_live": each.time_to_live,
            }
            for each in self._shells.values()
        ]
        self._ok(client, frame, {"terminals": found})

    def _spawn(self, client: AttachedClient, frame: Frame) -> None:
        header = frame.header
        fds = client.take_fds(2)
        id = str(header["id"])
        before = self._shells.get(id)
        if not id or "/" in id or id.startswith(".") or client.shell not in (None, before):
            raise RequestRejected(Refusal.BAD_REQUEST, f"{id!r} is not a name, or the connection has another terminal")
        if before is not None and client.shell is not before:
            raise RequestRejected(Refusal.IN_USE, f"there is a terminal {id}")
        argv, env = header["argv"], header["env"]
        if not isinstance(argv, list) or not isinstance(env, dict):
            raise RequestRejected(Refusal.BAD_REQUEST, "argv is a list, env an object")
        if before is not None:
            self._drop(before)
        shell = KeptShell(
            id,
            f"{self._folder}/terminals/{id}",
            fds,
            mark=_int(header["mark"]),
            time_to_live=_float(header["time_to_live"]),
            journal_limit=_int(header["journal_limit"]),
        )
        try:
            shell.start(argv, str(header["cwd"]), env, umask=_int(header["umask"]), files=_int(header["files"]))
        except OSError:
            shell.close()
            client.shell = None
            raise
        self._shells[id] = shell
        client.shell = shell
        shell.given_away(client.pid)
        self._watch(shell.pidfd, lambda: self._ended(shell))
        self._guarded("+", shell.mark)
        self._ok(client, frame, {"pid": shell.pid}, shell.pipe)

    def _attach(self, client: AttachedClient, frame: Frame) -> None:
        shell = self._shells.get(str(frame.header["id"]))
        if shell is None:
            raise RequestRejected(Refusal.UNKNOWN_TERMINAL, f"there is no terminal {frame.header['id']}")
        if shell.host is not None or client.shell is not None:
            raise RequestRejected(Refusal.IN_USE, f"process {shell.host or client.pid} has it")
        self._unwatch(shell.master)
        shell.drain()
        shell.given_away(client.pid)
        shell.ending_at = None
        client.shell = shell
        told = {"pid": shell.pid, "status": shell.status if shell.look() else None, "drained_from": shell.drained_from}
        self._ok(client, frame, told, (shell.master, shell.slave, *shell.pipe, *shell.held))

    def _hold(self, client: AttachedClient, frame: Frame) -> None:
        fds = client.take_fds()
        if client.shell is None:
            for each in fds:
                os.close(each)
            raise RequestRejected(Refusal.BAD_REQUEST, "the connection has no terminal")
        client.shell.hold(fds)
        self._ok(client, frame, {})

    def _leave(self, client: AttachedClient, frame: Frame) -> None:
        if client.shell is not None and "time_to_live" in frame.header:
            client.shell.time_to_live = _float(frame.header["time_to_live"])
        self._detach(client)
        self._ok(client, frame, {})

    def _forget(self, client: AttachedClient, frame: Frame) -> None:
        id = str(frame.header.get("id"))
        shell = client.shell or self._shells.get(id)
        if shell is None:  # of a daemon that was killed
            if "/" in id or not os.path.isdir(f"{self._folder}/terminals/{id}"):
                raise RequestRejected(Refusal.UNKNOWN_TERMINAL, "there is no such terminal")
            _remove(f"{self._folder}/terminals/{id}")
            self._ok(client, frame, {})
            return
        if shell.host not in (None, client.pid):
            raise RequestRejected(Refusal.IN_USE, f"process {shell.host} has it")
        client.shell = None
        self._drop(shell)
        _remove(shell.folder)
        self._ok(client, frame, {})

    def _system_call(self, client: AttachedClient, frame: Frame) -> None:
        """A file of /proc that the kernel shows to ancestors only (Yama): of the shell, or of a process below it."""
        shell, pid, name = client.shell, _int(frame.header["pid"]), str(frame.header["file"])
        if shell is None or not _is_shown(name):
            raise RequestRejected(Refusal.BAD_REQUEST, "it shows the system calls of the terminal's own processes")
        if pid != shell.pid and pid not in {each.pid for each in descendants(shell.pid)}:
            raise RequestRejected(Refusal.BAD_REQUEST, f"process {pid} is not in this terminal")
        offset, size = _int(frame.header.get("offset", 0)), min(_int(frame.header.get("size", 4096)), 1 << 16)
        fd = os.open(f"/proc/{pid}/{name}", os.O_RDONLY | os.O_CLOEXEC)
        try:
            data = os.pread(fd, size, offset)
        finally:
            os.close(fd)
        client.send(Frame(RequestKind.OK, frame.request, {}, data))

    # Ends

    def _ended(self, shell: KeptShell) -> None:
        if not shell.look():
            return
        self._unwatch(shell.pidfd)
        self._unwatch(shell.master)
        if shell.host is None:
            shell.drain()
        for client in self._clients.values():
            if client.shell is shell:
                client.send(Frame(RequestKind.EXITED, 0, {"status": shell.status, "pid": shell.pid}))

    def _end_expired(self) -> None:
        """End terminals whose time to live is over: first with a hang-up, then by force."""
        now = time.monotonic()
        for shell in list(self._shells.values()):
            if shell.ending_at is not None and now >= shell.ending_at:
                self._drop(shell)
                _remove(shell.folder)
            elif shell.expires_at is not None and now >= shell.expires_at and shell.ending_at is None:
                shell.signal(signal.SIGHUP)
                shell.signal(signal.SIGCONT)
                shell.ending_at = now + (FORCE_AFTER if not shell.look() else 0)

    def _drop(self, shell: KeptShell) -> None:
        """Remove a terminal. What still runs in it is killed."""
        self._shells.pop(shell.id, None)
        self._unwatch(shell.pidfd)
        self._unwatch(shell.master)
        for each in _tree(shell):
            try:
                os.kill(each.pid, signal.SIGKILL)
            except OSError:
                pass
        shell.signal(signal.SIGKILL)
        if shell.pidfd >= 0:
            gone = select.poll()
            gone.register(shell.pidfd, select.POLLIN)
            gone.poll(DEATH_PATIENCE)
        shell.close()
        self._guarded("-", shell.mark)
        if shell.expires_at is not None:  # nobody was there to see to what lost its parent
            _kill_marked(shell.mark)

    def _guarded(self, sign: str, mark: int) -> None:
        """Tell the watchdog, which ends what is left if the daemon is killed.

        The watchdog ends with the last terminal.
        """
        if self._guard < 0 and sign == "+":
            self._guard = _start_watchdog()
        if self._guard >= 0:
            try:
                os.write(self._guard, f"{sign} {mark}\n".encode())
            except OSError:  # somebody killed it
                os.close(self._guard)
                self._guard = _start_watchdog()
                if self._guard >= 0:
                    os.write(self._guard, b"".join(b"+ %d\n" % each.mark for each in self._shells.values()))
        if not self._shells and sign == "-" and self._guard >= 0:
            os.close(self._guard)
            self._guard = -1


def _tree(shell: KeptShell) -> set[Process]:
    return descendants(shell.pid) if shell.pid > 0 and not shell.look() else set()


def _kill_marked(mark: int) -> None:
    """Kill every process that has the mark. A separate process does it."""
    if (pipe := _start_watchdog()) >= 0:
        os.write(pipe, b"+ %d\n" % mark)
        os.close(pipe)


def _start_watchdog() -> int:
    """Start the watchdog (process/watchdog.py). Returns the pipe to it, or -1. Nobody has to wait for it."""
    reads, writes = os.pipe2(os.O_CLOEXEC)
    try:
        pid = os.fork()
    except OSError:
        os.close(reads)
        os.close(writes)
        return -1
    if pid == 0:
        try:
            os.setsid()
            if os.fork():
                os._exit(0)
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(reads, 0)
            os.dup2(null, 1)
            os.dup2(null, 2)
            os.execve("/bin/sh", ["/bin/sh", "-c", SCRIPT], {"PATH": "/usr/bin:/bin"})
        finally:
            os._exit(127)
    os.close(reads)
    os.waitpid(pid, 0)
    return writes


def _is_shown(name: str) -> bool:
    match name.split("/"):
        case ["syscall" | "wchan"]:
            return True
        case ["task", thread, "syscall" | "wchan" | "mem"]:
            return thread.isdigit()
    return False


def _int(value: object) -> int:
    if not isinstance(value, int):
        raise TypeError(f"{value!r} is not a whole number")
    return value


def _float(value: object) -> float:
    if not isinstance(value, int | float) or math.isnan(value):
        raise TypeError(f"{value!r} is not a number")
    return float(value)


def _remove(folder: str) -> None:
    """Remove a terminal's folder. Of a link only the link."""
    if os.path.islink(folder):
        os.unlink(folder)
        return
    for place, _, names in os.walk(folder, topdown=False):
        for name in names:
            try:
                os.unlink(f"{place}/{name}")
            except OSError:
                pass
        try:
            os.rmdir(place)
        except OSError:
            pass


def listen() -> socket.socket:
    """The socket, in the current directory: its path may be too long for an address."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if os.path.lexists("socket"):
            os.unlink("socket")  # of one that was killed
        listener.bind("socket")
        os.chmod("socket", 0o600)
        listener.listen(64)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener


def _lock() -> bool:
    """Lock the folder for this process. False if another daemon has it.

    The file is for daemons of earlier versions. A file can be cleaned away, and then two daemons would run.
    """
    file = os.open("lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    for fd in (file, os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)):
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EACCES):
                return False
            if fd == file:  # a network file system can't lock a folder
                raise
    return True


def main(folder: str) -> None:
    """Run the daemon of `folder`, which is private. Print `ready` when clients may connect."""
    os.chdir(folder)
    if not _lock():
        print("ready", flush=True)  # another one is up, or is coming up
        return
    if os.fork():
        os._exit(0)
    os.setsid()
    os.umask(0o077)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    prctl.prepare()
    birthmark.prepare()
    listener = listen()
    for each in os.listdir("terminals"):  # of daemons that were killed
        if time.time() - os.lstat(f"terminals/{each}").st_mtime > LOST_DAYS * 86400:
            _remove(f"{folder}/terminals/{each}")
    daemon = Daemon(folder, listener)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    print("ready", flush=True)
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    daemon.run()
    try:
        os.unlink("socket")
    except OSError:
        pass  # somebody was faster


if __name__ == "__main__":
    main(sys.argv[1])
