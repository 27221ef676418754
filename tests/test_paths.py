"""How directories lie to each other, and what is said of those that cannot be used."""

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarmac.errors import DirectoryUnavailable
from tarmac.paths import Relation, check_directory, nearest_existing, private_dir, relation, state_dir

SAME, PARENT, CHILD, UNRELATED = Relation

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


@contextmanager
def somebody_else() -> Iterator[None]:
    """Be `nobody` for a while: root may enter everything."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def open_path() -> Iterator[Path]:
    """A directory that other users can reach; tmp_path is for its owner alone."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("/a/b", "/a/b", SAME),
        ("/a/b", "/a/b/", SAME),
        ("/a/b", "//a///b/./", SAME),
        ("/a/b", "/a/x/../b", SAME),
        ("/a", "/a/b/c", PARENT),
        ("/a/b", "/a", CHILD),
        ("/a/b", "/a/bc", UNRELATED),
        ("/a/bc", "/a/b", UNRELATED),
        ("/", "/a", PARENT),
        ("/", "/", SAME),
        ("/", "/..", SAME),
        ("/a", "/b", UNRELATED),
        ("/a", "/A", UNRELATED),
        (".", "./sub", PARENT),
        ("sub", "/nowhere/sub", UNRELATED),
    ],
)
def test_two_directories_lie_to_each_other_as_expected(a: str, b: str, expected: Relation) -> None:
    assert relation(Path(a), Path(b), ignore_case=False) is expected


def test_an_absent_path_is_the_same_only_as_another_absent_one() -> None:
    assert relation(None, None) is SAME
    assert relation(None, Path("/")) is UNRELATED
    assert relation(Path("/"), None) is UNRELATED


def test_a_relative_path_is_taken_from_where_we_stand() -> None:
    assert relation(Path("x"), Path.cwd() / "x") is SAME


def test_a_symlink_is_where_it_leads(tmp_path: Path) -> None:
    (tmp_path / "real/deep").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real/deep")
    assert relation(tmp_path / "link", tmp_path / "real/deep") is SAME
    assert relation(tmp_path / "real", tmp_path / "link/not-yet-made") is PARENT
    assert relation(tmp_path / "link/..", tmp_path / "real") is SAME
    assert relation(tmp_path / "link", tmp_path / "linked") is UNRELATED


def test_case_counts_only_where_the_platform_says_so() -> None:
    assert relation(Path("/A/b"), Path("/a/B/c"), ignore_case=True) is PARENT
    assert relation(Path("/A/b"), Path("/a/B/c"), ignore_case=False) is UNRELATED
    assert relation(Path("/straße"), Path("/strasse"), ignore_case=True) is UNRELATED


@pytest.mark.parametrize(
    "name",
    [
        "new\nline",
        os.fsdecode(b"\xff\xfe"),
        "x" * 5000,
        "x/" * 3000,
        "nul\0",
        "\ud800",
        "$(rm)",
        "-rf",
        " ",
        "loop",
        "loop/x",
    ],
)
def test_no_name_is_too_strange(tmp_path: Path, name: str) -> None:
    (tmp_path / "loop").symlink_to("loop")
    strange = tmp_path / name
    assert relation(strange, strange) is SAME
    assert relation(tmp_path, strange) is PARENT
    assert relation(strange, tmp_path / "other") is UNRELATED
    assert nearest_existing(strange) == tmp_path
    with pytest.raises(DirectoryUnavailable) as refused:
        check_directory(strange)
    assert str(tmp_path) in refused.value.hint
    message = str(refused.value).encode()
    assert len(message) < 600
    assert message.count(b"\n") == 1


def test_a_directory_nobody_may_look_into_has_its_place(open_path: Path) -> None:
    (open_path / "locked/in").mkdir(parents=True)
    (open_path / "locked").chmod(0)
    with somebody_else():
        assert relation(open_path / "locked", open_path / "locked/in") is PARENT
    (open_path / "locked").chmod(0o700)


