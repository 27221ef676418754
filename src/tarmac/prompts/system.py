"""The system prompt: sections in SPEC S7's order, each a small pure function of the context."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from tarmac.prompts.instructions import Instructions
from tarmac.prompts.modes import Mode, Modes


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
    replacement: str | None = None  # a file's text in place of all but role and custom instructions
    several_calls: bool = True  # in one message
    images: bool = False  # the model sees them


def system_prompt(context: PromptContext) -> str:
    """The whole text."""
    raise NotImplementedError
