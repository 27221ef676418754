"""A task told as it happens: each fact and signal becomes the text that is printed for it.

tell(fact or signal) → text to append (often none) · `status` → one line for what is under way, drawn anew each time

Text only ever grows, so the same words make sense in a pipe, in a file and on a screen. Only SGR escapes of our own are
in it. The surprise: what streams is printed when it comes, so the fact that repeats it at the end prints nothing.
"""

import math
import time
from collections.abc import Iterator

from tarmac.models.messages import Reasoning, Text
from tarmac.show.blocks import Blocks, MarkdownStream
from tarmac.show.look import Look, bounded, cut, harmless, one_line, width, wrapped
from tarmac.show.question import question_lines
from tarmac.show.summary import size, spent, status, tool_line, when
from tarmac.show.tool_call_lines import ToolCalls, elapsed
from tarmac.tasks import events as e
from tarmac.tasks import signals as s
from tarmac.tasks.log.reader import Reading
from tarmac.tasks.views.metadata import Metadata, metadata

RED, MAGENTA, CYAN, FAINT = "31", "35", "36", "2"


def note_on(event: e.TaskEvent, *, past: bool) -> tuple[str, str] | None:
    """A colour and a text, not yet harmless; None: nothing is said of it. `past`: read in a log, not seen."""
    match event:
        case e.TaskUnpaused():
            return FAINT, "goes on"
        case e.ModelTold(about="mistake", text=text):
            text = text.removeprefix("[ERROR] ")
            said = text if past else text.partition(". ")[0].rstrip(".")  # the rest is advice for the model
            return MAGENTA, f"! the model is told: {said}"
        case e.RequestFailed(what=what, status=status, hint=hint, retry_in=wait):
            code = f" ({status})" if status and str(status) not in what else ""
            advice = f"\n  hint: {hint}" if hint else ""
            then = advice if wait is None else f"; again in {math.ceil(wait)} s"
            return RED, f"! the model did not answer: {what}{code}{then}"
        case e.Noted(what=what, text=text):
            return RED if what == "error" else MAGENTA, f"! {text}"
        case e.ModeSwitched(mode=mode, why=why):
            return CYAN, f"→ mode {mode}{f': {why}' if why else ''}"
        case e.ModelSwitched(model=model):
            return CYAN, f"→ model {model}"
        case e.HistoryCondensed(how=how, tokens_before=before, tokens_after=after):
            sizes = f": {before:,} tokens became {after:,}" if before and after else ""
            what = "summarised" if how == "summarised" else "shortened: older messages are left out"
            return FAINT, f"the conversation was {what}{sizes}"
        case e.OutputsFolded(outputs=outputs, tokens_before=before, tokens_after=after):
            sizes = f": {before:,} tokens became {after:,}" if before and after else ""
            return FAINT, f"{len(outputs)} old tool output{'' if len(outputs) == 1 else 's'} folded{sizes}"
        case e.HistoryRewound(to=to):
            return MAGENTA, f"– Rewound the conversation: the model no longer sees what came after step {to}"
        case e.CheckpointCreated(checkpoint=checkpoint) if past:
            return FAINT, f"checkpoint {checkpoint}"
        case e.CheckpointRestored(paths=paths, to=to):
            return MAGENTA, f"– Restored {len(paths)} file{'' if len(paths) == 1 else 's'}, as before step {to}"
        case e.SubtaskStarted(child=child, text=text):
            return CYAN, f"→ subtask {child}: {text}"
        case e.SubtaskFinished(child=child, outcome=outcome, result=result):
            return CYAN, f"← subtask {child} {outcome}: {result}"
        case e.AgentHosted(name=name) if past:
            return FAINT, f"the agent: {name}"
        case e.TaskImported(source=source, name=name):
            return FAINT, f"from {source}: {name}"
        case e.RecordLost(seq=seq, why=why):
            return RED, f"! record {seq} of this task is lost: {why}"
        case e.UnknownEvent(kind=kind):
            return FAINT, f"({kind}: a newer Tarmac knows what this is)"
    return None


TODOS = {"open": "☐", "doing": "▸", "done": "☑"}


