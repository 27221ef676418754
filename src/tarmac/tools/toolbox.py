"""All tools, by name; what a model is told of them, and its calls read back.

box = toolbox()
box.schemas(["read_file", "execute_command"])
box.decode("read_file", '{"path": "a.py"}')

Other packages register tools with entry points (`with_installed`).
"""

import os
import re
import sys
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, is_dataclass, replace
from functools import cache, lru_cache
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import get_args

import msgspec

from tarmac.errors import BadArguments
from tarmac.models.provider import ToolSchema
from tarmac.tools import call_decoder
from tarmac.tools.browser_action import BrowserAction
from tarmac.tools.call_decoder import parameters
from tarmac.tools.code_definitions import ListCodeDefinitionNames
from tarmac.tools.codebase_search import CodebaseSearch
from tarmac.tools.edit_file import ApplyDiff, ApplyPatch, GenerateImage, InsertContent, SearchAndReplace, WriteToFile
from tarmac.tools.execute_command import ExecuteCommand, RunCommand
from tarmac.tools.fetch_url import FetchUrl
from tarmac.tools.list_files import ListFiles
from tarmac.tools.persistent_terminal import (
    KillPersistentTerminal,
    OpenPersistentTerminal,
    RunPersistentCommand,
    SendToTerminal,
)
from tarmac.tools.read_file import ReadFile
from tarmac.tools.read_terminal import ReadTerminal, WaitForTerminal
from tarmac.tools.search_files import SearchFiles
from tarmac.tools.servers.use_mcp_tool import AccessMcpResource, UseMcpTool
from tarmac.tools.task_tools import (
    AskFollowupQuestion,
    AttemptCompletion,
    Condense,
    FetchInstructions,
    NewTask,
    ReadOutput,
    RunSlashCommand,
    SwitchMode,
    UpdateTodoList,
)
from tarmac.tools.tool import Group, Need, Tool

TOOLS: tuple[type[Tool], ...] = (
    ReadFile,
    ListFiles,
    SearchFiles,
    ListCodeDefinitionNames,
    CodebaseSearch,
    FetchUrl,
    BrowserAction,
    WriteToFile,
    ApplyDiff,
    InsertContent,
    SearchAndReplace,
    ApplyPatch,
    GenerateImage,
    ExecuteCommand,
    RunCommand,
    OpenPersistentTerminal,
    RunPersistentCommand,
    ReadTerminal,
    SendToTerminal,
    WaitForTerminal,
    KillPersistentTerminal,
    UseMcpTool,
    AccessMcpResource,
    AskFollowupQuestion,
    AttemptCompletion,
    SwitchMode,
    NewTask,
    UpdateTodoList,
    RunSlashCommand,
    FetchInstructions,
    Condense,
    ReadOutput,
)
# Met in the wild: `functions.read_file`, `default_api.read_file` (Gemini), `read_file<|channel|>json` (gpt-oss)
_AROUND = re.compile(r"\A(?:functions|default_api)[.:]|<\|.*", re.DOTALL)
ALIASES = {"write_file": "write_to_file"}


@dataclass(frozen=True, slots=True, eq=False)
class Toolbox:
    """Tools by their names. Immutable: `with_tools` makes another one."""

    tools: MappingProxyType[str, type[Tool]]  # by name, without aliases, in the order they are described
    aliases: MappingProxyType[str, str]  # other names models know, and what they mean

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.tools)

    def __contains__(self, name: str) -> bool:
        return self.canonical(name) in self.tools

    def __iter__(self) -> Iterator[type[Tool]]:
        return iter(self.tools.values())

    def canonical(self, name: str) -> str:
        """What a name means: `write_file` is `write_to_file`; what servers leave around one does not count."""
        for each in (name, _AROUND.sub("", name.strip()).strip()):
            if (found := self.aliases.get(each, each)) in self.tools:
                return found
        return name

    def group(self, name: str) -> Group | None:
        """The group of a tool; None for one that does not exist."""
        tool = self.tools.get(self.canonical(name))
        return tool.group if tool else None

    def schemas(self, names: Iterable[str] | None = None) -> tuple[ToolSchema, ...]:
        """What a model is told of these tools, under the names given; of all, without one."""
        return tuple(
            _schema(self.tools[self.canonical(name)], name) for name in (self.names if names is None else names)
        )

    def decode(self, name: str, arguments: str, offered: Iterable[str] | None = None) -> Tool:
        """The call a model made, from the JSON it sent; BadArguments, with words for it, when that can't be read."""
        if self.canonical(name) not in self.tools:
            return call_decoder.decode(self.tools, name, arguments, offered)  # which says so
        return _decoded(self, name, arguments)

    def meant(self, name: str, arguments: str) -> tuple[str, str]:
        """The same for two calls that mean the same: by another name of the tool, or with a default spelt out."""
        return _meant(self, name, arguments)

    def available(self, have: Collection[Need]) -> "Toolbox":
        """The tools that can work here."""
        kept = {name: each for name, each in self.tools.items() if each.needs is None or each.needs in have}
        return replace(self, tools=MappingProxyType(kept))

    def without(self, *names: str) -> "Toolbox":
        """The same without these."""
        kept = {name: each for name, each in self.tools.items() if name not in names}
        return replace(self, tools=MappingProxyType(kept))

    def with_tools(self, *more: type[Tool]) -> "Toolbox":
        """The same with others beside them, or in their place."""
        return replace(self, tools=MappingProxyType({**self.tools, **{each.name: each for each in more}}))


