"""Keep the conversation inside the model's context window.

before a request, at 80 % of the window · /compact · the provider says "too long"
    → fold old tool outputs → else summarise the older messages → else leave them out → else fold the newest outputs

Each step is a fact in the log, so the log keeps everything and rewinding brings it back. The first message, every word
of the person and the last quarter stay. A summary that does not halve what it covers is not used. There are at most two
summaries in 20 answers, so that a conversation that can't shrink does not go in circles.
"""

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final, Literal

from tarmac.errors import BadRequest
from tarmac.models.messages import NO_USAGE, Blob, Image, Message, Text, ToolResult, Usage
from tarmac.models.model_catalog import price
from tarmac.models.provider import Completion, ModelError, Prompt
from tarmac.tasks.context import now
from tarmac.tasks.events import CallId, FoldedOutput, HistoryCondensed, OutputsFolded, RequestFailed, RequestId
from tarmac.tasks.signals import ProgressMade
from tarmac.tasks.state import TaskState
from tarmac.tasks.views.model_history import (
    LEAST,
    MOST,
    Finished,
    Turn,
    messages_size,
    prompt_size,
    text_size,
    tools_size,
)

RECENT: Final = 0.25  # of the conversation: it stays as it is
GOAL: Final = 0.6  # of the window, after condensing
SMALL: Final = 60.0  # units; a smaller output is not folded
WORTH: Final = 0.05  # of the window; folding that gains less would only spoil the provider's cache
MOST_SUMMARIES: Final = 2
ANSWERS: Final = 20  # among so many answers
MOST_REFUSALS: Final = 8  # in a row, of one request
HEAD: Final = 1_500  # characters of a new output that stay when even it must be folded
MOST_FILES: Final = 30
ASK: Final = """\
[Tarmac: the conversation is about to exceed your context window. Summarise all of the above for yourself: you will go \
on with nothing but this summary, the user's own messages and the most recent steps. Write in this order: what was \
done and decided, with reasons; the files that matter and what is in them; errors and what solved them; what was tried \
and did not work; what is left, and the very next step. Be exact with names, paths, commands and numbers. Answer with \
the summary alone, and call no tool.]"""
SUMMARY: Final = "[Summary of the earlier conversation, which was condensed to fit your context window:]"
LEFT_OUT: Final = (
    "[Tarmac: {count} earlier messages were left out, because they no longer fit your context window. "
    "Look at the files again if you need what was in them.]"
)


# What could be left out: PURE


@dataclass(frozen=True, slots=True)
class Cover:
    """The turns `start` to `end` (exclusive) that a summary can stand for."""

    start: int
    end: int
    size: float  # without the person's words, which stay
    first: int  # facts
    last: int
    words: bool  # the person said something in between


def recent(turns: Sequence[Turn]) -> int:
    """Where the last part of a conversation begins; at least its last turn."""
    sizes = [turn.size for turn in turns]
    room, start = RECENT * sum(sizes), max(0, len(turns) - 1)
    room -= sizes[start] if sizes else 0.0
    while start > 0 and sizes[start - 1] <= room:
        start -= 1
        room -= sizes[start]
    return start


def cover(turns: Sequence[Turn], end: int, *, everything: bool = False) -> Cover | None:
    """What lies between the first message and `end`; with `everything`, from the first fact on."""
    start = 0 if everything or (turns and turns[0].said) else 1
    if end >= len(turns) or start >= end:
        return None
    covered = turns[start:end]
    words = [each.part for turn in covered for each in turn.words()]
    size = sum(turn.size for turn in covered) - messages_size([Message("user", tuple(words))])
    return Cover(start, end, max(0.0, size), covered[0].seq, turns[end].seq - 1, bool(words))


