"""What holds in every shell that Tarmac drives, said in each one's words (T20; research/terminals.md D)."""

import asyncio
import os
import secrets
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.terminals.conftest import Speech

from tarmac.errors import DirectoryUnavailable
from tarmac.terminals import Execution, Result, Settings, Terminal, open_terminal, run_batch, run_once
from tarmac.terminals.events import DataWritten, TerminalEvent
from tarmac.terminals.shell.pty_terminal import PtyTerminal

pytestmark = pytest.mark.shell


def summary(result: Result) -> tuple[str, int | None, str, str]:
    return result.output, result.exit_code, result.reason, result.evidence


async def in_step(terminal: Terminal) -> bool:
    """Whether the next commands get their own output and codes."""
    first = await terminal.run("echo one; sh -c 'exit 3'", timeout=10)
    second = await terminal.run("echo two", timeout=10)
    return (first.output, first.exit_code, second.exit_code, second.output) == ("one\n", 3, 0, "two\n")


async def until_it_waits(execution: Execution) -> None:
    """Until the kernel says that it waits for somebody to type."""
    async with asyncio.timeout(10):
        while execution.waiting is None:  # noqa: ASYNC110 (its event would do, with more words)
            await asyncio.sleep(0.01)


# --- Results ---


async def test_each_command_has_its_own_output_and_code(tmp_path: Path, speech: Speech) -> None:
    """T14, T15, D3, D4, D20: codes, pipelines, several lines, nothing to do."""
    commands = {
        "printf abc": ("abc", 0),
        "sh -c 'exit 5'": ("", 5),
        "true; false": ("", 1),
        "false; true": ("", 0),
        "no_such_program_here": (None, 127),
        "echo one\necho two\nsh -c 'exit 7'": ("one\ntwo\n", 7),
        "# only a comment": ("", 0),
        "   echo spaced   ": ("spaced\n", 0),
        "echo a # comment": ("a\n", 0),
        'echo "a!b"': ("a!b\n", 0),
        "sh -c 'kill -9 $$'": ("", 137),
        "sleep 0.01 &": (None, 0),
    }
    async with open_terminal(cwd=tmp_path, shell=speech.shell) as terminal:
        for command, (output, code) in commands.items():
            result = await terminal.run(command)
            assert (command, result.exit_code, result.reason, result.evidence) == (command, code, "done", "mark")
            if output is not None:
                # bash and zsh tell of a killed program, fish of none
                assert result.output == output or "illed" in result.output, command
        parts = [await terminal.run(each) for each in ("false | true", "sh -c 'exit 3' | false", "true")]
    assert [(each.exit_code, each.pipestatus) for each in parts] == [(0, (1, 0)), (1, (3, 1)), (0, ())]


async def test_the_status_is_the_last_commands_own(tmp_path: Path, speech: Speech) -> None:
    """T14, D3: between two commands our words run, and leave it alone."""
    async with open_terminal(cwd=tmp_path, shell=speech.shell) as terminal:
        await terminal.run(speech.ends(42))
        assert (await terminal.run(f"echo {speech.last}")).output == "42\n"
        await terminal.run("true")
        assert (await terminal.run(f"echo {speech.last}")).output == "0\n"


async def test_state_stays_for_the_next_command(tmp_path: Path, speech: Speech) -> None:
    """T8: variables, functions, aliases; an alias of one line is known in the next line of the same command."""
    async with open_terminal(cwd=tmp_path, shell=speech.shell) as terminal:
        await terminal.run(speech.assign.format(name="COLOUR", value="green"))
        await terminal.run(speech.function.format(name="greet", body="echo hello $COLOUR"))
        await terminal.run("alias twice='echo 2'")
        results = [await terminal.run(each) for each in ("echo $COLOUR", "greet", "twice")]
        lines = await terminal.run("alias thrice='echo 3'\nthrice")
    assert [each.output for each in results] == ["green\n", "hello green\n", "2\n"]
    assert lines.output == "3\n" or speech.shell == "bash"  # bash expands what it has read before


async def test_the_environment_tells_what_changed(tmp_path: Path, speech: Speech) -> None:
    """T31: set, changed, unset; whatever is in a value."""
    async with open_terminal(
        cwd=tmp_path, shell=speech.shell, settings=Settings(environment={"GONE": "x"})
    ) as terminal:
        await terminal.run(speech.export.format(name="COLOUR", value="'green;\n=é'"))
        await terminal.run("unset GONE" if speech.shell != "fish" else "set -e GONE")
        await terminal.run(speech.ends(9))
        assert await terminal.environment() == {"COLOUR": "green;\n=é", "GONE": None}
        assert (await terminal.run(f"echo {speech.last}")).output == "9\n"
        assert [past.command for past in terminal.history][-1] == f"echo {speech.last}"


