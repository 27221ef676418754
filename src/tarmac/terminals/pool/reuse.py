"""Decide which open terminal a caller gets. Pure: values in, a decision out.

choose(candidates, request, settings) → the best terminal to use again, or None: the caller needs one more
obstacle(candidate, request, settings) → what speaks against one, or None
explain_reuse, explain_new → the decision as a sentence
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from pathlib import Path

from tarmac.events import TaskId
from tarmac.paths import Relation, relation
from tarmac.terminals.settings import Settings
from tarmac.terminals.shell.shells import Shell
from tarmac.terminals.terminal import Origin, Provider

MOST_REASONS = 4


class Until(Enum):
    """When a lease ends."""

    RELEASED = "the caller releases it"
    FIRST_COMMAND = "its first command has ended"
    CLOSED = "the terminal is closed: callers know it by its id, and it is lent to nobody"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRequest:
    """What a caller wants."""

    cwd: Path
    task: TaskId | None
    provider: Provider = "pty"
    shell: Shell | None = None  # None: any
    arguments: tuple[str, ...] = ()  # of the shell
    until: Until = Until.RELEASED
    new: bool = False  # never one that is open already
    name: str = ""
    origin: Origin = "agent"
    no_integration: str = ""  # why `exec` has to stand in for a live shell
    outlive: bool = False  # it must be one that another program can go on with

    @property
    def usable_provider(self) -> Provider:
        return "exec" if self.no_integration else self.provider


class Obstacle(Enum):
    """What keeps a terminal from being lent."""

    # To anybody
    OWNED_BY_PERSON = "is a person's own"
    CLOSED = "is closed"
    BUSY = "is busy with `{command}`"
    KEPT = "is kept by its id"
    LENT = "is lent"
    DEAD = "has lost its shell"
    HELD = "is held by a person"
    # For this request
    OTHER_TASK = "is another task's"
    OTHER_PROVIDER = "uses the provider {provider}"
    OTHER_SHELL = "runs {shell}"
    HAS_JOBS = "has a job running, which a fresh shell would end"
    UNKNOWN_DIRECTORY = "is in an unknown directory"
    CANNOT_MOVE = "stays in {cwd}"
    UNRELATED_DIRECTORY = "is in {cwd}"
    MOVED_TOO_OFTEN = "was moved {moves} of {most} times"


class Rung(IntEnum):
    """How well a terminal fits; the lower, the better."""

    OWN_HERE = 1  # belongs to the task, and is in the wanted directory
    OWN_NEAR = 2  # belongs to the task, and can move there
    FREE_HERE = 3  # belongs to no task, and is there
    FREE_NEAR = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """What the decision needs to know of a terminal."""

    id: str
    number: int  # in the order of opening: of two equals the older one is taken
    provider: str = "pty"
    shell: str = ""  # its path
    task: TaskId | None = None
    cwd: Path | None = None  # None: not known
    moves: int = 0
    obstacle: Obstacle | None = None  # why nobody can get it now
    command: str = ""  # that it is busy with
    users: frozenset[TaskId | None] = frozenset()  # the tasks whose commands ran in its shell; None: of no task
    jobs: bool = False  # something still runs in its background

    def needs_reset(self, request: LeaseRequest) -> bool:
        """Whether another task has changed its shell. With `exec` there is no shell to change."""
        return self.provider == "pty" and not self.users <= {request.task}


@dataclass(frozen=True, slots=True)
class ReuseChoice:
    """A terminal to use again, and what has to be done to it first."""

    candidate: Candidate
    rung: Rung
    reset: bool  # it needs a fresh shell, as another task has used it

    @property
    def switch(self) -> bool:
        """Whether it has to move to another directory."""
        return self.rung in (Rung.OWN_NEAR, Rung.FREE_NEAR)

    @property
    def own(self) -> bool:
        """Whether it belongs to the task already."""
        return self.rung <= Rung.OWN_NEAR


def choose(candidates: Iterable[Candidate], request: LeaseRequest, settings: Settings) -> ReuseChoice | None:
    """The best terminal for `request`, or None when it needs one more."""

    def cost(choice: ReuseChoice) -> tuple[int, bool, int]:
        return choice.rung, choice.reset, choice.candidate.number

    def best(some: Iterable[Candidate]) -> ReuseChoice | None:
        placed = (_place(each, request, settings) for each in some)
        return min((each for each in placed if isinstance(each, ReuseChoice)), key=cost, default=None)

    everyone = list(candidates)
    own = [each for each in everyone if each.task is not None and each.task == request.task]
    return best(own) or best(each for each in everyone if each.task is None)  # to compare paths takes a while


def obstacle(candidate: Candidate, request: LeaseRequest, settings: Settings) -> Obstacle | None:
    """What keeps `candidate` from being used for `request`."""
    placed = _place(candidate, request, settings)
    return None if isinstance(placed, ReuseChoice) else placed


def _place(candidate: Candidate, request: LeaseRequest, settings: Settings) -> ReuseChoice | Obstacle:
    own = request.task is not None and candidate.task == request.task
    reset = candidate.needs_reset(request)
    if candidate.obstacle is not None:
        return candidate.obstacle
    if candidate.task is not None and not own:
        return Obstacle.OTHER_TASK
    if candidate.provider != request.usable_provider:
        return Obstacle.OTHER_PROVIDER
    if request.shell is not None and candidate.shell != request.shell.path:
        return Obstacle.OTHER_SHELL
    if reset and candidate.jobs:
        return Obstacle.HAS_JOBS
    if candidate.cwd is None:
        return Obstacle.UNKNOWN_DIRECTORY
    if candidate.cwd == request.cwd or (lies := relation(candidate.cwd, request.cwd)) is Relation.SAME:
        return ReuseChoice(candidate, Rung.OWN_HERE if own else Rung.FREE_HERE, reset)
    if candidate.provider != "pty":
        return Obstacle.CANNOT_MOVE
    if lies is Relation.UNRELATED and settings.reuse_related_only:
        return Obstacle.UNRELATED_DIRECTORY
    if candidate.moves >= settings.max_directory_changes:
        return Obstacle.MOVED_TOO_OFTEN
    return ReuseChoice(candidate, Rung.OWN_NEAR if own else Rung.FREE_NEAR, reset)


# In words


def explain(candidate: Candidate, found: Obstacle, settings: Settings) -> str:
    """Why `candidate` can't be used: "t3 is busy with `make`"."""
    words = found.value.format(
        command=candidate.command[:40],
        provider=candidate.provider,
        shell=candidate.shell,
        cwd=candidate.cwd,
        moves=candidate.moves,
        most=settings.max_directory_changes,
    )
    return f"{candidate.id} {words}"


