"""`tarmac run` as a script uses it: in a pipe, with nobody to ask. A real process, real terminals, a scripted model."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.conftest import TARMAC, read_until, running, tarmac
from tests.e2e.scripts import command, done, script, turn

pytestmark = pytest.mark.shell


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def timeless(line: str) -> str:
    """Without how long it took, which is told of what takes 0.1 s or more: that depends on the machine."""
    return re.sub(r"(?:, | · )\d+\.\d s$", "", re.sub(r" · \d+\.\d s, ", " · ", line))


def test_it_streams_runs_edits_and_completes(project: Path, tmp_path: Path) -> None:
    """A5, A7: words, commands with their output, diffs, the todo list, the result and the cost, in plain lines."""
    (project / "a.txt").write_text("one\ntwo\n")
    play = script(
        tmp_path,
        turn("I look.", command("echo hello; false")),
        turn("I edit.", ("search_and_replace", {"path": "a.txt", "search": "two", "replace": "three"})),
        turn("", ("update_todo_list", {"todos": "[x] look\n[ ] rest"})),
        done("All *good*."),
    )
    outcome = tarmac("run", "do", "it", "--script", play, "--auto", "all", "--cwd", str(project))
    assert (outcome.code, outcome.err) == (0, "")
    lines = [timeless(line) for line in outcome.out.splitlines()]
    assert lines[0] == "❯ do it" and "no model" in lines[1]
    wanted = [
        "I look.",
        "• Running `echo hello; false`",
        "  │ hello",
        "I edit.",
        "✓ Edited a.txt · +1 −1",
        "  -two",
        "  +three",
        "  ☑ look",
        "  ☐ rest",
        "✓ Done",
        "All *good*.",
    ]
    assert [line for line in lines if line in wanted] == wanted, outcome.out
    assert "✗ Ran `echo hello; false` · exit code 1" in lines
    assert "4 requests · 4.0k in, 400 out · $0.018" in lines[-1]
    assert (project / "a.txt").read_text() == "one\nthree\n"


def test_without_a_terminal_an_ask_is_a_denial_with_the_reason(project: Path, tmp_path: Path) -> None:
    """S13: the model reads it, and goes on."""
    play = script(tmp_path, turn("", command("touch made")), done())
    outcome = tarmac("run", "x", "--script", play, "--cwd", str(project), "--json")
    said = [json.loads(line) for line in outcome.out.splitlines()]
    (denied,) = (each for each in said if each.get("kind") == "tool_finished" and each["name"] == "execute_command")
    assert (outcome.code, denied["outcome"]) == (0, "denied")
    assert "Nobody is here to approve this" in denied["content"][0]["text"]
    assert not (project / "made").exists()


def test_all_covers_nothing_that_is_critical(project: Path, tmp_path: Path) -> None:
    """P5, P7."""
    (project / "build").mkdir()
    play = script(tmp_path, turn("", command("rm -rf build")), done())
    outcome = tarmac("run", "x", "--script", play, "--cwd", str(project), "--auto", "all")
    assert (outcome.code, (project / "build").exists()) == (0, True)
    assert "✗ Denied: running `rm -rf build`" in outcome.out
    assert "only a person can allow critical commands" in outcome.err and "--auto" not in outcome.err


def test_after_what_is_never_allowed_no_hint_says_how_to_allow_it(project: Path, tmp_path: Path) -> None:
    """P5."""
    play = script(tmp_path, turn("", command("rm -rf /")), done())
    outcome = tarmac("run", "x", "--script", play, "--cwd", str(project))
    assert (outcome.code, outcome.err) == (0, "") and "✗ Denied: running `rm -rf /`" in outcome.out


def test_the_exit_status_says_how_it_ended(project: Path, tmp_path: Path) -> None:
    """A5: 1 failed, 5 a limit; each can be resumed."""
    failing = script(tmp_path, '[[turn]]\n[turn.error]\nkind = "auth"\nwhat = "no such key"\n')
    failed = tarmac("run", "x", "--script", failing, "--cwd", str(project))
    assert (failed.code, "no such key" in failed.err, "tarmac resume" in failed.err) == (1, True, True)
    endless = script(tmp_path, *(turn("", ("list_files", {"path": "."})) for _ in range(3)), done())
    limited = tarmac("run", "x", "--script", endless, "--cwd", str(project), "--max-turns", "1", "--auto", "read")
    assert (limited.code, "limit" in limited.err) == (5, True)
    dear = tarmac("run", "x", "--script", endless, "--cwd", str(project), "--max-cost", "0.001", "--auto", "read")
    assert dear.code == 5
    trust = tarmac(
        "run", "x", "--script", endless, "--cwd", str(project), "--auto", "read", TARMAC_LIMITS_MAX_AUTO_REQUESTS="1"
    )
    assert trust.code == 5 and "1 request without asking you" in trust.err
    unknown = script(tmp_path, done(), head="")
    assert tarmac("run", "x", "--script", unknown, "--cwd", str(project), "--max-cost", "1").code == 5


def test_commands_run_in_the_shell_that_was_chosen(
    project: Path, tmp_path: Path, require: Callable[[str], None]
) -> None:
    """A5, T1: `--shell`, for the commands of a task; one that is not there is said at once."""
    require("zsh")
    play = script(tmp_path, turn("I ask.", command("echo zsh=${ZSH_VERSION%%.*} bash=$BASH_VERSION")), done())
    words = ("run", "x", "--script", play, "--cwd", str(project), "--auto", "all")
    assert "  │ zsh=5 bash=\n" in tarmac(*words, "--shell", "zsh").out
    wrong = tarmac(*words, "--shell", "nosuchshell")
    assert (wrong.code, "nosuchshell" in wrong.err) == (2, True)


def test_json_has_every_fact_of_the_log_the_signals_and_the_end(project: Path, tmp_path: Path) -> None:
    """A5: nothing else is on standard output."""
    play = script(tmp_path, turn("Hello there.", command("printf '\\377x\\n'")), done())
    outcome = tarmac("run", "x", "--script", play, "--cwd", str(project), "--auto", "all", "--json")
    said = [json.loads(line) for line in outcome.out.splitlines()]
    facts, signals = [each for each in said if "seq" in each], [each for each in said if "signal" in each]
    assert [each["seq"] for each in facts] == list(range(1, len(facts) + 1))
    assert "".join(each["text"] for each in signals if each["signal"] == "text_streamed") == "Hello there."
    assert any(each["signal"] == "output_streamed" for each in signals)
    task = facts[0]["task"]
    assert said[-1] == {"end": "completed", "text": "It is done.", "task": task, "exit_status": 0}
    log = [json.loads(line) for line in tarmac("tasks", "show", task, "--json").out.splitlines()]
    assert [each for each in log if each["kind"] != "task_saved"] == facts


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ([], "tarmac run"),
        (["  "], "tarmac run"),
        (["x"], "ANTHROPIC_API_KEY"),
        (["x", "--auto", "al"], "all"),
        (["x", "--script", "nowhere.toml"], "no script"),
        (["x", "--max-cost", "much"], "dollars"),
        (["x", "--max-turns", "0"], "above 0"),
        (["x", "--image", "/dev/null"], "PNG"),
        (["x", "--cwd", "/proc/nowhere"], "/proc/nowhere"),
        (["x", "--modell", "y"], "--model"),
        (["x", "--model", "nobody/x"], "provider"),
        (["x", "--model", "gpt-5"], "did you mean openai/gpt-5?"),
        (["x", "--model", "Anthropic/claude-opus-5"], "did you mean `anthropic/claude-opus-5`?"),
        (["x", "--image"], "--image: expected one argument\n  hint: `tarmac run --help`"),
        (["x", "--image", "/"], "Is a directory"),
        (["x", "--image", "nowhere.png"], "No such file"),
        (["x", "--model", "anthropic/claude"], "ANTHROPIC_API_KEY"),
    ],
)
def test_what_makes_no_sense_is_2_and_one_clear_message(words: list[str], hint: str) -> None:
    """A5: with no model configured, which variables to set, and that the demonstration needs none."""
    outcome = tarmac("run", *words, **dict.fromkeys(("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "TARMAC_MODEL"), ""))
    assert (outcome.code, hint in outcome.err, outcome.err.count("\n") <= 3) == (2, True, True), outcome.err
    if words == ["x"]:
        assert "tarmac demo" in outcome.err and outcome.code == 2


def test_with_a_key_but_no_model_it_says_what_is_missing() -> None:
    """A5: not the variable that is set already."""
    outcome = tarmac("run", "x", OPENAI_API_KEY="k", ANTHROPIC_API_KEY="", TARMAC_MODEL="")
    assert (outcome.code, "there is a key in OPENAI_API_KEY" in outcome.err, "tarmac demo" in outcome.err) == (
        2,
        True,
        True,
    )


def test_what_a_workspace_was_refused_is_told_and_a_wrong_configuration_is_2(project: Path, tmp_path: Path) -> None:
    """P7: the workspace's file may only tighten."""
    (project / ".tarmac").mkdir()
    (project / ".tarmac/config.toml").write_text('auto = "all"\n')
    (project / "AGENTS.md").symlink_to("/etc/hostname")
    play = script(tmp_path, turn("", command("touch made")), done())
    arguments = ("run", "x", "--script", play, "--cwd", str(project))
    outcome = tarmac(*arguments, TARMAC_CONFIG_DIR=str(tmp_path / "user"))
    assert outcome.code == 0
    assert 'line 1: auto = "all" is ignored; it stays "ask" (default)' in outcome.out
    assert "! `AGENTS.md`: leads out of the workspace" in outcome.out
    assert not (project / "made").exists()
    (project / ".tarmac/config.toml").write_text("atuo = 1\n")
    outcome = tarmac(*arguments, TARMAC_CONFIG_DIR=str(tmp_path / "user"))
    assert outcome.code == 2
    assert outcome.err.endswith("line 1: unknown setting `atuo`\n  hint: did you mean `auto`?\n")


