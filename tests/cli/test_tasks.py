"""`tarmac tasks`, as a process of its own, on logs written by the real store."""

import json
import os
from pathlib import Path

import pytest
from tests.cli.conftest import on_a_screen, tarmac
from tests.cli.recorded import a_run, keep
from tests.tasks.test_checkpoints_snapshot import git, repository

from tarmac.models.messages import Text, Usage
from tarmac.tasks import events as e
from tarmac.tasks.log import open_log
from tarmac.tasks.store import TaskStore
from tarmac.tasks.subtasks import make_worktree

pytestmark = pytest.mark.slow


@pytest.fixture
def store(own_state: Path) -> TaskStore:
    return TaskStore(Path(os.environ["TARMAC_STATE_DIR"]) / "tasks")


async def test_a_list_has_id_status_cost_and_first_words(store: TaskStore) -> None:
    """A5: the newest first; in a pipe without colours."""
    old = await keep(store, a_run(1_700_000_000.0, text="an old\nthing", completed=False))
    new = await keep(store, a_run(1_763_200_000.0))
    lines = tarmac("tasks").out.splitlines()
    assert [line.split()[0] for line in lines] == ["ID", new, old]
    assert all(word in lines[1] for word in ("completed", "$0.030", "make the tests pass"))
    assert all(word in lines[2] for word in ("2023-11-1", "stopped", "an old thing"))
    async with open_log(store.folder / old):
        assert "running" in tarmac("tasks").out.splitlines()[2]
    (store.folder / old / "writer").write_text("4194305")  # killed: its number is nobody's now
    assert "stopped" in tarmac("tasks").out.splitlines()[2]
    assert tarmac("tasks", "list", "--limit", "1").out.splitlines()[2].startswith("1 more")


async def test_lists_as_json_are_whole_and_a_line_each(store: TaskStore) -> None:
    """A5."""
    task = await keep(store, a_run(), workspace=Path("/here"))
    (line,) = tarmac("tasks", "list", "--json", "--workspace", "/here").out.splitlines()
    data = json.loads(line)
    assert (data["id"], data["outcome"], data["cost"], data["requests"]) == (task, "completed", 0.03, 2)
    assert tarmac("tasks", "list", "--json", "--workspace", "/there").out == ""


def test_no_tasks_is_said_with_what_to_do() -> None:
    outcome = tarmac("tasks")
    assert (outcome.code, outcome.out.startswith("no tasks yet\n"), "tarmac run" in outcome.out) == (0, True, True)
    assert tarmac("tasks", "--json").out == ""
    assert tarmac("tasks", "search", "x").code == 1


async def test_a_task_is_shown_as_it_happened(store: TaskStore) -> None:
    """A7: in the past tense, with exit code, diff, todos, questions and their answers, cost."""
    task = await keep(store, a_run())
    outcome = tarmac("tasks", "show", task[:6])
    expected = [
        f"Task {task} (#1)",
        "❯ make the tests pass",
        "I will run the tests.",
        "✗ Ran `make test` · exit code 2, 1.2 s",
        "  │ AssertionError: add(2, 2) is 0",
        "  ☑ find it",
        "  ▸ fix it",
        "There is a minus.",
        "  → allowed: go on",
        "✓ Edited calc.py · +1 −1",
        "  -    return a - b",
        "  +    return a + b",
        "✓ Done",
    ]
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    assert [line for line in lines if line in expected] == expected, outcome.out
    assert "$0.030" in lines[-1] and "18% of the context" not in lines[-1]


async def test_its_facts_as_json_are_those_of_the_log(store: TaskStore) -> None:
    """A5, S3."""
    task = await keep(store, a_run())
    found = [json.loads(line) for line in tarmac("tasks", "show", task, "--json").out.splitlines()]
    assert [each["seq"] for each in found] == list(range(1, len(a_run()) + 2))
    assert (found[0]["kind"], found[2]) == (
        "task_created",
        {"seq": 3, "kind": "user_said", "at": 1763200001.0, "text": "make the tests pass", "images": []},
    )


async def test_a_search_shows_where_and_in_which_task(store: TaskStore) -> None:
    task = await keep(store, a_run())
    await keep(store, a_run(text="something else", completed=False))
    outcome = tarmac("tasks", "search", "make the tests")
    assert outcome.out.splitlines() == [f"{task}  make the tests pass", "  user:  make the tests pass"]
    assert json.loads(tarmac("tasks", "search", "--json", '"make the tests"').out)["task"] == task


async def test_deleting_asks_or_is_told_not_to(store: TaskStore) -> None:
    task = await keep(store, a_run())
    nobody = tarmac("tasks", "delete", task)
    assert (nobody.code, "--yes" in nobody.err) == (2, True)
    with on_a_screen("tasks", "delete", task) as screen:
        screen.until(b"[y/N] ")
        screen.type(b"\r")
        assert b"kept" in screen.rest()
    with on_a_screen("tasks", "delete", task[:5]) as screen:
        assert b"make the tests pass" in screen.until(b"[y/N] ")
        screen.type(b"y\r")
        assert b"deleted" in screen.rest()
    assert not (store.folder / task).exists()
    gone = tarmac("tasks", "delete", "--yes", task)
    assert (gone.code, gone.err) == (
        1,
        f"tarmac: there is no task `{task}`\n  hint: `tarmac tasks` lists them\n",
    )


