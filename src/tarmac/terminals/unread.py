"""What a command printed that nobody has read yet: once each, and while it runs only whole lines (T10)."""

from tarmac.terminals.execution import Execution
from tarmac.terminals.following import READ_SIZE
from tarmac.terminals.result import render
from tarmac.terminals.settings import Settings
from tarmac.terminals.terminal import Terminal
from tarmac.vt.buffer import HeadTail


async def unread_output(terminal: Terminal) -> str:
    """Text that nobody has had, of ended commands and of the one that runs; from now on it is read."""
    texts = [await _rest(each, terminal.settings) for each in terminal.unread]
    if terminal.current is not None:
        texts.append(await _rest(terminal.current, terminal.settings))
    return "".join(texts)


async def _rest(execution: Execution, settings: Settings) -> str:
    ended = not execution.running
    if ended and (not execution.shown or execution.spool.start > execution.shown):
        return (await execution.result()).output
    kept = HeadTail(settings.output_memory, head_share=settings.output_head_share)
    held = b""
    offset, end = execution.shown, execution.output_bytes
    while offset < end:
        start, data = execution.spool.read(offset, READ_SIZE)
        if not data:
            break
        offset = start + len(data)
        block = held + data
        whole = len(block) if ended else block.rfind(b"\n") + 1
        kept.feed(block[:whole])
        held = block[whole:]
    execution.shown = offset - len(held)
    execution.read = ended
    return (await render(kept, settings)).text
