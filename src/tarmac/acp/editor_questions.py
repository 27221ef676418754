"""A task's questions, put to the person at the editor; whatever becomes of them, the task is answered.

for approval → session/request_permission → task.answer()
followup     → elicitation/create, where the editor shows forms; else the turn ends, and the next prompt is the answer
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from tarmac.acp.content import EditorAbilities, fenced, kind_of
from tarmac.acp.rpc_peer import RpcPeer
from tarmac.acp.updates import permission_of
from tarmac.errors import BadRequest, PeerGone, PeerRefused, TarmacError
from tarmac.policy.approval import Always, Answer, AnswerKind, GrantScope
from tarmac.server.joined_task import JoinedTask
from tarmac.show import details
from tarmac.show.look import harmless, one_line
from tarmac.tasks.events import QUIET, QuestionAsked
from tarmac.tasks.task import Task
from tarmac.tools.edit.unified_diff import patched

NOT_ASKED: Final = "the editor could not ask"


class EditorQuestions:
    """The open questions of one session. `stand`: the next prompt must answer one. `read` reads a file."""

    def __init__(
        self,
        task: Task | JoinedTask,
        peer: RpcPeer,
        client: EditorAbilities,
        *,
        stand: Callable[[], None],
        read: Callable[[Path], str | None],
    ) -> None:
        self._task, self._peer, self._client = task, peer, client
        self._stand, self._read = stand, read
        self._open: dict[str, asyncio.Task[None]] = {}

    def ask(self, asked: QuestionAsked, tool: str) -> None:
        """Put it to the person; `tool` is what it is about."""
        self._open[asked.question] = asyncio.create_task(self._ask(asked, tool))

    def closed(self, question: str) -> None:
        """It was answered, or nobody needs an answer any more: the editor is told so if it still shows it."""
        if asked := self._open.pop(question, None):
            asked.cancel()

    @property
    def waiting(self) -> bool:
        """The editor shows one that its person has not answered."""
        return bool(self._open)

    def shows(self, asked: QuestionAsked) -> bool:
        """The editor can put it to its person; otherwise the next prompt answers it."""
        return asked.ask not in QUIET and (asked.ask != "followup" or self._client.asks)

    def close(self) -> None:
        """Withdraw them all."""
        for question in list(self._open):
            self.closed(question)

    async def _ask(self, asked: QuestionAsked, tool: str) -> None:
        if asked.ask == "followup":
            await self._follow_up(asked)
        elif asked.ask not in QUIET:  # of these an editor's person says what they think with the next prompt
            await self._permission(asked, tool)

    async def _permission(self, asked: QuestionAsked, tool: str) -> None:
        try:
            outcome = await self._request("session/request_permission", self._wanted(asked, tool))
        except PeerGone:  # nobody said no: it is asked again, once somebody is there
            return
        except PeerRefused as error:
            await self._answer(asked, Answer(AnswerKind.NO, text=f"{NOT_ASKED}: {error.what}"))
            return
        found = chosen(asked, outcome)
        if found is None:
            self._task.cancel()
        else:
            await self._answer(asked, found)

    def _wanted(self, asked: QuestionAsked, tool: str) -> dict[str, object]:
        """A permission request in the editor's version."""
        params = permission(asked, tool, self._read, self._client)
        if self._client.version == 1:
            return params
        requests = details.requests(asked.details)
        request = requests[0] if len(requests) == 1 and kind_of(tool) == "execute" else {}
        command, cwd = (harmless(details.text(request, name)) for name in ("shown", "directory"))
        return permission_of(params, command=command, cwd=cwd if Path(cwd).is_absolute() else "")

    async def _follow_up(self, asked: QuestionAsked) -> None:
        """With a form; dismissed, refused or without one, it stands until the next prompt."""
        found: Answer | None = None
        if self._client.asks:
            try:
                found = filled(await self._request("elicitation/create", form(asked)))
            except (PeerRefused, PeerGone):
                pass
        if found is None:
            self._stand()
        else:
            await self._answer(asked, found)

    async def _request(self, method: str, params: Mapping[str, object]) -> object:
        return await self._peer.request(method, {"sessionId": self._task.id, **params})

    async def _answer(self, asked: QuestionAsked, answer: Answer) -> None:
        self._open.pop(asked.question, None)
        try:
            await self._task.answer(asked.question, replace(answer, by="acp"))
        except BadRequest:  # somebody was quicker, or it can't be allowed for good
            if answer.always:
                await self._answer(asked, Answer(answer.kind))
        except TarmacError:  # its log can't be written: the run itself says so
            pass


