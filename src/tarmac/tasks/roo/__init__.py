"""Import and export of Roo-Code tasks. This module reads the files of a task there, and does nothing else.

files ─read here→ RooTask ─importer.py→ facts of our log        facts ─exporter.py→ its two histories       (both PURE)

<id>/api_conversation_history.json   what the model got: Anthropic messages with `ts`, or {"version": 2, "messages": …}
     ui_messages.json                what the person saw: {"ts", "type": "say" | "ask", …}
     history_item.json               a line of its list: id, number, tokens, cost, workspace, mode, status
     task_metadata.json              files in the context

A missing file reads as empty, as it does there. A damaged one is an error that says where; with `salvage` all that is
whole before the damage is taken, and the damage is told.
"""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar

from tarmac.errors import BadRequest, ImportFailed

API: Final = "api_conversation_history.json"
UI: Final = "ui_messages.json"
ITEM: Final = "history_item.json"
METADATA: Final = "task_metadata.json"
OLD_API: Final = "claude_messages.json"
NAMES: Final = (API, OLD_API, UI, ITEM, METADATA)
LARGEST: Final = 1 << 30

Object = dict[str, object]
T = TypeVar("T")


@dataclass(slots=True)
class RooTask:
    """What its files hold."""

    id: str
    folder: Path
    api: list[Object] = field(default_factory=list)
    ui: list[Object] = field(default_factory=list)
    item: Object = field(default_factory=dict)
    metadata: Object = field(default_factory=dict)
    raw: dict[str, bytes] = field(default_factory=dict)  # the files as they are
    trouble: list[str] = field(default_factory=list)  # what was damaged, and is not in the above


def find_tasks(folder: Path) -> list[Path]:
    """The task folders in `folder`: itself, those in it, or those in its `tasks`."""
    if not folder.is_dir():
        raise BadRequest(f"`{folder}` is not a folder", hint="give the folder of Roo-Code's tasks, or that of one task")
    if _is_task(folder):
        return [folder]
    for place in (folder, folder / "tasks"):
        found = sorted(each for each in place.iterdir() if _is_task(each)) if place.is_dir() else []
        if found:
            return found
    raise BadRequest(f"there is no task of Roo-Code in {folder}", hint=f"a task is a folder with {API} or {UI} in it")


def read_task(folder: Path, *, salvage: bool = False) -> RooTask:
    """All of one task."""
    name = folder.resolve().name
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,99}", name):
        raise ImportFailed(f"{folder} is not named like a task of Roo-Code")
    task = RooTask(name, folder)
    for each in NAMES:
        try:
            if (folder / each).stat().st_size > LARGEST:
                raise ImportFailed(f"{folder / each} is larger than a GiB")
            task.raw[each] = (folder / each).read_bytes()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise ImportFailed(f"{folder / each} can't be read: {error.strerror}") from None
    api = API if API in task.raw else OLD_API
    task.api = _list(task, api, salvage=salvage)
    task.ui = _list(task, UI, salvage=salvage)
    task.item = _object(task, ITEM, salvage=salvage)
    task.metadata = _object(task, METADATA, salvage=salvage)
    return task


def _is_task(folder: Path) -> bool:
    return folder.is_dir() and any((folder / each).is_file() for each in (API, UI, OLD_API))


def _list(task: RooTask, name: str, *, salvage: bool) -> list[Object]:
    if name not in task.raw:
        return []
    found = _parsed(task, name, salvage=salvage)
    if isinstance(found, dict) and isinstance(found.get("messages"), list):
        found = found["messages"]
    if not isinstance(found, list):
        return _damaged(task, name, "it holds no list of messages", [], salvage=salvage)
    whole = [each for each in found if isinstance(each, dict)]
    if len(whole) < len(found):
        count = len(found) - len(whole)
        _damaged(task, name, f"{count} of its {len(found)} messages are none", [], salvage=salvage)
    return whole


def _object(task: RooTask, name: str, *, salvage: bool) -> Object:
    if name not in task.raw:
        return {}
    found = _parsed(task, name, salvage=salvage)
    if isinstance(found, dict):
        return found
    return {} if found == [] else _damaged(task, name, "it holds no object", {}, salvage=salvage)


def _parsed(task: RooTask, name: str, *, salvage: bool) -> object:
    """The JSON in a file; of a damaged list what is whole before the damage."""
    text = task.raw[name].decode("utf-8", "replace").removeprefix("\ufeff")
    try:
        return json.loads(text)
    except RecursionError:
        return _damaged(task, name, "it is nested too deeply", [], salvage=salvage)
    except json.JSONDecodeError as error:
        whole = _whole(text) if salvage else []
        where = f"line {error.lineno}, column {error.colno} (byte {len(text[: error.pos].encode())})"
        why = f"{error.msg} at {where}" if text.strip("\0 \r\n\t") else "it is empty"
        return _damaged(task, name, why, whole, salvage=salvage, kept=f"; {len(whole)} messages before that are whole")


def _whole(text: str) -> list[object]:
    """The elements of a list that are whole, up to the first that is not."""
    start = re.match(r'\s*(?:\{\s*"version"\s*:\s*\d+\s*,\s*"messages"\s*:\s*)?\[\s*', text)
    found: list[object] = []
    decoder = json.JSONDecoder()
    at = start.end() if start else len(text)
    while at < len(text):
        try:
            element, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            break
        found.append(element)
        more = re.compile(r"\s*,\s*").match(text, at)
        if more is None:
            break
        at = more.end()
    return found


def _damaged(task: RooTask, name: str, why: str, left: T, *, salvage: bool, kept: str = "") -> T:
    if not salvage:
        raise ImportFailed(
            f"{task.folder / name} is damaged: {why}",
            hint="--salvage imports the part before the damage; the file stays as it is",
        )
    task.trouble.append(f"{name} is damaged: {why}{kept}")
    return left
