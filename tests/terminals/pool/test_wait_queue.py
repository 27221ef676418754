"""The queue of callers by itself: what they want are letters in a box."""

import asyncio

import pytest

from tarmac.terminals.pool.entries import WaitQueue


class Box:
    """Gives the letter that is asked for, or any for `*`."""

    def __init__(self, letters: str = "") -> None:
        self.letters = letters
        self.queue: WaitQueue[str, str] = WaitQueue(self.take, self.put)

    def take(self, wish: str) -> str | None:
        if wish == "!":
            raise ValueError("no such thing")
        found = next((each for each in self.letters if wish in ("*", each)), None)
        if found is not None:
            self.letters = self.letters.replace(found, "", 1)
        return found

    def put(self, letter: str) -> None:
        self.letters += letter
        self.queue.serve()

    async def get(self, wish: str, *, seconds: float = 10, first: bool = False) -> str:
        return await self.queue.get(wish, seconds=seconds, late=lambda: TimeoutError("late"), first=first)


async def waiting(box: Box, *wishes: str) -> list["asyncio.Task[str]"]:
    tasks = [asyncio.create_task(box.get(each)) for each in wishes]
    await asyncio.sleep(0)
    return tasks


async def test_what_is_there_is_given_at_once() -> None:
    """T12."""
    box = Box("ab")
    assert [await box.get("b"), await box.get("*"), len(box.queue)] == ["b", "a", 0]


async def test_waiters_are_served_in_order() -> None:
    """T12."""
    box = Box()
    tasks = await waiting(box, "*", "*", "*")
    for letter in "xyz":
        box.put(letter)
    assert await asyncio.gather(*tasks) == ["x", "y", "z"]


async def test_one_who_cannot_be_served_holds_up_nobody_else() -> None:
    """T12: those behind get what those before could not use, and nothing else."""
    box = Box()
    tasks = await waiting(box, "a", "*", "a")
    box.put("b")
    assert await tasks[1] == "b"
    box.put("a")
    assert await tasks[0] == "a"
    assert not tasks[2].done()
    box.put("a")
    assert await tasks[2] == "a"


async def test_a_newcomer_does_not_overtake() -> None:
    """T12: also when what it wants came without anybody being told."""
    box = Box()
    (early,) = await waiting(box, "*")
    box.letters = "a"
    (late,) = await waiting(box, "*")
    assert await early == "a"
    assert not late.done()
    box.put("b")
    assert await late == "b"


async def test_who_was_robbed_goes_first() -> None:
    box = Box()
    (early,) = await waiting(box, "*")
    late = asyncio.create_task(box.get("*", first=True))
    await asyncio.sleep(0)
    box.put("a")
    assert await late == "a"
    box.put("b")
    assert await early == "b"


async def test_a_wait_ends_in_time() -> None:
    """T12: `lease_timeout`."""
    box = Box()
    with pytest.raises(TimeoutError, match="late"):
        await box.get("*", seconds=0.01)
    assert len(box.queue) == 0
    box.put("a")
    assert box.letters == "a"


async def test_a_cancelled_waiter_loses_nothing() -> None:
    """T12: cancelled while it waits, or in the moment between being served and running again."""
    box = Box()
    gone, served, next_one = await waiting(box, "*", "*", "*")
    gone.cancel()
    await asyncio.sleep(0)
    box.put("a")
    served.cancel()  # "a" is its already
    results = await asyncio.gather(gone, served, next_one, return_exceptions=True)
    assert [isinstance(each, asyncio.CancelledError) for each in results[:2]] == [True, True]
    assert (results[2], box.letters, len(box.queue)) == ("a", "", 0)


async def test_an_error_is_the_callers_own() -> None:
    box = Box("a")
    with pytest.raises(ValueError, match="no such thing"):
        await box.get("!")
    assert (await box.get("*"), len(box.queue)) == ("a", 0)


async def test_all_are_sent_away_at_the_end() -> None:
    box = Box()
    tasks = await waiting(box, "*", "*")
    box.queue.close(lambda: RuntimeError("closed"))
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [str(each) for each in results] == ["closed", "closed"]
