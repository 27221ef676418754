"""`tarmac acp`: an editor drives Tarmac's tasks. Each method of ACP v1 is one verb of an App or a session.

It speaks version 1 and says so, whatever it is offered. Sessions are tasks, with the same ids: what an editor began can
be gone on with by `tarmac resume`, and the other way round.

An editor waits for the first answer, to `initialize`: what a session needs is imported after it.
"""

import asyncio
import importlib
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tarmac import __version__
from tarmac.acp.content import read_prompt
from tarmac.acp.peer import Peer, Refused, Reply, unknown
from tarmac.acp.wire import INVALID_PARAMS, INVALID_REQUEST, NOT_FOUND, Bad, Json, Response
from tarmac.errors import BadRequest, ConfigError, DirectoryUnavailable, TaskInUse, TaskNotFound
from tarmac.events import TaskId
from tarmac.paths import check_directory

if TYPE_CHECKING:
    from tarmac.acp.session import Session
    from tarmac.app import App
    from tarmac.tasks.task import Task

PAGE: Final = 50  # sessions in one answer of session/list
Params = Mapping[str, object]


class Agent:
    """Serves one editor. `connect()` gives it its peer; `aclose()` leaves all its sessions in order."""

    def __init__(self, environ: Mapping[str, str], overrides: Mapping[str, object] | None = None) -> None:
        self._environ = environ
        self._overrides = overrides or {}
        self._peer: Peer | None = None
        self._apps: dict[Path, App] = {}
        self._owns = AsyncExitStack()
        self._opening = asyncio.Lock()
        self._sessions: dict[str, Session] = {}
        self._terminals = False
        self._initialized = False
        self._warming: asyncio.Task[None] | None = None
        self._methods: dict[str, Callable[[Params], Awaitable[Json | Reply]]] = {
            "initialize": self._initialize,
            "authenticate": self._authenticate,
            "session/new": self._new,
            "session/load": self._load,
            "session/resume": self._resume,
            "session/list": self._list,
            "session/close": self._close,
            "session/delete": self._delete,
            "session/prompt": self._prompt,
            "session/set_mode": self._set_mode,
            "session/set_config_option": self._set_option,
        }

    def connect(self, peer: Peer) -> None:
        self._peer = peer

    # Handler

    async def requested(self, method: str, params: Json) -> Json | Reply:
        serve = self._methods.get(method)
        if serve is None:
            raise unknown(method)
        if not self._initialized and method != "initialize":
            raise Refused(INVALID_REQUEST, "initialize comes first")
        if params is not None and not isinstance(params, dict):
            raise Refused(INVALID_PARAMS, "the params are an object, by name")
        try:
            return await serve(params or {})
        except (BadRequest, ConfigError, DirectoryUnavailable) as error:
            raise Refused(INVALID_PARAMS, str(error)) from error
        except (TaskNotFound, TaskInUse) as error:
            raise Refused(NOT_FOUND, str(error)) from error

    def notified(self, method: str, params: Json) -> None:
        if method == "session/cancel" and isinstance(params, dict):
            session = self._sessions.get(str(params.get("sessionId")))
            if session is not None:
                session.cancel()

    def odd(self, message: Bad | Response) -> None:
        pass  # it was answered, or answers nobody

    # Connection

    async def _initialize(self, params: Params) -> Reply:
        capabilities = params.get("clientCapabilities")
        meta = capabilities.get("_meta") if isinstance(capabilities, dict) else None
        self._terminals = isinstance(meta, dict) and meta.get("terminal_output") is True
        self._initialized = True
        answer: Json = {
            "protocolVersion": 1,
            "agentInfo": {"name": "tarmac", "title": "Tarmac", "version": __version__},
            "agentCapabilities": {
                "loadSession": True,
                "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
                "mcpCapabilities": {"http": False, "sse": False},
                "sessionCapabilities": {"list": {}, "resume": {}, "close": {}, "delete": {}},
            },
            "authMethods": [],
        }
        return Reply(answer, then=self._warm_up)

    def _warm_up(self) -> None:
        if self._warming is None:
            self._warming = asyncio.create_task(self._imported())

    async def _imported(self) -> None:
        """What a session needs, imported beside the event loop."""
        await asyncio.to_thread(importlib.import_module, "tarmac.acp.session")

    async def _authenticate(self, _: Params) -> Json:
        return {}  # keys come from the environment or the user's configuration

    # Sessions

    async def _new(self, params: Params) -> Json | Reply:
        workspace = _directory(params)
        app = await self._app(workspace)
        async with AsyncExitStack() as owns:
            task = await owns.enter_async_context(app.create_task(None, cwd=workspace))
            session = self._session(app, task, workspace, model=app.config.model or "")
            session.owns.push_async_callback(owns.pop_all().aclose)
        return Reply({"sessionId": session.id, **_state(session)}, then=lambda: session.send(session.commands()))

    async def _load(self, params: Params) -> Json | Reply:
        session = await self._reopened(params)
        if session.task.id in self._sessions:
            past = (await session.app.store.read(session.task.id)).events
            from tarmac.acp.updates import Updates

            replay = Updates(replay=True)
            for event in past:
                for update in replay.of(event):
                    session.send(update)
        return Reply(_state(session), then=lambda: session.send(session.commands()))

    async def _resume(self, params: Params) -> Json | Reply:
        session = await self._reopened(params)
        return Reply(_state(session), then=lambda: session.send(session.commands()))

    async def _reopened(self, params: Params) -> "Session":
        id = _text(params, "sessionId")
        if id in self._sessions:
            return self._sessions[id]
        workspace = _directory(params)
        app = await self._app(workspace)
        async with AsyncExitStack() as owns:
            task = await owns.enter_async_context(app.resume_task(id))
            session = self._session(app, task, workspace, model=task.metadata.model or app.config.model or "")
            session.owns.push_async_callback(owns.pop_all().aclose)
        return session

    def _session(self, app: "App", task: "Task", workspace: Path, *, model: str) -> "Session":
        from tarmac.acp.session import Session
        from tarmac.prompts.modes import load_modes

        assert self._peer is not None
        modes = load_modes(workspace, app.config.user_folder)
        session = Session(app, task, modes, workspace, self._peer, model=model, terminals=self._terminals)
        self._sessions[session.id] = session
        return session

    async def _app(self, workspace: Path) -> "App":
        """One for each workspace: its configuration may tighten what the user's allows."""
        async with self._opening:
            if workspace not in self._apps:
                await self._imported()
                from tarmac.app import open_app
                from tarmac.config import load_config

                config = await asyncio.to_thread(load_config, workspace, self._environ, self._overrides)
                self._apps[workspace] = await self._owns.enter_async_context(open_app(config, environ=self._environ))
            return self._apps[workspace]

    async def _list(self, params: Params) -> Json:
        cwd = params.get("cwd")
        workspace = check_directory(Path(cwd)) if isinstance(cwd, str) and cwd else None
        app = await self._app(workspace or Path.cwd())
        cursor = params.get("cursor")
        start = int(cursor) if isinstance(cursor, str) and cursor.isdecimal() else 0
        found = await app.store.listing(workspace=workspace, limit=start + PAGE + 1)
        page = [each for each in found[start : start + PAGE] if each.metadata.workspace is not None]
        sessions = [
            {
                "sessionId": each.task,
                "cwd": str(each.metadata.workspace),
                "title": each.metadata.title or None,
                "updatedAt": datetime.fromtimestamp(each.metadata.at, UTC).isoformat(),
            }
            for each in page
        ]
        more: dict[str, Json] = {"nextCursor": str(start + PAGE)} if len(found) > start + PAGE else {}
        return {"sessions": sessions, **more}

    async def _close(self, params: Params) -> Json:
        session = self._sessions.pop(_text(params, "sessionId"), None)
        if session is None:
            raise Refused(NOT_FOUND, f"there is no open session {params.get('sessionId')}")
        await session.aclose()
        return {}

    async def _delete(self, params: Params) -> Json:
        id = _text(params, "sessionId")
        session = self._sessions.pop(id, None)
        app = session.app if session is not None else await self._app(Path.cwd())
        if session is not None:
            await session.aclose()
        try:
            await app.store.delete(TaskId(id))
        except TaskNotFound:
            if session is None:
                raise
        return {}

    # Turns

    async def _prompt(self, params: Params) -> Json:
        return await self._open(params).prompt(read_prompt(params.get("prompt")))

    async def _set_mode(self, params: Params) -> Json:
        await self._open(params).task.switch_mode(_text(params, "modeId"))
        return {}

    async def _set_option(self, params: Params) -> Json:
        session, option, value = self._open(params), _text(params, "configId"), _text(params, "value")
        if option == "mode":
            await session.task.switch_mode(value)
        elif option == "model":
            await session.task.switch_model(value)
            session.model = value
        else:
            raise Refused(INVALID_PARAMS, f"there is no option {option!r}: mode and model can be set")
        return {"configOptions": session.options()}

    def _open(self, params: Params) -> "Session":
        session = self._sessions.get(_text(params, "sessionId"))
        if session is None:
            raise Refused(NOT_FOUND, f"there is no open session {params.get('sessionId')}: new, load or resume one")
        return session

    async def aclose(self) -> None:
        """Leave every session in order. May be called twice."""
        if self._warming is not None:
            self._warming.cancel()
        sessions, self._sessions = self._sessions, {}
        await asyncio.gather(*(each.aclose() for each in sessions.values()), return_exceptions=True)
        await self._owns.aclose()


def _state(session: "Session") -> dict[str, object]:
    return {"modes": session.mode_state(), "configOptions": session.options()}


def _text(params: Params, name: str) -> str:
    value = params.get(name)
    if not isinstance(value, str) or not value:
        raise Refused(INVALID_PARAMS, f"`{name}` is missing, or no text")
    return value


def _directory(params: Params) -> Path:
    path = Path(_text(params, "cwd"))
    if not path.is_absolute():
        raise Refused(INVALID_PARAMS, f"cwd must be an absolute path, not {str(path)!r}")
    return check_directory(path)
