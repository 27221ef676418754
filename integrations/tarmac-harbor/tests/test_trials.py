"""Harbor's own trials with the agents of this package: real Harbor, a scripted model, an environment of bubblewrap."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

EVALUATION = Path(__file__).parents[2] / "evaluation"


@pytest.mark.parametrize("task", ["questions", "shell-ends", "editor"])
def test_terminus_on_tarmac_solves(task: str, tmp_path: Path) -> None:
    """F7."""
    results = tmp_path / "results.json"
    words = [sys.executable, str(EVALUATION / "measure_harbor.py"), "--only", task, "--json", str(results)]
    subprocess.run([*words, "--agent", "Terminus-2 on Tarmac"], check=True, timeout=300)
    (outcome,) = json.loads(results.read_text())
    assert outcome["solved"]
    assert outcome["error"] == ""
