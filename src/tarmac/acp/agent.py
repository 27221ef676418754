"""`tarmac acp`: an editor drives Tarmac's tasks. This answers at once.

editor_sessions.py, with all of Tarmac behind it, is loaded while the editor reads that answer.

It speaks version 1, and version 2, a draft, with an editor that offers it. Sessions are tasks, with the same ids: what
an editor began can be gone on with by `tarmac resume`, and the other way round.
"""

import asyncio
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tarmac import __version__
from tarmac.acp.content import OFFERED, EditorAbilities, EditorDocuments, read_client
from tarmac.acp.rpc_peer import PeerReply, Refused, RpcPeer, unknown
from tarmac.acp.wire import INVALID_PARAMS, INVALID_REQUEST, Bad, Json, Response

if TYPE_CHECKING:
    from tarmac.acp.editor_sessions import EditorSessions

_BOTH: Final = ("new", "resume", "list", "close", "delete", "prompt", "set_config_option")
SERVED: Final = {  # by EditorSessions, in each version
    1: frozenset(f"session/{verb}" for verb in (*_BOTH, "load", "set_mode")),
    2: frozenset(f"session/{verb}" for verb in _BOTH),
}
_ALWAYS: Final = frozenset({("initialize", 1), ("initialize", 2), ("authenticate", 1)})
_DOCUMENTS: Final = frozenset({"nes/start", "nes/suggest", "nes/close"})
LOAD_AFTER: Final = 0.05  # seconds: the answer to `initialize` comes first


class Agent:
    """Serves one editor. `connect()` gives it its peer; `aclose()` leaves all its sessions in order."""

    def __init__(
        self,
        environ: Mapping[str, str],
        overrides: Mapping[str, object] | None = None,
        *,
        place: str = "",
        there: Path | None = None,
    ) -> None:
        """`place`: the address where its sessions work; `there`: the folder there, whatever the editor names."""
        self._environ = environ
        self._place, self._there = place, there
        self._overrides = overrides or {}
        self._peer: RpcPeer | None = None
        self._client: EditorAbilities | None = None  # None: it has not said what it is
        self._documents = EditorDocuments()
        self._sessions: EditorSessions | None = None
        self._loading: asyncio.Task[object] | None = None
        self._soon: asyncio.TimerHandle | None = None

    def connect(self, peer: RpcPeer) -> None:
        self._peer = peer

    # Handler

    async def requested(self, method: str, params: Json) -> Json | PeerReply:
        if self._client is not None and self._client.tells_documents and method in _DOCUMENTS:
            return self._document(method, params if isinstance(params, dict) else {})
        version = self._client.version if self._client else 1
        if method not in SERVED[version] and (method, version) not in _ALWAYS:
            raise unknown(method)
        if params is not None and not isinstance(params, dict):
            raise Refused(INVALID_PARAMS, "the params are an object, by name")
        if method == "initialize":
            return self._initialize(params or {})
        if self._client is None:
            raise Refused(INVALID_REQUEST, "initialize comes first")
        if method == "authenticate":
            return {}  # keys come from the environment or the user's configuration
        sessions = self._sessions or await self._loaded(self._client)
        return await sessions.serve(method, params or {})

    def _document(self, method: str, params: Mapping[str, object]) -> Json:
        """The draft's requests for suggested edits: we take in what they tell, and suggest nothing."""
        if method == "nes/start":
            return {"sessionId": "documents"}
        if method == "nes/close":
            return {}
        self._documents.suggest(params)
        self._look()
        return {"suggestions": []}

    def _look(self) -> None:
        if self._sessions is not None:
            self._sessions.look()

    def notified(self, method: str, params: Json) -> None:
        if isinstance(params, dict) and self._documents.told(method, params):
            self._look()
        if method == "session/cancel" and isinstance(params, dict) and self._sessions is not None:
            # A prompt that came just before has not made its first step yet; after that it can be stopped.
            asyncio.get_running_loop().call_soon(self._sessions.cancel, params.get("sessionId"))

    def odd(self, message: Bad | Response) -> None:
        pass  # it was answered, or answers nobody

    # Connection

    def _initialize(self, params: Mapping[str, object]) -> PeerReply:
        client = read_client(params)
        if self._client is None or self._sessions is None:  # what sessions know of it stays true
            self._client = client
        return PeerReply(_answer(self._client), then=self._load_soon)

    def _load_soon(self) -> None:
        if self._soon is None:
            self._soon = asyncio.get_running_loop().call_later(LOAD_AFTER, self._load)

    def _load(self) -> "asyncio.Task[object]":
        """Beside the connection, which goes on meanwhile."""
        if self._loading is None:
            self._loading = asyncio.create_task(asyncio.to_thread(import_module, "tarmac.acp.editor_sessions"))
        return self._loading

    async def _loaded(self, client: EditorAbilities) -> "EditorSessions":
        await asyncio.shield(self._load())
        from tarmac.acp.editor_sessions import EditorSessions

        if self._sessions is None:
            assert self._peer is not None
            self._sessions = EditorSessions(
                self._peer,
                client,
                self._environ,
                self._overrides,
                self._documents,
                place=self._place,
                there=self._there,
            )
        return self._sessions

    async def aclose(self) -> None:
        """Leave every session in order. May be called twice."""
        if self._soon is not None:
            self._soon.cancel()
        if self._loading is not None:
            await asyncio.wait([self._loading])
        if self._sessions is not None:
            await self._sessions.aclose()


def _answer(client: EditorAbilities) -> dict[str, object]:
    """PURE: what we are and can."""
    documents = {"nes": OFFERED} if client.tells_documents else {}
    us = {"name": "tarmac", "title": "Tarmac", "version": __version__}
    if client.version == 1:
        return {
            "protocolVersion": 1,
            "agentInfo": us,
            "agentCapabilities": {
                "loadSession": True,
                "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
                "mcpCapabilities": {"http": True, "sse": True},
                "sessionCapabilities": {"list": {}, "resume": {}, "close": {}, "delete": {}},
                **documents,
            },
            "authMethods": [],
        }
    session: dict[str, object] = {
        "prompt": {"image": {}, "embeddedContext": {}},
        "mcp": {"stdio": {}, "http": {}},
        "delete": {},
    }
    return {"protocolVersion": 2, "info": us, "capabilities": {"session": session, **documents}, "authMethods": []}
