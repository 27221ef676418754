"""Asks the person through their MCP client: in which words, and how the answer finds its call.

can't ask      told why, the rule, and how the person can allow it
older era      the call waits for the answer, up to a limit; then the question stays, and the same call finds the answer
stateless era  the question is the call's result, and its answer comes with the same call again
"""

import asyncio
import secrets
import shlex
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from tarmac.calls.call_judge import Answered, NotAsked, Question
from tarmac.mcp.client import CannotAsk, Client, Form, FormReply, Unanswered
from tarmac.policy import Action, Execute, KillTerminal, OpenTerminal, SendInput, Verdict
from tarmac.policy.approval import Always, Answer, AnswerKind, Authority, GrantScope, Request, Resolution, named
from tarmac.policy.visible import shortened, visible

AT_ONCE: Final = 0.2  # seconds: nobody reads and answers a question so fast
GOOD_FOR: Final = 600.0  # seconds that a question stays open
MOST_OPEN: Final = 64
T = TypeVar("T")
YES: Final = "Allow once"
NO: Final = "Deny"
NOT_ASKED: Final = "The person closed the question without an answer, so it was not done."
MOST_SHOWN: Final = 200  # characters of a command in a hint
MOST_OFFERED: Final = 3
NARROW: Final = 80  # characters of a line that is seen whole everywhere
_VERBS: Final = {
    "Execute": "run this command",
    "SendInput": "type this into a running program",
    "OpenTerminal": "open a terminal with this shell",
    "KillTerminal": "close this terminal",
}
_DOING: Final[dict[type[Action], str]] = {
    SendInput: "Typing",
    OpenTerminal: "Opening a terminal with",
    KillTerminal: "Closing terminal",
}


class OpenQuestions(Generic[T]):
    """Questions that stay open after the call that asked them. Each answer is taken once."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._open: OrderedDict[str, tuple[float, asyncio.Task[T]]] = OrderedDict()  # by what they are about

    async def ask(
        self,
        key: str,
        put: Callable[[], Coroutine[Any, Any, T]],
        patience: float,
        *,
        stale: Callable[[T], bool] = lambda _: False,
    ) -> T | None:
        """The answer to the question about `key`, which is put to the person if none is open; None: not yet.

        `stale`: an answer that came earlier and counts no more.
        """
        self._drop_old()
        if key in self._open and (known := self._open[key][1]).done() and (known.cancelled() or stale(known.result())):
            del self._open[key]
        if key not in self._open:
            task = asyncio.create_task(put())
            task.add_done_callback(lambda each: each.cancelled() or each.exception())  # somebody may look, or not
            self._open[key] = (self._clock(), task)
        found = self._open[key][1]
        try:
            await asyncio.wait({found}, timeout=max(patience, 0))
        except asyncio.CancelledError:  # the call was taken back, and with it its question
            self._drop(key, found)
            raise
        if not found.done():
            return None
        if key not in self._open or self._open[key][1] is not found:  # another call took the answer: ask anew
            return await self.ask(key, put, patience, stale=stale)
        del self._open[key]
        return found.result()

    def forget(self) -> None:
        """Nobody waits for answers any more."""
        for key, (_, task) in list(self._open.items()):
            self._drop(key, task)

    def _drop(self, key: str, task: "asyncio.Task[T]") -> None:
        if key in self._open and self._open[key][1] is task:
            del self._open[key]
        task.cancel()

    def _drop_old(self) -> None:
        for key, (asked, task) in list(self._open.items()):
            if self._clock() - asked > GOOD_FOR or len(self._open) >= MOST_OPEN:
                self._drop(key, task)


@dataclass(slots=True)
class _Put:
    """A question of the stateless era."""

    digest: str
    form: Form
    asked: float


class ClientQuestions:
    """The open questions to the clients of one workspace."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.waiting: OpenQuestions[tuple[FormReply, float]] = OpenQuestions(clock)
        self._put: OrderedDict[str, _Put] = OrderedDict()  # stateless era, by the form's id

    def forget(self) -> None:
        self.waiting.forget()
        self._put.clear()

    def answered(self, client: Client, request: Request) -> tuple[FormReply, float] | None:
        """Stateless era: the answer that came with the call, if it is to this request; and how long it took."""
        for id, each in list(self._put.items()):
            if self.clock() - each.asked > GOOD_FOR or len(self._put) >= MOST_OPEN:
                del self._put[id]
        if client.answered is None:
            return None
        id, reply = client.answered
        found = self._put.get(id)
        if found is None or found.digest != request.digest:
            return None
        del self._put[id]  # once, whatever the answer
        return reply, self.clock() - found.asked

    def put(self, request: Request, form: Form) -> Form:
        """Stateless era: the form to send, which is the earlier one where the same was asked before."""
        found = next((each for each in self._put.values() if each.digest == request.digest), None)
        if found is None:
            found = self._put[form.id] = _Put(request.digest, form, self.clock())
        found.asked = self.clock()
        return found.form