def test_standing_in_a_removed_directory_breaks_nothing(tmp_path: Path) -> None:
    before = Path.cwd()
    gone = tmp_path / "gone"
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()
    try:
        assert relation(Path("a"), Path("a/b")) is PARENT
        assert relation(Path("a"), gone / "a") is UNRELATED
        assert nearest_existing(Path("a")) == Path("/")
        with pytest.raises(DirectoryUnavailable):
            check_directory(Path("a"))
    finally:
        os.chdir(before)


names = st.sampled_from(["a", "b", "ab", "A", "c d", "ü"])
paths = st.lists(names, max_size=4).map(lambda parts: Path("/no-such-place", *parts))
noise = st.sampled_from(["/", "//", "/./", "/x/../", "/x/y/../../"])


@given(paths, paths, st.booleans())
def test_the_other_way_round_is_the_mirror_image(a: Path, b: Path, ignore_case: bool) -> None:
    mirror = {SAME: SAME, UNRELATED: UNRELATED, PARENT: CHILD, CHILD: PARENT}
    assert relation(b, a, ignore_case=ignore_case) is mirror[relation(a, b, ignore_case=ignore_case)]


@given(paths, st.booleans())
def test_a_path_is_the_same_as_itself(a: Path, ignore_case: bool) -> None:
    assert relation(a, a, ignore_case=ignore_case) is SAME


@given(paths, st.lists(names, min_size=1, max_size=3), st.lists(names, min_size=1, max_size=3))
def test_a_parent_of_a_parent_is_a_parent(a: Path, more: list[str], yet_more: list[str]) -> None:
    b = a.joinpath(*more)
    c = b.joinpath(*yet_more)
    assert [relation(a, b), relation(b, c), relation(a, c)] == [PARENT] * 3


@given(paths, paths, st.data())
def test_dots_and_slashes_change_nothing(a: Path, b: Path, data: st.DataObject) -> None:
    noisy = "".join(data.draw(noise) + part for part in a.parts[1:]) + data.draw(noise)
    assert relation(Path(noisy), b) is relation(a, b)


@given(st.text(), st.text())
def test_any_text_at_all_has_an_answer(a: str, b: str) -> None:
    assert relation(Path("/x", a), Path("/x", b)) in Relation


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"TARMAC_STATE_DIR": "/own", "XDG_STATE_HOME": "/xdg", "HOME": "/home/me"}, "/own"),
        ({"TARMAC_STATE_DIR": "", "XDG_STATE_HOME": "/xdg", "HOME": "/home/me"}, "/xdg/tarmac"),
        ({"XDG_STATE_HOME": "relative", "HOME": "/home/me"}, "/home/me/.local/state/tarmac"),
        ({"XDG_STATE_HOME": "", "HOME": "/home/me"}, "/home/me/.local/state/tarmac"),
        ({"TMPDIR": "/scratch"}, f"/scratch/tarmac-{os.geteuid()}"),
        ({"HOME": "", "TMPDIR": "here"}, f"/tmp/tarmac-{os.geteuid()}"),
    ],
)
def test_state_lives_where_the_environment_says(environ: dict[str, str], expected: str) -> None:
    assert state_dir(environ) == Path(expected)


def test_a_relative_state_directory_of_our_own_is_made_absolute() -> None:
    assert state_dir({"TARMAC_STATE_DIR": "state"}) == Path.cwd() / "state"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_private_directory_and_the_parents_made_for_it_are_for_us_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        assert private_dir(tmp_path / "a/b") == tmp_path / "a/b"
    finally:
        os.umask(before)
    assert (mode(tmp_path / "a"), mode(tmp_path / "a/b")) == (0o700, 0o700)
    assert private_dir(tmp_path / "a/b") == tmp_path / "a/b"


def test_a_private_directory_may_be_very_deep(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["d"] * 1500)
    assert private_dir(deep) == deep
    while deep != tmp_path:  # shutil.rmtree, which pytest uses, cannot go this deep
        deep.rmdir()
        deep = deep.parent


