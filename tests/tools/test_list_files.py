"""list_files against real folders, and against git's own idea of what it ignores."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tarmac.errors import DirectoryUnavailable
from tarmac.tools.list_files import list_files


def tree(root: Path, names: str, **contents: str) -> None:
    for name in names.split():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("/"):
            path.mkdir(exist_ok=True)
        else:
            path.write_text(contents.get(path.name, "x"))


async def test_a_folder_is_listed_folders_first(tmp_path: Path) -> None:
    tree(tmp_path, "b.txt a.txt src/app.py src/deep/x.py empty/ .hidden")
    (tmp_path / "loop").symlink_to(tmp_path)
    assert (await list_files(tmp_path)).names == ("empty/", "src/", ".hidden", "a.txt", "b.txt", "loop")
    listing = await list_files(tmp_path, recursive=True)
    assert " ".join(listing.names) == "empty/ src/ src/deep/ src/deep/x.py src/app.py .hidden a.txt b.txt loop"


def git(folder: Path, *words: str) -> list[str]:
    done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=True, timeout=20)
    return done.stdout.split()


async def test_what_git_ignores_is_not_listed(tmp_path: Path, require: Callable[[str], None]) -> None:
    """S10: the same files as `git ls-files` says, with nested ignore files, exceptions and an exclude file."""
    require("git")
    git(tmp_path, "init", "-q")
    tree(
        tmp_path,
        "a.log keep.log build/out.o build/keep/x src/build/y src/a.log src/b.tmp src/deep/c.tmp src/deep/keep.tmp "
        "docs/x.md docs/private/y.md top only/top node_modules/p/i.js secret.txt",
    )
    (tmp_path / ".gitignore").write_text("*.log\n!keep.log\n/build/\nnode_modules\n/top\ndocs/private/\n# comment\n\n")
    (tmp_path / "src/.gitignore").write_text("*.tmp\n!a.log\n")
    (tmp_path / "src/deep/.gitignore").write_text("!keep.tmp\n")
    (tmp_path / ".git/info/exclude").write_text("secret.txt\n")
    expected = git(tmp_path, "ls-files", "-co", "--exclude-standard")
    listing = await list_files(tmp_path, recursive=True)
    assert sorted(each for each in listing.names if not each.endswith("/")) == sorted(expected)
    below = await list_files(tmp_path / "src" / "deep", recursive=True)
    assert below.names == (".gitignore", "keep.tmp")
    assert (await list_files(tmp_path / "build")).names == ("keep/", "out.o")


async def test_a_long_list_is_cut_and_says_so(tmp_path: Path) -> None:
    """S10: bounded; level by level, so that every folder at the top is seen."""
    tree(tmp_path, " ".join(f"a/f{number:03}" for number in range(300)) + " b/x c/y")
    listing = await list_files(tmp_path, recursive=True, most=10)
    assert (len(listing.names), listing.truncated) == (10, True)
    assert {"a/", "b/", "c/"} <= set(listing.names)
    assert str(listing).endswith("search_files with a pattern.)")
    assert str(await list_files(tmp_path / "b")) == "x"


async def test_hidden_files_and_folders_that_are_none(tmp_path: Path) -> None:
    tree(tmp_path, "a .env sub/.env")
    listing = await list_files(tmp_path, recursive=True, hidden=lambda path: path.name == ".env")
    assert listing.names == ("sub/", "a")
    assert str(await list_files(tmp_path / "sub", hidden=lambda _: True)) == "No files found."
    with pytest.raises(DirectoryUnavailable, match="does not exist"):
        await list_files(tmp_path / "gone")
