"""`tarmac terminals`: those that outlive the program: listed, attached to, and ended."""

import asyncio
import json
import sys

from tarmac.cli.exit_status import FAILED, complain
from tarmac.cli.parser import parse as parse_arguments
from tarmac.cli.parser import suggest
from tarmac.errors import BadRequest, TarmacError
from tarmac.policy.visible import shortened, visible
from tarmac.terminals import LeftTerminal, attach_terminal, end_terminal, events, list_terminals

ACTIONS = ("list", "attach", "end")
WHICH = "`tarmac terminals` lists them"
LONGEST_COMMAND = 50


def main(arguments: list[str]) -> int:
    """List, attach or end; the exit code."""
    options, words = parse_arguments("terminals", arguments)
    action, rest = (words[0], words[1:]) if words else ("list", [])
    if action not in ACTIONS:
        hint = suggest(action, ACTIONS) or "`tarmac terminals` takes list, attach ID or end ID"
        raise BadRequest(f"`{action}` is nothing to do with terminals", hint=hint)
    if "json" in options and action != "list":
        raise BadRequest(f"`terminals {action}` takes no --json", hint="`tarmac terminals list --json`")
    match action, rest:
        case "list", []:
            return asyncio.run(_list(json_wanted="json" in options))
        case "list", [word, *_]:
            raise BadRequest(f"`terminals list` takes no `{word}`", hint="`tarmac terminals list` lists all")
        case "attach", [id]:
            return asyncio.run(_attach(id))
        case "attach", _:
            raise BadRequest("`terminals attach` takes the id of one terminal", hint=WHICH)
        case "end", []:
            raise BadRequest("`terminals end` takes the ids of terminals", hint=WHICH)
    return asyncio.run(_end(rest))


async def _list(*, json_wanted: bool) -> int:
    found = await list_terminals()
    if json_wanted:
        print(json.dumps([each.as_dict() for each in found], indent=2))
        return 0
    if not found:
        print("No terminal outlives its program here.")
        return 0
    for each in found:
        name = f" ({visible(each.name)})" if each.name != each.id else ""
        task = f", task {each.task}" if each.task else ""
        print(f"{each.id}{name}  {_state(each)}")
        print(f"    in {visible(str(each.cwd))}{task}")
    return 0


def _state(left: LeftTerminal) -> str:
    command = f"`{shortened(visible(left.command), LONGEST_COMMAND)}`" if left.command else "nothing yet"
    if left.host is not None:
        return f"in use by process {left.host}; last command: {command}"
    if not left.alive and left.status is None:
        return f"lost with the terminal daemon; last command: {command}. Attaching opens a new shell"
    if not left.alive:
        return f"its shell ended with status {left.status}; last command: {command}"
    what = f"runs {command}" if left.running else f"idle; last command: {command}"
    return f"{what}; ends in {_span(left.expires or 0)} unless somebody attaches"


def _span(seconds: float) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


async def _attach(id: str) -> int:
    from tarmac.cli.attach import ScreenGone, attach

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise BadRequest(
            "`terminals attach` needs a screen and a keyboard", hint="`tarmac terminals --json` tells of it"
        )
    terminal = await attach_terminal(id)
    ended = asyncio.Event()

    def hear(event: events.TerminalEvent) -> None:
        if isinstance(event, events.ShellEnded | events.TerminalClosedEvent):
            ended.set()

    terminal.subscribe(hear)
    if not terminal.alive:
        ended.set()
    gone = asyncio.create_task(ended.wait())
    shown = asyncio.create_task(attach(terminal))
    try:
        await asyncio.wait((gone, shown), return_when=asyncio.FIRST_COMPLETED)
    finally:
        over = ended.is_set()
        for each in (gone, shown):
            each.cancel()
        results = await asyncio.gather(gone, shown, return_exceptions=True)
        await (terminal.aclose() if over else terminal.leave())
    if isinstance(results[1], ScreenGone):
        return 1
    print(
        f"\r\n{id}: its shell has ended."
        if over
        else f"\r\n{id} goes on. `tarmac terminals attach {id}` comes back to it."
    )
    return 0


async def _end(ids: list[str]) -> int:
    """One that can't be ended is told, and the others are ended."""
    code = 0
    for id in dict.fromkeys(ids):
        try:
            await end_terminal(id)
        except TarmacError as error:
            code = complain(error.what, hint=error.hint, code=FAILED)
        else:
            print(f"{id} was ended.")
    return code
