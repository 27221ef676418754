"""`tarmac tour`, which is also the smoke test of `make run`."""

from pathlib import Path

import pytest
from tests.cli.conftest import on_a_screen, tarmac

pytestmark = pytest.mark.shell


def test_the_tour_ends_well_in_plain_text_and_leaves_nothing_behind(tmp_path: Path, own_state: Path) -> None:
    outcome = tarmac("tour", TMPDIR=str(tmp_path))
    assert (outcome.code, outcome.err) == (0, "")
    assert "\x1b" not in outcome.out
    for wanted in ("still green", "parts: 0 0 4 0", "awaiting input", "interrupted", "MB/s", "exit 3", "a fresh one,"):
        assert wanted in outcome.out
    assert list(tmp_path.iterdir()) == []
    assert [each for each in own_state.rglob("*") if each.is_file()] == []


def test_on_a_terminal_the_tour_is_in_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    with on_a_screen("tour") as screen:
        assert b"\x1b[1m" in screen.until(b"A directory that lasts")


def test_colours_can_be_declined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    with on_a_screen("tour") as screen:
        assert b"\x1b[1m" not in screen.until(b"A directory that lasts")
