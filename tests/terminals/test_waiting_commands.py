"""A running command that waits for somebody to type: told by itself, soon, with its question; and never wrongly."""

import asyncio
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tarmac.terminals import Execution, Terminal, events, open_terminal
from tarmac.terminals.process import tty_probe
from tarmac.terminals.shell.pty_terminal import PtyTerminal

pytestmark = [pytest.mark.shell, pytest.mark.skipif(sys.platform != "linux", reason="asks the Linux kernel")]

PROMISED = 0.5  # from blocking to the event

REPL = "python3 -c 'import readline\nwhile True: input(\"db=> \")'"
THREAD = "python3 -c 'import threading; threading.Thread(target=input, args=(\"thread? \",)).start()'"
LEADER_GONE = 'true | python3 -c \'import sys; print(end="tty? ", flush=True); open("/dev/tty").readline()\''
ASKS = {
    "read -p 'Name: ' name": ("line", "bash", "Name: "),
    "read -t 30 -p 'Quick: ' name": ("line", "bash", "Quick: "),
    "read -e -p 'Edit: ' name": ("keys", "bash", "Edit: "),
    "read -s -p 'PIN: ' pin": ("secret", "bash", "PIN: "),
    "read -n 1 -p 'Go on [y/n]? ' answer": ("keys", "bash", "Go on [y/n]? "),
    "echo 'Really? [y/N]'; read answer": ("line", "bash", "Really? [y/N]"),
    "printf '\\e[1mbold\\e[m: '; cat": ("line", "cat", "bold: "),
    "python3 -c 'input(\"name> \")'": ("line", "python3", "name> "),
    "python3 -c 'import getpass; getpass.getpass()'": ("secret", "python3", "Password: "),
    "python3 -q": ("keys", "python3", ">>> "),
    REPL: ("keys", "python3", "db=> "),
    THREAD: ("line", "python3", "thread? "),
    LEADER_GONE: ("line", "python3", "tty? "),
    "bash --norc": ("keys", "bash", None),
    "node": ("keys", "node", "> "),
    "less /etc/passwd": ("keys", "less", None),
    "vi -u NONE": ("keys", "vi", ""),
    "top": ("keys", "top", ""),
    "script -q /dev/null": ("keys", "script", None),
    "tmux -S $PWD/tmux -f /dev/null new": ("keys", "tmux: client", ""),  # its server reads, in a session of its own
    "ssh-keygen -q -t ed25519 -f key": ("secret", "ssh-keygen", "Enter passphrase (empty for no passphrase): "),
    "touch key; ssh-keygen -q -t ed25519 -f key": ("line", "ssh-keygen", "Overwrite (y/n)? "),
    "su daemon -s /bin/sh -c 'printf \"who? \"; read x'": ("line", "sh", "who? "),
    "(sleep 0.6; read x) < /dev/tty": ("line", "bash", ""),
}


class Ear:
    """Hears when a terminal says that its command waits."""

    def __init__(self, terminal: Terminal) -> None:
        self.heard: list[events.AwaitingInput] = []
        self._rang = asyncio.Event()
        terminal.subscribe(self._listen)

    def _listen(self, event: events.TerminalEvent) -> None:
        if isinstance(event, events.AwaitingInput):
            self.heard.append(event)
            self._rang.set()

    async def next(self) -> events.AwaitingInput:
        async with asyncio.timeout(10):
            await self._rang.wait()
        self._rang.clear()
        return self.heard[-1]


