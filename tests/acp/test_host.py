"""Tarmac hosts an agent: the wire, files, terminals, permissions, and the end of it."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from tests.acp.hosting import Stage, hosting

from tarmac.errors import BadRequest, PeerGone, PeerRefused
from tarmac.policy.approval import Answer, AnswerKind
from tarmac.show.look import Look
from tarmac.show.question import question_lines
from tarmac.tasks import events as e
from tarmac.tasks import signals as s
from tarmac.terminals.process import processes

pytestmark = [pytest.mark.shell, pytest.mark.slow]

OPTIONS = [
    {"optionId": "forever", "name": "Always", "kind": "allow_always"},
    {"optionId": "fine", "name": "Once", "kind": "allow_once"},
    {"optionId": "nope", "name": "No", "kind": "reject_once"},
]


def create(command: str, **more: Any) -> dict[str, Any]:
    return {"call": "terminal/create", "params": {"command": command, **more}, "as": "t"}


def on(method: str, name: str, how: str = "call") -> dict[str, Any]:
    return {how: f"terminal/{method}", "params": {"terminalId": "$t.terminalId"}, "as": name}


def yes(_: e.QuestionAsked) -> AnswerKind:
    return AnswerKind.YES


# Terminals


async def test_a_command_is_run_told_and_released(tmp_path: Path) -> None:
    """A1: create, wait, output, release; the id is then unknown."""
    async with hosting(tmp_path) as stage:
        stage.answer = yes
        found = await stage.play(
            create("printf 'a%s' \"$X\"; echo e >&2; exit 3", env=[{"name": "X", "value": "b c"}]),
            on("wait_for_exit", "w"),
            on("output", "o"),
            on("release", "r"),
            on("output", "gone"),
        )
    assert found["w"] == {"exitCode": 3, "signal": None}
    assert found["o"] == {"output": "ab ce\n", "truncated": False, "exitStatus": {"exitCode": 3, "signal": None}}
    assert found["gone"]["error"]["code"] == -32002
    assert "X='b c'" in stage.asked[0].details
    finished = stage.of(e.ToolFinished)[0]
    assert (finished.title.startswith("Ran `export X="), finished.exit_code) == (True, 3)


async def test_an_answer_of_no_known_kind_is_refused_and_the_question_stays(tmp_path: Path) -> None:
    """S5: what could not be read again is never written, whichever kind of task it is."""
    wrong: list[str] = []

    async def answer(stage: Stage, asked: e.QuestionAsked) -> None:
        try:
            await stage.hosted.answer(asked.question, Answer("maybe"))  # type: ignore[arg-type]
        except BadRequest as error:
            wrong.append(error.what)
        await stage.hosted.answer(asked.question, Answer(AnswerKind.YES))

    async with hosting(tmp_path) as stage:
        stage.answer = lambda asked: stage.start(answer(stage, asked))
        found = await stage.play(create("touch made"), on("wait_for_exit", "w"))
    assert wrong == ["`maybe` is not an answer"]
    assert found["w"] == {"exitCode": 0, "signal": None}
    assert [each.answer for each in stage.of(e.QuestionAnswered)] == ["yes"]


async def test_words_are_words_and_a_line_is_a_line(tmp_path: Path) -> None:
    async with hosting(tmp_path) as stage:
        stage.answer = yes
        found = await stage.play(
            create("printf", args=["%s|", "a b", "$HOME", "'"]), on("wait_for_exit", "w"), on("output", "o")
        )
    assert found["o"]["output"] == "a b|$HOME|'|"


async def test_what_only_reads_runs_without_a_question(tmp_path: Path) -> None:
    """A1: the policy is asked first."""
    async with hosting(tmp_path) as stage:
        (stage.folder / "work" / "f").write_text("x\n")
        found = await stage.play(create("cat", args=["f"]), on("wait_for_exit", "w"), on("output", "o"))
    assert (found["o"]["output"], stage.asked) == ("x\n", [])


async def test_a_command_that_is_denied_is_an_error_and_never_runs(tmp_path: Path) -> None:
    async with hosting(tmp_path) as stage:
        found = await stage.play(create("touch made"))
        assert found["t"]["error"]["code"] == -32010
        assert not (tmp_path / "work" / "made").exists()
        assert [each.outcome for each in stage.of(e.ToolFinished)] == ["denied"]


async def test_the_output_is_cut_from_its_beginning_at_a_character(tmp_path: Path) -> None:
    """A1: outputByteLimit."""
    async with hosting(tmp_path, auto="all", attended=False) as stage:
        found = await stage.play(
            create("printf 'ééééé'; true # all", outputByteLimit=5), on("wait_for_exit", "w"), on("output", "o")
        )
    assert (found["o"]["output"], found["o"]["truncated"]) == ("éé", True)


async def test_kill_keeps_the_id_and_tells_the_signal(tmp_path: Path) -> None:
    """A1: kill, then output and wait; release frees."""
    async with hosting(tmp_path, auto="all", attended=False) as stage:
        found = await stage.play(
            create("touch ready; exec sleep 1000"),
            {"shell": "until [ -e ready ]; do sleep 0.01; done"},
            on("kill", "k"),
            on("wait_for_exit", "w"),
            on("output", "o"),
            on("release", "r"),
        )
    assert found["k"] == found["r"] == {}
    assert found["w"] == found["o"]["exitStatus"] == {"exitCode": None, "signal": "SIGTERM"}


async def test_who_waits_hears_the_end_when_it_is_released(tmp_path: Path) -> None:
    """A1: wait_for_exit pending at release; what ignores SIGTERM is killed."""
    async with hosting(tmp_path, auto="all", attended=False) as stage:
        found = await stage.play(
            create("trap '' TERM; touch ready; while :; do sleep 0.2; done"),
            {"shell": "until [ -e ready ]; do sleep 0.01; done"},
            on("wait_for_exit", "w", "send"),
            on("release", "r"),
            {"await": "w"},
        )
    assert found["w"] == {"exitCode": None, "signal": "SIGKILL"}


async def test_an_exit_code_above_128_is_no_signal(tmp_path: Path) -> None:
    async with hosting(tmp_path, auto="all", attended=False) as stage:
        found = await stage.play(create("exit 137"), on("wait_for_exit", "w"))
    assert found["w"] == {"exitCode": 137, "signal": None}


# Files


async def test_files_are_read_by_lines_and_written_when_approved(tmp_path: Path) -> None:
    """A1: fs/read_text_file, fs/write_text_file."""
    file = tmp_path / "work" / "f.txt"
    async with hosting(tmp_path, auto="read") as stage:
        stage.answer = yes
        file.write_text("1\n2\n3\n4\n")
        found = await stage.play(
            {"call": "fs/read_text_file", "params": {"path": str(file), "line": 2, "limit": 2}, "as": "part"},
            {"call": "fs/read_text_file", "params": {"path": str(file) + "x"}, "as": "none"},
            {"call": "fs/read_text_file", "params": {"path": "f.txt"}, "as": "relative"},
            {"call": "fs/write_text_file", "params": {"path": str(file), "content": "new\n"}, "as": "w"},
        )
    assert found["part"] == {"content": "2\n3\n"}
    assert [found[each]["error"]["code"] for each in ("none", "relative")] == [-32002, -32602]
    assert (found["w"], file.read_text()) == ({}, "new\n")
    assert [each.ask for each in stage.asked] == ["tool"]
    assert "+new" in stage.asked[0].details


async def test_hidden_and_protected_files_stay_what_they_are(tmp_path: Path) -> None:
    """A1: ignore, protected, outside, through a link."""
    work = tmp_path / "work"
    async with hosting(tmp_path, auto="all", attended=False) as stage:
        (work / ".tarmacignore").write_text("secret\n")
        (work / "secret").write_text("s")
        (work / "link").symlink_to("secret")
        (work / ".git").mkdir()
        found = await stage.play(
            {"call": "fs/read_text_file", "params": {"path": str(work / "link")}, "as": "a"},
            {"call": "fs/write_text_file", "params": {"path": str(work / "secret"), "content": "x"}, "as": "b"},
            {"call": "fs/write_text_file", "params": {"path": str(work / ".git/config"), "content": "x"}, "as": "c"},
        )
    assert [found[each]["error"]["code"] for each in "abc"] == [-32010] * 3
    assert (work / "secret").read_text() == "s"
    assert not (work / ".git/config").exists()


# Permission


def request(call: dict[str, Any], name: str = "p", how: str = "call") -> dict[str, Any]:
    params = {"toolCall": {"toolCallId": "c1", **call}, "options": OPTIONS}
    return {how: "session/request_permission", "params": params, "as": name}


async def test_permission_is_judged_first_and_answered_by_kind(tmp_path: Path) -> None:
    """A1: harmless → once, never always; asked → as the person says; unknown input → asked."""
    async with hosting(tmp_path) as stage:
        found = await stage.play(
            request({"kind": "execute", "title": "x", "rawInput": {"command": "ls"}}, "harmless"),
            request({"kind": "execute", "title": "x", "rawInput": {"command": "touch a"}}, "asked"),
            request({"kind": "fetch", "title": "Look at a page", "rawInput": {"url": "http://a"}}, "unknown"),
        )
    chosen = {name: each["outcome"].get("optionId") for name, each in found.items()}
    assert chosen == {"harmless": "fine", "asked": "nope", "unknown": "nope"}
    assert len(stage.asked) == 2
    assert "Look at a page" in stage.asked[1].text


async def test_a_yes_to_a_command_is_good_for_one_run_of_it(tmp_path: Path) -> None:
    """A1: who asks for permission and then creates the terminal asks once; a second run asks again."""
    async with hosting(tmp_path) as stage:
        stage.answer = yes
        call = {"kind": "execute", "title": "x", "rawInput": {"command": "touch a"}}
        await stage.play(request(call), create("touch a"), on("wait_for_exit", "w"))
        assert len(stage.asked) == 1
        assert (tmp_path / "work" / "a").exists()
        await stage.play(create("touch a"))
        assert len(stage.asked) == 2
        await stage.play(request(call), create("/bin/sh", args=["-lc", "touch a"]))  # as fast-agent runs it
        assert len(stage.asked) == 3
        await stage.play(request(call), create("/bin/sh", args=["-lc", "touch b"]))
        assert len(stage.asked) == 5


async def test_a_yes_to_a_file_is_good_for_writing_it_once_over_what_was_shown(tmp_path: Path) -> None:
    """A1: another content, or a file that is not what the agent said, asks again; so does a request without content."""
    work = tmp_path / "work"
    async with hosting(tmp_path) as stage:
        stage.answer = yes

        async def asks(name: str, *, old: str | None, shown: str | None, writes: str) -> int:
            """How often the person is asked when the agent asks, and then writes."""
            before, path = len(stage.asked), str(work / name)
            diff = [{"type": "diff", "path": path, "oldText": old, "newText": shown}] if shown is not None else []
            call = {"kind": "edit", "title": "x", "locations": [{"path": path}], "content": diff}
            write = {"call": "fs/write_text_file", "params": {"path": path, "content": writes}, "as": "w"}
            assert (await stage.play(request(call), write))["w"] == {}
            assert (work / name).read_text() == writes
            return len(stage.asked) - before

        assert await asks("a", old=None, shown="one\n", writes="one\n") == 1
        assert await asks("a", old="one\n", shown="two\n", writes="two\n") == 1
        assert await asks("a", old="two\n", shown="three\n", writes="four\n") == 2
        assert await asks("a", old="three\n", shown="five\n", writes="five\n") == 2
        assert await asks("a", old=None, shown=None, writes="six\n") == 2


async def test_nobody_there_means_no(tmp_path: Path) -> None:
    async with hosting(tmp_path, attended=False) as stage:
        found = await stage.play(
            request({"kind": "execute", "rawInput": {"command": "touch a"}}, "a"), request({"kind": "other"}, "b")
        )
    assert [found[each]["outcome"]["optionId"] for each in "ab"] == ["nope", "nope"]


async def test_cancelling_answers_every_question_with_cancelled(tmp_path: Path) -> None:
    """A1: on cancel the agent is told, and each pending permission gets `cancelled`."""
    async with hosting(tmp_path) as stage:

        def stop(_: e.QuestionAsked) -> None:
            asyncio.get_running_loop().call_soon(stage.hosted.cancel)

        stage.answer = stop
        ended = await stage.turn(
            request({"kind": "other", "title": "x"}, "a", "send"),
            request({"kind": "execute", "rawInput": {"command": "touch a"}}, "b", "send"),
            {"await": "a"},
            {"await": "b"},
            {"until": "session/cancel"},
            {"stop": "cancelled"},
        )
        assert ended.why == "interrupted"
        assert [each["result"] for each in stage.heard() if each.get("id") in (1, 2) and "result" in each] == [
            {"outcome": {"outcome": "cancelled"}}
        ] * 2
        assert (await stage.turn({"stop": "end_turn"})).why == "idle"


async def test_an_agent_that_says_nothing_is_given_up(tmp_path: Path) -> None:
    """A1: after a time that is told; it is not silent while it waits for a command of ours."""
    async with hosting(tmp_path) as stage:
        stage.hosted.longest_silence = 0.5
        ended = await stage.turn({"until": "session/cancel"}, {"stop": "cancelled"})
        assert (ended.why, ended.text.endswith("said nothing for 0.5 s")) == ("failed", True)


async def test_what_stands_beside_a_command_is_not_overlooked(tmp_path: Path) -> None:
    """A1: the agent's word is no proof: another machine, an editor's verb, git by a workspace's settings."""
    async with hosting(tmp_path) as stage:
        await stage.play(
            request({"kind": "execute", "rawInput": {"command": "ls", "host": "prod"}}, "a"),
            request({"kind": "edit", "rawInput": {"command": "ls", "path": "x"}}, "b"),
            request({"kind": "execute", "rawInput": {"command": "git log"}}, "c"),
            request({"kind": "execute", "rawInput": {"command": "ls", "description": "look"}}, "d"),
        )
        assert [each.ask for each in stage.asked] == ["tool", "tool", "tool"]
        await stage.play(
            request({"kind": "execute", "rawInput": {"command": "ls", "cmd": "touch x"}}, "f"),
            request({"kind": "execute", "rawInput": {"command": "ls", "cwd": "/a", "workdir": "/b"}}, "g"),
        )
        assert "touch x" in stage.asked[3].text and "/b" in stage.asked[4].text
        assert "prod" in stage.asked[0].text
        found = await stage.play(request({"kind": "execute", "rawInput": {"command": "rm -rf /", "host": "x"}}, "e"))
        assert (found["e"]["outcome"]["optionId"], len(stage.asked)) == ("nope", 5)  # denied is denied


