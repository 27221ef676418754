"""The question to a person: what it shows, what an answer allows, and that a yes is for one thing, once."""

import json
from dataclasses import replace
from pathlib import Path
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarmac.errors import BadRequest
from tarmac.events import TaskId, TerminalId
from tarmac.policy import (
    Execute,
    KillTerminal,
    Part,
    ReadFile,
    Risk,
    SendInput,
    SuggestedGrant,
    Verdict,
    WriteFile,
)
from tarmac.policy.approval import (
    Always,
    Answer,
    AnswerKind,
    Choice,
    GrantScope,
    Pending,
    Request,
    Resolution,
    Resolved,
    denied_text,
    digest,
    make_request,
)
from tarmac.policy.verdict import Action, Basis

HERE = Path("/project")
TASK = TaskId("task-1")
PUSH = Execute("git push", cwd=HERE)
GRANT = SuggestedGrant("line", "git push")


def verdict(risk: Risk = "medium", **changes: object) -> Verdict:
    part = Part(
        "git push", ("git", "push"), decision="ask", risk=risk, reason="network", explanation="sends", rule="git.push"
    )
    made = Verdict(
        decision="ask",
        risk=risk,
        reason="it sends to a server",
        part="git push",
        explanation="sends commits",
        rule="git.push",
        suggested_grants=(GRANT,),
        parts=(part,),
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def asked(action: Action = PUSH, *, timeout: float | None = None, risk: Risk = "medium") -> Pending:
    return Pending(make_request(action, verdict(risk), task=TASK, now=100.0, timeout=timeout), action)


def said(kind: AnswerKind, **more: object) -> Resolved:
    return asked().answer(Answer(kind, **more), now=101.0)  # type: ignore[arg-type]


def test_it_shows_command_parts_directory_risk_reason_effect_and_what_always_would_store() -> None:
    """P6."""
    request = make_request(PUSH, verdict(), task=TASK, now=0.0)
    assert (request.shown, request.directory, request.risk, request.reason, request.explanation) == (
        "git push", "/project", "medium", "it sends to a server", "sends commits",
    )  # fmt: skip
    assert [(each.text, each.risk, each.reason) for each in request.parts] == [("git push", "medium", "network")]
    assert request.always == (GRANT,)
    assert json.loads(json.dumps(request.as_data()))["shown"] == "git push"


def test_what_cannot_be_seen_is_marked_everywhere() -> None:
    """P6."""
    evil = Execute("ls\x1b[2K" + " " * 200 + "\u202erm x", cwd=Path("/a\u202eb"))
    request = make_request(evil, verdict(reason="\x1b[8m", explanation="\u200b"), task=TASK, now=0.0)
    assert request.shown == "ls⟨U+001B⟩[2K⟨200 blanks⟩⟨U+202E⟩rm x"
    assert (request.directory, request.reason, request.explanation) == ("/a⟨U+202E⟩b", "⟨U+001B⟩[8m", "⟨U+200B⟩")
    assert request.warnings


def test_the_tail_of_a_very_long_command_is_always_shown() -> None:
    """P6."""
    request = make_request(Execute("echo " + "x" * 30_000 + "; rm y", cwd=HERE), verdict(), task=TASK, now=0.0)
    assert request.shown.endswith("; rm y")
    assert "characters not shown⟩" in request.shown


def test_of_a_file_it_shows_path_diff_and_place() -> None:
    """P6."""
    edited = make_request(
        WriteFile(Path("/x/a.py")), verdict(), task=TASK, before=b"a\nb\n", content=b"a\nc\x1b\n",
        outside=True, protected="agents follow it", now=0.0,
    ).file  # fmt: skip
    made = make_request(WriteFile(Path("b.py")), verdict(), task=TASK, content=b"new\n", now=0.0).file
    empty = make_request(WriteFile(Path("a")), verdict(), task=TASK, before=b"a\n\nb", content=b"a\n\nc", now=0.0).file
    assert empty and empty.diff.endswith("\n a\n\n-b\n+c")  # an empty line is an empty line
    assert edited and made
    assert (edited.new, edited.outside, edited.protected) == (False, True, "agents follow it")
    assert "-b\n+c⟨U+001B⟩" in edited.diff
    assert (made.new, made.diff) == (True, "new\n")
    gone = make_request(WriteFile(Path("a"), deletes=True), verdict(), task=TASK, now=0.0).file
    folder = make_request(ReadFile(Path("/x")), verdict(), task=TASK, folder=True, outside=True, now=0.0).file
    assert gone and folder
    assert [(each.deletes, each.folder) for each in (edited, gone, folder)] == [
        (False,) * 2,
        (True, False),
        (False, True),
    ]
    assert make_request(PUSH, verdict(), task=TASK, now=0.0).file is None
    long = make_request(
        WriteFile(Path("b.py")), verdict(), task=TASK, before=b"x\n" * 9000, content=b"y\n", now=0.0
    ).file
    assert long and "too many to compare" in long.diff


def test_of_a_large_file_it_shows_what_changes_and_soon() -> None:
    """P6: it was minutes on the event loop, and then all of the new content."""
    old = [f"    line {number} " for number in range(300_000)]
    new = [*old[:200_000], "new", *old[200_001:]]
    began = process_time()
    shown = make_request(
        WriteFile(Path("b.py")), verdict(), task=TASK,
        before="\n".join(old).encode(), content="\n".join(new).encode(), now=0.0,
    ).file  # fmt: skip
    assert shown and shown.diff.split("\n")[2:8] == [
        "@@ -199998,7 +199998,7 @@",
        *(f"     line {number}⟨1 blanks⟩" for number in range(199_997, 200_000)),
        "-    line 200000⟨1 blanks⟩",
        "+new",
    ]
    made = make_request(WriteFile(Path("b.py")), verdict(), task=TASK, content="\n".join(old).encode(), now=0.0).file
    assert made and "characters not shown⟩" in made.diff and made.diff.endswith("line 299999 ")
    assert process_time() - began < 10


@given(st.lists(st.sampled_from("abc"), max_size=12), st.lists(st.sampled_from("abc"), max_size=12))
def test_what_is_shown_of_an_edit_makes_the_new_content_of_the_old(old: list[str], new: list[str]) -> None:
    """P6: whatever is equal at its ends."""
    before = ["same"] * 5 + old + ["end"] * 5
    after = ["same"] * 5 + new + ["end"] * 5
    texts = ["\n".join(lines).encode() for lines in (before, after)]
    shown = make_request(WriteFile(Path("b")), verdict(), task=TASK, before=texts[0], content=texts[1], now=0.0).file
    assert shown
    result: list[str] = []
    at = 0
    for row in shown.diff.split("\n")[2:]:
        if row.startswith("@@"):
            start = int(row.split()[1].lstrip("-").split(",")[0]) - 1
            result += before[at:start]
            at = start
        elif row[:1] in (" ", "-"):
            assert before[at] == row[1:]
            at += 1
        if row[:1] in (" ", "+"):
            result.append(row[1:])
    assert result + before[at:] == after


@pytest.mark.parametrize(
    ("answer", "runs", "told"),
    [
        (Answer(AnswerKind.YES), True, "The person approved this."),
        (Answer(AnswerKind.YES, text="carefully"), True, "The person approved this. They say: carefully"),
        (Answer(AnswerKind.NO), False, "The person denied this, and it was not done."),
        (Answer(AnswerKind.NO, text="no"), False, "The person denied this, and it was not done. They say: no"),
        (Answer(AnswerKind.MESSAGE, text="why?"), False,
         "The person did not approve this, and it was not done, but wrote: why?"),
        (Answer(AnswerKind.SKIP), False, "Nobody answered, so this was not done."),
    ],
)  # fmt: skip
def test_an_answer_says_what_happens_and_what_the_agent_is_told(answer: Answer, runs: bool, told: str) -> None:
    """P6."""
    resolved = asked().answer(answer, now=101.0)
    assert (resolved.approval is not None, resolved.anew, resolved.grant, resolved.told) == (runs, None, None, told)


def test_a_denial_is_a_denial_whatever_its_words_are() -> None:
    """P6: no decision is read from text."""
    for kind in (AnswerKind.NO, AnswerKind.MESSAGE):
        assert said(kind, text="Nobody answered in 60 s").resolution is Resolution.DENIED
    assert said(AnswerKind.YES, text="Nobody answered").resolution is Resolution.ALLOWED
    assert said(AnswerKind.SKIP, text="Denied.").resolution is Resolution.UNANSWERED


def test_always_allows_this_and_stores_what_was_offered() -> None:
    """P5, P6."""
    resolved = said(AnswerKind.YES, always=Always(GrantScope.WORKSPACE))
    assert resolved.approval and (resolved.grant, resolved.scope) == (GRANT, GrantScope.WORKSPACE)
    for offer in (1, -1):
        with pytest.raises(BadRequest, match="for good"):
            said(AnswerKind.YES, always=Always(GrantScope.TASK, offer))
    with pytest.raises(BadRequest):  # nothing is offered for what is critical
        asked(risk="critical").answer(Answer(AnswerKind.YES, always=Always(GrantScope.TASK)), now=101.0)


def test_an_edited_command_is_judged_anew_and_runs_by_no_old_yes() -> None:
    """P6."""
    resolved = said(AnswerKind.YES, edited="git push --dry-run")
    assert (resolved.resolution, resolved.approval, resolved.anew) == (
        Resolution.EDITED, None, Execute("git push --dry-run", cwd=HERE),
    )  # fmt: skip
    with pytest.raises(BadRequest, match="empty"):
        said(AnswerKind.YES, edited=" ")
    with pytest.raises(BadRequest, match="only a command"):
        asked(ReadFile(Path("a"))).answer(Answer(AnswerKind.YES, edited="x"), now=1.0)


def test_of_several_files_each_has_its_own_answer() -> None:
    """P6: a file without an answer is denied."""
    answer = Answer(AnswerKind.PER_FILE, choices=(Choice(path=Path("a"), answer=AnswerKind.YES),))
    found = [asked(ReadFile(Path(name))).answer(answer, now=101.0).resolution for name in ("a", "b")]
    assert found == [Resolution.ALLOWED, Resolution.DENIED]


def test_nobody_answering_in_time_is_a_skip_whatever_comes_later() -> None:
    """P6."""
    outcome = asked(timeout=60.0).answer(Answer(AnswerKind.YES), now=161.0)
    assert (outcome.approval, outcome.told) == (None, "Nobody answered in 60 s, so this was not done.")


def test_only_the_first_answer_counts() -> None:
    """P6."""
    pending = asked()
    assert pending.answer(Answer(AnswerKind.NO), now=101.0).approval is None
    with pytest.raises(BadRequest, match="answered before"):
        pending.answer(Answer(AnswerKind.YES), now=102.0)


def test_an_answer_without_sense_leaves_the_question_open() -> None:
    """P6."""
    pending = asked()
    with pytest.raises(BadRequest):
        pending.answer(Answer(AnswerKind.MESSAGE), now=101.0)
    assert pending.answer(Answer(AnswerKind.YES), now=102.0).approval


def test_a_yes_is_good_once_and_not_for_ever() -> None:
    """P6."""
    yes = said(AnswerKind.YES).approval
    assert yes is not None
    assert yes.use(PUSH, task=TASK, now=102.0) == ""
    assert yes.use(PUSH, task=TASK, now=102.0) == "this approval has been used"
    old = said(AnswerKind.YES).approval
    assert old is not None
    assert old.use(PUSH, task=TASK, now=2000.0) == "this approval is too old"


@pytest.mark.parametrize(
    ("action", "task"),
    [
        (Execute("git push ", cwd=HERE), TASK),
        (Execute("git push", cwd=Path("/other")), TASK),
        (Execute("git push", cwd=HERE, shell="zsh"), TASK),
        (PUSH, TaskId("task-2")),
        (PUSH, None),
        (SendInput("git push", foreground="bash", cwd=HERE), TASK),
    ],
)
def test_a_yes_is_for_what_was_shown_and_nothing_else(action: Action, task: TaskId | None) -> None:
    """P6: bytes, directory, shell, task."""
    yes = said(AnswerKind.YES).approval
    assert yes is not None
    assert yes.use(action, task=task, now=102.0) == "this is not what was approved"
    assert yes.use(PUSH, task=TASK, now=102.0) == ""  # and a wrong try does not spend it


def test_a_yes_for_a_file_is_for_its_content_and_one_for_a_terminal_for_that_terminal() -> None:
    """P6."""
    write = WriteFile(Path("a"))
    assert digest(write, task=TASK, content=b"x") != digest(write, task=TASK, content=b"y")
    assert digest(write, task=TASK, content=b"") != digest(write, task=TASK)
    assert digest(PUSH, task=TASK, terminal=TerminalId("t1")) != digest(PUSH, task=TASK, terminal=TerminalId("t2"))
    assert digest(PUSH, task=TASK, terminal=TerminalId("t1")) != digest(PUSH, task=TASK)


actions = st.one_of(
    st.builds(
        Execute, st.text(max_size=8), cwd=st.sampled_from([HERE, Path("/")]), shell=st.sampled_from(["bash", "sh"])
    ),
    st.builds(KillTerminal, st.sampled_from(["t1", "t2"]).map(TerminalId), running=st.none() | st.text(max_size=3)),
    st.builds(WriteFile, st.text("ab/", min_size=1, max_size=3).map(Path), new=st.none() | st.booleans()),
    st.builds(SendInput, st.text(max_size=4), foreground=st.none() | st.just("bash"), cwd=st.just(HERE)),
)


@given(actions, actions, st.sampled_from(["t", "u", None]), st.sampled_from(["t", "u", None]))
def test_two_actions_have_the_same_digest_only_when_they_are_the_same(
    one: Action, other: Action, task: str | None, another: str | None
) -> None:
    """P6."""
    a = digest(one, task=TaskId(task) if task else None)
    b = digest(other, task=TaskId(another) if another else None)
    assert (a == b) == (one == other and type(one) is type(other) and task == another)


@given(
    actions,
    st.sampled_from([AnswerKind.YES, AnswerKind.NO, AnswerKind.MESSAGE, AnswerKind.SKIP]),
    st.text(max_size=5),
    st.floats(0, 100),
    st.floats(1, 50),
)
def test_only_a_timely_yes_lets_anything_run(
    action: Action, kind: AnswerKind, feedback: str, later: float, timeout: float
) -> None:
    """P6."""
    request: Request = make_request(action, verdict(), task=TASK, now=0.0, timeout=timeout)
    if kind is AnswerKind.MESSAGE and not feedback:
        feedback = "x"
    outcome = Pending(request, action).answer(Answer(kind, text=feedback), now=later)
    assert (outcome.approval is not None) == (kind is AnswerKind.YES and later <= timeout)
    assert outcome.anew is None and outcome.told


def test_what_was_denied_without_asking_is_told_with_its_reason() -> None:
    """P6."""
    denied = verdict(decision="deny", rule="user.deny", basis=Basis.USER_RULE, reason="a rule of yours")
    assert denied_text(PUSH, denied) == "Command 'git push' is in the denied commands list"
    floor = verdict(decision="deny", rule="floor.disk", reason="it would erase a disk")
    assert denied_text(PUSH, floor) == "Command 'git push' is not allowed, and was not done: it would erase a disk"
    with pytest.raises(BadRequest, match="not asked about"):
        make_request(PUSH, denied, task=TASK, now=0.0)
    with pytest.raises(BadRequest, match="approval_timeout"):
        make_request(PUSH, verdict(), task=TASK, now=0.0, timeout=0)
