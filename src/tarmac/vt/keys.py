"""Convert names of keys into the bytes that a terminal sends for them.

"C-c" · "M-x" · "Up Up Enter" · "S-Tab" · "C-Right" · "^C" · "Escape : q ! Enter" → keys() → bytes

A single character stands for itself. A word that is not a key is an error and is never typed as text: "Entr", sent to a
shell letter by letter, would do harm. The bytes are those of xterm. Some keys have no classic bytes (C-Enter, C-1). For
these xterm's modifyOtherKeys form is sent, CSI 27;modifiers;code ~.
"""

import re

from tarmac.errors import BadRequest

ESC, CSI, SS3 = b"\x1b", b"\x1b[", b"\x1bO"

_CURSOR = {"Up": b"A", "Down": b"B", "Right": b"C", "Left": b"D", "Home": b"H", "End": b"F"}
_PF = {"F1": b"P", "F2": b"Q", "F3": b"R", "F4": b"S"}
_TILDE = {"Insert": 2, "Delete": 3, "PageUp": 5, "PageDown": 6}
_TILDE |= {"F5": 15, "F6": 17, "F7": 18, "F8": 19, "F9": 20, "F10": 21, "F11": 23, "F12": 24}
_PLAIN = {"Enter": "\r", "Tab": "\t", "Escape": "\x1b", "Space": " ", "Backspace": "\x7f"}

NAMES: tuple[str, ...] = (*_CURSOR, *_PF, *_TILDE, *_PLAIN, "BackTab")
"""Every key that has a name, as help texts should spell it."""

_ALIASES = {"return": "Enter", "cr": "Enter", "esc": "Escape", "spc": "Space", "bs": "Backspace", "bspace": "Backspace"}
_ALIASES |= {"del": "Delete", "dc": "Delete", "ins": "Insert", "ic": "Insert", "btab": "BackTab"}
_ALIASES |= {"pgup": "PageUp", "ppage": "PageUp", "pgdn": "PageDown", "pgdown": "PageDown", "npage": "PageDown"}
_ALIASES |= {"arrowup": "Up", "arrowdown": "Down", "arrowright": "Right", "arrowleft": "Left"}
_BY_NAME = {name.lower(): name for name in NAMES} | _ALIASES

# The control keys that are not letters, with the aliases every terminal since the VT220 has for them.
_CONTROL = {" ": 0, "@": 0, "2": 0, "[": 27, "3": 27, "\\": 28, "4": 28, "]": 29, "5": 29}
_CONTROL |= {"^": 30, "6": 30, "_": 31, "7": 31, "/": 31, "?": 127, "8": 127, "\x7f": 8}

_SHIFT, _META, _CTRL = 1, 2, 4
_MODIFIERS = {"s": _SHIFT, "shift": _SHIFT, "c": _CTRL, "ctrl": _CTRL, "control": _CTRL}
_MODIFIERS |= {"m": _META, "alt": _META, "meta": _META}
_PREFIX = re.compile(rf"({'|'.join(_MODIFIERS)})[-+](?=.)", re.IGNORECASE)


def keys(text: str, *, application_cursor: bool = False) -> bytes:
    """The bytes of the keys named in `text`, which are separated by spaces.

    `application_cursor` is the mode a full-screen program asked for (DECCKM): arrows, Home and End as SS3.
    """
    if names := text.split():
        return b"".join(_key(name, application_cursor=application_cursor) for name in names)
    raise BadRequest("no keys to send", hint="name one or more, such as `C-c` or `Up Enter`")


def _key(word: str, *, application_cursor: bool) -> bytes:
    modifiers, rest = 0, word
    while prefix := _PREFIX.match(rest):
        modifiers |= _MODIFIERS[prefix[1].lower()]
        rest = rest[prefix.end() :]
    if len(rest) == 2 and rest[0] == "^":
        modifiers, rest = modifiers | _CTRL, rest[1]
    if len(rest) == 1 and rest.isprintable():
        return _character(rest, modifiers, word)

    name = _BY_NAME.get(re.sub("[-_]", "", rest).lower(), "")
    if name == "BackTab":
        name, modifiers = "Tab", modifiers | _SHIFT
    number = b"%d" % (1 + modifiers)
    if name in _CURSOR and not modifiers:
        return (SS3 if application_cursor else CSI) + _CURSOR[name]
    if name in _PF and not modifiers:
        return SS3 + _PF[name]
    if final := _CURSOR.get(name) or _PF.get(name):
        return CSI + b"1;" + number + final
    if code := _TILDE.get(name):
        return CSI + (b"%d;%s~" % (code, number) if modifiers else b"%d~" % code)
    if name:
        return _character(_PLAIN[name], modifiers, word)
    raise _unknown(word, rest)


def _character(char: str, modifiers: int, word: str) -> bytes:
    """What the keys that send a character send: a letter, Enter, Tab, …"""
    if modifiers & _SHIFT and not modifiers & _CTRL and char.isprintable() and char != " ":
        if not char.isalpha():
            raise BadRequest(
                f"`{word}` is a different character on every keyboard", hint="write the character itself, such as `!`"
            )
        char, modifiers = char.upper(), modifiers & ~_SHIFT
    classic = _classic(char, modifiers & ~_META)
    if classic is None:
        if modifiers & _SHIFT:
            char = char.upper()
        return CSI + b"27;%d;%d~" % (1 + modifiers, ord(char[0]))
    return ESC + classic if modifiers & _META else classic


def _classic(char: str, modifiers: int) -> bytes | None:
    """The bytes every terminal sends; None when it could not tell this key from one with fewer modifiers."""
    match modifiers:
        case 0:
            return char.encode()
        case 1 if char in " \x1b\x7f":
            return char.encode()  # nobody listens to shift here, and people do hold it
        case 1 if char == "\t":
            return CSI + b"Z"
        case 4 if char.isascii() and char.isalpha():
            return bytes([ord(char) & 0x1F])
        case 4 if char in _CONTROL:
            return bytes([_CONTROL[char]])
    return None


def _unknown(word: str, name: str) -> BadRequest:
    import difflib  # only here: it costs more than the rest of this module

    close = [_BY_NAME[match] for match in difflib.get_close_matches(name[:40].lower(), _BY_NAME, n=4, cutoff=0.5)]
    if close:
        hint = f"did you mean {' or '.join(f'`{match}`' for match in dict.fromkeys(close))}?"
    else:
        hint = "send words as text; keys are named like `C-c`, `M-x`, `Up`, `Enter`, `F5`"
    return BadRequest(f"no key is called {word[:40]!a}", hint=hint)
