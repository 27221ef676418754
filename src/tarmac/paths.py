"""Where files live, and how two directories lie to each other.

relation(a, b) → same / parent / child / unrelated: the question behind "may this terminal be moved there?".

It never raises: a name nobody can open (too long, a symlink loop, a NUL) still has a place in the tree,
found from its text alone. The other functions look at the disk and say in plain words what they found.
"""

import errno
import os
import re
import stat
import sys
import time
from collections.abc import Mapping
from enum import Enum
from pathlib import Path

from tarmac.errors import DirectoryUnavailable

REMOVED = Path("/\0removed")  # where a relative path leads from a directory that is gone


class Relation(Enum):
    """How `a` lies to `b`."""

    SAME = "same"
    PARENT = "parent"  # a is a parent of b, at any distance
    CHILD = "child"
    UNRELATED = "unrelated"


def relation(a: Path | None, b: Path | None, *, ignore_case: bool | None = None) -> Relation:
    """How `a` lies to `b`, once dots, slashes and symlinks are out of the way.

    Two absent paths are the same; an absent one is unrelated to any other. `ignore_case` None: as the platform does.
    """
    if a is None or b is None:
        return Relation.SAME if a is b else Relation.UNRELATED
    if ignore_case is None:
        ignore_case = sys.platform in ("darwin", "win32")
    one, two = _parts(a, ignore_case=ignore_case), _parts(b, ignore_case=ignore_case)
    if one == two:
        return Relation.SAME
    if one == two[: len(one)]:
        return Relation.PARENT
    if two == one[: len(two)]:
        return Relation.CHILD
    return Relation.UNRELATED


def _parts(path: Path, *, ignore_case: bool) -> tuple[str, ...]:
    absolute = _absolute(path)
    try:
        text = os.path.realpath(absolute)
    except (OSError, ValueError):  # a NUL, or a surrogate that no file name can hold
        text = os.path.normpath(absolute)
    # lower(), not casefold(): to miss that two names are one costs a `cd`, to mix up two costs the wrong directory
    parts = Path(text.lower() if ignore_case else text).parts
    return (parts[0].replace("//", "/"), *parts[1:])  # POSIX lets `//` be another root; nobody means it


def _absolute(path: Path) -> Path:
    """`path` from the root, `..` left alone: through a symlink it is not what it seems."""
    try:
        return path.absolute()
    except OSError:  # we stand in a directory that was removed: somewhere no other path can be
        return REMOVED / path


def state_dir(environ: Mapping[str, str]) -> Path:
    """Where Tarmac keeps what must outlive it: $TARMAC_STATE_DIR, else under $XDG_STATE_HOME, else under home."""
    if own := environ.get("TARMAC_STATE_DIR"):
        return _absolute(Path(own))
    if xdg := _rooted(environ, "XDG_STATE_HOME"):
        return xdg / "tarmac"
    if home := _rooted(environ, "HOME"):
        return home / ".local/state/tarmac"
    return (_rooted(environ, "TMPDIR") or Path("/tmp")) / f"tarmac-{os.geteuid()}"


def config_dir(environ: Mapping[str, str]) -> Path:
    """Where a person writes what Tarmac shall do: $TARMAC_CONFIG_DIR, else under $XDG_CONFIG_HOME, else under home."""
    if own := environ.get("TARMAC_CONFIG_DIR"):
        return _absolute(Path(own))
    if xdg := _rooted(environ, "XDG_CONFIG_HOME"):
        return xdg / "tarmac"
    if home := _rooted(environ, "HOME"):
        return home / ".config/tarmac"
    return state_dir(environ)


def _rooted(environ: Mapping[str, str], name: str) -> Path | None:
    """The directory a variable names; a relative one is void, as the XDG specification says."""
    path = Path(environ.get(name, ""))
    return path if path.is_absolute() else None


def private_dir(path: Path) -> Path:
    """Make `path` for this user alone, or see that it is; whoever could write there could make us write elsewhere."""
    path = _absolute(path)
    try:
        _make(path)
    except (OSError, ValueError) as error:
        trouble = _unavailable(path, error, "made")
        trouble.hint += "; TARMAC_STATE_DIR says where else Tarmac may keep things"
        raise trouble from None
    try:
        link = os.lstat(path)
        here = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise _unavailable(path, error) from None
    try:
        found = os.fstat(here)  # of what is open, not of the name: that may point elsewhere by now
        # a link that root made is the administrator's way to move us to another disk
        if found.st_uid != os.geteuid() or link.st_uid not in (os.geteuid(), 0):
            raise DirectoryUnavailable(
                f"{shown(path)} belongs to another user", hint="set TARMAC_STATE_DIR to a directory of your own"
            )
        if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            os.fchmod(here, 0o700)
    except PermissionError as error:
        raise _unavailable(path, error) from None
    finally:
        os.close(here)
    return path


def _make(path: Path) -> None:
    """mkdir -p with 0700 for all it makes: Path.mkdir would leave the parents to the umask."""
    for place in reversed((path, *path.parents)):
        if not os.path.lexists(place):
            try:
                place.mkdir(0o700)
            except FileExistsError:  # another Tarmac was quicker
                pass


def nearest_existing(path: Path) -> Path:
    """`path`, or the closest of its parents that is a directory one can enter."""
    path = _absolute(path)
    return next((place for place in (path, *path.parents) if _trouble(place) is None), Path(path.anchor))


