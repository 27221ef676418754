"""Many machines as one: each new terminal goes to the node with the most room. Ray finds the nodes.

Pool → ClusterMachine.open() → choose_node() → RemoteMachine of that node → its host

open_ray(address) → ray.init() → one RayHost actor on each node → RayTransport → ClusterMachine
RayHost: connect() → a connection · receive(connection, bytes) · send(connection) → bytes, when there are some

When a node dies, its own terminals fail with ConnectionLost, and it gets no new ones. Other nodes are not affected. The
actors end with the program that started them. `survey()` asks those of all programs, for `tarmac fleet`. Only this
module imports Ray, and only when a cluster is used.
"""

import asyncio
import os
import secrets
import signal
import threading
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Self

from tarmac.errors import ConnectionLost, PlaceFailed, PlaceUnavailable, Trouble
from tarmac.fleet.remote_terminal import RemoteMachine
from tarmac.fleet.transport import Transport
from tarmac.terminals.events import Listeners, TerminalClosedEvent
from tarmac.terminals.host.byte_stream import ByteStream, MemoryStream, memory_streams
from tarmac.terminals.host.host import Host
from tarmac.terminals.shell.dialects import shell_elsewhere
from tarmac.terminals.shell.shells import Shell
from tarmac.terminals.terminal import NewTerminal, Terminal


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLimits:
    """For each node."""

    terminals: int = 200
    starts: int = 8  # shells that start at once: more of them are not ready sooner

    def __post_init__(self) -> None:
        if self.terminals < 1 or self.starts < 1:
            raise ValueError("a node has room for at least one terminal")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRoom:
    """How full a node is."""

    name: str
    limit: int
    terminals: int = 0  # open, or about to be
    cores: float = 1.0
    alive: bool = True

    @property
    def free(self) -> int:
        return max(self.limit - self.terminals, 0) if self.alive else 0


def choose_node(nodes: Iterable[NodeRoom]) -> NodeRoom | None:
    """PURE. The node with the fewest terminals for each core, of those that have room; None: none has.

    Equal ones are chosen by name, so that the choice does not depend on their order.
    """
    return min(
        (each for each in nodes if each.free), key=lambda node: (node.terminals / node.cores, node.name), default=None
    )


@dataclass(slots=True)
class _Node:
    machine: RemoteMachine
    limits: NodeLimits
    cores: float
    terminals: set[str] = field(default_factory=set)
    opening: int = 0
    starts: asyncio.Semaphore = field(init=False)

    def __post_init__(self) -> None:
        self.starts = asyncio.Semaphore(self.limits.starts)

    @property
    def room(self) -> NodeRoom:
        return NodeRoom(
            name=self.machine.name,
            limit=self.limits.terminals,
            terminals=len(self.terminals) + self.opening,
            cores=self.cores,
            alive=self.machine.connection.gone is None,
        )