def test_the_text_may_come_from_standard_input_and_pictures_from_files(project: Path, tmp_path: Path) -> None:
    """S19."""
    picture = tmp_path / "p.png"
    picture.write_bytes(b"\x89PNG\r\n\x1a\n" + b"0" * 50)
    play = script(tmp_path, done())
    outcome = tarmac("run", "-", "--script", play, "--cwd", str(project), "--image", str(picture), stdin="two\nlines\n")
    assert outcome.out.startswith("❯ two\n  lines\n  (1 image)\n")
    task = json.loads(tarmac("tasks", "--json").out)["id"]
    facts = [json.loads(line) for line in tarmac("tasks", "show", task, "--json").out.splitlines()]
    (said,) = (each for each in facts if each["kind"] == "user_said")
    assert (said["text"].strip(), said["images"][0]["media_type"]) == ("two\nlines", "image/png")


@pytest.mark.parametrize("data", [b"\x89PNG\r\n\x1a\n", b"a\0b"])
def test_standard_input_that_is_no_text_is_refused(data: bytes) -> None:
    """A5."""
    outcome = tarmac("run", "-", "--model", "ollama/phi", stdin=data)
    assert (outcome.code, outcome.out) == (2, "") and "standard input is not text" in outcome.err
    assert "--image FILE" in outcome.err


