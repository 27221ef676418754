"""Expected questions answered, each once, only when they are asked; and secrets that appear nowhere."""

import asyncio
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarmac.errors import BadRequest, ExecutionEnded, SecretNotAsked
from tarmac.terminals import Answer, Settings, Terminal, events, open_terminal, run_once
from tarmac.terminals.answers import MASK, SHORTEST, Secrets

shell = pytest.mark.shell
SECRET = "hunter2-correct-horse"


@shell
async def test_a_key_is_made_with_all_its_questions_answered(tmp_path: Path, require: Callable[[str], None]) -> None:
    """T19: overwrite, passphrase, passphrase again; the file is there, encrypted, and the passphrase nowhere else."""
    require("ssh-keygen")
    (tmp_path / "key").touch(mode=0o600)
    answers = [
        Answer("Overwrite (y/n)?", "y"),
        Answer("Enter passphrase", SECRET, secret=True),
        Answer("same passphrase again", SECRET, secret=True),
    ]
    async with open_terminal(cwd=tmp_path) as terminal:
        result = await terminal.run("ssh-keygen -t ed25519 -f key", answers=answers, timeout=20)
        check = await terminal.run(f"ssh-keygen -y -P {SECRET} -f key")
    assert (result.reason, result.exit_code, result.awaiting) == ("done", 0, None)
    assert "Overwrite (y/n)? y\n" in result.output
    assert SECRET not in result.output
    assert (check.exit_code, check.output[:11]) == (0, "ssh-ed25519")


@shell
async def test_answers_are_found_by_text_or_pattern_and_each_is_used_once(tmp_path: Path) -> None:
    """T19: in the order of the questions, whatever the order of the answers."""
    asks = 'for i in 1 2 3; do read -p "Port [$i]? " x; echo got $x; done; python3 -c \'print(input("Name> "))\''
    answers = [
        Answer("Name>", "Ada"),
        Answer(re.compile(r"Port \[\d\]"), "8001"),
        Answer(re.compile(r"port", re.IGNORECASE), "8002"),
        Answer("Port [3]?", "8003"),
    ]
    async with open_terminal(cwd=tmp_path) as terminal:
        began = time.monotonic()
        result = await terminal.run(asks, answers=answers)
        took = time.monotonic() - began
    got = [line for line in result.output.splitlines() if "?" not in line]
    assert (result.reason, got) == ("done", ["got 8001", "got 8002", "got 8003", "Name> Ada", "Ada"])
    assert took < 5


@shell
async def test_two_answers_for_one_question_are_given_to_two_questions(tmp_path: Path) -> None:
    """T19: a question that stands unanswered for a moment longer does not get the second answer too."""
    command = "read -s -p 'Password: ' a; sleep 0.3; read -s -p 'Password: ' b; echo; [[ $a$b == onetwo ]]"
    async with open_terminal(cwd=tmp_path) as terminal:
        result = await terminal.run(command, answers=[Answer("Password:", "one"), Answer("Password:", "two")])
    assert (result.reason, result.exit_code) == ("done", 0)


@shell
async def test_a_question_nobody_expected_ends_the_wait(tmp_path: Path) -> None:
    """T19: `awaiting input` at once, with the question; the command still runs and can be answered."""
    async with open_terminal(cwd=tmp_path) as terminal:
        result = await terminal.run("read -p 'A? ' a; read -p 'B? ' b; echo $a$b", answers={"A?": "1"})
        assert (result.reason, result.awaiting, result.prompt, result.running) == (
            "awaiting input",
            "line",
            "B? ",
            True,
        )
        assert result.running and result.duration < 3
        assert terminal.current is not None
        await terminal.current.send("2\n")
        assert (await terminal.current.result(timeout=20)).output.endswith("12\n")
        nothing = await terminal.run("read -p 'C? ' c", answers=[], on_timeout="interrupt")
        assert (nothing.reason, nothing.exit_code, nothing.prompt) == ("awaiting input", 130, "C? ")


@shell
async def test_what_only_looks_like_a_question_is_not_answered(tmp_path: Path) -> None:
    """T19: a line printed is no question; nothing is typed until the kernel says that it waits."""
    async with open_terminal(cwd=tmp_path) as terminal:
        result = await terminal.run(
            "printf 'Sure? '; sleep 0.6; echo; read -t 0 && echo typed ahead; read -p 'Sure? ' x; echo $x",
            answers={"Sure?": "yes"},
        )
    assert (result.reason, result.output) == ("done", "Sure? \nSure? yes\nyes\n")