class ClusterMachine:
    """A machine whose terminals are on many. Connected while its block runs."""

    def __init__(
        self, nodes: Sequence[tuple[Transport, float]], *, limits: NodeLimits | None = None, patience: float = 10.0
    ) -> None:
        """`nodes` are transports with the number of cores behind each. A lost node is tried for `patience` seconds."""
        self._transports = nodes
        self._limits = limits or NodeLimits()
        self._patience = patience
        self._nodes: dict[str, _Node] = {}
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            connected = await asyncio.gather(
                *(self._connect(stack, transport, cores) for transport, cores in self._transports),
                return_exceptions=True,
            )
            failed = [each for each in connected if isinstance(each, BaseException)]
            for each in failed:
                if not isinstance(each, PlaceFailed):
                    raise each
            if not self._nodes:
                raise (
                    failed[0]
                    if failed
                    else PlaceUnavailable(
                        "the cluster has no node",
                        trouble=Trouble.NOT_FOUND,
                        hint="start one, and wait until it has joined",
                    )
                )
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def _connect(self, stack: AsyncExitStack, transport: Transport, cores: float) -> None:
        machine = await stack.enter_async_context(RemoteMachine(transport, patience=self._patience))
        self._nodes[machine.name] = _Node(machine, self._limits, max(cores, 0.1))

    @property
    def rooms(self) -> list[NodeRoom]:
        """How full each node is."""
        return [each.room for each in self._nodes.values()]

    def node_of(self, terminal: str) -> str | None:
        """The node of the terminal with that id."""
        return next((name for name, each in self._nodes.items() if terminal in each.terminals), None)

    # Machine

    def check_directory(self, path: Path | None) -> Path:
        return next(iter(self._nodes.values())).machine.check_directory(path)

    def nearest_directory(self, path: Path) -> Path:
        return path

    def shell(self, name: str | None) -> Shell:
        return shell_elsewhere(name)

    async def open(self, new: NewTerminal, *, listeners: Listeners | None = None) -> Terminal:
        """Open it where there is most room. A node that fails meanwhile is left out, and the next one is tried."""
        while (chosen := choose_node(self.rooms)) is not None:
            node = self._nodes[chosen.name]
            node.opening += 1
            try:
                async with node.starts:
                    terminal = await node.machine.open(new, listeners=listeners)
            except PlaceFailed:
                if node.room.alive:  # no word of the node's: it was this one request
                    raise
                continue
            finally:
                node.opening -= 1
            self._count(node, terminal)
            return terminal
        raise PlaceUnavailable(
            f"no node has room for another terminal: {_described(self.rooms)}",
            trouble=Trouble.NO_ROOM,
            hint="close some, add a node, or raise the limit for each node",
        )

    def _count(self, node: _Node, terminal: Terminal) -> None:
        node.terminals.add(terminal.id)

        terminal.subscribe(lambda event: node.terminals.discard(event.terminal), TerminalClosedEvent)


def _described(rooms: Sequence[NodeRoom]) -> str:
    alive = [each for each in rooms if each.alive]
    return f"{len(alive)} of {len(rooms)} nodes are alive, with {sum(each.terminals for each in alive)} terminals"


class RayHost:
    """The host of one node, as an actor: it keeps the terminals of the node.

    There is one actor for each node, not for each terminal. An actor is a process of 100 MB. A terminal in it costs a
    few kilobytes.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._host: Host | None = None
        self._streams: dict[int, MemoryStream] = {}
        self._serving: set[asyncio.Task[None]] = set()
        self._numbers = 0

    async def connect(self) -> int:
        if self._host is None:
            self._host = await Host().__aenter__()
        near, far = memory_streams()
        self._numbers += 1
        self._streams[self._numbers] = near
        task = asyncio.get_running_loop().create_task(self._host.serve(far))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)
        return self._numbers

    async def receive(self, connection: int, data: bytes) -> None:
        if (stream := self._streams.get(connection)) is not None:
            stream.write(data)

    async def send(self, connection: int) -> bytes:
        """The next bytes for the client; b"" at the end."""
        stream = self._streams.get(connection)
        data = await stream.read() if stream is not None else b""
        if not data:
            self._streams.pop(connection, None)
        return data

    async def end(self, connection: int) -> None:
        if (stream := self._streams.pop(connection, None)) is not None:
            stream.abort()

    async def load(self) -> dict[str, float]:
        sessions = self._host.sessions.values() if self._host is not None else ()
        terminals = [each for session in sessions for each in session.terminals.values()]
        return {
            "terminals": len(terminals),
            "busy": sum(each.busy for each in terminals),
            "limit": self._limit,
            "load": round(os.getloadavg()[0], 2),
            "cores": os.cpu_count() or 1,
            "pid": os.getpid(),
        }

    async def leave(self) -> None:
        """End all terminals."""
        if self._host is not None:
            host, self._host = self._host, None
            await host.__aexit__()


NAMESPACE = "tarmac"
PREFIX = "host-"
MOST_CALLS = 10_000  # at once, for one actor
START_PATIENCE = 60.0
GOODBYE = 5.0
TCP_PATIENCE = 10.0
INIT_PATIENCE = 30.0  # Ray takes seconds on a busy machine


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeReport:
    """A node, as `tarmac fleet` shows it."""

    name: str
    address: str
    alive: bool
    cores: float
    hosts: int = 0  # programs with terminals there
    terminals: int = 0
    busy: int = 0
    limit: int = 0
    load: float | None = None  # of the last minute; None: no host there can tell


def _ray() -> Any:
    try:
        return import_module("ray")
    except ImportError:
        raise PlaceUnavailable(
            "Ray is not installed here", trouble=Trouble.NO_CLIENT, hint="pip install 'tarmac[ray]'"
        ) from None


@asynccontextmanager
async def open_ray(address: str = "") -> AsyncIterator[ClusterMachine]:
    """The cluster at `address`, or the one that this machine belongs to. A program's own connection to Ray is used."""
    limits = NodeLimits()
    async with _connected(address) as ray:
        nodes = [each for each in await asyncio.to_thread(ray.nodes) if each["Alive"]]
        actors = [_start_host(ray, each["NodeID"], limits) for each in nodes]
        named = [_named(ray, node, actor) for node, actor in zip(nodes, actors, strict=True)]
        try:
            async with ClusterMachine(named, limits=limits) as machine:
                yield machine
        finally:
            await _end(ray, actors)


