"""A model that plays a file: for the demonstration, for tests, and for trying a door without a key.

Each request plays the next turn of the script (see `script.py` for what is in one). It reads nothing of what it is
asked, and says that it is a script: `info.scripted`, "scripted/NAME".
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Iterator
from uuid import uuid4

from tarmac.models.messages import Part, Reasoning, Text, ToolUse
from tarmac.models.provider import (
    Answer,
    CallDelta,
    Chunk,
    Load,
    ModelError,
    Prompt,
    ReasoningDelta,
    TextDelta,
)
from tarmac.models.script import Script, Turn


class Scripted:
    """Plays its turns, one a request. One for each task: it remembers how far it has come."""

    def __init__(self, script: Script) -> None:
        self.info = script.info
        self.turns = tuple(turn for turn in script.turns for _ in range(turn.times))
        self._next: int | None = None  # None: not asked yet

    async def stream(self, prompt: Prompt, *, load: Load) -> AsyncGenerator[Chunk, None]:
        """The next turn. The first request skips what the conversation has already: so a task can be resumed."""
        if self._next is None:
            said = sum(message.role == "assistant" for message in prompt.messages)
            after = [0, *(at + 1 for at, turn in enumerate(self.turns) if turn.error is None)]
            self._next = after[said] if said < len(after) else len(self.turns)
        if self._next >= len(self.turns):
            raise ModelError(
                f"the script {self.info.name} has no turn left: it has {len(self.turns)}", kind="bad_request"
            )
        turn = self.turns[self._next]
        self._next += 1
        await asyncio.sleep(turn.delay)
        parts: list[Part] = []
        index = 0
        for part in _parts(turn):
            for piece in _pieces(part, turn.pace):
                if turn.pace:
                    await asyncio.sleep(turn.pace)
                match part:
                    case Reasoning():
                        yield ReasoningDelta(piece)
                    case ToolUse():
                        yield CallDelta(index, part.id, part.name, piece)
                    case _:
                        yield TextDelta(piece)
            index += isinstance(part, ToolUse)
            parts.append(part)
        if (error := turn.error) is not None:
            raise ModelError(
                error.what,
                kind=error.kind,
                status=error.status,
                retry_after=error.retry_after,
                received=tuple(parts),
                usage=turn.usage,
            )
        yield Answer(tuple(parts), turn.stop, turn.usage)

    async def aclose(self) -> None:
        """Nothing to let go of."""


def _parts(turn: Turn) -> Iterator[Part]:
    if turn.reasoning:
        yield Reasoning(turn.reasoning)
    if turn.text:
        yield Text(turn.text)
    for call in turn.calls:
        yield ToolUse(call.id or f"call_{uuid4().hex[:16]}", call.name, call.arguments)


def _pieces(part: Part, pace: float) -> list[str]:
    text = part.arguments if isinstance(part, ToolUse) else part.text if isinstance(part, Text | Reasoning) else ""
    pieces = re.findall(r"\s*\S+\s*", text) if pace and not text.isspace() else [text]
    return ["", *pieces] if isinstance(part, ToolUse) else pieces
