"""inspect_ai's own evaluation with the tool of this package: real inspect_ai, its local sandbox, a scripted model."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

EVALUATION = Path(__file__).parents[2] / "evaluation"


@pytest.mark.parametrize("task", ["questions", "shell-ends", "long-output"])
def test_an_agent_with_the_terminal_solves(task: str, tmp_path: Path) -> None:
    """F7."""
    results = tmp_path / "results.json"
    words = [sys.executable, str(EVALUATION / "measure_inspect.py"), "--only", task, "--json", str(results)]
    subprocess.run([*words, "--agent", "terminal"], check=True, timeout=300)
    (outcome,) = json.loads(results.read_text())
    assert outcome["solved"]
    assert outcome["error"] == ""
