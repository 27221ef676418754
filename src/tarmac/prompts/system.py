"""The system prompt: sections in SPEC S7's order, each a small pure function of the context.

system_prompt(context) → role · formatting · tool use · tools · guidelines · MCP servers · capabilities · modes ·
rules · system information · objective · custom instructions

The words are in `sections.py` (what there is), `rules.py` (how to behave) and `custom.py` (what people added). None of
them names a tool that is not in `context.tools`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from tarmac.prompts.instructions import Instructions
from tarmac.prompts.modes import Mode, Modes
from tarmac.prompts.replacement import Replacement


class DescribedTool(Protocol):
    """What the prompt says of a tool; `models.provider.ToolSchema` is one."""

    @property
    def name(self) -> str: ...

    @property
    def description(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemFacts:
    """The machine."""

    os: str  # "Linux 6.8"
    shell: str  # "bash"
    home: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFacts:
    """An MCP server that is connected."""

    name: str
    instructions: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptContext:
    """All that the prompt depends on. No time, no cost: the same text from turn to turn is one a provider can cache."""

    mode: Mode
    modes: Modes
    tools: Sequence[DescribedTool]  # those of the mode that are available here; no other is named
    workspace: Path
    system: SystemFacts
    instructions: Instructions = field(default_factory=Instructions)
    global_instructions: str = ""  # the user's, from the configuration
    language: str = ""
    servers: Sequence[ServerFacts] = ()
    replacement: Replacement | None = None  # in place of all but role and custom instructions
    several_calls: bool = True  # in one message
    images: bool = False  # the model sees them

    def has(self, *names: str) -> list[str]:
        """Those of the tools that are here, in this order."""
        here = {each.name for each in self.tools}
        return [name for name in names if name in here]


def system_prompt(context: PromptContext) -> str:
    """The whole text."""
    from tarmac.prompts import custom, rules, sections
    from tarmac.prompts.replacement import filled

    if context.replacement:
        values = {
            "workspace": str(context.workspace),
            "mode": context.mode.slug,
            "language": context.language,
            "shell": context.system.shell,
            "os": context.system.os,
            "tools": sections.tool_list(context),
        }
        theirs = context.replacement.theirs
        label = "" if theirs else f"(What follows is from {context.replacement.name} in the workspace.)\n\n"
        middle = [label + filled(context.replacement.text, values)]
    else:
        middle = [
            sections.formatting(context),
            rules.tool_use(context),
            sections.tool_list(context),
            rules.guidelines(context),
            sections.servers(context),
            sections.capabilities(context),
            sections.modes(context),
            rules.rules(context),
            sections.system_information(context),
            rules.objective(context),
        ]
    return "\n\n".join(text for text in [sections.role(context), *middle, custom.custom_instructions(context)] if text)
