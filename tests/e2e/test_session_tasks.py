"""A task in a session: stopped, resumed, asked about, with secrets and an editor of the person's."""

import hashlib
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.cli.conftest import alive, on_a_screen, tarmac
from tests.e2e.scripts import command, done, script, turn
from tests.e2e.tmux import PATIENCE, READY, Tmux, tarmac_in_tmux
from tests.tasks.test_checkpoints_snapshot import repository

pytestmark = [pytest.mark.shell, pytest.mark.slow]
ASK: tuple[str, dict[str, object]] = (
    "ask_followup_question",
    {"question": "Which?", "follow_up": [{"text": "red"}, {"text": "blue"}]},
)


@pytest.fixture(autouse=True)
def _tmux(require: Callable[[str], None]) -> None:
    require("tmux")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@contextmanager
def run(project: Path, *turns: str, more: tuple[str, ...] = (), before: str = "", **environ: str) -> Iterator[Tmux]:
    play = script(project.parent, *turns)
    with tarmac_in_tmux("run", "do it", "--script", play, *more, cwd=project, before=before, **environ) as tmux:  # type: ignore[arg-type]
        yield tmux


def facts() -> list[dict[str, object]]:
    task = json.loads(tarmac("tasks", "--json").out.splitlines()[0])["id"]
    return [json.loads(line) for line in tarmac("tasks", "show", task, "--json").out.splitlines()]


def listed() -> list[dict[str, object]]:
    return [json.loads(line) for line in tarmac("tasks", "--json").out.splitlines()]


def of_task(words: str, played: str) -> str:
    """A turn of the task that begins with these words."""
    return played.replace("[[turn]]", f"[[turn]]\ntask = {json.dumps(words)}", 1)


def result() -> dict[str, object]:
    return next(each for each in facts() if each["kind"] == "tool_finished" and each["name"] == "execute_command")


# Always


def test_always_shows_exactly_what_it_would_allow_and_asks_no_second_time(project: Path) -> None:
    """P5: and it can be taken back."""
    with run(project, turn("", command("mkdir -p sub")), turn("", command("mkdir -p sub")), done()) as tmux:
        tmux.question()
        tmux.type("a")
        tmux.until("mkdir -p sub", "2  in this workspace", "none of them")
        tmux.type("2")
        tmux.until("`tarmac grants`", "✓ Done", history=True)
        assert tmux.leave() == 0
    (grant,) = map(json.loads, tarmac("grants", "--json").out.splitlines())
    assert (grant["scope"], grant["text"].startswith("mkdir")) == ("workspace", True)


def test_what_would_always_be_allowed_is_shown_with_the_ends_of_its_lines(project: Path) -> None:
    """P5: word for word; a newline was shown as a blank."""
    with run(project, turn("", command("mkdir 'a\nb'")), done()) as tmux:
        tmux.question()
        tmux.type("a")
        tmux.until("mkdir 'a ⏎ b' (this line only)", "none of them")
        tmux.type("n")
        tmux.until("nothing is always allowed")
        tmux.question()
        tmux.type("n")
        tmux.until("✓ Done")
    assert tarmac("grants", "--json").out == ""


# An editor of the person's


def test_the_editor_of_the_person_is_used(project: Path) -> None:
    """P6."""
    with run(project, turn("", command("touch wrong")), done(), EDITOR="sed -i s/wrong/right/") as tmux:
        tmux.question()
        tmux.type("e")
        tmux.question("touch right")
        tmux.type("y")
        tmux.until("✓ Done")
        tmux.leave()
    assert [each.name for each in project.iterdir()] == ["right"]


def test_control_c_in_the_editor_is_the_editors(project: Path) -> None:
    """S6: it goes to all of the foreground; the task is not what the person means."""
    editor = project.parent / "editor.sh"
    editor.write_text("trap 'echo HEARD' INT\necho EDITING\nuntil read x; do :; done\nsed -i s/wrong/right/ \"$1\"\n")
    with run(project, turn("", command("touch wrong")), done(), VISUAL=f"bash {editor}") as tmux:
        tmux.question()
        tmux.type("e")
        tmux.until("EDITING")
        tmux.keys("C-c")
        tmux.until("HEARD")
        tmux.keys("Enter")
        tmux.question("touch right")
        tmux.type("y")
        tmux.until("✓ Done")
        assert tmux.leave() == 0
    assert [each.name for each in project.iterdir()] == ["right"]