class ClientAsker:
    """Asks about one call of a client."""

    def __init__(self, client: Client, questions: ClientQuestions, *, workspace: Path, until: float) -> None:
        """`until`: how long the call may wait for the answer, by the monotonic clock."""
        self._client = client
        self._questions = questions
        self._workspace = workspace
        self._until = until

    def unavailable(self, actions: Sequence[Action], verdicts: Sequence[Verdict]) -> NotAsked | None:
        return None if self._client.can_ask else self._nobody(actions[0], verdicts[0], "this client cannot ask")

    async def ask(self, question: Question) -> Answered | NotAsked:
        (request,), (action,), (verdict,) = question.requests, question.actions, question.verdicts
        form = Form(
            id=secrets.token_urlsafe(12),
            message=message(request, verdict, self._client.name),
            choices=choices(request),
        )
        if self._client.stateless:
            found = self._questions.answered(self._client, request)
            if found is None:
                raise Unanswered(self._questions.put(request, form))
        else:
            try:
                patience = self._until - time.monotonic()
                found = await self._questions.waiting.ask(request.digest, lambda: self._timed(form), patience)
            except CannotAsk as error:
                return self._nobody(action, verdict, f"this client cannot ask: {error}")
            if found is None:
                return NotAsked(resolution=Resolution.PENDING, told=waiting(action), by="nobody yet")
        return self._heard(request, action, verdict, *found)

    async def _timed(self, form: Form) -> tuple[FormReply, float]:
        began = self._questions.clock()
        reply = await self._client.ask(form)
        return reply, self._questions.clock() - began

    def _heard(
        self, request: Request, action: Action, verdict: Verdict, reply: FormReply, took: float
    ) -> Answered | NotAsked:
        person = f"the person, through {self._client.name or 'a client'}"
        if reply.action != "accept" and took < AT_ONCE:
            why = "this client cannot ask: it declined by itself, before anybody could have read the question"
            return self._nobody(action, verdict, why)
        if reply.action == "accept" and took < AT_ONCE and (verdict.personal or verdict.risk == "critical"):
            why = "this client said yes by itself, before anybody could have read the question"
            return self._nobody(action, verdict, why)
        if reply.action == "cancel":
            return NotAsked(resolution=Resolution.DENIED, told=NOT_ASKED, by=person)
        return Answered(answer=_answer(request, reply), at=self._questions.clock(), by=person)

    def _nobody(self, action: Action, verdict: Verdict, why: str) -> NotAsked:
        told = cannot_ask(action, verdict, why, workspace=self._workspace)
        return NotAsked(resolution=Resolution.NOBODY, told=told, by=Authority.NOBODY)


def _answer(request: Request, reply: FormReply) -> Answer:
    offered = choices(request)
    if reply.action != "accept" or reply.choice == offered[-1]:
        return Answer(AnswerKind.NO, text=reply.feedback, by="mcp")
    if reply.choice == offered[0]:
        return Answer(AnswerKind.YES, text=reply.feedback, by="mcp")
    if reply.choice in offered:
        always = Always(GrantScope.WORKSPACE, offered.index(reply.choice) - 1)
        return Answer(AnswerKind.YES, text=reply.feedback, always=always, by="mcp")
    return Answer(AnswerKind.NO, text=reply.feedback or "(no choice was made)", by="mcp")


