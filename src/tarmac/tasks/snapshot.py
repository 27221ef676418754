"""Take snapshots of a workspace with git, in a repository of our own.

take() ─ diff-files, ls-files → changed paths ─ update-index, write-tree → WorkspaceSnapshot
                                      └ a few ─ git_objects ───────────────↗
edits(before, after) ─ diff-tree → FileEdit …        contents(ids) ─ cat-file → bytes

The user's repository is only read: its objects are alternates of ours, and the first index is a copy of its index, so
that only changed files are hashed. Contents are stored as they are on disk, without filters or line-end conversion.
A repository within the workspace is a work tree of its own, with its own index. In the place of a file that is left out
a tree has a gitlink, made of the file's size and time. Git keeps only the executable bit of a mode. Modes that differ
from what the umask gives are kept beside it.

Git is started as seldom as can be. New names are listed again only where folder_times can't say that there are none. A
few changed files go into trees that we write, and git's index stays as it was: git names them again next time.
"""

import os
import shutil
import stat
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import sha1
from pathlib import Path
from typing import Final

from tarmac.tasks import git_objects
from tarmac.tasks.events import FileEdit, GitTree
from tarmac.tasks.folder_times import FolderTimes, Times, is_settled, times_of
from tarmac.tasks.git_objects import Entries, Entry
from tarmac.tasks.git_process import GitFailed, GitProcesses, SnapshotFailed, environment

LARGEST: Final = 2 << 20  # bytes of a file; larger ones are left out
MOST_MODES: Final = 5_000  # files with an unusual mode; with more, modes are not kept
MOST_NESTED: Final = 30  # repositories within the workspace
FEW: Final = 64  # files; so many are hashed without git
BULK: Final = 64  # files; more are written to one pack, which is faster than a file for each
EMPTY_TREE: Final = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
GITLINK: Final = 0o160000
LEFT_OUT: Final = "0" * 12  # how the gitlink of a file that is left out begins
_CONFIG: Final = """[core]
\trepositoryformatversion = 0
\tbare = false
\tfilemode = true
\tsymlinks = true
\tautocrlf = false
\tfsmonitor = false
\tsplitIndex = false
\tuntrackedCache = false
\tlooseCompression = 0
\tcompression = 1
\thooksPath = /dev/null
[gc]
\tauto = 0
[index]
\tsparse = false
"""
_ATTRIBUTES: Final = "* -text !eol -ident -filter -working-tree-encoding\n"
_HEAVY: Final = b"node_modules/\n.venv/\nvenv/\n__pycache__/\n.mypy_cache/\n.pytest_cache/\n.ruff_cache/\n.tox/\n"


@dataclass(frozen=True, slots=True)
class WorkspaceSnapshot:
    """The workspace at one moment."""

    trees: tuple[GitTree, ...]
    left_out: tuple[Path, ...] = ()  # files that are too large, or can't be read
    modes: Mapping[Path, int] | None = None  # of files whose mode is not the usual one; None: unknown

    @property
    def partial(self) -> str:
        if not self.left_out:
            return ""
        names = ", ".join(str(each) for each in self.left_out[:3])
        more = f" and {len(self.left_out) - 3} more" if len(self.left_out) > 3 else ""
        return f"left out, as they are larger than {LARGEST >> 20} MiB or unreadable: {names}{more}"


@dataclass(slots=True)
class _WorkTree:
    """One repository's files, or those of a folder without one."""

    root: Path
    only: str  # of it that belongs to the workspace, relative; "" for all
    index: Path
    folders: FolderTimes
    seeded: bool = False
    tree: str = ""
    base: str = ""  # the tree of the index
    base_folders: dict[str, Entries] = field(default_factory=dict)  # those of its folders that were needed
    others: set[str] = field(default_factory=set)  # names that the index lacked, when they were listed
    hashed: dict[str, tuple[Times, Entry]] = field(default_factory=dict)  # files that are not as in the index
    links: dict[str, str] = field(default_factory=dict)  # of files that were left out, as they are in the index
    nested: set[str] = field(default_factory=set)  # gitlinks: submodules, and files that were left out
    pending: set[str] = field(default_factory=set)  # to be hashed, whatever git thinks of them
    modes: dict[str, int] | None = None  # the unusual ones; None: nobody has looked yet
    recent: set[str] = field(default_factory=set)  # changed in this second: git would not see another change of a mode


