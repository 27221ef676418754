"""Every kind of question on a real screen: `?` lists exactly the keys that work, and each key does what it says."""

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.e2e.scripts import command, done, script, turn
from tests.e2e.tmux import Tmux, tarmac_in_tmux

pytestmark = [pytest.mark.shell, pytest.mark.slow]
LABELS = {
    "y": "yes",
    "n": "no",
    "s": "yes, this session",
    "a": "always …",
    "e": "edit",
    "t": "try it",
    "f": "file by file",
    "v": "view all",
    "?": "help",
}
FAILED = '[[turn]]\n[turn.error]\nkind = "bad_request"\nwhat = "no such thing"\nstatus = 400\n'
SERVER = Path(__file__).parents[1] / "tools/mcp_server.py"


@pytest.fixture(autouse=True)
def _tmux(require: Callable[[str], None]) -> None:
    require("tmux")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@contextmanager
def asked(project: Path, *turns: str) -> Iterator[Tmux]:
    play = script(project.parent, *turns)
    with tarmac_in_tmux("run", "do it", "--script", play, cwd=project, columns=140, rows=60) as tmux:
        yield tmux


def press_help(tmux: Tmux, keys: str, *wanted: str) -> str:
    """The question offers these keys, and `?` explains these and no others."""
    tmux.until("   ".join(f"{key} {LABELS[key]}" for key in keys), *wanted)
    tmux.type("?")
    seen = tmux.until("Ctrl-C: stop the task")
    assert "".join(re.findall(r"(?m)^ {4}(\S)  \S", seen)) == keys.rstrip("?")
    tmux.question()
    return seen


def press(tmux: Tmux, key: str, *shown: str, at: str = "") -> None:
    """Press a key at the question that shows `at`, and wait for what comes of it."""
    tmux.question(*([at] if at else []))
    tmux.type(key)
    tmux.until(*shown, history=True)


def test_every_key_of_a_command(project: Path, require: Callable[[str], None]) -> None:
    """U5, U8, P5, P6."""
    require("bwrap")
    lines = ("touch no", "touch yes", "touch wrong", "touch tried", "mkdir always", "mkdir always")
    calls = [turn("", command(line)) for line in (*lines, "touch session", "touch session")]
    with asked(project, *calls, done()) as tmux:
        press_help(tmux, "ynsaet?", "touch no")
        press(tmux, "n", "→ no")
        press(tmux, "y", "→ yes", at="touch yes")
        press(tmux, "e", "Edit the command:", "Enter judges it again", at="touch wrong")
        tmux.keys("C-w")
        tmux.type("right")
        tmux.keys("Enter")
        press(tmux, "y", at="touch right")
        press(tmux, "t", "On the copy: exit code 0", "keep these changes", at="touch tried")
        tmux.type("d")
        tmux.until("→ discarded")
        press(tmux, "n", "mkdir always")
        press(tmux, "a", "1  in this task", "n none of them")
        tmux.type("n")
        tmux.until("nothing is always allowed")
        press(tmux, "a", "n none of them")
        tmux.type("1")
        tmux.until("from now on allowed in this task")
        press(tmux, "s", "→ yes, for this session", "✓ Done", at="touch session")
        assert tmux.leave() == 0
    assert sorted(each.name for each in project.iterdir()) == ["always", "right", "session", "yes"]


def test_every_key_of_an_edit(project: Path) -> None:
    """U5, U8: a long one is shown whole on request; a yes for the session is the level `edits`."""
    long = "".join(f"line {number}\n" for number in range(200))
    contents = {"no.txt": long, "yes.txt": "short\n", "session.txt": "a\n", "unasked.txt": "b\n"}
    calls = [turn("", ("write_to_file", {"path": name, "content": text})) for name, text in contents.items()]
    with asked(project, *calls, done()) as tmux:
        press_help(tmux, "ynsv?", "… 81 lines more …")
        press(tmux, "v", "+line 120\n")
        press(tmux, "n", "→ no")
        press(tmux, "y", "→ yes", at="yes.txt")
        press(tmux, "s", "without asking from now on", at="session.txt")
        tmux.until("✓ Done", "  code · edits (shift-tab)")
        assert tmux.leave() == 0
    del contents["no.txt"]
    assert {each.name: each.read_text() for each in project.iterdir()} == contents


def test_every_key_of_a_patch_over_several_files(project: Path) -> None:
    """U8, S13: what was allowed is changed, file by file, and nothing else."""
    for name in ("changed", "gone", "kept"):
        (project / name).write_text(f"{name}\n")
    parts = {
        "changed": "*** Update File: changed\n@@\n-changed\n+anew\n",
        "added": "*** Add File: added\n+new\n",
        "gone": "*** Delete File: gone\n",
        "kept": "*** Update File: kept\n@@\n-kept\n+spoiled\n",
    }
    patch = turn("", ("apply_patch", {"patch": f"*** Begin Patch\n{''.join(parts.values())}*** End Patch"}))
    other = turn("", ("apply_patch", {"patch": f"*** Begin Patch\n{parts['added']}{parts['kept']}*** End Patch"}))
    with asked(project, patch, patch, other, done()) as tmux:
        seen = press_help(tmux, "ynsf?", "changed", "added", "kept")
        assert re.findall(r"\? (\w+) this file\?\n▌ +(?:\S*/)?(\w+)\n", seen) == [
            ("Write", "changed"),
            ("Write", "added"),
            ("Delete", "gone"),
            ("Write", "kept"),
        ]
        press(tmux, "n", "→ no")
        tmux.question()
        assert sorted(each.name for each in project.iterdir()) == ["changed", "gone", "kept"]
        tmux.type("f")
        for name, key in {"changed": "y", "added": "n", "gone": "y", "kept": "n"}.items():
            tmux.until(f"    {project / name}\n", "y change this file   n leave it", gone="? help")
            tmux.type(key)
            tmux.until(f"    {project / name}\n      → {'yes' if key == 'y' else 'no'}")
        tmux.question()
        assert {each.name: each.read_text() for each in project.iterdir()} == {"changed": "anew\n", "kept": "kept\n"}
        press(tmux, "y", "✓ Done")
        assert tmux.leave() == 0
    assert {each.name: each.read_text() for each in project.iterdir()} == {
        "changed": "anew\n",
        "added": "new\n",
        "kept": "spoiled\n",
    }