def choices(request: Request) -> tuple[str, ...]:
    """What a person can say: yes, yes for good to what could be allowed for good, and no."""
    always = []
    for each in request.always[:MOST_OFFERED]:
        if each.kind == "use":
            always.append(f"Always allow {shortened(visible(each.text), 80)} in this workspace")
            continue
        what = "exactly this line" if each.kind == "line" else f"`{shortened(visible(' '.join(each.words)), 60)} …`"
        always.append(f"Always allow {what} in this workspace")
    return (YES, *always, NO)


def message(request: Request, verdict: Verdict, who: str) -> str:
    """All of what would be done, where, how dangerous it is, and why it is asked.

    Claude Code shows three lines, each cut at the width of its window. So the danger and the command come first, and
    that there is more of it than can be seen is told in the first line.
    """
    shown, lines = request.shown, request.shown.count("\n") + 1
    verb = _VERBS.get(request.kind, "do this")
    if request.kind == "Execute" and (lines > 1 or len(shown) > NARROW):
        verb = f"run these {lines} lines" if lines > 1 else f"run this command of {len(shown)} characters"
    first = shown if lines == 1 else f"{' ⏎ '.join(shown.split(chr(10)))[:MOST_SHOWN]} …"
    rows = [f"{_sentence(verb)}? Risk: {request.risk}. {_sentence(request.reason)}", first]
    rows += [f"Careful: {each}" for each in request.warnings]
    where = f"in {request.directory}" if request.directory else ""
    if request.terminal:
        where += f" (terminal {request.terminal})"
    if where:
        rows.append(where.strip())
    if lines > 1:
        rows += ["", shown, ""]
    if request.explanation:
        rows.append(f"What it would do: {request.explanation}")
    rows.append(f"Asked by {visible(who) or 'an agent'} (rule: {verdict.rule})")
    return "\n".join(rows)


def cannot_ask(action: Action, verdict: Verdict, why: str, *, workspace: Path) -> str:
    """What a model is told where a person's yes is needed and nobody can be asked: reason, rule, way out."""
    what = named(action, _DOING.get(type(action)))
    return (
        f"{what} was not done: it needs a person's yes, and {why}. Reason: {visible(verdict.reason)} "
        f"(risk: {verdict.risk}, rule: {verdict.rule}). {how_to_allow(action, verdict, workspace=workspace)}"
    )


def how_to_allow(action: Action, verdict: Verdict, *, workspace: Path) -> str:
    """What the person can do about it; the model can't."""
    if isinstance(action, Execute) and verdict.suggested_grants and verdict.risk != "critical":
        line = shlex.quote(action.command) if len(action.command) <= MOST_SHOWN else "'…'"
        prefix = next((each for each in verdict.suggested_grants if each.kind == "prefix"), None)
        also = f", or starts the server with --allow {shlex.quote(' '.join(prefix.words))}" if prefix else ""
        where = shlex.quote(str(workspace))
        return (
            "It is allowed if the person (not you) runs this in a shell of theirs: "
            f"tarmac grants allow --workspace {where} -- {line}{also}. "
            "Or find a way that only reads, and in the workspace."
        )
    if isinstance(action, Execute):
        return "It can't be allowed for good: the person may run it themselves, or use a client that can ask them."
    if isinstance(action, KillTerminal):
        return "End what runs in it first (interrupt_terminal), then close it."
    if isinstance(action, SendInput):
        return "Use a client that can ask the person, or a command that asks nothing."
    return "Use a client that can ask the person."


def waiting(action: Action) -> str:
    """What a model is told while the person has not answered yet."""
    what = "the command" if isinstance(action, Execute) else "this"
    return (
        f"The person was asked, and has not answered yet: {what} was not done. The question stays open; make the same "
        "call again, with the same arguments, to wait on for the answer."
    )


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
