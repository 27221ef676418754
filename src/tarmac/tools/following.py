"""A running command, followed until it ends, asks for something, or its time is over; its output is shown meanwhile."""

import asyncio
import time

from tarmac.errors import TerminalClosed
from tarmac.events import TerminalId
from tarmac.policy.input import RELAYS
from tarmac.terminals.execution import Execution
from tarmac.terminals.output.follow import Gap
from tarmac.terminals.process.tty_probe import Waiting
from tarmac.terminals.result import Result
from tarmac.tools.tool import Bench, Output

# How long a question must stand before it is taken for one: at once where the cursor stands behind a prompt, later
# where it may be no question at all, and last behind a relay, which reads the keyboard all the time.
AT_PROMPT, NO_PROMPT, RELAYED = 0.4, 2.0, 5.0
LOOK_AGAIN = 1.0  # a question is told once; one that did not stand the first time is found by looking
SOON = 0.03  # seconds: most commands end within them, and need nobody who follows them, or waits for their questions
GENTLE = 0.4  # seconds for a cancelled command to heed Ctrl-C; then it is killed


async def outcome(bench: Bench, execution: Execution, *, terminal: TerminalId | None, timeout: float) -> Result:
    """Its result; while it runs on after `timeout`, or waits for input, what is known so far."""
    end = time.monotonic() + timeout
    follower: asyncio.Task[None] | None = None
    try:
        if not await execution.ended(min(SOON, timeout)):
            follower = asyncio.create_task(_show(bench, execution, terminal))
            await _settled(bench, execution, end)
        if not execution.running and (follower is not None or execution.output_bytes):
            follower = follower or asyncio.create_task(_show(bench, execution, terminal))
            await follower
        return await execution.so_far()
    except asyncio.CancelledError:
        follower = follower or asyncio.create_task(_show(bench, execution, terminal))
        await asyncio.shield(_ended(execution))
        execution.spool.flush()  # what is told of it is read from there
        raise
    finally:
        if follower is not None and not follower.done():
            follower.cancel()
            await asyncio.gather(follower, return_exceptions=True)
        elif follower is not None and not follower.cancelled():
            follower.exception()  # it was raised above, or matters to nobody


async def _show(bench: Bench, execution: Execution, terminal: TerminalId | None) -> None:
    end = 0
    async for piece in execution.follow():
        if isinstance(piece, Gap):
            end += piece.bytes
            continue
        if not end and terminal is not None:
            bench.started(terminal, execution.spool.path)
        end += len(piece)
        bench.show(Output(terminal=terminal, data=piece, end=end))


async def _settled(bench: Bench, execution: Execution, end: float) -> None:
    while execution.running and (left := end - time.monotonic()) > 0:
        if bench.secrets and wants_secret(execution):  # the person is asked for it: it is not the model's turn
            with bench.secrets():
                await execution.ended(min(left, LOOK_AGAIN))
            continue
        try:
            happened = await execution.waiting_for(input=True, timeout=min(left, LOOK_AGAIN))
        except TerminalClosed:
            await execution.ended(left)
            return
        if happened.waiting is None or (bench.secrets and happened.waiting.wants == "secret"):
            continue
        if await _stands(execution, happened.waiting, end):
            return


def wants_secret(execution: Execution) -> bool:
    """Whether it waits for something that only a person may type."""
    return execution.running and execution.waiting is not None and execution.waiting.wants == "secret"


async def _stands(execution: Execution, seen: Waiting, end: float) -> bool:
    """Whether the question is still there after a moment, unanswered: a person may type, a program may go on."""
    before = (execution.inputs, execution.output_bytes, seen)
    patience = RELAYED if seen.name in RELAYS else AT_PROMPT if _at_prompt(execution, seen) else NO_PROMPT
    await execution.ended(max(min(patience, end - time.monotonic()), 0.001))
    return before == (execution.inputs, execution.output_bytes, execution.waiting)


def _at_prompt(execution: Execution, seen: Waiting) -> bool:
    if not seen.prompt.strip() or not execution.output_bytes:
        return False
    _, last = execution.spool.read(execution.output_bytes - 1, 1)
    return last not in (b"\n", b"\r")


async def _ended(execution: Execution) -> None:
    """End it, as a person would: Ctrl-C first, and no more patience than that."""
    try:
        await asyncio.wait_for(execution.interrupt(), GENTLE)
    except TimeoutError:
        pass
    await execution.kill()
