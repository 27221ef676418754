"""The lines of a text, to be searched again and again: for the same lines, and for lines that say the same.

Hay(lines).keyed(key) → Keyed: each line's key, and all of them as one text, in which C looks for several in a row

A way to look at the lines is worked out when it is first asked for, and once: a file of 20 MB has half a million, and
an edit may have twenty blocks. Looking for something similar is what can't be made cheap: a text has so much `work`
for that, and no more; and one of a million lines is only searched as it is.
"""

import re
from collections.abc import Callable, Sequence
from itertools import compress

MOST_LINES = 1_000_000  # of a text in which more is looked for than the very same lines
MOST_WORK = 300_000_000  # steps in search of one similar place: some hundred milliseconds
_MOST_WORK_IN_ALL = 4 * MOST_WORK
_MANY = 10_000  # places that are looked at in search of the nearest
_RETYPED = 100_000  # characters
_MOST_KNOWN = 200  # places of one line that are remembered
_QUOTES = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛′`", "'"),
        **dict.fromkeys("“”„‟″«»", '"'),
        **dict.fromkeys("‐‑‒–—―−", "-"),
        "…": "...",
        "\ufeff": "",
        "\u200b": "",
        **{chr(0xDC00 + byte): "\ufffd" for byte in range(0x80, 0x100)},  # a stray byte is shown as U+FFFD
    }
)
_ODD = re.compile(f"[{re.escape(''.join(map(chr, _QUOTES)))}]")


def loose(line: str) -> str:
    """A line as somebody would retype it: single spaces, plain quotes and dashes. Nobody retypes one without end."""
    if len(line) > _RETYPED:
        return line.strip()
    if not line.isascii() and _ODD.search(line):
        line = line.translate(_QUOTES)
    return " ".join(line.split())


class Keyed:
    """The keys of lines, in their order."""

    __slots__ = ("_text", "keys")

    def __init__(self, keys: Sequence[str]) -> None:
        self.keys = keys
        self._text = "\n".join(["", *keys, ""])  # each line between two newlines

    def __contains__(self, needle: Sequence[str]) -> bool:
        return bool(self.places(needle, most=1))

    def places(self, needle: Sequence[str], *, start: int = 0, near: int | None = None, most: int) -> list[int]:
        """Where these keys lie in a row, from `start` on: the first `most` places, or those nearest to a line."""
        if not self.keys:
            return []
        wanted = "\n".join(["", *needle, ""])
        begin = self._offset(start)
        spots = self._spots(wanted, begin, most if near is None else _MANY)
        if near is not None and len(spots) == _MANY and spots[-1] < (there := self._offset(near)):
            spots = self._spots(wanted, max(begin, there - _MANY), _MANY)
        found = self._lines(spots)
        return found if near is None else sorted(sorted(found, key=lambda at: abs(at - near))[:most])

    def _spots(self, wanted: str, begin: int, most: int) -> list[int]:
        spots: list[int] = []
        at = self._text.find(wanted, begin)
        while at >= 0 and len(spots) < most:
            spots.append(at)
            at = self._text.find(wanted, at + 1)
        return spots

    def _offset(self, line: int) -> int:
        """Where the newline before a line is."""
        return sum(map(len, self.keys[: max(line, 0)])) + min(max(line, 0), len(self.keys))

    def _lines(self, spots: list[int]) -> list[int]:
        found: list[int] = []
        line = before = 0
        for spot in spots:
            line += self._text.count("\n", before, spot)
            before = spot
            found.append(line)
        return found


class Hay:
    """The lines of one text."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self.work = _MOST_WORK_IN_ALL
        self._keyed: dict[Callable[[str], str], Keyed] = {}
        self._filled: tuple[list[int], Keyed] | None = None
        self._where: dict[str, list[int]] | None = None

    @property
    def huge(self) -> bool:
        """Whether there are too many to be looked at one by one."""
        return len(self.lines) > MOST_LINES

    def keyed(self, key: Callable[[str], str]) -> Keyed:
        """The lines by a key of each."""
        if key not in self._keyed:
            self._keyed[key] = Keyed(self.lines if key is str else list(map(key, self.lines)))
        return self._keyed[key]

    @property
    def loose(self) -> Sequence[str]:
        """The lines as somebody would retype them."""
        return self.keyed(loose).keys

    def filled(self) -> tuple[list[int], Keyed]:
        """Those that are not blank: their numbers, and as somebody would retype them."""
        if self._filled is None:
            keys = self.loose
            self._filled = list(compress(range(len(keys)), keys)), Keyed(list(filter(None, keys)))
        return self._filled

    def where(self, key: str) -> Sequence[int]:
        """The first places of a line, as somebody would retype it."""
        if self._where is None:
            self._where = {}
            for at, each in enumerate(self.loose):
                places = self._where.get(each)
                if places is None:
                    self._where[each] = [at]
                elif len(places) < _MOST_KNOWN:
                    places.append(at)
        return self._where.get(key, ())