class Blocked:
    """When the kernel first shows the program blocked on the terminal; and how long nobody let us run since."""

    def __init__(self, terminal: Terminal, name: str) -> None:
        assert isinstance(terminal, PtyTerminal) and terminal.session is not None
        self._terminal, self._session, self._name = terminal, terminal.session, name
        self.since = 0.0
        self._held_up = 0.0
        self._watching = asyncio.create_task(self._watch())

    async def _watch(self) -> None:
        before = time.monotonic()
        while True:
            await asyncio.sleep(0.005)
            late = time.monotonic() - before - 0.005
            before = time.monotonic()
            if self.since:
                self._held_up += late
            elif self._is_blocked():
                self.since = time.monotonic()

    def _is_blocked(self) -> bool:
        seen = tty_probe.probe(self._session.pty.master, self._session.pid)
        current = self._terminal.current
        return seen is not None and seen.name == self._name and current is not None and current.began

    async def until(self, moment: float) -> float:
        """The seconds from then on, without those in which a busy machine let nobody of us run."""
        while not self.since:  # noqa: ASYNC110 (each look is one of ours)
            await asyncio.sleep(0.005)
        self._watching.cancel()
        return moment - self.since - self._held_up


@pytest.mark.parametrize("command", ASKS)
async def test_a_command_that_begins_to_wait_says_so_within_half_a_second(
    tmp_path: Path, command: str, require: Callable[[str], None]
) -> None:
    """T19, T32: what it wants, who, and its question; without anybody asking for it."""
    wants, name, prompt = ASKS[command]
    require(name.partition(":")[0])
    async with open_terminal(cwd=tmp_path) as terminal:
        ear = Ear(terminal)
        blocked = Blocked(terminal, name)
        execution = await terminal.start(command)
        told = await ear.next()
        assert (told.wants, told.name, told.number) == (wants, name, execution.number)
        assert await blocked.until(told.at) < PROMISED
        seen = execution.waiting
        assert seen is not None and (seen.wants, seen.name) == (wants, name)
        if prompt is not None:
            assert (told.prompt, seen.prompt) == (prompt, prompt)


OTHERS_ASK = {
    ("zsh", "read 'x?Name: '"): ("line", "zsh", "Name: "),
    ("zsh", "read -s 'x?PIN: '"): ("secret", "zsh", "PIN: "),
    ("zsh", "read -q 'x?Go on [y/n]? '"): ("keys", "zsh", "Go on [y/n]? "),
    ("zsh", "zsh -f"): ("keys", "zsh", None),
    ("fish", "read -P 'Name: ' x"): ("keys", "fish", "Name: "),
    ("fish", "read -s -P 'PIN: ' x"): ("keys", "fish", "PIN: "),
    ("fish", "python3 -c 'import getpass; getpass.getpass()'"): ("secret", "python3", "Password: "),
    ("fish", "fish --no-config"): ("keys", "fish", None),
}


@pytest.mark.parametrize(("shell", "command"), OTHERS_ASK)
async def test_zsh_and_fish_ask_as_bash_does(
    tmp_path: Path, shell: str, command: str, require: Callable[[str], None]
) -> None:
    """T19: though some read keys themselves where bash reads a line."""
    require(shell)
    async with open_terminal(cwd=tmp_path, shell=shell) as terminal:
        ear = Ear(terminal)
        execution = await terminal.start(command)
        told = await ear.next()
        wants, name, prompt = OTHERS_ASK[shell, command]
        assert (terminal.provider, told.wants, told.name, execution.running) == ("pty", wants, name, True)
        assert prompt is None or told.prompt == prompt


WORKS_AND_POLLS = """
import select, time
while True:
    select.select([0], [], [], 0.05)
    end = time.process_time() + 0.2
    while time.process_time() < end: pass
"""
WORKS = {
    "sleep": "sleep 100",
    "a busy shell": "while :; do :; done",
    "a busy program": "python3 -c 'while True: pass'",
    "the network": "python3 -c 'import socket; socket.create_server((\"127.0.0.1\", 0)).accept()'",
    "a lock": "flock lock flock lock true",
    "a log line that looks like a question": "echo 'Password: '; printf 'Continue? [y/n]: '; sleep 100",
    "a secret's mode, asleep": "stty -echo; printf 'Password: '; sleep 100",
    "a pipe": "sleep 100 | cat",
    "a background job that reads": "cat & sleep 100",
    "looking at the keyboard between two pieces of work": f"python3 -c '{WORKS_AND_POLLS}'",
    "printing all the time": "while :; do echo line; sleep 0.02; done",
    "a child that works": 'python3 -c \'import subprocess; subprocess.run(["sleep", "100"])\'',
}


