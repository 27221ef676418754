"""Subtasks: a call of `new_task` is a task of its own, with a log, a number, a mode and a share of the budget.

new_task ─SubtaskStarted→ child task, run to its result ─SubtaskFinished→ the call's result

Both are logs. After a crash the parent's open call is made again, and takes up the child that it had started. A child's
questions are asked in the parent's name, so that every front end shows them. Children that run at once and may write
get a git worktree each, which is their workspace for the policy too. What they changed is merged back, file by file.
Without a repository they work one after the other.
"""

import asyncio
import os
import secrets
import stat
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal, Protocol

from tarmac.errors import BadRequest, ToolDenied, ToolFailed
from tarmac.events import TaskId
from tarmac.policy.approval import Answer, AnswerKind, Authority
from tarmac.tasks.context import Ended, find_mode, judged, now
from tarmac.tasks.events import (
    QUIET,
    RESTING,
    CallId,
    Noted,
    QuestionAnswered,
    QuestionAsked,
    QuestionId,
    SubtaskFinished,
    SubtaskStarted,
    TaskEvent,
    TaskPaused,
    TaskUnpaused,
    ToolStarted,
)
from tarmac.tasks.git_process import environment
from tarmac.tasks.limits import Limits, Used
from tarmac.tasks.questions import STOPPED, Questions
from tarmac.tasks.signals import Listener, ProgressMade, Signal
from tarmac.tasks.state import TaskState
from tarmac.tasks.views.metadata import Metadata

MOST_AT_ONCE: Final = 4
DEEPEST: Final = 3
LONGEST_DIFF: Final = 4_000  # characters of a conflict that the model is told
LONGEST_NAME: Final = 60  # of a subtask, in its questions
PAUSED: Final = "paused"  # what a child waits for, beside its questions
GITLINK: Final = "160000"
GIT_TIMEOUT: Final = 60.0  # seconds


class OpenSubtask(Protocol):
    """An open task, as its parent needs it."""

    @property
    def id(self) -> TaskId: ...
    @property
    def metadata(self) -> Metadata: ...
    @property
    def result(self) -> str | None: ...
    @property
    def questions(self) -> tuple[QuestionAsked, ...]: ...
    @property
    def own_questions(self) -> tuple[QuestionAsked, ...]: ...
    def subscribe(self, listener: Listener) -> Callable[[], None]: ...
    async def answer(self, question: QuestionId, answer: Answer) -> None: ...
    def hold(self, question: QuestionId) -> None: ...
    async def to_background(self, by: str = "") -> bool: ...
    async def pause(self, why: str = "") -> None: ...
    async def unpause(self) -> None: ...
    async def run_until_idle(self) -> Ended: ...


OpenChild = Callable[[TaskState, SubtaskStarted, Limits], AbstractAsyncContextManager[OpenSubtask]]


def share(limits: Limits, used: Used, parts: int) -> Limits:
    """PURE: a child's limits: its share of what the parent has left."""

    def left(most: float | None, spent: float) -> float | None:
        return None if most is None else max(0.0, most - spent) / max(1, parts)

    requests, turns = left(limits.max_requests, used.requests), left(limits.max_turns, used.turns)
    return replace(
        limits,
        max_cost=left(limits.max_cost, used.cost),
        max_requests=None if requests is None else int(requests),
        max_turns=None if turns is None else int(turns),
        max_seconds=None,  # the parent's clock runs on
    )