async def test_nothing_of_what_is_asked_is_cut_in_silence(tmp_path: Path) -> None:
    """P6: however much an agent says, its input is there to the end, and what is left out is said to be."""
    async with hosting(tmp_path) as stage:
        raw = {"url": "http://a", "then": "x" * 20_000 + "; rm -rf ~"}
        await stage.play(request({"kind": "fetch", "title": "harmless " * 3_000, "rawInput": raw}))
    assert "rm -rf ~" in stage.asked[0].text and "characters not shown" in stage.asked[0].text
    assert len(stage.asked[0].text) < 20_000


async def test_where_a_command_runs_is_known_from_what_was_told_before(tmp_path: Path) -> None:
    """A1: opencode tells the directory with the call, and not again with its question."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "sub").mkdir()
    async with hosting(tmp_path) as stage:
        told = {"command": "touch a", "cwd": str(tmp_path / "work" / "sub")}
        await stage.play(
            {"update": {"sessionUpdate": "tool_call", "toolCallId": "c1", "kind": "execute", "rawInput": told}},
            request({"kind": "execute", "rawInput": {"command": "touch a"}}),
        )
    assert f'"directory": "{tmp_path}/work/sub"' in stage.asked[0].details


async def test_that_nobody_could_be_asked_is_told(tmp_path: Path) -> None:
    async with hosting(tmp_path, attended=False) as stage:
        await stage.play(
            request({"kind": "execute", "rawInput": {"command": "touch a"}}, "a"),
            request({"kind": "other", "title": "Look up"}, "b"),
        )
    first, second = [each.text for each in stage.of(e.Noted)]
    assert "touch a" in first and "tarmac grants allow" in first and "--auto" in first
    assert "Look up" in second and "nobody" in second.lower()


async def test_a_question_that_crosses_the_cancel_is_answered_with_cancelled(tmp_path: Path) -> None:
    """A1: an agent may ask before it has heard that the turn is over."""
    async with hosting(tmp_path) as stage:

        def stop(_: int | None, thing: object) -> None:
            if isinstance(thing, s.TextStreamed):
                stage.hosted.cancel()

        stage.hosted.subscribe(stop)
        ended = await stage.turn(
            {"update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "x"}}},
            {"until": "session/cancel"},
            request({"kind": "execute", "rawInput": {"command": "touch a"}}, "a"),
            request({"kind": "other", "title": "x"}, "b"),
            create("touch c"),
            {"stop": "cancelled"},
        )
        assert ended.why == "interrupted"
        answers = [each.get("result") or each["error"] for each in stage.heard() if "method" not in each]
    assert [each.get("outcome", each.get("code")) for each in answers] == [{"outcome": "cancelled"}] * 2 + [-32800]
    assert stage.asked == []


async def test_between_two_turns_nobody_is_asked(tmp_path: Path) -> None:
    """A1: the person types the next prompt then: what they type must not become an answer. What only reads goes on."""
    form = {"type": "object", "properties": {"a": {"type": "string"}}}
    async with hosting(tmp_path) as stage:
        stage.answer = yes
        between = [
            request({"kind": "other", "title": "x"}, "a"),
            request({"kind": "execute", "rawInput": {"command": "touch made"}}, "b"),
            {"call": "terminal/create", "params": {"command": "touch made"}, "as": "c"},
            {"call": "terminal/create", "params": {"command": "ls"}, "as": "d"},
            {"call": "elicitation/create", "params": {"message": "m", "requestedSchema": form}, "as": "e"},
        ]
        done = asyncio.Event()
        stage.hosted.subscribe(lambda _, thing: done.set() if isinstance(thing, s.TextStreamed) else None)
        await stage.play({"later": between})
        async with asyncio.timeout(10):
            await done.wait()
        found = await stage.play({"stop": "end_turn"})
    assert [found[each]["outcome"] for each in "ab"] == [{"outcome": "cancelled"}] * 2
    assert found["c"]["error"]["code"] == -32800 and "terminalId" in found["d"]
    assert (found["e"], stage.asked) == ({"action": "cancel"}, [])
    assert not (tmp_path / "work" / "made").exists()
    assert [each.text.partition(":")[0] for each in stage.of(e.Noted)] == ["not asked, as no turn was under way"] * 3


# What it shows, and what it bears


def execute(id: str, command: str, **more: Any) -> dict[str, Any]:
    facts = {"toolCallId": id, "title": "execute", "kind": "execute", "rawInput": {"command": command}}
    return {"update": {"sessionUpdate": "tool_call_update", **facts, **more}}


def content(text: str) -> list[dict[str, Any]]:
    return [{"type": "content", "content": {"type": "text", "text": text}}]


@pytest.mark.parametrize("status", ["pending", "in_progress"])
async def test_a_command_in_our_terminal_is_shown_once(tmp_path: Path, status: str) -> None:
    """A1: fast-agent tells of a call, runs it by terminal/create, and tells its output once more."""
    async with hosting(tmp_path, auto="all", attended=False) as stage:
        await stage.play(
            execute("c", "echo hi; (exit 3)", status=status),
            create("/bin/sh", args=["-lc", "echo hi; (exit 3)"]),
            on("wait_for_exit", "w"),
            on("release", "r"),
            execute("c", "echo hi; (exit 3)", status="failed", content=content("hi\n[Exit code: 3]")),
            execute("d", "echo other", status="completed", content=content("other")),
        )
    ended = [(each.title, each.exit_code) for each in stage.of(e.ToolFinished)]
    assert ended == [("Ran `echo hi; (exit 3)`", 3), ("Ran `echo other`", None)]
    assert [each.call for each in stage.of(e.ToolStarted)] == [each.call for each in stage.of(e.ToolFinished)]
    assert b"".join(each.data for each in stage.of(s.OutputStreamed)) == b"hi\nother"


async def test_a_call_that_embeds_our_terminal_is_shown_once(tmp_path: Path) -> None:
    async with hosting(tmp_path, auto="all", attended=False) as stage:
        embeds = [{"type": "terminal", "terminalId": "term-1"}]
        await stage.play(
            create("echo hi"),
            execute("c", "something like echo", status="in_progress", content=embeds),
            on("wait_for_exit", "w"),
            execute("c", "something like echo", status="completed", content=embeds),
        )
    assert [each.title for each in stage.of(e.ToolFinished)] == ["Ran `echo hi`"]


@pytest.mark.parametrize("raw", [{"metadata": {"exit": 3}}, {"exit_code": 3}, {"exitCode": 3.0}])
async def test_an_exit_code_is_found_where_agents_put_it(tmp_path: Path, raw: dict[str, Any]) -> None:
    """A7: opencode tells it in rawOutput alone."""
    async with hosting(tmp_path) as stage:
        await stage.play(execute("c", "make", status="completed", rawOutput=raw))
    assert [each.exit_code for each in stage.of(e.ToolFinished)] == [3]


async def test_a_call_that_is_first_heard_of_in_a_question_keeps_its_name(tmp_path: Path) -> None:
    """A1: gemini and qwen send no tool_call before the permission request."""
    async with hosting(tmp_path) as stage:
        await stage.play(
            request({"kind": "fetch", "title": "Fetch example.org"}),
            {"update": {"sessionUpdate": "tool_call_update", "toolCallId": "c1", "status": "completed"}},
        )
    assert [each.title for each in stage.of(e.ToolFinished)] == ["Fetched example.org"]


async def test_updates_become_the_task(tmp_path: Path) -> None:
    """A7: words, plans, calls in both tenses, terminals of the agent's own; tool_call_update first."""

    def update(what: str, **more: Any) -> dict[str, Any]:
        return {"update": {"sessionUpdate": what, **more}}

    def text(words: str) -> dict[str, str]:
        return {"type": "text", "text": words}

    own = {"terminal_id": "theirs"}
    async with hosting(tmp_path) as stage:
        await stage.play(
            update("agent_message_chunk", content=text("Hel")),
            update("agent_message_chunk", content=text("lo")),
            update("plan", entries=[{"content": "one", "priority": "high", "status": "in_progress"}]),
            update("tool_call_update", toolCallId="u", title="Read f.py", kind="read", status="in_progress"),
            update("tool_call_update", toolCallId="u", status="completed"),
            update("tool_call", toolCallId="v", title="x", kind="execute", rawInput={"command": "make"},
                   status="pending", content=[{"type": "terminal", "terminalId": "theirs"}],
                   _meta={"terminal_info": own}),
            update("tool_call_update", toolCallId="v", _meta={"terminal_output": {**own, "data": "out\n"}}),
            update("tool_call_update", toolCallId="v", status="failed",
                   _meta={"terminal_exit": {**own, "exit_code": 2}}),
            update("tool_call", toolCallId="w", title="Edit g", kind="edit", status="completed",
                   content=[{"type": "diff", "path": "/g", "oldText": "a\n", "newText": "b\n"}]),
        )  # fmt: skip
        await stage.turn()  # by its end, what came after the response before is told
        id = stage.hosted.id
    said = [part.text for each in stage.of(e.ModelSaid) for part in each.parts]
    assert said[0] == "Hello"
    assert [todo.status for todo in stage.of(e.TodosUpdated)[0].todos] == ["doing"]
    assert [each.title for each in stage.of(e.ToolStarted)] == ["Reading f.py", "Running `make`", "Editing g"]
    ends = [(each.title, each.outcome, each.exit_code) for each in stage.of(e.ToolFinished)]
    assert ends == [("Read f.py", "done", None), ("Ran `make`", "failed", 2), ("Edited g", "done", None)]
    assert stage.of(s.OutputStreamed)[0].data == b"out\n"
    assert "+b" in stage.of(e.ToolFinished)[2].details
    log = (tmp_path / "state" / "tasks" / id / "log.jsonl").read_text()
    assert log.count("tool_finished") == 3
    assert "(late)" in log  # an update after the response


