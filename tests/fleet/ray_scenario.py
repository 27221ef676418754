"""Three Ray nodes on this machine, six terminals, one node killed: prints what became of them as JSON."""

import asyncio
import contextlib
import io
import json
import os
import sys
from importlib import import_module
from typing import Any

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

from tarmac.cli.fleet import table
from tarmac.errors import PlaceFailed
from tarmac.fleet import open_machine
from tarmac.fleet.cluster import ClusterMachine, survey
from tarmac.terminals import Execution, Pool, Settings

MEMORY = 80 << 20
LONG = 60.0


async def fate(execution: Execution) -> str:
    try:
        return (await execution.result(LONG)).reason
    except PlaceFailed as error:
        return type(error).__name__


async def play(cluster: Any, victim: object) -> dict[str, object]:
    async with open_machine(f"ray://{cluster.address}") as machine:
        assert isinstance(machine, ClusterMachine)
        async with Pool(Settings(warm_pool=0, start_up_files=False), machine=machine) as pool:
            terminals = [await pool.open(cwd="/tmp") for _ in range(6)]
            results = await asyncio.gather(*(each.run("echo ready; (exit 3)") for each in terminals))
            reports = await survey(cluster.address)
            running = [await each.start("read line; echo got-$line") for each in terminals]
            nodes = [machine.node_of(each.id) for each in terminals]
            with contextlib.redirect_stdout(io.StringIO()):
                cluster.remove_node(victim, allow_graceful=False)
            waits = [asyncio.ensure_future(fate(each)) for each in running]
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED, timeout=LONG)
            lost = {nodes[at] for at, wait in enumerate(waits) if wait.done()}
            for node, execution in zip(nodes, running, strict=True):
                if node not in lost:
                    await execution.send("on\n")
            fates = [await each for each in waits]
            again = await pool.open(cwd="/tmp")
            after = await again.run("echo again")
            return {
                "nodes": nodes,
                "codes": [each.exit_code for each in results],
                "terminals": [each.terminals for each in reports],
                "table": table(reports),
                "fates": fates,
                "again": [machine.node_of(again.id), after.output],
            }


def main() -> None:
    with contextlib.redirect_stdout(sys.stderr):
        cluster = import_module("ray.cluster_utils").Cluster(
            initialize_head=True,
            head_node_args={"num_cpus": 1, "include_dashboard": False, "object_store_memory": MEMORY},
        )
        try:
            victim, _ = (cluster.add_node(num_cpus=1, object_store_memory=MEMORY) for _ in range(2))
            found = asyncio.run(play(cluster, victim))
        finally:
            cluster.shutdown()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
