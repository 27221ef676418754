"""What a simple command would do, and how much that weighs: for all that isn't proven to only read.

Simple → assess() → Assessment(effects, scripts)

Effects come from the description of the program, and from what depends on places: removing, writing, secrets, disks.
`scripts` is shell text found inside (bash -c, eval): the caller parses it and judges it as part of the line.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from tarmac.policy.parse.words import Word
from tarmac.policy.programs.program import EffectRule, Trait, known
from tarmac.policy.programs.wrappers import program_name
from tarmac.policy.rule import EffectKind, Rule
from tarmac.policy.verdict import RISKS, Risk


@dataclass(frozen=True, slots=True)
class Effect:
    """One thing a command does."""

    risk: Risk
    rule: str  # a Rule, or the name of an entry of the tables
    does: str  # in plain words, for a person: nothing is decided by it
    kind: EffectKind
    deny: bool = False  # on the floor: refused without asking
    known: bool = True  # False: nobody knows what it does
    vague: bool = False  # not worth saying where something else is known
    where: str = ""  # ", in the workspace"
    how: tuple[str, ...] = ()  # by the wrappers around it: "as the administrator", "in a container"

    @property
    def words(self) -> str:
        """All of it, for a person."""
        return ", ".join((self.does + self.where, *self.how))


def effect_of(rule: Rule, risk: Risk, does: str, *, known: bool = True) -> Effect:
    """An effect of a line as a whole."""
    return Effect(risk, rule, does, rule.kind, known=known)


@dataclass(slots=True)
class Assessment:
    """All that is known of what a command would do."""

    effects: list[Effect] = field(default_factory=list)
    scripts: list[str] = field(default_factory=list)  # shell text inside

    def add(
        self,
        risk: Risk,
        rule: Rule,
        does: str,
        *,
        kind: EffectKind | None = None,
        deny: bool = False,
        known: bool = True,
        vague: bool = False,
        where: str = "",
    ) -> None:
        self.effects.append(Effect(risk, rule, does, kind or rule.kind, deny, known, vague, where))

    @property
    def protected(self) -> bool:
        """Whether a protected file was found that it may change."""
        return any(effect.rule == Rule.PROTECTED for effect in self.effects)

    @property
    def worst(self) -> Effect | None:
        """The effect that weighs most; among equals the first."""
        return max(self.effects, key=lambda e: (e.deny, RISKS.index(e.risk)), default=None)


@dataclass(frozen=True, slots=True)
class Arguments:
    """The words of a command, roughly sorted: options and operands, for tables that only raise the alarm."""

    name: str
    words: tuple[str, ...]  # shapes after the name
    options: tuple[str, ...]
    operands: tuple[str, ...]  # all others, and values of options
    subcommand: tuple[str, ...]  # the name, and the words after it that are no options

    def has(self, *options: str) -> bool:
        """Whether one of these options is there: bundled (-rf), with a value, or shortened (--rec)."""
        for given in self.options:
            for option in options:
                if given == option or given.startswith(option + "="):
                    return True
                if option.startswith("--"):
                    short = given.partition("=")[0]
                    if given.startswith("--") and len(short) >= 3 and option.startswith(short):
                        return True
                elif len(option) == 2 and not given.startswith("--") and option[1] in given[1:]:
                    return True
        return False


def arguments(words: Sequence[Word]) -> Arguments:
    """Sort the words of a command."""
    name = program_name(words[0]) or ""
    shapes = tuple(word.shape for word in words[1:])
    options: list[str] = []
    operands: list[str] = []
    sub = [name]
    takes = known(name).globals
    skip = ended = False
    for shape in shapes:
        if skip:
            skip = False
            operands.append(shape)
        elif shape == "--":
            ended = True
            operands.append(shape)
        elif not ended and shape.startswith("-") and len(shape) > 1:
            options.append(shape)
            skip = shape in takes and len(sub) == 1
            if "=" in shape:
                operands.append(shape.partition("=")[2])
            if len(sub) < 3 and len(shape) == 2:
                sub.append(shape)
                sub.pop()
        else:
            operands.append(shape)
            if len(sub) < 5:
                sub.append(shape)
    return Arguments(name, shapes, tuple(options), tuple(operands), tuple(sub))


def from_tables(assessment: Assessment, args: Arguments, *, vague: bool = False) -> bool:
    """Add what the tables know; whether they know the program at all. `vague`: more is known of it already."""
    best: EffectRule | None = None
    program = known(args.name)
    for rule in program.does:
        if not _matches(rule, args):
            continue
        if best is None or rule.instead or RISKS.index(rule.risk) > RISKS.index(best.risk) or _closer(rule, best):
            best = rule
    if best is None:
        return False
    if Trait.SHOWS_WHEN_ALONE in program.traits and not args.words:
        assessment.add("low", Rule.READ, "shows settings")
        return True
    operands = args.operands[len(best.run) - 1 + best.skip :]
    does = best.does if operands else re.sub(r": \{\w+\}$", "", best.does)
    does = (
        does.replace("{what}", shown(operands))
        .replace("{words}", shown([" ".join(operands)]))
        .replace("{sub}", " ".join(args.subcommand[1:2]))
    )
    vague = vague or best.vague
    assessment.effects.append(Effect(best.risk, f"effect.{'.'.join(best.run)}", does, best.kind, vague=vague))
    return True


def _closer(rule: EffectRule, best: EffectRule) -> bool:
    return rule.risk == best.risk and len(rule.run) > len(best.run)


def _matches(rule: EffectRule, args: Arguments) -> bool:
    size = len(rule.run)
    if args.subcommand[:size] != rule.run and (args.name, *args.words[: size - 1]) != rule.run:
        return False
    if not all(args.has(*group) for group in rule.options):
        return False
    return rule.operand is None or any(rule.operand.search(each) for each in (*args.operands, *args.options))


def shown(operands: Sequence[str]) -> str:
    """Operands for a person: a few, what is unknown as …"""
    names = [operand.replace("\0", "…") for operand in operands if operand not in ("", "--")]
    if not names:
        return "what it is given"
    text = ", ".join(name if len(name) <= 60 else name[:57] + "…" for name in names[:3])
    if not text.isprintable():
        text = "".join(c if c.isprintable() else "·" for c in text)
    return text if len(names) <= 3 else f"{text} and {len(names) - 3} more"


# Variables that decide what programs load, start or believe.
LOADING_VARIABLES = re.compile(r"^(LD_\w+|DYLD_\w+|BASH_ENV|ENV|PROMPT_COMMAND|GCONV_PATH|BASH_FUNC.*)$")
TELLING_VARIABLES = re.compile(
    r"""^(LD_\w+|DYLD_\w+|PATH|IFS|ENV|BASH_ENV|BASH_FUNC.*|PROMPT_COMMAND|PS[0-4]|SHELLOPTS|BASHOPTS|ZDOTDIR|HOME|SHELL
    |(GIT|MAN|SYSTEMD_|GH_|AWS_|BAT_|DELTA_|PSQL_|KUBECTL_)?_?PAGER|LESS\w*|MAN\w+|EDITOR|VISUAL|BROWSER|GIT_\w+|SSH_ASKPASS\w*|SUDO_ASKPASS
    |PYTHON\w+|PERL5?\w*|RUBY\w*|NODE_\w+|NPM_\w+|npm_\w+|JAVA_TOOL_OPTIONS|_JAVA_OPTIONS|JDK_JAVA_OPTIONS|GOFLAGS|GOROOT|RUSTC\w*|RUSTFLAGS
    |CARGO_\w+|CC|CXX|LD|MAKEFLAGS|MAKEFILES|RIPGREP_CONFIG_PATH|GREP_\w+|XDG_\w+|TERMINFO\w*|TERMCAP|HISTFILE|PIP_\w+|DOCKER_\w+
    |KUBECONFIG|https?_proxy|HTTPS?_PROXY|ALL_PROXY|GCONV_PATH|NLSPATH|LOCPATH|TAR_OPTIONS|TMPDIR|RSYNC_\w+|CVS_RSH|LV2_PATH|GEM_\w+
    |BUNDLE_\w+|PHP\w*|LUA\w*|AWKPATH|AWKLIBPATH|GAWK\w*|SYSTEMD_\w+|OPENSSL_\w+|SSL_\w+|CURL_\w+|WGETRC|INPUTRC|EXINIT|VIMINIT|FZF_\w+
    |_JAVA_\w+|MAVEN_\w+|GRADLE_\w+|DEBUGINFOD\w*|AG_\w+|ACK\w*|BASH\w+|FPATH|CDPATH|KRB5\w+|PROMPT|TARMAC\w*)$""",
    re.VERBOSE,
)
