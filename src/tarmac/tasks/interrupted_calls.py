"""Give a result to calls that were cut off by the person, by a limit, or with the process.

Every call of the model gets exactly one result. A call that had started is reported as interrupted, with everything
that is known. For a file, its hash says whether it was written. For a command, there is its output so far.
"""

import asyncio
from collections.abc import Iterable, Set
from functools import partial
from pathlib import Path

from tarmac.file_system import FileSystem
from tarmac.models.messages import Part, Text, ToolUse
from tarmac.paths import shown
from tarmac.tasks.call_recorder import TAIL
from tarmac.tasks.context import now
from tarmac.tasks.events import CallId, FileSeen, Noted, Outcome, TaskEvent, TaskSaved, TaskStarted, ToolFinished
from tarmac.tasks.state import TaskState
from tarmac.tasks.views.recovery import Unfinished, digest_of, fates
from tarmac.terminals import Terminal
from tarmac.terminals.process import survivors
from tarmac.tools.boundary import labelled
from tarmac.vt.text import clean


async def settle(
    state: TaskState, *, why: str, skip: bool, again: Set[CallId] = frozenset(), kept: Set[CallId] = frozenset()
) -> None:
    """Give every open call its result; `skip`: also those that were never started.

    Those of `again` have only asked a question: they count as never started. Those of `kept` are made again anyway.
    """
    for use, under_way in state.history.open_calls:
        found = state.under_way.get(CallId(use.id))
        if CallId(use.id) in again:
            found, under_way = None, False
        if found is not None:
            await _interrupted(state, use, found, why)
        elif under_way:
            told = f"[interrupted: {why} while this call was under way; whether it took effect is not known]"
            _finish(state, use, (Text(told),), outcome="interrupted", title=f"{use.name}: interrupted")
        elif skip and CallId(use.id) not in kept:
            told = f"[not run: {why} before this call was started]"
            _finish(state, use, (Text(told),), outcome="skipped", title=f"Did not run {use.name}")


def killed_host(past: Iterable[TaskEvent]) -> int | None:
    """The process that ran the task last, if it did not leave in order."""
    pid: int | None = None
    for event in past:
        match event:
            case TaskStarted(pid=started):
                pid = started
            case TaskSaved():
                pid = None
    return pid


async def end_survivors(state: TaskState, host: int | None) -> str:
    """End what the killed process `host` left running, and tell the person; a sentence for the model."""
    if host is None:
        return ""
    found = await survivors.end_survivors(host, state.context.registry.settings)
    if not found:
        return ""
    named = ", ".join(f"`{each.command}` (process {each.pid})" for each in found)
    stays = ", ".join(str(each.pid) for each in found if not each.ended)
    but = f"; these could not be ended: {stays}" if stays else ""
    text = f"the killed run had left processes running. Ended now: {named}{but}"
    state.add(Noted(at=now(), what="notice", text=text))
    return f" [Processes that were still running have been ended now: {named}{but}.]"


async def take_over(state: TaskState) -> str:
    """Go on with the terminals that the task had in another process, and tell the person; sentences for the model."""
    found = await state.context.registry.take_over(state.context.task)
    if not found:
        return ""
    told = "; ".join(_what_became(each) for each in found)
    state.add(Noted(at=now(), what="notice", text=f"terminals of before go on: {told}"))
    return f" [Your terminals of before are still there: {told}. Their output can be read with read_terminal.]"


def _what_became(terminal: Terminal) -> str:
    where = f"{terminal.id} in {shown(terminal.cwd)}"
    last = terminal.executions[-1] if terminal.executions else None
    if last is None:
        return where
    if last.ending is None:
        return f"{where}, where `{last.command}` still runs"
    if last.ending.exit_code is None:
        return f"{where}, where `{last.command}` ended: {last.ending.reason}"
    return f"{where}, where `{last.command}` ended with exit code {last.ending.exit_code}"


async def _interrupted(state: TaskState, use: ToolUse, found: Unfinished, why: str) -> None:
    text, seen = await asyncio.to_thread(_known, found, why, state.context.files.system.afresh())
    if answer := state.answered.pop(found.started.call, ""):
        text = f"[interrupted: {why} after the person had answered]\n<user_message>\n{answer}\n</user_message>"
    _finish(state, use, (Text(text),), outcome="interrupted", title=f"{found.started.title}: interrupted")
    for path, digest in seen:
        state.add(FileSeen(at=now(), path=path, digest=digest, how="edited"))


def _finish(state: TaskState, use: ToolUse, content: tuple[Part, ...], *, outcome: Outcome, title: str) -> None:
    state.add(ToolFinished(at=now(), call=CallId(use.id), name=use.name, outcome=outcome, content=content, title=title))


def _known(found: Unfinished, why: str, system: FileSystem) -> tuple[str, list[tuple[Path, str | None]]]:
    """In a thread: what can be said of it, and the versions of files that are known now."""
    started = found.started
    lines = [f"[interrupted: {why} while this call was under way]"]
    seen: list[tuple[Path, str | None]] = []
    for intent, fate in fates(started, partial(_digest, system=system)):
        match fate:
            case "happened":
                lines.append(f"{intent.path}: it was changed as intended.")
                seen.append((intent.path, intent.after))
            case "did not happen":
                lines.append(f"{intent.path}: it was not changed.")
            case _:
                lines.append(f"{intent.path}: it is neither as before nor as intended. Read it before you go on.")
    if started.command is not None:
        lines.append(f"`{started.command}` had been started in {started.cwd} and did not come to its end here.")
        lines.append(_output(found))
    elif not started.intents:
        lines.append("Whether it took effect is not known.")
    return "\n".join(lines), seen


def _digest(path: Path, system: FileSystem) -> str | None:
    try:
        return digest_of(path, system)
    except OSError:
        return "unreadable"


def _output(found: Unfinished) -> str:
    """What a command had printed, as far as it reached the disk, or us."""
    try:
        data = found.output.spool.read_bytes() if found.output else found.tail
    except OSError:
        data = found.tail
    if not data:
        return "Nothing is known of its output."
    text = clean(data[-TAIL:]).rstrip()
    cut = f", the last {TAIL:,} bytes of {len(data):,}" if len(data) > TAIL else ""
    return labelled(text, what=f"Its output until then{cut}")
