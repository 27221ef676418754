"""What an answer to a request decides, and the approval that follows from a yes.

An approval is bound to the bytes that were judged, the directory, the task, the terminal and a file's new content. It
is used up by one run and expires. Time comes in from outside (a monotonic clock), so all of this is pure.
"""

import dataclasses
from dataclasses import dataclass
from enum import StrEnum

from tarmac.errors import BadRequest
from tarmac.events import TaskId, TerminalId
from tarmac.policy.actions import Action, Execute, ReadFile, WriteFile
from tarmac.policy.approval.answer import Answer, AnswerKind, GrantScope
from tarmac.policy.approval.explain import resolved_text
from tarmac.policy.approval.request import Request, digest
from tarmac.policy.verdict import SuggestedGrant

GOOD_FOR = 600.0  # seconds between a yes and its use


class Resolution(StrEnum):
    """How a request ended."""

    ALLOWED = "allowed"
    EDITED = "edited"  # the person wants another command, which is judged like any other
    DENIED = "denied"
    UNANSWERED = "unanswered"  # asked, and nobody answered in time
    NOBODY = "nobody"  # nobody can be asked
    PENDING = "pending"  # asked; the question stays open after the call
    CANCELLED = "cancelled"  # the turn ended before an answer came


@dataclass(slots=True)
class Approval:
    """A yes: good once, for what was shown, for a while."""

    digest: str
    expires: float
    used: bool = False

    def use(
        self,
        action: Action,
        *,
        task: TaskId | None,
        terminal: TerminalId | None = None,
        content: bytes | None = None,
        now: float,
    ) -> str:
        """Spend it on this action, just before it is done: why that is not allowed, or ""."""
        if self.used:
            return "this approval has been used"
        if now > self.expires:
            return "this approval is too old"
        if digest(action, task=task, terminal=terminal, content=content) != self.digest:
            return "this is not what was approved"
        self.used = True
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """What follows from an answer. With neither `approval` nor `anew` nothing is done."""

    resolution: Resolution
    request: Request
    answer: Answer
    approval: Approval | None = None
    anew: Execute | None = None  # the edited command, to be judged like any other
    grant: SuggestedGrant | None = None  # to be stored, with its scope
    scope: GrantScope = GrantScope.TASK

    @property
    def told(self) -> str:
        """What the agent is told."""
        waited = None if self.request.expires is None else self.request.expires - self.request.made
        if self.resolution is Resolution.UNANSWERED:
            return resolved_text(dataclasses.replace(self.answer, kind=AnswerKind.SKIP), waited)
        return resolved_text(self.answer, waited)


@dataclass(slots=True)
class Pending:
    """A request that waits for its answer. The first one counts."""

    request: Request
    action: Action
    answered: bool = False

    def answer(self, answer: Answer, *, now: float) -> Resolved:
        """BadRequest for an answer that makes no sense, which leaves the question open."""
        check(self.request, self.action, answer)
        if self.answered:
            raise BadRequest("this was answered before")
        self.answered = True
        if self.request.expires is not None and now > self.request.expires:
            return self._resolved(Resolution.UNANSWERED, answer)
        match answer.kind:
            case AnswerKind.YES if answer.edited is not None:
                assert isinstance(self.action, Execute)
                anew = dataclasses.replace(self.action, command=answer.edited)
                return self._resolved(Resolution.EDITED, answer, anew=anew)
            case AnswerKind.YES:
                yes = Approval(self.request.digest, now + GOOD_FOR)
                if answer.always is None:
                    return self._resolved(Resolution.ALLOWED, answer, approval=yes)
                grant, scope = self.request.always[answer.always.offer], answer.always.scope
                return self._resolved(Resolution.ALLOWED, answer, approval=yes, grant=grant, scope=scope)
            case AnswerKind.PER_FILE:
                path = self.action.path if isinstance(self.action, ReadFile | WriteFile) else None
                if not any(each.path == path and each.answer is AnswerKind.YES for each in answer.choices):
                    return self._resolved(Resolution.DENIED, dataclasses.replace(answer, kind=AnswerKind.NO))
                yes = Approval(self.request.digest, now + GOOD_FOR)
                return self._resolved(Resolution.ALLOWED, answer, approval=yes)
            case AnswerKind.SKIP:
                return self._resolved(Resolution.UNANSWERED, answer)
            case AnswerKind.NO | AnswerKind.MESSAGE:
                return self._resolved(Resolution.DENIED, answer)

    def _resolved(
        self,
        resolution: Resolution,
        answer: Answer,
        *,
        approval: Approval | None = None,
        anew: Execute | None = None,
        grant: SuggestedGrant | None = None,
        scope: GrantScope = GrantScope.TASK,
    ) -> Resolved:
        return Resolved(
            resolution=resolution,
            request=self.request,
            answer=answer,
            approval=approval,
            anew=anew,
            grant=grant,
            scope=scope,
        )


def check(request: Request, action: Action, answer: Answer) -> None:
    """BadRequest for an answer that this request can't have."""
    if answer.always is not None and not 0 <= answer.always.offer < len(request.always):
        raise BadRequest("this can't be allowed for good", hint="allow it once; Request.always lists what can be")
    if answer.edited is not None and not isinstance(action, Execute):
        raise BadRequest("only a command can be edited")
    if answer.edited is not None and not answer.edited.strip():
        raise BadRequest("the edited command is empty", hint="deny it instead")
    if answer.kind is AnswerKind.MESSAGE and not (answer.text or answer.images):
        raise BadRequest("the message is empty")
