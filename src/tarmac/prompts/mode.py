"""A mode: the role of the model, its tools, and the files they may touch.

mode.allows("write_to_file", "edit", path="src/app.py") → None, or the reason why not, for the model

A file pattern is a regular expression, perhaps from an untrusted repository. So it has a time limit, and any error
means "not allowed".
"""

import functools
import math
import re
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from regex import Pattern


MOST = 400_000  # nodes; a pattern for UUIDs has 300,000 by this bound
_COUNTED = re.compile(r"\{([^}]*)\}")


def check_size(pattern: str) -> None:
    """Raise ValueError if the pattern is too large to compile."""
    size = math.prod((_least(found) for found in _COUNTED.findall(pattern)), start=max(1, len(pattern)))
    if size > MOST:
        raise ValueError("too many counted repetitions")


def _least(count: str) -> int:
    """The minimum count, which is expanded. There may be blanks and comments between the digits."""
    digits = "".join(each for each in count.partition(",")[0] if each.isdigit())
    return max(1, int(digits[:9])) if digits.isascii() and digits else 1


Group = Literal["read", "edit", "command", "mcp", "modes", "browser", "always"]
Source = Literal["built-in", "user", "workspace"]
IN_EVERY_MODE: tuple[Group, ...] = ("always", "modes")  # in every mode
CHOSEN: tuple[Group, ...] = ("read", "edit", "command", "mcp", "browser")  # listed by a mode
FILE_GROUPS: tuple[Group, ...] = ("read", "edit")  # groups whose tools take a path
LONGEST_PATTERN = 500
PATTERN_TIMEOUT = 0.1  # seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRule:
    """A group of tools in a mode. With a pattern, only for files that match it."""

    group: Group
    file_pattern: str | None = None  # searched in the path relative to the workspace, with slashes
    description: str = ""  # of the files, such as "Markdown files only"

    @property
    def files(self) -> str:
        """A description of the files; empty for all files."""
        if self.file_pattern is None:
            return ""
        return f"{self.description} (`{self.file_pattern}`)" if self.description else f"`{self.file_pattern}`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode:
    """A role with its tools and instructions."""

    slug: str
    name: str
    role: str
    groups: tuple[GroupRule, ...] = ()
    when: str = ""  # when to use it, for the model and the user
    description: str = ""  # short, for a menu
    instructions: str = ""
    source: Source = "built-in"
    origin: str = ""  # its file; empty for a built-in mode

    def rule(self, group: str) -> GroupRule | None:
        """The rule for a group, if the mode has the group."""
        return next((each for each in self.groups if each.group == group), None)

    def allows(self, tool: str, group: Group, path: PurePath | str | None = None) -> str | None:
        """None if the tool may be used, else the reason. `path` is the file, relative to the workspace.

        For a link, ask twice: for its name and for its target.
        """
        if group in IN_EVERY_MODE:
            return None
        rule = self.rule(group)
        if rule is None:
            return f"The tool {tool} is not available in {self.name} mode."
        if path is None or rule.file_pattern is None or _fits(rule.file_pattern, _slashed(path)):
            return None
        verb = "read" if group == "read" else "edit"
        return f"{self.name} mode may only {verb} these files: {rule.files}. `{_slashed(path)}` is not one of them."


@functools.lru_cache(64)
def compiled(pattern: str) -> "Pattern[str]":
    """Compile a pattern. ValueError says what is wrong."""
    import regex

    if len(pattern) > LONGEST_PATTERN:
        raise ValueError(f"the pattern has {len(pattern)} characters, but at most {LONGEST_PATTERN} are allowed")
    try:
        check_size(pattern)
        return regex.compile(pattern)
    except (regex.error, ValueError) as error:
        raise ValueError(f"`{pattern}` is not a valid regular expression: {error}") from None
    except (RecursionError, OverflowError, MemoryError):
        raise ValueError("the pattern is too complicated") from None


def _fits(pattern: str, path: str) -> bool:
    if not path.isprintable():  # `$` matches before a trailing newline
        return False
    try:
        return compiled(pattern).search(path, timeout=PATTERN_TIMEOUT) is not None
    except (TimeoutError, ValueError):
        return False


def _slashed(path: PurePath | str) -> str:
    return path.as_posix() if isinstance(path, PurePath) else path.replace("\\", "/")
