"""Fuzz real terminals: `python -m tests.fuzz --minutes 10 [--shell bash] [--seed N]`, in the project's root.

Random commands with known results, several in one terminal, one terminal after another; what did not come as it had
to is shrunk, printed as a script, and counted.
"""

import argparse
import asyncio
import shutil
import sys
import time

from tests.fuzz.hunting import Count, hunt, replay
from tests.fuzz.load import LoadCount, run_load

SHELLS = ("bash", "zsh", "fish")


def main() -> int:
    """Hunt for as long as asked; 1 if something was found."""
    options = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.split("\n\n")[0])
    options.add_argument("--minutes", type=float, default=1.0, help="how long [1]")
    options.add_argument(
        "--shell", action="append", choices=SHELLS, help="only this one; may be given again [all here]"
    )
    options.add_argument("--seed", type=int, default=None, help="begin with this one [by the clock]")
    options.add_argument("--games", type=int, default=12, help="games a terminal [12]")
    options.add_argument("--replay", metavar="SEED", help="play one session again, as a failure names it: bash:7:12")
    options.add_argument("--no-shrink", action="store_true", help="do not look for a shorter session that fails too")
    options.add_argument("--load", type=int, metavar="N", help="run N short commands beside a busy machine instead")
    options.add_argument("--terminals", type=int, default=6, help="with --load: so many at once [6]")
    options.add_argument("--hogs", type=int, default=6, help="with --load: programs that keep the machine busy [6]")
    chosen = options.parse_args()
    if chosen.replay:
        return asyncio.run(replay(chosen.replay, shrink=not chosen.no_shrink))
    shells = [each for each in chosen.shell or SHELLS if shutil.which(each)]
    seed = int(time.time()) if chosen.seed is None else chosen.seed
    if chosen.load:
        return _load(shells, seed, chosen)
    count = Count()
    print(f"shells: {', '.join(shells)}; seed {seed}; {chosen.minutes:g} minutes", flush=True)
    try:
        asyncio.run(
            hunt(
                shells,
                seed=seed,
                seconds=chosen.minutes * 60,
                games=chosen.games,
                count=count,
                shrink=not chosen.no_shrink,
            )
        )
    except KeyboardInterrupt:
        pass
    print(count.table())
    return 1 if count.failures else 0


def _load(shells: list[str], seed: int, chosen: argparse.Namespace) -> int:
    count = LoadCount()
    print(f"shells: {', '.join(shells)}; seed {seed}; {chosen.load:,} commands", flush=True)
    done = run_load(shells, commands=chosen.load, terminals=chosen.terminals, hogs=chosen.hogs, seed=seed, count=count)
    try:
        asyncio.run(done)
    except KeyboardInterrupt:
        pass
    print(count.table())
    return 1 if count.failures else 0


if __name__ == "__main__":
    sys.exit(main())
