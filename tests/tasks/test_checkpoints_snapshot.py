"""Snapshots of workspaces of every kind, with real git. The user's repository stays as it is, byte for byte."""

import os
import random
import shutil
import stat
import subprocess
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from tarmac.tasks.folder_times import steady_devices
from tarmac.tasks.git_process import SnapshotFailed
from tarmac.tasks.snapshot import LARGEST, Snapshots, WorkspaceSnapshot

LIMIT = 300.0  # a limit, not a measurement


def git(cwd: Path, *words: str) -> str:
    env = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b"}
    env |= {"GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
    words = ("-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main", *words)
    return subprocess.run(["git", *words], cwd=cwd, env=env, check=True, capture_output=True, text=True).stdout


def repository(path: Path, **files: str) -> Path:
    """A repository with these files committed."""
    path.mkdir(parents=True, exist_ok=True)
    git(path, "init", "-q")
    for name, text in (files or {"a.txt": "one\n"}).items():
        (path / name).write_text(text)
    git(path, "add", "-A")
    git(path, "commit", "-qm", "first")
    return path


def fingerprint(path: Path) -> dict[str, str]:
    """Every file below, by its content, mode and time."""
    found = {}
    for each in sorted(path.rglob("*")):
        there = each.lstat()
        if stat.S_ISREG(there.st_mode):
            found[str(each)] = f"{sha256(each.read_bytes()).hexdigest()} {there.st_mode} {there.st_mtime_ns}"
        else:
            found[str(each)] = f"{there.st_mode}"
    return found


def snapshots(tmp_path: Path, workspace: Path) -> Snapshots:
    return Snapshots(tmp_path / "state" / "task" / "checkpoints", workspace)


def changed(found: Snapshots, workspace: Path, change: Callable[[], object]) -> dict[str, tuple[bool, bool]]:
    """Which files a change is seen in, and whether each was there before and after."""
    before = found.take(limit=LIMIT)
    change()
    after = found.take(limit=LIMIT)
    edits = found.edits(before, after, limit=LIMIT)
    return {str(each.path.relative_to(workspace)): (each.before is not None, each.after is not None) for each in edits}


def test_a_repository_stays_as_it_is_and_every_change_is_seen(tmp_path: Path) -> None:
    """S14: untracked, staged and committed files; index, HEAD, refs, stash and config are byte-identical."""
    work = repository(tmp_path / "w", **{"a.txt": "one\n", "gone.txt": "x\n", ".gitignore": "*.log\n"})
    (work / "a.txt").write_text("stashed\n")
    git(work, "stash")
    (work / "staged.txt").write_text("staged\n")
    git(work, "add", "staged.txt")
    (work / "untracked one.txt").write_text("mine\n")
    (work / "ignored.log").write_text("noise\n")
    theirs = fingerprint(work / ".git")
    found = snapshots(tmp_path, work)

    def change() -> None:
        (work / "a.txt").write_text("two\n")
        (work / "gone.txt").unlink()
        (work / "staged.txt").write_text("other\n")
        (work / "untracked one.txt").unlink()
        (work / "new\nline \u00e9.txt").write_text("new\n")
        (work / "ignored.log").write_text("more noise\n")

    assert changed(found, work, change) == {
        "a.txt": (True, True),
        "gone.txt": (True, False),
        "staged.txt": (True, True),
        "untracked one.txt": (True, False),
        "new\nline \u00e9.txt": (False, True),
    }
    assert fingerprint(work / ".git") == theirs


def test_the_old_contents_can_be_read(tmp_path: Path) -> None:
    """S14: also of a file that only the user's repository has, packed."""
    work = repository(tmp_path / "w")
    git(work, "gc", "-q")
    found = snapshots(tmp_path, work)
    before = found.take(limit=LIMIT)
    (work / "a.txt").write_bytes(b"\x00two")
    edits = found.edits(before, found.take(limit=LIMIT), limit=LIMIT)
    contents = found.contents([each.before or "" for each in edits] + [each.after or "" for each in edits], limit=LIMIT)
    assert sorted(contents.values()) == [b"\x00two", b"one\n"]


def test_without_a_repository(tmp_path: Path) -> None:
    """S14: no repository is needed; links and executable bits are part of it."""
    work = tmp_path / "w"
    (work / "node_modules").mkdir(parents=True)
    (work / "node_modules" / "x.js").write_text("1")
    (work / "run.sh").write_text("echo\n")
    (work / "link").symlink_to("run.sh")
    found = snapshots(tmp_path, work)

    def change() -> None:
        (work / "run.sh").chmod(0o755)
        (work / "link").unlink()
        (work / "link").symlink_to("elsewhere")
        (work / "node_modules" / "x.js").write_text("2")

    assert changed(found, work, change) == {"run.sh": (True, True), "link": (True, True)}
    assert not (work / ".git").exists()


def test_submodules_nested_repositories_and_worktrees(tmp_path: Path) -> None:
    """S14: each repository within the workspace is seen into, and stays as it is."""
    other = repository(tmp_path / "other", **{"lib.txt": "lib\n"})
    work = repository(tmp_path / "main")
    git(work, "submodule", "--quiet", "add", str(other), "sub")
    git(work, "commit", "-qm", "with a submodule")
    git(work, "worktree", "add", "-q", str(tmp_path / "tree"), "-b", "side")
    tree = tmp_path / "tree"
    repository(tree / "nested" / "deep", **{"n.txt": "n\n"})
    theirs = fingerprint(work / ".git"), fingerprint(tree / "nested" / "deep" / ".git")
    found = snapshots(tmp_path, tree)

    def change() -> None:
        (tree / "a.txt").write_text("two\n")
        (tree / "nested" / "deep" / "n.txt").write_text("m\n")

    assert changed(found, tree, change) == {"a.txt": (True, True), "nested/deep/n.txt": (True, True)}
    found = snapshots(tmp_path / "again", work)

    def change_sub() -> None:
        (work / "sub" / "lib.txt").unlink()
        (work / "sub" / "more.txt").write_text("more\n")

    assert changed(found, work, change_sub) == {"sub/lib.txt": (True, False), "sub/more.txt": (False, True)}
    assert (fingerprint(work / ".git"), fingerprint(tree / "nested" / "deep" / ".git")) == theirs


def test_a_cloned_repository_is_new_files(tmp_path: Path) -> None:
    other = repository(tmp_path / "other", **{"lib.txt": "lib\n"})
    work = repository(tmp_path / "w")
    found = snapshots(tmp_path, work)
    seen = changed(found, work, lambda: git(work, "clone", "-q", str(other), "copy"))
    assert seen == {"copy/lib.txt": (False, True)}
    assert changed(found, work, lambda: shutil.rmtree(work / "copy")) == {"copy/lib.txt": (True, False)}


def test_a_workspace_below_the_top_of_its_repository(tmp_path: Path) -> None:
    """S14: only the workspace counts, and the ignore rules of the folders above it."""
    top = repository(tmp_path / "top", **{"a.txt": "one\n", ".gitignore": "*.log\n"})
    work = top / "part"
    work.mkdir()
    (work / "b.txt").write_text("b\n")
    found = snapshots(tmp_path, work)

    def change() -> None:
        (top / "a.txt").write_text("two\n")
        (work / "b.txt").write_text("c\n")
        (work / "x.log").write_text("x\n")

    assert changed(found, work, change) == {"b.txt": (True, True)}


def test_line_ends_and_filters_change_nothing(tmp_path: Path) -> None:
    """S14: contents are those on the disk, whatever .gitattributes says, also of files that git knew before."""
    work = tmp_path / "w"
    work.mkdir()
    git(work, "init", "-q")
    (work / ".gitattributes").write_text("*.txt text eol=crlf\n")
    (work / "a.txt").write_bytes(b"one\r\ntwo\r\n")
    git(work, "add", "-A")
    git(work, "commit", "-qm", "first")
    found = snapshots(tmp_path, work)
    before = found.take(limit=LIMIT)
    (work / "a.txt").write_bytes(b"three\r\n")
    [edit] = found.edits(before, found.take(limit=LIMIT), limit=LIMIT)
    assert sorted(found.contents([edit.before or "", edit.after or ""], limit=LIMIT).values()) == [
        b"one\r\ntwo\r\n",
        b"three\r\n",
    ]


def test_large_files_are_left_out_and_named(tmp_path: Path) -> None:
    """S14: the cap of 2 MiB a file; a change of such a file is known, its content is not."""
    work = repository(tmp_path / "w")
    (work / "big.bin").write_bytes(b"x" * (LARGEST + 1))
    found = snapshots(tmp_path, work)
    before = found.take(limit=LIMIT)
    (work / "big.bin").write_bytes(b"y" * (LARGEST + 2))
    after = found.take(limit=LIMIT)
    [edit] = found.edits(before, after, limit=LIMIT)
    assert "big.bin" in after.partial and (edit.path.name, edit.before, edit.after) == ("big.bin", "", "")


@pytest.mark.parametrize("crashed", [False, True])
def test_a_large_file_that_is_removed_is_known(tmp_path: Path, *, crashed: bool) -> None:
    """S14: a command removes a file over the cap. The change is said, also by a process that begins with our index."""
    work = repository(tmp_path / "w")
    (work / "big.bin").write_bytes(b"x" * (LARGEST + 1))
    found = snapshots(tmp_path, work)
    before = found.take(limit=LIMIT)
    (work / "big.bin").unlink()
    if crashed:
        found = snapshots(tmp_path, work)
    after = found.take(limit=LIMIT)
    edits = found.edits(before, after, limit=LIMIT)
    assert [(each.path.name, each.before, each.after) for each in edits] == [("big.bin", "", None)]
    assert found.edits(after, found.take(limit=LIMIT), limit=LIMIT) == []


def test_files_in_a_submodule_that_was_never_initialised(tmp_path: Path) -> None:
    """S14: its folder is empty after a clone. What a command writes there is seen, as in any other folder."""
    other = repository(tmp_path / "other", **{"lib.txt": "lib\n"})
    work = repository(tmp_path / "main")
    git(work, "submodule", "--quiet", "add", str(other), "sub")
    git(work, "commit", "-qm", "with a submodule")
    git(tmp_path, "clone", "-q", str(work), "clone")
    clone = tmp_path / "clone"
    found = snapshots(tmp_path, clone)

    def write() -> None:
        (clone / "sub" / "deep").mkdir()
        (clone / "sub" / "deep" / "new.txt").write_text("new\n")

    def again() -> None:
        (clone / "sub" / "deep" / "new.txt").write_text("newer\n")

    assert changed(found, clone, write) == {"sub/deep/new.txt": (False, True)}
    assert changed(found, clone, again) == {"sub/deep/new.txt": (True, True)}
    assert changed(found, clone, lambda: shutil.rmtree(clone / "sub" / "deep")) == {"sub/deep/new.txt": (True, False)}
    assert git(clone, "status", "--porcelain") == ""


@pytest.mark.parametrize("crashed", [False, True])
def test_a_file_grows_or_shrinks_over_the_cap(tmp_path: Path, *, crashed: bool) -> None:
    """S14: a file that was left out is never taken for a new one, also when only the trees are known after a crash."""
    work = repository(tmp_path / "w")
    (work / "big").write_bytes(b"x" * (LARGEST + 1))
    (work / "idle").write_bytes(b"x" * (LARGEST + 1))
    (work / "small").write_text("small")
    found = snapshots(tmp_path, work)
    before = found.take(limit=LIMIT)
    (work / "big").write_text("shrunk")
    (work / "a.txt").write_bytes(b"y" * (LARGEST + 1))
    (work / "small").write_bytes(b"y" * (LARGEST + 1))
    (work / "new").write_bytes(b"y" * (LARGEST + 1))
    if crashed:
        found, before = snapshots(tmp_path, work), WorkspaceSnapshot(before.trees)
    edits = {each.path.name: each for each in found.edits(before, found.take(limit=LIMIT), limit=LIMIT)}
    ids = [str(edits[name].before) for name in ("a.txt", "small")]
    assert list(found.contents(ids, limit=LIMIT).values()) == [b"one\n", b"small"]
    assert (edits["big"].before, edits["new"].before, "idle" in edits) == ("", None, False)
    assert {edits[name].after for name in ("a.txt", "small", "new")} == {""}
    after = found.take(limit=LIMIT)
    (work / "small").write_text("small again")
    [edit] = found.edits(after, found.take(limit=LIMIT), limit=LIMIT)
    assert (edit.path.name, edit.before) == ("small", "")


def test_a_file_that_is_no_longer_ignored_is_not_new(tmp_path: Path) -> None:
    """S14: a command removes or changes .gitignore. The user's ignored files were there before it, for all we know."""
    work = repository(tmp_path / "w", **{".gitignore": "*.env\nbuild/\n"})
    (work / "build").mkdir()
    (work / "sub").mkdir()
    (work / "sub" / ".gitignore").write_text("cache\n")
    for name in ("s.env", "build/out.o", "sub/cache", ":(x).env"):
        (work / name).write_text("mine")
    found = snapshots(tmp_path, work)
    before = found.take(limit=LIMIT)
    (work / ".gitignore").unlink()
    (work / "sub" / ".gitignore").write_text("")
    (work / "made.txt").write_text("by the command")
    edits = found.edits(before, found.take(limit=LIMIT), limit=LIMIT)
    assert {str(each.path.relative_to(work)) for each in edits if each.before is None} == {"made.txt"}
    unknown = {str(each.path.relative_to(work)) for each in edits if each.before == ""}
    assert unknown == {"s.env", "build/out.o", "sub/cache", ":(x).env"}


def test_a_repository_within_loses_its_git_folder(tmp_path: Path) -> None:
    """S14: its files belong to another repository then. They are the same files."""
    work = repository(tmp_path / "w")
    repository(work / "sub", **{"b.txt": "b\n", "c.txt": "c\n"})

    def change() -> None:
        shutil.rmtree(work / "sub" / ".git")
        (work / "sub" / "c.txt").write_text("changed\n")

    assert changed(snapshots(tmp_path, work), work, change) == {"sub/c.txt": (True, True)}


def test_ignored_files_that_the_task_wrote_are_in_it(tmp_path: Path) -> None:
    """S14: ignored files are left out, but for those that the task wrote."""
    work = repository(tmp_path / "w", **{".gitignore": "out/\n"})
    (work / "out").mkdir()
    (work / "out" / "mine").write_text("1")
    (work / "out" / "other").write_text("1")
    found = snapshots(tmp_path, work)
    before = found.take([work / "out" / "mine"], limit=LIMIT)
    (work / "out" / "mine").write_text("2")
    (work / "out" / "other").write_text("2")
    after = found.take([work / "out" / "mine"], limit=LIMIT)
    assert [each.path.name for each in found.edits(before, after, limit=LIMIT)] == ["mine"]


def test_a_file_becomes_a_folder_and_back(tmp_path: Path) -> None:
    work = repository(tmp_path / "w")
    found = snapshots(tmp_path, work)

    def change() -> None:
        (work / "a.txt").unlink()
        (work / "a.txt").mkdir()
        (work / "a.txt" / "inside").write_text("x")
        os.mkfifo(work / "pipe")

    assert changed(found, work, change) == {"a.txt": (True, False), "a.txt/inside": (False, True)}


def test_names_that_are_no_text(tmp_path: Path) -> None:
    work = repository(tmp_path / "w")
    found = snapshots(tmp_path, work)
    name = os.fsdecode(b"odd \xff\x01 name")
    assert changed(found, work, lambda: (work / name).write_text("x")) == {name: (False, True)}


def test_files_that_git_was_told_not_to_look_at(tmp_path: Path) -> None:
    work = repository(tmp_path / "w")
    git(work, "update-index", "--assume-unchanged", "a.txt")
    found = snapshots(tmp_path, work)
    assert changed(found, work, lambda: (work / "a.txt").write_text("two\n")) == {"a.txt": (True, True)}


def test_an_index_that_can_not_be_copied(tmp_path: Path) -> None:
    """A split index makes sense in its own repository alone."""
    work = repository(tmp_path / "w")
    git(work, "update-index", "--split-index")
    found = snapshots(tmp_path, work)
    assert changed(found, work, lambda: (work / "a.txt").write_text("two\n")) == {"a.txt": (True, True)}


def test_git_is_absent_or_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S14: without git there is a reason, and a git that hangs is ended at the limit, with what it started."""
    work = repository(tmp_path / "w")
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    with pytest.raises(SnapshotFailed, match="git is not installed"):
        snapshots(tmp_path, work).take(limit=LIMIT)
    (programs / "git").write_text("#!/bin/sh\n/bin/sleep 1000\n")
    (programs / "git").chmod(0o755)
    with pytest.raises(SnapshotFailed, match="took too long"):
        snapshots(tmp_path, work).take(limit=0.3)


def test_after_a_kill_the_next_snapshot_works(tmp_path: Path) -> None:
    """S14: git leaves a lock when it is killed."""
    work = repository(tmp_path / "w")
    found = snapshots(tmp_path, work)
    before = found.take(limit=LIMIT)
    [index] = (tmp_path / "state" / "task" / "checkpoints").glob("index-*")
    index.with_name(f"{index.name}.lock").write_text("")
    (work / "a.txt").write_text("two\n")
    again = snapshots(tmp_path, work)
    assert [each.path.name for each in again.edits(before, again.take(limit=LIMIT), limit=LIMIT)] == ["a.txt"]


@pytest.mark.slow
def test_thirty_thousand_files(tmp_path: Path) -> None:
    """S14: with and without a repository; a change of one file is found among them."""
    for name in ("plain", "repo"):
        work = tmp_path / name
        for folder in range(300):
            (work / f"d{folder}").mkdir(parents=True)
            for number in range(100):
                (work / f"d{folder}" / f"f{number}").write_text(f"{folder} {number}\n")
        if name == "repo":
            git(work, "init", "-q")
            git(work, "-c", "core.bigFileThreshold=1", "add", "-A")
            git(work, "commit", "-qm", "all")
        theirs = fingerprint(work / ".git") if name == "repo" else {}
        found = snapshots(tmp_path / f"state-{name}", work)
        change = lambda work=work: (work / "d7" / "f7").write_text("other\n")  # noqa: E731
        assert changed(found, work, change) == {"d7/f7": (True, True)}
        assert name != "repo" or fingerprint(work / ".git") == theirs


def commands_of_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where each start of git leaves a line, with its words."""
    if tmp_path.stat().st_dev not in steady_devices():
        pytest.skip("this file system is not known to keep exact times")
    programs, lines = tmp_path / "bin", tmp_path / "lines"
    programs.mkdir()
    (programs / "git").write_text(f'#!/bin/sh\necho "$@" >> {lines}\nexec {shutil.which("git")} "$@"\n')
    (programs / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    return lines


def take_until_settled(found: Snapshots, lines: Path) -> WorkspaceSnapshot:
    """Snapshots until one needs a single git, as no file is too new to be trusted."""
    while True:
        lines.write_text("")
        snapshot = found.take(limit=LIMIT)
        if len(lines.read_text().splitlines()) == 1:
            return snapshot


def test_what_has_not_changed_is_not_listed_and_no_change_is_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S14: an unchanged tree costs one git. Every kind of change is seen next time, also one that keeps times."""
    work = repository(tmp_path / "w")
    (work / "src" / "deep").mkdir(parents=True)
    (work / "src" / "deep" / "b.py").write_text("b = 1\n")
    (work / "empty").mkdir()
    (work / "closed").mkdir(mode=0o000)
    (work / ".venv").mkdir()
    (work / ".venv" / ".gitignore").write_text("*\n")
    (work / ".venv" / "lib").mkdir()
    (work / ".gitignore").write_text("*.log\nbuild/\n")
    lines = commands_of_git(tmp_path, monkeypatch)
    found = snapshots(tmp_path, work)

    def sees(*names: str) -> None:
        after = found.take(limit=LIMIT)
        assert {str(each.path.relative_to(work)) for each in found.edits(before, after, limit=LIMIT)} == {*names}

    def in_place() -> None:
        path = work / "src" / "deep" / "b.py"
        there = path.stat()
        path.write_text("b = 2\n")
        os.utime(path, ns=(there.st_atime_ns, there.st_mtime_ns))

    def reopened() -> None:
        (work / "closed").chmod(0o700)
        (work / "closed" / "in.txt").write_text("in\n")

    def in_place_again() -> None:
        (work / "new.txt").write_text("two\n")

    def to_the_index() -> None:
        shutil.copy2(tmp_path / "kept", work / "a.txt")

    changes: list[tuple[Callable[[], object], set[str]]] = [
        (in_place, {"src/deep/b.py"}),
        (lambda: (work / "empty" / "c.txt").write_text("c\n"), {"empty/c.txt"}),
        (lambda: (work / "new.txt").write_text("one\n"), {"new.txt"}),
        (in_place_again, {"new.txt"}),
        (lambda: (work / "src").rename(work / "lib"), {"src/deep/b.py", "lib/deep/b.py"}),
        (lambda: (work / "lib" / "deep" / "b.py").chmod(0o755), {"lib/deep/b.py"}),
        (lambda: (work / "lib" / "deep" / "b.py").unlink(), {"lib/deep/b.py"}),
        (lambda: (work / "lib" / "deep" / "link").symlink_to("../x"), {"lib/deep/link"}),
        (lambda: (work / ".venv" / "seen.txt").write_text("no\n"), set()),
        (lambda: (work / ".venv" / ".gitignore").write_text("lib\n"), {".venv/.gitignore", ".venv/seen.txt"}),
        (reopened, {"closed/in.txt"}),
        (lambda: (work / "closed" / "x.log").write_text("no\n"), set()),
        (lambda: (work / ".gitignore").write_text("*.txt\n"), {".gitignore", "closed/x.log"}),
        (in_place_again, set()),
        (lambda: (work / "new.txt").write_text("three\n"), {"new.txt"}),
        (lambda: (tmp_path / "kept").write_bytes((work / "a.txt").read_bytes()), set()),
        (lambda: (work / "a.txt").write_text("changed\n"), {"a.txt"}),
        (to_the_index, {"a.txt"}),
        (lambda: shutil.rmtree(work / "lib"), {"lib/deep/link"}),
    ]
    for change, seen in changes:
        before = take_until_settled(found, lines)
        change()
        sees(*seen)


def test_a_few_changes_need_no_index_and_make_the_trees_of_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S14: a changed file is hashed without git's index. The tree is the one that git would have written."""
    work = repository(tmp_path / "w")
    for name in ("a/b/c.txt", "a/b.txt", "a.b/d.txt", "a0", "z z/é.txt"):
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(f"{name}\n")
    lines = commands_of_git(tmp_path, monkeypatch)
    found = snapshots(tmp_path, work)
    take_until_settled(found, lines)
    lines.write_text("")
    (work / "a" / "b" / "c.txt").write_text("other\n")
    (work / "a" / "b" / "new" / "deep").mkdir(parents=True)
    (work / "a" / "b" / "new" / "deep" / "e.sh").write_text("true\n")
    (work / "a" / "b" / "new" / "deep" / "e.sh").chmod(0o755)
    (work / "z z" / "é.txt").unlink()
    (work / "a-link").symlink_to("a0")
    [made] = found.take(limit=LIMIT).trees
    assert "update-index" not in lines.read_text()
    [whole] = snapshots(tmp_path / "other", work).take(limit=LIMIT).trees
    assert made.tree == whole.tree


def change_something(work: Path, chance: random.Random) -> None:
    """One change of any kind, where it is possible."""
    inside = [each for each in work.rglob("*") if ".git" not in each.parts]
    folders = [work, *(each for each in inside if each.is_dir() and not each.is_symlink())]
    files = [each for each in inside if each not in folders]
    folder, file = chance.choice(folders), chance.choice(files or [work / "a"])
    match chance.randrange(8):
        case 0:
            (folder / f"new{chance.randrange(40)}").write_text(str(chance.random()))
        case 1 if not file.is_symlink():
            there = file.stat()
            file.write_bytes(file.read_bytes()[::-1])
            os.utime(file, ns=(there.st_atime_ns, there.st_mtime_ns))
        case 2:
            file.unlink()
        case 3:
            (folder / f"folder{chance.randrange(9)}").mkdir()
        case 4 if folder != work:
            folder.rename(chance.choice(folders) / f"moved{chance.randrange(99)}")
        case 5 if not file.is_symlink():
            file.chmod(chance.choice((0o644, 0o755)))
        case 6:
            (folder / f"link{chance.randrange(20)}").symlink_to(chance.choice(("x", "../a", "/etc")))
        case 7:
            file.unlink()
            file.mkdir()
            (file / "inside").write_text("file became folder")


@pytest.mark.parametrize("seed", range(2))
def test_a_snapshot_is_what_a_first_look_would_make(tmp_path: Path, seed: int) -> None:
    """S14: whatever was left out of the work because it had not changed, the tree is the whole one."""
    chance = random.Random(seed)
    work = repository(tmp_path / "w")
    for number in range(12):
        path = work / f"d{number % 4}" / f"s{number % 2}" / f"f{number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(str(number))
    found = snapshots(tmp_path, work)
    found.take(limit=LIMIT)
    for step in range(12):
        for _ in range(chance.choice((0, 1, 1, 3, 80 if step == 6 else 2))):
            try:
                change_something(work, chance)
            except OSError:
                pass
        other = snapshots(tmp_path / f"other{step}", work)
        assert found.take(limit=LIMIT).trees == other.take(limit=LIMIT).trees
