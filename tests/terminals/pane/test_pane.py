"""A pane over a real shell."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tarmac.terminals import Settings, open_terminal
from tarmac.terminals.pane import Pane, PaneState, PaneView

pytestmark = pytest.mark.shell
LONG = 20.0  # a limit: nothing here takes so long


@pytest.fixture
async def pane(tmp_path: Path) -> AsyncIterator[Pane]:
    async with open_terminal(cwd=tmp_path, settings=Settings(start_up_files=False)) as terminal:
        yield Pane(terminal)


async def typed(pane: Pane, keys: str, wait: float = LONG) -> PaneView:
    async with asyncio.timeout(2 * LONG):
        await pane.type(keys, wait=wait)
        return await pane.view()


async def test_a_command_comes_back_at_its_end_and_not_after_the_wait(pane: Pane) -> None:
    """F7."""
    view = await typed(pane, "echo one; false\n", wait=1000.0)
    assert (view.state, view.exit_code) == (PaneState.PROMPT, 1)
    assert "\none\n" in view.text


async def test_commands_typed_together_run_one_after_another(pane: Pane, tmp_path: Path) -> None:
    """F7."""
    view = await typed(pane, "mkdir d\ncd d\ncat > f <<'EOF'\nit's $HOME\nEOF\npwd\n")
    assert f"\n{tmp_path}/d\n" in view.text
    assert (tmp_path / "d" / "f").read_text() == "it's $HOME\n"


async def test_keys_typed_ahead_are_for_the_program_that_asks(pane: Pane) -> None:
    """F7."""
    view = await typed(pane, "read -p 'name? ' name; echo got-$name\nlamp\necho after\n")
    assert view.state is PaneState.PROMPT
    assert view.text.index("got-lamp\n") < view.text.rindex("after\n")


async def test_a_question_ends_the_wait(pane: Pane) -> None:
    """F7."""
    view = await typed(pane, "read -p 'name? ' name; echo got-$name\n", wait=1000.0)
    assert (view.state, view.question) == (PaneState.INPUT, "name? ")
    view = await typed(pane, "lamp\n")
    assert view.state is PaneState.PROMPT
    assert "got-lamp\n" in view.text


async def test_what_still_runs_is_waited_for_again(pane: Pane, tmp_path: Path) -> None:
    """F7."""
    view = await typed(pane, "until [ -e go ]; do read -t 0.02 < /dev/zero; done; echo gone; (exit 3)\n", wait=0.2)
    assert view.state is PaneState.RUNNING
    (tmp_path / "go").touch()
    view = await typed(pane, "")
    assert (view.state, view.exit_code) == (PaneState.PROMPT, 3)
    assert view.text.startswith("gone\n")


async def test_control_c_interrupts(pane: Pane) -> None:
    """F7."""
    assert (await typed(pane, "sleep 1000\n", wait=0.2)).state is PaneState.RUNNING
    view = await typed(pane, "C-c")
    assert (view.state, view.exit_code) == (PaneState.PROMPT, 130)


async def test_a_half_line_waits_for_its_end(pane: Pane) -> None:
    """F7."""
    assert (await typed(pane, "echo 'a\n")).text.endswith("echo 'a\n")
    assert "\na\nb\n" in (await typed(pane, "b'\n")).text


async def test_a_shell_that_ended_is_followed_by_a_new_one(pane: Pane) -> None:
    """F7."""
    assert (await typed(pane, "exit 4\n")).state is PaneState.ENDED
    assert "again\n" in (await typed(pane, "echo again\n")).text


async def test_much_output_keeps_its_beginning_and_its_end(pane: Pane) -> None:
    """F7."""
    view = await typed(pane, "seq 1 50000\n")
    assert "\n1\n2\n" in view.text
    assert "\n49999\n50000\n" in view.text
    assert len(view.text) < 11_000
