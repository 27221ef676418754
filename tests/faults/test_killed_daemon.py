"""Row 2: kill −9 of the daemon that holds terminals."""

import asyncio
import os
import signal
from pathlib import Path

from tests.terminals.daemon.conftest import daemon as daemon  # a fixture
from tests.terminals.daemon.conftest import daemon_pid, wait_gone

from tarmac.terminals import Settings, open_terminal


async def test_a_killed_daemon_takes_only_its_own_terminals_along(daemon: Path, tmp_path: Path) -> None:
    """F1: the command in its terminal is told as lost, other terminals go on, and the next one has a new daemon."""
    settings = Settings(start_up_files=False)
    async with (
        asyncio.timeout(60),
        open_terminal(cwd=tmp_path, shell="bash", settings=settings) as own,
        open_terminal(cwd=tmp_path, shell="bash", settings=settings, outlive=True) as kept,
    ):
        here = await own.start("read -r line; echo got $line")
        there = await kept.start("echo began; sleep 1000")
        await there.waiting_for(pattern="began")
        pid = daemon_pid(daemon)
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        wait_gone(pid)
        lost = await there.result(timeout=30)
        assert (lost.exit_code, lost.reason) == (None, "daemon lost"), lost
        await here.send("through\n")
        assert (await here.result(timeout=30)).output.endswith("got through\n")
        async with open_terminal(cwd=tmp_path, shell="bash", settings=settings, outlive=True) as new:
            assert (await new.run("echo again", timeout=30)).output == "again\n"
            await new.aclose()