class Subtasks:
    """The subtasks of one task."""

    def __init__(
        self, state: TaskState, questions: Questions, past: Iterable[TaskEvent], open_child: OpenChild
    ) -> None:
        self._state = state
        self._questions = questions
        self._open_child = open_child
        self._open: dict[TaskId, OpenSubtask] = {}
        self._left = unfinished(past)
        self._slots = asyncio.Semaphore(MOST_AT_ONCE)
        self._writing = asyncio.Lock()  # one child at a time writes to the workspace itself
        self._starting = asyncio.Lock()  # git makes one worktree at a time
        self._paused = False
        self._at_once = 1  # calls of this answer that are still to start

    @property
    def unfinished(self) -> set[CallId]:
        """Calls whose child was started and has not finished."""
        return set(self._left)

    def expect(self, count: int) -> None:
        """Expect this many calls of one answer, which may run at once."""
        self._at_once = count

    # Questions of children

    @property
    def questions(self) -> tuple[QuestionAsked, ...]:
        """The questions of all children, in the parent's name."""
        return tuple(
            _named(child, each) if each in child.own_questions else each
            for child in self._open.values()
            for each in child.questions
            if each.ask not in RESTING
        )

    def asking(self, question: QuestionId) -> OpenSubtask | None:
        """The child that asks it."""
        return next(
            (child for child in self._open.values() if question in {each.question for each in child.questions}), None
        )

    async def to_background(self, by: str) -> bool:
        """Let the children go on without the commands that they wait for; False: they wait for none."""
        return any([await child.to_background(by) for child in list(self._open.values())])

    async def pause(self) -> None:
        """Pause the children before their next steps, also those that are still to start."""
        self._paused = True
        for child in list(self._open.values()):
            await child.pause("its parent is paused")

    async def unpause(self) -> None:
        """Let them go on."""
        self._paused = False
        for child in list(self._open.values()):
            await child.unpause()

    def _heard(self, child: OpenSubtask, call: CallId, waiting: dict[str, ExitStack]) -> Listener:
        """Pass a child's questions on. While it waits for a person, the parent's clock stands still."""

        def hear(seq: int | None, thing: TaskEvent | Signal) -> None:
            match thing:
                case QuestionAsked(question=question, ask=ask) if ask not in RESTING:
                    waiting[question] = ExitStack()
                    if ask not in QUIET:
                        waiting[question].enter_context(self._state.waits())
                    nested = seq is None  # of a child of the child, which has named it
                    self._state.audience.relay(thing if nested else _named(child, thing))
                case QuestionAnswered(question=question):
                    if stack := waiting.pop(question, None):
                        stack.close()
                        self._state.audience.relay(thing)
                case TaskPaused() if PAUSED not in waiting:
                    waiting[PAUSED] = ExitStack()
                    waiting[PAUSED].enter_context(self._state.waits())
                case TaskUnpaused():
                    if stack := waiting.pop(PAUSED, None):
                        stack.close()
                case ToolStarted(title=title):
                    self._state.audience.show(ProgressMade(call=call, text=f"subtask {child.id}: {title}"))

        return hear

    # One call

    async def run(self, call: CallId, mode: str, message: str) -> str:
        """Let a child do it, and return its result. ToolFailed and ToolDenied say why there is none."""
        siblings = self._at_once
        started = self._left.get(call)
        if started is None:
            started = await self._started(call, mode, message, isolated=siblings > 1)
        limits = share(self._state.context.settings.limits, self._state.used, siblings)
        if limits.max_cost == 0 or limits.max_requests == 0 or limits.max_turns == 0:
            raise ToolFailed("Nothing is left of the budget for a subtask.")
        async with self._slots:
            if started.workspace is None and siblings > 1 and self._writes(started.mode):
                async with self._writing:
                    return await self._to_its_end(call, started, limits)
            return await self._to_its_end(call, started, limits)

    async def _started(self, call: CallId, mode: str, message: str, *, isolated: bool) -> SubtaskStarted:
        state = self._state
        if state.depth + 1 > DEEPEST:
            raise ToolFailed(f"Subtasks are nested at most {DEEPEST} deep. Do this part yourself.")
        try:
            wanted = find_mode(state.context.modes, mode or state.mode.slug)
        except BadRequest as error:
            raise ToolFailed(f"Invalid mode: {mode}. {error.hint}") from None
        await self._approved(call, wanted.name, message)
        child = TaskId(secrets.token_hex(5))
        async with self._starting:
            alone = isolated and self._writes(wanted.slug) and not state.context.place
            tree = await make_worktree(state.context.workspace, child) if alone else None
        started = SubtaskStarted(
            at=now(),
            child=child,
            text=message,
            mode=wanted.slug,
            call=call,
            workspace=tree.workspace if tree else None,
            base=tree.base if tree else "",
        )
        await state.append(started)
        self._left[call] = started
        return started

    def _writes(self, mode: str) -> bool:
        found = self._state.context.modes.get(mode)
        return found is None or any(found.allows("", group) is None for group in ("edit", "command"))

    async def _approved(self, call: CallId, mode: str, message: str) -> None:
        state = self._state
        if state.context.settings.approved.subtasks:
            state.add(judged(call, "allow", "subtasks are approved", part=mode, by=Authority.LEVEL))
            return
        if not state.attended:
            state.add(judged(call, "deny", "subtasks are asked about", part=mode, by=Authority.NOBODY))
            raise ToolDenied("Nobody is here to approve a subtask. Do it yourself.")
        state.add(judged(call, "ask", "subtasks are asked about", part=mode, by=Authority.POLICY))
        asked = f"Start a subtask in {mode} mode: {message}"
        answered = await self._questions.ask("tool", asked, call=call, timeout=state.context.settings.approval_timeout)
        if answered.answer is not AnswerKind.YES:
            said = f" They say: {answered.text}" if answered.text else ""
            raise ToolDenied(f"The person did not approve the subtask.{said}")

    async def _to_its_end(self, call: CallId, started: SubtaskStarted, limits: Limits) -> str:
        state, meta = self._state, None
        try:
            async with self._opened(started, call, limits) as child:
                meta, result = child.metadata, child.result
                if result is None:
                    ended = await child.run_until_idle()
                    completed = ended.why == "completed" or (ended.why == "idle" and bool(ended.text))
                    result = ended.text if completed else None
                else:
                    ended, completed = Ended("completed", result), True
        except asyncio.CancelledError:
            if not self._questions.leaving:
                self._left.pop(call, None)
                state.add(_finished(started, "aborted", "it was stopped", meta))
                if started.workspace:
                    await asyncio.shield(remove_worktree(state.context.workspace, started.workspace))
            raise
        told = await self._merged(started) if started.workspace else ""
        failure = f"ended without a result: {ended.told or ended.why}"
        text = result if result is not None else f"It {failure}"
        await state.append(_finished(started, "completed" if completed else "aborted", text, meta))
        self._left.pop(call, None)
        if not completed:
            raise ToolFailed(f"Subtask {started.child} {failure}{told}")
        return f"Subtask {started.child} completed:\n\n{text}{told}"

    @asynccontextmanager
    async def _opened(self, started: SubtaskStarted, call: CallId, limits: Limits) -> AsyncIterator[OpenSubtask]:
        async with self._open_child(self._state, started, limits) as child:
            waiting: dict[str, ExitStack] = {}
            leave = child.subscribe(self._heard(child, call, waiting))
            self._open[child.id] = child
            try:
                if self._paused:
                    await child.pause("its parent is paused")
                yield child
            finally:
                leave()
                self._open.pop(child.id, None)
                for question, stack in waiting.items():
                    stack.close()
                    if question != PAUSED:  # front ends still show it
                        gone = QuestionAnswered(
                            at=now(), question=QuestionId(question), answer=STOPPED.kind, by=STOPPED.by
                        )
                        self._state.audience.relay(gone)

    async def _merged(self, started: SubtaskStarted) -> str:
        assert started.workspace is not None
        workspace = self._state.context.workspace
        async with self._writing:
            merge = await plan_merge(workspace, started.workspace, started.base)
            if merge.writes:
                why, paths = f"Merging what subtask {started.child} changed", [each.place for each in merge.writes]
                await self._state.checkpoints.change(why, paths, lambda: write_all(merge.writes))
            if not merge.failed:
                await remove_worktree(workspace, started.workspace)
        names = ", ".join(merge.merged) or "nothing"
        lines = [f"\n\nIt worked in a worktree of its own. Merged into the workspace: {names}."]
        if merge.conflicts:
            lines.append(
                "These files were changed here meanwhile, and are left as they are. Merge its changes yourself:"
            )
            lines += merge.conflicts
            left = "Files are left as they are here, because they were changed meanwhile: " + ", ".join(merge.left)
            why = left if merge.left else merge.conflicts[0]
            self._state.add(Noted(at=now(), what="notice", text=f"Subtask {started.child}: {why}"))
        return "\n".join(lines)