def foldable(turns: Sequence[Turn], *, head: int = 0) -> list[tuple[FoldedOutput, float]]:
    """The outputs that can be one line, with the units that each would save. Words of the person are never folded."""
    found = []
    for turn in turns:
        spoken = {each.call for each in turn.spoken}
        for call in turn.calls():
            done = turn.results.get(call.id)
            if done is None or call.id in turn.folded or call.id in spoken:
                continue
            line = folded_line(call.name, done, head=head)
            saved = messages_size([Message("user", done.result.content)]) - text_size(line)
            if saved >= SMALL:
                found.append((FoldedOutput(call=CallId(call.id), text=line), saved))
    return found


def folded_line(name: str, done: Finished, *, head: int = 0) -> str:
    """One line for a result, and how to get the whole; with `head`, its first characters too."""
    text = "\n".join(part.text for part in done.result.content if isinstance(part, Text))
    images = sum(isinstance(part, Image) for part in done.result.content)
    about = [" ".join((done.title or name).split())[:160]]
    if done.exit_code is not None:
        about.append(f"exit code {done.exit_code}")
    elif done.result.failed:
        about.append("failed")
    about.append(f"{text.count(chr(10)) + 1:,} lines" if text else "no text")
    if images:
        about.append(f"{images} image{'s' if images > 1 else ''}")
    how = "Read the file again" if name == "read_file" else f"`read_output` {done.seq} shows it"
    line = f"[folded: {', '.join(about)}. {how} if you need it.]"
    return f"{line}\nIt begins:\n{text[:head]}" if head and text else line


# What is done about it


@dataclass(slots=True)
class _Room:
    """Tokens, as far as they are known."""

    ratio: float = 1.0  # tokens in a unit
    learned: int | None = None  # a window that the provider let us know by a refusal
    asked: float = 0.0  # units of the last request


@dataclass(frozen=True, slots=True)
class CondenseWish:
    """Somebody asks for it, and says what matters to them."""

    focus: str = ""
    by_person: bool = False


