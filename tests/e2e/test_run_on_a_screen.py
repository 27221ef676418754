"""`tarmac run` with a person before it: their answers, their words, their Ctrl-C, their passwords."""

import hashlib
import json
import os
import re
import signal
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.cli.conftest import PATIENCE, Screen, alive, on_a_screen, read_until, tarmac
from tests.e2e.scripts import command, done, script, turn

pytestmark = pytest.mark.shell
QUESTION = b"or say something: "


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@contextmanager
def run(project: Path, *turns: str, more: tuple[str, ...] = ()) -> Iterator[Screen]:
    play = script(project.parent, *turns)
    with on_a_screen("run", "do it", "--script", play, "--cwd", str(project), *more) as screen:
        yield screen


def facts() -> list[dict[str, object]]:
    task = json.loads(tarmac("tasks", "--json").out.splitlines()[0])["id"]
    return [json.loads(line) for line in tarmac("tasks", "show", task, "--json").out.splitlines()]


def result() -> dict[str, object]:
    return next(each for each in facts() if each["kind"] == "tool_finished" and each["name"] == "execute_command")


def test_a_yes_runs_it_and_words_with_it_reach_the_model(project: Path) -> None:
    """S13: approved with feedback."""
    with run(project, turn("", command("touch made")), done()) as screen:
        shown = screen.until(QUESTION)
        screen.type(b"y but gently\r")
        shown += screen.rest()
        assert screen.process.returncode == 0
    assert (project / "made").exists()
    assert b"    \x1b[1mtouch made\x1b[m" in shown and str(project).encode() in shown
    assert "but gently" in json.dumps(result()["content"])


def test_a_no_runs_nothing_and_says_why(project: Path) -> None:
    """S13: denied with feedback; the exit status is that of the task."""
    with run(project, turn("", command("touch made")), done()) as screen:
        screen.until(QUESTION)
        screen.type(b"n not in this folder\r")
        screen.rest()
        assert screen.process.returncode == 0
    assert not (project / "made").exists()
    assert result()["outcome"] == "denied" and "not in this folder" in json.dumps(result()["content"])


def test_words_without_a_decision_count_as_no(project: Path) -> None:
    """P6."""
    with run(project, turn("", command("touch made")), done()) as screen:
        screen.until(QUESTION)
        screen.type(b"x\r")  # too short to be words: asked again
        screen.until(QUESTION)
        screen.type(b"why not mkdir?\r")
        screen.rest()
    assert not (project / "made").exists() and "why not mkdir?" in json.dumps(result()["content"])


def test_always_shows_exactly_what_it_would_allow_and_asks_no_second_time(project: Path) -> None:
    """P5: and it can be taken back."""
    line = command("touch made; echo twice")
    with run(project, turn("", command("mkdir -p sub")), turn("", command("mkdir -p sub")), done()) as screen:
        screen.until(QUESTION)
        screen.type(b"a\r")
        offered = screen.until(b"none of them) ")
        assert b"mkdir -p sub" in offered and b"in this workspace" in offered
        screen.type(b"2\r")
        shown = screen.rest()
        assert screen.process.returncode == 0, line
    assert b"`tarmac grants` takes it back" in shown and QUESTION not in shown
    (grant,) = map(json.loads, tarmac("grants", "--json").out.splitlines())
    assert (grant["scope"], grant["text"].startswith("mkdir")) == ("workspace", True)


def test_what_would_always_be_allowed_is_shown_with_the_ends_of_its_lines(project: Path) -> None:
    """P5: word for word; a newline was shown as a blank."""
    with run(project, turn("", command("mkdir 'a\nb'")), done()) as screen:
        screen.until(QUESTION)
        screen.type(b"a\r")
        assert "mkdir 'a ⏎ b' (this line only)".encode() in screen.until(b"none of them) ")
        screen.type(b"\r")
        screen.until(QUESTION)
        screen.type(b"n\r")
        screen.rest()


def test_a_limit_is_told_once(project: Path) -> None:
    """S16: not on the screen and once more below it."""
    with run(
        project, turn("", ("list_files", {"path": "."})), done(), more=("--max-turns", "1", "--auto", "read")
    ) as screen:
        shown = screen.rest()
        assert (screen.process.returncode, shown.count(b"the limit of 1 turn is reached")) == (5, 1)
    assert b"hint: `tarmac resume" in shown


