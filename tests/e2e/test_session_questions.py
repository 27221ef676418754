"""Questions about the task itself, secrets typed at once, and what becomes of commands at the end of a session."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.e2e.scripts import command, done, script, turn
from tests.e2e.tmux import READY, tarmac_in_tmux

pytestmark = [pytest.mark.shell, pytest.mark.slow]
FAILED = '[[turn]]\n[turn.error]\nkind = "bad_request"\nwhat = "no such thing"\nstatus = 400\n'


@pytest.fixture(autouse=True)
def _tmux(require: Callable[[str], None]) -> None:
    require("tmux")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def test_a_secret_typed_the_moment_it_is_asked_for_arrives_whole(project: Path) -> None:
    """T19, U2: also what was typed in the editor stays there."""
    asks = command("read -rsp 'Password: ' x; echo; printf %s \"$x\" >got")
    play = script(project.parent, turn("", asks), done())
    with tarmac_in_tmux("run", "do it", "--script", play, cwd=project) as tmux:
        tmux.question()
        tmux.type("y")
        tmux.until("asks for a secret")
        tmux.keys("at once", "Enter")
        tmux.until("✓ Done", gone="at once")
        assert tmux.leave() == 0
    assert (project / "got").read_text() == "at once"


def test_a_request_that_failed_is_asked_about_with_keys_that_are_explained(project: Path) -> None:
    """S11, U8."""
    play = script(project.parent, FAILED, done("Now it works."))
    with tarmac_in_tmux("run", "do it", "--script", play, cwd=project) as tmux:
        tmux.question("The model can't be reached", "no such thing", "say what to do instead")
        tmux.type("?")
        tmux.question("send the request again", "no: the task stops")
        tmux.type("y")
        tmux.until("Now it works.")
        assert tmux.leave() == 0


def test_a_model_that_makes_only_mistakes_is_asked_about_in_one_line_and_notices_are_shown(project: Path) -> None:
    """S11, U8: what a workspace may not set is said when the task begins."""
    (project / ".tarmac").mkdir()
    (project / ".tarmac/config.toml").write_text("[policy]\nauto_approve_write = true\n")
    wrong = [turn("", ("fly", {"to": number})) for number in range(3)]
    play = script(project.parent, *wrong, done("Now I walk."))
    with tarmac_in_tmux("run", "--script", play, cwd=project) as tmux:
        tmux.until(READY)
        tmux.keys("go", "Enter")
        screen = tmux.question("The last: There is no tool 'fly'.\n", "tell the model what to do")
        question = screen[screen.index("? The model is stuck.") :]
        assert "read_file" not in question
        assert "policy.auto_approve_write = true is ignored" in " ".join(tmux.screen(history=True).split())
        tmux.type("?")
        tmux.question("let the model go on", "no: the task stops")
        tmux.type("walk instead")
        tmux.keys("Enter")
        tmux.until("Now I walk.")
        assert tmux.leave() == 0


def test_the_names_of_models_complete(project: Path) -> None:
    """U3."""
    play = script(project.parent, done())
    with tarmac_in_tmux("run", "--script", play, cwd=project) as tmux:
        tmux.until(READY)
        tmux.type("/model scr")
        tmux.keys("Tab")
        tmux.until("❯ /model scripted/")
