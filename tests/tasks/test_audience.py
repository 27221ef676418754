"""Who looks on sees facts and signals in the order they happened, and disturbs nobody."""

import asyncio
from pathlib import Path

from tarmac.events import TaskId
from tarmac.tasks.events import CallId, TaskEvent, UserSaid
from tarmac.tasks.log import create_log
from tarmac.tasks.signals import MOST_HELD, Audience, ProgressMade, Signal


def _signal(text: str) -> ProgressMade:
    return ProgressMade(call=CallId("c"), text=text)


async def test_a_signal_waits_for_the_facts_before_it_and_for_no_others(tmp_path: Path) -> None:
    """S18: in order, events once they are durable."""
    heard: list[str] = []
    async with create_log(tmp_path / "t", TaskId("t")) as log:
        audience = Audience(log)
        audience.subscribe(lambda seq, thing: heard.append(f"{seq} {thing.text}"))  # type: ignore[union-attr]
        audience.show(_signal("at once"))
        assert heard == ["None at once"]
        log.add(UserSaid(at=0, text="one"))
        audience.show(_signal("after one"))
        log.add(UserSaid(at=0, text="two"))
        audience.show(_signal("after two"))
        assert len(heard) == 1
        await log.commit()
    assert heard == ["None at once", "1 one", "None after one", "2 two", "None after two"]


async def test_who_fails_or_leaves_keeps_nothing_from_the_others(tmp_path: Path) -> None:
    """S18: a front end's trouble is not the task's."""
    heard: list[TaskEvent | Signal] = []
    faults: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context["message"]))
    async with create_log(tmp_path / "t", TaskId("t")) as log:
        audience = Audience(log)

        def fails(*_: object) -> None:
            raise RuntimeError("mine")

        leave = audience.subscribe(fails)
        audience.subscribe(lambda _, thing: heard.append(thing))
        await log.append(UserSaid(at=0, text="one"))
        leave()
        leave()
        await log.append(UserSaid(at=0, text="two"))
    assert len(heard) == 2
    assert faults == ["a listener of a task failed"]


async def test_signals_are_not_held_back_without_end(tmp_path: Path) -> None:
    """S3: on a full disk facts wait; what can be shown is shown."""
    heard: list[TaskEvent | Signal] = []
    async with create_log(tmp_path / "t", TaskId("t")) as log:
        audience = Audience(log)
        audience.subscribe(lambda _, thing: heard.append(thing))
        log.add(UserSaid(at=0, text="one"))
        for number in range(MOST_HELD + 1):
            audience.show(_signal(str(number)))
        assert [each.text for each in heard[:2]] == ["0", "1"]  # type: ignore[union-attr]
        assert len(heard) == MOST_HELD + 1
