"""The user's rules, grants, and the files they come from."""

from pathlib import Path

import pytest

from tarmac.events import TaskId
from tarmac.policy import Execute, Policy, PrefixRules, Verdict
from tarmac.policy.grants import load_rules, prefixes

WORKSPACE = Path("/home/dev/project")


def rules(*, allow: list[str] | None = None, deny: list[str] | None = None) -> PrefixRules:
    return PrefixRules(allow=prefixes(allow or []), deny=prefixes(deny or []))


async def judge(line: str, given: PrefixRules) -> Verdict:
    return await Policy(rules=given).judge(Execute(line, cwd=WORKSPACE), workspace=WORKSPACE)


@pytest.mark.parametrize(
    ("line", "decision"),
    [
        ("npm test", "allow"),
        ("npm test -- --watch", "allow"),
        ("npm testing", "ask"),
        ("npm", "ask"),
        ("npm test && npm test", "allow"),
        ("npm test && frobnicate", "ask"),
        ("npm test; ls", "allow"),
        ("npm test $X", "ask"),
        ("npm test > out", "ask"),
        ("npm test 2>/dev/null", "allow"),
        ("X=1 npm test", "ask"),
        ("npm test $(frobnicate)", "ask"),
        ("sudo npm test", "ask"),
        ("npm test | sh", "ask"),
        ("'npm' test", "allow"),
        ("NPM test", "ask"),
        ("npm run x", "deny"),
        ("cd src && npm run x", "deny"),
        ("sudo npm run x", "deny"),
        ("echo $(npm run x)", "deny"),
        ("/usr/bin/npm run x", "deny"),
        ("npm run ok", "allow"),
        ("git status", "deny"),
        ("git status --short", "deny"),
        ("git log", "allow"),
    ],
)
async def test_rules_are_prefixes_of_whole_words_and_each_part_must_pass(line: str, decision: str) -> None:
    """P4: the longest match wins; built-in allow comes last."""
    given = rules(allow=["npm test", "npm run ok"], deny=["npm run", "git status"])
    assert (await judge(line, given)).decision == decision


async def test_deny_wins_a_tie_and_the_longer_rule_wins() -> None:
    """P4: longest match, deny on a tie."""
    assert (await judge("make x", rules(allow=["make x"], deny=["make x"]))).decision == "deny"
    assert (await judge("make x", rules(allow=["make x"], deny=["make"]))).decision == "allow"
    assert (await judge("make y", rules(allow=["make x"], deny=["make"]))).decision == "deny"


@pytest.mark.parametrize(
    "line", ["rm -rf /", "rm -rf build", "curl x | sh", "cat ~/.ssh/id_rsa", "git push --force", "mkfs x", "tarmac x"]
)
async def test_no_rule_lifts_the_floor_or_what_is_critical(line: str) -> None:
    """P4, P5: floor > ask always > the user's longest match."""
    given = rules(allow=["rm", "curl", "sh", "cat", "git push", "mkfs", "tarmac", "rm -rf", "git push --force"])
    assert (await judge(line, given)).decision != "allow"


@pytest.mark.parametrize(
    "launcher", ["bash", "env", "xargs", "sudo", "git", "npm run", "make", "find", "ssh", "docker", "python", "tarmac"]
)
async def test_launchers_cannot_be_allowed_by_their_first_word(launcher: str) -> None:
    """P4: `allow = ["env"]` would allow everything."""
    assert (await judge(f"{launcher} -q frobnicate", rules(allow=[launcher]))).decision == "ask"


class OneGrant:
    trouble: str | None = None

    def covers_line(self, line: str, *, cwd: Path, workspace: Path, task: TaskId | None) -> str | None:
        return "7" if line in ("frobnicate --now", "rm -rf build", "rm -rf /", "cat x | frobnicate") else None

    def covers_words(self, words: tuple[str, ...], *, workspace: Path, task: TaskId | None) -> str | None:
        return "8" if words[:1] == ("twiddle",) else None

    def covers_use(self, words: tuple[str, ...], *, workspace: Path, task: TaskId | None) -> str | None:
        return None


async def test_what_the_user_wants_to_be_asked_about_is_asked_about() -> None:
    """P5: whatever allows it: proof, a shorter rule, a grant, a level. A longer allow rule says it better."""
    rules = PrefixRules(ask=(("git", "log"), ("twiddle",)), allow=(("git",), ("git", "log", "-1")))
    policy = Policy(rules=rules, grants=OneGrant())
    found = {
        line: await policy.judge(Execute(line, cwd=WORKSPACE), workspace=WORKSPACE)
        for line in ("git log", "twiddle x", "ls")
    }
    assert [(each.decision, each.rule) for each in found.values()][:2] == [("ask", "user.ask")] * 2
    assert found["git log"].personal == "you want to be asked about `git log`"
    assert found["git log"].suggested_grants == ()
    assert found["ls"].decision == "allow"
    both = await policy.judge(Execute("ls; git log", cwd=WORKSPACE), workspace=WORKSPACE)
    assert (both.decision, bool(both.personal)) == ("ask", True)


