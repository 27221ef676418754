"""`run … | tee log`, `… | tarmac run -`: a person sits at the terminal and is asked there, and what they type."""

import json
import os
import termios
from pathlib import Path

import pytest
from tests.cli.conftest import on_a_screen, tarmac
from tests.e2e.scripts import command, done, script, turn

pytestmark = pytest.mark.shell
QUESTION = b"or say why not: "
PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 50


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def dumb(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal that can't draw: lines instead of the session's editor."""
    monkeypatch.setenv("TERM", "dumb")


def facts() -> list[dict[str, object]]:
    task = json.loads(tarmac("tasks", "--json").out.splitlines()[0])["id"]
    return [json.loads(line) for line in tarmac("tasks", "show", task, "--json").out.splitlines()]


def test_with_its_output_in_a_pipe_a_person_is_asked_on_the_terminal(project: Path, tmp_path: Path) -> None:
    """P6, A5: all of the question is on the terminal, and in the pipe it comes with its answer."""
    play = script(tmp_path, turn("I make it.", command("touch made")), done())
    log = tmp_path / "log"
    with (
        log.open("wb") as out,
        on_a_screen("run", "x", "--script", play, "--cwd", str(project), stdout=out.fileno()) as screen,
    ):
        shown = screen.until(QUESTION)
        assert b"touch made" in shown and b"I make it." not in shown
        assert "Run this command?" not in log.read_text()
        screen.type(b"y\r")
        screen.rest()
        assert screen.process.returncode == 0
    text = log.read_text()
    assert (project / "made").exists()
    asked, answered, ran = (text.index(each) for each in ("? Run this command?", "→ allowed", "✓ Ran `touch made`"))
    assert asked < answered < ran and "\x1b" not in text


def test_with_its_text_from_a_pipe_a_person_is_asked_on_the_terminal(project: Path, tmp_path: Path) -> None:
    play = script(tmp_path, turn("", command("touch made")), done())
    ours, theirs = os.pipe()
    os.write(theirs, b"do it\n")
    os.close(theirs)
    try:
        with on_a_screen("run", "-", "--script", play, "--cwd", str(project), stdin=ours) as screen:
            screen.until(QUESTION)
            screen.type(b"y\r")
            screen.rest()
            assert screen.process.returncode == 0
    finally:
        os.close(ours)
    assert (project / "made").exists()


@pytest.mark.parametrize("given", ["--json", "/dev/null"])
def test_who_wants_no_questions_gets_none(project: Path, tmp_path: Path, given: str) -> None:
    """A5: a program reads along, or there is no input: an ask is a denial, with the reason and what to do."""
    play = script(tmp_path, turn("", command("touch made")), done())
    more = ("--json",) if given == "--json" else ()
    nothing = None if more else os.open(given, os.O_RDONLY)
    with on_a_screen("run", "x", "--script", play, "--cwd", str(project), *more, stdin=nothing) as screen:
        shown = screen.rest()
        assert screen.process.returncode == 0
    if nothing is not None:
        os.close(nothing)
        assert (
            b"Denied: running `touch made`" in shown
            and b"Nobody is here to approve this" in shown
            and b"--auto" in shown
        )
    assert not (project / "made").exists()


def test_feedback_carries_the_pictures_it_names(project: Path, tmp_path: Path, dumb: None) -> None:
    """P6: feedback may carry images; one that is not there is said, and asked for again."""
    (tmp_path / "a shot.png").write_bytes(PNG)
    play = script(tmp_path, turn("", command("touch made")), done())
    with on_a_screen("run", "x", "--script", play, "--cwd", str(project)) as screen:
        screen.until(QUESTION)
        screen.type(f"n like @{tmp_path}/gone.png\r".encode())
        assert b"No such file" in screen.until(QUESTION)
        screen.type(f'n rather as in @"{tmp_path}/a shot.png"\r'.encode())
        screen.rest()
    (answered,) = (each for each in facts() if each["kind"] == "question_answered" and each["text"])
    images = answered["images"]
    assert isinstance(images, list) and [each["media_type"] for each in images] == ["image/png"]
    (told,) = (each for each in facts() if each["kind"] == "tool_finished" and each["name"] == "execute_command")
    assert isinstance(told["content"], list) and [each["type"] for each in told["content"]] == ["text", "image"]


def test_a_password_that_is_typed_too_early_is_not_told_to_the_model(
    project: Path, tmp_path: Path, own_state: Path, dumb: None
) -> None:
    """T19: the command asks for it already, and we have not asked yet."""
    wait = ("wait_for_terminal", {"id": "t1", "timeout": 10})
    ask = "printf 'Password: '; stty -echo; touch asked; read -r p; stty echo; printf %s \"$p\" >got"
    play = script(tmp_path, turn("", command(ask)), turn("", wait), done())
    with on_a_screen("run", "x", "--script", play, "--cwd", str(project), "--auto", "all") as screen:
        while not (project / "asked").exists():
            os.sched_yield()
        screen.type(b"hunter2\r")
        screen.until(b"Enter sends it")
        screen.type(b"correct-horse\r")
        screen.rest()
    assert [each for each in facts() if each["kind"] == "message_queued"] == []
    files = [path for path in own_state.rglob("*") if path.is_file()]
    assert [path for path in files if b"hunter2" in path.read_bytes()] == []
    assert (project / "got").read_text() == "correct-horse"


def test_ctrl_c_twice_ends_it_and_says_how_to_go_on(project: Path, tmp_path: Path, dumb: None) -> None:
    """S6: also twice, before the model has ever answered."""
    slow = '[[turn]]\n[turn.error]\nkind = "rate_limit"\nwhat = "slow down"\nstatus = 429\nretry_after = 60\n'
    play = script(tmp_path, slow, done())
    with on_a_screen("run", "x", "--script", play, "--cwd", str(project)) as screen:
        screen.until(b"again in")
        screen.type(b"\x03")
        screen.until("❯ ".encode())
        screen.type(b"\x03")
        shown = screen.rest()
        assert screen.process.returncode == 130
    assert b"\r\ntarmac: stopped\r\n  hint: `tarmac resume " in shown


def test_a_pager_behind_the_pipe_has_the_keyboard_and_nobody_else_takes_its_keys(project: Path, tmp_path: Path) -> None:
    """A5: `tarmac run … | less` asked over the pager's screen, and both waited for the same key."""
    play = script(tmp_path, turn("I make it.", command("touch made")), done("Without it."))
    log = tmp_path / "log"
    with (
        log.open("wb") as out,
        on_a_screen("run", "x", "--script", play, "--cwd", str(project), stdout=out.fileno()) as screen,
    ):
        modes = termios.tcgetattr(screen.master)
        modes[3] &= ~(termios.ICANON | termios.ECHO)  # as less does when it begins
        termios.tcsetattr(screen.master, termios.TCSANOW, modes)
        pager = screen.modes()
        assert screen.rest() == b"" and screen.process.returncode == 0
        assert screen.modes() == pager
    assert "Without it." in log.read_text() and not (project / "made").exists()
    assert "their pager has the keyboard" in json.dumps(facts())
