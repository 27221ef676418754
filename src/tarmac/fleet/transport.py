"""How to reach a host: a transport gives connections, each a stream of bytes.

UnixTransport      a socket of this machine; the host is started if it is not there
CommandTransport   a program that runs another one there and passes its standard input and output through:
                   `ssh HOST`, `docker exec -i CONTAINER`, `kubectl exec -i POD --`

Anything else that can carry bytes can be a transport too: implement `Transport`. The same session must lead to the same
host, as long as that host lives.
"""

import asyncio
import json
import os
import shlex
import sys
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Protocol

from tarmac.errors import ConnectionLost, PlaceFailed, PlaceUnavailable, Trouble
from tarmac.fleet.carried import BOOTSTRAP, carried_bytes, carried_hash, is_same_python
from tarmac.terminals.host.byte_stream import MOST, AsyncioStream, ByteStream, SocketStream
from tarmac.terminals.host.host import runtime_dir, socket_path

CONNECT_TIMEOUT = 20.0  # seconds, for all of it
MOST_BANNER = 256 << 10  # bytes that may be printed before the host answers
MOST_COMPLAINT = 4096
PYTHONS = ("python3", "python3.14", "python3.13", "python3.12", "python3.11", "python")
TOO_OLD = 97  # exit status of a Python below 3.11
NO_PYTHON = "TARMAC-NO-PYTHON"


class Transport(Protocol):
    """Connects to the host of a session.

    PlaceUnavailable says what is wrong, and what to do. ConnectionLost says that the host of an old session is gone.
    """

    @property
    def name(self) -> str:
        """The place, as a person writes it."""

    async def connect(self, session: str, *, new: bool) -> ByteStream:
        """A connection to the host of `session`; with `new`, one that may have to be started."""


@dataclass(frozen=True, slots=True)
class UnixTransport:
    """A unix socket, of a host that runs already or of one that is started for each session."""

    path: Path | None = None

    @property
    def name(self) -> str:
        return "unix:" if self.path is None else f"unix:{self.path}"

    async def connect(self, session: str, *, new: bool) -> ByteStream:
        path = self.path or socket_path(session)
        if self.path is None and new:
            await _start_host(session)
        try:
            _, stream = await asyncio.get_running_loop().create_unix_connection(SocketStream, os.fspath(path))
        except OSError as error:
            if not new and isinstance(error, FileNotFoundError | ConnectionRefusedError):
                raise ConnectionLost(f"the host at {path} is gone", hint="its terminals ended with it") from None
            if isinstance(error, FileNotFoundError):
                raise PlaceUnavailable(
                    f"there is no socket {path}", trouble=Trouble.NOT_FOUND, hint="is the host there still running?"
                ) from None
            if path.exists() and not path.is_socket():
                raise PlaceUnavailable(
                    f"{path} is not a socket", trouble=Trouble.NOT_FOUND, hint="give the path where a host listens"
                ) from None
            raise PlaceUnavailable(
                f"{path}: {error.strerror}", trouble=Trouble.UNREACHABLE, hint="is the host there still running?"
            ) from None
        return stream


async def _start_host(session: str) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tarmac.terminals.host",
        session,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    _, complaint = await process.communicate()
    if process.returncode:
        raise PlaceUnavailable(f"no host could be started: {_last_line(complaint)}")


