"""PURE: bring a conversation into the form that every provider accepts.

normalized(messages):
- Roles alternate. The user begins and ends.
- A message with calls is followed by one that begins with one result for each call, in order.
- Each id belongs to one call, and has a form that the provider accepts.

The messages of a task already have this form. Imported tasks, tasks that changed their model, and bugs may not. A
provider that rejects the history would reject it in every later request, too.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable

from tarmac.models.messages import Image, Message, Part, Reasoning, Role, Text, ToolResult, ToolUse

NO_RESULT = "[this call has no result]"
ELSEWHERE = "[the result of an earlier call]"
CONTINUE = "[continue]"

FitId = Callable[[str], str]


def plain_id(id_: str) -> str:
    """An id that Anthropic and OpenAI accept: at most 40 letters, digits, _ and -."""
    return id_ if re.fullmatch(r"[A-Za-z0-9_-]{1,40}", id_) else f"call_{_digest(id_)[:24]}"


def short_id(id_: str) -> str:
    """An id that Mistral accepts: nine letters or digits."""
    return id_ if re.fullmatch(r"[A-Za-z0-9]{9}", id_) else _digest(id_)[:9]


def plain_name(name: str) -> str:
    """A tool name that Anthropic and OpenAI accept. The model may have called a tool that does not exist."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64] or "unnamed"


def _digest(id_: str) -> str:
    return hashlib.sha256(id_.encode("utf-8", "surrogatepass")).hexdigest()


def encodable(text: str) -> str:
    """The text without lone surrogates, which file names may contain and UTF-8 can't encode."""
    return text.encode("utf-8", "replace").decode("utf-8")


def json_object(arguments: str) -> str:
    """The arguments of a call as a JSON object: unchanged if they are one, otherwise wrapped as invalid.

    Many servers parse the arguments of earlier calls. They reject every request with broken ones.
    """
    text = encodable(arguments)
    try:
        found = json.loads(text.strip() or "{}", strict=False)  # line breaks in strings: the tool accepted them
        if isinstance(found, str):  # encoded twice: accepted, too
            found = json.loads(found, strict=False)
        whole = encodable(json.dumps(found, ensure_ascii=False, allow_nan=False))
        if not isinstance(found, dict):
            raise ValueError
    except (ValueError, RecursionError):
        return json.dumps({"INVALID_JSON": text}, ensure_ascii=False)
    try:
        return text if json.loads(text) == json.loads(whole) else whole
    except ValueError:
        return whole


def normalized(messages: Iterable[Message], fit: FitId = plain_id) -> list[Message]:
    turns: list[tuple[Role, list[Part]]] = [("user", [])]
    for message in messages:
        parts = list(_user_parts(message.parts) if message.role == "user" else _assistant_parts(message.parts))
        if not parts:
            continue
        if turns[-1][0] == message.role:
            turns[-1][1].extend(parts)
        else:
            turns.append((message.role, parts))
    if turns[-1][0] == "assistant":
        turns.append(("user", []))
    used: set[str] = set()
    calls: dict[str, str] = {}  # of the previous message: id in the task → id in the request
    result = []
    for role, parts in turns:
        if role == "assistant":
            calls = {}
            parts = [_renamed(part, calls, used, fit) if isinstance(part, ToolUse) else part for part in parts]
        else:
            parts = _results_first(parts, calls) or [Text(CONTINUE)]
        result.append(Message(role, tuple(parts)))
    return result


def _user_parts(parts: Iterable[Part]) -> Iterable[Part]:
    for part in parts:
        if isinstance(part, ToolResult | Image) or (isinstance(part, Text) and part.text.strip()):
            yield part


def _assistant_parts(parts: tuple[Part, ...]) -> Iterable[Part]:
    kept = [
        part
        for part in parts
        if isinstance(part, ToolUse | Reasoning) or (isinstance(part, Text) and part.text.strip())
    ]
    return kept if any(not isinstance(part, Reasoning) for part in kept) else ()


def _renamed(call: ToolUse, calls: dict[str, str], used: set[str], fit: FitId) -> ToolUse:
    name = fit(call.id)
    again = 1
    while name in used:
        again += 1
        name = fit(f"{call.id}#{again}")
    used.add(name)
    calls.setdefault(call.id, name)
    if calls[call.id] != name:  # the same id twice in one message: the first gets the result
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
        else:  # no provider accepts a result without its call
            rest += [Text(ELSEWHERE), *_user_parts(part.content)]
    missing = (Text(NO_RESULT),)
    first: list[Part] = []
    for call, name in calls.items():
        found = results.get(call)
        first.append(ToolResult(name, found.content, found.failed) if found else ToolResult(name, missing, failed=True))
    return first + rest
