"""A conversation that is longer than the window: folded, summarised, shortened, and never at a loss."""

import asyncio
import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.models.server import Reply, Request, gpt, refusal, serving
from tests.models.server import call as call_delta
from tests.tasks.engine import Seen, a_task, an_app, call, check_pairs, done, messages_of, results, stored, turn

from tarmac.errors import BadRequest
from tarmac.models.messages import Message, Text, ToolResult, ToolUse, Usage
from tarmac.tasks import events as e
from tarmac.tasks.condense import cover, foldable, recent
from tarmac.tasks.events import CallId, RequestId
from tarmac.tasks.views.model_history import ModelHistory, model_messages

WINDOW = 8_000


def texts(messages: Iterable[Message]) -> str:
    """All words in them."""
    found = []
    for message in messages:
        for part in message.parts:
            inner = part.content if isinstance(part, ToolResult) else (part,)
            found += [each.text for each in inner if isinstance(each, Text)]
    return "\n".join(found)


class SmallWindow:
    """A model behind HTTP that refuses what is longer than its window, and reads files until it had enough."""

    def __init__(self, turns: int) -> None:
        self.turns = turns
        self.answered = self.refused = self.summaries = 0
        self.accepted: list[int] = []  # tokens
        self.say: Callable[[str], object] = bool
        self.words: list[str] = []

    def answer(self, request: Request) -> Reply:
        tokens = len(json.dumps(request.body["messages"]) + json.dumps(request.body.get("tools"))) // 4
        if tokens > WINDOW:
            self.refused += 1
            return refusal(400, {"message": f"This model's maximum context length is {WINDOW} tokens", "code": "x"})
        self.accepted.append(tokens)
        usage: dict[str, object] = {"prompt_tokens": tokens, "completion_tokens": 20}
        messages = cast(list[dict[str, object]], request.body["messages"])
        if "Summarise all of the above" in str(messages[-1]["content"]):
            self.summaries += 1
            text = "" if self.summaries % 5 == 0 else "It read files. " * (2_000 if self.summaries % 3 == 0 else 10)
            return Reply(gpt({"content": text}, usage=usage))
        self.answered += 1
        if self.answered > self.turns:
            finish = json.dumps({"result": "All read."})
            return Reply(gpt(call_delta(0, finish, id=f"c{self.answered}", name="attempt_completion"), usage=usage))
        if self.answered % 40 == 5:
            self.words.append(f"word {self.answered}: mind the gap")
            self.say(self.words[-1])
        wanted = json.dumps({"path": f"f{self.answered % 7}.txt"})
        told: dict[str, object] = {"content": f"Step {self.answered}."}
        read = call_delta(0, wanted, id=f"c{self.answered}", name="read_file")
        return Reply(gpt(told, read, finish="tool_calls", usage=usage))


