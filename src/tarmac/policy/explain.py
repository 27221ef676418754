"""Say in plain words what a command would do, for the person who decides."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tarmac.policy.programs.effects import Effect
from tarmac.policy.verdict import RISKS, Part

if TYPE_CHECKING:
    from tarmac.policy.judgement import Judged

MOST = 4  # parts told one by one


def reason_of(effect: Effect) -> str:
    """Why an effect is asked about."""
    return f"it {effect.words}" if effect.known else f"it can't be known: it {effect.words}"


def explain_part(judged: "Judged") -> str:
    """What one command does: the heavier half of its effects, the heaviest first."""
    if judged.proof is not None:
        return judged.proof.why
    effects = sorted(judged.effects, key=lambda effect: -RISKS.index(effect.risk))
    heaviest = RISKS.index(effects[0].risk)
    heavy = [effect for effect in effects if RISKS.index(effect.risk) >= max(1, heaviest - 1)] or effects[:1]
    heavy = [effect for effect in heavy if not effect.vague] or heavy[:1]
    told = list({effect.words: effect for effect in heavy}.values())[:3]
    last = told[-1]  # `…, as the administrator; …, as the administrator`: how it is done is said at the end, once
    said = [replace(each, how=()) if each is not last and each.how == last.how else each for each in told]
    return "; ".join(each.words for each in said)


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
