"""What is sent to other machines is compiled once, and kept."""

import zlib
from pathlib import Path

import pytest

from tarmac.fleet.carried import carried_bytes


def test_the_compiled_piece_is_kept_and_a_damaged_one_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F2."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    make = carried_bytes.__wrapped__  # without what this process remembers
    data = make(compiled=True)
    (kept,) = (tmp_path / "tarmac").iterdir()
    assert (kept.read_bytes(), kept.stat().st_mode & 0o777) == (data, 0o600)
    assert make(compiled=True) == data
    kept.write_bytes(data[:-10])
    again = make(compiled=True)  # not equal: marshal may write the same code in two ways
    assert zlib.decompress(again).partition(b"\n")[0] == zlib.decompress(data).partition(b"\n")[0]
    assert kept.read_bytes() == again