LONGEST: Final = 40_000  # characters; a command comes with at most 20,000
LONGEST_TITLE: Final = 300
_RISKS: Final = ("low", "medium", "high", "critical")
LONGEST_CHOICE: Final = 200
_PLAIN: Final = {
    "api_req_failed": "The model can't be reached. Try again?",
    "mistake_limit_reached": "The model makes one mistake after another. Go on?",
    "auto_approval_limit": "The limit of what runs without asking is reached. Go on?",
    "workspace_prompt": "This workspace replaces what Tarmac tells the model. Use it?",
    "resume_task": "Go on with this task?",
    "resume_completed_task": "This task was completed. Go on with it?",
}


def permission(
    asked: QuestionAsked,
    tool: str,
    read: Callable[[Path], str | None] = lambda path: None,
    client: EditorAbilities = EditorAbilities(),  # noqa: B008
) -> dict[str, object]:
    """`toolCall` and `options`. `read` returns the text of a file that an edit would change."""
    requests = details.requests(asked.details)
    call: dict[str, object] = {
        "toolCallId": asked.call or asked.question,
        "title": _title(asked, requests),
        "kind": kind_of(tool),
        "status": "pending",
    }
    content = [diff for each in requests if (diff := _diff(each, read))]
    shown = "\n\n".join(filter(None, map(_shown, requests)))
    if not requests and call["title"] != one_line(asked.text):
        shown = fenced(harmless(asked.text)[:LONGEST])
    if shown:
        content.append({"type": "content", "content": {"type": "text", "text": shown}})
    if content:
        call["content"] = content
    if paths := [path for each in requests if (path := _path(each))]:
        call["locations"] = [{"path": path} for path in paths]
    return {"toolCall": call, "options": options(asked, named=client.names_options)}


def _title(asked: QuestionAsked, requests: list[Mapping[str, object]]) -> str:
    """What would happen: the riskiest command of a line, then the line. Some editors show only the title."""
    request = requests[0] if len(requests) == 1 else {}
    parts = details.objects(request.get("parts"))
    if not parts:
        first = one_line(asked.text if requests else asked.text.strip().partition("\n\n")[0])
        return _bounded(first) or _PLAIN.get(asked.ask, asked.ask)
    riskiest = max(parts, key=lambda each: _risk(details.text(each, "risk")))
    whole, risk = one_line(details.text(request, "shown")), details.text(riskiest, "risk")
    if len(parts) > 1 and _risk(risk) == 0:  # no part of it is the reason: the line is
        return f"Run {_with_reason(whole, risk, details.text(request, 'reason'))}"
    why = details.text(riskiest, "explanation") or details.text(riskiest, "reason")
    command = _with_reason(details.text(riskiest, "text"), risk, why)
    if len(parts) == 1:
        return f"Run {command}"
    line = f". All: `{whole}`" if 0 < len(whole) <= LONGEST_TITLE else ""
    return f"Run {len(parts)} commands. Riskiest: {command}{line}"


def _with_reason(text: str, risk: str, why: str) -> str:
    return f"`{_bounded(one_line(text))}`" + (f" ({risk} risk: {one_line(why)})" if one_line(why) else "")


def _bounded(text: str) -> str:
    return text if len(text) <= LONGEST_TITLE else f"{text[:LONGEST_TITLE]}… (all of it below)"


def _risk(name: str) -> int:
    return _RISKS.index(name) if name in _RISKS else len(_RISKS)


def _diff(request: Mapping[str, object], read: Callable[[Path], str | None]) -> dict[str, object] | None:
    """Both texts of a file, for the editor's own diff view; None if they are not known exactly."""
    file = request.get("file")
    diff = details.text(file, "diff") if isinstance(file, dict) else ""
    path = _path(request)
    if not isinstance(file, dict) or not diff or not Path(path).is_absolute():
        return None
    if file.get("new") is True:
        return {"type": "diff", "path": path, "oldText": None, "newText": diff}
    before = read(Path(path))
    after = None if before is None else patched(before, diff)
    return None if after is None else {"type": "diff", "path": path, "oldText": before, "newText": after}


