"""What decides a verdict, as values: kinds of effects, rules, what they rest on, and settings. Words: decision.py."""

from dataclasses import dataclass
from enum import Enum, StrEnum


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
    longest_allowed: int = 4_096  # characters of a line that is allowed by itself: a person could still read it
    most_parts: int = 50  # simple commands in one line
    deepest_nesting: int = 40  # of brackets, blocks and substitutions
    parse_timeout: float = 0.4  # seconds for the parser
    cache_size: int = 512  # parsed lines