async def test_both_ends_of_what_an_agents_terminal_printed_are_kept(tmp_path: Path) -> None:
    """A1: also where it printed more than is kept."""
    own = {"terminal_id": "theirs"}
    rows = [f"row {number}\n" for number in range(5000)]
    call = {"sessionUpdate": "tool_call_update", "toolCallId": "v"}
    pieces = ["".join(rows[at : at + 500]) for at in range(0, len(rows), 500)]
    async with hosting(tmp_path) as stage:
        await stage.play(
            {"update": {**call, "title": "make", "kind": "execute", "status": "in_progress"}},
            *({"update": {**call, "_meta": {"terminal_output": {**own, "data": piece}}}} for piece in pieces),
            {"update": {**call, "status": "completed", "_meta": {"terminal_exit": {**own, "exit_code": 0}}}},
        )
    text = stage.of(e.ToolFinished)[0].content[0].text
    assert text.startswith("row 0\nrow 1\n") and text.endswith("row 4998\nrow 4999\n")
    assert "characters …]" in text and len(text) < 16_100


async def test_nonsense_is_borne(tmp_path: Path) -> None:
    """A1: junk on stdout, a batch, unknown kinds and methods, a line of megabytes."""
    big = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "x" * 3_000_000}}
    async with hosting(tmp_path) as stage:
        found = await stage.play(
            {"raw": "npm warn deprecated"},
            {"raw": '[{"jsonrpc":"2.0","method":"_x"},{"jsonrpc":"2.0","method":"session/update","params":7}]'},
            {"update": {"sessionUpdate": "something_new", "a": 1}},
            {"update": {"sessionUpdate": "tool_call_update"}},
            {"update": {"sessionUpdate": "plan", "entries": 3}},
            {"update": {"sessionUpdate": "state_update", "state": "running"}},  # those of version 2
            {"update": {"sessionUpdate": "terminal_update", "terminalId": "x", "output": {"data": "aGk="}}},
            {"update": {"sessionUpdate": "terminal_output_chunk", "terminalId": "x", "data": "aGk="}},
            {"update": {"sessionUpdate": "tool_call_content_chunk", "toolCallId": "x", "content": {"type": "?"}}},
            {"update": {"sessionUpdate": "plan_update", "plan": {"type": "items", "entries": []}}},
            {"update": {"sessionUpdate": "agent_message", "messageId": "m", "content": []}},
            {"update": 7},
            {"update": {"sessionUpdate": ["x"]}},
            {"update": {"sessionUpdate": "tool_call", "toolCallId": "q", "content": 3, "status": {"a": 1}}},
            {"update": {"sessionUpdate": "tool_call", "toolCallId": "q2", "kind": 3, "title": None, "locations": "x"}},
            {"update": big},
            {"call": "no/such", "params": {}, "as": "n"},
            {"call": "terminal/output", "params": {"terminalId": "foreign"}, "as": "f"},
            {"call": "terminal/create", "params": {"command": ["x"]}, "as": "c"},
        )
        assert [found[each]["error"]["code"] for each in "nfc"] == [-32601, -32002, -32602]
        assert [each for each in stage.heard() if each.get("id", 0) is None] == []  # junk is not answered
    assert sum(len(each.text) for each in stage.of(s.TextStreamed)) >= 3_000_000


