"""The terminals a registry has: whose each is, who has a claim on it, and what may be given for a wish (T3, T11, T12).

Nothing here waits: choosing and claiming are one step, so nothing is ever given twice.

give(wish) → Grant(a terminal of ours, claimed) | Grant(room for a new one; close `evicted` first) | None: at a bound
"""

import os
import time
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tarmac.events import TaskId
from tarmac.terminals import reuse
from tarmac.terminals.pool import Stamp, stamp
from tarmac.terminals.reuse import Candidate, Choice, Rung, Wish
from tarmac.terminals.settings import Settings
from tarmac.terminals.shells import Shell
from tarmac.terminals.terminal import Origin, Provider, Terminal

MOST_SWITCHES = 20  # remembered of each terminal
MOST_REASONS = 4

Until = Literal[
    "released",  # at the end of a block
    "run",  # its first command has ended
    "killed",  # whoever opened it has its id, and it is lent to nobody
    "taken",  # out of the warm pool
]


@dataclass(frozen=True, slots=True, eq=False)
class Claim:
    """Somebody has a terminal for himself; each claim is one of its own."""

    until: Until
    task: TaskId | None = None  # on whose behalf


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """A terminal was sent to another directory to be used again; what its commands had changed in the environment."""

    at: float  # time.time()
    before: Path
    after: Path
    environment: dict[str, str | None] | None  # of a variable None: unset; secrets masked. None: the shell did not tell


@dataclass(slots=True, kw_only=True, eq=False)
class Entry:
    """A terminal, and what the registry knows of it."""

    terminal: Terminal
    number: int
    claim: Claim | None = None
    users: frozenset[TaskId | None] = frozenset()  # whose commands ran in its shell (None: of no task)
    touched: float = field(default_factory=time.monotonic)
    focused: float = 0.0
    why: str = ""
    stamp: Stamp | None = None
    switches: deque[Switch] | None = None

    @property
    def warm(self) -> bool:
        return self.claim is not None and self.claim.until == "taken"

    @property
    def used_at(self) -> float:
        return max(self.touched, self.terminal.used_at)

    @property
    def trouble(self) -> str:
        """Why it can't be lent to anybody now."""
        terminal = self.terminal
        if terminal.origin == "person":
            return "is a person's own"
        if terminal.closed:
            return "is closed"
        if terminal.current is not None:
            return f"is busy with `{terminal.current.command[:40]}`"
        if self.claim is not None:
            return "is kept by its id" if self.claim.until == "killed" else "is lent"
        if not terminal.alive:
            return "has lost its shell"
        return "is held by a person" if terminal.held else ""

    def candidate(self) -> Candidate:
        terminal = self.terminal
        trouble = self.trouble
        return Candidate(
            id=terminal.id,
            number=self.number,
            provider=terminal.provider,
            shell=terminal.shell.path,
            task=terminal.task,
            cwd=terminal.cwd if terminal.provider == "exec" or terminal.quality != "none" else None,
            moves=terminal.moves,
            trouble=trouble,
            users=self.users,
            jobs=not trouble
            and bool(self.users)
            and terminal.task is None
            and terminal.provider == "pty"
            and terminal.has_jobs,
        )

    def spare(self) -> bool:
        """Whether it may be closed: idle, nobody's claim, and nothing runs in it, not even in the background."""
        return not self.trouble and not self.terminal.has_jobs


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A wish, or the demand for a new terminal."""

    wish: Wish
    claim: Claim
    shell: Shell
    provider: Provider  # as it was asked for; the wish has what the task can use
    new: bool = False
    name: str = ""
    origin: Origin = "agent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What is given for a wish: a terminal of ours, or room for a new one."""

    ask: Ask
    entry: Entry | None = None
    choice: Choice | None = None  # of a terminal that is reused
    before: tuple[TaskId | None, Claim | None] = (None, None)  # whose it was
    evicted: tuple[Entry, ...] = ()  # to be closed first
    why: str = ""


