"""What is allowed runs without a shell, and does the same as in one."""

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tarmac.policy import Execute, Plan, Policy, Stage, Step
from tarmac.policy.plan import GIT_SWITCHES, environment, search_path
from tarmac.terminals import run_plan


async def carry_out(plan: Plan, env: dict[str, str]) -> tuple[str, int | None]:
    """A plan, run by the runner of plans: its output and its exit code."""
    result = await run_plan(plan, command="a line", environment=env)
    return result.output, result.exit_code


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    for number, name in enumerate(["a.txt", "b.txt", "src/c.py", "src/d.py", "two words.txt"]):
        (tmp_path / name).write_text(f"{name}\nline two\n{number}\nTODO x\n")
    for line in ("init -q", "add .", "-c user.name=x -c user.email=x@x.example commit -qm first"):
        subprocess.run(["git", *line.split()], cwd=tmp_path, check=True)
    return tmp_path


LINES = [
    "ls", "ls -1 src", "cat a.txt b.txt", "cat *.txt", "wc -l *.txt | tail -1", "grep -rn TODO src | sort",
    "head -1 src/*.py", "find . -name '*.py' -type f | sort", "sort a.txt | uniq -c | head -2", "cd src && ls",
    "(cd src && ls); ls -1", "ls nothing", "ls nothing || echo missing",
    "ls nothing 2>/dev/null && echo yes || echo no", "true && echo a; false || echo b", "! true",
    "echo 'two  words' \"and 'more'\" a\\ b", "printf '%s-%s\\n' a b", "sed -n '2,3p' a.txt",
    "awk '{print NR\": \"$1}' a.txt", "cut -d. -f1 a.txt", "tr a-z A-Z < a.txt", "wc -c < b.txt",
    "git log --format=%s", "git status --short", "git ls-files | wc -l", "diff a.txt b.txt",
    "[ -f a.txt ] && echo there", "test -d nothing || echo none", "basename src/c.py .py", "stat -c %s a.txt",
    "echo a; echo b\necho c", "cat 'two words.txt'", "find . -type f -name '*.py' -exec wc -l {} + | tail -1",
    "ls nothing |& wc -l", "git ls-files -z | xargs -0 wc -l | tail -1", "echo hi >/dev/null",
    "ls nothing > /dev/null 2>&1", "seq 3 | tac", "expr 2 + 3", "{ echo a; echo b; }", "cd src; cd ..; ls -1",
    "command -v cat", "timeout 5 echo x", "echo *.nothing", "echo ?.txt [ab].txt",
    "LC_ALL=C sort a.txt", "TZ=UTC date -d @0", "ls {a,b}.txt", "wc -l {a,nothing}.{txt,md}", "echo src/{c,d}.py x{,y}",
    "[[ -f a.txt ]] && echo there", "[[ ! -d src ]] || echo folder", "[[ a == b ]]; echo $?",
    "[[ -z '' ]] && echo empty",
    "if [ -f a.txt ]; then cat a.txt; fi", "if [ -d nothing ]; then ls nothing; else echo none; fi; echo $?",
    "if false; then echo 1; elif [[ 3 -gt 2 ]]; then echo 2; echo 3; else echo 4; fi && echo 5",
    "if false; then echo 1; fi; echo \"exit=$?\"", "if ls nothing; then echo 1; fi || echo 2",
    "if true; then if false; then echo 1; else echo 2; fi; else echo 3; fi; echo 4",
    "for f in a.txt b.txt; do wc -l \"$f\"; done", "for f in *.txt; do echo \"== $f\"; head -1 \"$f\"; done",
    "for d in src nothing; do if [ -d $d ]; then ls $d/*.py; else echo no $d; fi; done",
    "for x in 1 2; do for y in a b; do echo $x$y ${x}; done; done",
    "for d in src .; do (cd $d && ls | head -1); done; ls",
    "for x in 'two words.txt'; do cat \"$x\" | wc -l; done", "for x in a; do false; done || echo no",
    "grep -q zzz a.txt; echo \"exit=$?\"", "grep zzz a.txt || echo $? && echo $?", "true; [ $? -eq 0 ] && echo fine",
    "true && { echo 1; false; } || echo 2", "false && { echo 1; echo 2; }; echo 3",
    "false || { echo 1; cat nothing; } && echo 2",
    "true || (echo 1; echo 2) && echo 3", "false; cd src && ls", "true && (cd src; ls) && ls", "cd src && { ls; }",
    "cat <<< hello", "tr a-z A-Z <<< \"two  words\"", "cat <<'END'\na $x `y` \\\nb\nEND",
    "cat <<END | wc -l; echo 2\nplain\ntext\nEND\necho 3", "cat a.txt - <<< more | tail -2", "wc -c <<< x < a.txt",
    "cat < b.txt <<< x", "for f in a.txt; do wc -c < \"$f\"; done", "for w in one two; do cat <<< \"$w\"; done",
    "ls nothing 2>&1 >/dev/null | wc -l", "echo x >&2 2>/dev/null", "ls nothing >&2 2>&1 | wc -l",
    "/bin/cat a.txt # all", "# first\ncat a.txt \\\n  b.txt", "/usr/bin/wc -l *.{txt,py}",
]  # fmt: skip


