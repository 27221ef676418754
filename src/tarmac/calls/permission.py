"""The question that a call puts to a person, and the permission that comes of it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tarmac.events import CallId
from tarmac.models.messages import Image, Part, Text
from tarmac.policy import Action, Execute, ReadFile, Verdict, WriteFile
from tarmac.policy.approval import Answer, Approval, Authority, Pending, Request, Resolution, Resolved
from tarmac.tools.tool import Go, Want


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question about one call: a request for each thing that somebody must allow."""

    call: CallId
    title: str
    requests: tuple[Request, ...]
    actions: tuple[Action, ...]
    verdicts: tuple[Verdict, ...]

    @property
    def command(self) -> bool:
        """Whether it is about more than files."""
        return any(not isinstance(each, ReadFile | WriteFile) for each in self.actions)

    def resolve(self, answer: Answer, *, now: float) -> list[Resolved]:
        """What an answer means for each request. BadRequest for one that makes no sense."""
        pairs = zip(self.requests, self.actions, strict=True)
        return [Pending(request, action).answer(answer, now=now) for request, action in pairs]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """A person answered, or `AnswerKind.SKIP`: they were asked and did not."""

    answer: Answer
    at: float  # when, by the monotonic clock
    by: str = ""  # who, for the log; empty: the question and its answer are in the log themselves
    images: tuple[Image, ...] = ()  # pictures that came with it, as the model gets them

    @property
    def remarks(self) -> tuple[Part, ...]:
        """What the person added to a yes, for the model."""
        text = self.answer.text
        words = (Text(f"The person approved this and says: {text}"),) if text else ()
        return (*words, *self.images)


@dataclass(frozen=True, slots=True, kw_only=True)
class NotAsked:
    """No answer came, and why."""

    resolution: Resolution
    told: str  # to the agent
    by: str = ""  # for the log


class Postponed(Exception):
    """Raised by an asker: the call ends without a result, and the same call comes again with the answer."""


class Asker(Protocol):
    """Puts a question to a person, through one door."""

    def unavailable(self, actions: Sequence[Action], verdicts: Sequence[Verdict]) -> NotAsked | None:
        """Why nobody can be asked about these; None: somebody can."""

    async def ask(self, question: Question) -> Answered | NotAsked:
        """Wait for the answer. `question.resolve` raises BadRequest for an answer that makes no sense."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Approved:
    """An approval, and what it is for."""

    approval: Approval
    want: Want


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """The decision on a call: it may act (`go`), or the reason why not (`told`)."""

    resolution: Resolution
    go: Go | None = None
    told: str = ""
    by: str = Authority.POLICY  # who decided
    verdicts: tuple[Verdict, ...] = ()
    approved: tuple[Approved, ...] = ()  # used up just before the call acts
    remarks: tuple[Part, ...] = ()  # what the person said with their answer
    notes: tuple[str, ...] = field(default=())  # for the person

    @property
    def edited(self) -> str | None:
        """The command that the person wants instead."""
        return self.go.command if self.go else None


def renamed(want: Want, action: Execute) -> Want:
    """The same want for an edited command."""
    return Want(action=action, before=want.before, content=want.content, outside=want.outside, protected=want.protected)
