"""`tarmac run "text"` and `tarmac resume [ID]`: a task, from a shell.

arguments → Config → App → Task ─TaskDriver→ what is seen, and the exit status

The person's own words are the first line: they are on the screen before the rest of Tarmac is even imported.
"""

import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tarmac.cli.exit_status import complain
from tarmac.cli.parser import LEVELS, Given, number, parse, suggest
from tarmac.errors import (
    BadRequest,
    ConfigError,
    DirectoryUnavailable,
    PlaceFailed,
    ScriptWrong,
    ShellNotFound,
    TarmacError,
    TaskNotFound,
)
from tarmac.show.look import Look, cut, harmless, look_of, one_line, wrapped
from tarmac.show.pictures import picture, pictures_in

if TYPE_CHECKING:
    from tarmac.app import App
    from tarmac.cli.interactive import Tasks
    from tarmac.cli.shutdown import Stop
    from tarmac.config import Config
    from tarmac.show.ui import SessionUI
    from tarmac.tasks.store import Listed, TaskStore
    from tarmac.tasks.views.metadata import Metadata

NO_MODEL: Final = (
    "set ANTHROPIC_API_KEY or OPENAI_API_KEY, and choose one: --model anthropic/NAME or openai/NAME, TARMAC_MODEL, or "
    "`model` in config.toml; OPENAI_BASE_URL is for a server of your own. `tarmac demo` needs none of this"
)
CHOOSE: Final = (
    "there is a key in {key}, so choose one: --model {provider}/NAME, or for always TARMAC_MODEL={provider}/NAME or "
    "`model` in config.toml. `tarmac demo` needs none of this"
)
OF_SERVER: Final = {"server", "detach", "json", "cwd", "mode", "model", "script", "auto", "image"}
MOST_OFFERED: Final = 20  # tasks in a list to pick from


def main(arguments: list[str]) -> int:
    """Start a task and run it; the exit status."""
    given, words = parse("run", arguments)
    in_server = bool(given.keys() & {"server", "detach"})
    if not words and (in_server or not _can_chat(given)):
        raise BadRequest("no task was given", hint='tarmac run "make the tests pass"')
    if not words:
        return _guarded(lambda: _chat(Where.of(given), overrides(given)))
    if words == ["-"] and sys.stdin.isatty():
        print("what should the agent do? End with Ctrl-D on a line of its own", file=sys.stderr)
    text = _from_stdin() if words == ["-"] else " ".join(words)
    if not text.strip():
        raise BadRequest("no task was given: the text is empty", hint='tarmac run "make the tests pass"')
    request = RunRequest.of(given, text, Where.of(given), names_pictures=words != ["-"])
    if in_server:
        return _guarded(lambda: _start_in_server(request, given))
    return _guarded(lambda: _start(request, given, input_read=words == ["-"]))


def _from_stdin() -> str:
    """Standard input; BadRequest if it is not text."""
    data = sys.stdin.buffer.read()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        hint = "give text in UTF-8; a picture is given with --image FILE"
        raise BadRequest(f"standard input is not text: byte {error.start} is not UTF-8", hint=hint) from None
    if "\0" in text:
        raise BadRequest("standard input is not text: it holds a NUL byte", hint="a picture is given with --image FILE")
    return text


def resume(arguments: list[str]) -> int:
    """Go on with a task of before; the exit status."""
    given, words = parse("resume", arguments)
    if "on" in given and not words:
        raise BadRequest("which task?", hint=f"tarmac resume --on {given['on'][-1]} ID; `tarmac tasks` lists them")
    where = Where(folder=folder(given) if "on" not in given else Path.cwd())
    id, text = (words[0], " ".join(words[1:])) if words else ("", "")
    request = RunRequest.of(given, text, where)
    return _guarded(lambda: _resume(id, request, given))