async def test_the_subtasks_of_a_deleted_task_go_with_it_and_the_question_says_so(store: TaskStore) -> None:
    """S2, S15: they stayed as tasks of their own."""
    parent, other = await keep(store, a_run()), await keep(store, a_run())
    child = await keep(store, a_run(text="a part"), parent=parent)
    grandchild = await keep(store, a_run(text="a part of it"), parent=child)
    with on_a_screen("tasks", "delete", parent, columns=200) as screen:
        assert b" and its 2 subtasks for good? " in screen.until(b"[y/N] ")
        screen.type(b"n\r")
        assert b"kept" in screen.rest()
    gone = tarmac("tasks", "delete", "--yes", "--json", parent, child)
    assert (gone.code, [json.loads(line)["deleted"] for line in gone.out.splitlines()]) == (
        0,
        [parent, grandchild, child],
    )
    assert store.tasks() == [other]


@pytest.mark.parametrize("completed", [False, True])
async def test_the_worktree_of_a_killed_subtask_goes_with_it(
    store: TaskStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, completed: bool
) -> None:
    """S15: it stayed in the repository for ever. That of a completed one has what could not be merged."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    work = repository(tmp_path / "work")
    parent = await keep(store, a_run())
    child = await keep(store, a_run(completed=completed), parent=parent)
    made = await make_worktree(work, child)
    assert made is not None
    assert tarmac("tasks", "delete", "--yes", parent).code == 0
    assert (made.workspace / "a.txt").exists() == completed
    assert (child in git(work, "worktree", "list")) == completed


async def test_a_task_that_is_worked_on_is_not_deleted(store: TaskStore) -> None:
    """S3: one writer."""
    task = await keep(store, a_run())
    async with open_log(store.folder / task):
        outcome = tarmac("tasks", "delete", "--yes", task)
    assert (outcome.code, f"process {os.getpid()} is working on the task {task}" in outcome.err) == (1, True)
    assert f"`tarmac tasks show {task}` tells what it does" in outcome.err
    assert (store.folder / task).exists()


async def test_what_nobody_works_on_is_not_said_to_run(store: TaskStore) -> None:
    """S3: in a list, in its story and in a page, it is said the same."""
    task = await keep(store, a_run()[:4])
    shown, page = tarmac("tasks", "show", task).out, tarmac("tasks", "export", task).out
    assert ("\n  stopped · " in shown, "stopped." in page, " stopped " in tarmac("tasks").out) == (True, True, True)
    async with open_log(store.folder / task):
        shown, page = tarmac("tasks", "show", task).out, tarmac("tasks", "export", task).out
    assert ("\n  running · " in shown, "running." in page) == (True, True)


async def test_an_id_that_fits_many_names_them(store: TaskStore) -> None:
    ids = {await keep(store, a_run()) for _ in range(17)}  # more than there are first letters
    first = next(letter for letter in "0123456789abcdef" if sum(each.startswith(letter) for each in ids) > 1)
    outcome = tarmac("tasks", "show", first)
    assert (outcome.code, sum(each in outcome.err for each in ids) > 1) == (1, True)


async def test_a_damaged_log_is_listed_and_shown_with_its_damage(store: TaskStore) -> None:
    """S3: no list hides what exists."""
    task = await keep(store, a_run())
    log = store.folder / task / "log.jsonl"
    log.write_bytes(log.read_bytes().replace(b"I will run", b"I wont run"))
    shown = tarmac("tasks", "show", task)
    assert "records from 5 on are damaged" in shown.out and "✓ Done" in shown.out
    log.chmod(0)
    if os.geteuid():
        assert "unreadable" in tarmac("tasks").out


async def test_an_export_as_markdown_is_a_page_nothing_can_break_out_of(store: TaskStore) -> None:
    facts = a_run(text="what does ```` mean?\x1b[31m")
    task = await keep(store, facts)
    page = tarmac("tasks", "export", task).out
    assert page.startswith("# what does ```` mean?⟨U+001B⟩[31m\n")
    for part in ("## You", "## Model", "### Ran `make test`", "- command: `make test`", "AssertionError", "## Done"):
        assert part in page
    assert "\x1b" not in page


async def test_an_export_goes_to_a_file_and_over_no_other(
    store: TaskStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = await keep(store, a_run())
    file = tmp_path / "task.json"
    assert tarmac("tasks", "export", task, "--format", "json", "--to", str(file)).code == 0
    data = json.loads(file.read_text())
    assert (data["format"], data["metadata"]["task"], len(data["events"])) == ("tarmac task", task, len(a_run()) + 1)
    assert tarmac("tasks", "export", task, "--json").out == file.read_text()  # A5: every verb has --json
    assert tarmac("tasks", "export", task, "--json", "--format", "roo").code == 2
    again = tarmac("tasks", "export", task, "--format", "json", "--to", str(file))
    assert (again.code, "--force" in again.err) == (2, True)
    assert tarmac("tasks", "export", task, "--to", str(file), "--force").code == 0
    assert file.read_text().startswith("# make the tests pass")
    monkeypatch.chdir(tmp_path)
    assert tarmac("tasks", "export", task, "--to", "-").out == file.read_text()  # standard output
    assert tarmac("tasks", "export", task, "--format", "roo", "--to", "-").code == 2
    assert not (tmp_path / "-").exists()
    nowhere = tarmac("tasks", "export", task, "--to", str(tmp_path / "no" / "x"))
    assert (nowhere.code, "can't be written" in nowhere.err) == (125, True)


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["lst"], "list"),
        (["show"], "tarmac tasks"),
        (["list", "abc"], "tarmac tasks show abc"),
        (["list", "--yes"], "--help"),
        (["--jsno"], "--json"),
        (["search"], "search"),
        (["list", "--sort", "size2"], "newest"),
        (["list", "--limit", "0"], "above 0"),
        (["show", "../x"], "not the id"),
    ],
)
def test_what_makes_no_sense_is_told_with_a_hint(words: list[str], hint: str) -> None:
    outcome = tarmac("tasks", *words)
    assert (outcome.code, hint in outcome.err) == (2, True), outcome.err


async def test_an_unknown_format_names_those_there_are(store: TaskStore) -> None:
    task = await keep(store, a_run())
    outcome = tarmac("tasks", "export", task, "--format", "markdwn")
    assert (outcome.code, "markdown" in outcome.err) == (2, True)


async def test_on_a_screen_a_list_fits_it(store: TaskStore) -> None:
    """Wide characters and escapes in a title don't break its columns."""
    await keep(store, a_run(text="直して" * 40 + "\x1b]0;evil\x07"))
    with on_a_screen("tasks", columns=60) as screen:
        shown = screen.rest().decode()
    assert "\x1b]0;" not in shown and "\x07" not in shown
    assert shown.splitlines()[1].endswith("…")


