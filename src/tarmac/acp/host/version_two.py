"""PURE: what an agent of ACP v2 tells, as v1 has it. Version 2 is a draft, and is spoken only where it is asked for.

update of v2 → VersionTwo.of() → [update of v1, …] → Translation        request_permission of v2 → as_v1()

In v2 the answer to a prompt says only that it arrived. The turn ends when the session's state becomes `idle`.
Terminals are the agent's own: their output becomes `_meta.terminal_output` of the call that shows them.
"""

import base64
import binascii
from typing import Final

from tarmac.acp.host.parameters import Object, block_text, object_of, objects_of, text_of, whole_of

NUMBER: Final = 2
MOST_HELD: Final = 1 << 20  # characters of a terminal that no call shows yet


class VersionTwo:
    """The fold of one session."""

    def __init__(self) -> None:
        self.state = ""  # running, requires_action, idle
        self.stop_reason = ""  # of the last `idle`
        self._messages: dict[str, str] = {}  # the text of each that was told
        self._content: dict[str, list[Object]] = {}  # of each call, for what is added piece by piece
        self._calls: dict[str, str] = {}  # terminal → the call that shows it
        self._printed: dict[str, str] = {}  # of each terminal
        self._held: dict[str, list[Object]] = {}  # of a terminal that no call shows yet

    def of(self, update: Object) -> list[Object]:
        """The same in v1."""
        match kind := text_of(update.get("sessionUpdate")):
            case "state_update":
                self.state = text_of(update.get("state"))
                self.stop_reason = text_of(update.get("stopReason"))
                return []
            case "agent_message_chunk" | "agent_thought_chunk":
                id = f"{kind.removesuffix('_chunk')} {text_of(update.get('messageId'))}"
                self._messages[id] = self._messages.get(id, "") + block_text(object_of(update.get("content")))
                return [update]
            case "agent_message" | "agent_thought":
                return self._message(kind, update)
            case "tool_call_update":
                return self._call(update)
            case "tool_call_content_chunk":
                id = text_of(update.get("toolCallId"))
                self._content.setdefault(id, []).append(object_of(update.get("content")))
                return self._call({"sessionUpdate": "tool_call_update", "toolCallId": id, "content": self._content[id]})
            case "terminal_update" | "terminal_output_chunk":
                return self._terminal(update)
            case "plan_update":
                return [{"sessionUpdate": "plan", "entries": object_of(update.get("plan")).get("entries")}]
        return [update]

    def _message(self, kind: str, update: Object) -> list[Object]:
        """All of a message: what was not told yet."""
        id = f"{kind} {text_of(update.get('messageId'))}"
        text, before = "".join(map(block_text, objects_of(update.get("content")))), self._messages.get(id, "")
        self._messages[id] = text
        new = text.removeprefix(before) if text.startswith(before) else text
        return [{"sessionUpdate": f"{kind}_chunk", "content": {"type": "text", "text": new}}] if new else []

    def _call(self, update: Object) -> list[Object]:
        id = text_of(update.get("toolCallId"))
        content = objects_of(update.get("content"))
        if isinstance(update.get("content"), list):
            self._content[id] = content
            update = {**update, "content": [_content(each) for each in content]}
        told: list[Object] = []
        for terminal in (text_of(each.get("terminalId")) for each in content if each.get("type") == "terminal"):
            self._calls[terminal] = id
            told += [
                {"sessionUpdate": "tool_call_update", "toolCallId": id, **each} for each in self._held.pop(terminal, [])
            ]
        return (
            [*told, update]
            if text_of(update.get("status")) in ("completed", "failed", "cancelled")
            else [update, *told]
        )

    def _terminal(self, update: Object) -> list[Object]:
        id = text_of(update.get("terminalId"))
        meta: Object = {}
        before = self._printed.get(id, "")
        if update.get("sessionUpdate") == "terminal_output_chunk":
            new = _text(update.get("data"))
            self._printed[id] = before + new
        else:
            whole = _text(object_of(update.get("output")).get("data"))
            new = whole.removeprefix(before) if whole.startswith(before) else whole
            self._printed[id] = whole or before
        self._printed[id] = self._printed[id][-MOST_HELD:]
        if new:
            meta["terminal_output"] = {"terminal_id": id, "data": new}
        if isinstance(ended := update.get("exitStatus"), dict):
            meta["terminal_exit"] = {"terminal_id": id, "exit_code": whole_of(ended.get("exitCode"))}
        if not meta:
            return []
        if id not in self._calls:
            self._held.setdefault(id, []).append({"_meta": meta})
            return []
        return [{"sessionUpdate": "tool_call_update", "toolCallId": self._calls[id], "_meta": meta}]


def as_v1(params: Object) -> Object:
    """A permission request, with the call that it is about where v1 has it."""
    subject = object_of(params.get("subject"))
    call = object_of(params.get("toolCall")) or object_of(subject.get("toolCall"))
    if subject.get("type") == "command":
        command = {"command": subject.get("command"), "cwd": subject.get("cwd")}
        call = {"toolCallId": subject.get("toolCallId"), "kind": "execute", "rawInput": command}
    return {**params, "toolCall": call}


def _content(each: Object) -> Object:
    """A diff of v2 is a patch, or only names what changes."""
    if each.get("type") != "diff" or "newText" in each:
        return each
    patch = text_of(object_of(each.get("patch")).get("data")) or text_of(object_of(each.get("patch")).get("text"))
    named = "\n".join(
        f"{text_of(change.get('type')) or 'changes'} {text_of(change.get('path'))}"
        for change in objects_of(each.get("changes"))
    )
    return {"type": "content", "content": {"type": "text", "text": patch or named}}


def _text(data: object) -> str:
    try:
        return base64.b64decode(text_of(data), validate=True).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return ""
