"""A private socket for the agent that we host: one connection to our terminals, for a process of the agent.

entry() → {"command": python, "args": [bridge.py], "env": secret, socket} → the agent starts it → connects
        → same user? below the agent? the secret? → once → serve(what it says, how to answer)

The socket is in a private folder. The secret is in the environment, never in the arguments, which everybody can see. It
works once. The connecting process must descend from the agent: we walk up its parents to the process that we started.
The agent is a child-subreaper, so a daemon below it still counts. A process that somebody else started (a container's
daemon, systemd, a login) does not. A refusal is final, and the agent then works without our terminals.
"""

import asyncio
import fcntl
import os
import secrets
import socket
import struct
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Final

from tarmac.acp.host.parameters import Object
from tarmac.errors import DirectoryUnavailable
from tarmac.paths import remove_scratch, scratch_dir
from tarmac.terminals.process import processes

Write = Callable[[bytes], Awaitable[None]]
Serve = Callable[[AsyncIterator[bytes], Write], Awaitable[None]]

NAME: Final = "tarmac"  # of the MCP server, as agents show it
VARIABLE: Final = "TARMAC_BRIDGE"
BRIDGE: Final = Path(__file__).with_name("bridge.py")
LONGEST_PATH: Final = 107  # bytes: the kernel takes no more for a socket
LONGEST_SECRET: Final = 256
TO_SAY_IT: Final = 5.0  # seconds for the secret
AT_ONCE: Final = 8  # connections that have not said it yet
MOST_NOTES: Final = 5  # of those that were refused
DEEPEST: Final = 128  # processes between the agent and who connects
READ_SIZE: Final = 64 << 10
LAST_WORDS: Final = 5.0  # seconds for the commands of a connection that is ended


