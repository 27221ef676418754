"""What a plan may read: made by the policy, kept by the kernel. Each line is judged and run for real."""

import asyncio
import os
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tests.conftest import lacking

from tarmac.policy import Enforcement, Execute, Policy
from tarmac.policy.plan import environment
from tarmac.policy.plan_confinement import asks_a_server
from tarmac.policy.verdict import Plan, Stage, Step, Verdict
from tarmac.terminals import Result, run_plan
from tarmac.terminals.process.confinement import MOST_THREADS, Means, means

pytestmark = pytest.mark.slow

SECRET = "hunter2"


@pytest.fixture(autouse=True)
def enforced() -> None:
    if means() is not Means.LANDLOCK:
        lacking("this machine has no Landlock")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    (project / "src").mkdir(parents=True)
    (project / "a.txt").write_text("one\nTODO two\n")
    (project / "src/b.py").write_text("TODO three\n")
    return project


def git(*words: str, cwd: Path) -> None:
    settings = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "protocol.file.allow=always")
    subprocess.run(["git", *settings, *words], cwd=cwd, check=True, capture_output=True)


async def judge(line: str, project: Path) -> Verdict:
    return await Policy().judge(Execute(line, cwd=project), workspace=project)


async def run(line: str, project: Path) -> Result:
    verdict = await judge(line, project)
    assert verdict.plan is not None, verdict.reason
    assert verdict.plan.confinement is not None
    env = environment(dict(os.environ), workspace=project)
    return await run_plan(verdict.plan, command=line, environment=env)


async def run_words(words: tuple[str, ...], like: str, project: Path) -> Result:
    """Run other words under the rules of a line, as if the policy had been wrong about it."""
    verdict = await judge(like, project)
    assert verdict.plan is not None, verdict.reason
    plan = replace(verdict.plan, steps=(Step((Stage(words),), cwd=project),))
    return await run_plan(plan, command=like, environment=environment(dict(os.environ), workspace=project))


@pytest.mark.parametrize(
    "hidden", [".env", "src/.env.local", "server.key", "src/id_ed25519", "deep/er/credentials.json"]
)
async def test_a_search_of_the_workspace_does_not_see_credentials(project: Path, hidden: str) -> None:
    """P8: whatever the line says; everything else is found as before."""
    (project / hidden).parent.mkdir(parents=True, exist_ok=True)
    (project / hidden).write_text(f"TODO {SECRET}\n")
    result = await run("grep -rn TODO .", project)
    assert SECRET not in result.output
    assert {"./a.txt:2:TODO two", "./src/b.py:1:TODO three"} <= set(result.output.splitlines())
    assert any("confined" in note for note in result.notes)


async def test_a_file_that_an_ignore_file_hides_is_closed_as_well(project: Path) -> None:
    """P8: at the top and further down, as soon as the ignore file says so."""
    (project / "src/private.txt").write_text(f"TODO {SECRET}\n")
    assert SECRET in (await run("grep -rn TODO .", project)).output
    (project / "src/.tarmacignore").write_text("private.txt\n")
    assert SECRET not in (await run("grep -rn TODO .", project)).output
    (project / "src/.tarmacignore").write_text("nothing\n")
    assert SECRET in (await run("grep -rn TODO .", project)).output


async def test_a_plan_reads_only_the_files_it_names(project: Path) -> None:
    """P8: under the rules of `cat a.txt` another file of the workspace can't be read."""
    assert (await run("cat a.txt", project)).output == "one\nTODO two\n"
    result = await run_words(("cat", "src/b.py"), "cat a.txt", project)
    assert (result.exit_code, "Permission denied" in result.output) == (1, True)


@pytest.mark.parametrize(
    "place", ["/etc/shadow", "/etc/sudoers", "/proc/1/environ", "/var/lib/dpkg/status", "/etc/machine-id"]
)
async def test_files_of_the_system_and_of_others_are_closed(project: Path, place: str) -> None:
    """P8: also to root."""
    if not os.access(place, os.R_OK):
        pytest.skip(f"{place} can't be read here anyway")
    result = await run_words(("cat", place), "find . -name x", project)
    assert (result.exit_code, "ermission denied" in result.output) == (1, True)


