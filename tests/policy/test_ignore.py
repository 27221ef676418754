"""The ignore file: git's syntax, and a file further down may only hide more."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import lacking

from tarmac.policy import PolicySettings, ReadFile, WriteFile
from tarmac.policy.files import Files, IgnoreFiles

APPROVED = PolicySettings(auto_approve_read=True, auto_approve_write=True)


def hidden(root: Path, path: str) -> str:
    return IgnoreFiles().why(str(root), path)


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("secret.txt", "secret.txt"), ("deep/secret.txt", "secret.txt"), ("private", "private/"),
        ("private/a/b.txt", "private/"), ("build.log", "*.log"), ("keep.log", ""), ("private/keep.log", "private/"),
        ("top.txt", "/top.txt"), ("deep/top.txt", ""), ("readme.md", ""), ("a/x/y/b", "a/**/b"), (".", ""),
    ],
)  # fmt: skip
def test_it_hides_what_git_would_ignore(path: str, line: str, tmp_path: Path) -> None:
    """P8."""
    (tmp_path / ".tarmacignore").write_text("# why\n\nsecret.txt\nprivate/\n*.log\n!keep.log\n/top.txt\na/**/b\n")
    assert hidden(tmp_path, path) == (f".tarmacignore hides it ({line})" if line else "")


def test_one_in_a_folder_hides_more_and_never_less(tmp_path: Path) -> None:
    """P8: so whoever reads the one at the top knows."""
    (tmp_path / "app").mkdir()
    (tmp_path / ".tarmacignore").write_text("*.key\n")
    (tmp_path / "app" / ".tarmacignore").write_text("!*.key\nlocal.py\n")
    assert hidden(tmp_path, "app/a.key")
    assert hidden(tmp_path, "app/local.py") == "app/.tarmacignore hides it (local.py)"
    assert not hidden(tmp_path, "local.py")


@pytest.mark.parametrize("content", [b"\xff\xfe\n", b"a\n!\n", b"x" * ((1 << 20) + 1)])
def test_one_that_makes_no_sense_hides_everything(content: bytes, tmp_path: Path) -> None:
    """P8: an error means no."""
    (tmp_path / ".tarmacignore").write_bytes(content)
    assert "can't be read" in hidden(tmp_path, "readme.md")
    assert Files().judge(ReadFile(Path("readme.md")), workspace=tmp_path, settings=APPROVED).decision == "deny"


def test_one_that_is_a_folder_or_leads_nowhere_hides_everything(tmp_path: Path) -> None:
    """P8."""
    (tmp_path / ".tarmacignore").symlink_to("gone")
    assert "leads nowhere" in hidden(tmp_path, "readme.md")
    (tmp_path / ".tarmacignore").unlink()
    (tmp_path / ".tarmacignore").mkdir()
    assert "not a file" in hidden(tmp_path, "readme.md")


def test_a_change_counts_at_once(tmp_path: Path) -> None:
    """P8."""
    files = IgnoreFiles()
    assert not files.why(str(tmp_path), "a.txt")
    for lines, expected in (("a.txt\n", True), ("b.txt\n", False), ("a.*\n", True)):
        (tmp_path / ".tarmacignore").write_text(lines)
        assert bool(files.why(str(tmp_path), "a.txt")) is expected
    (tmp_path / ".tarmacignore").unlink()
    assert not files.why(str(tmp_path), "a.txt")


def test_tools_neither_read_nor_write_what_is_hidden_also_by_another_name(tmp_path: Path) -> None:
    """P8."""
    (tmp_path / ".tarmacignore").write_text("secret.txt\nprivate/\n")
    (tmp_path / "alias.txt").symlink_to("secret.txt")
    (tmp_path / "private").mkdir()
    (tmp_path / "way").symlink_to("private")
    for path in ("secret.txt", "alias.txt", "./x/../secret.txt", "way/new.txt", "private"):
        for action in (ReadFile(Path(path)), WriteFile(Path(path))):
            verdict = Files().judge(action, workspace=tmp_path, settings=APPROVED)
            assert (verdict.decision, verdict.rule) == ("deny", "file.ignored"), path


patterns = st.lists(
    st.sampled_from(["a", "b/", "/a", "*.c", "!a", "!x.c", "a/*", "!a/b", "**/b", "d/**", "a/b/", "!b/"]), max_size=5
)
paths = st.lists(st.sampled_from(["a", "b", "d", "x.c"]), min_size=1, max_size=3).map("/".join)


@given(patterns, paths)
def test_git_itself_agrees(tmp_path_factory: pytest.TempPathFactory, lines: list[str], path: str) -> None:
    """P8: what git ignores is hidden. (Of a file that isn't there git can't know that it is a folder; we hide both.)"""
    top = tmp_path_factory.getbasetemp() / "git"
    if shutil.which("git") is None:
        lacking("git is not installed")
    if not top.exists():
        subprocess.run(["git", "init", "-q", str(top)], check=True)
    text = "\n".join(lines) + "\n"
    (top / ".gitignore").write_text(text)
    (top / ".tarmacignore").write_text(text)
    git = subprocess.run(["git", "check-ignore", "-q", "--no-index", path], cwd=top, check=False).returncode == 0
    if git:
        assert hidden(top, path)
    elif hidden(top, path):
        folder = subprocess.run(["git", "check-ignore", "-q", "--no-index", path + "/"], cwd=top, check=False)
        assert folder.returncode == 0


def test_without_one_nothing_is_hidden(tmp_path: Path, require: Callable[[str], None]) -> None:
    """P8."""
    require("git")
    assert not hidden(tmp_path, "a/b/c")


def test_showing_a_folder_again_does_not_show_what_is_hidden_in_it(tmp_path: Path) -> None:
    """P8: as git reads it, `!a` speaks of a alone."""
    (tmp_path / ".tarmacignore").write_text("b/\n!a\n")
    assert hidden(tmp_path, "a/b/a") and not hidden(tmp_path, "a/c")


def test_roo_codes_ignore_file_hides_too(tmp_path: Path) -> None:
    """P4: `.rooignore` beside ours; neither shows what the other hides."""
    (tmp_path / ".rooignore").write_text("*.key\n")
    (tmp_path / ".tarmacignore").write_text("!a.key\nb.txt\n")
    ignored = IgnoreFiles()
    assert ignored.why(str(tmp_path), "a.key") == ".rooignore hides it (*.key)"
    assert ignored.why(str(tmp_path), "b.txt") == ".tarmacignore hides it (b.txt)"
    assert ignored.why(str(tmp_path), "c.txt") == ""
