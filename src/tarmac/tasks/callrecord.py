"""What is recorded of a call: that it begins, durable before it acts; and its result, whatever happened to it.

ToolStarted → … → FileSeen …, ToolFinished: the same for a call that acted, failed, was denied or was not made
"""

import json
import time

from tarmac.errors import StateUnavailable
from tarmac.models.messages import Part, Text, ToolUse
from tarmac.tasks.desk import Desk, now
from tarmac.tasks.events import CallId, FileIntent, FileSeen, Outcome, ToolFinished, ToolStarted
from tarmac.tasks.questions import Questions
from tarmac.tasks.recovery import Unfinished
from tarmac.tasks.repetition import Repetition, fingerprint
from tarmac.tools.execute_command import short
from tarmac.tools.tool import Done, Go, Ready, Tool


class CallRecord:
    """The calls of one task, in its log and on its desk."""

    def __init__(self, desk: Desk, questions: Questions, repetition: Repetition) -> None:
        self._desk = desk
        self._questions = questions
        self._repetition = repetition

    async def start(self, use: ToolUse, tool: Tool, ready: Ready, go: Go) -> None:
        """Durable before it acts, unless it changes nothing."""
        command = go.command or ready.command
        started = ToolStarted(
            at=now(),
            call=CallId(use.id),
            name=use.name,
            title=ready.title if go.command is None else f"Running `{go.command}`",
            intents=tuple(FileIntent(path=each.path, before=each.before, after=each.after) for each in ready.intents),
            command=command,
            cwd=ready.cwd,
            terminal=ready.terminal,
        )
        self._desk.under_way[started.call] = Unfinished(seq=0, started=started, output=None)
        if tool.parallel or tool.group == "always":
            self._desk.add(started)
            return
        try:
            await self._desk.log.append(started)
        except StateUnavailable:  # not on the disk, so it was not begun
            del self._desk.under_way[started.call]
            raise

    def done(self, use: ToolUse, ready: Ready, done: Done, remarks: tuple[Part, ...], began: float) -> None:
        """It acted: what it changed, what it found, and what the person said with their yes."""
        for seen in done.seen:
            self._desk.seen[seen.path] = seen.digest
            self._desk.edited |= seen.how == "edited"
            self._desk.add(FileSeen(at=now(), path=seen.path, digest=seen.digest, how=seen.how))
        essence = (Text(done.essence),) if done.essence else done.content  # tags and durations are never the same
        key = fingerprint(essence, exit_code=done.exit_code, outcome=done.outcome)
        self._repetition.finished(*self._desk.toolbox.meant(use.name, use.arguments), key)
        title = ready.done if done.outcome == "done" else ready.title
        result = ToolFinished(
            at=now(),
            call=CallId(use.id),
            name=use.name,
            outcome=done.outcome,
            content=(*done.content, *remarks),
            title=title,
            exit_code=done.exit_code,
            details=done.details,
            seconds=self._seconds(use, began),
        )
        self._end(use, result)

    def fail(self, use: ToolUse, text: str, began: float) -> None:
        """It went wrong."""
        content = (Text(text),)
        self._repetition.finished(
            *self._desk.toolbox.meant(use.name, use.arguments), fingerprint(content, outcome="failed")
        )
        self.finish(use, content, outcome="failed", began=began)

    def finish(
        self,
        use: ToolUse,
        content: tuple[Part, ...],
        *,
        outcome: Outcome,
        began: float | None = None,
        title: str = "",
    ) -> None:
        """It has a result, though it did not act."""
        title = title or _title(use)
        result = ToolFinished(
            at=now(),
            call=CallId(use.id),
            name=use.name,
            outcome=outcome,
            content=content,
            title=title,
            seconds=self._seconds(use, began),
        )
        self._end(use, result)

    def _seconds(self, use: ToolUse, began: float | None) -> float:
        """How long it took, without the time that a person was waited for."""
        waited = self._questions.waited(CallId(use.id))
        return max(0.0, round(time.monotonic() - began - waited, 4)) if began else 0.0

    def _end(self, use: ToolUse, result: ToolFinished) -> None:
        self._desk.under_way.pop(CallId(use.id), None)
        self._desk.add(result)


def _title(use: ToolUse) -> str:
    """Of a call that never got as far as to have one: its tool, and the file or command it is about."""
    try:
        given = json.loads(use.arguments)
    except (ValueError, RecursionError):
        given = {}
    about = [given[key] for key in ("path", "command", "id") if isinstance(given, dict) and given.get(key)]
    return f"{use.name} {short(about[0])}" if about and isinstance(about[0], str) else use.name