def test_no_number_is_no_grant_and_the_question_is_still_there(project: Path) -> None:
    with run(project, turn("", command("mkdir sub")), done()) as screen:
        screen.until(QUESTION)
        screen.type(b"a\r")
        screen.until(b"none of them) ")
        screen.type(b"\r")
        screen.until(QUESTION)
        screen.type(b"n\r")
        screen.rest()
    assert tarmac("grants", "--json").out == "" and not (project / "sub").exists()


def test_an_edited_command_is_judged_and_asked_about_anew(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """P6: what is shown is what runs."""
    monkeypatch.delenv("EDITOR", raising=False)
    monkeypatch.delenv("VISUAL", raising=False)
    with run(project, turn("", command("touch wrong")), done()) as screen:
        screen.until(QUESTION)
        screen.type(b"e\r")
        screen.until(b"leave it): ")
        screen.type(b"touch right\r")
        assert b"touch right" in screen.until(QUESTION)
        screen.type(b"y\r")
        screen.rest()
    assert [each.name for each in project.iterdir()] == ["right"]


def test_the_editor_of_the_person_is_used(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDITOR", "sed -i s/wrong/right/")
    monkeypatch.delenv("VISUAL", raising=False)
    with run(project, turn("", command("touch wrong")), done()) as screen:
        screen.until(QUESTION)
        screen.type(b"e\r")
        screen.until(QUESTION)
        screen.type(b"y\r")
        screen.rest()
    assert [each.name for each in project.iterdir()] == ["right"]


def test_ctrl_c_in_the_editor_is_the_editors(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S6: it goes to all of the foreground; the task is not what the person means."""
    editor = project.parent / "editor.sh"
    editor.write_text("trap 'echo HEARD' INT\necho EDITING\nuntil read x; do :; done\nsed -i s/wrong/right/ \"$1\"\n")
    monkeypatch.setenv("VISUAL", f"bash {editor}")
    with run(project, turn("", command("touch wrong")), done()) as screen:
        screen.until(QUESTION)
        screen.type(b"e\r")
        screen.until(b"EDITING")
        for _ in range(2):
            screen.type(b"\x03")
            screen.until(b"HEARD")
        screen.type(b"\r")
        screen.until(QUESTION)
        screen.type(b"y\r")
        screen.rest()
        assert screen.process.returncode == 0
    assert [each.name for each in project.iterdir()] == ["right"]


def test_of_several_files_each_can_be_answered_by_itself(project: Path) -> None:
    """S13."""
    for name in ("a", "b"):
        (project / name).write_text(f"{name} is here\n")
    files: dict[str, object] = {"files": [{"path": "a"}, {"path": "b"}]}
    with run(project, turn("", ("read_file", files)), done()) as screen:
        screen.until(QUESTION)
        screen.type(b"s\r")
        screen.until(b"/a [y/N] ")
        screen.type(b"y\r")
        screen.until(b"/b [y/N] ")
        screen.type(b"\r")
        screen.rest()
        assert screen.process.returncode == 0
    told = json.dumps([each["content"] for each in facts() if each["kind"] == "tool_finished"])
    assert "a is here" in told and "b is here" not in told


def test_what_was_typed_before_the_question_is_no_answer_to_it(project: Path) -> None:
    """P6: a y from a moment ago approves nothing; lines before it are queued for the model."""
    with run(project, turn("slow " * 20, command("touch made"), pace=0.03), done(), done()) as screen:
        screen.until(b"slow")
        screen.type(b"remember the milk\ry")
        screen.until(QUESTION)
        screen.type(b"n\r")
        screen.rest()
    assert not (project / "made").exists()
    queued = [each["text"] for each in facts() if each["kind"] == "message_queued"]
    assert queued == ["remember the milk"]


def test_what_is_typed_while_it_works_stays_on_the_screen_and_can_be_taken_back(project: Path) -> None:
    """S5: the line that tells how long it takes is drawn every second, over what the terminal had echoed."""
    slow = command("echo begun; until [ -e enough ]; do sleep 0.1; done")
    with run(project, turn("", slow), done(), done(), more=("--auto", "all")) as screen:
        before = screen.modes()
        screen.until(b"begun")
        screen.type(b"hurrx")
        screen.until("❯ hurrx".encode())
        screen.type(b"\x7fy up")
        shown = screen.until("❯ hurry up".encode())
        screen.type(b"\r")
        shown = screen.until(b"(queued) hurry up")
        assert "│ …".encode() not in shown  # nothing came between
        (project / "enough").touch()
        screen.rest()
        assert (screen.process.returncode, screen.modes()) == (0, before)
    assert [each["text"] for each in facts() if each["kind"] == "message_queued"] == ["hurry up"]


def test_ctrl_c_while_one_types_stops_it_and_drops_what_was_typed(project: Path) -> None:
    """S6."""
    slow = command("echo begun; sleep 4711")
    with run(project, turn("", slow), done(), more=("--auto", "all")) as screen:
        before = screen.modes()
        screen.until(b"begun")
        screen.type(b"half a tho")
        screen.until(b"half a tho")
        screen.type(b"\x03")
        screen.until("❯ \x1b[m".encode())
        assert screen.modes() == before
        screen.type(b"stop it\r")
        screen.rest()
    assert "half" not in json.dumps([each for each in facts() if each["kind"] in ("user_said", "message_queued")])


def test_the_end_of_input_denies(project: Path) -> None:
    with run(project, turn("", command("touch made")), done()) as screen:
        screen.until(QUESTION)
        screen.type(b"\x04")
        shown = screen.rest()
        assert (screen.process.returncode, b"end of input" in shown) == (0, True)
    assert not (project / "made").exists()


def test_a_question_of_the_model_is_answered_by_number_or_in_words(project: Path) -> None:
    """S5."""
    ask: tuple[str, dict[str, object]] = (
        "ask_followup_question",
        {"question": "Which?", "follow_up": [{"text": "red"}, {"text": "blue"}]},
    )
    with run(project, turn("", ask), turn("", ask), done()) as screen:
        assert b"blue" in screen.until(b"your own words: ")
        screen.type(b"2\r")
        screen.until(b"your own words: ")
        screen.type(b"green\r")
        screen.rest()
    assert [each["text"] for each in facts() if each["kind"] == "question_answered"] == ["blue", "green", ""]


def test_a_secret_goes_from_the_keyboard_to_the_program_and_nowhere_else(project: Path, own_state: Path) -> None:
    """T25: not on the screen, not in the log, not in the spool."""
    digest = hashlib.sha256(b"correct-horse").hexdigest()
    ask = f"read -rsp 'Password: ' p; echo; printf %s \"$p\" | sha256sum | grep -q ^{digest} && touch right"
    with run(project, turn("", command(ask)), done()) as screen:
        screen.until(QUESTION)
        screen.type(b"y\r")
        shown = screen.until(b"\r\n  Password: ")
        with pytest.raises(AssertionError, match="did not come"):  # a person takes their time
            read_until(screen.master, "✓ Done".encode(), seconds=1.5)
        screen.type(b"correct-horse\r")
        shown += screen.rest()
        assert screen.process.returncode == 0
    assert (project / "right").exists() and result()["exit_code"] == 0
    assert b"correct-horse" not in shown
    files = [path for path in own_state.rglob("*") if path.is_file()]
    assert files and [path for path in files if b"correct-horse" in path.read_bytes()] == []


def test_ctrl_c_stops_the_command_one_says_what_to_do_and_it_goes_on(project: Path) -> None:
    """S6: the first one."""
    with run(project, turn("", command("echo up; sleep 4711")), done("as you say"), more=("--auto", "all")) as screen:
        screen.until("│ up".encode().replace(b"\xe2\x94\x82", b"\x1b[2m\xe2\x94\x82\x1b[m"))
        screen.type(b"\x03")
        screen.until("❯ ".encode())
        screen.type(b"do without it\r")
        shown = screen.rest()
        assert (screen.process.returncode, b"as you say" in shown) == (0, True)
        assert shown.count(b"do without it") == 1  # as it was typed, and not told again
    assert "do without it" in [each.get("text") for each in facts() if each["kind"] == "user_said"]


def test_ctrl_c_twice_ends_it_with_130_and_it_can_be_resumed(project: Path) -> None:
    """S4, S6: the second one; whatever ran is ended."""
    with run(project, turn("", command("echo $$ >pid; echo up; sleep 4711")), done(), more=("--auto", "all")) as screen:
        screen.until("│ up".encode().replace(b"\xe2\x94\x82", b"\x1b[2m\xe2\x94\x82\x1b[m"))
        screen.type(b"\x03")
        screen.until("❯ ".encode())
        screen.type(b"\x03")
        shown = screen.rest()
        assert screen.process.returncode == 130
    task = re.search(rb"tarmac resume (\w+)", shown)
    assert task is not None
    with pytest.raises(ProcessLookupError):
        os.kill(int((project / "pid").read_text()), 0)
    play = script(project.parent, turn(""), done("resumed"))
    again = tarmac("resume", task[1].decode(), "--script", play, "--cwd", str(project))
    assert (again.code, "resumed" in again.out) == (0, True), again.err


def test_ctrl_c_while_it_is_asked_runs_nothing(project: Path) -> None:
    with run(project, turn("", command("touch made")), done()) as screen:
        screen.until(QUESTION)
        screen.type(b"\x03")
        screen.until("❯ ".encode())
        screen.type(b"\x04")
        screen.rest()
        assert screen.process.returncode == 130
    assert not (project / "made").exists()


def test_ctrl_c_at_a_secret_ends_who_asked_and_the_echo_is_back(project: Path) -> None:
    """T25, S6: as Ctrl-C does at sudo's prompt; what was typed so far goes nowhere."""
    ask = command("echo $$ >pid; read -rsp 'Password: ' p; touch wrong")
    with run(project, turn("", ask), done("Without it."), more=("--auto", "all")) as screen:
        before = screen.modes()
        screen.until(b"\r\n  Password: ")
        screen.type(b"half-a-secret\x03")
        shown = screen.until("❯ ".encode())
        assert screen.modes() == before
        screen.type(b"do without\r")
        shown += screen.rest()
        assert (screen.process.returncode, screen.modes()) == (0, before)
    assert b"Without it." in shown and b"half-a-secret" not in shown and not (project / "wrong").exists()
    assert result()["outcome"] == "interrupted" and "half-a-secret" not in json.dumps(facts())
    assert not alive(int((project / "pid").read_text()))


def test_a_secret_of_a_command_left_running_is_asked_for_again_after_a_stop(project: Path) -> None:
    """T25: it is still wanted, and only the person can type it."""
    ask = command("read -rsp 'Password: ' p; echo; [ \"$p\" = pass-word ] && touch right", timeout=0.5)
    wait = ("wait_for_terminal", {"id": "t1", "timeout": 60})
    with run(project, turn("", ask), turn("", wait), turn("", wait), done(), more=("--auto", "all")) as screen:
        screen.until(b"\r\n  Password: ")
        end = time.monotonic() + PATIENCE
        while "tool_finished" not in [each["kind"] for each in facts()]:  # its time is over, and the model waits for it
            assert time.monotonic() < end
        screen.type(b"\x03")
        screen.until("❯ ".encode())
        screen.type(b"go on\r")
        screen.until(b"\r\n  Password: ")
        screen.type(b"pass-word\r")
        screen.rest()
        assert screen.process.returncode == 0
    assert (project / "right").exists()


def test_after_ctrl_z_and_fg_a_secret_is_still_unseen_and_the_question_is_there_again(project: Path) -> None:
    """T25: the shell between them has set the terminal as it likes it."""
    ask = command("read -rsp 'Password: ' p; [ ${#p} = 9 ]")
    with run(project, turn("", ask), done(), more=("--auto", "all")) as screen:
        before = screen.modes()
        screen.until(b"\r\n  Password: ")
        hidden = screen.modes()
        screen.process.send_signal(signal.SIGSTOP)
        termios.tcsetattr(screen.master, termios.TCSANOW, before)  # type: ignore[arg-type]
        screen.process.send_signal(signal.SIGCONT)
        assert screen.until(b"  Password: ") and screen.modes() == hidden
        screen.type(b"pass-word\r")
        assert b"pass-word" not in screen.rest() and screen.modes() == before
    assert result()["exit_code"] == 0


def test_the_terminal_is_as_it_was_after_a_signal_during_a_secret(project: Path) -> None:
    """The echo is back."""
    secret = command("read -rsp 'Password: ' p")
    with run(project, turn("", secret), turn("", delay=60), more=("--auto", "all")) as screen:
        before = screen.modes()
        screen.until(b"\r\n  Password: ")
        assert screen.modes() != before
        screen.process.terminate()
        screen.rest()
        assert (screen.process.returncode, screen.modes()) == (143, before)


@pytest.mark.parametrize(
    ("name", "value", "escapes"), [("NO_COLOR", "1", rb"\x1b\[[0-9;]*m"), ("TERM", "dumb", rb"\x1b")]
)
def test_colours_are_left_out_where_nobody_wants_them(
    project: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str, escapes: bytes
) -> None:
    monkeypatch.setenv(name, value)
    with run(project, turn("Hello.", command("echo out")), done(), more=("--auto", "all")) as screen:
        shown = screen.rest()
    assert b"Hello." in shown and re.findall(escapes, shown) == []


def test_escapes_of_the_model_and_of_commands_do_nothing_to_the_terminal(project: Path) -> None:
    """A5: a title, a clipboard, a cleared screen."""
    evil = "\x1b]0;evil\x07\x1b]52;c;ZXZpbA==\x07\x1b[2J"
    out = command("printf '\\033]0;evil\\007\\033[2Jplain\\n'")
    with run(project, turn(f"Hello {evil}", out), done(evil), more=("--auto", "all")) as screen:
        shown = screen.rest()
    for bad in (b"\x1b]", b"\x1b[2J", b"\x07"):
        assert bad not in shown
    assert b"plain" in shown and "⟨U+001B⟩]0;evil".encode() in shown


def test_when_it_is_done_one_says_what_is_missing_or_leaves(project: Path) -> None:
    """S5: the result is asked about; Enter accepts it, words go on with it, Ctrl-C leaves with its exit status 0."""
    with run(project, done("First."), done("Second."), done("Third.")) as screen:
        screen.until(b"or say what is missing")
        screen.type(b"and the docs\r")
        assert b"Second." in screen.until(b"or say what is missing")
        screen.type(b"\r")
        assert b"hint:" not in screen.rest()
        assert screen.process.returncode == 0
    asked = [each["ask"] for each in facts() if each["kind"] == "question_asked"]
    answers = [(each["answer"], each["text"]) for each in facts() if each["kind"] == "question_answered"]
    assert asked == ["completion_result"] * 2 and answers == [("message", "and the docs"), ("yes", "")]
    with run(project, done("Once.")) as screen:
        screen.until("❯ \x1b[m".encode())
        screen.type(b"\x03")
        screen.rest()
        assert screen.process.returncode == 0


def test_what_is_resumed_goes_on_at_once_and_what_was_done_asks_for_words(project: Path) -> None:
    """S4: whoever runs `tarmac resume` has said yes; a completed task needs words."""
    play = script(project.parent, turn("", command("touch made")), done("First."))
    with on_a_screen("run", "do it", "--script", play, "--cwd", str(project)) as screen:
        screen.until(QUESTION)
        screen.type(b"\x03")
        screen.until(b"Ctrl-C leaves")
        screen.type(b"\x03")
        screen.rest()
    task = str(json.loads(tarmac("tasks", "--json").out.splitlines()[0])["id"])
    play = script(project.parent, done("Now."), done("Now."), done("More."))
    with on_a_screen("resume", task, "--script", play) as screen:
        assert b"Now." in screen.rest()
        assert screen.process.returncode == 0
    with on_a_screen("resume", task, "--script", play) as screen:
        screen.until(b"Say what to do next")
        screen.type(b"more\r")
        screen.rest()
    answers = [(each["answer"], each["text"], each["by"]) for each in facts() if each["kind"] == "question_answered"]
    assert ("yes", "", "run") in answers and ("message", "more", "") in answers


def test_an_answer_in_the_persons_place_waits_once_they_begin_to_type(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P7: also before Enter; without a key the first suggestion is taken."""
    monkeypatch.setenv("TARMAC_POLICY_AUTO_APPROVE_QUESTIONS", "true")
    monkeypatch.setenv("TARMAC_POLICY_QUESTION_TIMEOUT", "0.7")
    ask: tuple[str, dict[str, object]] = (
        "ask_followup_question",
        {"question": "Which?", "follow_up": [{"text": "red"}, {"text": "blue"}]},
    )
    with run(project, turn("", ask), turn("", ask), done()) as screen:
        before = screen.modes()
        assert b"unless you begin to type" in screen.until(b"your own words: ")
        screen.type(b"gree")
        shown = screen.until(b"gree")
        with pytest.raises(AssertionError, match="did not come"):
            read_until(screen.master, b"Which?", seconds=1.5)
        screen.type(b"x\x7fn\r")
        shown = screen.rest()
        assert screen.modes() == before
    answers = [(each["text"], each["by"]) for each in facts() if each["kind"] == "question_answered"]
    assert answers[:2] == [("green", "cli"), ("red", "auto-approval")]
    assert b"x\x08 \x08n" in shown


def test_words_can_be_typed_at_the_terminal_and_one_is_told_how(project: Path) -> None:
    """A5: `tarmac run -` without a pipe does not wait in silence."""
    play = script(project.parent, done("Understood."))
    with on_a_screen("run", "-", "--script", play, "--cwd", str(project)) as screen:
        screen.until(b"Ctrl-D on a line of its own ends it\r\n")
        screen.type(b"say hello\r\x04")
        assert b"Understood." in screen.rest()
