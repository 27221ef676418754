"""A task as Roo-Code's files: what it was made of when it came from there, with what happened since behind it."""

import json
import os
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path

from tarmac.errors import BadRequest, FileUnavailable
from tarmac.tasks import events as e
from tarmac.tasks.roo.exporter import api_messages, milliseconds, ui_messages
from tarmac.tasks.roo.task_files import API, ITEM, METADATA, OLD_API, UI, Object, RooTask, read_task
from tarmac.tasks.views.metadata import metadata

Fetch = Callable[[str], bytes | None]


def write_task(events: list[e.TaskEvent], fetch: Fetch, folder: Path, *, force: bool = False) -> Path:
    """Make `folder`, with its four files: all of it, or nothing."""
    if folder.exists() and not force:
        raise BadRequest(f"{folder} is there already", hint="--force writes over it")
    files = files_of(events, fetch, name=folder.name)
    new = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}")
    try:
        new.mkdir(parents=True)
        for name, content in files.items():
            (new / name).write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8", errors="replace")
        if folder.exists():
            shutil.rmtree(folder)
        os.rename(new, folder)  # noqa: PTH104
    except OSError as error:
        shutil.rmtree(new, ignore_errors=True)
        raise FileUnavailable(f"{folder} can't be written: {error.strerror}") from None
    return folder


def files_of(events: list[e.TaskEvent], fetch: Fetch, *, name: str) -> dict[str, object]:
    """Name → content."""
    origin = _origin(events)
    before = _kept(origin, fetch) if origin else RooTask(name, Path())
    since = events[origin.last :] if origin else events
    return {
        API: [*before.api, *api_messages(since, fetch)],
        UI: [*before.ui, *ui_messages(since, fetch, begun=bool(before.ui))],
        ITEM: before.item if origin and before.item and not _news(since) else _item(events, before, name),
        METADATA: before.metadata if origin and not _news(since) else _files(events, before.metadata),
    }


def _origin(events: list[e.TaskEvent]) -> e.TaskImported | None:
    """Where it came from, unless its past was changed since: then what is there now is all that counts."""
    found = next((each for each in events if isinstance(each, e.TaskImported) and each.source == "roo"), None)
    if found is None:
        return None
    for event in events[found.last :]:
        match event:
            case e.HistoryRewound(to=reach) | e.HistoryCondensed(first=reach) if reach <= found.last:
                return None
    return found


def _kept(origin: e.TaskImported, fetch: Fetch) -> RooTask:
    """The files as they came; of damaged ones what was taken."""
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "task"
        folder.mkdir()
        for file in origin.files:
            if Path(file.name).name in (API, OLD_API, UI, ITEM, METADATA):
                (folder / Path(file.name).name).write_bytes(fetch(file.blob.sha256) or b"")
        return read_task(folder, salvage=True)


def _news(since: list[e.TaskEvent]) -> bool:
    return any(isinstance(each, e.UserSaid | e.ModelSaid | e.ToolFinished | e.MessageQueued) for each in since)


def _item(events: list[e.TaskEvent], before: RooTask, name: str) -> Object:
    meta = metadata(events)
    usage = meta.usage
    item: Object = {
        "id": name,
        "number": meta.number,
        "ts": milliseconds(meta.at),
        "task": meta.name,
        "tokensIn": usage.input + usage.cache_reads + usage.cache_writes,
        "tokensOut": usage.output,
        "cacheWrites": usage.cache_writes,
        "cacheReads": usage.cache_reads,
        "totalCost": meta.cost,
        "workspace": str(meta.workspace),
        "mode": meta.mode,
        "status": "completed" if meta.outcome == "completed" else "active",
    }
    if meta.root:
        item["rootTaskId"] = meta.root
    if meta.parent:
        item["parentTaskId"] = meta.parent
    return {**before.item, **item}


def _files(events: list[e.TaskEvent], before: Object) -> Object:
    """The files that the task knows, each once, with when it was read and edited."""
    known = before.get("files_in_context")
    found: dict[str, Object] = {}
    for event in events:
        if isinstance(event, e.FileSeen):
            entry = found.setdefault(
                str(event.path),
                {
                    "path": str(event.path),
                    "record_state": "active",
                    "record_source": "read_tool",
                    "roo_read_date": None,
                    "roo_edit_date": None,
                    "user_edit_date": None,
                },
            )
            entry["record_source"] = "read_tool" if event.how == "read" else "roo_edited"
            entry["roo_read_date" if event.how == "read" else "roo_edit_date"] = milliseconds(event.at)
    return {"files_in_context": [*(known if isinstance(known, list) else []), *found.values()]}
