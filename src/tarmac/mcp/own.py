"""Tools that only other programs need: a model of ours is told of its terminals, and of the policy's word, anyway."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta

from tarmac.errors import TarmacError, ToolFailed
from tarmac.tools import terminal_access, terminal_status
from tarmac.tools.execute_command import short
from tarmac.tools.persistent_terminal import ID, SPELLINGS, OpenPersistentTerminal
from tarmac.tools.read_terminal import ReadTerminal
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
        "Interrupt the command that runs in a terminal: Ctrl-C, then by force if it does not heed. The terminal stays. "
        "The result has what it printed last."
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
    description: ClassVar[str] = ReadTerminal.description.removesuffix(" Without an id: which there are.")

    id: Annotated[str, Meta(min_length=1, description=ID)]  # list_terminals lists them


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTerminal(OpenPersistentTerminal):
    stay: Annotated[
        bool, Meta(description="Keep it when this client disconnects, where the server goes on (HTTP).")
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckCommand(Tool):
    name: ClassVar[str] = "check_command"
    group: ClassVar[Group] = "command"
    description: ClassVar[str] = (
        "What would happen to a command, without running it: allowed, asked about or denied, how dangerous it is, why, "
        "and what it would do, part by part."
    )

    command: Annotated[str, Meta(min_length=1, description="The command line.")]
    cwd: Annotated[str, Meta(description="Where it would run. Default: the workspace.")] = ""

    async def prepare(self, bench: Bench) -> Ready:
        raise NotImplementedError("the door judges it: a bench has no policy")
