"""What a front end sends is decoded once, into values."""

import pytest

from tarmac.server.verbs import read_hello


@pytest.mark.parametrize(
    ("frame", "client"),
    [
        ('{"client": "acp"}', "acp"),
        ("{}", "cli"),
        ('{"client": "nobody"}', "cli"),
        ("", "cli"),
    ],
)
def test_a_front_end_says_who_it_is(frame: str, client: str) -> None:
    """F8."""
    assert read_hello(frame).client == client
