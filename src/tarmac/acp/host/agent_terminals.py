"""terminal/* of ACP v1: commands that a hosted agent wants to run. They are judged, and run in our pool.

create ─ judged, asked ─ started → id        kill: SIGTERM → grace → SIGKILL for all it started; the id stays
output: the last bytes, whole characters     release: killed, closed; the id is gone, waiting calls return

The protocol leaves some points open. Without `args`, `command` is a line for bash. With `args`, each word is a word.
Commands have pipes, not a PTY, and their input is at its end. Both output streams are one. A command ends with its
process, even if another process still holds its pipe.
"""

import asyncio
import json
import os
import shlex
import shutil
import signal
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tarmac.acp.host.agent_permission import AgentPermission, HostRecorder
from tarmac.acp.host.parameters import Object, object_of, optional_number, text_of, wanted_path, wanted_text
from tarmac.acp.host.translate import AgentCall, AgentRepetition
from tarmac.acp.rpc_peer import Refused
from tarmac.acp.wire import DENIED, INVALID_PARAMS, INVALID_REQUEST, NOT_FOUND
from tarmac.calls.pipeline import Call, CallResult
from tarmac.errors import TarmacError
from tarmac.events import TerminalId
from tarmac.models.messages import Text
from tarmac.policy import Execute
from tarmac.policy.plan import environment
from tarmac.tasks import events as e
from tarmac.tasks import signals as s
from tarmac.tasks.context import now
from tarmac.tasks.repetition import STUCK
from tarmac.tasks.state import TaskState
from tarmac.terminals.execution import Execution
from tarmac.terminals.plans import start_plan
from tarmac.terminals.process import signals
from tarmac.terminals.terminal import Terminal
from tarmac.tools.execute_command import allowed_plan, short
from tarmac.tools.tool import Done, Go, Ready, Want

MOST_OPEN: Final = 32
MOST_BYTES: Final = 4 << 20  # of an output that has no limit: what is sent must end
MOST_LOGGED: Final = 16_000  # characters of it in the task's log
GRACE: Final = 1.0  # seconds between SIGTERM and SIGKILL
_NAME: Final = "terminal/create"
_SHELLS: Final = ("sh", "bash", "/bin/sh", "/bin/bash", "/usr/bin/sh", "/usr/bin/bash")


@dataclass(slots=True)
class _Open:
    id: str
    command: str
    execution: Execution
    terminal: Terminal | None  # None: a plan, which has none
    owns: AsyncExitStack
    limit: int | None = None
    began: float = field(default_factory=time.monotonic)
    shown: "asyncio.Task[None] | None" = None
    call: e.CallId = field(default_factory=lambda: e.CallId(""))  # whose end is told
    title: str = ""  # the command, as it is shown
    identity: tuple[str, str] = ("", "")  # the command as a value


class _TerminalRecorder(HostRecorder):
    """Records a command that we run for the agent: under the agent's own call for it, if there is one."""

    def __init__(self, state: TaskState, adopt: Callable[[str], AgentCall | None], inner: str) -> None:
        super().__init__(state)
        self._adopt = adopt
        self._inner = inner
        self.call = e.CallId("")
        self.title = ""

    async def started(self, call: Call, ready: Ready, go: Go) -> None:
        """On disk before it runs, unless the agent told it already."""
        command = go.command or ready.command or ""
        theirs = self._adopt(self._inner or command)
        self.call = e.CallId(theirs.id) if theirs is not None and theirs.started else call.id
        self.title = short(self._inner if theirs is not None and self._inner else command)
        if theirs is not None and theirs.started:
            return  # it is on the screen
        title = f"Running `{self.title}`"
        started = e.ToolStarted(at=now(), call=self.call, name=call.name, title=title, command=command, cwd=ready.cwd)
        await self.state.append(started)

    def finished(self, call: Call, result: CallResult) -> None:
        """The end of a command that was started is told by who follows it."""
        if result.outcome == "failed" and self.call:
            title = f"Running `{self.title}`"
            self.state.add(
                e.ToolFinished(
                    at=now(), call=self.call, name=call.name, outcome="failed", content=result.content, title=title
                )
            )
        else:
            super().finished(call, result)


