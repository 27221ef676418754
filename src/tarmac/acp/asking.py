"""PURE: a task's question as `session/request_permission` or as a form, and what the person chose as its answer."""

from collections.abc import Mapping
from typing import Final

from tarmac.acp.content import fenced
from tarmac.acp.shapes import kind_of
from tarmac.policy.approval import Always, Answer, AnswerKind, GrantScope
from tarmac.show import details
from tarmac.show.harmless import harmless, one_line
from tarmac.tasks.events import QuestionAsked

LONGEST: Final = 16_000
LONGEST_CHOICE: Final = 200
_PLAIN: Final = {
    "api_req_failed": "The model can't be reached. Try again?",
    "mistake_limit_reached": "The model makes one mistake after another. Go on?",
    "auto_approval_limit": "The limit of what runs without asking is reached. Go on?",
    "resume_task": "Go on with this task?",
    "resume_completed_task": "This task was completed. Go on with it?",
}


def permission(asked: QuestionAsked, tool: str) -> dict[str, object]:
    """`toolCall` and `options`: all that must be seen, and what can be chosen."""
    requests = details.requests(asked.details)
    call: dict[str, object] = {
        "toolCallId": asked.call or asked.question,
        "title": one_line(asked.text) or _PLAIN.get(asked.ask, asked.ask),
        "kind": kind_of(tool),
        "status": "pending",
    }
    if shown := "\n\n".join(filter(None, map(_shown, requests))):
        call["content"] = [{"type": "content", "content": {"type": "text", "text": shown}}]
    if paths := [path for each in requests if (path := _path(each))]:
        call["locations"] = [{"path": path} for path in paths]
    return {"toolCall": call, "options": options(asked)}


def options(asked: QuestionAsked) -> list[dict[str, str]]:
    """Yes once; yes always, each with exactly what that covers; no."""
    requests = details.requests(asked.details)
    found = [{"optionId": "allow", "name": "Allow once" if requests else "Yes", "kind": "allow_once"}]
    if len(requests) == 1:
        for number, grant in enumerate(details.objects(requests[0].get("always"))):
            text = one_line(details.text(grant, "text"))
            what = f"commands that begin with `{text}`" if grant.get("kind") == "prefix" else f"exactly `{text}`"
            found.append(
                {"optionId": f"always-{number}", "name": f"Always in this workspace: {what}", "kind": "allow_always"}
            )
    found.append({"optionId": "reject", "name": "Reject" if requests else "No", "kind": "reject_once"})
    return found


def chosen(asked: QuestionAsked, outcome: object) -> Answer | None:
    """The person's choice; None: they cancelled. What makes no sense is a no."""
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
    """A followup question for `elicitation/create`: one of the choices, or the person's own words."""
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
    """What the person wrote into the form, or that they will not; None: it was put away, or makes no sense."""
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
    """A request as a person must see it: the exact text, the directory, what it would do, the risk and its reason."""
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
    """As much as anybody reads; what is left out is from the middle, and said."""
    if len(text) <= LONGEST:
        return text
    half = LONGEST // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half:,} CHARACTERS ARE NOT SHOWN HERE …]\n{text[-half:]}"


def _path(request: Mapping[str, object]) -> str:
    file = request.get("file")
    return details.text(file, "path") if isinstance(file, dict) else ""
