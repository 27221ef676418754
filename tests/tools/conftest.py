"""What the tests of tools share."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.tools.workshop import Workshop

from tarmac.terminals import Settings, TerminalRegistry


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncIterator[Workshop]:
    folder = tmp_path / "project"
    folder.mkdir()
    async with TerminalRegistry(Settings(warm_pool=0)) as registry:
        yield Workshop(folder, registry)