class AgentTerminals:
    """Those of one hosted agent."""

    def __init__(
        self,
        state: TaskState,
        permission: AgentPermission,
        show: Callable[[e.TaskEvent | s.Signal], None],
        adopt: Callable[[str], AgentCall | None],
        repetition: AgentRepetition,
    ) -> None:
        """`adopt`: the agent's own call for a command, which is ours to tell from then on."""
        self._adopt = adopt
        self._repetition = repetition
        self._state = state
        self._permission = permission
        self._show = show
        self._open: dict[str, _Open] = {}
        self._known: set[str] = set()
        self._numbers = 0
        self._starting = 0

    def __contains__(self, id: str) -> bool:
        """Whether it is, or was, one of these."""
        return id in self._known

    async def create(self, params: Object) -> Object:
        """Start it; the id."""
        line = command_line(params)
        cwd = wanted_path(params, "cwd") if params.get("cwd") is not None else self._state.context.workspace
        if not cwd.is_dir():
            raise Refused(INVALID_PARAMS, f"there is no directory {cwd}")
        limit = optional_number(params, "outputByteLimit")
        if len(self._open) + self._starting >= MOST_OPEN:
            raise Refused(INVALID_REQUEST, f"{MOST_OPEN} terminals are open: release some first")
        if self._repetition.stuck(*_identity(line, cwd)):
            note = f"not run, as the agent goes in circles: {short(line)}"
            self._state.add(e.Noted(at=now(), what="notice", text=note))
            raise Refused(DENIED, STUCK.format(name=_NAME))
        self._numbers += 1
        id = f"term-{self._numbers}"
        inner = handed_line(params)
        recorder = _TerminalRecorder(self._state, self._adopt, inner)

        async def act(go: Go) -> Done:
            opened = await self._start(id, go.command if go.command is not None else line, cwd, go)
            opened.limit, opened.call, opened.title = limit, recorder.call, recorder.title
            opened.identity = _identity(line, cwd)
            self._open[id] = opened
            self._known.add(id)
            opened.shown = asyncio.create_task(self._follow(opened))
            return Done(content=())

        title = f"Running `{short(line)}`"
        want = Want(action=Execute(line, cwd=cwd))
        ready = Ready(title=title, done=title, act=act, wants=(want,), command=line, cwd=cwd)
        same = Want(action=Execute(inner, cwd=cwd)) if inner else None
        self._starting += 1
        try:
            await self._permission.run(e.CallId(id), _NAME, ready, recorder, same=same)
        finally:
            self._starting -= 1
        return {"terminalId": id}

    async def _start(self, id: str, command: str, cwd: Path, go: Go) -> _Open:
        """By its plan if nobody was asked; else in bash, on pipes."""
        plan, registry = allowed_plan(go), self._state.context.registry
        async with AsyncExitStack() as stack:
            terminal: Terminal | None = None
            if plan is not None:
                env = environment(os.environ, workspace=self._state.context.workspace)
                execution = await stack.enter_async_context(
                    start_plan(plan, command=command, environment=env, settings=registry.settings)
                )
            else:
                terminal = await registry.open(
                    name=id, cwd=cwd, shell="bash", provider="exec", task=self._state.context.task
                )
                stack.push_async_callback(registry.kill, terminal.id)
                execution = await terminal.start(command)
                execution.close_input()
            return _Open(id, command, execution, terminal, stack.pop_all())

    def output(self, params: Object) -> Object:
        """What it printed, the last part of it, and how it ended if it has."""
        found = self._find(params)
        text, truncated = last_part(found.execution, found.limit)
        answer: Object = {"output": text, "truncated": truncated}
        if found.execution.ending is not None:
            answer["exitStatus"] = exit_status(found.execution)
        return answer

    async def wait(self, params: Object) -> Object:
        """How it ended, once it has; released meanwhile, it ends by that."""
        found = self._find(params)
        while not await found.execution.ended(3600.0):
            pass
        return exit_status(found.execution)

    async def kill(self, params: Object) -> Object:
        """End it; the id stays."""
        await self._end(self._find(params))
        return {}

    async def release(self, params: Object) -> Object:
        """End it and forget it."""
        found = self._find(params)
        del self._open[found.id]
        await self._close(found)
        return {}

    async def aclose(self) -> None:
        """End all of them."""
        mine, self._open = list(self._open.values()), {}
        await asyncio.gather(*map(self._close, mine), return_exceptions=True)

    def _find(self, params: Object) -> _Open:
        id = wanted_text(params, "terminalId")
        found = self._open.get(id)
        if found is None:
            raise Refused(NOT_FOUND, f"there is no terminal {id[:100]!r}", {"terminalId": id[:100]})
        return found

    async def _end(self, found: _Open) -> None:
        if not found.execution.running:
            return
        terminal = found.terminal
        if terminal is not None:
            await signals.end(lambda: terminal.tree(own=True), grace=GRACE)
        if found.execution.running:
            await found.execution.kill()

    async def _close(self, found: _Open) -> None:
        try:
            await self._end(found)
            if found.shown is not None:
                await asyncio.wait({found.shown}, timeout=2)
        finally:
            await found.owns.aclose()

    async def _follow(self, found: _Open) -> None:
        """Show it as it grows, and tell its end."""
        call = found.call
        terminal = TerminalId(found.terminal.id if found.terminal else found.id)
        try:
            async for piece in found.execution.follow():
                if isinstance(piece, bytes):
                    self._show(s.OutputStreamed(call=call, terminal=terminal, data=piece))
        except TarmacError:
            pass
        text, _ = last_part(found.execution, MOST_LOGGED)
        status = exit_status(found.execution)
        told = f" ({status['signal']})" if status["signal"] else ""
        code = found.execution.ending.exit_code if found.execution.ending else None
        self._repetition.finished(*found.identity, text=text, exit_code=code, outcome=str(status["signal"]))
        self._show(
            e.ToolFinished(
                at=now(),
                call=call,
                name=_NAME,
                outcome="done",
                content=(Text(text),),
                title=f"Ran `{found.title}`{told}",
                seconds=time.monotonic() - found.began,
                exit_code=code,
            )
        )


