"""PURE: the conversation as the model gets it, folded out of the log one fact at a time.

The log goes by *turns*: what the model said, the results of its calls, and what else was said to it before its next
word. A list of messages made of turns is always one that a provider takes: roles alternate, and every call has
exactly one result, directly after it. A call that never came back (kill −9) gets one that says so.

Condensing and rewinding change which turns count, never the log: rewinding behind a summary brings back what it hid.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from tarmac.models.messages import Image, Message, Part, Reasoning, Text, ToolResult, ToolUse
from tarmac.tasks.events import (
    HistoryCondensed,
    HistoryRewound,
    MessageDelivered,
    MessageQueued,
    ModelSaid,
    ModelTold,
    RecordLost,
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


@dataclass(slots=True)
class _Turn:
    """An answer of the model (of none: what was said before its first word), and what followed it."""

    seq: int
    said: tuple[Part, ...] = ()
    results: dict[str, tuple[int, ToolResult]] = field(default_factory=dict)
    started: dict[str, int] = field(default_factory=dict)
    rest: list[tuple[int, Part]] = field(default_factory=list)

    def calls(self) -> list[ToolUse]:
        return [part for part in self.said if isinstance(part, ToolUse)]

    def replies(self) -> tuple[Part, ...]:
        """The user's side: results first, in the order of the calls, as providers want them."""
        return (*(self._result(call) for call in self.calls()), *(part for _, part in self.rest))

    def _result(self, call: ToolUse) -> ToolResult:
        if call.id in self.results:
            return self.results[call.id][1]
        why = INTERRUPTED if call.id in self.started else NOT_RUN
        return ToolResult(call.id, (Text(why),), failed=True)

    def until(self, seq: int) -> "_Turn":
        """As it was when the fact `seq` was the last."""
        return _Turn(
            self.seq,
            self.said,
            {call: found for call, found in self.results.items() if found[0] <= seq},
            {call: when for call, when in self.started.items() if when <= seq},
            [each for each in self.rest if each[0] <= seq],
        )


class ModelHistory:
    """The fold, as it grows. `add` costs the same at any length."""

    def __init__(self) -> None:
        self.seq = 0  # of the last fact that was added
        self._turns: list[_Turn] = []
        self._settled: list[Message] = []  # the messages of all turns but the last
        self._queued: dict[str, MessageQueued] = {}
        self._hidden: list[tuple[int, list[_Turn]]] = []  # before each condensing: its number, and the turns until then

    @property
    def messages(self) -> list[Message]:
        """What to send now."""
        found = self._settled[:]
        if self._turns:
            _extend(found, self._turns[-1])
        return found

    @property
    def open_calls(self) -> list[tuple[ToolUse, bool]]:
        """The calls of the last answer that have no result, and whether each was started."""
        turn = self._turns[-1] if self._turns else _Turn(0)
        return [(call, call.id in turn.started) for call in turn.calls() if call.id not in turn.results]

    @property
    def owed(self) -> bool:
        """Whether it is the model's turn to say something."""
        turn = self._turns[-1] if self._turns else _Turn(0)
        return bool(turn.replies())

    def add(self, event: TaskEvent) -> None:
        """The next fact of the log."""
        self.seq += 1
        match event:
            case ModelSaid(parts=parts):
                if said := tuple(part for part in parts if not isinstance(part, Text) or part.text):
                    self._turn(_Turn(self.seq, said))
            case ToolFinished(call=call, content=content, outcome=outcome):
                self._result(ToolResult(call, content, failed=outcome != "done"))
            case ToolStarted(call=call):
                self._last().started[call] = self.seq
            case UserSaid(text=text, images=images):
                self._say(text, *map(Image, images))
            case ModelTold(text=text):
                self._say(text)
            case MessageQueued(message=message):
                self._queued[message] = event
            case MessageDelivered(message=message) if message in self._queued:
                queued = self._queued.pop(message)
                self._say(queued.text, *map(Image, queued.images))
            case HistoryCondensed(first=first, last=last, summary=summary) if 1 <= first <= last < self.seq:
                self._condense(first, last, summary)
            case HistoryRewound(to=to):
                self._rewind(to)
            case RecordLost() if not (self._turns and self._turns[-1].rest[-1:] == [(self.seq - 1, Text(LOST))]):
                self._say(LOST)

    def _last(self) -> _Turn:
        if not self._turns:
            self._turn(_Turn(self.seq))
        return self._turns[-1]

    def _turn(self, turn: _Turn) -> None:
        if self._turns:
            _extend(self._settled, self._turns[-1])
        self._turns.append(turn)

    def _say(self, text: str, *more: Part) -> None:
        words: tuple[Part, ...] = (Text(text),) if text else ()
        self._last().rest += [(self.seq, part) for part in (*words, *more)]

    def _result(self, result: ToolResult) -> None:
        turn = self._last()
        if any(call.id == result.call for call in turn.calls()) and result.call not in turn.results:
            turn.results[result.call] = (self.seq, result)
        else:  # its call is lost, or of another turn: no provider would take it as a result
            self._say("[the result of an earlier call]", *result.content)

    def _condense(self, first: int, last: int, summary: str) -> None:
        """Put the summary in the place of all that was said in those facts; a call keeps its results with it."""
        self._hidden.append((self.seq, self._turns))
        before = [turn.until(self.seq) for turn in self._turns if turn.seq < first]
        for turn in before:  # with the results of its calls, wherever they stand
            turn.rest = [each for each in turn.rest if each[0] < first]
        bridge = _Turn(first, rest=[(first, Text(summary))])
        bridge.rest += [each for turn in self._turns if turn.seq <= last for each in turn.rest if each[0] > last]
        after = [turn.until(self.seq) for turn in self._turns if turn.seq > last]
        self._rebuild([*before, bridge, *after])

    def _rewind(self, to: int) -> None:
        while self._hidden and self._hidden[-1][0] > to:
            self._turns = self._hidden.pop()[1]
        self._rebuild([turn.until(to) for turn in self._turns if turn.seq <= to])

    def _rebuild(self, turns: list[_Turn]) -> None:
        self._turns, self._settled = [], []
        for turn in turns:
            self._turn(turn)


def _extend(messages: list[Message], turn: _Turn) -> None:
    """Add a turn's messages; two of one side in a row become one."""
    _join(messages, Message("assistant", turn.said))
    _join(messages, Message("user", turn.replies()))


def _join(messages: list[Message], message: Message) -> None:
    if not message.parts:
        return
    if messages and messages[-1].role == message.role:
        message = Message(message.role, messages.pop().parts + message.parts)
    messages.append(message)


def reasoning_of(said: ModelSaid) -> str:
    """What the model thought aloud."""
    return "\n\n".join(part.text for part in said.parts if isinstance(part, Reasoning) and part.text)


def text_of(parts: Iterable[Part]) -> str:
    """The words among them."""
    return "\n\n".join(part.text for part in parts if isinstance(part, Text))
