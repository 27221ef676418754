"""The client side of ACP v1 for a hosted agent. It routes each request to its handler, and passes updates on.

elicitation/create is an agent's form. It is put to the person field by field:
{"requestedSchema": {"properties": {…}}} → a question for each → shown as a whole, if several → accept, decline, cancel

With nobody there, or a form that we don't know, it is declined. What is typed is in the task's log, as all answers are:
the protocol forbids agents to ask for secrets this way.
"""

import asyncio
import json
import secrets
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tarmac.acp.host.agent_permission import AgentPermission, HostRecorder
from tarmac.acp.host.agent_terminals import AgentTerminals
from tarmac.acp.host.parameters import (
    Object,
    object_of,
    objects_of,
    optional_number,
    present,
    text_of,
    wanted_path,
    wanted_text,
)
from tarmac.acp.host.translate import AgentRepetition, Translation, identity
from tarmac.acp.host.version_two import VersionTwo, as_v1
from tarmac.acp.rpc_peer import Refused, unknown
from tarmac.acp.wire import NOT_FOUND, Bad, Json, Response
from tarmac.errors import BadRequest, ToolDenied
from tarmac.events import CallId
from tarmac.file_system import read_bytes, save_file
from tarmac.policy.approval import Answer, AnswerKind
from tarmac.policy.verdict import ReadFile
from tarmac.tasks import events as e
from tarmac.tasks import signals as s
from tarmac.tasks.context import now
from tarmac.tasks.events import QuestionAnswered
from tarmac.tasks.questions import Questions
from tarmac.tasks.state import TaskState
from tarmac.tools.file_access import check_workspace
from tarmac.tools.tool import Done, Go, Ready, Want


@dataclass(slots=True)
class AgentFiles:
    """The files of one hosted agent."""

    state: TaskState
    permission: AgentPermission

    async def read(self, params: Object) -> Object:
        """Its text, or `limit` lines of it from `line` (from 1) on."""
        path = wanted_path(params, "path")
        target = self._behind(path)
        first, most = optional_number(params, "line"), optional_number(params, "limit")
        data: bytes | None = None

        async def act(_: Go) -> Done:
            nonlocal data
            data = await asyncio.to_thread(read_bytes, target, links=False)
            return Done(content=())

        await self._run("fs/read_text_file", f"Reading {path}", Want(action=ReadFile(path, leads_to=target)), act)
        if data is None:
            raise Refused(NOT_FOUND, f"there is no file {path}")
        text = data.decode("utf-8", "replace")
        if first is not None or most is not None:
            lines = text.splitlines(keepends=True)
            start = max(first or 1, 1) - 1
            text = "".join(lines[start : None if most is None else start + most])
        return {"content": text}

    async def write(self, params: Object) -> Object:
        """All of it or nothing; what was approved is what is written, over what was seen."""
        path, content = wanted_path(params, "path"), wanted_text_with_nul(params).encode("utf-8", "replace")
        target = self._behind(path)
        before = await asyncio.to_thread(read_bytes, target, links=False)
        want = self.permission.file_want(path, before, content)

        async def act(_: Go) -> Done:
            check_workspace(self.state.context.workspace)
            if self._behind(path) != target:
                raise ToolDenied(f"{path} now names another file")
            await asyncio.to_thread(save_file, target, content, expected=before, new=before is None, links=False)
            return Done(content=())

        await self._run("fs/write_text_file", f"Writing {path}", want, act)
        return {}

    async def _run(self, name: str, title: str, want: Want, act: Callable[[Go], Awaitable[Done]]) -> None:
        call = CallId(f"fs-{secrets.token_hex(4)}")
        ready = Ready(title=title, done=title, act=act, wants=(want,))
        await self.permission.run(call, name, ready, HostRecorder(self.state), same=want)

    def _behind(self, path: Path) -> Path:
        here = self.state.context.workspace
        return self.state.context.files.look(path, cwd=here, workspace=here).path


def wanted_text_with_nul(params: Object) -> str:
    """Of a file, any text."""
    value = params.get("content")
    return value if isinstance(value, str) else wanted_text(params, "content")


CAPABILITIES: Final = {
    "fs": {"readTextFile": True, "writeTextFile": True},
    "terminal": True,
    "elicitation": {"form": {}},
    "_meta": {"terminal_output": True},  # we show terminals of the agent's own
}


