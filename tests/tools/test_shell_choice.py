"""The shell of commands can be chosen."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.tools.workshop import Workshop, text_of

from tarmac.config import Config
from tarmac.terminals import TerminalRegistry

pytestmark = pytest.mark.shell


async def test_commands_run_in_the_shell_of_the_configuration(tmp_path: Path, require: Callable[[str], None]) -> None:
    """T1: `terminals.shell`."""
    require("zsh")
    config = Config(
        workspace=tmp_path, user_folder=tmp_path, values={"terminals.shell": "zsh", "terminals.warm_pool": 0}
    )
    async with TerminalRegistry(config.terminals) as registry:
        done = await Workshop(tmp_path, registry).call("execute_command", command="echo zsh=$ZSH_VERSION; X=1")
        assert "zsh=5" in text_of(done)
