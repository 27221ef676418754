"""The calls of one answer: together or in order, and every one gets exactly one result."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tasks.engine import Seen, a_task, call, done, messages_of, results, turn

from tarmac.models.messages import ToolUse
from tarmac.tasks.events import CallJudged, ModelSaid, ModelTold, Noted, ToolFinished, ToolStarted
from tarmac.tasks.limits import Limits
from tarmac.tasks.repetition import LONGEST_LOOP, repeats


async def test_calls_that_read_run_together_and_the_others_in_order(tmp_path: Path) -> None:
    """S11: several calls in one message."""
    work = tmp_path / "work"
    async with a_task(
        work,
        turn(
            call("write_to_file", path="a.txt", content="a\n"),
            call("read_file", path="a.txt"),
            call("read_file", path="gone.txt"),
            call("list_files", path="."),
            call("write_to_file", path="b.txt", content="b\n"),
            call("read_file", path="b.txt"),
        ),
        done(),
    ) as task:
        seen = Seen(task)
        assert (await task.run_until_idle()).why == "completed"
        await messages_of(task)
    found = {(name, outcome) for name, outcome, _ in results(seen)}
    assert ("write_to_file", "done") in found and ("list_files", "done") in found
    reads = [text for name, _, text in results(seen) if name == "read_file"]
    assert any("1 | a" in text for text in reads) and any("1 | b" in text for text in reads)
    assert any("gone.txt" in text and "1 |" not in text for text in reads)
    # each write was alone: all that was started before it had its result by then
    order = [each for each in seen.all if isinstance(each, ToolStarted | ToolFinished)]
    open_calls: set[str] = set()
    for each in order:
        if isinstance(each, ToolStarted):
            assert not (each.name == "write_to_file" and open_calls)
            open_calls.add(each.call)
        else:
            open_calls.discard(each.call)


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ({"name": "read_file", "arguments": '{"path": "a.txt'}, "JSON"),
        ({"name": "read_file", "arguments": "{}"}, "missing value"),
        ({"name": "write_to_file", "arguments": '{"path": 3, "content": "x"}'}, "path"),
        ({"name": "fly", "arguments": "{}"}, "fly"),
    ],
)
async def test_a_wrong_call_is_told_to_the_model_and_the_task_goes_on(
    tmp_path: Path, bad: dict[str, object], says: str
) -> None:
    """S11: broken JSON, missing and wrong arguments, an unknown tool."""
    async with a_task(tmp_path / "work", turn(bad, call("list_files", path=".")), done()) as task:
        seen = Seen(task)
        assert (await task.run_until_idle()).why == "completed"
        await messages_of(task)
    first = results(seen)[0]
    assert first[1] == "failed" and says in first[2]
    assert results(seen)[1][:2] == ("list_files", "done")


async def test_who_calls_a_tool_that_is_none_is_told_the_tools_of_its_mode(tmp_path: Path) -> None:
    """S7: those of other modes are named nowhere."""
    async with a_task(tmp_path / "work", turn(call("fly")), done(), mode="ask") as task:
        seen = Seen(task)
        await task.run_until_idle()
    (said,) = [text for name, _, text in results(seen) if name == "fly"]
    assert "There is no tool 'fly'" in said
    assert "read_file" in said and "write_to_file" not in said and "execute_command" not in said


async def test_a_call_that_was_cut_by_the_limit_of_length_is_not_run(tmp_path: Path) -> None:
    """S11: max_tokens in the middle of a call."""
    cut: dict[str, object] = {"name": "write_to_file", "arguments": '{"path": "a.txt", "content": "half of'}
    async with a_task(tmp_path / "work", turn(call("list_files", path="."), cut, stop="max_tokens"), done()) as task:
        seen = Seen(task)
        assert (await task.run_until_idle()).why == "completed"
    assert [each[1] for each in results(seen)] == ["done", "failed", "done"]
    assert "limit of length" in results(seen)[1][2]
    assert not (tmp_path / "work/a.txt").exists()


async def test_a_call_that_was_cut_before_its_arguments_is_not_run(tmp_path: Path) -> None:
    """S11: a tool that needs no arguments is not called with none."""
    cut: dict[str, object] = {"name": "list_files", "arguments": ""}
    async with a_task(tmp_path / "work", turn(cut, stop="max_tokens"), turn(cut), done()) as task:
        seen = Seen(task)
        assert (await task.run_until_idle()).why == "completed"
    assert [each[1] for each in results(seen)] == ["failed", "done", "done"]


async def test_of_very_many_calls_in_one_message_the_first_are_made(tmp_path: Path) -> None:
    """S11: a model that has lost the thread repeats itself within one answer."""
    calls = [call("read_file", path=f"{number}.txt") for number in range(103)]
    async with a_task(tmp_path / "work", turn(*calls, call("attempt_completion", result="All.")), done()) as task:
        seen = Seen(task)
        assert (await task.run_until_idle()).text == "It is done."
        await messages_of(task)
    outcomes = [each[1] for each in results(seen)]
    assert outcomes == ["failed"] * 100 + ["skipped"] * 4 + ["done"]


async def test_of_calls_in_words_one_a_message_is_made_and_the_model_is_told(tmp_path: Path) -> None:
    """S11: later ones are not run; a result is presented by itself."""
    work = tmp_path / "work"
    write = "<write_to_file><path>{0}</path><content>x</content></write_to_file>"
    result = "<attempt_completion><result>ok</result></attempt_completion>"
    turns = [turn(text=f"{result}\n{write.format('a')}\n{write.format('b')}"), turn(text=result)]
    async with a_task(work, *turns, native_tools=False) as task:
        seen = Seen(task)
        assert (await task.run_until_idle()).why == "completed"
        await messages_of(task)
    assert [each[:2] for each in results(seen)] == [
        ("write_to_file", "done"),
        ("write_to_file", "skipped"),
        ("attempt_completion", "skipped"),
        ("attempt_completion", "done"),
    ]
    assert all("one call is made in each message" in text for _, _, text in results(seen)[1:3])
    assert (work / "a").exists() and not (work / "b").exists()


async def test_a_tool_outside_of_the_mode_is_refused_with_the_reason(tmp_path: Path) -> None:
    """S9: group and file pattern, for each call."""
    async with a_task(
        tmp_path / "work",
        turn(call("execute_command", command="ls"), call("write_to_file", path="a.py", content="x = 1\n")),
        turn(call("write_to_file", path="a.md", content="# x\n")),
        done(),
        mode="architect",
    ) as task:
        seen = Seen(task)
        assert (await task.run_until_idle()).why == "completed"
    command, python, markdown, _ = results(seen)
    assert command[1] == "failed" and "not available in" in command[2]
    assert python[1] == "failed" and "may only edit" in python[2]
    assert markdown[1] == "done"
    assert [each.by for each in seen.all if isinstance(each, CallJudged) and each.decision == "deny"] == ["mode"] * 2
    assert sorted(each.name for each in (tmp_path / "work").iterdir()) == ["a.md"]


async def test_a_pattern_of_a_mode_is_not_passed_by_through_a_link(tmp_path: Path) -> None:
    """S9: each name of a file counts, also the one it leads to."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "code.py").write_text("x = 1\n")
    (work / "notes.md").symlink_to("code.py")
    async with a_task(
        work, turn(call("write_to_file", path="notes.md", content="y\n")), done(), mode="architect"
    ) as task:
        seen = Seen(task)
        await task.run_until_idle()
    assert results(seen)[0][1] == "failed"
    assert (work / "code.py").read_text() == "x = 1\n"


