"""`tarmac host` from a shell: its options, agents that are none, and what is left of them."""

import base64
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tarmac.terminals.process import processes

pytestmark = [pytest.mark.shell, pytest.mark.slow]

AGENT = [sys.executable, str(Path(__file__).parent.parent / "acp" / "scripted_agent.py")]
DOT = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def host(
    folder: Path,
    *options: str,
    agent: list[str] | None = None,
    cwd: Path | None = None,
    environ: dict[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    (folder / "work").mkdir(exist_ok=True)
    own = {"TARMAC_STATE_DIR": str(folder / "state"), "TARMAC_CONFIG_DIR": str(folder / "config")}
    env = {**os.environ, "HOME": str(folder), **own, "AGENT_LOG": str(folder / "agent.json"), **(environ or {})}
    argv = [sys.executable, "-m", "tarmac", "host", *options, "--", *(agent or AGENT)]
    return subprocess.run(
        argv, cwd=cwd or folder / "work", env=env, capture_output=True, text=True, timeout=60, check=False
    )


def heard(folder: Path, method: str) -> list[dict[str, Any]]:
    log = json.loads((folder / "agent.json").read_text())["heard"]
    return [each["params"] for each in log if each.get("method") == method]


def initialize(**able: Any) -> str:
    return json.dumps({"protocolVersion": 1, "agentCapabilities": able, "agentInfo": {"name": "Some Agent"}})


def tasks(folder: Path) -> list[str]:
    return [each.parent.name for each in (folder / "state" / "tasks").glob("*/log.jsonl")]


# Options


def test_as_json_each_line_is_a_fact_and_the_last_is_the_end(tmp_path: Path) -> None:
    """A1: --json; the facts of the log, from its first, and what streams."""
    done = host(tmp_path, "--json", "--prompt", "hello")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert (done.returncode, done.stderr) == (0, "")
    kinds = [each.get("kind") or each.get("signal") for each in lines]
    assert kinds[0] == "task_created" and "agent_hosted" in kinds and "user_said" in kinds and "model_said" in kinds
    said = [part["text"] for each in lines if each.get("kind") == "model_said" for part in each["parts"]]
    assert said and lines[-1]["text"] == said[-1]  # as with `tarmac run`
    assert lines[-1]["end"] == "completed" and lines[-1]["task"] == tasks(tmp_path)[0]


def test_the_workspace_is_where_it_is_told(tmp_path: Path) -> None:
    """A1: --cwd; the agent runs there, and is told it."""
    there = tmp_path / "there"
    there.mkdir()
    done = host(tmp_path, "--cwd", str(there), "--prompt", json.dumps([{"shell": "pwd > at"}]))
    assert done.returncode == 0, done.stderr
    assert (there / "at").read_text().strip() == str(there)
    assert heard(tmp_path, "session/new")[0]["cwd"] == str(there)
    nowhere = host(tmp_path, "--cwd", str(tmp_path / "no"), "--prompt", "x")
    assert (nowhere.returncode, "does not exist" in nowhere.stderr) == (2, True)


def test_an_agent_that_wants_a_login_is_logged_in_when_told_how(tmp_path: Path) -> None:
    """A1: --auth; without it, or with a wrong one, a sentence says what to do."""
    offer = json.dumps({"protocolVersion": 1, "agentCapabilities": {}, "authMethods": [{"id": "key"}, {"id": "wrong"}]})
    told = {"AGENT_AUTH": "1", "AGENT_INITIALIZE": offer}
    without = host(tmp_path, "--prompt", "x", environ=told)
    assert (without.returncode, without.stdout) == (1, "")
    assert "wants you to log in" in without.stderr and "--auth with one of: key, wrong" in without.stderr
    unknown = host(tmp_path, "--auth", "kye", "--prompt", "x", environ=told)
    assert (unknown.returncode, "has no login `kye`" in unknown.stderr) == (2, True)
    wrong = host(tmp_path, "--auth", "wrong", "--prompt", "x", environ=told)
    assert (wrong.returncode, "no such key" in wrong.stderr) == (1, True)
    assert tasks(tmp_path) == []  # nothing began
    done = host(tmp_path, "--auth", "key", "--prompt", "x", environ=told)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("how", ["modes", "option"])
def test_the_agents_own_mode_can_be_chosen(tmp_path: Path, how: str) -> None:
    """A1: --mode, by id or name, through session/set_mode or the config option that supersedes it."""
    modes = [("ask", "Ask"), ("code", "Write Code")]
    plain = {"currentModeId": "ask", "availableModes": [{"id": id, "name": name} for id, name in modes]}
    values = [{"value": id, "name": name} for id, name in modes]
    option = {"id": "m", "category": "mode", "type": "select", "currentValue": "ask", "options": values}
    session = json.dumps({"modes": plain} if how == "modes" else {"configOptions": [option]})
    done = host(tmp_path, "--mode", "write code", "--prompt", "x", environ={"AGENT_SESSION": session})
    assert done.returncode == 0, done.stderr
    if how == "modes":
        assert heard(tmp_path, "session/set_mode") == [{"sessionId": "s1", "modeId": "code"}]
    else:
        assert heard(tmp_path, "session/set_config_option") == [{"sessionId": "s1", "configId": "m", "value": "code"}]
    wrong = host(tmp_path, "--mode", "plan", "--prompt", "x", environ={"AGENT_SESSION": session})
    assert (wrong.returncode, "has no mode `plan`" in wrong.stderr, "ask, code" in wrong.stderr) == (2, True, True)


def test_a_picture_goes_with_the_prompt_where_the_agent_takes_it(tmp_path: Path) -> None:
    """A1: --image."""
    picture = tmp_path / "dot.png"
    picture.write_bytes(DOT)
    able = initialize(promptCapabilities={"image": True})
    done = host(tmp_path, "--image", str(picture), "--prompt", "look", environ={"AGENT_INITIALIZE": able})
    assert done.returncode == 0, done.stderr
    _, block = heard(tmp_path, "session/prompt")[0]["prompt"]
    assert block == {"type": "image", "mimeType": "image/png", "data": base64.b64encode(DOT).decode()}
    refused = host(tmp_path, "--image", str(picture), "--prompt", "look")
    assert (refused.returncode, "takes no images" in refused.stderr) == (2, True)


@pytest.mark.parametrize(
    ("able", "method"),
    [
        ({"sessionCapabilities": {"resume": {}}, "loadSession": True}, "session/resume"),
        ({"loadSession": True}, "session/load"),
    ],
)
def test_a_session_of_before_is_gone_on_with(tmp_path: Path, able: dict[str, Any], method: str) -> None:
    """A1: --resume, from anywhere; what the agent tells anew is not told twice."""
    told = {"AGENT_INITIALIZE": initialize(**able)}
    first = host(tmp_path, "--prompt", "one", environ=told)
    (task,) = tasks(tmp_path)
    again = host(tmp_path, "--resume", task[:6], "--prompt", "two", cwd=tmp_path, environ=told)
    assert (first.returncode, again.returncode) == (0, 0), again.stderr
    (asked,) = heard(tmp_path, method)
    assert (asked["sessionId"], asked["cwd"], len(asked["mcpServers"])) == ("s1", str(tmp_path / "work"), 1)
    assert "two!" in again.stdout and "of before" not in again.stdout
    assert tasks(tmp_path) == [task]
    log = (tmp_path / "state" / "tasks" / task / "log.jsonl").read_text()
    assert log.count('"kind":"user_said"') == 2 and log.count('"kind":"agent_hosted"') == 2
    ours = _tarmac(tmp_path, "resume", task, "more")
    assert (ours.returncode, f"tarmac host --resume {task}" in ours.stderr) == (2, True)


def test_an_agent_that_cannot_go_on_says_so_and_the_task_stays(tmp_path: Path) -> None:
    host(tmp_path, "--prompt", "one")
    (task,) = tasks(tmp_path)
    again = host(tmp_path, "--resume", task, "--prompt", "two")
    assert (again.returncode, "can't continue an earlier session" in again.stderr) == (2, True)
    assert tasks(tmp_path) == [task]
    none = host(tmp_path, "--resume", "ffff", "--prompt", "two")
    assert (none.returncode, "there is no task" in none.stderr) == (1, True)


# Agents by name


def test_an_agent_is_started_by_the_name_it_has_in_the_configuration(tmp_path: Path) -> None:
    """A1: with its variables, and the words after `--`; options may follow the name."""
    configure(tmp_path)
    said = json.dumps([{"shell": 'printf %s "$AGENT_COLOUR" > colour; tr "\\0" "\\n" < /proc/$PPID/cmdline > words'}])
    done = by_name(tmp_path, "mine", "--json", "--prompt", said, "--", "--more", "x y")
    assert done.returncode == 0, done.stderr
    work = tmp_path / "work"
    assert (work / "colour").read_text() == "blue"
    assert (work / "words").read_text().splitlines() == [*AGENT, "--more", "x y"]
    (hosted,) = (each for each in map(json.loads, done.stdout.splitlines()) if each.get("kind") == "agent_hosted")
    assert hosted["name"] == "My Agent"  # it does not say its own


def test_agents_are_listed_and_a_wrong_name_is_told_the_nearest(tmp_path: Path) -> None:
    """A1: a name of the workspace's own file starts nothing."""
    configure(tmp_path)
    (tmp_path / "work" / ".tarmac").mkdir(parents=True)
    ran = tmp_path / "ran"
    (tmp_path / "work" / ".tarmac" / "config.toml").write_text(f'[agents.theirs]\ncommand = ["touch", "{ran}"]\n')
    listed = by_name(tmp_path, "--list")
    assert listed.stdout.splitlines() == [f"mine   {shlex.join(AGENT)}  (My Agent)", "other  opencode acp"]
    objects = [json.loads(line) for line in by_name(tmp_path, "--list", "--json").stdout.splitlines()]
    assert objects[0] == {"id": "mine", "name": "My Agent", "command": AGENT, "env": ["AGENT_COLOUR"]}
    swapped = by_name(tmp_path, "mien", "--prompt", "x")
    assert (swapped.returncode, "there is no agent `mien`" in swapped.stderr) == (2, True)
    assert "did you mean `mine`? configured: mine, other; `tarmac host -- mien` runs that command" in swapped.stderr
    theirs = by_name(tmp_path, "theirs", "--prompt", "x")
    assert (theirs.returncode, "there is no agent `theirs`" in theirs.stderr, ran.exists()) == (2, True, False)
    assert tasks(tmp_path) == []


def test_shells_complete_the_names_of_agents(tmp_path: Path) -> None:
    """A1, A5: bash and fish ask `tarmac host --list`."""
    configure(tmp_path)
    asks = {
        "bash": 'eval "$(tarmac completion bash)"; COMP_WORDS=(tarmac host ""); COMP_CWORD=2; _tarmac; '
        "printf '%s\\n' \"${COMPREPLY[@]}\"",
        "fish": "tarmac completion fish | source; complete -C 'tarmac host '",
    }
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "HOME": str(tmp_path), "TARMAC_CONFIG_DIR": str(tmp_path / "config")}
    for shell, script in asks.items():
        plain = {"bash": "--norc", "fish": "--no-config"}[shell]
        done = subprocess.run(
            [shell, plain, "-c", script], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60, check=False
        )
        assert {"mine", "other"} <= {line.split("\t")[0] for line in done.stdout.splitlines()}, (shell, done)


def configure(folder: Path) -> None:
    (folder / "config").mkdir()
    mine = f'command = {json.dumps(AGENT)}\nname = "My Agent"\nenv = {{AGENT_COLOUR = "blue"}}'
    (folder / "config" / "config.toml").write_text(
        f'[agents.mine]\n{mine}\n[agents.other]\ncommand = ["opencode", "acp"]\n'
    )
    (folder / "config" / "config.toml").chmod(0o600)


def by_name(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    (folder / "work").mkdir(exist_ok=True)
    own = {"TARMAC_STATE_DIR": str(folder / "state"), "TARMAC_CONFIG_DIR": str(folder / "config")}
    return subprocess.run(
        [sys.executable, "-m", "tarmac", "host", *words],
        cwd=folder / "work",
        env={**os.environ, "HOME": str(folder), **own, "AGENT_LOG": str(folder / "agent.json")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


# Agents that are none


def test_what_is_no_agent_is_told_in_a_sentence_and_leaves_nothing(tmp_path: Path) -> None:
    """A1: one that is not there, dies at once, prints garbage, has no words for us."""
    missing = host(tmp_path, "--prompt", "x", agent=["/nowhere/agent"])
    assert (missing.returncode, "cannot start /nowhere/agent" in missing.stderr) == (1, True)
    dies = host(tmp_path, "--prompt", "x", environ={"AGENT_HOW": "dies"})
    assert dies.returncode == 1
    assert "exit code 7" in dies.stderr and "it said: no key" in dies.stderr
    garbage = host(tmp_path, "--prompt", "x", environ={"AGENT_HOW": "garbage"})
    assert (garbage.returncode, "does it speak ACP? It printed: Welcome" in garbage.stderr) == (1, True)
    cat = host(tmp_path, "--prompt", "x", agent=["cat"])
    assert cat.returncode == 1 and "no method initialize" in cat.stderr
    assert tasks(tmp_path) == []
    assert all("Traceback" not in each.stderr for each in (missing, dies, garbage, cat))


def test_an_agent_that_floods_us_with_nonsense_costs_neither_memory_nor_the_end(tmp_path: Path) -> None:
    """A1: never an answer, and a line without end: it is told that it does not answer; killed at once."""
    began = time.monotonic()
    done = host(tmp_path, "--patience", "2", "--prompt", "x", environ={"AGENT_HOW": "floods"})
    assert (done.returncode, "did not answer initialize in 2 s" in done.stderr) == (1, True)
    assert time.monotonic() - began < 20
    mute = host(tmp_path, "--patience", "1", "--prompt", "x", environ={"AGENT_HOW": "mute"})
    assert (mute.returncode, "did not answer initialize in 1 s" in mute.stderr) == (1, True)
    assert tasks(tmp_path) == []


def test_what_ignores_every_hint_is_gone_all_the_same(tmp_path: Path) -> None:
    """A1: SIGTERM ignored, a child in a session of its own that ignores it too."""
    pids = tmp_path / "pids"
    wait = [{"shell": f"until [ -s {pids} ]; do sleep 0.01; done"}]
    done = host(tmp_path, "--prompt", json.dumps(wait), environ={"AGENT_HOW": "stays", "PIDS": str(pids)})
    assert done.returncode == 0, done.stderr
    assert processes.look(int(pids.read_text())) is None


def test_a_host_that_is_killed_takes_the_agent_with_it(tmp_path: Path) -> None:
    """A1: kill -9; the agent does not mind the end of its input, and would stay for ever."""
    pids = tmp_path / "pids"
    (tmp_path / "work").mkdir()
    env = {**os.environ, "TARMAC_STATE_DIR": str(tmp_path / "state"), "AGENT_HOW": "deaf", "PIDS": str(pids)}
    argv = [sys.executable, "-m", "tarmac", "host", "--prompt", "x", "--", *AGENT]
    with subprocess.Popen(argv, cwd=tmp_path / "work", env=env, stderr=subprocess.DEVNULL) as running:
        assert _soon(lambda: pids.exists() and bool(pids.read_text()))
        running.kill()
    agent = int(pids.read_text())
    assert _soon(lambda: processes.look(agent) is None)


def test_words_of_an_agent_do_nothing_to_the_terminal(tmp_path: Path) -> None:
    """What it calls itself, its errors, its modes and its last words are text, whatever is in them."""
    evil = "\x1b]52;c;aGk=\x07\x1b[2J"
    info = {"name": f"a{evil}", "version": "1\n2"}
    able = json.dumps({"protocolVersion": 1, "agentCapabilities": {}, "agentInfo": info, "authMethods": [{"id": evil}]})
    session = json.dumps({"modes": {"availableModes": [{"id": f"m{evil}", "name": "x"}]}})
    told = {"AGENT_INITIALIZE": able, "AGENT_SESSION": session}
    update = {
        "sessionUpdate": "tool_call",
        "toolCallId": "c",
        "title": f"t{evil}",
        "kind": "other",
        "status": "completed",
    }
    call = {"toolCallId": "d", "title": f"u{evil}", "kind": "other", "rawInput": {"a": evil}}
    ask = {"call": "session/request_permission", "params": {"toolCall": call, "options": []}}
    said = json.dumps([{"update": update}, ask, {"shell": f"printf '%b' '{evil}' >&2"}, {"die": 3}])
    runs = [
        host(tmp_path, "--prompt", said, environ=told),
        host(tmp_path, "--mode", "none", "--prompt", "x", environ=told),
        host(tmp_path, "--auth", "none", "--prompt", "x", environ=told),
        host(tmp_path, "--prompt", "x", environ={**told, "AGENT_AUTH": "1"}),
    ]
    assert [each.returncode for each in runs] == [1, 2, 2, 1]
    shown = [each.stdout + each.stderr for each in runs]
    assert [each.count("\x1b") + each.count("\x07") for each in shown] == [0] * 4


def _soon(done: Callable[[], bool]) -> bool:
    end = time.monotonic() + 15
    while not (found := done()) and time.monotonic() < end:
        time.sleep(0.02)
    return found


def _tarmac(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "HOME": str(folder), "TARMAC_STATE_DIR": str(folder / "state")}
    argv = [sys.executable, "-m", "tarmac", *words]
    return subprocess.run(argv, cwd=folder / "work", env=env, capture_output=True, text=True, timeout=60, check=False)
