"""A task told as it happens: each fact and signal becomes the text that is printed for it.

tell(fact or signal) → text to append (often none) · `status` → one line for what is under way, drawn anew each time

Text only ever grows, so the same words make sense in a pipe, in a file and on a screen. Only SGR escapes of our own are
in it. The surprise: what streams is printed when it comes, so the fact that repeats it at the end prints nothing.
"""

from tarmac.models.messages import Reasoning, Text
from tarmac.show import details
from tarmac.show.columns import Wrapping, cut, width
from tarmac.show.diffs import bounded, content_lines, counts, diff_lines
from tarmac.show.flow import Flow
from tarmac.show.harmless import harmless, one_line
from tarmac.show.look import Look
from tarmac.show.notes import note_on
from tarmac.show.question import question_lines
from tarmac.show.summary import seconds, size, spent
from tarmac.tasks import events as e
from tarmac.tasks import signals as s
from tarmac.tasks.history import text_of
from tarmac.tasks.metadata import Metadata

SAID_ELSEWHERE = {"attempt_completion", "ask_followup_question", "update_todo_list", "switch_mode"}
MOST_DIFF = 60  # lines
MOST_TROUBLE = 8
MARKS = {
    "done": ("32", "✓"),
    "failed": ("31", "✗"),
    "denied": ("33", "✗"),
    "skipped": ("33", "–"),
    "interrupted": ("33", "–"),
}
TODOS = {"open": "☐", "doing": "▸", "done": "☑"}


