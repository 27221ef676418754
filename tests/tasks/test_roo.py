"""Roo-Code's files: taken in, given back, damaged. The folders in `roo/` are in its own format, of three ages."""

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.tasks.samples import a_task, conversation, one_of_each

from tarmac.errors import ImportFailed
from tarmac.models.messages import NO_USAGE, Blob, Image, Message, Part, Reasoning, Text, ToolResult, ToolUse
from tarmac.policy.approval import AnswerKind
from tarmac.tasks import events as e
from tarmac.tasks.log.disk import Blobs
from tarmac.tasks.roo import API, UI, RooTask, find_tasks, read_task
from tarmac.tasks.roo.exporter import api_messages, ui_messages, write_task
from tarmac.tasks.roo.importer import facts_of, workspace_of
from tarmac.tasks.views import model_messages, timeline
from tarmac.tasks.views.metadata import metadata

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent / "roo"
NATIVE = HERE / "0199a1b2-7c3d-7e4f-8a5b-6c7d8e9f0a1b"
CONDENSED = HERE / "0199a1b2-ffff-7000-8000-00000000c0de"
OLD = HERE / "1739000000123"


def no_image(data: bytes, media_type: str) -> Blob:
    return Blob("0" * 64, len(data), media_type)


def taken(folder: Path) -> list[e.TaskEvent]:
    return facts_of(read_task(folder), no_image, first=1)


def test_a_task_with_native_calls_keeps_its_conversation() -> None:
    """S3: thinking, two calls in one message, a failed result, a picture, words between results."""
    messages = model_messages(taken(NATIVE))
    assert [message.role for message in messages] == ["user", "assistant"] * 4 + ["user"]
    first, answer, results, *_ = messages
    assert first.parts[:2] == (
        Text("Make add() right — see the picture"),
        Image(Blob("0" * 64, 67, "image/png")),
    )
    assert isinstance(answer.parts[0], Reasoning) and answer.parts[0].text == "The test says 4."
    assert [part.id for part in answer.parts if isinstance(part, ToolUse)] == ["toolu_01A", "toolu_01B"]
    assert [(part.call, part.failed) for part in results.parts if isinstance(part, ToolResult)] == [
        ("toolu_01A", False),
        ("toolu_01B", True),
    ]
    assert "and run the tests" in messages[4].text


def test_what_it_cost_is_what_its_list_says() -> None:
    """S16: failed requests were paid for, too."""
    found = metadata(taken(NATIVE))
    total = found.usage.input + found.usage.cache_reads + found.usage.cache_writes
    item = json.loads((NATIVE / "history_item.json").read_text())
    assert found.total_cost == pytest.approx(item["totalCost"])
    assert (total, found.usage.output, found.usage.cache_reads) == (38000, 410, 27000)
    assert (found.status, found.outcome, found.title) == (
        "completed",
        "completed",
        "Make add() right — see the picture",
    )


def test_a_person_sees_errors_checkpoints_and_the_end() -> None:
    items = [(item.kind, item.text) for item in timeline(taken(NATIVE))]
    for wanted in (
        ("error", "Error reading file: ENOENT: no such file or directory"),
        ("checkpoint_created", "in Roo-Code"),
        ("tool", "Ran `python -m unittest`"),
        ("tool", "Edited src/calc.py"),
        ("user_feedback", "and run the tests"),
        ("completion_result", "`add` adds now; the test passes."),
    ):
        assert wanted in items


def test_what_was_condensed_is_a_summary_for_the_model_and_all_there_in_the_log() -> None:
    """Part of S17, of what Roo-Code condensed: rewinding behind it brings it back."""
    facts = taken(CONDENSED)
    told = model_messages(facts)
    assert [message.role for message in told] == ["user", "assistant", "user"]
    assert told[0].text.startswith("## Conversation Summary") and "port it to Rust" not in told[0].text
    back = next(seq for seq, fact in enumerate(facts, 1) if isinstance(fact, e.HistoryCondensed)) - 1
    assert "port it to Rust" in model_messages([*facts, e.HistoryRewound(at=9.0, to=back)])[0].text


def test_a_call_that_never_came_back_is_told_as_not_run() -> None:
    """S4."""
    (result,) = (part for part in model_messages(taken(CONDENSED))[-1].parts)
    assert isinstance(result, ToolResult) and result.call == "call_2" and result.failed


