"""Where paths lead: each folder is followed once for a line, and it makes no difference."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarmac.file_system import LONGEST_PATH
from tarmac.policy import budget, places


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Folders, links into them, up, to nowhere and in a circle."""
    root = tmp_path_factory.mktemp("tree")
    (root / "a" / "b" / "c").mkdir(parents=True)
    (root / "a" / "f").touch()
    links = {"l": "a/b", "loop": "loop", "dead": "/nowhere/x", "a/b/up": "../..", "a/g": "f"}
    for name, target in links.items():
        (root / name).symlink_to(target)
    yield root
    budget.end()


parts = st.sampled_from(
    [*"abclfgx", "loop", "dead", "up", ".", "..", "", "\0", "x\0", "dev", "stdin", "self", "a" * 300]
)
roots = st.sampled_from(["", "a", "l", "a/b", "//", "/", "/dev", "/proc", "//dev", "/dev/fd/"])


@given(st.lists(st.tuples(roots, st.lists(parts, max_size=5)), min_size=1, max_size=8))
def test_paths_of_one_line_lead_where_each_by_itself_would(tree: Path, line: list[tuple[str, list[str]]]) -> None:
    """P8: through every link, also where the folder is known from another path."""
    budget.begin()
    for start, names in line:
        path = os.path.join(tree, start, "/".join(names))  # noqa: PTH118 a Path would tidy it
        stream = places._STREAM.match(os.path.normpath(path))
        if stream or len(path) > LONGEST_PATH:
            expected = os.path.normpath(path).replace("//", "/", 1)
        else:
            expected = _followed(path)
        assert places._real(path) == expected


def _followed(path: str) -> str:
    try:
        real = os.path.realpath(path)
    except ValueError:
        real = os.path.normpath(path)
    return real[1:] if real.startswith("//") else real


def test_a_home_is_a_home_wherever_it_lies(tmp_path: Path) -> None:
    """P8: a home below /tmp or /var is listed by nobody else; a workspace in it is the workspace."""
    home, work = tmp_path / "home", tmp_path / "home" / "project"
    work.mkdir(parents=True)
    ground = places.Ground.of(work, work, home=str(home))
    assert [ground.locate(str(each)).kind for each in (home, home / "x", work, tmp_path)] == [
        "home", "home", "workspace", "temporary",
    ]  # fmt: skip
    assert not places.listable(ground.moved("..").locate("."))
    assert places.Ground.of(work, work, home="/").locate(str(tmp_path)).kind == "temporary"
