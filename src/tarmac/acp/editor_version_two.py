"""PURE: what `tarmac acp` tells an editor, in the shapes of ACP v2. Version 2 is a draft.

update of v1 → EditorVersionTwo.of() → [update of v2, …]        permission request of v1 → permission_of()

The shapes are those of the schema in @agentclientprotocol/sdk 2.4.0. The other direction, for agents that Tarmac hosts,
is in host/version_two.py.
"""

import base64
import re
from typing import Final

from tarmac.acp.content import Update
from tarmac.tools.edit.unified_diff import unified_diff

PLAN: Final = "todos"  # a session has one plan
_PLAIN: Final = re.compile(r'[^\x00-\x1f"\\\x7f-\U0010ffff]*')  # a path that Git does not quote
_CHUNKS: Final = frozenset({"user_message_chunk", "agent_message_chunk", "agent_thought_chunk"})


class EditorVersionTwo:
    """The fold of one session."""

    def __init__(self) -> None:
        self._messages = 0
        self._commands: dict[str, str] = {}  # of each call that has a terminal or may get one

    def of(self, update: Update) -> list[Update]:
        """The same in v2."""
        match update.get("sessionUpdate"):
            case kind if kind in _CHUNKS:
                return [{**update, "messageId": update.get("messageId") or self._message()}]
            case "tool_call" | "tool_call_update":
                return self._call(update)
            case "plan":
                plan = {"type": "items", "planId": PLAN, "entries": update["entries"]}
                return [{"sessionUpdate": "plan_update", "plan": plan}]
            case "current_mode_update":
                return []  # it is an option, and those are told too
            case "config_option_update":
                return [{**update, "configOptions": options_of(update["configOptions"])}]
            case "available_commands_update":
                return [{**update, "availableCommands": commands_of(update["availableCommands"])}]
        return [update]

    def _message(self) -> str:
        self._messages += 1
        return f"tarmac-{self._messages}"

    def _call(self, update: Update) -> list[Update]:
        """A call; what it tells of its terminal comes before, how that ended too."""
        id, given = str(update["toolCallId"]), update.get("rawInput")
        if isinstance(given, dict) and isinstance(command := given.get("command"), str):
            self._commands[id] = command
        meta = _object(update.get("_meta"))
        told = [each for name, value in meta.items() if (each := self._terminal(name, _object(value)))]
        if update.get("status") in ("completed", "failed"):
            self._commands.pop(id, None)
        left = {key: value for key, value in update.items() if key not in ("_meta", "sessionUpdate")}
        if isinstance(content := left.get("content"), list):
            left["content"] = content_of(content)
        return [*told, {"sessionUpdate": "tool_call_update", **left}] if len(left) > 1 else told

    def _terminal(self, name: str, value: Update) -> Update | None:
        id = str(value.get("terminal_id"))
        match name:
            case "terminal_info":
                facts = {"command": self._commands.get(id), "cwd": value.get("cwd")}
                known = {name: each for name, each in facts.items() if each is not None}
                return {"sessionUpdate": "terminal_update", "terminalId": id, **known}
            case "terminal_output":
                data = base64.b64encode(str(value.get("data")).encode("utf-8", "replace")).decode()
                return {"sessionUpdate": "terminal_output_chunk", "terminalId": id, "data": data}
            case "terminal_exit":
                status = {"exitCode": value.get("exit_code"), "signal": value.get("signal")}
                return {"sessionUpdate": "terminal_update", "terminalId": id, "exitStatus": status}
        return None


def permission_of(params: Update, *, command: str, cwd: str) -> Update:
    """A permission request. One for a single command has that as its subject, and all else that is known in words."""
    call = {key: value for key, value in _object(params.get("toolCall")).items() if key != "title"}
    content = call.get("content")
    found: Update = {"title": _object(params.get("toolCall")).get("title"), "options": params["options"]}
    if command and cwd:
        words = [_object(each.get("content")).get("text") for each in content] if isinstance(content, list) else []
        found["description"] = "\n".join(str(each) for each in words if each)
        found["subject"] = {"type": "command", "command": command, "cwd": cwd, "toolCallId": call["toolCallId"]}
        return found
    if isinstance(content, list):
        call["content"] = content_of(content)
    found["subject"] = {"type": "tool_call", "toolCall": call}
    return found


def content_of(content: list[object]) -> list[Update]:
    """What a call shows: two texts of a file are a change of it."""
    return [_diff(each) if each.get("type") == "diff" else each for each in map(_object, content)]


def options_of(options: object) -> list[Update]:
    """Config options, each with its id where v2 has it."""
    found = options if isinstance(options, list) else []
    return [{("configId" if key == "id" else key): value for key, value in each.items()} for each in found]


def commands_of(commands: object) -> list[Update]:
    """Slash commands, each with the kind of its input."""
    found = commands if isinstance(commands, list) else []
    return [{"type": "command", **each, "input": {"type": "text", **each["input"]}} for each in found]


def _diff(each: Update) -> Update:
    path, before, after = str(each["path"]), each.get("oldText"), str(each["newText"])
    old = before if isinstance(before, str) else None
    change: Update = {"operation": "add" if old is None else "modify", "path": path, "fileType": "text"}
    _, _, hunks = unified_diff(old, after, path).text.partition("\n+++ ")
    name, tab = _quoted(path), "\t" * (" " in path)
    head = [f"diff --git {name} {name}"]
    if old is None:
        head.append("new file mode 100644")
    if hunks:
        head += [f"--- {'/dev/null' if old is None else name + tab}", f"+++ {name}{tab}"]
    patch = "".join(f"{line}\n" for line in head) + hunks.partition("\n")[2]
    return {"type": "diff", "changes": [change], "patch": {"format": "git_patch", "text": patch}}


def _quoted(path: str) -> str:
    """A path as Git writes it."""
    if _PLAIN.fullmatch(path):
        return path
    known = {0x22: '\\"', 0x5C: "\\\\", 0x09: "\\t", 0x0A: "\\n", 0x0D: "\\r"}
    data = path.encode("utf-8", "surrogateescape")
    return '"' + "".join(known.get(each) or (chr(each) if 31 < each < 127 else f"\\{each:03o}") for each in data) + '"'


def _object(value: object) -> Update:
    return value if isinstance(value, dict) else {}
