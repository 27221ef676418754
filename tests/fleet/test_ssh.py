"""Terminals over a real sshd on loopback."""

import asyncio
import os
import random
import signal
from pathlib import Path

import pytest
from tests.fleet.conftest import Sshd

from tarmac.errors import PlaceUnavailable, Trouble
from tarmac.fleet import RemoteMachine, open_terminals

pytestmark = [pytest.mark.shell, pytest.mark.fleet]


async def test_a_command_over_ssh_has_the_same_result(sshd: Sshd, tmp_path: Path) -> None:
    """F2, F3. Nothing is installed there, and ssh's own configuration names the machine."""
    async with open_terminals(sshd.address) as terminals, terminals.lease(cwd=tmp_path, task="a") as terminal:
        first = await terminal.run("echo $WHERE; cd /; X=1; (exit 9)")
        second = await terminal.run("echo $X; seq 3 | grep 2 | cat")
        asked = await terminal.run("read -p 'sure? ' answer; echo $answer", answers={"sure?": "yes"})
    assert (first.output, first.exit_code, first.cwd, first.evidence) == ("sshd\n", 9, Path("/"), "mark")
    assert (second.output, second.pipestatus) == ("1\n2\n", (0, 0, 0))
    assert asked.output.endswith("yes\n")
    assert list((tmp_path / "their-cache" / "tarmac").glob("host-*")), "what was carried is kept there"


async def test_a_connection_is_not_shared_with_other_options(sshd: Sshd, tmp_path: Path) -> None:
    """F2: with another key, say, a machine may let one in as somebody else, or not at all."""
    async with open_terminals(sshd.address) as terminals, terminals.lease(cwd=tmp_path) as terminal:
        assert (await terminal.run("true")).exit_code == 0
        with pytest.raises(PlaceUnavailable) as error:
            async with open_terminals(f"{sshd.address}&option=PubkeyAuthentication%3Dno"):
                pass
    assert error.value.trouble is Trouble.DENIED


async def test_a_connection_is_not_shared_with_another_name_of_the_machine(sshd: Sshd, tmp_path: Path) -> None:
    """F2: its configuration has another key."""
    async with open_terminals(sshd.address) as terminals, terminals.lease(cwd=tmp_path) as terminal:
        assert (await terminal.run("true")).exit_code == 0
        with pytest.raises(PlaceUnavailable) as error:
            async with open_terminals(sshd.address.replace("testhost", "badkey")):
                pass
    assert error.value.trouble is Trouble.DENIED


@pytest.mark.parametrize("name", ["two words", "50%", 'a "b" \\ c'])
async def test_any_folder_may_hold_the_sockets(sshd: Sshd, own_sockets: Path, name: str) -> None:
    """F2: `ssh` reads its path as a word of its configuration."""
    (own_sockets / name).mkdir()
    with pytest.MonkeyPatch.context() as there:
        there.setenv("XDG_RUNTIME_DIR", str(own_sockets / name))
        async with open_terminals(sshd.address) as terminals, terminals.lease(cwd=own_sockets) as terminal:
            assert (await terminal.run("echo there")).output == "there\n"
        for pid in sshd.connections():
            os.kill(pid, signal.SIGTERM)


async def test_ssh_that_is_killed_loses_nothing(sshd: Sshd, tmp_path: Path) -> None:
    """F4. The client program and the shared connection are killed, at random moments."""
    chance = random.Random(1)
    lines = 400
    async with open_terminals(sshd.address) as terminals, terminals.lease(cwd=tmp_path) as terminal:
        execution = await terminal.start(f"for i in $(seq {lines}); do echo $i; sleep 0.005; done; (exit 3)")
        for after in sorted(chance.sample(range(10, lines - 20), 3)):
            await execution.waiting_for(pattern=rf"^{after}$", timeout=60)
            for pid in sshd.connections():
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        while execution.running:
            assert (await execution.result(60)).reason in ("connection lost", "done")
        result = await execution.result()
    assert result.output == "".join(f"{number}\n" for number in range(1, lines + 1))
    assert (result.exit_code, result.reason) == (3, "done")


async def test_a_host_that_is_killed_there_is_no_failing_command(sshd: Sshd, tmp_path: Path) -> None:
    """F5."""
    async with open_terminals(sshd.address) as terminals, terminals.lease(cwd=tmp_path) as terminal:
        assert isinstance(terminals.machine, RemoteMachine)
        execution = await terminal.start("sleep 100")
        waiting = asyncio.create_task(execution.result(60))
        await asyncio.sleep(0)
        pid = terminals.machine.connection.welcome["pid"]
        assert isinstance(pid, int)
        os.kill(pid, signal.SIGKILL)
        assert (await waiting).reason == "connection lost"
        result = await execution.result(60)
    assert (result.reason, result.exit_code) == ("connection lost", None)


async def test_a_key_that_is_not_accepted(sshd: Sshd) -> None:
    """F5."""
    with pytest.raises(PlaceUnavailable, match="Permission denied") as caught:
        async with open_terminals("ssh://badkey"):
            pass
    assert caught.value.trouble is Trouble.DENIED
    assert "by hand" in caught.value.hint


async def test_a_machine_that_is_not_the_known_one(sshd: Sshd) -> None:
    """F5."""
    async with open_terminals(sshd.address):
        pass
    known = sshd.folder / "known_hosts"
    other = (sshd.folder / "key.pub").read_text().split()[1]
    name, kind, _ = known.read_text().split()[:3]
    known.write_text(f"{name} {kind} {other}\n")
    for pid in sshd.connections():
        os.kill(pid, signal.SIGKILL)
    with pytest.raises(PlaceUnavailable) as caught:
        async with open_terminals(sshd.address):
            pass
    assert caught.value.trouble is Trouble.DENIED
