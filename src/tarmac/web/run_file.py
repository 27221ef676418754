"""What a running server leaves on the disk: where it is, which tasks it has open, and who may come back.

<state>/web.json    {"pid", "port", "open": [task], "proofs": [[SHA-256, last used]], "secret"}

A second `tarmac web` finds the first by it, and asks it for another address. A server that was killed leaves it behind:
the next one takes its port, opens its tasks again, and knows its pages.
"""

import json
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from tarmac.paths import private_dir
from tarmac.tasks.log.writer import is_alive

NAME: Final = "web.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRun:
    """One run of the server."""

    pid: int = 0
    port: int = 0
    workspace: str = ""
    open: tuple[str, ...] = ()  # ids of tasks
    proofs: tuple[tuple[str, float], ...] = ()
    secret: str = ""  # for another `tarmac web` of the same user

    @property
    def alive(self) -> bool:
        return self.pid > 0 and is_alive(self.pid)


class RunFile:
    """The file. Nothing depends on it: one that can't be read or written is left alone."""

    def __init__(self, state: Path) -> None:
        self._path = state / NAME

    def read(self) -> ServerRun:
        try:
            found = json.loads(self._path.read_bytes())
            return ServerRun(
                pid=int(found["pid"]),
                port=int(found["port"]),
                workspace=str(found["workspace"]),
                open=tuple(str(each) for each in found["open"]),
                proofs=tuple((str(digest), float(used)) for digest, used in found["proofs"]),
                secret=str(found["secret"]),
            )
        except (OSError, ValueError, KeyError, TypeError):
            return ServerRun()

    def write(self, run: ServerRun) -> None:
        try:
            private_dir(self._path.parent)
            beside = self._path.with_name(f".{NAME}.{os.getpid()}")
            fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            with os.fdopen(fd, "w") as file:
                json.dump(asdict(run), file)
            beside.replace(self._path)
        except OSError:
            pass

    def leave(self) -> None:
        """The server ends in order: it is not running, but its pages and tasks may come back."""
        self.write(replace(self.read(), pid=0, secret=""))
