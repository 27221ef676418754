"""Everyday reading, as agents write it: allowed, with a plan of the same meaning; its hostile neighbours are not."""

from pathlib import Path

import pytest

from tarmac.policy import Execute, Policy

NOWHERE = Path("/no/such/place/project")


async def stages(line: str, *, shell: str = "bash", workspace: Path = NOWHERE) -> list[list[str]] | str:
    """The words of each stage of the plan; the decision when there is none."""
    verdict = await Policy().judge(Execute(line, cwd=workspace, shell=shell), workspace=workspace)
    if verdict.plan is None:
        return verdict.decision
    return [list(stage.words) for step in verdict.plan.steps for stage in step.stages]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("LC_ALL=C sort a", "env LC_ALL=C sort a"),
        ("LANG=en_US.UTF-8 LC_ALL=C ls", "env LANG=en_US.UTF-8 LC_ALL=C ls"),
        ("TZ=America/New_York date", "env TZ=America/New_York date"),
        ("TZ='UTC' date", "env TZ=UTC date"),
        ("GIT_PAGER= git log -3", "env GIT_PAGER= git log -3"),
        ("PAGER=cat git show", "env PAGER=cat git show"),
        ("NO_COLOR=1 COLUMNS=200 ls", "env NO_COLOR=1 COLUMNS=200 ls"),
    ],
)
async def test_a_variable_in_front_that_changes_only_looks_goes_into_the_plan(line: str, words: str) -> None:
    """P2: the plan has it as words of env."""
    found = await stages(line)
    assert [each for each in found[0] if not each.startswith("--no-")] == words.split()


@pytest.mark.parametrize(
    "line",
    [
        "LC_ALL=../x sort a",
        "LANG=/tmp/x ls",
        "LC_ALL=$X ls",
        "LC_ALL=$(id) ls",
        "LC_ALL+=C ls",
        "TZ=/etc/shadow date",
        "TZ=:../../x date",
        "PAGER=./x git show",
        "GIT_PAGER='cat; id' git log",
        "PAGER=~/cat git log",
        "MANPAGER=sh man ls",
        "PATH=. ls",
        "LD_PRELOAD=./x.so ls",
        "LC_ALL=C LD_PRELOAD=x ls",
        "GIT_DIR=x git log",
        "GIT_EXTERNAL_DIFF=x git diff",
        "LC_ALL=C rm a",
        "LC_ALL=C",
        "LC_ALL=C; rm a",
        "NO_COLOR=1 cd src",
        "IFS=x ls",
        "LOCPATH=. ls",
        "TERMINFO=. ls",
        "NO_COLOR=(a) ls",
        "LC_ALL=C sort -o x a",
        "LC_ALL[0]=C ls",
        "LESSOPEN='|id' less a",
        "TERM=../x less a",
    ],
)
async def test_a_variable_in_front_that_could_do_more_asks(line: str) -> None:
    """P2: a short list of names, each with the values that are known."""
    assert await stages(line) == "ask"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("cat a # show it", [["cat", "a"]]),
        ("# look first\nls src", [["ls", "src"]]),
        ("ls # one\ncat a # two", [["ls"], ["cat", "a"]]),
        ("ls # 'open \" $(rm x) `", [["ls"]]),
        ("echo a#b '#c'", [["echo", "a#b", "#c"]]),
        ("ls -l a \\\n  b", [["ls", "-l", "a", "b"]]),
        ("cat a \\\n | wc -l", [["cat", "a"], ["wc", "-l"]]),
        ("ls {src,tests}", [["ls", "src", "tests"]]),
        ("ls -la {package,tsconfig}.json", [["ls", "-la", "package.json", "tsconfig.json"]]),
        ("cat {a,b}/{c,d}", [["cat", "a/c", "a/d", "b/c", "b/d"]]),
        ("diff a{,.orig}", [["diff", "a", "a.orig"]]),
        (
            "grep -rn --exclude-dir={node_modules,.git} x .",
            [["grep", "-rn", "--exclude-dir=node_modules", "--exclude-dir=.git", "x", "."]],
        ),
        ("/bin/ls -la", [["/bin/ls", "-la"]]),
        ("/usr/bin/cat a | /usr/bin/head -3", [["/usr/bin/cat", "a"], ["/usr/bin/head", "-3"]]),
    ],
)
async def test_another_spelling_gives_the_same_words(line: str, words: list[list[str]]) -> None:
    """P2: comments, continued lines, braces and a program's whole path."""
    assert await stages(line) == words


@pytest.mark.parametrize(
    "line",
    [
        "ls # x\nrm a",
        "ls # x \\\nrm a",
        "ls a#\\\n; rm a",
        "ls \\\n; rm a",
        "ls; \\\nrm a",
        "ls &\\\n& rm a",
        "ls '#'; rm a # x",
        "cat {a,/etc/shadow}",
        "cat {a,.env}",
        "cat {.e,}nv{,x}",
        "cat .{env,x}",
        "cat {a,{b,c}}",
        "ls {1..99999999}",
        "cat {a,$X}",
        "cat {a,$(id)}",
        "{ls,-l}",
        "{rm,a}",
        "sort {-o,x} a",
        "cat {a,~/.ssh/id_rsa}",
        "cat {..,x}/{..,y}/z",
        "ls {,}",
        "echo " + "{a,b}" * 20,
        "/bin/rm a",
        "/usr/bin/sort -o x a",
        "./ls",
        "bin/ls",
        "/tmp/ls",
        "/usr/bin/../../tmp/ls",
        "//tmp/ls",
        "/opt/bin/ls",
        "/no/such/place/project/ls",
        "find . -type f -exec /usr/bin/git show {} +",
        "timeout 5 /usr/bin/xargs ls",
        "/usr/bin/command ls",
        "/usr/bin/env | grep SECRET",
        "LC_ALL=C env | grep -i token",
        "cat *.{pem,key}",
    ],
)
async def test_another_spelling_hides_nothing(line: str) -> None:
    """P2: what stands behind the spelling is judged like words typed one by one."""
    assert isinstance(await stages(line), str)


@pytest.mark.parametrize(("line", "shell"), [("ls {src,tests}", "sh"), ("ls {src,tests}", "dash"), ("ls # a", "zsh")])
async def test_what_a_shell_reads_otherwise_asks_there(line: str, shell: str) -> None:
    """P2: sh has no braces, and at zsh's prompt a # begins no comment."""
    assert await stages(line, shell=shell) == "ask"


@pytest.mark.parametrize(
    "line", ["ls # x \\\nrm -rf /", "# x \\\nrm -rf /", "(ls # x \\\nrm -rf /)", "ls \\\n # x \\\nrm -rf /"]
)
async def test_a_comment_that_seems_to_go_on_is_never_of_low_risk(line: str) -> None:
    """P2: a shell ends the comment with its line and runs the next; shfmt takes that for words of the first."""
    verdict = await Policy().judge(Execute(line, cwd=NOWHERE), workspace=NOWHERE)
    assert (verdict.decision in ("ask", "deny"), verdict.risk in ("high", "critical")) == (True, True)


async def test_a_system_folder_inside_of_the_workspace_is_no_safe_place() -> None:
    """P1: whoever writes the workspace could put a program there."""
    assert await stages("/usr/bin/ls", workspace=Path("/usr")) == "ask"
    assert await stages("ls", workspace=Path("/usr")) == [["ls"]]
