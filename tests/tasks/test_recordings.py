"""Recordings of a task's terminals: what they showed, and when."""

import json
from pathlib import Path

import pytest
from tests.tasks.engine import a_task, call, done, turn

from tarmac.tasks import recordings
from tarmac.tasks.events import ToolStarted
from tarmac.tasks.log.reader import RECORDINGS, read_log
from tarmac.tasks.recordings import read_recording, recordings_of

pytestmark = pytest.mark.shell


def events_of(task: Path) -> tuple[dict[str, object], list[tuple[float, str, str]]]:
    """The header and the events of a task's only recording."""
    [file] = recordings_of(task)
    data = read_recording(task, file.name)
    assert data is not None
    assert len(data) == file.bytes
    header, *lines = data.decode().splitlines()
    return json.loads(header), [(at, kind, text) for at, kind, text in map(json.loads, lines)]


async def test_a_terminal_is_recorded_with_the_times_of_its_output(tmp_path: Path) -> None:
    """A4, T26: each piece has the second in which it was printed, also of a command that goes on after its call."""
    command = "echo first; until [ -e go ]; do sleep 0.01; done; echo second"
    script = (
        turn(call("execute_command", command=command, timeout=1)),
        turn(call("write_to_file", path="go", content="")),
        turn(call("wait_for_terminal", until="exit")),
        done(),
    )
    async with a_task(tmp_path / "work", *script, auto="all") as task:
        folder = task.log.folder
        assert (await task.run_until_idle()).why == "completed"
    header, found = events_of(folder)
    assert (header["version"], header["height"], header["width"]) == (2, 40, 120)
    assert [text for _, kind, text in found if kind == "m"] == [command]
    began = float(str(header["timestamp"]))
    at = {
        word: next(began + at for at, kind, text in found if kind == "o" and f"\n{word}" in f"\n{text}")
        for word in ("first", "second")
    }
    steps = [each for each in read_log(folder).events if isinstance(each, ToolStarted)]
    [written] = [each.at for each in steps if each.name == "write_to_file"]
    assert at["first"] < written <= at["second"] + 0.001
    assert (folder / RECORDINGS).stat().st_mode & 0o077 == 0


async def test_of_a_flood_the_end_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """T26: what comes faster than it can be seen is cut, and the recording says how much of it."""
    monkeypatch.setattr(recordings, "MOST_IN_A_FRAME", 2000)
    script = (turn(call("execute_command", command="seq 1 100000; touch x")), done())
    async with a_task(tmp_path / "work", *script, auto="all") as task:
        folder = task.log.folder
        await task.run_until_idle()
    text = "".join(text for _, kind, text in events_of(folder)[1] if kind == "o")
    assert "bytes are not recorded]" in text
    assert "\n100000\r\n" in text
    assert len(text) < 300_000