class Teller:
    """One task, for one stream."""

    def __init__(self, look: Look, *, past: bool = False, meta: Metadata | None = None) -> None:
        self.look = look
        self.meta = meta or Metadata()
        self._counts = meta is None  # else somebody keeps it up to date
        self._past = past  # read from a log, not seen: nothing streams, answers are told
        self._open = False  # in the middle of a line
        self._last = ""  # the kind of what was told last
        self._held = ""  # a carriage return that may belong to the next piece
        self._wrapping: Wrapping | None = None  # of the words that stream
        self._streamed: set[str] = set()  # requests whose words were told as they came
        self._flows: dict[str, Flow] = {}
        self._running: dict[str, str] = {}  # calls under way → their titles, where they are not printed yet
        self._asked: set[str] = set()  # calls that a person was asked about
        self._seen: set[str] = set()  # calls whose change was part of the question
        self._doing = ""

    @property
    def status(self) -> str:
        """What is under way, in one line without colour."""
        for flow in reversed(self._flows.values()):
            if flow.status:
                return cut(f"  │ {flow.status}", self.look.columns - 1)
        said = "; ".join(title for call, title in self._running.items() if call not in self._streamed) or self._doing
        return cut(f"• {said}", self.look.columns - 1) if said else ""

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
                flow = self._flows.get(call)
                if flow is None:
                    flow = self._flows[call] = Flow(self.look)
                printed = flow.feed(data)
                return (self._begin_call(call) + self._block("output", printed)) if printed else ""
            case s.ProgressMade(call=call, text=text):
                if call in self._running:
                    self._running[call] = one_line(text)
                else:
                    self._doing = one_line(text)
            case s.RetryCounted(seconds=left):
                self._doing = f"again in {left:.0f} s"
        return ""

    def _stream(self, text: str) -> str:
        text, self._held = self._held + text, ""
        if text.endswith("\r"):
            text, self._held = text[:-1], "\r"
        if self._last != "text":
            text = text.lstrip("\n")
        if not text:
            return ""
        gap = "" if self._open and self._last == "text" else self._gap("text")
        self._open = not text.endswith("\n")
        return gap + self._wrapped(harmless(text))

    def _wrapped(self, text: str, *, whole: bool = False) -> str:
        """Broken between words, where somebody reads along; elsewhere lines are as the model made them."""
        if not self.look.live:
            return text
        if self._wrapping is None:
            self._wrapping = Wrapping(self.look.columns - 1)
        text = self._wrapping.feed(text)
        if whole:
            text, self._wrapping = text + self._wrapping.finish(), None
        return text

    # Facts

    def event(self, event: e.TaskEvent) -> str:
        """The next fact of the log."""
        if self._counts:
            self.meta.add(event)
        match event:
            case e.ModelSaid():
                return self._said(event)
            case e.ToolStarted():
                return self._started(event)
            case e.ToolFinished():
                return self._finished(event)
            case e.UserSaid(text=text, images=images):
                return self._user(text, len(images))
            case e.MessageQueued(text=text, images=images):
                return self._user(text, len(images), "(queued) ")
            case e.QuestionAsked():
                self._doing = ""
                if event.call:
                    self._asked.add(event.call)
                    self._seen |= {event.call for each in details.requests(event.details) if each.get("file")}
                return self._block("question", "".join(f"{line}\n" for line in question_lines(event, self.look)))
            case e.QuestionAnswered():
                return self._answered(event)
            case e.RequestStarted(model=model):
                self._doing = f"asking {one_line(model)}"
            case e.RequestFailed():
                self._doing = ""
            case e.TodosUpdated(todos=todos):
                lines = (f"  {TODOS[todo.status]} {self._todo(todo)}\n" for todo in todos)
                return self._block("todos", "".join(lines) or "  the todo list is empty\n")
        return self._other(event)

    def _other(self, event: e.TaskEvent) -> str:
        match event:
            case e.TaskCompleted(result=result):
                text = f"{self.look.paint('1;32', '✓ Done')}\n"
                if result.strip() and not self._past:
                    text += self._whole(result)
                return self._block("end", text + self._cost())
            case e.TaskAborted(why=why):
                return self._block("end", self._note("31", f"✗ Ended: {why or 'before it was done'}") + self._cost())
            case e.TaskPaused(why=why):
                return self._block("end", self._note("33", f"– Paused{f': {why}' if why else ''}") + self._cost())
        found = note_on(event, past=self._past)
        return self._block("note", self._note(*found)) if found else ""

    def _said(self, event: e.ModelSaid) -> str:
        self._doing = ""
        if event.request in self._streamed:
            self._held = ""
            return self._break()
        printed = ""
        for part in event.parts:
            match part:
                case Text(text=text) if text.strip():
                    printed += self._block("text", self._whole(text), apart=True)
                case Reasoning(text=text) if text.strip() and self._past:
                    lines = bounded(harmless(text.strip()).split("\n"), 6)
                    printed += self._block(
                        "thinking", "".join(self.look.paint("2", f"  {line}") + "\n" for line in lines)
                    )
        return printed

    def _whole(self, text: str) -> str:
        return self._wrapped(f"{harmless(text.strip())}\n", whole=True)

    def _user(self, text: str, images: int, before: str = "") -> str:
        first, *rest = harmless(text.strip()).split("\n")
        lines = [f"❯ {before}{first}", *(f"  {line}" for line in rest)]
        if images:
            lines.append(f"  ({images} image{'s' * (images > 1)})")
        return self._block("user", "".join(self.look.paint("1;34", line) + "\n" for line in lines))

    def _answered(self, event: e.QuestionAnswered) -> str:
        if not self._past and not event.by.startswith("auto") and self.look.live:
            return ""  # they have just typed it
        said = {"yes": "allowed", "no": "denied", "skip": "nobody answered", "message": "answered", "object": "chosen"}
        text = f"  → {said[event.answer]}{f' by {whose}' if (whose := event.by.partition('auto: ')[2]) else ''}"
        if event.always:
            text += f", always ({event.always})"
        if event.edited is not None:
            text += f", as: {event.edited}"
        return self._block("question", self._note("2", text + (f": {event.text}" if event.text.strip() else "")))

    # Tools

    def _started(self, event: e.ToolStarted) -> str:
        self._doing = ""
        if event.name in SAID_ELSEWHERE:
            return ""
        self._running[event.call] = one_line(event.title)
        if event.command is not None or not self.look.live:
            return "" if self._past else self._begin_call(event.call)
        return ""

    def _begin_call(self, call: str) -> str:
        title = self._running.get(call)
        if title is None or call in self._streamed:
            return ""
        self._streamed.add(call)
        return self._block("tool", f"{self.look.paint('36', '•')} {self._fit(title)}\n")

    def _finished(self, event: e.ToolFinished) -> str:
        began = self._running.pop(event.call, "")
        flow = self._flows.pop(event.call, None)
        printed = self._block("output", flow.finish()) if flow else ""
        if event.name in SAID_ELSEWHERE and event.outcome in ("done", "denied"):
            return printed
        colour, mark = MARKS[event.outcome]
        title = one_line(event.title or event.name)
        facts: list[str] = [] if event.outcome == "done" or event.outcome in title.lower() else [event.outcome]
        if event.exit_code is not None:
            facts.append(f"exit code {event.exit_code}")
            colour, mark = ("33", "✗") if event.exit_code and event.outcome == "done" else (colour, mark)
        took = details.duration(event.details) or (0.0 if event.call in self._asked else event.seconds)
        if took >= 0.1:
            facts.append(seconds(took))
        if standing := details.standing(event.details):
            facts += standing
            colour, mark, title = "36", "•", began or title
        changed = details.diffs(event.details)
        if changed and event.outcome == "done":
            facts.append(counts(changed))
        end = self._fit(f" · {', '.join(facts)}" if facts else "")
        said = cut(title, max(self.look.columns - 3 - width(end), 20)) if self.look.live else title
        printed += self._block("tool", f"{self.look.paint(colour, mark)} {self._fit(said + end)}\n")
        if event.outcome == "done" and event.call not in self._seen:
            printed += self._diffs(changed)
        return printed + ("" if flow else self._trouble(event))  # what streamed is on the screen

    def _diffs(self, changed: list[tuple[str, str, bool]]) -> str:
        printed = ""
        for path, diff, new in changed:
            lines = (content_lines if new else diff_lines)(diff, self.look, most=MOST_DIFF)
            if len(changed) > 1:
                lines = [f"  {self.look.paint('1', one_line(path))}", *lines]
            printed += self._block("output", "".join(f"{line}\n" for line in lines))
        return printed

    def _trouble(self, event: e.ToolFinished) -> str:
        """What a person should read of a result: of one that failed, or in a log all there is, the first lines."""
        wanted = event.outcome != "done" or (self._past and event.exit_code is not None)
        text = text_of(event.content).strip() if wanted else ""
        if not text or event.outcome == "denied":
            return ""
        lines = bounded(harmless(text).split("\n"), MOST_TROUBLE)
        room = self.look.columns - 5
        shown = (cut(line, room) if self.look.live and width(line) > room else line for line in lines)
        return self._block("output", "".join(f"  {self.look.paint('2', '│')} {line}\n" for line in shown))

    # Lines

    def _todo(self, todo: e.Todo) -> str:
        text = cut(one_line(todo.text), self.look.columns - 6)
        return (
            self.look.paint({"done": "2", "doing": "1"}.get(todo.status, ""), text) if todo.status != "open" else text
        )

    def _cost(self) -> str:
        return self._note("2", f"  {spent(self.meta)}") if self.meta.requests else ""

    def _note(self, colour: str, text: str) -> str:
        return self.look.paint(colour, harmless(text.rstrip())) + "\n"

    def _fit(self, text: str) -> str:
        return cut(text, self.look.columns - 3) if self.look.live else text

    def _block(self, kind: str, text: str, *, apart: bool = False) -> str:
        """Whole lines of one kind; an empty line before what is of another."""
        if not text:
            return ""
        together = {"tool", "output", "note", "todos"}
        close = (kind == self._last and not apart) or (kind in together and self._last in together)
        gap = self._break() if close else self._gap(kind)
        self._last, self._open = kind, False
        return gap + text

    def _gap(self, kind: str) -> str:
        gap = self._break() + ("\n" if self._last else "")
        self._last = kind
        return gap

    def _break(self) -> str:
        """The end of a line that is not at its end."""
        was, self._open = self._open, False
        rest, self._wrapping = self._wrapping.finish() if self._wrapping else "", None
        return f"{rest}\n" if was else rest
