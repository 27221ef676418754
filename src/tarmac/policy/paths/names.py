"""Names that mean more than a file, found in a path: which of a list is in it, and why it is listed.

Names(listed).why(path) → "it holds keys" | ""

A name of the list is one or more parts, at any depth of the path, or from the root when it begins with a slash; `*` is
any part of a part. The leftmost place in the path counts, and there the first of the list. Case does not count.
"""

import unicodedata
from collections.abc import Mapping, Sequence
from typing import NamedTuple


class _Name(NamedTuple):
    rank: int
    parts: tuple[str, ...]
    rooted: bool
    why: str


class Names:
    """One list, by the first part of each name; those that begin with a pattern are tried one by one."""

    def __init__(self, listed: Mapping[str, str]) -> None:
        self._plain: dict[str, list[_Name]] = {}
        self._patterns: list[_Name] = []
        for rank, (why, names) in enumerate(listed.items()):
            for name in _folded(names).split():
                parts = tuple(name.removeprefix("/").split("/"))
                made = _Name(rank, parts, name.startswith("/"), why)
                if "*" in parts[0]:
                    self._patterns.append(made)
                else:
                    self._plain.setdefault(parts[0], []).append(made)
        # What begins or ends like none of the patterns needs no look at each.
        firsts = [each.parts[0] for each in self._patterns]
        self._heads = tuple(head for each in firsts if (head := each.partition("*")[0]))
        self._tails = tuple(each.rpartition("*")[2] for each in firsts if each.startswith("*"))

    def why(self, path: str) -> str:
        """Why a path with one of the names in it is more than a file; empty when none is."""
        parts = _folded(path).split("/")
        rooted = path.startswith("/")
        if rooted:
            del parts[0]
        for place, part in enumerate(parts):
            found = self._plain.get(part, ())
            if part.startswith(self._heads) or part.endswith(self._tails):
                found = sorted((*found, *self._patterns))
            for each in found:
                if _matches(each, parts, place, rooted=rooted):
                    return each.why
        return ""


def _matches(name: _Name, parts: Sequence[str], place: int, *, rooted: bool) -> bool:
    if name.rooted and not (rooted and place == 0):
        return False
    here = parts[place : place + len(name.parts)]
    return len(here) == len(name.parts) and all(map(_fits, name.parts, here))


def _fits(pattern: str, part: str) -> bool:
    """As a shell would have it, with `*` alone."""
    if "*" not in pattern:
        return pattern == part
    head, *middle, tail = pattern.split("*")
    if not (part.startswith(head) and part.endswith(tail) and len(part) >= len(head) + len(tail)):
        return False
    at = len(head)
    for each in middle:
        at = part.find(each, at, len(part) - len(tail))
        if at < 0:
            return False
        at += len(each)
    return True


def _folded(path: str) -> str:
    """As a file system that ignores case and invisible letters may read it: `.GIT`, `.g\u200cit`."""
    if path.isascii():
        return path.lower()
    return "".join(
        each for each in unicodedata.normalize("NFKC", path).casefold() if unicodedata.category(each) != "Cf"
    )