async def test_a_shell_tells_its_name_and_version(tmp_path: Path, speech: Speech) -> None:
    """T31, T20: by its own word."""
    async with open_terminal(cwd=tmp_path, shell=speech.shell) as terminal:
        assert (terminal.shell.name, terminal.quality) == (speech.shell, "rich")
        assert terminal.shell_version[0].isdigit()


# --- Input ---


@pytest.mark.parametrize(
    "command", ['echo "abc', "echo 'a", "echo ran |", "echo $(echo ran", "echo (echo ran", "if true"]
)
async def test_an_incomplete_command_is_an_error_at_once(tmp_path: Path, speech: Speech, command: str) -> None:
    """T22, D13, D14: nothing waits for the rest of it, and the next command is clean."""
    async with open_terminal(cwd=tmp_path, shell=speech.shell) as terminal:
        bad = await terminal.run(command, timeout=5, on_timeout="kill")
        assert (bad.exit_code not in (None, 0), bad.reason, bad.duration < 1) == (True, "done", True)
        assert "ran" not in bad.output.splitlines()
        assert await in_step(terminal)


SECRET = secrets.token_hex(4)
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=60)


@pytest.mark.parametrize("provider", ["pty", "exec"])
def test_commands_of_arbitrary_text_arrive_intact(tmp_path: Path, speech: Speech, provider: str) -> None:
    """T22, D19: quotes, controls, newlines, escapes, any script: byte for byte, in one terminal."""

    def quoted(text: str) -> str:
        if speech.shell == "fish":
            return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
        return "'" + text.replace("'", "'\\''") + "'"

    loop = asyncio.new_event_loop()
    opening = open_terminal(cwd=tmp_path, shell=speech.shell, provider=provider)  # type: ignore[arg-type]
    terminal = loop.run_until_complete(opening.__aenter__())

    @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(TEXT)
    def arrives(text: str) -> None:
        command = f"printf %s {quoted(text)} > got; echo {SECRET}"
        result = loop.run_until_complete(terminal.run(command, timeout=10, on_timeout="kill"))
        assert (result.output, result.exit_code) == (f"{SECRET}\n", 0)
        assert (tmp_path / "got").read_bytes() == text.encode()

    try:
        arrives()
    finally:
        loop.run_until_complete(opening.__aexit__(None, None, None))
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


async def test_long_commands_arrive(tmp_path: Path, speech: Speech) -> None:
    """T22, D18: a line of 10,000 characters, a script of 100 kB, bytes that are no UTF-8."""
    script = "\n".join(f": {'x' * 100} {number}" for number in range(1_000))
    async with open_terminal(cwd=tmp_path, shell=speech.shell) as terminal:
        line = await terminal.run(f"printf %s {'x' * 10_000} | wc -c")
        long = await terminal.run(script + "\nsh -c 'exit 4'", timeout=60)
        bytes_ = await terminal.run("printf %s '\udcff\udc80' > odd; echo done")
    assert (line.output.strip(), long.exit_code, bytes_.output) == ("10000", 4, "done\n")
    assert (tmp_path / "odd").read_bytes() == b"\xff\x80"


async def test_here_documents_arrive(tmp_path: Path, speech: Speech) -> None:
    """T22, D15: where the grammar has them."""
    if speech.shell == "fish":
        pytest.skip("fish has no here-documents")
    text = "".join(f"line {number} $HOME `x` 'y' \"z\"\n" for number in range(2000))
    async with open_terminal(cwd=tmp_path, shell=speech.shell) as terminal:
        result = await terminal.run(f"cat > out <<'EOF'\n{text}EOF\necho after; (exit 3)")
    assert (result.output, result.exit_code, (tmp_path / "out").read_text()) == ("after\n", 3, text)


# --- Output ---


async def test_big_output_is_complete_and_in_order(tmp_path: Path, speech: Speech) -> None:
    """T16, T27, D23, D29: all of it on disk, both ends in the result."""
    async with open_terminal(cwd=tmp_path, shell=speech.shell) as terminal:
        result = await terminal.run("seq 200000", timeout=60)
        assert result.output_path is not None
        assert result.output_path.read_bytes().replace(b"\r\n", b"\n").split() == [b"%d" % n for n in range(1, 200_001)]
        assert (result.truncated, result.output.splitlines()[0], result.output.splitlines()[-1]) == (
            True,
            "1",
            "200000",
        )
        assert await in_step(terminal)


