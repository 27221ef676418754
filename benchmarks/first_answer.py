"""Other programs: what a client waits for before the first answer, in CPU of the whole process.

`tarmac mcp`, from its start to the answer to `initialize`, beside `import mcp.server` alone, which every server that is
built on that SDK pays; `tarmac acp` by itself. What a tool or a session needs is imported after the first answer;
what that adds, an editor sees with the answer to `session/new`.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median

from benchmarks.home import private_home
from benchmarks.rounds import Goal, Row, compared

IMPORT = (sys.executable, "-c", "import mcp.server")
MCP = (sys.executable, "-m", "tarmac", "mcp")
ACP = (sys.executable, "-m", "tarmac", "acp")
Message = Mapping[str, object]


def _request(id: int, method: str, params: Message) -> Message:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


MCP_HELLO = _request(
    1,
    "initialize",
    {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "benchmark", "version": "1"}},
)
ACP_HELLO = _request(1, "initialize", {"protocolVersion": 1, "clientCapabilities": {}})


def measure(*, quick: bool) -> Iterator[Row]:
    rounds = 2 if quick else 20
    with private_home() as home:
        env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        env["PYTHONPYCACHEPREFIX"] = str(home / "bytecode")
        script = home / "script.toml"
        script.write_text('[[turn]]\ntext = "Hello."\n')
        env["TARMAC_MODEL"] = f"scripted/{script}"
        (project := home / "project").mkdir()
        new = _request(2, "session/new", {"cwd": str(project), "mcpServers": []})
        commands: dict[str, Callable[[], float]] = {
            "import": lambda: _import(env),
            "mcp": lambda: _answered(MCP, [MCP_HELLO], env),
            "acp": lambda: _answered(ACP, [ACP_HELLO], env),
            "session": lambda: _answered(ACP, [ACP_HELLO, new], env),
        }
        for each in commands.values():
            each()  # fills the cache
        spent: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(rounds):  # in turn, so that all see the same machine
            for name, each in commands.items():
                spent[name].append(each())
    goal = Goal("≤", 1.6)
    yield compared(
        "`tarmac mcp`, first answer | import mcp.server", spent["mcp"], spent["import"], unit="ms", goal=goal
    )
    first = median(spent["acp"])
    yield Row(what="`tarmac acp`, first answer, CPU", ours=first, unit="ms", goal=Goal("≤", 300, of="ours"))
    yield Row(what="the same, until a session is open", ours=median(spent["session"]), unit="ms")


def _import(env: Mapping[str, str]) -> float:
    """What a process used, in ms, from its start to its end."""
    process = subprocess.Popen(IMPORT, stdin=subprocess.DEVNULL, env=env)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return (used.ru_utime + used.ru_stime) * 1000


def _answered(command: Sequence[str], requests: Sequence[Message], env: Mapping[str, str]) -> float:
    """What all threads of the program have used, in ms, when the last of its answers is there."""
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env
    ) as process:
        assert process.stdin and process.stdout
        for request in requests:
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
            answer = json.loads(process.stdout.readline())
        threads = Path(f"/proc/{process.pid}/task").glob("*/schedstat")
        spent = sum(int(each.read_text().split()[0]) for each in threads) / 1e6
        process.stdin.close()
    assert answer["id"] == len(requests) and "result" in answer, answer
    return spent
