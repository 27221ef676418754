"""PURE: the audit log of a task: who decided what, and why. It is folded from the events."""

from collections.abc import Iterable
from dataclasses import dataclass

from tarmac.models.messages import ToolUse
from tarmac.tasks.events import CallJudged, ModelSaid, QuestionAnswered, QuestionAsked, TaskEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One decision."""

    seq: int  # of the fact
    at: float
    who: str  # "policy", "grant", "rules", "auto-approval", "mode", "nobody to ask"; of an answer the door it came by
    decision: str  # allow, ask, deny; of an answer yes, no, message, object, skip
    what: str
    why: str
    risk: str = ""
    call: str = ""


def audit(events: Iterable[TaskEvent]) -> list[AuditEntry]:
    """All decisions, in their order."""
    tools: dict[str, str] = {}
    asked: dict[str, QuestionAsked] = {}
    found: list[AuditEntry] = []
    for seq, event in enumerate(events, 1):
        match event:
            case ModelSaid(parts=parts):
                tools |= {part.id: part.name for part in parts if isinstance(part, ToolUse)}
            case QuestionAsked(question=question):
                asked[question] = event
            case CallJudged(call=call, part=part, reason=reason, risk=risk):
                what = ": ".join(each for each in (tools.get(call, ""), part) if each) or call
                entry = AuditEntry(
                    seq=seq,
                    at=event.at,
                    who=event.by,
                    decision=event.decision,
                    what=what,
                    why=reason,
                    risk=risk,
                    call=call,
                )
                found.append(entry)
            case QuestionAnswered(question=question):
                found.append(_answer(seq, event, asked.get(question)))
    return found


def _answer(seq: int, answered: QuestionAnswered, asked: QuestionAsked | None) -> AuditEntry:
    why = [answered.text]
    if answered.edited is not None:
        why.insert(0, f"as: {answered.edited}")
    if answered.always:
        why.insert(0, f"always ({answered.always})")
    return AuditEntry(
        seq=seq,
        at=answered.at,
        who=answered.by or "a person",
        decision=answered.answer,
        what=f"{asked.ask}: {asked.text}" if asked else answered.question,
        why="; ".join(each for each in why if each),
        call=(asked.call if asked else None) or "",
    )
