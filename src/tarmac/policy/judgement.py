"""Judge a line that has been read: each simple command by itself, then the whole by its worst part.

CommandLine → judge_line() → Judgement(parts, plan, obstacles, scripts to read)

Here is no waiting and no process: only rules, names, and a look at the files that are named.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tarmac.policy import plan_builder
from tarmac.policy.budget import Spent
from tarmac.policy.parse.command import CommandLine, LineObstacle, ObstacleKind
from tarmac.policy.parse.words import Simple
from tarmac.policy.paths.files import Files
from tarmac.policy.paths.places import LONGEST_NAME, Ground
from tarmac.policy.plan_builder import Proofs
from tarmac.policy.plan_confinement import asks_a_server
from tarmac.policy.programs.effects import Assessment, Effect, effect_of
from tarmac.policy.programs.files_touched import At
from tarmac.policy.programs.program import Grammar, Trait, known
from tarmac.policy.programs.readonly import Prover
from tarmac.policy.programs.risk import MOST_WORDS, assess, fetched_files, sends
from tarmac.policy.programs.wrappers import peel
from tarmac.policy.rule import EffectKind, Rule
from tarmac.policy.verdict import RISKS, Enforcement, Plan, Proof, Risk, Unproven

# Never lifted by a rule or a grant of the user: always asked.
ASK_ALWAYS: frozenset[str] = frozenset(
    {
        Rule.SECRET,
        Rule.OWN,
        Rule.IGNORED,
        Rule.ENVIRONMENT,
        Rule.SOCKET,
        Rule.REMOTE,
        Rule.DISGUISED,
        Rule.LEAK,
        Rule.PROTECTED,
        Rule.ASK_HIDDEN,
        Rule.ASK_WRAPPERS,
        Rule.ASK_TARMAC,
        Rule.ASK_UNREADABLE,
    }
)
# What no auto-approval covers, whatever its level.
PERSONAL = ASK_ALWAYS - {Rule.ENVIRONMENT}
_RUNS = frozenset({EffectKind.RUNS, EffectKind.RUNS_PROJECT})
_NAME = re.compile(r"[A-Za-z_:.][\w:.]*$")

MOST_PROVEN = 50  # commands of a line that has no plan, for their risk


@dataclass(frozen=True, slots=True)
class JudgedCommand:
    """One simple command: proven to only read, or what it does."""

    simple: Simple
    proof: Proof | None
    unproven: str  # why it isn't proven
    effects: tuple[Effect, ...]
    reaches: tuple[tuple[str, ...], ...]  # its words, and those inside of its wrappers, as far as they are literal
    away: bool = False  # it names something outside of the workspace; for what runs code, temporary files too

    @property
    def worst(self) -> Effect:
        """The effect that weighs most; among equals one that is always asked about, else the first."""
        return max(self.effects, key=lambda e: (e.deny, RISKS.index(e.risk), e.rule in ASK_ALWAYS))

    @property
    def risk(self) -> Risk:
        return "low" if self.proof else self.worst.risk


@dataclass(slots=True)
class Judgement:
    """All parts of a line."""

    parts: list[JudgedCommand] = field(default_factory=list)
    obstacles: list[LineObstacle] = field(default_factory=list)
    scripts: list[tuple[str, Simple, Ground]] = field(default_factory=list)
    plan: Plan | None = None
    line_effects: list[Effect] = field(default_factory=list)  # of the line as a whole


@dataclass(frozen=True, slots=True)
class Court:
    """What is the same for every line: how to look at files, what the user's rules know."""

    files: Files
    extra: Callable[[str], Grammar | None]
    variables: Mapping[str, str]  # whose values are known, and nobody's secret
    enforcement: Enforcement = Enforcement.LANDLOCK

    def judge_line(self, line: CommandLine, ground: Ground, *, may_prove: bool, dialect: str = "bash") -> Judgement:
        """Every command of `line`, in order; `cd` moves the ones after it."""
        result = Judgement(obstacles=list(line.obstacles))
        if dialect == "zsh":
            result.obstacles += _zsh_obstacles(line)
        if dialect == "posix" and any(word.brace for simple in line.simples for word in simple.words):
            result.obstacles.append(LineObstacle(ObstacleKind.BRACES))
        if not may_prove:
            result.obstacles.append(LineObstacle(ObstacleKind.FOREIGN))
        elif self.files.elsewhere:
            may_prove = False
            result.obstacles.append(LineObstacle(ObstacleKind.ELSEWHERE))
        proofs = Proofs()
        if line.steps and not result.obstacles:
            proofs = plan_builder.plan(
                line,
                ground,
                files=self.files,
                extra=self.extra,
                comments=dialect != "zsh",
                variables=self.variables,
                enforcement=self.enforcement,
            )
        if proofs.plan is None:
            result.obstacles += line.hurdles
        if proofs.trouble:
            result.obstacles.append(LineObstacle(ObstacleKind.NO_PLAN, proofs.trouble))
        here: Ground = ground
        fetched: frozenset[str] = frozenset()
        for number, simple in enumerate(line.simples):
            at = At(here, self.files, fetched)
            proof = proofs.found.get(number)
            assessment = Assessment() if proof else assess(simple, at)
            apart = may_prove and not proof and not proofs.trouble and number < MOST_PROVEN
            reads = self._reads(simple, here) if apart and proofs.tried.get(number) != here else None
            if reads is not None:  # as a part it is harmless, though the whole can't be planned
                assessment = Assessment()
                if server := reads.connects or asks_a_server(reads.stage.words):
                    assessment.add("medium", Rule.CONNECT, f"{reads.why}; for that it asks {server}")
                else:
                    assessment.add("low", Rule.READ, reads.why)
            if not proof and not assessment.effects:
                assessment.add("low", Rule.READ, "reads, as far as is known")
            why = (
                ""
                if proof
                else proofs.why.get(number) or (result.obstacles[0].words if result.obstacles else "it is not known")
            )
            away = not proof and _away(simple, at, assessment)
            result.parts.append(JudgedCommand(simple, proof, why, tuple(assessment.effects), _reaches(simple), away))
            result.scripts += [(script, simple, here) for script in assessment.scripts]
            fetched |= fetched_files(simple, at)
            here = _after(simple, here)
        result.plan = proofs.plan
        _whole(result, line)
        return result

    def _reads(self, simple: Simple, here: Ground) -> Proof | None:
        """The proof that a command only reads, whatever is around it."""
        try:
            return Prover(self.files, here, self.extra).prove(simple)
        except Unproven:
            return None


