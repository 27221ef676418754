"""Write git's blobs and trees by hand, where starting git would take longer than the work.

write("blob", data) → id        changed_tree(folders, {"src/a.py": (mode, id), "b.py": None}) → id of the new tree
"""

import os
import zlib
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha1
from pathlib import Path
from typing import Final, TypeAlias

FOLDER: Final = "40000"

Entry: TypeAlias = tuple[str, str]  # mode, and the id of its object
Entries: TypeAlias = dict[bytes, Entry]


class Tangled(Exception):
    """A file where a folder is wanted, or the other way round."""


def write(folder: Path, kind: str, data: bytes) -> str:
    """Store an object in the repository at `folder`, unless it is there."""
    whole = f"{kind} {len(data)}\0".encode() + data
    id = sha1(whole, usedforsecurity=False).hexdigest()
    place = folder / "objects" / id[:2] / id[2:]
    if not place.exists():
        place.parent.mkdir(exist_ok=True)
        new = folder / "objects" / f"tmp_obj_{os.getpid()}"
        new.write_bytes(zlib.compress(whole, 0))
        new.replace(place)
    return id


def parsed_tree(data: bytes) -> Entries:
    found: Entries = {}
    at = 0
    while at < len(data):
        mode, _, name = data[at : data.index(b"\0", at)].partition(b" ")
        at += len(mode) + len(name) + 2
        found[name] = (mode.decode(), data[at : at + 20].hex())
        at += 20
    return found


def folders_of(names: Mapping[str, object]) -> set[str]:
    """The folders above these files; "" is the top."""
    found = {""}
    for name in names:
        while name := name.rpartition("/")[0]:
            found.add(name)
    return found


def changed_tree(
    folders: Mapping[str, Entries], changes: Mapping[str, Entry | None], save: Callable[[bytes], str]
) -> str:
    """The tree with these files changed. `folders`: the entries of every folder above them, where there is one."""
    new = {folder: dict(folders.get(folder, {})) for folder in folders_of(changes)}
    for name, entry in changes.items():
        folder, _, last = name.rpartition("/")
        old = new[folder].get(os.fsencode(last))
        if name in new or (old is not None and old[0] == FOLDER):
            raise Tangled(name)
        if entry is None:
            new[folder].pop(os.fsencode(last), None)
        else:
            new[folder][os.fsencode(last)] = entry
    for folder in sorted(new, key=lambda each: -each.count("/") if each else 1):  # the deepest first, the top last
        if not folder:
            break
        above, _, last = folder.rpartition("/")
        old = folders.get(above, {}).get(os.fsencode(last))
        if old is not None and old[0] != FOLDER:
            raise Tangled(folder)
        if new[folder]:
            new[above][os.fsencode(last)] = (FOLDER, save(_packed(new[folder])))
        else:
            new[above].pop(os.fsencode(last), None)
    return save(_packed(new[""]))


def _packed(entries: Entries) -> bytes:
    return b"".join(_lines(entries))


def _lines(entries: Entries) -> Iterator[bytes]:
    order = sorted(entries, key=lambda name: name + b"/" if entries[name][0] == FOLDER else name)  # git's own
    for name in order:
        mode, id = entries[name]
        yield mode.encode() + b" " + name + b"\0" + bytes.fromhex(id)
