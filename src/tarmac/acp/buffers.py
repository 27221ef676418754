"""Unsaved text in the editor's buffers, read with fs/read_text_file (ADR 76)."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from tarmac.acp.peer import Peer
from tarmac.errors import EditorSilent, PeerGone, PeerRefused
from tarmac.paths import shown

ANSWERS: Final = 2.0  # seconds to wait for the editor, for each file of each call
LARGEST: Final = 1 << 20  # characters; the editor is not asked about longer files


class Buffers:
    """The buffers of one session's editor. `tell` shows a text to the user."""

    def __init__(self, peer: Peer, session: str, *, tell: Callable[[str], None]) -> None:
        self._peer, self._session = peer, session
        self._tell = tell
        self._told: set[Path] = set()

    async def unsaved(self, path: Path, saved: str) -> str | None:
        """The editor's text of a file if it differs from the saved one. EditorSilent if it does not answer in time."""
        if len(saved) > LARGEST:
            return None
        try:
            found = await self._peer.request(
                "fs/read_text_file", {"sessionId": self._session, "path": str(path)}, timeout=ANSWERS
            )
        except TimeoutError:
            what = f"the editor did not say within {ANSWERS:g} s whether {shown(path)} has unsaved changes"
            if path not in self._told:
                self._told.add(path)
                self._tell(f"Your editor did not answer: {what}. Tarmac uses the saved file. Check it before you save.")
            raise EditorSilent(what) from None
        except (PeerGone, PeerRefused):
            return None
        text = found.get("content") if isinstance(found, dict) else None
        return text if isinstance(text, str) and plain(text) != plain(saved) else None


def plain(text: str) -> str:
    """PURE: a text without what editors change on their own: line endings, a byte order mark, the last newline."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n")
