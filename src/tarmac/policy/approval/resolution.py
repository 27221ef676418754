"""What an answer to a request decides, and the approval that follows from a yes.

An approval is bound to the bytes that were judged, the directory, the task, the terminal and a file's new content. It
is used up by one run and expires. Time comes in from outside (a monotonic clock), so all of this is pure.
"""

import dataclasses
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from enum import StrEnum
from pathlib import Path

from tarmac.errors import BadRequest
from tarmac.events import TaskId, TerminalId
from tarmac.policy.actions import Action, Execute, ReadFile, WriteFile
from tarmac.policy.approval.request import Request, digest, subject
from tarmac.policy.rule import Basis
from tarmac.policy.verdict import Part, SuggestedGrant, Verdict
from tarmac.policy.visible import shortened

Picture = tuple[bytes, str]  # its content and its media type


class AnswerKind(StrEnum):
    """The values are those of the log."""

    YES = "yes"
    NO = "no"
    MESSAGE = "message"  # words instead of a yes or a no
    PER_FILE = "object"  # an answer for each file: see `choices`
    DONE = "done"  # the person had it done themselves: `text` says what came of it
    SKIP = "skip"  # nobody answered


class GrantScope(StrEnum):
    """Where an "always allow" holds."""

    TASK = "task"
    WORKSPACE = "workspace"
    EVERYWHERE = "everywhere"


@dataclass(frozen=True, slots=True)
class Always:
    """Allow it from now on, without asking."""

    scope: GrantScope
    offer: int = 0  # which of `Request.always`


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The answer for one file of a question about several."""

    path: Path
    answer: AnswerKind


@dataclass(frozen=True, slots=True)
class Answer:
    """A person's answer to any question."""

    kind: AnswerKind
    _: KW_ONLY
    text: str = ""  # words for the model
    images: tuple[Picture, ...] = ()
    always: Always | None = None  # with a yes
    edited: str | None = None  # with a yes: the command that the person wants instead
    choices: tuple[Choice, ...] = ()  # with PER_FILE
    by: str = ""  # the door it came through


class Authority(StrEnum):
    """Who decided. The values are those of the audit log."""

    POLICY = "policy"
    RULES = "rules"  # the user's own
    GRANT = "grant"
    LEVEL = "auto-approval"
    MODE = "mode"
    NOBODY = "nobody to ask"


def authority(verdict: Verdict) -> Authority:
    """Who decided a verdict: the user's rules, a grant, or the policy itself."""
    if verdict.decision == "ask":  # what the user allowed did not suffice
        return Authority.POLICY
    return {Basis.GRANT: Authority.GRANT, Basis.USER_RULE: Authority.RULES}.get(verdict.basis, Authority.POLICY)


def proven_as(part: Part, program: str) -> bool:
    """Whether a part of a line was proven to only read by what is known of this program."""
    return part.basis is Basis.PROVEN and part.program == program


def grant_used(verdict: Verdict) -> str | None:
    """The id of the grant that a verdict rests on."""
    return verdict.grant or None if authority(verdict) is Authority.GRANT else None


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
        case AnswerKind.DONE:
            return answer.text
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


GOOD_FOR = 600.0  # seconds between a yes and its use


class Resolution(StrEnum):
    """How a request ended."""

    ALLOWED = "allowed"
    EDITED = "edited"  # the person wants another command, which is judged like any other
    DENIED = "denied"
    DONE = "done"  # by the person themselves
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
            case AnswerKind.DONE:
                return self._resolved(Resolution.DONE, answer)
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
    if answer.kind is AnswerKind.DONE and not (answer.text and isinstance(action, Execute)):
        raise BadRequest("only a command can be answered by what came of it")
