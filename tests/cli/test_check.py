"""`tarmac check`: verdicts for people and for programs; nothing runs."""

import json
import os
import shlex
import subprocess
from pathlib import Path

import pytest
from tests.cli.conftest import TARMAC, tarmac

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("line", "code", "begins"),
    [
        ("git log | head", 0, "allow, low risk: it shows history and changes\n"),
        ("rm -rf build", 3, "ask, critical risk: it deletes the folder build and all below it, in the workspace\n"),
        ("rm -rf /", 4, "deny, critical risk: never allowed: it deletes everything on this machine\n"),
    ],
)
def test_the_verdict_is_told_and_is_the_exit_status(tmp_path: Path, line: str, code: int, begins: str) -> None:
    """A5: judge a command."""
    outcome = tarmac("check", "--cwd", str(tmp_path), "--", line)
    assert (outcome.code, outcome.err) == (code, "")
    assert outcome.out.startswith(begins)


def test_nothing_runs(tmp_path: Path) -> None:
    tarmac("check", "--cwd", str(tmp_path), "touch made")
    assert list(tmp_path.iterdir()) == []


def test_several_words_are_a_command_each_word_as_it_is(tmp_path: Path) -> None:
    outcome = tarmac("check", "--json", "--cwd", str(tmp_path), "--", "grep", "two words", "a; b")
    verdict = json.loads(outcome.out)
    assert verdict["plan"]["steps"][0]["stages"][0]["words"] == ["grep", "two words", "a; b"]


def test_each_part_is_shown_with_its_own_risk() -> None:
    outcome = tarmac("check", "ls && make && git reset --hard")
    assert "    allow low      ls  (it lists names, sizes and dates)\n" in outcome.out
    assert "    ask medium     make  (it runs code of the project)\n" in outcome.out
    assert "    ask high       git reset --hard  (" in outcome.out
    assert "rule:  effect.git.reset" in outcome.out


def test_json_is_the_whole_verdict(tmp_path: Path) -> None:
    outcome = tarmac("check", "--json", "--cwd", str(tmp_path), "cd x && ls 2>/dev/null")
    verdict = json.loads(outcome.out)
    assert (outcome.code, verdict["decision"], verdict["risk"]) == (0, "allow", "low")
    assert verdict["plan"]["cwd"] == str(tmp_path / "x")
    assert {"reason", "part", "explanation", "rule", "suggested_grants", "parts"} < verdict.keys()


def test_colours_only_on_a_terminal() -> None:
    assert "\x1b" not in tarmac("check", "ls").out
    from tarmac.cli.check import as_text
    from tarmac.policy import Verdict
    from tarmac.show.look import Look

    verdict = Verdict(decision="ask", risk="high", reason="r\x1b[31m", part="p", explanation="e", rule="x")
    assert as_text(verdict, Look(colour=True)).startswith("\x1b[35mask\x1b[m, \x1b[31mhigh\x1b[m risk: r")
    assert "\x1b" not in as_text(verdict, Look())
    narrow = as_text(verdict, Look(live=True, columns=20))
    assert max(map(len, narrow.splitlines())) < 20 and narrow.startswith("ask, high risk:\n")


def test_rules_on_the_command_line_count_for_this_run() -> None:
    """P4: --allow and --deny."""
    assert tarmac("check", "npm test").code == 3
    assert tarmac("check", "--allow", "npm test", "npm test -- -x").code == 0
    assert tarmac("check", "--deny", "git", "git log").code == 4
    assert tarmac("check", "--allow", "rm", "--allow", "npm test", "rm -rf /").code == 4


def test_a_check_heeds_the_configuration_as_a_task_would(tmp_path: Path) -> None:
    """P4, P7: the user's settings, and what the workspace tightens."""
    work = tmp_path / "work"
    (work / ".tarmac").mkdir(parents=True)
    (work / ".tarmac/config.toml").write_text('[policy]\ndeny = ["git log"]\nask_medium = true\n')
    (tmp_path / "config.toml").write_text("[policy]\nask_medium = false\n")
    (tmp_path / "config.toml").chmod(0o600)

    def code(command: str, cwd: Path) -> int:
        return tarmac("check", "--cwd", str(cwd), command, TARMAC_CONFIG_DIR=str(tmp_path)).code

    assert [code("touch x", tmp_path), code("git log", tmp_path)] == [0, 0]
    assert [code("touch x", work), code("git log", work)] == [3, 4]


def test_the_users_own_file_counts_and_a_bad_one_makes_everything_ask(tmp_path: Path) -> None:
    """P4: policy.toml in the user's configuration."""
    (tmp_path / "policy.toml").write_text('allow = ["frobnicate"]')
    (tmp_path / "policy.toml").chmod(0o600)
    assert tarmac("check", "frobnicate x", TARMAC_CONFIG_DIR=str(tmp_path)).code == 0
    (tmp_path / "policy.toml").write_text("allow = [")
    outcome = tarmac("check", "ls", TARMAC_CONFIG_DIR=str(tmp_path))
    assert outcome.code == 3
    assert "everything is asked about: the rules in" in outcome.out


