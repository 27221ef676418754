"""What a parser finds in the output of a command."""

from dataclasses import dataclass
from typing import Literal

LONGEST_LINE = 2_000  # characters; longer ones are data, not messages
Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that a compiler or a linter says of a line."""

    path: str
    line: int  # 0: of the whole file
    text: str
    column: int = 0  # 0: not known
    severity: Severity = "error"
    code: str = ""  # "F401", "TS2322"

    @property
    def place(self) -> str:
        """`path:line:column`, as far as it is known."""
        return ":".join([self.path, *(str(each) for each in (self.line, self.column) if each)])


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedTest:
    """A test that failed, and where."""

    name: str
    path: str = ""
    line: int = 0
    text: str = ""

    @property
    def place(self) -> str:
        """`path:line`, as far as it is known."""
        return f"{self.path}:{self.line}" if self.path and self.line else self.path


@dataclass(frozen=True, slots=True, kw_only=True)
class TestRun:
    """The result of a test runner."""

    __test__ = False  # pytest would take it for a test

    runner: str
    failures: tuple[FailedTest, ...] = ()
    passed: int = 0
    failed: int = 0  # by its own count, with errors
    skipped: int = 0

    @property
    def summary(self) -> str:
        """The numbers in one line."""
        counted = {"failed": max(self.failed, len(self.failures)), "passed": self.passed, "skipped": self.skipped}
        numbers = ", ".join(f"{count} {name}" for name, count in counted.items() if count)
        return f"{self.runner}: {numbers or 'no tests ran'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedFile:
    """A name in a listing; `size` None: the listing does not say."""

    name: str
    kind: Literal["file", "folder", "link", "other"] = "file"
    size: int | None = None
    target: str = ""  # of a link


@dataclass(frozen=True, slots=True)
class ListedFiles:
    """The names that `ls` printed."""

    files: tuple[ListedFile, ...]

    @property
    def summary(self) -> str:
        """How many of which kind."""
        folders = sum(each.kind == "folder" for each in self.files)
        size = sum(each.size or 0 for each in self.files if each.kind == "file")
        known = any(each.size is not None for each in self.files)
        kinds = f", {folders} of them folders" if folders else ""
        return f"{len(self.files)} names{kinds}{f', {size:,} bytes in files' if known else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class GitStatus:
    """What `git status` said."""

    branch: str = ""
    staged: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    untracked: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """The branch and how many files."""
        groups = {
            "conflicts": self.conflicts,
            "staged": self.staged,
            "changed": self.changed,
            "untracked": self.untracked,
        }
        counted = ", ".join(f"{len(names)} {name}" for name, names in groups.items() if names)
        return f"git status: {f'branch {self.branch}, ' if self.branch else ''}{counted or 'nothing to commit'}"


@dataclass(frozen=True, slots=True)
class GitCommit:
    """A commit in a log."""

    id: str
    subject: str
    author: str = ""
    date: str = ""


@dataclass(frozen=True, slots=True)
class GitLog:
    """What `git log` said."""

    commits: tuple[GitCommit, ...]

    @property
    def summary(self) -> str:
        """How many, and the newest."""
        newest = self.commits[0]
        return f"git log: {len(self.commits)} commits, the first one {newest.id[:10]} {newest.subject}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffStat:
    """What `git diff --stat` said."""

    files: tuple[str, ...]
    changed: int
    insertions: int = 0
    deletions: int = 0

    @property
    def summary(self) -> str:
        """How much changed."""
        return f"git diff: {self.changed} files, +{self.insertions} -{self.deletions}"


Facts = ListedFiles | GitStatus | GitLog | DiffStat


@dataclass(frozen=True, slots=True)
class Hint:
    """What may help next; `command` runs it, where one command does."""

    text: str
    command: str = ""


def whole_lines(text: str) -> list[str]:
    """The lines of a text. The end of a very long one is cut off: no message stands there."""
    return [each[:LONGEST_LINE] for each in text.splitlines()]
