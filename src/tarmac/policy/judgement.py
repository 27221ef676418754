"""Judge a line that has been read: each simple command, then the whole by its worst part.

CommandLine → judge_line() → Judgement(parts, plan, obstacles, scripts to read)

The plan says how to run, without a shell, what is proven to only read. Here is no waiting and no process: only rules,
names, and a look at the files that are named.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from tarmac.policy.budget import Spent
from tarmac.policy.files import Files
from tarmac.policy.parse.agreement import disagreement
from tarmac.policy.parse.command import (
    CommandLine,
    CommandPipeline,
    Condition,
    Course,
    Group,
    LineObstacle,
    Loop,
    ObstacleKind,
)
from tarmac.policy.parse.words import Simple
from tarmac.policy.places import LONGEST_NAME, Ground
from tarmac.policy.plan_confinement import asks_a_server, confine
from tarmac.policy.programs.effects import Assessment, Effect, effect_of, peel
from tarmac.policy.programs.program import Grammar, Trait, known
from tarmac.policy.programs.readonly import Prover, looks_alike, names_of
from tarmac.policy.programs.risk import MOST_WORDS, assess, fetched_files, sends
from tarmac.policy.programs.specials import At
from tarmac.policy.verdict import (
    RISKS,
    STATUS,
    EffectKind,
    Enforcement,
    Plan,
    Proof,
    Risk,
    Rule,
    Stage,
    Step,
    Unproven,
    When,
)

MOST_STEPS = 200  # of a plan; a loop is unrolled


@dataclass(slots=True)
class Proofs:
    """What was proven of each simple command, by its number, and the plan if all of them were."""

    found: dict[int, Proof] = field(default_factory=dict)
    why: dict[int, str] = field(default_factory=dict)
    tried: dict[int, Ground] = field(default_factory=dict)  # where a command, as it is written, was not proven
    plan: Plan | None = None
    trouble: str = ""


_NO_STEP = Step((), cwd=Path("/"))


class _NoPlan(Exception):
    """Raised when it is unknown where or how often the rest would run."""


def make_plan(
    line: CommandLine,
    ground: Ground,
    *,
    files: Files,
    extra: Callable[[str], Grammar | None],
    comments: bool,
    variables: Mapping[str, str],
    enforcement: Enforcement = Enforcement.LANDLOCK,
) -> Proofs:
    """Prove each stage in order, and make the plan. At zsh's prompt, a `#` does not begin a comment."""
    steps = line.steps or ()
    trouble = disagreement(line.text, steps, comments=comments)
    places = {id(simple): number for number, simple in enumerate(line.simples)}
    planner = _Planner(files, extra, places, ground, complete=not trouble, variables=variables)
    found = planner.proofs
    found.trouble = trouble
    try:
        planner.walk(steps)
    except _NoPlan as error:
        planner.complete = False
        found.trouble = found.trouble or str(error)
    if planner.complete:
        try:
            rules = confine(planner.steps, ground, files, enforcement) if planner.steps else None
        except Unproven as error:
            found.trouble = error.reason
        else:
            found.plan = Plan(Path(planner.here.cwd), tuple(planner.steps), confinement=rules)
    elif trouble:
        found.found.clear()
    return found