def _guarded(work: Callable[[], int]) -> int:
    """Errors of a task are its failure: 1, or 2 when the arguments make no sense."""
    try:
        return work()
    except (BadRequest, ConfigError):
        raise
    except (ScriptWrong, ShellNotFound, TaskNotFound) as error:
        raise BadRequest(error.what, hint=error.hint) from None
    except PlaceFailed as error:
        from tarmac.cli.exec import PLACE_FAILED

        return complain(error.what, hint=error.hint, code=PLACE_FAILED)
    except TarmacError as error:
        from tarmac.models.provider import ModelError  # here: the first paint does not wait for it

        unusable = isinstance(error, ModelError) and error.kind in ("auth", "not_found")
        return complain(error.what, hint=error.hint, code=2 if unusable else 1)


# A session without a task yet


def _can_chat(given: Given) -> bool:
    """Whether a person can be asked what to do."""
    return sys.stdin.isatty() and look_of(sys.stdout, os.environ).live and "json" not in given and "print" not in given


def _chat(where: "Where", overrides: dict[str, object]) -> int:
    from tarmac.cli.shutdown import run

    config = _config(where.folder, overrides, asks=True)
    return run(lambda stop: _session(config, where, stop))


async def _session(config: "Config", where: "Where", stop: "Stop") -> int:
    """The editor is drawn first, and takes keys. The rest of Tarmac is imported and opened meanwhile."""
    import asyncio
    from importlib import import_module

    from tarmac.paths import state_dir
    from tarmac.show.ui import SessionUI

    look = look_of(sys.stdout, os.environ)
    ui = SessionUI(look, history=state_dir(os.environ) / "history")
    start = SessionStart(ui, config)
    try:
        async with asyncio.timeout(None) as opening, ui.running():
            ui.on_leave = ui.on_gone = lambda: opening.reschedule(0)
            ui.print("\n".join(look.paint("2", line) for line in _session_header(config, where, look)))
            await asyncio.to_thread(import_module, "tarmac.cli.interactive")  # keys are drawn meanwhile
            from tarmac.cli.interactive import Interactive
            from tarmac.cli.shutdown import meanwhile
            from tarmac.terminals.environment import wipe_own_environment

            async with _open(config, where) as app, meanwhile(_shared(app)):
                wipe_own_environment(config.terminals)
                session = Interactive(app, stop, _tasks(app), ui, look=look)
                start.done.set()
                return await session.run()
    except TimeoutError:
        if not opening.expired():
            raise
        return 0  # they left before it was open


class SessionStart:
    """What the session does until it is open: nothing typed is lost, and what was submitted waits."""

    def __init__(self, ui: "SessionUI", config: "Config") -> None:
        import asyncio

        self.done = asyncio.Event()
        self._ui = ui
        self._config = config
        self._said: list[str] = []
        ui.shows = self
        ui.on_submit = self._submitted
        ui.on_level = lambda: ui.later(self._level())

    async def _submitted(self, text: str) -> None:
        self._said.append(text)
        await self.done.wait()
        assert self._ui.on_submit is not None
        await self._ui.on_submit(text)

    async def _level(self) -> None:
        await self.done.wait()
        self._ui.on_level()

    def live(self, columns: int) -> list[str]:
        """What was submitted."""
        return [cut(f"❯ {one_line(text)}", columns - 1) for text in self._said]

    def status(self, columns: int) -> str:
        """As it will be in a moment."""
        model = self._config.model or ""
        name = model.rpartition("/")[2] if model.startswith("scripted/") else model
        return cut(one_line(f"  {self._config.mode} · {self._config.auto} (shift-tab) · {name}"), columns - 1)


def _session_header(config: "Config", where: "Where", look: Look) -> list[str]:
    there, home = where.there or config.workspace, Path.home()
    shown = Path("~") / there.relative_to(home) if not where.place and there.is_relative_to(home) else there
    at = f"{where.place} " if where.place else ""
    said = f"Tarmac · {config.model} · {at}{shown} · {config.mode} · /help lists the commands"
    return wrapped(f"  {one_line(said)}", look.columns - 1, indent="  ")


def _tasks(app: "App") -> "Tasks":
    """How a session opens tasks."""
    from tarmac.cli.interactive import Tasks
    from tarmac.server.joined_task import resume_or_join

    return Tasks(
        new=lambda text, images: app.create_task(text, images=images, cwd=app.config.workspace),
        old=lambda id: resume_or_join(app, id, client="cli"),
    )


