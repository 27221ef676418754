"""`tarmac tasks show`: a task as text, from its log."""

from collections.abc import Iterator

from tarmac.show.accounts import tool_line
from tarmac.show.columns import wrapped
from tarmac.show.harmless import one_line
from tarmac.show.look import Look
from tarmac.show.summary import size, spent, status, when
from tarmac.show.teller import Teller
from tarmac.tasks.log.reader import Reading
from tarmac.tasks.views.metadata import metadata


def transcript(task: str, reading: Reading, look: Look, *, at_work: bool) -> Iterator[str]:
    """The task's facts, damage in its log, and everything that happened, piece by piece."""
    meta = metadata(reading.events)
    yield look.paint("1", f"Task {one_line(task)}") + (f" (#{meta.number})\n" if meta.number else "\n")
    facts = [
        status(meta, at_work=at_work),
        f"mode {meta.mode}",
        meta.model,
        f"last at {when(meta.at)}",
        f"log {size(reading.size)}",
    ]
    yield from (
        f"  {line}\n" for line in wrapped(one_line(" · ".join(each for each in facts if each)), look.columns - 3)
    )
    if meta.workspace:
        yield f"  {one_line(str(meta.workspace))}\n"
    if meta.requests:
        yield f"  {spent(meta)}\n"
    if meta.tools:
        yield from (f"  {line}\n" for line in wrapped(f"calls: {tool_line(meta)}", look.columns - 3))
    for damage in reading.damage:
        lost = (
            f"{damage.lost} records from {damage.first} on are"
            if damage.lost
            else f"junk before record {damage.first} is"
        )
        yield look.paint("31", f"  ! {lost} damaged: {one_line(damage.why)}") + "\n"
    if reading.torn:
        yield look.paint("35", "  ! its last write was cut off; `tarmac doctor --repair` cleans up") + "\n"
    yield "\n"
    teller = Teller(look, past=True)
    for event in reading.events:
        if told := teller.event(event):
            yield told
    if meta.questions:
        yield look.paint("35", "\nIt waits for an answer") + f": tarmac resume {one_line(task)}\n"
