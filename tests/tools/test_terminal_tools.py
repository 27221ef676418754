"""Terminals by their ids: opened, run in, read, typed into, waited for, killed; and what is told of them next turn."""

import asyncio
import re
import shlex
import shutil
import time
from contextlib import nullcontext
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest
from tests.tools.workshop import Workshop, text_of

from tarmac.errors import BadArguments, ToolFailed
from tarmac.events import TaskId
from tarmac.policy import KillTerminal, OpenTerminal, SendInput
from tarmac.prompts.environment_details import MOST_TERMINALS, Facts, TerminalFacts, environment_details
from tarmac.terminals import Terminal
from tarmac.tools.terminal_status import facts_of
from tarmac.tools.tool import Done

pytestmark = pytest.mark.shell


def fenced(text: str, name: str = "output") -> str:
    found = re.search(rf"<({name}-[0-9a-f]+)>\n(.*?)\n?</\1>", text, re.DOTALL)
    assert found, text
    return found[2]


async def opened(shop: Workshop) -> Terminal:
    done = await shop.call("open_persistent_terminal")
    return shop.registry.get(done.details["terminal"]["id"])


async def started(shop: Workshop, command: str) -> Terminal:
    """A command left running in a terminal of the task."""
    terminal = await opened(shop)
    await shop.call("run_persistent_command", id=terminal.id, command=command, timeout=0.2)
    assert terminal.busy
    return terminal


async def asking(shop: Workshop, command: str) -> Terminal:
    """A command that waits for input, and was reported as that."""
    terminal = await opened(shop)
    text = await shop.text("run_persistent_command", id=terminal.id, command=command, timeout=25)
    assert "Command is waiting for input" in text
    return terminal


async def test_a_persistent_terminal_is_opened_used_and_killed(shop: Workshop) -> None:
    """T14, S10: Void's names; state stays from one command to the next."""
    (shop.folder / "sub").mkdir()
    ready = await shop.prepare("open_persistent_terminal", cwd="sub", name="server")
    assert [each.action for each in ready.wants] == [OpenTerminal(cwd=shop.folder / "sub", shell="bash")]
    done = await shop.act(ready)
    (terminal,) = shop.registry.listing()
    assert terminal.name == "server"
    assert f"Opened persistent terminal with id '{terminal.id}'" in text_of(done)
    await shop.call("run_persistent_command", persistent_terminal_id=terminal.id, command="X=1; cd ..")
    text = await shop.text("run_persistent_command", id=terminal.id, command='echo "$X $PWD"')
    assert fenced(text) == f"1 {shop.folder}"
    ready = await shop.prepare("kill_persistent_terminal", id=terminal.id)
    assert [each.action for each in ready.wants] == [KillTerminal(terminal.id, running=None)]
    assert "was closed" in text_of(await shop.act(ready))
    assert shop.registry.listing() == []


async def test_an_unknown_terminal_is_an_error_to_run_in_and_none_to_kill(shop: Workshop) -> None:
    """T14."""
    terminal = await opened(shop)
    said = await shop.failure("run_persistent_command", id="t99", command="echo x")
    assert said == f"Terminal t99 not found. Open terminals: '{terminal.id}'."
    ready = await shop.prepare("kill_persistent_terminal", id="t99")
    assert ready.wants == ()
    assert "is not open" in text_of(await shop.act(ready))


async def test_killing_says_what_dies_with_it(shop: Workshop) -> None:
    """P1: the question has the command that would die."""
    terminal = await started(shop, "sleep 60")
    ready = await shop.prepare("kill_persistent_terminal", id=terminal.id)
    assert [each.action for each in ready.wants] == [KillTerminal(terminal.id, running="sleep 60")]
    assert "and with it `sleep 60`" in text_of(await shop.act(ready))
    assert await facts_of(shop.registry, shop.bench.task) == ()  # told, and not told again
    assert "Give an id: no terminals of this task are busy." in await shop.failure("send_to_terminal", text="x")


async def test_a_busy_terminal_takes_no_second_command(shop: Workshop) -> None:
    """T11."""
    terminal = await started(shop, "sleep 60")
    said = await shop.failure("run_persistent_command", id=terminal.id, command="echo x")
    assert f"`sleep 60` is still running in terminal {terminal.id}" in said