@shell
async def test_answers_have_a_time_of_their_own(tmp_path: Path) -> None:
    """T19: `interactive_timeout`; an answer that nobody asked for in that time is not given."""
    settings = Settings(interactive_timeout=0.5, run_timeout=30)
    async with open_terminal(cwd=tmp_path, settings=settings) as terminal:
        result = await terminal.run("sleep 100", answers={"x": "y"}, on_timeout="kill")
        assert (result.reason, result.duration < 3) == ("timeout", True)
        idle = await terminal.run("sleep 100", answers={}, timeout=20, idle_timeout=0.3)
        assert idle.reason == "idle"


@shell
async def test_a_temporary_command_can_be_answered_too(tmp_path: Path) -> None:
    """T13, T19."""
    result = await run_once("read -p 'Who? ' x; echo $x", cwd=tmp_path, answers={"Who": "me"})
    assert (result.reason, result.output) == ("done", "Who? me\nme\n")


@shell
async def test_a_key_without_enter(tmp_path: Path) -> None:
    async with open_terminal(cwd=tmp_path) as terminal:
        command = "read -n 1 -p 'Go [y/n]? ' a; echo; read -t 0.1 rest; echo \"<$a$rest>\""
        result = await terminal.run(command, answers=[Answer("Go", "y", enter=False)])
    assert result.output.endswith("<y>\n")


@shell
async def test_a_secret_is_not_given_where_the_terminal_would_show_it(tmp_path: Path) -> None:
    """T19: `awaiting input`, and why."""
    async with open_terminal(cwd=tmp_path) as terminal:
        result = await terminal.run("read -p 'Password: ' x", answers=[Answer("Password", SECRET, secret=True)])
        assert (result.reason, result.awaiting) == ("awaiting input", "line")
        assert any("would show it" in note for note in result.notes)
        assert SECRET not in str(result)


@pytest.mark.parametrize("answers", [["yes"], {"a": 1}, [("a", "b")]])
@shell
async def test_what_is_no_answer_is_refused_before_anything_runs(tmp_path: Path, answers: object) -> None:
    async with open_terminal(cwd=tmp_path) as terminal:
        with pytest.raises(BadRequest):
            await terminal.run("touch ran", answers=answers)  # type: ignore[arg-type]
    assert not (tmp_path / "ran").exists()


# Secrets


class Places:
    """Everything of a terminal that is stored, shown or told."""

    def __init__(self, terminal: Terminal, state: Path) -> None:
        self.events: list[events.TerminalEvent] = []
        self._terminal, self._state = terminal, state
        terminal.subscribe(self.events.append)

    def all(self) -> dict[str, bytes]:
        files = {str(path): path.read_bytes() for path in self._state.rglob("*") if path.is_file()}
        return files | {
            "events": repr(self.events).encode(),
            "data written": b"".join(e.data for e in self.events if isinstance(e, events.DataWritten)),
            "recent": self._terminal.recent_output().encode(),
            "history": repr(list(self._terminal.history)).encode(),
            "terminal": repr(vars(self._terminal)).encode(),
            "executions": repr([vars(each) for each in self._terminal.unread]).encode(),
        }


LEAKS = {
    "asked and kept": "read -s -p 'Password: ' x; echo; echo thanks",
    "said again by the program": "read -s -p 'Password: ' x; echo; echo \"your password is $x, sir\"",
    "said again bit by bit": "read -s -p 'Password: ' x; while [[ $x ]]; do printf %c \"$x\"; x=${x#?}; done",
    "asked by python": "python3 -c 'import getpass; print(getpass.getpass())'",
}


