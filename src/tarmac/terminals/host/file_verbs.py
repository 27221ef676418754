"""What a host does with files for its client: look at paths, list folders, read, search, save, remove.

look(path) → each name on the way there with what it is, where links lead, and the ignore files beside them

So one request answers all that the client's policy asks about a path. Run these in a thread: a disk may be slow.
"""

import base64
import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path

from tarmac.errors import EditFailed, FileUnavailable
from tarmac.file_system import digest, follow, read_bytes, remove_file, save_file
from tarmac.paths import shown
from tarmac.terminals.host.wire_values import Header, whole

IGNORING = (".tarmacignore", ".rooignore", ".gitignore")  # small files that say what is hidden: sent with a look
MOST_IGNORING = 256 << 10
MOST_SENT = 8 << 20  # bytes of a file that is read or written there
MOST_ENTRIES = 20_000  # of one folder
MOST_RECORDS = 2 << 20  # bytes of what a search found
LONGEST_RECORD = 1 << 20
MOST_FACTS = 200_000  # bytes of names in one reply, about


class FileFacts:
    """What was seen, as JSON: each path with its numbers or its error, and where it leads."""

    def __init__(self) -> None:
        self.stats: dict[str, list[int] | int] = {}
        self.links: dict[str, str] = {}
        self.contents: dict[str, str] = {}
        self.folders: dict[str, list[list[object]] | int] = {}
        self._size = 0

    @property
    def full(self) -> bool:
        return self._size > MOST_FACTS

    def lstat(self, path: str) -> os.stat_result:
        """Look at it, and note what it is."""
        self._size += len(path) + 40
        try:
            found = os.lstat(path)
            if (found.st_mode & 0o170000) == 0o120000:
                self.links[path] = os.readlink(path)
        except (OSError, ValueError) as error:
            self.stats[path] = getattr(error, "errno", None) or 22
            raise
        self.stats[path] = [
            found.st_mode,
            found.st_nlink,
            found.st_ino,
            found.st_dev,
            found.st_size,
            found.st_mtime_ns,
            found.st_ctime_ns,
        ]
        return found

    def readlink(self, path: str) -> str:
        return self.links[path]

    def look(self, path: str) -> None:
        """Note everything on the way that the kernel takes to `path`."""
        for name in (path, os.path.normpath(path)):
            try:
                self._note(follow(name, system=self))
            except (OSError, ValueError):
                pass
            self._note(name)

    def _note(self, path: str) -> None:
        folder = path
        while folder not in ("", "/"):
            for name in IGNORING[:2]:
                self._read(f"{folder}/{name}")
            folder = folder.rpartition("/")[0]
        if path not in self.stats:
            try:
                self.lstat(path)
            except (OSError, ValueError):
                pass

    def _read(self, file: str) -> None:
        if file in self.stats:
            return
        try:
            found = self.lstat(file)
            target = follow(file, system=self) if file in self.links else file
            if (
                found.st_size <= MOST_IGNORING
                and (data := read_bytes(Path(target), most=MOST_IGNORING, links=False)) is not None
            ):
                self.contents[target] = base64.b64encode(data).decode()
                self._size += len(data) * 4 // 3
        except (OSError, ValueError):
            pass

    def scan(self, folder: str) -> None:
        """Note what is in a folder."""
        try:
            with os.scandir(folder) as found:
                entries = [(each.name, each.is_dir(follow_symlinks=False)) for each in found]
        except (OSError, ValueError) as error:
            self.folders[folder] = getattr(error, "errno", None) or 22
            return
        entries.sort()
        self.folders[folder] = [[name, is_folder] for name, is_folder in entries[:MOST_ENTRIES]]
        for name, _ in entries[:MOST_ENTRIES]:
            path = f"{folder.rstrip('/')}/{name}"
            if name in IGNORING:
                self._read(path)
            elif not self.full:
                try:
                    self.lstat(path)
                except (OSError, ValueError):
                    pass

    def as_json(self) -> dict[str, object]:
        return {"stats": self.stats, "links": self.links, "contents": self.contents, "folders": self.folders}


