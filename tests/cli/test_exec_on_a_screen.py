"""`tarmac exec` with a person before it: their terminal, their keys, their Ctrl-C."""

import os
import signal

import pytest
from tests.cli.conftest import PATIENCE, on_a_screen

pytestmark = pytest.mark.shell
both = pytest.mark.parametrize("provider", ["pty", "exec"])


@both
def test_on_a_terminal_the_colours_are_kept(provider: str) -> None:
    with on_a_screen("exec", "--provider", provider, r"printf '\e[31mred\e[m\n'; exit 5") as screen:
        assert b"\x1b[31mred\x1b[m\r\n" in screen.rest()
        assert screen.process.returncode == 5


@both
def test_a_person_can_answer_a_question(provider: str) -> None:
    with on_a_screen("exec", "--provider", provider, "printf 'name? '; read x; echo hello $x") as screen:
        screen.until(b"name? ")
        screen.type(b"Ada\r")
        assert b"hello Ada\r\n" in screen.rest()
        assert screen.process.returncode == 0


@both
def test_ctrl_c_reaches_the_command(provider: str) -> None:
    # In bash itself, `echo up; sleep 1000`, a key that comes while it forks is lost, in any terminal.
    with on_a_screen("exec", "--provider", provider, "sh -c 'echo up; exec sleep 1000'") as screen:
        screen.until(b"up")
        screen.type(b"\x03")
        screen.rest()
        assert screen.process.returncode == 130


def test_ctrl_d_is_the_end_of_input() -> None:
    with on_a_screen("exec", "echo up; cat; echo over") as screen:
        screen.until(b"up")
        screen.type(b"\x04")
        assert b"over\r\n" in screen.rest()
        assert screen.process.returncode == 0


def test_a_program_gets_single_keys() -> None:
    with on_a_screen("exec", "echo up; read -rsn 3 keys; printf '%q\\n' \"$keys\"") as screen:
        screen.until(b"up")
        screen.type(b"\x1b[A")
        assert rb"$'\E[A'" in screen.rest()


def test_the_command_has_the_size_of_our_terminal_and_follows_it() -> None:
    with on_a_screen(
        "exec", "bash -c 'trap \"stty size; exit\" WINCH; stty size; while :; do sleep 0.02; done'"
    ) as screen:
        screen.until(b"30 90\r\n")
        screen.resize(21, 77)
        assert b"21 77\r\n" in screen.rest()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_our_terminal_is_as_it_was_whatever_happens(number: signal.Signals, code: int) -> None:
    with on_a_screen("exec", "sh -c 'echo up; exec sleep 1000'") as screen:
        before = screen.modes()
        screen.until(b"up")
        assert screen.modes() != before
        os.kill(screen.process.pid, number)
        screen.rest()
        assert (screen.process.wait(PATIENCE), screen.modes()) == (code, before)


def test_a_full_screen_program_that_is_cut_short_gives_the_screen_back() -> None:
    with on_a_screen("exec", "--timeout", "0.5", r"printf '\e[?1049h'; sleep 1000") as screen:
        assert b"\x1b[?1049l" in screen.rest()
        assert screen.process.returncode == 124


def test_a_stopped_command_is_not_left_behind() -> None:
    with on_a_screen("exec", "sh -c 'echo up; exec sleep 1000'") as screen:
        screen.until(b"up")
        screen.type(b"\x1a")
        assert b"tarmac: it was stopped (Ctrl-Z)" in screen.rest()
        assert screen.process.returncode == 148
