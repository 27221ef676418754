"""`tarmac exec`: one command, its output, its exit status; with both providers where that matters."""

import json
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest
from tests.cli.conftest import PATIENCE, alive, read_until, running, tarmac

pytestmark = pytest.mark.shell
both = pytest.mark.parametrize("provider", ["pty", "exec"])


@both
@pytest.mark.parametrize(("command", "code"), [("true", 0), ("false", 1), ("exit 3", 3), ("(exit 255)", 255)])
def test_the_exit_status_is_the_commands_own(provider: str, command: str, code: int) -> None:
    """T14."""
    assert tarmac("exec", "--provider", provider, command).code == code


@both
def test_a_shell_that_was_killed_is_told_as_shells_tell_it(provider: str) -> None:
    """T14: 128 + the signal."""
    assert tarmac("exec", "--provider", provider, "kill -9 $$").code == 137


@both
def test_one_argument_is_shell_text_and_several_are_words(provider: str) -> None:
    text = tarmac("exec", "--provider", provider, "echo a  b | tr a-z A-Z")
    words = tarmac("exec", "--provider", provider, "--", "printf", "%s|", "a  b", "$HOME", "it's", "*", "")
    assert (text.out, words.out) == ("A B\n", "a  b|$HOME|it's|*||")


def test_options_end_at_the_first_word_of_the_command() -> None:
    assert tarmac("exec", "printf", "%s,", "--json", "--cwd").out == "--json,--cwd,"


@both
def test_a_command_may_begin_with_a_dash(provider: str) -> None:
    outcome = tarmac("exec", "--provider", provider, "--", "-x", stdin="something")
    assert (outcome.code, "-x" in outcome.out) == (127, True)


@both
def test_it_runs_where_it_is_told_to_even_with_spaces_in_the_name(provider: str, tmp_path: Path) -> None:
    (tmp_path / "a place  with 'quotes'").mkdir()
    outcome = tarmac("exec", "--provider", provider, "--cwd", str(tmp_path / "a place  with 'quotes'"), "pwd")
    assert outcome.out == f"{tmp_path}/a place  with 'quotes'\n"


@both
def test_in_a_pipe_the_output_is_text_without_escapes(provider: str) -> None:
    """T15."""
    outcome = tarmac("exec", "--provider", provider, r"printf '\e[31mred\e[m 10%%\r\e[31mred\e[m 99%%\n\tgrün\n'")
    assert outcome.out == "red 99%\n\tgrün\n"