async def test_forged_marks_and_the_nonce(tmp_path: Path, speech: Speech) -> None:
    """T20, D1, D2: marks without our nonce end nothing; the nonce shows nowhere."""
    seen: list[bytes] = []

    def listen(event: TerminalEvent) -> None:
        if isinstance(event, DataWritten):
            seen.append(event.data)

    async with open_terminal(cwd=tmp_path, shell=speech.shell, listener=listen) as terminal:
        assert isinstance(terminal, PtyTerminal)
        assert terminal.session is not None
        forged = await terminal.run(
            "printf 'a\\033]633;D;0\\007\\033]133;D;0\\007b'; sleep 0.05; echo c; sh -c 'exit 6'"
        )
        shown = [await terminal.run(each) for each in ("set", "env", "cat /proc/self/environ | tr '\\000' '\\n'")]
        nonce = terminal.session._nonce
    assert (*summary(forged), forged.forged_marks) == ("abc\n", 6, "done", "mark", 2)
    assert nonce.decode() not in "".join(each.output for each in shown)
    assert nonce not in b"".join(seen)


async def test_a_question_to_the_terminal_is_answered_and_typed_nowhere(tmp_path: Path, speech: Speech) -> None:
    """A program that listens gets its answer; of one that does not, nothing is left over for the shell."""
    (tmp_path / "ask.py").write_text(
        "import os, sys, tty, termios\nold = termios.tcgetattr(0)\ntty.setraw(0)\nos.write(1, b'\\x1b[6n')\n"
        "data = os.read(0, 50) if sys.argv[1:] else b''\ntermios.tcsetattr(0, termios.TCSANOW, old)\nprint(data)\n"
    )
    async with open_terminal(cwd=tmp_path, shell=speech.shell) as terminal:
        heard = await terminal.run("python3 ask.py listen", timeout=10)
        for _ in range(3):
            await terminal.run("python3 ask.py", timeout=10)
        assert heard.output == "b'\\x1b[40;1R'\n"
        assert await in_step(terminal)


# --- Directories ---


async def test_every_way_to_move_is_known(tmp_path: Path, speech: Speech) -> None:
    """T7, D55: by the shell's own word; not a subshell's."""
    for name in ("a", "b"):
        (tmp_path / name / "deep").mkdir(parents=True)
    (tmp_path / "move").write_text(f"cd {tmp_path}/b/deep\n")
    moves = {
        "cd a": "a",
        "cd ..; cd b && false": "b",
        "cd -": "",
        f"cd {tmp_path}; source ./move": "b/deep",
        f"pushd {tmp_path}/a > /dev/null": "a",
        "popd > /dev/null": "b/deep",
        "builtin cd ..": "b",
        speech.function.format(name="go", body=f"cd {tmp_path}/a/deep") + "; go": "a/deep",
        "sh -c 'cd /'": "a/deep",
    }
    async with open_terminal(cwd=tmp_path, shell=speech.shell) as terminal:
        for command, place in moves.items():
            result = await terminal.run(command)
            assert (command, result.cwd, terminal.cwd) == (command, tmp_path / place, tmp_path / place)


NAMES = [
    b"a b",
    b"semi;colon",
    b"new\nline",
    b"do$llar",
    b"-dash",
    b"qu'o\"te",
    b"back\\slash",
    b"\xff\xfe",
    "é✓".encode(),
]


async def test_a_terminal_moves_to_any_name_without_a_trace(tmp_path: Path, speech: Speech) -> None:
    """T6, D54: quotes, newlines, bytes; the status before it stays; where there is no way, nothing runs."""
    async with open_terminal(cwd=tmp_path, shell=speech.shell) as terminal:
        for name in NAMES:
            place = Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name))
            place.mkdir()
            await terminal.run(speech.ends(7))
            result = await terminal.run(f"echo {speech.last}", cwd=place)
            assert (result.output, result.exit_code, result.cwd, terminal.cwd) == ("7\n", 0, place, place)
        gone = tmp_path / "gone"
        with pytest.raises(DirectoryUnavailable):
            await terminal.run("touch never", cwd=gone)
        assert await in_step(terminal)
    assert not list(tmp_path.rglob("never"))


# --- Death ---

DEATHS = {"exit 3": 3, "exec sh -c 'exit 4'": 4, "kill -9 {self}": 137}


