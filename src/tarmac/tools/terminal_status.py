"""Describe terminals to the model: what runs in them, what they wait for, what is new."""

from dataclasses import dataclass
from pathlib import Path

from tarmac.errors import TarmacError
from tarmac.events import TaskId
from tarmac.paths import shown
from tarmac.prompts.environment_details import MOST_TERMINALS, TerminalFacts
from tarmac.terminals.execution import Execution
from tarmac.terminals.output.follow import unread_output
from tarmac.terminals.output.terminal_screen import ScreenLook
from tarmac.terminals.pool.protocol import Terminals
from tarmac.terminals.process.tty_probe import Wants
from tarmac.terminals.result import show_path, signal_name
from tarmac.terminals.terminal import Past, Terminal
from tarmac.tools import terminal_access
from tarmac.tools.execute_command import short
from tarmac.tools.report import duration, labelled
from tarmac.vt.fold import bound, fold_repeats, show_invisibles
from tarmac.vt.marks import Hints

MOST_CHARACTERS = 50_000
MOST_ENVIRONMENT = 5_000
MOST_PAST = 10


@dataclass(frozen=True, slots=True)
class TerminalStatus:
    """The state of a terminal, as text for a model and as data for a front end."""

    text: str
    output: str  # the new output or the screen, without tags
    facts: dict[str, object]
    screen: bool = False  # whether it is the screen

    @property
    def details(self) -> dict[str, object]:
        """The same as data, for a front end."""
        return {"terminal": self.facts} | ({"screen": self.output} if self.screen else {})


async def look(terminal: Terminal) -> TerminalStatus:
    """The state of a terminal and its new output, which counts as read from now on."""
    news = [ending(each) for each in terminal.unread]
    output = await new_output(terminal, most=MOST_CHARACTERS)
    text = "\n".join([*news, standing(terminal), labelled(output, what="New output")])
    return TerminalStatus(text, output, facts(terminal))


async def screen(terminal: Terminal, viewer: str | None, *, full: bool = False) -> TerminalStatus:
    """The state of a terminal and its screen, once the program in it has settled: what changed, or all rows."""
    return with_screen(terminal, await terminal_access.look(terminal, viewer, full=full), viewer)


def with_screen(terminal: Terminal, found: ScreenLook, viewer: str | None) -> TerminalStatus:
    """The state of a terminal and its screen, which this viewer now has seen."""
    news = [ending(each) for each in terminal.unread]
    text = terminal_access.text_for(terminal, viewer, found)
    state = facts(terminal) | {"screen": {"settled": str(found.settled), "alternate": found.alternate}}
    told = "\n".join([*news, standing(terminal), labelled(text, what="Screen")])
    return TerminalStatus(told, text, state, screen=True)


def facts(terminal: Terminal) -> dict[str, object]:
    """The state of a terminal as JSON values. What does not apply is left out."""
    current = terminal.current
    seen = current.waiting if current is not None else None
    found: dict[str, object] = {
        "id": terminal.id,
        "name": terminal.name,
        "state": "closed" if terminal.closed else "idle" if current is None else "waiting" if seen else "running",
        "cwd": show_path(terminal.cwd),
    }
    latest = current or (terminal.executions[-1] if terminal.executions else None)
    if latest is not None:
        found |= {"command": latest.command, "number": latest.number}
        if latest.ending is not None:
            found["reason"] = latest.ending.reason
            if latest.ending.exit_code is not None:
                found["exit_code"] = latest.ending.exit_code
    if seen is not None:
        found |= {"awaiting": str(seen.wants), "prompt": seen.prompt.strip()}
    return found


async def new_output(terminal: Terminal, *, most: int) -> str:
    """Unread output, clean and bounded. It counts as read from now on."""
    text = show_invisibles(fold_repeats(await unread_output(terminal)))
    return bound(text, lines=terminal.settings.output_line_limit, characters=most).text


def standing(terminal: Terminal) -> str:
    """One line about what the terminal is doing."""
    where = f"Terminal '{terminal.id}' in {shown(terminal.cwd)}"
    if terminal.closed:
        return f"{where} is closed."
    current = terminal.current
    if current is None:
        last = f"; its last command was `{short(terminal.last_command)}`" if terminal.last_command else ""
        return f"{where} is idle{last}."
    seen = current.waiting
    if seen is None:
        return f"{where} is running `{short(current.command)}` (command {current.number})."
    wants = {"line": "a line of input", "secret": "a secret that only the person may type", "keys": "keys"}
    return (
        f"{where} is running `{short(current.command)}` (command {current.number}), which waits for "
        f"{wants.get(str(seen.wants), 'input')}."
    )