class TaskRenderer:
    """One task, for one stream."""

    def __init__(self, look: Look, *, past: bool = False, meta: Metadata | None = None) -> None:
        self.meta = meta or Metadata()
        self._counts = meta is None  # else somebody keeps it up to date
        self._past = past  # read from a log, not seen: nothing streams, answers are told
        self._lines = Blocks(look)
        self._calls = ToolCalls(self._lines, past=past)
        self._streamed: set[str] = set()  # requests whose words were told as they came
        self._quiet: set[str] = set()  # questions that need no answer
        self._doing = ""  # what the model does
        self._since = 0.0
        self._said_last = ""  # what the model said last
        self._answer: MarkdownStream | None = None  # the one that streams, on a screen

    @property
    def look(self) -> Look:
        return self._lines.look

    @look.setter
    def look(self, look: Look) -> None:
        self._lines.look = look

    @property
    def can_leave(self) -> bool:
        """Whether a command runs that can be sent to the background."""
        return self._calls.can_leave

    def live(self, columns: int) -> list[str]:
        """What is under way, as lines that are drawn again: the answer that streams, commands that run."""
        lines = self._answer.partial if self._answer else []
        lines = [*lines, *self._calls.live(columns)]
        if not lines and self._doing:
            took = elapsed(self._since)
            lines = [cut(f"• {self._doing}", columns - 1 - width(took)) + took]
        return lines

    # Signals

    def signal(self, signal: s.Signal) -> str:
        """Something fleeting."""
        match signal:
            case s.TextStreamed(request=request, text=text):
                self._doing = ""
                self._streamed.add(request)
                return self._stream(text)
            case s.ReasoningStreamed(text=text):
                self._doing = f"thinking: {one_line(text[-200:])}" if text.strip() else "thinking"
            case s.CallStreamed(name=name, arguments=arguments):
                self._doing = f"{one_line(name)} … {size(len(arguments))}"
            case s.OutputStreamed(call=call, data=data):
                return self._calls.output(call, data)
            case s.ProgressMade(call=call, text=text):
                if not self._calls.progress(call, text):
                    self._doing, self._since = one_line(text), time.monotonic()
            case s.RetryCounted(seconds=left):
                self._doing, self._since = f"again in {math.ceil(left)} s", time.monotonic()
        return ""

    def _stream(self, text: str) -> str:
        """The next piece of an answer: as it comes in a pipe, as whole blocks of Markdown on a screen."""
        if not self.look.live:
            return self._lines.stream(text)
        if self._answer is None:
            self._answer = MarkdownStream(self.look)
        self._answer.look = self.look  # the screen may have another size by now
        return self._lines.block("text", self._answer.feed(text))

    def _end_stream(self) -> str:
        if self._answer is None:
            return self._lines.end_stream()
        answer, self._answer = self._answer, None
        return self._lines.block("text", answer.finish())

    # Facts

    def event(self, event: e.TaskEvent) -> str:
        """The next fact of the log."""
        if self._counts:
            self.meta.add(event)
        if self._answer is not None and isinstance(event, e.ToolStarted | e.ToolFinished | e.QuestionAsked):
            return self._end_stream() + self._told(event)  # a hosted agent acts in the middle of what it says
        return self._told(event)

    def _told(self, event: e.TaskEvent) -> str:
        match event:
            case e.ModelSaid():
                return self._said(event)
            case e.ToolStarted():
                self._doing = ""
                return self._calls.started(event)
            case e.ToolFinished():
                return self._calls.finished(event)
            case e.UserSaid(text=text, images=images):
                return self._user(text, len(images))
            case e.MessageQueued(text=text, images=images):
                return self._user(text, len(images), "(queued) ")
            case e.QuestionAsked(ask=ask, question=question) if ask in e.QUIET:
                self._quiet.add(question)  # it is said by what the task is: done, opened again, or at work
                self._calls.offered(event)
            case e.QuestionAnswered(question=question) if question in self._quiet:
                self._calls.offered(event)
            case e.QuestionAsked():
                self._doing = ""
                self._calls.asked(event)
                lines = question_lines(event, self.look)
                return self._lines.block("question", "".join(f"{line}\n" for line in lines), apart=True)
            case e.QuestionAnswered():
                return self._answered(event)
            case e.RequestStarted(model=model):
                self._doing, self._since = f"asking {one_line(model)}", time.monotonic()
            case e.RequestFailed() | e.HistoryCondensed():
                self._doing = ""
            case e.TodosUpdated(todos=todos):
                lines = (f"  {TODOS[todo.status]} {self._todo(todo)}\n" for todo in todos)
                return self._lines.block("todos", "".join(lines) or "  the todo list is empty\n")
        return self._other(event)

    def typed(self, event: e.TaskEvent | None = None) -> str:
        """Words of the person that are on the screen already, as they typed them."""
        if self._counts and event is not None:
            self.meta.add(event)
        images = len(event.images) if isinstance(event, e.UserSaid) else 0
        return self._lines.typed() + (self.look.paint("1;34", f"  {_images(images)}") + "\n" if images else "")

    def _other(self, event: e.TaskEvent) -> str:
        note, block = self._lines.note, self._lines.block
        match event:
            case e.TaskCompleted(result=result):
                text = f"{self.look.paint('1;32', '✓ Done')}\n"
                if result.strip() and result.strip() != self._said_last:  # an answer in plain text stands right above
                    text += self._lines.whole(result)
                return block("end", text + self._cost())
            case e.TaskAborted(why=why):
                return block("end", note("31", f"✗ Ended: {why or 'before it was done'}") + self._cost())
            case e.TaskPaused(why=why):
                return block("end", note("35", f"– Paused{f': {why}' if why else ''}") + self._cost())
        found = note_on(event, past=self._past)
        return block("note", note(*found)) if found else ""

    def _said(self, event: e.ModelSaid) -> str:
        self._doing = ""
        self._said_last = "".join(part.text for part in event.parts if isinstance(part, Text)).strip()
        if event.request in self._streamed:
            return self._end_stream()
        printed = ""
        for part in event.parts:
            match part:
                case Text(text=text) if text.strip():
                    printed += self._lines.block("text", self._lines.whole(text), apart=True)
                case Reasoning(text=text) if text.strip() and self._past:
                    lines = bounded(harmless(text.strip()).split("\n"), 6)
                    thought = "".join(self.look.paint("2", f"  {line}") + "\n" for line in lines)
                    printed += self._lines.block("thinking", thought)
        return printed

    def _user(self, text: str, images: int, before: str = "") -> str:
        first, *rest = harmless(text.strip()).split("\n")
        lines = [f"❯ {before}{first}", *(f"  {line}" for line in rest)]
        if images:
            lines.append(f"  {_images(images)}")
        return self._lines.block("user", "".join(self.look.paint("1;34", line) + "\n" for line in lines))

    def _answered(self, event: e.QuestionAnswered) -> str:
        if not self._past and not event.by.startswith("auto") and self.look.live:
            return ""  # they have just typed it
        said = {
            "yes": "allowed",
            "no": "denied",
            "skip": "nobody answered",
            "message": "answered",
            "object": "chosen",
            "done": "done by the person",
        }
        text = f"  → {said[event.answer]}{f' by {whose}' if (whose := event.by.partition('auto: ')[2]) else ''}"
        if event.always:
            text += f", always ({event.always})"
        if event.edited is not None:
            text += f", as: {event.edited}"
        if event.text.strip():
            text += f": {event.text}"
        if event.images:
            text += f" {_images(len(event.images))}"
        return self._lines.block("question", self._lines.note("2", text))

    # Blocks

    def _todo(self, todo: e.Todo) -> str:
        text = cut(one_line(todo.text), self.look.columns - 6)
        return (
            self.look.paint({"done": "2", "doing": "1"}.get(todo.status, ""), text) if todo.status != "open" else text
        )

    def _cost(self) -> str:
        return self._lines.note("2", f"  {spent(self.meta)}") if self.meta.requests else ""