@dataclass(frozen=True, slots=True)
class CommandTransport:
    """A program that runs another one there, with our standard input and output."""

    name: str
    argv: tuple[str, ...]  # the program and its words; what is to run there comes after them
    shell: bool = False  # what comes after them is read by a shell, as `ssh` has it
    python: str = ""  # the Python there; empty: the first that is new enough
    environ: dict[str, str] | None = field(default=None, hash=False)
    tty_argv: tuple[str, ...] = ()  # the same with a terminal there, for a place without Python

    async def connect(self, session: str, *, new: bool) -> ByteStream:
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                return await self._connect(session, new=new)
        except TimeoutError:
            raise PlaceUnavailable(
                f"{self.name} did not answer within {CONNECT_TIMEOUT:g} s",
                trouble=Trouble.SILENT,
                hint="is it running, is the network up, and does no start-up file there wait for something?",
            ) from None

    async def _connect(self, session: str, *, new: bool) -> ByteStream:
        # The nonce tells the host's lines from those of login scripts.
        marker = f"TARMAC-{session[-8:]}{'n' if new else 'o'}"
        process = await self._start(start_script(self.python))
        spoken = _Conversation(self.name, process, marker)
        try:
            source = BOOTSTRAP.read_bytes() + f"\nmain({marker!r}, {carried_hash()!r}, {session!r}, ".encode()
            source += b"'new')\n" if new else b"'old')\n"
            spoken.send(f"{len(source):08d}".encode() + source)
            words = await spoken.line()
            if words[:1] == ["WANT"]:
                data = carried_bytes(compiled=is_same_python(words[1] if len(words) > 1 else ""))
                spoken.send(f"{len(data):010d}".encode() + data)
                words = await spoken.line()
            if words[:1] != ["READY"]:
                raise self._refusal(words)
            return spoken.stream()
        except BaseException:
            await spoken.end()
            raise

    async def _start(self, script: str) -> asyncio.subprocess.Process:
        command = [f"exec sh -c {shlex.quote(script)}"] if self.shell else ["sh", "-c", script]
        try:
            return await asyncio.create_subprocess_exec(
                *self.argv,
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=self.environ,
                limit=MOST,
                start_new_session=True,  # Ctrl-C here is for the command there, not for the connection
            )
        except FileNotFoundError:
            raise PlaceUnavailable(
                f"`{self.argv[0]}` is not installed here", trouble=Trouble.NO_CLIENT, hint=f"install {self.argv[0]}"
            ) from None
        except OSError as error:
            raise PlaceUnavailable(f"`{self.argv[0]}` can't be started: {error.strerror}") from None

    def _refusal(self, words: Sequence[str]) -> PlaceFailed:
        match words:
            case ["NO-ROOM", *rest]:
                return PlaceUnavailable(
                    f"Tarmac can't be carried to {self.name}: {' '.join(rest)}",
                    trouble=Trouble.NO_ROOM,
                    hint="make room in ~/.cache or /tmp there; it takes about 1 MB",
                )
            case ["FAILED", *rest]:
                try:
                    what, hint, trouble = map(str, json.loads(" ".join(rest)))
                except ValueError:
                    what, hint, trouble = " ".join(rest), "", ""
                if trouble == Trouble.NOT_FOUND:
                    return ConnectionLost(f"{self.name}: {what}", hint=hint)
                return PlaceUnavailable(f"{self.name}: {what}", hint=hint)
            case _:
                return garbage(self.name, " ".join(words))


class _Conversation:
    """The messages before the host takes over the connection."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, marker: str) -> None:
        self._name, self._process, self._marker = name, process, marker.encode() + b" "
        self._unread = b""
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        self._reader, self._writer, self._errors = process.stdout, process.stdin, process.stderr
        self._complaint = bytearray()
        self._listening = asyncio.get_running_loop().create_task(self._listen())

    async def _listen(self) -> None:
        """Read the program's standard error. A full pipe would block the program."""
        while data := await self._errors.read(4096):
            self._complaint += data
            del self._complaint[:-MOST_COMPLAINT]

    def send(self, data: bytes) -> None:
        self._writer.write(data)

    async def line(self) -> list[str]:
        """The words of the next line with our marker. Other lines are skipped."""
        while True:
            start = self._unread.find(b"\n" + self._marker)
            end = self._unread.find(b"\n", start + 1) if start >= 0 else -1
            if end >= 0:
                line = self._unread[start + 1 + len(self._marker) : end]
                self._unread = self._unread[end + 1 :]
                return line.decode("utf-8", "replace").split()
            data = await self._reader.read(MOST)
            self._unread += data
            if not data or (len(self._unread) > MOST_BANNER and start < 0):
                raise await self._ended() if not data else garbage(self._name, self._unread[:200])

    async def _ended(self) -> PlaceUnavailable:
        """Why the program ended before the host answered."""
        try:
            async with asyncio.timeout(2.0):
                code: int | None = await self._process.wait()
                await self._listening
        except TimeoutError:
            code = self._process.returncode
        if (at := self._unread.find(NO_PYTHON.encode())) >= 0:
            return no_python(self._name, self._unread[at + len(NO_PYTHON) :].split(b"\n")[0].decode("utf-8", "replace"))
        return explain(self._name, code, bytes(self._complaint), self._unread)

    def stream(self) -> ByteStream:
        """The connection. From here on it belongs to the host."""
        return _ProcessStream(self._process, self._reader, self._writer, self._unread, self._listening)

    async def end(self) -> None:
        await _ProcessStream(self._process, self._reader, self._writer, b"", self._listening).aclose()