def test_the_first_text_may_be_a_command_of_the_project_and_name_a_picture(project: Path, tmp_path: Path) -> None:
    """U3, S19."""
    (project / ".tarmac" / "commands").mkdir(parents=True)
    (project / ".tarmac" / "commands" / "ship.md").write_text("Tag it as $ARGUMENTS, then push.\n")
    picture = tmp_path / "shot.png"
    picture.write_bytes(b"\x89PNG\r\n\x1a\n" + b"0" * 50)
    play = script(tmp_path, done())
    outcome = tarmac("run", f"/ship 1.0 @{picture}", "--script", play, "--cwd", str(project), "--json")
    (said,) = (each for each in map(json.loads, outcome.out.splitlines()) if each.get("kind") == "user_said")
    assert said["text"] == f"Tag it as 1.0 @{picture}, then push."
    assert [each["media_type"] for each in said["images"]] == ["image/png"]
    outcome = tarmac("run", "look at @gone.png", "--script", play, "--cwd", str(project))
    assert outcome.code == 2 and "gone.png can't be read" in outcome.err


def test_a_signal_ends_it_what_it_started_too_and_it_can_be_resumed(project: Path, tmp_path: Path) -> None:
    """S4: 130, and nothing is left running."""
    play = script(tmp_path, turn("", command("echo $$ >pid; sleep 4711")), done("resumed"))
    with running("run", "x", "--script", play, "--cwd", str(project), "--auto", "all") as process:
        assert process.stdout is not None and process.stderr is not None
        read_until(process.stdout.fileno(), b"Running")
        while not (project / "pid").exists() or not (project / "pid").read_text().strip():
            os.sched_yield()
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
        assert b"tarmac resume" in process.stderr.read()
    task = json.loads(tarmac("tasks", "--json").out)["id"]
    again = tarmac("resume", task[:5], "--script", play, "--cwd", str(project), "--auto", "all")
    assert (again.code, "resumed" in again.out) == (0, True), again.err


