"""A task that one process has open, joined by other front ends through its private socket."""

import asyncio
import gc
import http.client
import json
import os
import socket
import stat
import subprocess
import sys
import weakref
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, closing
from pathlib import Path

import pytest
from tests.terminals.daemon.conftest import daemon as daemon
from tests.web.served import PATIENCE, Page, page, program, served
from tests.web.test_page_socket import SCRIPT, asked, script

from tarmac.app import App, open_app
from tarmac.config import load_config
from tarmac.errors import BadRequest, DirectoryUnavailable, TaskInUse, TerminalNotFound
from tarmac.events import TaskId
from tarmac.paths import state_dir
from tarmac.policy.approval import Answer, AnswerKind
from tarmac.server.joined_task import JoinedTask, join, resume_or_join
from tarmac.server.running_app import RunningApp
from tarmac.server.served_client import share
from tarmac.server.trials import can_try
from tarmac.server.unix_socket import connect, sockets_of
from tarmac.tasks.checkpoints import Fate
from tarmac.tasks.events import QuestionAnswered, QuestionAsked, TaskEvent
from tarmac.tasks.signals import OutputStreamed, Signal, TextStreamed
from tarmac.tasks.store import TaskStore
from tarmac.tasks.task import Task
from tarmac.terminals import list_terminals
from tarmac.terminals.output.tape import Printed, Snapshot

pytestmark = pytest.mark.shell


@asynccontextmanager
async def shared(workspace: Path, text: str = SCRIPT) -> AsyncIterator[tuple[App, RunningApp]]:
    """An app of a session, with its socket."""
    config = load_config(workspace, os.environ, {"model": f"scripted/{script(workspace, text)}"})
    async with open_app(config) as app, share(app, os.environ) as running:
        yield app, running