def test_what_the_user_always_wants_to_be_asked_and_finds_risky_is_told(tmp_path: Path) -> None:
    """P3, P4: rules to ask and risks of the user's own, in policy.toml and in the configuration."""
    (tmp_path / "policy.toml").write_text('ask = ["git log"]\n[risk]\ncritical = ["git diff"]\n')
    (tmp_path / "policy.toml").chmod(0o600)
    (tmp_path / "config.toml").write_text('[policy]\nask = ["git status"]\n')
    told = [tarmac("check", line, TARMAC_CONFIG_DIR=str(tmp_path)) for line in ("git log", "git status", "git diff")]
    assert [each.code for each in told] == [3, 3, 3]
    assert told[2].out.startswith("ask, critical risk")


def test_json_lines_are_answered_in_order() -> None:
    """A5: many verdicts, as a machine wants them."""
    lines = [
        {"id": n, "command": line, "cwd": "/no/such/place", "workspace": "/no/such/place", "shell": shell}
        for n, (line, shell) in enumerate(
            [
                ("bash -c 'bash -c x'", "bash"),
                ("ls", "bash"),
                ("ls (x)", "fish"),
                ("rm -rf /", "zsh"),
            ]
        )
    ]
    text = (
        "\n".join(json.dumps(each) for each in lines)
        + '\nnonsense\n[]\n{"id": 9}\n{"command": 5}\n{"id": "x", "command": "ls"}'
    )
    outcome = tarmac("check", "--jsonl", stdin=text)
    answers = [json.loads(line) for line in outcome.out.splitlines()]
    assert outcome.code == 0
    assert [(each.get("id"), each["decision"]) for each in answers] == [
        (0, "ask"), (1, "allow"), (2, "ask"), (3, "deny"), (None, "ask"), (None, "ask"), (9, "ask"), (None, "ask"),
        ("x", "allow"),
    ]  # fmt: skip
    assert [each.get("line") for each in answers[4:8]] == [5, 6, 7, 8]
    assert all(each["hint"] for each in answers[4:8])


def test_when_nobody_reads_any_more_it_ends_quietly() -> None:
    """`tarmac check --jsonl | head -1`."""
    lines = "".join(f'{{"id": {number}, "command": "ls {number}"}}\n' for number in range(2000))
    script = f"{shlex.join(TARMAC)} check --jsonl | head -1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], input=lines, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, json.loads(done.stdout)["id"], done.stderr) == (141, 0, "")


def test_a_line_that_makes_no_sense_is_answered_with_its_id_and_a_whole_verdict() -> None:
    """A5: whoever pairs answers by id loses none, and every answer is JSON."""
    lines = [
        '{"id": 2}', '{"id": "a", "command": 5}', '{"id": [3], "command": "ls", "cwd": 5}',
        '{"id": 4, "command": "ls", "shell": "nosuch"}', '{"id": 1e999, "command": "ls"}', '{"id": NaN}', "{",
    ]  # fmt: skip

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    answers = [
        json.loads(line, parse_constant=refuse)
        for line in tarmac("check", "--jsonl", stdin="\n".join(lines)).out.splitlines()
    ]
    assert [each["id"] for each in answers] == [2, "a", [3], 4, None, None, None]
    assert {(each["decision"], each["risk"], each["rule"]) for each in answers} == {("ask", "high", "ask.unreadable")}
    whole = json.loads(tarmac("check", "--json", "ls").out)
    assert all(whole.keys() < each.keys() and each["reason"] and each["hint"] for each in answers)


def test_an_unknown_shell_is_an_error_that_tells_the_known_ones() -> None:
    outcome = tarmac("check", "--shell", "nosuch", "ls")
    assert outcome.code == 2
    assert "'nosuch' is not a known shell" in outcome.err
    assert "bash, sh" in outcome.err
    assert tarmac("check", "--shell", "/usr/bin/zsh", "ls").code == 0


@pytest.mark.parametrize(
    "arguments",
    [
        [
            "check",
        ],
        [
            "check",
            "--jsonl",
            "ls",
        ],
        [
            "check",
            "--frob",
            "ls",
        ],
        [
            "check",
            "--allow",
            "",
            "ls",
        ],
        [
            "check",
            "--allow",
            "'",
            "ls",
        ],
    ],
)
def test_nonsense_is_answered_with_a_hint(arguments: list[str]) -> None:
    outcome = tarmac(*arguments)
    assert outcome.code == 2
    assert "hint: " in outcome.err


def test_its_page_tells_the_exit_status() -> None:
    outcome = tarmac("check", "--help")
    assert "0 allowed; 3 a person would be asked; 4 denied" in outcome.out
    assert os.linesep in outcome.out


@pytest.mark.parametrize("rule", ["bash", "npm run", "git", "sudo", "find"])
def test_a_rule_that_is_not_taken_is_told(rule: str) -> None:
    """P4 (F5): a launcher by its first word alone, and why not."""
    outcome = tarmac("check", "--allow", rule, "--", f"{rule} -frobnicate x")
    assert outcome.code == 3
    assert outcome.err.startswith(f"tarmac: the rule `{rule}` is not taken: `{rule.split()[0]}")
