"""What an agent may want to do: the questions the policy answers. Plain data; nothing here acts."""

from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Literal

from tarmac.events import TerminalId

Awaiting = Literal["line", "secret", "keys", "unknown"]


@dataclass(frozen=True, slots=True)
class Execute:
    """Run a command line."""

    command: str
    _: KW_ONLY
    cwd: Path
    shell: str = "bash"  # the name or path of the shell that would read the line


@dataclass(frozen=True, slots=True)
class OpenTerminal:
    """Open a terminal that stays."""

    _: KW_ONLY
    cwd: Path
    shell: str = "bash"
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KillTerminal:
    """End a terminal and all that runs in it."""

    terminal: TerminalId
    _: KW_ONLY
    running: str | None = None  # the command that would die with it


@dataclass(frozen=True, slots=True)
class SendInput:
    """Type into a terminal where something runs."""

    text: str
    _: KW_ONLY
    foreground: str | None  # the program that would read it: "bash", "python3", "npm"; None: nobody knows
    cwd: Path  # where that program stands
    awaiting: Awaiting | None = None  # what it waits for, as the kernel says; None: it is not known to wait
    prompt: str = ""  # what it printed last, when that looks like a question
    approved: bool = False  # a person approved the command that now asks


@dataclass(frozen=True, slots=True)
class ReadFile:
    """Read a file with a tool, not with a command. `leads_to`: the file that will be opened, if that is known."""

    path: Path
    _: KW_ONLY
    leads_to: Path | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class WriteFile:
    """Make, change or delete a file with a tool; `new` None: as the disk says. `leads_to` as for ReadFile."""

    path: Path
    _: KW_ONLY
    new: bool | None = None
    deletes: bool = False
    leads_to: Path | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Connect:
    """Fetch from a host, or open its pages in a browser."""

    url: str
    _: KW_ONLY
    host: str  # with its port where that is not the usual one
    private: bool = False  # an address of this machine or of a private network


@dataclass(frozen=True, slots=True)
class UseServer:
    """Start an MCP server, or use one of its tools."""

    server: str
    _: KW_ONLY
    tool: str = ""  # "": only start it
    arguments: str = ""  # of the tool, as JSON; of a start, its command or address
    digest: str  # of what the server says about the tool, or of how it is started
    changed: bool = False  # that differs from what was used before
    allowed: bool = False  # the user's own file allows it


Action = Execute | OpenTerminal | KillTerminal | SendInput | ReadFile | WriteFile | Connect | UseServer
