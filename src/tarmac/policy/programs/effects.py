"""What a simple command would do, and how much that weighs: for all that isn't proven to only read.

peel(words)            → Peeled(inner words | a script to parse again | nothing that is known) | None: no wrapper
arguments(words)       → Arguments(options, operands, subcommand)
from_tables(found, …)  → adds the effects that the program's description has for these arguments

Effects come from the description of the program, and from what depends on places: removing, writing, secrets, disks.
`scripts` is shell text found inside (bash -c, eval): the caller parses it and judges it as part of the line.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from tarmac.policy.parse.words import Word, word_of
from tarmac.policy.programs.program import EffectRule, Trait, Wrapper, known
from tarmac.policy.verdict import RISKS, EffectKind, Risk, Rule

_NUMBERED = re.compile(r"([a-z]+)[-\d.]*")


@dataclass(frozen=True, slots=True)
class Peeled:
    """What is inside of a wrapper."""

    wrapper: Wrapper
    words: tuple[Word, ...] = ()  # the command inside
    script: str | None = None  # shell text inside
    hidden: bool = False  # there is something inside, but nobody knows what
    stdin: bool = False  # a shell without a script: it runs what it reads
    file: Word | None = None  # a shell with a script file
    certain: bool = True  # False: an option was not known, so the command may begin elsewhere
    assigns: tuple[str, ...] = ()  # names of variables it sets


def program_name(word: Word) -> str | None:
    """The name of a program, without its folder and version: /usr/bin/python3.11 is python."""
    if word.text is None or word.brace or word.home:
        return None
    name = os.path.basename(word.text.lstrip("\\")) or word.text
    match = _NUMBERED.fullmatch(name)
    return match[1] if match and Trait.VERSIONED in known(match[1]).traits else name


def peel(words: Sequence[Word]) -> Peeled | None:
    """What is inside of the outermost wrapper; None when the command is none."""
    if not words:
        return None
    name = program_name(words[0])
    if name is None:
        return None
    plain = [name, *(w.text if w.text is not None else "\0" for w in words[1:3])]
    for size in (3, 2, 1):
        if len(plain) >= size and (wrapper := known(" ".join(plain[:size])).runs):
            return _inside(wrapper, list(words[size:]))
    return None


def _inside(wrapper: Wrapper, rest: list[Word]) -> Peeled:
    if wrapper.multi:
        return Peeled(wrapper, words=tuple(rest), hidden=not rest)
    certain = True
    assigns: list[str] = []
    while rest:
        word = rest[0]
        text = word.shape
        if text == "--":
            rest.pop(0)
            break
        if wrapper.assigns and (match := re.match(r"[A-Za-z_]\w*(?==)", text)):
            assigns.append(match[0])
            rest.pop(0)
            continue
        if not (text.startswith("-") or (wrapper.shell and text.startswith("+"))) or text == "-":
            break
        rest.pop(0)
        code = _code(wrapper, text, rest)
        if code is not None:
            if wrapper.assigns:  # env -S: words, no shell text
                return Peeled(
                    wrapper, words=tuple(word_of(each) for each in (code.text or "").split()), hidden=not code.literal
                )
            return Peeled(wrapper, script=code.text if code.literal else None, hidden=not code.literal, certain=certain)
        name, equals, _ = text.partition("=")
        if equals:
            continue
        if name in wrapper.value:
            del rest[:1]
        elif re.fullmatch(r"-\w\w+", name) and name[:2] not in wrapper.value and f"-{name[-1]}" in wrapper.value:
            del rest[:1]  # bundled letters, the last of which takes a value: -iu root
    if wrapper.code and not wrapper.shell:  # su root -c 'x'
        for number, word in enumerate(rest):
            late = rest[number + 1 : number + 4]
            if word.shape.startswith("-") and (code := _code(wrapper, word.shape, late)) is not None:
                return Peeled(wrapper, script=code.text if code.literal else None, hidden=not code.literal)
    if wrapper.shell:
        first = rest[0] if rest else None
        if first is None or first.shape == "-":
            return Peeled(wrapper, stdin=True)
        return Peeled(wrapper, file=first)
    skipped, rest = rest[: wrapper.skip], rest[wrapper.skip :]
    if wrapper.assigns:
        while rest and (match := re.match(r"[A-Za-z_]\w*(?==)", rest[0].shape)):
            assigns.append(match[0])
            rest.pop(0)
    if rest and rest[0].shape == "--":
        rest.pop(0)
    if wrapper.script and rest:
        known = all(word.literal for word in rest)
        return Peeled(
            wrapper, script=" ".join(w.text or "" for w in rest) if known else None, hidden=not known, words=tuple(rest)
        )
    return Peeled(
        wrapper, words=tuple(rest), certain=certain and bool(skipped or not wrapper.skip), assigns=tuple(assigns)
    )


def _code(wrapper: Wrapper, text: str, rest: list[Word]) -> Word | None:
    """The value of an option like `bash -c`; bundled letters (-lc, -ec) too."""
    for option in wrapper.code:
        if text == option or (not option.startswith("--") and option[1:] in text and re.fullmatch(r"-[a-zA-Z]*", text)):
            while wrapper.shell and rest and rest[0].shape.startswith(("-", "+")) and rest[0].shape not in ("-", "--"):
                rest.pop(0)  # bash -c -x 'script'
            if rest and rest[0].shape == "--":
                rest.pop(0)
            return rest.pop(0) if rest else word_of("")
        if text.startswith(option + "=") and option.startswith("--"):
            return word_of(text[len(option) + 1 :])
    return None


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
    files: tuple[str, ...] = ()  # what it does that to: the same done to other files is told together

    @property
    def words(self) -> str:
        """All of it, for a person."""
        does = f"{self.does} {shown(self.files)}" if self.files else self.does
        return ", ".join((does + self.where, *self.how))


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
        files: tuple[str, ...] = (),
    ) -> None:
        self.effects.append(Effect(risk, rule, does, kind or rule.kind, deny, known, vague, where, files=files))

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
    subcommand: tuple[str, ...]  # the name, and the words after it that are not options

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
