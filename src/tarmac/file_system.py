"""The files of this machine, or of another place: what a name means, reading, and writing that survives a crash.

FileSystem ← LOCAL (the kernel) | a place (requests to the host there; `tarmac.fleet.place_files`)

A file is written atomically: after any crash it has the old content or the new one. A new file is written beside the
old one, gets its mode, owner and attributes, is synced, and is renamed over it.

Symlinks are followed: the file behind them is replaced and the link stays. A file with several hard links gets the new
content under this name only, and `Saved.other_names` says so. Writing in place would not survive a crash.

Surprise: a FileSystem follows no link when it reads, lists or writes. Its paths were followed before, when they were
judged, and a link that came since leads where nobody looked.
"""

import errno
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Protocol

from tarmac.errors import EditFailed, FileUnavailable, PlaceFailed, TarmacError
from tarmac.paths import shown

_MOST = 64 << 20
MOST_LINKS = 40  # as many as the kernel follows
LONGEST_PATH = 4096  # characters, as many as the kernel takes


@dataclass(frozen=True, slots=True)
class Saved:
    """A file that was written."""

    path: Path  # the file itself, behind any symlink
    created: bool
    other_names: int = 0  # hard links that keep the old content


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOutput:
    """What a search at another place printed."""

    records: bytes  # the lines of `rg --json`; an empty one for each part of a line that is too long
    code: int
    errors: str
    late: bool = False  # it was ended
    cut: bool = False  # there is more


class Links(Protocol):
    """What it takes to follow a path."""

    def lstat(self, path: str) -> os.stat_result: ...
    def readlink(self, path: str) -> str: ...


class FileSystem(Links, Protocol):
    """Where files are. Calls to another place wait for its connection: make them in a thread, never in the event loop.

    What was seen there is remembered until `afresh`, so that one look at a path takes one request.
    """

    place: str  # as a person writes it; empty: this machine

    def afresh(self) -> "FileSystem":
        """The same, with nothing remembered."""

    def ahead(self, folders: Sequence[str]) -> None:
        """These folders will be listed soon."""

    def know(self, paths: Sequence[str]) -> None:
        """These will be looked at next: a place is asked for all of them at once."""

    def stat(self, path: str) -> os.stat_result: ...
    def entries(self, folder: str) -> list[tuple[str, bool]]:
        """The names in a folder, and which of them are folders; links are followed. OSError as the kernel has it."""

    def read(self, path: Path, *, most: int = _MOST) -> bytes | None:
        """As `read_bytes`, of a path without links."""

    def search(self, wanted: Mapping[str, object]) -> "SearchOutput | None":
        """What a search there found (see `file_verbs.search`); None if there is no ripgrep, or it is this machine."""

    def save(self, path: Path, data: bytes, *, expected: bytes | None = None, new: bool = False) -> Saved:
        """As `save_file`, to a path without links."""

    def remove(self, path: Path, *, expected: bytes | None = None) -> None:
        """As `remove_file`."""

    def chmod(self, path: Path, mode: int) -> None: ...


def follow(path: str, *, start: str = "/", system: Links | None = None) -> str:
    """Where the kernel would get to. OSError for a loop or a closed folder; what does not exist is taken by its name.

    `start` is where the path begins, followed already. Not os.path.realpath: that passes over errors, and follows
    /proc/self as if we were the one who asks.
    """
    lstat, readlink = (os.lstat, os.readlink) if system is None else (system.lstat, system.readlink)
    if len(path) > LONGEST_PATH:
        raise OSError(errno.ENAMETOOLONG, "")
    done = start
    rest = [part for part in reversed(path.split("/")) if part]
    links, missing = 0, False
    while rest:
        part = rest.pop()
        if part in (".", ".."):
            if part == "..":
                done, missing = os.path.dirname(done), False  # noqa: PTH120 what is not there may be made: look on
            continue
        here = done.rstrip("/") + "/" + part
        if missing:
            done = here
            continue
        try:
            target = readlink(here) if stat.S_ISLNK(lstat(here).st_mode) else None
        except FileNotFoundError:
            target, missing = None, True
        if target is None:
            done = here
            continue
        links += 1
        if links > MOST_LINKS:
            raise OSError(errno.ELOOP, "")
        if here.startswith("/proc/"):
            raise ValueError("it goes through /proc, where names mean another thing to each process")
        if target.startswith("/"):
            done = "/"
        rest += [part for part in reversed(target.split("/")) if part]
    return done