def _after(simple: Simple, here: Ground) -> Ground:
    """Where the next command stands: after a `cd` it is elsewhere."""
    words = simple.literal_words()
    if (
        words
        and Trait.MOVES in known(words[0]).traits
        and len(words) == 2
        and not simple.nested
        and not words[1].startswith(("-", "~"))
    ):
        return here.moved(words[1])
    return here


def _reaches(simple: Simple) -> tuple[tuple[str, ...], ...]:
    """The words of a command and of what its wrappers hold: what a rule may name."""
    found = []
    words = simple.words
    for _ in range(8):
        literal = []
        for word in words:
            if not word.literal:
                break
            literal.append(word.text or "")
        if literal:
            found.append(tuple(literal))
        peeled = peel(words)
        if peeled is None or not peeled.words:
            break
        words = peeled.words
    return tuple(found)


def _away(simple: Simple, at: At, assessment: Assessment) -> bool:
    """Whether a word, or the value of an option, leads out of the workspace."""
    runs = any(effect.kind in _RUNS for effect in assessment.effects)
    try:
        for word in simple.words[1:MOST_WORDS]:
            text = word.shape.partition("=")[2] if word.shape.startswith("-") else word.shape
            if at.outside(text) and (runs or at.ground.locate(text).kind != "temporary"):
                return True
    except Spent:
        return True
    return False


def _zsh_obstacles(line: CommandLine) -> list[LineObstacle]:
    """zsh expands more than bash: `=cmd` is a path, `*(…)` runs code."""
    for simple in line.simples:
        for word in simple.words:
            own = word.source.startswith(("=", "~[")) or "${(" in word.source
            if own or (word.glob and ("(" in word.source or "<" in word.source)):
                return [LineObstacle(ObstacleKind.ZSH, word.source)]
    return []


def _is_bomb(text: str) -> bool:
    """`f() { f | f; }`: a function that starts itself twice."""
    before, *bodies = text.split("()")[:50]
    for body in bodies:
        name = _NAME.search(before.rstrip()[-LONGEST_NAME:])
        before = body
        if name and body.lstrip().startswith("{"):
            again = re.escape(name[0])
            if re.search(rf"{again}\s*\|\s*{again}", body.partition("}")[0]):
                return True
    return False


def _whole(result: Judgement, line: CommandLine) -> None:
    """What only shows when all parts are seen together."""
    if _is_bomb(line.text):
        result.line_effects.append(
            effect_of(Rule.BOMB, "critical", "starts itself again and again until the machine stops")
        )
    effects = [effect for part in result.parts for effect in part.effects]
    secret = any(effect.rule == Rule.SECRET for effect in effects)
    if secret and any(sends(part.simple) for part in result.parts):
        result.line_effects.append(
            effect_of(Rule.LEAK, "critical", "sends what looks like credentials to another machine")
        )
    kinds = {obstacle.kind for obstacle in result.obstacles}
    if ObstacleKind.FUNCTION in kinds:
        result.line_effects.append(effect_of(Rule.FUNCTION, "medium", "gives a word of the shell another meaning"))
    if ObstacleKind.ZSH in kinds:
        result.line_effects.append(effect_of(Rule.ZSH, "medium", "uses what only zsh expands, which may run something"))
    cloned = False
    for part in result.parts:
        rules = {effect.rule for effect in part.effects}
        if cloned and any(effect.kind is EffectKind.RUNS_PROJECT for effect in part.effects):
            result.line_effects.append(
                effect_of(Rule.REMOTE, "high", "runs code that it just fetched from another machine")
            )
        cloned |= "effect.git.clone" in rules
