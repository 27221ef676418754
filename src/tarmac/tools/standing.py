"""Where a terminal stands, in words for a model: what runs or ran in it, what it waits for, what is new."""

from tarmac.errors import TarmacError
from tarmac.paths import shown
from tarmac.terminals.execution import Execution
from tarmac.terminals.result import signal_name
from tarmac.terminals.terminal import Past, Terminal
from tarmac.terminals.unread import unread_output
from tarmac.tools.boundary import labelled
from tarmac.tools.command import short
from tarmac.tools.report import duration
from tarmac.vt.fold import bound, fold_repeats, show_invisibles

MOST_CHARACTERS = 50_000
MOST_ENVIRONMENT = 5_000
MOST_PAST = 10


async def told(terminal: Terminal, *, most: int = MOST_CHARACTERS) -> str:
    """Its state, and what was printed in it since somebody last looked; from now on that is read."""
    news = [ending(each) for each in terminal.unread]
    output = await new_output(terminal, most=most)
    state = standing(terminal)
    return "\n".join([*news, state, labelled(output, what="New output")])


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