async def test_a_link_that_leads_out_is_closed(project: Path, tmp_path: Path) -> None:
    """P8: also one that appears between judging and running."""
    (tmp_path / "outside").write_text(SECRET)
    verdict = await judge("cat a.txt", project)
    assert verdict.plan is not None
    (project / "a.txt").unlink()
    (project / "a.txt").symlink_to(tmp_path / "outside")
    env = environment(dict(os.environ), workspace=project)
    result = await run_plan(verdict.plan, command="cat a.txt", environment=env)
    assert (SECRET in result.output, result.exit_code) == (False, 1)


async def test_standard_input_is_opened_under_the_same_rules(project: Path, tmp_path: Path) -> None:
    """P8: a name that was swapped before it is opened."""
    (tmp_path / "outside").write_text(SECRET)
    verdict = await judge("cat < a.txt", project)
    assert verdict.plan is not None
    (project / "a.txt").unlink()
    (project / "a.txt").symlink_to(tmp_path / "outside")
    env = environment(dict(os.environ), workspace=project)
    result = await run_plan(verdict.plan, command="cat < a.txt", environment=env)
    assert (SECRET in result.output, result.exit_code) == (False, 1)


async def test_a_new_file_can_be_read_at_once(project: Path) -> None:
    """P8: rules that were used before are made anew when a folder with hidden files changes."""
    (project / ".env").write_text(SECRET)
    for number in range(3):
        (project / f"new{number}.txt").write_text(f"TODO {number}\n")
        assert f"new{number}.txt:1:TODO {number}" in (await run("grep -rn TODO .", project)).output
        (project / "new0.txt").unlink()  # and one that is replaced: another file of the same name
        (project / "new0.txt").write_text("TODO again\n")
        assert "TODO again" in (await run("grep -rn TODO .", project)).output


async def test_big_sorts_get_a_private_folder_which_is_gone_afterwards(project: Path) -> None:
    """P9: writes go nowhere else."""
    result = await run_words(("sort", "-S", "1k", "a.txt"), "sort a.txt", project)
    assert result.output == "TODO two\none\n"
    result = await run_words(("sh", "-c", "echo x > $TMPDIR/x && cat $TMPDIR/x && echo $TMPDIR"), "sort a.txt", project)
    written, folder = result.output.splitlines()
    assert (written, Path(folder).exists()) == ("x", False)


async def test_a_version_is_asked_for_in_an_empty_folder(project: Path) -> None:
    """P2: what is around it means nothing to it, so nothing is."""
    verdict = await judge("git --version", project)
    assert verdict.plan is not None
    assert [stage.alone for step in verdict.plan.steps for stage in step.stages] == [True]
    plan = Plan(project, (Step((Stage(("pwd",), alone=True),), cwd=project),))
    plan = replace(plan, confinement=verdict.plan.confinement)
    result = await run_plan(plan, command="pwd", environment=environment(dict(os.environ), workspace=project))
    folder = Path(result.output.strip())
    assert (folder.is_relative_to(project), folder.exists(), result.cwd) == (False, False, project)


