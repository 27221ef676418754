"""Terminals of a session: a task, or a client of ACP or MCP."""

from pathlib import Path

import pytest

from tarmac.errors import TerminalNotFound
from tarmac.terminals import TerminalRegistry

pytestmark = pytest.mark.shell


async def test_a_session_has_its_terminals_and_works_where_it_used_one_last(tmp_path: Path) -> None:
    """T34, while Tarmac runs; for a restart see `daemon/test_takeover.py`."""
    (tmp_path / "sub").mkdir()
    async with TerminalRegistry() as pool:
        own = await pool.open(cwd=tmp_path, task="task-1")
        shared = await pool.open(cwd=tmp_path)
        assert (pool.terminals_of("task-1"), pool.cwd_of("client")) == ([own], None)
        pool.associate(shared, "task-1")
        pool.associate(shared, "client")
        await shared.run("cd sub")
        assert pool.terminals_of("task-1") == [own, shared]
        assert pool.terminals_of("client") == [shared]
        assert (pool.cwd_of("task-1"), pool.cwd_of("client")) == (tmp_path / "sub", tmp_path / "sub")
        await pool.kill(shared.id)
        assert (pool.terminals_of("task-1"), pool.cwd_of("client")) == ([own], None)
        with pytest.raises(TerminalNotFound):
            pool.associate(shared, "client")