def test_a_task_of_the_days_of_xml_without_times_or_a_list_entry() -> None:
    task = read_task(OLD)
    facts = facts_of(task, no_image, first=1)
    assert workspace_of(task) == Path("/home-of/ada/old")
    assert [(message.role, message.text[:12]) for message in model_messages(facts)] == [
        ("user", "say hello\n\n<"),
        ("assistant", "<thinking>ea"),
        ("user", "[read_file f"),
        ("assistant", "<attempt_com"),
    ]
    assert [item.text for item in timeline(facts) if item.kind in ("text", "user_feedback")] == ["say hello"]
    assert metadata(facts).total_cost == pytest.approx(0.005)


# Back again


def imported(folder: Path, blobs: Blobs) -> list[e.TaskEvent]:
    """As `tarmac import` records it."""
    roo = read_task(folder, salvage=True)
    facts = facts_of(roo, blobs.keep, first=3)
    files = tuple(e.KeptFile(name=name, blob=blobs.keep(data)) for name, data in roo.raw.items())
    created = e.TaskCreated(at=1.0, task=roo.id, number=1, workspace=Path("/w"), mode="code")  # type: ignore[arg-type]
    return [created, e.TaskImported(at=1.0, source="roo", name=roo.id, last=2 + len(facts), files=files), *facts]


@pytest.mark.parametrize("folder", [NATIVE, CONDENSED, OLD], ids=lambda each: each.name)
def test_what_was_taken_in_is_given_back_as_it_was(folder: Path, tmp_path: Path) -> None:
    """S3: every field of every message, also those that have no place here."""
    blobs = Blobs(tmp_path / "blobs")
    back = write_task(imported(folder, blobs), blobs.read, tmp_path / "out" / folder.name)
    for file in folder.iterdir():
        assert json.loads((back / file.name).read_text()) == json.loads(file.read_text()), file.name


def test_what_happened_since_stands_behind_it(tmp_path: Path) -> None:
    """S3: gone on with here, and opened there again."""
    blobs = Blobs(tmp_path / "blobs")
    events = [
        *imported(NATIVE, blobs),
        e.TaskStarted(at=1763200000.0, pid=1),
        e.UserSaid(at=1763200001.0, text="and subtract"),
        *list(a_task(1))[2:],
    ]
    back = write_task(events, blobs.read, tmp_path / NATIVE.name)
    api, ui = (json.loads((back / name).read_text()) for name in (API, UI))
    before = json.loads((NATIVE / API).read_text())
    assert api[: len(before)] == before
    assert api[len(before)]["content"][0]["text"] == "<user_message>\nand subtract\n</user_message>"
    new = ui[len(json.loads((NATIVE / UI).read_text()))]
    assert (new["say"], new["text"]) == ("user_feedback", "and subtract")
    again = facts_of(read_task(back), no_image, first=1)
    assert "and subtract" in [fact.text for fact in again if isinstance(fact, e.UserSaid)]
    assert json.loads((back / "history_item.json").read_text())["apiConfigName"] == "default"


def test_a_task_of_ours_is_one_that_roo_code_opens() -> None:
    """S3: the shape of its messages; times are whole milliseconds, and each its own."""
    events = one_of_each()
    api, ui = api_messages(events, lambda _: b"x"), ui_messages(events, lambda _: b"x")
    assert all(set(each) == {"role", "content", "ts"} and isinstance(each["ts"], int) for each in api)
    times = [each["ts"] for each in ui]
    assert len(set(times)) == len(times) and all(isinstance(at, int) for at in times)
    for each in ui:
        assert (each["type"] == "say") == ("say" in each) and (each["type"] == "ask") == ("ask" in each)
    requests = [json.loads(str(each["text"])) for each in ui if each.get("say") == "api_req_started"]
    assert requests[0] | {"tokensIn": 2400, "cost": 0.0123} == requests[0]


def plain(messages: list[Message]) -> list[tuple[str, list[Part]]]:
    """Without what Roo-Code has no place for."""
    return [(message.role, [_plain(part) for part in message.parts]) for message in messages]


