"""Conditions, loops, groups and lists, in any mixture: a plan runs what bash would, and nothing else gets into one."""

import asyncio
import os
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarmac.policy import Execute, Policy
from tarmac.policy.plan import environment
from tarmac.terminals import run_plan

NOWHERE = Path("/no/such/place/project")
LEAVES = [
    "true",
    "false",
    "echo a",
    'echo "$?"',
    "! true",
    "[ -d . ]",
    "[[ -f no ]]",
    "echo b | cat",
    "cat <<< c",
    "(false)",
]


def _looped(inner: str) -> str:
    """Around another loop it has another variable."""
    name = f"x{inner.count('for ')}"
    return f"for {name} in 1 2; do {inner}; echo ${name}; done"


def lines(leaves: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    def around(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        two = st.tuples(inner, inner)
        return st.one_of(
            two.map("{0[0]}; {0[1]}".format),
            st.tuples(leaves, st.sampled_from(["&&", "||"]), leaves).map(" ".join),
            st.tuples(leaves, st.sampled_from(["&&", "||"]), inner).map("{0[0]} {0[1]} {{ {0[2]}; }}".format),
            st.tuples(leaves, st.sampled_from(["&&", "||"]), inner).map("{0[0]} {0[1]} ( {0[2]} )".format),
            two.map("if {0[0]}; then {0[1]}; fi".format),
            st.tuples(inner, inner, inner).map("if {0[0]}; then {0[1]}; else {0[2]}; fi".format),
            st.tuples(inner, inner, inner).map("if {0[0]}; then {0[1]}; elif {0[2]}; then echo e; fi".format),
            inner.map(_looped),
        )

    return st.recursive(leaves, around, max_leaves=6)


async def planned(line: str, here: Path, env: dict[str, str]) -> tuple[str, int | None]:
    verdict = await Policy().judge(Execute(line, cwd=here), workspace=here)
    assert verdict.plan is not None, (line, verdict.reason)
    result = await run_plan(verdict.plan, command=line, environment=env)
    return result.output, result.exit_code


@pytest.mark.shell
@given(line=lines(st.sampled_from(LEAVES)))
@settings(max_examples=12, deadline=None)
def test_a_plan_takes_the_ways_that_bash_takes(line: str) -> None:
    """P1: by the status of each command, through any nesting."""
    line = f"true; {line}"  # so that there is a status to ask for
    with tempfile.TemporaryDirectory() as folder:
        env = environment(dict(os.environ), workspace=Path(folder))
        bash = subprocess.run(["bash", "-c", line], cwd=folder, env=env, capture_output=True, timeout=20, check=False)
        found = asyncio.run(planned(line, Path(folder).resolve(), env))
    assert found == (bash.stdout.decode(), bash.returncode), line


@pytest.mark.parametrize(
    "line",
    [
        "for x in 1 2; do false && { for x in 3 4; do echo $x; done; }; echo $x; done",
        "for x in 1 2; do for x in 3 4; do echo $x; done; echo $x; done",
        "false && { for x in 1 2; do echo $x; done; }; echo $x",
        "for x in 1 2; do echo $x; done; echo $x",
    ],
)
async def test_a_variable_whose_value_only_the_run_knows_is_in_no_plan(line: str) -> None:
    """P1: what is run is what bash would run, or it asks."""
    verdict = await Policy().judge(Execute(line, cwd=NOWHERE), workspace=NOWHERE)
    assert (verdict.decision, verdict.plan) == ("ask", None)


@given(line=lines(st.sampled_from([*LEAVES[:4], "frobnicate", "rm a", "cat a > b", "echo $(id)", "cat .env"])))
@settings(max_examples=60, deadline=None)
def test_what_is_no_reading_is_in_no_plan_wherever_it_stands(line: str) -> None:
    """P2: one command that is not proven, and nothing of the line is allowed."""
    verdict = asyncio.run(Policy().judge(Execute(line, cwd=NOWHERE), workspace=NOWHERE))
    hostile = any(each in line for each in ("frobnicate", "rm a", "> b", "$(id)", ".env"))
    if hostile:
        assert verdict.decision != "allow", line
    if verdict.plan is not None:
        words = {word for step in verdict.plan.steps for stage in step.stages for word in stage.words}
        assert not words & {"frobnicate", "rm", ".env"}, line
