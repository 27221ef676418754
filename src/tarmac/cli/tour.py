"""`tarmac tour`: a dozen commands in one real terminal, each shown with its result, each checked.

TourStep → take() → shown, and whether it was as it should be

It is also the smoke test behind `make run`: something that is not as it should be makes it exit with 1.
"""

import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import tarmac
from tarmac.cli.shutdown import Stop, run
from tarmac.errors import BadRequest
from tarmac.show.look import look_of
from tarmac.terminals import Result, Settings, Terminal, open_terminal

MOST_LINES = 6  # of a step's output
BIG = 700_000  # lines of the big output


async def _run(terminal: Terminal, command: str) -> Result:
    return await terminal.run(command, timeout=20, on_timeout="interrupt")


async def _ask_nobody(terminal: Terminal, command: str) -> Result:
    return await terminal.run(command, timeout=0.3, on_timeout="interrupt")


async def _interrupt(terminal: Terminal, command: str) -> Result:
    execution = await terminal.start(command)
    await execution.ended(0.2)
    await execution.interrupt()
    return await execution.result(20, on_timeout="kill")


def _succeeds(result: Result) -> bool:
    return result.exit_code == 0


def _nothing(result: Result) -> str:
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TourStep:
    """One command of the tour; without a title it belongs to the one before."""

    title: str = ""
    command: str
    right: Callable[[Result], bool] = _succeeds
    remark: Callable[[Result], str] = _nothing  # what is worth telling about this result
    how: Callable[[Terminal, str], Awaitable[Result]] = _run


STEPS = (
    TourStep(
        title="A real shell on a real terminal",
        command='echo "hello from bash ${BASH_VERSION%%(*} on $(tty)"',
        right=lambda r: r.output.startswith("hello from bash") and "/dev/" in r.output,
    ),
    TourStep(title="A directory that lasts", command="mkdir 'deep in here' && cd 'deep in here'"),
    TourStep(command="pwd", right=lambda r: r.output == f"{r.cwd}\n" and r.cwd.name == "deep in here"),
    TourStep(title="A variable that lasts", command="colour=green"),
    TourStep(command='echo "still $colour"', right=lambda r: r.output == "still green\n"),
    TourStep(
        title="A here-document, byte for byte",
        command="cat <<'END'\n\tbehind a tab: $HOME, `date` and !! stay as they are\nEND",
        right=lambda r: r.output == "\tbehind a tab: $HOME, `date` and !! stay as they are\n",
    ),
    TourStep(
        title="A progress bar, settled",
        command="for i in 10 55 100; do printf '\\r\\e[32mbuilding %d%%\\e[m' $i; done; echo",
        right=lambda r: r.output == "building 100%\n",
        remark=lambda r: f"{r.output_bytes} bytes of carriage returns and colours, one line",
    ),
    TourStep(
        title="A pipeline, with the code of each part",
        command="printf 'b\\na\\n' | sort | (cat; exit 4) | cat",
        right=lambda r: (r.output, r.pipestatus) == ("a\nb\n", (0, 0, 4, 0)),
        remark=lambda r: "parts: " + " ".join(map(str, r.pipestatus)),
    ),
    TourStep(
        title="A failure is a result, not an exception",
        command="ls 'no such file'",
        right=lambda r: r.exit_code == 2 and r.reason == "done",
    ),
    TourStep(
        title="A question nobody answers",
        command="read -p 'Delete everything? [y/N] ' answer",
        how=_ask_nobody,
        right=lambda r: r.reason == "awaiting input" and r.exit_code == 130,
        remark=lambda r: f"it waits for a {r.awaiting}; ended after 0.3 s",
    ),
    TourStep(
        title="An interrupt",
        command="sleep 100",
        how=_interrupt,
        right=lambda r: r.reason == "interrupted" and r.exit_code == 130 and r.duration < 2,
        remark=lambda r: f"Ctrl-C after 200 ms, ended {_seconds(max(r.duration - 0.2, 0))} later",
    ),
    TourStep(
        title="A big output, bounded",
        command=f"seq -f 'line %.0f of a story so long that nobody is going to read all of it' {BIG}",
        right=lambda r: r.truncated and r.output.startswith("line 1 of") and f"\nline {BIG} of" in r.output,
        remark=lambda r: (
            f"{r.output_bytes / 1e6:.0f} MB at {r.output_bytes / 1e6 / r.duration:.0f} MB/s; "
            f"{len(r.output) / 1e3:.0f} kB of both ends kept here, the rest on disk"
        ),
    ),
    TourStep(
        title="A program that forges our end mark",
        command="printf '\\e]633;D;0\\a'; false",
        right=lambda r: r.exit_code == 1 and r.forged_marks == 1,
        remark=lambda r: f"{r.forged_marks} forged mark ignored",
    ),
    TourStep(
        title="A shell that dies",
        command="exit 3",
        right=lambda r: (r.exit_code, r.reason, r.evidence) == (3, "terminal closed", "waitpid"),
    ),
    TourStep(
        command='echo "a fresh one${colour:+ (no, the old one)}, in the same place"',
        right=lambda r: r.fresh_shell and r.output.startswith("a fresh one,") and r.cwd.name == "deep in here",
    ),
)


