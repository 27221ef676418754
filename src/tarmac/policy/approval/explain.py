"""Approvals in words, for agents and people. Nothing reads these words back."""

from collections.abc import Iterable

from tarmac.policy.actions import Action, Execute
from tarmac.policy.approval.answer import Answer, AnswerKind
from tarmac.policy.approval.authority import Authority, authority
from tarmac.policy.approval.request import subject
from tarmac.policy.verdict import Verdict
from tarmac.policy.visible import shortened


def resolved_text(answer: Answer, waited: float | None) -> str:
    """What the agent is told of an answer; `waited`: the seconds that a question waits for one."""
    said = f" They say: {answer.text}" if answer.text else ""
    match answer.kind:
        case AnswerKind.YES if answer.edited is not None:
            return f"The person changed the command to: {answer.edited}{said}"
        case AnswerKind.YES | AnswerKind.PER_FILE:
            return f"The person approved this.{said}"
        case AnswerKind.NO:
            return f"The person denied this, and it was not done.{said}"
        case AnswerKind.MESSAGE:
            return f"The person did not approve this, and it was not done, but wrote: {answer.text or '(a picture)'}"
        case AnswerKind.SKIP:
            time = "" if waited is None else f" in {waited:g} s"
            return f"Nobody answered{time}, so this was not done."


def denied_text(action: Action, verdict: Verdict) -> str:
    """What the agent is told of something that was denied without asking."""
    if authority(verdict) is Authority.RULES:
        return f"{named(action)} is in the denied commands list"
    return f"{named(action)} is not allowed, and was not done: {verdict.reason}"


def no_person_text(verdicts: Iterable[Verdict]) -> str:
    """What the agent is told when a person's yes is needed and nobody can be asked."""
    reasons = "; ".join(dict.fromkeys(each.reason for each in verdicts))
    return f"Nobody is here to approve this, so it was not done: {reasons}. Find another way, or go on without it."


def named(action: Action, kind: str | None = None) -> str:
    """An action by its kind and subject: "Command 'make'". `kind` replaces the first word."""
    kind = kind or ("Command" if isinstance(action, Execute) else type(action).__name__)
    return f"{kind} '{shortened(subject(action)[0], 200)}'"