async def test_ids_that_a_server_uses_twice_are_made_unique(tmp_path: Path) -> None:
    """S11: a server that counts calls from 0 in each answer mixes nothing up."""
    same = [{**call("list_files", path="."), "id": "call_0"} for _ in range(2)]
    async with a_task(tmp_path / "work", turn(*same), turn(*same), done()) as task:
        seen = Seen(task)
        assert (await task.run_until_idle()).why == "completed"
        await messages_of(task)
    ids = [
        part.id for each in seen.all if isinstance(each, ModelSaid) for part in each.parts if isinstance(part, ToolUse)
    ]
    assert len(ids) == len(set(ids)) == 5


async def test_the_third_equal_call_with_an_equal_result_is_not_run(tmp_path: Path) -> None:
    """S12: without a person it is told to the model."""
    work = tmp_path / "work"
    same = turn(call("read_file", path="a.txt"))
    work.mkdir()
    (work / "a.txt").write_text("a\n")
    async with a_task(work, same, same, same, done()) as task:
        seen = Seen(task)
        assert (await task.run_until_idle()).why == "completed"
    assert [each[1] for each in results(seen)] == ["done", "done", "skipped", "done"]


@pytest.mark.shell
@pytest.mark.parametrize(
    "calls",
    [
        [("execute_command", '{"command": "ls"}'), ("functions.execute_command", '{"command":"ls"}')] * 2,
        [("list_files", "{}"), ("list_files", '{"path": "."}'), ("list_files", '{"recursive": false, "path": "."}')],
        [("read_file", '{"path": "a"}'), ("read_file", '{"path": "b"}')] * 4,
    ],
)
async def test_calls_that_mean_the_same_are_the_same(tmp_path: Path, calls: list[tuple[str, str]]) -> None:
    """S12: other names, defaults spelt out, and by turns."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "a").write_text("1\n")
    (work / "b").write_text("2\n")
    made: list[dict[str, object]] = [{"name": name, "arguments": arguments} for name, arguments in calls]
    async with a_task(work, *(turn(each) for each in made), done(), limits=Limits(max_mistakes=0)) as task:
        seen = Seen(task)
        assert (await task.run_until_idle()).why == "completed"
    outcomes = [each[1] for each in results(seen)]
    assert outcomes.index("skipped") == {3: 2, 4: 2, 8: 6}[len(calls)]


async def test_a_command_whose_output_changes_may_be_repeated_and_one_whose_does_not_may_not(tmp_path: Path) -> None:
    """S12: keyed on the call and its result, however long it took."""
    counts = turn(call("execute_command", command="echo x >> n; wc -l < n"))
    stays = turn(call("execute_command", command="sleep 0.0$((RANDOM % 9)); echo same"))
    async with a_task(tmp_path / "work", *[counts] * 4, *[stays] * 3, done(), auto="all") as task:
        seen = Seen(task)
        assert (await task.run_until_idle()).why == "completed"
    assert [each[1] for each in results(seen)] == ["done"] * 6 + ["skipped", "done"]


def _mistakes(seen: Seen) -> list[str]:
    return [each.text for each in seen.all if isinstance(each, ModelTold) and each.about == "mistake"]


async def test_plain_text_is_the_answer_where_nobody_is_there(tmp_path: Path) -> None:
    """S6: it is the result; the model is not asked again."""
    async with a_task(tmp_path / "work", turn(text="There are three files."), done()) as task:
        seen = Seen(task)
        ended = await task.run_until_idle()
    assert (ended.why, ended.text, _mistakes(seen)) == ("completed", "There are three files.", [])


async def test_plain_text_makes_it_the_persons_turn_where_one_is_there(tmp_path: Path) -> None:
    """S6."""
    async with a_task(tmp_path / "work", turn(text="Which file?"), done("Done."), attended=True) as task:
        seen = Seen(task)
        assert (await task.run_until_idle()).why == "idle"
        await task.say("a.py")
        assert (await task.run_until_idle()).why == "completed"
    assert _mistakes(seen) == []


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>{"name": "read_file"}',
        '```json\n{"name": "read_file", "arguments": {}}\n```',
        "<read_file><path>a</path></read_file>",
        "<function=read_file>",
    ],
)
async def test_a_call_written_as_text_is_told_once(tmp_path: Path, text: str) -> None:
    """S6, S11: the second time it is the answer."""
    async with a_task(tmp_path / "work", turn(text=text, times=2), done()) as task:
        seen = Seen(task)
        ended = await task.run_until_idle()
    assert (ended.why, ended.text) == ("completed", text)
    (told,) = _mistakes(seen)
    assert "the tool `read_file`, with arguments such as {" in told


@pytest.mark.parametrize("steps", [["read", "list"], ["read", "list", "run"]], ids=len)
async def test_a_circle_of_several_steps_ends_a_task_where_nobody_is_there(tmp_path: Path, steps: list[str]) -> None:
    """S12: with the reason."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_text("a\n")
    made = {
        "read": turn(call("read_file", path="a.txt")),
        "list": turn(call("list_files", path=".")),
        "run": turn(call("execute_command", command="cat a.txt")),
    }
    async with a_task(work, *[made[each] for each in steps] * 20) as task:
        ended = await task.run_until_idle()
    assert ended.why == "failed" and ended.text.startswith("the model goes in circles: ")


