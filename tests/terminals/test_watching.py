"""Waiting for what happens in a terminal: the first of several things, with its evidence, without polling."""

import asyncio
import re
import socket
import sys
import time
from pathlib import Path

import pytest

from tarmac.errors import BadRequest, TerminalClosed, TerminalNotFound
from tarmac.terminals import TerminalRegistry, open_terminal, wait_conditions
from tarmac.terminals.terminal import Provider

pytestmark = [pytest.mark.shell, pytest.mark.skipif(sys.platform != "linux", reason="asks the Linux kernel")]

SERVER = (
    "python3 -c 'import socket, time; s = socket.create_server((\"{host}\", {port}), family=socket.{family}); {then}'"
)


def server(port: int = 0, *, host: str = "127.0.0.1", family: str = "AF_INET", then: str = "time.sleep(1000)") -> str:
    return SERVER.format(host=host, port=port, family=family, then=then)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as one:
        return int(one.getsockname()[1])


@pytest.mark.parametrize("provider", ["pty", "exec"])
async def test_the_end_of_a_command_is_told_with_its_code(tmp_path: Path, provider: Provider) -> None:
    """T16: of the command that runs, or of the execution in hand, also when it has ended already."""
    async with open_terminal(cwd=tmp_path, provider=provider) as terminal:
        execution = await terminal.start("sleep 0.2; exit 3" if provider == "exec" else "sleep 0.2; (exit 3)")
        first = await terminal.waiting_for(timeout=10)
        again = await execution.waiting_for(pattern="never", port=True, timeout=10)
        idle = await terminal.waiting_for()
    assert [(each.what, each.exit_code, each.reason) for each in (first, again)] == [("ended", 3, "done")] * 2
    assert (idle.what, first.after < 5, again.after < 0.1) == ("ended", True, True)


@pytest.mark.parametrize("provider", ["pty", "exec"])
async def test_a_pattern_is_found_in_what_was_printed_before_and_in_what_comes(
    tmp_path: Path, provider: Provider
) -> None:
    """T16: in clean text, whatever escapes and pieces it came in; the command goes on."""
    async with open_terminal(cwd=tmp_path, provider=provider) as terminal:
        command = (
            r"printf 'one\n'; sleep 0.2; printf '\033[32mlisten'; sleep 0.02; printf 'ing\033[m on http://localhost:80';"
            r"printf 80; sleep 1000"
        )
        execution = await terminal.start(command)
        later = await terminal.waiting_for(pattern=r"^listening on (\S+)", timeout=10)
        before = await execution.waiting_for(pattern=re.compile("ONE", re.IGNORECASE), timeout=10)
        assert later.match is not None
        assert (later.what, later.text, later.match[1]) == (
            "pattern",
            "listening on http://localhost:8080",
            "http://localhost:8080",
        )
        assert (before.what, before.text, before.terminal, execution.running) == ("pattern", "one", terminal.id, True)


async def test_a_pattern_in_the_middle_of_a_flood_is_not_missed(tmp_path: Path) -> None:
    async with open_terminal(cwd=tmp_path) as terminal:
        await terminal.start("seq 100000; echo needle; seq 200000; sleep 1000")
        found = await terminal.waiting_for(pattern="^needle$", timeout=20)
    assert (found.what, found.text) == ("pattern", "needle")


async def test_the_end_comes_before_a_pattern_that_can_no_longer_come(tmp_path: Path) -> None:
    """T16: nothing is waited for in vain."""
    async with open_terminal(cwd=tmp_path) as terminal:
        await terminal.start("sleep 0.1; echo failed; false")
        happened = await terminal.waiting_for(pattern="listening", port=True, input=True, timeout=20)
        assert (happened.what, happened.exit_code) == ("ended", 1)
        await terminal.start("sleep 0.1; printf listening")
        assert (await terminal.waiting_for(pattern="listening", timeout=20)).what == "pattern"


async def test_a_question_is_told_with_what_it_wants(tmp_path: Path) -> None:
    """T19: the question, and that a secret is wanted; once it is answered the next thing is waited for."""
    async with open_terminal(cwd=tmp_path) as terminal:
        execution = await terminal.start("sleep 0.2; read -s -p 'Password: ' x; sleep 0.3; read -p 'Name: ' y")
        first = await terminal.waiting_for(input=True, timeout=10)
        assert (first.what, first.text, first.waiting and first.waiting.wants) == ("input", "Password: ", "secret")
        assert (await terminal.waiting_for(input=True)).after < 0.1  # it still waits
        await execution.send("x\n")
        second = await terminal.waiting_for(input=True, timeout=10)
        assert (second.what, second.waiting and second.waiting.wants) == ("input", "line")


async def test_a_secret_need_not_count_as_input(tmp_path: Path) -> None:
    """T19: for who can do nothing about it; the line behind it counts."""
    async with open_terminal(cwd=tmp_path) as terminal:
        execution = await terminal.start("read -s -p 'Password: ' x; read -p 'Name: ' y")
        assert (await terminal.waiting_for(input=True, timeout=10)).text == "Password: "
        assert (await terminal.waiting_for(input=True, secrets=False, timeout=0.2)).what == "timeout"
        await execution.send("x\n")
        assert (await terminal.waiting_for(input=True, secrets=False, timeout=10)).text == "Name: "


