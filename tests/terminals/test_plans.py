"""Plans: pipelines of literal words, run without a shell, that always end."""

import asyncio
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tarmac.errors import InputClosed
from tarmac.terminals import Result, run_plan, start_plan
from tarmac.terminals.events import CommandFinished, CommandStarted, DataWritten, TerminalEvent

pytestmark = pytest.mark.slow

ENV = {"PATH": os.defpath, "LC_ALL": "C"}


@dataclass(frozen=True)
class Stage:
    words: tuple[str, ...]
    stdin: str | None = None
    text: str | None = None
    stdout: str = "out"
    stderr: str = "err"
    alone: bool = False


@dataclass(frozen=True)
class Step:
    stages: Sequence[Stage]
    cwd: Path
    when: str = "always"
    negated: bool = False
    skips: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class Plan:
    cwd: Path
    steps: Sequence[Step] = ()
    seconds: float = 20
    most_bytes: int = 1 << 20
    confinement: None = None


def pipe(*lines: str) -> list[Stage]:
    return [Stage(tuple(line.split(" "))) for line in lines]


async def run(plan: Plan) -> Result:
    return await run_plan(plan, command="a line", environment=ENV)


async def output(here: Path, *steps: Step) -> tuple[str, int | None]:
    result = await run(Plan(here, steps))
    return result.output, result.exit_code


async def test_a_plan_gives_a_result_like_any_command(tmp_path: Path) -> None:
    """P1: output, exit code, time, and the directory that the line ends in."""
    (tmp_path / "src").mkdir()
    (tmp_path / "a").write_text("2\n1\n")
    result = await run(Plan(tmp_path / "src", [Step(pipe("cat a", "sort"), tmp_path)]))
    assert (result.output, result.exit_code, result.reason, result.cwd) == ("1\n2\n", 0, "done", tmp_path / "src")
    assert (result.evidence, result.pipestatus, result.command, result.notes) == ("waitpid", (0, 0), "a line", ())
    assert 0 < result.duration < 10


async def test_a_plan_without_steps_runs_nothing(tmp_path: Path) -> None:
    """P1: a lone `cd` is a move."""
    result = await run(Plan(tmp_path / "src"))
    assert (result.output, result.exit_code, result.cwd) == ("", 0, tmp_path / "src")


@pytest.mark.parametrize(
    ("whens", "expected"),
    [
        (["true", "echo 1 success", "echo 2 failure"], "1\n"),
        (["false", "echo 1 success", "echo 2 failure"], "2\n"),
        (["false", "true always", "echo 1 success"], "1\n"),
        (["true", "false success", "echo 1 failure", "echo 2 always"], "1\n2\n"),
    ],
)
async def test_steps_run_by_the_end_of_the_one_before(tmp_path: Path, whens: list[str], expected: str) -> None:
    """P1: `;`, `&&`, `||`."""
    steps = [Step(pipe(whens[0]), tmp_path)]
    for each in whens[1:]:
        words, _, when = each.rpartition(" ")
        steps.append(Step(pipe(words), tmp_path, when))
    assert (await output(tmp_path, *steps))[0] == expected


async def test_a_negated_step_turns_its_status_round(tmp_path: Path) -> None:
    """P1: `!`."""
    assert await output(tmp_path, Step(pipe("false"), tmp_path, negated=True)) == ("", 0)
    assert await output(tmp_path, Step(pipe("true"), tmp_path, negated=True)) == ("", 1)


@pytest.mark.parametrize(("condition", "expected"), [("true", "1\n2\n4\n"), ("false", "3\n4\n")])
async def test_a_step_leaves_out_steps_after_it(tmp_path: Path, condition: str, expected: str) -> None:
    """P1: `if …; then echo 1; echo 2; else echo 3; fi; echo 4`."""
    steps = [
        Step(pipe(condition), tmp_path, skips=(0, 2)),
        Step(pipe("echo 1"), tmp_path),
        Step(pipe("echo 2"), tmp_path, skips=(1, 1)),
        Step(pipe("echo 3"), tmp_path),
        Step(pipe("echo 4"), tmp_path),
    ]
    assert await output(tmp_path, *steps) == (expected, 0)