async def test_text_that_repeats_itself_is_stopped(tmp_path: Path) -> None:
    """S12: in the middle of an answer."""
    async with a_task(tmp_path / "work", turn(text="I am stuck here. " * 5_000, pace=0.00001), done()) as task:
        seen = Seen(task)
        ended = await task.run_until_idle()
    assert (ended.why, ended.text[:24]) == ("failed", "the model repeats itself")
    (said,) = seen.of(ModelSaid)
    assert isinstance(said, ModelSaid) and len(str(said.parts)) < 5_000


@given(st.text(max_size=60), st.integers(0, 300), st.integers(1, 400))
def test_what_repeats_is_one_piece_over_and_over(piece: str, lead: int, times: int) -> None:
    """S12."""
    text = ("x" * lead + piece * times)[-LONGEST_LOOP:]
    found = repeats(text)
    if found:
        assert any(text == (part * len(text))[: len(text)] for size in range(1, 1_001) for part in [text[:size]])
    elif len(piece * times) >= LONGEST_LOOP and any(each.isalpha() for each in piece):
        raise AssertionError("it repeats")


def test_a_long_table_does_not_repeat() -> None:
    """S12."""
    assert not repeats("\n".join(f"| row {n} | value |" for n in range(1_000)))
    assert not repeats("-" * 9_000)