async def test_what_ends_just_as_the_wait_for_it_begins_has_ended(tmp_path: Path) -> None:
    """T19: of several terminals it was taken for one where nothing runs, and waited for until its time was over."""
    async with TerminalRegistry() as registry:
        terminal = await registry.open(cwd=tmp_path)
        execution = await terminal.start("true")
        wait = registry.waiting_for(terminal.id, input=True, timeout=2)
        await execution.result()
        happened = await wait
        assert (happened.what, happened.exit_code) == ("ended", 0)
        await terminal.start("true")
        waiting = asyncio.ensure_future(registry.waiting_for(terminal.id, input=True, timeout=2))
        time.sleep(0.3)  # noqa: ASYNC251 (the loop is held up: the end comes with the first step of the wait)
        assert (await waiting).what == "ended"


async def test_quiet_is_a_time_without_output(tmp_path: Path) -> None:
    async with open_terminal(cwd=tmp_path) as terminal:
        await terminal.start("for i in 1 2 3 4; do echo $i; sleep 0.2; done; sleep 1000")
        happened = await terminal.waiting_for(quiet=0.4, timeout=10)
        assert (happened.what, 0.9 < happened.after < 3) == ("quiet", True)
        assert (await terminal.waiting_for(quiet=0.3, timeout=10)).after < 0.1  # it is so already


async def test_a_port_is_told_when_a_process_of_the_command_listens_there(tmp_path: Path) -> None:
    """T16: that port, or any; by whom; nobody else's server counts."""
    port = free_port()
    with socket.create_server(("127.0.0.1", 0)) as other:
        async with open_terminal(cwd=tmp_path) as terminal:
            await terminal.start(f"sleep 0.1; sh -c \"$(cat <<'E'\n{server(port)}; true\nE\n)\"")
            taken = await terminal.waiting_for(port=other.getsockname()[1], timeout=0.3)
            mine = await terminal.waiting_for(port=port, timeout=10)
            any_ = await terminal.waiting_for(port=True, timeout=10)
            assert (taken.what, mine.what, mine.port, any_.port) == ("timeout", "port", port, port)
            assert mine.pid is not None and wait_conditions.listening([mine.pid]) == {port: mine.pid}
            with socket.create_connection(("127.0.0.1", port), timeout=5):
                pass


async def test_a_server_in_the_background_is_waited_for_after_its_command_has_ended(tmp_path: Path) -> None:
    """T16: with nothing in front; and only what is new counts as any port."""
    async with open_terminal(cwd=tmp_path) as terminal:
        await terminal.run(f"{server()} &")
        first = await terminal.waiting_for(port=True, timeout=10)
        then = 'print(end=chr(10) + "ready to serve", flush=True); time.sleep(1000)'
        await terminal.run(f"(sleep 0.2; {server(then=then)}) &")
        second = await terminal.waiting_for(port=True, timeout=10)
        said = await terminal.waiting_for(pattern="ready to serve", timeout=10)
        old = await terminal.waiting_for(port=first.port or 0, timeout=10)
    assert (first.what, second.what, said.what, old.what) == ("port", "port", "pattern", "port")
    assert first.port != second.port


async def test_servers_of_the_newer_internet_are_seen(tmp_path: Path) -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("no IPv6 here")
    async with open_terminal(cwd=tmp_path, provider="exec") as terminal:
        await terminal.start(server(host="::1", family="AF_INET6"))
        assert (await terminal.waiting_for(port=True, timeout=10)).what == "port"


async def test_time_is_up_when_nothing_happens_and_waiting_costs_nothing(tmp_path: Path) -> None:
    """T18: a result, not an error; the loop sleeps meanwhile."""
    async with open_terminal(cwd=tmp_path) as terminal:
        await terminal.start("sleep 1000")
        used = time.process_time()
        happened = await terminal.waiting_for(pattern="x", input=True, port=True, timeout=1.0)
        used = time.process_time() - used
    assert (happened.what, happened.text, 1.0 <= happened.after < 2.0) == ("timeout", "", True)
    assert used < 0.1


async def test_a_terminal_that_is_closed_ends_the_wait(tmp_path: Path) -> None:
    async with open_terminal(cwd=tmp_path) as terminal:
        waits = asyncio.create_task(terminal.waiting_for(pattern="never", timeout=20))
        await asyncio.sleep(0)
        await terminal.aclose()
        assert (await waits).what == "closed"
        with pytest.raises(TerminalClosed):
            await terminal.waiting_for()


async def test_the_first_of_several_terminals_is_told(tmp_path: Path) -> None:
    """T16: by the registry, of those named or of all that are busy."""
    async with TerminalRegistry() as registry:
        one, two = [await registry.open(cwd=tmp_path) for _ in range(2)]
        await one.start("sleep 1000")
        await two.start("sleep 0.2; echo ready; sleep 1000")
        happened = await registry.waiting_for(pattern="ready", timeout=10)
        assert (happened.what, happened.terminal) == ("pattern", two.id)
        assert (await registry.waiting_for(one.id, pattern="ready", timeout=0.2)).what == "timeout"
        with pytest.raises(TerminalNotFound):
            await registry.waiting_for("t999", pattern="x")


@pytest.mark.parametrize("wrong", [{"ended": False}, {"pattern": "("}, {"port": 70000}, {"quiet": 0}, {"timeout": -1}])
async def test_what_can_not_be_waited_for_is_refused(tmp_path: Path, wrong: dict[str, object]) -> None:
    async with open_terminal(cwd=tmp_path) as terminal:
        with pytest.raises(BadRequest):
            await terminal.waiting_for(**wrong)  # type: ignore[arg-type]


async def test_a_cancelled_wait_leaves_nothing(tmp_path: Path) -> None:
    async with open_terminal(cwd=tmp_path) as terminal:
        execution = await terminal.start("sleep 1000")
        before = len(terminal.listeners)
        waits = asyncio.create_task(terminal.waiting_for(pattern="never", timeout=None))
        await asyncio.sleep(0)
        waits.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waits
        assert (len(terminal.listeners), execution.running) == (before, True)