@pytest.mark.parametrize(("found", "left"), [(0o777, 0o700), (0o770, 0o700), (0o755, 0o755), (0o700, 0o700)])
def test_a_directory_others_can_write_to_is_tightened(tmp_path: Path, found: int, left: int) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d").chmod(found)
    private_dir(tmp_path / "d")
    assert mode(tmp_path / "d") == left


def test_our_own_symlink_to_our_own_directory_is_fine(tmp_path: Path) -> None:
    (tmp_path / "disk2").mkdir()
    (tmp_path / "link").symlink_to("disk2")
    assert private_dir(tmp_path / "link") == tmp_path / "link"


@as_root
@pytest.mark.parametrize("theirs", ["directory", "target", "link"])
def test_what_another_user_owns_is_refused_and_left_alone(tmp_path: Path, theirs: str) -> None:
    path = directory = tmp_path / "d"
    directory.mkdir()
    directory.chmod(0o777)
    if theirs != "directory":
        path = tmp_path / "link"
        path.symlink_to(directory)
    os.chown(path if theirs == "link" else directory, NOBODY, NOBODY, follow_symlinks=False)
    with pytest.raises(DirectoryUnavailable, match="belongs to another user") as refused:
        private_dir(path)
    assert "TARMAC_STATE_DIR" in refused.value.hint
    assert mode(directory) == 0o777


def test_a_file_or_a_dead_link_in_the_way_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "dead").symlink_to("nowhere")
    with pytest.raises(DirectoryUnavailable, match=r"`.*/file` is a file, not a directory"):
        private_dir(tmp_path / "file")
    with pytest.raises(DirectoryUnavailable, match=r"`.*/file/x/y` cannot exist: `.*/file` is a file"):
        private_dir(tmp_path / "file/x/y")
    with pytest.raises(DirectoryUnavailable, match="symlink to something that does not exist"):
        private_dir(tmp_path / "dead")


def test_a_private_directory_where_we_may_not_write_is_refused(open_path: Path) -> None:
    open_path.chmod(0o555)
    with somebody_else(), pytest.raises(DirectoryUnavailable, match="cannot be made: permission denied"):
        private_dir(open_path / "x")


def test_a_directory_that_can_be_entered_is_returned_absolute(tmp_path: Path) -> None:
    assert check_directory(tmp_path) == tmp_path
    assert check_directory(Path()) == Path.cwd()
    assert nearest_existing(tmp_path) == tmp_path


def test_each_reason_a_directory_cannot_be_used_has_its_own_words(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "dead").symlink_to("nowhere")
    (tmp_path / "loop").symlink_to("loop")
    said = {}
    for name in ("gone/deeper", "file", "file/x", "dead", "loop", "x" * 256, "nul\0"):
        with pytest.raises(DirectoryUnavailable) as refused:
            check_directory(tmp_path / name)
        assert refused.value.hint == f"the nearest directory that exists is `{tmp_path}`"
        said[name] = refused.value.what.split(" ", 1)[1]
    assert said == {
        "gone/deeper": "does not exist",
        "file": "is a file, not a directory",
        "file/x": f"cannot exist: `{tmp_path}/file` is a file",
        "dead": "is a symlink to something that does not exist",
        "loop": "is a symlink that leads back to itself",
        "x" * 256: "is too long for a path",
        "nul\0": "cannot be the name of a directory",
    }


def test_a_locked_directory_is_refused_and_the_way_out_is_named(open_path: Path) -> None:
    (open_path / "locked/in").mkdir(parents=True)
    (open_path / "locked").chmod(0)
    try:
        for name in ("locked", "locked/in"):
            with somebody_else(), pytest.raises(DirectoryUnavailable) as refused:
                check_directory(open_path / name)
            assert refused.value.what == f"`{open_path / name}` cannot be entered: permission denied"
            assert refused.value.hint == f"the nearest directory you may enter is `{open_path}`"
    finally:
        (open_path / "locked").chmod(0o700)
