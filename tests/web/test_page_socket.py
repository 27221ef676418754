"""A page without a browser: tasks, questions and terminals through the socket."""

import asyncio
from pathlib import Path

import pytest
from tests.web.served import PATIENCE, Page, page, served

from tarmac.events import TaskId
from tarmac.tasks.events import RequestId
from tarmac.tasks.signals import TextStreamed

SCRIPT = """
[[turn]]
text = "I will look."
[[turn.call]]
name = "execute_command"
arguments = { command = "touch made-by-the-agent" }
[[turn]]
[[turn.call]]
name = "attempt_completion"
arguments = { result = "It is made." }
"""


def script(folder: Path, text: str = SCRIPT) -> Path:
    made = folder / "script.toml"
    made.write_text(text)
    return made


async def asked(at: Page, task: str, ask: str) -> dict[str, object]:
    """The open question of that kind, once it is there."""
    await at.until(lambda: any(each["ask"] == ask for each in at.questions(task)))
    return next(each for each in at.questions(task) if each["ask"] == ask)


@pytest.mark.shell
async def test_a_task_is_created_approved_and_done_from_the_page(tmp_path: Path) -> None:
    """A4: created, asked about, answered, completed; the records are those of --json."""
    async with served(tmp_path, script=script(tmp_path)) as server, page(server.port, server.proof()) as one:
        task = (await one.do("create", text="make the file"))["task"]
        await one.do("follow", task=task, after=0)
        question = await asked(one, task, "command")
        request = question["details"]["requests"][0]  # type: ignore[index]
        assert (request["kind"], request["shown"], request["directory"]) == (
            "Execute",
            "touch made-by-the-agent",
            str(tmp_path),
        )
        await one.do("answer", task=task, question=question["question"], kind="yes")
        done = await asked(one, task, "completion_result")
        assert (tmp_path / "made-by-the-agent").exists()
        await one.do("answer", task=task, question=done["question"], kind="yes")
        await one.until(lambda: one.tasks[task]["status"] == "completed" and not one.questions(task))
        seqs = [each["seq"] for each in one.records(task)]
        assert seqs == list(range(1, len(seqs) + 1))
        assert [each["by"] for each in one.records(task, "question_answered")] == ["web", "web"]


# Two pages


@pytest.mark.shell
async def test_the_first_answer_wins_and_the_other_page_is_told(tmp_path: Path) -> None:
    """A4: two browsers see the same; a question is answered once."""
    async with (
        served(tmp_path, script=script(tmp_path)) as server,
        page(server.port, server.proof()) as one,
        page(server.port, server.proof()) as two,
    ):
        task = (await one.do("create", text="make the file"))["task"]
        question = (await asked(two, task, "command"))["question"]
        await asked(one, task, "command")
        replies = [
            await one.ask("answer", task=task, question=question, kind="no", text="not today"),
            await two.ask("answer", task=task, question=question, kind="yes"),
        ]
        assert ("ok" in replies[0], replies[1]["error"]["what"]) == (
            True,
            'another page answered first: no, "not today"',
        )
        await two.until(lambda: question not in [each["question"] for each in two.questions(task)])
        assert not (tmp_path / "made-by-the-agent").exists()


async def test_frames_that_make_no_sense_are_answered_and_nothing_else_happens(tmp_path: Path) -> None:
    async with served(tmp_path) as server, page(server.port, server.proof()) as one:
        for frame in ("no json", "[]", '{"do": "dance"}', '{"do": "say", "task": 5}', '{"do": "take"}'):
            before = len(one.frames)
            await one.socket.send(frame)
            await one.until(lambda: len(one.frames) > before)  # noqa: B023
            assert one.frames[-1]["type"] == "trouble", frame
        assert (await one.ask("say", task="nothing", text="hello"))["error"]["what"] == "there is no task `nothing`"
        assert (await one.ask("watch", terminal="t999"))["error"]["hint"] == "it was closed"
        assert (await one.ask("create", text="x", cwd="/nonexistent"))["error"]["what"]


TALK = """
[[turn]]
[[turn.call]]
name = "ask_followup_question"
arguments = { question = "Which colour?", follow_up = ["red", "blue"] }
[[turn]]
[[turn.call]]
name = "attempt_completion"
arguments = { result = "Painted." }
"""


