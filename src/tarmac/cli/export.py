"""`tarmac tasks export`: write a task as a Markdown page, as one JSON object, or as Roo-Code's files."""

import asyncio
import base64
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from tarmac.cli.parser import suggest
from tarmac.errors import BadRequest, FileUnavailable
from tarmac.events import TaskId
from tarmac.models.messages import Blob, Image, Reasoning, Text, ToolUse
from tarmac.show.json_records import record
from tarmac.show.look import harmless, one_line
from tarmac.show.summary import spent, status
from tarmac.tasks import events as e
from tarmac.tasks.events import TaskEvent, ToolFinished, UserSaid
from tarmac.tasks.log.disk import Blobs
from tarmac.tasks.log.reader import BLOBS
from tarmac.tasks.log.records import to_plain
from tarmac.tasks.store import TaskStore
from tarmac.tasks.views.metadata import metadata
from tarmac.tasks.views.model_history import text_of

LONGEST = 20_000  # characters of one output: a page is to be read


def page(events: list[e.TaskEvent], *, at_work: bool) -> str:
    """All that was said and done in it, in order."""
    meta = metadata(events)
    made = time.strftime("%Y-%m-%d %H:%M", time.localtime(meta.created))
    how = status(meta, at_work=at_work)
    head = [
        f"# {one_line(meta.name)}",
        "",
        f"Task `{meta.task}`, {made}, in `{one_line(str(meta.workspace))}`, mode {meta.mode}, {how}.  ",
        f"{spent(meta)}" + (f", with {one_line(meta.model)}" if meta.model else ""),
    ]
    return harmless("\n".join([*head, *_body(events)])) + "\n"


def _body(events: Iterable[e.TaskEvent]) -> Iterator[str]:
    calls: dict[str, ToolUse] = {}
    for event in events:
        match event:
            case e.UserSaid(text=text) | e.MessageQueued(text=text):
                yield from _section("You", text)
                yield from (f"\n(image: {blob.media_type}, {blob.size:,} bytes)" for blob in event.images)
            case e.ModelSaid(parts=parts):
                for part in parts:
                    match part:
                        case Text(text=text) if text.strip():
                            yield from _section("Model", text)
                        case Reasoning(text=text) if text.strip():
                            yield f"\n<details><summary>thinking</summary>\n\n{_fenced(text)}\n\n</details>"
                        case ToolUse(id=call):
                            calls[call] = part
            case e.ToolFinished():
                yield from _tool(event, calls.get(event.call))
            case _:
                yield from _other(event)


def _tool(event: e.ToolFinished, use: ToolUse | None) -> Iterator[str]:
    yield f"\n### {_escaped(one_line(event.title or event.name))}" + (
        "" if event.outcome == "done" else f": {event.outcome}"
    )
    if use is not None and (arguments := _arguments(use.arguments)):
        yield f"\n{arguments}"
    if text := text_of(event.content).strip():
        yield f"\n{_fenced(text)}"


def _arguments(text: str) -> str:
    """What the tool was given; long texts in blocks of their own."""
    try:
        given = json.loads(text)
    except ValueError:
        return _fenced(text)
    if not isinstance(given, dict):
        return _fenced(text)
    lines = [f"- {one_line(name)}: {_value(value)}" for name, value in given.items()]
    return "\n".join(lines)


def _value(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if "\n" in text or len(text) > 200:
        return f"\n\n{_fenced(text)}\n"
    return f"`{one_line(text)}`" if "`" not in text else one_line(text)


def _other(event: e.TaskEvent) -> Iterator[str]:
    match event:
        case e.QuestionAnswered(text=text) if text.strip():
            yield from _section("You", text)
        case e.TaskCompleted(result=result):
            yield from _section("Done", result)
        case e.TaskAborted(why=why):
            yield from _section("Ended", why or "before it was done")
        case e.RequestFailed(what=what):
            yield f"\n> The model did not answer: {one_line(what)}"
        case e.Noted(what=what, text=text):
            yield f"\n> {what}: {one_line(text)}"
        case e.ModeSwitched(mode=mode):
            yield f"\n> Mode: {one_line(mode)}"
        case e.TodosUpdated(todos=todos):
            yield ""
            yield from (f"- [{'x' if todo.status == 'done' else ' '}] {one_line(todo.text)}" for todo in todos)
        case e.RecordLost(seq=seq, why=why):
            yield f"\n> Record {seq} is lost: {one_line(why)}"
        case e.HistoryCondensed(summary=summary):
            yield f"\n> What came before, as the model has it now:\n\n{_fenced(summary)}"


def _section(who: str, text: str) -> Iterator[str]:
    yield f"\n## {who}\n\n{harmless(text).strip()}"


def _fenced(text: str) -> str:
    """A block that nothing inside can end."""
    if len(text) > LONGEST:
        text = f"{text[: LONGEST // 2]}\n[… {len(text) - LONGEST:,} characters …]\n{text[-LONGEST // 2 :]}"
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}\n{harmless(text)}\n{fence}"


def _escaped(text: str) -> str:
    return re.sub(r"([*_<>\[\]])", r"\\\1", text) if "`" not in text else text


def write_whole(path: Path, text: str) -> None:
    """Replace the file at `path` with `text`."""
    new = ""
    try:
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", errors="replace", dir=path.parent, delete=False
        ) as file:
            new = file.name
            file.write(text)
        os.replace(new, path)  # noqa: PTH105
    except OSError as error:
        if new:
            Path(new).unlink(missing_ok=True)
        raise FileUnavailable(f"{path} can't be written: {error.strerror}") from None


FORMATS: Final = ["markdown", "json", "roo"]


async def export(store: TaskStore, task: TaskId, form: str, to: Path | None, *, force: bool, at_work: bool) -> int:
    """Write it to `to`, or to standard output; the exit code."""
    form = {"md": "markdown"}.get(form, form)
    if form not in FORMATS:
        raise BadRequest(f"there is no format `{form}`", hint=suggest(form, FORMATS) or ", ".join(FORMATS))
    reading = await store.read(task)
    blobs = Blobs(store.path(task) / BLOBS)
    if form == "roo":
        from tarmac.tasks.roo.exporter import write_task

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
        raise BadRequest(f"{path} already exists", hint="--force overwrites it")
    write_whole(path, text)