async def test_a_shell_that_ends_is_told_and_replaced(tmp_path: Path, speech: Speech) -> None:
    """T11, T15, D5: the code by waitpid; the next command gets a fresh shell in the same place, and is told so."""
    (tmp_path / "sub").mkdir()
    own = "$fish_pid" if speech.shell == "fish" else "$$"
    async with open_terminal(cwd=tmp_path, shell=speech.shell) as terminal:
        for command, code in DEATHS.items():
            await terminal.run("cd sub; echo hi", cwd=tmp_path)
            died = await terminal.run(f"echo before; {command.format(self=own)}")
            assert (died.exit_code, died.reason, died.evidence) == (code, "terminal closed", "waitpid")
            assert died.output == "before\n"  # bash prints "exit" at a prompt
            after = await terminal.run("pwd")
            assert (after.output, after.fresh_shell) == (f"{tmp_path / 'sub'}\n", True)


async def test_our_functions_may_be_taken_away(tmp_path: Path, speech: Speech) -> None:
    """T20, D10: all that can be erased: the next command runs, in this shell or a fresh one."""
    sabotage = {
        "bash": "unset -f $(compgen -A function __tarmac); PROMPT_COMMAND=; PS1='$ '",
        "zsh": "unfunction -m '__tarmac*'; precmd_functions=(); preexec_functions=()",
        "fish": "functions -e (functions -a | string match '__tarmac*'); bind -e --all",
    }[speech.shell]
    async with open_terminal(cwd=tmp_path, shell=speech.shell) as terminal:
        first = await terminal.run(sabotage, timeout=10)
        assert first.reason == "done"
        assert await in_step(terminal)


# --- Control ---

MOMENTS = {
    "sleep": "echo ready; sleep 100; echo never",
    "a pipeline": "echo ready; sleep 100 | cat | sleep 100",
    "a loop of programs": "echo ready; {loop}",
    "python": "python3 -c 'import time; print(\"ready\", flush=True); time.sleep(100)'; echo never",
    "a script": "sh -c 'echo ready; sleep 100; echo never'",
}


@pytest.mark.parametrize("moment", [*MOMENTS, "the shell itself", "a question"])
async def test_an_interrupt_ends_the_command_and_not_the_shell(tmp_path: Path, speech: Speech, moment: str) -> None:
    """T17, D46: 130, at once, nothing of the rest, and in step."""
    if (speech.shell, moment) == ("fish", "a question"):
        pytest.skip("fish's own read takes Ctrl-C for an answer: see the next test")
    extra = {
        "the shell itself": f"echo ready; {speech.interactive_loop}",
        "a question": f"echo ready; {speech.ask.format(prompt='name? ')}",
    }
    loop = "while true; /bin/true; end" if speech.shell == "fish" else "while :; do /bin/true; done"
    command = (MOMENTS | extra)[moment].replace("{loop}", loop)
    async with open_terminal(cwd=tmp_path, shell=speech.shell, settings=Settings(interrupt_grace=30)) as terminal:
        execution = await terminal.start(command)
        async for chunk in execution:
            if "ready" in str(chunk):
                break
        await execution.interrupt()
        result = await execution.result(timeout=60)
        assert (result.reason, result.signal, "never" in result.output) == ("interrupted", "SIGINT", False)
        assert result.notes == ()  # nothing harder was needed
        assert await in_step(terminal)
        assert not (await terminal.run("echo same shell")).fresh_shell


async def test_an_interrupt_of_fishs_own_read_ends_the_read(tmp_path: Path, require: Callable[[str], None]) -> None:
    """T17: it fails with 1, and the command goes on, as it does for a person: a known difference."""
    require("fish")
    async with open_terminal(cwd=tmp_path, shell="fish") as terminal:
        execution = await terminal.start("read -P 'name? ' x; echo $status")
        await until_it_waits(execution)
        await execution.interrupt()
        result = await execution.result(timeout=10)
        assert (result.output.splitlines()[-1], result.exit_code) == ("1", 0)
        assert await in_step(terminal)


async def test_interrupts_at_random_moments_never_put_results_out_of_step(tmp_path: Path, speech: Speech) -> None:
    """T17: before it begins, while it runs, as it ends."""
    async with open_terminal(cwd=tmp_path, shell=speech.shell) as terminal:
        for number in range(25):
            execution = await terminal.start(f"sleep 0.0{number % 10}; echo {number}")
            await asyncio.sleep(0.001 * (number * 7 % 23))
            await execution.interrupt()
            result = await execution.result(timeout=10)
            assert result.output.strip() in ("", str(number))
            check = await terminal.run(f"echo check {number}", timeout=10)
            assert (check.output, check.exit_code) == (f"check {number}\n", 0)