@pytest.mark.parametrize(("reason", "why"), [("refusal", "refused"), ("max_tokens", "limit"), ("new_one", "idle")])
async def test_why_a_turn_ended_is_told(tmp_path: Path, reason: str, why: str) -> None:
    async with hosting(tmp_path) as stage:
        assert (await stage.turn({"stop": reason})).why == why


# Its beginning and its end


async def test_an_agent_that_says_two_and_speaks_one_is_taken(tmp_path: Path) -> None:
    async with hosting(tmp_path, AGENT_INITIALIZE='{"protocolVersion":2,"agentCapabilities":{}}') as stage:
        assert (await stage.turn()).why == "idle"


async def test_an_agent_of_version_two_is_told_as_one(tmp_path: Path) -> None:
    with pytest.raises(PeerRefused, match="version 2"):
        async with hosting(tmp_path, AGENT_INITIALIZE='{"protocolVersion":2,"capabilities":{},"info":{}}'):
            pass


async def test_an_agent_that_wants_a_login_says_so(tmp_path: Path) -> None:
    with pytest.raises(PeerRefused, match="log in"):
        async with hosting(tmp_path, AGENT_AUTH="1"):
            pass
    assert not list((tmp_path / "state" / "tasks").glob("*/log.jsonl"))  # no task is left of what never began


