"""Find the place an edit means: exact first, then whitespace-tolerant, then without blank lines, then similar.

find(lines, wanted) → Place | Ambiguous | NotFound

A rung that finds one place ends the search; one that finds several asks `near` (a line number the model gave) and else
refuses: an edit in the wrong place is worse than none. Similar is never enough by itself: at least three lines, half
of them equal, and no other place that would do.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from tarmac.tools.edit.edit_result import Rung
from tarmac.tools.edit.hay import MOST_WORK, Hay, loose

THRESHOLD = 0.9
_WORTH_SHOWING = 0.4  # a closest place less alike than this only misleads
_MOST_PLACES = 50


@dataclass(frozen=True, slots=True)
class Place:
    """Lines first … end-1 of the text; `starts[i]` is where the i-th wanted line lies."""

    first: int
    end: int
    rung: Rung
    similarity: float
    starts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Ambiguous:
    """Several places would do."""

    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class NotFound:
    """None would; `closest` is worth showing, if there is one."""

    closest: Place | None
    everywhere: bool = True  # whether something similar was looked for in all of the text


_KEYS: tuple[tuple[Rung, Callable[[str], str]], ...] = (("whitespace", str.rstrip), ("whitespace", str.strip))


def find(
    hay: Hay,
    wanted: Sequence[str],
    *,
    near: int | None = None,
    start: int = 0,
    threshold: float = THRESHOLD,
) -> Place | Ambiguous | NotFound:
    """Where `wanted` lies in a text from line `start` on. `near`: the line (from 0) at which the model believes it."""
    return find_equal(hay, wanted, near=near, start=start) or _similar(hay, wanted, near, start, threshold)


def find_equal(hay: Hay, wanted: Sequence[str], *, near: int | None = None, start: int = 0) -> Place | Ambiguous | None:
    """The same, but for what is only similar."""
    if places := _equal_places(hay, wanted, near, start, "exact", str):
        return _one(places, near)
    if hay.huge:
        return None
    if retyped := _equal_places(hay, wanted, near, start, "whitespace", loose):  # else the rungs before it have none
        for rung, key in _KEYS:
            if places := _equal_places(hay, wanted, near, start, rung, key):
                return _one(places, near)
        return _one(retyped, near)
    if places := _places_but_blank(hay, wanted, near, start):
        return _one(places, near)
    return None


def _equal_places(
    hay: Hay, wanted: Sequence[str], near: int | None, start: int, rung: Rung, key: Callable[[str], str]
) -> list[Place]:
    needle = list(map(key, wanted))
    if not any(needle) and rung != "exact":
        return []  # blank lines alone are everywhere
    found = hay.keyed(key).places(needle, start=start, near=near, most=_MOST_PLACES)
    return [Place(at, at + len(needle), rung, 1.0, tuple(range(at, at + len(needle)))) for at in found]


def _places_but_blank(hay: Hay, wanted: Sequence[str], near: int | None, start: int) -> list[Place]:
    """Places that agree in all lines that hold something: models forget blank lines, and add them."""
    needle = [(index, key) for index, each in enumerate(wanted) if (key := loose(each))]
    if not needle:
        return []
    numbers, filled = hay.filled()
    around = None if near is None else bisect_left(numbers, near)
    found = filled.places([key for _, key in needle], start=bisect_left(numbers, start), near=around, most=_MOST_PLACES)
    return [
        _stretched({index: numbers[at + order] for order, (index, _) in enumerate(needle)}, len(wanted)) for at in found
    ]


def _stretched(where: dict[int, int], size: int) -> Place:
    """A place from the lines that agree; a blank wanted line lies right after the line before it, if there is room."""
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
    return Place(first, end, "blank lines", 1.0, tuple(starts))


def _one(places: list[Place], near: int | None) -> Place | Ambiguous:
    """The only place, or the one clearly nearest to where the model believes it."""
    if len(places) == 1:
        return places[0]
    if near is not None:
        by_distance = sorted(places, key=lambda each: abs(each.first - near))
        closest, second = (abs(each.first - near) for each in by_distance[:2])
        if 2 * closest <= second and closest < second:
            return by_distance[0]
    return Ambiguous(tuple(places))


def _similar(
    hay: Hay, wanted: Sequence[str], near: int | None, start: int, threshold: float
) -> Place | Ambiguous | NotFound:
    """The one place that is alike enough; of places that share lines only the best counts."""
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
    peaks: list[Place] = []
    for score, at in scored:
        if score < threshold or len(peaks) == _MOST_PLACES:
            break
        beaten = any(abs(each.first + at) < size and each.similarity > score for each in peaks)
        if not beaten and _solid(needle, keys[-at : size - at]):
            peaks.append(_fuzzy(score, -at, size))
    return _one(peaks, near)


def _fuzzy(score: float, at: int, size: int) -> Place:
    return Place(at, at + size, "fuzzy", score, tuple(range(at, at + size)))


def _solid(needle: Sequence[str], window: Sequence[str]) -> bool:
    """Whether a similar place has enough that is equal to be meant: a single changed name is no typing error."""
    filled = [pair for pair in zip(needle, window, strict=True) if any(pair)]
    return len(filled) >= 3 and 2 * sum(one == two for one, two in filled) >= len(filled)


def _scored(
    hay: Sequence[str], needle: list[str], windows: Iterable[int], threshold: float
) -> Iterator[tuple[float, int]]:
    """How alike windows of that length are, and minus where they begin: the best one, and all that will do."""
    from rapidfuzz.distance import Levenshtein

    size, text = len(needle), "\n".join(needle)
    if not text.strip():
        return
    floor = _WORTH_SHOWING
    for at in windows:
        score = Levenshtein.normalized_similarity(text, "\n".join(hay[at : at + size]), score_cutoff=floor)
        if score:
            yield score, -at
            floor = max(floor, min(score, threshold))  # whatever is less alike needs no exact number


def _windows(hay: Hay, needle: list[str], near: int | None, start: int) -> tuple[Iterable[int], bool]:
    """Where to look: everywhere in a file of ordinary size, else where equal lines say so, the most of them first."""
    last = len(hay.lines) - len(needle)
    everywhere = range(start, last + 1)
    length = sum(map(len, needle)) + len(needle)
    cost = length * (length // 64 + 8) + 40 * len(needle) + 500  # 64 cells of the matrix at a time, and the rest
    room = min(hay.work, MOST_WORK) // cost
    if len(everywhere) <= room:
        hay.work -= len(everywhere) * cost
        return everywhere, True
    if not room:  # a minified file, or a search as long as a book: nobody retypes those
        return (), False
    hints = Counter([near] if near is not None else [])
    for order, line in enumerate(needle):
        if len(line) > 3:
            hints.update(at - order for at in hay.where(line))
    best = [at for at, _ in hints.most_common() if start <= at <= last][:room]
    hay.work -= len(best) * cost
    return sorted(best), False