@pytest.mark.slow
@pytest.mark.parametrize(("turns", "known"), [(500, True), (60, False)])
async def test_500_turns_fit_into_a_window_of_8000_tokens(tmp_path: Path, turns: int, known: bool) -> None:
    """S17: a server that refuses what is too long; never a failure, never a circle, every word of the person stays."""
    work = tmp_path / "work"
    work.mkdir()
    for number in range(7):
        (work / f"f{number}.txt").write_text(f"line of file {number}\n" * (30 + 40 * number))
    model = SmallWindow(turns)
    jobs: list[asyncio.Task[object]] = []
    async with asyncio.timeout(100), serving() as server:
        server.answer = model.answer
        settings: dict[str, object] = {"model": "ollama/x", "base_url": f"{server.url}/v1"}
        if known:
            settings["models.context_window"] = WINDOW
        async with (
            an_app(work, **settings) as app,
            app.create_task("Read. First words.", model="ollama/x", attended=False) as task,
        ):
            model.say = lambda text: jobs.append(asyncio.create_task(task.say(text)))
            ended = await task.run_until_idle()
            await asyncio.gather(*jobs)
            events = await stored(task)
            messages = await messages_of(task)
    assert (ended.why, ended.text) == ("completed", "All read.")
    assert model.answered == turns + 1
    given_up = [each for each in events if isinstance(each, e.RequestFailed) and each.retry_in is None]
    assert all(each.what.startswith("condensing:") for each in given_up)
    assert model.refused <= (turns // 10 if known else turns // 4)
    assert 0 < model.summaries <= 2 + turns // 10
    shown = texts(messages)
    assert [word for word in ["First words.", *model.words] if word not in shown] == []
    kinds = {type(each) for each in events}
    assert {e.OutputsFolded, e.HistoryCondensed} <= kinds


def long_text(name: str) -> str:
    return f"{name}: " + "all work and no play " * 200


async def test_old_outputs_are_folded_first_and_can_be_read_again(tmp_path: Path) -> None:
    """S17: free and reversible; the model is told how to get them back, and gets them."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "big.txt").write_text("needle in a haystack\n" * 900)
    search = call("search_files", path=".", regex="needle")
    many = [turn(call("read_file", path="big.txt", line_range=f"1-{800 + n}")) for n in range(6)]
    async with a_task(work, turn(search), *many, done(), context_window=40_000) as task:
        ended = await task.run_until_idle()
        events = await stored(task)
        messages = await messages_of(task)
        number = next(seq for seq, each in enumerate(events, 1) if isinstance(each, e.ToolFinished))
        whole = task._state.history.output(number)
    assert ended.why == "completed"
    folded = [each for each in events if isinstance(each, e.OutputsFolded)]
    assert whole and texts([Message("user", whole.content)]).count("needle") > 100
    assert f"`read_output` {number} shows it if you need it.]" in texts(messages)
    assert not [each for each in events if isinstance(each, e.HistoryCondensed)]
    before, after = folded[0].tokens_before, folded[0].tokens_after
    assert before and after and after < before


async def test_a_folded_output_is_shown_by_read_output(tmp_path: Path) -> None:
    """S17: the whole of it, by the number that the folded line names; a number that is none is said."""

    async def reads_again(number: int) -> tuple[str, str, int]:
        """The output before it was folded, what `read_output` shows, and the number that the model was told."""
        work = tmp_path / "work"
        work.mkdir(exist_ok=True)
        (work / "big.txt").write_text("needle in a haystack\n" * 900)
        search = turn(call("search_files", path=".", regex="needle"))
        many = [turn(call("read_file", path="big.txt", line_range=f"1-{800 + n}")) for n in range(6)]
        look = turn(call("read_output", id=number))
        async with a_task(work, search, *many, look, done(), context_window=40_000) as task:
            seen = Seen(task)
            assert (await task.run_until_idle()).why == "completed"
            named = re.search(r"`read_output` (\d+) shows it if you need it", texts(await messages_of(task)))
        assert named and results(seen)[-2][0] == "read_output"
        return results(seen)[0][2], results(seen)[-2][2], int(named[1])

    _, refused, number = await reads_again(0)
    assert "There is no output 0" in refused
    whole, shown, again = await reads_again(number)
    assert again == number and whole.count("needle") > 100
    assert whole in shown


async def test_a_request_that_is_refused_as_too_long_is_shortened_and_sent_again(tmp_path: Path) -> None:
    """S6, S17."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "big.txt").write_text(long_text("big"))
    turns = [
        turn(call("read_file", path="big.txt"), text=long_text("thought")),
        turn(call("read_file", path="big.txt", line_range="1-1")),
        turn(error={"kind": "too_long", "what": "prompt is too long"}),
        turn(text="It read a big file."),  # the summary
        done("Shorter."),
    ]
    async with a_task(work, *turns) as task:
        ended = await task.run_until_idle()
        events = await stored(task)
    assert (ended.why, ended.text) == ("completed", "Shorter.")
    assert [type(each) for each in events if isinstance(each, e.HistoryCondensed | e.RequestFailed)][
        -1
    ] is e.RequestFailed


async def test_what_is_too_long_in_the_persons_own_words_is_said(tmp_path: Path) -> None:
    """S17: their words are never cut, so it ends with the provider's reason and what a person can do."""
    errors = [turn(error={"kind": "too_long", "what": "prompt is too long"})] * 12
    async with a_task(tmp_path / "work", *errors, text=long_text("me")) as task:
        ended = await task.run_until_idle()
    assert ended.why == "failed" and "too long" in ended.text
    assert ended.hint.startswith("nothing more can be left out of this conversation: start a new task")


async def test_a_provider_that_refuses_whatever_it_gets_is_asked_a_few_times_at_most(tmp_path: Path) -> None:
    """S17: never a circle: each request is shorter than the one before, and the last refusal says what to do."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "big.txt").write_text("needle in a haystack\n" * 400)
    read = [turn(call("read_file", path="big.txt", line_range=f"1-{300 + n}"), text=f"Step {n}.") for n in range(6)]
    always = turn(error={"kind": "too_long", "what": "prompt is too long"}, times=100)
    async with a_task(work, *read, always) as task:
        ended = await task.run_until_idle()
        events = await stored(task)
        await messages_of(task)
    assert (ended.why, ended.text) == ("failed", "prompt is too long")
    assert ended.hint.startswith("nothing more can be left out")
    asked = [each for each in events if isinstance(each, e.RequestStarted)]
    assert 3 <= len(asked) - len(read) <= 9


def steps(count: int) -> list[dict[str, object]]:
    return [turn(call("list_files", path="."), text=f"{long_text(f'thought {n}')}") for n in range(count)]


async def test_a_person_asks_for_it_and_it_is_read_as_a_summary(tmp_path: Path) -> None:
    """S17: `/compact what matters`; rules are read again; the list and the files stay known; rewinding undoes it."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "AGENTS.md").write_text("Old rule.")
    todo = turn(call("update_todo_list", todos="[x] look\n[ ] repair"))
    reads = turn(call("read_file", path="AGENTS.md"))
    looks = [turn(call("list_files", path="." if n % 2 else "./"), text=long_text(f"thought {n}")) for n in range(2)]
    turns = [*looks, todo, reads, turn(text="Enough."), turn(text="Enough."), turn(text="It looked around."), done()]
    async with a_task(work, *turns, attended=True) as task:
        assert (await task.run_until_idle()).why == "idle"
        before = model_messages(await stored(task))
        (work / "AGENTS.md").write_text("New rule.")
        assert await task.condense("the rule")
        events = await stored(task)
        condensed = events[-1]
        assert isinstance(condensed, e.HistoryCondensed) and condensed.how == "summarised"
        after = await messages_of(task)
        shown = texts(after)
        assert "It looked around." in shown and "[ ] repair" in shown and "AGENTS.md" in shown and "Do it." in shown
        assert "thought 0" not in shown
        again = model_messages([*events, e.HistoryRewound(at=1.0, to=len(events) - 1)])
        assert again == before
        await task.say("Go on.")
        await task.run_until_idle()
        sent = [each for each in await stored(task) if isinstance(each, e.RequestStarted) and each.prompt]
        prompts = [task.log.blobs.read(each.prompt.sha256) or b"" for each in (sent[0], sent[-1]) if each.prompt]
    assert b"Old rule." in prompts[0] and b"New rule." in prompts[1]


async def test_the_model_gets_at_most_two_summaries_in_twenty_answers_whatever_matters_to_it(tmp_path: Path) -> None:
    """S17: the third time older messages are left out; a person who says what matters gets a summary still."""

    def long_work(part: int) -> list[dict[str, object]]:
        looks = [turn(call("list_files", path="./" * n + "."), text=long_text(f"{part}.{n}")) for n in range(4)]
        return [*looks, turn(call("condense", focus=f"part {part}"))]

    summaries = [turn(text="The first summary."), turn(text="The second summary.")]
    turns = [*long_work(1), summaries[0], *long_work(2), summaries[1], *long_work(3), *long_work(4)[:4]]
    ends = [turn(text="Enough."), turn(text="Enough."), turn(text="The person's summary.")]
    async with a_task(tmp_path / "work", *turns, *ends, attended=True) as task:
        assert (await task.run_until_idle()).why == "idle"
        await task.condense("part four")
        events = await stored(task)
    how = [each.how for each in events if isinstance(each, e.HistoryCondensed)]
    assert how == ["summarised", "summarised", "truncated", "summarised"]


async def test_too_little_is_not_condensed(tmp_path: Path) -> None:
    async with a_task(tmp_path / "work", turn(text="Hello."), attended=True) as task:
        await task.run_until_idle()
        with pytest.raises(BadRequest, match="too little to condense"):
            await task.condense()


async def test_a_summary_that_does_not_halve_it_is_not_used(tmp_path: Path) -> None:
    """S17: then older messages are left out, and that is said."""
    looks = [turn(call("list_files", path="." if n % 2 else "./"), text=long_text(f"thought {n}")) for n in range(2)]
    turns = [*looks, turn(text="Enough."), turn(text=long_text("summary") * 3)]
    async with a_task(tmp_path / "work", *turns, attended=True) as task:
        await task.run_until_idle()
        await task.condense()
        events = await stored(task)
        shown = texts(await messages_of(task))
    failed = next(each for each in events if isinstance(each, e.RequestFailed))
    condensed = next(each for each in events if isinstance(each, e.HistoryCondensed))
    assert failed.what == "condensing: its summary was not short enough" and condensed.how == "truncated"
    assert "earlier messages were left out" in shown and "Do it." in shown


# Properties

step = st.fixed_dictionaries(
    {
        "calls": st.integers(0, 3),
        "size": st.integers(0, 3_000),
        "words": st.sampled_from(["", "", "a word", "more words"]),
        "condense": st.sampled_from(["", "", "", "fold", "summary", "truncate"]),
    }
)


def plausible(given: list[dict[str, object]]) -> tuple[list[e.TaskEvent], list[str]]:
    """A log in which outputs were folded and messages condensed; what the person said in it."""
    events: list[e.TaskEvent] = [e.UserSaid(at=1.0, text="first word")]
    words = ["first word"]
    for number, each in enumerate(given):
        uses = [ToolUse(f"{number}-{n}", "read_file", "{}") for n in range(cast(int, each["calls"]))]
        parts = (Text(f"Step {number}."), *uses)
        stop = "tool_use" if uses else "end"
        events.append(
            e.ModelSaid(at=1.0, request=RequestId("r"), parts=parts, stop=stop, usage=Usage(), cost=0.0)  # type: ignore[arg-type]
        )
        content = (Text("x" * cast(int, each["size"])),)
        events += [
            e.ToolFinished(at=1.0, call=CallId(use.id), name=use.name, outcome="done", content=content) for use in uses
        ]
        if each["words"]:
            words.append(f"{each['words']} {number}")
            events.append(e.UserSaid(at=1.0, text=words[-1]))
        history = ModelHistory()
        for event in events:
            history.add(event)
        events += _condensed(str(each["condense"]), history)
    return events, words


def _condensed(how: str, history: ModelHistory) -> list[e.TaskEvent]:
    turns = history.turns
    span = cover(turns, recent(turns), everything=how == "truncate")
    if how == "fold" and (found := foldable(turns[: recent(turns)])):
        return [e.OutputsFolded(at=1.0, outputs=tuple(each for each, _ in found))]
    if how in ("summary", "truncate") and span:
        return [e.HistoryCondensed(at=1.0, first=span.first, last=span.last, summary="[short]", keeps_words=True)]
    return []


@given(st.lists(step, max_size=12))
def test_whatever_is_left_out_pairs_stay_together_and_every_word_of_the_person_is_there(
    given: list[dict[str, object]],
) -> None:
    """S17."""
    events, words = plausible(given)
    messages = model_messages(events)
    check_pairs(messages)
    shown = texts(messages)
    assert [word for word in words if word not in shown] == []
    assert shown.count("first word") == 1


@given(st.lists(step, max_size=12))
def test_what_was_said_is_only_added_to_unless_something_is_left_out(given: list[dict[str, object]]) -> None:
    """S17: a provider can cache it."""
    events, _ = plausible(given)
    before: list[Message] = []
    for count, event in enumerate(events, 1):
        after = model_messages(events[:count])
        if not isinstance(event, e.OutputsFolded | e.HistoryCondensed) and before:
            assert after[: len(before) - 1] == before[:-1]
            assert after[len(before) - 1].parts[: len(before[-1].parts)] == before[-1].parts or any(
                isinstance(part, ToolResult) for part in after[len(before) - 1].parts
            )
        before = after


@given(st.lists(step, min_size=3, max_size=12))
def test_rewinding_brings_back_what_was_left_out(given: list[dict[str, object]]) -> None:
    """S17: also in the view."""
    events, _ = plausible(given)
    for to in range(len(events) + 1):
        rewound = [*events, e.HistoryRewound(at=2.0, to=to)]
        assert model_messages(rewound) == model_messages(events[:to])