@pytest.mark.parametrize("command", LEAKS.values(), ids=LEAKS)
@pytest.mark.parametrize("how", ["send_secret", "send", "person", "answer"])
@shell
async def test_a_secret_appears_nowhere(tmp_path: Path, own_state: Path, command: str, how: str) -> None:
    """T19: not in result, spool, events, history, recent output or any object of ours, whoever typed it."""
    async with open_terminal(cwd=tmp_path) as terminal:
        places = Places(terminal, own_state)
        if how == "answer":
            result = await terminal.run(command, answers=[Answer("Password", SECRET, secret=True)], timeout=20)
        else:
            execution = await terminal.start(command)
            if how == "send_secret":
                await execution.send_secret(SECRET)
            else:
                async for _ in execution:
                    break  # it has asked; echo is off by then
                while execution.waiting is None:
                    await execution.news(0.01)
                if how == "send":
                    await execution.send(SECRET + "\n")
                else:
                    for key in SECRET + "\r":
                        await terminal.type(key)
            result = await execution.result(timeout=20)
        found = places.all()
        shown = repr(result) + repr(result.as_dict()) + result.for_model()
        assert (result.exit_code, result.reason) == (0, "done")
        assert [where for where, data in found.items() if SECRET.encode() in data] == []
        assert SECRET not in shown
        assert len(found) > 6 and b"Password: " in found["data written"]
        if command != LEAKS["asked and kept"]:
            assert MASK.decode() in result.output


@shell
async def test_a_secret_waits_until_the_echo_is_off(tmp_path: Path, own_state: Path) -> None:
    """T19: sent a moment too early it would be shown by the terminal itself; so it is not sent early."""
    async with open_terminal(cwd=tmp_path) as terminal:
        places = Places(terminal, own_state)
        execution = await terminal.start("read -p 'User: ' u; sleep 0.3; read -s -p 'Password: ' x; echo $u ${#x}")
        sending = asyncio.create_task(execution.send_secret(SECRET))
        await execution.send("root\n")
        await sending
        result = await execution.result(timeout=20)
        assert result.output.endswith(f"root {len(SECRET)}\n")
        assert [where for where, data in places.all().items() if SECRET.encode() in data] == []


@shell
async def test_a_secret_that_nobody_asks_for_is_not_sent(tmp_path: Path) -> None:
    """T19: refused, with what it waits for instead."""
    async with open_terminal(cwd=tmp_path) as terminal:
        execution = await terminal.start("read -p 'User: ' u; echo $u")
        with pytest.raises(SecretNotAsked, match="User:"):
            await execution.send_secret(SECRET, timeout=0.5)
        await execution.send("root\n")
        assert (await execution.result(timeout=20)).output == "User: root\nroot\n"
        with pytest.raises(ExecutionEnded):
            await execution.send_secret(SECRET)


@shell
async def test_a_program_that_reads_a_secret_key_by_key_is_named_by_its_question(tmp_path: Path) -> None:
    """T19: sudo's feedback, pinentry: they show what they like, and the kernel can't tell a secret from other keys."""
    command = "stty -icanon -echo; printf 'PIN: '; IFS= read -r x; stty icanon echo; echo; echo ${#x} $x"
    async with open_terminal(cwd=tmp_path) as terminal:
        execution = await terminal.start(command)
        with pytest.raises(SecretNotAsked):
            await execution.send_secret(SECRET, timeout=0.4)
        await execution.send_secret(SECRET, prompt="PIN:")
        result = await execution.result(timeout=20)
        assert result.output.endswith(f"{len(SECRET)} {MASK.decode()}\n")


pieces = st.lists(st.binary(max_size=8))


@given(before=pieces, secret=st.binary(min_size=SHORTEST, max_size=12), after=pieces, cut=st.integers(1, 5))
def test_masking_does_not_depend_on_how_output_is_cut(
    before: list[bytes], secret: bytes, after: list[bytes], cut: int
) -> None:
    """T19: the secret is found across any pieces, and nothing else is lost."""
    if any(byte in secret for byte in b"\r\n\x04\x7f\x08\x15*"):
        return
    whole = b"".join(before) + secret + b"".join(after)
    secrets = Secrets()
    secrets.typed(secret + b"\n")
    shown = b"".join(secrets.mask(whole[i : i + cut]) for i in range(0, len(whole), cut))
    at_once = Secrets()
    at_once.keep(secret)
    assert shown + secrets.rest() == at_once.mask(whole) + at_once.rest()
    assert secret not in shown


def test_what_was_rubbed_out_is_not_part_of_a_secret() -> None:
    secrets = Secrets()
    for keys in (b"wrong", b"\x15", b"hunterr", b"\x7f", b"2\r"):
        secrets.typed(keys)
    assert secrets.mask(b"hunter2 wrong ") + secrets.rest() == MASK + b" wrong "
    assert "hunter2" not in repr(secrets)