def _identity(line: str, cwd: Path) -> tuple[str, str]:
    """A command as a value."""
    return _NAME, json.dumps([line, str(cwd)])


def last_part(execution: Execution, limit: int | None) -> tuple[str, bool]:
    """At most so many bytes of its output, the last ones, from a whole character on; whether some are missing."""
    most = MOST_BYTES if limit is None else min(limit, MOST_BYTES)
    end = execution.spool.end
    start, data = execution.spool.read(max(end - most, 0), most) if most else (end, b"")
    while start + len(data) < end and most:  # a hole: what is kept behind it
        start, data = execution.spool.read(start + len(data), most)
    text, cut = whole_characters(data, most, middle=start > 0)
    return text, start > 0 or cut


def whole_characters(data: bytes, most: int, *, middle: bool) -> tuple[str, bool]:
    """Text that has at most `most` bytes; with `middle` it may begin in the middle of a character, which goes."""
    if middle:
        rest = next((n for n, byte in enumerate(data[:4]) if byte & 0xC0 != 0x80), None)
        if rest is not None or len(data) < 4:  # four of them in a row don't end a character: this is not text
            data = data[rest:] if rest is not None else b""
    text = data.decode("utf-8", "replace")
    encoded = text.encode()
    if len(encoded) <= most:
        return text, False
    return encoded[len(encoded) - most :].decode("utf-8", "ignore"), True  # what was no text is longer as U+FFFD


def exit_status(execution: Execution) -> Object:
    """The exit code, or the signal."""
    ending = execution.ending
    if ending is None:
        return {"exitCode": None, "signal": None}
    if ending.signal:
        try:
            return {"exitCode": None, "signal": signal.Signals(ending.signal).name}
        except ValueError:
            return {"exitCode": None, "signal": f"SIG{ending.signal}"}
    return {"exitCode": ending.exit_code, "signal": None}


def command_line(params: Object) -> str:
    """The line that bash will read, with the variables in front: a person sees all of it."""
    command = wanted_text(params, "command")
    args = params.get("args") or []
    if not isinstance(args, list) or not all(isinstance(each, str) and "\0" not in each for each in args):
        raise Refused(INVALID_PARAMS, "`args` must be a list of texts")
    if not command.strip():
        raise Refused(INVALID_PARAMS, "`command` is empty")
    alone = not args
    if alone and " " in command and "/" in command and shutil.which(command):
        alone, command = False, shlex.quote(command)  # one program, with a blank in its path
    elif args:
        command = " ".join(map(shlex.quote, [command, *args]))
    variables = params.get("env") or []
    if not isinstance(variables, list):
        raise Refused(INVALID_PARAMS, "`env` must be a list of names and values")
    pairs: list[str] = []
    for each in map(object_of, variables):
        name, value = text_of(each.get("name")), text_of(each.get("value"))
        if not name.isidentifier() or not name.isascii() or "\0" in value:
            raise Refused(INVALID_PARAMS, f"{name[:80]!r} is not the name of a variable")
        pairs.append(f"{name}={shlex.quote(value)}")
    if not pairs:
        return command
    return f"export {' '.join(pairs)}; {command}" if alone else f"{' '.join(pairs)} {command}"


def handed_line(params: Object) -> str:
    """The line behind `/bin/sh -lc LINE`: an agent that asked for LINE may run it that way (fast-agent does)."""
    args = params.get("args")
    if params.get("command") not in _SHELLS or params.get("env") or not isinstance(args, list) or len(args) != 2:
        return ""
    return text_of(args[1]) if args[0] in ("-c", "-lc") else ""