@dataclass(slots=True)
class _Planner:
    files: Files
    extra: Callable[[str], Grammar | None]
    places: Mapping[int, int]
    here: Ground
    complete: bool
    variables: Mapping[str, str]  # of the person's environment, without secrets
    proofs: Proofs = field(default_factory=Proofs)
    steps: list[Step] = field(default_factory=list)
    values: dict[str, str] = field(default_factory=dict)  # of the loops' variables
    moved: When | None = None  # when the `cd` just before was to run; a `cd` is not a step
    conditional: bool = False  # whether the current commands run at all depends on something

    def walk(self, courses: Sequence[Course]) -> None:
        for course in courses:
            match course:
                case CommandPipeline():
                    self._pipeline(course)
                case Group():
                    self._depending(course.when, partial(self._group, course))
                case Condition():
                    self._depending(course.when, partial(self._condition, course))
                case Loop():
                    self._depending(course.when, partial(self._loop, course))

    # what a step depends on

    def _when(self, when: When) -> When:
        """The condition, relative to the last step. A `cd` is not a step, and is assumed to work."""
        moved, self.moved = self.moved, None
        if moved is not None and when == "failure":
            raise Unproven("it depends on whether `cd` works")
        return "always" if not self.steps or (moved == "always" and when == "success") else when

    def _depending(self, when: When, walk: Callable[[], None]) -> None:
        """Walk a block that runs or not, by the status of what is before it."""
        try:
            when = self._when(when)
        except Unproven as error:
            raise _NoPlan(error.reason) from error
        if when == "always":
            walk()
            return
        junction = self._junction()
        before, self.conditional = self.conditional, True
        walk()
        self.conditional = before
        self._leave_out(junction, success=when == "failure", failure=when == "success")

    def _junction(self) -> int:
        """Add a step that runs nothing, and skips others by the status."""
        self._add(())
        return len(self.steps) - 1

    def _leave_out(self, junction: int, *, success: bool, failure: bool) -> None:
        """Let the junction skip all steps since then, on success or failure."""
        count = len(self.steps) - junction - 1
        self.steps[junction] = replace(self.steps[junction], skips=(count * success, count * failure))

    def _add(self, stages: Sequence[Stage], *, when: When = "always", negated: bool = False) -> None:
        if len(self.steps) >= MOST_STEPS:
            raise _NoPlan(f"it would be more than {MOST_STEPS} commands, written out")
        if self.complete:
            self.steps.append(Step(tuple(stages), cwd=Path(self.here.cwd), when=when, negated=negated))
        else:
            self.steps.append(_NO_STEP)  # there will be no plan: only the number of steps counts

    # blocks

    def _group(self, group: Group) -> None:
        if not group.alone:
            self.walk(group.body)
            return
        here, conditional, self.conditional = self.here, self.conditional, False
        self.walk(group.body)
        self.here, self.conditional, self.moved = here, conditional, None

    def _condition(self, condition: Condition) -> None:
        count = len(self.steps)
        before, self.conditional = self.conditional, True
        self.walk(condition.test)
        if self.moved is not None or len(self.steps) == count:
            raise _NoPlan("it depends on whether `cd` works")
        junction = self._junction()
        self.walk(condition.then)
        self.moved = None
        end = self._junction()
        self._leave_out(junction, success=False, failure=True)
        if isinstance(condition.otherwise, Condition):
            self._condition(condition.otherwise)
        elif condition.otherwise is not None:
            self.walk(condition.otherwise)
        else:
            self._add((Stage(("true",)),))  # a condition that is not met is not a failure
        self.moved = None
        self._leave_out(end, success=True, failure=True)
        self.conditional = before

    def _loop(self, loop: Loop) -> None:
        prover = Prover(self.files, self.here, self.extra)
        try:
            values = [each for item in loop.items for each in names_of(item.filled(self._known()), prover.ground)]
        except Unproven as error:
            raise _NoPlan(error.reason) from error
        if loop.name in self.values:  # nested: whether it changes the outer one's variable is known only when it runs
            raise _NoPlan(f"two loops, one in the other, use the variable {loop.name}")
        for value in values:
            self.values[loop.name] = value
            self.walk(loop.body)
            if not self.complete:
                return
        self.values.pop(loop.name, None)  # it is unknown whether the loop ran at all

    # single commands

    def _pipeline(self, pipeline: CommandPipeline) -> None:
        moving = _move(pipeline)
        if moving is not None:
            self._move_to(moving, pipeline)
            return
        stages: list[Stage] = []
        prover = Prover(self.files, self.here, self.extra)
        known = self._known()
        try:
            when = self._when(pipeline.when)
        except Unproven as error:
            self._unproven(pipeline.stages[0], error)
            when = "always"
        for simple, merged in zip(pipeline.stages, pipeline.merged, strict=True):
            filled = _filled(simple, known)
            try:
                proof = prover.prove(filled)
            except Unproven as error:
                self._unproven(simple, error)
                if filled is simple:
                    self.proofs.tried[self.places[id(simple)]] = self.here
                continue
            if not proof.alone and (asks := proof.connects or asks_a_server(proof.stage.words)):
                self._unproven(simple, Unproven(f"it asks {asks}, and what runs without a question has no network"))
                continue
            self.proofs.found[self.places[id(simple)]] = proof
            stage = replace(proof.stage, alone=True) if proof.alone else proof.stage
            if len(proof.before) == len(stages):
                stages = [replace(each, words=words) for each, words in zip(stages, proof.before, strict=True)]
            stages.append(replace(stage, stderr="out") if merged and stage.stderr == "err" else stage)
        self._add(stages, when=when, negated=pipeline.negated)

    def _unproven(self, simple: Simple, error: Unproven) -> None:
        number = self.places[id(simple)]
        self.proofs.why[number] = error.reason
        self.proofs.found.pop(number, None)  # it may have been proven in another pass of its loop
        self.complete = False

    def _move_to(self, simple: Simple, pipeline: CommandPipeline) -> None:
        number = self.places[id(simple)]
        try:
            if self.conditional:
                raise Unproven("a `cd` that depends on what went before")
            self.here = _directory(_filled(simple, self._known()), pipeline, self.here, self.files)
        except Unproven as error:
            self.proofs.why[number] = error.reason
            raise _NoPlan(error.reason) from error
        self.moved = pipeline.when if self.steps and self.moved != "always" else "always"
        self.proofs.found[number] = Proof(Stage(("cd",)), "read.cd", "moves to another directory")

    def _known(self) -> dict[str, str]:
        """The variables whose values are known here."""
        known = {**self.variables, **self.values, "PWD": self.here.cwd}
        if self.moved is not None:
            known["?"] = "0"
        elif self.steps:
            known["?"] = STATUS
        return known


