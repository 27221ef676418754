"""PURE: the small parts of Roo-Code's messages, read with care: old versions wrote them in other ways."""

import json

from tarmac.models.messages import NO_USAGE, ToolUse, Usage
from tarmac.tasks.roo.task_files import Object


def blocks(message: Object) -> list[Object]:
    """What a message is made of; a plain text is a block, too."""
    content = message.get("content")
    if message.get("type") == "reasoning":
        return [message]
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return [each for each in content if isinstance(each, dict)] if isinstance(content, list) else []


def seconds(message: Object) -> float:
    """When it was; 0: it does not say."""
    at = message.get("ts")
    return at / 1000 if isinstance(at, int | float) and at > 0 else 0.0


def arguments(given: object) -> str:
    """Of a tool call, as JSON text."""
    if isinstance(given, dict) and set(given) == {"__arguments__"}:  # what telling.py makes of broken JSON
        return str(given["__arguments__"])
    return json.dumps({} if given is None else given, ensure_ascii=False)


def title(name: str, use: ToolUse | None) -> str:
    """A call in the past tense."""
    try:
        given = json.loads(use.arguments) if use else {}
    except ValueError:
        given = {}
    subject = given.get("command") or given.get("path") or given.get("file_path") if isinstance(given, dict) else ""
    if name == "execute_command":
        return f"Ran `{subject}`"
    verb = {"read_file": "Read", "write_to_file": "Wrote", "apply_diff": "Edited", "search_files": "Searched"}.get(name)
    return f"{verb} {subject}" if verb and subject else f"{name} {subject}".strip() if subject else name


def spending(message: Object) -> tuple[Usage, float | None]:
    """What a request took, by its `api_req_started`."""
    try:
        info = json.loads(str(message.get("text") or "{}"))
    except ValueError:
        return NO_USAGE, None
    if not isinstance(info, dict):
        return NO_USAGE, None

    def count(name: str) -> int:
        value = info.get(name)
        return int(value) if isinstance(value, int | float) and value > 0 else 0

    cached = count("cacheReads") + count("cacheWrites")
    total = count("tokensIn")  # with what was cached, since 2025; before that without
    cost = info.get("cost")
    usage = Usage(
        input=total - cached if total >= cached else total,
        output=count("tokensOut"),
        cache_reads=count("cacheReads"),
        cache_writes=count("cacheWrites"),
    )
    return usage, float(cost) if isinstance(cost, int | float) else None
