"""The files that are sent to another machine: `tarmac.terminals`, `tarmac.vt` and the modules below them.

python3 there ← bootstrap.py ← files, if that machine does not have them yet → host

If the Python there has our version, the modules are sent compiled, which halves the start. They use the standard
library only. A test imports them with nothing else on the path.
"""

import hashlib
import importlib.util
import json
import marshal
import os
import time
import zlib
from functools import cache
from pathlib import Path

from tarmac.paths import read_plain

SOURCE = Path(__file__).parent.parent
MODULES = ("errors.py", "events.py", "file_system.py", "paths.py", "seccomp.py")
PACKAGES = ("terminals", "vt")
NOT_CARRIED = ("terminals/doctor/",)
OLD = 14 * 86400  # seconds: pieces of other versions are removed after so long
MOST_KEPT = 16 << 20
BOOTSTRAP = Path(__file__).parent / "bootstrap.py"


@cache
def carried_files() -> dict[str, bytes]:
    """The files by their names below `tarmac/`."""
    names = [*MODULES]
    for package in PACKAGES:
        names += sorted(
            str(each.relative_to(SOURCE))
            for each in (SOURCE / package).rglob("*")
            if each.is_file() and each.suffix not in (".pyc", ".pyi") and "__pycache__" not in each.parts
        )
    names = [name for name in names if not name.startswith(NOT_CARRIED)]
    return {"__init__.py": b"", **{name: (SOURCE / name).read_bytes() for name in names}}


@cache
def carried_hash() -> str:
    """Names this content, so that a machine needs it only once."""
    digest = hashlib.sha256()
    for name, data in sorted(carried_files().items()):
        digest.update(f"{name}\0{len(data)}\0".encode() + data)
    return digest.hexdigest()[:24]


@cache
def carried_bytes(*, compiled: bool) -> bytes:
    """The files as one piece: JSON of names and sizes, a newline, and the contents; compressed.

    Compiling takes most of a second on a slow machine, so the piece is kept in ~/.cache/tarmac.
    """
    kept = _cache_folder() / f"carried-{carried_hash()}-{importlib.util.MAGIC_NUMBER.hex() if compiled else 'source'}"
    try:
        data, info = read_plain(kept, most=MOST_KEPT, follow=False)
        if info.st_uid == os.geteuid() and not info.st_mode & 0o022 and _is_whole(data):
            return data
    except OSError:
        pass
    data = _pack(compiled=compiled)
    _keep(kept, data)
    return data


def _cache_folder() -> Path:
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (given if given.is_absolute() else Path(os.environ.get("HOME", "/nowhere")) / ".cache") / "tarmac"


def _is_whole(data: bytes) -> bool:
    try:
        zlib.decompress(data)  # it ends with a checksum
    except zlib.error:
        return False
    return True


def _keep(path: Path, data: bytes) -> None:
    """Keep it for the next program, in the place of those of other versions. It is no loss if that can't be done."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        for each in path.parent.glob("carried-*"):
            if each != path and time.time() - each.lstat().st_mtime > OLD:
                each.unlink()
        new = path.with_name(f"new-{path.name}-{os.getpid()}")
        new.unlink(missing_ok=True)
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as file:
            file.write(data)
        new.rename(path)
    except OSError:
        pass


def _pack(*, compiled: bool) -> bytes:
    files: dict[str, bytes] = {}
    for name, data in carried_files().items():
        if compiled and name.endswith(".py"):
            files[name + "c"] = _compile(name, data)
        else:
            files[name] = data
    index = json.dumps([[f"tarmac/{name}", len(data)] for name, data in files.items()])
    return zlib.compress(index.encode() + b"\n" + b"".join(files.values()), 6)


def _compile(name: str, data: bytes) -> bytes:
    code = compile(data, f"<carried>/tarmac/{name}", "exec", dont_inherit=True)
    return importlib.util.MAGIC_NUMBER + bytes(12) + marshal.dumps(code)


def is_same_python(magic: str) -> bool:
    """Whether modules that are compiled here run there."""
    return magic == importlib.util.MAGIC_NUMBER.hex()
