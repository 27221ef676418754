"""Prove every command of a line in the order it runs, and make the plan: stages of literal words.

CommandLine.steps → plan() → Proofs(found, why, plan, trouble)

A loop over words is unrolled, once for each word. A condition becomes steps that skip others. Known variables
(those of the loops, PWD, the last status) are filled in. The rest is proven like words typed one by one. A second
reader must agree (agreement.py).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from tarmac.policy.parse.agreement import disagreement
from tarmac.policy.parse.command import CommandLine
from tarmac.policy.parse.control_flow import CommandPipeline, Condition, Course, Group, Loop
from tarmac.policy.parse.words import Simple
from tarmac.policy.paths.files import Files
from tarmac.policy.paths.places import Ground
from tarmac.policy.plan_confinement import asks_a_server, confine
from tarmac.policy.programs.expansion import looks_alike, names_of
from tarmac.policy.programs.program import Grammar
from tarmac.policy.programs.readonly import Prover
from tarmac.policy.verdict import STATUS, Enforcement, Plan, Proof, Stage, Step, Unproven, When

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


def plan(
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
