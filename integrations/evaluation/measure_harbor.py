"""Harbor's own trials, the agents in turn on each task: `python measure_harbor.py [--only TASK] [--json FILE]`.

Run it with a Python that has harbor, tarmac-harbor and (with --no-deps) tarmac. The model is model.py, on loopback.
Agents take turns within one process, so that a busy machine and a cold import hit them alike; each task is played once
before for nobody's account.
"""

import argparse
import asyncio
import json
import logging
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
os.environ.setdefault("OPENAI_API_KEY", "none")

from harbor.models.trial.config import AgentConfig, EnvironmentConfig, TaskConfig, TrialConfig
from harbor.trial.trial import Trial

from harbor_tasks import write
from tasks import TASKS, Task

HERE = Path(__file__).parent
MODEL_INFO = {"max_input_tokens": 200_000, "max_output_tokens": 8000}


@dataclass(frozen=True)
class Outcome:
    agent: str
    task: str
    solved: bool
    seconds: float  # from the agent's first look to its last
    setup: float
    model: float  # seconds of it that the model took
    turns: int
    polls: int  # turns that only waited
    tokens: int
    error: str


def agents(url: str, tarmac: str) -> dict[str, AgentConfig]:
    terminus = {"api_base": url, "record_terminal_session": False, "model_info": MODEL_INFO}
    return {
        "Terminus-2 (tmux)": AgentConfig(name="terminus-2", model_name="openai/scripted", kwargs=terminus),
        "Terminus-2 on Tarmac": AgentConfig(
            import_path="tarmac_harbor:TarmacTerminus", model_name="openai/scripted", kwargs=terminus
        ),
        "Tarmac's agent": AgentConfig(
            import_path="tarmac_harbor:TarmacAgent",
            model_name="openai/scripted",
            kwargs={"api_base": url, "command": tarmac},
            env={"OPENAI_API_KEY": "none"},
        ),
    }


async def play(name: str, agent: AgentConfig, task: Task, folder: Path) -> Outcome:
    config = TrialConfig(
        task=TaskConfig(path=folder / "tasks" / task.name),
        trials_dir=folder / "trials",
        agent=agent.model_copy(deep=True),
        environment=EnvironmentConfig(import_path="tarmac_harbor:Bubblewrap"),
    )
    trial = await Trial.create(config)
    result = await trial.run()
    context = result.agent_result
    metadata = (context.metadata if context else None) or {}
    rewards = (result.verifier_result.rewards if result.verifier_result else None) or {}
    waited = sum(_polls(each) for each in (folder / "trials" / config.trial_name / "agent").glob("trajectory*.json"))
    return Outcome(
        agent=name,
        task=task.name,
        solved=rewards.get("reward") == 1,
        seconds=_span(result.agent_execution),
        setup=_span(result.agent_setup),
        model=sum(metadata.get("api_request_times_msec", ())) / 1000,
        turns=metadata.get("n_episodes", 0),
        polls=waited,
        tokens=(context.n_input_tokens or 0) + (context.n_output_tokens or 0) if context else 0,
        error=result.exception_info.exception_type if result.exception_info else "",
    )


def _polls(trajectory: Path) -> int:
    steps = json.loads(trajectory.read_text())["steps"]
    calls = [call for step in steps for call in step.get("tool_calls") or ()]
    return sum(call["arguments"].get("keystrokes") == "" for call in calls)


def _span(timing: object) -> float:
    start, end = getattr(timing, "started_at", None), getattr(timing, "finished_at", None)
    return (end - start).total_seconds() if start and end else 0.0


async def measure(options: argparse.Namespace, url: str) -> list[Outcome]:
    outcomes: list[Outcome] = []
    chosen = [task for task in TASKS if not options.only or task.name in options.only]
    with tempfile.TemporaryDirectory(prefix="evaluation-") as name:
        folder = Path(name)
        for task in chosen:
            write(task, folder / "tasks")
        ready = agents(url, options.tarmac)
        if not options.tarmac:
            del ready["Tarmac's agent"]
        if options.agent:
            ready = {name: each for name, each in ready.items() if name in options.agent}
        for agent, config in ready.items():  # imports, caches
            await play(agent, config, chosen[0], folder)
        for task in chosen:
            for agent, config in ready.items():
                outcomes.append(await play(agent, config, task, folder))
                print(json.dumps(asdict(outcomes[-1])), flush=True)
    return outcomes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--agent", action="append", default=[])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--tarmac", default="", help="the program `tarmac`, to measure its own agent, too")
    parser.add_argument("--guesses", default="1")
    parser.add_argument("--thinking", default="0")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    words = [sys.executable, str(HERE / "model.py"), "--guesses", options.guesses, "--thinking", options.thinking]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as model:
        assert model.stdout is not None
        try:
            outcomes = asyncio.run(measure(options, f"http://127.0.0.1:{int(model.stdout.readline())}/v1"))
        finally:
            model.terminate()
    if options.json:
        options.json.write_text(json.dumps([asdict(each) for each in outcomes], indent=1))


if __name__ == "__main__":
    main()
