"""Approvals: a request, its answer, and what that answer allows.

make_request(action, verdict, …) → Request           what a front end shows
Answer(AnswerKind.YES, …)                            what a person says, through any front end, and what the log keeps
Pending(request, action).answer(answer) → Resolved   approved, edited, denied or unanswered
Resolved.approval.use(action, …)                     once, and only for what was shown

Every step is a typed value. `explain` turns values into words for people and models. Nothing reads the words back.
An approval lives in memory only. After a restart the user is asked again.
"""

import dataclasses
import difflib
import hashlib
import re
import secrets
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from enum import StrEnum
from pathlib import Path

from tarmac.errors import BadRequest
from tarmac.events import TaskId, TerminalId
from tarmac.policy.verdict import (
    Action,
    Basis,
    Connect,
    Decision,
    Execute,
    KillTerminal,
    OpenTerminal,
    Part,
    ReadFile,
    Risk,
    SendInput,
    SuggestedGrant,
    UseServer,
    Verdict,
    WriteFile,
)
from tarmac.policy.visible import shortened, visible, warnings

LONGEST_SHOWN = 20_000  # characters; the tail is always there
LONGEST_READ = 1_000_000  # characters that are looked at one by one, so that what can't be seen takes no room
MOST_DIFFED = 5000  # lines; comparing more takes too long
_CONTEXT = 3
_HUNK = re.compile(r"([-+])(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownPart:
    """One simple command of a line, as a person sees it."""

    text: str
    decision: Decision
    risk: Risk
    reason: str
    explanation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownFile:
    """A file to be read or written, as a person sees it."""

    path: str
    new: bool
    deletes: bool  # a yes deletes it
    folder: bool  # it is one, to be looked into
    diff: str  # of a new file, its content
    outside: bool
    protected: str  # why; empty: it is not


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a front end shows. Every text in it is safe to show, and none is cut without saying so."""

    id: str
    kind: str  # Execute, WriteFile, …
    shown: str  # the command, path or text
    warnings: tuple[str, ...]  # about its characters
    parts: tuple[ShownPart, ...]
    directory: str
    terminal: str
    risk: Risk
    reason: str
    explanation: str
    always: tuple[SuggestedGrant, ...]  # what each "always allow" would store
    file: ShownFile | None
    digest: str  # of what a yes would allow
    made: float
    expires: float | None  # None: it waits as long as it takes

    def as_data(self) -> dict[str, object]:
        """For a front end that speaks JSON."""
        return dataclasses.asdict(self)


def make_request(
    action: Action,
    verdict: Verdict,
    *,
    task: TaskId | None,
    terminal: TerminalId | None = None,
    before: bytes | None = None,
    content: bytes | None = None,
    folder: bool = False,
    outside: bool = False,
    protected: str = "",
    now: float,
    timeout: float | None = None,
) -> Request:
    """The question about `action`. Of a file: what is in it `before`, and the `content` it would have."""
    if verdict.decision == "deny":
        raise BadRequest("what is denied is not asked about", hint="tell the agent: denied_text()")
    if timeout is not None and not timeout > 0:
        raise BadRequest(f"approval_timeout must be more than 0 seconds, not {timeout!r}")
    text, directory = subject(action)
    return Request(
        id=secrets.token_hex(8),
        kind=type(action).__name__,
        shown=_shown(text),
        warnings=warnings(text),
        parts=tuple(
            ShownPart(
                text=_shown(part.text),
                decision=part.decision,
                risk=part.risk,
                reason=visible(part.reason),
                explanation=visible(part.explanation),
            )
            for part in verdict.parts
        ),
        directory=_shown(str(directory)) if directory else "",
        terminal=terminal or "",
        risk=verdict.risk,
        reason=visible(verdict.reason),
        explanation=visible(verdict.explanation),
        always=() if verdict.risk == "critical" else verdict.suggested_grants,
        file=_file(action, before=before, content=content, folder=folder, outside=outside, protected=protected),
        digest=digest(action, task=task, terminal=terminal, content=content),
        made=now,
        expires=None if timeout is None else now + timeout,
    )


def digest(
    action: Action, *, task: TaskId | None, terminal: TerminalId | None = None, content: bytes | None = None
) -> str:
    """What a yes is bound to: each field by its name and length, so that no two actions are alike."""
    sums = hashlib.sha256()
    fields = {each.name: getattr(action, each.name) for each in dataclasses.fields(action)}
    pairs = {"": type(action).__name__, **fields, "task": task, "in terminal": terminal, "content": content}
    for name, value in pairs.items():
        raw = value if isinstance(value, bytes) else repr(value).encode("utf-8", "backslashreplace")
        kind = type(value).__name__
        sums.update(f"{name}:{kind}:{len(raw)}:".encode() + raw)
    return sums.hexdigest()


def subject(action: Action) -> tuple[str, Path | None]:
    """The text that a person must see, and where it would happen."""
    match action:
        case Execute(command=command, cwd=cwd):
            return command, cwd
        case SendInput(text=text, cwd=cwd):
            return text, cwd
        case OpenTerminal(cwd=cwd, shell=shell, arguments=arguments):
            return " ".join((shell, *arguments)), cwd
        case KillTerminal(terminal=terminal, running=running):
            return f"{terminal}, and with it: {running}" if running else terminal, None
        case ReadFile(path=path) | WriteFile(path=path):
            return str(path), None
        case Connect(url=url):
            return url, None
        case UseServer(server=server, tool=tool, arguments=arguments):
            return f"{server} {tool}\n{arguments}" if tool else f"{server}\n{arguments}", None


def _shown(text: str) -> str:
    if len(text) <= LONGEST_READ:
        return shortened(visible(text), LONGEST_SHOWN)
    half = LONGEST_READ // 2
    head, tail = visible(text[:half])[: LONGEST_SHOWN * 3 // 5], visible(text[-half:])[-LONGEST_SHOWN * 2 // 5 :]
    return f"{head}\n⟨{len(text) - len(head) - len(tail):,} characters not shown⟩\n{tail}"


def _file(
    action: Action, *, before: bytes | None, content: bytes | None, folder: bool, outside: bool, protected: str
) -> ShownFile | None:
    if not isinstance(action, ReadFile | WriteFile):
        return None
    new = isinstance(action, WriteFile) and (before is None if action.new is None else action.new)
    diff = _shown(_diff(before, content)) if isinstance(action, WriteFile) and content is not None else ""
    return ShownFile(
        path=_shown(str(action.path)),
        new=new,
        deletes=isinstance(action, WriteFile) and action.deletes,
        folder=folder,
        diff=diff,
        outside=outside,
        protected=protected,
    )


def _diff(before: bytes | None, content: bytes) -> str:
    after = content.decode("utf-8", "surrogateescape")
    if before is None:
        return after
    old, new = before.decode("utf-8", "surrogateescape").splitlines(), after.splitlines()
    same = _equal(old, new)  # what is equal at both ends need not be compared
    rest = _equal(old[same:][::-1], new[same:][::-1])
    first, last = max(0, same - _CONTEXT), max(0, rest - _CONTEXT)
    theirs, ours = old[first : len(old) - last], new[first : len(new) - last]
    if len(theirs) + len(ours) > MOST_DIFFED:
        return f"({len(old):,} lines become {len(new):,}: too many to compare; the new content follows)\n{after}"
    rows = difflib.unified_diff(theirs, ours, "before", "after", lineterm="", n=_CONTEXT)
    return "\n".join(_moved(row, first) if row.startswith("@@") else row if row != " " else "" for row in rows)


def _equal(one: list[str], other: list[str]) -> int:
    """How many lines are the same from the beginning."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (old, new) in pairs if old != new), min(len(one), len(other)))


def _moved(hunk: str, by: int) -> str:
    """The head of a hunk, with the numbers that its lines have in the whole text."""
    return _HUNK.sub(lambda at: f"{at[1]}{int(at[2]) + by}", hunk)


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
    by: str = ""  # the front end it came through


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
