"""Doors for other programs: what a client waits for before the first answer, in CPU of the whole process.

`tarmac mcp`, from its start to the answer to `initialize`, beside `import mcp.server` alone, which every server that is
built on that SDK pays. What a tool needs is imported after the first answer.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping

from benchmarks.home import private_home
from benchmarks.rounds import Goal, Row, compared

IMPORT = (sys.executable, "-c", "import mcp.server")
SERVER = (sys.executable, "-m", "tarmac", "mcp")
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "benchmark", "version": "1"},
    },
}


def measure(*, quick: bool) -> Iterator[Row]:
    rounds = 2 if quick else 20
    with private_home() as home:
        env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        env["PYTHONPYCACHEPREFIX"] = str(home / "bytecode")
        _import(env), _first_answer(env)  # fills the cache
        imports, answers = [], []
        for _ in range(rounds):  # in turn, so that both see the same machine
            imports.append(_import(env))
            answers.append(_first_answer(env))
    yield compared("`tarmac mcp`, first answer | import mcp.server", answers, imports, unit="ms", goal=Goal("≤", 1.6))


def _import(env: Mapping[str, str]) -> float:
    """What a process used, in ms, from its start to its end."""
    process = subprocess.Popen(IMPORT, stdin=subprocess.DEVNULL, env=env)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return (used.ru_utime + used.ru_stime) * 1000


def _first_answer(env: Mapping[str, str]) -> float:
    """What the server has used, in ms, when its first answer is there."""
    with subprocess.Popen(
        SERVER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env
    ) as process:
        assert process.stdin and process.stdout
        process.stdin.write(json.dumps(HELLO).encode() + b"\n")
        process.stdin.flush()
        answer = process.stdout.readline()
        with open(f"/proc/{process.pid}/schedstat") as file:  # noqa: PTH123
            spent = int(file.read().split()[0]) / 1e6  # of its main thread: nothing else runs yet
        process.stdin.close()
    assert b'"serverInfo"' in answer
    return spent