async def state(terminal: Terminal) -> str:
    """Everything about a terminal: shell, directory, last commands, changed variables."""
    shell = f"{terminal.shell.name} {terminal.shell_version}".strip()
    rows = [standing(terminal), f"Shell: {shell}. Opened in {shown(terminal.initial_cwd)}."]
    if terminal.quality == "basic":
        rows.append(f"A shell in it says, without proof: {_said(terminal.hints)}.")
    past = list(terminal.history)[-MOST_PAST:]
    rows += [f"Command {each.number}: `{short(each.command)}` in {shown(each.cwd)}, {_past(each)}." for each in past]
    if terminal.selection:
        selected = bound(show_invisibles(terminal.selection), characters=MOST_ENVIRONMENT).text
        rows.append(labelled(selected, what="Selected by the person"))
    if terminal.closed or terminal.busy:
        return "\n".join(rows)
    try:
        changed = await terminal.environment()
    except TarmacError as error:
        return "\n".join([*rows, f"Environment: not known ({error.what})."])
    lines = [f"unset {name}" if value is None else f"{name}={value}" for name, value in sorted(changed.items())]
    text = bound(show_invisibles("\n".join(lines)), characters=MOST_ENVIRONMENT).text
    return "\n".join([*rows, labelled(text, what="Environment, as far as it was changed")])


def _said(hints: Hints) -> str:
    at = {True: "it is at its prompt", False: "it runs a command", None: ""}[hints.at_prompt]
    code = f"its last exit code was {hints.exit_code}" if hints.exit_code is not None else ""
    return ", ".join(each for each in (f"it is in {shown(Path(hints.cwd))}" if hints.cwd else "", at, code) if each)


def _past(past: Past) -> str:
    code = "unknown" if past.exit_code is None else str(past.exit_code)
    whose = ", typed by the person" if past.by_person else ""
    return f"exit code {code}{'' if past.reason == 'done' else f', {past.reason}'}, {duration(past.duration)}{whose}"


def ending(execution: Execution) -> str:
    """A sentence about how a command ended."""
    return f"Command {execution.number}, `{short(execution.command)}`, has ended: {ended(execution)}."


def ended(execution: Execution) -> str:
    """How a command ended, such as `exit code 1`; empty while it runs."""
    if execution.ending is None:
        return ""
    code, reason = execution.ending.exit_code, execution.ending.reason
    how = "exit code unknown" if code is None else f"exit code {code}"
    if name := signal_name(code):
        how += f" ({name})"
    return how if reason == "done" else f"{how}, {reason}"


MOST_LISTED = 20
MOST_CHARACTERS = 8_000
LEAST_EACH = 500


async def facts_of(registry: Terminals, task: TaskId, *, most: int = MOST_CHARACTERS) -> tuple[TerminalFacts, ...]:
    """What is new in the terminals of a task, now. Output that does not fit stays unread."""
    found = [each for each in registry.listing() if each.origin != "person" and each.task in (task, None)]
    found += [each for each in registry.gone if each.origin != "person" and each.task in (task, None)]
    # Terminals with something new come first.
    found.sort(key=lambda each: (not (each.unread or each.busy), each.task is None))
    told: list[TerminalFacts] = []
    left = most
    for number, terminal in enumerate(found[:MOST_LISTED]):
        share = max(left // max(1, min(len(found), MOST_TERMINALS) - number), min(LEAST_EACH, left))
        room = number < MOST_TERMINALS and (share > 0 or not most)
        facts = await _facts(terminal, task, share if room else None)
        left = max(0, left - len(facts.output))
        told.append(facts)
    return tuple(told)


async def _facts(terminal: Terminal, task: TaskId, most: int | None) -> TerminalFacts:
    """The state of a terminal and at most `most` characters of new output. None leaves the output unread."""
    unread = [] if most is None else terminal.unread
    endings = [ended(each) for each in unread]
    current = terminal.current
    seen = current.waiting if current is not None else None
    output = await new_output(terminal, most=most) if most and (unread or current is not None) else ""
    for each in unread:
        each.read = True
    waiting = ""
    if seen is not None:
        waiting = (
            "a secret, which only the person may type" if seen.wants is Wants.SECRET else seen.prompt.strip() or "?"
        )
    return TerminalFacts(
        id=terminal.id,
        cwd=None if terminal.closed else terminal.cwd,
        busy=terminal.busy,
        own=terminal.task == task,
        command=short(terminal.last_command or ""),
        output=output,
        ending="; ".join(endings),
        waiting=waiting,
    )
