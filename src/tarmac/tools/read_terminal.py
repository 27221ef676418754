"""The tools that look at a terminal.

read_terminal        what is new in it, or any part of what a command printed
wait_for_terminal    wait until a command ends, prints a match, opens a port, wants input, or is quiet
"""

import asyncio
import re
from collections.abc import Coroutine, Mapping
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, TypeVar, cast

from msgspec import Meta

from tarmac.errors import BadArguments, ScreenUnavailable, TarmacError, ToolFailed
from tarmac.prompts.mode import check_size
from tarmac.terminals.execution import Execution
from tarmac.terminals.terminal import Terminal
from tarmac.tools import terminal_access, terminal_status
from tarmac.tools.execute_command import Seconds, wants_secret
from tarmac.tools.persistent_terminal import ID, SPELLINGS
from tarmac.tools.read_file import parse_ranges
from tarmac.tools.report import duration, fenced, labelled, untagged
from tarmac.tools.terminal_status import TerminalStatus
from tarmac.tools.tool import Bench, Done, Go, Group, Ready, Tool
from tarmac.vt.fold import show_invisibles
from tarmac.vt.text import clean, overwritten, overwritten_notice

if TYPE_CHECKING:
    from tarmac.terminals.wait_conditions import Conditions, Happened


MOST_BYTES = 50_000
MOST_FOUND = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadTerminal(Tool):
    name: ClassVar[str] = "read_terminal"
    group: ClassVar[Group] = "command"
    description: ClassVar[str] = (
        "Show what a terminal is doing and what it printed since you last looked. With lines or search: any part of "
        "what its last command printed, including what a result left out. With state: its shell, its last commands "
        "with exit codes, and the variables they changed. With screen: all rows that a full-screen program shows. "
        "Without an id: list the terminals."
    )
    spellings: ClassVar[Mapping[str, str]] = {**SPELLINGS, "line_range": "lines", "pattern": "search"}

    id: Annotated[str, Meta(description=f"{ID} Without it, the terminals are listed.")] = ""
    lines: Annotated[str, Meta(description="A range of lines of the output, such as `1-50`. `-20` is the last 20.")] = (
        ""
    )
    search: Annotated[str, Meta(description="Show the lines that match this regular expression.")] = ""
    command: Annotated[int | None, Meta(description="The number of the command. Default: the last one.")] = None
    state: Annotated[bool, Meta(description="Show its state instead.")] = False

    screen: Annotated[bool, Meta(description="Show the screen of a full-screen program, such as vim, instead.")] = False

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
            if self.screen or (_draws(terminal) and pattern is None and not self.lines):
                try:
                    return _looked(await terminal_status.screen(terminal, bench.viewer, full=True))
                except ScreenUnavailable as error:
                    if self.screen:
                        raise ToolFailed(error.what, hint=error.hint) from None
            if pattern is None and not self.lines:
                return _looked(await terminal_status.look(terminal))
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


def _draws(terminal: Terminal) -> bool:
    return terminal.current is not None and terminal.tape.alternate


def _listing(bench: Bench) -> Ready:
    async def act(_: Go) -> Done:
        found = terminal_access.visible_to(bench)
        rows = [f"{terminal_status.standing(each)}{'' if each.task else ' It belongs to no task.'}" for each in found]
        details = {"terminals": [terminal_status.facts(each) for each in found]}
        return Done.text("\n".join(rows) or "No terminal is open.", details=details)

    return Ready(title="Listing terminals", done="Listed terminals", act=act)


def _looked(found: TerminalStatus) -> Done:
    return Done.text(found.text, details=found.details, essence=untagged(found.text), output=found.output)


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
    """The text for the model, and the lines by themselves."""
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
    hidden = overwritten_notice(overwritten(line)).rstrip("\n")
    return show_invisibles(f"{clean(line)} {hidden}" if hidden else clean(line))


IN_THE_LOOP, IN_A_THREAD = 0.05, 0.5  # seconds of processor time, for one search
_Text = TypeVar("_Text", str, bytes)


class TimedPattern(Generic[_Text]):
    """A regular expression of the model, with a limit on its time: ToolFailed if a search takes longer."""

    def __init__(self, pattern: _Text, patience: float) -> None:
        import regex

        self._patience = patience

        try:
            check_size(pattern if isinstance(pattern, str) else pattern.decode("utf-8", "replace"))
            self._compiled: regex.Pattern[_Text] = regex.compile(pattern, regex.MULTILINE)
        except (regex.error, ValueError, RecursionError) as error:
            raise BadArguments(f"{pattern!r} is not a regular expression: {error}.") from None

    def search(self, text: _Text, start: int = 0) -> object:
        try:
            return self._compiled.search(text, start, timeout=self._patience, concurrent=True)
        except TimeoutError:
            raise ToolFailed("The search with this pattern took too long. Use a simpler one.") from None


def text_pattern(pattern: str) -> re.Pattern[str]:
    """A pattern for text, searched in the event loop. It has the methods that a search needs."""
    return cast("re.Pattern[str]", TimedPattern(pattern, IN_THE_LOOP))


def byte_pattern(pattern: str) -> re.Pattern[bytes]:
    """A pattern for bytes, searched in a thread."""
    return cast("re.Pattern[bytes]", TimedPattern(pattern.encode("utf-8"), IN_A_THREAD))


