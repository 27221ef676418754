"""An open task, driven from this process's terminal or pipe to its end."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Sequence

from tarmac.app import App
from tarmac.cli.driving import Door, Driven, status_of, tell_end
from tarmac.cli.stopping import Stop
from tarmac.show.columns import cut
from tarmac.show.harmless import one_line
from tarmac.show.keyboard import Keyboard
from tarmac.show.look import Look, look_of
from tarmac.show.records import record
from tarmac.show.screen import Screen
from tarmac.show.teller import Teller
from tarmac.tasks.events import Noted
from tarmac.tasks.task import Picture


def is_attended(*, as_json: bool) -> bool:
    """Whether a person can be asked: both ends are a terminal, and no program reads along."""
    return sys.stdin.isatty() and sys.stdout.isatty() and not as_json


async def drive(
    app: App,
    task: Driven,
    stop: Stop,
    *,
    as_json: bool,
    words: str = "",
    images: Sequence[Picture] = (),
    yes: str = "",
    offers: bool = True,
    header: str = "",
) -> int:
    """Run it; the exit status. It goes on with `words`; `yes`: by whose word all that is asked is allowed.

    `offers`: when it is done, ask what is missing.
    `header` says what it is, where it is no task of a model of ours.
    """
    look = Look() if as_json else look_of(sys.stdout, os.environ)
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")
    screen = Screen(sys.stdout, look)
    teller = Teller(look, meta=task.metadata)
    keyboard = Keyboard(sys.stdin.fileno()) if task.attended and not yes else None
    door = Door(task, app.registry, screen, teller, keyboard=keyboard, as_json=as_json, yes=yes, offers=offers)
    if look.live and not as_json:

        def resized() -> None:
            screen.look = teller.look = look_of(sys.stdout, os.environ)

        asyncio.get_running_loop().add_signal_handler(signal.SIGWINCH, resized)
    if as_json:
        await _tell_past(app, task, screen)
    else:
        if task.metadata.requests:
            screen.say(look.paint("1;34", _fit(f"❯ {one_line(task.metadata.name)}", look)) + "\n")
        screen.say(look.paint("2", _fit(f"  {one_line(header)}" if header else _header(app, task), look)) + "\n\n")
        for note in await _notes(app, task):
            screen.say(teller.event(note))
    try:
        ended = await door.drive(stop, words, images)
    except BaseException:
        screen.quiet()
        if not as_json and task.metadata.requests:
            sys.stderr.write(f"\ntarmac: stopped\n  hint: {task.afterwards}\n")
        raise
    tell_end(ended, task, screen, as_json=as_json)
    if screen.broken:
        raise BrokenPipeError
    return status_of(ended)


def _header(app: App, task: Driven) -> str:
    """Which task, which model, and what runs without asking."""
    model = app.config.model or task.metadata.model
    if model.startswith("scripted/"):
        model = f"the script {model.rpartition('/')[2]}, no model"
    auto = app.config.auto
    level = "" if auto == "ask" else f" · --auto {auto}"
    before = " · goes on" if task.metadata.requests else ""
    return "  " + one_line(f"task {task.id} · {model} · {task.metadata.mode or app.config.mode}{level}{before}")


def _fit(line: str, look: Look) -> str:
    return cut(line, look.columns - 1) if look.live else line


async def _notes(app: App, task: Driven) -> list[Noted]:
    """What a new task noted before anybody could listen: what its workspace was refused, files that make no sense."""
    if task.metadata.requests:
        return []
    return [each for each in (await app.store.read(task.id)).events if isinstance(each, Noted)]


async def _tell_past(app: App, task: Driven, screen: Screen) -> None:
    """In JSON nothing is missing: what the log had before anybody could listen."""
    for seq, event in enumerate((await app.store.read(task.id)).events, 1):
        screen.say(json.dumps(record(seq, event)) + "\n")
