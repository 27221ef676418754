"""PURE: the conversation that the model gets, folded from the log one event at a time.

The log goes by *turns*: what the model said, the results of its calls, and what else was said before its next answer.
A list of messages made of turns is always valid for a provider. Roles alternate, and every call has exactly one
result, directly after it. A call that never came back (kill −9) gets a result that says so.

Folding, condensing and rewinding change what counts, never the log. Rewinding behind one of them brings back what it
hid. A summary keeps the person's own words, if it says so. Environment details are inside the last result of their
turn, unless the person spoke in it. In a user message of their own they would look like new words of the person.

`last_prompt` gives the last request whole: its messages, and the system prompt and tools from the blob that it names.

prompt_size(prompt) estimates units, about a token each. The provider's counts are exact, and calibrate the estimate
(condense.py). After one response it is usually within a few per cent for the next prompt, which has the same prefix.
Tokenizers differ from model to model, and OpenAI's downloads its tables at run time, so there is none here.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from tarmac.models.messages import Image, Message, Part, Reasoning, Text, ToolResult, ToolUse
from tarmac.models.provider import Prompt, ToolSchema
from tarmac.models.xml_calls import as_text
from tarmac.tasks.events import (
    CallId,
    HistoryCondensed,
    HistoryRewound,
    MessageDelivered,
    MessageQueued,
    ModelSaid,
    ModelTold,
    OutputsFolded,
    QuestionAnswered,
    QuestionAsked,
    RecordLost,
    RequestStarted,
    TaskEvent,
    ToolFinished,
    ToolStarted,
    UserSaid,
)

INTERRUPTED = "[interrupted: this call had been started when Tarmac was stopped; whether it took effect is not known]"
NOT_RUN = "[not run: Tarmac was stopped before this call was started]"
LOST = "[a part of this conversation is lost: its record was damaged on the disk]"


def model_messages(events: Iterable[TaskEvent]) -> list[Message]:
    """What the model is shown: a fold over the log, never a second copy of it."""
    history = ModelHistory()
    for event in events:
        history.add(event)
    return history.messages


class Remark(NamedTuple):
    """A part on the user's side that is not a result."""

    seq: int
    part: Part
    source: Literal["person", "environment", "other"] = "other"


class Finished(NamedTuple):
    """The result of a call. `seq` is the number of its fact, by which the model can ask for it."""

    seq: int
    result: ToolResult
    title: str = ""
    exit_code: int | None = None


class Spoken(NamedTuple):
    """What the person said about a call: an answer, or words with a yes or a no. It is also in the call's result."""

    seq: int
    call: str
    parts: tuple[Part, ...]


@dataclass(slots=True)
class Turn:
    """An answer of the model (of none: what was said before its first word), and what followed it."""

    seq: int
    said: tuple[Part, ...] = ()
    results: dict[str, Finished] = field(default_factory=dict)
    started: dict[str, int] = field(default_factory=dict)
    rest: list[Remark] = field(default_factory=list)
    folded: dict[str, tuple[int, str]] = field(default_factory=dict)  # results that are a line each
    spoken: list[Spoken] = field(default_factory=list)
    settled_size: float | None = None  # once another turn follows, it changes no more

    def calls(self) -> list[ToolUse]:
        return [part for part in self.said if isinstance(part, ToolUse)]

    def replies(self) -> tuple[Part, ...]:
        """The user's side: results first, in the order of the calls, as providers want them."""
        results = [self._result(call) for call in self.calls()]
        rest = self.rest
        if results and not any(each.source == "person" for each in rest):
            details = tuple(each.part for each in rest if each.source == "environment")
            last = results[-1]
            results[-1] = ToolResult(last.call, (*last.content, *details), last.failed)
            rest = [each for each in rest if each.source != "environment"]
        return (*results, *(each.part for each in rest))

    def messages(self) -> list[Message]:
        """Its messages, by themselves."""
        found: list[Message] = []
        _extend(found, self)
        return found

    @property
    def size(self) -> float:
        """In units of `models.tokens`."""
        return messages_size(self.messages()) if self.settled_size is None else self.settled_size

    def words(self) -> list[Remark]:
        """The person's own, in their order."""
        answers = [Remark(each.seq, part, "person") for each in self.spoken for part in each.parts]
        return sorted([*(each for each in self.rest if each.source == "person"), *answers], key=lambda each: each.seq)

    def _result(self, call: ToolUse) -> ToolResult:
        found = self.results.get(call.id)
        if found is None:
            why = INTERRUPTED if call.id in self.started else NOT_RUN
            return ToolResult(call.id, (Text(why),), failed=True)
        if call.id in self.folded:
            return ToolResult(call.id, (Text(self.folded[call.id][1]),), found.result.failed)
        return found.result

    def until(self, seq: int) -> "Turn":
        """As it was when the fact `seq` was the last."""
        return Turn(
            self.seq,
            self.said,
            {call: found for call, found in self.results.items() if found.seq <= seq},
            {call: when for call, when in self.started.items() if when <= seq},
            [each for each in self.rest if each.seq <= seq],
            {call: found for call, found in self.folded.items() if found[0] <= seq},
            [each for each in self.spoken if each.seq <= seq],
        )