def _finished(
    started: SubtaskStarted, outcome: Literal["completed", "aborted"], result: str, meta: Metadata | None
) -> SubtaskFinished:
    """`meta`: what it used; None: it had not been opened."""
    meta = meta or Metadata()
    return SubtaskFinished(
        at=now(),
        child=started.child,
        outcome=outcome,
        result=result,
        usage=meta.usage,
        cost=meta.whole_cost,
        requests=meta.requests + meta.failed + meta.requests_below,
    )


def _named(child: OpenSubtask, asked: QuestionAsked) -> QuestionAsked:
    """A child's question, in the parent's list."""
    name = child.metadata.name
    name = name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
    return replace(asked, text=f'Subtask "{name}": {asked.text}')


def unfinished(past: Iterable[TaskEvent]) -> dict[CallId, SubtaskStarted]:
    """PURE: the children that had not finished when the log ended, by their calls."""
    found: dict[CallId, SubtaskStarted] = {}
    for event in past:
        match event:
            case SubtaskStarted(call=call) if call:
                found[call] = event
            case SubtaskFinished(child=child):
                found = {call: each for call, each in found.items() if each.child != child}
    return found


# Worktrees


@dataclass(frozen=True, slots=True)
class Worktree:
    """A copy of the repository's files; `base` is the tree that it began with, uncommitted changes included."""

    workspace: Path  # in it, what the parent's workspace is in the repository
    base: str