@lru_cache(4)  # to be made, and to be compared with others
def _decoded(box: Toolbox, name: str, arguments: str) -> Tool:
    return call_decoder.decode(box.tools, box.canonical(name), arguments)


@lru_cache(4)  # asked before a call and after it
def _meant(box: Toolbox, name: str, arguments: str) -> tuple[str, str]:
    try:
        tool = box.decode(name, arguments)
        return tool.name, f"sha256:{sha256(msgspec.json.encode(tool)).hexdigest()}"
    except (BadArguments, ValueError, TypeError):  # broken, or of a kind that can't be written: as it is
        return box.canonical(name), arguments


@cache
def toolbox() -> Toolbox:
    """Every tool there is."""
    return Toolbox(MappingProxyType({each.name: each for each in TOOLS}), MappingProxyType(ALIASES))


@cache
def _schema(tool: type[Tool], name: str) -> ToolSchema:
    return ToolSchema(name=name, description=tool.description, parameters=parameters(tool))


GROUP = "tarmac.tools"


@dataclass(frozen=True, slots=True)
class Installed:
    """The toolbox with the tools that were found, and a sentence about each that could not be loaded."""

    toolbox: Toolbox
    trouble: tuple[str, ...] = ()


def with_installed(box: Toolbox) -> Installed:
    """Add the tools of installed packages to `box`. One that is broken or whose name is taken is left out."""
    places = [each for each in _places() if _has_tools(each)]
    if not places:
        return Installed(box)
    from importlib.metadata import distributions  # slow to import, and most machines have no such package

    trouble: list[str] = []
    found = (each for one in distributions(path=places) for each in one.entry_points if each.group == GROUP)
    for each in sorted(found, key=lambda entry: (entry.name, entry.value)):
        try:
            tool = each.load()
            why = _wrong(box, tool)
        except Exception as error:  # a foreign module may raise anything when it is imported
            why = f"{type(error).__name__}: {error}"
        if why:
            trouble.append(f"the tool {each.name} ({each.value}) was left out: {why}")
        else:
            box = box.with_tools(tool)
    return Installed(box, tuple(trouble))


def _places() -> list[str]:
    """Where packages are installed. Not the current directory: an agent may have written there."""
    here = os.path.realpath(Path.cwd())
    return [each for each in sys.path if each and os.path.realpath(each) != here]


def _has_tools(place: str) -> bool:
    """Whether a package there has tools. Reading a few files is much faster than importlib.metadata."""
    try:
        found = [each for each in Path(place).iterdir() if each.suffix in (".dist-info", ".egg-info")]
    except OSError:
        return False
    return any(_brings(each / "entry_points.txt") for each in found)


def _brings(file: Path) -> bool:
    try:
        return f"[{GROUP}]".encode() in file.read_bytes()
    except OSError:
        return False


def _wrong(box: Toolbox, tool: object) -> str:
    if not (isinstance(tool, type) and issubclass(tool, Tool) and is_dataclass(tool)):
        return "it is not a dataclass derived from tarmac.tools.tool.Tool"
    if tool.name in box:
        return f"there already is a tool {tool.name}"
    if tool.group not in get_args(Group):
        return f"its group is {tool.group!r}, not one of {', '.join(get_args(Group))}"
    parameters(tool)  # raises for fields that have no schema
    return ""