# Answers


def test_of_two_questions_at_once_only_the_one_that_keys_answer_is_on_the_screen(project: Path) -> None:
    """P6, S15: the question of the second subtask stood below that of the first, and `y` answered the first."""
    repository(project, **{"a.txt": "a\n"})
    parts: list[tuple[str, dict[str, object]]] = [
        ("new_task", {"mode": "code", "message": f"make {each}"}) for each in ("one", "two")
    ]
    turns = [of_task("do it", turn("", *parts)), of_task("do it", done())]
    turns += [of_task(f"make {each}", turn("", command(f"touch {each}"))) for each in ("one", "two")]
    turns += [of_task(f"make {each}", done()) for each in ("one", "two")]
    with run(project, *turns, TARMAC_POLICY_AUTO_APPROVE_SUBTASKS="true") as tmux:
        end = time.monotonic() + PATIENCE
        while [row["status"] for row in listed()].count("waiting") < 2:
            assert time.monotonic() < end, listed()
            time.sleep(0.1)
        seen = tmux.question("Run this command?")
        shown, other = ("one", "two") if "touch one" in seen else ("two", "one")
        assert f"touch {other}" not in seen
        tmux.type("y")
        tmux.question(f"touch {other}")
        tmux.type("n")
        tmux.until("✓ Done")
        tmux.leave()
    assert sorted(each.name for each in project.iterdir()) == sorted([".git", "a.txt", shown])


def test_of_several_files_each_can_be_answered_by_itself(project: Path) -> None:
    """S13."""
    outside = project.parent / "elsewhere"
    outside.mkdir()
    for name in ("a", "b"):
        (outside / name).write_text(f"{name} is here\n")
    files: dict[str, object] = {"files": [{"path": str(outside / "a")}, {"path": str(outside / "b")}]}
    with run(project, turn("", ("read_file", files)), done()) as tmux:
        tmux.question("file by file")
        tmux.type("f")
        tmux.until("read this file")
        tmux.type("y")
        tmux.until("→ yes", "/b\n", "read this file")
        tmux.type("n")
        tmux.until("✓ Done", history=True)
        tmux.leave()
    told = json.dumps([each["content"] for each in facts() if each["kind"] == "tool_finished"])
    assert "a is here" in told and "b is here" not in told


def test_the_end_of_input_denies(project: Path) -> None:
    """S13: Ctrl-D."""
    with run(project, turn("", command("touch made")), done()) as tmux:
        tmux.question()
        tmux.keys("C-d")
        tmux.until("the input has ended", "✓ Done")
        assert tmux.leave() == 0
    assert not (project / "made").exists()


def test_a_question_of_the_model_is_answered_by_number_or_in_words(project: Path) -> None:
    """S5."""
    with run(project, turn("", ASK), turn("", ASK), done()) as tmux:
        tmux.until("2  blue", "or your own words")
        tmux.type("2")
        tmux.until("→ blue", "or your own words")
        tmux.type("green")
        tmux.keys("Enter")
        tmux.until("✓ Done")
        tmux.leave()
    assert [each["text"] for each in facts() if each["kind"] == "question_answered"] == ["blue", "green", ""]


def test_an_answer_in_the_persons_place_waits_once_they_begin_to_type(project: Path) -> None:
    """P7: also before Enter; without a key the first suggestion is taken."""
    with run(
        project,
        turn("", ASK),
        turn("", ASK),
        done(),
        TARMAC_POLICY_AUTO_APPROVE_QUESTIONS="true",
        TARMAC_POLICY_QUESTION_TIMEOUT="4",
    ) as tmux:
        tmux.until("unless you begin to type", "or your own words")
        tmux.type("gree")
        tmux.until("? gree")
        assert "auto-approval" not in json.dumps(facts())
        tmux.type("n")
        tmux.keys("Enter")
        tmux.until("✓ Done", history=True)
        tmux.leave()
    answers = [(each["text"], each["by"]) for each in facts() if each["kind"] == "question_answered"]
    assert answers[:2] == [("green", "cli"), ("red", "auto-approval")]


