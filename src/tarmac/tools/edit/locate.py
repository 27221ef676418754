"""Find the place an edit means: exact first, then whitespace-tolerant, then without blank lines, then similar.

find(lines, wanted) → Place | Ambiguous | NotFound

A rung that finds one place ends the search; one that finds several asks `near` (a line number the model gave) and else
refuses: an edit in the wrong place is worse than none. Similar is never enough by itself: at least three lines, half
of them equal, and no other place that would do.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from tarmac.dataclass import dataclass
from tarmac.tools.edit.result import Rung

THRESHOLD = 0.9
_WORTH_SHOWING = 0.4  # a closest place less alike than this only misleads
_MOST_PLACES = 50
_MOST_WORK = 300_000_000  # steps in search of a similar place: some hundred milliseconds
_SPACES = re.compile(r"\s+")
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


def loose(line: str) -> str:
    """A line as somebody would retype it: single spaces, plain quotes and dashes."""
    if not line.isascii():
        line = line.translate(_QUOTES)
    return _SPACES.sub(" ", line).strip()


_KEYS: tuple[tuple[Rung, Callable[[str], str]], ...] = (
    ("exact", str),
    ("whitespace", str.rstrip),
    ("whitespace", str.strip),
    ("whitespace", loose),
)


def find(
    lines: Sequence[str],
    wanted: Sequence[str],
    *,
    near: int | None = None,
    start: int = 0,
    threshold: float = THRESHOLD,
) -> Place | Ambiguous | NotFound:
    """Where `wanted` lies in `lines` from `start` on. `near`: the line (from 0) at which the model believes it."""
    for rung, key in _KEYS:
        places = _equal_places(lines, wanted, start, rung, key)
        if places:
            return _one(places, near)
    if places := _places_but_blank(lines, wanted, start):
        return _one(places, near)
    return _similar(lines, wanted, near, start, threshold)


def _equal_places(
    lines: Sequence[str], wanted: Sequence[str], start: int, rung: Rung, key: Callable[[str], str]
) -> list[Place]:
    needle = [key(each) for each in wanted]
    if not any(needle) and rung != "exact":
        return []  # blank lines alone are everywhere
    size = len(needle)
    hay = [key(each) for each in lines]
    found: list[Place] = []
    for at in _positions(hay, needle[0], start, len(hay) - size + 1):
        if hay[at : at + size] == needle:
            found.append(Place(at, at + size, rung, 1.0, tuple(range(at, at + size))))
            if len(found) == _MOST_PLACES:
                break
    return found


def _positions(hay: list[str], item: str, start: int, stop: int) -> Iterator[int]:
    while start < stop:
        try:
            start = hay.index(item, start, stop)
        except ValueError:
            return
        yield start
        start += 1


def _places_but_blank(lines: Sequence[str], wanted: Sequence[str], start: int) -> list[Place]:
    """Places that agree in all lines that hold something: models forget blank lines, and add them."""
    needle = [(index, key) for index, each in enumerate(wanted) if (key := loose(each))]
    hay = [(index, key) for index, each in enumerate(lines) if index >= start and (key := loose(each))]
    if not needle:
        return []
    keys, size = [key for _, key in hay], len(needle)
    words = [key for _, key in needle]
    found: list[Place] = []
    for at in _positions(keys, words[0], 0, len(keys) - size + 1):
        if keys[at : at + size] == words:
            where = {wanted_at: hay[at + order][0] for order, (wanted_at, _) in enumerate(needle)}
            found.append(_stretched(where, len(wanted)))
            if len(found) == _MOST_PLACES:
                break
    return found


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
    lines: Sequence[str], wanted: Sequence[str], near: int | None, start: int, threshold: float
) -> Place | Ambiguous | NotFound:
    """The one place that is alike enough; of places that share lines only the best counts."""
    hay, needle = [loose(each) for each in lines], [loose(each) for each in wanted]
    scored = sorted(_scored(hay, needle, near, start, threshold), reverse=True)
    if not scored:
        return NotFound(None)
    size = len(needle)
    best, at = scored[0]
    if threshold >= 1 or best < threshold or not _solid(needle, hay[-at : size - at]):
        return NotFound(_fuzzy(best, -at, size))
    peaks: list[Place] = []
    for score, at in scored:
        if score < threshold or len(peaks) == _MOST_PLACES:
            break
        beaten = any(abs(each.first + at) < size and each.similarity > score for each in peaks)
        if not beaten and _solid(needle, hay[-at : size - at]):
            peaks.append(_fuzzy(score, -at, size))
    return _one(peaks, near)


def _fuzzy(score: float, at: int, size: int) -> Place:
    return Place(at, at + size, "fuzzy", score, tuple(range(at, at + size)))


def _solid(needle: list[str], window: list[str]) -> bool:
    """Whether a similar place has enough that is equal to be meant: a single changed name is no typing error."""
    filled = [pair for pair in zip(needle, window, strict=True) if any(pair)]
    return len(filled) >= 3 and 2 * sum(one == two for one, two in filled) >= len(filled)


def _scored(
    hay: list[str], needle: list[str], near: int | None, start: int, threshold: float
) -> Iterator[tuple[float, int]]:
    """How alike windows of that length are, and minus where they begin: the best one, and all that will do."""
    from rapidfuzz.distance import Levenshtein

    size, text = len(needle), "\n".join(needle)
    if not text.strip():
        return
    floor = _WORTH_SHOWING
    for at in _windows(hay, needle, near, start):
        score = Levenshtein.normalized_similarity(text, "\n".join(hay[at : at + size]), score_cutoff=floor)
        if score:
            yield score, -at
            floor = max(floor, min(score, threshold))  # whatever is less alike needs no exact number


def _windows(hay: list[str], needle: list[str], near: int | None, start: int) -> Iterable[int]:
    """Where to look: everywhere in a file of ordinary size, else where an equal line says so."""
    last = len(hay) - len(needle)
    everywhere = range(start, last + 1)
    length = sum(map(len, needle)) + len(needle)
    cost = length * (length // 64 + 8) + 40 * len(needle) + 500  # 64 cells of the matrix at a time, and the rest
    if len(everywhere) * cost <= _MOST_WORK:
        return everywhere
    room = _MOST_WORK // cost
    if not room:  # a minified file, or a search as long as a book: nobody retypes those
        return ()
    where: dict[str, list[int]] = {}
    for at in range(start, len(hay)):
        where.setdefault(hay[at], []).append(at)
    hints = {near} if near is not None else set()
    for order, line in enumerate(needle):
        if len(line) > 3:
            hints.update(at - order for at in where.get(line, [])[:200])
    return sorted(at for at in hints if start <= at <= last)[:room]
