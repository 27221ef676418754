"""A mode: who the model is, what it may use, on which files (S9).

mode.allows("write_to_file", "edit", path="src/app.py") → None, or why not, as the model is told

A pattern is a regular expression that may come from a repository, so it has a time limit, and every doubt means no.
"""

import functools
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Literal

from tarmac.prompts.patterns import check_size

if TYPE_CHECKING:
    from regex import Pattern

Group = Literal["read", "edit", "command", "mcp", "modes", "browser", "always"]
Source = Literal["built-in", "user", "workspace"]
WITHOUT_ASKING_THE_MODE: tuple[Group, ...] = ("always", "modes")  # every mode has these tools
CHOSEN: tuple[Group, ...] = ("read", "edit", "command", "mcp", "browser")  # these a mode has or has not
WITH_FILES: tuple[Group, ...] = ("read", "edit")  # their tools name files, so that a pattern means something
LONGEST_PATTERN = 500
PATTERN_TIMEOUT = 0.1  # seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRule:
    """A group of tools that a mode has; with a pattern, for files of these names only."""

    group: Group
    file_pattern: str | None = None  # searched for in the path as seen from the workspace, with slashes
    description: str = ""  # of the files, for the model and for people: "Markdown files only"

    @property
    def files(self) -> str:
        """Which files, in words; empty: all."""
        if self.file_pattern is None:
            return ""
        return f"{self.description} (`{self.file_pattern}`)" if self.description else f"`{self.file_pattern}`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode:
    """One way to work."""

    slug: str
    name: str
    role: str
    groups: tuple[GroupRule, ...] = ()
    when: str = ""  # when one should be in it, for whoever chooses
    description: str = ""  # a few words for a menu
    instructions: str = ""
    source: Source = "built-in"
    origin: str = ""  # the file it comes from, as shown to people; empty: it is built in

    def rule(self, group: str) -> GroupRule | None:
        """What it says of a group."""
        return next((each for each in self.groups if each.group == group), None)

    def allows(self, tool: str, group: Group, path: PurePath | str | None = None) -> str | None:
        """None: yes. Else why not. `path`: the file it is about, seen from the workspace, when it is about one.

        Ask about each name of a file: the one that was said, and the one it leads to.
        """
        if group in WITHOUT_ASKING_THE_MODE:
            return None
        rule = self.rule(group)
        if rule is None:
            return f"The tool {tool} is not available in {self.name} mode."
        if path is None or rule.file_pattern is None or _fits(rule.file_pattern, _slashed(path)):
            return None
        verb = "read" if group == "read" else "edit"
        return f"{self.name} mode may only {verb} files of this kind: {rule.files}. `{_slashed(path)}` is none."


@functools.lru_cache(64)
def compiled(pattern: str) -> "Pattern[str]":
    """The pattern, ready to search. ValueError says what is wrong with it."""
    import regex

    if len(pattern) > LONGEST_PATTERN:
        raise ValueError(f"a pattern has at most {LONGEST_PATTERN} characters, not {len(pattern)}")
    try:
        check_size(pattern)
        return regex.compile(pattern)
    except (regex.error, ValueError) as error:
        raise ValueError(f"`{pattern}` is no pattern: {error}") from None
    except (RecursionError, OverflowError, MemoryError):
        raise ValueError("the pattern is too complicated") from None


def _fits(pattern: str, path: str) -> bool:
    if not path.isprintable():  # `$` would look past a newline at the end
        return False
    try:
        return compiled(pattern).search(path, timeout=PATTERN_TIMEOUT) is not None
    except (TimeoutError, ValueError):
        return False


def _slashed(path: PurePath | str) -> str:
    return path.as_posix() if isinstance(path, PurePath) else path.replace("\\", "/")
