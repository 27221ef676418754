"""A program is killed at random moments: nothing that its terminal printed is lost, no exit code is wrong."""

import random
from pathlib import Path

import pytest
from tests.terminals.daemon.conftest import daemon as daemon
from tests.terminals.daemon.killed_host import Hosts, Tally, end, kill_and_check

pytestmark = [pytest.mark.shell, pytest.mark.faults]
KILLS = 50


async def test_fifty_kills_lose_no_byte_and_no_exit_code(daemon: Path) -> None:
    """F1."""
    tally, moments, id = Tally(), random.Random(17), ""
    with Hosts() as hosts:
        for _ in range(KILLS):
            id = await kill_and_check(hosts, tally, moments, id)
        await end(id)
    assert tally.wrong == []
    assert tally.kills == KILLS
    assert tally.running > KILLS / 4  # many were in the middle of a command