async def test_an_agent_that_dies_is_a_failure_with_its_last_words(tmp_path: Path) -> None:
    async with hosting(tmp_path) as stage:
        ended = await stage.turn({"die": 3})
        assert ended.why == "failed"
        assert "exit code 3" in ended.text
        assert "it is all over" in stage.of(e.Noted)[-1].text
        with pytest.raises(PeerGone):
            await stage.hosted.peer.request("x")


async def test_an_agent_is_told_where_it_is_started_also_by_pwd(tmp_path: Path) -> None:
    """A1: opencode believes PWD more than the kernel, and would work in the folder in which Tarmac was started."""
    async with hosting(tmp_path, PWD=str(tmp_path)) as stage:
        await stage.play({"shell": f"tr '\\0' '\\n' < /proc/$PPID/environ | grep ^PWD= > {tmp_path}/told"})
    assert (tmp_path / "told").read_text() == f"PWD={tmp_path}/work\n"


async def test_nothing_is_left_of_an_agent_that_died_before(tmp_path: Path) -> None:
    """A1: what it left behind has another parent, session and environment, and is found all the same."""
    pids = tmp_path / "pids"
    daemon = f"env -i setsid sh -c 'echo $$ >> {pids}; exec sleep 1004' >/dev/null 2>&1 &"
    async with hosting(tmp_path) as stage:
        wait = f"until [ -s {pids} ]; do sleep 0.01; done"
        assert (await stage.turn({"shell": f"{daemon} {wait}"}, {"die": 3})).why == "failed"
        daemon_pid = int(pids.read_text())
        assert processes.look(daemon_pid) is not None
    assert processes.look(daemon_pid) is None


