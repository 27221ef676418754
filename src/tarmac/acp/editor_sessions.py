"""The sessions of one editor: each method of ACP is one verb of an App, a Task or the store."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tarmac.acp.content import EditorAbilities, EditorDocuments, read_prompt
from tarmac.acp.editor_session import EditorSession
from tarmac.acp.rpc_peer import PeerReply, Refused, RpcPeer
from tarmac.acp.updates import Updates, commands_of, options_of
from tarmac.acp.wire import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, NOT_FOUND, Json
from tarmac.app import App, check_workspace, open_app
from tarmac.config import load_config
from tarmac.errors import BadRequest, ConfigError, DirectoryUnavailable, PlaceFailed, TaskInUse, TaskNotFound
from tarmac.events import TaskId
from tarmac.paths import Relation, check_directory, relation, state_dir
from tarmac.server.joined_task import JoinedTask, resume_or_join
from tarmac.server.served_client import share
from tarmac.show.look import one_line
from tarmac.tasks.events import TaskCreated
from tarmac.tasks.store import TaskStore
from tarmac.tasks.task import Task
from tarmac.terminals.environment import wipe_own_environment
from tarmac.tools.servers import ServerDefinition
from tarmac.tools.servers.definition import parse_definition

if TYPE_CHECKING:
    from tarmac.fleet.open_address import WorkingPlace

PAGE: Final = 50  # sessions in one answer of session/list
MOST: Final = 200  # open at once
NO_PROJECT: Final = Path("/")  # the configuration of sessions at another place: the user's alone
Params = Mapping[str, object]


class EditorSessions:
    """Those of one editor."""

    def __init__(
        self,
        peer: RpcPeer,
        client: EditorAbilities,
        environ: Mapping[str, str],
        overrides: Mapping[str, object],
        documents: EditorDocuments,
        *,
        place: str = "",
        there: Path | None = None,
    ) -> None:
        self._peer, self._client = peer, client
        self._environ, self._overrides, self._documents = environ, overrides, documents
        self._store = TaskStore(state_dir(environ) / "tasks")
        self._apps: dict[Path, App] = {}
        self._owns = AsyncExitStack()
        self._opening = asyncio.Lock()
        self._address, self._there = place, there
        self._place: WorkingPlace | None = None  # connected with the first session
        self._open: dict[str, EditorSession] = {}
        self.methods: dict[str, Callable[[Params], Awaitable[Json | PeerReply]]] = {
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

    async def serve(self, method: str, params: Params) -> Json | PeerReply:
        """The answer to a request."""
        try:
            return await self.methods[method](params)
        except (BadRequest, ConfigError, DirectoryUnavailable) as error:
            raise Refused(INVALID_PARAMS, str(error)) from error
        except TaskNotFound as error:
            raise Refused(NOT_FOUND, str(error)) from error
        except PlaceFailed as error:
            raise Refused(INTERNAL_ERROR, str(error)) from error
        except TaskInUse as error:
            raise Refused(INVALID_REQUEST, str(error)) from error

    def cancel(self, id: object) -> None:
        """session/cancel: stop the turn."""
        session = self._open.get(id) if isinstance(id, str) else None
        if session is not None:
            session.cancel()

    def look(self) -> None:
        """The editor told of its files."""
        for session in self._open.values():
            session.look(self._documents)

    # Beginning

    async def _new(self, params: Params) -> Json | PeerReply:
        workspace = await self._workspace(params)
        self._check_room()
        app = await self._app(workspace)
        async with AsyncExitStack() as owns:
            servers, unusable = self._servers(params, app.config.user_folder if app.place else app.config.workspace)
            task = await owns.enter_async_context(app.create_task(None, cwd=workspace, servers=servers))
            session = self._session(app, task, workspace, unusable, model=app.config.model or "")
            session.owns.push_async_callback(owns.pop_all().aclose)
        state = {"sessionId": session.id, **self._state(session)}
        return PeerReply(state, then=lambda: session.send(session.commands()))

    async def _load(self, params: Params) -> Json | PeerReply:
        session = await self._reopened(params)
        replay = Updates(replay=True, workspace=session.workspace)
        for event in (await self._store.read(session.task.id)).events:
            for update in replay.of(event):
                session.send(update)
                await self._peer.room()
        if not session.task.running:
            for update in replay.cut_off():
                session.send(update)
        return PeerReply(self._state(session), then=session.begin)

    async def _resume(self, params: Params) -> Json | PeerReply:
        if self._client.version == 2 and (start := params.get("replayFrom")) is not None:
            if not isinstance(start, dict) or start.get("type") != "start":
                raise Refused(INVALID_PARAMS, "a session can be replayed from its `start` only")
            return await self._load(params)
        session = await self._reopened(params)
        return PeerReply(self._state(session), then=session.begin)

    async def _reopened(self, params: Params) -> EditorSession:
        id = await self._known(params)
        if id in self._open:
            return self._open[id]
        workspace = await self._workspace(params)
        self._check_room()
        past = (await self._store.read(id)).events
        own = next((each.workspace for each in past if isinstance(each, TaskCreated)), workspace)
        # Else it would work there by the configuration of another place.
        if own != workspace and (self._address or relation(own, workspace) is not Relation.SAME):
            raise Refused(INVALID_PARAMS, f"session {id} belongs to {own}: load it with that as its `cwd`")
        app = await self._app(own)
        async with AsyncExitStack() as owns:
            servers, unusable = self._servers(params, app.config.user_folder if app.place else app.config.workspace)
            task = await owns.enter_async_context(resume_or_join(app, id, client="acp", servers=servers))
            session = self._session(app, task, own, unusable, model=task.metadata.model or app.config.model or "")
            session.owns.push_async_callback(owns.pop_all().aclose)
        return session

    def _session(
        self, app: App, task: Task | JoinedTask, workspace: Path, unusable: tuple[str, ...], *, model: str
    ) -> EditorSession:
        modes = app.modes()
        session = EditorSession(app, task, modes, workspace, self._peer, self._client, model=model)
        session.unusable_servers = unusable
        session.look(self._documents)
        self._open[session.id] = session
        return session

    async def _app(self, workspace: Path) -> App:
        """One for each workspace: its configuration may tighten what the user's allows."""
        async with self._opening:
            if workspace not in self._apps:
                project = workspace if self._place is None else NO_PROJECT
                config = await asyncio.to_thread(load_config, project, self._environ, self._overrides)
                wipe_own_environment(config.terminals)
                config = replace(config, workspace=workspace)
                opening = open_app(config, environ=self._environ, place=self._place)
                app = await self._owns.enter_async_context(opening)
                if self._place is None:
                    await self._owns.enter_async_context(share(app, self._environ))
                self._apps[workspace] = app
            return self._apps[workspace]

    async def _workspace(self, params: Params) -> Path:
        """The folder of a session: here, or at the place."""
        if not self._address:
            return check_workspace(_directory(params), self._environ)
        place = await self._connected()
        return await place.machine.directory(self._there or _absolute(params))

    async def _connected(self) -> "WorkingPlace":
        """The place. If its connection is lost for good, a new one is made, for new sessions."""
        async with self._opening:
            if self._place is None or self._place.machine.connection.gone is not None:
                from tarmac.fleet.open_address import open_place

                self._apps.clear()  # they are closed with the rest
                self._place = await self._owns.enter_async_context(open_place(self._address))
            assert self._place is not None
            return self._place

    def _check_room(self) -> None:
        if len(self._open) >= MOST:
            raise Refused(INVALID_REQUEST, f"{MOST} sessions are open: close some first")

    async def _known(self, params: Params) -> TaskId:
        """The whole id of a session that exists. A beginning of it does not count here."""
        id = TaskId(_text(params, "sessionId"))
        if (await asyncio.to_thread(self._store.path, id)).name != id:
            raise Refused(NOT_FOUND, f"there is no session {id}")
        return id

    # Those there are

    async def _list(self, params: Params) -> Json:
        cwd = params.get("cwd")
        workspace = _absolute(params) if cwd is not None else None
        if workspace is not None:
            workspace = self._there or workspace if self._address else check_directory(workspace)
        cursor = params.get("cursor")
        if cursor is not None and not (isinstance(cursor, str) and cursor.isdecimal() and len(cursor) < 10):
            raise Refused(INVALID_PARAMS, "unknown `cursor`")
        start = int(cursor) if isinstance(cursor, str) else 0
        found = await self._store.listing(workspace=workspace, limit=start + PAGE + 1)
        sessions = [
            {
                "sessionId": each.task,
                "cwd": str(each.metadata.workspace),
                "title": each.metadata.title or None,
                "updatedAt": datetime.fromtimestamp(each.metadata.at, UTC).isoformat(),
            }
            for each in found[start : start + PAGE]
            if each.metadata.workspace is not None and each.metadata.place == self._address
        ]
        more: dict[str, Json] = {"nextCursor": str(start + PAGE)} if len(found) > start + PAGE else {}
        return {"sessions": sessions, **more}

    async def _close(self, params: Params) -> Json:
        session = self._open.pop(_text(params, "sessionId"), None)
        if session is None:
            raise Refused(NOT_FOUND, f"there is no open session {params.get('sessionId')}")
        await session.aclose()
        return {}

    async def _delete(self, params: Params) -> Json:
        id = _text(params, "sessionId")
        session = self._open.pop(id, None)
        if session is not None:
            await session.aclose()
        for app in self._apps.values():
            await app.registry.end_task(id)  # also what it left running
        try:
            await self._store.delete(await self._known(params))
        except TaskNotFound:
            if session is None:  # else it left nothing behind when it was closed
                raise
        return {}

    # Turns

    async def _prompt(self, params: Params) -> Json | PeerReply:
        session, said = self._opened(params), read_prompt(blocks := params.get("prompt"))
        return await (session.prompt(said) if self._client.version == 1 else session.accept(said, blocks))

    async def _set_mode(self, params: Params) -> Json:
        await self._opened(params).task.switch_mode(_text(params, "modeId"))
        return {}

    async def _set_option(self, params: Params) -> Json:
        session, option, value = self._opened(params), _text(params, "configId"), _text(params, "value")
        if option == "mode":
            await session.task.switch_mode(value)
        elif option == "model":
            await session.task.switch_model(value)
            session.model = value
        else:
            raise Refused(INVALID_PARAMS, f"there is no option {option!r}: mode and model can be set")
        return {"configOptions": self._state(session)["configOptions"]}

    def _state(self, session: EditorSession) -> dict[str, object]:
        if self._client.version == 1:
            return {"modes": session.mode_state(), "configOptions": session.options()}
        commands = commands_of(session.commands()["availableCommands"])
        return {"configOptions": options_of(session.options()), "availableCommands": commands}

    def _servers(self, params: Params, workspace: Path) -> tuple[tuple[ServerDefinition, ...], tuple[str, ...]]:
        """The MCP servers that the editor would have us use, and why some of them can't be."""
        given = params.get("mcpServers")
        listed = [each for each in given[:50] if isinstance(each, dict)] if isinstance(given, list) else []
        if self._client.version == 2 and (
            strange := [each for each in listed if each.get("type") not in ("stdio", "http")]
        ):
            raise Refused(INVALID_PARAMS, f"an MCP server is `stdio` or `http`, not {str(strange[0].get('type'))!r}")
        found, trouble = [], []
        for each in listed:
            name = str(each.get("name", ""))[:60]
            try:
                found.append(parse_definition(name, each, origin="editor", workspace=workspace, environ={}))
            except ValueError as error:
                trouble.append(f"{one_line(name) or 'one without a name'}: {error}")
        return tuple(found), tuple(trouble)

    def _opened(self, params: Params) -> EditorSession:
        session = self._open.get(_text(params, "sessionId"))
        if session is None:
            raise Refused(NOT_FOUND, f"there is no open session {params.get('sessionId')}: new, load or resume one")
        return session

    async def aclose(self) -> None:
        """Leave every session in order. May be called twice."""
        sessions, self._open = self._open, {}
        await asyncio.gather(*(each.aclose() for each in sessions.values()), return_exceptions=True)
        await self._owns.aclose()


def _text(params: Params, name: str) -> str:
    value = params.get(name)
    if not isinstance(value, str) or not value or "\0" in value:
        raise Refused(INVALID_PARAMS, f"`{name}` is missing, or not a text")
    return value


def _directory(params: Params) -> Path:
    return check_directory(_absolute(params))


def _absolute(params: Params) -> Path:
    path = Path(_text(params, "cwd"))
    if not path.is_absolute():
        raise Refused(INVALID_PARAMS, f"cwd must be an absolute path, not {str(path)!r}")
    return path
