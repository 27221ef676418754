"""Decide about a line: always denied > always asked > the user's longest match > built-in allow.

Whole (every part of the line, and of the text inside, judged) → Scales.weigh() → Verdict
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from tarmac.events import TaskId
from tarmac.policy.grants import PrefixRules, fits, refusal, suggest
from tarmac.policy.judgement import ASK_ALWAYS, PERSONAL, JudgedCommand, Judgement
from tarmac.policy.parse.words import Simple
from tarmac.policy.programs.effects import Effect
from tarmac.policy.verdict import (
    FAR_REACHING,
    RISKS,
    Basis,
    Decision,
    EffectKind,
    Execute,
    Part,
    PolicySettings,
    Proof,
    Risk,
    Rule,
    SuggestedGrant,
    Verdict,
    worst,
)

MOST = 4  # parts that are explained one by one


def reason_of(effect: Effect) -> str:
    """Why an effect is asked about."""
    return f"it {effect.words}" if effect.known else f"it can't be known: it {effect.words}"


def explain_part(judged: JudgedCommand) -> str:
    """What one command does: its most dangerous effects, the worst first."""
    if judged.proof is not None:
        return judged.proof.why
    effects = sorted(judged.effects, key=lambda effect: -RISKS.index(effect.risk))
    heaviest = RISKS.index(effects[0].risk)
    heavy = [effect for effect in effects if RISKS.index(effect.risk) >= max(1, heaviest - 1)] or effects[:1]
    heavy = [effect for effect in heavy if not effect.vague] or heavy[:1]
    told = list({effect.words: effect for effect in _together(heavy)}.values())[:3]
    last = told[-1]  # `…, as the administrator; …, as the administrator`: how it is done is said once, at the end
    said = [replace(each, how=()) if each is not last and each.how == last.how else each for each in told]
    return "; ".join(each.words for each in said)


def _together(effects: Sequence[Effect]) -> list[Effect]:
    """Effects that differ only in their files, as one."""
    files: dict[Effect, dict[str, None]] = {}
    for each in effects:
        files.setdefault(replace(each, files=()), {}).update(dict.fromkeys(each.files))
    return [replace(each, files=tuple(names)) for each, names in files.items()]


def explain_line(parts: Sequence[Part], extra: Sequence[str]) -> str:
    """What the whole line does."""
    whole = f"{'; '.join(dict.fromkeys(extra))}: " if extra else ""
    said = list(dict.fromkeys(part.explanation for part in parts))
    if len(said) > 1:
        said = [each for each in said if each != "reads"] or said
    if len(said) <= MOST:
        return whole + ", then ".join(said)
    heavy = sorted(parts, key=lambda part: -RISKS.index(part.risk))
    first = list(dict.fromkeys(part.explanation for part in heavy))[: MOST - 1]
    return f"{whole}{', then '.join(first)}, and {len(said) - len(first)} more things"


class Grants(Protocol):
    """What the person allowed before. The policy asks; it never stores."""

    def covers_line(self, line: str, *, cwd: Path, workspace: Path, task: TaskId | None) -> str | None:
        """The id of a grant for exactly this line, in this place."""

    def covers_words(self, words: tuple[str, ...], *, workspace: Path, task: TaskId | None) -> str | None:
        """The id of a grant for a prefix of these words."""

    def covers_use(self, words: tuple[str, ...], *, workspace: Path, task: TaskId | None) -> str | None:
        """The id of a grant for exactly this host or tool."""

    @property
    def trouble(self) -> str | None:
        """Why the stored grants can't be trusted: then everything asks."""


_ASKED_FOR = "you want to be asked about every command"
# What even a grant for exactly this line does not allow.
_NOT_BY_LINE = ASK_ALWAYS - {Rule.SECRET, Rule.ENVIRONMENT, Rule.IGNORED, Rule.PROTECTED}


@dataclass(slots=True)
class Whole:
    """The judgement of a line and of all text inside it."""

    parts: list[JudgedCommand] = field(default_factory=list)
    extra: list[Effect] = field(default_factory=list)
    top: Judgement | None = None
    plain: bool = False  # nothing but simple commands, one after the other