def test_after_kill_9_it_is_resumed_and_the_model_knows_what_ran(project: Path, tmp_path: Path) -> None:
    """S4: nothing that was acknowledged is lost, nothing is run twice."""
    play = script(tmp_path, turn("", command("echo once >>ran; sleep 4711")), turn("Again."), done("resumed"))
    with running("run", "x", "--script", play, "--cwd", str(project), "--auto", "all") as process:
        while not (project / "ran").exists():
            os.sched_yield()
        process.kill()
        process.wait(20)
    outcome = tarmac("resume", "--script", play, "--cwd", str(project), "--auto", "all", "--json")
    said = [json.loads(line) for line in outcome.out.splitlines()]
    assert (outcome.code, said[-1]["end"]) == (0, "completed"), outcome.err
    (ended,) = (each for each in said if each.get("kind") == "tool_finished" and each["name"] == "execute_command")
    assert (ended["outcome"], (project / "ran").read_text()) == ("interrupted", "once\n")
    assert [each["seq"] for each in said if "seq" in each] == list(range(1, sum("seq" in each for each in said) + 1))


def test_resume_without_an_id_takes_the_newest_here_that_is_not_done(project: Path, tmp_path: Path) -> None:
    play = script(tmp_path, turn("", ("list_files", {"path": "."})), done())
    assert tarmac("run", "first", "--script", play, "--cwd", str(project), "--max-turns", "1").code == 5
    outcome = tarmac("resume", "--script", play, "--cwd", str(project))
    assert (outcome.code, "✓ Done" in outcome.out) == (0, True), outcome.err
    completed = tarmac("resume", "--script", play, "--cwd", str(project))
    assert (completed.code, "say what to do next" in completed.err) == (2, True)
    nothing = tarmac("resume", "--cwd", str(tmp_path))
    assert (nothing.code, "tarmac tasks" in nothing.err) == (2, True)


def test_when_nobody_reads_any_more_it_stops_and_says_nothing(project: Path, tmp_path: Path) -> None:
    """`tarmac run … | head -1`."""
    play = script(tmp_path, turn("word " * 400, pace=0.005), done())
    with running("run", "x", "--script", play, "--cwd", str(project)) as process:
        assert process.stdout is not None and process.stderr is not None
        read_until(process.stdout.fileno(), b"word")
        process.stdout.close()
        assert process.wait(20) == 141
        assert b"Traceback" not in process.stderr.read()