@pytest.mark.shell
@pytest.mark.parametrize("line", LINES)
async def test_a_plan_does_what_bash_would(project: Path, line: str) -> None:
    """P2: every allowed line has a plan, of literal words, with bash's output and exit code."""
    verdict = await Policy().judge(Execute(line, cwd=project), workspace=project)
    assert verdict.decision == "allow", verdict.reason
    assert verdict.plan is not None
    env = environment(dict(os.environ), workspace=project)
    bash = subprocess.run(
        ["bash", "-c", line], cwd=project, env=env, capture_output=True, timeout=10, check=False, text=True
    )
    output, status = await carry_out(verdict.plan, env)
    assert status == bash.returncode
    expected = (bash.stdout + bash.stderr).replace("bash: line 1: ", "")
    if line == "ls nothing >&2 2>&1 | wc -l":  # ls and wc write to one place at the same time, and ls in pieces
        output, expected = "".join(sorted(output)), "".join(sorted(expected))
    assert sorted(output.split("\n")) == sorted(expected.split("\n"))


async def test_a_lone_cd_is_a_move_and_no_command(project: Path) -> None:
    """P1: the plan has no steps, and says where the terminal goes."""
    policy = Policy()
    verdict = await policy.judge(Execute("cd src", cwd=project), workspace=project)
    assert (verdict.decision, verdict.plan) == ("allow", Plan(project / "src"))
    found = [
        (await policy.judge(Execute(line, cwd=project), workspace=project)).decision
        for line in ("cd", "cd ..", "cd -", "cd ~", "cd $X")
    ]
    assert found == ["ask"] * 5


async def test_what_is_asked_or_allowed_by_a_rule_has_no_plan(project: Path) -> None:
    verdict = await Policy().judge(Execute("touch x", cwd=project), workspace=project)
    assert verdict.plan is None


async def test_directories_that_do_not_exist_are_judged_by_their_names() -> None:
    """P8: no disk is needed to judge."""
    nowhere = Path("/no/such/place/project")
    verdict = await Policy().judge(Execute("cd src && cat a/../b.txt < c", cwd=nowhere), workspace=nowhere)
    stage = Stage(("cat", "a/../b.txt"), stdin="c")
    assert verdict.plan is not None
    assert replace(verdict.plan, confinement=None) == Plan(nowhere / "src", (Step((stage,), cwd=nowhere / "src"),))
    outside = await Policy().judge(Execute("cat ../../x", cwd=nowhere), workspace=nowhere)
    assert outside.decision == "ask"


def test_the_environment_holds_no_secrets_and_no_switches(tmp_path: Path) -> None:
    """P1: what programs read besides their words is made by us."""
    given = {
        "HOME": "/h",
        "AWS_SECRET_ACCESS_KEY": "x",
        "LD_PRELOAD": "x",
        "GIT_SSH_COMMAND": "x",
        "PATH": "/usr/bin",
        "PAGER": "x",
    }
    made = environment(given, workspace=tmp_path)
    assert "AWS_SECRET_ACCESS_KEY" not in made
    assert "LD_PRELOAD" not in made
    assert "GIT_SSH_COMMAND" not in made
    assert made["PAGER"] == "cat"
    assert made["GIT_CONFIG_COUNT"] == str(len(GIT_SWITCHES))


def test_programs_are_looked_for_where_no_agent_can_put_them(tmp_path: Path) -> None:
    """P1: relative folders, the workspace's own, and those that all may write are left out."""
    (tmp_path / "ws" / "bin").mkdir(parents=True)
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "link").symlink_to(tmp_path / "ws" / "bin")
    (tmp_path / "good").mkdir()
    path = f".:bin::{tmp_path}/ws/bin:{tmp_path}/open:{tmp_path}/link:{tmp_path}/good"
    found = search_path(path, workspace=tmp_path / "ws")
    assert found[0] == f"{tmp_path}/good"
    assert not {".", "bin", "", f"{tmp_path}/ws/bin", f"{tmp_path}/open", f"{tmp_path}/link"} & set(found)


@pytest.mark.shell
async def test_a_repositorys_hooks_and_monitors_do_not_run(project: Path) -> None:
    """CVE-2026-26268: with the plan's switches `git status` starts nothing of the repository's."""
    mark = project / "ran"
    script = project / ".git" / "monitor"
    script.write_text(f"#!/bin/sh\ntouch '{mark}'\n")
    script.chmod(0o755)
    subprocess.run(["git", "config", "core.fsmonitor", str(script)], cwd=project, check=True)
    subprocess.run(["git", "config", "core.pager", str(script)], cwd=project, check=True)
    verdict = await Policy().judge(Execute("git status && git log", cwd=project), workspace=project)
    if verdict.plan is not None:
        await carry_out(verdict.plan, environment(dict(os.environ), workspace=project))
    assert not mark.exists()


async def test_a_remembered_verdict_falls_when_what_it_rests_on_changes(project: Path) -> None:
    """P8: the same line is judged anew after a link, an ignore file or a repository's settings changed."""
    policy = Policy()

    async def decision(line: str) -> str:
        return (await policy.judge(Execute(line, cwd=project), workspace=project)).decision

    before = [await decision(line) for line in ("cat a.txt", "cat b.txt", "git status", "ls *.txt", "cat src/*.py")]
    (project / "a.txt").unlink()
    (project / "a.txt").symlink_to("/etc/shadow")
    (project / ".tarmacignore").write_text("b.txt\n")
    (project / ".git" / "config").write_text('[filter "x"]\nclean = id\n')
    (project / "src" / "e.py").symlink_to("/etc/shadow")
    after = [await decision(line) for line in ("cat a.txt", "cat b.txt", "git status", "ls *.txt", "cat src/*.py")]
    assert before == ["allow"] * 5
    assert after[:3] + after[4:] == ["ask"] * 4
