"""read_terminal: what is new in a terminal; or lines of all that a command printed, or a search through it."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta

from tarmac.errors import BadArguments, TarmacError, ToolFailed
from tarmac.terminals.execution import Execution
from tarmac.terminals.terminal import Terminal
from tarmac.tools import terminal_access, terminal_status
from tarmac.tools.boundary import labelled, untagged
from tarmac.tools.persistent_terminal import ID, SPELLINGS
from tarmac.tools.read_file import parse_ranges
from tarmac.tools.search_pattern import byte_pattern
from tarmac.tools.tool import Bench, Done, Go, Group, Ready, Tool
from tarmac.vt.fold import show_invisibles
from tarmac.vt.text import clean

MOST_BYTES = 50_000
MOST_FOUND = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadTerminal(Tool):
    name: ClassVar[str] = "read_terminal"
    group: ClassVar[Group] = "command"
    description: ClassVar[str] = (
        "Look at a terminal: what it is doing, and what was printed there since you last looked. With lines or search: "
        "at any part of all that its last command printed, also what was left out of a result. With state: its shell, "
        "its last commands with their exit codes, and the variables they changed. Without an id: which there are."
    )
    spellings: ClassVar[Mapping[str, str]] = {**SPELLINGS, "line_range": "lines", "pattern": "search"}

    id: Annotated[str, Meta(description=f"{ID} None: list the terminals.")] = ""
    lines: Annotated[str, Meta(description="A range `first-last` of the command's output; `-20` is its last 20.")] = ""
    search: Annotated[str, Meta(description="A regular expression: lines of the output that match.")] = ""
    command: Annotated[int | None, Meta(description="Which command, by its number. Default: the last one.")] = None
    state: Annotated[bool, Meta(description="Whether to tell of its shell, history and environment instead.")] = False

    async def prepare(self, bench: Bench) -> Ready:
        if not self.id.strip():
            return _listing(bench)
        terminal = terminal_access.readable(bench, self.id)
        if self.lines and self.search:
            raise BadArguments("read_terminal: give lines or search, not both.")
        pattern = byte_pattern(self.search) if self.search else None
        span = _span(self.lines)

        async def act(_: Go) -> Done:
            if self.state:
                text = await terminal_status.state(terminal)
                return _done(text, text, terminal_status.facts(terminal))
            if pattern is None and not self.lines:
                found = await terminal_status.look(terminal)
                return _done(found.text, found.output, found.facts)
            execution = _command(terminal, self.command)
            state = terminal_status.facts(terminal)
            head = f"{terminal_status.standing(terminal)}\nCommand {execution.number}, `{execution.command[:200]}`: "
            try:
                if pattern is None:
                    told, lines = await _lines(execution, *span)
                    return _done(head + told, lines, state)
                matches = await asyncio.to_thread(execution.spool.search, pattern, limit=MOST_FOUND, context=1)
            except ToolFailed:
                raise
            except TarmacError as error:
                raise ToolFailed(error.what, hint=error.hint) from None
            rows: dict[int, str] = {}
            for each in matches:
                first = each.line_number - len(each.before)
                for number, line in enumerate((*each.before, each.line, *each.after), first):
                    rows.setdefault(number, f" {number} | {_text(line)}")
                rows[each.line_number] = f">{each.line_number} | {_text(each.line)}"
            more = f", the first {MOST_FOUND}" if len(matches) >= MOST_FOUND else ""
            what = f"{len(matches)} lines match{more}. Lines"
            text = "\n".join(rows[each] for each in sorted(rows))
            return _done(head + labelled(text, what=what), text, state)

        return Ready(title=f"Reading terminal {self.id}", done=f"Read terminal {self.id}", act=act)


def _listing(bench: Bench) -> Ready:
    async def act(_: Go) -> Done:
        found = terminal_access.visible_to(bench)
        rows = [f"{terminal_status.standing(each)}{'' if each.task else ' It is of no task.'}" for each in found]
        details = {"terminals": [terminal_status.facts(each) for each in found]}
        return Done.text("\n".join(rows) or "No terminal is open.", details=details)

    return Ready(title="Listing terminals", done="Listed terminals", act=act)


def _done(text: str, output: str, facts: dict[str, object]) -> Done:
    details = {"terminal": facts}
    return Done.text(text, details=details, essence=untagged(text), output=output)


def _span(lines: str) -> tuple[int, int]:
    text = lines.strip()
    if text.startswith("-") and text[1:].isdigit() and int(text):
        return int(text), -1
    ranges = parse_ranges((text,), tool="read_terminal") if text else ((1, -1),)
    first, last = ranges[0]
    return max(first, 1), max(last, -1) or -1


def _command(terminal: Terminal, number: int | None) -> Execution:
    found = [each for each in terminal.executions if number in (None, each.number)]
    if not found:
        numbers = ", ".join(str(each.number) for each in terminal.executions) or "none"
        raise ToolFailed(f"Terminal {terminal.id} has no command {number or ''} to read. There are: {numbers}.")
    return found[-1]


async def _lines(execution: Execution, first: int, last: int) -> tuple[str, str]:
    """What the model is told, and the lines alone."""
    if not execution.output_bytes:
        return "it has printed nothing.", ""
    found = await asyncio.to_thread(execution.spool.lines, first, last, most=MOST_BYTES)
    end = found.first + len(found.lines) - 1
    if not found.lines:
        return f"there are no such lines; it has printed {found.total}.", ""
    rows = [f"{number} | {_text(line)}" for number, line in enumerate(found.lines, found.first)]
    cut = f"; read on from {end}" if found.cut else ""
    text = "\n".join(rows)
    return labelled(text, what=f"lines {found.first}-{end} of {found.total}{cut}. Output"), text


def _text(line: bytes) -> str:
    return show_invisibles(clean(line))