class Stock:
    """All terminals of a registry, and the bounds on their number."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.rules = reuse.Rules(related_only=settings.reuse_related_only, most_moves=settings.max_directory_changes)
        self.entries: dict[str, Entry] = {}
        self._opening: Counter[TaskId | None] = Counter()  # room that was given and is not filled yet
        self._numbers = 0

    def __iter__(self) -> Iterator[Entry]:
        """Those that somebody may see, oldest first."""
        return (each for each in self.entries.values() if not each.warm)

    def add(self, terminal: Terminal, *, claim: Claim, why: str = "", stamp: Stamp | None = None) -> Entry:
        self._numbers += 1
        entry = Entry(terminal=terminal, number=self._numbers, claim=claim, why=why, stamp=stamp)
        self.entries[terminal.id] = entry
        return entry

    def count(self, task: TaskId | None = None) -> int:
        """How many there are, and are being opened: of a task, or of all."""
        if task is None:
            return len(self.entries) + self._opening.total()
        return self._opening[task] + sum(each.terminal.task == task for each in self.entries.values())

    def wants_warm(self) -> bool:
        """Whether a ready-made one is missing, and there is room for it."""
        warm = sum(each.warm for each in self.entries.values())
        return warm < self.settings.warm_pool and self.count() < self.settings.max_terminals

    @contextmanager
    def room(self) -> Iterator[None]:
        """Room for one that is being opened."""
        self._opening[None] += 1
        try:
            yield
        finally:
            self._opening[None] -= 1

    # Giving

    def give(self, ask: Ask) -> Grant | None:
        """The best that can be given, claimed at once; None when a bound is reached and nothing is spare."""
        seen = [each.candidate() for each in self]
        choice = None if ask.new else reuse.choose(seen, ask.wish, self.rules)
        gone: list[Entry] = []
        if choice is None or choice.rung > Rung.OWN_NEAR:  # one more for the task
            task = ask.wish.task
            if task is not None and self.count(task) >= self.settings.max_per_task:
                gone += self._least_used(task)
                if not gone:
                    return None
        if choice is not None:
            entry = self.entries[choice.candidate.id]
            return self._granted(ask, gone, why=self._why_reused(choice, ask.wish), entry=entry, choice=choice)
        why = "" if ask.new else self._why_new(seen, ask.wish)
        if not ask.new and ask.wish.provider == "pty":
            warm, stale = self._warm(ask.shell)
            gone += stale
            if warm is not None:
                why = f"took {warm.terminal.id} from the warm pool: {why}"
                return self._granted(ask, gone, why=why, entry=warm)
        if self.count() - len(gone) >= self.settings.max_terminals:
            room = [each for each in self.entries.values() if each.warm][:1] or self._least_used(None)
            if not room:
                return None
            gone += room
        return self._granted(ask, gone, why=why)

    def _granted(
        self,
        ask: Ask,
        gone: list[Entry] | tuple[()],
        *,
        why: str,
        entry: Entry | None = None,
        choice: Choice | None = None,
    ) -> Grant:
        before = (entry.terminal.task, entry.claim) if entry is not None else (None, None)
        for each in gone:
            del self.entries[each.terminal.id]
        if entry is None:
            self._opening[ask.wish.task] += 1
        else:
            entry.claim = ask.claim
            entry.terminal.task = ask.wish.task
            entry.touched = time.monotonic()
        return Grant(ask=ask, entry=entry, choice=choice, before=before, evicted=tuple(gone), why=why)

    def take_back(self, grant: Grant) -> None:
        """The caller that got it is gone: as if it had not been given."""
        if grant.entry is None:
            self._opening[grant.ask.wish.task] -= 1
        else:
            grant.entry.terminal.task, grant.entry.claim = grant.before

    def filled(self, grant: Grant, terminal: Terminal) -> Entry:
        """The room that was given is taken by `terminal`."""
        self._opening[grant.ask.wish.task] -= 1
        terminal.task = grant.ask.wish.task
        return self.add(terminal, claim=grant.ask.claim, why=f"opened {terminal.id}: {grant.why}")

    def _warm(self, shell: Shell) -> tuple[Entry | None, list[Entry]]:
        """One that waits ready-made, and those that wait in vain: made with what has changed since."""
        waiting = [each for each in self.entries.values() if each.warm]
        if not waiting:
            return None, []
        now = stamp(shell, self.settings, os.environ)
        fit = [each for each in waiting if each.stamp == now and each.terminal.alive]
        stale = [each for each in waiting if each not in fit and each.terminal.shell.path == shell.path]
        return (fit[0] if fit else None), stale

    def _least_used(self, task: TaskId | None) -> list[Entry]:
        """The spare terminal (of `task`) that was not used for longest; those that are bound to nobody first."""
        own = [each for each in self if task is None or each.terminal.task == task]
        own.sort(key=lambda each: (each.terminal.task is not None, each.used_at))
        return next(([each] for each in own if each.spare()), [])

    # In words

    def _why_reused(self, choice: Choice, wish: Wish) -> str:
        one = choice.candidate
        whose = "bound to this task" if choice.rung <= Rung.OWN_NEAR else "bound to no task"
        where = f"already in {one.cwd}"
        if choice.switch:
            count = 1 if choice.reset else one.moves + 1
            where = f"moved from {one.cwd} to {wish.cwd}, {_ordinal(count)} move of {self.rules.most_moves}"
        fresh = ", with a fresh shell as another task had used it" if choice.reset else ""
        return f"reused {one.id}: {whose}, {where}{fresh}"

    def _why_new(self, seen: list[Candidate], wish: Wish) -> str:
        others = [each for each in seen if each.task in (wish.task, None)]
        reasons = [reuse.why_not(each, wish, self.rules) for each in others[:MOST_REASONS]]
        if len(others) > MOST_REASONS:
            reasons.append(f"and {len(others) - MOST_REASONS} more")
        return f"nothing fits ({', '.join(reasons)})" if reasons else "there was nothing to reuse"


def _ordinal(number: int) -> str:
    ending = "th" if 10 < number % 100 < 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
