"""Events to try things with: any at all, one of each kind, a plausible task of any length."""

import dataclasses
import types
from collections.abc import Iterator
from enum import EnumType
from pathlib import Path
from typing import Any, Literal, NewType, Union, get_args, get_origin, get_type_hints

import msgspec
from hypothesis import strategies as st

from tarmac.events import TaskId, TerminalId
from tarmac.models.messages import Blob, Image, Part, Reasoning, Text, ToolResult, ToolUse, Usage
from tarmac.policy.approval import AnswerKind, Choice
from tarmac.tasks import events as e
from tarmac.tasks.events import CallId, MessageId, QuestionId, RequestId
from tarmac.tasks.log.records import KINDS

texts = st.text(st.characters(exclude_categories=()), max_size=40)  # lone surrogates too: file names have them
paths = st.text(st.characters(exclude_characters="\0", exclude_categories=()), max_size=20).map(Path)
ids = st.sampled_from(["a", "b", "c"])  # few, so that they meet


def of_type(wanted: Any) -> st.SearchStrategy[Any]:
    """Any value of a type that an event's field may have."""
    plain: dict[object, st.SearchStrategy[Any]] = {
        str: texts,
        bool: st.booleans(),
        int: st.integers(0, 1 << 60),
        float: st.floats(allow_nan=False, allow_infinity=False),
        Path: paths,
        type(None): st.none(),
    }
    if wanted in plain:
        return plain[wanted]
    if wanted == Part:
        return st.one_of(of_type(Text), of_type(Image), of_type(Reasoning), of_type(ToolUse))
    if isinstance(wanted, NewType):
        return ids
    if isinstance(wanted, EnumType):
        return st.sampled_from(list(wanted))
    if get_origin(wanted) is Literal:
        return st.sampled_from(get_args(wanted))
    if get_origin(wanted) in (Union, types.UnionType):
        return st.one_of(*map(of_type, get_args(wanted)))
    if get_origin(wanted) is tuple:
        return st.lists(of_type(get_args(wanted)[0]), max_size=3).map(tuple)
    if dataclasses.is_dataclass(wanted) or issubclass(wanted, msgspec.Struct):
        hints = get_type_hints(wanted)
        return st.builds(wanted, **{name: ids if name == "id" else of_type(hints[name]) for name in hints})
    raise AssertionError(f"an event has a field of type {wanted}")


any_event: st.SearchStrategy[e.TaskEvent] = st.one_of(*map(of_type, KINDS.values()))
stand_ins = st.builds(e.RecordLost, at=st.just(0.0), seq=st.integers(1, 9), why=st.just("test"))
# Those that make the conversation, with numbers that can hit
conversation: st.SearchStrategy[e.TaskEvent] = st.one_of(
    *(of_type(each) for each in (e.UserSaid, e.ModelSaid, e.ModelSaid, e.ToolStarted, e.ToolFinished, e.ToolFinished)),
    *(of_type(each) for each in (e.MessageQueued, e.MessageDelivered, e.ModelTold, e.QuestionAsked, e.TaskStarted)),
    st.builds(
        e.HistoryCondensed, at=st.just(1.0), first=st.integers(1, 12), last=st.integers(1, 12), summary=st.just("short")
    ),
    st.builds(
        e.HistoryCondensed,
        at=st.just(1.0),
        first=st.integers(1, 12),
        last=st.integers(1, 12),
        summary=st.just("short"),
        keeps_words=st.just(True),
    ),
    st.builds(
        e.OutputsFolded,
        at=st.just(1.0),
        outputs=st.lists(st.builds(e.FoldedOutput, call=ids, text=st.just("[folded]"))).map(tuple),
    ),
    st.builds(e.HistoryRewound, at=st.just(1.0), to=st.integers(0, 12)),
    stand_ins,
)

SHA = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"