class AgentClient:
    """The handler of the connection to one agent."""

    def __init__(self, state: TaskState, questions: Questions, show: Callable[[e.TaskEvent | s.Signal], None]) -> None:
        self._show = show
        self.repetition = AgentRepetition(state.context.settings.limits.max_repetitions)
        self.permission = AgentPermission(state, questions)
        self.files = AgentFiles(state, self.permission)
        self.terminals = AgentTerminals(
            state, self.permission, show, lambda command: self.updates.adopt(command), self.repetition
        )
        self.forms = Forms(state, questions)
        self.updates = Translation(self.terminals.__contains__, self.repetition)
        self.version_two: VersionTwo | None = None  # while the agent speaks the draft
        self.idle = asyncio.Event()  # version 2: the session's turn is over
        self.spun = asyncio.Event()  # it makes one call of its own again and again
        self.agent = "the agent"  # what it calls itself
        self._deaf = False
        self._served = 0  # requests of its that we have not answered yet
        self.heard = time.monotonic()  # when it said something
        self.nonsense = 0  # lines that were no message
        self.first_nonsense = ""

    @property
    def silence(self) -> float:
        """Seconds since the agent last said something; 0 while it waits for an answer of ours."""
        return 0.0 if self._served else time.monotonic() - self.heard

    async def requested(self, method: str, params: Json) -> Json:
        self._served += 1
        try:
            return await self._serve(method, params)
        finally:
            self._served -= 1
            self.heard = time.monotonic()

    async def _serve(self, method: str, params: Json) -> Json:
        given = object_of(params)
        match method:
            case "session/request_permission":
                given = as_v1(given)
                call = object_of(given.get("toolCall"))
                id = text_of(call.get("toolCallId"))
                facts = self.updates.call(id, at=now()).asked(present(call)) if id else call
                return await self.permission.requested(given, facts, again=self.repetition.stuck(*identity(facts)))
            case "fs/read_text_file":
                return await self.files.read(given)
            case "fs/write_text_file":
                return await self.files.write(given)
            case "terminal/create":
                return await self.terminals.create(given)
            case "terminal/output":
                return self.terminals.output(given)
            case "terminal/wait_for_exit":
                return await self.terminals.wait(given)
            case "terminal/kill":
                return await self.terminals.kill(given)
            case "terminal/release":
                return await self.terminals.release(given)
            case "elicitation/create":
                return await self.forms.requested(given, self.agent, asks=self.permission.turn == "running")
        raise unknown(method)

    def notified(self, method: str, params: Json) -> None:
        self.heard = time.monotonic()
        if method == "session/update" and not self._deaf:  # of whatever session, at whatever time: there is one agent
            update = object_of(object_of(params).get("update"))
            for each in self.version_two.of(update) if self.version_two else [update]:
                self._tell(each)
            if self.version_two and self.version_two.state == "idle":
                self.idle.set()
            elif self.version_two:
                self.idle.clear()

    def odd(self, message: Bad | Response) -> None:
        if isinstance(message, Bad):
            self.nonsense += 1
            self.first_nonsense = self.first_nonsense or str(message.error.data or message.error.message)[:200]

    @contextmanager
    def deaf(self) -> Iterator[None]:
        """What it tells during this is known already."""
        self._deaf = True
        try:
            yield
        finally:
            self._deaf = False

    def begin(self) -> None:
        """A turn begins, with words of the person: what is done after them is not a repetition of what was before."""
        self.heard = time.monotonic()
        self.repetition.forget()
        self.updates.spinning = ""
        self.spun.clear()

    def cancel(self) -> None:
        """The turn is over: whatever is being asked is asked no more."""
        self.permission.cancel()
        self.forms.cancel()

    def flush(self) -> None:
        """What was said so far becomes a fact."""
        for each in self.updates.flush(at=now()):
            self._show(each)

    def _tell(self, update: Object) -> None:
        for each in self.updates.of(update, at=now()):
            self._show(each)
        if self.updates.spinning:
            self.spun.set()


MOST_FIELDS: Final = 20
LONGEST: Final = 4_000  # characters of what an agent says about a form
NO: Final = "/no"
NOTHING: Final = "-"
_DECLINED: Final[Object] = {"action": "decline"}
_CANCELLED: Final[Object] = {"action": "cancel"}


@dataclass(frozen=True, slots=True)
class Field:
    """One thing that is asked for."""

    name: str
    kind: str  # string, number, integer, boolean, array
    about: str
    choices: Mapping[str, object]  # what a person chooses → what is sent
    required: bool
    default: object

    def value(self, text: str) -> object:
        """What was typed, as the agent wants it; None: left out. BadRequest says what is wrong with it."""
        text = text.strip()
        if text == NOTHING and (not self.required or self.default is not None):
            return self.default
        if self.kind == "array":
            return [self._chosen(each.strip()) for each in text.split(",") if each.strip()]
        if self.choices:
            return self._chosen(text)
        if self.kind in ("number", "integer"):
            try:
                return int(text) if self.kind == "integer" else float(text)
            except ValueError:
                raise BadRequest(f"`{text[:40]}` is not a {'whole ' * (self.kind == 'integer')}number") from None
        return text

    def _chosen(self, text: str) -> object:
        for shown, value in self.choices.items():
            if text in (shown, value):
                return value
        if text.isdecimal() and 1 <= int(text) <= len(self.choices):
            return list(self.choices.values())[int(text) - 1]
        raise BadRequest(f"`{text[:40]}` is not one of the choices", hint=", ".join(self.choices))


