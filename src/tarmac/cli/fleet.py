"""`tarmac fleet`: the nodes of a cluster, how many terminals they have, and their load."""

import asyncio
import dataclasses
import json
from typing import TYPE_CHECKING

from tarmac.cli.parser import parse as parse_arguments
from tarmac.errors import BadRequest

if TYPE_CHECKING:
    from tarmac.fleet.cluster import NodeReport


def main(arguments: list[str]) -> int:
    """Show the cluster; the exit code."""
    options, words = parse_arguments("fleet", arguments)
    if len(words) > 1 or (words and not words[0].startswith("ray://")):
        raise BadRequest(f"`{words[-1]}` is not the address of a cluster", hint="as in ray:// or ray://head:6379")
    from tarmac.fleet.cluster import survey

    nodes = asyncio.run(survey(words[0].removeprefix("ray://").rstrip("/") if words else ""))
    if "json" in options:
        print(json.dumps([dataclasses.asdict(each) for each in nodes]))
    else:
        print(table(nodes))
    return 0


def table(nodes: "list[NodeReport]") -> str:
    """The nodes as lines, the living first, and their sum."""
    ordered = sorted(nodes, key=lambda node: (not node.alive, node.address, node.name))
    rows = [("NODE", "ADDRESS", "STATE", "CORES", "LOAD", "TERMINALS", "BUSY", "LIMIT"), *map(_row, ordered)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(_aligned, row, widths, range(len(row)))).rstrip() for row in rows]
    alive = [each for each in nodes if each.alive]
    count = sum(each.terminals for each in alive)
    return "\n".join([*lines, f"{len(alive)} of {len(nodes)} nodes alive, {count} terminals"])


def _row(node: "NodeReport") -> tuple[str, ...]:
    return (
        node.name,
        node.address,
        "alive" if node.alive else "dead",
        f"{node.cores:g}",
        "–" if node.load is None else f"{node.load:.2f}",
        str(node.terminals),
        str(node.busy),
        str(node.limit) if node.limit else "–",
    )


def _aligned(cell: str, width: int, column: int) -> str:
    return cell.ljust(width) if column < 3 else cell.rjust(width)
