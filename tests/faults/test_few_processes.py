"""Row 14, and starts under limits: too few processes or too little memory are said, and nothing hangs."""

import json
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.faults.limits import PATIENCE, TARMAC, cgroup, ended, joining, with_memory
from tests.tasks.engine import call, done, turn, write_script

MEMORY = [40 << 20, 60 << 20, 90 << 20, 200 << 20, 400 << 20]


def _script(folder: Path) -> str:
    listed = call("execute_command", command="ls -la | wc -l")
    return write_script(folder / "script.toml", turn(listed), turn(listed), turn(listed), done())


def _argv(verb: str, model: str) -> tuple[str, ...]:
    words = {
        "run": ("run", "--auto", "all", "--model", model, "do it"),
        "exec": ("exec", "echo hello"),
        "check": ("check", "ls -la | wc -l"),
        "acp": ("acp", "--model", model),
        "mcp": ("mcp",),
    }
    return (*TARMAC, *words[verb])


@contextmanager
def few_processes(number: int) -> Iterator[Callable[[], None]]:
    with cgroup("pids", pids_max=number) as group:
        yield joining(group)


@pytest.mark.parametrize("number", [1, 2, 3, 4])
@pytest.mark.parametrize("verb", ["run", "exec", "check"])
def test_with_few_processes_every_verb_comes_to_an_end(tmp_path: Path, verb: str, number: int) -> None:
    """Row 14: no hang and no traceback; what can't be done is said, in a line."""
    with few_processes(number) as prepare:
        end = ended(_argv(verb, _script(tmp_path)), prepare, cwd=tmp_path)
    assert "Traceback" not in end.said
    if end.status == 0:
        assert verb != "exec" or end.out == "hello\n"
    else:
        assert "parser" in end.said or "Resource temporarily unavailable" in end.err


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_run_that_can_judge_nothing_says_so_once(tmp_path: Path, number: int) -> None:
    """Row 14: nobody is there to approve, so it does not begin: no call is denied."""
    with few_processes(number) as prepare:
        end = ended(_argv("run", _script(tmp_path)), prepare, cwd=tmp_path)
    assert end.status == 1
    assert end.err.count("no command can be judged: the parser") == 1
    assert "denied" not in end.said


@pytest.mark.parametrize("number", [1, 2, 3, 4])
@pytest.mark.parametrize("verb", ["acp", "mcp"])
def test_with_few_processes_a_server_answers_and_ends_at_a_signal(tmp_path: Path, verb: str, number: int) -> None:
    """Row 14: both protocols answer their first requests; SIGTERM ends them."""
    with few_processes(number) as prepare:
        _check_server(verb, tmp_path, prepare)


def _requests(verb: str, folder: Path) -> list[dict[str, object]]:
    """What a client asks first; the last of them has the id 2."""
    new = {"cwd": str(folder), "mcpServers": []}
    if verb == "acp":
        return [
            {"id": 1, "method": "initialize", "params": {"protocolVersion": 1, "clientCapabilities": {}}},
            {"id": 2, "method": "session/new", "params": new},
        ]
    client = {"name": "test", "version": "1"}
    known = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
    run = {"name": "run_command", "arguments": {"command": "ls -la | wc -l"}}
    return [
        {"id": 1, "method": "initialize", "params": known},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": run},
    ]


def _check_server(verb: str, folder: Path, prepare: Callable[[], None]) -> None:
    pipe = subprocess.PIPE
    server = subprocess.Popen(
        _argv(verb, _script(folder)), cwd=folder, preexec_fn=prepare, stdin=pipe, stdout=pipe, stderr=pipe, text=True
    )
    too_late = threading.Timer(PATIENCE, server.kill)
    too_late.start()
    try:
        assert server.stdin and server.stdout
        for each in _requests(verb, folder):
            server.stdin.write(json.dumps({"jsonrpc": "2.0", **each}) + "\n")
        server.stdin.flush()
        while True:
            line = server.stdout.readline()
            assert line, f"it left without an answer: {server.communicate()[1]}"
            answer = json.loads(line)
            if answer.get("id") == 2 and "method" not in answer:
                break
        server.send_signal(signal.SIGTERM)
        _, err = server.communicate()
        assert server.returncode == 128 + signal.SIGTERM
        assert "Traceback" not in err
    finally:
        too_late.cancel()
        server.kill()
        server.communicate()


@pytest.mark.parametrize("memory", MEMORY)
@pytest.mark.parametrize("verb", ["run", "exec", "check", "acp", "mcp"])
def test_with_little_memory_every_verb_comes_to_an_end(tmp_path: Path, verb: str, memory: int) -> None:
    """Row 15: `ulimit -v`. No hang and no traceback; where the parser can't run, that is said."""
    end = ended(_argv(verb, _script(tmp_path)), with_memory(memory), cwd=tmp_path)
    assert "Traceback" not in end.said
    assert "backtrace" not in end.said
    if verb in ("run", "check"):
        assert "the parser failed" in end.said or "memory" in end.err
        assert "denied" not in end.said
    if verb == "exec":
        assert (end.status, end.out) == (0, "hello\n")
