"""10,000 terminals over 10 nodes, as a simulation of the placement alone; and what a terminal costs on one node.

    python -m benchmarks.placement             the simulation
    python -m benchmarks.placement 100 1000    also opens so many terminals here, and prints memory and time for each

The simulation opens and closes at random, kills a node half-way, and counts how uneven the nodes become.
"""

import asyncio
import random
import sys
import time
from pathlib import Path

from tarmac.fleet.cluster import NodeRoom, choose_node
from tarmac.terminals import Pool, Settings

NODES, WANTED, LIMIT = 10, 10_000, 1_200


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


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


async def open_many(count: int) -> str:
    """Open `count` terminals in this process."""
    settings = Settings(warm_pool=0, max_terminals=count, max_per_task=count, start_up_files=False)
    async with Pool(settings) as pool:
        first = await pool.open(cwd="/tmp")
        await first.run(":")
        before, start = resident(), time.perf_counter()
        for begin in range(1, count, 8):
            await asyncio.gather(*(pool.open(cwd="/tmp") for _ in range(min(8, count - begin))))
        seconds = time.perf_counter() - start
        each = (resident() - before) / (count - 1)
    return f"{count:,} terminals: {each / 1024:.0f} KB of host memory and {seconds / (count - 1) * 1e3:.1f} ms for each"


def main() -> None:
    print(simulate())
    for word in sys.argv[1:]:
        print(asyncio.run(open_many(int(word))))


if __name__ == "__main__":
    main()