async def test_terminals_of_others_are_out_of_reach(shop: Workshop) -> None:
    """T2, T3: another task's, and a person's own; those of nobody may be used."""
    theirs = await shop.registry.open(task="task-2")
    persons = await shop.registry.open(origin="person")
    nobodys = await shop.registry.open()
    calls: list[tuple[str, dict[str, object]]] = [
        ("run_persistent_command", {"command": "echo x"}),
        ("read_terminal", {}),
        ("send_to_terminal", {"text": "x"}),
        ("wait_for_terminal", {}),
        ("kill_persistent_terminal", {}),
    ]
    for name, arguments in calls:
        assert "belongs to another task" in await shop.failure(name, id=theirs.id, **arguments)
        assert "belongs to the person" in await shop.failure(name, id=persons.id, **arguments)
    assert fenced(await shop.text("run_persistent_command", id=nobodys.id, command="echo mine")) == "mine"


async def test_what_is_allowed_by_itself_does_not_enter_a_persistent_shell(shop: Workshop) -> None:
    """P1: `ls` may mean another thing there by now; a lone `cd` moves the terminal."""
    (shop.folder / "sub").mkdir()
    terminal = await opened(shop)
    await shop.call("run_persistent_command", id=terminal.id, command="ls() { echo forged; }; cd() { echo forged; }")

    async def allowed(command: str) -> Done:
        ready = await shop.prepare("run_persistent_command", id=terminal.id, command=command)
        return await shop.act(ready, approved=False)

    assert fenced(text_of(await allowed("ls"))) == "sub"
    moved = text_of(await allowed("cd sub"))
    assert "forged" not in moved
    assert f"The working directory is now `{shop.folder / 'sub'}`." in moved
    assert terminal.cwd == shop.folder / "sub"
    assert "The next call starts" not in moved


async def test_new_output_is_read_once(shop: Workshop) -> None:
    """T10, S10: read_terminal."""
    terminal = await asking(shop, "echo one; read -p '> '; echo two; (exit 4)")
    assert "New output: (none)" in await shop.text("read_terminal", id=terminal.id)
    assert "(command 1), which waits for a line of input." in await shop.text("read_terminal", id=terminal.id)
    execution = terminal.current
    assert execution is not None
    await execution.send("\n")
    assert await execution.ended(10)
    text = await shop.text("read_terminal", id=terminal.id)
    assert "has ended: exit code 4." in text
    assert fenced(text).strip() == "two"
    assert "New output: (none)" in await shop.text("read_terminal", id=terminal.id)


async def test_all_of_an_output_can_be_searched_and_read_by_lines(shop: Workshop) -> None:
    """T27, S10: also of an earlier command, by its number."""
    terminal = await opened(shop)
    await shop.call("run_persistent_command", id=terminal.id, command=r"printf 'a\n\033[31mneedle\033[0m\nb\n%.0s' 1 2")
    await shop.call("run_persistent_command", id=terminal.id, command="echo later")
    text = await shop.text("read_terminal", id=terminal.id, search="^need+le$", command=1)
    assert "2 lines match" in text
    assert fenced(text) == " 1 | a\n>2 | needle\n 3 | b\n 4 | a\n>5 | needle\n 6 | b"
    assert fenced(await shop.text("read_terminal", id=terminal.id, lines="-2", command="1")) == "5 | needle\n6 | b"
    assert fenced(await shop.text("read_terminal", id=terminal.id, lines="1-")) == "1 | later"
    assert "0 lines match. Lines: (none)" in await shop.text("read_terminal", id=terminal.id, search="nothing")
    assert "there are no such lines; it has printed 1" in await shop.text("read_terminal", id=terminal.id, lines="7-9")
    assert "has no command 9 to read. There are: 1, 2." in await shop.failure(
        "read_terminal", id=terminal.id, lines="1-2", command=9
    )


