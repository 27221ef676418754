"""A command tried on a copy: what it would change is known exactly, and the workspace stays as it is (P9)."""

import os
import secrets
from pathlib import Path

import pytest
from tests.tasks.test_checkpoints_snapshot import fingerprint, git, repository

from tarmac.errors import BadRequest, SandboxUnavailable
from tarmac.policy.trial import CONTAINS, Trial, trial_program, try_command

pytestmark = pytest.mark.shell


@pytest.fixture(autouse=True)
def _needs_overlays() -> None:
    try:
        trial_program()
    except SandboxUnavailable as error:
        pytest.skip(str(error))


@pytest.fixture
def work(own_state: Path) -> Path:
    """Not below /tmp, which the sandbox replaces: there the overlay stands for itself."""
    folder = own_state / "work"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.txt").write_text("one\n")
    (folder / "sub" / "b.txt").write_text("b\n")
    return folder


def tried(work: Path, command: str, *, limit: float = 20.0) -> Trial:
    return try_command(command, cwd=work, workspace=work, env=dict(os.environ), limit=limit)


def shown(trial: Trial) -> dict[str, str]:
    return {str(each.path.relative_to(trial.workspace)): each.kind for each in trial.changes}


def test_the_changes_are_shown_and_nothing_is_changed_until_they_are_kept(work: Path) -> None:
    """P9: files added, changed and deleted; discard leaves nothing, keep makes exactly these."""
    before = fingerprint(work)
    command = "echo two > a.txt; rm -r sub; mkdir new; echo n > new/f; chmod +x new/f; ln -s a.txt l; echo said; exit 3"
    trial = tried(work, command)
    assert (shown(trial), trial.exit_code, trial.output) == (
        {"a.txt": "changed", "sub/b.txt": "deleted", "new/f": "added", "l": "added"},
        3,
        b"said\n",
    )
    assert fingerprint(work) == before
    assert trial.keep() == []
    trial.discard()
    assert not trial.folder.exists()
    assert (work / "a.txt").read_text() == "two\n" and not (work / "sub").exists()
    assert os.access(work / "new" / "f", os.X_OK) and (work / "l").readlink() == Path("a.txt")


def test_a_folder_made_anew_and_a_file_in_place_of_a_folder(work: Path) -> None:
    trial = tried(work, "rm -r sub; mkdir sub; echo c > sub/c.txt; rm a.txt; mkdir a.txt; echo x > a.txt/in")
    assert shown(trial) == {"sub/b.txt": "deleted", "sub/c.txt": "added", "a.txt": "deleted", "a.txt/in": "added"}
    assert trial.keep() == []
    trial.discard()
    assert (work / "a.txt" / "in").read_text() == "x\n" and [p.name for p in (work / "sub").iterdir()] == ["c.txt"]


def test_only_folders_that_the_command_removed_are_removed(work: Path) -> None:
    """P9: a folder that the command left empty stays, and so does the workspace itself."""
    (work / "deep" / "er").mkdir(parents=True)
    (work / "deep" / "er" / "c.txt").write_text("c\n")
    trial = tried(work, "rm a.txt sub/b.txt; rm -r deep; ln -s sub deep")
    assert trial.keep() == []
    trial.discard()
    assert sorted(each.name for each in work.rglob("*")) == ["deep", "sub"] and (work / "deep").readlink() == Path(
        "sub"
    )
    (work / "deep").unlink()
    (work / "sub").rmdir()
    (work / "last.txt").write_text("x")
    trial = tried(work, "rm last.txt")
    assert trial.keep() == []
    trial.discard()
    assert list(work.iterdir()) == []


def test_what_can_not_be_kept_leaves_nothing_behind(work: Path) -> None:
    trial = tried(work, "rm -r sub; echo x > sub")
    (work / "sub" / "new.txt").write_text("somebody's\n")
    assert len(trial.keep()) == 1
    trial.discard()
    assert sorted(each.name for each in work.rglob("*")) == ["a.txt", "new.txt", "sub"]


def test_what_somebody_else_changed_meanwhile_is_not_lost(work: Path) -> None:
    """P9: a file that was changed, made or removed since the trial stays so, and is told; the others are kept."""
    (work / "gone.txt").write_text("g\n")
    (work / "old.txt").write_text("o\n")
    command = "echo 2 > a.txt; rm sub/b.txt old.txt; echo 2 > new.txt; echo 2 > gone.txt; echo 2 > fine.txt"
    trial = tried(work, command)
    for name in ("a.txt", "sub/b.txt", "new.txt"):
        (work / name).write_text("theirs\n")
    (work / "gone.txt").unlink()
    (work / "old.txt").unlink()
    failed = trial.keep()
    trial.discard()
    assert sorted(Path(each.partition(": ")[0]).name for each in failed) == ["a.txt", "b.txt", "gone.txt", "new.txt"]
    assert all("somebody else" in each for each in failed)
    there = {each.name: each.read_text() for each in work.rglob("*.txt")}
    assert there == {"a.txt": "theirs\n", "b.txt": "theirs\n", "new.txt": "theirs\n", "fine.txt": "2\n"}


def test_an_empty_folder_becomes_a_file(work: Path) -> None:
    (work / "void").mkdir()
    trial = tried(work, "rmdir void; echo x > void")
    assert trial.keep() == []
    trial.discard()
    assert (work / "void").read_text() == "x\n"


def test_there_is_no_network_and_the_rest_is_read_only(work: Path, own_state: Path) -> None:
    """P9: what a trial can't contain does not happen at all."""
    outside = own_state / "outside.txt"
    trial = tried(work, f"echo x > {outside}; : < /dev/tcp/127.0.0.1/9 ; grep -c : /proc/net/dev")
    trial.discard()
    assert not outside.exists() and trial.output.endswith(b"1\n") and shown(trial) == {}


def test_what_is_written_to_tmp_is_thrown_away_and_the_question_says_so(work: Path) -> None:
    """P9: a write there succeeds, so the words before a trial must not call all of the rest read-only."""
    name = Path("/tmp", secrets.token_hex(8))
    trial = tried(work, f"echo x > {name} && cat {name}")
    trial.discard()
    assert (trial.output, name.exists(), shown(trial)) == (b"x\n", False, {})
    assert "an empty /tmp" in CONTAINS


def test_git_status_changes_nothing_and_a_commit_does(work: Path) -> None:
    """P9: the index that a mere `git status` touches is filtered out."""
    repository(work, **{"c.txt": "c\n"})
    os.utime(work / "c.txt", (1, 1))
    trial = tried(work, "git -c safe.directory='*' status --short")
    trial.discard()
    assert shown(trial) == {}
    trial = tried(work, "git -c safe.directory='*' -c user.name=a -c user.email=a@b commit -q --allow-empty -m x")
    trial.discard()
    assert trial.exit_code == 0 and any(each.startswith(".git/") for each in shown(trial))
    assert git(work, "log", "--oneline").count("\n") == 1


def test_a_command_that_does_not_end_is_ended(work: Path) -> None:
    trial = tried(work, "echo x > a.txt; sleep 1000 & sleep 1000", limit=0.5)
    trial.discard()
    assert (trial.exit_code, shown(trial)) == (None, {"a.txt": "changed"})
    with pytest.raises(BadRequest, match="in the workspace"):
        try_command("true", cwd=Path("/"), workspace=work, env=dict(os.environ))