# Stopped and resumed


def test_control_c_stops_the_command_and_the_task_goes_on_with_other_words(project: Path) -> None:
    """S6: the first one."""
    with run(project, turn("", command("echo up; sleep 4711")), done("as you say"), more=("--auto", "all")) as tmux:
        tmux.until("│ up")
        tmux.type("half a tho")
        tmux.keys("C-c")
        tmux.until("– Stopped", "❯ half a tho")  # what was typed stays
        tmux.keys("C-u")
        tmux.type("do without it")
        tmux.keys("Enter")
        tmux.until("✓ Done", "as you say")
        assert tmux.screen(history=True).count("do without it") == 1
        assert tmux.leave() == 0
    assert "do without it" in [each.get("text") for each in facts() if each["kind"] == "user_said"]


def test_control_c_three_times_ends_it_with_130_and_it_can_be_resumed(project: Path) -> None:
    """S4, S6: whatever ran is ended."""
    play = turn("", command("echo $$ >pid; echo up; sleep 4711"))
    with run(project, play, done(), more=("--auto", "all")) as tmux:
        tmux.until("│ up")
        tmux.keys("C-c")
        tmux.until("– Stopped")
        tmux.keys("C-c")
        tmux.until("Ctrl-C again leaves")
        tmux.keys("C-c")
        assert tmux.exit_status() == 130
        task = re.search(r"tarmac resume (\w+)", tmux.screen(history=True))
    assert task is not None
    with pytest.raises(ProcessLookupError):
        os.kill(int((project / "pid").read_text()), 0)
    again = tarmac(
        "resume", task[1], "--script", script(project.parent, done(), done("resumed")), "--cwd", str(project), "--go"
    )
    assert (again.code, "resumed" in again.out) == (0, True), again.err


def test_when_it_is_done_the_person_says_what_is_missing_or_leaves(project: Path) -> None:
    """S5: words go on with it; to leave is to accept the result."""
    with run(project, done("First."), done("Second."), done("Third.")) as tmux:
        tmux.until("First.")
        tmux.type("and the docs")
        tmux.keys("Enter")
        tmux.until("Second.")
        assert tmux.leave() == 0
    asked = [each["ask"] for each in facts() if each["kind"] == "question_asked"]
    answers = [(each["answer"], each["text"]) for each in facts() if each["kind"] == "question_answered"]
    assert asked == ["completion_result"] * 2 and answers == [("message", "and the docs"), ("yes", "")]


def test_resume_shows_a_recap_and_asks_no_model_until_the_person_says_something(project: Path) -> None:
    """U10, S4."""
    with run(project, turn("", command("touch made")), done("First.")) as tmux:
        tmux.question()
        tmux.keys("C-c")
        tmux.until("– Stopped")
        tmux.leave()
    before = [each["kind"] for each in facts()].count("request_started")
    play = script(project.parent, done("Now."), done("Now."))
    with tarmac_in_tmux("resume", "--script", play, cwd=project) as tmux:
        tmux.until("You asked: do it", "Nothing is sent to the model until you say something", READY)
        assert [each["kind"] for each in facts()].count("request_started") == before
        tmux.type("go on")
        tmux.keys("Enter")
        tmux.until("Now.")
        assert tmux.leave() == 0


def test_resume_offers_a_list_where_there_are_several_tasks(project: Path) -> None:
    """U10: it says of each how it stands, in the words of `tarmac tasks`."""
    for text, answer, code in (("first thing", done("Done."), 0), ("second thing", turn("", command("ls")), 1)):
        play = script(project.parent, answer)
        assert tarmac("run", text, "--script", play, "--cwd", str(project)).code == code
    with tarmac_in_tmux("resume", "--script", play, cwd=project) as tmux:
        listed = tmux.until("1  ", "second thing", "2  ", "first thing", "Which task?")
        stands = [line.split()[-3] for line in listed.splitlines() if line.endswith(" thing")]
        assert stands == [line.split()[-4] for line in tarmac("tasks").out.splitlines()[1:]] == ["stopped", "completed"]
        found = [json.loads(line) for line in tarmac("tasks", "--json").out.splitlines()]
        assert [each["outcome"] or each["status"] for each in found] == stands
        tmux.type("7")
        tmux.keys("Enter")
        tmux.until("`7` is not on the list")
        tmux.type("2")
        tmux.keys("Enter")
        tmux.until("You asked: first thing")