class _ProcessStream(AsyncioStream):
    """Over the standard input and output of a process, which ends with it."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        first: bytes,
        listening: asyncio.Task[None],
    ) -> None:
        super().__init__(reader, writer, first=first)
        self._process = process
        self._listening = listening

    def abort(self) -> None:
        self._writer.close()
        if self._process.returncode is None:
            try:
                self._process.kill()
            except ProcessLookupError:
                pass
        self._listening.cancel()

    async def aclose(self) -> None:
        """Close its input and give it a moment to end by itself."""
        self._writer.close()
        try:
            async with asyncio.timeout(0.5):
                await self._process.wait()
        except TimeoutError:
            pass
        self.abort()
        try:
            async with asyncio.timeout(2.0):
                await self._process.wait()
        except TimeoutError:
            pass
        await asyncio.gather(self._listening, return_exceptions=True)
        transport = getattr(self._process, "_transport", None)
        if transport is not None:
            transport.close()


READS_INPUT = "a start-up file there reads standard input: it may do so only in an interactive shell"


def start_script(python: str = "") -> str:
    """The shell script that finds a Python there and has it read its program from standard input."""
    loader = (
        "import os,sys\ndef r(n):\n b=b''\n while len(b)<n:\n  c=os.read(0,n-len(b))\n  if not c:sys.exit(1)\n"
        "  b+=c\n return b\nn=r(8)\n"
        f"if not n.isdigit():sys.exit({READS_INPUT!r})\nexec(r(int(n)))\n"
    )
    # Old Pythons must understand this line, and no quotes may be in it. -S: packages that are installed there are not
    # needed, and what they run at the start of Python can take longer than all the rest.
    check = f"import sys;sys.version_info<(3,11)and sys.exit({TOO_OLD})"
    first = f"{check};import base64;exec(base64.b64decode(sys.argv[1]))"
    names = " ".join([shlex.quote(python)] if python else PYTHONS)
    return (
        f"o=; for p in {names}; do command -v $p >/dev/null 2>&1 || continue; "
        f'$p -S -c "{first}" {b64encode(loader.encode()).decode()}; s=$?; '
        f"case $s in {TOO_OLD}) o=`$p -V 2>&1`;; 126|127) ;; *) exit $s;; esac; done; echo; echo {NO_PYTHON} $o; exit 1"
    )


def no_python(name: str, found: str) -> PlaceUnavailable:
    if found.strip():
        return PlaceUnavailable(
            f"{name} has only {found.strip()}, and Tarmac's host needs Python 3.11 or newer",
            trouble=Trouble.OLD_PYTHON,
            hint="install a newer one there, or give its path: ?python=/path/to/python3.12",
        )
    return PlaceUnavailable(
        f"{name} has no Python",
        trouble=Trouble.NO_PYTHON,
        hint="install Python 3.11 or newer there, or give its path: ?python=/path/to/python3",
    )


def garbage(name: str, found: bytes | str) -> PlaceUnavailable:
    text = found.decode("utf-8", "replace") if isinstance(found, bytes) else found
    shown = "".join(each if each.isprintable() else " " for each in text)[:60].strip()
    return PlaceUnavailable(
        f"something else than Tarmac's host answers at {name}: {shown}",
        trouble=Trouble.GARBAGE,
        hint="does a login script there print without end, or start another program?",
    )


_SIGNS = (  # what ssh, docker, podman and kubectl say
    (Trouble.NOT_FOUND, ("could not resolve hostname", "no such container", "no container with name", "notfound")),
    (Trouble.NOT_FOUND, ("not found", "no such pod")),
    (Trouble.DENIED, ("permission denied", "host key verification failed", "too many authentication failures")),
    (Trouble.DENIED, ("forbidden", "unauthorized", "remote host identification has changed")),
    (Trouble.UNREACHABLE, ("connection refused", "no route to host", "network is unreachable", "cannot connect")),
    (Trouble.UNREACHABLE, ("was refused", "connection reset by", "connection closed by")),
    (Trouble.UNREACHABLE, ("is not running", "is stopped", "container is not created")),
    (Trouble.SILENT, ("timed out", "timeout")),
)
_HINTS = {
    Trouble.NOT_FOUND: "is the name right? `{client}` does not know it",
    Trouble.DENIED: "try `{client}` by hand: its own messages tell which key or right is missing",
    Trouble.UNREACHABLE: "is it running, and is the port right?",
    Trouble.SILENT: "is it running, and is the network up?",
    Trouble.OTHER: "try `{client}` by hand",
}
_IS_IT_RUNNING = {  # a container or pod has no port of its own that we connect to
    "docker": "is the container running? `docker ps` lists those that are",
    "podman": "is the container running? `podman ps` lists those that are",
    "kubectl": "is the pod running, and the cluster up? `kubectl get pods` tells",
}
_SSH_FAILED = 255  # any other status is that of the shell there


def explain(name: str, code: int | None, complaint: bytes, printed: bytes) -> PlaceUnavailable:
    """Why a client program ended before the host answered. Only its own messages can tell."""
    client = name.partition(":")[0]
    words = _last_line(complaint) or _last_line(printed)
    ended_there = client == "ssh" and code not in (_SSH_FAILED, None)
    if ended_there and words != READS_INPUT:
        return PlaceUnavailable(
            f"{name}: the shell there ended with status {code}{f': {words}' if words else ''}",
            hint="does a start-up file there end it, or start another program?",
        )
    if "executable file" in words:  # docker and others: exec: "sh": executable file not found in $PATH
        return PlaceUnavailable(f"{name}: {words}", hint="it has no `sh`, and Tarmac needs one there")
    said = reversed(complaint.decode("utf-8", "replace").lower().splitlines())  # a banner comes before the reason
    found = (kind for line in said for kind, signs in _SIGNS if any(sign in line for sign in signs))
    trouble = Trouble.OTHER if ended_there else next(found, Trouble.OTHER)
    words = words or f"its client ended with status {code}"
    hint = _HINTS[trouble].format(client=client)
    if trouble is Trouble.UNREACHABLE:
        hint = _IS_IT_RUNNING.get(client, hint)
    return PlaceUnavailable(f"{name}: {words}", trouble=trouble, hint=hint)


def _last_line(data: bytes) -> str:
    lines = [each.strip() for each in data.decode("utf-8", "replace").splitlines()]
    return next((each for each in reversed(lines) if each), "")


def ssh_transport(
    host: str,
    *,
    user: str = "",
    port: int | None = None,
    options: Sequence[str] = (),
    python: str = "",
) -> CommandTransport:
    """The system's `ssh` with its own configuration, over one shared connection that ends a minute after its use."""
    # ssh's own %C knows the machine and the user, but not a key: another name or other options, another connection.
    name = "\n".join((host, *options)).encode()
    folder = str(runtime_dir()).replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    control = f'"{folder}/{sha256(name).hexdigest()[:8]}-%C"'
    given = (
        "ControlMaster=auto",
        f"ControlPath={control}",
        "ControlPersist=60",
        "BatchMode=yes",
        "ConnectTimeout=10",
        "ServerAliveInterval=15",
        *options,
    )
    argv = ["ssh", "-T", *(word for option in given for word in ("-o", option))]
    if port is not None:
        argv += ["-p", str(port)]
    if user:
        argv += ["-l", user]
    shown = f"ssh://{user + '@' if user else ''}{host}{f':{port}' if port is not None else ''}"
    tty = (*("-tt" if word == "-T" else word for word in argv), "--", host)
    return CommandTransport(shown, (*argv, "--", host), shell=True, python=python, tty_argv=tty)


def exec_transport(client: str, container: str, *, namespace: str = "", python: str = "") -> CommandTransport:
    """`docker exec -i`, `podman exec -i` or `kubectl exec -i`."""
    argv: tuple[str, ...]
    if client == "kubectl":
        scope = ("-n", namespace) if namespace else ()
        shown = f"kubectl://{namespace + '/' if namespace else ''}{container}"
        argv = ("kubectl", "exec", "-i", *scope, container, "--")
    else:
        shown, argv = f"{client}://{container}", (client, "exec", "-i", container)
    tty = tuple("-it" if word == "-i" else word for word in argv)
    return CommandTransport(shown, argv, python=python, tty_argv=tty)