@pytest.mark.parametrize(
    ("line", "decision", "risk", "rule"),
    [
        ("shipit apply", "ask", "high", "user.risk"),
        ("cd infra && sudo shipit apply -auto-approve", "ask", "high", ""),
        ("shipit plan", "ask", "medium", ""),
        ("git log", "ask", "medium", "user.risk"),  # proven, and still
        ("git log --oneline", "ask", "medium", "user.risk"),
        ("git status", "allow", "low", ""),
        ("twiddle x", "ask", "critical", "user.risk"),  # a grant covers it otherwise
        ("twiddle", "ask", "critical", "user.risk"),
        ("rm -rf /", "deny", "critical", ""),  # no rule makes it less
        ("npm test", "ask", "high", "user.risk"),  # the allow rule is a prefix, and this is of high risk
    ],
)
async def test_the_users_own_risk_is_at_least_what_a_command_has(
    tmp_path: Path, line: str, decision: str, risk: str, rule: str
) -> None:
    """P1, P4: by prefixes of whole words, also inside of other commands; it only raises."""
    file = tmp_path / "policy.toml"
    file.write_text(
        'allow = ["npm"]\n[risk]\nmedium = ["git log", "rm"]\nhigh = ["shipit apply", "npm test"]\n'
        'critical = ["twiddle"]\n'
    )
    policy = Policy(rules=load_rules(file), grants=OneGrant())
    verdict = await policy.judge(Execute(line, cwd=WORKSPACE), workspace=WORKSPACE)
    assert (verdict.decision, verdict.risk) == (decision, risk)
    assert not rule or verdict.rule == rule
    if rule == "user.risk":
        assert verdict.reason.endswith(f" (of {risk} risk by your rules)")
        assert verdict.reason == f"it {verdict.explanation}"
        assert bool(verdict.personal) == (risk == "critical")  # then no level allows it


@pytest.mark.parametrize("text", ['[risk]\nlow = ["rm"]\n', '[risk]\nhigh = "rm"\n', 'risk = "high"\n'])
def test_a_table_of_risks_that_makes_no_sense_is_trouble(tmp_path: Path, text: str) -> None:
    """P4: then everything asks."""
    (tmp_path / "policy.toml").write_text(text)
    assert "make no sense" in (load_rules(tmp_path / "policy.toml").trouble or "")


async def test_grants_allow_what_is_not_critical() -> None:
    """P5: the exact line, or a prefix; never a critical command."""
    policy = Policy(grants=OneGrant())
    lines = [
        "frobnicate --now",
        "frobnicate",
        "cat x | frobnicate",
        "rm -rf build",
        "rm -rf /",
        "twiddle x",
        "twiddle x > y",
    ]
    found = [await policy.judge(Execute(line, cwd=WORKSPACE), workspace=WORKSPACE) for line in lines]
    assert [each.decision for each in found] == ["allow", "ask", "allow", "ask", "deny", "allow", "ask"]
    assert [found[0].rule, found[5].rule, found[0].plan] == ["grant.7", "grant.8", None]


async def test_grants_that_cannot_be_trusted_make_everything_ask() -> None:
    """P5: and the reason says so."""
    grants = OneGrant()
    grants.trouble = "they are damaged"
    found = await Policy(grants=grants).judge(Execute("ls", cwd=WORKSPACE), workspace=WORKSPACE)
    assert (found.decision, found.reason) == ("ask", "everything is asked about: they are damaged")


async def test_a_users_file_adds_rules_and_programs(tmp_path: Path) -> None:
    """P3: the rules are data, and a user can add their own."""
    file = tmp_path / "policy.toml"
    file.write_text(
        'allow = ["npm test"]\ndeny = ["git push"]\n'
        '[read.mytool]\nwhy = "lists my things"\nshort = "l"\noperands = "path"\n'
    )
    file.chmod(0o600)
    given = load_rules(file)
    lines = ["npm test", "git push", "mytool -l src", "mytool -x src", "mytool -l /etc/shadow"]
    assert [(await judge(line, given)).decision for line in lines] == ["allow", "deny", "allow", "ask", "ask"]


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("allow = [", 0o600), ("allow = 5", 0o600), ("alow = []", 0o600), ("allow = ['']", 0o600),
        ("allow = []", 0o666), ("deny = [1]", 0o600), ("[read]\nx = 5\n[read.y]\nshort = 'a'", 0o600),
        ("\xff", 0o600)
    ],
)  # fmt: skip
async def test_a_rules_file_that_cannot_be_trusted_makes_everything_ask(tmp_path: Path, text: str, mode: int) -> None:
    """P4: unreadable, corrupt, or writable by others: everything asks, and says why; the floor stays."""
    file = tmp_path / "policy.toml"
    file.write_bytes(text.encode("latin-1"))
    file.chmod(mode)
    given = load_rules(file)
    assert given.trouble is not None
    found = [await judge(line, given) for line in ("ls", "rm -rf /")]
    assert [each.decision for each in found] == ["ask", "deny"]
    assert "policy.toml" in found[0].reason


def test_a_folder_in_its_place_is_trouble(tmp_path: Path) -> None:
    """P4: unreadable is not the same as absent."""
    assert "can't be" in (load_rules(tmp_path).trouble or "")


async def test_no_file_is_no_trouble(tmp_path: Path) -> None:
    assert load_rules(tmp_path / "none.toml") == PrefixRules()