def options(asked: QuestionAsked, *, named: bool = True) -> list[dict[str, str]]:
    """Allow once, allow always (each with exactly what it covers), reject. Not `named`: only the narrowest always."""
    requests = details.requests(asked.details)
    found = [{"optionId": "allow", "name": "Allow once" if requests else "Yes", "kind": "allow_once"}]
    if len(requests) == 1:
        grants = details.objects(requests[0].get("always"))
        for number, grant in enumerate(grants if named else grants[:1]):
            text = one_line(details.text(grant, "text"))
            what = f"commands that begin with `{text}`" if grant.get("kind") == "prefix" else f"exactly `{text}`"
            found.append(
                {"optionId": f"always-{number}", "name": f"Always in this workspace: {what}", "kind": "allow_always"}
            )
    found.append({"optionId": "reject", "name": "Reject" if requests else "No", "kind": "reject_once"})
    return found


def chosen(asked: QuestionAsked, outcome: object) -> Answer | None:
    """The user's choice; None if they cancelled. An invalid outcome is a rejection."""
    found = outcome.get("outcome") if isinstance(outcome, dict) else None
    if not isinstance(found, dict):
        return Answer(AnswerKind.NO)
    if found.get("outcome") == "cancelled":
        return None
    option = found.get("optionId")
    known = {each["optionId"] for each in options(asked)}
    if found.get("outcome") != "selected" or option not in known:
        return Answer(AnswerKind.NO)
    if option == "allow":
        return Answer(AnswerKind.YES)
    if isinstance(option, str) and option.startswith("always-"):
        return Answer(AnswerKind.YES, always=Always(GrantScope.WORKSPACE, int(option.removeprefix("always-"))))
    return Answer(AnswerKind.NO)


def form(asked: QuestionAsked) -> dict[str, object]:
    """A follow-up question for `elicitation/create`: one of the choices, or a text."""
    own: dict[str, object] = {"type": "string", "title": "In your own words" if asked.choices else "Answer"}
    fields: dict[str, object] = {"own": own}
    if asked.choices:
        listed = [{"const": each, "title": one_line(each)[:LONGEST_CHOICE]} for each in dict.fromkeys(asked.choices)]
        fields = {"choice": {"type": "string", "title": "Answer", "oneOf": listed}, **fields}
    params: dict[str, object] = {
        "mode": "form",
        "message": bounded(harmless(asked.text)),
        "requestedSchema": {"type": "object", "properties": fields, "required": [] if asked.choices else ["own"]},
    }
    if asked.call:
        params["toolCallId"] = asked.call
    return params


def filled(result: object) -> Answer | None:
    """The answer in a form; None if it was dismissed or is invalid."""
    action = result.get("action") if isinstance(result, dict) else None
    if action == "decline":
        return Answer(AnswerKind.NO)
    content = result.get("content") if isinstance(result, dict) else None
    if action != "accept" or not isinstance(content, dict):
        return None
    words = [content.get(name) for name in ("choice", "own")]
    said = [each.strip() for each in words if isinstance(each, str) and each.strip()]
    return Answer(AnswerKind.MESSAGE, text="\n".join(said)) if said else None


def _shown(request: Mapping[str, object]) -> str:
    """A request: first the whole command, then warnings, the directory, what it would do, and the risk."""
    text = bounded(harmless(details.text(request, "shown")))
    lines = [fenced(text)]
    file = request.get("file")
    if isinstance(file, dict) and (diff := details.text(file, "diff")):
        lines = [text, fenced(bounded(harmless(diff)), "diff")]
    lines += [f"Warning: {one_line(each)}" for each in details.texts(request.get("warnings"))]
    for name, before in (
        ("directory", "in"),
        ("explanation", "It"),
        ("reason", f"{details.text(request, 'risk')} risk:"),
    ):
        if value := one_line(details.text(request, name)):
            lines.append(f"{before} {value}")
    return "\n".join(lines)


def bounded(text: str) -> str:
    """The text, without its middle if it is too long."""
    if len(text) <= LONGEST:
        return text
    half = LONGEST // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half:,} CHARACTERS ARE NOT SHOWN HERE …]\n{text[-half:]}"


def _path(request: Mapping[str, object]) -> str:
    file = request.get("file")
    return details.text(file, "path") if isinstance(file, dict) else ""