def _images(count: int) -> str:
    return f"({count} image{'s' * (count > 1)})"


def transcript(task: str, reading: Reading, look: Look, *, at_work: bool) -> Iterator[str]:
    """The task's facts, damage in its log, and everything that happened, piece by piece."""
    meta = metadata(reading.events)
    yield look.paint("1", f"Task {one_line(task)}") + (f" (#{meta.number})\n" if meta.number else "\n")
    facts = [
        status(meta, at_work=at_work),
        f"mode {meta.mode}",
        meta.model,
        f"last at {when(meta.at)}",
        f"log {size(reading.size)}",
    ]
    yield from (
        f"  {line}\n" for line in wrapped(one_line(" · ".join(each for each in facts if each)), look.columns - 3)
    )
    if meta.workspace:
        yield f"  {one_line(str(meta.workspace))}\n"
    if meta.requests:
        yield f"  {spent(meta)}\n"
    if meta.tools:
        yield from (f"  {line}\n" for line in wrapped(f"calls: {tool_line(meta)}", look.columns - 3))
    for damage in reading.damage:
        lost = (
            f"{damage.lost} records from {damage.first} on are"
            if damage.lost
            else f"junk before record {damage.first} is"
        )
        yield look.paint("31", f"  ! {lost} damaged: {one_line(damage.why)}") + "\n"
    if reading.torn:
        yield look.paint("35", "  ! its last write was cut off; `tarmac doctor --repair` cleans up") + "\n"
    yield "\n"
    renderer = TaskRenderer(look, past=True)
    for event in reading.events:
        if told := renderer.event(event):
            yield told
    if meta.questions:
        yield look.paint("35", "\nIt waits for an answer") + f": tarmac resume {one_line(task)}\n"