@pytest.mark.parametrize(
    "arguments", [{"lines": "x"}, {"lines": "1-2", "search": "x"}, {"search": "("}, {"lines": "0-0", "search": "a"}]
)
async def test_what_can_not_be_read_is_told(shop: Workshop, arguments: dict[str, object]) -> None:
    terminal = await opened(shop)
    with pytest.raises(BadArguments):
        await shop.call("read_terminal", id=terminal.id, **arguments)


async def test_a_pattern_that_tries_everything_is_stopped(shop: Workshop) -> None:
    """S6: nothing hangs on a model's pattern, neither in a search nor in a wait."""
    terminal = await opened(shop)
    await shop.call("run_persistent_command", id=terminal.id, command=f"echo {'a' * 60}b")
    began = time.monotonic()
    assert "took too long" in await shop.failure("read_terminal", id=terminal.id, search="(a|aa)+$")
    await shop.call("run_persistent_command", id=terminal.id, command=f"echo {'a' * 60}b; sleep 60", timeout=0.3)
    assert "took too long" in await shop.failure("wait_for_terminal", id=terminal.id, pattern="(a|aa)+$")
    assert time.monotonic() - began < 15


async def test_the_state_of_a_terminal_can_be_asked_for(shop: Workshop) -> None:
    """T31: directory, shell, history with exit codes, what changed in the environment with secrets masked."""
    terminal = await opened(shop)
    await shop.call("run_persistent_command", id=terminal.id, command="export COLOUR=blue API_TOKEN=hunter2")
    await shop.call("run_persistent_command", id=terminal.id, command="mkdir sub; cd sub; false")
    text = await shop.text("read_terminal", id=terminal.id, state="true")
    assert f"Terminal '{terminal.id}' in `{shop.folder / 'sub'}` is idle" in text
    assert re.search(r"Shell: bash \d", text)
    assert re.search(r"Command 2: `mkdir sub; cd sub; false` in `.*project`, exit code 1, \d", text)
    assert "COLOUR=blue" in fenced(text)
    assert "hunter2" not in fenced(text)
    assert "Nothing" not in await shop.text("read_terminal", id=terminal.id)


async def test_terminals_are_listed(shop: Workshop) -> None:
    """T10: without an id, those the task may use."""
    assert await shop.text("read_terminal") == "No terminal is open."
    mine = await started(shop, "sleep 60")
    await shop.registry.open(task="task-2")
    nobodys = await shop.registry.open()
    assert (await shop.text("read_terminal")).splitlines() == [
        f"Terminal '{mine.id}' in `{shop.folder}` is running `sleep 60` (command 1).",
        f"Terminal '{nobodys.id}' in `{nobodys.cwd}` is idle. It belongs to no task.",
    ]


async def test_a_closed_terminal_is_readable_while_something_in_it_is_new(shop: Workshop) -> None:
    """T9."""
    terminal = await asking(shop, "echo first; read -p '> '; echo last words")
    execution = terminal.current
    assert execution is not None
    await execution.send("\n")
    assert await execution.ended(10)
    await shop.registry.kill(terminal.id)
    text = await shop.text("read_terminal", id=terminal.id)
    assert "is closed." in text
    assert fenced(text).endswith("last words")


async def test_waiting_tells_what_came_first(shop: Workshop) -> None:
    """S10: an end, a pattern, input, quiet, a port, or nothing in time."""
    terminal = await started(shop, "sleep 0.3; echo ready on 1; read -p 'Name: ' x; echo bye; exit 3")
    text = await shop.text("wait_for_terminal", id=terminal.id, pattern=r"ready on \d", timeout=20)
    assert "it printed a match after" in text
    assert fenced(text, "match") == "ready on 1"
    text = await shop.text("wait_for_terminal", id=terminal.id, timeout=20)
    assert "it waits for input" in text
    assert fenced(text, "prompt").strip() == "Name:"
    text = await shop.text("wait_for_terminal", id=terminal.id, input=False, quiet=0.2, timeout=20)
    assert "it is quiet" in text
    text = await shop.text("wait_for_terminal", id=terminal.id, input="false", timeout=0.1)
    assert "none of this happened" in text