class Forms:
    """The forms of one hosted agent."""

    def __init__(self, state: TaskState, questions: Questions) -> None:
        self._state = state
        self._questions = questions
        self._open: set[asyncio.Task[Object]] = set()

    def cancel(self) -> None:
        """The turn is over: nobody waits for the answer."""
        for each in list(self._open):
            each.cancel()

    async def requested(self, params: Object, agent: str, *, asks: bool) -> Object:
        """What the person answers; `asks`: they can be asked now."""
        if not asks:
            return _CANCELLED
        fields = fields_of(object_of(params.get("requestedSchema")))
        if not self._state.attended or params.get("mode", "form") != "form" or fields is None:
            return _DECLINED
        asking = asyncio.create_task(self._fill(f"{agent} asks: {text_of(params.get('message'))[:LONGEST]}", fields))
        self._open.add(asking)
        try:
            await asyncio.wait({asking})
            return _CANCELLED if asking.cancelled() else asking.result()
        finally:
            self._open.discard(asking)
            asking.cancel()

    async def _fill(self, head: str, fields: list[Field]) -> Object:
        found: Object = {}
        for field in fields:
            answered = await self._ask(head, field)
            if answered.answer is not AnswerKind.MESSAGE:
                return _CANCELLED if answered.answer is AnswerKind.SKIP else _DECLINED
            if answered.text.strip() == NO:
                return _DECLINED
            if (value := field.value(answered.text)) is not None:
                found[field.name] = value
        if len(fields) != 1:
            shown = json.dumps(found, ensure_ascii=False, indent=1)
            said = await self._questions.ask("tool", f"{head}\n\nSend this?\n{shown}", timeout=self._patience)
            if said.answer is not AnswerKind.YES:
                return _CANCELLED if said.answer is AnswerKind.SKIP else _DECLINED
        return {"action": "accept", "content": found}

    async def _ask(self, head: str, field: Field) -> QuestionAnswered:
        def check(answer: Answer) -> None:
            if answer.kind is AnswerKind.MESSAGE and answer.text.strip() != NO:
                field.value(answer.text)

        ways = [f"`{NO}`: don't answer"]
        if field.default is not None:
            ways.insert(0, f"`{NOTHING}`: {json.dumps(field.default, ensure_ascii=False)}")
        elif not field.required:
            ways.insert(0, f"`{NOTHING}`: leave it out")
        if field.kind == "array":
            ways.insert(0, "several, with commas between them")
        return await self._questions.ask(
            "followup",
            f"{head}\n\n{field.about} ({'; '.join(ways)})",
            choices=tuple(field.choices),
            timeout=self._patience,
            check=check,
        )

    @property
    def _patience(self) -> float | None:
        return self._state.context.settings.approval_timeout


def fields_of(schema: Object) -> list[Field] | None:
    """What a form asks for; None: something that can't be typed."""
    properties = object_of(schema.get("properties"))
    required = schema.get("required")
    needed = required if isinstance(required, list) else []
    if len(properties) > MOST_FIELDS:
        return None
    found = [_field(name, object_of(each), required=name in needed) for name, each in properties.items()]
    return [each for each in found if each is not None] if None not in found else None


def _field(name: str, schema: Object, *, required: bool) -> Field | None:
    kind = text_of(schema.get("type"))
    if kind not in ("string", "number", "integer", "boolean", "array"):
        return None
    choices: dict[str, object] = {"yes": True, "no": False} if kind == "boolean" else {}
    source = object_of(schema.get("items")) if kind == "array" else schema
    choices |= {text_of(each): each for each in _list(source.get("enum")) if text_of(each)}
    for each in (*objects_of(source.get("oneOf")), *objects_of(source.get("anyOf"))):
        if isinstance(value := each.get("const"), str):
            choices[text_of(each.get("title")) or value] = value
    if kind == "array" and not choices:
        return None
    about = " – ".join(filter(None, (text_of(schema.get("title")) or name, text_of(schema.get("description")))))
    return Field(name, kind, about[:LONGEST], choices, required, schema.get("default"))


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