@dataclass(frozen=True, slots=True)
class _MergedFile:
    """A file and its new content; None: remove it."""

    place: Path
    data: bytes | None
    mode: str  # git's


@dataclass(frozen=True, slots=True)
class Merge:
    """What a worktree's changes do to the workspace."""

    merged: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()  # each with the child's change
    left: tuple[str, ...] = ()  # the files of the conflicts
    writes: tuple[_MergedFile, ...] = ()
    failed: bool = False  # not all of it could be brought: the worktree stays


class _GitFailed(Exception):
    """Git could not do it."""


async def _git(cwd: Path, *words: str, index: Path | None = None) -> bytes:
    """Run git without the programs that the repository names."""
    return await _run_git(cwd, *words, index=index, settings=await _no_filters(cwd))


async def _no_filters(cwd: Path) -> dict[str, str]:
    """Settings that switch off the filters of the repository: they are programs, and nobody was asked about them."""
    try:
        found = await _run_git(cwd, "config", "-z", "--name-only", "--get-regexp", r"^filter\.")
    except _GitFailed:  # there are none
        return {}
    names = {each.rpartition(".")[0] for each in os.fsdecode(found).split("\0") if each}
    off = {"clean": "", "smudge": "", "process": "", "required": "false"}
    return {f"{name}.{key}": value for name in names for key, value in off.items()}


