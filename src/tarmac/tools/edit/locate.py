"""Find the lines that an edit means: exact first, then with other white space, then without blank lines, then similar.

A step that finds one place ends the search. One that finds several uses `near`, a line number that the model gave, or
refuses: an edit in the wrong place is worse than none. Similar lines are never enough by themselves. There must be at
least three, half of them equal, and no other place that fits.

`Haystack` holds the lines of a text in the forms that the steps need. Each form is computed once, when it is needed,
because a file of 20 MB has half a million lines and an edit may have twenty blocks. The search for something similar is
expensive, so each text has a budget for it. In a text of more than a million lines only exact matches are found.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Literal

MOST_LINES = 1_000_000  # in a longer text only exact matches are found
MOST_WORK = 300_000_000  # steps in a search for something similar: some hundred milliseconds
_MOST_WORK_IN_ALL = 4 * MOST_WORK
_MANY = 10_000  # places among which the nearest is chosen
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
_AROUND = re.compile(r" ?([^\w ]) ?")
_ODD = re.compile(f"[{re.escape(''.join(map(chr, _QUOTES)))}]")


def loose(line: str) -> str:
    """A line with single spaces and plain quotes and dashes, as it would be retyped."""
    if len(line) > _RETYPED:
        return line.strip()
    if not line.isascii() and _ODD.search(line):
        line = line.translate(_QUOTES)
    return " ".join(line.split())


def tight(line: str) -> str:
    """The same without the spaces around what is not a letter or digit: `f( a )` is `f(a)`."""
    return _AROUND.sub(r"\1", loose(line)) if len(line) <= _RETYPED else line.strip()


class Keyed:
    """One key per line, in order."""

    __slots__ = ("_text", "keys")

    def __init__(self, keys: Sequence[str]) -> None:
        self.keys = keys
        self._text = "\n".join(["", *keys, ""])  # each line between two newlines

    def __contains__(self, needle: Sequence[str]) -> bool:
        return bool(self.places(needle, most=1))

    def places(self, needle: Sequence[str], *, start: int = 0, near: int | None = None, most: int) -> list[int]:
        """Where these keys follow each other, from `start` on: the first `most` places, or the nearest to `near`."""
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
        """The offset of the newline before a line."""
        return sum(map(len, self.keys[: max(line, 0)])) + min(max(line, 0), len(self.keys))

    def _lines(self, spots: list[int]) -> list[int]:
        found: list[int] = []
        line = before = 0
        for spot in spots:
            line += self._text.count("\n", before, spot)
            before = spot
            found.append(line)
        return found


class Haystack:
    """The lines of one text."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self.work = _MOST_WORK_IN_ALL
        self._keyed: dict[Callable[[str], str], Keyed] = {}
        self._filled: tuple[list[int], Keyed] | None = None
        self._where: dict[str, list[int]] | None = None

    @property
    def huge(self) -> bool:
        """Whether there are too many lines to look at each."""
        return len(self.lines) > MOST_LINES

    def keyed(self, key: Callable[[str], str]) -> Keyed:
        """The lines as keys."""
        if key not in self._keyed:
            self._keyed[key] = Keyed(self.lines if key is str else list(map(key, self.lines)))
        return self._keyed[key]

    @property
    def loose(self) -> Sequence[str]:
        """The lines as they would be retyped."""
        return self.keyed(loose).keys

    def filled(self) -> tuple[list[int], Keyed]:
        """The numbers of lines that are not blank, and these lines as they would be retyped."""
        if self._filled is None:
            keys = self.loose
            self._filled = list(compress(range(len(keys)), keys)), Keyed(list(filter(None, keys)))
        return self._filled

    def where(self, key: str) -> Sequence[int]:
        """The first places of a line, given as it would be retyped."""
        if self._where is None:
            self._where = {}
            for at, each in enumerate(self.loose):
                places = self._where.get(each)
                if places is None:
                    self._where[each] = [at]
                elif len(places) < _MOST_KNOWN:
                    places.append(at)
        return self._where.get(key, ())