def explain_reuse(choice: ReuseChoice, request: LeaseRequest, settings: Settings) -> str:
    one = choice.candidate
    owner = "bound to this task" if choice.own else "bound to no task"
    where = f"already in {one.cwd}"
    if choice.switch:
        move = _ordinal(1 if choice.reset else one.moves + 1)
        where = f"moved from {one.cwd} to {request.cwd}, {move} move of {settings.max_directory_changes}"
    fresh = ", with a fresh shell as another task had used it" if choice.reset else ""
    return f"reused {one.id}: {owner}, {where}{fresh}"


def explain_new(candidates: Sequence[Candidate], request: LeaseRequest, settings: Settings) -> str:
    others = [each for each in candidates if each.task in (request.task, None)]
    found = ((each, obstacle(each, request, settings)) for each in others[:MOST_REASONS])
    reasons = [explain(each, why, settings) for each, why in found if why is not None]
    if len(others) > MOST_REASONS:
        reasons.append(f"and {len(others) - MOST_REASONS} more")
    return f"nothing fits ({', '.join(reasons)})" if reasons else "there was nothing to reuse"


def _ordinal(number: int) -> str:
    ending = "th" if 10 < number % 100 < 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What a shell is made with. The settings include its size and sandbox."""

    shell: str
    environ: Mapping[str, str]
    settings: Settings
    start_up_files: tuple[tuple[str, int, int, int], ...]  # each one's path, inode, size, modification time


def fingerprint(shell: Shell, settings: Settings, environ: Mapping[str, str]) -> Fingerprint:
    """What a shell would be made with now."""
    paths = start_up_files(shell.name, environ) if settings.start_up_files else ()
    return Fingerprint(shell.path, dict(environ), settings, tuple(_stat(paths)))


def start_up_files(shell: str, environ: Mapping[str, str]) -> Iterator[str]:
    """The files that an interactive `shell` reads when it starts, whether they exist or not."""
    home = environ.get("HOME", "/")
    match shell:
        case "bash":
            yield from ("/etc/bash.bashrc", "/etc/bash.bashrc.local", f"{home}/.bashrc")
        case "zsh":
            for folder in ("/etc/", "/etc/zsh/", f"{environ.get('ZDOTDIR') or home}/."):
                yield from (f"{folder}zshenv", f"{folder}zshrc")
        case "fish":
            for folder in ("/etc/fish", f"{environ.get('XDG_CONFIG_HOME') or home + '/.config'}/fish"):
                yield from (f"{folder}/config.fish", f"{folder}/conf.d")
                yield from sorted(map(str, Path(folder, "conf.d").glob("*.fish")))


def _stat(paths: Iterable[str]) -> Iterator[tuple[str, int, int, int]]:
    for path in paths:
        try:
            found = os.stat(path)
        except OSError:
            continue
        yield path, found.st_ino, found.st_size, found.st_mtime_ns
