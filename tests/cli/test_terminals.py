"""`tarmac terminals`: real shells that a program left to a terminal daemon of the test's own."""

import asyncio
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import tarmac
from tests.e2e.tmux import tarmac_in_tmux
from tests.tasks.engine import an_app, call, done, turn, write_script
from tests.terminals.daemon.conftest import daemon_pid, wait_gone

from tarmac.cli.terminals import main
from tarmac.errors import BadRequest
from tarmac.terminals import Settings, attach_terminal, list_terminals, open_terminal
from tarmac.terminals.daemon.connection import daemon_folder

pytestmark = [pytest.mark.shell, pytest.mark.slow]


@pytest.fixture(autouse=True)
def daemon(own_state: Path) -> Iterator[Path]:
    """The folder of the test's own daemon, which ends with the test."""
    folder = daemon_folder(os.environ)
    yield folder
    end_daemon(folder)


def end_daemon(folder: Path) -> None:
    if (pid := daemon_pid(folder)) is not None:
        os.kill(pid, signal.SIGKILL)  # its shells end with it
        wait_gone(pid)


def leave(cwd: Path, *commands: str, start: str = "", name: str = "") -> str:
    """Open a terminal, run commands in it, start one more, and leave it; its id."""

    async def work() -> str:
        async with open_terminal(
            cwd=cwd, shell="bash", settings=Settings(start_up_files=False), outlive=True, name=name
        ) as left:
            for command in commands:
                await left.run(command, timeout=60)
            if start:
                execution = await left.start(start)
                await execution.waiting_for(pattern="began", timeout=60)
            return left.id

    return asyncio.run(work())


def listed() -> list[str]:
    return [each.id for each in asyncio.run(list_terminals())]


def test_an_empty_list_says_so() -> None:
    """F1: and starts no daemon."""
    outcome = tarmac("terminals")
    assert (outcome.code, outcome.out, outcome.err) == (0, "No terminal outlives its program here.\n", "")
    assert json.loads(tarmac("terminals", "list", "--json").out) == []


def test_a_terminal_is_listed_and_ended(tmp_path: Path) -> None:
    """F1: with its command and its folder, for people and as JSON; its end ends what runs in it."""
    id = leave(tmp_path, start="echo $BASHPID >pid; echo began; sleep 4711")
    shown = tarmac("terminals", "list").out.splitlines()
    assert shown[0].startswith(f"{id}  runs `echo $BASHPID") and "ends in 24 h" in shown[0]
    assert shown[1:] == [f"    in {tmp_path}"]
    (told,) = json.loads(tarmac("terminals", "--json").out)
    wanted = {
        "id": id,
        "cwd": str(tmp_path),
        "running": True,
        "alive": True,
        "host": None,
        "status": None,
        "task": None,
    }
    assert {name: told[name] for name in wanted} == wanted and 0 < told["expires"] <= 86400

    outcome = tarmac("terminals", "end", id)
    assert (outcome.code, outcome.out, outcome.err) == (0, f"{id} was ended.\n", "")
    wait_gone(int((tmp_path / "pid").read_text()))
    assert listed() == []


def test_one_that_cannot_be_ended_keeps_no_other_from_its_end(tmp_path: Path) -> None:
    """F1: an unknown one is told with the next step; the exit code tells that not all was done."""
    id = leave(tmp_path)
    outcome = tarmac("terminals", "end", "t-nobody", id, id)
    assert (outcome.code, outcome.out) == (125, f"{id} was ended.\n")
    assert outcome.err == "tarmac: Terminal t-nobody not found\n  hint: `tarmac terminals list` shows those there are\n"
    assert listed() == []


def test_one_is_found_by_its_name_too(tmp_path: Path) -> None:
    """F1: a name that two have ends neither, and their ids are told."""
    ids = [leave(tmp_path, name=name) for name in ("build", "server", "server")]
    outcome = tarmac("terminals", "end", "build", "server")
    assert (outcome.code, outcome.out) == (125, f"{ids[0]} was ended.\n")
    assert outcome.err == f"tarmac: 2 terminals are named `server`\n  hint: take an id: {ids[1]}, {ids[2]}\n"
    assert listed() == ids[1:]


def test_an_end_is_told_to_programs(tmp_path: Path) -> None:
    """A5: a line for each that was ended; the exit code tells that not all was done."""
    id = leave(tmp_path)
    outcome = tarmac("terminals", "end", "t-nobody", id, "--json")
    assert (outcome.code, json.loads(outcome.out)) == (125, {"ended": id})