def _plain(part: Part) -> Part:
    match part:
        case Reasoning(text=text):
            return Reasoning(text)
        case ToolUse(id=call, name=name, arguments=arguments):
            try:
                found = json.loads(arguments)
            except ValueError:
                found = None
            return ToolUse(call, name, json.dumps(found, ensure_ascii=False) if isinstance(found, dict) else arguments)
        case ToolResult(call=call, content=content, failed=failed):
            return ToolResult(call, tuple(_plain(each) for each in content), failed=failed)
        case Image():
            return Image(Blob("0" * 64, 1, part.blob.media_type or "image/png"))
    return part


kinds = st.lists(conversation, max_size=12)


first_words = st.builds(e.UserSaid, at=st.just(5.0), text=st.text(min_size=1, max_size=20))


@given(st.lists(first_words, min_size=1, max_size=2), kinds)
def test_any_conversation_survives_the_way_there_and_back(start: list[e.TaskEvent], rest: list[e.TaskEvent]) -> None:
    """S3: what the model gets is the same."""
    events = [*start, *(each for each in rest if not _odd(each))]
    roo = RooTask("x", Path(), api=json.loads(json.dumps(api_messages(events, lambda _: b"x"))))
    assert plain(model_messages(facts_of(roo, no_image, first=1))) == plain(model_messages(events))


def _odd(event: e.TaskEvent) -> bool:
    """An answer without words for its reasoning, or that says results itself, is no answer of a model."""
    if isinstance(event, e.ModelSaid):
        ids = [part.id for part in event.parts if isinstance(part, ToolUse)]
        odd = any(isinstance(part, Image | ToolResult) or not getattr(part, "text", "x") for part in event.parts)
        return odd or len(set(ids)) < len(ids)
    if isinstance(event, e.ToolFinished):
        return any(not isinstance(part, Text | Image) or not getattr(part, "text", "x") for part in event.content)
    return isinstance(event, e.ModelTold) and "<" in event.text


# Damage


def copied(folder: Path, to: Path) -> Path:
    return Path(shutil.copytree(folder, to / folder.name))


@pytest.mark.parametrize("name", [API, UI, "history_item.json"])
@pytest.mark.parametrize("kept", [0, 1, 700])
def test_a_file_cut_off_is_told_with_the_place_and_left_as_it_is(name: str, kept: int, tmp_path: Path) -> None:
    """S3: a crash while it was written, with or without anything left."""
    file = copied(NATIVE, tmp_path) / name
    file.write_bytes(file.read_bytes()[: min(kept, file.stat().st_size - 1)])
    before = file.read_bytes()
    with pytest.raises(ImportFailed) as raised:
        read_task(file.parent)
    assert str(file) in raised.value.what and "--salvage" in raised.value.hint
    assert "line 1, column" in raised.value.what or "empty" in raised.value.what
    assert file.read_bytes() == before


@given(cut=st.integers(0, 5000))
def test_wherever_it_is_cut_what_is_whole_before_is_salvaged(cut: int) -> None:
    """S3: nothing that can be read is lost."""
    whole = (NATIVE / API).read_bytes()
    cut = min(cut, len(whole) - 1)
    from tarmac.tasks.roo import _whole

    found = _whole(whole[:cut].decode("utf-8", "ignore"))
    every = json.loads(whole)
    assert found == every[: len(found)]
    ends = [len(json.dumps(every[: n + 1], ensure_ascii=False).encode()) - 1 for n in range(len(every))]
    assert len(found) == sum(end <= cut for end in ends)


def test_a_salvaged_task_says_what_is_missing_and_is_given_back_as_far_as_it_was_whole(tmp_path: Path) -> None:
    folder = copied(NATIVE, tmp_path)
    whole = json.loads((folder / API).read_text())
    (folder / API).write_bytes((folder / API).read_bytes()[:-900])
    task = read_task(folder, salvage=True)
    assert 0 < len(task.api) < len(whole) and task.api == whole[: len(task.api)]
    assert "api_conversation_history.json is damaged" in task.trouble[0]
    blobs = Blobs(tmp_path / "blobs")
    events = imported(folder, blobs)
    assert any(isinstance(each, e.Noted) and "damaged" in each.text for each in events)
    kept = next(each for each in events if isinstance(each, e.TaskImported)).files
    assert blobs.read(next(each.blob.sha256 for each in kept if each.name == API)) == (folder / API).read_bytes()
    assert json.loads((write_task(events, blobs.read, tmp_path / "out") / API).read_text()) == task.api


