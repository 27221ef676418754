"""Which terminal a task gets: the ladder, as pure functions (T3, T4).

choose(candidates, wish) → the best terminal to reuse, on which rung, and whether it needs a fresh shell first; or None:
open a new one. `why_not` says in words what kept a candidate off the ladder.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from tarmac.events import TaskId
from tarmac.paths import Relation, relation


class Rung(IntEnum):
    """The lower, the better."""

    OWN_HERE = 1  # bound to the task, and in the wanted directory
    OWN_NEAR = 2  # bound to the task, and able to switch
    FREE_HERE = 3  # bound to nobody, and there
    FREE_NEAR = 4
    NEW = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """When a terminal may be moved."""

    related_only: bool = True
    most_moves: int = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What somebody wants a terminal for."""

    cwd: Path
    task: TaskId | None
    provider: str = "pty"
    shell: str = ""  # its path; empty: any


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """What the choice needs to know of a terminal."""

    id: str
    number: int  # in the order of opening: of two equals the older one is taken
    provider: str = "pty"
    shell: str = ""
    task: TaskId | None = None
    cwd: Path | None = None  # None: nobody knows
    moves: int = 0
    trouble: str = ""  # why it can't be lent to anybody now: busy, closed, claimed, a person's …
    users: frozenset[TaskId | None] = frozenset()  # whose commands ran in its shell (None: of no task)
    jobs: bool = False  # something still runs in its background


@dataclass(frozen=True, slots=True)
class Choice:
    """A terminal to reuse, and what has to be done to it first."""

    candidate: Candidate
    rung: Rung
    reset: bool  # it was another task's: a fresh shell in its place (T8)

    @property
    def switch(self) -> bool:
        """Whether it has to go to another directory."""
        return self.rung in (Rung.OWN_NEAR, Rung.FREE_NEAR)


def choose(candidates: Iterable[Candidate], wish: Wish, rules: Rules) -> Choice | None:
    """The best idle terminal for `wish`, or None when a new one should be opened."""
    everyone = list(candidates)
    own = [each for each in everyone if _is_own(each, wish)]
    return _best(own, wish, rules) or _best((each for each in everyone if each.task is None), wish, rules)


def _best(candidates: Iterable[Candidate], wish: Wish, rules: Rules) -> Choice | None:
    places = (_place(each, wish, rules) for each in candidates)
    return min((each for each in places if isinstance(each, Choice)), key=_cost, default=None)


def _cost(choice: Choice) -> tuple[int, bool, int]:
    return choice.rung, choice.reset, choice.candidate.number


def why_not(candidate: Candidate, wish: Wish, rules: Rules) -> str:
    """What keeps `candidate` from being reused for `wish`; empty when nothing does."""
    placed = _place(candidate, wish, rules)
    return "" if isinstance(placed, Choice) else f"{candidate.id} {placed}"


def needs_reset(candidate: Candidate, wish: Wish) -> bool:
    """Whether what another task left in its shell must go first. In `exec` nothing is ever left."""
    return candidate.provider == "pty" and not candidate.users <= {wish.task}


def _is_own(candidate: Candidate, wish: Wish) -> bool:
    return wish.task is not None and candidate.task == wish.task


def _place(candidate: Candidate, wish: Wish, rules: Rules) -> Choice | str:
    """Its place on the ladder, or what keeps it off."""
    own, reset = _is_own(candidate, wish), needs_reset(candidate, wish)
    if candidate.trouble:
        return candidate.trouble
    if candidate.task is not None and not own:
        return "is another task's"
    if candidate.provider != wish.provider:
        return f"is of the provider {candidate.provider}"
    if wish.shell and candidate.shell != wish.shell:
        return f"runs {candidate.shell}"
    if reset and candidate.jobs:
        return "has a job running, which a fresh shell would end"
    if candidate.cwd is None:
        return "is nobody knows where"
    if candidate.cwd == wish.cwd or (lies := relation(candidate.cwd, wish.cwd)) is Relation.SAME:
        return Choice(candidate, Rung.OWN_HERE if own else Rung.FREE_HERE, reset)
    if candidate.provider != "pty":
        return f"stays in {candidate.cwd}"
    if lies is Relation.UNRELATED and rules.related_only:
        return f"is in {candidate.cwd}"
    if candidate.moves >= rules.most_moves:
        return f"was moved {candidate.moves} of {rules.most_moves} times"
    return Choice(candidate, Rung.OWN_NEAR if own else Rung.FREE_NEAR, reset)