@dataclass(frozen=True, slots=True)
class _Decided:
    """The decision about one command, and why."""

    decision: Decision
    risk: Risk
    basis: Basis
    rule: str
    reason: str
    grant: str = ""


def _denied_by(words: tuple[str, ...], risk: Risk) -> _Decided:
    return _Decided("deny", risk, Basis.USER_RULE, "user.deny", f"`{' '.join(words)}` is in the denied commands list")


def _asked_by(words: tuple[str, ...], risk: Risk) -> _Decided:
    reason = f"you want to be asked about `{' '.join(words)}`"
    return _Decided("ask", risk, Basis.USER_RULE, Rule.USER_ASK, reason)


def _far_reaching(judged: JudgedCommand) -> bool:
    """Whether it leaves the workspace or the machine, or sets up what runs later."""
    return judged.away or any(each.kind in FAR_REACHING and each.risk != "low" for each in judged.effects)


@dataclass(frozen=True, slots=True)
class Scales:
    """A person's settings, rules and grants: what a line is weighed with."""

    settings: PolicySettings
    rules: PrefixRules
    grants: Grants | None

    def weigh(self, action: Execute, whole: Whole, workspace: Path, task: TaskId | None) -> Verdict:
        top = whole.top
        assert top is not None
        whole = replace(whole, parts=[self._raised(judged) for judged in whole.parts]) if self.rules.risks else whole
        if not whole.parts:
            return Verdict(
                decision="ask",
                risk="low",
                reason="there is no command in it",
                part=action.command[:200],
                explanation="does nothing",
                rule=Rule.ASK_EMPTY,
            )
        trouble = self.rules.trouble or (self.grants.trouble if self.grants else None)
        planned = top.plan is not None and self.settings.auto_approve_safe_commands
        decided = [self._part(judged, workspace, task) for judged in whole.parts]
        risk: Risk = worst(*(part.risk for part in decided), *(effect.risk for effect in whole.extra))
        heaviest = max(
            decided,
            key=lambda p: (p.decision == "deny", RISKS.index(p.risk), p.decision == "ask", p.rule != Rule.ASK_UNPROVEN),
        )
        decision: Decision = "ask"
        reason, rule, part, basis = heaviest.reason, heaviest.rule, heaviest.text, heaviest.basis
        covered = ""  # by the grant of this id
        asked = next((each.reason for each in decided if each.rule == Rule.USER_ASK), "")  # overrides any allow
        if any(each.decision == "deny" for each in decided):
            decision = "deny"
        elif extra := max(whole.extra, key=lambda e: RISKS.index(e.risk), default=None):
            if RISKS.index(extra.risk) >= RISKS.index(heaviest.risk):
                reason, rule, part, basis = reason_of(extra), extra.rule, action.command[:200], Basis.EFFECT
        elif trouble:
            reason, rule = f"everything is asked about: {trouble}", Rule.ASK_TROUBLE
        elif all(each.decision == "allow" for each in decided):
            own = [each for each in decided if each.basis is not Basis.PROVEN]
            if not own and planned:
                decision = "allow"
            elif own and whole.plain:
                decision = "allow"
                reason, rule, part, basis = own[0].reason, own[0].rule, own[0].text, own[0].basis
                covered = own[0].grant
            elif own:
                reason = "what you allowed covers single commands, and this line does more than run them one by one"
                rule, part = Rule.ASK_UNPROVEN, action.command[:200]
            else:
                reason, rule = _why_not(top, self.settings), Rule.ASK_UNPROVEN
        grant = (
            self._grant_for_line(action, decided, whole, workspace, task)
            if decision == "ask" and not trouble and not asked
            else None
        )
        if grant is not None:
            decision, rule, basis, reason = "allow", f"grant.{grant}", Basis.GRANT, "you allowed exactly this line"
        return Verdict(
            decision=decision,
            risk=risk,
            reason=reason,
            part=part,
            explanation=explain_line(decided, [effect.words for effect in whole.extra]),
            rule=rule,
            plan=top.plan if decision == "allow" and basis is Basis.PROVEN and planned else None,
            basis=basis,
            grant=grant or covered,
            parts=tuple(decided),
            suggested_grants=_offers(action, whole, decided, risk) if decision == "ask" and not asked else (),
            personal=(trouble or _personal(whole) or asked) if decision == "ask" else "",
        )

    def _raised(self, judged: JudgedCommand) -> JudgedCommand:
        """The command, with the risk that the person's rules give it, or one inside it, if that is higher."""
        found = [risk for rule, risk in self.rules.risks for words in judged.reaches if _begins(words, rule)]
        risk = max(found, key=RISKS.index, default=judged.risk)
        if RISKS.index(risk) <= RISKS.index(judged.risk):
            return judged
        own = Effect(risk, Rule.USER_RISK, f"{explain_part(judged)} (of {risk} risk by your rules)", EffectKind.RUNS)
        said = (replace(each, vague=True) for each in judged.effects)  # `own` says it already
        return replace(judged, proof=None, unproven=own.does, effects=(*said, own))

    def _part(self, judged: JudgedCommand, workspace: Path, task: TaskId | None) -> Part:
        """Decide about one command of the line."""
        words = judged.simple.literal_words()
        decided = self._proven(judged, judged.proof) if judged.proof else self._decide(judged, words, workspace, task)
        return Part(
            judged.simple.text,
            words,
            decision=decided.decision,
            risk=decided.risk,
            reason=decided.reason,
            explanation=explain_part(judged),
            rule=decided.rule,
            basis=decided.basis,
            grant=decided.grant,
            program=judged.proof.program if judged.proof else "",
        )

    def _proven(self, judged: JudgedCommand, proof: Proof) -> "_Decided":
        if deny := self._denied(judged):
            return _denied_by(deny, "low")
        if ask := self._asked(judged):
            return _asked_by(ask, "low")
        if not self.settings.auto_approve_safe_commands:
            return _Decided("ask", "low", Basis.PROVEN, proof.rule, _ASKED_FOR)
        return _Decided("allow", "low", Basis.PROVEN, proof.rule, f"it {proof.why}")

    def _decide(
        self, judged: JudgedCommand, words: tuple[str, ...] | None, workspace: Path, task: TaskId | None
    ) -> "_Decided":
        effect = judged.worst
        if effect.deny:
            return _Decided("deny", effect.risk, Basis.FLOOR, effect.rule, f"never allowed: it {effect.words}")
        deny = self._denied(judged)
        always = _always_asked(judged)
        allow = () if always else self._allowed(judged, words)
        if deny and len(deny) >= len(allow):
            return _denied_by(deny, effect.risk)
        if (ask := self._asked(judged)) and len(ask) >= len(allow):
            return _asked_by(ask, effect.risk)
        if allow:
            return _Decided("allow", effect.risk, Basis.USER_RULE, "user.allow", f"you allowed `{' '.join(allow)}`")
        if not always and words and self.grants and _covered_by_prefix(judged):
            grant = self.grants.covers_words(words, workspace=workspace, task=task)
            if grant is not None:
                reason = "you allowed this before"
                return _Decided("allow", effect.risk, Basis.GRANT, f"grant.{grant}", reason, grant)
        if self.settings.sandboxed and not always and effect.risk in ("low", "medium"):
            reason = "it runs in the sandbox, which keeps it to the workspace"
            return _Decided("allow", effect.risk, Basis.SETTING, "settings.sandbox", reason)
        quiet = not self.settings.ask_medium and effect.risk in ("low", "medium")
        if quiet and not always and all(e.known for e in judged.effects):
            if not _far_reaching(judged):
                reason = "medium risk is not asked about"
                return _Decided("allow", effect.risk, Basis.SETTING, "settings.ask_medium", reason)
            reason = f"{reason_of(effect)}; that reaches beyond the workspace, or lasts"
            return _Decided("ask", "high", Basis.EFFECT, effect.rule, reason)
        unsure = effect.kind is EffectKind.MAY and effect.rule not in ASK_ALWAYS
        if unsure or (effect.rule == Rule.READ and effect.risk == "low"):
            reason = judged.unproven or reason_of(effect)
            return _Decided("ask", effect.risk, Basis.EFFECT, Rule.ASK_UNPROVEN, reason)
        return _Decided("ask", effect.risk, Basis.EFFECT, effect.rule, reason_of(effect))

    def _denied(self, judged: JudgedCommand) -> tuple[str, ...]:
        """The longest deny rule that names this command, or one inside of it."""
        found = [rule for rule in self.rules.deny for words in judged.reaches if _begins(words, rule)]
        return max(found, key=len, default=())

    def _asked(self, judged: JudgedCommand) -> tuple[str, ...]:
        """The longest rule by which the person is always asked about this command, or one inside of it."""
        found = [rule for rule in self.rules.ask for words in judged.reaches if _begins(words, rule)]
        return max(found, key=len, default=())

    def _allowed(self, judged: JudgedCommand, words: tuple[str, ...] | None) -> tuple[str, ...]:
        """The longest allow rule for exactly these words: no variables, no files written, nothing in front."""
        if words is None or _more_than_words(judged.simple):
            return ()
        if words in self.rules.allow and not refusal(words):
            return words  # every word of it: as good as the exact line
        if not _covered_by_prefix(judged):
            return ()
        found = [rule for rule in self.rules.allow if not refusal(rule) and fits(rule, words)]
        return max(found, key=len, default=())

    def _grant_for_line(
        self, action: Execute, decided: Sequence[Part], whole: Whole, workspace: Path, task: TaskId | None
    ) -> str | None:
        if self.grants is None or "critical" in (
            *(part.risk for part in decided),
            *(effect.risk for effect in whole.extra),
        ):
            return None
        if any(effect.rule in _NOT_BY_LINE for judged in whole.parts for effect in judged.effects):
            return None
        return self.grants.covers_line(action.command, cwd=action.cwd, workspace=workspace, task=task)


