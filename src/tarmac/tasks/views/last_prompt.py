"""PURE: what the model was sent last, folded out of the log and the blob that its request names."""

import json
from collections.abc import Callable, Sequence

from tarmac.models.provider import Prompt, ToolSchema
from tarmac.models.xml_calls import as_text
from tarmac.tasks.events import RequestStarted, TaskEvent
from tarmac.tasks.views.model_history import model_messages


def kept_prompt(prompt: Prompt, *, native_tools: bool) -> bytes:
    """System prompt and tools, as a log keeps them."""
    tools = [
        {"name": each.name, "description": each.description, "parameters": each.parameters} for each in prompt.tools
    ]
    whole = {"system": prompt.system, "native_tools": native_tools, "tools": tools}
    return json.dumps(whole, ensure_ascii=False, default=dict).encode("utf-8", "surrogatepass")


def last_prompt(events: Sequence[TaskEvent], fetch: Callable[[str], bytes | None]) -> Prompt | None:
    """The last request, whole; None when there was none. Older logs kept the tools as text."""
    asked = [at for at, event in enumerate(events) if isinstance(event, RequestStarted)]
    if not asked:
        return None
    started = events[asked[-1]]
    assert isinstance(started, RequestStarted)
    messages = tuple(model_messages(events[: asked[-1] + 1]))
    text = (fetch(started.prompt.sha256) or b"" if started.prompt else b"").decode("utf-8", "surrogatepass")
    try:
        kept = json.loads(text)
        tools = tuple(ToolSchema(each["name"], each["description"], each["parameters"]) for each in kept["tools"])
        prompt = Prompt(kept["system"], messages, tools)
        return prompt if kept["native_tools"] else as_text(prompt)
    except (ValueError, KeyError, TypeError):
        return Prompt(text, messages)