def test_the_first_line_is_there_before_anything_heavy_is_imported(project: Path, tmp_path: Path) -> None:
    """Speed: no SDK, no parser, not even the tasks are imported by then."""
    import subprocess

    code = (
        "import sys\n"
        "from tarmac.cli import run\n"
        "run._echo(run.RunRequest.of({}, 'x', run.Where.of({})))\n"
        "heavy = ('anthropic', 'openai', 'msgspec', 'asyncio', 'tarmac.tasks', 'tarmac.policy')\n"
        "print([m for m in heavy if m in sys.modules])\n"
    )
    ran = subprocess.run([TARMAC[0], "-c", code], capture_output=True, text=True, check=True, timeout=30)
    assert ran.stdout == "❯ x\n[]\n"


def test_in_a_folder_that_is_gone_it_says_so(project: Path) -> None:
    """A5: what is wrong, and what to do."""
    line = 'cd "$1" && rmdir "$1" && shift && exec "$@"'
    for verb in (["run", "hello"], ["exec", "--", "true"], ["config", "show"]):
        words = ["sh", "-c", line, "sh", str(project), *TARMAC, *verb]
        run = subprocess.run(words, capture_output=True, text=True, check=False)
        project.mkdir()
        assert run.returncode in (2, 125) and "the current folder no longer exists" in run.stderr, (verb, run)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "x", "--modle", "y"], "did you mean `--model`?"),
        (["run", "x", "--script", "wrong.toml"], "wrong.toml, line 1: a script has no 'turns': did you mean turn?"),
        (["run", "x", "--script", "broken.toml"], "broken.toml"),
        (["resume", "nosuch"], "`tarmac tasks` lists them"),
        (["run", "x", "--image", "missing.png"], "missing.png can't be read: No such file"),
        (["run", "x", "--image", "wrong.toml"], "PNG, JPEG, GIF or WebP"),
        (["run", "x", "--max-cost", "cheap"], "US dollars"),
        (["run", "x", "--auto", "workspcae"], "did you mean `workspace`?"),
    ],
)
def test_what_makes_no_sense_is_said_with_what_would(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    """Exit status 2, before anything is asked of a model; the nearest right name."""
    (tmp_path / "wrong.toml").write_text("turns = 1\n")
    (tmp_path / "broken.toml").write_text("turn = [\n")
    monkeypatch.chdir(tmp_path)
    outcome = tarmac(*arguments)
    assert (outcome.code, said in outcome.err, "Traceback" in outcome.err) == (2, True, False), outcome.err
    assert "/../" not in outcome.err


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_a_home_that_can_not_be_written_to_is_said_with_the_way_out() -> None:
    """S3: where it would be kept, and how it is kept elsewhere."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o555)
        play = script(Path(folder), done())
        words = [
            "setpriv",
            "--reuid",
            "65534",
            "--clear-groups",
            *TARMAC,
            "run",
            "x",
            "--script",
            play,
            "--cwd",
            folder,
        ]
        env = {"PATH": os.environ["PATH"], "HOME": folder}
        run = subprocess.run(words, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert run.returncode == 1 and "cannot be made: permission denied" in run.stderr, run
    assert "TARMAC_STATE_DIR says where else" in run.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
@pytest.mark.parametrize("verb", ["run", "exec"])
def test_a_key_is_not_in_the_environment_of_any_process_that_a_command_can_look_at(project: Path, verb: str) -> None:
    """Issue 5, Models: "not passed to commands"; nor can they read it in ours, /proc/$PPID/environ."""
    key = f"sk-{os.urandom(12).hex()}"
    look = project / "look.sh"  # in a file: the policy has a person asked about a line that says so itself
    look.write_text(
        f"cat /proc/$PPID/environ >up && grep -ls {key[:12]}[0-9a-f] /proc/[0-9]*/environ || echo nowhere\n"
    )
    if verb == "exec":
        outcome = tarmac("exec", "--cwd", str(project), "--", "sh look.sh", ANTHROPIC_API_KEY=key)
    else:
        play = script(project.parent, turn("", command("sh look.sh")), done())
        arguments = ("run", "do it", "--auto", "all", "--script", play, "--cwd", str(project))
        outcome = tarmac(*arguments, ANTHROPIC_API_KEY=key)
    assert outcome.code == 0 and "nowhere" in outcome.out.split(), outcome
    assert "/proc/" not in outcome.out and (project / "up").stat().st_size
