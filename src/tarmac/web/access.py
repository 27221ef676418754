"""Who may use the page: one-time tokens, and the proofs that browsers get for them.

address#t=TOKEN → Access.redeem(token) → proof, kept by the browser → Access.knows(proof)

Tokens live in memory. Of a proof only the SHA-256 is kept, also on disk (run_file.py). So pages go on after the server
was killed, and a proof can't be read from the disk.
"""

import hashlib
import secrets
import time
from collections.abc import Callable, Iterable
from typing import Final

TOKEN_LASTS: Final = 600.0  # seconds
PROOF_LASTS: Final = 7 * 86_400.0  # seconds after it was last used
MOST_PROOFS: Final = 100
MOST_FAILURES: Final = 20  # wrong tokens in a minute; then none is looked at for the rest of it
MINUTE: Final = 60.0


class Access:
    """The tokens and proofs of one server."""

    def __init__(self, *, now: Callable[[], float] = time.time, proofs: Iterable[tuple[str, float]] = ()) -> None:
        self._now = now
        self._tokens: dict[str, float] = {}  # a token's digest, until when
        self._proofs = {digest: used for digest, used in proofs if used > now() - PROOF_LASTS}
        self._failures: list[float] = []
        self.changed: Callable[[], object] = bool  # a proof is new: the disk should know it

    def token(self) -> str:
        """A new one-time token."""
        made = secrets.token_urlsafe(32)
        self._tokens[_digest(made)] = self._now() + TOKEN_LASTS
        return made

    def redeem(self, token: str) -> str | None:
        """A proof for a token, which is used up by it; None: it is wrong, used or too old."""
        now = self._now()
        self._failures = [each for each in self._failures if each > now - MINUTE]
        if len(self._failures) >= MOST_FAILURES:
            return None
        until = self._tokens.pop(_digest(token), 0.0)  # by its digest: how long that takes tells nothing of the token
        if until < now:
            self._failures.append(now)
            return None
        proof = secrets.token_urlsafe(32)
        self._proofs[_digest(proof)] = now
        while len(self._proofs) > MOST_PROOFS:
            del self._proofs[min(self._proofs, key=lambda each: self._proofs[each])]
        self.changed()
        return proof

    def knows(self, proof: str) -> bool:
        digest, now = _digest(proof), self._now()
        used = self._proofs.get(digest)
        if used is None or used < now - PROOF_LASTS:
            return False
        self._proofs[digest] = now
        return True

    @property
    def proofs(self) -> list[tuple[str, float]]:
        """Their digests, and when each was last used: what may be kept on the disk."""
        return list(self._proofs.items())


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
