"""The files of another place, through the host there.

lstat(path) ─ not known yet? ─ look(path) → all names on the way, their links and ignore files → remembered

The calls block: they are for threads, while the event loop serves the connection. What one request brought answers
the questions that follow it. `afresh` forgets that, so whoever acts looks again.
"""

import asyncio
import base64
import errno
import json
import os
import threading
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from tarmac.errors import FileUnavailable, PlaceFailed
from tarmac.file_system import Saved, SearchOutput, digest, follow
from tarmac.fleet.place_connection import PlaceConnection
from tarmac.paths import shown
from tarmac.terminals.host.file_verbs import MOST_SENT
from tarmac.terminals.host.wire_values import path_text, text, whole

MOST_AHEAD = 64  # folders that one request lists
T = TypeVar("T")


class PlaceFiles:
    """Made in the event loop of the connection. It remembers nothing: those that `afresh` makes do."""

    def __init__(self, connection: PlaceConnection, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self._remembers = loop is not None
        self.place = connection.transport.name
        self._connection = connection
        self._loop = loop or asyncio.get_running_loop()
        self._serving = threading.get_ident() if loop is None else None
        self._stats: dict[str, list[int] | int] = {}
        self._links: dict[str, str] = {}
        self._contents: dict[str, bytes] = {}
        self._folders: dict[str, list[tuple[str, bool]] | int] = {}
        self._ahead: list[str] = []

    def afresh(self) -> "PlaceFiles":
        other = PlaceFiles(self._connection, self._loop)
        other._serving = self._serving
        return other

    def ahead(self, folders: Sequence[str]) -> None:
        self._ahead = [each for each in folders if each not in self._folders][:MOST_AHEAD]

    def know(self, paths: Sequence[str]) -> None:
        if paths:
            self._look(paths=paths)

    # Looking

    def lstat(self, path: str) -> os.stat_result:
        if "\0" in path:
            raise ValueError("embedded null byte")  # as the kernel's interface says it
        if not self._remembers:
            self._forget()
        found = self._stats.get(path)
        if found is None and self._is_listed_without(path):
            found = errno.ENOENT
        if found is None:
            self._look(paths=[path])
            found = self._stats.get(path, errno.ENOENT)
        if isinstance(found, int):
            raise OSError(found, os.strerror(found), path)
        mode, links, inode, device, size, modified, changed = found
        return os.stat_result(
            (mode, inode, device, links, 0, 0, size, 0, modified // 10**9, changed // 10**9),
            {"st_mtime_ns": modified, "st_ctime_ns": changed},
        )

    def _is_listed_without(self, path: str) -> bool:
        """Whether its folder was listed, and it is not there."""
        folder, _, name = path.rpartition("/")
        listed = self._folders.get(folder or "/")
        return isinstance(listed, list) and all(name != each for each, _ in listed)

    def stat(self, path: str) -> os.stat_result:
        return self.lstat(follow(path, system=self))

    def readlink(self, path: str) -> str:
        self.lstat(path)
        if path not in self._links:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)
        return self._links[path]

    def entries(self, folder: str) -> list[tuple[str, bool]]:
        if not self._remembers:
            self._forget()
        found = self._folders.get(folder)
        if found is None:
            self._look(folders=[folder, *(each for each in self._ahead if each != folder)])
            found = self._folders.get(folder, errno.ENOENT)
        if isinstance(found, int):
            raise OSError(found, os.strerror(found), folder)
        return found

    def _look(self, *, paths: Sequence[str] = (), folders: Sequence[str] = ()) -> None:
        wanted = json.dumps({"paths": list(paths), "folders": list(folders)}).encode()
        _, body = self._wait(self._connection.ask("look", wanted))
        try:
            found = json.loads(body)
            self._stats |= found["stats"]
            self._links |= found["links"]
            self._contents |= {path: base64.b64decode(data) for path, data in found["contents"].items()}
            for folder, names in found["folders"].items():
                self._folders[folder] = names if isinstance(names, int) else [(name, is_it) for name, is_it in names]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise PlaceFailed(f"{self.place} sent an invalid answer about its files: {error}") from None

    # Contents

    def read(self, path: Path, *, most: int = MOST_SENT) -> bytes | None:
        known = self._contents.get(os.fspath(path)) if self._remembers else None
        if known is not None and len(known) <= most:
            return known
        header, body = self._wait(self._connection.ask("read", path=path_text(path), most=min(most, MOST_SENT)))
        return body if header.get("found") is True else None

    def search(self, wanted: Mapping[str, object]) -> SearchOutput | None:
        reply, records = self._wait(self._connection.ask("search", json.dumps(wanted).encode()))
        if reply.get("found") is not True:
            return None
        return SearchOutput(
            records=records,
            code=whole(reply, "code", 0),
            errors=text(reply, "errors", ""),
            late=reply.get("late") is True,
            cut=reply.get("cut") is True,
        )

    def save(self, path: Path, data: bytes, *, expected: bytes | None = None, new: bool = False) -> Saved:
        if len(data) > MOST_SENT:
            raise FileUnavailable(
                f"{shown(path)} would have {len(data):,} bytes; at most {MOST_SENT:,} are written at {self.place}",
                hint="write it with a command there",
            )
        asked = self._connection.ask("save", data, path=path_text(path), expected=digest(expected), new=new)
        reply, _ = self._wait(asked)
        self._forget()
        return Saved(
            Path(text(reply, "path")), created=reply.get("created") is True, other_names=whole(reply, "other_names", 0)
        )

    def remove(self, path: Path, *, expected: bytes | None = None) -> None:
        self._wait(self._connection.ask("remove", path=path_text(path), expected=digest(expected)))
        self._forget()

    def chmod(self, path: Path, mode: int) -> None:
        self._wait(self._connection.ask("chmod", path=path_text(path), mode=mode))
        self._forget()

    def _forget(self) -> None:
        for each in (self._stats, self._links, self._contents, self._folders):
            each.clear()

    def _wait(self, call: Coroutine[Any, Any, T]) -> T:
        """What the host answers. It is asked in the event loop, for which this thread waits."""
        if threading.get_ident() == self._serving:
            call.close()
            raise AssertionError("files of another place are looked at in a thread: here nobody would answer")
        return asyncio.run_coroutine_threadsafe(call, self._loop).result()
