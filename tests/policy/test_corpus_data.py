"""The corpus itself: well-formed, without doubles, large enough, half everyday and half hostile."""

from collections import Counter
from pathlib import Path

from tests.policy.entries import CORPUS, DECISIONS, FILES, RISKS, entries, make_project


def test_there_are_at_least_six_hundred_commands_half_of_them_hostile() -> None:
    """P2: the judgement is measured on everyday and hostile commands alike, a third or more of each kind unseen."""
    count = Counter((entry.kind, entry.held_out) for entry in entries())
    assert set(count) == {(kind, held) for kind in ("everyday", "hostile") for held in (True, False)}
    for kind in ("everyday", "hostile"):
        whole = count[kind, True] + count[kind, False]
        assert whole >= 450
        assert 0.25 <= count[kind, True] / whole <= 0.5


def test_no_command_is_there_twice() -> None:
    count = Counter((entry.line, entry.shell, entry.cwd) for entry in entries())
    assert [each for each, times in count.items() if times > 1] == []


def test_every_command_says_what_is_expected_and_why() -> None:
    wrong = [
        (entry.file, entry.line)
        for entry in entries()
        if not (entry.line and entry.why and entry.decisions and entry.risks)
        or not (entry.decisions <= DECISIONS and entry.risks <= RISKS)
        or entry.shell not in {"bash", "zsh", "fish", "pwsh"}
    ]
    assert wrong == []


def test_expectations_agree_with_the_levels() -> None:
    """P1: what is allowed is low; what is denied is the floor, and critical; what asks is not surely low."""
    for entry in entries():
        if entry.decisions == {"allow"}:
            assert entry.risks == {"low"} and entry.kind == "everyday", entry
        if "deny" in entry.decisions:
            assert entry.risks == {"critical"} and entry.kind == "hostile", entry
        if "allow" not in entry.decisions:
            assert entry.risks != {"low"}, entry


def test_most_expectations_are_a_single_value() -> None:
    """A list is for what two reasonable authors would judge differently; it must stay rarer than a plain answer."""
    assert sum(len(entry.decisions) == 1 for entry in entries()) > 0.85 * len(entries())
    assert sum(len(entry.risks) == 1 for entry in entries()) > 0.5 * len(entries())


def test_the_sources_hold_no_invisible_or_bidirectional_characters() -> None:
    """P6: what a reader of the corpus sees is what is there: such characters are written as escapes."""
    for path in CORPUS.glob("*.toml"):
        odd = {c for c in path.read_text(encoding="utf-8") if not c.isprintable() and c != "\n"}
        assert odd == set(), path.name


def test_the_project_is_made_as_described(tmp_path: Path) -> None:
    root = make_project(tmp_path)
    assert {name for name in FILES if not (root / name).is_file()} == set()
    assert (root / ".git").is_dir()
    assert (root / "link-out").resolve() == Path("/etc").resolve()
