"""Slash commands of a session: the built-in ones, and those of the workspace and the user.

`/name arguments` → Slash.run() → text for the model, or "" when the command did it all
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tarmac.errors import BadRequest
from tarmac.show.columns import padded
from tarmac.show.completion import Offer
from tarmac.show.harmless import one_line
from tarmac.show.summary import money, spent, tokens, when
from tarmac.tasks.auto import LEVELS, Auto
from tarmac.tasks.conversation import LONGEST, commands, first_line
from tarmac.tasks.task import Task

if TYPE_CHECKING:
    from tarmac.cli.interactive import Interactive

INIT: Final = (
    "Look at this project and write AGENTS.md: what the project is, how to build and test it, where things live, and "
    "the conventions that a newcomer must know. Keep it under 60 lines. If AGENTS.md exists, improve it."
)
_WHAT: Final = {
    "help": "list the commands and keys",
    "model": "show or change the model: /model provider/name",
    "mode": "show or change the mode: /mode architect",
    "auto": "show or change what runs without asking: /auto edit",
    "clear": "begin a new task; the old one is kept",
    "cost": "show tokens and cost of this task",
    "context": "show how full the context window is",
    "tasks": "list the tasks of this workspace",
    "resume": "go on with another task: /resume ID",
    "terminals": "list this task's terminals and what runs in them",
    "init": "write AGENTS.md for this project",
    "export": "write this task as Markdown: /export FILE",
    "quit": "leave",
}
KEYS: Final = """\
  Enter sends · Alt-Enter or \\ and Enter: new line · Up and Ctrl-R: history · Tab completes /commands and @files
  Shift-Tab: level · Ctrl-X Ctrl-E: external editor · Ctrl-C: stop the task · Ctrl-D: leave"""


class Slash:
    """The commands of one session."""

    def __init__(self, session: "Interactive") -> None:
        self._session = session

    def offered(self) -> Mapping[str, Offer]:
        """Every command with what it does and the arguments that complete."""
        found = {name: Offer(what, self._values(name)) for name, what in _WHAT.items()}
        for name, path in self._own().items():
            found.setdefault(name, Offer(first_line(path)))
        return found

    def _own(self) -> dict[str, Path]:
        config = self._session.app.config
        return commands(config.workspace, config.user_folder)

    def _values(self, name: str) -> Callable[[], tuple[str, ...]]:
        values: dict[str, Callable[[], tuple[str, ...]]] = {"auto": lambda: LEVELS, "mode": self._modes}
        return values.get(name, tuple)

    def _modes(self) -> tuple[str, ...]:
        task = self._session.task
        found = task.modes.all if isinstance(task, Task) else self._session.app.modes().all
        return tuple(mode.slug for mode in found)

    async def run(self, line: str) -> str:
        """Do what a line says; return text for the model, or nothing."""
        name, _, rest = line[1:].partition(" ")
        rest = rest.strip()
        if name in _WHAT:
            verb: Callable[[str], Awaitable[str | None]] = getattr(self, f"_{name}")
            return await verb(rest) or ""
        path = self._own().get(name)
        if path is None:
            raise BadRequest(f"there is no command /{name}", hint="/help lists them")
        return expanded(await asyncio.to_thread(path.read_text, "utf-8", "replace"), rest)

    def _say(self, text: str) -> None:
        self._session.ui.print(text)

    # One method for each command

    async def _help(self, rest: str) -> None:
        offers = self.offered()
        lines = [f"  {padded('/' + name, 14)}{one_line(offer.what)}" for name, offer in offers.items()]
        self._say("\n".join([*lines, KEYS]))

    async def _model(self, rest: str) -> None:
        task = self._session.task
        if not rest:
            meta = task.metadata if task else None
            self._say(f"  {one_line((meta.model if meta else '') or self._session.app.config.model or 'none')}")
        elif isinstance(task, Task):
            await task.switch_model(rest)
            self._say(f"  the model is {one_line(rest)} from the next request on")
        else:
            raise BadRequest("there is no task yet", hint="say something first, or start with --model")

    async def _mode(self, rest: str) -> None:
        task = self._session.task
        if not rest:
            self._say(f"  {task.metadata.mode if task else self._session.app.config.mode}")
        elif isinstance(task, Task):
            await task.switch_mode(rest)
        else:
            raise BadRequest("there is no task yet", hint="say something first, or start with --mode")

    async def _auto(self, rest: str) -> None:
        if rest:
            self._session.switch_level(rest)
        else:
            self._say(f"  levels: {', '.join(LEVELS)}")
        self._say(f"  {self._session.level}: {LEVEL_MEANS.get(self._session.level, '')}")

    def next_level(self) -> None:
        """Shift-Tab: ask → edit → ask."""
        order: tuple[Auto, ...] = ("ask", "edit")
        now = self._session.level
        self._session.switch_level(order[(order.index(now) + 1) % len(order)] if now in order else "ask")
        self._session.ui.hint(f"{self._session.level}: {LEVEL_MEANS.get(self._session.level, '')}")

    async def _clear(self, rest: str) -> str:
        await self._session.close_task()
        self._say("  A new task begins with your next words. `/tasks` lists the old one.")
        return rest

    async def _cost(self, rest: str) -> None:
        task = self._session.task
        self._say(f"  {spent(task.metadata)}" if task and task.metadata.requests else "  nothing was spent yet")

    async def _context(self, rest: str) -> None:
        meta = self._session.task.metadata if self._session.task else None
        if meta is None or not meta.context_window:
            self._say("  nothing was sent yet")
            return
        share = meta.context / meta.context_window
        self._say(f"  {tokens(meta.context)} of {tokens(meta.context_window)} tokens ({share:.0%})")

    async def _tasks(self, rest: str) -> None:
        app = self._session.app
        listed = [each for each in await app.store.listing() if each.metadata.workspace == app.config.workspace]
        lines = [
            f"  {each.task}  {padded(when(each.metadata.at), 11)} {money(each.metadata.total_cost):>8}  "
            f"{one_line(each.metadata.name)[:80]}"
            for each in listed[:20]
        ]
        self._say("\n".join(lines) or "  there are no tasks here yet")

    async def _resume(self, rest: str) -> None:
        if self._session.tasks.old is None:
            raise BadRequest("this session has one task only")
        if not rest:
            await self._tasks("")
            self._say("  /resume ID goes on with one of them")
            return
        await self._session.close_task()
        await self._session.open(self._session.tasks.old(rest))
        task = self._session.task
        self._say(f"  task {task.id if task else ''} is open. It goes on with your next words.")

    async def _terminals(self, rest: str) -> None:
        task = self._session.task
        listed = self._session.app.registry.listing(task=task.id) if task else []
        lines = []
        for terminal in listed:
            running = terminal.current
            what = f"runs `{one_line(running.command)}`" if running is not None else "idle"
            lines.append(f"  {terminal.id}  {terminal.cwd}  {what}")
        self._say("\n".join(lines) or "  this task has no terminals")

    async def _init(self, rest: str) -> str:
        return INIT

    async def _export(self, rest: str) -> None:
        from tarmac.cli.export import export

        task = self._session.task
        if task is None or not rest:
            raise BadRequest("say where: /export FILE.md", hint="it writes the task so far")
        to = Path(rest).expanduser()
        await export(self._session.app.store, task.id, "markdown", to, force=False, at_work=True)
        self._say(f"  wrote {rest}")

    async def _quit(self, rest: str) -> None:
        self._session.leave()


LEVEL_MEANS: Final[dict[str, str]] = {
    "ask": "reads the workspace, and asks before everything that does more",
    "read": "reads the workspace, and asks before everything that does more",
    "edit": "also edits files of the workspace without asking",
    "safe": "also runs medium-risk commands and switches modes without asking",
    "all": "asks only about critical commands and protected files",
}


def expanded(template: str, arguments: str) -> str:
    """PURE: the text of a command of one's own: without front matter, `$ARGUMENTS` and `$1` … filled in."""
    text = template[:LONGEST]
    if text.startswith("---\n") and (end := text.find("\n---\n", 3)) >= 0:
        text = text[end + 5 :]
    words = arguments.split()
    filled = text.replace("$ARGUMENTS", arguments)
    for number in range(9, 0, -1):
        filled = filled.replace(f"${number}", words[number - 1] if number <= len(words) else "")
    return filled.strip() if filled != text or not arguments else f"{text.strip()}\n\n{arguments}"