async def test_waiting_for_a_port_and_for_the_end(shop: Workshop) -> None:
    """S10: without an id, all busy terminals of the task are watched."""
    server = "import socket, sys; s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); input(); sys.exit(5)"
    terminal = await started(shop, f'python3 -c "{server}"')
    text = await shop.text("wait_for_terminal", any_port=True, input=False, timeout=20)
    assert re.search(r"it listens on port \d+ \(process \d+\)", text)
    assert terminal.current is not None
    await terminal.current.send("\n")
    text = await shop.text("wait_for_terminal", input=False, timeout=20)
    assert "its command ended" in text
    assert "Exit code: 5." in text
    assert "No terminal of this task is busy." in await shop.failure("wait_for_terminal")
    began = time.monotonic()
    assert "is idle; its last command was" in await shop.text("wait_for_terminal", id=terminal.id, timeout=20)
    assert time.monotonic() - began < 10  # there is nothing to wait for


async def test_input_is_judged_as_what_it_is(shop: Workshop) -> None:
    """P1: who reads it, what is asked, and that the command was approved."""
    terminal = await asking(shop, "printf '> '; cat > /dev/null; python3 -c 'print(); input(\"Go on? \")'")
    execution = terminal.current
    assert execution is not None
    ready = await shop.prepare("send_to_terminal", id=terminal.id, keys="C-d")
    (want,) = ready.wants
    assert isinstance(want.action, SendInput)
    assert (want.action.text, want.action.foreground, want.action.approved) == ("\x04", "cat", True)
    assert ready.terminal == terminal.id
    await shop.act(ready)
    await execution.waiting_for(pattern=r"Go on\?", timeout=20)
    await execution.waiting_for(input=True, timeout=20)
    ready = await shop.prepare("send_to_terminal", text="y")
    (want,) = ready.wants
    assert isinstance(want.action, SendInput)
    assert (want.action.text, want.action.foreground, want.action.awaiting) == ("y\n", "a script of python3", "line")
    assert [each.decision for each in await shop.judged(ready)] == ["allow"]  # a plain answer to an approved command
    assert (want.action.prompt.strip(), want.action.cwd) == ("Go on?", shop.folder)
    await shop.act(ready)
    assert await execution.ended(20)


@pytest.mark.parametrize(
    ("command", "reader", "decision"),
    [
        ("read -p 'Go on? ' x", "a script of bash", "allow"),
        ("bash -c 'read -p \"Go on? \" x; true'", "a script of bash", "allow"),
        ("PS1='Go on? ' bash --norc", "bash", "ask"),
        ("exec bash --norc", "bash", "ask"),
        ("python3 -q", "python3", "ask"),
    ],
)
async def test_a_script_is_answered_and_a_shell_is_asked_about(
    shop: Workshop, command: str, reader: str, decision: str
) -> None:
    """P1: what a script reads is an answer, what a shell at its prompt reads is a command, whatever it prints."""
    await asking(shop, command)
    ready = await shop.prepare("send_to_terminal", text="reboot")
    (want,) = ready.wants
    assert isinstance(want.action, SendInput)
    assert want.action.foreground == reader
    assert [each.decision for each in await shop.judged(ready)] == [decision]


async def test_an_answer_is_not_typed_into_another_question(shop: Workshop) -> None:
    """P6: what was approved for one prompt is not sent to the next one, least of all to one for a secret."""
    command = 'read -p "Name: " a; read -s -p "Password: " b; cat >/dev/null'
    terminal = await asking(shop, command)
    execution = terminal.current
    assert execution is not None
    ready = await shop.prepare("send_to_terminal", id=terminal.id, text="Ada")
    await execution.send("typed by the person\n")
    await execution.waiting_for(pattern="Password: ", timeout=10)
    await execution.waiting_for(input=True, timeout=10)
    with pytest.raises(ToolFailed, match="Only the person may type"):
        await shop.act(ready)
    ended = await shop.prepare("kill_persistent_terminal", id=terminal.id)
    await shop.act(ended)


async def test_an_interrupt_is_a_key(shop: Workshop) -> None:
    terminal = await started(shop, "sleep 60")
    text = await shop.text("send_to_terminal", id=terminal.id, keys="C-c")
    assert "has ended: exit code 130 (SIGINT)" in text
    assert "Nothing is running" in await shop.failure("send_to_terminal", id=terminal.id, keys="C-c")


