"""What `tarmac.terminals` offers can be imported."""

import tarmac
from tarmac import terminals


def test_every_public_name_is_there() -> None:
    """A6: each is loaded from its module when it is first used."""
    for package in (tarmac, terminals):
        assert {name: hasattr(package, name) for name in package.__all__} == dict.fromkeys(package.__all__, True)
    assert terminals.TerminalRegistry is terminals.Pool
