"""One pipeline for every caller: judged, asked, recorded, done, recorded; with a real policy and real grants."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from tarmac.calls.call_judge import Answered, Judge, Judged, NotAsked, Permission, Postponed, Question
from tarmac.calls.pipeline import Call, CallResult, Pipeline
from tarmac.errors import BadArguments, ToolDenied, ToolFailed
from tarmac.events import CallId, TaskId
from tarmac.policy import Action, Execute, Policy, Verdict
from tarmac.policy.approval import Always, Answer, AnswerKind, GrantScope, Resolution
from tarmac.policy.grants import GrantFile
from tarmac.tools.tool import Done, Go, Intent, Ready, Want

TASK = TaskId("task-1")


@dataclass
class Person:
    """Gives one answer to every question."""

    answer: Answer | None = None  # None: nobody can be asked
    asked: list[Question] = field(default_factory=list)

    def unavailable(self, actions: Sequence[Action], verdicts: Sequence[Verdict]) -> NotAsked | None:
        return None if self.answer else NotAsked(resolution=Resolution.NOBODY, told="Nobody is here.")

    async def ask(self, question: Question) -> Answered | NotAsked:
        self.asked.append(question)
        assert self.answer
        answer = self.answer if len(self.asked) == 1 else replace(self.answer, edited=None)
        return Answered(answer=answer, at=0.0)


@dataclass
class Log:
    """What was recorded, in order."""

    lines: list[str] = field(default_factory=list)

    def judged(self, call: Call, judged: Sequence[Judged]) -> None:
        self.lines += [f"judged {each.decision}" for each in judged]

    async def decided(self, call: Call, ready: Ready, permission: Permission) -> None:
        self.lines += [f"decided {permission.resolution}", *permission.notes]

    async def started(self, call: Call, ready: Ready, go: Go) -> None:
        self.lines.append(f"started {go.command or ready.command}")

    def finished(self, call: Call, result: CallResult) -> None:
        self.lines.append(f"finished {result.outcome}")

    def cancelled(self, call: Call, ready: Ready) -> None:
        self.lines.append("cancelled")


def ready_for(here: Path, command: str, log: Log) -> Ready:
    async def act(go: Go) -> Done:
        log.lines.append(f"acted {go.command or command}")
        return Done.text("It is done.")

    want = Want(action=Execute(command, cwd=here))
    return Ready(
        title=f"Running `{command}`", done=f"Ran `{command}`", act=act, wants=(want,), command=command, cwd=here
    )


async def run(
    here: Path,
    person: Person,
    log: Log,
    *,
    prepare: Callable[[], Ready] | None = None,
    grants: GrantFile | None = None,
    command: str = "make test",
) -> CallResult:
    async def prepared() -> Ready:
        return prepare() if prepare else ready_for(here, command, log)

    judge = Judge(policy=Policy(grants=grants), workspace=here, task=TASK, grants=grants, clock=lambda: 0.0)
    return await Pipeline(judge, person, log).run(Call(id=CallId("c1"), name="execute_command", prepare=prepared))


@pytest.mark.parametrize(
    ("answer", "lines"),
    [
        (Answer(AnswerKind.YES),
         ["judged ask", "decided allowed", "started make test", "acted make test", "finished done"]),
        (Answer(AnswerKind.NO, text="Nobody answered"), ["judged ask", "decided denied", "finished denied"]),
        (Answer(AnswerKind.SKIP), ["judged ask", "decided unanswered", "finished skipped"]),
        (None, ["judged ask", "decided nobody", "finished denied"]),
        (Answer(AnswerKind.YES, edited="make lint"),
         ["judged ask", "judged ask", "decided allowed", "started make lint", "acted make lint", "finished done"]),
    ],
)  # fmt: skip
async def test_every_call_is_judged_asked_about_recorded_and_recorded_again(
    tmp_path: Path, answer: Answer | None, lines: list[str]
) -> None:
    """S13, P6: the same way for every answer."""
    log = Log()
    await run(tmp_path, Person(answer), log)
    assert log.lines == lines


async def test_what_the_policy_decides_alone_asks_nobody(tmp_path: Path) -> None:
    """P1."""
    person, log = Person(Answer(AnswerKind.YES)), Log()
    assert (await run(tmp_path, person, log, command="rm -rf /")).outcome == "denied"
    assert (await run(tmp_path, person, log, command="ls")).outcome == "done"
    assert person.asked == []


async def test_what_is_no_longer_what_was_shown_is_not_done(tmp_path: Path) -> None:
    """P6: a person takes their time; the terminal has moved meanwhile."""
    log, places = Log(), [tmp_path, Path("/")]
    result = await run(
        tmp_path, Person(Answer(AnswerKind.YES)), log, prepare=lambda: ready_for(places.pop(0), "make test", log)
    )
    assert (result.outcome, result.text) == ("denied", "This is not what was approved, and it was not done.")
    assert not [each for each in log.lines if each.startswith("acted")]


async def test_what_a_preparation_needs_is_decided_before_the_rest_of_it(tmp_path: Path) -> None:
    """P1: a server is started, or a name looked up, only after that was allowed. What the person said is told."""

    def first() -> Ready:
        async def rest() -> Ready:
            log.lines.append("rest")
            return ready_for(tmp_path, "make test", log)

        return Ready.first("Starting", "Started", Want(action=Execute("make server", cwd=tmp_path)), rest)

    log = Log()
    result = await run(tmp_path, Person(Answer(AnswerKind.YES, text="Be quick")), log, prepare=first)
    ask = ["judged ask", "decided allowed"]
    assert log.lines == [*ask, "rest", *ask, "rest", "started make test", "acted make test", "finished done"]
    assert result.text.count("Be quick") == 2  # once for each answer
    for nobody in (Person(), Person(Answer(AnswerKind.NO))):
        log = Log()
        assert (await run(tmp_path, nobody, log, prepare=first)).outcome == "denied"
        assert "rest" not in log.lines
    with pytest.raises(ToolFailed, match="another approval"):  # by a program without the pipeline
        await first().act(Go(approved=True))


async def test_an_always_that_cannot_be_stored_is_told_and_the_yes_stays(tmp_path: Path) -> None:
    """P5: for every caller; over MCP nobody heard of it."""
    grants = GrantFile(tmp_path / "state" / "grants.json")
    (tmp_path / "state" / "grants.lock").mkdir(parents=True, mode=0o700)
    log = Log()
    person = Person(Answer(AnswerKind.YES, always=Always(GrantScope.WORKSPACE)))
    result = await run(tmp_path, person, log, grants=grants)
    assert result.outcome == "done" and result.permission
    (note,) = result.permission.notes
    assert "could not be allowed for good" in note and note in log.lines


@pytest.mark.parametrize(
    ("error", "outcome", "mistake"),
    [
        (BadArguments("no such argument"), "failed", True),
        (ToolDenied("not wanted"), "denied", False),
        (ZeroDivisionError("oops"), "failed", False),
    ],
)
async def test_whatever_goes_wrong_is_a_result(tmp_path: Path, error: Exception, outcome: str, mistake: bool) -> None:
    """S13: exactly one."""
    log = Log()

    def fail() -> Ready:
        raise error

    result = await run(tmp_path, Person(), log, prepare=fail)
    assert (result.outcome, bool(result.mistake)) == (outcome, mistake)
    assert str(error) in result.text
    assert log.lines == [f"finished {outcome}"]


async def test_a_call_that_comes_again_with_its_answer_has_no_result_yet(tmp_path: Path) -> None:
    """A3: the stateless era of MCP."""

    class Later(Person):
        async def ask(self, question: Question) -> Answered | NotAsked:
            raise Postponed

    log = Log()
    with pytest.raises(Postponed):
        await run(tmp_path, Later(Answer(AnswerKind.YES)), log)
    assert log.lines == ["judged ask"]


async def test_a_file_that_is_being_written_is_finished_when_its_call_is_cancelled(tmp_path: Path) -> None:
    """S13: and the result says so; a command is ended instead."""
    log, writing, go_on = Log(), asyncio.Event(), asyncio.Event()

    async def act(_: Go) -> Done:
        writing.set()
        await go_on.wait()
        return Done.text("Written.")

    intent = Intent(path=tmp_path / "a", before=None, after="x")
    ready = Ready(title="Writing a", done="Wrote a", act=act, intents=(intent,))
    call = asyncio.create_task(run(tmp_path, Person(), log, prepare=lambda: ready))
    await writing.wait()
    call.cancel()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert log.lines == ["decided allowed", "started None", "finished done"]
