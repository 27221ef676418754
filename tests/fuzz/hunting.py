"""Session after session until the time is up; of one that fails, the shortest that still does.

hunt() → Count (how many, how they failed, what rate)        replay("bash:7:12") → the same session again
"""

import itertools
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.fuzz.driving import Failure, Played, Session, draw_session, no_leftovers, play
from tests.fuzz.steps import Step

MOST_TRIES = 40  # to shrink a failure
SHOWN = 20  # failures, in full


@dataclass(slots=True)
class Count:
    """What a hunt found."""

    commands: Counter[str] = field(default_factory=Counter)  # by shell
    sessions: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[Session, Failure]] = field(default_factory=list)
    seconds: float = 0.0

    def table(self) -> str:
        """For people, and for the docs."""
        kinds = Counter((session.shell, failure.kind) for session, failure in self.failures)
        lines = ["", "| shell | terminals | commands | failures |", "|---|---|---|---|"]
        for shell in sorted(self.sessions):
            wrong = ", ".join(f"{number} {kind}" for (which, kind), number in kinds.items() if which == shell)
            lines.append(f"| {shell} | {self.sessions[shell]:,} | {self.commands[shell]:,} | {wrong or 'none'} |")
        total, wrong_ones = sum(self.commands.values()), len(self.failures)
        speed = (
            f"{total:,} commands in {self.seconds / 60:.1f} minutes, {total / max(self.seconds, 0.001):.0f} a second"
        )
        lines.append(f"\n{speed}; {wrong_ones} failures: {wrong_ones / max(total, 1) * 1e6:.0f} in a million")
        return "\n".join(lines)


async def hunt(shells: list[str], *, seed: int, seconds: float, games: int, count: Count, shrink: bool = True) -> None:
    """Play until the time is up. Seeds are taken in order, so that a hunt can be hunted again."""
    began = time.monotonic()
    for number in itertools.count():
        for shell in shells:
            count.seconds = time.monotonic() - began
            if count.seconds >= seconds:
                return
            session = draw_session(f"{shell}:{seed}:{number}:{games}", shell, games=games)
            played = await play_once(session)
            count.sessions[shell] += 1
            count.commands[shell] += played.commands
            if played.failure:
                count.failures.append((session, played.failure))
                if len(count.failures) <= SHOWN:
                    await report(session, played.failure, shrink=shrink)


async def replay(name: str, *, shrink: bool) -> int:
    """Play the session of that name again; 1 if it fails."""
    shell, _, _, games = name.split(":")
    session = draw_session(name, shell, games=int(games))
    played = await play_once(session)
    if played.failure is None:
        print(f"{name}: all {played.commands} commands ended as they had to")
        return 0
    await report(session, played.failure, shrink=shrink)
    return 1


async def play_once(session: Session) -> Played:
    """In a directory of its own."""
    with (
        tempfile.TemporaryDirectory(prefix="tarmac fuzz ", ignore_cleanup_errors=True) as folder,
        no_leftovers(Path(folder)),
    ):
        return await play(session, Path(folder))


async def report(session: Session, failure: Failure, *, shrink: bool) -> None:
    """Print what failed, and the shortest way there."""
    print(f"\n=== {failure.kind}: {session.shell}, start-up files: {session.home}; --replay {session.seed}", flush=True)
    print(f"    {failure.step[:300]!r}\n    {failure.why[:1500]}", flush=True)
    if not shrink:
        return
    smaller, same = await shrunk(session, failure)
    if not same:
        print("    (played again, it does not fail: it is a matter of time)", flush=True)
    print(script(smaller), flush=True)


async def shrunk(session: Session, failure: Failure) -> tuple[Session, bool]:
    """A session with fewer games that fails in the same way; and whether it failed again at all."""
    tries = 0
    best, again = session, False
    wrong_at = next(
        (n for n, game in enumerate(session.games) if any(s.text == failure.step for s in game.steps)), None
    )
    candidates = [replace(session, games=session.games[: wrong_at + 1])] if wrong_at is not None else [session]
    while candidates and tries < MOST_TRIES:
        tries += 1
        candidate = candidates.pop(0)
        played = await play_once(candidate)
        if played.failure is not None and played.failure.kind == failure.kind:
            best, again = candidate, True
            candidates = _smaller(best)
    return best, again


def _smaller(session: Session) -> list[Session]:
    games = session.games
    halves = [games[len(games) // 2 :]] if len(games) > 3 else []
    ones = [games[:n] + games[n + 1 :] for n in range(len(games))] if len(games) > 1 else []
    found = [replace(session, games=each) for each in (*halves, *ones)]
    return [replace(session, home="none"), *found] if session.home != "none" else found


def script(session: Session) -> str:
    """The session as a program that anybody can run."""
    lines = [
        f"# {session.shell}, start-up files: {session.home} (tests/fuzz/startups.py); {len(session.steps)} commands",
        "import asyncio",
        "from tarmac.terminals import open_terminal",
        "",
        "async def main():",
        f"    async with open_terminal(shell={session.shell!r}) as terminal:",
        *(_call(step) for step in session.steps),
        "",
        "asyncio.run(main())",
    ]
    return "\n".join(f"    {line}" for line in lines)


def _call(step: Step) -> str:
    output = "what went before" if callable(step.output) else step.output
    expected = f"{step.code}, {output}"[:120].replace("\n", "⏎")
    how = "" if step.act == "run" else f"; {step.act} {step.when} {step.typed}"
    return f"        print(await terminal.run({step.text!r}))  # {expected}{how}"