def is_folder(path: str, system: FileSystem) -> bool:
    """Whether it leads to a folder."""
    try:
        return stat.S_ISDIR(system.stat(path).st_mode)
    except PlaceFailed:
        raise
    except (OSError, ValueError):
        return False


def digest(data: bytes | None) -> str | None:
    """The SHA-256 of a file's content; None for no file."""
    return None if data is None else sha256(data).hexdigest()


def read_bytes(path: Path, *, most: int = _MOST, links: bool = True) -> bytes | None:
    """The content of a file; None if it does not exist. A pipe or a device is an error, so it never blocks.

    Without `links` a link at the end or on the way is an error, too.
    """
    try:
        if links:
            fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        else:
            with _OpenFolder.of(path) as folder:
                fd = folder.open(path.name or ".", os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise _unavailable(path, error, "read") from None
    return _content(fd, path, most)


def _content(fd: int, path: Path, most: int = _MOST) -> bytes:
    """What a descriptor holds, which is closed then."""
    try:
        found = os.fstat(fd)
        _check_kind(path, found)
        if found.st_size > most:
            raise FileUnavailable(
                f"{shown(path)} has {found.st_size:,} bytes; at most {most:,} are read",
                hint="look at parts of it with search_files or a command such as sed -n",
            )
        with os.fdopen(fd, "rb", closefd=False) as file:
            return file.read()
    except OSError as error:
        raise _unavailable(path, error, "read") from None
    finally:
        os.close(fd)


def save_file(
    path: Path, data: bytes, *, expected: bytes | None = None, new: bool = False, links: bool = True
) -> Saved:
    """Write `data` to `path`, all of it or nothing. Missing folders are created.

    EditFailed if the file no longer has the `expected` content, or with `new`, if it exists. Without `links` a link at
    the end or on the way is an error.
    """
    try:
        target = Path(os.path.realpath(path)) if links else path
        folder = _OpenFolder.of(target, make=True)
    except (OSError, ValueError) as error:
        raise _unavailable(path, error, "written") from None
    with folder:
        try:
            before = folder.look(target.name)
        except (OSError, ValueError) as error:
            raise _unavailable(path, error, "written") from None
        if before is not None:
            _check_kind(path, before)
            if not before.st_mode & 0o222 or not os.access(target.name, os.W_OK, dir_fd=folder.fd):
                raise FileUnavailable(f"{shown(path)} is read-only", hint="chmod u+w makes it writable")
        temporary = f".tarmac-{os.urandom(6).hex()}"  # short, because names have a maximum length
        try:
            _write_beside(folder, temporary, data, target.name, before)
            _check_unchanged(path, folder, target.name, expected=expected, new=new)
            os.replace(temporary, target.name, src_dir_fd=folder.fd, dst_dir_fd=folder.fd)
        except OSError as error:
            raise _unavailable(path, error, "written") from None
        finally:
            try:
                os.unlink(temporary, dir_fd=folder.fd)
            except OSError:  # it was renamed, or never created
                pass
        folder.sync()
    return Saved(target, before is None, before.st_nlink - 1 if before else 0)


def remove_file(path: Path, *, expected: bytes | None = None, links: bool = True) -> None:
    """Remove a file or a symlink; `expected` as for save_file, and `links` for those on the way."""
    try:
        whole = Path(os.path.realpath(path.parent), path.name) if links else path
        with _OpenFolder.of(whole) as folder:
            if stat.S_ISDIR(os.stat(path.name, dir_fd=folder.fd, follow_symlinks=False).st_mode):
                raise FileUnavailable(f"{shown(path)} is a folder", hint="only files are removed")
            _check_unchanged(path, folder, path.name, expected=expected, new=False)
            os.unlink(path.name, dir_fd=folder.fd)
            folder.sync()
    except (OSError, ValueError) as error:
        raise _unavailable(path, error, "removed") from None


def entries_of(folder: Path) -> list[tuple[str, bool]]:
    """The names in a folder, and which of them are folders. OSError if its path has a link on the way."""
    with _OpenFolder.at(os.path.abspath(folder)) as opened, opened.listed() as found:  # noqa: PTH100
        return [(each.name, each.is_dir(follow_symlinks=False)) for each in found]


class _OpenFolder:
    """An open folder: what is done in it is done there, whatever its path leads to meanwhile."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    @classmethod
    def of(cls, file: Path, *, make: bool = False) -> "_OpenFolder":
        """The folder of a file whose path has no links."""
        return cls.at(os.path.dirname(os.path.abspath(file)), make=make)  # noqa: PTH100, PTH120

    @classmethod
    def at(cls, path: str, *, make: bool = False) -> "_OpenFolder":
        """OSError if there is a link on the way."""
        flags = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
        fd = os.open("/", flags)
        try:
            for name in filter(None, path.split("/")):
                try:
                    below = os.open(name, flags, dir_fd=fd)
                except FileNotFoundError:
                    if not make:
                        raise
                    try:
                        os.mkdir(name, dir_fd=fd)
                    except FileExistsError:  # somebody else made it
                        pass
                    below = os.open(name, flags, dir_fd=fd)
                os.close(fd)
                fd = below
        except BaseException:
            os.close(fd)
            raise
        return cls(fd)

    def __enter__(self) -> "_OpenFolder":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.fd)

    def open(self, name: str, flags: int, mode: int = 0o666) -> int:
        return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=self.fd)

    def look(self, name: str) -> os.stat_result | None:
        try:
            return os.stat(name, dir_fd=self.fd, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def read(self, name: str, path: Path) -> bytes | None:
        """The content of a file in it; `path` for messages."""
        try:
            fd = self.open(name, os.O_RDONLY | os.O_NONBLOCK)
        except FileNotFoundError:
            return None
        return _content(fd, path)

    @contextmanager
    def listed(self) -> Iterator[Iterator[os.DirEntry[str]]]:
        fd = self.open(".", os.O_RDONLY | os.O_DIRECTORY)
        try:
            with os.scandir(fd) as found:
                yield found
        finally:
            os.close(fd)

    def sync(self) -> None:
        """Sync a rename. The file is whole either way, so an error is ignored."""
        try:
            fd = self.open(".", os.O_RDONLY | os.O_DIRECTORY)
        except OSError:
            return
        try:
            os.fsync(fd)
        except OSError:
            pass
        finally:
            os.close(fd)


def _write_beside(folder: _OpenFolder, temporary: str, data: bytes, name: str, before: os.stat_result | None) -> None:
    """Write the new file under its temporary name, and sync it."""
    fd = _open_unnamed(folder, before)
    unnamed = fd is not None
    if fd is None:
        fd = folder.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if before else 0o666)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
        if before is not None:
            _keep_attributes(fd, folder, name, before)
        os.fsync(fd)
        if unnamed:
            # src_dir_fd means nothing for an absolute path, but without one Python forgets to follow
            source = f"/proc/self/fd/{fd}"
            os.link(source, temporary, src_dir_fd=fd, dst_dir_fd=folder.fd, follow_symlinks=True)
    finally:
        os.close(fd)


def _open_unnamed(folder: _OpenFolder, before: os.stat_result | None) -> int | None:
    """A file without a name, which leaves nothing behind if we are killed; None if the system has no such files."""
    flag = getattr(os, "O_TMPFILE", None)
    if flag is None or not Path("/proc/self/fd").exists():
        return None
    try:
        return folder.open(".", os.O_WRONLY | flag, 0o600 if before else 0o666)
    except OSError as error:
        if error.errno in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT):
            return None
        raise


def _keep_attributes(fd: int, folder: _OpenFolder, name: str, before: os.stat_result) -> None:
    """Copy owner, extended attributes and mode of the old file, as far as this user may."""
    mode = stat.S_IMODE(before.st_mode)
    try:
        if (before.st_uid, before.st_gid) != (os.geteuid(), os.getegid()):
            os.fchown(fd, before.st_uid, before.st_gid)
    except PermissionError:
        mode &= ~(stat.S_ISUID | stat.S_ISGID)  # the mode must not give another owner's rights
    old = f"/proc/self/fd/{folder.fd}/{name}"
    for each in _attribute_names(old):
        try:
            os.setxattr(fd, each, os.getxattr(old, each, follow_symlinks=False))
        except OSError:  # not for this user
            pass
    os.fchmod(fd, mode)


def _attribute_names(old: str) -> list[str]:
    """Access lists and user attributes. Not capabilities, which belong to the old content."""
    try:
        found = os.listxattr(old, follow_symlinks=False)
    except (OSError, AttributeError):  # not on this file system, not on this platform
        return []
    return [each for each in found if each.startswith(("user.", "system.posix_acl_"))]


def _check_unchanged(path: Path, folder: _OpenFolder, name: str, *, expected: bytes | None, new: bool) -> None:
    if expected is None and not new:
        return
    now = folder.read(name, path)
    if new and now is not None:
        raise EditFailed(f"{shown(path)} was made by somebody else meanwhile", hint="read it before you write it")
    if expected is not None and now != expected:
        what = "was removed" if now is None else "was changed"
        raise EditFailed(f"{shown(path)} {what} by somebody else since it was read", hint="read it again, then edit")


def _check_kind(path: Path, found: os.stat_result) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise FileUnavailable(f"{shown(path)} is a folder", hint="list_files shows what is in it")
    if not stat.S_ISREG(found.st_mode):
        raise FileUnavailable(f"{shown(path)} is a pipe, a socket or a device, not a file")


def _unavailable(path: Path, error: OSError | ValueError, wish: str) -> TarmacError:
    hint = ""
    match error:
        case TarmacError():
            return error
        case OSError(errno=errno.ENOSPC | errno.EDQUOT):
            what = f"can't be {wish}: the disk is full"
            hint = "the file is as it was; make room and try again"
        case OSError(errno=errno.EACCES | errno.EPERM):
            what = f"can't be {wish}: permission denied"
            hint = "its folder must be writable too: a file is replaced, not overwritten" if wish == "written" else ""
        case OSError(errno=errno.ENOENT):
            what = "does not exist"
        case OSError(errno=errno.ELOOP):
            what = f"can't be {wish}: it is a link now"
        case OSError():
            what = f"can't be {wish}: {error.strerror}"
        case _:
            what = "can't be the name of a file"
    found = FileUnavailable(f"{shown(path)} {what}", hint=hint)
    found.errno = error.errno if isinstance(error, OSError) else None
    return found


class LocalFileSystem:
    """That of this machine: the kernel."""

    place = ""
    lstat = staticmethod(os.lstat)
    stat = staticmethod(os.stat)
    readlink = staticmethod(os.readlink)
    read = staticmethod(partial(read_bytes, links=False))
    save = staticmethod(partial(save_file, links=False))
    remove = staticmethod(partial(remove_file, links=False))
    chmod = staticmethod(os.chmod)

    def afresh(self) -> "LocalFileSystem":
        return self

    def ahead(self, folders: Sequence[str]) -> None:
        """The kernel needs no notice."""

    def know(self, paths: Sequence[str]) -> None:
        """Nor for these."""

    def search(self, wanted: Mapping[str, object]) -> None:
        """Who searches here runs ripgrep."""

    def entries(self, folder: str) -> list[tuple[str, bool]]:
        with os.scandir(folder) as found:
            return [(each.name, each.is_dir(follow_symlinks=False)) for each in found]


LOCAL = LocalFileSystem()