async def test_a_page_that_comes_back_gets_what_it_missed_and_nothing_twice(tmp_path: Path) -> None:
    """A4: the page says which fact it saw last."""
    async with served(tmp_path, script=script(tmp_path, TALK)) as server:
        proof = server.proof()
        async with page(server.port, proof) as one:
            task = (await one.do("create", text="paint"))["task"]
            await one.do("follow", task=task, after=0)
            question = await asked(one, task, "followup")
            seen = one.records(task)
        async with page(server.port, proof) as two, page(server.port, proof) as other:
            await other.do("answer", task=task, question=question["question"], kind="message", text="blue")
            await asked(two, task, "completion_result")
            await two.do("follow", task=task, after=len(seen))
            both = [each["seq"] for each in (*seen, *two.records(task))]
            assert both == list(range(1, len(both) + 1))
            assert two.records(task, "question_answered")[0]["text"] == "blue"
            missed = next(each for each in two.frames if each["type"] == "records")
            assert missed["length"] == max(each["n"] for each in missed["items"]) + 1


async def test_a_page_that_comes_late_gets_the_whole_of_what_is_being_said(tmp_path: Path) -> None:
    """A4: a reload in the middle of an answer loses nothing of it."""
    words = "One two three four five six seven eight nine ten eleven twelve."
    slow = f'[[turn]]\ntext = "{words}"\npace = 0.3\n' + TALK
    async with served(tmp_path, script=script(tmp_path, slow)) as server:
        proof = server.proof()

        def said(client: Page, task: str) -> str:
            records = [each["record"] for each in client.frames if each["type"] == "record" and each["task"] == task]
            return "".join(each["text"] for each in records if each.get("signal") == "text_streamed")

        async with page(server.port, proof) as one:
            task = (await one.do("create", text="count"))["task"]
            await one.do("follow", task=task, after=0)
            await one.until(lambda: "two" in said(one, task))
        async with page(server.port, proof) as two:
            await two.do("follow", task=task, after=0)
            await two.until(lambda: two.records(task, "model_said"))
            assert said(two, task) == words
            # A page that comes between the log and those who hear of it: the answer is a fact, and not said again.
            request = two.records(task, "model_said")[0]["request"]
            opened = server.server.state.open[TaskId(task)]
            await two.until(lambda: not opened.saying)
            opened.saying.append(TextStreamed(request=RequestId(request), text=words))
            async with page(server.port, proof) as three:
                await three.do("follow", task=task, after=0)
                await three.do("ping")
                assert said(three, task) == ""


async def test_words_while_it_works_are_queued_and_can_be_taken_back(tmp_path: Path) -> None:
    slow = TALK.replace("[[turn]]", "[[turn]]\ndelay = 30.0", 1)
    async with served(tmp_path, script=script(tmp_path, slow)) as server, page(server.port, server.proof()) as one:
        task = (await one.do("create", text="paint"))["task"]
        await one.until(lambda: one.tasks.get(task, {}).get("running"))
        queued = (await one.do("say", task=task, text="hurry"))["message"]
        await one.until(lambda: [each["text"] for each in one.tasks[task]["queue"]] == ["hurry"])
        await one.do("withdraw", task=task, message=queued)
        await one.until(lambda: not one.tasks[task]["queue"])
        await one.do("cancel", task=task)
        await one.until(lambda: not one.tasks[task]["running"])


async def test_a_task_of_before_goes_on_with_words(tmp_path: Path) -> None:
    """A4: history: closed, found again, said more to, deleted."""
    async with served(tmp_path, script=script(tmp_path, TALK)) as server, page(server.port, server.proof()) as one:
        task = (await one.do("create", text="paint"))["task"]
        await asked(one, task, "followup")
        await one.do("shut", task=task)
        await one.until(lambda: not one.tasks[task]["open"])
        await one.do("say", task=task, text="blue, please")
        await one.until(lambda: (one.tasks[task]["open"] and one.tasks[task]["running"]) or one.questions(task))
        await one.do("delete", task=task)
        await one.until(lambda: task not in one.tasks)


