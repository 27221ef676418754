"""Print the table: what, ours, the floor, their ratio, the goal, and whether it is met. It never fails on a number."""

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Protocol

from benchmarks import (
    checkpoints,
    confinement,
    dialects,
    first_answer,
    first_line,
    first_paint,
    fleet,
    idle,
    imports,
    lending,
    lines,
    loop_lag,
    many_tasks,
    opening,
    outlive,
    page,
    policy,
    probe,
    round_trip,
    screen_steps,
    task_log,
    turn,
    viewers,
    volume,
)
from benchmarks.rounds import Row

WIDE = 66


class Measure(Protocol):
    def __call__(self, *, quick: bool) -> Iterator[Row]: ...


ALL: dict[str, Measure] = {
    "round_trip": round_trip.measure,
    "dialects": dialects.measure,
    "opening": opening.measure,
    "volume": volume.measure,
    "viewers": viewers.measure,
    "page": page.measure,
    "screen_steps": screen_steps.measure,
    "lines": lines.measure,
    "loop_lag": loop_lag.measure,
    "imports": imports.measure,
    "first_answer": first_answer.measure,
    "idle": idle.measure,
    "policy": policy.measure,
    "confinement": confinement.measure,
    "probe": probe.measure,
    "lending": lending.measure,
    "task_log": task_log.measure,
    "checkpoints": checkpoints.measure,
    "turn": turn.measure,
    "first_line": first_line.measure,
    "first_paint": first_paint.measure,
    "many_tasks": many_tasks.measure,
    "outlive": outlive.measure,
    "fleet": fleet.measure,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=f"which: {', '.join(ALL)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="few rounds and small outputs: do they run at all?")
    parser.add_argument("--json", action="store_true", help="one JSON object a row, without rounding")
    chosen = parser.parse_args()
    if unknown := set(chosen.names) - set(ALL):
        parser.error(f"there is no benchmark {', '.join(sorted(unknown))}; there are: {', '.join(ALL)}")
    show: Callable[[Row], str] = as_json if chosen.json else as_line
    if not chosen.json:
        print(f"{'':{WIDE}} {'ours':>12} {'floor':>12} {'ratio':>7} {'middle half':>13} {'goal':>9}")
    for name in chosen.names or ALL:
        for row in ALL[name](quick=chosen.quick):
            print(show(row), flush=True)
    return 0


def as_line(row: Row) -> str:
    ratio = f"×{row.ratio:.2f}" if row.ratio is not None else ""
    spread = f"{row.spread[0]:.2f} – {row.spread[1]:.2f}" if row.spread else ""
    goal = f"{row.goal.compare} {'×' * (row.goal.of == 'ratio')}{row.goal.number:g}" if row.goal else ""
    verdict = {True: "met", False: "NOT MET", None: ""}[row.met]
    line = f"{row.what:{WIDE}} {_value(row.ours, row.unit):>12} {_value(row.floor, row.unit):>12}"
    line += f" {ratio:>7} {spread:>13} {goal:>9}  {verdict:7}"
    return f"{line} {row.note}".rstrip()


def as_json(row: Row) -> str:
    return json.dumps({**asdict(row), "met": row.met}, ensure_ascii=False)


def _value(number: float | None, unit: str) -> str:
    if number is None:
        return ""
    shown = f"{number:,.0f}" if number >= 100 or number == int(number) else f"{number:,.1f}"
    return f"{shown} {unit}".rstrip()


if __name__ == "__main__":
    sys.exit(main())