async def _shared(app: "App") -> None:
    """Let other front ends join the tasks of this process. Those at another place stay with it."""
    import asyncio

    if app.place is not None:
        return
    from tarmac.server.served_client import share

    async with share(app, os.environ):
        await asyncio.Event().wait()


# Starting


def _start(request: "RunRequest", given: Given, *, input_read: bool) -> int:
    as_json, where = request.as_json, request.where
    if not as_json:
        _echo(request)
    from tarmac.cli.person import is_attended
    from tarmac.cli.shutdown import run

    config = _config(where.folder, request.overrides, asks=_can_chat(given))
    if not input_read and not where.place:
        request = replace(request, text=_expanded(request.text, config))
    if request.images:
        from tarmac.cli.driven import cannot_see

        if blind := cannot_see(config.model or "", config):
            complain(blind.what, hint=blind.hint)
    attended = "print" not in given and is_attended(as_json=as_json, input_read=input_read)
    return run(lambda stop: _new(request, config, stop, attended=attended))


def _start_in_server(request: "RunRequest", given: Given) -> int:
    """Create the task in the running server, then join it; with `--detach` only print its id."""
    from tarmac.cli.shutdown import run
    from tarmac.paths import state_dir
    from tarmac.web.run_file import RunFile

    if unknown := sorted(given.keys() - OF_SERVER):
        hint = "give it to `tarmac serve`, where it holds for every task"
        raise BadRequest(f"a task in the server takes no --{unknown[0]}", hint=hint)
    server = RunFile(state_dir(os.environ)).read()
    if not server.alive:
        hint = "`tarmac serve` in another terminal starts one; without this option the task runs here"
        raise BadRequest("no `tarmac serve` is running", hint=hint)
    return run(lambda stop: _in_server(server.pid, request, stop, detached="detach" in given))


async def _in_server(pid: int, request: "RunRequest", stop: "Stop", *, detached: bool) -> int:
    import json

    from tarmac.cli.join import join_task
    from tarmac.cli.tasks import open_store
    from tarmac.server.unix_socket import create_task_in, pasted
    from tarmac.tasks.auto import level_named

    where, chosen = request.where.folder, request.overrides
    fields: dict[str, object] = {
        "text": request.text,
        "images": pasted(request.images),
        "cwd": str(where),
        "mode": chosen.get("mode"),
        "model": chosen.get("model"),
        "level": level_named(str(chosen["auto"])) if "auto" in chosen else None,
    }
    store = open_store()
    task = await create_task_in(store.folder.parent, pid, fields)
    if detached:
        print(json.dumps({"task": task}) if request.as_json else task)
        return 0
    return await join_task(store, task, where, stop, as_json=request.as_json)


def _expanded(text: str, config: "Config") -> str:
    """The text of a slash command of the project or the user; other text as it is."""
    if not text.startswith("/"):
        return text
    from tarmac.tasks.talk import commands, expanded

    name, _, rest = text[1:].partition(" ")
    path = commands(config.workspace, config.user_folder).get(name)
    return expanded(path.read_text("utf-8", "replace"), rest.strip()) if path else text


def _echo(request: "RunRequest") -> None:
    """The first line, at once."""
    look, images = look_of(sys.stdout, os.environ), len(request.images)
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")
    first, *rest = harmless(request.text.strip()).split("\n")
    lines = [f"❯ {first}", *(f"  {line}" for line in rest)]
    if images:
        lines.append(f"  ({images} image{'s' * (images > 1)})")
    sys.stdout.write("".join(look.paint("1;34", line) + "\n" for line in lines))
    sys.stdout.flush()


def _config(where: Path, overrides: dict[str, object], *, asks: bool) -> "Config":
    """The configuration, with a model. `asks`: a person can be asked which."""
    from tarmac.config import load_config

    config = load_config(where, os.environ, overrides)
    if config.model:
        return config
    if not asks:
        raise BadRequest("no model is configured", hint=_no_model())
    from tarmac.cli.models import set_up

    set_up(config, os.environ)
    return load_config(where, os.environ, overrides)