PARTS = """
[[turn]]
task = "paint"
[[turn.call]]
name = "new_task"
arguments = { mode = "ask", message = "part one" }
[[turn]]
task = "part one"
[[turn.call]]
name = "ask_followup_question"
arguments = { question = "Which?", follow_up = ["red", "blue"] }
"""


async def test_a_task_is_deleted_with_its_subtask_that_is_at_work(tmp_path: Path) -> None:
    """S2, S15, A4: from the page; the subtask stayed as a task of its own."""
    async with (
        served(tmp_path, script=script(tmp_path, PARTS), auto="all") as server,
        page(server.port, server.proof()) as one,
    ):
        task = (await one.do("create", text="paint"))["task"]
        await one.until(lambda: len(one.tasks) == 2 and any(one.questions(each) for each in one.tasks))
        await one.do("delete", task=task)
        await one.until(lambda: not one.tasks)


LEAVES = """
[[turn]]
[[turn.call]]
name = "execute_command"
arguments = { command = "echo $$ > pid; sleep 600; true", timeout = 0.3 }
[[turn]]
[[turn.call]]
name = "attempt_completion"
arguments = { result = "It runs." }
"""


@pytest.mark.shell
async def test_a_task_that_is_done_leaves_its_command_and_deleting_it_ends_that(tmp_path: Path) -> None:
    """T9, A4: from the page."""
    async with (
        served(tmp_path, script=script(tmp_path, LEAVES), auto="all") as server,
        page(server.port, server.proof()) as one,
    ):
        task = (await one.do("create", text="serve"))["task"]
        await asked(one, task, "completion_result")
        pid = tmp_path / "pid"
        async with asyncio.timeout(PATIENCE):
            while not pid.exists() or not pid.read_text().endswith("\n"):  # noqa: ASYNC110 - a slow shell begins late
                await asyncio.sleep(0.02)
        shell = Path("/proc", pid.read_text().strip())
        assert shell.exists()
        await one.do("delete", task=task)
        await one.until(lambda: task not in one.tasks)
        assert not shell.exists()


# Terminals


@pytest.mark.shell
async def test_a_person_takes_the_keyboard_types_and_gives_it_back(tmp_path: Path) -> None:
    """T26, A4: raw bytes, an epoch for who types, the size follows the holder."""
    async with (
        served(tmp_path) as server,
        page(server.port, server.proof()) as one,
        page(server.port, server.proof()) as two,
    ):
        terminal = (await one.do("open"))["terminal"]
        await two.until(lambda: terminal in two.terminals)
        for each in (one, two):
            await each.do("watch", terminal=terminal)
        epoch = (await one.do("take", terminal=terminal))["epoch"]
        await one.do("resize", terminal=terminal, epoch=epoch, rows=20, columns=66)
        await one.send(do="input", terminal=terminal, epoch=epoch, data="stty size; echo o'n'e\r")
        for each in (one, two):
            await each.until(lambda: "20 66" in each.screen(terminal).text())  # noqa: B023
            await each.until(lambda: "one\r\n" in each.screen(terminal).text())  # noqa: B023
            assert each.screen(terminal).size == (20, 66)
        later = (await two.do("take", terminal=terminal))["epoch"]
        await one.until(lambda: any(each["type"] == "taken" for each in one.frames))
        refused = await one.ask("input", terminal=terminal, epoch=epoch, data="echo stolen\r")
        assert refused["error"]["hint"] == "take it first"
        await two.do("give", terminal=terminal, epoch=later)
        await two.until(lambda: two.terminals[terminal]["holder"] is None)
        await two.do("close", terminal=terminal)
        await one.until(lambda: terminal not in one.terminals)


@pytest.mark.shell
async def test_a_page_that_is_gone_holds_no_keyboard(tmp_path: Path) -> None:
    async with served(tmp_path) as server, page(server.port, server.proof()) as one:
        async with page(server.port, server.proof()) as two:
            terminal = (await two.do("open"))["terminal"]
            await two.do("take", terminal=terminal)
            await one.until(lambda: one.terminals.get(terminal, {}).get("holder") == two.welcome["page"])
        await one.until(lambda: one.terminals[terminal]["holder"] is None)


