"""`tarmac tasks export`: write a task as a Markdown page, as one JSON object, or as Roo-Code's files."""

import asyncio
import base64
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tarmac.cli.atomic_file import write_whole
from tarmac.cli.help import suggest
from tarmac.errors import BadRequest
from tarmac.events import TaskId
from tarmac.models.messages import Blob, Image
from tarmac.show.markdown import page
from tarmac.show.records import record
from tarmac.tasks.events import TaskEvent, ToolFinished, UserSaid
from tarmac.tasks.log.blobs import Blobs
from tarmac.tasks.log.codec import to_plain
from tarmac.tasks.log.reader import BLOBS
from tarmac.tasks.store import TaskStore
from tarmac.tasks.views.metadata import metadata

FORMATS: Final = ["markdown", "json", "roo"]


async def export(store: TaskStore, task: TaskId, form: str, to: Path | None, *, force: bool, at_work: bool) -> int:
    """Write it to `to`, or to standard output; the exit code."""
    form = {"md": "markdown"}.get(form, form)
    if form not in FORMATS:
        raise BadRequest(f"there is no format `{form}`", hint=suggest(form, FORMATS) or ", ".join(FORMATS))
    reading = await store.read(task)
    blobs = Blobs(store.path(task) / BLOBS)
    if form == "roo":
        from tarmac.tasks.roo.export_files import write_task

        if to is None:
            raise BadRequest("Roo-Code's files need a folder", hint="--to DIR: the task goes to DIR/ID")
        written = await asyncio.to_thread(write_task, reading.events, blobs.read, to / task, force=force)
        print(written)
        return 0
    text = page(reading.events, at_work=at_work) if form == "markdown" else as_json(reading.events, blobs)
    if to is None:
        sys.stdout.write(text)
    else:
        await asyncio.to_thread(_write, to, text, force=force)
    return 0


def as_json(events: list[TaskEvent], blobs: Blobs) -> str:
    """All of a task in one object: nothing else is needed to read it."""
    images = {each.sha256: each for each in _images(events)}
    found = {
        name: {
            "media_type": blob.media_type,
            "base64": None if (data := blobs.read(name)) is None else base64.b64encode(data).decode(),
        }
        for name, blob in images.items()
    }
    whole = {
        "format": "tarmac task",
        "version": 1,
        "metadata": json.loads(to_plain(metadata(events))),
        "events": [record(seq, event) for seq, event in enumerate(events, 1)],
        "images": found,
    }
    return json.dumps(whole, indent=1) + "\n"


def _images(events: Iterable[TaskEvent]) -> Iterable[Blob]:
    for event in events:
        if isinstance(event, UserSaid):
            yield from event.images
        elif isinstance(event, ToolFinished):
            yield from (part.blob for part in event.content if isinstance(part, Image))


def _write(path: Path, text: str, *, force: bool) -> None:
    """Whole, or not at all."""
    if path.exists() and not force:
        raise BadRequest(f"{path} is there already", hint="--force writes over it")
    write_whole(path, text)