async def test_a_step_that_is_left_out_by_a_status_still_leaves_out_others_by_it(tmp_path: Path) -> None:
    """P1: `false && true && { echo 1; echo 2; }`."""
    steps = [
        Step(pipe("false"), tmp_path),
        Step(pipe("true"), tmp_path, "success", skips=(0, 2)),
        Step(pipe("echo 1"), tmp_path),
        Step(pipe("echo 2"), tmp_path),
    ]
    assert await output(tmp_path, *steps) == ("", 1)


async def test_streams_lead_where_they_are_told_to(tmp_path: Path) -> None:
    """P1: `2>&1 |`, `>/dev/null`, `>&2 |`."""
    missing = Stage(("ls", "nothing"))
    count = Stage(("wc", "-l"))
    lines = [
        [replace(missing, stderr="out"), count],
        [missing, count],
        [replace(missing, stderr="null"), count],
        [replace(missing, stdout="null", stderr="out"), count],
        [Stage(("echo", "x"), stdout="err"), count],
        [Stage(("echo", "x"), stdout="null"), count],
    ]
    found = [(await output(tmp_path, Step(stages, tmp_path)))[0] for stages in lines]
    told = "ls: cannot access 'nothing': No such file or directory\n"
    assert [found[0], sorted(found[1].split("\n")), *found[2:]] == [
        "1\n", sorted((told + "0\n").split("\n")), "0\n", "1\n", "x\n0\n", "0\n",
    ]  # fmt: skip


async def test_a_stage_reads_a_file_or_a_text(tmp_path: Path) -> None:
    """P1: `<`, `<<<`; a file that is not there is what a shell says of it, and the program is not run."""
    (tmp_path / "a").write_text("one\n")
    assert await output(tmp_path, Step([Stage(("cat",), stdin="a")], tmp_path)) == ("one\n", 0)
    assert await output(tmp_path, Step([Stage(("cat",), text="höher\n")], tmp_path)) == ("höher\n", 0)
    assert await output(tmp_path, Step([Stage(("cat",))], tmp_path)) == ("", 0)
    missing = await output(tmp_path, Step([Stage(("cat",), stdin="b"), Stage(("wc", "-c"))], tmp_path))
    assert missing == ("b: No such file or directory\n0\n", 0)
    os.mkfifo(tmp_path / "nobody")
    assert await output(tmp_path, Step([Stage(("cat",), stdin="nobody")], tmp_path)) == ("", 0)


async def test_a_word_may_hold_the_status_of_the_step_before(tmp_path: Path) -> None:
    """P1: `false; echo "exit=$?"`; a NUL is in no word that anybody can write."""
    steps = [Step(pipe("false"), tmp_path), Step([Stage(("echo", "exit=\0"))], tmp_path)]
    assert await output(tmp_path, *steps) == ("exit=1\n", 0)


async def test_what_cannot_be_started_is_told_as_a_shell_tells_it(tmp_path: Path) -> None:
    """P1: 127 for a program that is not there; a directory that is gone ends the plan."""
    steps = [Step(pipe("no-such-program x", "wc -c"), tmp_path), Step(pipe("no-such-program"), tmp_path)]
    assert await output(tmp_path, *steps) == (
        "no-such-program: command not found\n0\nno-such-program: command not found\n",
        127,
    )
    gone = [Step(pipe("echo one"), tmp_path / "gone"), Step(pipe("echo SECOND"), tmp_path)]
    text, code = await output(tmp_path, *gone)
    assert (code, "No such file or directory" in text, "SECOND" in text) == (1, True, False)


async def test_words_go_to_programs_as_they_are(tmp_path: Path) -> None:
    """P1: no shell reads them."""
    words = ("printf", "%s\\n", "$HOME `id` $(id)", "*", "a;b", "~", "")
    assert (await output(tmp_path, Step([Stage(words)], tmp_path)))[0] == "$HOME `id` $(id)\n*\na;b\n~\n\n"


async def test_programs_get_the_given_environment_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """P1: nothing of ours, but the mark that finds what is left running."""
    monkeypatch.setenv("SECRET", "x")
    text, _ = await output(tmp_path, Step(pipe("env"), tmp_path))
    assert {line.partition("=")[0] for line in text.splitlines()} == {"PATH", "LC_ALL", "TARMAC_TERMINAL"}