# Find

MatchKind = Literal["exact", "whitespace", "blank lines", "fuzzy"]
"""How a place was found, from certain to least certain."""

THRESHOLD = 0.9
_WORTH_SHOWING = 0.4  # a less similar place would only mislead
MOST_PLACES = 50


@dataclass(frozen=True, slots=True)
class Location:
    """Lines first to end-1 of the text. `starts[i]` is the line that matches the i-th wanted line."""

    first: int
    end: int
    match_kind: MatchKind
    similarity: float
    starts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Ambiguous:
    """Several places match."""

    places: tuple[Location, ...]


@dataclass(frozen=True, slots=True)
class NotFound:
    """No place matches. `closest` is similar enough to be shown, if it is there."""

    closest: Location | None
    everywhere: bool = True  # the whole text was searched for something similar


_KEYS: tuple[tuple[MatchKind, Callable[[str], str]], ...] = (("whitespace", str.rstrip), ("whitespace", str.strip))


def find(
    hay: Haystack,
    wanted: Sequence[str],
    *,
    near: int | None = None,
    start: int = 0,
    threshold: float = THRESHOLD,
) -> Location | Ambiguous | NotFound:
    """Find `wanted` from line `start` on. `near` is the line (from 0) where the model expects it."""
    return find_equal(hay, wanted, near=near, start=start) or _similar(hay, wanted, near, start, threshold)


def find_equal(
    hay: Haystack, wanted: Sequence[str], *, near: int | None = None, start: int = 0
) -> Location | Ambiguous | None:
    """Find `wanted`, but nothing that is only similar."""
    if places := _equal_places(hay, wanted, near, start, "exact", str):
        return _one(places, near)
    if hay.huge:
        return None
    if retyped := _equal_places(hay, wanted, near, start, "whitespace", loose):  # else the rungs before it have none
        for match_kind, key in _KEYS:
            if places := _equal_places(hay, wanted, near, start, match_kind, key):
                return _one(places, near)
        return _one(retyped, near)
    if places := _equal_places(hay, wanted, near, start, "whitespace", tight):
        return _one(places, near)
    if places := _places_but_blank(hay, wanted, near, start):
        return _one(places, near)
    return None


def _equal_places(
    hay: Haystack, wanted: Sequence[str], near: int | None, start: int, match_kind: MatchKind, key: Callable[[str], str]
) -> list[Location]:
    needle = list(map(key, wanted))
    if not any(needle) and match_kind != "exact":
        return []  # blank lines match everywhere
    found = hay.keyed(key).places(needle, start=start, near=near, most=MOST_PLACES)
    return [Location(at, at + len(needle), match_kind, 1.0, tuple(range(at, at + len(needle)))) for at in found]


def _places_but_blank(hay: Haystack, wanted: Sequence[str], near: int | None, start: int) -> list[Location]:
    """Places that match in all lines but blank ones, which models forget and add."""
    needle = [(index, key) for index, each in enumerate(wanted) if (key := loose(each))]
    if not needle:
        return []
    numbers, filled = hay.filled()
    around = None if near is None else bisect_left(numbers, near)
    found = filled.places([key for _, key in needle], start=bisect_left(numbers, start), near=around, most=MOST_PLACES)
    return [
        _stretched({index: numbers[at + order] for order, (index, _) in enumerate(needle)}, len(wanted)) for at in found
    ]


def _stretched(where: dict[int, int], size: int) -> Location:
    """A place from the lines that match. A blank wanted line follows the line before it, if there is room."""
    first, end = min(where.values()), max(where.values()) + 1
    starts: list[int] = []
    limit = end
    ahead: list[int] = []  # for each wanted line, the next one that agrees
    for index in reversed(range(size)):
        limit = where.get(index, limit)
        ahead.append(limit)
    for index, most in enumerate(reversed(ahead)):
        usual = starts[-1] + 1 if starts else first
        starts.append(where.get(index, min(usual, most)))
    return Location(first, end, "blank lines", 1.0, tuple(starts))


