"""Tarmac's own agent, installed in the environment as Harbor installs others: `tarmac run --json` there."""

import json
import shlex
from typing import Any, override

from harbor.agents.base import BaseAgent
from harbor.agents.options import AgentOptions
from harbor.environments.base import BaseEnvironment
from harbor.models.agent.context import AgentContext
from pydantic import ConfigDict

LOG = "tarmac.jsonl"


class TarmacOptions(AgentOptions):
    model_config = ConfigDict(extra="forbid")

    command: str = "tarmac"  # the program, where it is not on the PATH
    api_base: str | None = None  # the address of the model's provider
    package: str = "tarmac"  # what pip installs where the program is missing
    max_turns: int | None = None


class TarmacAgent(BaseAgent):
    """`tarmac run` in the environment, allowed everything but what is never allowed."""

    options_model = TarmacOptions
    options: TarmacOptions

    @staticmethod
    @override
    def name() -> str:
        return "tarmac"

    @override
    def version(self) -> str | None:
        return self._version

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._version: str | None = None

    @override
    async def setup(self, environment: BaseEnvironment) -> None:
        program = shlex.quote(self.options.command)
        found = await environment.exec(f"{program} --version", timeout_sec=60)
        if found.return_code != 0:
            package = shlex.quote(self.options.package)
            installed = await environment.exec(f"python3 -m pip install --quiet {package}", timeout_sec=300)
            found = await environment.exec(f"{program} --version", timeout_sec=60)
            if found.return_code != 0:
                raise RuntimeError(f"Tarmac could not be installed: {installed.stderr or found.stderr}")
        self._version = (found.stdout or "").split()[-1]

    @override
    async def run(self, instruction: str, environment: BaseEnvironment, context: AgentContext) -> None:
        words = [self.options.command, "run", "--json", "--auto", "all", "--model", self.model_name or ""]
        if self.options.api_base:
            words += ["--base-url", self.options.api_base]
        if self.options.max_turns:
            words += ["--max-turns", str(self.options.max_turns)]
        log = self.environment_logs_dir / LOG
        await environment.exec(f"{shlex.join([*words, instruction])} > {log} 2>&1", env=self.extra_env)
        await environment.download_file(str(log), self.logs_dir / LOG)
        _count(context, (self.logs_dir / LOG).read_text(errors="replace"))


def _count(context: AgentContext, log: str) -> None:
    """Add up what the model used."""
    sent = received = answers = 0
    for line in log.splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        usage = record.get("usage") if isinstance(record, dict) and record.get("kind") == "model_said" else None
        if isinstance(usage, dict):
            answers += 1
            sent += int(usage.get("input") or 0)
            received += int(usage.get("output") or 0)
    context.n_input_tokens, context.n_output_tokens = sent, received
    context.metadata = {"n_episodes": answers}
