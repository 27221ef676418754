"""The tool wait_for_terminal: wait until a command ends, prints a match, opens a port, wants input, or is quiet."""

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

from msgspec import Meta

from tarmac.errors import BadArguments, TarmacError, ToolFailed
from tarmac.tools import terminal_access, terminal_status
from tarmac.tools.boundary import fenced, untagged
from tarmac.tools.execute_command import Seconds, wants_secret
from tarmac.tools.persistent_terminal import SPELLINGS
from tarmac.tools.read_terminal import text_pattern
from tarmac.tools.report import duration
from tarmac.tools.tool import Bench, Done, Go, Group, Ready, Tool

if TYPE_CHECKING:
    from tarmac.terminals.input.wait_conditions import Conditions, Happened

Port = Annotated[int, Meta(ge=1, le=65535)]


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitForTerminal(Tool):
    name: ClassVar[str] = "wait_for_terminal"
    group: ClassVar[Group] = "command"
    description: ClassVar[str] = (
        "Wait until the command in a terminal ends, or until one of the other conditions that you give holds. The "
        "result says what happened and has the new output. Use this instead of sleeping or polling."
    )
    spellings: ClassVar[Mapping[str, str]] = SPELLINGS

    id: Annotated[str, Meta(description="The terminal's id. Default: all busy terminals of this task.")] = ""
    pattern: Annotated[str, Meta(description="Until its output matches this regular expression.")] = ""
    port: Annotated[Port | None, Meta(description="Until it listens on this TCP port.")] = None
    any_port: Annotated[bool, Meta(description="Until it listens on any TCP port.")] = False
    input: Annotated[bool, Meta(description="Until it waits for input.")] = True
    quiet: Annotated[Seconds | None, Meta(description="Until it has printed nothing for this many seconds.")] = None
    timeout: Annotated[Seconds | None, Meta(description="Seconds to wait at most. Default: 30.")] = None

    async def prepare(self, bench: Bench) -> Ready:
        if self.id.strip():
            ids = [terminal_access.own(bench, self.id).id]
        else:
            ids = [each.id for each in terminal_access.visible_to(bench) if each.busy and each.task == bench.task]
            if not ids:
                raise ToolFailed(f"No terminal of this task is busy. {terminal_access.known(bench)}")
        conditions = self._conditions(bench)

        async def act(_: Go) -> Done:
            busy = [each for each in ids if terminal_access.readable(bench, each).busy]
            if not busy and not {"pattern", "port", "quiet"} & conditions.keys():
                looks = [await terminal_status.look(terminal_access.readable(bench, each)) for each in ids]
                past = terminal_access.readable(bench, ids[0]).history
                ended = {"what": "ended", "after": 0, **({"exit_code": past[-1].exit_code} if past else {})}
                over = {"terminal": looks[0].facts, "happened": ended}
                return Done.text(
                    "\n".join(each.text for each in looks),
                    details=over,
                    output="".join(each.output for each in looks),
                )
            current = [terminal_access.readable(bench, each).current for each in busy]
            asked = bench.secrets and any(each is not None and wants_secret(each) for each in current)
            try:
                with bench.secrets() if bench.secrets and asked else nullcontext():
                    happened = await bench.registry.waiting_for(*ids, **conditions)
            except (ToolFailed, BadArguments):
                raise
            except TarmacError as error:
                raise ToolFailed(error.what, hint=error.hint) from None
            terminal = terminal_access.readable(bench, happened.terminal)
            found = await terminal_status.look(terminal)
            details = {"terminal": found.facts, "happened": _facts(happened)}
            return Done.text(
                f"{_told(happened)}\n{found.text}",
                details=details,
                essence=f"{happened.what} {untagged(found.text)}",
                output=found.output,
            )

        names = ", ".join(ids)
        return Ready(title=f"Waiting for {names}", done=f"Waited for {names}", act=act)

    def _conditions(self, bench: Bench) -> "Conditions":
        limit = bench.settings.wait_timeout if self.timeout is None else self.timeout
        made: Conditions = {"timeout": min(limit, bench.settings.longest_timeout), "input": self.input}
        if bench.secrets:  # the person types them, so the wait goes on
            made["secrets"] = False
        if self.pattern:
            made["pattern"] = text_pattern(self.pattern)
        if self.port is not None:
            made["port"] = self.port
        elif self.any_port:
            made["port"] = True
        if self.quiet is not None:
            made["quiet"] = self.quiet
        return made


def _facts(happened: "Happened") -> dict[str, object]:
    facts: dict[str, object] = {"what": happened.what, "after": round(happened.after, 3), "text": happened.text}
    more = {"exit_code": happened.exit_code, "port": happened.port, "pid": happened.pid}
    return facts | {name: value for name, value in more.items() if value is not None}


def _told(happened: "Happened") -> str:
    after = f"after {duration(happened.after)}"
    where = f"Terminal '{happened.terminal}'"
    match happened.what:
        case "ended":
            code = "unknown" if happened.exit_code is None else str(happened.exit_code)
            return f"{where}: its command ended {after}. Exit code: {code}."
        case "pattern":
            return (
                f"{where}: it printed a match {after} (untrusted, as its output is):\n{fenced(happened.text, 'match')}"
            )
        case "input":
            prompt = f" (untrusted, as its output is):\n{fenced(happened.text, 'prompt')}" if happened.text else "."
            return f"{where}: it waits for input, {after}{prompt}"
        case "quiet":
            return f"{where}: it is quiet, {after}."
        case "port":
            return f"{where}: it listens on port {happened.port} (process {happened.pid}), {after}."
        case "closed":
            return f"{where} was closed {after}."
        case _:
            return f"{where}: none of this happened within {duration(happened.after)}."
