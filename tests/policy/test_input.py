"""Text typed into a running terminal: what matters is who reads it."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarmac.policy import Execute, Plan, SendInput, SuggestedGrant, Verdict
from tarmac.policy.judge import judge_input
from tarmac.policy.programs.program import Trait, registry
from tarmac.policy.verdict import Awaiting

HERE = Path("/project")
READERS = {  # by what they do with what is typed
    kind: {name for name, program in registry().items() if Trait(kind) in program.traits}
    for kind in ("typed-shell", "typed-code", "relay", "keyboard")
}
READERS["code"] = {name for name, program in registry().items() if program.typed_code}


async def judged(action: Execute) -> Verdict:
    """A judge of commands whose answers are known: `ls` reads, `make` was granted, `mkfs` never."""
    decision, risk, rule, plan = {
        "ls": ("allow", "low", "read.ls", Plan(cwd=HERE)),
        "make": ("allow", "medium", "grant.abc", None),
        "mkfs /dev/sda": ("deny", "critical", "floor.disk", None),
        "echo !!": ("allow", "medium", "grant.abc", None),
    }.get(action.command, ("ask", "high", "ask.unknown", None))
    return Verdict(
        decision=decision,  # type: ignore[arg-type]
        risk=risk,  # type: ignore[arg-type]
        reason="so it is",
        part=action.command,
        explanation=f"runs {action.command}",
        rule=str(rule),
        plan=plan,
        suggested_grants=(SuggestedGrant("line", action.command),),
    )


async def typed(
    text: str, who: str | None, awaiting: Awaiting | None = "line", *, prompt: str = "", approved: bool = False
) -> Verdict:
    action = SendInput(text, foreground=who, cwd=HERE, awaiting=awaiting, prompt=prompt, approved=approved)
    return await judge_input(action, judge=judged)


async def test_a_secret_is_typed_by_a_person_or_not_at_all() -> None:
    """T19: whatever was approved, and whoever asks; and it is not repeated."""
    for who in ("sudo", "bash", "ssh", None, "npm"):
        verdict = await typed("hunter2\n", who, "secret", prompt="Password:", approved=True)
        assert (verdict.decision, verdict.rule) == ("deny", "input.secret")
        assert "hunter2" not in repr(verdict)


@pytest.mark.parametrize("who", ["bash", "/bin/bash", "-bash", "zsh", "fish", "sh", "dash"])
async def test_what_a_shell_would_read_is_a_command(who: str) -> None:
    """P1."""
    verdict = await typed("rm -r x\n", who, approved=True, prompt="$ ")
    assert (verdict.decision, verdict.risk, verdict.part) == ("ask", "high", "rm -r x")
    assert (await typed("mkfs /dev/sda\n", who)).decision == "deny"


async def test_harmless_words_are_not_allowed_into_a_live_shell_but_granted_ones_are() -> None:
    """P1: in a live shell `ls` may have become another thing (DESIGN 8)."""
    harmless, granted = await typed("ls\n", "bash"), await typed("make\n", "bash")
    assert (harmless.decision, harmless.plan, harmless.suggested_grants) == ("ask", None, ())
    assert (granted.decision, granted.rule) == ("allow", "grant.abc")
    assert (await typed("echo !!\n", "bash")).decision == "ask"  # the shell puts other words there


@pytest.mark.parametrize("text", ["\n", "\r", "make\x1b[A", "ma\tke\n", "\x12ls\n", "\x15make\n", "make\x00"])
async def test_keys_that_are_commands_to_a_shell_are_asked_about(text: str) -> None:
    """P1: Enter runs what is typed already, Up and Ctrl-R bring back what was run, Tab runs completions."""
    assert (await typed(text, "bash", approved=True, prompt="$ ")).decision == "ask"


@pytest.mark.parametrize("who", ["python3", "python3.11", "node", "sqlite3", "psql", "gdb", "irb"])
async def test_what_an_interpreter_would_read_is_code(who: str) -> None:
    """P1."""
    verdict = await typed("1 + 1\n", who, "keys", approved=True, prompt=">>> ")
    assert verdict.decision == "ask"
    assert verdict.rule == "input.code"


@pytest.mark.parametrize("who", ["ssh", "tmux", "sudo", "docker"])
async def test_behind_a_relay_nobody_can_see(who: str) -> None:
    """P1."""
    assert (await typed("y\n", who, approved=True, prompt="[y/N]")).decision == "ask"


@pytest.mark.parametrize("text", ["y\n", "my-project\n", "n", "\r", "üben\n"])
async def test_an_answer_to_a_question_of_an_approved_command_is_part_of_its_approval(text: str) -> None:
    """P6, T19."""
    verdict = await typed(text, "npm", prompt="package name: (x) ", approved=True)
    assert (verdict.decision, verdict.rule) == ("allow", "input.answer")


@pytest.mark.parametrize(
    ("text", "who", "awaiting", "prompt", "approved"),
    [
        ("y\n", "npm", "line", "ok? ", False),  # nobody approved the command
        ("y\n", "npm", "line", "", True),  # no question
        ("y\n", "npm", None, "ok? ", True),  # it does not wait
        ("y\n", "npm", "unknown", "ok? ", True),
        ("y\n", None, "line", "ok? ", True),  # nobody knows who reads
        ("y\nrm -rf x\n", "npm", "line", "ok? ", True),  # more than an answer
        ("\x1b[A\n", "npm", "line", "ok? ", True),
        ("x" * 201 + "\n", "npm", "line", "ok? ", True),
        ("abc\n", "npm", "line", "Enter your API key: ", True),
        ("abc\n", "npm", "line", "passphrase? ", True),
        ("!sh\n", "less", "keys", ":", True),
        (":!sh\n", "vim", "keys", "", True),
        ("v", "less", "keys", "", True),
    ],
)
async def test_anything_else_is_asked_about(
    text: str, who: str | None, awaiting: Awaiting | None, prompt: str, approved: bool
) -> None:
    """P1."""
    assert (await typed(text, who, awaiting, prompt=prompt, approved=approved)).decision == "ask"


@pytest.mark.parametrize("text", ["q", "y", " ", "\r", "\x1b[A", "\x1b[6~", "3"])
async def test_keys_that_choose_move_or_leave_are_answers_too(text: str) -> None:
    """P1: of a program that was approved and asks for keys."""
    for who in ("less", "npm"):
        assert (await typed(text, who, "keys", approved=True)).decision == "allow"


@pytest.mark.parametrize(
    ("who", "prompt"),
    [
        ("java", "jshell> "), ("java", "scala> "), ("java", "user=> "), ("java", "groovy:000> "),
        ("beam.smp", "iex(1)> "),
        ("beam.smp", "1> "), ("ghc", "ghci> "), ("busybox", "~ # "), ("toybox", "$ "), ("duckdb", "D "),
        ("cqlsh", "cqlsh> "),
        ("mongo", "> "), ("mysqlsh", "MySQL  JS > "), ("clickhouse", ":) "), ("dotnet", "> "),
        ("octave-cli", "octave:1> "),
        ("kotlinc", ">>> "), ("unheard-of", "host% "), ("unheard-of", "db=# "), ("unheard-of", "... "),
    ],
)  # fmt: skip
async def test_a_prompt_is_no_question_whatever_the_process_is_called(who: str, prompt: str) -> None:
    """P1 (H1): behind it something reads commands or code."""
    for text in ("y\n", "exit\n", 'Runtime.getRuntime().exec("x")\n', "\r"):
        for awaiting in ("line", "keys"):
            if (awaiting, prompt) != ("keys", "... "):
                verdict = await typed(text, who, awaiting, prompt=prompt, approved=True)
                assert verdict.decision == "ask", (text, awaiting)


@pytest.mark.parametrize(
    "text",
    ["rm -rf x\n", "a;b\n", "$(id)\n", "`id`\n", "a|b\n", "a & b\n", 'f("x")\n', "!sh\n", "a > b\n", "'x'\n", "*\n"],
)
async def test_an_answer_is_one_plain_word_or_a_path(text: str) -> None:
    """P1 (H1): what could be a command or code is shown to a person, whoever asks."""
    assert (await typed(text, "java", prompt="name: ", approved=True)).decision == "ask"


@pytest.mark.parametrize(("prompt", "text"), [
    ("Continue? [y/N] ", "y\n"), ("Overwrite? (y/n) ", "n\n"), ("Where: ", "src/main.py\n"),
    ("version: (1.0.0) ", "\n"),
    ("? Project name: › ", "my-app\n"), ("Mail? ", "a.b@x.example\n"),
])  # fmt: skip
async def test_everyday_answers_are_part_of_the_approval(prompt: str, text: str) -> None:
    """P6 (H1)."""
    assert (await typed(text, "node-like", prompt=prompt, approved=True)).rule == "input.answer"


async def test_an_interrupt_and_nothing_at_all_are_harmless() -> None:
    """T17."""
    for who in ("bash", "python3", "vim", None):
        assert (await typed("\x03", who)).decision == "allow"
        assert (await typed("", who)).decision == "allow"
    assert (await typed("\x03\n", "bash")).decision == "ask"


@given(
    st.text(max_size=20),
    st.sampled_from([*sorted(set().union(*(READERS[kind] for kind in READERS if kind != "keyboard"))), None]),
    st.sampled_from(["line", "secret", "keys", "unknown", None]),
    st.booleans(),
)
async def test_nothing_but_a_grant_an_interrupt_or_nothing_reaches_a_reader_of_commands(
    text: str, who: str | None, awaiting: Awaiting | None, approved: bool
) -> None:
    """P1."""
    verdict = await typed(text, who, awaiting, prompt="? ", approved=approved)
    assert verdict.decision != "allow" or text in ("", "\x03") or verdict.rule.startswith("grant.")


def test_nobody_is_in_two_lists() -> None:
    assert all(READERS.values())
    assert sum(map(len, READERS.values())) == len(set().union(*READERS.values()))


@pytest.mark.parametrize(
    ("text", "who"),
    [
        (":!mkfs /dev/sda\r", "vim"),
        ("\x1b:%!mkfs /dev/sda\r", "nvim"),
        ("!mkfs /dev/sda\n", "less"),
        (":r !mkfs /dev/sda\r", "vim"),
    ],
)
async def test_a_command_that_an_editor_or_pager_would_run_is_judged_as_one(text: str, who: str) -> None:
    """P1, T28."""
    verdict = await typed(text, who, "keys", approved=True)
    assert (verdict.decision, verdict.risk, verdict.rule) == ("deny", "critical", "input.escape")
    assert (await typed(text.replace("mkfs /dev/sda", "make"), who, "keys", approved=True)).decision == "ask"


@pytest.mark.parametrize("enter", ["\n", "\r", "\r\n"])
async def test_enter_is_no_part_of_the_code_that_is_judged(enter: str) -> None:
    """P1: a program that reads keys gets a carriage return, and that is no hidden character."""
    seen: list[str] = []

    async def judge(action: Execute) -> Verdict:
        seen.append(action.command)
        return await judged(action)

    await judge_input(SendInput(f"print(1){enter}", foreground="python3", cwd=HERE, awaiting="keys"), judge=judge)
    assert seen == ["python3 -c 'print(1)'"]
