"""What is going on around a task, gathered for the model's next turn.

Terminals first get a moment to settle. Their new output is reported once and then counts as read. A thread looks at
files: whether known files were changed by somebody else, and which files came and went in the workspace. If the last
look was quick, it happens without the thread. A look that was not reported, because the task was stopped, is reported
the next time.
"""

import asyncio
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Final

from tarmac.errors import PlaceFailed, TarmacError
from tarmac.file_system import LOCAL, FileSystem
from tarmac.policy.files import Files
from tarmac.prompts.environment_details import (
    MOST_NAMES,
    Facts,
    FileListing,
    TerminalFacts,
    TodoFacts,
    environment_details,
)
from tarmac.tasks.context import Editor
from tarmac.tasks.log.disk import WorkerThread
from tarmac.tasks.state import TaskState, digest_of
from tarmac.tools.list_files import FileList, list_folder
from tarmac.tools.terminal_status import facts_of
from tarmac.tools.tree import Changes, Tree

MOST_WATCHED: Final = 200  # files the task saw last that are looked at each turn
MOST_LISTED: Final = 200
FEW_WATCHED: Final = 16  # of those, at a glance
QUICK: Final = 0.001  # seconds: a disk that took longer for a look may take long for the next

_Stamp = tuple[int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Files:
    """What the model is told about files."""

    changed: list[str]
    editor: Editor
    listing: FileListing | None = None
    came: list[str]
    went: list[str]


class Surroundings:
    """Looks around for one task, and remembers what the model was told."""

    def __init__(self, state: TaskState) -> None:
        self._state = state
        self._known: dict[Path, tuple[_Stamp | None, str | None]] = {}  # a file's digest, while it has this stamp
        home = state.context.home or Path.home()
        nobodys = state.context.workspace in (home, Path("/"))  # no project: what lies there is nobody's business
        self._there = not nobodys and bool(state.context.place)  # a tree that is listed once: nobody sees it change
        self._tree = None if nobodys or self._there else Tree(state.context.workspace, self._hidden)
        self._looking = Lock()  # a look that was cancelled may still be under way
        self._quick = False  # the last look was
        self._told = False  # what files there are
        self._forgotten = False  # what it was told of them
        self._facts: Facts | None = None  # what the model was told last
        self._looked: Facts | None = None  # what is to be told now
        self._news: dict[str, TerminalFacts] = {}  # of terminals, by id: read, and not told yet
        self._came: tuple[str, ...] = ()  # the same of files
        self._went: tuple[str, ...] = ()
        self._worker = WorkerThread(f"eyes of {state.context.task}")

    def close(self) -> None:
        """Stop looking for now."""
        self._worker.close()

    def forget(self) -> None:
        """The model was told nothing: its conversation was condensed."""
        self._told, self._facts, self._forgotten = False, None, True

    @property
    def asking(self) -> frozenset[str]:
        """The terminals of which the model was told that they wait for input."""
        return frozenset(each.id for each in self._facts.terminals if each.waiting) if self._facts else frozenset()

    async def look(self, *, first: bool, spoken: bool) -> str:
        """The text for the model. `first`: it knows nothing of the workspace. `spoken`: the person said something."""
        state = self._state
        await state.context.registry.cool(state.context.task, edited=state.take_edited())
        terminals = await self._terminals()
        first = first or self._forgotten
        files = None if first else self._glance()
        if files is None:
            files = await self._worker.do(partial(self._look_at_files, dict(state.seen), state.editor, listed=first))
        facts = Facts(
            workspace=state.context.workspace,
            now=datetime.now().astimezone(),
            mode=state.mode.slug,
            mode_name=state.mode.name,
            model=state.model.info.id,
            level=state.context.settings.auto,
            attended=state.attended,
            cost=state.cost,
            cost_limit=state.context.settings.limits.max_cost,
            context_tokens=state.context_tokens or None,
            context_window=state.model.info.context_window,
            todos=[TodoFacts(text=each.text, status=each.status) for each in state.todos],
            terminals=terminals,
            changed=files.changed,
            listing=files.listing,
            appeared=files.came,
            gone=files.went,
            open_files=files.editor.open_files,
            current_file=files.editor.current_file,
            selected=files.editor.selected,
            problems=[f"{each.path}:{each.line}: {each.text}" for each in files.editor.problems],
        )
        self._looked = facts
        return environment_details(facts, None if spoken else self._facts)

    def told(self) -> None:
        """The last look is on its way to the model."""
        self._facts, self._forgotten = self._looked or self._facts, False
        self._told, self._news, self._came, self._went = True, {}, (), ()

    async def _terminals(self) -> tuple[TerminalFacts, ...]:
        registry, most = self._state.context.registry, self._state.context.settings.tools.news_characters
        news = facts_of(registry, self._state.context.task, most=most)
        if not registry.gone and not any(each.unread or each.busy for each in registry.listing()):
            return self._merged(await news)  # nothing is read: it waits for nothing, and nothing can get lost
        reading = asyncio.ensure_future(news)
        try:
            found = await asyncio.shield(reading)
        except asyncio.CancelledError:  # what is being read counts as read: it must not get lost
            await asyncio.wait([reading])
            self._merged(reading.result())
            raise
        return self._merged(found)

    def _merged(self, found: Iterable[TerminalFacts]) -> tuple[TerminalFacts, ...]:
        """These, with what was not reported yet about each."""
        facts = {each.id: _joined(self._news.pop(each.id, None), each) for each in found}
        facts |= self._news  # of terminals that are gone by now
        self._news = {name: each for name, each in facts.items() if each.output or each.ending}
        return tuple(facts.values())

    def _glance(self) -> _Files | None:
        """What is new about files, if no file must be read for it; None: that may take a while."""
        seen, editor = self._state.seen, self._state.editor
        if self._state.context.place:
            return None
        if not self._quick or len(seen) > FEW_WATCHED or editor != Editor() or self._looking.locked():
            return None
        began = time.monotonic()
        if any(self._known.get(path) != (_stamp(path, LOCAL), digest) for path, digest in seen.items()):
            return None
        changes = self._tree.glance() if self._tree is not None else Changes()
        self._quick = time.monotonic() - began < QUICK
        if changes is None:
            return None
        self._note(changes)
        return self._found(seen, changed=[], editor=editor)

    # In a thread

    def _look_at_files(self, seen: Mapping[Path, str | None], editor: Editor, *, listed: bool) -> _Files:
        with self._looking:
            began = time.monotonic()
            changes = self._tree.look() if self._tree is not None else Changes()
            tells = listed and not self._told
            files = self._state.context.files.afresh()
            listing = self._tree.listing(MOST_LISTED) if self._tree is not None and tells else None
            if self._there and tells:
                listing = self._list_there(files)
            self._note(changes)
            changed = self._changed(seen, files.system)
            self._quick = time.monotonic() - began < QUICK
            names = FileListing(paths=listing.names, more=listing.truncated) if listing is not None else None
            return self._found(seen, changed=changed, editor=self._without_hidden(editor), listing=names)

    def _note(self, changes: Changes) -> None:
        """Report these, with what was not reported yet."""
        if not changes.came and not changes.went:
            return
        came, went = self._came, self._went
        self._came = (*(each for each in came if each not in changes.went), *changes.came)
        self._went = (*(each for each in went if each not in changes.came), *changes.went)

    def _found(
        self, seen: Mapping[Path, str | None], *, changed: list[str], editor: Editor, listing: FileListing | None = None
    ) -> _Files:
        own = {self._shown(path) for path in seen} if self._came or self._went else ()
        return _Files(
            changed=changed,
            editor=editor,
            listing=listing,
            came=[name for name in self._came if name not in own],
            went=[name for name in self._went if name not in own],
        )

    def _list_there(self, files: Files) -> FileList | None:
        """The files of a workspace at another place."""
        workspace = self._state.context.workspace

        def hidden(path: Path) -> bool:
            return bool(files.look(path, cwd=workspace, workspace=workspace).ignored)

        try:
            return list_folder(workspace, recursive=True, most=MOST_LISTED, hidden=hidden, system=files.system)
        except TarmacError:
            return None

    def _changed(self, seen: Mapping[Path, str | None], system: FileSystem) -> list[str]:
        """Files the task knows that somebody else has changed since."""
        changed: list[str] = []
        watched = list(seen.items())[-MOST_WATCHED:]
        try:
            system.know([str(path) for path, _ in watched])
        except PlaceFailed:  # its terminals tell that the connection is lost
            return changed
        for path, digest in watched:
            stamp = _stamp(path, system)
            if self._known.get(path) == (stamp, digest):
                continue  # the very file whose digest is known
            try:
                now = digest_of(path, system)
            except OSError:
                now = "unreadable"
            if now == digest:
                self._known[path] = (stamp, digest)
            else:
                changed.append(self._shown(path))
        return changed

    def _without_hidden(self, editor: Editor) -> Editor:
        """Leave out hidden files: a person may look at what the model may not see."""
        if editor == Editor():
            return editor

        def shown(path: str) -> bool:
            return bool(path) and not self._hidden(self._state.context.workspace / path)

        return Editor(
            open_files=tuple(each for each in editor.open_files[: MOST_NAMES + 1] if shown(each)),
            current_file=editor.current_file if shown(editor.current_file) else "",
            selected=editor.selected if shown(editor.current_file) else None,
            problems=tuple(each for each in editor.problems[: MOST_NAMES + 1] if shown(each.path)),
        )

    def _hidden(self, path: Path) -> bool:
        workspace = self._state.context.workspace
        return bool(self._state.context.files.look(path, cwd=workspace, workspace=workspace).ignored)

    def _shown(self, path: Path) -> str:
        workspace = self._state.context.workspace
        return str(path.relative_to(workspace)) if path.is_relative_to(workspace) else str(path)


def _joined(before: TerminalFacts | None, now: TerminalFacts) -> TerminalFacts:
    if before is None:
        return now
    ending = "; ".join(filter(None, (before.ending, now.ending)))
    return replace(now, output=before.output + now.output, ending=ending)


def _stamp(path: Path, system: FileSystem) -> _Stamp | None:
    try:
        found = system.stat(str(path))
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
