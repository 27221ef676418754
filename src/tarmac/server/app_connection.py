"""A connection to the app of another process: verbs go out, replies and frames come in.

connection = AppConnection(await connect(path), heard=…)
await connection.open("cli")
await connection.request("create", text="make the tests pass")
"""

import asyncio
import base64
import itertools
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Literal

from tarmac.errors import BadRequest, DirectoryUnavailable, PeerGone, PeerRefused
from tarmac.events import TaskId
from tarmac.policy.approval import Picture
from tarmac.server.unix_socket import Channel, connect, sockets_of

DoorName = Literal["cli", "acp", "web"]
Json = dict[str, Any]
TO_ANSWER: Final = 30.0  # seconds for a reply; what takes longer is told by events
TO_CREATE: Final = 60.0  # seconds for a new task: its workspace may be new to the server


class AppConnection:
    """One connection. `heard` gets text frames, `drawn` binary ones; `lost` is called when there are no more."""

    def __init__(
        self,
        channel: Channel,
        *,
        heard: Callable[[Json], object] = bool,
        drawn: Callable[[bytes], object] = bool,
        lost: Callable[[], object] = bool,
    ) -> None:
        self._channel = channel
        self._heard, self._drawn, self._lost = heard, drawn, lost
        self._ids = itertools.count(1)
        self._replies: dict[int, asyncio.Future[Json]] = {}
        self._gone = False
        self._reading: asyncio.Task[None] | None = None
        self._sending: set[asyncio.Task[None]] = set()

    async def open(self, door: DoorName) -> None:
        """Say which door this is, and read from now on."""
        await self._channel.send_text(json.dumps({"door": door}))
        self._reading = asyncio.create_task(self._read())

    async def request(self, do: str, *, timeout: float = TO_ANSWER, **fields: object) -> Json:
        """Send a verb, and wait for the reply. BadRequest: it was refused. PeerGone: the other process ended."""
        number = next(self._ids)
        reply = self._replies[number] = asyncio.get_running_loop().create_future()
        try:
            if self._gone:
                raise PeerGone("the process that has the task is gone")
            if self._sending:  # in the order in which they were said
                await asyncio.wait(list(self._sending))
            await self._channel.send_text(json.dumps({"do": do, "id": number, **fields}))
            async with asyncio.timeout(timeout):
                found: Json = await reply
        except TimeoutError:
            raise PeerGone(f"the process that has the task did not answer within {timeout:g} s") from None
        finally:
            del self._replies[number]
        if error := found.get("error"):
            raise BadRequest(error["what"], hint=error["hint"])
        return dict(found.get("ok") or {})

    def post(self, do: str, **fields: object) -> None:
        """Say a verb without waiting."""
        before = list(self._sending)

        async def send() -> None:
            if before:
                await asyncio.wait(before)
            try:
                await self._channel.send_text(json.dumps({"do": do, **fields}))
            except PeerGone:  # `_read` tells
                pass

        task = asyncio.create_task(send())
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _read(self) -> None:
        why: Exception = PeerGone("the process that has the task is gone")
        try:
            while True:
                frame = await self._channel.receive()
                if isinstance(frame, bytes):
                    self._drawn(frame)
                else:
                    self._take(json.loads(frame))
        except (PeerGone, PeerRefused) as error:
            why = error
        except ValueError:
            why = PeerGone("the process that has the task speaks nonsense")
        finally:
            self._gone = True
            self._lost()
            for reply in self._replies.values():
                if not reply.done():
                    reply.set_exception(why)

    def _take(self, frame: Json) -> None:
        match frame:
            case {"type": "reply", "id": int(number)}:
                if (reply := self._replies.get(number)) is not None and not reply.done():
                    reply.set_result(frame)
            case _:
                self._heard(frame)

    async def aclose(self) -> None:
        """Say what is on its way, and leave. May be called twice."""
        if self._sending:
            await asyncio.wait(self._sending, timeout=1)
        self._gone = True
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)
        await self._channel.close()


def pasted(images: Iterable[Picture]) -> list[Json]:
    """Pictures as fields of a verb."""
    return [{"media_type": media, "base64": base64.b64encode(data).decode()} for data, media in images]


async def create_task_in(state: Path, pid: int, fields: Mapping[str, object], *, door: DoorName) -> TaskId:
    """Create a task in the app of another process; `fields` are those of the verb `create`."""
    why = "it lets nobody in"
    for path in sockets_of(state, pid):
        try:
            connection = AppConnection(await connect(path))
        except (PeerGone, PeerRefused, DirectoryUnavailable) as error:
            why = error.what
            continue
        try:
            await connection.open(door)
            return TaskId((await connection.request("create", timeout=TO_CREATE, **fields))["task"])
        finally:
            await connection.aclose()
    raise BadRequest(f"process {pid} can't be asked for a task: {why}", hint="is it a `tarmac serve` of this version?")