async def test_a_command_that_works_is_never_said_to_wait(tmp_path: Path) -> None:
    """T19: neither by event nor when asked, however much it looks so; all of them at once, for a second and a half."""

    async def watch(what: str, command: str) -> tuple[str, int, set[object]]:
        async with open_terminal(cwd=tmp_path) as terminal:
            ear = Ear(terminal)
            execution = await terminal.start(command)
            answers: set[object] = set()
            end = time.monotonic() + 1.5
            while (left := end - time.monotonic()) > 0 and not await execution.ended(min(left, 0.05)):
                answers.add(execution.waiting)
            return what, len(ear.heard), answers

    watched = await asyncio.gather(*(watch(what, command) for what, command in WORKS.items()))
    assert watched == [(what, 0, {None}) for what in WORKS]


async def test_each_question_is_told_once_and_the_next_one_again(tmp_path: Path) -> None:
    """T32: one event for each wait, the question without the answer before it."""
    async with open_terminal(cwd=tmp_path) as terminal:
        ear = Ear(terminal)
        execution = await terminal.start("read -p 'One? ' a; read -s -p 'Two? ' b; read -p 'Three? ' c; echo $a $c")
        for answer in ("1\n", "2\n", "3\n"):
            await ear.next()
            await execution.ended(0.5)  # nothing more is said while it goes on waiting
            assert execution.waiting is not None
            await execution.send(answer)
            assert execution.waiting is None  # it has its answer
        result = await execution.result(timeout=20)
    assert [(each.wants, each.prompt) for each in ear.heard] == [
        ("line", "One? "),
        ("secret", "Two? "),
        ("line", "Three? "),
    ]
    assert (result.exit_code, result.output.splitlines()[-1]) == (0, "1 3")
    assert execution.waiting is None


async def test_a_program_that_redraws_itself_is_told_once(tmp_path: Path, require: Callable[[str], None]) -> None:
    """T32: `top` goes on by itself, and is still the same wait."""
    require("top")
    async with open_terminal(cwd=tmp_path) as terminal:
        ear = Ear(terminal)
        execution = await terminal.start("top -d 0.7")
        await execution.ended(2.5)
        assert [each.name for each in ear.heard] == ["top"]


async def test_a_question_that_is_asked_again_after_a_while_is_told_again(tmp_path: Path) -> None:
    """T32: with the same words, by the same program, and nobody answered the first."""
    async with open_terminal(cwd=tmp_path) as terminal:
        ear = Ear(terminal)
        await terminal.start("while :; do read -t 1 -p 'Go? ' x; echo; sleep 0.8; done")
        first, second = await ear.next(), await ear.next()
        assert (first.prompt, second.prompt) == ("Go? ", "Go? ")


async def test_half_a_line_typed_is_still_a_wait(tmp_path: Path) -> None:
    """T19: what was typed is not a line yet."""
    async with open_terminal(cwd=tmp_path) as terminal:
        ear = Ear(terminal)
        execution = await terminal.start("read -p 'Name: ' x; echo got $x")
        await ear.next()
        await execution.send("A")
        told = await ear.next()
        assert (told.wants, told.prompt) == ("line", "Name: A")
        await execution.send("da\n")
        assert (await execution.result(timeout=20)).output.endswith("got Ada\n")


async def test_the_result_has_the_question(tmp_path: Path) -> None:
    """T15, T19: `awaiting input`, for what, and what it asks."""
    async with open_terminal(cwd=tmp_path) as terminal:
        result = await terminal.run("echo first; read -s -p 'Passphrase for key: ' x", timeout=0.6)
        shown = result.as_dict()
        assert (result.reason, result.evidence, result.running) == ("awaiting input", "unknown", True)
        assert (shown["awaiting"], shown["prompt"]) == ("secret", "Passphrase for key: ")