@pytest.mark.shell
async def test_a_line_that_a_page_left_half_typed_is_dropped_after_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T26: who comes back finds their line; if nobody comes, the agent gets its terminal back."""
    async with served(tmp_path) as server, page(server.port, server.proof()) as one:
        terminal = (await one.do("open"))["terminal"]
        await one.do("watch", terminal=terminal)

        async def leave_half_a_line(text: str) -> None:
            async with page(server.port, server.proof()) as two:
                epoch = (await two.do("take", terminal=terminal))["epoch"]
                await two.do("input", terminal=terminal, epoch=epoch, data=text)
                await one.until(lambda: text in one.screen(terminal).text())
            await one.until(lambda: one.terminals[terminal]["holder"] is None and one.terminals[terminal]["held"])

        monkeypatch.setattr("tarmac.server.live_terminals.LINE_KEPT", 0.3)
        await leave_half_a_line("rm -rf something")
        epoch = (await one.do("take", terminal=terminal))["epoch"]
        await asyncio.sleep(0.5)  # it is theirs now, and stays
        assert one.terminals[terminal]["held"]
        await one.do("give", terminal=terminal, epoch=epoch)
        await one.until(lambda: not one.terminals[terminal]["held"])
        await leave_half_a_line("rm -rf another")
        await one.until(lambda: not one.terminals[terminal]["held"])
        assert "^C" in one.screen(terminal).text()


@pytest.mark.shell
async def test_a_secret_goes_to_the_terminal_and_into_no_log(tmp_path: Path) -> None:
    """A4: typed while it is asked for, and not shown; refused when it is not."""
    text = SCRIPT.replace("touch made-by-the-agent", "read -rsp 'Password: ' p; echo got ${#p}")
    async with served(tmp_path, script=script(tmp_path, text)) as server, page(server.port, server.proof()) as one:
        task = (await one.do("create", text="log in"))["task"]
        question = await asked(one, task, "command")
        await one.do("answer", task=task, question=question["question"], kind="yes")
        await one.until(lambda: any((each["awaits"] or {}).get("wants") == "secret" for each in one.terminals.values()))
        terminal = next(iter(one.terminals))
        await one.do("watch", terminal=terminal)
        await one.do("secret", terminal=terminal, data="correct horse battery")
        await asked(one, task, "completion_result")
        await one.until(lambda: "got 21" in one.screen(terminal).text())
        refused = await one.ask("secret", terminal=terminal, data="correct horse battery")
        assert "nothing was typed" in refused["error"]["what"]
        state = server.server.state.store.folder.parent
        kept = b"".join(each.read_bytes() for each in state.rglob("*") if each.is_file())
        assert b"correct horse" not in kept
        assert "correct horse" not in one.screen(terminal).text()


# Undo

EDIT = """
[[turn]]
[[turn.call]]
name = "write_to_file"
arguments = { path = "a.txt", content = "new\\n", line_count = 1 }
[[turn]]
[[turn.call]]
name = "attempt_completion"
arguments = { result = "Written." }
"""


async def test_what_a_task_changed_is_previewed_and_taken_back(tmp_path: Path) -> None:
    """A4, S14: checkpoints with undo, from the page."""
    (tmp_path / "a.txt").write_text("old\n")
    async with (
        served(tmp_path, script=script(tmp_path, EDIT), auto="edits") as server,
        page(server.port, server.proof()) as one,
    ):
        task = (await one.do("create", text="write it"))["task"]
        await one.do("follow", task=task, after=0)
        await asked(one, task, "completion_result")
        assert (tmp_path / "a.txt").read_text() == "new\n"
        await one.until(lambda: one.records(task, "checkpoint_created"))
        to = one.records(task, "checkpoint_created")[0]["seq"]
        (plan,) = (await one.do("undo_preview", task=task, to=to))["files"]
        assert (plan["path"], plan["fate"]) == (str(tmp_path / "a.txt"), "restored")
        assert "-old\n+new" in plan["diff"]
        (done,) = (await one.do("undo", task=task, to=to))["files"]
        assert (done["fate"], (tmp_path / "a.txt").read_text()) == ("restored", "old\n")
        assert "is not a checkpoint" in (await one.ask("undo", task=task, to=9999))["error"]["what"]
