"""How the policy does on the corpus, as a table: `python -m tests.policy.score`, in the project's root."""

import argparse
import asyncio
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.policy.entries import make_project
from tests.policy.judging import Judged, differing, judge_all

WRONG: dict[str, Callable[[Judged], bool]] = {
    "wrongly allowed": lambda each: each.wrongly_allowed,
    "wrongly denied": lambda each: each.wrongly_denied,
    "floor missed": lambda each: each.floor_missed,
    "wrongly asked": lambda each: each.wrongly_asked,
    "risk differs": lambda each: each.risk_differs,
}


def main() -> None:
    """Judge in a throw-away project; print the table, and the differing lines into a file if asked."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--differences", type=Path, help="write every differing line here; of held-out ones, counts")
    options.add_argument("--held-out", action="store_true", help="write held-out lines too: not for authors of rules")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        start = time.monotonic()
        judged = asyncio.run(judge_all(make_project(Path(folder).resolve())))
    print(f"{len(judged)} commands in {time.monotonic() - start:.1f} s\n")
    print(table(judged))
    if chosen.differences:
        parts = [f"## {name}\n{differing(judged, wrong, held_out=chosen.held_out)}\n" for name, wrong in WRONG.items()]
        chosen.differences.write_text("\n".join(parts), encoding="utf-8")


def table(judged: Sequence[Judged]) -> str:
    """A row for each file, held out ones after the others, then the sums."""
    head = f"{'file':32}{'commands':>9}{'reading allowed':>17}{'risk exact':>11}" + "".join(f"{n:>17}" for n in WRONG)
    files = sorted({each.entry.file for each in judged}, key=lambda file: (file.startswith("heldout_"), file))
    rows = [row(file, [each for each in judged if each.entry.file == file]) for file in files]
    rows.append(row("seen", [each for each in judged if not each.entry.held_out]))
    rows.append(row("held out", [each for each in judged if each.entry.held_out]))
    rows.append(row("all", judged))
    return "\n".join([head, *rows])


def row(name: str, judged: Sequence[Judged]) -> str:
    """The numbers of one group."""
    reading = [each for each in judged if each.entry.decisions == {"allow"}]
    allowed = share(sum(each.decision == "allow" for each in reading), len(reading))
    exact = share(sum(not each.risk_differs for each in judged), len(judged))
    wrongs = "".join(f"{sum(map(wrong, judged)):>17}" for wrong in WRONG.values())
    return f"{name:32}{len(judged):>9}{allowed:>17}{exact:>11}{wrongs}"


def share(part: int, whole: int) -> str:
    """As a percentage; a dash of nothing."""
    return f"{100 * part / whole:.1f} %" if whole else "–"


if __name__ == "__main__":
    main()
