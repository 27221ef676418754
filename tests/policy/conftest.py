"""The parser's time limit is for people who wait; on a busy machine it would decide what a test sees."""

import inspect

import pytest

from tarmac.policy.verdict import PolicySettings

MEASURING = ("test_slow", "test_trouble")  # these are about that limit


@pytest.fixture(autouse=True)
def patient_parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten seconds, where nobody asks for another time."""
    if request.path.stem not in MEASURING:
        PolicySettings()  # its __init__ is written with the first object
        defaults = inspect.unwrap(PolicySettings.__init__).__kwdefaults__
        monkeypatch.setitem(defaults, "parse_timeout", 10.0)
        assert PolicySettings().parse_timeout == 10.0
