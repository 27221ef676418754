"""What the editor's buffers hold, by fs/read_text_file: text that its person has typed and not saved (ADR 76)."""

from pathlib import Path
from typing import Final

from tarmac.acp.peer import Peer
from tarmac.errors import PeerGone, PeerRefused

ANSWERS: Final = 2.0  # seconds that the editor has for an answer; one that does not answer is asked no more
LARGEST: Final = 1 << 20  # characters of a file it is asked for


class Buffers:
    """Those of one session's editor."""

    def __init__(self, peer: Peer, session: str) -> None:
        self._peer, self._session = peer, session
        self._silent = False

    async def unsaved(self, path: Path, saved: str) -> str | None:
        """The editor's text of a file where it is not the saved one; None: it is, or nobody knows."""
        if self._silent or len(saved) > LARGEST:
            return None
        try:
            found = await self._peer.request(
                "fs/read_text_file", {"sessionId": self._session, "path": str(path)}, timeout=ANSWERS
            )
        except TimeoutError:
            self._silent = True
            return None
        except (PeerGone, PeerRefused):
            return None
        text = found.get("content") if isinstance(found, dict) else None
        return text if isinstance(text, str) and plain(text) != plain(saved) else None


def plain(text: str) -> str:
    """PURE: a text without what editors make of files: line endings, a mark at the start, a newline at the end."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n")
