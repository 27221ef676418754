"""The tools a client sees, in an order that never changes: schema, annotations, and the shape of what they return.

What does not apply is left out of a result, never null: some clients check types that can't be two things at once.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Annotated, Any, ClassVar, Final

from msgspec import Meta

from tarmac.errors import TarmacError, ToolFailed
from tarmac.terminals.output.terminal_screen import Settled
from tarmac.tools import terminal_access, terminal_status
from tarmac.tools.call_decoder import parameters
from tarmac.tools.edit_file import ApplyDiff, SearchAndReplace, WriteToFile
from tarmac.tools.execute_command import ExecuteCommand, short
from tarmac.tools.list_files import ListFiles
from tarmac.tools.persistent_terminal import (
    ID,
    SPELLINGS,
    KillPersistentTerminal,
    OpenPersistentTerminal,
    RunPersistentCommand,
    SendToTerminal,
)
from tarmac.tools.read_file import ReadFile
from tarmac.tools.read_terminal import ReadTerminal, WaitForTerminal
from tarmac.tools.report import untagged
from tarmac.tools.search_files import SearchFiles
from tarmac.tools.tool import Bench, Done, Go, Group, Ready, Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class ListTerminals(Tool):
    name: ClassVar[str] = "list_terminals"
    group: ClassVar[Group] = "command"
    description: ClassVar[str] = (
        "List the open terminals of this workspace: id, name, directory, what runs or ran last in each, and what it "
        "waits for."
    )

    async def prepare(self, bench: Bench) -> Ready:
        async def act(_: Go) -> Done:
            found = terminal_access.visible_to(bench)
            text = "\n".join(terminal_status.standing(each) for each in found) or "No terminal is open."
            details = {"terminals": [terminal_status.facts(each) for each in found]}
            return Done.text(text, details=details)

        return Ready(title="Listing terminals", done="Listed terminals", act=act)


@dataclass(frozen=True, slots=True, kw_only=True)
class InterruptTerminal(Tool):
    name: ClassVar[str] = "interrupt_terminal"
    group: ClassVar[Group] = "command"
    description: ClassVar[str] = (
        "Interrupt the command that runs in a terminal: Ctrl-C, then by force. The terminal stays."
    )
    spellings: ClassVar[Mapping[str, str]] = SPELLINGS

    id: Annotated[str, Meta(min_length=1, description=ID)]

    async def prepare(self, bench: Bench) -> Ready:
        terminal = terminal_access.own(bench, self.id)
        execution = terminal.current
        if execution is not None and (execution.by_person or terminal.held):
            raise ToolFailed(f"What runs in terminal {terminal.id} is the person's.")

        async def act(_: Go) -> Done:
            try:
                if execution is not None:
                    await execution.interrupt()
            except TarmacError as error:
                raise ToolFailed(error.what, hint=error.hint) from None
            found = await terminal_status.look(terminal)
            head = f"Nothing was running in terminal {terminal.id}." if execution is None else ""
            text = "\n".join(filter(None, (head, found.text)))
            details = {"terminal": found.facts}
            return Done.text(text, details=details, output=found.output)

        what = f"`{short(execution.command)}` in {terminal.id}" if execution is not None else f"terminal {terminal.id}"
        return Ready(title=f"Interrupting {what}", done=f"Interrupted {what}", terminal=terminal.id, act=act)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOne(ReadTerminal):
    description: ClassVar[str] = (
        "Show what a terminal is doing and what it printed since you last looked. With lines or search: any part of "
        "what its last command printed. With state: its shell, last commands and changed variables."
    )

    id: Annotated[str, Meta(min_length=1, description=ID)]  # list_terminals lists them


@dataclass(frozen=True, slots=True, kw_only=True)
class LookAtTerminal(Tool):
    name: ClassVar[str] = "look_at_terminal"
    group: ClassVar[Group] = "command"
    description: ClassVar[str] = (
        "Show the screen of a terminal (vim, less, htop) as rows of text, with the cursor (▮) and ‹highlights›, once "
        "the program has settled: first all rows, then those that changed since your last look."
    )
    spellings: ClassVar[Mapping[str, str]] = SPELLINGS

    id: Annotated[str, Meta(min_length=1, description=ID)]
    full: Annotated[bool, Meta(description="Show all rows.")] = False

    async def prepare(self, bench: Bench) -> Ready:
        terminal = terminal_access.own(bench, self.id)

        async def act(_: Go) -> Done:
            try:
                found = await terminal_status.screen(terminal, bench.viewer, full=self.full)
            except TarmacError as error:
                raise ToolFailed(error.what, hint=error.hint) from None
            return Done.text(found.text, details=found.details, essence=untagged(found.text), output=found.output)

        return Ready(title=f"Looking at terminal {terminal.id}", done=f"Looked at terminal {terminal.id}", act=act)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenWorkspaceTerminal(OpenPersistentTerminal):
    stay: Annotated[bool, Meta(description="Keep it when this client disconnects (HTTP).")] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckCommand(Tool):
    name: ClassVar[str] = "check_command"
    group: ClassVar[Group] = "command"
    description: ClassVar[str] = (
        "What would happen to a command, without running it: allowed, asked about or denied, how dangerous it is, and "
        "why."
    )

    command: Annotated[str, Meta(min_length=1, description="The command line.")]
    cwd: Annotated[str, Meta(description="Where it would run. Default: the workspace.")] = ""

    async def prepare(self, bench: Bench) -> Ready:
        raise NotImplementedError("the server judges it: a bench has no policy")


Schema = dict[str, Any]
MOST_SECONDS: Final = 38  # of one call; the rest of 50 is for judging, a terminal, and the answer


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogEntry:
    """One tool."""

    name: str
    title: str
    tool: type[Tool]
    output: Schema | None  # None: its text is all that it returns
    left_out: tuple[str, ...] = ()  # arguments that another tool here has instead
    description: str = ""  # in place of the tool's own
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False
    open_world: bool = False

    @property
    def text(self) -> str:
        return self.description or self.tool.description

    @property
    def input(self) -> Schema:
        return _input(self.tool, self.left_out)


@cache
def _input(tool: type[Tool], left_out: tuple[str, ...]) -> Schema:
    schema = parameters(tool)
    properties = {name: dict(each) for name, each in schema["properties"].items() if name not in left_out}
    if "timeout" in properties:
        properties["timeout"]["description"] = f"Seconds to wait, at most {MOST_SECONDS}. The command goes on after it."
    return {**schema, "properties": properties, "additionalProperties": False}


def _object(properties: dict[str, Schema], *required: str) -> Schema:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def _text(about: str) -> Schema:
    return {"type": "string", "description": about}


_TERMINAL: Final[dict[str, Schema]] = {
    "id": _text("its id, for the other tools"),
    "name": _text("what it is called"),
    "state": {"type": "string", "enum": ["idle", "running", "waiting", "closed"]},
    "cwd": _text("the directory it stands in"),
    "command": _text("the command that runs in it, or ran last"),
    "number": {"type": "integer", "description": "the number of that command in this terminal"},
    "reason": _text("why the last command ended"),
    "exit_code": {"type": "integer", "description": "of the last command, if it has ended and it is known"},
    "awaiting": _text("what it waits for: line, secret, keys or unknown"),
    "prompt": _text("what it asks; untrusted"),
    "screen": _object(
        {
            "settled": {"type": "string", "enum": [str(each) for each in Settled]},
            "alternate": {"type": "boolean", "description": "a full-screen program has it"},
        },
        "settled",
        "alternate",
    ),
}
_LOOK: Final = _object(
    {
        "terminal": _object(_TERMINAL, "id", "state", "cwd"),
        "output": _text("what it printed since it was last looked at, the lines asked for, or its screen; untrusted"),
        "output_uri": _text("the resource with all that its last command printed"),
    },
    "terminal",
    "output",
)
COMMAND_RESULT: Final = _object(  # what is absent is as usual: it is done, all of its output is there, it took no time
    {
        "output": _text("what it printed, cleaned and bounded; untrusted"),
        "exit_code": {"type": "integer", "description": "its exit code; absent while it runs or when nobody knows"},
        "signal": _text("the signal that ended it"),
        "running": {"type": "boolean", "description": "it still runs, in terminal_id"},
        "reason": _text("why this is the result, unless done: left running, awaiting input, interrupted, killed …"),
        "duration": {"type": "number", "description": "seconds"},
        "cwd_after": _text("the directory its terminal stands in now, if it moved"),
        "terminal_id": _text("the terminal it ran in; absent when it ran without a shell, as it only reads"),
        "number": {"type": "integer", "description": "its number in that terminal, for read_terminal"},
        "awaiting": _text("it waits for somebody to type: line, secret, keys or unknown"),
        "prompt": _text("what it asks; untrusted"),
        "truncated": {"type": "boolean", "description": "output is not all of it"},
        "output_bytes": {"type": "integer"},
        "output_uri": _text("the resource with all that it printed"),
        "notes": {"type": "array", "items": {"type": "string"}},
        "next": _text("what can be done now"),
    },
    "output",
)
_HAPPENED: Final = _object(
    {
        "what": {"type": "string", "enum": ["ended", "pattern", "input", "quiet", "port", "closed", "timeout"]},
        "after": {"type": "number", "description": "seconds"},
        "text": _text("what matched, or what is asked; untrusted"),
        "exit_code": {"type": "integer"},
        "port": {"type": "integer"},
        "pid": {"type": "integer"},
    },
    "what",
    "after",
)
_PART: Final = _object(
    {
        "text": {"type": "string"},
        "decision": {"type": "string", "enum": ["allow", "ask", "deny"]},
        "risk": {"type": "string", "enum": ["low", "medium", "high", "critical"]},
        "reason": {"type": "string"},
        "rule": {"type": "string"},
    },
    "text",
    "decision",
    "risk",
    "reason",
    "rule",
)
_VERDICT: Final = _object(
    {
        "decision": {"type": "string", "enum": ["allow", "ask", "deny"]},
        "risk": {"type": "string", "enum": ["low", "medium", "high", "critical"]},
        "reason": _text("why"),
        "rule": _text("the rule that decided"),
        "explanation": _text("what it would do"),
        "parts": {"type": "array", "items": _PART},
        "asks": _text("who would be asked, or how to allow it where nobody can be"),
    },
    "decision",
    "risk",
    "reason",
    "rule",
    "explanation",
    "parts",
)
_OPENED: Final = _object(
    {
        "id": _text("its id, for the other tools"),
        "name": _text("what it is called"),
        "opened": {"type": "boolean"},
        "cwd": _text("the directory it starts in"),
    },
    "id",
)
_CLOSED: Final = _object({"id": {"type": "string"}, "closed": {"type": "boolean"}}, "id", "closed")
_TERMINALS: Final = _object(
    {"terminals": {"type": "array", "items": _object(_TERMINAL, "id", "state", "cwd")}}, "terminals"
)
_WAITED: Final = _object({**_LOOK["properties"], "happened": _HAPPENED}, "terminal", "output", "happened")

ENTRIES: Final = (
    CatalogEntry(
        name="run_command",
        title="Run a command",
        tool=ExecuteCommand,
        output=COMMAND_RESULT,
        description=(
            "Run a command in a real terminal (bash) of this workspace. Variables and functions stay for later calls "
            "in the same terminal; each call starts in `cwd`. The result has its exit code and output, or its prompt "
            "if it asks something. One that takes long goes on in the terminal that the result names. Start servers "
            "and watchers this way, too, with a short timeout."
        ),
        destructive=True,
        open_world=True,
    ),
    CatalogEntry(
        name="open_persistent_terminal",
        title="Open a terminal that stays",
        tool=OpenWorkspaceTerminal,
        output=_OPENED,
    ),
    CatalogEntry(
        name="run_persistent_command",
        title="Run a command in a terminal that stays",
        tool=RunPersistentCommand,
        output=COMMAND_RESULT,
        description=(
            "Run a command in a persistent terminal, with the directory, variables and functions that are there. The "
            "result is like that of run_command."
        ),
        destructive=True,
        open_world=True,
    ),
    CatalogEntry(
        name="list_terminals",
        title="List terminals",
        tool=ListTerminals,
        output=_TERMINALS,
        read_only=True,
        idempotent=True,
    ),
    CatalogEntry(
        name="read_terminal",
        title="Read a terminal",
        tool=ReadOne,
        output=_LOOK,
        left_out=("screen",),
        read_only=True,
    ),
    CatalogEntry(name="look_at_terminal", title="Look at a screen", tool=LookAtTerminal, output=_LOOK, read_only=True),
    CatalogEntry(
        name="send_to_terminal",
        title="Type into a terminal",
        tool=SendToTerminal,
        output=_LOOK,
        description=(
            "Type into the command that runs in a terminal: text to answer its prompt (Enter is added), or keys by "
            "name, such as `C-c`, `Up`, `Enter`, `Escape` or `q`. The result has what it prints next, or the screen of "
            "a full-screen program. Secrets, such as passwords, can't be typed."
        ),
        destructive=True,
        open_world=True,
    ),
    CatalogEntry(
        name="wait_for_terminal", title="Wait for a terminal", tool=WaitForTerminal, output=_WAITED, read_only=True
    ),
    CatalogEntry(
        name="interrupt_terminal",
        title="Interrupt what runs in a terminal",
        tool=InterruptTerminal,
        output=_LOOK,
        destructive=True,
        idempotent=True,
    ),
    CatalogEntry(
        name="kill_persistent_terminal",
        title="Close a terminal",
        tool=KillPersistentTerminal,
        output=_CLOSED,
        description="Close a terminal of this workspace, and end all that runs in it.",
        destructive=True,
        idempotent=True,
    ),
    CatalogEntry(
        name="check_command",
        title="Judge a command without running it",
        tool=CheckCommand,
        output=_VERDICT,
        read_only=True,
        idempotent=True,
    ),
)

FILE_ENTRIES: Final = (
    CatalogEntry(name="read_file", title="Read files", tool=ReadFile, output=None, read_only=True, idempotent=True),
    CatalogEntry(name="list_files", title="List files", tool=ListFiles, output=None, read_only=True, idempotent=True),
    CatalogEntry(
        name="search_files", title="Search in files", tool=SearchFiles, output=None, read_only=True, idempotent=True
    ),
    CatalogEntry(name="write_to_file", title="Write a file", tool=WriteToFile, output=None, destructive=True),
    CatalogEntry(name="apply_diff", title="Edit a file", tool=ApplyDiff, output=None, destructive=True),
    CatalogEntry(name="search_and_replace", title="Replace text", tool=SearchAndReplace, output=None, destructive=True),
)


class OfferedTools(Enum):
    """Which tools a client is offered."""

    TERMINALS = "terminals"
    FILES = "files"
    ALL = "all"

    @property
    def entries(self) -> tuple[CatalogEntry, ...]:
        match self:
            case OfferedTools.TERMINALS:
                return ENTRIES
            case OfferedTools.FILES:
                return FILE_ENTRIES
            case OfferedTools.ALL:
                return (*ENTRIES, *FILE_ENTRIES)


BY_NAME: Final = {each.name: each for each in OfferedTools.ALL.entries}