def one_of_each() -> list[e.TaskEvent]:
    """Every kind once, every field filled: what the golden file of format 1 holds. Only ever add to its end."""
    blob = Blob(SHA, 4, "image/png")
    usage = Usage(input=1200, output=80, cache_reads=900, cache_writes=300)
    return [
        e.TaskCreated(
            at=1763200000.5,
            task=TaskId("3f2a"),
            number=7,
            workspace=Path("/project"),
            mode="code",
            root=TaskId("root"),
            parent=TaskId("parent"),
        ),
        e.TaskStarted(at=1763200000.75, pid=4242, version="0.1.0"),
        e.UserSaid(at=1763200001.0, text="make the tests pass — bitte, 请", images=(blob,)),
        e.MessageQueued(at=2.0, message=MessageId("m1"), text="and hurry", images=(blob,)),
        e.MessageDelivered(at=3.0, message=MessageId("m1")),
        e.MessageWithdrawn(at=4.0, message=MessageId("m2")),
        e.ModelTold(at=5.0, text="<environment_details>…", about="environment"),
        e.RequestStarted(
            at=6.0, request=RequestId("r1"), model="scripted/one", attempt=2, prompt=blob, context_window=200_000
        ),
        e.RequestFailed(at=7.0, request=RequestId("r1"), what="overloaded", status=529, retry_in=1.5),
        e.ModelSaid(
            at=8.0,
            request=RequestId("r1"),
            parts=(
                Reasoning("the test wants 4", "c2lnbmVk"),
                Text("I will run it."),
                ToolUse("c1", "execute_command", '{"command": "make test"}'),
                Image(blob),
                ToolResult("c0", (Text("an odd place for one"),), failed=True),
            ),
            stop="tool_use",
            usage=usage,
            cost=0.0123,
            seconds=2.5,
        ),
        e.CallJudged(
            at=9.0, call=CallId("c1"), decision="ask", risk="medium", reason="runs code", part="make", by="policy"
        ),
        e.QuestionAsked(
            at=10.0,
            question=QuestionId("q1"),
            ask="command",
            text="make test",
            call=CallId("c1"),
            choices=("yes", "no"),
            details='{"risk": "medium"}',
        ),
        e.QuestionAnswered(
            at=11.0,
            question=QuestionId("q1"),
            answer=AnswerKind.PER_FILE,
            text="but quietly",
            images=(blob,),
            choices=(Choice(path=Path("a.py"), answer=AnswerKind.YES),),
            edited="make -s test",
            always="workspace",
            by="cli",
        ),
        e.ToolStarted(
            at=12.0,
            call=CallId("c1"),
            name="execute_command",
            title="Running `make -s test`",
            intents=(e.FileIntent(path=Path("a.py"), before=None, after=SHA),),
            command="make -s test",
            cwd=Path("/project"),
            terminal=TerminalId("t1"),
        ),
        e.CommandOutput(at=13.0, call=CallId("c1"), terminal=TerminalId("t1"), spool=Path("/state/spool/1"), offset=99),
        e.ToolFinished(
            at=14.0,
            call=CallId("c1"),
            name="execute_command",
            outcome="done",
            content=(Text("ok"), Image(blob)),
            title="Ran `make -s test`",
            seconds=1.25,
            exit_code=0,
            details="{}",
        ),
        e.FileSeen(at=15.0, path=Path("a\udcff.py"), digest=SHA, how="edited"),
        e.ModeSwitched(at=16.0, mode="architect", why="a plan first"),
        e.ModelSwitched(at=17.0, model="scripted/two"),
        e.TodosUpdated(at=18.0, todos=(e.Todo(text="run", status="done"), e.Todo(text="fix")), by_person=True),
        e.HistoryCondensed(
            at=19.0,
            first=6,
            last=10,
            summary="It ran the tests.",
            how="summarised",
            tokens_before=9000,
            tokens_after=700,
            usage=usage,
            cost=0.5,
        ),
        e.HistoryRewound(at=20.0, to=18),
        e.CheckpointCreated(at=21.0, checkpoint="5e1f", why="before an edit"),
        e.CheckpointRestored(at=22.0, checkpoint="5e1f", paths=(Path("a.py"),)),
        e.SubtaskStarted(at=23.0, child=TaskId("child"), text="write docs", mode="code", call=CallId("c2")),
        e.SubtaskFinished(at=24.0, child=TaskId("child"), outcome="completed", result="written", usage=usage, cost=0.1),
        e.Noted(at=25.0, what="shell_integration_warning", text="no integration"),
        e.TaskPaused(at=26.0, why="cost limit"),
        e.TaskUnpaused(at=27.0),
        e.TaskAborted(at=28.0, why="by hand"),
        e.TaskCompleted(at=29.0, result="all green", usage=usage, cost=None),
        e.TaskSaved(at=30.0),
        e.TaskImported(
            at=31.0, source="roo", name="0193", last=9, files=(e.KeptFile(name="ui_messages.json", blob=blob),)
        ),
        e.AgentHosted(at=32.0, name="fast-agent 0.10", session="s-1"),
        e.OutputsFolded(
            at=33.0,
            outputs=(e.FoldedOutput(call=CallId("c1"), text="[folded: Ran `make`, 900 lines.]"),),
            tokens_before=9000,
            tokens_after=4000,
        ),
        e.FilesChanged(
            at=40.0,
            checkpoint="5e1f",
            files=(e.FileEdit(path=Path("a.py"), before=None, after="ab" * 32, after_mode=0o100644),),
        ),
    ]


def a_task(turns: int) -> Iterator[e.TaskEvent]:
    """A plausible task: after the first two facts, seven for each turn."""
    yield e.TaskCreated(at=0.5, task=TaskId("t"), number=1, workspace=Path("/project"), mode="code")
    yield e.UserSaid(at=1.0, text="make the tests pass")
    for turn in range(turns):
        call, request, at = CallId(f"c{turn}"), RequestId(f"r{turn}"), float(turn + 2)
        said = (
            Text(f"Step {turn}: I look at the file."),
            ToolUse(call, "read_file", f'{{"path": "src/module_{turn}.py"}}'),
        )
        yield e.RequestStarted(at=at, request=request, model="scripted/one")
        yield e.ModelSaid(
            at=at, request=request, parts=said, stop="tool_use", usage=Usage(input=100, output=20), cost=0.001
        )
        yield e.CallJudged(at=at, call=call, decision="allow", risk="low", reason="reads a file in the workspace")
        yield e.ToolStarted(at=at, call=call, name="read_file", title=f"Reading src/module_{turn}.py")
        yield e.FileSeen(at=at, path=Path(f"src/module_{turn % 50}.py"), digest=SHA, how="read")
        content = (Text(f"File: src/module_{turn}.py\n" + " 1 | import os\n" * 12),)
        yield e.ToolFinished(at=at, call=call, name="read_file", outcome="done", content=content, title="Read a file")
        yield e.ModelTold(at=at, text="<environment_details>nothing new</environment_details>", about="environment")