class Condenser:
    """Keeps one task's conversation inside the window."""

    def __init__(self, state: TaskState) -> None:
        self._state = state
        self._room = _Room()
        self._fixed: tuple[Prompt, float] | None = None  # units of system prompt and tools
        self._summaries: list[int] = []  # at which answer each was tried
        self._refusals = 0
        self.wanted: CondenseWish | None = None

    # How full it is

    def tokens(self, prompt: Prompt) -> int:
        """About how many the next request has. The same effort at any length."""
        return round(self._room.ratio * (self._fixed_size(prompt) + self._state.history.size))

    def parts(self, prompt: Prompt) -> dict[str, int]:
        """What the next request would consist of, in tokens."""
        turns = self._state.history.turns
        said = [part for turn in turns for part in turn.said]
        results = [part for turn in turns for part in turn.replies() if isinstance(part, ToolResult)]
        words = [each.part for turn in turns for each in turn.rest if each.source == "person"]
        sizes = {
            "system prompt": text_size(prompt.system),
            "tools": tools_size(prompt.tools),
            "your words": messages_size([Message("user", tuple(words))]) if words else 0.0,
            "the model's answers": messages_size([Message("assistant", tuple(said))]) if said else 0.0,
            "tool outputs": messages_size([Message("user", tuple(results))]) if results else 0.0,
        }
        sizes["other"] = max(0.0, self._fixed_size(prompt) + self._state.history.size - sum(sizes.values()))
        return {what: round(self._room.ratio * size) for what, size in sizes.items()}

    @property
    def window(self) -> int | None:
        known, learned = self._state.model.info.context_window, self._room.learned
        return min(known, learned) if known and learned else known or learned

    def _fixed_size(self, prompt: Prompt) -> float:
        if self._fixed is None or self._fixed[0] is not prompt:
            self._fixed = (prompt, prompt_size(Prompt(prompt.system, (), prompt.tools)))
        return self._fixed[1]

    def sent(self, prompt: Prompt) -> None:
        """A request goes out."""
        self._room.asked = self._fixed_size(prompt) + self._state.history.size

    def counted(self, usage: Usage) -> None:
        """The provider counted it: the next estimate is better."""
        self._refusals = 0
        tokens = usage.input + usage.cache_reads + usage.cache_writes
        if tokens and self._room.asked >= 100:
            self._room.ratio = min(MOST, max(LEAST, tokens / self._room.asked))

    # When

    async def before_request(self, prompt: Prompt) -> bool:
        """Condense if it is time to, or if somebody asked for it; whether that was done."""
        settings = self._state.context.settings
        if self.wanted is not None:
            wish, self.wanted = self.wanted, None
            return await self.condense(prompt, wish)
        window = self.window
        if not settings.auto_condense or not window:
            return False
        limit = window * settings.auto_condense_percent // 100
        if self.tokens(prompt) + self._room.ratio * self._state.added < limit:  # results may not be durable yet
            return False
        await self._state.context.log.commit()
        if self.tokens(prompt) < limit:
            return False
        return await self._shrink(prompt, goal=round(min(GOAL * window, limit)), limit=limit)

    async def condense(self, prompt: Prompt, wish: CondenseWish) -> bool:
        """Because a person or the model asks for it. BadRequest when there is too little to condense."""
        await self._state.context.log.commit()
        turns = self._state.history.turns
        span = cover(turns, recent(turns))
        if span is None or span.size < 4 * SMALL:
            raise BadRequest("there is too little to condense", hint="it works once the conversation is longer")
        return await self._summarise(prompt, span, wish) or await self._truncate(prompt, span)

    async def refused(self, prompt: Prompt) -> bool:
        """The provider says that the request is too long. Whether it is shorter now."""
        self._refusals += 1
        tokens, window = self.tokens(prompt), self.window
        if window and tokens < window:  # then our estimate is too low
            self._room.ratio = min(MOST, self._room.ratio * max(1.1, window / max(1, tokens)))
            tokens = self.tokens(prompt)
        elif not self._state.model.info.context_window:
            self._room.learned = round(0.95 * tokens)
        goal = round(min(0.7 * tokens, GOAL * (self.window or tokens)))
        shrunk = await self._shrink(prompt, goal=goal, limit=goal)
        return shrunk and self._refusals <= MOST_REFUSALS

    # How

    async def _shrink(self, prompt: Prompt, *, goal: int, limit: int) -> bool:
        """Leave out more and more, until the next request is below the limit."""
        turns = self._state.history.turns
        before = self.tokens(prompt)
        if await self._fold(prompt, foldable(turns[: recent(turns)]), least=WORTH * (self.window or before)):
            if self.tokens(prompt) <= goal:
                return True
            turns = self._state.history.turns
        span = cover(turns, recent(turns))
        if span is not None and span.size >= 4 * SMALL:
            if await self._summarise(prompt, span) and self.tokens(prompt) <= limit:
                return True
            await self._truncate_again(prompt)
        if self.tokens(prompt) > limit:
            await self._fold(prompt, foldable(self._state.history.turns, head=HEAD))
        turns = self._state.history.turns
        last = cover(turns, len(turns) - 1, everything=True)
        if self.tokens(prompt) > limit and last is not None and last.size >= SMALL:
            await self._truncate(prompt, last)
        return self.tokens(prompt) < before

    async def _truncate_again(self, prompt: Prompt) -> None:
        """What the summary did not make small enough, if one came at all."""
        turns = self._state.history.turns
        span = cover(turns, recent(turns))
        if span is not None and span.size >= 2 * SMALL:
            await self._truncate(prompt, span)

    async def _fold(self, prompt: Prompt, found: list[tuple[FoldedOutput, float]], *, least: float = 0.0) -> bool:
        saved = self._room.ratio * sum(units for _, units in found)
        if not found or saved < least:
            return False
        before = self.tokens(prompt)
        outputs = tuple(output for output, _ in found)
        after = max(0, before - round(saved))
        await self._state.append(OutputsFolded(at=now(), outputs=outputs, tokens_before=before, tokens_after=after))
        return True

    async def _truncate(self, prompt: Prompt, span: Cover) -> bool:
        count = sum(len(turn.messages()) for turn in self._state.history.turns[span.start : span.end])
        text = self._with_facts(LEFT_OUT.format(count=count), words=span.words)
        await self._condensed(prompt, span, text, how="truncated")
        return True

    async def _summarise(self, prompt: Prompt, span: Cover, wish: CondenseWish | None = None) -> bool:
        """Have the model write a summary; whether it is used."""
        state, answers = self._state, self._state.metadata.requests
        self._summaries = [each for each in self._summaries if answers - each < ANSWERS]
        focus = wish.focus if wish else ""
        asked = bool(focus) and wish is not None and wish.by_person  # a person who says what matters always gets one
        if len(self._summaries) >= MOST_SUMMARIES and not asked:
            return False
        messages = [message for turn in state.history.turns[: span.end] for message in turn.messages()]
        ask = f"{ASK}\n\nWhat matters most to the user: {focus}" if focus else ASK
        request = Prompt(
            prompt.system, (*messages, Message("user", (Text(ask),))), prompt.tools, cache_key=state.context.task
        )
        if self.window and self._room.ratio * prompt_size(request) > 0.95 * self.window:
            return False
        self._summaries.append(answers)
        state.audience.show(ProgressMade(call=CallId(""), text="condensing the conversation"))
        try:
            answer = await self._answer(request)
        except ModelError as error:
            await self._unused(f"it could not be summarised: {error}", error.usage)
            return False
        written = "\n\n".join(part.text for part in answer.parts if isinstance(part, Text)).strip()
        text = self._with_facts(f"{SUMMARY}\n{written}", words=span.words)
        if not written or text_size(text) > span.size / 2:
            await self._unused("its summary was not short enough" if written else "no summary came", answer.usage)
            return False
        await self._condensed(prompt, span, text, how="summarised", usage=answer.usage)
        return True

    async def _answer(self, request: Prompt) -> Completion:
        async with aclosing(self._state.model.stream(request, load=self._load)) as chunks:
            async for chunk in chunks:
                if isinstance(chunk, Completion):
                    return chunk
        raise ModelError("the summary was cut off", kind="cut")

    def _load(self, blob: Blob) -> bytes:
        return self._state.context.log.blobs.read(blob.sha256) or b""

    def _with_facts(self, text: str, *, words: bool) -> str:
        """What the task knows by itself: its list, its files."""
        state = self._state
        parts = [text]
        if state.todos:
            marks = {"open": " ", "doing": "-", "done": "x"}
            parts.append("Todo list:\n" + "\n".join(f"[{marks[each.status]}] {each.text}" for each in state.todos))
        if state.seen:
            names = [
                path.relative_to(state.context.workspace) if path.is_relative_to(state.context.workspace) else path
                for path in list(state.seen)[-MOST_FILES:]
            ]
            parts.append("Files that you read or changed, the latest last: " + ", ".join(map(str, names)))
        if words:
            parts.append("[What the user said meanwhile follows, word for word.]")
        return "\n\n".join(parts)

    async def _condensed(
        self,
        prompt: Prompt,
        span: Cover,
        text: str,
        *,
        how: Literal["summarised", "truncated"],
        usage: Usage = NO_USAGE,
    ) -> None:
        before = self.tokens(prompt)
        after = max(0, before - round(self._room.ratio * (span.size - text_size(text))))
        await self._state.append(
            HistoryCondensed(
                at=now(),
                first=span.first,
                last=span.last,
                summary=text,
                how=how,
                tokens_before=before,
                tokens_after=after,
                usage=usage,
                cost=self._cost(usage),
                keeps_words=True,
            )
        )

    async def _unused(self, why: str, usage: Usage) -> None:
        request = RequestId(f"condense-{self._state.metadata.requests}")
        cost = self._cost(usage)
        failed = RequestFailed(at=now(), request=request, what=f"condensing: {why}", usage=usage, cost=cost)
        await self._state.append(failed)

    def _cost(self, usage: Usage) -> float | None:
        return 0.0 if usage == NO_USAGE else price(self._state.model.info, usage)
