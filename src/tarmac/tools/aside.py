"""Work on the content of a file: where there is much of it, in a thread, so that nobody else waits."""

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

MUCH = 64 << 10  # bytes; for less a thread would cost more than the work
P = ParamSpec("P")
T = TypeVar("T")


async def aside(size: int, work: Callable[P, T], *args: P.args, **values: P.kwargs) -> T:
    """What `work` gives, for a content of that size."""
    return work(*args, **values) if size < MUCH else await asyncio.to_thread(work, *args, **values)
