"""PURE: what an agent of ACP v2 tells, as v1 has it. Version 2 is a draft, and is spoken only where it is asked for.

update of v2 → VersionTwo.of() → [update of v1, …] → Translation        request_permission of v2 → as_v1()

In v2 the answer to a prompt says only that it arrived. The turn ends when the session's state becomes `idle`.
Terminals are the agent's own: their output becomes `_meta.terminal_output` of the call that shows them.
"""

import base64
import binascii
import re
from typing import Final

from tarmac.acp.host.parameters import Object, block_text, object_of, objects_of, text_of, whole_of

NUMBER: Final = 2
_SECTION: Final = re.compile(r"(?m)^(?=diff --git )")
MOST_HELD: Final = 1 << 20  # characters of a terminal that no call shows yet


class VersionTwo:
    """The fold of one session."""

    def __init__(self) -> None:
        self.state = ""  # running, requires_action, idle
        self.stop_reason = ""  # of the last `idle`
        self.error = ""  # that ended the turn, if the reason is `error`
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
                self.error = text_of(object_of(update.get("error")).get("message"))
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
            update = {**update, "content": _content(content)}
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
    if isinstance(call.get("content"), list):
        call = {**call, "content": _content(objects_of(call.get("content")))}
    return {**params, "toolCall": call}


def _content(content: list[Object]) -> list[Object]:
    return [found for each in content for found in (_diffs(each) if each.get("type") == "diff" else [each])]


def _diffs(each: Object) -> list[Object]:
    """One for each file that a diff of v2 names, with its part of the patch."""
    if "newText" in each:
        return [each]
    sections = _SECTION.split(text_of(object_of(each.get("patch")).get("text")))[1:]
    found: list[Object] = []
    for change in objects_of(each.get("changes")):
        paths = [text_of(change.get(name)) for name in ("oldPath", "path")]
        whole = sections[0] if len(sections) == 1 else next((s for s in sections if paths[-1] in _head(s)), "")
        _, begins, hunks = whole.partition("\n--- ")
        for path in filter(None, paths):
            new = change.get("operation") == "add"
            found.append({"type": "diff", "path": path, "new": new, "patch": f"--- {hunks}" if begins else ""})
    return found


def _head(section: str) -> str:
    return section.partition("\n@@ ")[0]


def _text(data: object) -> str:
    try:
        return base64.b64decode(text_of(data), validate=True).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return ""