async def test_the_result_has_what_came_of_it(shop: Workshop) -> None:
    """S10: also where it was quiet for long before, and takes its time to answer."""
    terminal = await asking(shop, "read -p 'Name: ' x; sleep 0.5; echo hello $x; read -p 'Age: ' y")
    execution = terminal.current
    assert execution is not None
    execution.last_output -= 60
    text = await shop.text("send_to_terminal", id=terminal.id, text="Ada")
    assert "hello Ada" in fenced(text)
    assert "which waits for a line of input" in text


@pytest.mark.parametrize("arguments", [{}, {"text": "a", "keys": "C-c"}, {"keys": "Entr"}])
async def test_input_that_makes_no_sense_is_told(shop: Workshop, arguments: dict[str, object]) -> None:
    terminal = await started(shop, "cat")
    with pytest.raises(BadArguments, match="send_to_terminal"):
        await shop.call("send_to_terminal", id=terminal.id, **arguments)


async def news(shop: Workshop) -> tuple[TerminalFacts, ...]:
    """What a model is told with its next turn, once the terminals are quiet."""
    await shop.registry.cool(shop.bench.task)
    return await facts_of(shop.registry, shop.bench.task)


async def test_what_is_new_reaches_the_next_turn_once(shop: Workshop) -> None:
    """S8, T24: new output and endings of background terminals."""
    terminal = await asking(shop, "echo begun; read -p 'Name: ' x; echo \"hello $x\"; (exit 7)")
    execution = terminal.current
    assert execution is not None
    (facts,) = await news(shop)
    assert (facts.id, facts.busy, facts.own, facts.output) == (terminal.id, True, True, "")
    assert facts.waiting == "Name:"
    await execution.send("Ada\n")
    assert await execution.ended(10)
    (facts,) = await news(shop)
    assert (facts.busy, facts.ending, facts.waiting) == (False, "exit code 7", "")
    assert "hello Ada" in facts.output
    (facts,) = await news(shop)
    assert (facts.output, facts.ending, facts.cwd) == ("", "", shop.folder)


async def test_news_of_others_is_not_told_and_a_secret_is_not_quoted(shop: Workshop) -> None:
    """S8, T19."""
    await shop.registry.open(task="task-2")
    await shop.registry.open(origin="person")
    await asking(shop, "read -s -p 'Password: ' x")
    (facts,) = await facts_of(shop.registry, shop.bench.task)
    assert facts.waiting == "a secret, which only the person may type"
    assert await facts_of(shop.registry, TaskId("task-3")) == ()
    shop.registry.release_for_task("task-1")
    (facts,) = await facts_of(shop.registry, TaskId("task-3"))
    assert not facts.own


async def test_a_secret_that_a_person_is_asked_for_is_waited_for(shop: Workshop) -> None:
    """T25: the model can do nothing about it: its call waits, and says what for when its time is over."""
    shop.bench = replace(shop.bench, secrets=nullcontext)
    terminal = await opened(shop)
    ask = "read -s -p 'Password: ' x; echo; echo \"long: ${#x}\""
    text = await shop.text("run_persistent_command", id=terminal.id, command=ask, timeout=1)
    assert "It wants a secret" in text
    text = await shop.text("wait_for_terminal", id=terminal.id, timeout=0.3)
    assert "none of this happened" in text and "a secret that only the person may type" in text
    waiting = asyncio.create_task(shop.text("wait_for_terminal", id=terminal.id, timeout=20))
    assert terminal.current is not None
    await terminal.current.send_secret("12345")
    assert "its command ended" in (text := await waiting) and "long: 5" in text


async def test_where_nobody_types_secrets_a_wait_for_one_is_over_at_once(shop: Workshop) -> None:
    """T19: nothing hangs."""
    terminal = await asking(shop, "read -s -p 'Password: ' x")
    assert "it waits for input" in await shop.text("wait_for_terminal", id=terminal.id, timeout=20)


