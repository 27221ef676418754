"""Terminals at other places: what the way there adds to a command, to the first one, and to the memory of the host.

Over ssh the other machine is this one, by an sshd on loopback that takes only a key of the benchmark. The floor is a
bare `ssh host :` on a connection that is shared (ControlMaster) and open.
"""

import asyncio
import getpass
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from time import monotonic, perf_counter, sleep
from urllib.parse import quote

from benchmarks.home import private_home
from benchmarks.rounds import Goal, Row, compared
from tarmac.fleet import CommandTransport, RemoteMachine, open_terminals
from tarmac.terminals import Settings, Terminal, open_terminal

TRIPS = 25  # in a round


def measure(*, quick: bool) -> Iterator[Row]:
    with private_home():
        yield from asyncio.run(_round_trip(rounds=3 if quick else 40))
        yield asyncio.run(_carry(times=2 if quick else 15))
        yield from asyncio.run(_many(count=12 if quick else 1000, busy=6 if quick else 500))
        what = "round trip of `:` over ssh; floor: `ssh host :` on a shared connection"
        if sshd := shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:" + os.environ["PATH"]):
            with _listening(sshd) as (host, options):
                yield asyncio.run(_over_ssh(what, host, options, rounds=3 if quick else 20))
        else:
            yield Row(what=what, ours=None, note="there is no sshd here")


async def _trip(terminal: Terminal) -> float:
    times = []
    for _ in range(TRIPS):
        began = perf_counter()
        await terminal.run(":")
        times.append(perf_counter() - began)
    return median(times) * 1e6


async def _round_trip(rounds: int) -> list[Row]:
    async with open_terminal(cwd="/") as here, open_terminals("unix:") as terminals, terminals.lease(cwd="/") as there:
        await _trip(here), await _trip(there)
        pairs = [(await _trip(there), await _trip(here)) for _ in range(rounds)]
    added = median(one - other for one, other in pairs)
    far, near = zip(*pairs, strict=True)
    return [
        compared("round trip of `:` over a unix socket; floor: in this process", far, near, unit="µs"),
        Row(what="what the unix socket adds", ours=added, unit="µs", goal=Goal("≤", 150, "ours")),
    ]


async def _carry(times: int) -> Row:
    """All of it: connect, send the files, start the host, open a shell, run a command."""
    took, floor = [], []
    for _ in range(times):
        with TemporaryDirectory() as home:
            argv = ("env", "-i", f"HOME={home}", f"PATH={os.environ['PATH']}")
            began = perf_counter()
            place = CommandTransport("bench://here", argv)
            async with open_terminals(place) as terminals, terminals.lease(cwd="/") as terminal:
                await terminal.run(":")
                took.append((perf_counter() - began) * 1e3)
            floor.append(_bare([*argv, "python3", "-S", "-c", "import asyncio"]) / 1e3)
    what = "carry and first command; floor: start Python there, and import asyncio"
    return compared(what, took, floor, unit="ms", goal=Goal("≤", 400, "ours"))


async def _many(count: int, busy: int) -> list[Row]:
    """The memory of the host for each terminal, and a command beside many that print."""
    settings = Settings(max_terminals=count + 8, max_per_task=count + 8, warm_pool=0)
    async with open_terminals("unix:", settings=settings) as terminals:
        assert isinstance(terminals.machine, RemoteMachine)
        pid = terminals.machine.connection.welcome["pid"]
        first = await terminals.open(cwd="/")
        await first.run(":")
        before = own_memory(pid)
        others = []
        for _ in range(0, count, 20):
            others += await asyncio.gather(*(terminals.open(cwd="/") for _ in range(min(20, count))))
        each = (own_memory(pid) - before) / len(others)
        running = [await one.start("while :; do echo busy; sleep 0.5; done") for one in others[:busy]]
        times = []
        for _ in range(200):
            began = perf_counter()
            await first.run(":")
            times.append((perf_counter() - began) * 1e3)
        await asyncio.gather(*(one.kill() for one in running))
    worst = quantiles(times, n=100)[98]
    memory, beside = f"memory of the host for each of {len(others)} terminals", f"p99 of `:` beside {len(running)} busy"
    return [
        Row(what=memory, ours=each, unit="KB", goal=Goal("≤", 30, "ours")),
        Row(what=beside, ours=worst, unit="ms", goal=Goal("≤", 50, "ours")),
    ]


def own_memory(pid: object) -> float:
    """KB that are the process's own."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(float(line.split()[1]) for line in lines if line.startswith(("Private_Clean", "Private_Dirty")))


@contextmanager
def _listening(program: str) -> Iterator[tuple[str, list[str]]]:
    """An sshd on loopback with keys of its own: its host with the port, and the options with which ssh gets in."""
    with TemporaryDirectory(prefix="b", dir="/tmp") as name, socket.socket() as free:
        folder = Path(name)
        for key in ("host_key", "key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / key], check=True)
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        (folder / "config").write_text(
            f"ListenAddress 127.0.0.1\nPort {port}\nHostKey {folder}/host_key\nPidFile none\nUsePAM no\n"
            f"StrictModes no\nAuthorizedKeysFile {folder}/key.pub\nPasswordAuthentication no\nLogLevel ERROR\n"
            f"SetEnv XDG_CACHE_HOME={folder}/cache XDG_RUNTIME_DIR={folder}\n"
        )
        sshd = subprocess.Popen([program, "-D", "-f", folder / "config", "-E", folder / "log"])
        try:
            end = monotonic() + 20
            while socket.socket().connect_ex(("127.0.0.1", port)):
                assert sshd.poll() is None and monotonic() < end, (folder / "log").read_text()
                sleep(0.02)
            trust = ["UserKnownHostsFile=" + str(folder / "known"), "StrictHostKeyChecking=accept-new"]
            yield (
                f"{getpass.getuser()}@127.0.0.1:{port}",
                [f"IdentityFile={folder}/key", "IdentitiesOnly=yes", "IdentityAgent=none", *trust],
            )
        finally:
            sshd.terminate()
            sshd.wait()


async def _over_ssh(what: str, host: str, options: list[str], rounds: int) -> Row:
    python = f"{sys.base_prefix}/bin/python3"
    address = f"ssh://{host}?python={python}" + "".join(f"&option={quote(each, safe='')}" for each in options)
    with TemporaryDirectory(prefix="b", dir="/tmp") as folder:
        given = [word for each in (*options, "ControlMaster=auto", f"ControlPath={folder}/%C") for word in ("-o", each)]
        shared = ["ssh", "-F", "none", "-o", "BatchMode=yes", *given]
        _bare([*shared, "-o", "ControlPersist=60", f"ssh://{host}", ":"])
        async with open_terminals(address) as terminals, terminals.lease(cwd="/") as there:
            await _trip(there)
            pairs = [(await _trip(there), _bare([*shared, f"ssh://{host}", ":"])) for _ in range(rounds)]
        _bare([*shared, "-O", "exit", f"ssh://{host}"])
    far, bare = zip(*pairs, strict=True)
    return compared(what, far, bare, unit="µs", goal=Goal("≤", 1))


def _bare(argv: list[str]) -> float:
    """Microseconds that a program takes."""
    began = perf_counter()
    subprocess.run(argv, check=True, capture_output=True)
    return (perf_counter() - began) * 1e6
