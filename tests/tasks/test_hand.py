"""The thread that does what blocks."""

import asyncio
import threading
from functools import partial

import pytest

from tarmac.tasks.hand import Hand


async def test_a_hand_does_one_thing_after_another_in_order() -> None:
    hand, done = Hand("test"), list[int]()
    await asyncio.gather(*(hand.do(partial(done.append, n)) for n in range(50)))
    hand.close()
    assert done == list(range(50))


async def test_what_fails_is_raised_to_the_one_who_waits_and_the_next_is_done() -> None:
    hand = Hand("test")
    with pytest.raises(ZeroDivisionError):
        await hand.do(lambda: 1 / 0)
    assert await hand.do(lambda: 7) == 7
    hand.close()


async def test_whoever_stops_waiting_stops_nothing() -> None:
    hand, going, done = Hand("test"), threading.Event(), list[str]()

    def work() -> None:
        going.wait(5)
        done.append("work")

    waiting = asyncio.create_task(hand.do(work))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    going.set()
    await hand.do(lambda: done.append("next"))
    hand.close()
    assert done == ["work", "next"]


async def test_a_closed_hand_ends_after_its_work_and_starts_again() -> None:
    hand = Hand("test")
    first = await hand.do(threading.current_thread)
    later = asyncio.ensure_future(hand.do(lambda: "done"))
    await asyncio.sleep(0)
    hand.close()
    assert await later == "done"
    second = await hand.do(threading.current_thread)
    hand.close()
    for thread in (first, second):
        await asyncio.to_thread(thread.join, 5)
    assert (first is second, first.is_alive(), second.is_alive()) == (False, False, False)


def test_nobody_is_left_to_tell_when_the_loop_is_closed() -> None:
    hand, going = Hand("test"), threading.Event()

    async def leave() -> None:
        hand.give(lambda: going.wait(5), lambda result, error: None)

    asyncio.run(leave())
    thread = hand._thread
    assert thread is not None
    hand.close()
    going.set()
    thread.join(5)
    assert not thread.is_alive()
