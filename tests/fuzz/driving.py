"""Play a session in a real terminal and compare what came with what had to come.

draw_session(seed) → Session → play() → the first Failure, or none

A wrong step ends its session: what comes after it proves nothing.
"""

import asyncio
import os
import random
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.fuzz.games import any_game
from tests.fuzz.pieces import Draw
from tests.fuzz.startups import HOMES, make_home
from tests.fuzz.steps import Game, Model, Step, expected_output

from tarmac.errors import TarmacError
from tarmac.terminals import Result, Settings, Terminal
from tarmac.terminals.open import make_terminal
from tarmac.terminals.terminal import NewTerminal

PATIENCE = 20.0  # seconds for a command that ends by itself at once
WATCHDOG = 60.0  # for anything
ONLY_SHORT = 0.3  # the limit of a command that is meant to run into it
TAG = re.compile(r"\bt\d+x[0-9a-f]{4}")
JOB = re.compile(r"\[\d+\][ +-].*\n?")  # [1]+  Done   sleep 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """Some games in one terminal."""

    seed: str
    shell: str
    home: str  # which start-up files
    games: tuple[Game, ...]

    @property
    def steps(self) -> list[Step]:
        return [step for game in self.games for step in game.steps]


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """What went wrong, in one word and in many."""

    kind: str  # hang, code, lost, foreign, out of step, reason, directory, leak, crash
    step: str  # the command
    why: str


@dataclass(slots=True)
class Played:
    """What came of a session."""

    commands: int = 0
    failure: Failure | None = None
    took: float = 0.0
    results: list[Result] = field(default_factory=list)


class Wrong(Exception):
    """A step did not end as it had to."""

    def __init__(self, kind: str, why: str) -> None:
        super().__init__(why)
        self.kind = kind


def draw_session(seed: str, shell: str, *, games: int, home: str | None = None) -> Session:
    """The session that this seed stands for; always the same one."""
    rng = random.Random(seed)
    chosen = rng.choice(list(HOMES[shell]))
    draw = Draw(rng, shell)
    return Session(seed=seed, shell=shell, home=home or chosen, games=tuple(any_game(draw) for _ in range(games)))


async def play(session: Session, folder: Path) -> Played:
    """Play it in `folder`, which must be empty and its own."""
    began, played = time.monotonic(), Played()
    step_text = "(opening)"
    folder = folder.resolve()
    work = folder / "work"
    work.mkdir()
    home = make_home(folder / "home", session.shell, session.home)
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("TARMAC", "XDG_", "ZDOTDIR"))}
    environ |= {"HOME": str(home), "HISTFILE": "/dev/null"}
    settings = Settings(spool_directory=folder / "output", shell_integration_timeout=PATIENCE)
    new = NewTerminal(cwd=work, shell=session.shell, settings=settings, environ=environ)
    fds = _open_files()
    try:
        async with asyncio.timeout(WATCHDOG):
            terminal = await make_terminal(new)
        model = Model(cwd=work)
        try:
            if terminal.provider != "pty":
                raise Wrong("crash", f"no shell integration: {(await terminal.run('true')).notes}")
            for step in session.steps:
                step_text = step.text
                played.commands += 1
                async with asyncio.timeout(WATCHDOG):
                    result = await _act(terminal, step, work)
                if result is not None:
                    played.results.append(result)
                    _compare(result, step, model, work)
        finally:
            async with asyncio.timeout(WATCHDOG):
                await terminal.aclose()
        step_text = "(closing)"
        await _nothing_left(session, folder, fds)
    except Wrong as wrong:
        played.failure = Failure(kind=wrong.kind, step=step_text, why=str(wrong))
    except TimeoutError:
        played.failure = Failure(kind="hang", step=step_text, why=f"nothing came within {WATCHDOG:g} s")
    except TarmacError as error:
        played.failure = Failure(kind="crash", step=step_text, why=f"{type(error).__name__}: {error}")
    except Exception as error:  # a fuzzer is there to meet what nobody thought of
        played.failure = Failure(kind="crash", step=step_text, why=f"{type(error).__name__}: {error!r}")
    played.took = time.monotonic() - began
    return played


async def _act(terminal: Terminal, step: Step, work: Path) -> Result | None:
    if step.act == "run":
        at = None if step.at is None else work / step.at
        return await terminal.run(step.text, timeout=PATIENCE, on_timeout="kill", cwd=at)
    if step.act == "time out":
        return await terminal.run(step.text, timeout=ONLY_SHORT, on_timeout="interrupt")
    if step.act == "cancel":  # whoever waits is gone: the command is ended, and nobody gets a result
        running = asyncio.ensure_future(terminal.run(step.text, timeout=PATIENCE))
        await asyncio.wait([running], timeout=float(step.when))
        running.cancel()
        await asyncio.wait([running])
        return None
    execution = await terminal.start(step.text)
    if step.act == "answer":
        for answer in step.typed:
            happened = await execution.waiting_for(input=True, timeout=PATIENCE)
            if happened.what != "input":
                break
            await execution.send(answer)
    elif step.act == "follow":
        seen = "".join([chunk async for chunk in execution if isinstance(chunk, str)])
        if isinstance(step.output, str) and _without_jobs(seen) != step.output:
            raise Wrong("lost", f"live: {_short(seen)} is not {_short(step.output)}")
    elif step.act == "resize":
        for columns in (20, 300, 120):
            terminal.resize(rows=40, columns=columns)
            await asyncio.sleep(0)
    elif step.act == "interrupt":
        await execution.waiting_for(pattern=step.when, timeout=PATIENCE)
        await execution.interrupt()
    else:
        await execution.result(ONLY_SHORT, on_timeout="leave")
        await (execution.kill() if step.act == "kill" else execution.interrupt())
    return await execution.result(PATIENCE, on_timeout="kill")


