"""A secret is the person's alone: from their keyboard to who asks, past the task, its log and the model."""

import asyncio

from tarmac.cli.person import Person
from tarmac.errors import SecretNotAsked, TarmacError
from tarmac.events import TaskId
from tarmac.show.asking import ask_secret
from tarmac.show.harmless import one_line
from tarmac.terminals.execution import Execution
from tarmac.terminals.pool import Pool
from tarmac.terminals.shell.pty_terminal import PtyTerminal

LONGEST = 86_400.0  # seconds that it is waited for


async def pass_secret(execution: Execution, person: Person) -> None:
    """Ask for it, and hand it over, while the program still wants it."""
    async with person.attention() as keyboard:
        now = execution.waiting
        if now is None or now.wants != "secret" or keyboard.taken:
            return
        typing = asyncio.create_task(ask_secret(now.prompt, now.name, keyboard, person.screen))
        over = asyncio.create_task(execution.ended(LONGEST))
        try:
            await asyncio.wait({typing, over}, return_when=asyncio.FIRST_COMPLETED)
            if typing.done() and (secret := typing.result()) is not None:
                await execution.send_secret(secret, timeout=2)
        except SecretNotAsked:
            person.screen.put("  it no longer asks for it: nothing was typed\n")
        except TarmacError as error:
            person.screen.put(f"  {one_line(error.what)}\n")
        finally:
            for each in (typing, over):
                each.cancel()
            await asyncio.gather(typing, over, return_exceptions=True)


def waiting_for_secrets(registry: Pool, task: TaskId) -> list[Execution]:
    """The commands of this task that wait for one."""
    busy = [each.current for each in registry.listing(task=task, busy=True)]
    return [each for each in busy if each is not None and each.waiting is not None and each.waiting.wants == "secret"]


def hides_input(registry: Pool, task: TaskId) -> bool:
    """Whether a command of this task hides what is typed: a line may be meant for it, even if it does not read yet."""
    for each in registry.listing(task=task, busy=True):
        session = each.session if isinstance(each, PtyTerminal) else None
        if session is not None and session.alive and session.pty.hides_input():
            return True
    return False
