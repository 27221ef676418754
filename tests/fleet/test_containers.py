"""Terminals in a stand-in of a container: its own root, /tmp and processes. The clients are fakes that only exec."""

from pathlib import Path

import pytest
from tests.fleet.conftest import Container

from tarmac.errors import PlaceUnavailable, Trouble
from tarmac.fleet import RemoteMachine, open_terminals

pytestmark = [pytest.mark.shell, pytest.mark.fleet]


@pytest.mark.parametrize("address", ["docker://box", "podman://box", "kubectl://box", "kubectl://space/box"])
async def test_a_command_in_a_container_has_the_same_result(container: Container, address: str) -> None:
    """F2, F3."""
    async with open_terminals(address) as terminals, terminals.lease(cwd="/tmp") as terminal:
        first = await terminal.run("echo $WHERE; cd /home; touch here; (exit 6)")
        second = await terminal.run("ls; hostname")
    assert (first.output, first.exit_code, first.evidence, first.cwd) == ("box\n", 6, "mark", Path("/home"))
    assert second.output == "here\nbox\n"


async def test_a_cut_into_a_container_loses_nothing(container: Container) -> None:
    """F4."""
    async with open_terminals("docker://box") as terminals, terminals.lease(cwd="/tmp") as terminal:
        assert isinstance(terminals.machine, RemoteMachine)
        execution = await terminal.start("for i in $(seq 100); do echo $i; sleep 0.01; done; (exit 2)")
        for after in (10, 60):
            await execution.waiting_for(pattern=rf"^{after}$", timeout=60)
            terminals.machine.connection.cut()
        while execution.running:
            await execution.result(60)
        result = await execution.result()
    assert (result.output, result.exit_code) == ("".join(f"{number}\n" for number in range(1, 101)), 2)


@pytest.mark.parametrize("address", ["docker://missing", "podman://missing"])
async def test_a_container_that_does_not_exist(container: Container, address: str) -> None:
    """F5."""
    with pytest.raises(PlaceUnavailable, match="No such container: missing") as caught:
        async with open_terminals(address):
            pass
    assert caught.value.trouble is Trouble.NOT_FOUND