@pytest.mark.parametrize("hangs_up", [True, False])
def test_the_session_ends_when_its_terminal_goes_away(project: Path, hangs_up: bool) -> None:
    """U1: also where nobody is told by a signal."""
    trap = () if hangs_up else ("trap '' HUP; ",)
    with run(project, turn("", command("touch made")), before="".join(trap)) as tmux:
        tmux.question()
        shell = int(tmux.run("display-message", "-p", "-t", "t", "#{pane_pid}"))
        (child,) = map(int, Path(f"/proc/{shell}/task/{shell}/children").read_text().split())
    end = time.monotonic() + PATIENCE
    while alive(child):
        assert time.monotonic() < end, "it goes on without a terminal"
        time.sleep(0.05)
    assert not (project / "made").exists()


@pytest.mark.parametrize("hangs_up", [True, False])
def test_the_session_ends_when_its_terminal_goes_away_while_a_person_is_attached(project: Path, hangs_up: bool) -> None:
    """U7: what runs in the terminal ends with it."""
    play = turn("", command("touch made; echo before; cat", timeout=0.5)), turn("It waits.")
    with run(project, *play, before="" if hangs_up else "trap '' HUP; ") as tmux:
        tmux.question()
        tmux.type("y")
        tmux.until("It waits.", "1 running")
        tmux.type("/attach")
        tmux.keys("Enter")
        tmux.until("\nbefore\n", gone=READY)
        shell = int(tmux.run("display-message", "-p", "-t", "t", "#{pane_pid}"))
        (child,) = map(int, Path(f"/proc/{shell}/task/{shell}/children").read_text().split())
    end = time.monotonic() + PATIENCE
    while alive(child):
        assert time.monotonic() < end, "it goes on without a terminal"
        time.sleep(0.05)


def test_a_limit_is_told_once(project: Path) -> None:
    """S16."""
    with run(
        project, turn("", ("list_files", {"path": "."})), done(), more=("--max-turns", "1", "--auto", "read")
    ) as tmux:
        screen = tmux.until("the limit of 1 turn is reached", READY)
        assert screen.count("the limit of 1 turn is reached") == 1
        assert tmux.leave() == 5


# Agents that are hosted


def test_a_hosted_agent_has_the_same_session(project: Path) -> None:
    """U1, A1: its prompt is typed in the editor, its command is asked about, and the keys are the same."""
    agent = (sys.executable, str(Path(__file__).parent.parent / "acp/scripted_agent.py"))
    words = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "I **act**."}}
    steps = [{"update": words}, {"call": "terminal/create", "params": {"command": "touch made"}, "as": "t"}]
    log, model = str(project.parent / "agent.json"), "scripted/of-nobody"
    with tarmac_in_tmux("host", "--", *agent, cwd=project, AGENT_LOG=log, TARMAC_MODEL=model) as tmux:
        assert "of-nobody" not in tmux.until(READY)  # the model is the agent's
        tmux.paste(json.dumps(steps))
        tmux.keys("Enter")
        screen = tmux.question("I act.", "Run this command?", "touch made", "Tarmac does this for")
        assert "y yes" in screen
        tmux.type("y")
        tmux.until("→ yes", "✓ Ran `touch made`", READY)
        tmux.leave()  # its turn may still be under way
    assert (project / "made").exists()


# Secrets


def test_a_secret_goes_from_the_keyboard_to_the_program_and_nowhere_else(project: Path, own_state: Path) -> None:
    """T25: not on the screen, not in the log, not in the spool."""
    digest = hashlib.sha256(b"correct-horse").hexdigest()
    ask = f"read -rsp 'Password: ' p; echo; printf %s \"$p\" | sha256sum | grep -q ^{digest} && touch right"
    with run(project, turn("", command(ask)), done()) as tmux:
        tmux.question()
        tmux.type("y")
        tmux.until("asks for a secret", "Enter sends it")
        tmux.type("correct-horse")
        tmux.until("*************")
        tmux.keys("Enter")
        tmux.until("✓ Done")
        assert "correct-horse" not in tmux.screen(history=True)
        tmux.leave()
    assert (project / "right").exists() and result()["exit_code"] == 0
    files = [path for path in own_state.rglob("*") if path.is_file()]
    assert files and [path for path in files if b"correct-horse" in path.read_bytes()] == []


