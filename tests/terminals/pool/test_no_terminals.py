"""A registry without terminals, for embedding."""

from pathlib import Path

import pytest

from tarmac.errors import OutOfTerminals, TerminalNotFound
from tarmac.terminals import NoTerminals, TerminalRegistry, Terminals


async def test_no_terminals_is_a_registry_that_has_none(tmp_path: Path) -> None:
    """A6: asked for one it says so; ending what never began is fine."""
    terminals: Terminals = NoTerminals()
    for asked in (terminals.get_or_create(cwd=tmp_path, task="A"), terminals.lease(cwd=tmp_path).__aenter__()):
        with pytest.raises(OutOfTerminals, match="no terminals here"):
            await asked
    for reading in (terminals.read("t1"), terminals.unread_output("t1")):
        with pytest.raises(TerminalNotFound, match="Terminal t1 not found"):
            await reading
    with pytest.raises(TerminalNotFound):
        terminals.get("t1")
    await terminals.cool("A", edited=True)
    await terminals.end_task("A")
    await terminals.kill("t1")
    assert (terminals.listing(), terminals.background(), terminals.release_for_task("A")) == ([], [], [])


def test_the_registry_is_what_its_users_need() -> None:
    """A6: mypy says whether it has each verb of the protocol."""
    terminals: Terminals = TerminalRegistry()
    assert terminals.listing() == []
