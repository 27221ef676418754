"""The values of the policy: what an agent may want to do (Action), and the answer to "may it?" (Verdict).

A verdict is a decision with its rule, and all that is needed to explain it or to carry it out. Nothing here acts.
"""

from dataclasses import KW_ONLY, dataclass, field
from enum import Enum, StrEnum
from pathlib import Path
from typing import Literal

from tarmac.events import TerminalId


class EffectKind(StrEnum):
    """What a command does to the world."""

    READS = "reads"
    WRITES = "writes"
    DELETES = "deletes"
    RUNS = "runs"  # other programs, or code it is given
    RUNS_PROJECT = "runs-project"  # code of the project: its tests, its build
    INSTALLS = "installs"  # packages, from elsewhere
    CONNECTS = "connects"  # to another machine, a daemon, a database
    CONFIGURES = "configures"  # sets up what runs later: hooks, settings, services
    MACHINE = "machine"  # the machine itself: disks, processes, users, network
    REPOSITORY = "repository"  # commits, branches, the index
    SHELL = "shell"  # the shell's own state
    MAY = "may"  # nobody is certain that it does anything


# What reaches beyond the workspace, or outlasts the command.
FAR_REACHING = frozenset({EffectKind.CONNECTS, EffectKind.CONFIGURES, EffectKind.INSTALLS, EffectKind.MACHINE})


class Rule(StrEnum):
    """The built-in rules. A verdict also names entries of the tables: "effect.git.push", "read.git.log"."""

    USER_ASK = "user.ask"  # the user's own list
    USER_RISK = "user.risk"  # the user's own table
    ASSIGN = "effect.assign"
    BOMB = "effect.bomb"
    CODE = "effect.code"
    CONNECT = "effect.connect"
    DD = "effect.dd"
    DISGUISED = "effect.disguised"
    DISK = "effect.disk"
    ENVIRONMENT = "effect.environment"
    FED = "effect.fed"
    FUNCTION = "effect.function"
    HELP = "effect.help"
    IGNORED = "effect.ignored"
    KILL = "effect.kill"
    LEAK = "effect.leak"
    LINK = "effect.link"
    MOVE = "effect.move"
    OWN = "effect.own"
    PIPED = "effect.piped"
    PROJECT = "effect.project"
    PROTECTED = "effect.protected"
    READ = "effect.read"
    REMOTE = "effect.remote"
    REMOVE = "effect.remove"
    RIGHTS = "effect.rights"
    SECRET = "effect.secret"
    SHELL = "effect.shell"
    SOCKET = "effect.socket"
    SUDO = "effect.sudo"
    TOOL = "effect.tool"
    UPLOAD = "effect.upload"
    WRITE = "effect.write"
    ZSH = "effect.zsh"
    ASK_EMPTY = "ask.empty"
    ASK_FAILED = "ask.failed"
    ASK_HIDDEN = "ask.hidden"
    ASK_TARMAC = "ask.tarmac"
    ASK_TROUBLE = "ask.trouble"
    ASK_UNKNOWN = "ask.unknown"
    ASK_UNPROVEN = "ask.unproven"
    ASK_UNREADABLE = "ask.unreadable"
    ASK_WORDS = "ask.words"
    ASK_WRAPPERS = "ask.wrappers"
    FLOOR_DISK = "floor.disk"
    FLOOR_MKFS = "floor.mkfs"
    FLOOR_ROOT = "floor.root"
    FILE_CREDENTIAL = "file.credential"
    ONLY_READS = "settings.only_reads"
    FILE_PROTECTED = "file.protected"
    INPUT_SECRET = "input.secret"

    @property
    def kind(self) -> EffectKind:
        return _KINDS[self]


_KINDS = {
    Rule.ASSIGN: EffectKind.SHELL,
    Rule.BOMB: EffectKind.RUNS,
    Rule.CODE: EffectKind.RUNS,
    Rule.CONNECT: EffectKind.CONNECTS,
    Rule.DD: EffectKind.WRITES,
    Rule.DISGUISED: EffectKind.RUNS,
    Rule.DISK: EffectKind.MACHINE,
    Rule.ENVIRONMENT: EffectKind.RUNS,
    Rule.FED: EffectKind.RUNS,
    Rule.FUNCTION: EffectKind.SHELL,
    Rule.HELP: EffectKind.READS,
    Rule.IGNORED: EffectKind.READS,
    Rule.KILL: EffectKind.MACHINE,
    Rule.LEAK: EffectKind.CONNECTS,
    Rule.LINK: EffectKind.WRITES,
    Rule.MOVE: EffectKind.WRITES,
    Rule.OWN: EffectKind.READS,
    Rule.PIPED: EffectKind.RUNS,
    Rule.PROJECT: EffectKind.RUNS,
    Rule.PROTECTED: EffectKind.WRITES,
    Rule.READ: EffectKind.READS,
    Rule.REMOTE: EffectKind.RUNS,
    Rule.REMOVE: EffectKind.DELETES,
    Rule.RIGHTS: EffectKind.WRITES,
    Rule.SECRET: EffectKind.READS,
    Rule.SHELL: EffectKind.CONNECTS,
    Rule.SOCKET: EffectKind.CONNECTS,
    Rule.SUDO: EffectKind.MACHINE,
    Rule.TOOL: EffectKind.RUNS,
    Rule.UPLOAD: EffectKind.CONNECTS,
    Rule.WRITE: EffectKind.WRITES,
    Rule.ZSH: EffectKind.SHELL,
    Rule.ASK_EMPTY: EffectKind.MAY,
    Rule.ASK_FAILED: EffectKind.MAY,
    Rule.ASK_HIDDEN: EffectKind.RUNS,
    Rule.ASK_TARMAC: EffectKind.RUNS,
    Rule.ASK_TROUBLE: EffectKind.MAY,
    Rule.ASK_UNKNOWN: EffectKind.RUNS,
    Rule.ASK_UNPROVEN: EffectKind.MAY,
    Rule.ASK_UNREADABLE: EffectKind.MAY,
    Rule.ASK_WORDS: EffectKind.MAY,
    Rule.ASK_WRAPPERS: EffectKind.RUNS,
    Rule.FLOOR_DISK: EffectKind.MACHINE,
    Rule.FLOOR_MKFS: EffectKind.DELETES,
    Rule.FLOOR_ROOT: EffectKind.DELETES,
    Rule.FILE_CREDENTIAL: EffectKind.READS,
    Rule.ONLY_READS: EffectKind.READS,
    Rule.FILE_PROTECTED: EffectKind.WRITES,
    Rule.INPUT_SECRET: EffectKind.READS,
}


