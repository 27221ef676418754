"""PURE: make text safe for a terminal, so that it can do nothing but appear.

harmless("a\\x1b]52;c;…\\x07b")  → "a⟨U+001B⟩]52;c;…⟨U+0007⟩b"

It is used for what a model says and a command prints. Accents, joiners of emoji and the icons of patched fonts stay as
they are. Text that must be read exactly before it runs goes through the stricter `tarmac.policy.visible`.
"""

import re
import unicodedata

TAB = 4
BAR = "▌"  # before each line of a question, and nowhere else
_LIKE_BARS = frozenset("▉▊▋▌▍▎▏▐▕")  # what could be taken for one; progress bars end with them
_ODD = re.compile(r"[^\n\x20-\x7e]")
_NEEDED = "\u200c\u200d"  # scripts and emoji are joined by them; they hide nothing


def harmless(text: str) -> str:
    """`text`, with every control, and all that would turn its direction or hide, as a mark; tabs as blanks."""
    if "\t" in text:
        text = "\n".join(_untabbed(line) for line in text.split("\n"))
    return _ODD.sub(_mark, text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """The same on one line: blanks and ends of lines become one blank."""
    return harmless(" ".join(text.split()))


def _untabbed(line: str) -> str:
    return line.expandtabs(TAB) if line.isascii() else line.replace("\t", " " * TAB)


def _mark(found: re.Match[str]) -> str:
    character = found[0]
    if character in _LIKE_BARS:
        return "░"
    if character.isprintable() or character in _NEEDED or unicodedata.category(character) == "Co":
        return character
    if "\udc80" <= character <= "\udcff":  # a byte that was no text
        return f"⟨byte {ord(character) - 0xDC00:02X}⟩"
    return f"⟨U+{ord(character):04X}⟩"