@pytest.mark.parametrize("line", ["git status --short", "git log --format=%s", "git diff", "git grep TODO"])
@pytest.mark.parametrize("kind", ["plain", "worktree", "submodule", "alternates", "subfolder"])
async def test_git_reads_repositories_that_are_partly_elsewhere(tmp_path: Path, kind: str, line: str) -> None:
    """P2: as without rules."""
    origin = tmp_path / "origin"
    origin.mkdir()
    (origin / "sub").mkdir()
    for name in ("a.txt", "sub/b.txt"):
        (origin / name).write_text("TODO\n")
    git("init", "-q", cwd=origin)
    git("add", ".", cwd=origin)
    git("commit", "-qm", "first", cwd=origin)
    project = origin
    match kind:
        case "worktree":
            project = tmp_path / "tree"
            git("worktree", "add", "-q", str(project), cwd=origin)
        case "submodule":
            outer = tmp_path / "outer"
            git("init", "-q", str(outer), cwd=tmp_path)
            git("submodule", "add", "-q", str(origin), "inner", cwd=outer)
            project = outer / "inner"
        case "alternates":
            project = tmp_path / "clone"
            git("clone", "-q", "--shared", str(origin), str(project), cwd=tmp_path)
        case "subfolder":
            project = origin / "sub"
    changed = project / ("b.txt" if kind == "subfolder" else "a.txt")
    changed.write_text("TODO changed\n")
    verdict = await judge(line, project)
    assert verdict.plan is not None, verdict.reason
    env = environment(dict(os.environ), workspace=project)
    confined = await run_plan(verdict.plan, command=line, environment=env)
    free = await run_plan(replace(verdict.plan, confinement=None), command=line, environment=env)
    assert (confined.output, confined.exit_code) == (free.output, 0)
    assert confined.output


async def test_a_repository_that_only_claims_to_be_elsewhere_is_not_followed(tmp_path: Path, project: Path) -> None:
    """P8: a `.git` file that points to somebody else's repository opens nothing."""
    other = tmp_path / "other"
    git("init", "-q", str(other), cwd=tmp_path)
    (other / "x").write_text(SECRET)
    git("add", "x", cwd=other)
    git("commit", "-qm", SECRET, cwd=other)
    (project / ".git").write_text(f"gitdir: {other}/.git\n")
    result = await run("git log -p", project)
    assert SECRET not in result.output
    assert result.exit_code != 0


async def test_settings_of_the_person_are_read_by_git_unless_they_hold_a_token(project: Path, own_state: Path) -> None:
    """P8: a token in ~/.gitconfig stays closed, and git works without it."""
    git("init", "-q", cwd=project)
    settings = own_state / ".gitconfig"
    settings.write_text("[status]\n\tshort = true\n")
    assert (await run("git status", project)).output == "?? a.txt\n?? src/\n"
    settings.write_text(f"[status]\n\tshort = true\n[github]\n\ttoken = {SECRET}\n")
    result = await run("git status", project)
    assert (result.exit_code, "Untracked files" in result.output, SECRET in result.output) == (0, True, False)


async def test_rules_that_are_the_same_are_put_in_force_once(project: Path) -> None:
    """P9: one thread starts all programs of the same rules, and few are kept."""
    for _ in range(5):
        await run("cat a.txt", project)
    before = threads()
    for _ in range(10):
        await run("cat a.txt", project)
    assert threads() <= before
    for number in range(10):
        (project / f"{number}.txt").write_text("x")
        await run(f"cat {number}.txt", project)
    end = time.monotonic() + 10
    while threads() > before + MOST_THREADS and time.monotonic() < end:  # noqa: ASYNC110
        await asyncio.sleep(0.01)  # those that are not kept are about to end
    assert threads() <= before + MOST_THREADS


def threads() -> int:
    return len(list(Path("/proc/self/task").iterdir()))