class BridgeServer:
    """The socket of one hosted agent."""

    def __init__(self, serve: Serve, note: Callable[[str], None], *, environ: Mapping[str, str]) -> None:
        self._serve = serve
        self._note = note
        self._environ = environ
        self._agent: processes.Process | None = None
        self._secret = ""  # empty: nobody is expected
        self._folder: Path | None = None
        self._server: asyncio.Server | None = None
        self._strangers = 0  # connections that have not said the secret
        self._refused = 0
        self._lock = -1  # while it is held, nobody takes the folder for one that was left behind
        self._served: set[asyncio.Task[None]] = set()
        self.came = asyncio.Event()  # somebody is in

    async def open(self, agent: int) -> None:
        """Wait for a process below this one. OSError, where this can't be."""
        self._agent = processes.look(agent)
        if not hasattr(socket, "SO_PEERCRED") or not BRIDGE.is_file():
            raise OSError(0, "this system does not tell who connects")
        self._folder = scratch_dir(self._environ)
        if len(os.fsencode(self._path)) > LONGEST_PATH:
            remove_scratch(self._folder)
            self._folder = scratch_dir({**self._environ, "TMPDIR": "/tmp"})
        self._lock = _locked(self._folder)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listening.bind(str(self._path))
            self._path.chmod(0o600)
            self._server = await asyncio.start_unix_server(self._connected, sock=listening)
        except BaseException:
            listening.close()
            raise

    @property
    def _path(self) -> Path:
        assert self._folder is not None
        return self._folder / "mcp"

    def entry(self) -> Object:
        """What session/new is given, with a secret of its own; the one before is void."""
        self._secret = secrets.token_urlsafe(32)
        return {
            "name": NAME,
            "command": sys.executable,
            "args": ["-I", "-S", str(BRIDGE)],
            "env": [{"name": VARIABLE, "value": f"{self._secret} {self._path}"}],
        }

    def starts(self) -> bool:
        """Whether the agent has started our server: on a busy machine it takes a while to connect."""
        if self._agent is None:
            return False
        return any(str(BRIDGE) in processes.command_line(each.pid) for each in processes.descendants(self._agent.pid))

    async def aclose(self) -> None:
        """Close it, and end whom it serves. May be called twice."""
        self._secret = ""
        server, self._server = self._server, None
        if server is not None:
            server.close()
        mine = list(self._served)
        for each in mine:
            each.cancel()
        if mine:
            await asyncio.wait(mine, timeout=LAST_WORDS)
        folder, self._folder = self._folder, None
        if folder is not None:
            remove_scratch(folder)
        lock, self._lock = self._lock, -1
        if lock >= 0:
            os.close(lock)

    # Who comes

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._receive(reader, writer))
        self._served.add(task)
        task.add_done_callback(self._served.discard)

    async def _receive(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            why = await self._stranger(reader, writer)
            if why:
                self._turn_away(why)
                writer.write(f"-{why}\n".encode())
                return
            self.came.set()
            writer.write(b"+")
            await self._serve(_pieces(reader), _writing(writer))
        except (OSError, asyncio.IncompleteReadError):  # it is gone
            pass
        except Exception as error:  # ours: this connection ends, the agent goes on
            self._note(f"the terminals lent over MCP failed: {type(error).__name__}: {error}")
        finally:
            writer.close()

    async def _stranger(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> str:
        """Why it is turned away; empty: it may come in, and nobody after it."""
        if self._strangers >= AT_ONCE:
            return "too many connect at once"
        self._strangers += 1
        try:
            stranger = self._who(writer.get_extra_info("socket"))
            async with asyncio.timeout(TO_SAY_IT):
                said = b""
                while not said.endswith(b"\n") and len(said) < LONGEST_SECRET:
                    piece = await reader.read(LONGEST_SECRET - len(said))  # no more is said before we answer
                    if not piece:
                        return "it left before it said the secret"
                    said += piece
        except TimeoutError:
            return f"it did not say the secret in {TO_SAY_IT:.0f} s"
        finally:
            self._strangers -= 1
        if stranger:
            return stranger
        if not self._secret:
            return "the secret has been used before: it is good once"
        if not secrets.compare_digest(said.removesuffix(b"\n"), self._secret.encode()):
            return "it does not know the secret"
        self._secret = ""
        return ""

    def _who(self, connection: socket.socket) -> str:
        raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        pid, user, _ = struct.unpack("3i", raw)
        if user != os.geteuid():
            return f"it belongs to another user ({user})"
        if self._agent is None or not descends(pid, self._agent):
            return f"process {pid} ({processes.name(pid) or 'gone'}) does not descend from the agent"
        return ""

    def _turn_away(self, why: str) -> None:
        self._refused += 1
        if self._refused <= MOST_NOTES:
            more = "; more of them are not told" if self._refused == MOST_NOTES else ""
            self._note(f"somebody who wanted the terminals of this session over MCP was refused: {why}{more}")


def _locked(folder: Path) -> int:
    """As a shell's folder is: killed outright, we leave one that the next Tarmac removes (paths.sweep_scratch)."""
    fd = os.open(folder / "in", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    return fd


def descends(pid: int, root: processes.Process) -> bool:
    """Whether `pid` is `root` or below it, by living parents all the way up; each older than its child."""
    started = None
    for _ in range(DEEPEST):
        found = processes.stat(pid)
        if found is None or not found.alive or (started is not None and found.process.started > started):
            return False
        if found.process == root:
            return True
        pid, started = found.parent, found.process.started
    return False


async def _pieces(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while data := await reader.read(READ_SIZE):
        yield data


def _writing(writer: asyncio.StreamWriter) -> Write:
    lock = asyncio.Lock()

    async def write(data: bytes) -> None:
        async with lock:  # a message is whole before the next begins
            writer.write(data)
            await writer.drain()

    return write


def unavailable(error: Exception) -> str:
    """Why there is no way in, for a note."""
    what = error.what if isinstance(error, DirectoryUnavailable) else getattr(error, "strerror", "") or str(error)
    return f"the agent gets no terminals over MCP: {what}"