async def survey(address: str = "") -> list[NodeReport]:
    """The nodes of a cluster, and the terminals of all programs on them."""
    async with _connected(address) as ray:
        nodes = await asyncio.to_thread(ray.nodes)
        listed = await asyncio.to_thread(ray.util.list_named_actors, all_namespaces=True)
        names = [each["name"] for each in listed if each["namespace"] == NAMESPACE and each["name"].startswith(PREFIX)]
        loads = await asyncio.gather(*(_load_of(ray, name) for name in names))
        told = [(name, load) for name, load in zip(names, loads, strict=True) if load is not None]
        return [
            _report(node, [load for name, load in told if name.startswith(_prefix(node["NodeID"]))]) for node in nodes
        ]


def _report(node: dict[str, Any], loads: list[dict[str, float]]) -> NodeReport:
    return NodeReport(
        name=node["NodeID"][:12],
        address=node["NodeManagerAddress"],
        alive=node["Alive"],
        cores=float(node.get("Resources", {}).get("CPU", 0)),
        hosts=len(loads),
        terminals=int(sum(each["terminals"] for each in loads)),
        busy=int(sum(each["busy"] for each in loads)),
        limit=int(max((each["limit"] for each in loads), default=0)),
        load=loads[0]["load"] if loads else None,
    )


async def _load_of(ray: Any, name: str) -> dict[str, float] | None:
    try:
        actor = await asyncio.to_thread(ray.get_actor, name, NAMESPACE)
        found: dict[str, float] = await asyncio.wait_for(_result(actor.load.remote()), GOODBYE)
    except (ValueError, TimeoutError, ray.exceptions.RayError):
        return None
    return found


@asynccontextmanager
async def _connected(address: str) -> AsyncIterator[Any]:
    ray = _ray()
    if ray.is_initialized():
        yield ray
        return
    try:
        if address:
            await _see_whether_anybody_listens(address)
        async with asyncio.timeout(INIT_PATIENCE):
            await _init(ray, address)
        if threading.current_thread() is threading.main_thread() and (handler := signal.getsignal(signal.SIGTERM)):
            signal.signal(signal.SIGTERM, handler)  # Ray took it, and would only print a stack
    except (OSError, RuntimeError, ValueError) as error:
        why = str(error)[:200] or f"it did not answer within {INIT_PATIENCE:g} s"
        if isinstance(error, OSError) and error.errno:
            why = os.strerror(error.errno) if error.errno > 0 else error.strerror or why
        raise PlaceUnavailable(
            f"no Ray cluster answers{f' at {address}' if address else ' on this machine'}: {why}",
            trouble=Trouble.UNREACHABLE,
            hint="start one (`ray start --head`), or give its address: ray://HOST:6379",
        ) from None
    try:
        yield ray
    finally:
        await asyncio.to_thread(ray.shutdown)


async def _see_whether_anybody_listens(address: str) -> None:
    """OSError if not. Ray itself would try again for ever, and print each time."""
    host, _, port = address.rpartition(":")
    if not (host and port.isdecimal()):
        raise ValueError("the address has no port")
    async with asyncio.timeout(TCP_PATIENCE):
        _, writer = await asyncio.open_connection(host.strip("[]"), int(port))
    writer.close()


