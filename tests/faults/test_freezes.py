"""Row 27: Tarmac and all it started are frozen, as by a suspended machine, and nothing is given up for that.

`TARMAC_FREEZE=60 make faults` freezes for a minute.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.faults.limits import cgroup, joining

SECONDS = float(os.environ.get("TARMAC_FREEZE", "6"))

HOST = """
import asyncio, sys
from pathlib import Path
from tarmac.terminals import open_terminal

LOOP = "for i in %s; sleep 0.1; end" if sys.argv[1] == "fish" else "for i in %s; do sleep 0.1; done"
STEPS = LOOP % " ".join(map(str, range(20)))
CLEANS_UP = '''
import signal, sys, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
def clean(*_):
    print("cleaning", flush=True)
    for _ in range(10):
        time.sleep(0.05)
    sys.exit(9)
signal.signal(getattr(signal, sys.argv[1]), clean)
print("ready", flush=True)
while True:
    time.sleep(0.05)
'''

def frozen_now():
    print("now", flush=True)

def tell(result):
    print(result.reason, result.exit_code, flush=True)

async def run(terminal):
    execution = await terminal.start(STEPS)
    asyncio.get_running_loop().call_later(0.2, frozen_now)
    tell(await execution.result(5.5))

async def timeout(terminal):
    execution = await terminal.start("sleep 1000")
    asyncio.get_running_loop().call_later(0.2, frozen_now)
    tell(await execution.result(1.0, on_timeout="interrupt"))

async def clean_up(terminal, signal):
    Path("cleans_up.py").write_text(CLEANS_UP)
    execution = await terminal.start(f"{sys.executable} cleans_up.py {signal}")
    await execution.waiting_for(pattern="ready", timeout=30)
    stop = asyncio.create_task(execution.interrupt())
    await execution.waiting_for(pattern="cleaning", timeout=30)
    frozen_now()
    await stop
    tell(await execution.result(10))

async def interrupt(terminal):
    await clean_up(terminal, "SIGINT")

async def terminate(terminal):
    await clean_up(terminal, "SIGTERM")

async def pattern(terminal):
    execution = await terminal.start(STEPS + "; echo 'x'")
    asyncio.get_running_loop().call_later(0.2, frozen_now)
    print((await execution.waiting_for(pattern="x", timeout=5.5)).what, flush=True)

async def quiet(terminal):
    execution = await terminal.start(STEPS.replace("sleep 0.1", "sleep 0.1; echo 'x'"))
    asyncio.get_running_loop().call_later(0.2, frozen_now)
    print((await execution.waiting_for(quiet=1.5, timeout=30)).what, flush=True)

async def main():
    async with open_terminal(shell=sys.argv[1]) as terminal:
        await globals()[sys.argv[2]](terminal)

asyncio.run(main())
"""

VERDICTS = {
    "run": "done 0",
    "timeout": "timeout 130",
    "interrupt": "interrupted 9",
    "terminate": "interrupted 9",
    "pattern": "pattern",
    "quiet": "ended",
}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize("moment", VERDICTS)
def test_what_is_frozen_is_not_given_up_for_that(tmp_path: Path, shell: str, moment: str) -> None:
    """T18, T17: the time in which nothing could run counts for nobody."""
    with (
        cgroup("freezer") as group,
        subprocess.Popen(
            [sys.executable, "-c", HOST, shell, moment],
            stdout=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            preexec_fn=joining(group),
        ) as host,
    ):
        assert host.stdout is not None
        assert host.stdout.readline() == "now\n"
        _freeze(group, "FROZEN", "1")
        time.sleep(SECONDS)
        _freeze(group, "THAWED", "0")
        assert host.stdout.readline() == f"{VERDICTS[moment]}\n"
        assert host.wait(30) == 0


def _freeze(group: Path, old: str, new: str) -> None:
    """By version 1 of control groups, or 2."""
    file = group / "freezer.state"
    if file.exists():
        file.write_text(old)
    else:
        (group / "cgroup.freeze").write_text(new)