def test_without_its_conversation_the_words_that_were_shown_stand_in(tmp_path: Path) -> None:
    folder = copied(NATIVE, tmp_path)
    (folder / API).unlink()
    said = [(message.role, message.text) for message in model_messages(facts_of(read_task(folder), no_image, first=1))]
    assert said[0] == ("user", "Make add() right — see the picture")
    assert "There is a minus." in said[1][1] and said[2] == ("user", "and run the tests")


@pytest.mark.parametrize("content", ['{"a": 1}', "[1, 2]", '"x"', "null", "[" * 100_000, "\0" * 50])
def test_json_of_another_shape_is_an_error_that_says_so(content: str, tmp_path: Path) -> None:
    folder = copied(OLD, tmp_path)
    (folder / API).write_text(content)
    with pytest.raises(ImportFailed):
        read_task(folder)
    assert read_task(folder, salvage=True).ui


KEYS = (
    "role content type text ts say ask id input name source data output isSummary condenseId condenseParent images "
    "tool_use_id summary value"
).split()
junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=8,
)
messages = st.lists(st.dictionaries(st.sampled_from(KEYS), junk, max_size=6), max_size=5)


@settings(suppress_health_check=[HealthCheck.too_slow])  # a busy machine draws slowly
@given(messages, messages)
def test_no_message_however_odd_breaks_the_taking(api: list[dict[str, object]], ui: list[dict[str, object]]) -> None:
    facts = facts_of(RooTask("x", Path(), api=api, ui=ui), no_image, first=1)
    model_messages(facts)
    timeline(facts)


def test_folders_of_tasks_are_found_in_each_way_they_are_given(tmp_path: Path) -> None:
    assert find_tasks(NATIVE) == [NATIVE]
    assert find_tasks(HERE) == sorted([NATIVE, CONDENSED, OLD])
    shutil.copytree(HERE, tmp_path / "tasks")
    (tmp_path / "tasks" / "_index.json").write_text("{}")
    assert len(find_tasks(tmp_path)) == 3


def test_what_a_task_asks_by_itself_is_there_in_both_directions() -> None:
    """S5: the result, going on, what can't be reached, mistakes, the limit of what runs without asking."""
    kinds: list[tuple[e.Ask, str]] = [
        ("api_req_failed", "api_req_failed"),
        ("mistake_limit_reached", "mistake_limit_reached"),
        ("auto_approval_limit", "auto_approval_max_req_reached"),
        ("resume_task", "resume_task"),
        ("resume_completed_task", "resume_completed_task"),
    ]
    count = '{"count": 20, "type": "requests"}'
    events: list[e.TaskEvent] = [e.UserSaid(at=1.0, text="Do it.")]
    for n, (ask, _) in enumerate(kinds):
        details = count if ask == "auto_approval_limit" else ""
        q = e.QuestionId(f"q{n}")
        events.append(e.QuestionAsked(at=2.0 + n, question=q, ask=ask, text="" if details else "why", details=details))
        if n != 3:
            events.append(e.QuestionAnswered(at=2.5 + n, question=q, answer=AnswerKind.YES, text="Go on."))
            events.append(e.UserSaid(at=2.5 + n, text="Go on."))
    done = e.TaskCompleted(at=9.0, result="Done.", usage=NO_USAGE, cost=0.0)
    asked = e.QuestionAsked(at=9.0, question=e.QuestionId("r"), ask="completion_result", text="Done.")
    ui = ui_messages([*events, done, asked], lambda _: None)
    assert [(each["ask"], each["isAnswered"]) for each in ui if each["type"] == "ask"] == [
        *((theirs, ours != "resume_task") for ours, theirs in kinds),
        ("completion_result", True),
    ]
    assert [each["text"] for each in ui if each.get("say") == "user_feedback"] == ["Go on."] * 4  # once each
    assert next(each["text"] for each in ui if each.get("ask") == "auto_approval_max_req_reached") == count
    back = facts_of(RooTask("x", Path(), ui=ui), no_image, first=1)
    found = [(each.ask, each.details) for each in back if isinstance(each, e.QuestionAsked)]
    assert [ask for ask, _ in found] == [*(ask for ask, _ in kinds), "completion_result"]
    assert dict(found)["auto_approval_limit"] == count
    meta = metadata(back)
    assert (meta.outcome, meta.questions) == ("completed", ())
    last = [each.kind for each in timeline(back) if each.type == "ask"]
    assert last[-1] == "completion_result" and "auto_approval_limit" in last