def look(paths: Iterable[str], folders: Iterable[str]) -> dict[str, object]:
    """What is at these paths, and in these folders as far as there is room in a reply; the first of them always."""
    facts = FileFacts()
    for path in paths:
        facts.look(path)
    for folder in folders:
        if not (facts.folders and facts.full):
            facts.scan(folder)
    return facts.as_json()


def read(path: Path, most: int) -> bytes | None:
    return read_bytes(path, most=min(most, MOST_SENT), links=False)


def save(path: Path, data: bytes, given: Header) -> dict[str, object]:
    """As `save_file`; `expected` is a digest here."""
    expected = _expected(path, given)
    saved = save_file(path, data, expected=expected, new=given.get("new") is True, links=False)
    return {"path": os.fspath(saved.path), "created": saved.created, "other_names": saved.other_names}


def remove(path: Path, given: Header) -> None:
    remove_file(path, expected=_expected(path, given), links=False)


def chmod(path: Path, given: Header) -> None:
    try:
        path.chmod(whole(given, "mode"))
    except OSError as error:
        raise FileUnavailable(f"the mode of {shown(path)} can't be changed: {error.strerror}") from None


def search(body: bytes) -> tuple[dict[str, object], bytes]:
    """Run ripgrep with `argv` in `folder`, or a search of our own through `files`. The reply has its records.

    It says `found` false where there is no ripgrep, `late` if the search was ended, and `cut` if there is more.
    """
    # Imported here: a host starts sooner without them.
    import shutil
    import subprocess
    import tempfile
    import threading

    from tarmac.terminals.host import text_search

    wanted = json.loads(body)
    if "files" in wanted:
        argv = [sys.executable, "-I", "-S", text_search.__file__]
    elif program := shutil.which("rg"):
        argv = [program, *wanted["argv"]]
    else:
        return {"found": False}, b""
    environ = {name: value for name in ("PATH", "HOME", "LANG") if (value := os.environ.get(name))}
    kept: list[bytes] = []
    size, in_long, late = 0, False, threading.Event()
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as errors:
        given.write(body)
        given.seek(0)
        try:
            process = subprocess.Popen(
                argv, cwd=wanted["folder"], stdin=given, stdout=subprocess.PIPE, stderr=errors, env=environ
            )
        except OSError as error:
            raise FileUnavailable(f"{shown(Path(wanted['folder']))} can't be searched: {error.strerror}") from None

        def end() -> None:
            late.set()
            process.kill()

        patience = threading.Timer(wanted["patience"], end)
        patience.start()
        with process:
            assert process.stdout is not None
            while size <= MOST_RECORDS and (line := process.stdout.readline(LONGEST_RECORD)):
                if line.endswith(b"\n") and not in_long:
                    kept.append(line)
                    size += len(line)
                elif not line.endswith(b"\n"):
                    kept.append(b"\n")  # for a part of one that is too long
                in_long = not line.endswith(b"\n")
            if size > MOST_RECORDS:
                process.kill()
        patience.cancel()
        errors.seek(0)
        said = errors.read(4096).decode(errors="replace")
    reply = {"found": True, "code": process.returncode, "errors": said, "late": late.is_set()}
    return {**reply, "cut": size > MOST_RECORDS}, b"".join(kept)


def _expected(path: Path, given: Header) -> bytes | None:
    """The content that the client expects, if the file has it."""
    wanted = given.get("expected")
    if wanted is None:
        return None
    now = read_bytes(path, links=False)
    if now is None or digest(now) != wanted:
        what = "was removed" if now is None else "was changed"
        raise EditFailed(f"{shown(path)} {what} by somebody else since it was read", hint="read it again, then edit")
    return now
