"""Two windows on one task: `tarmac run` in one real terminal, `tarmac join` in another."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.e2e.scripts import command, script, turn
from tests.e2e.tmux import READY, tarmac_in_tmux

pytestmark = [pytest.mark.shell, pytest.mark.slow]


def test_a_joined_window_answers_types_secrets_tries_attaches_and_undoes(
    tmp_path: Path, require: Callable[[str], None]
) -> None:
    """F8, S2, P9: all that the task's own window can do; that window sees who did it."""
    require("tmux")
    require("bwrap")
    project = tmp_path / "project"
    project.mkdir()
    play = script(
        tmp_path,
        turn("", command("touch a; read -rsp 'Password: ' p; echo; echo got ${#p} keys")),
        turn("", command("echo hello > made.txt")),
        turn("", command("touch b; echo before; cat", timeout=0.5)),
        turn("It waits."),
    )
    with tarmac_in_tmux("run", "do it", "--script", play, cwd=project, columns=160) as one:
        one.question("read -rsp")
        with tarmac_in_tmux("join", cwd=project, columns=160) as two:
            two.question("read -rsp")
            two.type("y")
            one.until("another terminal answered: yes")
            for each in (one, two):
                each.until("asks for a secret", "Ctrl-D sends nothing")
            two.type("hunter2")
            two.keys("Enter")
            one.until("The program no longer asks", "got 7 keys")

            two.question("echo hello > made.txt", "t try it")
            two.type("t")
            two.until("On the copy: exit code 0", "keep these changes")
            assert not (project / "made.txt").exists()
            two.type("k")
            one.until("another terminal answered: it tried the command and kept the changes")

            two.question("touch b; echo before; cat")
            two.type("y")
            two.until("It waits.", "1 running")
            two.keys("/terminals", "Enter")
            two.until("runs `touch b; echo before; cat`")
            two.keys("/attach t9", "Enter")
            two.until("no terminal `t9`")
            two.keys("C-u", "/attach", "Enter")
            two.until("\nbefore\n", gone=READY)
            two.keys("typed by hand", "Enter")
            two.until("typed by hand\ntyped by hand")
            two.keys("C-]")
            two.until(READY, "what runs in it continues")

            two.keys("/diff", "Enter")
            two.until("made.txt  +1 −0")
            two.keys("/undo", "Enter")
            two.until("made.txt  removed: it was not there", "reverts this undo")
            assert not (project / "made.txt").exists()
            two.keys("/rewind", "Enter")
            two.until("❯ do it", "/rewind N goes back")
            assert two.leave() == 0
        one.until(READY, "1 running")
        assert "hunter2" not in one.screen(history=True)
