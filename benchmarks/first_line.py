"""`tarmac run` until something is seen: its first line, and the first words of a (scripted) model. CPU, not time.

The process is killed when the line is there, so that what it would do next does not count.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from benchmarks.home import private_home
from benchmarks.rounds import Goal, Row

SCRIPT = '[[turn]]\ntext = "Hello there."\ndelay = 0\n[[turn]]\ndelay = 60\n'
SEEN = {"its first line": b"the task", "the first words of the model": b"Hello"}


def measure(*, quick: bool) -> Iterator[Row]:
    rounds = 3 if quick else 15
    with private_home() as home:
        script = home / "script.toml"
        script.write_text(SCRIPT)
        env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        env["PYTHONPYCACHEPREFIX"] = str(home / "bytecode")
        times: dict[str, list[float]] = {what: [] for what in SEEN}
        for _ in range(rounds + 1):
            for what, wanted in SEEN.items():
                times[what].append(_cpu(script, wanted, env))
    goals = {"its first line": Goal("≤", 250, of="ours")}
    for what, found in times.items():
        cpu = median(found[1:])  # the first fills the cache of bytecode
        yield Row(what=f"`tarmac run` until {what}, CPU", ours=cpu, unit="ms", goal=goals.get(what))


def _cpu(script: Path, wanted: bytes, env: dict[str, str]) -> float:
    """User and system milliseconds until `wanted` is on standard output."""
    command = [sys.executable, "-m", "tarmac", "run", "the task", "--script", str(script), "--cwd", str(script.parent)]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, bufsize=0, env=env)
    assert process.stdout is not None
    seen = b""
    while wanted not in seen:
        piece = process.stdout.read(4096)
        if not piece:
            break
        seen += piece
    process.kill()
    process.stdout.close()
    _, _, used = os.wait4(process.pid, 0)
    process.returncode = -9  # it is reaped
    return (used.ru_utime + used.ru_stime) * 1e3