class ModelHistory:
    """The fold, as it grows. `add` costs the same at any length."""

    def __init__(self) -> None:
        self.seq = 0  # of the last fact that was added
        self._turns: list[Turn] = []
        self._settled: list[Message] = []  # the messages of all turns but the last
        self._settled_size = 0.0  # of these, in units of `models.tokens`
        self._outputs: dict[int, ToolResult] = {}  # every result there ever was, by the number of its fact
        self._asked: dict[str, str] = {}  # the call that a question is about
        self.folded = False  # some outputs are
        self._queued: dict[str, MessageQueued] = {}
        self._hidden: list[tuple[int, list[Turn]]] = []  # before each condensing: its number, and the turns until then

    @property
    def messages(self) -> list[Message]:
        """What to send now."""
        found = self._settled[:]
        if self._turns:
            _extend(found, self._turns[-1])
        return found

    @property
    def turns(self) -> Sequence[Turn]:
        """What counts now."""
        return self._turns

    @property
    def size(self) -> float:
        """Of all messages, in units of `models.tokens`. The same effort at any length."""
        return self._settled_size + (self._turns[-1].size if self._turns else 0.0)

    def output(self, seq: int) -> ToolResult | None:
        """A result, whole, by the number of its fact."""
        return self._outputs.get(seq)

    @property
    def open_calls(self) -> list[tuple[ToolUse, bool]]:
        """The calls of the last answer that have no result, and whether each was started."""
        turn = self._turns[-1] if self._turns else Turn(0)
        return [(call, call.id in turn.started) for call in turn.calls() if call.id not in turn.results]

    @property
    def spoken_at(self) -> int:
        """The number of the last fact of the last turn in which the person said something; 0: there is none."""
        return (
            max((each.seq for each in self._turns[-1].rest if each.source == "person"), default=0) if self._turns else 0
        )

    @property
    def owed(self) -> bool:
        """Whether it is the model's turn to say something."""
        turn = self._turns[-1] if self._turns else Turn(0)
        return bool(turn.replies())

    def add(self, event: TaskEvent) -> None:
        """The next fact of the log."""
        self.seq += 1
        match event:
            case ModelSaid(parts=parts):
                if said := tuple(part for part in parts if not isinstance(part, Text) or part.text):
                    self._turn(Turn(self.seq, said))
            case ToolFinished(call=call, content=content, outcome=outcome, title=title, exit_code=code):
                self._result(Finished(self.seq, ToolResult(call, content, failed=outcome != "done"), title, code))
            case ToolStarted(call=call):
                self._last().started[call] = self.seq
            case UserSaid(text=text, images=images):
                self._say(text, *map(Image, images), source="person")
            case ModelTold(text=text, about=about):
                self._say(text, source="environment" if about == "environment" else "other")
            case MessageQueued(message=message):
                self._queued[message] = event
            case MessageDelivered(message=message) if message in self._queued:
                queued = self._queued.pop(message)
                self._say(queued.text, *map(Image, queued.images), source="person")
            case HistoryCondensed(first=first, last=last) if 1 <= first <= last < self.seq:
                self._condense(event)
            case OutputsFolded(outputs=outputs):
                self._fold({each.call: each.text for each in outputs})
            case QuestionAsked(question=question, call=about_call) if about_call:
                self._asked[question] = about_call
            case QuestionAnswered(question=question, text=text, images=images) if question in self._asked:
                self._answered(self._asked.pop(question), text, *map(Image, images))
            case HistoryRewound(to=to):
                self._rewind(to)
            case RecordLost() if not (self._turns and self._turns[-1].rest[-1:] == [Remark(self.seq - 1, Text(LOST))]):
                self._say(LOST)

    def _last(self) -> Turn:
        if not self._turns:
            self._turn(Turn(self.seq))
        return self._turns[-1]

    def _turn(self, turn: Turn) -> None:
        if self._turns:
            _extend(self._settled, self._turns[-1])
            self._turns[-1].settled_size = size = self._turns[-1].size
            self._settled_size += size
        self._turns.append(turn)

    def _say(self, text: str, *more: Part, source: Literal["person", "environment", "other"] = "other") -> None:
        words: tuple[Part, ...] = (Text(text),) if text else ()
        self._last().rest += [Remark(self.seq, part, source) for part in (*words, *more)]

    def _answered(self, call: str, text: str, *images: Part) -> None:
        words: tuple[Part, ...] = (Text(text),) if text else ()
        if words or images:
            self._last().spoken.append(Spoken(self.seq, call, (*words, *images)))

    def _result(self, finished: Finished) -> None:
        turn, result = self._last(), finished.result
        self._outputs[self.seq] = result
        if any(call.id == result.call for call in turn.calls()) and result.call not in turn.results:
            turn.results[result.call] = finished
        else:  # its call is lost, or of another turn: no provider would take it as a result
            self._say("[the result of an earlier call]", *result.content)

    def _fold(self, lines: dict[CallId, str]) -> None:
        """Each of these results is one line from here on."""
        turns = [turn.until(self.seq) for turn in self._turns]
        for turn in turns:
            found = [call for call in turn.results if call in lines]
            turn.folded |= {call: (self.seq, lines[CallId(call)]) for call in found}
        self._rebuild(turns)

    def _condense(self, event: HistoryCondensed) -> None:
        """Put the summary in the place of all that was said in those facts; a call keeps its results with it."""
        first, last = event.first, event.last
        self._hidden.append((self.seq, self._turns))
        before = [turn.until(self.seq) for turn in self._turns if turn.seq < first]
        words = [each for turn in self._turns if turn.seq <= last for each in turn.words() if first <= each.seq <= last]
        for turn in before:  # with the results of its calls, wherever they stand
            turn.rest = [each for each in turn.rest if each.seq < first]
            turn.spoken = [each for each in turn.spoken if each.seq < first]
        bridge = Turn(first, rest=[Remark(first, Text(event.summary)), *(words if event.keeps_words else ())])
        bridge.rest += [each for turn in self._turns if turn.seq <= last for each in turn.rest if each.seq > last]
        after = [turn.until(self.seq) for turn in self._turns if turn.seq > last]
        self._rebuild([*before, bridge, *after])

    def _rewind(self, to: int) -> None:
        while self._hidden and self._hidden[-1][0] > to:
            self._turns = self._hidden.pop()[1]
        self._rebuild([turn.until(to) for turn in self._turns if turn.seq <= to])

    def _rebuild(self, turns: list[Turn]) -> None:
        self._turns, self._settled, self._settled_size = [], [], 0.0
        for turn in turns:
            self._turn(turn)
        self.folded = any(turn.folded for turn in turns)