async def test_nothing_of_the_agent_is_left(tmp_path: Path) -> None:
    """A1: its own children, daemons that left its session, and commands of ours end with it."""
    pids = tmp_path / "pids"
    keep = f"echo $$ >> {pids}; exec sleep"
    daemons = f"(trap '' TERM; sh -c '{keep} 1000') & setsid sh -c '{keep} 1001' & sh -c '{keep} 1002' &"
    async with hosting(tmp_path, auto="all", attended=False) as stage:
        await stage.play(
            {"shell": f"touch {pids}; {daemons}"},
            create(f"{keep} 1003"),
            {"shell": f"until [ $(wc -w < {pids}) -ge 4 ]; do sleep 0.01; done"},
        )
        agent = stage.hosted.agent.pid
    found = [int(each) for each in pids.read_text().split()]
    assert [pid for pid in (agent, *found) if processes.look(pid)] == []
    assert os.getpid() not in found


# Circles, and who acts


async def test_a_command_that_is_repeated_with_the_same_result_is_not_run_and_the_model_is_told(tmp_path: Path) -> None:
    """A1, S12: the third in a row; another result, other words of the person, and another command are no circle."""
    again = [create("echo x >> log; echo same"), on("wait_for_exit", "w"), on("release", "r")]
    async with hosting(tmp_path, auto="all", attended=False) as stage:
        found = await stage.play(*again, *again, {**create("echo x >> log; echo same"), "as": "third"})
        assert found["third"]["error"]["code"] == -32010
        assert "its result did not change: it was not made" in found["third"]["error"]["message"]
        assert (tmp_path / "work" / "log").read_text() == "x\n" * 2
        assert [each.text for each in stage.of(e.Noted)] == [
            "not run, as the agent goes in circles: echo x >> log; echo same"
        ]
        counted = [create("echo x >> log; wc -l log"), on("wait_for_exit", "w"), on("release", "r")]
        await stage.play(*counted, *counted, *counted, *again)
    assert (tmp_path / "work" / "log").read_text() == "x\n" * 6


