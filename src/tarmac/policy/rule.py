"""What decided a verdict, and what kind of thing a command does: as values. decision.py turns them into words."""

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
}


class Basis(Enum):
    """On what a decision rests."""

    PROVEN = "proven"  # it only reads
    EFFECT = "effect"  # what it would do, or what nobody knows of it
    FLOOR = "floor"
    USER_RULE = "user rule"
    GRANT = "grant"
    SETTING = "setting"