class Basis(Enum):
    """On what a decision rests."""

    PROVEN = "proven"  # it only reads
    EFFECT = "effect"  # what it would do, or what nobody knows of it
    FLOOR = "floor"
    USER_RULE = "user rule"
    GRANT = "grant"
    SETTING = "setting"


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySettings:
    """The switches of the policy; the floor has none."""

    auto_approve_safe_commands: bool = True  # what is proven read-only runs without asking
    auto_approve_read: bool = True  # files in the workspace, by tools; never hidden ones or credentials
    auto_approve_write: bool = False  # in the workspace; never protected files
    auto_approve_write_outside: bool = False
    only_reads: bool = False  # True: what would change something is denied, whoever allowed it
    sandboxed: bool = False  # True: a strict sandbox is around every command; then medium risk is not asked about
    ask_medium: bool = True  # False: a known command of low or medium risk runs without asking, in its terminal
    longest_command: int = 32_768  # characters; what is longer is asked about unread
    longest_allowed: int = 4_096  # characters of a line that runs without a question: a person could still read it
    most_parts: int = 50  # simple commands in one line
    deepest_nesting: int = 40  # of brackets, blocks and substitutions
    parse_timeout: float = 0.4  # seconds for the parser
    cache_size: int = 512  # parsed lines


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
    """One simple command of the line, and its own verdict."""

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


Awaiting = Literal["line", "secret", "keys", "unknown"]


@dataclass(frozen=True, slots=True)
class Execute:
    """Run a command line."""

    command: str
    _: KW_ONLY
    cwd: Path
    shell: str = "bash"  # the name or path of the shell that would read the line


@dataclass(frozen=True, slots=True)
class OpenTerminal:
    """Open a terminal that stays."""

    _: KW_ONLY
    cwd: Path
    shell: str = "bash"
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KillTerminal:
    """End a terminal and all that runs in it."""

    terminal: TerminalId
    _: KW_ONLY
    running: str | None = None  # the command that would die with it


@dataclass(frozen=True, slots=True)
class SendInput:
    """Type into a terminal where something runs."""

    text: str
    _: KW_ONLY
    foreground: str | None  # the program that would read it: "bash", "python3", "npm"; None: nobody knows
    cwd: Path  # where that program stands
    awaiting: Awaiting | None = None  # what it waits for, as the kernel says; None: it is not known to wait
    prompt: str = ""  # what it printed last, when that looks like a question
    approved: bool = False  # a person approved the command that now asks


@dataclass(frozen=True, slots=True)
class ReadFile:
    """Read a file with a tool, not with a command. `leads_to`: the file that will be opened, if that is known."""

    path: Path
    _: KW_ONLY
    leads_to: Path | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class WriteFile:
    """Make, change or delete a file with a tool; `new` None: as the disk says. `leads_to` as for ReadFile."""

    path: Path
    _: KW_ONLY
    new: bool | None = None
    deletes: bool = False
    leads_to: Path | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Connect:
    """Fetch from a host, or open its pages in a browser."""

    url: str
    _: KW_ONLY
    host: str  # with its port where that is not the usual one
    private: bool = False  # an address of this machine or of a private network


@dataclass(frozen=True, slots=True)
class UseServer:
    """Start an MCP server, or use one of its tools."""

    server: str
    _: KW_ONLY
    tool: str = ""  # "": only start it
    arguments: str = ""  # of the tool, as JSON; of a start, its command or address
    digest: str  # of what the server says about the tool, or of how it is started
    changed: bool = False  # that differs from what was used before
    allowed: bool = False  # the user's own file allows it


Action = Execute | OpenTerminal | KillTerminal | SendInput | ReadFile | WriteFile | Connect | UseServer
