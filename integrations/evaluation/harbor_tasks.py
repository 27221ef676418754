"""Write the tasks as folders in Harbor's format."""

import sys
from pathlib import Path

from tasks import TASKS, Task

CONFIG = """schema_version = "1.4"

[metadata]

[verifier]
timeout_sec = 60.0

[agent]
timeout_sec = 180.0

[environment]
build_timeout_sec = 600.0
workdir = "/app"
"""
DOCKERFILE = """FROM python:3.12-slim
RUN apt-get update && apt-get install -y tmux git vim curl make procps && rm -rf /var/lib/apt/lists/*
WORKDIR /app
COPY setup.sh /tmp/setup.sh
RUN bash -e /tmp/setup.sh
"""
TEST = """cd /app
if bash -e /tests/check.sh > /logs/verifier/output.txt 2>&1; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
"""


def write(task: Task, folder: Path) -> None:
    for name, content in {
        "task.toml": CONFIG,
        "instruction.md": f"[task {task.name}] {task.instruction}\n",
        "environment/Dockerfile": DOCKERFILE,
        "environment/setup.sh": f"{task.setup}\n",
        "tests/test.sh": TEST,
        "tests/check.sh": f"{task.check}\n",
    }.items():
        file = folder / task.name / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)


if __name__ == "__main__":
    for task in TASKS:
        write(task, Path(sys.argv[1]))
