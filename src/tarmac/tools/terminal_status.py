"""Where a terminal stands, in words for a model: what runs or ran in it, what it waits for, what is new."""

from dataclasses import dataclass

from tarmac.errors import TarmacError
from tarmac.paths import shown
from tarmac.terminals.execution import Execution
from tarmac.terminals.output.follow import unread_output
from tarmac.terminals.result import show_path, signal_name
from tarmac.terminals.terminal import Past, Terminal
from tarmac.tools.boundary import labelled
from tarmac.tools.execute_command import short
from tarmac.tools.report import duration
from tarmac.vt.fold import bound, fold_repeats, show_invisibles

MOST_CHARACTERS = 50_000
MOST_ENVIRONMENT = 5_000
MOST_PAST = 10


@dataclass(frozen=True, slots=True)
class Look:
    """A terminal as it was found: in words for a model, and as data for a door."""

    text: str
    output: str  # what is new, without a boundary
    facts: dict[str, object]


async def look(terminal: Terminal, *, most: int = MOST_CHARACTERS) -> Look:
    """Its state, and what was printed in it since somebody last looked; from now on that is read."""
    news = [ending(each) for each in terminal.unread]
    output = await new_output(terminal, most=most)
    text = "\n".join([*news, standing(terminal), labelled(output, what="New output")])
    return Look(text, output, facts(terminal))


def facts(terminal: Terminal) -> dict[str, object]:
    """Where it stands, as JSON can carry it; what does not apply is left out."""
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
    """What nobody has read yet, clean and bounded; from now on it is read."""
    text = show_invisibles(fold_repeats(await unread_output(terminal)))
    return bound(text, lines=terminal.settings.output_line_limit, characters=most).text


def standing(terminal: Terminal) -> str:
    """One line on what it is doing."""
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
    """All that can be asked of it (T31): shell, directory, commands, and what they changed in the environment."""
    shell = f"{terminal.shell.name} {terminal.shell_version}".strip()
    rows = [standing(terminal), f"Shell: {shell}. Opened in {shown(terminal.initial_cwd)}."]
    past = list(terminal.history)[-MOST_PAST:]
    rows += [f"Command {each.number}: `{short(each.command)}` in {shown(each.cwd)}, {_past(each)}." for each in past]
    if terminal.closed or terminal.busy:
        return "\n".join(rows)
    try:
        changed = await terminal.environment()
    except TarmacError as error:
        return "\n".join([*rows, f"Environment: not known ({error.what})."])
    lines = [f"unset {name}" if value is None else f"{name}={value}" for name, value in sorted(changed.items())]
    text = bound(show_invisibles("\n".join(lines)), characters=MOST_ENVIRONMENT).text
    return "\n".join([*rows, labelled(text, what="Environment, as far as it was changed")])


def _past(past: Past) -> str:
    code = "unknown" if past.exit_code is None else str(past.exit_code)
    whose = ", typed by the person" if past.by_person else ""
    return f"exit code {code}{'' if past.reason == 'done' else f', {past.reason}'}, {duration(past.duration)}{whose}"


def ending(execution: Execution) -> str:
    """How a command ended, in a sentence."""
    return f"Command {execution.number}, `{short(execution.command)}`, has ended: {ended(execution)}."


def ended(execution: Execution) -> str:
    """`exit code 1`, `killed by SIGKILL` …; empty while it runs."""
    if execution.ending is None:
        return ""
    code, reason = execution.ending.exit_code, execution.ending.reason
    how = "exit code unknown" if code is None else f"exit code {code}"
    if name := signal_name(code):
        how += f" ({name})"
    return how if reason == "done" else f"{how}, {reason}"
