"""Runs on the other machine before anything of Tarmac is there. It is sent as text; see carried.py.

It says `WANT` or `HAVE`, receives the files if it needs them, and becomes the relay to the host. Each line that it
prints begins with a marker, so output of a login script is not mistaken for it.
"""

# ruff: noqa: PTH103, PTH104, PTH112, PTH118, PTH120, PTH123, PTH208
# (pathlib would be imported for this alone)

import errno
import importlib.util
import json
import os
import sys
import zlib

OLD = 14 * 86400  # seconds: files of other versions that nobody used for so long are removed


def say(marker: str, *words: str) -> None:
    data = f"\n{marker} {' '.join(words)}\n".encode()
    while data:
        data = data[os.write(1, data) :]


def read(size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = os.read(0, min(size - len(data), 1 << 16))
        if not piece:
            sys.exit(1)
        data += piece
    return data


def folders() -> "list[str]":
    """Where the files may be kept, the best first."""
    home = os.environ.get("HOME", "")
    cache = os.environ.get("XDG_CACHE_HOME") or (home + "/.cache" if home.startswith("/") else "")
    own = "tarmac-" + str(os.geteuid())
    named = [cache + "/tarmac" if cache.startswith("/") else ""]
    return [each for each in named if each] + [f"{each}/{own}" for each in ("/tmp", "/var/tmp", "/dev/shm")]


def usable(folder: str) -> bool:
    """Make it for us alone, or see that it is."""
    try:
        os.makedirs(folder, 0o700, exist_ok=True)
        found = os.lstat(folder)
    except OSError:
        return False
    return found.st_uid == os.geteuid() and not found.st_mode & 0o022 and (found.st_mode & 0o170000) == 0o040000


def unpack(data: bytes, target: str) -> None:
    """Write the files to a folder beside `target`, and put it in place when it is whole."""
    plain = zlib.decompress(data)
    end = plain.index(b"\n")
    part = f"{target}.{os.getpid()}"
    at = end + 1
    made = set()
    for name, size in json.loads(plain[:end]):
        path = f"{part}/{name}"
        parent = os.path.dirname(path)
        if parent not in made:
            os.makedirs(parent, 0o700, exist_ok=True)
            made.add(parent)
        with open(path, "wb", 0) as file:
            if file.write(plain[at : at + size]) != size:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        at += size
    try:
        os.rename(part, target)
    except OSError:
        remove(part)
        if not os.path.isdir(target):  # else another connection was quicker
            raise


def remove(folder: str) -> None:
    import shutil

    shutil.rmtree(folder, ignore_errors=True)


def sweep(folder: str, kept: str) -> None:
    import time

    for each in os.listdir(folder):
        path = os.path.join(folder, each)
        try:
            if each.startswith("host-") and each != kept and os.lstat(path).st_mtime < time.time() - OLD:
                remove(path)
        except OSError:
            pass


def place(marker: str, content: str) -> str:
    """The folder with our files."""
    magic = importlib.util.MAGIC_NUMBER.hex()
    name = f"host-{content}-{magic}"
    for folder in folders():
        path = os.path.join(folder, name)
        if usable(folder) and os.path.isdir(path):
            try:
                os.utime(path)
            except OSError:
                pass
            return path
    say(marker, "WANT", magic)
    data = read(int(read(10)))
    trouble = "no folder can be written"
    for folder in folders():
        if usable(folder):
            path = os.path.join(folder, name)
            try:
                unpack(data, path)
                sweep(folder, name)
                return path
            except OSError as error:
                remove(f"{path}.{os.getpid()}")
                trouble = f"{error.strerror} in {folder}"
    say(marker, "NO-ROOM", trouble)
    sys.exit(1)


def main(marker: str, content: str, session: str, new: str) -> None:
    sys.dont_write_bytecode = True
    sys.path.insert(0, place(marker, content))
    try:
        from tarmac.errors import TarmacError
        from tarmac.terminals.host.host import relay

        relay(session, new=new == "new", ready=lambda: say(marker, "READY"))
    except Exception as error:
        what = str(getattr(error, "what", "")) or f"{type(error).__name__}: {error}"
        hint = error.hint if isinstance(error, TarmacError) else ""
        say(marker, "FAILED", json.dumps([what, hint, str(getattr(error, "trouble", ""))]))
        sys.exit(1)
