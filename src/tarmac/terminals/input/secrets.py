"""What was typed while the terminal showed nothing: kept out of everything that is stored or shown.

typed() ─ keys, while the echo is off → a whole line is a secret → mask() ─ output without it

A program that repeats a password, or an echo that came back too early, would otherwise put it into the result, the
spool and every viewer. The secret itself is held in memory until its command ends, and nowhere else.
"""

SHORTEST = 4  # a shorter one ("y") would be masked everywhere, and is no secret for long
MASK = b"********"
_RUBOUT = b"\x7f\x08"
_KILL = b"\x15"


class Secrets:
    """Those of one command."""

    __slots__ = ("_held", "_line", "_secrets")

    def __init__(self) -> None:
        self._secrets: list[bytes] = []
        self._line = bytearray()
        self._held = b""  # output that may be the beginning of a secret

    def __repr__(self) -> str:
        return f"<Secrets: {len(self._secrets)}>"

    def typed(self, keys: bytes) -> None:
        """Keys that the terminal did not show, in any pieces; a line's end makes a secret of them."""
        for key in keys:
            if key in b"\r\n\x04":
                self.keep(bytes(self._line))
                self._line.clear()
            elif key in _RUBOUT:
                del self._line[-1:]
            elif key in _KILL:
                self._line.clear()
            else:
                self._line.append(key)

    def keep(self, secret: bytes) -> None:
        """Mask this one from now on."""
        if len(secret) >= SHORTEST and secret not in self._secrets:
            self._secrets.append(secret)
            self._secrets.sort(key=len, reverse=True)  # one may contain another

    def mask(self, data: bytes) -> bytes:
        """Output without secrets. An end that may be the beginning of one is held back until more comes."""
        data = self._held + data
        for secret in self._secrets:
            data = data.replace(secret, MASK)
        keep = max((_overlap(data, secret) for secret in self._secrets), default=0)
        self._held = data[len(data) - keep :]
        return data[: len(data) - keep]

    def rest(self) -> bytes:
        """What was held back, now that nothing more comes."""
        held, self._held = self._held, b""
        return held if len(held) < SHORTEST else MASK  # most of a secret is too much


def _overlap(data: bytes, secret: bytes) -> int:
    """How many bytes at the end of `data` begin `secret`."""
    for size in range(min(len(data), len(secret) - 1), 0, -1):
        if data.endswith(secret[:size]):
            return size
    return 0