def test_where_no_thread_can_be_started_nothing_runs_and_nothing_waits() -> None:
    """P9: no memory for the stack of a thread."""
    program = """
import resource
from tarmac.policy.verdict import Confinement
from tarmac.terminals.process.confinement import CannotConfine, Confined

confined = Confined(Confinement(programs=("/usr",)), scratch=None)
size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + (1 << 20), resource.RLIM_INFINITY))
for _ in range(2):
    try:
        confined.call(lambda: print("it ran"))
    except CannotConfine as error:
        print(error.what)
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout == "no thread can be started: can't start new thread\n" * 2


@pytest.mark.parametrize(
    ("line", "asked"),
    [
        ("docker ps", "docker"), ("timeout 5 kubectl get pods", "kubectl"), ("npm view x", "npm view"),
        ("npm ls", ""), ("grep docker a.txt", ""), ("docker compose config --services", ""), ("echo ss", ""),
    ],
)  # fmt: skip
def test_what_asks_a_server_is_known(line: str, asked: str) -> None:
    """P2: it is asked about, as a plan has no network."""
    assert asks_a_server(line.split()) == asked


async def test_programs_that_show_processes_see_them_but_not_inside(project: Path) -> None:
    """P8: /proc is open to `ps`, and what it shows of others is closed there."""
    result = await run("ps -e -o pid=", project)
    assert str(os.getpid()) in result.output.split()
    result = await run_words(("cat", f"/proc/{os.getpid()}/environ"), "ps -e", project)
    assert (result.exit_code, "ermission denied" in result.output) == (1, True)


async def test_a_program_of_the_persons_own_runs_with_its_libraries(tmp_path: Path, project: Path) -> None:
    """P2: what is installed in the home, outside of the system's folders."""
    prefix = tmp_path / "tools"
    (prefix / "bin").mkdir(parents=True)
    (prefix / "lib").mkdir()
    (prefix / "lib/words").write_text("from my own library\n")
    (prefix / "etc").mkdir()
    (prefix / "etc/token").write_text(SECRET)
    script = prefix / "bin/tree"
    script.write_text(f"#!/bin/sh\ncat {prefix}/lib/words {prefix}/etc/token\n")
    script.chmod(0o755)
    before = os.environ["PATH"]
    os.environ["PATH"] = f"{prefix}/bin:{before}"
    try:
        result = await run("tree", project)
    finally:
        os.environ["PATH"] = before
    assert ("from my own library" in result.output, SECRET in result.output) == (True, False)


async def test_a_search_with_ripgrep_works(project: Path) -> None:
    """P2: it uses threads."""
    if shutil.which("rg") is None:
        lacking("rg is not installed")
    assert "TODO three" in (await run("rg TODO", project)).output


HOSTILE = ["-rf", "--pre=touch", "$(touch made)", "`touch made`", "a b.txt", "new\nline.txt", "--", "'q'.txt", "é.txt"]


@pytest.mark.parametrize(
    "line",
    [
        "git ls-files | xargs grep -h TODO", "git ls-files -z | xargs -0 grep -h TODO",
        "git ls-files | xargs rg -I TODO", "git diff --name-only HEAD | xargs cat", "rg -l TODO | xargs cat",
        "rg -l TODO | xargs rg -I TODO", "git ls-files '*.txt' | xargs cat", "rg --files -g '*.txt' | xargs cat",
        "grep -rl TODO --exclude-dir=.git . | xargs grep -h TODO", "git ls-files | head -99 | xargs grep -h TODO",
    ],
)  # fmt: skip
async def test_names_that_a_program_prints_reach_a_reader_whole(project: Path, tmp_path: Path, line: str) -> None:
    """P2: as names, whatever they look like; what the kernel keeps closed stays so behind a link or in the index."""
    if "rg" in line and shutil.which("rg") is None:
        lacking("rg is not installed")
    git("init", "-q", cwd=project)
    for name in (*HOSTILE, "-e TODO"):
        (project / name).touch()
    git("add", ".", cwd=project)
    git("commit", "-qm", "first", cwd=project)
    for name in HOSTILE:
        (project / name).write_text(f"TODO {HOSTILE.index(name)}\n")
    (tmp_path / "outside").write_text(f"TODO {SECRET}\n")
    (project / "out.txt").symlink_to(tmp_path / "outside")
    (project / ".env").write_text(f"TODO {SECRET}\n")
    (project / "in.txt").symlink_to(".env")
    git("add", "--", "out.txt", ".env", "in.txt", cwd=project)
    result = await run(line, project)
    wanted = {f"TODO {HOSTILE.index(name)}" for name in HOSTILE if "*.txt" not in line or name.endswith(".txt")}
    assert (wanted - set(result.output.splitlines()), SECRET in result.output) == (set(), False), result.output
    assert not list(project.glob("made*"))