class Snapshots:
    """The snapshots of one workspace. It waits for git: not for the event loop, and one caller at a time."""

    def __init__(self, folder: Path, workspace: Path) -> None:
        self._folder = folder
        self._workspace = Path(os.path.realpath(workspace))
        self._trees: dict[Path, _WorkTree] = {}
        self._top_folder = self._workspace  # of the repository that the workspace is in
        self._wrote: set[Path] = set()  # given to git already
        self._turn = threading.Lock()
        self._processes = GitProcesses()
        self._usual = _usual_modes()

    @property
    def used(self) -> bool:
        """Whether a snapshot was ever tried."""
        return self._folder.exists()

    def take(self, wrote: Iterable[Path] = (), *, limit: float) -> WorkspaceSnapshot:
        """A snapshot within `limit` seconds. Files in `wrote` are in it even where git ignores them."""
        with self._turn:
            return self._take(wrote, time.monotonic() + limit)

    def close(self) -> None:
        """End what runs. No more snapshots are taken."""
        self._processes.close()

    def _take(self, wrote: Iterable[Path], until: float) -> WorkspaceSnapshot:
        main = self._main(until)
        self._unlock()
        found: list[GitTree] = []
        left_out: list[Path] = []
        waiting = [main]
        known = set(wrote) - self._wrote
        while waiting:
            each = waiting.pop(0)
            if len(found) >= MOST_NESTED:
                raise SnapshotFailed(f"there are more than {MOST_NESTED} repositories in the workspace")
            each.pending.update(_inside(each.root, known))
            nested = self._update(each, left_out, until)
            found.append(GitTree(root=each.root, tree=each.tree))
            waiting += [self._tree(each.root / name, "", until) for name in nested]
        self._wrote |= known
        return WorkspaceSnapshot(tuple(found), tuple(left_out), self._modes([each.root for each in found]))

    def _modes(self, roots: Sequence[Path]) -> dict[Path, int] | None:
        trees = [self._trees[root] for root in roots]
        if any(each.modes is None for each in trees) or sum(len(each.modes or ()) for each in trees) > MOST_MODES:
            return None
        return {each.root / name: mode for each in trees for name, mode in (each.modes or {}).items()}

    def edits(self, before: WorkspaceSnapshot, after: WorkspaceSnapshot, *, limit: float) -> list[FileEdit]:
        """What differs."""
        until = time.monotonic() + limit
        old = {each.root: each.tree for each in before.trees}
        new = {each.root: each.tree for each in after.trees}
        found: dict[Path, FileEdit] = {}
        for root in {**old, **new}:
            one, two = old.get(root, EMPTY_TREE), new.get(root, EMPTY_TREE)
            if one != two:
                for each in self._edits(root, one, two, until):
                    found[each.path] = _in_one(found[each.path], each) if each.path in found else each
        for root, tree in old.items():
            rules = [each for each in found if each.name == ".gitignore" and each.is_relative_to(root)]
            added = [each.path for each in found.values() if each.before is None and each.path.is_relative_to(root)]
            if rules and added:
                for path in self._ignored(root, tree, added, until):
                    found[path] = replace(found[path], before="")  # it may have been there: nobody looked
        if before.modes is not None and after.modes is not None:
            self._add_modes(found, before.modes, after, until)
        return [each for each in found.values() if not each.before or not _is_same(each)]

    def _add_modes(
        self, found: dict[Path, FileEdit], old: Mapping[Path, int], after: WorkspaceSnapshot, until: float
    ) -> None:
        """Give the edits the modes of the disk, and add files of which only the mode was changed."""
        new = after.modes or {}
        for path, each in found.items():
            before_mode, after_mode = (
                stat.S_IFREG | modes.get(path, self._usual[bool(mode & 0o100)]) if stat.S_ISREG(mode) else mode
                for modes, mode in ((old, each.before_mode), (new, each.after_mode))
            )
            found[path] = replace(each, before_mode=before_mode, after_mode=after_mode, exact=True)
        changed = [path for path in old.keys() | new.keys() if old.get(path) != new.get(path) and path not in found]
        for tree in after.trees:
            names = {os.fsencode(each): tree.root / each for each in _inside(tree.root, changed)}
            words = ["ls-tree", "-r", "-z", tree.tree, "--", *map(os.fsdecode, names)]
            for line in self._git(words, until=until).split(b"\0")[:-1] if names else ():
                about, _, name = line.partition(b"\t")
                mode, kind, id = about.decode().split()
                if kind == "blob" and mode.startswith("100") and (there := names.get(name)):
                    usual = self._usual[mode == "100755"]
                    was, now = (stat.S_IFREG | modes.get(there, usual) for modes in (old, new))
                    found[there] = FileEdit(
                        path=there, before=id, after=id, before_mode=was, after_mode=now, exact=True
                    )

    def _ignored(self, root: Path, tree: str, paths: Sequence[Path], until: float) -> list[Path]:
        """Those of the paths that the ignore rules of this tree left out."""
        listed = self._git(["ls-tree", "-r", "-z", tree], until=until).split(b"\0")[:-1]
        rules = {
            os.fsdecode(name): about.split()[2].decode()
            for about, _, name in (each.partition(b"\t") for each in listed)
            if name.rpartition(b"/")[2] == b".gitignore" and about.startswith(b"100")
        }
        contents = self.contents(rules.values(), limit=until - time.monotonic())
        with tempfile.TemporaryDirectory(dir=self._folder) as folder:
            for name, id in rules.items():
                place = Path(folder, name)
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(contents.get(id, b""))
            there = _WorkTree(Path(folder), "", Path(folder, ".index"), FolderTimes(Path(folder), ()))
            names = self._check_ignored(there, [each.relative_to(root).as_posix() for each in paths], until)
        return [root / each for each in names]

    def _check_ignored(self, tree: _WorkTree, names: Sequence[str], until: float) -> list[str]:
        """Those of the names that ignore rules match, or a folder above them."""
        given = _joined([f"./{each}" for each in names])  # ":" first would be magic
        words = ["--no-literal-pathspecs", "check-ignore", "--no-index", "-z", "--stdin"]
        try:
            out = self._git(words, tree, until=until, given=given)
        except GitFailed as error:
            if error.code != 1:  # 1: none of them
                raise
            return []
        return [os.fsdecode(each[2:]) for each in out.split(b"\0")[:-1]]

    def contents(self, ids: Iterable[str], *, limit: float) -> dict[str, bytes]:
        """The contents of git objects; those that are gone are missing."""
        wanted = list(dict.fromkeys(ids))
        if not wanted:
            return {}
        lines = b"".join(os.fsencode(each) + b"\n" for each in wanted)
        out = self._git(["cat-file", "--batch"], until=time.monotonic() + limit, given=lines)
        found: dict[str, bytes] = {}
        at = 0
        for each in wanted:
            end = out.index(b"\n", at)
            about = out[at:end]
            at = end + 1
            if not about.endswith(b" missing"):
                size = int(about.rpartition(b" ")[2])
                found[each] = out[at : at + size]
                at += size + 1
        return found

    # Work trees

    def _main(self, until: float) -> _WorkTree:
        """The workspace's own: the repository that it is in, as far as the workspace goes."""
        if self._workspace in (Path("/"), Path(os.path.realpath(Path.home()))):
            raise SnapshotFailed("the workspace is your home folder or the whole machine")
        if main := self._trees.get(self._workspace):
            return main
        self._make_folder()
        self._top_folder = top = self._top(until)
        only = "" if top == self._workspace else self._workspace.relative_to(top).as_posix()
        main = self._tree(top, only, until)
        self._trees[self._workspace] = main
        return main

    def _top(self, until: float) -> Path:
        try:
            words = self._user_git(["rev-parse", "--show-toplevel"], self._workspace, until)
            top = Path(os.fsdecode(words.rstrip(b"\n")))
        except GitFailed:
            return self._workspace
        if not self._workspace.is_relative_to(top) or top == Path(os.path.realpath(Path.home())):
            return self._workspace
        if top != self._workspace:
            try:
                self._user_git(["check-ignore", "-q", "--", str(self._workspace)], top, until)
                return self._workspace  # the repository does not want to know of it
            except GitFailed:
                pass
        return top

    def _tree(self, root: Path, only: str, until: float) -> _WorkTree:
        if found := self._trees.get(root):
            return found
        name = sha1(os.fsencode(f"{root}\0{only}"), usedforsecurity=False).hexdigest()[:16]
        tree = _WorkTree(root, only, self._folder / f"index-{name}", FolderTimes(root / only, self._rules(root, only)))
        tree.seeded = tree.index.exists()
        self._alternate(tree, until)
        if tree.seeded:
            self._look_at_index(tree, until, fresh=False)
        self._trees[root] = tree
        return tree

    def _rules(self, root: Path, only: str) -> list[Path]:
        """The ignore files that count in a work tree, but for those within."""
        above = [root, *(root.joinpath(*Path(only).parts[:end]) for end in range(1, len(Path(only).parts)))]
        own = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "git" / "ignore"
        return [self._folder / "info" / "exclude", own, *(each / ".gitignore" for each in (above if only else ()))]

    def _unlock(self) -> None:
        """A git that was killed leaves its lock. Nobody else uses this repository."""
        for each in self._folder.glob("index-*.lock"):
            each.unlink(missing_ok=True)

    def _make_folder(self) -> None:
        """A repository without a history. It is made by hand: `git init` takes longer, and templates."""
        if (self._folder / "HEAD").exists():
            for each in (self._folder / "objects" / "pack").glob("tmp_*"):
                each.unlink(missing_ok=True)
            return
        for name in ("objects/info", "objects/pack", "refs/heads", "info"):
            (self._folder / name).mkdir(parents=True, exist_ok=True, mode=0o700)
        (self._folder / "config").write_text(_CONFIG)
        (self._folder / "info" / "attributes").write_text(_ATTRIBUTES)
        (self._folder / "HEAD").write_text("ref: refs/heads/none\n")

    def _alternate(self, tree: _WorkTree, until: float) -> None:
        """Read the objects, the index and the ignored names of the user's repository, where there is one."""
        words = ["rev-parse", "--show-toplevel", "--show-object-format"]
        words += [
            word for name in ("index", "objects", "info/exclude", "info/attributes") for word in ("--git-path", name)
        ]
        try:
            found = self._user_git(words, tree.root, until).split(b"\n")
        except GitFailed:
            found = []
        top = Path(os.fsdecode(found[0])) if found else None
        self._add_lines("info/exclude", self._own_names(tree.root))
        if top != tree.root:
            self._add_lines("info/exclude", _HEAVY)
            return
        index, objects, ignored, attributes = (tree.root / os.fsdecode(each) for each in found[2:6])
        if ignored.is_file():
            self._add_lines("info/exclude", ignored.read_bytes())
        settings = self._settings(tree.root, until)
        if place := settings.get("core.excludesfile"):
            there = Path(os.path.expanduser(place))  # noqa: PTH111
            if there.is_file():
                self._add_lines("info/exclude", there.read_bytes())
        own = Path(os.path.realpath(objects)).is_relative_to(tree.root)
        if found[1] != b"sha1" or (own and tree.root != self._top_folder):  # a command may remove it with its objects
            return
        self._add_lines("objects/info/alternates", os.fsencode(os.path.realpath(objects)))
        if not tree.seeded:
            converts = attributes.exists() or bool(settings.keys() - {"core.excludesfile"})
            self._seed(tree, index, until, converts=converts)

    def _add_lines(self, name: str, lines: bytes) -> None:
        """Add those that are not in the file yet."""
        path = self._folder / name
        there = path.read_bytes().split(b"\n") if path.exists() else []
        if new := [each for each in lines.split(b"\n") if each not in there]:
            path.write_bytes(b"\n".join([*there, *new, b""]))

    def _own_names(self, root: Path) -> bytes:
        """Tarmac's own folder, where that is in the workspace."""
        own = Path(os.path.realpath(self._folder)).parent.parent
        inside = own.is_relative_to(root) and own != root
        return os.fsencode(f"/{own.relative_to(root).as_posix()}/") if inside else b""

    def _settings(self, root: Path, until: float) -> dict[str, str]:
        try:
            pattern = r"^core\.(excludesfile|autocrlf|attributesfile|eol)$"
            found = self._user_git(["config", "-z", "--get-regexp", pattern], root, until)
        except GitFailed:
            return {}
        pairs = (each.partition(b"\n") for each in found.split(b"\0") if each)
        return {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}

    def _seed(self, tree: _WorkTree, index: Path, until: float, *, converts: bool) -> None:
        """Begin with the user's index: the files that it knows need not be hashed."""
        try:
            shutil.copyfile(index, tree.index)
            there = index.stat()
            os.utime(tree.index, ns=(there.st_atime_ns, there.st_mtime_ns))  # git trusts no file newer than the index
            self._look_at_index(tree, until, fresh=True, converts=converts)
            tree.seeded = True
        except (OSError, GitFailed):  # none yet, or one that only makes sense there (a split index)
            tree.index.unlink(missing_ok=True)
            tree.nested, tree.pending = set(), set()

    def _look_at_index(self, tree: _WorkTree, until: float, *, fresh: bool, converts: bool = False) -> None:
        out = self._git(["ls-files", "-v", "-s", "-z"], tree, until=until)
        hidden: list[bytes] = []
        for line in out.split(b"\0")[:-1]:
            about, _, path = line.partition(b"\t")
            tag, mode = about.split()[:2]
            if mode == b"160000":
                tree.nested.add(os.fsdecode(path))
                if (id := about.split()[2].decode()).startswith(LEFT_OUT):
                    tree.links[os.fsdecode(path)] = id
            if tag.islower():  # its owner told git not to look at it
                hidden.append(path)
            converts |= path.endswith(b".gitattributes")
        if fresh and hidden:
            given = b"\0".join(hidden) + b"\0"
            self._git(["update-index", "-z", "--no-assume-unchanged", "--stdin"], tree, until=until, given=given)
        if fresh and converts:
            tree.pending |= self._converted(tree, until)

    def _converted(self, tree: _WorkTree, until: float) -> set[str]:
        """Files whose content in the repository is another than on disk: line ends, LFS. Known by their sizes."""
        pieces = self._git(["ls-files", "-s", "-z", "--debug"], tree, until=until).split(b"\0")
        sizes: dict[bytes, tuple[bytes, bytes]] = {}
        header = pieces[0]
        for piece in pieces[1:]:
            numbers, _, rest = piece.partition(b"flags: ")
            size = numbers.partition(b"size: ")[2].partition(b"\t")[0]
            sizes[header.partition(b"\t")[2]] = (header.split()[1], size)
            header = rest.partition(b"\n")[2]
        given = b"".join(id + b"\n" for id, _ in sizes.values())
        known = self._git(["cat-file", "--batch-check=%(objectsize)"], tree, until=until, given=given).split(b"\n")
        return {
            os.fsdecode(path)
            for (path, (_, size)), there in zip(sizes.items(), known, strict=False)
            if there != size and there.isdigit()
        }

    # One work tree's state

    def _update(self, tree: _WorkTree, left_out: list[Path], until: float) -> list[str]:
        """Bring the index up to date with the disk; the repositories within."""
        where = ["--", tree.only] if tree.only else []
        started = time.time_ns()
        scans = [self._start(["diff-files", "--name-only", "-z", "--ignore-submodules=all", *where], tree)]
        if not (holds := tree.folders.still_holds()):
            scans.append(self._start(["ls-files", "-o", "-z", "--exclude-standard", *where], tree))
        outs = [{os.fsdecode(each) for each in out.split(b"\0")[:-1]} for out in self._processes.ends(scans, until)]
        if not holds:
            before, tree.others = tree.others, outs.pop()
            hidden = (each for each in before - tree.others if not each.endswith("/"))
            tree.pending |= {each for each in hidden if os.path.lexists(tree.root / each)}  # it is ignored now
        changed = outs.pop() | tree.others | tree.pending
        changed |= {each for each in tree.nested if (tree.root / each).is_file()}
        changed |= {each for each in tree.links if not os.path.lexists(tree.root / each)}  # git does not miss them
        nested = {each.rstrip("/") for each in changed if each.endswith("/")} | tree.nested
        within = f"{tree.only}/" if tree.only else ""
        nested = {each for each in nested if each.startswith(within) and self._is_nested(tree, each)}
        below = tuple(f"{each}/" for each in nested)
        real = cache(lambda folder: os.path.realpath(folder) == str(folder))  # else a link leads there now
        add: dict[str, os.stat_result | None] = {}  # None: it is gone
        remove: list[str] = []
        links: dict[str, str] = {}
        for name in sorted(changed):
            if name.endswith("/") or name in nested or (below and name.startswith(below)):
                continue
            path = tree.root / name
            try:
                there = path.lstat()
            except OSError:
                add[name] = None
                continue
            if not real(path.parent):
                remove.append(name)
                continue
            if stat.S_ISREG(there.st_mode) and (there.st_size > LARGEST or not os.access(path, os.R_OK)):
                left_out.append(path)
                links[name] = (
                    LEFT_OUT + sha1(b"%d %d" % (there.st_size, there.st_mtime_ns)).hexdigest()[len(LEFT_OUT) :]
                )
            elif stat.S_ISREG(there.st_mode) or stat.S_ISLNK(there.st_mode):
                add[name] = there
                self._note_mode(tree, name, there)
            else:
                remove.append(name)
        links = {name: id for name, id in links.items() if tree.links.get(name) != id}
        few = len(add) <= FEW and not (remove or links or tree.pending or tree.nested & add.keys())
        if not (few and tree.base and self._overlay(tree, add, until)):
            self._into_index(tree, list(add), remove, links, until)
        if not holds:
            top = f"{tree.root}/"
            tree.folders.listed(
                started,
                {top + each for each in nested},
                lambda found: {
                    top + name for name in self._check_ignored(tree, [each[len(top) :] for each in found], until)
                },
            )
        if tree.modes is None:
            self._look_at_modes(tree, until)
        else:
            self._look_again(tree)
        return sorted(nested)

    def _is_nested(self, tree: _WorkTree, name: str) -> bool:
        """Whether this is a work tree of its own: a repository, or a submodule's folder that has files without one."""
        folder = tree.root / name
        if os.path.lexists(folder / ".git"):
            return True
        try:
            return name in tree.nested and any(folder.iterdir())
        except OSError:  # it is a file that was left out, or it is gone
            return False

    def _into_index(
        self, tree: _WorkTree, add: Sequence[str], remove: Sequence[str], links: Mapping[str, str], until: float
    ) -> None:
        """Let git hash these files. Its index is as the disk afterwards."""
        tree.base = ""
        if remove:
            self._git(["update-index", "-z", "--force-remove", "--stdin"], tree, until=until, given=_joined(remove))
        if add:
            bulk = ["-c", "core.bigFileThreshold=1"] if len(add) > BULK else []
            words = [*bulk, "update-index", "-z", "--add", "--remove", "--replace", "--stdin"]
            self._git(words, tree, until=until, given=_joined(add))
        if links:
            lines = b"".join(f"160000 {id} 0\t".encode() + os.fsencode(name) + b"\0" for name, id in links.items())
            self._git(["update-index", "-z", "--add", "--replace", "--index-info"], tree, until=until, given=lines)
            tree.nested |= links.keys()
        tree.links = {name: id for name, id in tree.links.items() if name not in (*add, *remove)} | dict(links)
        if not tree.index.exists():
            tree.tree = EMPTY_TREE
        else:
            tree.tree = tree.base = self._git(["write-tree", "--missing-ok"], tree, until=until).decode().strip()
        tree.base_folders.clear()
        tree.hashed.clear()
        tree.pending.clear()
        tree.others = {each for each in tree.others if each.endswith("/")}

    def _overlay(self, tree: _WorkTree, add: Mapping[str, os.stat_result | None], until: float) -> bool:
        """Make the tree of the index with these files as they are. False: that is more than we do without git."""
        versions: dict[str, Entry | None] = {}
        hashed: dict[str, tuple[Times, Entry]] = {}
        try:
            for name, there in add.items():
                if there is None:
                    versions[name] = None
                    continue
                started = time.time_ns()
                known = tree.hashed.get(name)
                if known is None or known[0] != times_of(there):
                    known = (times_of(there), self._hashed(tree.root / name, there))
                if is_settled(there, started):
                    hashed[name] = known
                versions[name] = known[1]
            if not versions:
                tree.tree = tree.base
            else:
                self._read_folders(tree, git_objects.folders_of(versions), until)
                tree.tree = git_objects.changed_tree(
                    tree.base_folders, versions, lambda data: git_objects.write(self._folder, "tree", data)
                )
        except (git_objects.Tangled, OSError, ValueError):  # it is not a tree, or the disk has changed since we looked
            return False
        tree.hashed = hashed
        return True

    def _hashed(self, path: Path, there: os.stat_result) -> Entry:
        if stat.S_ISLNK(there.st_mode):
            return "120000", git_objects.write(self._folder, "blob", os.fsencode(path.readlink()))
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            data = file.read(LARGEST + 1)
        if len(data) > LARGEST:
            raise OSError("it grew meanwhile")
        return "100755" if there.st_mode & 0o100 else "100644", git_objects.write(self._folder, "blob", data)

    def _read_folders(self, tree: _WorkTree, folders: set[str], until: float) -> None:
        wanted = [each for each in folders if each not in tree.base_folders]
        if any("\n" in each for each in wanted):
            raise OSError("git is asked by lines")
        found = self.contents((f"{tree.base}:{each}" for each in wanted), limit=until - time.monotonic())
        for each in wanted:
            tree.base_folders[each] = git_objects.parsed_tree(found.get(f"{tree.base}:{each}", b""))

    def _look_again(self, tree: _WorkTree) -> None:
        recent, tree.recent = tree.recent, set()
        root = f"{tree.root}/"
        for name in recent:
            try:
                self._note_mode(tree, name, os.lstat(root + name))
            except OSError:
                continue

    def _note_mode(self, tree: _WorkTree, name: str, there: os.stat_result) -> None:
        if tree.modes is None:
            return
        mode = there.st_mode
        if there.st_ctime > time.time() - 2:
            tree.recent.add(name)
        if stat.S_ISREG(mode) and stat.S_IMODE(mode) not in self._usual:
            tree.modes[name] = stat.S_IMODE(mode)
        else:
            tree.modes.pop(name, None)

    def _look_at_modes(self, tree: _WorkTree, until: float) -> None:
        """Look at every file once; later at those that git finds changed, as a new mode is a new time of change."""
        tree.modes = {}
        root, soon = f"{tree.root}/", time.time() - 2
        for name in self._git(["ls-files", "-z"], tree, until=until).split(b"\0")[:-1] if tree.index.exists() else ():
            try:
                there = os.lstat(root + os.fsdecode(name))
            except OSError:
                continue
            if stat.S_IMODE(there.st_mode) not in self._usual or there.st_ctime > soon:
                self._note_mode(tree, os.fsdecode(name), there)

    def _edits(self, root: Path, one: str, two: str, until: float) -> Iterator[FileEdit]:
        tree = self._trees.get(root)
        where = ["--", tree.only] if tree and tree.only else []
        out = self._git(["diff-tree", "-r", "-z", "--raw", "--no-renames", one, two, *where], until=until)
        pieces = out.split(b"\0")[:-1]
        for about, name in zip(pieces[::2], pieces[1::2], strict=True):
            modes, ids = about[1:].split()[:2], about.split()[2:4]
            before_mode, after_mode = (int(each, 8) for each in modes)
            before, after = (
                _version(mode, id.decode()) for mode, id in zip((before_mode, after_mode), ids, strict=True)
            )
            if before is not None or after is not None:
                yield FileEdit(
                    path=root / os.fsdecode(name),
                    before=before,
                    after=after,
                    before_mode=before_mode if before else 0,
                    after_mode=after_mode if after else 0,
                )

    # Git itself

    def _git(
        self, words: Sequence[str], tree: _WorkTree | None = None, *, until: float, given: bytes | None = None
    ) -> bytes:
        return self._processes.ends([self._start(words, tree, piped=given is not None)], until, given)[0]

    def _start(
        self, words: Sequence[str], tree: _WorkTree | None = None, *, piped: bool = False
    ) -> "subprocess.Popen[bytes]":
        env = environment() | {"GIT_DIR": str(self._folder), "GIT_LITERAL_PATHSPECS": "1"}
        env |= {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}
        if tree is not None:
            env |= {"GIT_WORK_TREE": str(tree.root), "GIT_INDEX_FILE": str(tree.index)}
        return self._processes.start(words, env, tree.root if tree else self._folder, piped=piped)

    def _user_git(self, words: Sequence[str], cwd: Path, until: float) -> bytes:
        """Ask the user's repository. Only questions that read no file of the work tree."""
        started = self._processes.start(["-c", "core.fsmonitor=false", *words], environment(), cwd)
        return self._processes.ends([started], until)[0]