def _no_model() -> str:
    """Which variables to set; of those that are set, what is still missing."""
    for provider, key in (("anthropic", "ANTHROPIC_API_KEY"), ("openai", "OPENAI_API_KEY")):
        if os.environ.get(key):
            return CHOOSE.format(key=key, provider=provider)
    return NO_MODEL


async def _new(request: "RunRequest", config: "Config", stop: "Stop", *, attended: bool) -> int:
    from tarmac.cli.shutdown import meanwhile
    from tarmac.cli.task_driver import drive

    async with (
        _open(config, request.where) as app,
        meanwhile(_shared(app)),
        app.create_task(request.text, images=request.images, attended=attended, cwd=app.config.workspace) as task,
    ):
        return await drive(app, task, stop, as_json=request.as_json, tasks=_tasks(app))


# Resuming


def _resume(id: str, request: "RunRequest", given: Given) -> int:
    from tarmac.cli.shutdown import run

    goes_on, on = "go" in given, given.get("on", [""])[-1]
    return run(lambda stop: _again(id, request, stop, goes_on=goes_on, given_place=on))


async def _again(id: str, request: "RunRequest", stop: "Stop", *, goes_on: bool, given_place: str) -> int:
    from tarmac.cli.exec import address_of
    from tarmac.cli.person import is_attended
    from tarmac.cli.shutdown import meanwhile
    from tarmac.cli.task_driver import drive
    from tarmac.cli.tasks import open_store
    from tarmac.config import load_config
    from tarmac.server.joined_task import JoinedTask, resume_or_join

    where, text, as_json = request.where.folder, request.text, request.as_json
    store = open_store()
    task_id, meta = await _which(store, id, where)
    if meta.agent:
        hint = f"tarmac host --resume {task_id} -- the agent's command"
        raise BadRequest(f"the task {task_id} belongs to another agent: {meta.agent}", hint=hint)
    attended = is_attended(as_json=as_json)
    if meta.outcome == "completed" and not text and not attended:
        raise BadRequest(f"task {task_id} is completed", hint=f'say what to do next: tarmac resume {task_id} "…"')
    if not (meta.title or text or request.images):
        raise BadRequest(
            f"nothing was said in task {task_id}: it was ended before your message was recorded",
            hint=f'send it again: tarmac resume {task_id} "…"',
        )
    place = address_of(given_place) if given_place else meta.place
    there = Where(folder=NO_PROJECT, place=place, there=meta.workspace) if place else Where(folder=where)
    config = load_config(there.folder if place else meta.workspace or where, os.environ, request.overrides)
    if not (config.model or meta.model):
        raise BadRequest("no model is configured", hint=_no_model())
    model = request.overrides.get("model")
    async with (
        _open(config, there) as app,
        meanwhile(_shared(app)),
        resume_or_join(
            app, task_id, client="cli", model=model if isinstance(model, str) else None, attended=attended
        ) as task,
    ):
        starts, header = goes_on, ""
        if isinstance(task, JoinedTask):
            from tarmac.cli.join import joined_header

            starts, header = True, joined_header(task)
            task.attended = attended
        return await drive(
            app,
            task,
            stop,
            as_json=as_json,
            words=text,
            images=request.images,
            tasks=_tasks(app),
            starts=starts,
            header=header,
        )


async def _which(store: "TaskStore", id: str, where: Path) -> "tuple[str, Metadata]":
    """The task of that id; without one the newest of this folder that is not completed."""
    found = await store.listing()
    if id:
        name = store.path(id).name
        return name, next(each.metadata for each in found if each.task == name)
    here = [each for each in found if _ours(each, where)]
    if not here:
        raise BadRequest(f"there is no task in {where} to continue", hint="`tarmac tasks` lists those elsewhere")
    if len(here) > 1 and sys.stdin.isatty() and look_of(sys.stdout, os.environ).live:
        import asyncio

        from tarmac.cli.join import picked

        chosen = await asyncio.to_thread(picked, store, here[:MOST_OFFERED])
        return chosen.task, chosen.metadata
    chosen = next((each for each in here if each.metadata.outcome != "completed"), here[0])
    return chosen.task, chosen.metadata


