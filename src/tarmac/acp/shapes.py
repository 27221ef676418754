"""PURE: the pieces that updates are made of: chunks, contents, places, and ACP's words for what tools do."""

import json
from pathlib import Path
from typing import Final

from tarmac.acp.content import fenced
from tarmac.models.messages import Image, Text
from tarmac.tasks.events import ToolFinished

Update = dict[str, object]

MOST_OUTPUT: Final = 16_000  # characters of a command's output as text
_KINDS: Final = {
    "read_file": "read",
    "list_files": "search",
    "search_files": "search",
    "list_code_definition_names": "search",
    "write_to_file": "edit",
    "apply_diff": "edit",
    "insert_content": "edit",
    "search_and_replace": "edit",
    "apply_patch": "edit",
    "execute_command": "execute",
    "run_command": "execute",
    "open_persistent_terminal": "execute",
    "run_persistent_command": "execute",
    "send_to_terminal": "execute",
    "wait_for_terminal": "execute",
    "read_terminal": "read",
    "kill_persistent_terminal": "execute",
    "switch_mode": "switch_mode",
}


def kind_of(tool: str) -> str:
    """ACP's word for what a tool does."""
    return _KINDS.get(tool, "other")


def call_update(id: str) -> Update:
    return {"sessionUpdate": "tool_call_update", "toolCallId": id}


def chunk(kind: str, text: str) -> Update:
    return {"sessionUpdate": kind, "content": {"type": "text", "text": text}}


def content(text: str) -> Update:
    return {"type": "content", "content": {"type": "text", "text": text}}


def console(text: str, total: int) -> Update:
    """The last of `total` characters, in a fence that none of its lines can close."""
    text = text.rstrip("\n")
    shown = text if total <= MOST_OUTPUT else f"[… {total - MOST_OUTPUT:,} characters before this]\n{text}"
    return content(fenced(shown, "console"))


def text_of(finished: ToolFinished) -> str:
    words = [
        part.text if isinstance(part, Text) else "[an image]"
        for part in finished.content
        if isinstance(part, Text | Image)
    ]
    return "\n".join(words)[:MOST_OUTPUT]


def object_of(text: str) -> dict[str, object] | None:
    try:
        found = json.loads(text) if text else None
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def named(arguments: dict[str, object], workspace: Path | None) -> list[Update]:
    """The files that a call names, for an editor that goes along."""
    files = arguments.get("files")
    each_file = [each for each in files if isinstance(each, dict)] if isinstance(files, list) else [arguments]
    found: list[Update] = []
    for each in each_file:
        path = each.get("path")
        if isinstance(path, str) and path and "\0" not in path and workspace is not None:
            at: Update = {"path": str(workspace / path)}
            ranges = each.get("line_ranges")
            first = str(ranges[0]).partition("-")[0] if isinstance(ranges, list) and ranges else each.get("line")
            if str(first).isdecimal() and 0 < int(str(first)) < 1 << 31:
                at["line"] = int(str(first))
            found.append(at)
    return found


def files_of(found: dict[str, object]) -> list[dict[str, object]]:
    files = found.get("files")
    return [each for each in files if isinstance(each, dict)] if isinstance(files, list) else []


def paths_of(found: dict[str, object]) -> list[str]:
    return [path for file in files_of(found) if isinstance(path := file.get("path"), str) and Path(path).is_absolute()]