def _usual_modes() -> tuple[int, int]:
    """The modes that the umask gives to a file and to a program."""
    umask = 0o022
    try:
        status = Path("/proc/self/status").read_text()
        umask = int(status.partition("Umask:")[2].split(None, 1)[0], 8)
    except (OSError, ValueError, IndexError):
        pass
    return 0o666 & ~umask, 0o777 & ~umask


def _version(mode: int, id: str) -> str | None:
    """A file's content in a tree: "" when it was left out, None when there is no file."""
    if mode == GITLINK:
        return "" if id.startswith(LEFT_OUT) else None
    return id if mode else None


def _in_one(one: FileEdit, two: FileEdit) -> FileEdit:
    """A file that went from one repository to another, as its folder `.git` came or went."""
    old = two if one.before is None else one
    new = two if one.after is None else one
    return replace(old, after=new.after, after_mode=new.after_mode)


def _is_same(edit: FileEdit) -> bool:
    return (edit.before, edit.before_mode) == (edit.after, edit.after_mode)


def _joined(names: Sequence[str]) -> bytes:
    return b"".join(os.fsencode(each) + b"\0" for each in names)


def _inside(root: Path, paths: Iterable[Path]) -> Iterator[str]:
    return (each.relative_to(root).as_posix() for each in paths if each.is_relative_to(root))