def _ours(each: "Listed", where: Path) -> bool:
    """A task of this folder that we can go on with: not that of an agent we hosted."""
    meta = each.metadata
    return meta.workspace == where and not (each.trouble or meta.agent or meta.place)


# Where


NO_PROJECT: Final = Path("/")  # the configuration of a task at another place: the user's alone


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """Where a task works."""

    folder: Path  # on this machine, for its configuration
    place: str = ""  # the address of another place
    there: Path | None = None  # the folder there

    @classmethod
    def of(cls, given: Given) -> "Where":
        """What --on and --cwd say."""
        if "on" not in given:
            return cls(folder=folder(given))
        from tarmac.cli.exec import place_of

        place = place_of(given)
        if not place:
            return cls(folder=folder(given))
        if "cwd" not in given:
            raise BadRequest(f"which folder at {place}?", hint="--cwd DIR: a folder there")
        return cls(folder=NO_PROJECT, place=place, there=Path(given["cwd"][-1]))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """What a person wants to be done, and how."""

    text: str
    images: list[tuple[bytes, str]]
    where: Where
    overrides: dict[str, object]  # of the configuration
    as_json: bool

    @classmethod
    def of(cls, given: Given, text: str, where: Where, *, names_pictures: bool = False) -> "RunRequest":
        """What the options say. `names_pictures`: the text may name them, as in `@shot.png`."""
        images = [picture(Path(each)) for each in given.get("image", [])]
        images += pictures_in(text) if names_pictures else []
        return cls(text=text, images=images, where=where, overrides=overrides(given), as_json="json" in given)


@asynccontextmanager
async def _open(config: "Config", where: Where) -> "AsyncIterator[App]":
    """The app for tasks on this machine, or at the place."""
    from tarmac.app import open_app

    if not where.place:
        async with open_app(config) as app:
            yield app
        return
    from tarmac.fleet.open_address import open_place

    async with open_place(where.place) as place:
        assert place is not None and where.there is not None
        there = await place.machine.directory(where.there)
        async with open_app(replace(config, workspace=there), place=place) as app:
            yield app


# Arguments


def folder(given: Given) -> Path:
    from tarmac.paths import check_directory

    try:
        return check_directory(Path(given["cwd"][-1]) if "cwd" in given else Path.cwd())
    except DirectoryUnavailable as error:
        raise BadRequest(error.what, hint=error.hint) from None


def overrides(given: Given) -> dict[str, object]:
    """What the command line says, by the names of the configuration."""
    found: dict[str, object] = {}
    if "script" in given and "model" in given:
        raise BadRequest("--script and --model exclude each other")
    if "script" in given:
        script = Path(os.path.abspath(given["script"][-1]))  # without its `..`, as it is shown  # noqa: PTH100
        if not script.is_file():
            raise BadRequest(f"there is no script {script}")
        found["model"] = f"scripted/{script}"
    if "model" in given:
        found["model"] = given["model"][-1]
    if "shell" in given:
        found["terminals.shell"] = given["shell"][-1]
    if "base-url" in given:
        found["base_url"] = given["base-url"][-1]
    if "mode" in given:
        found["mode"] = given["mode"][-1]
    if "auto" in given:
        level = given["auto"][-1]
        if level not in LEVELS:
            raise BadRequest(f"there is no level `{level}`", hint=suggest(level, list(LEVELS)) or ", ".join(LEVELS[:5]))
        found["auto"] = level
    if "max-cost" in given:
        found["limits.max_cost"] = _dollars(given["max-cost"][-1])
    if (turns := number(given, "max-turns", None)) is not None:
        found["limits.max_turns"] = turns
    return found


def _dollars(text: str) -> float:
    try:
        cost = float(text.removeprefix("$"))
    except ValueError:
        cost = -1.0
    if not 0 < cost < 1e9:
        raise BadRequest(f"--max-cost takes US dollars above 0, not `{text}`")
    return cost
