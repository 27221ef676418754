"""The request for approval: what a door shows a person before something is done.

Every text in it is safe to show. A yes to it is bound to its digest: the action's own bytes, the task, the terminal and
a file's new content.
"""

import dataclasses
import difflib
import hashlib
import re
import secrets
from dataclasses import dataclass
from pathlib import Path

from tarmac.errors import BadRequest
from tarmac.events import TaskId, TerminalId
from tarmac.policy.actions import (
    Action,
    Connect,
    Execute,
    KillTerminal,
    OpenTerminal,
    ReadFile,
    SendInput,
    UseServer,
    WriteFile,
)
from tarmac.policy.verdict import Decision, Risk, SuggestedGrant, Verdict
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
    diff: str  # of a new file, its content
    outside: bool
    protected: str  # why; empty: it is not


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a door shows. Every text in it is safe to show, and none is cut without saying so."""

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
        """For a door that speaks JSON."""
        return dataclasses.asdict(self)


def make_request(
    action: Action,
    verdict: Verdict,
    *,
    task: TaskId | None,
    terminal: TerminalId | None = None,
    before: bytes | None = None,
    content: bytes | None = None,
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
        file=_file(action, before=before, content=content, outside=outside, protected=protected),
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
    action: Action, *, before: bytes | None, content: bytes | None, outside: bool, protected: str
) -> ShownFile | None:
    if not isinstance(action, ReadFile | WriteFile):
        return None
    new = isinstance(action, WriteFile) and (before is None if action.new is None else action.new)
    diff = _shown(_diff(before, content)) if isinstance(action, WriteFile) and content is not None else ""
    return ShownFile(path=_shown(str(action.path)), new=new, diff=diff, outside=outside, protected=protected)


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
