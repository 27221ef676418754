"""What it costs to start: CPU of whole processes, all with the same interpreter and flags.

Bytecode goes to a cache of our own, so that it is there (PYTHONDONTWRITEBYTECODE may be set) and the tree stays clean.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.home import private_home
from benchmarks.rounds import Goal, Row, compared

PASS = ("-c", "pass")
ASYNCIO = ("-c", "import asyncio")
TERMINALS = ("-c", "import tarmac.terminals")
USED = ("-c", "from tarmac.terminals import open_terminal")  # names are loaded at their first use: the honest cost


def measure(*, quick: bool) -> Iterator[Row]:
    rounds = 5 if quick else 60
    script = Path(sys.executable).with_name("tarmac")
    versions: dict[str, tuple[str, ...]] = {"`python -m tarmac --version`": ("-m", "tarmac", "--version")}
    if script.exists():
        versions["`tarmac --version`"] = (str(script), "--version")
    with private_home() as home:
        env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        env["PYTHONPYCACHEPREFIX"] = str(home / "bytecode")
        commands = [PASS, ASYNCIO, TERMINALS, USED, *versions.values()]
        failed = {each for each in commands if _cpu(each, env) is None}  # also fills the cache
        commands = [each for each in commands if each not in failed]
        times: dict[Sequence[str], list[float]] = {each: [] for each in commands}
        for _ in range(rounds):
            for each in commands:
                times[each].append(_cpu(each, env) or 0)
    net = [[max(time - bare, 0.01) for time, bare in zip(times[c], times[PASS], strict=True)] for c in commands[1:4]]
    yield compared("`import tarmac.terminals` | asyncio", net[1], net[0], unit="ms", goal=Goal("≤", 1.4))
    yield compared("`from tarmac.terminals import open_terminal` | asyncio", net[2], net[0], unit="ms")
    yield compared("the first, interpreter included", times[TERMINALS], times[ASYNCIO], unit="ms", goal=Goal("≤", 1.4))
    for what, command in versions.items():
        if command in failed:
            yield Row(what=f"{what} | `python -c pass`", ours=None, goal=Goal("≤", 3), note="it failed")
        else:
            yield compared(f"{what} | `python -c pass`", times[command], times[PASS], unit="ms", goal=Goal("≤", 3))


def _cpu(arguments: Sequence[str], env: dict[str, str]) -> float | None:
    """User and system milliseconds of `python arguments…`; None when it failed."""
    quiet = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1, 2)]
    pid = os.posix_spawn(sys.executable, [sys.executable, *arguments], env, file_actions=quiet)
    _, status, used = os.wait4(pid, 0)
    return (used.ru_utime + used.ru_stime) * 1e3 if status == 0 else None
