"""PURE: a conversation as every provider takes it, whatever it was before.

tidy(messages) → roles alternate, the person begins and ends; after a message with calls comes one that begins with
exactly one result for each, in their order; every id is used by one call only, and in a form that the provider takes.

What a task sends is tidy already: this is for the rest (an import, a model of another kind before, a bug), because a
provider that refuses the history refuses it for ever, and the task is dead.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable

from tarmac.models.messages import Image, Message, Part, Reasoning, Role, Text, ToolResult, ToolUse

NO_RESULT = "[there is no result of this call]"
ELSEWHERE = "[the result of an earlier call]"
GO_ON = "[go on]"

Fit = Callable[[str], str]


def plain_id(id_: str) -> str:
    """An id that both dialects take: letters, digits, _ and -, at most 40."""
    return id_ if re.fullmatch(r"[A-Za-z0-9_-]{1,40}", id_) else f"call_{_digest(id_)[:24]}"


def short_id(id_: str) -> str:
    """An id as Mistral takes it: nine letters or digits."""
    return id_ if re.fullmatch(r"[A-Za-z0-9]{9}", id_) else _digest(id_)[:9]


def plain_name(name: str) -> str:
    """A tool's name as both take it: a model may have called one that never was, and is sent what it said."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64] or "unnamed"


def _digest(id_: str) -> str:
    return hashlib.sha256(id_.encode("utf-8", "surrogatepass")).hexdigest()


def clean(text: str) -> str:
    """Text that can be sent: a lone surrogate (from a file's name) is no character."""
    return text.encode("utf-8", "replace").decode("utf-8")


def object_of(arguments: str) -> str:
    """A call's arguments as the JSON of an object: as the model wrote them where they are one, else told as wrong.

    Many servers read the arguments of earlier calls again, and refuse a conversation for ever in which some are broken.
    """
    text = clean(arguments)
    try:
        found = json.loads(text.strip() or "{}", strict=False)  # line ends in texts: the call was made,
        if isinstance(found, str):  # and so was one that was encoded twice
            found = json.loads(found, strict=False)
        whole = clean(json.dumps(found, ensure_ascii=False, allow_nan=False))
        if not isinstance(found, dict):
            raise ValueError
    except (ValueError, RecursionError):
        return json.dumps({"INVALID_JSON": text}, ensure_ascii=False)
    try:
        return text if json.loads(text) == json.loads(whole) else whole
    except ValueError:
        return whole


def tidy(messages: Iterable[Message], fit: Fit = plain_id) -> list[Message]:
    """See above."""
    turns: list[tuple[Role, list[Part]]] = [("user", [])]
    for message in messages:
        parts = list(_asked(message.parts) if message.role == "user" else _said(message.parts))
        if not parts:
            continue
        if turns[-1][0] == message.role:
            turns[-1][1].extend(parts)
        else:
            turns.append((message.role, parts))
    if turns[-1][0] == "assistant":
        turns.append(("user", []))
    used: set[str] = set()
    calls: dict[str, str] = {}  # of the message before: an id in the task → the id that is sent
    tidied = []
    for role, parts in turns:
        if role == "assistant":
            calls = {}
            parts = [_renamed(part, calls, used, fit) if isinstance(part, ToolUse) else part for part in parts]
        else:
            parts = _results_first(parts, calls) or [Text(GO_ON)]
        tidied.append(Message(role, tuple(parts)))
    return tidied


def _asked(parts: Iterable[Part]) -> Iterable[Part]:
    for part in parts:
        if isinstance(part, ToolResult | Image) or (isinstance(part, Text) and part.text.strip()):
            yield part


def _said(parts: tuple[Part, ...]) -> Iterable[Part]:
    kept = [
        part
        for part in parts
        if isinstance(part, ToolUse | Reasoning) or (isinstance(part, Text) and part.text.strip())
    ]
    return kept if any(not isinstance(part, Reasoning) for part in kept) else ()


def _renamed(call: ToolUse, calls: dict[str, str], used: set[str], fit: Fit) -> ToolUse:
    name = fit(call.id)
    again = 1
    while name in used:
        again += 1
        name = fit(f"{call.id}#{again}")
    used.add(name)
    calls.setdefault(call.id, name)
    if calls[call.id] != name:  # the same id twice in one message: only the first can have a result
        calls[f"{call.id}#{again}"] = name
    return ToolUse(name, plain_name(call.name), call.arguments)


def _results_first(parts: list[Part], calls: dict[str, str]) -> list[Part]:
    results: dict[str, ToolResult] = {}
    rest: list[Part] = []
    for part in parts:
        if not isinstance(part, ToolResult):
            rest.append(part)
        elif part.call in calls and part.call not in results:
            results[part.call] = part
        else:  # its call is not there: no provider would take it
            rest += [Text(ELSEWHERE), *_asked(part.content)]
    missing = (Text(NO_RESULT),)
    first: list[Part] = []
    for call, name in calls.items():
        found = results.get(call)
        first.append(ToolResult(name, found.content, found.failed) if found else ToolResult(name, missing, failed=True))
    return first + rest
