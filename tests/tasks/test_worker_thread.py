"""The thread that does what blocks."""

import asyncio
import threading
from functools import partial

import pytest

from tarmac.tasks.log.disk import WorkerThread


async def test_a_worker_does_one_thing_after_another_in_order() -> None:
    worker, done = WorkerThread("test"), list[int]()
    await asyncio.gather(*(worker.do(partial(done.append, n)) for n in range(50)))
    worker.close()
    assert done == list(range(50))


async def test_what_fails_is_raised_to_the_one_who_waits_and_the_next_is_done() -> None:
    worker = WorkerThread("test")
    with pytest.raises(ZeroDivisionError):
        await worker.do(lambda: 1 / 0)
    assert await worker.do(lambda: 7) == 7
    worker.close()


async def test_whoever_stops_waiting_stops_nothing() -> None:
    worker, going, done = WorkerThread("test"), threading.Event(), list[str]()

    def work() -> None:
        going.wait(5)
        done.append("work")

    waiting = asyncio.create_task(worker.do(work))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    going.set()
    await worker.do(lambda: done.append("next"))
    worker.close()
    assert done == ["work", "next"]


async def test_a_closed_worker_ends_after_its_work_and_starts_again() -> None:
    worker = WorkerThread("test")
    first = await worker.do(threading.current_thread)
    later = asyncio.ensure_future(worker.do(lambda: "done"))
    await asyncio.sleep(0)
    worker.close()
    assert await later == "done"
    second = await worker.do(threading.current_thread)
    worker.close()
    for thread in (first, second):
        await asyncio.to_thread(thread.join, 5)
    assert (first is second, first.is_alive(), second.is_alive()) == (False, False, False)


def test_nobody_is_left_to_tell_when_the_loop_is_closed() -> None:
    worker, going = WorkerThread("test"), threading.Event()

    async def leave() -> None:
        worker.give(lambda: going.wait(5), lambda result, error: None)

    asyncio.run(leave())
    thread = worker._thread
    assert thread is not None
    worker.close()
    going.set()
    thread.join(5)
    assert not thread.is_alive()