async def _run_git(
    cwd: Path, *words: str, index: Path | None = None, settings: Mapping[str, str] = MappingProxyType({})
) -> bytes:
    environ = environment()
    for number, (name, value) in enumerate(settings.items()):
        environ |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    environ |= {"GIT_CONFIG_COUNT": str(len(settings))}
    environ |= {"GIT_INDEX_FILE": str(index)} if index else {}
    process = await asyncio.create_subprocess_exec(
        *("git", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-C", str(cwd), *words),
        env=environ,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(GIT_TIMEOUT):
            output, errors = await process.communicate()
    except BaseException as error:
        if process.returncode is None:
            process.kill()
            await process.wait()
        if isinstance(error, TimeoutError):
            raise _GitFailed("git took too long") from None
        raise
    if process.returncode:
        raise _GitFailed(errors.decode("utf-8", "replace").strip())
    return output


async def _tree(cwd: Path) -> str:
    """The files below the repository's top as a tree, without what is ignored. The user's index is not touched."""
    with tempfile.TemporaryDirectory(prefix="tarmac-index-") as folder:
        index = Path(folder) / "index"
        await _git(cwd, "read-tree", "HEAD", index=index)
        top = Path((await _git(cwd, "rev-parse", "--show-toplevel")).decode().strip())
        await _git(top, "add", "-A", index=index)
        return (await _git(top, "write-tree", index=index)).decode().strip()


def _worktree_folder(name: str) -> Path:
    cache = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(cache) if cache.startswith("/") else Path.home() / ".cache") / "tarmac" / "worktrees" / name


async def make_worktree(workspace: Path, name: str) -> Worktree | None:
    """A worktree with the workspace's files as they are now; None where there is no repository with a commit."""
    folder = _worktree_folder(name)
    try:
        base = await _tree(workspace)
        below = (await _git(workspace, "rev-parse", "--show-prefix")).decode().strip()
        folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        await _git(workspace, "worktree", "add", "--detach", "--no-checkout", str(folder), "HEAD")
        await _git(folder, "read-tree", "--reset", "-u", base)
    except (_GitFailed, OSError):
        return None
    return Worktree((folder / below).resolve(), base)


async def plan_merge(workspace: Path, theirs: Path, base: str) -> Merge:
    """What brings a worktree's changes into the workspace. A file that both changed is merged by lines."""
    try:
        top = Path((await _git(workspace, "rev-parse", "--show-toplevel")).decode().strip())
        after = await _tree(theirs)
        listed = await _git(top, "diff-tree", "-r", "-z", "--no-renames", base, after)
        fields = listed.decode("utf-8", "surrogateescape").split("\0")
        merged, conflicts, left, writes = [], [], [], list[_MergedFile]()
        repositories: list[str] = []
        for about, path in zip(fields[::2], fields[1::2], strict=False):
            was, mode, old, new, _ = about.removeprefix(":").split(" ")
            if GITLINK in (was, mode):
                repositories.append(path)
                continue
            found = await _merge_file(top, path, old=old, new=new, mode=mode)
            if found is not None:
                merged.append(path)
                writes += found
            else:
                diff = (await _git(top, "diff", "--no-ext-diff", "--no-textconv", base, after, "--", path)).decode(
                    "utf-8", "replace"
                )
                cut = "\n[cut]" if len(diff) > LONGEST_DIFF else ""
                whole = "" if set(new) == {"0"} else f" (its whole version: `git show {new}`)"
                conflicts.append(f"{path}{whole}:\n{diff[:LONGEST_DIFF]}{cut}")
                left.append(path)
        conflicts += [f"{each}: a repository of its own, left in {theirs}" for each in repositories]
        left += repositories
        return Merge(tuple(merged), tuple(conflicts), tuple(left), tuple(writes), failed=bool(repositories))
    except (_GitFailed, OSError) as error:
        why = f"nothing could be merged ({error}); its files are in {theirs}"
        return Merge(conflicts=(why,), failed=True)


async def remove_worktree(workspace: Path, theirs: Path) -> None:
    """Remove a worktree with all that is in it. One that git does not know any more is left."""
    try:
        folder = (await _git(theirs, "rev-parse", "--show-toplevel")).decode().strip()
        await _git(workspace, "worktree", "remove", "--force", folder)
    except (_GitFailed, OSError):
        pass


async def remove_left_worktree(task: TaskId, meta: Metadata) -> None:
    """Remove the worktree of a deleted subtask that was cut off. What could not be merged of a completed one stays."""
    folder = _worktree_folder(task)
    if meta.parent and meta.outcome != "completed" and await asyncio.to_thread(folder.exists):
        await remove_worktree(folder, folder)


async def _merge_file(top: Path, path: str, *, old: str, new: str, mode: str) -> list[_MergedFile] | None:
    """The files to write for a change; None: it can't be made here."""
    place = top / path
    if not place.parent.resolve().is_relative_to(top.resolve()):
        return None
    ours = os.readlink(place).encode() if place.is_symlink() else place.read_bytes() if place.is_file() else None
    before = await _blob(top, old)
    after = await _blob(top, new)
    if ours == after:
        same = after is None or mode == "120000" or bool(place.stat().st_mode & 0o100) == (mode == "100755")
        return [] if same else [_MergedFile(place, after, mode)]
    if ours != before:
        if ours is None or before is None or after is None or mode == "120000" or place.is_symlink():
            return None
        after = await _merge_lines(ours, before, after)
        if after is None:
            return None
    return [_MergedFile(place, after, mode)]


async def _blob(top: Path, name: str) -> bytes | None:
    return None if set(name) == {"0"} else await _git(top, "cat-file", "blob", name)


async def _merge_lines(ours: bytes, before: bytes, after: bytes) -> bytes | None:
    """Merge both changes by lines; None when both changed the same lines."""
    with tempfile.TemporaryDirectory(prefix="tarmac-merge-") as folder:
        for name, data in (("ours", ours), ("before", before), ("after", after)):
            (Path(folder) / name).write_bytes(data)
        try:
            return await _git(Path(folder), "merge-file", "-p", "ours", "before", "after")
        except _GitFailed:
            return None


def write_all(files: Iterable[_MergedFile]) -> None:
    """In a thread."""
    for each in files:
        _write(each.place, each.data, each.mode)


def _write(place: Path, data: bytes | None, mode: str) -> None:
    if data is None:
        place.unlink(missing_ok=True)
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    if mode == "120000":
        place.unlink(missing_ok=True)
        place.symlink_to(data.decode("utf-8", "surrogateescape"))
        return
    if place.is_symlink():
        place.unlink()
    place.write_bytes(data)
    bits = stat.S_IMODE(place.stat().st_mode)
    readers = (bits & 0o444) >> 2  # as git does it: who may read may run
    place.chmod(bits | readers if mode == "100755" else bits & ~0o111)