async def test_a_timeout_kills_what_ignores_everything(tmp_path: Path, speech: Speech) -> None:
    """T17, D47: and nothing of it is left."""
    async with open_terminal(cwd=tmp_path, shell=speech.shell) as terminal:
        result = await terminal.run(
            "sh -c 'trap \"\" INT TERM; echo up; while :; do sleep 1; done'", timeout=0.3, on_timeout="kill"
        )
        assert (result.reason, result.output.splitlines()[0]) == ("timeout", "up")
        assert await in_step(terminal)


async def test_modes_left_behind_are_undone(tmp_path: Path, speech: Speech) -> None:
    """`stty` left broken: the next command runs, and sees a sane terminal."""
    async with open_terminal(cwd=tmp_path, shell=speech.shell) as terminal:
        for broken in ("stty -echo", "stty raw", "stty -icanon min 0", "stty -opost", "stty intr undef"):
            await terminal.run(broken)
            assert await in_step(terminal)


async def test_lines_a_command_did_not_read_are_not_run(tmp_path: Path, speech: Speech) -> None:
    """T19: nor are they read by the next command."""
    async with open_terminal(cwd=tmp_path, shell=speech.shell) as terminal:
        execution = await terminal.start("echo go; sleep 0.1")
        await execution.send("touch never\ntouch never2\nhalf")
        await execution.result(timeout=10)
        assert await in_step(terminal)
    assert not list(tmp_path.iterdir())


async def test_a_question_is_seen_and_answered(tmp_path: Path, speech: Speech) -> None:
    """T19, D37: the shell's own `read`, and a program's."""
    async with open_terminal(cwd=tmp_path, shell=speech.shell) as terminal:
        for command in (
            f"{speech.ask.format(prompt='name? ')}; echo hello $x",
            "python3 -c \"print('hello', input('name? '))\"",
        ):
            execution = await terminal.start(command)
            await until_it_waits(execution)
            await execution.send("Ada\r" if speech.shell == "fish" else "Ada\n")
            result = await execution.result(timeout=10)
            assert (result.output.splitlines()[-1], result.exit_code) == ("hello Ada", 0)


async def test_a_command_that_is_stopped_is_told(tmp_path: Path, speech: Speech) -> None:
    """T15, D50: also where the shell's own status does not tell; then there is no code."""
    async with open_terminal(cwd=tmp_path, shell=speech.shell) as terminal:
        stopped = await terminal.run("sh -c 'kill -STOP $$; echo on'")
        after = await terminal.run("echo next")
        back = await terminal.run("fg")
    assert (stopped.reason, stopped.exit_code) == ("stopped", None if speech.shell == "fish" else 147)
    assert (after.reason, after.output.splitlines()[-1], back.output.splitlines()[-1]) == ("done", "next", "on")


async def test_a_background_job_holds_up_nobody_and_ends_with_the_terminal(tmp_path: Path, speech: Speech) -> None:
    """T17, D48, D53: what it prints later belongs to no command."""
    async with open_terminal(cwd=tmp_path, shell=speech.shell) as terminal:
        first = await terminal.run("sh -c 'sleep 0.15; echo late' &")
        await terminal.run("sleep 100 &")
        assert first.duration < 1
        await asyncio.sleep(0.3)  # it prints while nothing runs
        after = await terminal.run("echo clean")
        assert after.output == "clean\n"


# --- Other front ends ---


async def test_the_exec_provider_runs_one_process_a_command(tmp_path: Path, speech: Speech) -> None:
    """T1: no start-up files, no terminal, no state."""
    async with open_terminal(cwd=tmp_path, shell=speech.shell, provider="exec") as terminal:
        first = await terminal.run(f"cd /; {speech.assign.format(name='X', value='1')}; pwd; sh -c 'exit 3'")
        second = await terminal.run("pwd; echo [$X]" if speech.shell == "bash" else 'pwd; echo "[$X]"')
        died = await terminal.run("exit 5")
    assert (summary(first), second.output) == (("/\n", 3, "done", "waitpid"), f"{tmp_path}\n[]\n")
    assert died.exit_code == 5


async def test_temporary_commands_and_batches(tmp_path: Path, speech: Speech) -> None:
    """T13: in one shell, `cd` and variables carry over."""
    once = await run_once("sh -c 'exit 3'", cwd=tmp_path, shell=speech.shell)
    batch = await run_batch(
        ["cd /", speech.assign.format(name="X", value="5"), "pwd; echo $X", "false", "echo never"],
        cwd=tmp_path,
        shell=speech.shell,
    )
    assert once.exit_code == 3
    assert [(each.output, each.exit_code) for each in batch] == [("", 0), ("", 0), ("/\n5\n", 0), ("", 1)]