async def test_the_audit_log_says_who_allowed_what_and_why(store: TaskStore) -> None:
    """P7: who, what, why, when, of each decision."""
    judged = e.CallJudged(
        at=1_763_200_004.0,
        call=e.CallId("c2"),
        decision="ask",
        risk="medium",
        reason="writing is not approved by itself",
        part="calc.py",
    )
    run = a_run()
    at = next(n for n, each in enumerate(run) if isinstance(each, e.QuestionAsked))
    task = await keep(store, [*run[:at], judged, *run[at:]])
    lines = tarmac("tasks", "audit", task).out.splitlines()
    assert len(lines) == 2
    assert "policy" in lines[0] and "ask " in lines[0]
    assert "apply_diff: calc.py (medium risk: writing is not approved by itself)" in lines[0]
    assert "cli" in lines[1] and "yes" in lines[1] and "tool: calc.py (go on)" in lines[1]
    first, second = (json.loads(line) for line in tarmac("tasks", "audit", task, "--json").out.splitlines())
    assert (first["who"], first["decision"], first["at"]) == ("policy", "ask", 1_763_200_004.0)
    assert (second["who"], second["decision"], second["why"]) == ("cli", "yes", "go on")
    empty = await keep(store, a_run()[:2])
    assert tarmac("tasks", "audit", empty).out == "it has no decisions\n"


async def test_what_each_request_took_and_each_tool_was_called(store: TaskStore) -> None:
    """S16: tokens, cost and context by request and task, calls and failures by tool."""
    failed = e.RequestFailed(
        at=1_763_200_020.0, request=e.RequestId("r3"), what="stopped", usage=Usage(input=100), cost=0.5, estimated=True
    )
    worse = e.ToolFinished(
        at=1_763_200_021.0, call=e.CallId("c9"), name="apply_diff", outcome="failed", content=(Text("no"),)
    )
    task = await keep(store, [*a_run(), failed, worse])
    lines = tarmac("tasks", "usage", task).out.splitlines()
    assert lines[0].split() == ["WHEN", "OUTCOME", "IN", "CACHED", "OUT", "COST", "TIME", "CONTEXT", "MODEL"]
    assert lines[1].split()[1:6] == ["answered", "1.8k", "600", "80", "$0.010"] and "19%" in lines[1]
    assert lines[3].split()[1:6] == ["failed", "~100", "0", "~0", "~$0.500"]
    assert "2 requests" in lines[4] and "about $0.530" in lines[4]
    assert lines[5] == "calls: apply_diff 2 (1 failed) · execute_command 1"
    assert lines[5].removeprefix("calls: ") in tarmac("tasks", "show", task).out
    data = [json.loads(line) for line in tarmac("tasks", "usage", task, "--json").out.splitlines()]
    assert [each["outcome"] for each in data] == ["answered", "answered", "failed"]
    listed = json.loads(tarmac("tasks", "--json").out.splitlines()[0])
    assert (listed["failed_requests"], listed["context_window"]) == (1, 10_000)
    assert listed["tools"]["apply_diff"] == {"calls": 2, "failures": 1}
