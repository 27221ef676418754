"""elicitation/create: an agent's form, put to the person field by field; nobody there, or no form we know: declined.

{"requestedSchema": {"properties": {…}}} → a question for each → shown as a whole, if several → accept, decline, cancel

What is typed is in the task's log, as all answers are: the protocol forbids agents to ask for secrets this way.
"""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tarmac.acp.host.parameters import Object, object_of, objects_of, text_of
from tarmac.errors import BadRequest
from tarmac.policy.approval import Answer, AnswerKind
from tarmac.tasks.events import QuestionAnswered
from tarmac.tasks.questions import Questions
from tarmac.tasks.state import TaskState

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
                raise BadRequest(f"`{text[:40]}` is no {'whole ' * (self.kind == 'integer')}number") from None
        return text

    def _chosen(self, text: str) -> object:
        for shown, value in self.choices.items():
            if text in (shown, value):
                return value
        if text.isdecimal() and 1 <= int(text) <= len(self.choices):
            return list(self.choices.values())[int(text) - 1]
        raise BadRequest(f"`{text[:40]}` is none of them", hint=", ".join(self.choices))


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