async def test_settings_in_front_of_a_command_of_git_only_change_how_it_prints(project: Path) -> None:
    """P2: and they reach it; what the plan switches off stays off."""
    git("init", "-q", cwd=project)
    (project / "é.txt").touch()
    assert "é.txt" in (await run("git -c core.quotepath=false status --short", project)).output
    assert "é.txt" not in (await run("git -c core.quotepath=true status --short", project)).output
    assert "## No commits" in (await run("git -c color.ui=never -c status.branch=true status --short", project)).output
    hook = project / "hook"
    hook.write_text("#!/bin/sh\ntouch made\n")
    hook.chmod(0o755)
    git("config", "core.fsmonitor", str(hook), cwd=project)
    assert "a.txt" in (await run("git --no-pager -c color.ui=never status", project)).output
    assert not (project / "made").exists()


@pytest.mark.parametrize("shell", ["bash", "sh"])
async def test_the_syntax_of_a_script_is_checked_and_nothing_of_it_runs(project: Path, shell: str) -> None:
    """P2: neither the script nor a file that BASH_ENV or ENV names."""
    (project / "good.sh").write_text("touch made; echo ran\n$(touch made)\nset +n\necho ran\n")
    (project / "bad.sh").write_text("echo ran\nif true; then\n")
    (project / "env.sh").write_text("echo ran\n")
    os.environ["BASH_ENV"] = os.environ["ENV"] = str(project / "env.sh")
    try:
        good, bad = await run(f"{shell} -n good.sh", project), await run(f"{shell} -n bad.sh", project)
    finally:
        del os.environ["BASH_ENV"], os.environ["ENV"]
    assert (good.exit_code, good.output, (project / "made").exists()) == (0, "", False)
    assert (bad.exit_code, "ran" in bad.output, "yntax error" in bad.output) == (2, False, True)


as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has capabilities")


@as_root
async def test_a_program_that_root_starts_has_no_capability_to_become_another(project: Path) -> None:
    """P9: it may read files of others in the workspace, and that is all that is left of being root."""
    if not shutil.which("setpriv"):
        lacking("setpriv is not installed")
    (project / "a.txt").chmod(0o600)
    os.chown(project / "a.txt", 65534, 65534)
    assert (await run("cat a.txt", project)).output == "one\nTODO two\n"
    result = await run_words(("setpriv", "--reuid=65534", "id", "-u"), "find . -name x", project)
    assert (result.exit_code != 0, "65534" in result.output.splitlines()) == (True, False)


CHANGES_USER = """
import asyncio, os, pathlib
from tarmac.policy import Execute, Policy
from tarmac.policy.plan import environment
from tarmac.terminals import run_plan

async def main():
    work = pathlib.Path.cwd()
    verdict = await Policy().judge(Execute("cat a.txt", cwd=work), workspace=work)
    await run_plan(verdict.plan, command="cat a.txt", environment=environment(os.environ, workspace=work))
    os.seteuid(65534)
    os.seteuid(0)
    print("still here")

asyncio.run(main())
"""


@as_root
def test_a_program_that_embeds_us_may_change_its_user(project: Path) -> None:
    """P9: glibc has every thread change it, and aborts if one can't; the thread that is bound by rules can."""
    done = subprocess.run(
        [sys.executable, "-c", CHANGES_USER], cwd=project, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, "still here\n"), done.stderr


@pytest.mark.parametrize(
    ("line", "decision"),
    [
        ("cat a.txt", "allow"), ("grep -rn TODO .", "allow"), ("cd . && git log | head", "allow"),
        ("sort a.txt", "ask"), ("jq . a.txt", "ask"), ("git blame a.txt", "ask"), ("cat a.txt | sort", "ask"),
    ],
)  # fmt: skip
async def test_where_nothing_keeps_a_command_to_reading_only_a_small_core_is_allowed(
    project: Path, line: str, decision: str
) -> None:
    """P9: and the question says why."""
    verdict = await Policy(enforcement=Enforcement.NONE).judge(Execute(line, cwd=project), workspace=project)
    assert verdict.decision == decision, verdict.reason
    assert decision == "allow" or "neither Landlock nor bubblewrap" in verdict.reason