def _compare(result: Result, step: Step, model: Model, work: Path) -> None:
    """Raise Wrong if the result is not what had to come; else the model is what the terminal now must be."""
    if result.reason in ("timeout", "awaiting input", "idle") and "timeout" not in step.reasons:
        raise Wrong("hang", f"it had not ended after {PATIENCE:g} s: {_shown(result)}")
    if result.fresh_shell != model.dead:
        raise Wrong(
            "out of step", f"fresh shell: {result.fresh_shell}, and it had to be {model.dead}: {_shown(result)}"
        )
    if result.fresh_shell:
        model.dead, model.variables, model.last, model.jobs = False, {}, 0, False
    expected = expected_output(step, model)
    _compare_output(result, _without_jobs(result.output) if model.jobs or step.jobs else result.output, expected, step)
    codes = step.code if isinstance(step.code, tuple) else (step.code,)
    if step.code is not None and result.exit_code not in codes:
        raise Wrong("code", f"exit code {result.exit_code}, and it had to be {step.code}: {_shown(result)}")
    if result.reason not in step.reasons:
        raise Wrong("reason", f"{result.reason!r}, and it had to be {step.reasons}: {_shown(result)}")
    if step.cwd is not None:
        model.cwd = Path(os.path.normpath(work / step.cwd))
    if result.cwd != model.cwd and step.keeps_last:
        raise Wrong("directory", f"{result.cwd}, and it had to be {model.cwd}")
    model.dead, model.jobs = step.dies, model.jobs or step.jobs
    model.variables |= step.sets
    if result.exit_code is not None:
        model.last = result.exit_code


def _without_jobs(output: str) -> str:
    """bash and zsh tell of jobs between two lines."""
    return JOB.sub("", output)


def _compare_output(result: Result, got: str, expected: str | re.Pattern[str] | None, step: Step) -> None:
    if expected is None or isinstance(expected, re.Pattern):
        if expected is not None and not expected.fullmatch(got):
            raise Wrong(_kind(got, step), f"{got!r} does not match {expected.pattern!r}")
        _no_foreign(result, step)
        return
    if result.truncated:
        if result.output_path is None:
            raise Wrong("lost", "the output is truncated, and there is no file")
        got = _without_jobs(result.output_path.read_bytes().replace(b"\r\n", b"\n").decode())
    if got != expected:
        raise Wrong(_kind(got, step, expected), f"{_short(got)} is not {_short(expected)}")


def _no_foreign(result: Result, step: Step) -> None:
    """No word of another command is in the output."""
    own = set(TAG.findall(step.text)) | set(TAG.findall(" ".join(step.typed)))
    if strangers := set(TAG.findall(result.output)) - own:
        raise Wrong("out of step", f"words of other commands: {sorted(strangers)}: {_shown(result)}")


def _kind(got: str, step: Step, expected: str = "") -> str:
    own = set(TAG.findall(step.text)) | set(TAG.findall(expected))
    if set(TAG.findall(got)) - own:
        return "out of step"
    return "foreign" if len(got) > len(expected) and expected in got else "lost"


def _short(text: str) -> str:
    return repr(text) if len(text) < 600 else f"{text[:300]!r} … {text[-300:]!r} ({len(text)} characters)"


def _shown(result: Result) -> str:
    keys = ("exit_code", "reason", "evidence", "fresh_shell", "awaiting", "notes")
    return ", ".join(f"{key}={getattr(result, key)!r}" for key in keys) + f", output={_short(result.output)}"


# What is left behind


async def _nothing_left(session: Session, folder: Path, fds: int) -> None:
    """Within a second of closing, no process and no descriptor of that terminal is there any more."""
    numbers = {found.encode() for step in session.steps for found in re.findall(r"864\d\d\.\d{6}", step.text)}
    end = time.monotonic() + 1.0
    while True:
        left = sorted(set(_strays(numbers, folder)))
        files = _open_files() - fds
        if not left and files <= 0:
            return
        if time.monotonic() > end:
            raise Wrong("leak", f"processes left: {left}; descriptors left: {files}")
        await asyncio.sleep(0.02)


def _strays(numbers: set[bytes], folder: Path) -> Iterator[str]:
    for place in Path("/proc").iterdir():
        if not place.name.isdigit() or int(place.name) == os.getpid():
            continue
        try:
            words = (place / "cmdline").read_bytes().split(b"\0")
            where = os.readlink(place / "cwd")
        except OSError:
            continue
        if words != [b""] and (numbers & set(words) or where.startswith(str(folder))):
            yield f"{place.name} {b' '.join(words)[:80]!r}"


def _open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@contextmanager
def no_leftovers(folder: Path) -> Iterator[None]:
    """Whatever a failed session left in `folder` is ended."""
    try:
        yield
    finally:
        for each in _strays(set(), folder.resolve()):
            try:
                os.kill(int(each.split()[0]), 9)
            except OSError:
                pass
