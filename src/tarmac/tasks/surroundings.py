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
from tarmac.prompts.environment import Facts, Listing, TodoFacts, environment_details
from tarmac.tasks.desk import Desk
from tarmac.tasks.recovery import digest_of
from tarmac.tools.listing import list_files
from tarmac.tools.news import news

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
        edited, desk.edited = desk.edited, False
        terminals = await news(desk.registry, desk.task, edited=edited, most=desk.settings.tools.news_characters)
        facts = Facts(
            workspace=desk.workspace,
            now=datetime.now().astimezone(),
            mode=desk.mode.slug,
            mode_name=desk.mode.name,
            model=desk.model.info.id,
            cost=desk.cost,
            cost_limit=desk.settings.limits.max_cost,
            context_tokens=desk.context or None,
            context_window=desk.model.info.context_window,
            todos=[TodoFacts(text=each.text, status=each.status) for each in desk.todos],
            terminals=terminals,
            changed=await self._changed(),
            listing=await self._listing() if first and not self._listed else None,
        )
        return environment_details(facts)

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
