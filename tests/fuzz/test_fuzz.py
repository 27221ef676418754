"""The fuzzer's share of CI, and proof that it would notice. Longer, by hand: `python -m tests.fuzz --minutes 10`."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.conftest import lacking
from tests.fuzz import driving
from tests.fuzz.driving import Session, draw_session, play
from tests.fuzz.hunting import Count, hunt, script, shrunk
from tests.fuzz.steps import Game, Step

SHELLS = ("bash", "zsh", "fish")
SECONDS = 5.0  # for each shell
SEED = 7  # the same sessions each time: a red run can be run again


@pytest.mark.shell
@pytest.mark.parametrize("shell", SHELLS)
async def test_nothing_goes_wrong_in_random_sessions(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    """T11, T14, T17: no hang, no wrong code, no lost or foreign output, no leak; one command after another in step."""
    if shutil.which(shell) is None:
        lacking(f"{shell} is not installed")
    count = Count()
    await hunt([shell], seed=SEED, seconds=SECONDS, games=10, count=count, shrink=False)
    assert count.commands[shell] > 0
    assert count.failures == [], capsys.readouterr().out


@pytest.mark.parametrize("shell", SHELLS)
def test_a_seed_stands_for_one_session(shell: str) -> None:
    one, two, other = (draw_session(seed, shell, games=20) for seed in (f"{shell}:1:2:20", f"{shell}:1:2:20", "x"))
    assert script(one) == script(two) and one.home == two.home
    assert [step.text for step in one.steps] != [step.text for step in other.steps]


GOOD = Step(text="echo t1x0001", output="t1x0001\n")


@pytest.mark.shell
@pytest.mark.parametrize(
    ("kind", "steps"),
    [
        ("code", [Step(text="(exit 3)", code=4)]),
        ("lost", [GOOD, Step(text="echo t2x0002 >/dev/null", output="t2x0002\n")]),
        ("foreign", [Step(text="echo t2x0002; echo more", output="t2x0002\n")]),
        ("out of step", [GOOD, Step(text="printf 't1x%04d\n' 1", output="\n")]),
        ("out of step", [Step(text="exit 3", output=None, code=3, reasons=("terminal closed",)), GOOD]),
        ("reason", [Step(text="exit 3", output=None, code=3)]),
        ("directory", [Step(text="cd /")]),
        ("crash", [Step(text="a\0b")]),
    ],
)
async def test_the_fuzzer_notices(kind: str, steps: list[Step], tmp_path: Path) -> None:
    """A fuzzer that finds nothing must be one that could."""
    session = Session(seed="x", shell="bash", home="none", games=(Game("x", tuple(steps)),))
    played = await play(session, tmp_path)
    assert played.failure is not None and (played.failure.kind, played.failure.step) == (kind, steps[-1].text)


@pytest.mark.shell
async def test_the_fuzzer_notices_what_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kinds that take time: a command that does not end."""
    monkeypatch.setattr(driving, "PATIENCE", 1.0)
    session = Session(seed="x", shell="bash", home="none", games=(Game("x", (Step(text="sleep 60"),)),))
    played = await play(session, tmp_path)
    assert played.failure is not None and played.failure.kind == "hang"


@pytest.mark.shell
async def test_the_fuzzer_notices_what_is_left_running(tmp_path: Path) -> None:
    """A process with the number that one of its commands names, after the terminal is closed."""
    session = Session(seed="x", shell="bash", home="none", games=(Game("x", (Step(text=": 86410.424242"),)),))
    with subprocess.Popen(["sleep", "86410.424242"]) as stray:  # noqa: ASYNC220
        played = await play(session, tmp_path)
        stray.kill()
    assert played.failure is not None and (played.failure.kind, str(stray.pid) in played.failure.why) == ("leak", True)


@pytest.mark.shell
async def test_a_failure_is_shrunk_to_what_it_takes(tmp_path: Path) -> None:
    """The script that is printed has the wrong command and what leads to it, no more."""
    games = [Game("good", (GOOD,)) for _ in range(4)]
    needed = Game("set", (Step(text="V=t5x0005"),))
    wrong = Game("get", (Step(text="echo $V", output=re.compile("nothing\n")),))
    session = Session(seed="x", shell="bash", home="plain", games=(*games, needed, *games, wrong))
    played = await play(session, tmp_path)
    assert played.failure is not None
    smaller, again = await shrunk(session, played.failure)
    assert (again, smaller.home, [step.text for step in smaller.steps]) == (True, "none", ["V=t5x0005", "echo $V"])
    compile(re.sub("^    ", "", script(smaller), flags=re.MULTILINE), "script", "exec")
