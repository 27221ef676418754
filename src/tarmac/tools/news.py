"""What happened in terminals since the model was last told: for the environment details of the next turn (S8, T24).

news(registry, task) → TerminalFacts for each of the task's terminals and each background one, new output and endings
"""

from tarmac.events import TaskId
from tarmac.prompts.environment import MOST_TERMINALS, TerminalFacts
from tarmac.terminals.pool import Pool
from tarmac.terminals.process.tty_probe import Wants
from tarmac.terminals.terminal import Terminal
from tarmac.tools import terminal_status
from tarmac.tools.execute_command import short

MOST_LISTED = 20
MOST_CHARACTERS = 8_000
LEAST_EACH = 500


async def news(
    registry: Pool, task: TaskId, *, edited: bool = False, most: int = MOST_CHARACTERS
) -> tuple[TerminalFacts, ...]:
    """What to tell of terminals now; from now on it is told. Waits first until none is hot, 5 s at most.

    `edited`: a file was changed since the last turn, so what watches files may just have woken up.
    """
    await registry.cool(task, edited=edited)
    return await facts_of(registry, task, most=most)


async def facts_of(registry: Pool, task: TaskId, *, most: int = MOST_CHARACTERS) -> tuple[TerminalFacts, ...]:
    """The same, without waiting for a good moment. What there is no room for is not read: it is told another time."""
    found = [each for each in registry.listing() if each.origin != "person" and each.task in (task, None)]
    found += [each for each in registry.gone if each.origin != "person" and each.task in (task, None)]
    # Those with something to tell come first; whoever else there is, is only listed.
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
    """What a terminal does, and what is new, in `most` characters of output; None: what is new stays new."""
    ended = [] if most is None else terminal.unread
    endings = [terminal_status.ended(each) for each in ended]
    current = terminal.current
    seen = current.waiting if current is not None else None
    output = await terminal_status.new_output(terminal, most=most) if most and (ended or current is not None) else ""
    for each in ended:
        each.read = True
    waiting = ""
    if seen is not None:
        waiting = "a secret, which only the person types" if seen.wants is Wants.SECRET else seen.prompt.strip() or "?"
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