def _filled(simple: Simple, known: Mapping[str, str]) -> Simple:
    """The command with the known variables filled in. Its name must be literal."""
    if all(word.text is not None for word in simple.words) and not simple.redirects and not simple.upstream:
        return simple
    certain = {name: value for name, value in known.items() if name != "?"}
    return replace(
        simple,
        words=(*simple.words[:1], *(word.filled(known) for word in simple.words[1:])),
        redirects=tuple(
            replace(each, target=each.target.filled(certain)) if each.target else each for each in simple.redirects
        ),
        upstream=tuple(_filled(replace(each, upstream=()), known) for each in simple.upstream),
    )


def _move(pipeline: CommandPipeline) -> Simple | None:
    """The `cd`, if it is the whole pipeline."""
    first = pipeline.stages[0]
    return first if len(pipeline.stages) == 1 and first.name == "cd" and first.words[0].plain else None


def _directory(simple: Simple, pipeline: CommandPipeline, here: Ground, files: Files) -> Ground:
    """Where a `cd` leads, when that is certain and in the workspace."""
    words = simple.literal_words()
    if words is None or len(words) != 2 or words[1] in ("-", "") or words[1].startswith("-") or simple.assigns:
        raise Unproven("where `cd` leads depends on the shell")
    if simple.redirects or pipeline.negated or pipeline.when == "failure" or STATUS in words[1]:
        raise Unproven("a `cd` that depends on what went before")
    if looks_alike(words[1]):
        raise Unproven("it holds letters that only look like others")
    there = here.moved(words[1])
    if not there.inside:
        raise Unproven("it leads out of the workspace")
    look = here.look(files, words[1])
    if look.trouble or look.own or look.ignored:
        raise Unproven(look.trouble or look.own or look.ignored)
    return there


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
            proofs = make_plan(
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
