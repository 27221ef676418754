"""Say in plain words what a command would do, for the person who decides."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tarmac.policy.effects import Effect
from tarmac.policy.verdict import RISKS, Part

if TYPE_CHECKING:
    from tarmac.policy.judgement import Judged

MOST = 4  # parts told one by one


def reason_of(effect: Effect) -> str:
    """Why an effect is asked about."""
    return f"it {effect.does}" if effect.known else f"it can't be known: it {effect.does}"


def explain_part(judged: "Judged") -> str:
    """What one command does: the heavier half of its effects, the heaviest first."""
    if judged.proof is not None:
        return judged.proof.why
    effects = sorted(judged.effects, key=lambda effect: -RISKS.index(effect.risk))
    heaviest = RISKS.index(effects[0].risk)
    said = dict.fromkeys(e.does for e in effects if RISKS.index(e.risk) >= max(1, heaviest - 1)) or {
        effects[0].does: None
    }
    return "; ".join(list(said)[:3])


def explain_line(parts: Sequence[Part], extra: Sequence[str]) -> str:
    """What the whole line does."""
    said = list(dict.fromkeys([*extra, *(part.explanation for part in parts)]))
    if len(said) <= MOST:
        return ", then ".join(said)
    heavy = sorted(parts, key=lambda part: -RISKS.index(part.risk))
    first = list(dict.fromkeys([*extra, *(part.explanation for part in heavy)]))[: MOST - 1]
    return ", then ".join(first) + f", and {len(said) - len(first)} more things"
