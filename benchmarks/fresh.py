"""Measuring memory takes a process that has done nothing else: run a benchmark's module as one, and get its answer."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parent.parent


def run(module: str, *arguments: str) -> dict[str, float]:
    """`python -m module arguments…`, which calls `answer`."""
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments], cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def answer(found: Mapping[str, float]) -> None:
    print(json.dumps(found))


def resident() -> int:
    """Bytes of memory this process has now."""
    return _status("VmRSS")


def peak() -> int:
    """Bytes of memory this process had at its most."""
    return _status("VmHWM")


def _status(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    raise LookupError(f"/proc/self/status tells no {name}")
