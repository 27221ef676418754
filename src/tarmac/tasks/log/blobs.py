"""Store contents that are too large for a line of the log, in files named by their SHA-256.

A blob is on the disk under its name before a record refers to it. It never changes. What is read is checked against the
name; a blob that does not match counts as lost.
"""

import os
import secrets
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from tarmac.models.messages import Blob
from tarmac.tasks.log.disk import sync, sync_folder, unavailable, write_all


class Blobs:
    """The blobs of one task."""

    __slots__ = ("folder",)

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, name: str) -> Path:
        if len(name) != 64 or not name.isalnum():
            raise ValueError(f"{name!r} is no SHA-256")
        return self.folder / name

    def read(self, name: str) -> bytes | None:
        """Its bytes; None when it is gone or not what its name says."""
        try:
            data = self.path(name).read_bytes()
        except (OSError, ValueError):
            return None
        return data if sha256(data).hexdigest() == name else None

    def keep(self, data: bytes, media_type: str = "application/octet-stream") -> Blob:
        """Store `data`; it is durable on return. (It waits for the disk: not for the event loop.)"""
        name = sha256(data).hexdigest()
        try:
            self.keep_all({name: data})
        except OSError as error:
            raise unavailable(self.folder / name, error) from None
        return Blob(name, len(data), media_type)

    def keep_all(self, contents: Mapping[str, bytes]) -> int:
        """Store them by name; they are durable on return. How many syncs it took."""
        if not contents:
            return 0
        syncs = 1
        if not self.folder.is_dir():
            self.folder.mkdir(mode=0o700, exist_ok=True)
            sync_folder(self.folder.parent)  # else a power cut might take all of them at once
            syncs += 1
        for name, data in contents.items():
            if self.read(name) is None:  # a damaged one is written anew
                self._write(self.path(name), data)
                syncs += 1
        sync_folder(self.folder)  # also for one that was there: its writer may not have come this far
        return syncs

    def _write(self, path: Path, data: bytes) -> None:
        new = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            write_all(fd, data, 0)
            sync(fd)
            new.replace(path)
        except BaseException:
            new.unlink(missing_ok=True)
            raise
        finally:
            os.close(fd)