def main(arguments: list[str]) -> int:
    """Watch a real terminal at work; 0 when all was as it should be."""
    if arguments:
        raise BadRequest(f"the tour takes no arguments, not `{arguments[0]}`", hint="tarmac tour")
    return run(tour)


async def tour(stop: Stop) -> int:
    """Take all the steps in one terminal, then see that nothing is left."""
    page = TourPage()
    began, wrong, number = time.monotonic(), 0, 0
    page.say(page.strong(f"Tarmac {tarmac.__version__}") + ": a tour of one terminal")
    with _somewhere() as folder:
        settings = Settings(spool_directory=folder / "output", start_up_files=False)
        async with open_terminal(cwd=folder, settings=settings) as terminal:
            for step in STEPS:
                if step.title:
                    number += 1
                    page.say(f"\n{page.strong(f'{number}. {step.title}')}")
                page.command(step.command)
                result = await step.how(terminal, step.command)
                right = step.right(result)
                wrong += not right
                page.result(result, step.remark(result) if right else "", right=right)
    if left := _children():
        wrong += 1
        page.say(page.alarm(f"\nprocesses were left behind: {left}"))
    took = _seconds(time.monotonic() - began)
    if wrong:
        page.say(page.alarm(f"\n{wrong} of {len(STEPS)} commands did not end as they should have ({took})."))
        return 1
    page.say(f"\n{page.strong(f'All {len(STEPS)} commands ended as they should')}, in {took}. Nothing is left running.")
    page.say("Next: tarmac exec -- 'your command here'    or: tarmac --help")
    return 0


@contextmanager
def _somewhere() -> Iterator[Path]:
    """A temporary directory with a space in its name, as people have them."""
    with tempfile.TemporaryDirectory(prefix="tarmac tour ") as folder:
        yield Path(folder).resolve()


def _children() -> list[int]:
    try:
        return [int(pid) for each in Path("/proc/self/task").glob("*/children") for pid in each.read_text().split()]
    except OSError:
        return []


class TourPage:
    """Standard output, in colour where somebody sees it."""

    def __init__(self) -> None:
        self._paint = look_of(sys.stdout, os.environ).paint
        if hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(errors="replace")

    def say(self, text: str) -> None:
        print(text, flush=True)

    def strong(self, text: str) -> str:
        return self._paint("1", text)

    def alarm(self, text: str) -> str:
        return self._paint("1;31", text)

    def command(self, command: str) -> None:
        first, *rest = command.split("\n")
        self.say(f"   {self._paint('36', '$')} {first}")
        for line in rest:
            self.say(f"     {line}")

    def result(self, result: Result, remark: str, *, right: bool) -> None:
        """What it printed, within bounds; then how it ended, on what evidence, and when."""
        lines = result.output.strip("\n").split("\n") if result.output.strip() else []
        if len(lines) > MOST_LINES:
            lines = [*lines[: MOST_LINES // 2], f"… {len(lines) - MOST_LINES:,} lines …", *lines[-(MOST_LINES // 2) :]]
        for line in lines:
            self.say(f"     {line}")
        facts = [f"exit {result.exit_code}", result.reason, result.evidence, _seconds(result.duration), remark]
        self.say("   " + self._paint("2", " · ".join(fact for fact in facts if fact)))
        if not right:
            self.say("   " + self.alarm(f"unexpected result: {result.as_dict()}"[:2000]))


def _seconds(seconds: float) -> str:
    if seconds < 0.01:
        return f"{seconds * 1000:.1f} ms"
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.2f} s"