def check_directory(path: Path) -> Path:
    """`path` made absolute, when it is a directory one can enter; else an error that says why not."""
    path = _absolute(path)
    if trouble := _trouble(path):
        raise _unavailable(path, trouble)
    return path


def _trouble(path: Path) -> OSError | ValueError | None:
    """Why nobody can `cd` to `path`. Looking up its `.` takes the very permission that `cd` takes."""
    try:
        os.lstat(f"{path}/.")
    except (OSError, ValueError) as error:
        return error
    return None


def _unavailable(path: Path, error: OSError | ValueError, wish: str = "entered") -> DirectoryUnavailable:
    """The error for a person: what is wrong with `path`, and how far one gets."""
    if path.is_relative_to(REMOVED):
        return DirectoryUnavailable("the current folder no longer exists", hint="cd to a folder that exists")
    nearest = nearest_existing(path)
    hint = f"the nearest directory that exists is {shown(nearest)}"
    match error:
        case OSError(errno=errno.ENOENT) if path.is_symlink():
            what = "is a symlink to something that does not exist"
        case OSError(errno=errno.ENOENT):
            what = "does not exist"
        case OSError(errno=errno.ENOTDIR | errno.EEXIST):
            file = next((place for place in reversed((path, *path.parents)) if _is_other(place)), path)
            what = "is a file, not a directory" if file == path else f"cannot exist: {shown(file)} is a file"
        case OSError(errno=errno.EACCES | errno.EPERM):
            what = f"cannot be {wish}: permission denied"
            hint = f"the nearest directory you may enter is {shown(nearest)}"
        case OSError(errno=errno.ELOOP):
            what = "is a symlink that leads back to itself"
        case OSError(errno=errno.ENAMETOOLONG):
            what = "is too long for a path"
        case OSError():
            what = f"cannot be used: {error.strerror}"
        case _:
            what = "cannot be the name of a directory"
    return DirectoryUnavailable(f"{shown(path)} {what}", hint=hint)


def _is_other(path: Path) -> bool:
    """Whether something is there that is not a directory."""
    try:
        return not stat.S_ISDIR(path.stat().st_mode)
    except (OSError, ValueError):
        return False


def read_plain(path: Path, *, most: int, follow: bool = True) -> tuple[bytes, os.stat_result]:
    """The first `most` bytes of a file, and what it is. OSError for whatever is not a file: no pipe holds us up."""
    here = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW))
    try:
        found = os.fstat(here)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "it is a folder" if stat.S_ISDIR(found.st_mode) else "it is not a file")
        pieces = []
        while most > 0 and (piece := os.read(here, min(most, 1 << 20))):
            pieces.append(piece)
            most -= len(piece)
        return b"".join(pieces), found
    finally:
        os.close(here)


def shown(path: Path) -> str:
    """For a message: newlines and undecodable bytes made visible, so that printing it can neither lie nor fail."""
    text = str(path)
    text = text if len(text) <= 300 else f"{text[:200]}…{text[-80:]}"
    return f"`{text}`" if text.isprintable() else ascii(text)


def scratch_dir(environ: Mapping[str, str]) -> Path:
    """A new private folder for the life of one shell. (Not tempfile: it loads random, hashlib and more.)"""
    base = environ.get("TMPDIR") or "/tmp"
    for place in (base, "/tmp", str(state_dir(environ))):
        path = Path(place) / f"tarmac-{os.urandom(8).hex()}"
        try:
            path.mkdir(mode=0o700)
        except OSError as error:
            problem = error
        else:
            return path.absolute()
    raise DirectoryUnavailable(
        f"no temporary folder can be made in {base}: {problem.strerror}", hint="set TMPDIR to a folder you may write in"
    )


def sweep_scratch(environ: Mapping[str, str], *, older_than: float) -> None:
    """Remove scratch folders whose owner was killed: old ones of ours, in which the file `in` is not locked.

    They hold what a shell exported, and so perhaps secrets. A process looks for them once in that time.
    """
    import fcntl

    limit = time.time() - older_than
    for place in {environ.get("TMPDIR") or "/tmp", "/tmp"}:
        if _swept.get(place, 0) > limit:
            continue
        _swept[place] = time.time()
        try:
            with os.scandir(place) as entries:
                found = [each.path for each in entries if _SCRATCH.fullmatch(each.name) and _is_old(each, limit)]
        except OSError:
            continue
        for path in found:
            try:
                fd = os.open(f"{path}/in", os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            except OSError:  # none of a shell's, or already on its way
                continue
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove_scratch(Path(path))
            except OSError:
                pass
            finally:
                os.close(fd)


_swept: dict[str, float] = {}  # where this process has looked, and when
_SCRATCH = re.compile(r"tarmac-[0-9a-f]{16}")


def _is_old(entry: "os.DirEntry[str]", limit: float) -> bool:
    try:
        found = entry.stat(follow_symlinks=False)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and found.st_mtime < limit


def remove_scratch(path: Path) -> None:
    """Remove a scratch folder and all that is in it."""
    try:
        for each in path.iterdir():
            if each.is_dir() and not each.is_symlink():
                remove_scratch(each)
            else:
                each.unlink(missing_ok=True)
        path.rmdir()
    except OSError:
        pass