LOST = {
    "a nested bash": "bash --norc",
    "a nested sh": "sh",
    "another program in the shell's place": "exec bash --norc",
    "python": "python3 -q",
    "a shell in a shell": "bash --norc -c 'sh; true'",
}


@pytest.mark.parametrize("command", LOST.values(), ids=LOST)
async def test_a_shell_of_the_commands_own_is_awaiting_input_and_no_hang(tmp_path: Path, command: str) -> None:
    """T19: nobody knows what it will do next: `awaiting input`, evidence `unknown`; `exit` ends it with its code."""
    async with open_terminal(cwd=tmp_path) as terminal:
        result = await terminal.run(command, timeout=60, answers=[])  # until it waits
        assert (result.reason, result.evidence, result.exit_code) == ("awaiting input", "unknown", None)
        if "python" in command:
            await terminal.current.send("exit(7)\n")  # type: ignore[union-attr]
        else:
            assert any("nested shell" in each for each in result.notes)
            await terminal.current.send("exit 7\n")  # type: ignore[union-attr]
        execution = terminal.current
        assert isinstance(execution, Execution)
        assert (await execution.result(timeout=20)).exit_code == (0 if "true" in command else 7)
        assert (await terminal.run("echo on")).output == "on\n"


HOOKS_GONE = {
    "hooks cleared": "PROMPT_COMMAND= PS1='$ ' PS0=",
    "builtin redefined": "builtin() { :; }; PROMPT_COMMAND= PS1='$ '",
    "words redefined": "printf() { :; }; eval() { :; }; PROMPT_COMMAND=",
    "functions gone": "for f in $(compgen -A function); do unset -f $f; done; PROMPT_COMMAND= PS1='$ '",
}


@pytest.mark.parametrize("command", HOOKS_GONE.values(), ids=HOOKS_GONE)
async def test_a_shell_that_lost_our_hooks_comes_back_all_the_same(tmp_path: Path, command: str) -> None:
    """T19: by its mark or asked; the next command runs."""
    async with open_terminal(cwd=tmp_path) as terminal:
        first = await terminal.run(f"{command}; false", timeout=8)
        assert (first.reason, first.awaiting) in (("done", None), ("terminal closed", None))
        assert (await terminal.run("echo on", timeout=8)).output == "on\n"


DUMB = {
    "bash": 'for f in $(compgen -A function); do eval "$f() { :; }"; readonly -f $f; done; '
    "PROMPT_COMMAND= PS1='$ ' PS0=; readonly PROMPT_COMMAND PS1; printf() { :; }; builtin() { :; }; false",
    "zsh": "for f in ${(k)functions}; do functions[$f]=:; done; precmd_functions=(); PS1='% '; "
    "disable builtin print printf eval; false",
}


@pytest.mark.parametrize("shell", DUMB)
async def test_a_shell_that_lost_its_words_is_awaiting_input_and_no_hang(
    tmp_path: Path, shell: str, require: Callable[[str], None]
) -> None:
    """T19: at its prompt, and dumb: evidence `unknown`, and the next command has a shell that talks."""
    require(shell)
    async with open_terminal(cwd=tmp_path, shell=shell) as terminal:
        first = await terminal.run(DUMB[shell], timeout=20, answers=[])
        assert (first.reason, first.evidence, first.exit_code) == ("awaiting input", "unknown", None)
        assert any("does not say" in note for note in first.notes)
        assert terminal.current is not None
        await terminal.current.kill()
        assert (await terminal.run("echo on", timeout=8)).output == "on\n"


async def test_a_person_who_types_ends_the_wait(tmp_path: Path) -> None:
    """T2, T19: keys of a person count as an answer too."""
    async with open_terminal(cwd=tmp_path) as terminal:
        ear = Ear(terminal)
        execution = await terminal.start("read -p 'Name: ' x; read -p 'Again: ' y; echo $x $y")
        await ear.next()
        await terminal.type("Ada\r")
        assert (await ear.next()).prompt == "Again: "
        await terminal.type("Eve\r")
        assert (await execution.result(timeout=20)).output.endswith("Ada Eve\n")
