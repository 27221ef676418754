"""Many machines as one: each new terminal goes to the node with the most room.

Pool → ClusterMachine.open() → choose_node() → RemoteMachine of that node → its host

When a node dies, its own terminals fail with ConnectionLost, and it gets no new ones. Other nodes are not affected.
"""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from tarmac.errors import PlaceFailed, PlaceUnavailable, Trouble
from tarmac.fleet.remote_terminal import RemoteMachine
from tarmac.fleet.transport import Transport
from tarmac.terminals.events import TerminalClosedEvent, TerminalEvent
from tarmac.terminals.open import NewTerminal
from tarmac.terminals.shell.dialects import shell_elsewhere
from tarmac.terminals.shell.shells import Shell
from tarmac.terminals.terminal import Listener, Terminal


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

    async def open(self, new: NewTerminal, *, listener: Listener | None = None) -> Terminal:
        """Open it where there is most room. A node that fails meanwhile is left out, and the next one is tried."""
        while (chosen := choose_node(self.rooms)) is not None:
            node = self._nodes[chosen.name]
            node.opening += 1
            try:
                async with node.starts:
                    terminal = await node.machine.open(new, listener=listener)
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

        def hear(event: TerminalEvent) -> None:
            if isinstance(event, TerminalClosedEvent):
                node.terminals.discard(terminal.id)

        terminal.subscribe(hear)


def _described(rooms: Sequence[NodeRoom]) -> str:
    alive = [each for each in rooms if each.alive]
    return f"{len(alive)} of {len(rooms)} nodes are alive, with {sum(each.terminals for each in alive)} terminals"