Port = Annotated[int, Meta(ge=1, le=65535)]


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitForTerminal(Tool):
    name: ClassVar[str] = "wait_for_terminal"
    group: ClassVar[Group] = "command"
    description: ClassVar[str] = (
        "Wait until the command in a terminal ends, or until one of the other conditions that you give holds. The "
        "result says what happened and has the new output. Use this instead of sleeping or polling."
    )
    spellings: ClassVar[Mapping[str, str]] = SPELLINGS

    id: Annotated[str, Meta(description="The terminal's id. Default: all busy terminals of this task.")] = ""
    pattern: Annotated[str, Meta(description="Until its output matches this regular expression.")] = ""
    port: Annotated[Port | None, Meta(description="Until it listens on this TCP port.")] = None
    any_port: Annotated[bool, Meta(description="Until it listens on any TCP port.")] = False
    input: Annotated[bool, Meta(description="Until it waits for input.")] = True
    quiet: Annotated[Seconds | None, Meta(description="Until it has printed nothing for this many seconds.")] = None
    timeout: Annotated[Seconds | None, Meta(description="Seconds to wait at most. Default: 30.")] = None

    async def prepare(self, bench: Bench) -> Ready:
        if self.id.strip():
            ids = [terminal_access.own(bench, self.id).id]
        else:
            ids = [each.id for each in terminal_access.visible_to(bench) if each.busy and each.task == bench.task]
            if not ids:
                raise ToolFailed(f"No terminal of this task is busy. {terminal_access.known(bench)}")
        conditions = self._conditions(bench)

        async def act(_: Go) -> Done:
            busy = [each for each in ids if terminal_access.readable(bench, each).busy]
            if not busy and not {"pattern", "port", "quiet"} & conditions.keys():
                looks = [await terminal_status.look(terminal_access.readable(bench, each)) for each in ids]
                past = terminal_access.readable(bench, ids[0]).history
                ended = {"what": "ended", "after": 0, **({"exit_code": past[-1].exit_code} if past else {})}
                over = {"terminal": looks[0].facts, "happened": ended}
                return Done.text(
                    "\n".join(each.text for each in looks),
                    details=over,
                    output="".join(each.output for each in looks),
                )
            current = [terminal_access.readable(bench, each).current for each in busy]
            asked = bench.secrets and any(each is not None and wants_secret(each) for each in current)
            try:
                with bench.secrets() if bench.secrets and asked else nullcontext(), ExitStack() as held:
                    left = asyncio.Event()
                    for each in current:
                        if each is not None:
                            held.enter_context(bench.waiting(each, left.set))
                    happened = await _unless(left, bench.registry.waiting_for(*ids, **conditions))
            except (ToolFailed, BadArguments):
                raise
            except TarmacError as error:
                raise ToolFailed(error.what, hint=error.hint) from None
            terminal = terminal_access.readable(bench, happened.terminal if happened else busy[0])
            found = await terminal_status.look(terminal)
            details = {"terminal": found.facts, "happened": _facts(happened) if happened else {"what": "left"}}
            return Done.text(
                f"{_told(happened) if happened else 'The wait was ended.'}\n{found.text}",
                details=details,
                essence=f"{happened.what if happened else 'left'} {untagged(found.text)}",
                output=found.output,
            )

        names = ", ".join(ids)
        return Ready(title=f"Waiting for {names}", done=f"Waited for {names}", act=act)

    def _conditions(self, bench: Bench) -> "Conditions":
        limit = bench.settings.wait_timeout if self.timeout is None else self.timeout
        made: Conditions = {"timeout": min(limit, bench.settings.longest_timeout), "input": self.input}
        if bench.secrets:  # the person types them, so the wait goes on
            made["secrets"] = False
        if self.pattern:
            made["pattern"] = text_pattern(self.pattern)
        if self.port is not None:
            made["port"] = self.port
        elif self.any_port:
            made["port"] = True
        if self.quiet is not None:
            made["quiet"] = self.quiet
        return made


async def _unless(left: asyncio.Event, wait: Coroutine[Any, Any, "Happened"]) -> "Happened | None":
    """What was waited for; None when the person ended the wait before."""
    waiting, leaving = asyncio.ensure_future(wait), asyncio.ensure_future(left.wait())
    try:
        await asyncio.wait((waiting, leaving), return_when=asyncio.FIRST_COMPLETED)
        return waiting.result() if waiting.done() else None
    finally:
        for each in (waiting, leaving):
            each.cancel()
        await asyncio.gather(waiting, leaving, return_exceptions=True)


def _facts(happened: "Happened") -> dict[str, object]:
    facts: dict[str, object] = {"what": happened.what, "after": round(happened.after, 3), "text": happened.text}
    more = {"exit_code": happened.exit_code, "port": happened.port, "pid": happened.pid}
    return facts | {name: value for name, value in more.items() if value is not None}


def _told(happened: "Happened") -> str:
    after = f"after {duration(happened.after)}"
    where = f"Terminal '{happened.terminal}'"
    match happened.what:
        case "ended":
            code = "unknown" if happened.exit_code is None else str(happened.exit_code)
            return f"{where}: its command ended {after}. Exit code: {code}."
        case "pattern":
            return (
                f"{where}: it printed a match {after} (untrusted, as its output is):\n{fenced(happened.text, 'match')}"
            )
        case "input":
            prompt = f" (untrusted, as its output is):\n{fenced(happened.text, 'prompt')}" if happened.text else "."
            return f"{where}: it waits for input, {after}{prompt}"
        case "quiet":
            return f"{where}: it is quiet, {after}."
        case "port":
            return f"{where}: it listens on port {happened.port} (process {happened.pid}), {after}."
        case "closed":
            return f"{where} was closed {after}."
        case _:
            return f"{where}: none of this happened within {duration(happened.after)}."
