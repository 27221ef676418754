"""Load tools of other packages: entry points in the group `tarmac.tools`, each the class of a Tool.

[project.entry-points."tarmac.tools"]
weather = "tarmac_weather:Weather"
"""

import os
import sys
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import get_args

from tarmac.tools.tool import Group, Tool
from tarmac.tools.tool_schema import parameters
from tarmac.tools.toolbox import Toolbox

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
