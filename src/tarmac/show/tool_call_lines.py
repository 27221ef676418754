"""Lines about tool calls: begun ("Running …"), their output, done ("Ran …"), with exit code, changes or the error.

A command gets a line when it begins, because it may take long. On a screen, other tools get a line when they are done.
Until then they are in the status line.
"""

import re
import time
from collections import deque

from tarmac.show import details
from tarmac.show.blocks import Blocks
from tarmac.show.look import Look, bounded, content_lines, counts, cut, diff_lines, harmless, one_line, width, wrapped
from tarmac.show.summary import seconds
from tarmac.tasks import events as e
from tarmac.tasks.views.model_history import text_of
from tarmac.tools.report import inside
from tarmac.vt.text import LiveText

HEAD = 12
TAIL = 6
BAR = "│"
MOST_AT_ONCE = 4000  # characters of a line that are looked at


class OutputTail:
    """What is shown of one command."""

    def __init__(self, look: Look) -> None:
        self.look = look
        self._text = LiveText()
        self._partial = ""
        self._shown = 0
        self._held: list[str] = []  # the first lines, on a screen
        self._kept: deque[str] = deque(maxlen=TAIL)
        self._passed = 0  # lines after the first ones

    def feed(self, data: bytes) -> str:
        """Take the next bytes; return what to print now, whole lines only."""
        return self._take(self._text.feed(data))

    def finish(self) -> str:
        """The command has ended: return the last lines, and how many were left out."""
        printed = self._take(self._text.finish())
        if self._partial:
            printed += self._line(self._partial)
            self._partial = ""
        printed = "".join(map(self._gutter, self._held)) + printed
        self._held = []
        if missing := self._passed - len(self._kept):
            printed += self._gutter(self.look.paint("2", f"… {missing:,} line{'s' * (missing > 1)} not shown …"))
        return printed + "".join(self._gutter(line) for line in self._kept)

    @property
    def latest(self) -> list[str]:
        """The newest lines, for a part of the screen that is drawn again."""
        newest = [self._cut(harmless(self._partial[-MOST_AT_ONCE:]))] if self._partial.strip() else []
        if self._passed:
            return [*self._kept, *newest]
        return [*self._held, *newest]

    @property
    def passed(self) -> int:
        """How many lines came after the first ones."""
        return self._passed

    def _take(self, text: str) -> str:
        *lines, self._partial = (self._partial + text).split("\n")
        self._partial = self._partial[-MOST_AT_ONCE * 4 :]
        head = max(HEAD - self._shown, 0)
        printed = "".join(self._line(line) for line in lines[:head])
        if len(rest := lines[head:]) > TAIL:  # of much at once, only what may be shown is looked at
            self._passed += len(rest) - TAIL
            rest = rest[-TAIL:]
        return printed + "".join(self._line(line) for line in rest)

    def _line(self, line: str) -> str:
        line = self._cut(harmless(line[:MOST_AT_ONCE]))
        if self._shown < HEAD:
            self._shown += 1
            if self.look.live:
                self._held.append(line)
                return ""
            return self._gutter(line)
        self._passed += 1
        self._kept.append(line)
        return ""

    def _cut(self, line: str) -> str:
        room = self.look.columns - 5
        return cut(line, room) if self.look.live and width(line) > room else line

    def _gutter(self, line: str) -> str:
        return f"  {self.look.paint('2', BAR)} {line}".rstrip(" ") + "\n"


SAID_ELSEWHERE = {"attempt_completion", "ask_followup_question", "update_todo_list", "switch_mode"}
MOST_DIFF = 60  # lines
MOST_TROUBLE = 8
LATEST = 8  # lines of a running command
TITLE = 20  # columns that a title needs to say something
SLOW = 1.0  # seconds after which the status says how long it takes
MARKS = {
    "done": ("32", "✓"),
    "failed": ("31", "✗"),
    "denied": ("35", "✗"),
    "skipped": ("35", "–"),
    "interrupted": ("35", "–"),
}
_ERROR = re.compile(r"<path>([^\n]*)</path>\n(?:<[^\n]*\n)*?<error>(.*?)</error>", re.DOTALL)


