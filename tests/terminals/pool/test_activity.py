"""When a command is hot, and how long to wait until it is not."""

import asyncio
import os
import time
from pathlib import Path

import pytest
from tests.terminals.pool.test_limits import settled, started

from tarmac.terminals import Settings, TerminalRegistry
from tarmac.terminals.output.follow import looks_like_compiling

pytestmark = pytest.mark.shell


@pytest.mark.parametrize(
    ("output", "compiling"),
    [
        (b"webpack: Compiling...\r\n", True),
        (b"Building modules 3/10\r", True),
        (b"Compiling...\nCompiled successfully\n", False),
        (b"Compiled successfully\nCompiling...\n", True),
        (b"building\nerror: no such file\n", False),
        (b"rebuilding nothing, buildings\n", False),
        (b"hello\n", False),
        (b"", False),
    ],
)
def test_what_looks_like_compiling(output: bytes, compiling: bool) -> None:
    """T10."""
    assert looks_like_compiling(output) is compiling


async def test_a_running_command_is_hot_for_a_while_after_output(tmp_path: Path) -> None:
    """T10: 2 s, or 15 s when it looks like compiling; one that printed nothing or has finished is not."""
    async with TerminalRegistry(Settings(warm_pool=0)) as terminals:
        quiet, printing, compiling = [await terminals.get_or_create(cwd=tmp_path, task="A") for _ in range(3)]
        await quiet.start("read x")
        await started(printing)
        execution = await started(compiling, "echo Compiling 3 files; read x")
        async for chunk in execution:
            if "Compiling" in str(chunk):
                break
        hot = [terminals.is_hot(each.id) for each in (quiet, printing, compiling)]
        for each in (printing, compiling):
            assert each.current is not None
            each.current.last_output -= 3.0
        later = [terminals.is_hot(each.id) for each in (quiet, printing, compiling)]
        await execution.kill()
        assert (hot, later, terminals.is_hot(compiling.id)) == ([False, True, True], [False, False, True], False)


async def test_cooling_waits_until_nothing_is_hot(tmp_path: Path) -> None:
    """T24: this task's and the background's; 300 ms more after an edit; the end of a command cuts it short."""
    async with TerminalRegistry(Settings(warm_pool=0)) as terminals:

        async def took(task: str, *, edited: bool = False) -> float:
            began = time.monotonic()
            await terminals.cool(task, edited=edited)
            return time.monotonic() - began

        assert await took("A", edited=True) < 0.1
        terminal = await terminals.get_or_create(cwd=tmp_path, task="A")
        os.mkfifo(tmp_path / "fifo")
        execution = await started(terminal, "cat fifo")
        assert await took("B", edited=True) < 0.1
        execution.last_output = time.monotonic() - 1.8
        assert 0.1 < await took("A") < 1.0
        assert 0.29 < await took("A", edited=True) < 1.0
        terminals.release_for_task("A")
        execution.last_output = time.monotonic()
        cooling = asyncio.create_task(took("B"))
        await settled()
        os.close(os.open(tmp_path / "fifo", os.O_WRONLY))
        assert await cooling < 1.0


async def test_cooling_does_not_wait_for_who_waits_for_input(tmp_path: Path) -> None:
    """T24: it prints nothing more before somebody types, however hot it looks."""
    async with TerminalRegistry(Settings(warm_pool=0)) as terminals:
        terminal = await terminals.get_or_create(cwd=tmp_path, task="A")
        execution = await started(terminal, "read -p 'Installing: go on? ' x")
        assert (await execution.waiting_for(input=True, timeout=10)).what == "input"
        began = time.monotonic()
        await terminals.cool("A")
        assert time.monotonic() - began < 1.0
