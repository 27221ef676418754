"""Find text that a carriage return or a backspace hides.

A reader of a terminal sees only what was drawn last. A program can print a line, return to its start and print another
one over it. A model would read the second line, and not know of the first. Progress bars do the same, but their words
stay. So a state of a line is reported only if it has words that nobody can see any more.
"""

import re

from tarmac.vt.text import clean

MOST = 5  # texts that are reported
MOST_CHARACTERS = 160  # of each
_MOST_BYTES = 1 << 20
_MOST_LINES = 2_000  # lines with hidden words that are looked at
_MORE = "and more"
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|.)|[\x00-\x07\x0b-\x1f\x7f-\x9f]")
_STRUCK = re.compile(r"(.)\x08(?=\1)|_\x08|(?<=.)\x08_")  # bold and underlined, as in manual pages
_STATES = re.compile(r"[\r\x08]+")
_WORD = re.compile(r"[^\W\d_]{2,}|[$`&;{}~]")


def overwritten(data: bytes) -> tuple[str, ...]:
    """The texts that were printed and then hidden: at most MOST of them, and a word if there are more."""
    if b"\r" not in data and b"\b" not in data:
        return ()
    found: dict[frozenset[str], str] = {}
    looked = 0
    for line in data[:_MOST_BYTES].split(b"\n"):
        line = line.rstrip(b"\r")
        if b"\r" not in line and b"\b" not in line:
            continue
        states = [_ESCAPE.sub("", each) for each in _STATES.split(_STRUCK.sub("", line.decode("utf-8", "replace")))]
        if set(_WORD.findall(" ".join(states))) <= set(_WORD.findall(states[-1])):
            continue  # a progress bar whose words stay
        looked += 1
        if looked > _MOST_LINES or len(found) >= MOST:
            return (*found.values(), _MORE)
        visible = clean(line)
        seen = set(_WORD.findall(visible))
        for state in states:
            words = frozenset(_WORD.findall(state)) - seen
            if words and words not in found and state.strip() not in visible:
                if len(found) >= MOST:
                    return (*found.values(), _MORE)
                found[words] = _shown(state)
    return tuple(found.values())


def notice(texts: tuple[str, ...]) -> str:
    """A line for the model; empty if nothing was hidden."""
    if not texts:
        return ""
    return f"[overwritten, and not visible above: {'; '.join(map(repr, texts))}]\n"


def _shown(state: str) -> str:
    state = "".join(each if each.isprintable() else " " for each in state).strip()
    return state if len(state) <= MOST_CHARACTERS else f"{state[: MOST_CHARACTERS - 1]}…"