def test_every_key_of_a_question_of_the_model(project: Path) -> None:
    """U8, S5."""
    ask: dict[str, object] = {"question": "Which colour?", "follow_up": [{"text": "red paint"}, {"text": "blue paint"}]}
    question = turn("", ("ask_followup_question", ask))
    with asked(project, question, question, done()) as tmux:
        tmux.until("Which colour?", "1    2    ? help   or your own words")
        tmux.type("?")
        seen = tmux.until("Ctrl-C: stop the task")
        assert re.findall(r"(?m)^ {4}(\S)  (.*\S)", seen) == [("1", "red paint"), ("2", "blue paint")]
        press(tmux, "2", "→ blue paint")
        tmux.question()
        tmux.type("none of these")
        tmux.keys("Enter")
        tmux.until("→ none of these", "✓ Done")
        assert tmux.leave() == 0


def test_every_key_of_a_secret(project: Path) -> None:
    """U8, T19: any character is part of it; Enter sends it, Ctrl-D sends nothing."""
    asks = command("read -rsp 'Password: ' x; echo; printf %s \"$x\" >got", timeout=3)
    with asked(project, turn("", asks), done()) as tmux:
        press(tmux, "y", "asks for a secret", "Enter sends it, Ctrl-D sends nothing")
        tmux.keys("C-d")
        tmux.until("❯", gone="Enter sends it")
        assert not (project / "got").exists()
        tmux.keys("C-c")
        tmux.until("Stopped")
    with asked(project, turn("", asks), done()) as tmux:
        press(tmux, "y", "Enter sends it, Ctrl-D sends nothing")
        tmux.type("?y n")
        tmux.keys("Enter")
        tmux.until("✓ Done", gone="?y n")
        assert tmux.leave() == 0
    assert (project / "got").read_text() == "?y n"


def greet(who: str) -> tuple[str, dict[str, object]]:
    """A call of the server's tool."""
    return "use_mcp_tool", {"server_name": "tester", "tool_name": "greet", "arguments": {"who": who}}


def test_every_key_of_a_tool_of_a_server(project: Path) -> None:
    """U8."""
    (project / ".tarmac").mkdir()
    (project / ".tarmac/mcp_servers.toml").write_text(
        f'[servers.tester]\ncommand = "{sys.executable}"\nargs = ["{SERVER}"]\n'
    )
    greetings = [turn(f"Greeting {number}.", greet(f"Ada {number}")) for number in range(4)]
    with asked(project, *greetings, done()) as tmux:
        press_help(tmux, "ynsa?", "Greeting 0.", "tester")
        press(tmux, "n", "→ no")
        press(tmux, "y", "→ yes", at="Greeting 1.")
        press(tmux, "y", "Greeting 2.", at="tester greet")  # the same call goes on, and asks for the tool itself
        press(tmux, "a", "3  everywhere", "n none of them", at="Greeting 2.")
        tmux.type("n")
        tmux.until("nothing is always allowed")
        press(tmux, "s", "→ yes, for this session", "✓ Done")
        seen = tmux.screen(history=True)
        assert tmux.leave() == 0
    assert seen.count("? Use this MCP server?") == 4 and "Greeting 3." in seen


WRONG = [turn("", ("fly", {"to": number})) for number in range(3)]
ABOUT_THE_TASK = {
    "failed request": ([FAILED], "", "send the request again", "say what to do instead"),
    "mistakes": (WRONG, "", "let the model go on", "tell the model what to do"),
    "limit": ([], "[limits]\nmax_auto_requests = 1\n", "go on, and count anew", "say what to do instead"),
}


@pytest.mark.parametrize(("turns", "settings", "yes", "words"), ABOUT_THE_TASK.values(), ids=ABOUT_THE_TASK)
def test_every_key_of_a_question_about_the_task(
    turns: list[str], settings: str, yes: str, words: str, project: Path
) -> None:
    """U8: yes goes on, words go on with them, no stops the task."""
    if settings:
        (project / ".tarmac").mkdir()
        (project / ".tarmac/config.toml").write_text(settings)
    steps = [turn(f"Step {number}.", command(f"echo {number}")) for number in range(4)]
    first = [] if turns else steps[:1]
    with asked(project, *first, *turns, steps[1], *turns, steps[2], *turns, steps[3]) as tmux:
        seen = press_help(tmux, "yn?", words)
        assert f"    y  {yes}\n    n  no: the task stops\n    words and Enter: {words}\n" in seen
        press(tmux, "y", "→ yes", "Step 1.")
        tmux.question()
        tmux.type("walk on")
        tmux.keys("Enter")
        tmux.until("→ walk on", "Step 2.", history=True)
        press(tmux, "n", "→ no")
        tmux.until("❯", gone="? help")
        tmux.keys("C-d")
        tmux.exit_status()
        assert "Step 3." not in tmux.screen(history=True)