class ToolCalls:
    """The calls of one task, for one stream."""

    def __init__(self, lines: Blocks, *, past: bool) -> None:
        self._lines = lines
        self._past = past
        self._outputs: dict[str, OutputTail] = {}
        self._running: dict[str, str] = {}  # calls under way → their titles
        self._since: dict[str, float] = {}
        self._told: set[str] = set()  # calls that were told when they began
        self._asked: set[str] = set()  # calls that a person was asked about
        self._seen: set[str] = set()  # calls whose change was part of the question
        self._offers: dict[str, str] = {}  # commands that can be sent to the background: questions → calls

    def live(self, columns: int) -> list[str]:
        """What runs now: each command with its latest lines and its time, other tools on one line."""
        lines = []
        for call in self._told & self._running.keys():
            took = elapsed(self._since[call])
            output = self._outputs.get(call)
            latest = output.latest[-LATEST:] if output else []
            lines += [cut(f"  │ {line}", columns - 1) for line in latest]
            more = f" · {output.passed:,} lines more" if output and output.passed else ""
            took += " · Ctrl-B: to the background" if call in self._offers.values() else ""
            lines.append(cut(f"  │ …{more}", columns - 1 - width(took)) + took)
        if others := [title for call, title in self._running.items() if call not in self._told]:
            lines.append(cut(f"• {'; '.join(others)}", columns - 1))
        return lines

    @property
    def can_leave(self) -> bool:
        """Whether a command runs that can be sent to the background."""
        return bool(self._offers)

    def offered(self, event: e.QuestionAsked | e.QuestionAnswered) -> None:
        """A command that runs can be sent to the background, or no longer."""
        if isinstance(event, e.QuestionAnswered):
            self._offers.pop(event.question, None)
        elif event.ask == "command_output" and event.call:
            self._offers[event.question] = event.call

    def asked(self, event: e.QuestionAsked) -> None:
        """A person decides about it: what they saw is not told again."""
        if event.call:
            self._asked.add(event.call)
            self._seen |= {event.call for each in details.requests(event.details) if each.get("file")}

    def progress(self, call: str, text: str) -> bool:
        """How far a call has come; False: none that is known."""
        if call in self._running:
            self._running[call] = one_line(text)
        return call in self._running

    def output(self, call: str, data: bytes) -> str:
        """The next piece of a command's output."""
        output = self._outputs.get(call)
        if output is None:
            output = self._outputs[call] = OutputTail(self._lines.look)
        output.look = self._lines.look  # the screen may have another size by now
        printed = output.feed(data)
        return (self._begin(call) + self._lines.block("output", printed)) if printed else ""

    def started(self, event: e.ToolStarted) -> str:
        if event.name in SAID_ELSEWHERE:
            return ""
        self._running[event.call] = one_line(event.title)
        self._since[event.call] = time.monotonic()
        if self._past or (event.command is None and self._lines.look.live):
            return ""
        return self._begin(event.call)

    def _begin(self, call: str) -> str:
        title = self._running.get(call)
        if title is None or call in self._told:
            return ""
        self._told.add(call)
        return self._lines.block("tool", f"{self._lines.look.paint('36', '•')} {self._lines.fit(title)}\n")

    def finished(self, event: e.ToolFinished) -> str:
        began = self._running.pop(event.call, "")
        output = self._outputs.pop(event.call, None)
        printed = self._lines.block("output", output.finish()) if output else ""
        if event.name in SAID_ELSEWHERE and event.outcome in ("done", "denied", "interrupted"):
            return printed
        printed += self._line(event, began)
        if event.outcome == "done" and event.call not in self._seen:
            printed += self._diffs(details.diffs(event.details))
        return printed + (
            "" if output else self._lines.block("output", self._rest(event))
        )  # what streamed is on the screen

    def _line(self, event: e.ToolFinished, began: str) -> str:
        """What it was, and how it went."""
        look = self._lines.look
        colour, mark = MARKS[event.outcome]
        title = one_line(event.title or event.name)
        if event.outcome == "denied":
            title = f"Denied: {title[:1].lower() if title[1:2].islower() else title[:1]}{title[1:]}"
        facts: list[str] = [] if event.outcome == "done" or event.outcome in title.lower() else [event.outcome]
        if event.exit_code is not None:
            facts.append(f"exit code {event.exit_code}")
            colour, mark = ("35", "✗") if event.exit_code and event.outcome == "done" else (colour, mark)
        facts += details.ended(event.details)
        took = details.duration(event.details) or (0.0 if event.call in self._asked else event.seconds)
        if took >= 0.1:
            facts.append(seconds(took))
        if standing := details.standing(event.details):
            colour, mark = "36", "•"
            if self._past:
                facts, title = [*facts, *standing], began or title
            else:  # it stands right above
                title, facts = standing[0], [*facts, *standing[1:]]
                title = title[0].upper() + title[1:]
        changed = details.diffs(event.details)
        if changed and event.outcome == "done":
            facts.append(counts(changed))
        return self._lines.block("tool", f"{look.paint(colour, mark)} {self._fit(title, ', '.join(facts))}\n")

    def _fit(self, title: str, facts: str) -> str:
        """On one line, the title cut where it must be; on a narrow screen how it went stands below, and whole."""
        look = self._lines.look
        end = f" · {facts}" if facts else ""
        room = look.columns - 3 - width(end)
        if not look.live or width(title) <= room:
            return title + end
        if room >= TITLE:
            return cut(title, room) + end
        return "\n".join([self._lines.fit(title), *(f"    {line}" for line in wrapped(facts, look.columns - 5))])

    def _diffs(self, changed: list[tuple[str, str, bool]]) -> str:
        look, printed = self._lines.look, ""
        for path, diff, new in changed:
            lines = (content_lines if new else diff_lines)(diff, look, most=MOST_DIFF)
            if len(changed) > 1:
                lines = [f"  {look.paint('1', one_line(path))}", *lines]
            printed += self._lines.block("output", "".join(f"{line}\n" for line in lines))
        return printed

    def _rest(self, event: e.ToolFinished) -> str:
        """What a person should read of a result: what a terminal printed, or why it did not work."""
        text = text_of(event.content)
        if event.outcome == "done":
            streamed = event.exit_code is not None or bool(details.standing(event.details))
            if (streamed and not self._past) or not (streamed or details.terminal(event.details)):
                return ""
            printed = inside(text) if details.read(event.details) else text  # other programs' results have no fence
            lines = harmless(printed).rstrip("\n").split("\n")
            if len(lines) > HEAD + TAIL:
                left = len(lines) - HEAD - TAIL
                lines = [*lines[:HEAD], f"… {left:,} line{'s' * (left > 1)} not shown …", *lines[-TAIL:]]
            return "".join(self._lines.gutter(self._lines.fit(line)) for line in lines) if any(lines) else ""
        own = event.outcome == "interrupted" or (event.outcome == "denied" and event.call in self._asked)
        if not text.strip() or (own and not self._past):
            return ""  # they have just done it themselves
        lines = bounded(harmless(_reason(text)).strip().split("\n"), MOST_TROUBLE)
        return "".join(map(self._lines.gutter, lines))


def _reason(text: str) -> str:
    """Why it did not work, in the words that a model gets, without their marks."""
    found = _ERROR.findall(text)
    return "\n".join(f"{path}: {why}" for path, why in found) if found else text.removeprefix("[ERROR] ")


def elapsed(since: float) -> str:
    """` · 12 s`, of what takes long."""
    took = time.monotonic() - since
    if took < SLOW:
        return ""
    return f" · {took:.0f} s" if took < 60 else f" · {seconds(took)}"
