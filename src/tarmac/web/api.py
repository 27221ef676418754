"""HTTP under /api/: lists, timelines, outputs, settings. What happens live comes through the socket.

Each handler returns JSON values. Errors of Tarmac become {"error": {"what", "hint"}} with a fitting status.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from secrets import compare_digest
from typing import Any, Final, Protocol

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tarmac.config.config import shown_settings
from tarmac.errors import BadRequest, StateUnavailable, TarmacError, TaskNotFound, TerminalNotFound
from tarmac.events import TaskId
from tarmac.models.messages import NO_USAGE, Usage
from tarmac.policy.grants import GrantFile
from tarmac.prompts.modes import load_modes
from tarmac.server import shapes
from tarmac.server.open_task import TaskHistory
from tarmac.server.running_app import RunningApp
from tarmac.server.shapes import Json
from tarmac.show.editor_completion import files, matching
from tarmac.show.json_records import record
from tarmac.tasks.auto import LEVELS
from tarmac.tasks.events import CommandOutput, HistoryCondensed, ModelSaid, RequestFailed, RequestStarted, TaskEvent
from tarmac.tasks.log.disk import Blobs
from tarmac.tasks.log.reader import BLOBS, read_log
from tarmac.tasks.recordings import read_recording, recordings_of
from tarmac.tasks.talk import commands, first_line
from tarmac.tasks.task import Task
from tarmac.tasks.views.file_history import FileHistory
from tarmac.web.guard import Access

MOST_ITEMS: Final = 100_000
MOST_OUTPUT: Final = 4 << 20  # bytes in one answer
FRESH: Final = 5.0  # seconds that a list of files is used
DAY: Final = 86_400.0
BUILT_IN: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "help": ("list the commands and keys", ()),
    "model": ("show or change the model: /model provider/name", ()),
    "mode": ("show or change the mode: /mode architect", ()),
    "auto": ("show or change what runs without asking: /auto edits", LEVELS),
    "clear": ("begin a new task; the old one is kept", ()),
    "cost": ("show tokens and cost of this task", ()),
    "context": ("show how full the context window is", ()),
    "tasks": ("list the tasks", ()),
    "resume": ("continue another task: /resume ID", ()),
    "terminals": ("list this task's terminals", ()),
    "init": ("write AGENTS.md for this project", ()),
}
Handler = Callable[[Request], Awaitable[Json | Response]]


def json_response(value: Json, status: int = 200) -> Response:
    return Response(shapes.encode(value), status_code=status, media_type="application/json")


def error_response(what: str, hint: str, status: int) -> Response:
    return json_response({"error": {"what": what, "hint": hint}}, status)


class Api:
    """The routes. `address` makes a new one-time address."""

    def __init__(self, state: RunningApp, access: Access, address: "Address", admit: "Admit", secret: str) -> None:
        self._state = state
        self._access = access
        self._address = address
        self._admit = admit
        self._secret = secret
        self._files: dict[Path, tuple[float, list[str]]] = {}
        self._usage: dict[TaskId, tuple[int, list[_Spent]]] = {}

    def routes(self) -> list[Route]:
        get: dict[str, Handler] = {
            "/api/tasks": self._tasks,
            "/api/tasks/{task}/timeline": self._timeline,
            "/api/tasks/{task}/records": self._records,
            "/api/tasks/{task}/checkpoints": self._checkpoints,
            "/api/tasks/{task}/blob/{name}": self._blob,
            "/api/tasks/{task}/output/{call}": self._output,
            "/api/tasks/{task}/recordings": self._recordings,
            "/api/tasks/{task}/recordings/{name}": self._recording,
            "/api/terminals/{terminal}/tape": self._tape,
            "/api/settings": self._settings,
            "/api/grants": self._grants,
            "/api/usage": self._usage_by_day,
            "/api/files": self._matching_files,
            "/api/commands": self._commands,
            "/api/models": self._models,
            "/api/modes": self._modes,
            "/api/mcp": self._mcp,
        }
        post: dict[str, Handler] = {"/api/grants/revoke": self._revoke}
        return [
            Route("/api/session", self._safe(self._session, proof=False), methods=["POST"]),
            Route("/api/invite", self._safe(self._invite, proof=False), methods=["POST"]),
            *(Route(path, self._safe(handler), methods=["GET"]) for path, handler in get.items()),
            *(Route(path, self._safe(handler), methods=["POST"]) for path, handler in post.items()),
        ]

    def _safe(self, handler: Handler, *, proof: bool = True) -> Callable[[Request], Awaitable[Response]]:
        """The handler, for who has a proof; its errors as answers."""

        async def answer(request: Request) -> Response:
            if proof and not self._proven(request):
                hint = "open a new address: run `tarmac web` again, or press Enter where it runs"
                return error_response("the proof is missing, wrong or too old", hint, 401)
            try:
                found = await handler(request)
            except (TaskNotFound, TerminalNotFound) as error:
                return error_response(error.what, error.hint, 404)
            except TarmacError as error:
                return error_response(error.what, error.hint, 400)
            return found if isinstance(found, Response) else json_response(found)

        return answer

    def _proven(self, request: Request) -> bool:
        return self._access.knows(_bearer(request))

    # Getting in

    async def _session(self, request: Request) -> Json | Response:
        token = (await _body(request)).get("token")
        host = request.client.host if request.client else ""
        used = "run `tarmac web` again, or press Enter where it runs, for a new address"
        if not isinstance(token, str) or not self._access.takes(token):  # nobody is asked about a device that guesses
            return error_response("this address was used before, or is too old", used, 403)
        if not await self._admit(host):
            hint = "answer `y` where `tarmac web` runs, and open the address again"
            return error_response("this device was not let in", hint, 403)
        proof = self._access.redeem(token)
        if proof is None:
            return error_response("this address was used before, or is too old", used, 403)
        return {"proof": proof}

    async def _invite(self, request: Request) -> Json | Response:
        """Another address: for a page that is in, and for a second `tarmac web`, which has the secret."""
        if not self._proven(request) and not compare_digest(_bearer(request).encode(), self._secret.encode()):
            return error_response("the proof is missing, wrong or too old", "", 401)
        cwd = (await _body(request)).get("cwd", "")
        return {"address": self._address(cwd=cwd if isinstance(cwd, str) else "")}

    # Tasks

    async def _tasks(self, request: Request) -> Json:
        limit = _number(request, "limit", 500)
        rows = await self._state.task_rows()
        answer: Json = {"tasks": rows[:limit]}
        if wanted := request.query_params.get("q", "").strip():
            found = await self._state.store.search(wanted, limit=min(limit, 200))
            answer["found"] = [asdict(each) for each in found]
        return answer

    async def _timeline(self, request: Request) -> Json:
        past = await self._past(request)
        items, limit = past.timeline.items, _number(request, "limit", 200)
        before = min(_number(request, "before", len(items)), len(items))
        part = items[max(0, before - min(limit, MOST_ITEMS)) : before]
        shown = await asyncio.to_thread(lambda: [shapes.item(each) for each in part])
        return {"seq": len(past.events), "length": len(items), "items": shown}

    async def _records(self, request: Request) -> Json:
        events = (await self._past(request)).events
        after, limit = _number(request, "after", 0), _number(request, "limit", MOST_ITEMS)
        part = list(enumerate(events[after : after + limit], after + 1))
        return {"records": await asyncio.to_thread(lambda: [record(*each) for each in part]), "seq": len(events)}

    async def _checkpoints(self, request: Request) -> Json:
        """The points to go back to."""
        past, history = await self._past(request), FileHistory()
        for event in past.events:
            history.add(event)
        return {"points": [shapes.plain(each) for each in history.points]}

    async def _past(self, request: Request) -> TaskHistory:
        """From the feed where somebody follows the task, else from its log."""
        folder = await self._folder(request)
        feed = self._state.followed(TaskId(folder.name))
        return feed.past if feed is not None else await asyncio.to_thread(TaskHistory.read, folder)

    async def _folder(self, request: Request) -> Path:
        return await asyncio.to_thread(self._state.store.path, request.path_params["task"])

    async def _blob(self, request: Request) -> Response:
        folder = await self._folder(request)
        data = await asyncio.to_thread(Blobs(folder / BLOBS).read, request.path_params["name"])
        if data is None:
            return error_response("there is no such content in this task", "", 404)
        return Response(data, media_type=_picture_type(data))

    async def _output(self, request: Request) -> Response:
        call = request.path_params["call"]
        found = [each for each in (await self._past(request)).events if isinstance(each, CommandOutput)]
        spool = next((each.spool for each in reversed(found) if each.call == call), None)
        if spool is None:
            return error_response("this call has no output that was kept", "", 404)
        start, size = _number(request, "from", 0), min(_number(request, "size", MOST_OUTPUT), MOST_OUTPUT)
        try:
            data, whole = await asyncio.to_thread(_part_of, spool, start, size)
        except OSError:
            return error_response("the output is gone from the disk", "", 404)
        return Response(data, media_type="application/octet-stream", headers={"x-size": str(whole)})

    async def _recordings(self, request: Request) -> Json:
        found = await asyncio.to_thread(recordings_of, await self._folder(request))
        return {"recordings": [asdict(each) for each in found]}

    async def _recording(self, request: Request) -> Response:
        folder = await self._folder(request)
        data = await asyncio.to_thread(read_recording, folder, request.path_params["name"])
        if data is None:
            return error_response("there is no such recording of this task", "", 404)
        return Response(data, media_type="application/octet-stream")

    async def _tape(self, request: Request) -> Response:
        tape = self._state.terminals.get(request.path_params["terminal"]).tape
        start = min(max(_number(request, "from", 0), tape.start), tape.end)
        data = tape.read(start, tape.end)
        headers = {"x-offset": str(start), "x-end": str(tape.end)}
        return Response(data, media_type="application/octet-stream", headers=headers)

    # Settings and grants

    async def _settings(self, _: Request) -> Json:
        config = self._state.config
        values = {
            row.key.name: {
                "value": row.value,
                "default": list(row.key.default) if isinstance(row.key.default, tuple) else row.key.default,
                "origin": {"place": row.origin.place, "where": str(row.origin.where or ""), "line": row.origin.line},
                "about": row.key.about,
                "variable": row.key.variable or None,
            }
            for row in shown_settings(config)
        }
        return {"values": json.loads(json.dumps(values, default=str)), "notes": list(config.notes)}

    @property
    def _grant_file(self) -> GrantFile:
        return GrantFile(self._state.store.folder.parent / "grants.json")

    async def _grants(self, _: Request) -> Json:
        found = await asyncio.to_thread(self._grant_file.listing)
        return {"grants": [{**shapes.plain(each), "where": each.where} for each in found]}

    async def _revoke(self, request: Request) -> Json:
        id = (await _body(request)).get("id")
        if not isinstance(id, str) or not id:
            raise BadRequest("which grant? There is no `id`")
        return {"revoked": shapes.plain(await asyncio.to_thread(self._grant_file.revoke, id))}

    # For the composer

    def _workspace(self, request: Request) -> Path:
        opened = self._state.open.get(TaskId(request.query_params.get("task", "")))
        return (opened.task.metadata.workspace if opened else None) or self._state.config.workspace

    async def _matching_files(self, request: Request) -> Json:
        workspace = self._workspace(request)
        read, listed = self._files.get(workspace, (0.0, []))
        if time.monotonic() - read > FRESH or not read:
            listed = await asyncio.to_thread(files, workspace)
            self._files = {workspace: (time.monotonic(), listed)}
        return {"files": await asyncio.to_thread(matching, request.query_params.get("q", "")[:200], listed)}

    async def _commands(self, request: Request) -> Json:
        workspace, folder = self._workspace(request), self._state.config.user_folder
        modes = tuple(each.slug for each in (await asyncio.to_thread(load_modes, workspace, folder)).all)
        offered = {**BUILT_IN, "mode": (BUILT_IN["mode"][0], modes)}
        found = [{"name": name, "what": what, "values": list(values)} for name, (what, values) in offered.items()]
        own = await asyncio.to_thread(commands, workspace, folder)
        found += [
            {"name": name, "what": first_line(path), "values": []}
            for name, path in sorted(own.items())
            if name not in offered
        ]
        return {"commands": found}

    async def _models(self, _: Request) -> Json:
        config = self._state.config
        used = {row["model"]: row["context_window"] for row in await self._state.task_rows() if row["model"]}
        if config.model:
            used.setdefault(config.model, None)
        return {
            "models": [{"id": name, "context_window": window} for name, window in used.items()],
            "default": config.model,
        }

    async def _modes(self, request: Request) -> Json:
        config = self._state.config
        found = await asyncio.to_thread(load_modes, self._workspace(request), config.user_folder)
        return {
            "modes": [{"slug": each.slug, "name": each.name, "when": each.when} for each in found.all],
            "default": config.mode,
        }

    async def _mcp(self, _: Request) -> Json:
        """The MCP servers that tasks may use: those of the configuration, and what open tasks know of them."""
        app = await self._state.app(self._state.config.workspace)
        unused = await asyncio.to_thread(app.open_hub, self._state.config.workspace)
        found = {each.name: each for each in unused.status()}
        await unused.aclose()
        for task in (each.task for each in self._state.open.values()):
            if isinstance(task, Task):
                found |= {each.name: each for each in task.servers.status() if each.state != "not started"}
        return {"servers": [shapes.plain(each) for each in found.values()]}

    # Usage

    async def _usage_by_day(self, request: Request) -> Json:
        days = max(1, min(_number(request, "days", 30), 3650))
        since = time.time() - days * DAY
        rows = [row for row in await self._state.task_rows() if row["at"] >= since]
        spent = await asyncio.to_thread(self._spent, [TaskId(row["id"]) for row in rows])
        by_day: dict[str, _Sum] = {}
        by_model: dict[str, _Sum] = {}
        for each in spent:
            if each.at >= since:
                day = datetime.fromtimestamp(each.at).astimezone().strftime("%Y-%m-%d")
                by_day.setdefault(day, _Sum()).add(each)
                by_model.setdefault(each.model, _Sum()).add(each)
        return {
            "days": [{"day": day, **total.as_data()} for day, total in sorted(by_day.items())],
            "models": {name: total.as_data() for name, total in by_model.items()},
        }

    def _spent(self, tasks: list[TaskId]) -> "list[_Spent]":
        found: list[_Spent] = []
        for task in tasks:
            folder = self._state.store.folder / task
            try:
                size = (folder / "log.jsonl").stat().st_size
                known = self._usage.get(task)
                if known is None or known[0] != size:
                    known = size, _spendings(read_log(folder).events)
                    self._usage[task] = known
            except (OSError, TaskNotFound, StateUnavailable):
                continue
            found += known[1]
        return found


Admit = Callable[[str], Awaitable[bool]]  # whether a device of that address may come in


class Address(Protocol):
    """Makes a one-time address."""

    def __call__(self, *, cwd: str = "") -> str: ...


class _Spent:
    """What one request took."""

    __slots__ = ("at", "cost", "model", "usage")

    def __init__(self, at: float, model: str, usage: Usage, cost: float | None) -> None:
        self.at, self.model, self.usage, self.cost = at, model, usage, cost


class _Sum:
    """What several took."""

    def __init__(self) -> None:
        self.usage, self.cost, self.requests, self.unpriced = NO_USAGE, 0.0, 0, 0

    def add(self, spent: _Spent) -> None:
        self.usage += spent.usage
        self.cost += spent.cost or 0.0
        self.requests += 1
        self.unpriced += spent.cost is None

    def as_data(self) -> Json:
        own = {"cost": round(self.cost, 6), "requests": self.requests, "unpriced": self.unpriced}
        return {**msgspec.structs.asdict(self.usage), **own}


def _spendings(events: list[TaskEvent]) -> list[_Spent]:
    found: list[_Spent] = []
    model = ""
    for event in events:
        match event:
            case RequestStarted(model=model):
                pass
            case ModelSaid(usage=usage, cost=cost) | HistoryCondensed(usage=usage, cost=cost):
                found.append(_Spent(event.at, model, usage, cost))
            case RequestFailed(usage=usage, cost=cost) if usage != NO_USAGE:
                found.append(_Spent(event.at, model, usage, cost))
    return found


def _part_of(path: Path, start: int, size: int) -> tuple[bytes, int]:
    with path.open("rb") as file:
        whole = file.seek(0, 2)
        file.seek(start)
        return file.read(size), whole


def _picture_type(data: bytes) -> str:
    """By its first bytes; what is not a picture is plain bytes, which no browser runs."""
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "image/webp"
    starts = {b"\x89PNG": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}
    return next((kind for start, kind in starts.items() if data.startswith(start)), "application/octet-stream")


def _bearer(request: Request) -> str:
    """What the Authorization header carries; nothing, where there is more than one."""
    given = request.headers.getlist("authorization")
    scheme, _, proof = (given[0] if len(given) == 1 else "").partition(" ")
    return proof.strip() if scheme.lower() == "bearer" else ""


def _number(request: Request, name: str, default: int) -> int:
    text = request.query_params.get(name)
    if not text:
        return default
    if not text.isdecimal() or len(text) > 18:
        raise BadRequest(f"`{name}` is a number, not {text[:40]!r}")
    return int(text)


async def _body(request: Request) -> dict[str, Any]:
    try:
        found = json.loads(await request.body())
    except (ValueError, RecursionError):
        raise BadRequest("the body is not JSON") from None
    if not isinstance(found, dict):
        raise BadRequest("the body is not a JSON object")
    return found