def _extend(messages: list[Message], turn: Turn) -> None:
    """Add a turn's messages; two of one side in a row become one."""
    _join(messages, Message("assistant", turn.said))
    _join(messages, Message("user", turn.replies()))


def _join(messages: list[Message], message: Message) -> None:
    if not message.parts:
        return
    if messages and messages[-1].role == message.role:
        message = Message(message.role, messages.pop().parts + message.parts)
    messages.append(message)


def text_of(parts: Iterable[Part]) -> str:
    """The words among them."""
    return "\n\n".join(part.text for part in parts if isinstance(part, Text))


def kept_prompt(prompt: Prompt, *, native_tools: bool) -> bytes:
    """System prompt and tools, as a log keeps them."""
    tools = [
        {"name": each.name, "description": each.description, "parameters": each.parameters} for each in prompt.tools
    ]
    whole = {"system": prompt.system, "native_tools": native_tools, "tools": tools}
    return json.dumps(whole, ensure_ascii=False, default=dict).encode("utf-8", "surrogatepass")


def last_prompt(events: Sequence[TaskEvent], fetch: Callable[[str], bytes | None]) -> Prompt | None:
    """The last request, whole; None when there was none. Older logs kept the tools as text."""
    asked = [at for at, event in enumerate(events) if isinstance(event, RequestStarted)]
    if not asked:
        return None
    started = events[asked[-1]]
    assert isinstance(started, RequestStarted)
    messages = tuple(model_messages(events[: asked[-1] + 1]))
    text = (fetch(started.prompt.sha256) or b"" if started.prompt else b"").decode("utf-8", "surrogatepass")
    try:
        kept = json.loads(text)
        tools = tuple(ToolSchema(each["name"], each["description"], each["parameters"]) for each in kept["tools"])
        prompt = Prompt(kept["system"], messages, tools)
        return prompt if kept["native_tools"] else as_text(prompt)
    except (ValueError, KeyError, TypeError):
        return Prompt(text, messages)


BYTES = 4.0  # of UTF-8 in a unit
IMAGE = 1_300.0  # units; what providers charge for a screenshot
FRAME = 4.0  # units around each message and part
LEAST, MOST = 0.4, 3.0  # tokens in a unit; anything else is a counting error


def prompt_size(prompt: Prompt) -> float:
    """The size of a prompt in units."""
    return text_size(prompt.system) + messages_size(prompt.messages) + tools_size(prompt.tools)


def messages_size(messages: Iterable[Message]) -> float:
    return sum(FRAME + sum(map(_part, message.parts)) for message in messages)


def tools_size(tools: Iterable[ToolSchema]) -> float:
    return sum(
        FRAME
        + text_size(tool.name)
        + text_size(tool.description)
        + text_size(json.dumps(dict(tool.parameters), default=str))
        for tool in tools
    )


def _part(part: Part) -> float:
    match part:
        case Text(text=text):
            return FRAME + text_size(text)
        case Reasoning(text=text, opaque=opaque):
            return FRAME + max(text_size(text), text_size(opaque) / 2)  # encrypted reasoning is base64
        case Image():
            return IMAGE
        case ToolUse(name=name, arguments=arguments):
            return 2 * FRAME + text_size(name) + text_size(arguments)
        case ToolResult(content=content):
            return 2 * FRAME + sum(map(_part, content))
        case _:
            return 0.0


def text_size(text: str) -> float:
    return len(text.encode("utf-8", "replace")) / BYTES