def _personal(whole: Whole) -> str:
    """Why only a person may allow it; empty when a setting may."""
    effects = [effect for judged in whole.parts if not judged.proof for effect in judged.effects]
    found = [each for each in (*effects, *whole.extra) if each.risk == "critical" or each.rule in PERSONAL]
    return reason_of(found[0]) if found else ""


def _why_not(top: Judgement, settings: PolicySettings) -> str:
    if not settings.auto_approve_safe_commands:
        return _ASKED_FOR
    return top.obstacles[0].words if top.obstacles else "it can't be run without a shell"


def _always_asked(judged: JudgedCommand) -> bool:
    return judged.risk == "critical" or any(each.rule in ASK_ALWAYS for each in judged.effects)


def _offers(action: Execute, whole: Whole, decided: Sequence[Part], risk: Risk) -> tuple[SuggestedGrant, ...]:
    asked = [judged for judged, part in zip(whole.parts, decided, strict=True) if part.decision == "ask"]
    by_prefix = all(_covered_by_prefix(each) and not _always_asked(each) for each in asked)
    return suggest(action.command, decided, risk=risk, by_prefix=by_prefix)


def _covered_by_prefix(judged: JudgedCommand) -> bool:
    """Whether a prefix may cover it: up to medium, plain words, nothing that leads out of the workspace."""
    return judged.risk in ("low", "medium") and not judged.away and not _more_than_words(judged.simple)


def _more_than_words(simple: Simple) -> bool:
    """Whether a command is more than its words: variables in front, files written or read by redirection."""
    harmless = ("/dev/null", "1", "2", "-")
    return bool(simple.assigns) or any(r.target is None or r.target.text not in harmless for r in simple.redirects)


def _begins(words: tuple[str, ...], rule: tuple[str, ...]) -> bool:
    first = words[0].rpartition("/")[2] or words[0]
    return bool(rule) and (words[: len(rule)] == rule or (first, *words[1 : len(rule)]) == rule)
