"""What the tests of tools share."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import settings
from tests.tools.workshop import Workshop

from tarmac.terminals import Settings, TerminalRegistry

settings.register_profile("without deadline", deadline=None)  # by the clock of a busy machine any case may be slow
settings.load_profile("without deadline")


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncIterator[Workshop]:
    folder = tmp_path / "project"
    folder.mkdir()
    async with TerminalRegistry(Settings(warm_pool=0)) as registry:
        yield Workshop(folder, registry)