def test_output_is_shown_before_the_command_has_ended() -> None:
    """T16."""
    with running("exec", "echo first; read -t 20 x; echo never", stdin=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert read_until(process.stdout.fileno(), b"first\n") == b"first\n"
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 143


@both
def test_a_megabyte_of_lines_comes_out_whole(provider: str) -> None:
    outcome = tarmac("exec", "--provider", provider, "seq 150000")
    assert outcome.out == "".join(f"{n}\n" for n in range(1, 150_001))


# Input


@both
@pytest.mark.parametrize(
    ("command", "given", "shown"),
    [
        ("cat", "hi\n", "hi\n"),
        ("cat", "no newline", "no newline"),
        ("read x; echo got $x", "yes\n", "got yes\n"),
        ("read x; read y; echo $y $x", "1\n2\n3\n", "2 1\n"),
        ("true", "nobody reads this\n", ""),
        ("od -An -c", "a\x03b\x04c\x1a\r\x7f\n", "   a 003   b 004   c 032  \\r 177  \\n\n"),
        ("wc -c", "x" * 100_000, "100000\n"),
        ("cat <<'END'\n\there\nEND\ncat", "and there\n", "\there\nand there\n"),
    ],
)
def test_the_command_reads_what_we_are_given_byte_for_byte(provider: str, command: str, given: str, shown: str) -> None:
    outcome = tarmac("exec", "--provider", provider, command, stdin=given)
    assert (outcome.code, outcome.out, outcome.err) == (0, shown, "")


@both
def test_megabytes_of_arbitrary_bytes_arrive_intact(provider: str) -> None:
    data = os.urandom(3_000_000)
    outcome = tarmac("exec", "--provider", provider, "sha256sum", stdin=data)
    from hashlib import sha256

    assert outcome.out == f"{sha256(data).hexdigest()}  -\n"


@both
def test_a_socket_serves_as_input(provider: str) -> None:
    """As some programs make the pipes of their children; /proc can't open one again."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(b"through a socket\n")
        ours.shutdown(socket.SHUT_WR)
        assert tarmac("exec", "--provider", provider, "cat", stdin=theirs.fileno()).out == "through a socket\n"


@both
def test_a_file_is_read_from_where_it_stands(provider: str, tmp_path: Path) -> None:
    (tmp_path / "list").write_text("one\ntwo\nthree\n")
    fd = os.open(tmp_path / "list", os.O_RDONLY)
    try:
        whole = tarmac("exec", "--provider", provider, "cat", stdin=fd)
        os.lseek(fd, 4, os.SEEK_SET)
        rest = tarmac("exec", "--provider", provider, "cat", stdin=fd)
    finally:
        os.close(fd)
    assert (whole.out, rest.out) == ("one\ntwo\nthree\n", "two\nthree\n")


def test_a_command_takes_no_more_of_a_pipe_than_it_reads() -> None:
    read, write = os.pipe()
    os.write(write, b"one\ntwo\n")
    os.close(write)
    try:
        first = tarmac("exec", "read x; echo $x", stdin=read)
        left = os.read(read, 100)
    finally:
        os.close(read)
    assert (first.out, left) == ("one\n", b"two\n")


@both
def test_without_input_every_read_finds_the_end(provider: str) -> None:
    outcome = tarmac("exec", "--provider", provider, "cat; read x; echo $?; cat; echo end")
    assert (outcome.code, outcome.out) == (0, "1\nend\n")


# Time and signals


def _pids(fd: int) -> list[int]:
    """What a command told with `echo pids …`."""
    seen = read_until(fd, b"pids")
    line = (seen if seen.endswith(b"\n") else seen + read_until(fd, b"\n")).split(b"pids")[1]
    return [int(pid) for pid in line.split()]


@both
def test_when_its_time_is_up_the_command_is_interrupted_and_the_status_is_124(provider: str) -> None:
    """T18."""
    outcome = tarmac("exec", "--provider", provider, "--timeout", "0.3", "sleep 100")
    assert (outcome.code, outcome.out.strip()) == (124, "")
    assert outcome.err.startswith("tarmac: `sleep 100` was interrupted after 0.3 s\n  hint: ")


def test_no_limit_can_be_asked_for() -> None:
    assert tarmac("exec", "--timeout", "none", "echo ok").out == "ok\n"


@both
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGQUIT, 131)]
)
def test_a_signal_to_tarmac_ends_the_command_first(provider: str, number: signal.Signals, code: int) -> None:
    """T17: nothing the command started is left."""
    command = "setsid sleep 1000 & nohup sleep 1000 >/dev/null 2>&1 & echo pids $$ $!; sleep 1000"
    with running("exec", "--provider", provider, command) as process:
        assert process.stdout is not None
        started = _pids(process.stdout.fileno())
        process.send_signal(number)
        assert process.wait(PATIENCE) == code
        assert [pid for pid in started if alive(pid)] == []


@both
def test_a_command_that_heeds_nothing_still_ends_on_the_second_interrupt(provider: str) -> None:
    command = "trap '' INT TERM; echo $$; while :; do sleep 0.05; done"
    with running("exec", "--provider", provider, command) as process:
        assert process.stdout is not None
        shell = int(read_until(process.stdout.fileno(), b"\n"))
        process.send_signal(signal.SIGINT)
        time.sleep(0.1)  # a person's second Ctrl-C
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 130
        assert not alive(shell)


def test_signals_in_the_middle_of_closing_leave_nothing_behind() -> None:
    with running("exec", "trap '' HUP; sleep 1000 & echo pids $$ $!; sleep 1000") as process:
        assert process.stdout is not None
        started = _pids(process.stdout.fileno())
        for _ in range(20):
            process.send_signal(signal.SIGTERM)
            time.sleep(0.005)
        assert process.wait(PATIENCE) in (143, -signal.SIGTERM)  # the same to a shell; the last may find us all done
        assert [pid for pid in started if alive(pid)] == []


def test_an_interrupt_that_was_ignored_before_stays_ignored() -> None:
    """As in a background job of a shell, or under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with running("exec", "echo up; read x", stdin=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdin is not None
            read_until(process.stdout.fileno(), b"up\n")
            process.send_signal(signal.SIGHUP)
            process.stdin.write(b"done\n")
            assert process.wait(PATIENCE) == 0
    finally:
        signal.signal(signal.SIGHUP, before)


@both
def test_when_nobody_reads_any_more_the_command_ends_quietly(provider: str) -> None:
    with running("exec", "--provider", provider, "echo $$; yes") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        shell = int(read_until(process.stdout.fileno(), b"\n").split()[0])
        process.stdout.close()
        assert process.wait(PATIENCE) == 141
        assert process.stderr.read() == b""
        assert not alive(shell)


def test_a_reader_that_sleeps_does_not_keep_tarmac_from_ending() -> None:
    with running("exec", "echo up; seq 1000000") as process:
        assert process.stdout is not None
        read_until(process.stdout.fileno(), b"up\n")  # and read no more
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) in (130, 143)


# JSON, errors, traces


@both
def test_json_is_one_object_with_the_fields_of_the_result(provider: str, tmp_path: Path) -> None:
    outcome = tarmac("exec", "--provider", provider, "--json", "--cwd", str(tmp_path), "echo ü; exit 4")
    result = json.loads(outcome.out)
    assert outcome.out.isascii()
    assert outcome.out.count("\n") == 1
    assert (outcome.code, outcome.err) == (4, "")
    assert (result["command"], result["exit_code"], result["evidence"]) == ("echo ü; exit 4", 4, "waitpid")
    assert (result["output"].splitlines()[0], result["cwd"]) == ("ü", str(tmp_path))


def test_json_names_a_file_only_when_the_file_is_there(own_state: Path) -> None:
    short = json.loads(tarmac("exec", "--json", "echo hi").out)
    long = json.loads(tarmac("exec", "--json", "seq 100000").out)
    assert (short["output_path"], short["truncated"], long["truncated"]) == (None, False, True)
    assert Path(long["output_path"]).read_bytes().endswith(b"100000\r\n")


def test_the_codes_of_a_pipeline_are_in_the_json() -> None:
    """T14."""
    assert json.loads(tarmac("exec", "--json", "false | true | (exit 3)").out)["pipestatus"] == [1, 0, 3]


def test_a_timeout_in_json_says_what_it_waited_for() -> None:
    read, write = os.pipe()  # an input that never comes
    try:
        silent = tarmac("exec", "--json", "--timeout", "0.3", "read x </dev/tty", stdin=read)
    finally:
        os.close(read)
        os.close(write)
    result = json.loads(silent.out)
    assert (silent.code, silent.err, result["reason"], result["awaiting"]) == (124, "", "awaiting input", "line")


@pytest.mark.parametrize(
    ("arguments", "what", "code"),
    [
        (["--cwd", "/no/such/place", "true"], "`/no/such/place` does not exist", 125),
        (["--cwd", "/etc/passwd", "true"], "`/etc/passwd` is a file, not a directory", 125),
        (["--shell", "nosuchshell", "true"], "there is no shell 'nosuchshell' on this machine", 125),
        (["--", " "], "the command is empty", 2),
        (["--", ""], "the command is empty", 2),
    ],
)
def test_what_cannot_be_run_is_told_without_a_trace(arguments: list[str], what: str, code: int) -> None:
    outcome = tarmac("exec", *arguments)
    assert (outcome.code, outcome.out) == (code, "")
    assert outcome.err.startswith(f"tarmac: {what}")
    assert "Traceback" not in outcome.err


def test_a_streamed_output_is_not_kept_on_disk(own_state: Path, tmp_path: Path) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    assert len(tarmac("exec", "seq 100000", TMPDIR=str(temporary)).out) > 500_000
    assert list(temporary.iterdir()) == []
    assert [each for each in own_state.rglob("*") if each.is_file()] == []


def test_questions_are_answered_in_any_order_and_each_once() -> None:
    """T19: by text or by pattern; standard input is not read meanwhile."""
    command = 'read -p "Name: " n; read -s -p "Pass 1? " p; read -p "Age? " a; echo "$n $a ${#p}"'
    answers = ("--answer", "Age=42", "--answer", "Name=Ada=Eve", "--answer", r"/Pass \d/=secret phrase")
    outcome = tarmac("exec", *answers, "--", command, stdin="not this")
    assert (outcome.code, outcome.out.splitlines()[-1], outcome.err) == (0, "Ada=Eve 42 13", "")
    assert "secret phrase" not in outcome.out


def test_a_question_without_an_answer_is_told_and_interrupts() -> None:
    """T19."""
    outcome = tarmac("exec", "--answer", "Name=Ada", "--", 'read -p "Name: " n; read -p "Age? " a', stdin="")
    assert (outcome.code, outcome.out) == (124, "Name: Ada\nAge? \n")
    assert "it asked “Age?”, and no answer was given for that" in outcome.err


@pytest.mark.parametrize(
    "wrong",
    [
        ("--answer", "no equals sign"),
        ("--answer", "=x"),
        ("--answer", "/(/=x"),
        ("--provider", "exec", "--answer", "a=b"),
    ],
)
def test_an_answer_that_makes_no_sense_is_refused(wrong: tuple[str, ...]) -> None:
    assert tarmac("exec", *wrong, "true").code == 2