def test_control_c_at_a_secret_ends_who_asked(project: Path) -> None:
    """T25, S6: as Ctrl-C does at sudo's prompt; what was typed so far goes nowhere."""
    ask = command("echo $$ >pid; read -rsp 'Password: ' p; touch wrong")
    with run(project, turn("", ask), done("Without it."), more=("--auto", "all")) as tmux:
        tmux.until("asks for a secret", "Enter sends it")
        tmux.type("half-a-secret")
        tmux.until("****")
        tmux.keys("C-c")
        tmux.until("– Stopped", gone="****")
        tmux.type("do without")
        tmux.keys("Enter")
        tmux.until("Without it.")
        tmux.leave()
    assert not (project / "wrong").exists()
    assert result()["outcome"] == "interrupted" and "half-a-secret" not in json.dumps(facts())
    assert not alive(int((project / "pid").read_text()))


# How it looks


def test_a_dumb_terminal_gets_plain_lines_and_the_questions_are_asked(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """U6: TERM=dumb."""
    monkeypatch.setenv("TERM", "dumb")
    play = script(project.parent, turn("Hello.", command("touch made")), done())
    with on_a_screen("run", "do it", "--script", play, "--cwd", str(project)) as screen:
        shown = screen.until(b"or say why not: ")
        screen.type(b"y\r")
        shown += screen.rest()
    assert b"Hello." in shown and b"\x1b" not in shown and (project / "made").exists()


def test_no_colour_where_nobody_wants_it(project: Path) -> None:
    """U6: NO_COLOR."""
    with run(project, turn("**Hello.**", command("echo out")), done(), more=("--auto", "all")) as tmux:
        tmux.until("✓ Done")
        assert "\x1b[3" in tmux.run("capture-pane", "-e", "-p", "-t", "t")
    hello = turn("**Hello.**", command("echo out"))
    with run(project, hello, done(), more=("--auto", "all"), NO_COLOR="1") as tmux:
        tmux.until("✓ Done")
        assert re.search(r"\x1b\[[0-9;]*3[0-7]", tmux.run("capture-pane", "-e", "-p", "-t", "t")) is None


def test_escapes_of_the_model_and_of_commands_do_nothing_to_the_terminal(project: Path) -> None:
    """A5: a title, a clipboard, a cleared screen."""
    evil = "\x1b]0;evil\x07\x1b]52;c;ZXZpbA==\x07\x1b[2J"
    out = command("printf '\\033]0;evil\\007\\033[2Jplain\\n'")
    with run(project, turn(f"Hello {evil}", out), done(evil), more=("--auto", "all")) as tmux:
        screen = tmux.until("✓ Done", "plain", "⟨U+001B⟩]0;evil")
        assert "Hello" in screen
        assert "evil" not in tmux.run("display-message", "-p", "-t", "t", "#{pane_title}")


def test_the_screen_is_drawn_again_after_control_z_and_fg(project: Path) -> None:
    """U2: what was typed is still there."""
    play = script(project.parent, done("Hello."))
    with tarmac_in_tmux("run", "do it", "--script", play, cwd=project, shell=True) as tmux:
        tmux.until("✓ Done", READY)
        tmux.type("kept")
        tmux.keys("C-z")
        tmux.until("Stopped")
        tmux.type("fg")
        tmux.keys("Enter")
        tmux.until("❯ kept", READY)
        tmux.keys("C-u", "C-d")
        tmux.until("tarmac resume", gone=READY)


def test_words_can_be_typed_at_the_terminal_and_the_person_is_told_how(project: Path) -> None:
    """A5: `tarmac run -` without a pipe does not wait in silence."""
    play = script(project.parent, done("Understood."))
    with tarmac_in_tmux("run", "-", "--script", play, cwd=project) as tmux:
        tmux.until("End with Ctrl-D on a line of its own")
        tmux.type("say hello")
        tmux.keys("Enter", "C-d")
        tmux.until("Understood.")
