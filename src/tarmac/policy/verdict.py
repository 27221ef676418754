"""The answer to "may this run?": a decision, and all one needs to explain it or to carry it out."""

from dataclasses import KW_ONLY, dataclass
from enum import Enum
from pathlib import Path
from typing import Literal

from tarmac.policy.rule import Basis

Decision = Literal["allow", "ask", "deny"]
Risk = Literal["low", "medium", "high", "critical"]
RISKS: tuple[Risk, ...] = ("low", "medium", "high", "critical")
When = Literal["always", "success", "failure"]
STATUS = "\0"  # in a word of a stage: the exit code of the step before (`$?`); no word that is written can hold it


def worst(*risks: Risk) -> Risk:
    """The highest of them; the whole is as dangerous as its most dangerous part."""
    return max(risks, key=RISKS.index, default="low")


@dataclass(frozen=True, slots=True)
class Stage:
    """One program of a pipeline: its words, as they are, and where its streams lead."""

    words: tuple[str, ...]
    _: KW_ONLY
    stdin: str | None = None  # the file it reads (`< file`); None: `text`, the stage before, or nothing
    text: str | None = None  # what it reads (`<<< word`, a here-document)
    stdout: Literal["out", "null", "err"] = "out"  # "out": the next stage, or the output
    stderr: Literal["err", "out", "null"] = "err"  # "err": the output, whatever stage it is
    alone: bool = False  # it runs in an empty private folder: what is around it means nothing to it


@dataclass(frozen=True, slots=True)
class Step:
    """One pipeline of a plan: when it runs, and where. Without stages it runs nothing, and the status stays."""

    stages: tuple[Stage, ...]
    _: KW_ONLY
    cwd: Path
    when: When = "always"  # by the end of the step before: `;`, `&&`, `||`
    negated: bool = False  # `! …`
    skips: tuple[int, int] = (0, 0)  # steps after it that are left out if the status is then success, or failure: `if`


class Enforcement(Enum):
    """What keeps a plan to its confinement on this machine."""

    LANDLOCK = "landlock"
    BUBBLEWRAP = "bubblewrap"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Confinement:
    """What the programs of a plan may do: the kernel keeps them to it. They may write nowhere else, nor connect.

    The paths are real: no links on the way. What is not listed here is closed.
    """

    programs: tuple[str, ...]  # may be read and run, with all below
    reads: tuple[str, ...] = ()  # may be read, with all below
    lists: tuple[str, ...] = ()  # the names in them may be read, with all below
    scratch: bool = False  # there is a private folder for temporary files
    private_home: bool = False  # that folder is their home, too: it is empty
    variables: tuple[tuple[str, str], ...] = ()  # of the environment: what takes the place of closed files
    memory: int = 4 << 30  # bytes of data, of each process
    processes: int = 512  # more than run now
    open_files: int = 4096
    file_bytes: int = 1 << 30  # of each temporary file
    cpu_seconds: int = 300


@dataclass(frozen=True, slots=True)
class Plan:
    """How to run, without a shell, what was allowed without a person. Every word is literal.

    No steps: the line only moves the terminal to `cwd`. What only reads may still have no end (`tail -f`, `seq inf`):
    whoever runs a plan must end it after `most_bytes` of output, and after `seconds` unless it can be seen and ended.
    """

    cwd: Path  # where the line ends up: a terminal that follows it stands here afterwards
    steps: tuple[Step, ...] = ()
    seconds: float = 60
    most_bytes: int = 16 << 20
    confinement: Confinement | None = None  # None: this machine can't enforce one


@dataclass(frozen=True, slots=True)
class Part:
    """One simple command of the line, judged by itself."""

    text: str  # as it stands in the line
    words: tuple[str, ...] | None  # what the program would get; None: not known before it runs
    _: KW_ONLY
    decision: Decision
    risk: Risk
    reason: str
    explanation: str
    rule: str
    basis: Basis = Basis.EFFECT
    grant: str = ""  # the id of the grant that allows it
    program: str = ""  # whose description proved that it only reads


@dataclass(frozen=True, slots=True)
class SuggestedGrant:
    """What "always allow" could store: this exact line, all that begins with these words, or this host or tool."""

    kind: Literal["line", "prefix", "use"]
    text: str
    words: tuple[str, ...] = ()  # of a prefix or a use


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The answer. `reason`, `part` and `rule` are those of the part that weighs most."""

    decision: Decision
    risk: Risk
    reason: str  # why this decision, in plain words
    part: str  # the part of the line it rests on
    explanation: str  # what the whole would do, in plain words
    basis: Basis = Basis.EFFECT  # on what kind of thing the decision rests
    grant: str = ""  # the id of the grant that allows it
    rule: str  # what decided, for a person: "floor.disk", "ask.unknown", "user.deny", "grant.7", "read.git.log"
    suggested_grants: tuple[SuggestedGrant, ...] = ()
    plan: Plan | None = None
    parts: tuple[Part, ...] = ()
    personal: str = ""  # why no setting may say yes in a person's place: critical, credentials, protected, unreadable


@dataclass(frozen=True, slots=True)
class Proof:
    """Why a command is harmless, and its stage of the plan."""

    stage: Stage
    rule: str
    why: str
    connects: str = ""  # the server or daemon that it asks: it reads, and is asked about all the same
    before: tuple[tuple[str, ...], ...] = ()  # what the stages before it must be, in place of what is written
    program: str = ""  # whose description it rests on
    alone: bool = False  # what is around such a command means nothing to it: it prints its version or help


class Unproven(Exception):
    """Nothing says that this only reads; `reason` says what is in the way."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
