"""Slash commands of a session: the built-in ones, and those of the workspace and the user.

`/name arguments` → Slash.run() → text for the model, or "" when the command did it all

A built-in command is one function with `@command("what it does")`; `/name` is the function's name without its
underscore. It is given the session and the rest of the line. What it returns is said to the model. The functions
stand in the order of the alphabet.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tarmac.errors import BadRequest, TarmacError, nearest
from tarmac.events import TerminalId
from tarmac.server.joined_task import JoinedTask
from tarmac.show.editor_completion import Offer
from tarmac.show.look import one_line, padded
from tarmac.show.summary import money, spent, tokens, when
from tarmac.tasks.auto import LEVELS, Auto
from tarmac.tasks.checkpoints import Fate, Restoration
from tarmac.tasks.talk import INIT, commands, expanded, first_line
from tarmac.tasks.task import Task

if TYPE_CHECKING:
    from tarmac.cli.interactive import Interactive
    from tarmac.terminals import Terminal

Body = Callable[["Interactive", str], Awaitable[str | None]]
KEYS: Final = """\
  Enter sends · Alt-Enter or \\ and Enter: new line · Up and Ctrl-R: history · Tab completes /commands and @files
  Shift-Tab: level · Ctrl-X Ctrl-E: external editor · Ctrl-B: command to the background
  Ctrl-C: stop the task · Ctrl-D: leave"""
LEVEL_MEANS: Final[dict[str, str]] = {
    "plan": "reads only; changes nothing and does not ask to",
    "ask": "reads the workspace, and asks before everything that does more",
    "edits": "also edits files of the workspace without asking",
    "workspace": "also runs medium-risk commands in the workspace and switches modes without asking",
    "all": "asks only about critical commands and protected files",
}


@dataclass(frozen=True, slots=True)
class SlashCommand:
    """A built-in command."""

    what: str
    body: Body
    values: Callable[["Interactive"], Sequence[str]]


COMMANDS: Final[dict[str, SlashCommand]] = {}


def command(what: str, *, values: Callable[["Interactive"], Sequence[str]] = lambda _: ()) -> Callable[[Body], Body]:
    """Make a function the command of its name. `values` are the arguments that Tab offers."""

    def add(body: Body) -> Body:
        COMMANDS[body.__name__.strip("_")] = SlashCommand(what, body, values)
        return body

    return add


class Slash:
    """The commands of one session."""

    def __init__(self, session: "Interactive") -> None:
        self._session = session

    def offered(self) -> Mapping[str, Offer]:
        """Every command with what it does and the arguments that complete."""
        found = {name: Offer(each.what, self._values(each)) for name, each in COMMANDS.items()}
        for name, path in self._own().items():
            found.setdefault(name, Offer(first_line(path)))
        return found

    def _own(self) -> dict[str, Path]:
        app = self._session.app
        return commands(app.project, app.config.user_folder)

    def _values(self, found: SlashCommand) -> Callable[[], Sequence[str]]:
        return lambda: found.values(self._session)

    async def run(self, line: str) -> str:
        """Do what a line says; return text for the model, or nothing."""
        name, _, rest = line[1:].partition(" ")
        rest = rest.strip()
        if found := COMMANDS.get(name):
            return await found.body(self._session, rest) or ""
        path = self._own().get(name)
        if path is None:
            close = nearest(name, [*COMMANDS, *self._own()])
            hint = f"did you mean /{close}?" if close else "/help lists them"
            raise BadRequest(f"there is no command /{name}", hint=hint)
        return expanded(await asyncio.to_thread(path.read_text, "utf-8", "replace"), rest)


def next_level(session: "Interactive") -> None:
    """Shift-Tab: ask → edits → plan → ask."""
    order: tuple[Auto, ...] = ("ask", "edits", "plan")
    now = session.level
    session.switch_level(order[(order.index(now) + 1) % len(order)] if now in order else "ask")
    session.ui.hint(f"{session.level}: {LEVEL_MEANS.get(session.level, '')}")


def _modes(session: "Interactive") -> tuple[str, ...]:
    task = session.task
    found = task.modes.all if isinstance(task, Task) else session.app.modes().all
    return tuple(mode.slug for mode in found)


def _terminal_names(session: "Interactive") -> Sequence[str]:
    if isinstance(session.task, JoinedTask):
        return [row["id"] for row in session.task.terminal_rows]
    return [each.id for each in _own_terminals(session)]


def _own_terminals(session: "Interactive") -> "list[Terminal]":
    """The terminals of its task, and those in which a command runs that a task left when it was done."""
    listed = session.app.registry.listing(task=session.task.id) if session.task else []
    return [*listed, *session.app.registry.background(busy=True)]


@command("look at a terminal and type into it: /attach t1; Ctrl-] leaves it", values=_terminal_names)
async def attach(session: "Interactive", rest: str) -> None:
    import termios

    from tarmac.cli.terminals import ScreenGone
    from tarmac.cli.terminals import attach as attach_to

    names = _terminal_names(session)
    name = rest or (names[0] if len(names) == 1 else "")
    if not names:
        raise BadRequest("this task has no terminals yet")
    if name not in names:
        what = f"this task has no terminal `{one_line(name)}`" if name else "which terminal?"
        raise BadRequest(what, hint=f"/attach {' or '.join(names)}")
    session.tell(f"  attached to {name}; Ctrl-] leaves it")
    why = ""
    try:
        if isinstance(session.task, JoinedTask):
            async with session.task.attached(name) as terminal, session.ui.lend() as typed:
                behind = await attach_to(terminal, typed)
            why = f": {terminal.ended}" if terminal.ended else ""
        else:
            async with session.ui.lend() as typed:
                behind = await attach_to(session.app.registry.get(TerminalId(name)), typed)
    except TarmacError:  # the process that has the terminal is gone, for example
        raise
    except (ScreenGone, OSError, termios.error):  # the editor can't draw itself again either
        session.leave(gone=True)
        return
    session.tell(f"  left {name}{why or '; what runs in it continues'}")
    session.ui.type(behind)


@command("show or change what runs without asking: /auto edits", values=lambda _: LEVELS)
async def auto(session: "Interactive", rest: str) -> None:
    if rest:
        session.switch_level(rest)
    else:
        session.tell(f"  levels: {', '.join(LEVELS)}")
    session.tell(f"  {session.level}: {LEVEL_MEANS.get(session.level, '')}")


@command("begin a new task; the old one is kept")
async def clear(session: "Interactive", rest: str) -> str:
    await session.close_task()
    session.tell("  A new task begins with your next message. `/tasks` lists the old one.")
    return rest


@command("condense the conversation: /compact what matters most")
async def compact(session: "Interactive", rest: str) -> None:
    if not isinstance(session.task, Task | JoinedTask):
        raise BadRequest("there is no conversation to condense yet")
    if not await session.task.condense(rest):
        session.tell("  the conversation is condensed before the next request")


@command("show how full the context window is, and of what")
async def context(session: "Interactive", rest: str) -> None:
    meta = session.task.metadata if session.task else None
    if meta is None or not meta.requests:
        session.tell("  nothing was sent yet")
        return
    window = meta.context_window
    share = f" of {tokens(window)} tokens ({meta.context / window:.0%})" if window else " tokens; the window is unknown"
    lines = [f"  {tokens(meta.context)}{share}"]
    if isinstance(session.task, Task):
        parts = await session.task.context_parts()
        lines += [f"  {padded(what, 22)}{tokens(count):>8}" for what, count in parts.items() if count]
    session.ui.print("\n".join(lines))


@command("show tokens and cost of this task")
async def cost(session: "Interactive", rest: str) -> None:
    task = session.task
    session.tell(f"  {spent(task.metadata)}" if task and task.metadata.requests else "  nothing was spent yet")


@command("show what this task changed: /diff, or /diff N since a point of /rewind")
async def diff(session: "Interactive", rest: str) -> None:
    from tarmac.cli.checkpoints import diff_of

    task = _with_files(session)
    found = await task.changed_since(_point(rest) if rest else None)
    if not found and not rest and (await task.file_history()).first is None:
        session.tell("  this task has changed no files")
        return
    lines = diff_of(found, _workspace(session), session.look)
    session.ui.print("\n".join(lines) or "  no file has changed since then")


@command("write this task as Markdown: /export FILE")
async def export(session: "Interactive", rest: str) -> None:
    from tarmac.cli.export import export as write

    task = session.task
    if task is None or not rest:
        raise BadRequest("say where: /export FILE.md", hint="it writes the task so far")
    to = Path(rest).expanduser()
    await write(session.app.store, task.id, "markdown", to, force=False, at_work=True)
    session.tell(f"  wrote {rest}")


@command("list the commands and keys")
async def help_(session: "Interactive", rest: str) -> None:
    offers = session.commands()
    lines = [f"  {padded('/' + name, 14)}{one_line(offer.what)}" for name, offer in sorted(offers.items())]
    session.tell("\n".join(lines), indent=" " * 16)
    session.tell(KEYS)


@command("write AGENTS.md for this project")
async def init(session: "Interactive", rest: str) -> str:
    return INIT


def _servers(session: "Interactive") -> Sequence[str]:
    task = session.task
    return [f"restart {each.name}" for each in task.servers.status()] if isinstance(task, Task) else []


@command("show the MCP servers: /mcp, /mcp restart NAME", values=_servers)
async def mcp(session: "Interactive", rest: str) -> None:
    from tarmac.cli.mcp_servers import status_lines

    task = session.task
    hub = task.servers if isinstance(task, Task) else session.app.open_hub(session.app.project)
    verb, _, name = rest.partition(" ")
    if verb == "restart" and name.strip():
        await hub.restart(name.strip())
    elif rest:
        raise BadRequest(f"`/mcp {one_line(rest)}` is unknown", hint="/mcp, or /mcp restart NAME")
    session.ui.print("\n".join(f"  {each}" for each in status_lines(hub)))


@command("show or change the mode: /mode architect", values=_modes)
async def mode(session: "Interactive", rest: str) -> None:
    task = session.task
    if not rest:
        session.tell(f"  {task.metadata.mode if task else session.app.config.mode}")
    elif isinstance(task, Task | JoinedTask):
        await task.switch_mode(rest)
    else:
        raise BadRequest("there is no task yet", hint="say something first, or start with --mode")


def _model_names(session: "Interactive") -> Sequence[str]:
    now = (session.task.metadata.model if session.task else "") or session.app.config.model or ""
    return sorted({*session.model_names(), *([now] if now else ())})


@command("show or change the model: /model provider/name", values=_model_names)
async def model(session: "Interactive", rest: str) -> None:
    task = session.task
    if not rest:
        meta = task.metadata if task else None
        session.tell(f"  {one_line((meta.model if meta else '') or session.app.config.model or 'none')}")
    elif isinstance(task, Task | JoinedTask):
        await task.switch_model(rest)
        session.tell(f"  the model is {one_line(rest)} from the next request on")
    else:
        raise BadRequest("there is no task yet", hint="say something first, or start with --model")


@command("leave")
async def quit_(session: "Interactive", rest: str) -> None:
    session.leave()


@command("continue another task: /resume ID")
async def resume(session: "Interactive", rest: str) -> None:
    if session.tasks.old is None:
        raise BadRequest("this session has one task only")
    if not rest:
        await tasks(session, "")
        session.tell("  /resume ID continues one of them")
        return
    await session.close_task()
    await session.open(session.tasks.old(rest))
    task = session.task
    session.tell(f"  task {task.id if task else ''} is open. It continues with your next message.")


@command("go back to an earlier point: /rewind N, then `files` or `conversation` for one of them alone")
async def rewind(session: "Interactive", rest: str) -> None:
    from tarmac.cli.checkpoints import point_lines, restored_lines

    task = _with_files(session)
    points = (await task.file_history()).points
    words = rest.split()
    if not words:
        session.ui.print("\n".join(point_lines(points[-40:], session.look)) or "  nothing was said yet")
        session.tell("  /rewind N goes back to just before one of these")
        return
    if not set(words[1:]) <= {"files", "conversation", "both", "force"}:
        raise BadRequest(f"/rewind takes no `{words[-1]}`", hint="/rewind N [files|conversation|both] [force]")
    to = _point(words[0])
    said = next((each.text for each in points if each.seq == to and each.said), "")
    done = await task.rewind(
        to, files="conversation" not in words, conversation="files" not in words, force="force" in words
    )
    if done is not None:
        session.ui.print("\n".join(restored_lines(done, _workspace(session), session.look)))
    if "files" not in words:
        session.ui.prefill(said)
    _tell_of_left(session, done, f"/rewind {words[0]} files force")


@command("list the tasks of this workspace")
async def tasks(session: "Interactive", rest: str) -> None:
    app = session.app
    listed = [each for each in await app.store.listing() if each.metadata.workspace == app.config.workspace]
    lines = [
        f"  {each.task}  {padded(when(each.metadata.at), 11)} {money(each.metadata.total_cost):>8}  "
        f"{one_line(each.metadata.name)[:80]}"
        for each in listed[:20]
    ]
    session.ui.print("\n".join(lines) or "  there are no tasks here yet")


@command("list this task's terminals, and what still runs in others")
async def terminals(session: "Interactive", rest: str) -> None:
    task = session.task
    if isinstance(task, JoinedTask):
        found = [(row["id"], row["cwd"], row["command"]) for row in task.terminal_rows]
    else:
        listed = _own_terminals(session)
        found = [(each.id, each.cwd, each.current.command if each.current else None) for each in listed]
    lines = [
        f"  {id}  {f'runs `{one_line(running)}`' if running is not None else 'idle'}\n      in {one_line(str(cwd))}"
        for id, cwd, running in found
    ]
    session.ui.print("\n".join(lines) or "  this task has no terminals")


@command("undo the file changes of the last turn; repeat for the turn before")
async def undo(session: "Interactive", rest: str) -> None:
    from tarmac.cli.checkpoints import restored_lines

    task = _with_files(session)
    done = await task.undo()
    if done is None:
        session.tell("  there is nothing to undo: this task has changed no files, or everything is undone")
        return
    session.ui.print("\n".join(restored_lines(done, _workspace(session), session.look)))
    if done.of(Fate.RESTORED):
        back = (await task.file_history()).points[-1].seq
        session.tell(f"  The model is told. `/rewind {back} files` reverts this undo.")
    _tell_of_left(session, done, f"/rewind {done.to} files force")


def _workspace(session: "Interactive") -> Path:
    task = session.task
    return (task.metadata.workspace if task else None) or session.app.config.workspace


def _with_files(session: "Interactive") -> Task | JoinedTask:
    """The open task, at rest. A joined one restores its files where it is open."""
    task = session.task
    if not isinstance(task, Task | JoinedTask):
        raise BadRequest("there is no task yet", hint="say something first")
    if task.running:
        raise BadRequest("the task is running", hint="Ctrl-C stops it")
    if session.app.place is not None:
        raise BadRequest(
            f"there are no checkpoints of files at {session.app.place.name}, so nothing can be undone there"
        )
    return task


def _point(word: str) -> int:
    if not word.isdecimal():
        raise BadRequest(f"`{word}` is not the number of a point", hint="/rewind lists them")
    return int(word)


def _tell_of_left(session: "Interactive", done: Restoration | None, how: str) -> None:
    if done is not None and done.of(Fate.CHANGED_SINCE):
        session.tell(f"  Files that somebody else changed since were left. `{how}` restores them, too.")
