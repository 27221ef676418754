"""inspect_ai's own evaluation, with its `bash_session` and with our `terminal`, in its `local` sandbox.

`python measure_inspect.py [--only TASK] [--json FILE]`, with a Python that has inspect_ai, openai, tarmac-inspect and
(with --no-deps) tarmac. The model is model.py, on loopback.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

os.environ.setdefault("SCRIPTED_API_KEY", "none")

from inspect_ai import Task as InspectTask
from inspect_ai import eval as evaluate
from inspect_ai.agent import react
from inspect_ai.dataset import Sample
from inspect_ai.scorer import CORRECT, INCORRECT, Score, Scorer, Target, accuracy, scorer
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.tool import Tool, bash_session
from inspect_ai.util import sandbox

from tarmac_inspect import terminal
from tasks import TASKS, Task

HERE = Path(__file__).parent
TOOLS = {"bash_session": bash_session, "terminal": terminal}


@dataclass(frozen=True)
class Outcome:
    agent: str
    task: str
    solved: bool
    seconds: float
    turns: int
    polls: int
    tokens: int
    error: str


@solver
def prepared() -> Solver:
    """Run the task's setup, and play one command: the tool is carried into the sandbox before the clock starts."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        await sandbox().exec(["bash", "-ec", state.metadata["setup"]])
        return state

    return solve


@scorer(metrics=[accuracy()])
def checked() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        done = await sandbox().exec(["bash", "-ec", state.metadata["check"]])
        return Score(value=CORRECT if done.returncode == 0 else INCORRECT, explanation=done.stderr)

    return score


def play(name: str, tool: Tool, task: Task, url: str, logs: str) -> Outcome:
    sample = Sample(input=f"[task {task.name}] {task.instruction}", metadata={"setup": task.setup, "check": task.check})
    (log,) = evaluate(
        InspectTask(dataset=[sample], setup=prepared(), solver=react(tools=[tool]), scorer=checked(), sandbox="local"),
        model="openai-api/scripted/scripted",
        model_base_url=url,
        display="none",
        log_dir=logs,
        message_limit=80,
        time_limit=240,
    )
    (done,) = log.samples or [None]
    if done is None:
        return Outcome(name, task.name, False, 0.0, 0, 0, 0, str(log.error))
    calls = [call for each in done.messages if each.role == "assistant" for call in each.tool_calls or ()]
    return Outcome(
        agent=name,
        task=task.name,
        solved=bool(done.scores and done.scores["checked"].value == CORRECT),
        seconds=done.working_time or 0.0,
        turns=len(calls),
        polls=sum(call.arguments.get("action") == "read" or call.arguments.get("keys") == "" for call in calls),
        tokens=sum(each.total_tokens for each in done.model_usage.values()),
        error=done.error.message if done.error else "",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--agent", action="append", default=[])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--thinking", default="0")
    options = parser.parse_args()
    chosen = [task for task in TASKS if not options.only or task.name in options.only]
    tools = {name: each for name, each in TOOLS.items() if not options.agent or name in options.agent}
    outcomes: list[Outcome] = []
    words = [sys.executable, str(HERE / "model.py"), "--thinking", options.thinking]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as model, tempfile.TemporaryDirectory() as logs:
        assert model.stdout is not None
        try:
            url = f"http://127.0.0.1:{int(model.stdout.readline())}/v1"
            for name, make in tools.items():
                play(name, make(), chosen[0], url, logs)
            for task in chosen:
                for name, make in tools.items():
                    outcomes.append(play(name, make(), task, url, logs))
                    print(json.dumps(asdict(outcomes[-1])), flush=True)
        finally:
            model.terminate()
    if options.json:
        options.json.write_text(json.dumps([asdict(each) for each in outcomes], indent=1))


if __name__ == "__main__":
    main()
