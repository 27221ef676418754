"""`tarmac exec --jsonl`: lines in, results out, one terminal for all of them."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.conftest import PATIENCE, alive, read_until, running, tarmac

from tarmac.cli.exec import parse_request
from tarmac.errors import BadRequest


def serve(*lines: dict[str, object] | str | bytes, options: tuple[str, ...] = ()) -> list[dict[str, object]]:
    """What `tarmac exec --jsonl` answers to `lines`; it must end well."""
    data = b"".join(_line(each) + b"\n" for each in lines)
    outcome = tarmac("exec", "--jsonl", *options, stdin=data)
    assert (outcome.code, outcome.err, outcome.out.isascii()) == (0, "", True)
    return [json.loads(each) for each in outcome.out.splitlines()]


def _line(line: dict[str, object] | str | bytes) -> bytes:
    if isinstance(line, bytes):
        return line
    return (line if isinstance(line, str) else json.dumps(line)).encode()


@pytest.mark.shell
def test_directory_and_variables_last_from_line_to_line(tmp_path: Path) -> None:
    """T2."""
    (tmp_path / "a b").mkdir()
    first, second = serve(
        {"command": "cd 'a b'; colour=green"}, {"command": "pwd; echo $colour"}, options=("--cwd", str(tmp_path))
    )
    assert (first["exit_code"], first["cwd"]) == (0, f"{tmp_path}/a b")
    assert second["output"] == f"{tmp_path}/a b\ngreen\n"


@pytest.mark.shell
def test_a_dead_shell_is_replaced_by_a_fresh_one() -> None:
    dead, fresh = serve({"command": "x=1; exit 3"}, {"command": 'echo "[$x]"'})
    assert (dead["exit_code"], dead["reason"], dead["evidence"]) == (3, "terminal closed", "waitpid")
    assert (fresh["output"], fresh["fresh_shell"]) == ("[]\n", True)


@pytest.mark.shell
def test_a_command_that_waits_for_input_is_reported_as_such_and_ended() -> None:
    """T18."""
    waiting, after = serve({"command": "read answer", "timeout": 0.3}, {"command": "echo $answer ok"})
    assert (waiting["reason"], waiting["awaiting"], waiting["exit_code"]) == ("awaiting input", "line", 130)
    assert after["output"] == "ok\n"


@pytest.mark.shell
def test_a_command_never_reads_the_lines_that_follow_it() -> None:
    cat, after = serve({"command": "cat", "timeout": 0.3}, {"command": "echo mine"})
    assert (cat["reason"], after["output"]) == ("awaiting input", "mine\n")


@pytest.mark.shell
@pytest.mark.parametrize(("on_timeout", "reason"), [("interrupt", "timeout"), ("kill", "timeout")])
def test_when_time_is_up_the_command_is_ended_as_asked(on_timeout: str, reason: str) -> None:
    late, after = serve(
        {"command": "sleep 100", "timeout": 0.2, "on_timeout": on_timeout}, {"command": "echo $((6 * 7))"}
    )
    assert (late["reason"], after["output"]) == (reason, "42\n")
    assert late["exit_code"] in (130, 137)


@pytest.mark.shell
def test_a_command_left_running_keeps_its_terminal_and_ends_with_it() -> None:
    left, refused = serve(
        {"command": "echo $$; sleep 1000", "timeout": 0.2, "on_timeout": "leave"}, {"command": "echo no"}
    )
    assert (left["reason"], left["exit_code"]) == ("left running", None)
    assert str(refused["error"]).startswith("`echo $$; sleep 1000` is still running")
    assert (refused["line"], refused["command"]) == (2, "echo no")
    assert not alive(int(str(left["output"]).split()[0]))


@pytest.mark.shell
def test_a_line_may_name_its_directory_absolute_or_from_where_the_terminal_stands(tmp_path: Path) -> None:
    (tmp_path / "deep" / "deeper").mkdir(parents=True)
    outs = serve(
        {"command": "pwd", "cwd": str(tmp_path / "deep")},
        {"command": "pwd", "cwd": "deeper"},
        {"command": "pwd", "cwd": "nowhere"},
        {"command": "pwd"},
    )
    assert [each.get("output") for each in outs] == [
        f"{tmp_path}/deep\n",
        f"{tmp_path}/deep/deeper\n",
        None,
        f"{tmp_path}/deep/deeper\n",
    ]
    assert "does not exist" in str(outs[2]["error"])


@pytest.mark.shell
def test_bad_lines_are_answered_and_the_next_is_served() -> None:
    answers = serve("{", b"\xff\xfe", "[]", {"command": " "}, {"command": "a\0b"}, "", {"command": "echo still here"})
    assert [each.get("line") for each in answers] == [1, 2, 3, 4, 5, None]
    assert all(each["error"] for each in answers[:5])
    assert answers[5]["output"] == "still here\n"


@pytest.mark.shell
def test_a_command_of_megabytes_is_one_line() -> None:
    text = "é" * 1_500_000
    (answer,) = serve(json.dumps({"command": f"x={text}; echo ${{#x}}"}, ensure_ascii=False))
    assert answer["output"] == "1500000\n"


@pytest.mark.shell
def test_lines_may_come_from_a_file_and_the_last_may_lack_its_end(tmp_path: Path) -> None:
    (tmp_path / "lines").write_text('{"command": "echo 1"}\n{"command": "echo 2"}')
    with (tmp_path / "lines").open() as file:
        outcome = tarmac("exec", "--jsonl", stdin=file.fileno())
    assert [json.loads(each)["output"] for each in outcome.out.splitlines()] == ["1\n", "2\n"]


@pytest.mark.shell
def test_without_input_there_is_nothing_to_do() -> None:
    assert (tarmac("exec", "--jsonl").code, serve()) == (0, [])


@pytest.mark.shell
def test_the_other_provider_serves_lines_too(tmp_path: Path) -> None:
    first, second = serve(
        {"command": "cd /; pwd"}, {"command": "pwd; cat"}, options=("--provider", "exec", "--cwd", str(tmp_path))
    )
    assert (first["output"], second["output"], second["evidence"]) == ("/\n", f"{tmp_path}\n", "waitpid")


@pytest.mark.shell
def test_each_result_comes_as_soon_as_its_command_has_ended() -> None:
    with running("exec", "--jsonl", stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for n in range(5):
            process.stdin.write(b'{"command": "echo %d"}\n' % n)
            assert json.loads(read_until(process.stdout.fileno(), b"\n"))["output"] == f"{n}\n"
        process.stdin.close()
        assert process.wait(PATIENCE) == 0


@pytest.mark.shell
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_and_all_it_runs(number: signal.Signals, code: int, tmp_path: Path) -> None:
    (tmp_path / "pid").touch()
    os.mkfifo(tmp_path / "started")
    with running("exec", "--jsonl", "--cwd", str(tmp_path), stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(b'{"command": "echo $$ >started; sleep 1000"}\n')
        shell = int((tmp_path / "started").read_text())
        process.send_signal(number)
        assert process.wait(PATIENCE) == code
        assert not alive(shell)


@pytest.mark.shell
def test_when_nobody_reads_the_results_it_ends() -> None:
    with running("exec", "--jsonl", stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(b'{"command": "echo $$"}\n')
        shell = int(json.loads(read_until(process.stdout.fileno(), b"\n"))["output"])
        process.stdout.close()
        process.stdin.write(b'{"command": "true"}\n')
        assert process.wait(PATIENCE) == 141
        assert process.stderr.read() == b""
        assert not alive(shell)


# Lines, without a shell


def _dump(value: object) -> bytes:
    return json.dumps(value).encode()


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (b"nonsense", "not JSON: Expecting value at character 1"),
        (b'{"command": "x"} x', "not JSON: Extra data at character 18"),
        (b"3", "not a JSON object: 3"),
        (b"null", "not a JSON object: null"),
        (b"{}", "there is no `command`"),
        (b'{"comand": "x"}', 'unknown key "comand"'),
        (b'{"command": 3}', "`command` must be a text, not 3"),
        (b'{"command": null}', "`command` must be a text, not null"),
        (b'{"command": "x", "timeout": 0}', "`timeout` must be a number of seconds, more than 0, not 0"),
        (b'{"command": "x", "timeout": -1}', "`timeout` must be a number of seconds, more than 0, not -1"),
        (b'{"command": "x", "timeout": "1"}', '`timeout` must be a number of seconds, more than 0, not "1"'),
        (b'{"command": "x", "timeout": true}', "`timeout` must be a number of seconds, more than 0, not true"),
        (b'{"command": "x", "timeout": 1e999}', "`timeout` must be a number of seconds, more than 0, not Infinity"),
        (b'{"command": "x", "timeout": NaN}', "not JSON: NaN is not a number"),
        (b'{"command": "x", "cwd": 1}', "`cwd` must be the name of a directory, not 1"),
        (b'{"command": "x", "on_timeout": "wait"}', '`on_timeout` must be "interrupt", "kill" or "leave", not "wait"'),
        (b'{"command": "x", "on_timeout": []}', '`on_timeout` must be "interrupt", "kill" or "leave", not []'),
        (b'{"command": "\xff"}', "not UTF-8: byte 0xff at 13"),
    ],
)
def test_a_bad_line_says_what_is_wrong_with_it(line: bytes, what: str) -> None:
    with pytest.raises(BadRequest) as caught:
        parse_request(line)
    assert caught.value.what == what


@pytest.mark.parametrize("line", [b"[" * 100_000, b'{"command": ' + b"1" * 5000 + b"}", b'{"a":' * 50_000, b""])
def test_a_monstrous_line_is_a_bad_line(line: bytes) -> None:
    with pytest.raises(BadRequest):
        parse_request(line)


def test_a_timeout_too_big_for_a_number_is_refused() -> None:
    with pytest.raises(BadRequest):
        parse_request(b'{"command": "x", "timeout": 1' + b"0" * 400 + b"}")


@given(st.binary(max_size=200) | st.recursive(st.none() | st.text() | st.floats() | st.integers(), st.lists).map(_dump))
def test_any_line_is_a_command_or_a_bad_line(line: bytes) -> None:
    try:
        assert isinstance(parse_request(line).command, str)
    except BadRequest as error:
        assert error.what


@pytest.mark.shell
def test_questions_of_a_command_are_answered_from_its_line() -> None:
    """T19: and a question without an answer is a result at once."""
    asks = 'read -p "Sure? " x; echo "<$x>"'
    answered, not_answered, after = serve(
        {"command": asks, "answers": {"Sure?": "yes"}}, {"command": asks, "answers": {}}, {"command": "echo on"}
    )
    assert (answered["output"], answered["reason"]) == ("Sure? yes\n<yes>\n", "done")
    assert (not_answered["reason"], not_answered["prompt"], not_answered["exit_code"]) == (
        "awaiting input",
        "Sure? ",
        130,
    )
    assert after["output"] == "on\n"


@pytest.mark.parametrize("answers", ["yes", ["a"], {"a": 1}, 3])
def test_answers_that_are_none_are_refused(answers: object) -> None:
    with pytest.raises(BadRequest, match="texts by prompt"):
        parse_request(json.dumps({"command": "x", "answers": answers}).encode())