async def _init(ray: Any, address: str) -> None:
    """`ray.init` in a thread that may be left behind: it can block for ever, and no signal ends it."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def tell(error: Exception | None) -> None:
        if done.done():
            return
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)

    def init() -> None:
        failed = None
        try:
            ray.init(address=address or "auto", namespace=NAMESPACE, log_to_driver=False, logging_level="ERROR")
        except Exception as error:
            failed = error
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(tell, failed)

    threading.Thread(target=init, daemon=True).start()
    await done


def _prefix(node: str) -> str:
    return f"{PREFIX}{node[:24]}-"


def _start_host(ray: Any, node: str, limits: NodeLimits) -> Any:
    """An actor on that node and no other, which takes no core away from those who compute."""
    affinity = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node, soft=False)
    actor = ray.remote(RayHost).options(
        name=_prefix(node) + secrets.token_hex(6),
        namespace=NAMESPACE,
        num_cpus=0,
        max_concurrency=MOST_CALLS,
        max_restarts=0,
        scheduling_strategy=affinity,
    )
    return actor.remote(limits.terminals)


def _named(ray: Any, node: dict[str, Any], actor: Any) -> tuple["RayTransport", float]:
    shown = f"ray://{node['NodeManagerAddress']}/{node['NodeID'][:12]}"
    return RayTransport(shown, ray, actor), float(node.get("Resources", {}).get("CPU", 1))


async def _end(ray: Any, actors: list[Any]) -> None:
    async def end(actor: Any) -> None:
        try:
            await asyncio.wait_for(_result(actor.leave.remote()), GOODBYE)
        except (TimeoutError, ray.exceptions.RayError):
            pass
        await asyncio.to_thread(ray.kill, actor)

    await asyncio.gather(*(end(each) for each in actors), return_exceptions=True)


async def _result(reference: Any) -> Any:
    return await reference


class RayTransport:
    """Connections to the host of one node, through calls of its actor."""

    def __init__(self, name: str, ray: Any, actor: Any) -> None:
        self.name = name
        self._ray, self._actor = ray, actor

    async def connect(self, session: str, *, new: bool) -> ByteStream:
        try:
            number = await asyncio.wait_for(_result(self._actor.connect.remote()), START_PATIENCE)
        except TimeoutError:
            raise PlaceUnavailable(
                f"{self.name} did not start a host within {START_PATIENCE:g} s", trouble=Trouble.SILENT
            ) from None
        except self._ray.exceptions.RayError as error:
            what = f"the node {self.name} is gone: {type(error).__name__}"
            if new:
                raise PlaceUnavailable(
                    what, trouble=Trouble.UNREACHABLE, hint="is it still in `tarmac fleet`?"
                ) from None
            raise ConnectionLost(what, hint="its terminals ended with it: open new ones") from None
        return RayStream(self._ray, self._actor, number)


class RayStream(ByteStream):
    """One connection: what is written is sent in order, one call at a time; a read waits in the actor."""

    def __init__(self, ray: Any, actor: Any, number: int) -> None:
        self._ray, self._actor, self._number = ray, actor, number
        self._unsent = bytearray()
        self._sender: asyncio.Task[None] | None = None
        self._over = False
        self._reading: asyncio.Task[bytes] | None = None

    async def read(self) -> bytes:
        if self._over:
            return b""
        self._reading = asyncio.ensure_future(_result(self._actor.send.remote(self._number)))
        try:
            data: bytes = await self._reading
        except self._ray.exceptions.RayError:
            data = b""
        except asyncio.CancelledError:
            if not self._over:
                raise
            data = b""
        self._over = self._over or not data
        return b"" if self._over else data

    def write(self, data: bytes) -> None:
        if self._over:
            return
        self._unsent += data
        if self._sender is None:
            self._sender = asyncio.get_running_loop().create_task(self._send())

    async def _send(self) -> None:
        try:
            while self._unsent:
                data = bytes(self._unsent)
                self._unsent.clear()
                await _result(self._actor.receive.remote(self._number, data))
        except self._ray.exceptions.RayError:
            self._over = True
        finally:
            self._sender = None

    async def drain(self) -> None:
        if self._sender is not None:
            await asyncio.wait([self._sender])

    def abort(self) -> None:
        if not self._over:
            self._over = True
            if self._reading is not None:
                self._reading.cancel()
            self._actor.end.remote(self._number)

    async def aclose(self) -> None:
        if self._sender is not None:
            await asyncio.wait([self._sender], timeout=GOODBYE)
        self.abort()