async def test_a_result_beside_a_command_that_failed_is_held_back(tmp_path: Path) -> None:
    """S6: the model is told, and looks at it."""
    both = turn(call("execute_command", command="false"), call("attempt_completion", result="Tests pass."))
    async with a_task(tmp_path / "work", both, done("They fail."), auto="all") as task:
        seen = Seen(task)
        ended = await task.run_until_idle()
    assert ended.text == "They fail." and "another call of the same message failed" in results(seen)[1][2]


async def test_the_same_result_after_other_words_is_no_repetition(tmp_path: Path) -> None:
    """S12."""
    async with a_task(tmp_path / "work", *[done("Same.")] * 5, attended=True) as task:
        for _ in range(5):
            assert (await task.run_until_idle()).text == "Same."
            await task.say("Once more.")


async def test_open_items_of_the_list_are_told_once(tmp_path: Path) -> None:
    """S6: the model clearly meant to go on."""
    todos = call("update_todo_list", todos="[ ] write it\n[x] read it")
    async with a_task(tmp_path / "work", turn(todos), turn(text="I read it."), done()) as task:
        seen = Seen(task)
        assert (await task.run_until_idle()).why == "completed"
    assert len(_mistakes(seen)) == 1


async def test_empty_and_cut_answers_are_told_and_counted(tmp_path: Path) -> None:
    """S11: after three in a row it can't go on alone."""
    async with a_task(tmp_path / "work", turn(times=2), turn(text="So much to say", stop="max_tokens")) as task:
        seen = Seen(task)
        ended = await task.run_until_idle()
    told = _mistakes(seen)
    assert ["empty" in told[0], "empty" in told[1], "limit of length" in told[2]] == [True] * 3
    assert ended.why == "failed" and "3 mistakes in a row" in ended.text


async def test_a_thought_that_was_cut_is_told_as_that(tmp_path: Path) -> None:
    """S6: the limit of length was reached before it said anything."""
    async with a_task(tmp_path / "work", turn(reasoning="Hm, let me", stop="max_tokens"), done()) as task:
        seen = Seen(task)
        assert (await task.run_until_idle()).why == "completed"
    (told,) = [each.text for each in seen.all if isinstance(each, ModelTold) and each.about == "mistake"]
    assert "limit of length" in told


async def test_a_call_that_works_begins_the_count_of_mistakes_anew(tmp_path: Path) -> None:
    """S11: three in a row."""
    wrong, right = turn(text="Hm."), turn(call("list_files", path="."))
    async with a_task(tmp_path / "work", wrong, wrong, right, wrong, wrong, done()) as task:
        assert (await task.run_until_idle()).why == "completed"


async def test_a_refusal_ends_the_run_and_its_calls_are_not_made(tmp_path: Path) -> None:
    """S6: every reason to stop is handled."""
    async with a_task(
        tmp_path / "work", turn(call("write_to_file", path="a.txt", content="a"), text="No.", stop="refusal")
    ) as task:
        ended = await task.run_until_idle()
        assert (ended.why, ended.text) == ("refused", "No.")
        await messages_of(task)
        assert (await task.run_until_idle()).why == "failed"  # the script has no more to say
        await messages_of(task)
    assert not (tmp_path / "work/a.txt").exists()