async def test_news_is_bounded(shop: Workshop) -> None:
    """S8: environment details are bounded; the rest can be read."""
    await asyncio.gather(*(started(shop, f"seq {number}0000; sleep 60") for number in (1, 2, 3)))
    for terminal in shop.registry.listing():
        assert terminal.current is not None
        terminal.current.shown = 0
    told = await facts_of(shop.registry, shop.bench.task, most=3000)
    assert len(told) == 3
    assert sum(len(each.output) for each in told) < 4000
    assert all(re.search(r"lines.*left out", each.output) for each in told)


async def test_what_there_is_no_room_for_is_told_another_time(shop: Workshop) -> None:
    """S8, T24: each ending and each output once, however many terminals have some."""
    terminals = [await shop.registry.open(cwd=shop.folder) for _ in range(MOST_TERMINALS + 3)]
    for number, terminal in enumerate(terminals):
        await (await terminal.start(f"echo beat {number}.; (exit {number})")).ended(10)
    texts = [_details(await facts_of(shop.registry, shop.bench.task, most=most)) for most in (4000, 4000, 4000)]
    together = "\n".join(texts)
    for number in range(len(terminals)):
        assert together.count(f"    beat {number}.\n") == 1, number
        assert together.count(f"Ended: exit code {number}\n") == 1, number
    assert "has ended" not in texts[2]


async def test_without_room_for_output_endings_are_told_once(shop: Workshop) -> None:
    """S8: `tools.news_characters = 0`."""
    terminal = await shop.registry.open(cwd=shop.folder)
    await (await terminal.start("echo beat; (exit 7)")).ended(10)
    first, second = [_details(await facts_of(shop.registry, shop.bench.task, most=0)) for _ in range(2)]
    assert "Ended: exit code 7" in first and "New output" not in first
    assert "has ended" not in second


def _details(terminals: tuple[TerminalFacts, ...]) -> str:
    return environment_details(Facts(workspace=Path("/w"), now=datetime.now(), mode="code", terminals=terminals))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
async def test_a_persistent_terminal_has_the_shell_and_the_arguments_that_were_asked_for(
    shop: Workshop, shell: str
) -> None:
    """T14: shell and arguments; the policy is told both, with the path of the program that would run."""
    path = shutil.which(shell)
    if path is None:
        pytest.skip(f"no {shell}")
    words = {"bash": ["-O", "globstar"], "zsh": ["-o", "extendedglob"], "fish": ["-C", "set -g asked yes"]}[shell]
    ready = await shop.prepare("open_persistent_terminal", shell=shlex.join((shell, *words)))
    assert [each.action for each in ready.wants] == [OpenTerminal(cwd=shop.folder, shell=path, arguments=(*words,))]
    await shop.act(ready)
    (terminal,) = shop.registry.listing()
    assert (terminal.shell.name, terminal.quality) == (shell, "rich")
    told = {"bash": "shopt globstar", "zsh": "[[ -o extendedglob ]] && echo on", "fish": "echo $asked on"}[shell]
    assert "on" in fenced(await shop.text("run_persistent_command", id=terminal.id, command=told)).split()


async def test_a_shell_that_would_not_read_from_its_terminal_is_refused(shop: Workshop) -> None:
    """T14: a command belongs to run_persistent_command, where it is judged and has a result."""
    for words in (["-c", "true"], ["script.sh"], ["-s"], ["--"]):
        ready = await shop.prepare("open_persistent_terminal", shell=shlex.join(("bash", *words)))
        with pytest.raises(ToolFailed, match=r"not an option of bash|does not read from its terminal"):
            await shop.act(ready)
    assert "can't be read" in await shop.failure("open_persistent_terminal", shell="bash '")
    assert "no shell 'nosuch'" in await shop.failure("open_persistent_terminal", shell="nosuch")


async def test_a_login_shell_reads_the_profile_and_is_integrated(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T14, T20: bash's own login shell would not read our integration."""
    home = shop.folder / "home"
    home.mkdir()
    (home / ".profile").write_text("PROFILE=read\n")
    monkeypatch.setenv("HOME", str(home))
    await shop.call("open_persistent_terminal", shell="bash -l")
    (terminal,) = shop.registry.listing()
    assert terminal.quality == "rich"
    assert fenced(await shop.text("run_persistent_command", id=terminal.id, command="echo $PROFILE")) == "read"
