"""What came and went in a workspace, on real folders: as a whole new listing would have it."""

import asyncio
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarmac.policy.files import Files
from tarmac.tools import tree as trees
from tarmac.tools.list_files import list_files
from tarmac.tools.tree import Changes, Tree

NAMES = ["a", "b/c", "b/d/e", "skip.log", "b/skip.log", "hid/x", "b", "b/d", "link"]
RULES = {".gitignore": ["*.log\n", "", "b/d/\n"], "b/.gitignore": ["c\n", ""], ".tarmacignore": ["hid/\n", ""]}
deeds = st.one_of(
    st.tuples(st.just("write"), st.sampled_from(NAMES)),
    st.tuples(st.just("remove"), st.sampled_from(NAMES)),
    st.tuples(st.just("link"), st.sampled_from(NAMES)),
    st.tuples(st.just("rule"), st.sampled_from([(name, text) for name, texts in RULES.items() for text in texts])),
    st.tuples(st.just("look"), st.just("")),
)


def make(root: Path, names: str) -> None:
    for name in names.split():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()


def hiding(root: Path) -> Callable[[Path], bool]:
    files = Files()
    return lambda path: bool(files.look(path, cwd=root, workspace=root).ignored)


def do(root: Path, what: str, thing: "str | tuple[str, str]") -> None:
    name = thing if isinstance(thing, str) else thing[0]
    path = root / name
    try:
        match what:
            case "write":
                make(root, name)
            case "rule":
                path.parent.mkdir(exist_ok=True)
                path.write_text(thing[1])
            case "link":
                path.symlink_to(root / "hid")
            case "remove" if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            case "remove":
                path.unlink()
    except (OSError, shutil.SameFileError):  # it is there already, or not there, or something else
        pass


@settings(deadline=None, max_examples=60)
@given(st.lists(deeds, max_size=12), st.booleans())
def test_it_knows_what_a_new_listing_would_find(
    tmp_path_factory: pytest.TempPathFactory, todo: list[tuple[str, str]], glances: bool
) -> None:
    """S8: whatever happened in between, rules that changed among it; also where a glance was enough."""
    root = tmp_path_factory.mktemp("work")
    make(root, "a b/c")
    hidden = hiding(root)
    known = Tree(root, hidden)
    known.look()
    before = set(known.listing(1000).names)
    ruled = False
    for what, thing in todo:
        do(root, what, thing)
        ruled = ruled or what == "rule"
        if what != "look":
            continue
        changes = (known.glance() if glances else None) or known.look()
        fresh = asyncio.run(list_files(root, recursive=True, most=1000, hidden=hidden)).names
        assert known.listing(1000).names == fresh
        files = {name for name in fresh if not name.endswith("/")}
        old = {name for name in before if not name.endswith("/")}
        if not ruled:
            assert (set(changes.came), set(changes.went)) == (files - old, old - files)
        assert set(changes.came) <= files - old and set(changes.went) <= old - files
        assert not any(os.path.lexists(root / name) for name in changes.went)
        before, ruled = set(fresh), False


def test_folders_that_did_not_change_are_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, "a/x b/y c/d/z")
    for folder in (tmp_path, *(each for each in tmp_path.rglob("*") if each.is_dir())):
        os.utime(folder, (1e9, 1e9))
    tree = Tree(tmp_path, hiding(tmp_path))
    tree.look()
    read: list[str] = []
    scandir = os.scandir

    def noted(folder: Path) -> object:
        read.append(str(folder))
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", noted)
    assert (tree.look(), read) == (Changes(), [])
    make(tmp_path, "c/d/new")
    assert (tree.look(), read) == (Changes(came=("c/d/new",)), [str(tmp_path / "c/d")])


def test_a_glance_is_for_some_files_in_small_folders(tmp_path: Path) -> None:
    make(tmp_path, "a/x b")
    tree = Tree(tmp_path, hiding(tmp_path))
    assert tree.glance() is None  # nothing is known yet
    tree.look()
    make(tmp_path, "c a/y")
    (tmp_path / "b").unlink()
    assert tree.glance() == Changes(came=("a/y", "c"), went=("b",))
    assert tree.glance() == Changes()
    make(tmp_path, "new/z d")
    assert tree.glance() is None  # a folder, with whatever is in it
    assert tree.look() == Changes(came=("d", "new/z"))
    make(tmp_path, " ".join(f"many-{n}" for n in range(100)))
    assert tree.glance() is None
    assert len(tree.look().came) == 100
    make(tmp_path, ".gitignore e")
    assert tree.glance() is None
    assert set(tree.look().came) == {".gitignore", "e"}


def test_a_folder_comes_and_goes_with_all_that_is_in_it(tmp_path: Path) -> None:
    make(tmp_path, "a")
    tree = Tree(tmp_path, hiding(tmp_path))
    tree.look()
    make(tmp_path, "new/deep/x new/y")
    assert tree.look() == Changes(came=("new/deep/x", "new/y"))
    shutil.rmtree(tmp_path / "new")
    assert tree.look() == Changes(went=("new/deep/x", "new/y"))


def test_what_is_hidden_is_never_told(tmp_path: Path) -> None:
    """P8: neither when it comes nor when it goes, nor by a link to it; nor because the rules changed."""
    make(tmp_path, "seen secret/a")
    (tmp_path / ".tarmacignore").write_text("secret/\n")
    tree = Tree(tmp_path, hiding(tmp_path))
    tree.look()
    make(tmp_path, "secret/b")
    (tmp_path / "way").symlink_to(tmp_path / "secret/b")
    assert tree.look() == Changes()
    (tmp_path / ".tarmacignore").write_text("secret/\nseen\n")
    assert tree.look() == Changes()
    assert tree.listing(10).names == (".tarmacignore",)


def test_a_huge_workspace_is_known_as_far_as_there_is_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S8: bounded; the levels at the top come first."""
    monkeypatch.setattr(trees, "MOST_FOLDERS", 3)
    make(tmp_path, "a/deep/x b/y top")
    tree = Tree(tmp_path, hiding(tmp_path))
    tree.look()
    assert (tree.listing(10).names, tree.listing(10).truncated) == (("a/", "a/deep/", "b/", "b/y", "top"), True)
    make(tmp_path, "a/deep/z b/z")
    assert tree.look() == Changes(came=("b/z",))