async def test_an_agents_own_call_that_is_repeated_is_asked_about_and_refused_where_nobody_is(tmp_path: Path) -> None:
    """A1, S12: a yes of the policy does not stand; an option has no words, so the next prompt tells the model."""
    call = {"kind": "execute", "title": "List", "rawInput": {"command": "ls"}}

    def round(number: int) -> list[dict[str, Any]]:
        facts = {**call, "toolCallId": f"c{number}"}
        asked = {"call": "session/request_permission", "params": {"toolCall": facts, "options": OPTIONS}}
        done = {"sessionUpdate": "tool_call_update", **facts, "status": "completed", "content": content("a b")}
        return [{**asked, "as": f"p{number}"}, {"update": done}]

    for attended in (False, True):
        folder = tmp_path / str(attended)
        folder.mkdir()
        async with hosting(folder, attended=attended) as stage:
            found = await stage.play(*round(1), *round(2), *round(3))
            outcomes = [found[f"p{n}"]["outcome"]["optionId"] for n in (1, 2, 3)]
            assert outcomes == ["fine", "fine", "nope"]
            assert ["several times in a row" in each.text for each in stage.asked] == [True] * attended
            await stage.play()
            prompts = [each["params"]["prompt"] for each in stage.heard() if each.get("method") == "session/prompt"]
        assert "its result did not change" in prompts[-1][0]["text"] and len(prompts[-1]) == 2


