"""Tools that other packages bring: entry points of the group `tarmac.tools`, each the class of a Tool (S10).

[project.entry-points."tarmac.tools"]
weather = "tarmac_weather:Weather"
"""

from dataclasses import dataclass, is_dataclass
from typing import get_args

from tarmac.tools.schema import parameters
from tarmac.tools.tool import Group, Tool
from tarmac.tools.toolbox import Toolbox

GROUP = "tarmac.tools"


@dataclass(frozen=True, slots=True)
class Installed:
    """The box with what was found, and what could not be taken, a sentence each."""

    toolbox: Toolbox
    trouble: tuple[str, ...] = ()


def with_installed(box: Toolbox) -> Installed:
    """`box` and the tools of installed packages. One that is broken, or takes a name we have, is left out and told."""
    from importlib.metadata import entry_points  # it takes its time, and most have none

    trouble: list[str] = []
    for each in sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value)):
        try:
            tool = each.load()
            why = _wrong(box, tool)
        except Exception as error:  # whatever a stranger's module does when it is imported
            why = f"{type(error).__name__}: {error}"
        if why:
            trouble.append(f"the tool {each.name} ({each.value}) was left out: {why}")
        else:
            box = box.with_tools(tool)
    return Installed(box, tuple(trouble))


def _wrong(box: Toolbox, tool: object) -> str:
    if not (isinstance(tool, type) and issubclass(tool, Tool) and is_dataclass(tool)):
        return "it is no dataclass made from tarmac.tools.tool.Tool"
    if tool.name in box:
        return f"there is a {tool.name} already"
    if tool.group not in get_args(Group):
        return f"its group is {tool.group!r}, not one of {', '.join(get_args(Group))}"
    parameters(tool)  # raises for fields that have no schema
    return ""
