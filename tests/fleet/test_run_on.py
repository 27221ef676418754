"""`tarmac run --on PLACE`: the terminals of a task and its files are there, and nothing of this machine is touched."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.fleet.conftest import Container, Sshd

from tarmac.fleet.open_address import open_place
from tarmac.policy import Action, Execute, OpenTerminal, Policy, ReadFile
from tarmac.policy.files import Files
from tarmac.policy.grants import PrefixRules

pytestmark = [pytest.mark.shell, pytest.mark.fleet]

TARMAC = [sys.executable, "-m", "tarmac"]


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TARMAC_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("TARMAC_CONFIG_DIR", str(tmp_path / "config"))


def tarmac(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*TARMAC, *words], check=False, capture_output=True, text=True, timeout=240, stdin=subprocess.DEVNULL
    )


def script(folder: Path, *turns: tuple[str, Mapping[str, object]]) -> str:
    """A script that makes these calls, and then ends."""
    rows = []
    for name, arguments in (*turns, ("attempt_completion", {"result": "done"})):
        rows.append(
            f"[[turn]]\n[[turn.call]]\nname = {json.dumps(name)}\narguments = {json.dumps(json.dumps(arguments))}"
        )
    path = folder / "play.toml"
    path.write_text("\n".join(rows))
    return str(path)


def results(done: "subprocess.CompletedProcess[str]") -> dict[str, str]:
    """What the model was told, by the name of the tool."""
    events = [json.loads(line) for line in done.stdout.splitlines()]
    ended = [each for each in events if each.get("kind") == "tool_finished"]
    return {each["name"]: "".join(part.get("text", "") for part in each["content"]) for each in ended}


def in_box(container: Container, command: str) -> str:
    argv = [str(container.tools / "docker"), "exec", "-i", "box", "sh", "-c", command]
    return subprocess.run(argv, check=True, capture_output=True, text=True, timeout=60).stdout


def test_a_task_works_on_the_files_of_the_place(container: Container, tmp_path: Path) -> None:
    """F2: the same path exists on this machine with other files, and they stay as they are."""
    here = tmp_path / "work"
    here.mkdir()
    (here / "app.py").write_text("here = 1\n")
    (here / ".tarmacignore").write_text("shown.txt\n")
    in_box(
        container,
        f"mkdir -p {here}/src; cd {here}; echo 'there = 1' > app.py; echo secret > hidden.txt; echo yes > shown.txt;"
        " echo hidden.txt > .tarmacignore; echo far > /tmp/far.txt; ln -s /tmp/far.txt link.txt",
    )
    play = script(
        tmp_path,
        ("read_file", {"path": "app.py"}),
        ("apply_diff", {"path": "app.py", "diff": "<<<<<<< SEARCH\nthere = 1\n=======\nthere = 2\n>>>>>>> REPLACE\n"}),
        ("write_to_file", {"path": "src/new.py", "content": "made = True\n"}),
        ("list_files", {"path": ".", "recursive": True}),
        ("search_files", {"regex": "there"}),
        ("execute_command", {"command": "cat app.py; hostname; pwd"}),
    )
    done = tarmac("run", "--on", "docker://box", "--cwd", str(here), "--script", play, "--auto", "all", "--json", "go")
    told = results(done)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 | there = 1" in told["read_file"]
    assert "hidden.txt" not in told["list_files"]
    assert told["list_files"].splitlines() == ["src/", "src/new.py", ".tarmacignore", "app.py", "link.txt", "shown.txt"]
    assert told["search_files"] == "Found 1 result.\n\n# app.py\n>1 | there = 2\n----"
    assert "there = 2\nbox\n" in told["execute_command"]
    assert str(here) in told["execute_command"]
    assert in_box(container, f"cat {here}/app.py {here}/src/new.py") == "there = 2\nmade = True\n"
    assert (here / "app.py").read_text() == "here = 1\n"
    assert sorted(each.name for each in here.iterdir()) == [".tarmacignore", "app.py"]
    said = [json.loads(line) for line in done.stdout.splitlines()]
    assert any("there are no checkpoints" in each.get("text", "") for each in said)


async def test_the_policy_judges_paths_as_those_of_the_place(container: Container) -> None:
    """F2: hidden files are refused. A link that leads out of the workspace is asked about, and so are commands."""
    in_box(
        container,
        "mkdir -p /home/work/sub /home/target; cd /home/work; echo hidden.txt > .tarmacignore; touch hidden.txt one;"
        " touch plain.txt; ln one two; ln -s /home/target/far link.txt; ln -s ../../target sub/out; ln -s loop loop",
    )
    workspace = Path("/home/work")
    async with open_place("docker://box") as place:
        assert place is not None
        policy = Policy(files=Files(own=place.own, system=place.files), environ={"HOME": str(place.home)})
        rules = PrefixRules(allow=(("touch",), ("cat",)))
        ruled = Policy(rules=rules, files=Files(system=place.files), environ={"HOME": str(place.home)})

        async def judged(action: Action, judge: Policy = policy) -> tuple[str, str]:
            verdict = await judge.judge(action, workspace=workspace)
            return verdict.decision, verdict.rule

        def command(line: str) -> Execute:
            return Execute(line, cwd=workspace, shell="bash")

        expected = {
            "plain.txt": ("allow", "file.read"),
            "two": ("ask", "file.linked"),
            "hidden.txt": ("deny", "file.ignored"),
            "link.txt": ("ask", "file.outside"),
            "sub/out/x": ("ask", "file.outside"),
            "loop": ("deny", "file.trouble"),
            "../target/x": ("ask", "file.outside"),
            "missing": ("allow", "file.read"),
        }
        assert {name: await judged(ReadFile(workspace / name)) for name in expected} == expected
        assert await judged(ReadFile(place.home / ".cache/tarmac/host")) == ("deny", "file.own")
        assert await judged(command("cat plain.txt")) == ("ask", "ask.unproven")
        assert await judged(OpenTerminal(cwd=workspace)) == ("ask", "terminal.open")
        # A rule of the person covers a file of the workspace there, and no link that leads out of it.
        assert (await judged(command("touch plain.txt"), ruled))[0] == "allow"
        assert (await judged(command("touch sub/out/x"), ruled))[0] == "ask"
        assert (await judged(command("cat hidden.txt"), ruled))[0] == "ask"


def test_a_task_at_a_place_is_resumed_there(sshd: Sshd, tmp_path: Path) -> None:
    """F2: over a real ssh. The place is in the task's log, so that it is not mistaken for this machine."""
    there = tmp_path / "there"
    there.mkdir()
    first = ("write_to_file", {"path": "a.txt", "content": "one\n"})
    second = ("search_and_replace", {"path": "a.txt", "search": "one", "replace": "two"})
    play = script(tmp_path, first, ("attempt_completion", {"result": "one"}), second)
    done = tarmac("run", "--on", sshd.address, "--cwd", str(there), "--script", play, "--auto", "all", "--json", "go")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (there / "a.txt").read_text() == "one\n"
    created = json.loads(done.stdout.splitlines()[0])
    assert created["place"] == sshd.address
    again = tarmac("resume", created["task"], "and more", "--script", play, "--auto", "all", "--json")
    assert again.returncode == 0, again.stdout + again.stderr
    assert (there / "a.txt").read_text() == "two\n"


def test_a_place_that_fails_is_told_apart_from_a_task_that_fails(tmp_path: Path) -> None:
    """F5."""
    play = script(tmp_path)
    without = tarmac("run", "--on", "unix:", "--script", play, "go")
    failed = tarmac("run", "--on", f"unix:{tmp_path}/no", "--cwd", "/tmp", "--script", play, "go")
    assert (without.returncode, "--cwd DIR" in without.stderr) == (2, True)
    assert (failed.returncode, "there is no socket" in failed.stderr) == (123, True)