class Heard:
    """What a listener was told."""

    def __init__(self, task: Task | JoinedTask) -> None:
        self.things: list[TaskEvent | Signal] = []
        self._news = asyncio.Event()
        task.subscribe(self._add)

    def _add(self, _: int | None, thing: TaskEvent | Signal) -> None:
        self.things.append(thing)
        self._news.set()

    async def until(self, true: Callable[[], object]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not true():
                self._news.clear()
                await self._news.wait()

    async def question(self) -> QuestionAsked:
        await self.until(lambda: any(isinstance(each, QuestionAsked) for each in self.things))
        return next(each for each in self.things if isinstance(each, QuestionAsked))


@asynccontextmanager
async def running(task: Task) -> AsyncIterator[None]:
    """It runs during the block, whenever it is woken."""
    go = asyncio.Event()
    task.when_woken(go.set)

    async def run() -> None:
        while True:
            await task.run_until_idle()
            await go.wait()
            go.clear()

    job = asyncio.create_task(run())
    try:
        yield
    finally:
        job.cancel()
        await asyncio.gather(job, return_exceptions=True)


async def test_who_joins_sees_it_live_and_answers_and_the_second_answer_is_told_who_was_first(tmp_path: Path) -> None:
    """F8."""
    text = SCRIPT.replace("touch made-by-the-agent", "echo from the command; touch made-by-the-agent")
    async with (
        shared(tmp_path, text) as (app, _),
        app.create_task("make the file") as task,
        join(app.store, task.id, client="cli") as one,
        join(app.store, task.id, client="acp") as two,
    ):
        heard, own = Heard(one), Heard(task)
        async with running(task):
            question = (await heard.question()).question
            assert [each.question for each in one.questions] == [each.question for each in task.questions]
            await one.answer(question, Answer(AnswerKind.YES))
            with pytest.raises(BadRequest, match="a terminal answered first: yes"):
                await two.answer(question, Answer(AnswerKind.NO))
            await heard.until(lambda: one.metadata.outcome == "completed")
            assert (tmp_path / "made-by-the-agent").exists()
            assert [each.by for each in own.things if isinstance(each, QuestionAnswered)] == ["cli"]
        streamed = [each for each in heard.things if isinstance(each, TextStreamed | OutputStreamed)]
        assert "".join(each.text for each in streamed if isinstance(each, TextStreamed)) == "I will look."
        printed = b"".join(each.data for each in streamed if isinstance(each, OutputStreamed))
        assert b"from the command" in printed
        facts = [each for each in heard.things if isinstance(each, TaskEvent)]
        assert facts == [each for each in own.things if isinstance(each, TaskEvent)][-len(facts) :]


async def test_words_from_a_joined_client_run_a_task_at_rest(tmp_path: Path) -> None:
    """F8, S5: words of a follower go to the one writer; who asks while it rests wakes it."""
    text = '[[turn]]\ntext = "What next?"\n[[turn]]\ntext = "Done so."\n'
    async with (
        shared(tmp_path, text) as (app, _),
        app.create_task("hello") as task,
        running(task),
        join(app.store, task.id, client="cli") as joined,
    ):
        heard = Heard(joined)
        assert (await joined.run_until_idle()).why == "idle"
        assert await joined.say("go on") is None
        assert (await joined.run_until_idle()).why == "idle"
        said = "".join(each.text for each in heard.things if isinstance(each, TextStreamed))
        assert said.endswith("Done so.") and joined.metadata.requests == 2


async def test_a_task_that_another_process_has_is_joined_by_resume(tmp_path: Path) -> None:
    """F8: `tarmac resume` of a task that is open elsewhere joins it; one that is open nowhere is opened."""
    async with shared(tmp_path) as (app, _):
        async with app.create_task("make the file") as task, resume_or_join(app, task.id, client="cli") as found:
            assert isinstance(found, JoinedTask) and found.metadata.name == "make the file"
        async with resume_or_join(app, task.id, client="cli") as found:
            assert isinstance(found, Task)


async def test_who_joined_is_told_when_the_task_is_closed_there(tmp_path: Path) -> None:
    """F8: the end of the writer is not the end of who looks on."""
    async with shared(tmp_path) as (app, _):
        async with app.create_task("make the file") as task:
            joined = await _open(app, task.id)
            heard = Heard(joined)
        await heard.until(lambda: joined.gone)
        assert (await joined.run_until_idle()).why == "failed"
        await joined.aclose()


async def _open(app: App, task: TaskId) -> JoinedTask:
    from tarmac.server.joined_task import open_joined

    return await open_joined(app.store, task, client="cli")


# What it works with


async def test_the_keyboard_of_a_terminal_is_of_the_window_that_took_it_last(tmp_path: Path) -> None:
    """F8, A4: who joined sees the terminal live and types into it; who loses the keyboard is told."""
    async with (
        shared(tmp_path) as (app, _),
        app.create_task("make the file") as task,
        join(app.store, task.id, client="cli") as one,
        join(app.store, task.id, client="cli") as two,
    ):
        terminal = await app.registry.open(cwd=tmp_path, task=task.id)
        async with asyncio.timeout(PATIENCE):
            for each in (one, two):
                while terminal.id not in {row["id"] for row in each.terminal_rows}:
                    await each.terminals_moved()
            with pytest.raises(TerminalNotFound):
                async with one.attached("t99"):
                    pass
            async with one.attached(terminal.id) as mine:
                await mine.type(b"printf 'a%s' bc; printf '\\xff'; echo\r")
                seen = b""
                async for piece in mine.watch():
                    seen += piece.data if isinstance(piece, Snapshot | Printed) else b""
                    # the output, not the echo; live it comes behind `ESC [?2004l`, and in a snapshot it is drawn
                    if b"abc\xff" in seen or "abc\ufffd".encode() in seen:
                        break
                async with two.attached(terminal.id) as theirs:
                    async for _piece in mine.watch():
                        pass
                    assert mine.ended == "another window has taken its keyboard"
                    theirs.resize(rows=20, columns=60)
                    shown = theirs.watch()
                    first = await anext(shown)
                    assert isinstance(first, Snapshot) and (first.rows, first.columns) == (20, 60)
                    assert terminal.tape.size == (20, 60)
                    await app.registry.kill(terminal.id)
                    async for _piece in shown:
                        pass
                    assert theirs.ended == "it was closed"


async def test_what_a_task_changed_is_shown_and_taken_back_from_a_joined_client_and_its_page(tmp_path: Path) -> None:
    """F8, S14: the process that has the task restores the files; each front end is told the same."""
    text = SCRIPT.replace("execute_command", "write_to_file").replace(
        '{ command = "touch made-by-the-agent" }', '{ path = "a.txt", content = "new\\n" }'
    )
    (tmp_path / "a.txt").write_text("old\n")
    async with (
        shared(tmp_path, text) as (app, _),
        app.create_task("write it") as task,
        join(app.store, task.id, client="cli") as joined,
    ):
        heard = Heard(joined)
        assert (await joined.changed_since(None), await joined.undo()) == ([], None)
        async with running(task):
            question = await heard.question()
            with pytest.raises(BadRequest, match="is at work"):
                await joined.rewind(2)
            await joined.answer(question.question, Answer(AnswerKind.YES))
            await heard.until(lambda: joined.metadata.outcome == "completed" and not task.running)
        assert (tmp_path / "a.txt").read_text() == "new\n"
        ((file, diff),) = await joined.changed_since(None)
        assert (file.edit.path, file.fate) == (tmp_path / "a.txt", Fate.RESTORED)
        assert diff is not None and (diff.added, diff.removed) == (1, 1) and "+new" in diff.text
        async with (
            served(tmp_path, script=script(tmp_path, text)) as server,
            page(server.port, server.proof()) as one,
        ):
            await one.do("resume", task=task.id)
            (shown,) = (await one.do("undo_preview", task=task.id))["files"]
            assert (shown["path"], shown["diff"]) == (str(tmp_path / "a.txt"), diff.text)
        done = await joined.undo()
        assert done is not None and done.of(Fate.RESTORED) == [tmp_path / "a.txt"]
        assert (tmp_path / "a.txt").read_text() == "old\n"
        with pytest.raises(BadRequest, match="999 is not a checkpoint or message"):
            await joined.rewind(999)


# Who may


async def test_a_process_of_an_agent_is_refused(tmp_path: Path) -> None:
    """F8, P6: what runs in a terminal of ours, also one that has taken off its mark, can't answer its own questions."""
    async with shared(tmp_path) as (app, _), app.create_task("make the file"):
        (where,) = sockets_of(state_dir(os.environ), os.getpid())
        (tmp_path / "try.py").write_text(
            "import os, socket, sys\n"
            "os.chdir(sys.argv[1])\n"
            "s = socket.socket(socket.AF_UNIX)\n"
            "s.connect(sys.argv[2])\n"
            "print(s.recv(4096))\n"
        )
        terminal = await app.registry.open(cwd=tmp_path)
        for before in ("", "ulimit -x unlimited; exec env -i "):
            line = f"({before}{sys.executable} {tmp_path / 'try.py'} {where.parent} {where.name})"
            result = await terminal.run(line, timeout=PATIENCE)
            assert "may not join tasks" in result.output, result.output


async def test_the_socket_is_this_users_alone(tmp_path: Path) -> None:
    """F8: folder 0700, socket 0600; who joins looks at that, too."""
    async with shared(tmp_path):
        (where,) = sockets_of(state_dir(os.environ), os.getpid())
        modes = [stat.S_IMODE(each.stat().st_mode) for each in (where.parent, where)]
        assert modes == [0o700, 0o600]
        where.parent.chmod(0o755)
        with pytest.raises(DirectoryUnavailable, match="open to other users"):
            await connect(where)
        where.parent.chmod(0o700)
    assert not where.exists()


async def test_a_socket_that_a_killed_process_left_is_swept(tmp_path: Path) -> None:
    """F8."""
    folder = state_dir(os.environ) / "apps"
    folder.mkdir(mode=0o700, parents=True)
    left = await asyncio.create_subprocess_exec("true")
    await left.wait()
    with socket.socket(socket.AF_UNIX) as listening:
        here = Path.cwd()
        os.chdir(folder)
        try:
            listening.bind(str(left.pid))
        finally:
            os.chdir(here)
    async with shared(tmp_path):
        assert [each.name for each in folder.iterdir()] == [str(os.getpid())]


async def test_garbage_on_the_socket_harms_nobody(tmp_path: Path) -> None:
    """F8: bytes that are no frames close that connection only."""
    async with shared(tmp_path) as (app, _), app.create_task("make the file") as task:
        (where,) = sockets_of(state_dir(os.environ), os.getpid())
        for data in (b"GET / HTTP/1.1\r\n\r\n" * 9, b"\x01" + b"\xff" * 64, b"\x01"):
            channel = await connect(where)
            channel._writer.write(data)
            channel._writer.write_eof()
            async with asyncio.timeout(PATIENCE):
                assert await channel._reader.read() == b""
            await channel.close()
        async with join(app.store, task.id, client="cli") as joined:
            assert joined.metadata.name == "make the file"


# All verbs, from every front end (S2)


async def test_pause_go_on_close_and_delete_from_a_joined_client(tmp_path: Path) -> None:
    """S2: the verbs of a task that a server runs, said by another front end; every front end is told."""
    state = TaskStore(state_dir(os.environ) / "tasks")
    async with served(tmp_path, script=script(tmp_path)) as server, page(server.port, server.proof()) as one:
        task = TaskId((await one.do("create", text="make the file"))["task"])
        await asked(one, task, "command")
        await one.until(lambda: any(each["type"] == "current" and each["task"] == task for each in one.frames))
        async with join(state, task, client="cli") as joined:
            await joined.pause()
            await one.until(lambda: one.tasks[task]["status"] == "paused")
            await joined.unpause()
            await one.until(lambda: one.tasks[task]["status"] == "waiting")
            joined.cancel()
            await one.until(lambda: not one.tasks[task]["running"])
            await joined.shut()
            await one.until(lambda: not one.tasks[task]["open"])
            ended = await joined.run_until_idle()
            assert ended.why == "failed" and f"`tarmac resume {task}` continues it" in ended.text
        await one.do("resume", task=task)
        async with join(state, task, client="cli") as joined:
            await joined.delete()
            await one.until(lambda: task not in one.tasks)
            assert (await joined.run_until_idle()).text == "this task was deleted"
        assert not (state.folder / task).exists()


async def test_a_server_that_deletes_a_task_ends_what_an_earlier_program_left_of_it(
    tmp_path: Path, daemon: Path
) -> None:
    """T9, F1: terminals of the task that nobody took over, whether the server has it open or not."""
    call = 'name = "execute_command"\narguments = { command = "touch begun; sleep 600", timeout = 0.3 }'
    play = script(tmp_path, f'[[turn]]\n[[turn.call]]\n{call}\n[[turn]]\ntext = "It waits."\n')
    settings = {"model": f"scripted/{play}", "terminals.outlive": True, "auto": "all"}
    left: list[TaskId] = []
    async with open_app(load_config(tmp_path, os.environ, settings)) as app:
        for _ in range(2):
            async with app.create_task("wait") as task:
                await task.run_until_idle()
                left.append(task.id)
    assert sorted(str(each.task) for each in await list_terminals()) == sorted(left)
    async with served(tmp_path, script=play) as server, page(server.port, server.proof()) as one:
        await one.do("resume", task=left[1])
        for task_id in left:
            await one.do("delete", task=task_id)
        assert await list_terminals() == []


async def test_the_page_answers_for_a_task_of_a_session(tmp_path: Path) -> None:
    """F8, A4: a task that another process has open is joined by the page: live, with its questions."""
    async with (
        shared(tmp_path) as (app, _),
        app.create_task("make the file") as task,
        running(task),
        served(tmp_path, script=script(tmp_path)) as server,
        page(server.port, server.proof()) as one,
    ):
        await one.do("resume", task=task.id)
        await one.do("follow", task=task.id, after=0)
        question = await asked(one, task.id, "command")
        row = one.tasks[task.id]
        assert (row["open"], row["elsewhere"]) == (True, True)
        await one.do("answer", task=task.id, question=question["question"], kind="yes")
        done = await asked(one, task.id, "completion_result")
        assert (tmp_path / "made-by-the-agent").exists()
        assert [each["by"] for each in one.records(task.id, "question_answered")] == ["web"]
        signals = [each["record"] for each in one.frames if each["type"] == "record" and "signal" in each["record"]]
        assert any(each["signal"] == "text_streamed" for each in signals) or one.records(task.id, "model_said")
        assert done["text"] == "It is made."


async def test_the_page_shows_the_terminals_of_a_task_of_a_session(tmp_path: Path) -> None:
    """F8, A4: live, with the keyboard. Each process counts its terminals from 1, and none is taken for another."""
    async with (
        shared(tmp_path) as (app, _),
        AsyncExitStack() as stack,
        served(tmp_path, script=script(tmp_path)) as server,
        page(server.port, server.proof()) as one,
        page(server.port, server.proof()) as two,
    ):
        task = await stack.enter_async_context(app.create_task("make the file"))
        before = await app.registry.open(cwd=tmp_path, task=task.id)
        await app.registry.open(cwd=tmp_path)  # of another task: it is not shown
        mine = (await one.do("open"))["terminal"]
        await one.do("resume", task=task.id)
        id = f"{before.id}@{task.id}"

        async def shows(some: Page, text: str) -> None:
            await some.until(lambda: text in some.screen(id).text())

        async def looks(some: Page) -> None:
            await some.until(lambda: set(some.terminals) == {mine, id})
            assert some.terminals[id]["task"] == task.id
            assert some.terminals[id]["number"] != some.terminals[mine]["number"]
            await some.do("watch", terminal=id)
            await some.until(lambda: some.screen(id).snapshots)

        await looks(one)
        await looks(two)
        await before.run("echo printed-$((6 * 7))")
        await shows(one, "printed-42")
        await shows(two, "printed-42")
        epoch = (await one.do("take", terminal=id))["epoch"]
        await one.until(lambda: one.terminals[id]["holder"] == one.welcome["page"])
        await two.until(lambda: two.terminals[id]["holder"] == one.welcome["page"])
        await one.do("input", terminal=id, epoch=epoch, data="echo typed-$((6 * 8))\r")
        await shows(two, "typed-48")
        await two.do("take", terminal=id)
        await one.until(lambda: {"type": "taken", "terminal": id, "epoch": epoch} in one.frames)
        late = await one.ask("input", terminal=id, epoch=epoch, data="x")
        assert "is not yours" in late["error"]["what"]
        wrong = await one.ask("watch", terminal="t9@nobody")
        assert "not there any more" in wrong["error"]["what"]
        after = await app.registry.open(cwd=tmp_path, task=task.id)
        await one.until(lambda: f"{after.id}@{task.id}" in one.terminals)
        await app.registry.kill(after.id)
        await one.until(lambda: f"{after.id}@{task.id}" not in one.terminals)
        await stack.aclose()
        await one.until(lambda: set(one.terminals) == {mine})


async def test_a_command_is_tried_by_a_joined_client_and_its_changes_are_kept(tmp_path: Path) -> None:
    """P9, F8: run on a copy where the task is open, shown to who asked, kept as the answer to the question."""
    if not can_try():
        pytest.skip("commands can't be tried here: bubblewrap 0.11 with overlays is missing")
    async with (
        shared(tmp_path) as (app, _),
        app.create_task("make the file") as task,
        running(task),
        served(tmp_path, script=script(tmp_path)) as server,
        page(server.port, server.proof()) as one,
    ):
        await one.do("resume", task=task.id)
        question = (await asked(one, task.id, "command"))["question"]
        await one.until(lambda: one.questions(task.id)[0]["can_try"])
        tried = await one.do("try", task=task.id, question=question)
        assert ([each["path"] for each in tried["changes"]], tried["exit_code"]) == (["made-by-the-agent"], 0)
        assert not (tmp_path / "made-by-the-agent").exists()
        await one.do("discard", task=task.id, question=question)
        reply = await one.ask("keep", task=task.id, question=question)
        assert reply["error"]["what"] == "there is no trial to keep"
        await one.do("try", task=task.id, question=question)
        assert (await one.do("keep", task=task.id, question=question))["failed"] == []
        assert (tmp_path / "made-by-the-agent").exists()
        await asked(one, task.id, "completion_result")


async def test_the_current_task_and_the_stack_of_its_subtasks(tmp_path: Path) -> None:
    """S2."""
    text = """
[[turn]]
[[turn.call]]
name = "new_task"
arguments = { mode = "code", message = "the small part" }
[[turn]]
[[turn.call]]
name = "execute_command"
arguments = { command = "touch made-by-the-agent" }
[[turn]]
[[turn.call]]
name = "attempt_completion"
arguments = { result = "part done" }
[[turn]]
[[turn.call]]
name = "attempt_completion"
arguments = { result = "all done" }
"""
    async with (
        shared(tmp_path, text) as (app, open_tasks),
        app.create_task("the whole") as task,
        running(task),
        join(app.store, task.id, client="cli") as joined,
    ):
        heard = Heard(joined)
        await heard.until(lambda: any(isinstance(each, QuestionAsked) for each in heard.things))
        while (question := (await heard.question())).ask != "command":  # new_task is asked about, too
            heard.things.clear()
            await joined.answer(question.question, Answer(AnswerKind.YES))
        open_tasks.show(task.id)
        stack = open_tasks.stack(task.id)  # the script is played anew in each subtask, to the deepest that may be
        above = [open_tasks.open[each].task.metadata.parent for each in stack]
        assert (open_tasks.current, above) == (task.id, [None, *stack[:-1]]) and len(stack) > 1
        joined.cancel()
        await heard.until(lambda: not task.running)
        assert open_tasks.stack(task.id) == [task.id]


async def test_a_task_does_not_keep_its_app_alive(tmp_path: Path) -> None:
    """S2."""
    config = load_config(tmp_path, os.environ, {"model": f"scripted/{script(tmp_path)}"})
    kept = []

    async def begin() -> "weakref.ref[App]":
        async with open_app(config) as app:
            async with app.create_task("make the file") as task:
                kept.append(task)
            return weakref.ref(app)

    found = await begin()
    gc.collect()
    assert found() is None
    with pytest.raises(BadRequest, match="is closed"):
        await kept[0].switch_model("openai/other")


# From the command line


async def test_tarmac_join_from_another_process(tmp_path: Path) -> None:
    """F8: `tarmac join` finds the task at work, prints what happens, and says the words it was given."""
    text = '[[turn]]\ntext = "What next?"\n[[turn]]\ntext = "Done so."\n'
    with program(tmp_path, script(tmp_path, text)) as server:
        store = TaskStore(state_dir(os.environ) / "tasks")
        async with page(server.port, await proof_of(server.port, server.token)) as one:
            task = TaskId((await one.do("create", text="hello"))["task"])
            await one.until(
                lambda: task in one.tasks and one.tasks[task]["requests"] == 1 and not one.tasks[task]["running"]
            )
            line = [sys.executable, "-m", "tarmac", "join", task, "go on", "--json"]
            done = await asyncio.to_thread(
                subprocess.run, line, capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL
            )
            assert done.returncode == 0, done.stderr
            assert '"text": "Done so."' in done.stdout and '"by": ' not in done.stderr
            await one.do("shut", task=task)
        with pytest.raises((TaskInUse, BadRequest)):
            async with join(store, task, client="cli"):
                pass


async def proof_of(port: int, token: str) -> str:
    def ask() -> str:
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)) as connection:
            body, headers = json.dumps({"token": token}), {"content-type": "application/json"}
            connection.request("POST", "/api/session", body, headers)
            return str(json.loads(connection.getresponse().read())["proof"])

    return await asyncio.to_thread(ask)