async def test_a_task_that_is_deleted_takes_its_terminals_along(tmp_path: Path) -> None:
    """T9, F1: also those that outlived the program that opened them; those of others stay."""
    (work := tmp_path / "work").mkdir()
    other = await asyncio.to_thread(leave, tmp_path)
    sleeps = turn(call("execute_command", command="touch begun; sleep 600", timeout=0.3))
    model = write_script(tmp_path / "script.toml", sleeps, done())
    async with (
        an_app(work, **{"terminals.outlive": True}) as app,
        app.create_task("Do it.", model=model, auto="all", attended=False) as task,
    ):
        assert (await task.run_until_idle()).why == "completed"
    assert [each.task for each in await list_terminals()].count(task.id) == 1
    outcome = await asyncio.to_thread(tarmac, "tasks", "delete", task.id, "--yes")
    assert (outcome.code, outcome.err) == (0, "")
    assert [each.id for each in await list_terminals()] == [other]


def test_one_that_a_program_has_is_not_taken_from_it(tmp_path: Path) -> None:
    """F1: the list names the program, and `end` is refused."""
    id = leave(tmp_path, "true")

    async def work() -> None:
        terminal = await attach_terminal(id)
        try:
            shown = await asyncio.to_thread(tarmac, "terminals")
            assert f"in use by process {os.getpid()}; last command: `true`" in shown.out
            outcome = await asyncio.to_thread(tarmac, "terminals", "end", id)
            assert (outcome.code, outcome.out) == (125, "")
            assert outcome.err == f"tarmac: terminal {id} is in use: process {os.getpid()} has it\n"
        finally:
            await terminal.aclose()

    asyncio.run(work())


def test_one_that_was_lost_with_the_daemon_is_listed_and_forgotten(daemon: Path, tmp_path: Path) -> None:
    """F1: no new shell is opened to end it."""
    id = leave(tmp_path, "echo lost")
    end_daemon(daemon)
    assert f"{id}  lost with the terminal daemon; last command: `echo lost`" in tarmac("terminals").out
    outcome = tarmac("terminals", "end", id)
    assert (outcome.code, outcome.out, outcome.err) == (0, f"{id} was ended.\n", "")
    assert listed() == [] and list((daemon / "terminals").iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "what", "hint"),
    [
        (["ned", "t-1"], "`ned` is not a command of `tarmac terminals`", "did you mean `end`?"),
        (["t-1"], "`t-1` is not a command of `tarmac terminals`", "`tarmac terminals` takes list, attach ID or end ID"),
        (["list", "t-1"], "`terminals list` takes no `t-1`", "`tarmac terminals list` lists all"),
        (["end"], "`terminals end` takes the ids or the names of terminals", "`tarmac terminals` lists them"),
        (["attach", "t-1", "--json"], "`terminals attach` takes no --json", "`tarmac terminals list --json`"),
        (["attach"], "`terminals attach` takes the id or the name of one terminal", "`tarmac terminals` lists them"),
        (
            ["attach", "a", "b"],
            "`terminals attach` takes the id or the name of one terminal",
            "`tarmac terminals` lists them",
        ),
    ],
)
def test_wrong_usage_is_told_with_the_next_step(arguments: list[str], what: str, hint: str) -> None:
    """A5."""
    with pytest.raises(BadRequest) as raised:
        main(arguments)
    assert (raised.value.what, raised.value.hint) == (what, hint)


def test_attaching_needs_a_screen() -> None:
    """A5: what is wrong, what to do, and exit code 2."""
    outcome = tarmac("terminals", "attach", "t-1")
    told = "`terminals attach` needs a terminal\n  hint: `tarmac terminals --json` shows its state\n"
    assert (outcome.code, outcome.out, outcome.err) == (2, "", f"tarmac: {told}")


def test_attaching_to_an_unknown_one_says_so(tmp_path: Path) -> None:
    """F1."""
    with tarmac_in_tmux("terminals", "attach", "t-nobody", cwd=tmp_path) as tmux:
        assert tmux.exit_status() == 125
        tmux.until("Terminal t-nobody not found", "hint: `tarmac terminals list`")


def test_a_person_attaches_leaves_comes_back_and_ends_the_shell(tmp_path: Path) -> None:
    """F1: variables are those of the program before; Ctrl-] leaves it running; `exit` ends it."""
    id = leave(tmp_path, "export COLOUR=green", start="echo began; read line; echo got $line")
    with tarmac_in_tmux("terminals", "attach", id, cwd=tmp_path) as tmux:
        tmux.until("began")
        tmux.type("words\n")
        tmux.until("got words")
        tmux.type("echo it is $COLOUR\n")
        tmux.until("it is green")
        tmux.keys("C-]")
        assert tmux.exit_status() == 0
        tmux.until(f"{id} goes on.")
    (left,) = asyncio.run(list_terminals())
    assert (left.id, left.alive, left.host) == (id, True, None)
    with tarmac_in_tmux("terminals", "attach", id, cwd=tmp_path) as tmux:
        tmux.until("it is green")
        tmux.type("exit\n")
        assert tmux.exit_status() == 0
        tmux.until(f"{id}: its shell has ended.")
    assert listed() == []
