"""An open task, driven from this process's terminal or pipe to its end."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING

from tarmac.app import App
from tarmac.cli.driven import Driven, notes_before, status_of
from tarmac.cli.exit_status import complain
from tarmac.cli.person import Person, at_terminal
from tarmac.cli.shutdown import Stop
from tarmac.cli.task_driver import TaskDriver
from tarmac.paths import state_dir
from tarmac.policy.approval import Picture
from tarmac.show.json_records import record
from tarmac.show.look import Look, cut, look_of, one_line, wrapped
from tarmac.show.renderer import TaskRenderer
from tarmac.show.screen import Screen
from tarmac.tasks.context import Ended
from tarmac.terminals.environment import wipe_own_environment

if TYPE_CHECKING:
    from tarmac.cli.interactive import Tasks


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
    after: str = "",
    tasks: "Tasks | None" = None,
    starts: bool = True,
) -> int:
    """Run it; the exit status. It goes on with `words`; `yes`: by whose word all that is asked is allowed.

    `offers`: when it is done, ask what is missing.
    `header` says what it is, where it is no task of a model of ours; `after` what can be done when it was stopped.
    """
    look = Look() if as_json else look_of(sys.stdout, os.environ)
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")
    wipe_own_environment(app.config.terminals)
    if task.attended and not yes and not as_json and can_be_interactive(look):
        from tarmac.cli.interactive import Interactive, Tasks
        from tarmac.show.ui import SessionUI

        said = header or _header(app, task)
        ui = SessionUI(look, history=state_dir(os.environ) / "history")
        session = Interactive(
            app, stop, tasks or Tasks(), ui, look=look, header=said, task=task, starts=starts, once=not offers
        )
        async with ui.running():
            return await session.run(words, images)
    screen = Screen(sys.stdout, look)
    renderer = TaskRenderer(look, meta=task.metadata)
    after = after or task.afterwards
    with at_terminal(screen) if task.attended and not yes else nullcontext() as person:
        driver = TaskDriver(
            task, app.registry, screen, renderer, person=person, as_json=as_json, yes=yes, offers=offers, after=after
        )
        if not as_json:
            _follow_terminal(screen, renderer, person)
        await _begin(app, task, screen, renderer, header, as_json=as_json)
        try:
            ended = await driver.drive(stop, words, images)
        except asyncio.CancelledError:
            screen.quiet()
            if not as_json:
                sys.stderr.write(f"\ntarmac: stopped\n  hint: {after}\n")
            raise
    tell_end(
        ended, task, screen, after=after, denied=len(driver.denied), critical=len(driver.critical), as_json=as_json
    )
    if screen.broken:
        raise BrokenPipeError
    return status_of(ended)


def can_be_interactive(look: Look) -> bool:
    """Whether the session's editor can be drawn: a terminal on both sides that can move its cursor."""
    return look.live and sys.stdin.isatty() and sys.stdout.isatty()


def _follow_terminal(screen: Screen, renderer: TaskRenderer, person: Person | None) -> None:
    """Its size may change, and after Ctrl-Z and `fg` the line for what is under way is gone."""
    loop = asyncio.get_running_loop()

    def resized() -> None:
        screen.look = renderer.look = look_of(sys.stdout, os.environ)

    if screen.look.live:
        loop.add_signal_handler(signal.SIGWINCH, resized)
        loop.add_signal_handler(signal.SIGCONT, screen.again)
    if person is not None:
        loop.add_signal_handler(signal.SIGCONT, person.again)


async def _begin(app: App, task: Driven, screen: Screen, renderer: TaskRenderer, header: str, *, as_json: bool) -> None:
    """The first lines: what it is; in JSON all that was before."""
    if as_json:
        await _tell_past(app, task, screen)
        return
    look = screen.look
    if task.metadata.requests:
        screen.say(look.paint("1;34", _fit(f"❯ {one_line(task.metadata.name)}", look)) + "\n")
    said = one_line(header) if header else _header(app, task)
    lines = wrapped(said, look.columns - 3) if look.live else [said]
    screen.say("".join(look.paint("2", f"  {line}") + "\n" for line in lines) + "\n")
    for note in await notes_before(app, task):
        screen.say(renderer.event(note))


def _header(app: App, task: Driven) -> str:
    """Which task, which model, and what runs without asking."""
    model = app.config.model or task.metadata.model
    if model.startswith("scripted/"):
        model = f"the script {model.rpartition('/')[2]}, no model"
    auto = app.config.auto
    level = "" if auto == "ask" else f" · --auto {auto}"
    before = " · goes on" if task.metadata.requests else ""
    return one_line(f"task {task.id} · {model} · {task.metadata.mode or app.config.mode}{level}{before}")


def _fit(line: str, look: Look) -> str:
    return cut(line, look.columns - 1) if look.live else line


async def _tell_past(app: App, task: Driven, screen: Screen) -> None:
    """In JSON nothing is missing: what the log had before anybody could listen."""
    for seq, event in enumerate((await app.store.read(task.id)).events, 1):
        screen.say(json.dumps(record(seq, event)) + "\n")


def tell_end(
    ended: Ended, task: Driven, screen: Screen, *, after: str, denied: int, critical: int, as_json: bool
) -> None:
    """The last words: how it ended, and how one goes on. `denied`: calls that nobody could allow; some `critical`."""
    if as_json:
        end = {"end": ended.why, "text": ended.text, "task": task.id, "exit_status": status_of(ended)}
        screen.say(json.dumps(end) + "\n")
        return
    sys.stdout.flush()
    said = {"interrupted": "stopped", "refused": "the model refused", "aborted": "ended", "failed": "the task failed"}
    text = one_line(ended.text) if ended.why not in ("interrupted", "aborted") else ""
    if ended.why == "limit" and screen.look.live:  # it stands right above
        sys.stderr.write(f"  hint: {after}\n")
    elif ended.why not in ("completed", "idle"):
        what = said.get(ended.why, "" if text else "a limit is reached")
        complain(": ".join(each for each in (what, text) if each), hint=after)
    if denied:
        calls = f"{denied} call{'s were' if denied > 1 else ' was'} denied: nobody is here to be asked"
        hint = "--auto edits, workspace or all says what may be done without asking; on a terminal you are asked"
        if critical == denied:
            hint = "only a person can allow critical commands: run this on a terminal"
        complain(calls, hint=hint)