async def test_an_agent_that_spins_by_itself_is_stopped(tmp_path: Path) -> None:
    """A1, S12: one that asks nobody is allowed more rounds, as it may wait for something; then its turn ends."""
    done = {"sessionUpdate": "tool_call_update", "kind": "execute", "rawInput": {"command": "x"}, "status": "completed"}
    rounds = [{"update": {**done, "toolCallId": f"c{n}", "content": content("same")}} for n in range(40)]
    async with hosting(tmp_path, auto="all", attended=False) as stage:
        ended = await stage.turn(*rounds[:15])
        assert ended.why != "limit"
        ended = await stage.turn(*rounds[15:], {"until": "session/cancel"})
        assert ended.why == "limit" and "goes in circles" in ended.text
        await stage.turn()
        prompts = [each["params"]["prompt"] for each in stage.heard() if each.get("method") == "session/prompt"]
    assert "your last turn was stopped" in prompts[-1][0]["text"]


async def test_a_question_says_who_acts(tmp_path: Path) -> None:
    """A1, P6: Tarmac, or the agent itself."""
    async with hosting(tmp_path) as stage:
        await stage.play(
            create("touch a"),
            request({"kind": "execute", "title": "x", "rawInput": {"command": "touch b"}}),
            request({"kind": "fetch", "title": "Look at a page", "rawInput": {"url": "http://a"}}),
            request({"kind": "other", "title": "mcp__tarmac__run_command", "rawInput": {"command": "touch c"}}),
        )
        shown = ["\n".join(question_lines(each, Look())) for each in stage.asked]
        name = stage.hosted.name
    ours, theirs = f"Tarmac does this for {name}.", f"{name} does this itself, outside Tarmac's terminals."
    assert [(ours in each, theirs in each) for each in shown] == [
        (True, False), (False, True), (False, True), (True, False),
    ]  # fmt: skip
