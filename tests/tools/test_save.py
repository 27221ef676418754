"""A file is old or new, never torn: real files, a real full disk, a real kill −9."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tarmac.errors import EditFailed, FileUnavailable
from tarmac.tools.edit import read_bytes, remove_file, save_file


def test_mode_symlink_and_other_names(tmp_path: Path) -> None:
    """S10: mode bits stay, a symlink stays one, a hard link is noticed and keeps the old content."""
    file, link, twin = tmp_path / "run.sh", tmp_path / "link", tmp_path / "twin"
    file.write_bytes(b"old")
    file.chmod(0o751)
    link.symlink_to("run.sh")
    twin.hardlink_to(file)
    saved = save_file(link, b"new")
    assert (saved.path, saved.created, saved.other_names) == (file.resolve(), False, 1)
    assert (file.read_bytes(), twin.read_bytes(), link.is_symlink()) == (b"new", b"old", True)
    assert stat.S_IMODE(file.stat().st_mode) == 0o751
    assert sorted(each.name for each in tmp_path.iterdir()) == ["link", "run.sh", "twin"]


def test_a_new_file_gets_its_folders_and_the_usual_mode(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        saved = save_file(tmp_path / "a" / "b" / "new.txt", b"x", new=True)
    finally:
        os.umask(old)
    assert saved.created
    assert stat.S_IMODE(saved.path.stat().st_mode) == 0o640


def test_a_dangling_symlink_makes_the_file_it_names(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("gone/target")
    save_file(tmp_path / "link", b"x")
    assert (tmp_path / "gone" / "target").read_bytes() == b"x"


def test_the_owner_stays(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"old")
    if os.geteuid() == 0:
        os.chown(file, 4711, 4712)
    owner = file.stat().st_uid, file.stat().st_gid
    save_file(file, b"new")
    assert (file.stat().st_uid, file.stat().st_gid) == owner


def test_extended_attributes_stay(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"old")
    try:
        os.setxattr(file, "user.colour", b"green")
    except (OSError, AttributeError):
        pytest.skip("no extended attributes on this file system")
    save_file(file, b"new")
    assert os.getxattr(file, "user.colour") == b"green"


def test_a_file_name_as_long_as_names_get(tmp_path: Path) -> None:
    file = tmp_path / ("n" * 255)
    save_file(file, b"x")
    assert save_file(file, b"y").created is False


def test_what_somebody_else_changed_is_not_overwritten(tmp_path: Path) -> None:
    """S21: an edit is made from a content; if that is no longer there, nothing is written."""
    file = tmp_path / "f"
    file.write_bytes(b"theirs")
    with pytest.raises(EditFailed, match="changed by somebody else"):
        save_file(file, b"ours", expected=b"as read")
    with pytest.raises(EditFailed, match="made by somebody else"):
        save_file(file, b"ours", new=True)
    with pytest.raises(EditFailed, match="changed by somebody else"):
        remove_file(file, expected=b"as read")
    assert file.read_bytes() == b"theirs"
    assert save_file(file, b"ours", expected=b"theirs").path.read_bytes() == b"ours"
    remove_file(file, expected=b"ours")
    with pytest.raises(EditFailed, match="removed by somebody else"):
        save_file(file, b"again", expected=b"ours")
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_file_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, what in ((tmp_path, "is a folder"), (tmp_path / "pipe", "not a file"), (Path("/dev/zero"), "not a file")):
        with pytest.raises(FileUnavailable, match=what):
            read_bytes(path)
        with pytest.raises(FileUnavailable, match=what):
            save_file(path, b"x")
    assert read_bytes(tmp_path / "nothing") is None


def test_a_read_only_file_is_not_replaced(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"old")
    file.chmod(0o444)
    with pytest.raises(FileUnavailable, match="read-only"):
        save_file(file, b"new")
    assert file.read_bytes() == b"old"


def test_a_full_disk_leaves_the_old_content_and_nothing_else(tiny_disk: Path) -> None:
    """S10: disk full is an error that says so; the file is as it was, and there is room as before."""
    file = tiny_disk / "f"
    file.write_bytes(b"o" * 100_000)
    with pytest.raises(FileUnavailable, match="the disk is full") as caught:
        save_file(file, b"n" * 200_000)
    assert "as it was" in caught.value.hint
    assert file.read_bytes() == b"o" * 100_000
    assert [each.name for each in tiny_disk.iterdir()] == ["f"]
    save_file(file, b"n" * 100_000)
    assert file.read_bytes() == b"n" * 100_000


_KILLED = """
import os, random, signal, sys, time
from pathlib import Path
from tarmac.tools.edit import save_file
file = Path(sys.argv[1])
contents = [bytes([letter]) * 300_000 for letter in b"ab"]
save_file(file, contents[0])
for _ in range(40):
    ready, go = os.pipe()
    child = os.fork()
    if not child:
        os.write(go, b"!")
        while True:
            for content in contents:
                save_file(file, content)
    os.read(ready, 1)
    time.sleep(random.random() / 200)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(ready), os.close(go)
    assert file.read_bytes() in contents, "torn"
"""


def test_a_kill_at_any_moment_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    """S10: 40 processes killed while they write one file in a loop."""
    file = tmp_path / "f"
    done = subprocess.run(
        [sys.executable, "-c", _KILLED, str(file)], timeout=60, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
