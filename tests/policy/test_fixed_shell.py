"""`type` and `command -v` ask bash: the only two plans that start a shell, always with the same text."""

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.policy.test_plan import carry_out

from tarmac.policy import Execute, Policy
from tarmac.policy.plan import environment

TEXTS = ('type "$@"', 'command "$@"')


async def words_of(line: str, workspace: Path) -> tuple[str, ...] | None:
    """What the plan runs; None when it is asked about."""
    verdict = await Policy().judge(Execute(line, cwd=workspace), workspace=workspace)
    return verdict.plan.steps[0].stages[0].words if verdict.plan else None


@pytest.mark.shell
@pytest.mark.parametrize(
    "line", ["type -t cd", "type -a echo", "command -v cat ls", "command -V cd", "type nothing-such"]
)
async def test_they_say_what_bash_says(tmp_path: Path, line: str) -> None:
    """P2: builtins too, with bash's exit code."""
    env = environment(os.environ, workspace=tmp_path)
    plan = (await Policy().judge(Execute(line, cwd=tmp_path), workspace=tmp_path)).plan
    assert plan is not None
    ran = subprocess.run(
        ["bash", "-c", line], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=10, check=False
    )
    output, code = await carry_out(plan, env)
    assert (output.replace("bash: line 1", "").splitlines(), code) == (
        (ran.stdout + ran.stderr.replace("bash: line 1", "")).splitlines(),
        ran.returncode,
    )


@pytest.mark.shell
async def test_nothing_of_the_environment_runs_in_that_shell(tmp_path: Path) -> None:
    """P2: not even with what a plan's environment never holds."""
    (tmp_path / "start").write_text(f"touch {tmp_path}/started\n")
    hostile = {
        "PATH": os.environ["PATH"],
        "BASH_ENV": str(tmp_path / "start"),
        "ENV": str(tmp_path / "start"),
        "BASH_FUNC_type%%": f"() {{ touch {tmp_path}/started; }}",
        "BASH_FUNC_command%%": f"() {{ touch {tmp_path}/started; }}",
        "SHELLOPTS": "xtrace",
        "PS4": f"$(touch {tmp_path}/started)",
    }
    for line in ("type ls", "command -v ls"):
        words = await words_of(line, tmp_path)
        assert words is not None
        subprocess.run(words, env=hostile, capture_output=True, timeout=10, check=False)
    assert not (tmp_path / "started").exists()


@given(
    st.lists(st.text("ab-[]$()`;'\"*= \n\\/~!", max_size=8), min_size=1, max_size=3),
    st.sampled_from(["type", "command -v"]),
)
async def test_a_word_is_an_argument_whatever_it_holds(words: list[str], program: str) -> None:
    """P2: the text bash is given is one of two, and no word is part of it."""
    quoted = " ".join("'" + word.replace("'", "'\\''") + "'" for word in words)
    found = await words_of(f"{program} {quoted}", Path("/home/dev/project"))
    assert found is None or (found[:3] == ("bash", "-p", "-c") and found[3] in TEXTS and found[4] == "bash")