def _one(places: list[Location], near: int | None) -> Location | Ambiguous:
    """The only place, or the one that is clearly nearest to `near`."""
    if len(places) == 1:
        return places[0]
    if near is not None:
        by_distance = sorted(places, key=lambda each: abs(each.first - near))
        closest, second = (abs(each.first - near) for each in by_distance[:2])
        if 2 * closest <= second and closest < second:
            return by_distance[0]
    return Ambiguous(tuple(places))


def _similar(
    hay: Haystack, wanted: Sequence[str], near: int | None, start: int, threshold: float
) -> Location | Ambiguous | NotFound:
    """The one place that is similar enough. Of places that overlap, only the best counts."""
    if hay.huge:
        return NotFound(None, everywhere=False)
    keys, needle = hay.loose, list(map(loose, wanted))
    windows, everywhere = _windows(hay, needle, near, start)
    scored = sorted(_scored(keys, needle, windows, threshold), reverse=True)
    if not scored:
        return NotFound(None, everywhere)
    size = len(needle)
    best, at = scored[0]
    if threshold >= 1 or best < threshold or not _solid(needle, keys[-at : size - at]):
        return NotFound(_fuzzy(best, -at, size), everywhere)
    peaks: list[Location] = []
    for score, at in scored:
        if score < threshold or len(peaks) == MOST_PLACES:
            break
        beaten = any(abs(each.first + at) < size and each.similarity > score for each in peaks)
        if not beaten and _solid(needle, keys[-at : size - at]):
            peaks.append(_fuzzy(score, -at, size))
    return _one(peaks, near)


def _fuzzy(score: float, at: int, size: int) -> Location:
    return Location(at, at + size, "fuzzy", score, tuple(range(at, at + size)))


def _solid(needle: Sequence[str], window: Sequence[str]) -> bool:
    """Whether enough lines are equal. A single changed name is not a typing error."""
    filled = [pair for pair in zip(needle, window, strict=True) if any(pair)]
    return len(filled) >= 3 and 2 * sum(one == two for one, two in filled) >= len(filled)


def _scored(
    hay: Sequence[str], needle: list[str], windows: Iterable[int], threshold: float
) -> Iterator[tuple[float, int]]:
    """The similarity of windows, each with minus its first line: the best one, and all above the threshold."""
    from rapidfuzz.distance import Levenshtein

    size, text = len(needle), "\n".join(needle)
    if not text.strip():
        return
    floor = _WORTH_SHOWING
    for at in windows:
        score = Levenshtein.normalized_similarity(text, "\n".join(hay[at : at + size]), score_cutoff=floor)
        if score:
            yield score, -at
            floor = max(floor, min(score, threshold))  # lower scores need no exact number


def _windows(hay: Haystack, needle: list[str], near: int | None, start: int) -> tuple[Iterable[int], bool]:
    """The windows to compare: all in a file of ordinary size, else those with the most equal lines."""
    last = len(hay.lines) - len(needle)
    everywhere = range(start, last + 1)
    length = sum(map(len, needle)) + len(needle)
    cost = length * (length // 64 + 8) + 40 * len(needle) + 500  # the algorithm handles 64 cells at a time
    room = min(hay.work, MOST_WORK) // cost
    if len(everywhere) <= room:
        hay.work -= len(everywhere) * cost
        return everywhere, True
    if not room:  # a minified file, or a very long search
        return (), False
    hints = Counter([near] if near is not None else [])
    for order, line in enumerate(needle):
        if len(line) > 3:
            hints.update(at - order for at in hay.where(line))
    best = [at for at, _ in hints.most_common() if start <= at <= last][:room]
    hay.work -= len(best) * cost
    return sorted(best), False
