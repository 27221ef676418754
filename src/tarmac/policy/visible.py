"""Make text safe to look at: what is shown is what runs.

visible("rm\\x1b[8m -r\\u202e")  → "rm⟨U+001B⟩[8m -r⟨U+202E⟩"

Characters that a screen would hide or change become a mark in ⟨ ⟩: controls, zero-width characters, direction changes,
unusual blanks, invalid bytes. Long runs of blanks and empty lines could push the rest out of sight, so they are shown
as a number. The brackets are marked too, so no two texts look the same.
"""

import re
import unicodedata

MOST_BLANKS = 8
MOST_INDENTATION = 32
MOST_EMPTY_LINES = 3

# Printable by their category, and yet nothing to see: fillers, joiners, variation selectors, an empty Braille cell.
_UNSEEN = (
    "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U0001d159\U0001d173-\U0001d17a"
    "\U000e0100-\U000e01ef"
)
_ODD = re.compile(
    rf"(?P<empty>\n{{{MOST_EMPTY_LINES + 2},}})|(?P<blanks> {{{MOST_BLANKS + 1},}}| +(?=\n))|[^\x20-\x7e]"
)
_MARKED = re.compile(f"[{_UNSEEN}⟨⟩]")
_LOOSE = ("Mn", "Me")  # they sit on the letter before them


def visible(text: str) -> str:
    """`text` as it may be shown to a person: each character is what it seems, and none is out of sight."""
    if text.isascii() and text.isprintable() and " " * (MOST_BLANKS + 1) not in text:
        return text

    def mark(found: re.Match[str]) -> str:
        piece = found[0]
        if found["empty"]:
            return f"\n⟨{len(piece) - 1} empty lines⟩\n"
        if found["blanks"]:
            after = text[found.end() : found.end() + 1]
            indents = (found.start() == 0 or text[found.start() - 1] == "\n") and after not in ("", "\n")
            return piece if indents and len(piece) <= MOST_INDENTATION else f"⟨{len(piece)} blanks⟩"
        if piece == "\n" or not _is_odd(piece):
            return piece
        return f"⟨byte {ord(piece) - 0xDC00:02X}⟩" if "\udc80" <= piece <= "\udcff" else f"⟨U+{ord(piece):04X}⟩"

    return _ODD.sub(mark, text)


def is_plain(text: str, *, lines: bool = False) -> bool:
    """Whether it can be shown as it is; with `lines` it may have several."""
    return (lines or "\n" not in text) and visible(text) == text


def warnings(text: str) -> tuple[str, ...]:
    """What a person should know about the characters of a command before they read it."""
    found: list[str] = []
    if visible(text) != text:
        found.append("it has characters or blanks that can't be seen: they are marked with ⟨ ⟩")
    letters = {each for word in re.findall(r"\w+", text) for each in word if _is_foreign(each) and _mixes(word)}
    if letters:
        shown = ", ".join(f"{each} (U+{ord(each):04X})" for each in sorted(letters)[:5])
        found.append(f"it has words that mix alphabets, so that one may pass for another: {shown}")
    return tuple(found)


def shortened(text: str, limit: int) -> str:
    """At most about `limit` characters of it: its head, what was left out, and always its tail."""
    if len(text) <= limit:
        return text
    tail = max(1, limit * 2 // 5)
    head = max(1, limit - tail)
    return f"{text[:head]}\n⟨{len(text) - head - tail:,} characters not shown⟩\n{text[-tail:]}"


def _is_odd(character: str) -> bool:
    return (
        not character.isprintable() or _MARKED.match(character) is not None or unicodedata.category(character) in _LOOSE
    )


def _is_foreign(letter: str) -> bool:
    return not letter.isascii() and letter.isalpha() and not unicodedata.name(letter, "").startswith("LATIN")


def _mixes(word: str) -> bool:
    return any(each.isascii() and each.isalpha() for each in word) and any(_is_foreign(each) for each in word)