async def test_an_answer_that_the_provider_broke_off_is_asked_for_again_as_it_is(tmp_path: Path) -> None:
    """S6: pause."""
    async with a_task(tmp_path / "work", turn(text="Thinking", stop="pause"), done()) as task:
        seen = Seen(task)
        assert (await task.run_until_idle()).why == "completed"
    assert len([each for each in seen.all if isinstance(each, ModelTold)]) == 1  # the environment, at the first turn


async def test_a_model_that_pauses_for_ever_is_stopped(tmp_path: Path) -> None:
    limits = Limits(max_turns=50)
    async with a_task(tmp_path / "work", turn(text="Hm", stop="pause", times=200), limits=limits) as task:
        assert (await task.run_until_idle()).why in ("failed", "limit")


async def test_a_task_without_a_person_decides_for_itself(tmp_path: Path) -> None:
    """S10: a question that nobody can answer is told so."""
    async with a_task(
        tmp_path / "work", turn(call("ask_followup_question", question="Which?", follow_up=[])), done()
    ) as task:
        seen = Seen(task)
        assert (await task.run_until_idle()).why == "completed"
    assert "Nobody is here to answer" in results(seen)[0][2]


async def test_todos_and_slash_commands_are_the_tasks_own(tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / ".tarmac/commands").mkdir(parents=True)
    (work / ".tarmac/commands/ship.md").write_text("Run the tests, then tag.\n")
    async with a_task(
        work,
        turn(call("update_todo_list", todos="[x] one\n[ ] two"), call("run_slash_command", command="ship")),
        done(),
    ) as task:
        seen = Seen(task)
        assert (await task.run_until_idle()).why == "completed"
        assert [(each.text, each.status) for each in task.metadata.todos] == [("one", "done"), ("two", "open")]
    assert "Run the tests, then tag." in results(seen)[1][2]


async def test_a_result_is_json_safe_whatever_a_file_holds(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "odd.txt").write_bytes(b"a\x00\xff\xed\xa0\x80\n")
    async with a_task(work, turn(call("read_file", path="odd.txt")), done()) as task:
        seen = Seen(task)
        assert (await task.run_until_idle()).why == "completed"
    json.dumps(results(seen))


@pytest.mark.shell
async def test_without_a_person_a_model_that_wants_what_it_may_not_have_is_stopped(tmp_path: Path) -> None:
    """S6: a denial is no mistake, so three of them end nothing. Ten in a row do: nobody else would stop it."""
    wants = [turn(call("execute_command", command=f"git push origin branch{n}")) for n in range(19)]
    async with a_task(tmp_path / "work", *wants, auto="edit") as task:
        seen = Seen(task)
        ended = await task.run_until_idle()
    assert ended.why == "failed" and "10 answers" in ended.text and "nobody here can allow" in ended.text
    assert [each[1] for each in results(seen)] == ["denied"] * 10


@pytest.mark.shell
async def test_without_a_person_a_model_that_was_denied_can_go_another_way(tmp_path: Path) -> None:
    """S6: a denial is no mistake, with nobody there either."""
    wants = [turn(call("execute_command", command=f"git push origin branch{n}")) for n in range(5)]
    async with a_task(tmp_path / "work", *wants, done(), auto="edit") as task:
        assert (await task.run_until_idle()).why == "completed"


async def test_a_hidden_file_is_told_to_the_person_once(tmp_path: Path) -> None:
    """S5, P8: ignore_error; of each file once, from .rooignore too."""
    work = tmp_path / "work"
    work.mkdir()
    (work / ".rooignore").write_text("secret.txt\n")
    (work / "secret.txt").write_text("x\n")
    wanted = turn(call("read_file", files=[{"path": "secret.txt"}]))
    async with a_task(work, wanted, wanted, done()) as task:
        seen = Seen(task)
        await task.run_until_idle()
    noted = [each.text for each in seen.of(Noted) if isinstance(each, Noted) and each.what == "ignore_error"]
    assert noted == ["the model wanted secret.txt, which .tarmacignore or .rooignore hides"]
