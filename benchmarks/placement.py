"""10,000 terminals over 10 nodes, as a simulation of the placement alone; and what a terminal costs on one node.

    python -m benchmarks.placement             the simulation
    python -m benchmarks.placement 100 1000    also opens so many terminals on a host, and prints what each costs

The simulation opens and closes at random, kills a node half-way, and counts how uneven the nodes become.
"""

import asyncio
import random
import sys
import time
from pathlib import Path

from benchmarks.fleet import own_memory
from benchmarks.home import private_home
from tarmac.fleet import RemoteMachine, open_terminals
from tarmac.fleet.cluster import NodeRoom, choose_node
from tarmac.terminals import Settings, Terminal

NODES, WANTED, LIMIT = 10, 10_000, 1_200
COMMANDS = 100  # that are run at each count


def simulate(seed: int = 1) -> str:
    """Fill the cluster with terminals that come and go; then a node dies."""
    chance = random.Random(seed)
    counts = {f"node{number}": 0 for number in range(NODES)}
    dead: set[str] = set()
    decisions, spent, most_uneven = 0, 0.0, 0
    while sum(counts.values()) < WANTED:
        if sum(counts.values()) > WANTED // 2 and not dead:
            dead.add("node3")
            counts["node3"] = 0
        if chance.random() < 0.2 and (open_ones := [name for name, count in counts.items() if count]):
            counts[chance.choice(open_ones)] -= 1
            continue
        rooms = [
            NodeRoom(name=name, limit=LIMIT, terminals=count, alive=name not in dead) for name, count in counts.items()
        ]
        start = time.perf_counter()
        chosen = choose_node(rooms)
        spent += time.perf_counter() - start
        assert chosen is not None
        counts[chosen.name] += 1
        decisions += 1
        living = [count for name, count in counts.items() if name not in dead]
        most_uneven = max(most_uneven, max(living) - min(living))
    return (
        f"{WANTED:,} terminals on {NODES} nodes, one of them lost half-way: {decisions:,} decisions of "
        f"{spent / decisions * 1e6:.1f} µs, at most {most_uneven} terminals between the fullest and the emptiest"
    )


async def open_many(counts: list[int]) -> None:
    """Open so many terminals on a host of this machine, and print what the last of them cost.

    CPU time is compared, as the clock says little on a machine that others use.
    """
    most = max(counts) + 1
    settings = Settings(warm_pool=0, max_terminals=most, max_per_task=most, start_up_files=False)
    async with open_terminals("unix:", settings=settings) as pool:
        assert isinstance(pool.machine, RemoteMachine)
        pid = pool.machine.connection.welcome["pid"]
        await (await pool.open(cwd="/")).run(":")
        terminals: list[Terminal] = []
        empty = own_memory(pid)
        for count in sorted(counts):
            before, opened = cpu(pid), len(terminals)
            while len(terminals) < count:
                some = min(10, count - len(terminals))
                terminals += await asyncio.gather(*(pool.open(cwd="/") for _ in range(some)))
            opening = (cpu(pid) - before) / max(count - opened, 1)
            memory = (own_memory(pid) - empty) / count
            theirs, ours = cpu(pid), time.process_time()
            picked = terminals[:: max(count // COMMANDS, 1)][:COMMANDS]
            for each in picked:
                await each.run(":")
            theirs, ours = (cpu(pid) - theirs) / len(picked), (time.process_time() - ours) / len(picked)
            print(
                f"{count:,} terminals: {memory:.1f} KB of host memory each; CPU: {opening * 1e3:.1f} ms in the host "
                f"for an opening, {theirs * 1e6:.0f} µs there and {ours * 1e6:.0f} µs here for a command"
            )


def cpu(pid: object) -> float:
    """Seconds that the process ran."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def main() -> None:
    print(simulate())
    if sys.argv[1:]:
        with private_home():
            asyncio.run(open_many([int(word) for word in sys.argv[1:]]))


if __name__ == "__main__":
    main()
