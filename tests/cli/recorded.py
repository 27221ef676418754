"""Tasks to look at: written by the real store, with facts as a run leaves them."""

import json
from collections.abc import Sequence
from pathlib import Path

from tarmac.events import TaskId
from tarmac.models.messages import Text, ToolUse, Usage
from tarmac.policy.approval import AnswerKind
from tarmac.tasks import events as e
from tarmac.tasks.events import CallId, QuestionId, RequestId
from tarmac.tasks.store import TaskStore

DIFF = "--- a/calc.py\n+++ b/calc.py\n@@ -1,2 +1,2 @@\n def add(a, b):\n-    return a - b\n+    return a + b\n"


def a_run(
    at: float = 1_763_200_000.0, *, text: str = "make the tests pass", completed: bool = True
) -> list[e.TaskEvent]:
    """A short task: a command that fails, an edit that was asked about, the end."""
    r1, r2, c1, c2 = RequestId("r1"), RequestId("r2"), CallId("c1"), CallId("c2")
    used = Usage(input=1200, output=80, cache_reads=600)
    facts: list[e.TaskEvent] = [
        e.TaskStarted(at=at, pid=1),
        e.UserSaid(at=at + 1, text=text),
        e.RequestStarted(at=at + 1, request=r1, model="scripted/demo", context_window=10_000),
        e.ModelSaid(
            at=at + 2,
            request=r1,
            parts=(Text("I will run the tests."), ToolUse("c1", "execute_command", '{"command": "make test"}')),
            stop="tool_use",
            usage=used,
            cost=0.01,
        ),
        e.ToolStarted(at=at + 2, call=c1, name="execute_command", title="Running `make test`", command="make test"),
        e.ToolFinished(
            at=at + 3,
            call=c1,
            name="execute_command",
            outcome="done",
            content=(Text("AssertionError: add(2, 2) is 0"),),
            title="Ran `make test`",
            seconds=1.25,
            exit_code=2,
        ),
        e.TodosUpdated(at=at + 3, todos=(e.Todo(text="find it", status="done"), e.Todo(text="fix it", status="doing"))),
        e.RequestStarted(at=at + 4, request=r2, model="scripted/demo", context_window=10_000),
        e.ModelSaid(
            at=at + 5,
            request=r2,
            parts=(Text("There is a minus."), ToolUse("c2", "apply_diff", '{"path": "calc.py", "diff": "…"}')),
            stop="tool_use",
            usage=used,
            cost=0.02,
        ),
        e.QuestionAsked(at=at + 5, question=QuestionId("q1"), ask="tool", text="calc.py", call=c2),
        e.QuestionAnswered(at=at + 6, question=QuestionId("q1"), answer=AnswerKind.YES, text="go on", by="cli"),
        e.ToolStarted(at=at + 6, call=c2, name="apply_diff", title="Editing calc.py"),
        e.ToolFinished(
            at=at + 7,
            call=c2,
            name="apply_diff",
            outcome="done",
            content=(Text("done"),),
            title="Edited calc.py",
            details=json.dumps({"files": [{"path": "calc.py", "diff": DIFF}]}),
        ),
    ]
    if completed:
        facts += [e.TaskCompleted(at=at + 8, result="All tests pass.", usage=used, cost=0.03), e.TaskSaved(at=at + 8)]
    return facts


async def keep(
    store: TaskStore, facts: Sequence[e.TaskEvent], *, workspace: Path = Path("/project"), parent: str | None = None
) -> str:
    """Record them as a task; its id."""
    async with store.create(workspace=workspace, parent=TaskId(parent) if parent else None) as log:
        await log.append(*facts)
        return log.folder.name
