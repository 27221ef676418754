"""A step of a full-screen program: from the keys until its screen is known to have settled.

Afterwards the screen is watched for 350 ms more. A change in that time is a false settle. The steps are drawn by lot,
so no two runs are alike; a step counts as different if the program, its screen or the keys are.
"""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from shutil import which
from statistics import median, quantiles
from time import perf_counter, time_ns

from benchmarks.home import private_home
from benchmarks.rounds import Goal, Row
from tarmac.terminals import open_terminal
from tarmac.terminals.execution import Execution
from tarmac.terminals.terminal import Terminal
from tarmac.vt.keys import keys

WATCHED = 0.35
IN_ONE_PROGRAM = 40  # steps, then it is started again
Moves = Callable[[Random], list[str]]  # some keys after each other, and each is a step


def _word(lot: Random) -> list[str]:
    return lot.choices("abcdefghijklmnopqrstuvwxyz0123456789", k=lot.randint(1, 4))


def _vim(lot: Random) -> list[str]:
    move = lot.choice(
        ["j", "k", "w", "b", "0", "$", "G", "C-f", "C-b", "C-d", "C-u", "H", "L", "%", "~", "x", "p", "u"]
    )
    return lot.choice(
        [
            [move],
            [str(lot.randint(2, 9)), move],
            [lot.choice("iaAoO"), *_word(lot), *lot.choice(([], ["Enter"], ["Backspace"])), "Escape"],
            ["d", "d"],
            ["y", "y", "P"],
            ["v", lot.choice("jk"), lot.choice(["y", "Escape", ">"])],
            ["/", *str(lot.randint(1, 999)), "Enter"],
            [":", *str(lot.randint(1, 999)), "Enter"],
            [f": s e t Space {lot.choice(('n u', 'n o n u', 'w r a p', 'n o w r a p', 'l i s t'))} Enter"],
            [f": s / i / {lot.choice('abc')} / Enter"],
        ]
    )


def _less(lot: Random) -> list[str]:
    move = lot.choice(["Down", "Up", "Space", "PageUp", "PageDown", "G", "g", "d", "u", "j", "k", "Right", "Left"])
    return lot.choice(
        [[move], [*str(lot.randint(2, 40)), lot.choice("jk")], ["/", *str(lot.randint(1, 999)), "Enter"], ["h", "q"]]
    )


def _nano(lot: Random) -> list[str]:
    move = lot.choice(["Up", "Down", "Left", "Right", "Home", "End", "PageDown", "PageUp", "C-k", "C-u", "Backspace"])
    return lot.choice(
        [[move], [move], _word(lot), ["Enter"], ["C-w", *str(lot.randint(1, 999)), "Enter"], ["C-g", "C-x"]]
    )


def _whiptail(lot: Random) -> list[str]:
    return [lot.choice(["Up", "Down", "Tab", "S-Tab", "PageDown", "PageUp", *"abcdefgh"])]


def _mc(lot: Random) -> list[str]:
    move = lot.choice(["Up", "Down", "Tab", "Home", "End", "PageDown", "PageUp", "Insert", "C-o C-o"])
    return lot.choice(
        [[move], [move], ["F9", lot.choice(["Right", "Left"]), "Down", "F10"], ["F1", "F10"], ["F3", "Down", "F10"]]
    )


def _python(lot: Random) -> list[str]:
    sum_of = f"{lot.randint(0, 99)}{lot.choice('+-*')}{lot.randint(0, 99)}"
    return lot.choice(
        [[*sum_of, "Enter"], ["Up", "Left", lot.choice("123"), "Enter"], ["Up", "C-a", "1", "C-e", "Enter"]]
    )


def _bash(lot: Random) -> list[str]:
    return lot.choice(
        [
            ["e", "c", "h", "o", "Space", *_word(lot), "Enter"],
            ["Up", "C-a", "C-e", "Backspace", *_word(lot), "Enter"],
            ["C-r", lot.choice("echo"), "C-g"],
            [f"s e q Space {' '.join(str(lot.randint(1, 60)))} Enter"],
        ]
    )


def _fzf(lot: Random) -> list[str]:
    return lot.choice([["Up"], ["Down"], ["PageUp"], [*str(lot.randint(1, 99)), "C-u"], ["l", "Backspace"]])


PROGRAMS: dict[str, tuple[str, Moves]] = {
    "vim": ("vim -n --clean text", _vim),
    "less": ("less text", _less),
    "nano": ("nano -I text", _nano),
    "whiptail": ("whiptail --menu F 16 40 8 a A b B c C d D e E f F g G h H", _whiptail),
    "mc": ("mc -u -X", _mc),
    "python3": ("python3 -q", _python),
    "bash": ("bash --norc", _bash),
    "fzf": ("fzf < text", _fzf),
}


@dataclass
class Seen:
    """What the steps showed."""

    took: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    different: set[tuple[str, str, str]] = field(default_factory=set)


def measure(*, quick: bool, steps: int = 600) -> Iterator[Row]:
    seed = time_ns()
    lot = Random(seed)
    seen = Seen()
    with private_home() as home:
        (home / "text").write_text("".join(f"line {n}\n" for n in range(1, 1000)))
        programs = [name for name in PROGRAMS if which(name)]
        while len(seen.took) < (80 if quick else steps):
            for name in programs:
                asyncio.run(_walk(home, name, lot, seen, steps=10 if quick else IN_ONE_PROGRAM))
    count = len(seen.took)
    note = f"{count} steps in {', '.join(programs)}, {len(seen.different)} of them different; drawn with seed {seed}"
    milliseconds = [1000 * each for each in seen.took]
    yield Row(
        what="screen: keys to look, median", ours=median(milliseconds), unit="ms", goal=Goal("≤", 30, "ours"), note=note
    )
    p99 = quantiles(milliseconds, n=100)[98]
    yield Row(what="screen: keys to look, 99 of 100", ours=p99, unit="ms", goal=Goal("≤", 250, "ours"))
    share = 1000 * len(seen.wrong) / count
    which_ones = f": {'; '.join(seen.wrong[:5])}" if seen.wrong else ""
    yield Row(
        what="screen: false settles of 1,000",
        ours=share,
        goal=Goal("≤", 1, "ours"),
        note=f"{len(seen.wrong)} of {count}{which_ones}",
    )


async def _walk(home: Path, name: str, lot: Random, seen: Seen, *, steps: int) -> None:
    command, moves = PROGRAMS[name]
    async with open_terminal(shell="bash", cwd=home) as terminal:
        execution = await terminal.start(f"TERM=xterm-256color HOME={home} {command}")
        before = (await execution.screen()).hash
        await asyncio.sleep(WATCHED)
        done = 0
        while done < steps and execution.running:
            for step in moves(lot):
                before = await _step(terminal, execution, name, step, before, seen)
                done += 1
        await execution.kill()


async def _step(terminal: Terminal, execution: Execution, name: str, step: str, before: str, seen: Seen) -> str:
    """Press keys, look, and watch whether more comes; the hash of what was seen."""
    data = keys(step, application_cursor=await terminal.screen.application_cursor())
    start = perf_counter()
    await execution.send(data)
    look = await execution.screen()
    seen.took.append(perf_counter() - start)
    seen.different.add((name, before, step))
    await asyncio.sleep(WATCHED)
    now = terminal.screen.current().picture()
    if (now.lines, now.cursor, now.highlighted) != (look.lines, look.cursor, look.highlighted):
        seen.wrong.append(f"{name} {step}")
    return look.hash
