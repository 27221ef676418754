"""Placement on many nodes. Here the nodes are hosts behind sockets of this machine."""

import asyncio
import os
import signal
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarmac.errors import PlaceFailed, PlaceUnavailable, Trouble
from tarmac.fleet.cluster import ClusterMachine, NodeLimits, NodeRoom, choose_node
from tarmac.fleet.transport import UnixTransport
from tarmac.terminals import Pool, Settings
from tarmac.terminals.host.byte_stream import ByteStream
from tarmac.terminals.host.host import socket_path

LONG = 30.0

rooms = st.lists(
    st.builds(
        NodeRoom,
        name=st.text("abcdef", min_size=1, max_size=3),
        limit=st.integers(1, 50),
        terminals=st.integers(0, 60),
        cores=st.floats(0.1, 64),
        alive=st.booleans(),
    ),
    max_size=8,
    unique_by=lambda room: room.name,
)


@given(rooms)
def test_only_a_living_node_with_room_is_chosen(nodes: list[NodeRoom]) -> None:
    """F6."""
    chosen = choose_node(nodes)
    usable = [each for each in nodes if each.alive and each.terminals < each.limit]
    assert (chosen in usable) if usable else chosen is None


@given(rooms, st.randoms())
def test_the_choice_does_not_depend_on_the_order(nodes: list[NodeRoom], random: st.DrawFn) -> None:
    """F6."""
    mixed = list(nodes)
    random.shuffle(mixed)  # type: ignore[attr-defined]
    assert choose_node(mixed) == choose_node(nodes)


@given(st.integers(1, 12), st.integers(1, 40), st.integers(0, 200))
def test_equal_nodes_are_filled_evenly_up_to_their_limit(count: int, limit: int, wanted: int) -> None:
    """F6."""
    placed: Counter[str] = Counter()
    names = [f"n{number}" for number in range(count)]
    for number in range(wanted):
        node = choose_node([NodeRoom(name=name, limit=limit, terminals=placed[name]) for name in names])
        assert (node is None) == (number >= count * limit)
        if node is not None:
            placed[node.name] += 1
    assert max(placed.values(), default=0) - min((placed[name] for name in names), default=0) <= 1


class NamedTransport:
    """A host of its own on this machine, and its pid, so that a test can kill it."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def connect(self, session: str, *, new: bool) -> ByteStream:
        return await UnixTransport().connect(session, new=new)


def kill(machine: ClusterMachine, name: str) -> None:
    """As when the machine loses its power: nothing is put in order."""
    connection = machine._nodes[name].machine.connection
    os.kill(int(str(connection.welcome["pid"])), signal.SIGKILL)
    socket_path(connection.session).unlink()


@pytest.mark.shell
async def test_a_killed_node_fails_only_its_own_terminals(tmp_path: Path) -> None:
    """F6, F5."""
    nodes = [(NamedTransport(name), 1.0) for name in ("one", "two", "three")]
    async with (
        asyncio.timeout(4 * LONG),
        ClusterMachine(nodes, patience=1.0) as machine,
        Pool(Settings(warm_pool=0, start_up_files=False), machine=machine) as pool,
    ):
        terminals = [await pool.open(cwd=tmp_path) for _ in range(6)]
        where = {each.id: machine.node_of(each.id) for each in terminals}
        assert Counter(where.values()) == {"one": 2, "two": 2, "three": 2}
        running = {each.id: await each.start("read line; echo got-$line") for each in terminals}
        kill(machine, "two")
        for id, execution in running.items():
            if where[id] == "two":
                try:
                    assert (await execution.result(LONG)).reason == "connection lost"
                except PlaceFailed:
                    pass
            else:
                await execution.send("on\n")
                result = await execution.result(LONG)
                assert (result.exit_code, result.output.split()[-1]) == (0, "got-on")
        again = await pool.open(cwd=tmp_path)
        assert machine.node_of(again.id) in ("one", "three")
        assert (await again.run("echo here")).output == "here\n"


@pytest.mark.shell
async def test_full_nodes_say_so_by_type_and_closing_makes_room(tmp_path: Path) -> None:
    """F6."""
    limits = NodeLimits(terminals=1, starts=1)
    async with (
        asyncio.timeout(2 * LONG),
        ClusterMachine([(NamedTransport("one"), 1.0)], limits=limits) as machine,
        Pool(Settings(warm_pool=0, start_up_files=False), machine=machine) as pool,
    ):
        first = await pool.open(cwd=tmp_path)
        with pytest.raises(PlaceUnavailable) as caught:
            await pool.open(cwd=tmp_path)
        assert caught.value.trouble is Trouble.NO_ROOM
        await first.aclose()
        assert (await (await pool.open(cwd=tmp_path)).run("echo again")).output == "again\n"


async def test_a_cluster_without_nodes_is_told_by_type() -> None:
    """F6."""
    with pytest.raises(PlaceUnavailable):
        async with ClusterMachine([]):
            pass
