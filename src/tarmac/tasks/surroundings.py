"""What is going on around a task, gathered for the model's next turn (S8, S21, T24).

Terminals first get a moment to come to rest. Their new output is told once: what is told here counts as read.
"""

import asyncio
import os
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Final

from tarmac.errors import TarmacError
from tarmac.prompts.environment import Facts, Listing, TerminalFacts, TodoFacts, environment_details
from tarmac.tasks.desk import Desk
from tarmac.tasks.recovery import digest_of
from tarmac.terminals.terminal import Terminal
from tarmac.tools.listing import list_files

MOST_WATCHED: Final = 200  # files the task saw last that are looked at each turn
MOST_LISTED: Final = 200

_Stamp = tuple[int, int, int]


class Surroundings:
    """Looks around for one task, and remembers what it has told."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._listed = False  # the files were told
        self._known: dict[Path, tuple[_Stamp | None, str | None]] = {}  # a file's digest, while it has this stamp

    async def look(self, *, first: bool) -> str:
        """The text for the model. `first`: it knows nothing of the workspace yet."""
        desk = self._desk
        await desk.registry.cool(desk.task, edited=desk.edited)
        desk.edited = False
        facts = Facts(
            workspace=desk.workspace,
            now=datetime.now().astimezone(),
            mode=desk.mode.slug,
            mode_name=desk.mode.name,
            model=desk.model.info.id,
            cost=desk.metadata.total_cost,
            cost_limit=desk.settings.limits.max_cost,
            context_tokens=desk.metadata.context or None,
            context_window=desk.model.info.context_window,
            todos=[TodoFacts(text=each.text, status=each.status) for each in desk.metadata.todos],
            terminals=[each for each in [await self._terminal(one) for one in self._terminals()] if each],
            changed=await self._changed(),
            listing=await self._listing() if first and not self._listed else None,
        )
        return environment_details(facts)

    def _terminals(self) -> list[Terminal]:
        registry = self._desk.registry
        own = registry.listing(task=self._desk.task)
        return [*own, *(each for each in registry.background() if each not in own)]

    async def _terminal(self, terminal: Terminal) -> TerminalFacts | None:
        """What is new in one; None: nothing that anybody must know."""
        ended = terminal.unread
        running = terminal.current
        if terminal.task is None and running is None and not ended:
            return None
        waiting = running.waiting if running else None
        output = await self._desk.registry.unread_output(terminal.id) if running or ended else ""
        last = ended[-1].ending if ended else None
        ending = "" if last is None else last.reason if last.exit_code is None else f"exit code {last.exit_code}"
        return TerminalFacts(
            id=terminal.id,
            cwd=terminal.cwd,
            busy=terminal.busy,
            own=terminal.task == self._desk.task,
            command=(running or ended[-1]).command if running or ended else terminal.last_command or "",
            output=output[-self._desk.settings.tools.news_characters :],
            ending=ending,
            waiting="" if waiting is None else "a secret" if waiting.wants == "secret" else waiting.prompt or "input",
        )

    async def _changed(self) -> list[str]:
        """Files the task knows that somebody else has changed since."""
        latest = list(self._desk.seen.items())[-MOST_WATCHED:]
        stale = [(path, digest) for path, digest in latest if self._stale(path, digest)]
        changed = await asyncio.to_thread(self._look_closer, stale) if stale else []
        return [_shown(path, self._desk.workspace) for path in changed]

    def _stale(self, path: Path, digest: str | None) -> bool:
        """Whether one must look closer: it is not the file whose digest is known."""
        return self._known.get(path) != (_stamp(path), digest)

    def _look_closer(self, files: Iterable[tuple[Path, str | None]]) -> list[Path]:
        changed = []
        for path, digest in files:
            stamp = _stamp(path)
            try:
                now = digest_of(path)
            except OSError:
                now = "unreadable"
            if now == digest:
                self._known[path] = (stamp, digest)
            else:
                changed.append(path)
        return changed

    async def _listing(self) -> Listing | None:
        self._listed = True
        workspace = self._desk.workspace
        if workspace in (Path.home(), Path("/")):
            return None  # nobody's project: what lies there is nobody's business
        look = self._desk.files.look

        def hidden(path: Path) -> bool:
            return bool(look(path, cwd=workspace, workspace=workspace).ignored)

        try:
            found = await list_files(workspace, recursive=True, most=MOST_LISTED, hidden=hidden)
        except (TarmacError, OSError):
            return None
        return Listing(paths=found.names, more=found.truncated)


def _stamp(path: Path) -> _Stamp | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _shown(path: Path, workspace: Path) -> str:
    return str(path.relative_to(workspace)) if path.is_relative_to(workspace) else str(path)