@pytest.mark.parametrize("line", ["tail -f a", "yes", "seq inf", "cat /dev/zero", "sleep 60"])
async def test_a_plan_without_an_end_is_ended(tmp_path: Path, line: str) -> None:
    """P1: after its time, or after so much output; and it says so."""
    (tmp_path / "a").write_text("there\n")
    began = time.monotonic()
    steps = [Step(pipe(line), tmp_path), Step(pipe("echo more"), tmp_path)]
    result = await run(Plan(tmp_path, steps, seconds=0.4, most_bytes=100_000))
    assert time.monotonic() - began < 5
    assert result.output_bytes <= 100_000
    assert "more" not in result.output
    told = {"timeout": "ended after 0.4 seconds", "killed": "ended after 100,000 bytes of output"}
    assert result.notes[0].startswith(told[result.reason])
    assert result.reason == ("timeout" if line in ("tail -f a", "sleep 60") else "killed")
    assert (result.exit_code, result.signal) == (137, "SIGKILL")


async def test_what_a_stage_hides_ends_with_a_plan_that_went_over_its_limit(tmp_path: Path) -> None:
    """T17: no subreaper keeps it; without parent, session and cookie it is found by its birthmark."""
    hides = "env -i setsid /bin/sh -c 'echo $$ > pid; exec sleep 60' & sleep 60"
    result = await run(Plan(tmp_path, [Step([Stage(("sh", "-c", hides))], tmp_path)], seconds=0.5))
    pid = int((tmp_path / "pid").read_text())
    assert result.reason == "timeout"
    assert not Path(f"/proc/{pid}").exists() or " Z " in Path(f"/proc/{pid}/stat").read_text()


async def test_an_endless_stage_ends_when_nobody_reads_it(tmp_path: Path) -> None:
    """P1: SIGPIPE works as in a shell."""
    result = await run(Plan(tmp_path, [Step(pipe("yes", "head -2"), tmp_path)]))
    assert (result.output, result.exit_code, result.pipestatus) == ("y\ny\n", 0, (141, 0))


async def test_a_plan_can_be_followed_and_interrupted(tmp_path: Path) -> None:
    """T17: Ctrl-C ends the whole line, not one step of it."""
    steps = [Step(pipe(line), tmp_path) for line in ("echo begun", "sleep 60", "echo more")]
    async with start_plan(Plan(tmp_path, steps), command="a line", environment=ENV) as execution:
        async for piece in execution:
            assert piece == "begun\n"
            break
        with pytest.raises(InputClosed):
            await execution.send("x")
        await execution.interrupt()
        result = await execution.result(10)
    assert (result.output, result.reason) == ("begun\n", "interrupted")
    assert result.exit_code in (130, None)  # None: it came between two steps


async def test_a_plan_that_is_ended_before_its_first_step_did_not_succeed(tmp_path: Path) -> None:
    """T25: an exit code that nobody told is None."""
    async with start_plan(
        Plan(tmp_path, [Step(pipe("echo 1"), tmp_path)]), command="a line", environment=ENV
    ) as execution:
        await execution.kill()
        result = await execution.result(10)
    assert (result.output, result.reason, result.exit_code) == ("", "killed", None)


async def test_whoever_stops_waiting_ends_the_plan(tmp_path: Path) -> None:
    """T17: a cancelled call leaves nothing running (the fixtures look)."""
    plan = Plan(tmp_path, [Step(pipe("sleep 60", "sleep 60"), tmp_path)])
    task = asyncio.create_task(run(plan))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(task, 0.2)


async def test_listeners_hear_of_a_plan_as_of_any_command(tmp_path: Path) -> None:
    """T2: for whoever shows output as it comes."""
    heard: list[TerminalEvent] = []
    plan = Plan(tmp_path, [Step(pipe("echo a"), tmp_path)])
    await run_plan(plan, command="a line", environment=ENV, listener=heard.append)
    kinds = [type(each) for each in heard]
    assert kinds.index(CommandStarted) < kinds.index(DataWritten) < kinds.index(CommandFinished)


async def test_long_output_is_bounded_and_kept_whole_on_disk(tmp_path: Path) -> None:
    """T27: as with any command."""
    result = await run(Plan(tmp_path, [Step(pipe("seq 30000"), tmp_path)]))
    assert result.truncated
    assert result.output_path is not None
    assert result.output_path.read_text().split()[-1] == "30000"


async def test_plans_run_side_by_side(tmp_path: Path) -> None:
    """P1: nothing is shared between them."""
    plans = [Plan(tmp_path, [Step(pipe(f"echo {n}", "cat"), tmp_path)]) for n in range(8)]
    found = await asyncio.gather(*map(run, plans))
    assert [each.output for each in found] == [f"{n}\n" for n in range(8)]
