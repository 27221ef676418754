"""After a crash: what was under way, and whether it happened."""

from pathlib import Path

from tarmac.events import TerminalId
from tarmac.tasks.events import CallId, CommandOutput, FileIntent, TaskEvent, ToolFinished, ToolStarted
from tarmac.tasks.state import digest_of, fates, unfinished


def started(call: str, *intents: FileIntent) -> ToolStarted:
    return ToolStarted(at=1.0, call=CallId(call), name="x", title="x", intents=intents)


def test_what_was_under_way_is_found_with_its_output_so_far() -> None:
    """S4."""
    output = CommandOutput(at=2.0, call=CallId("2"), terminal=TerminalId("t"), spool=Path("/s"), offset=4096)
    done = ToolFinished(at=3.0, call=CallId("1"), name="x", outcome="done", content=())
    events: list[TaskEvent] = [started("1"), started("2"), output, done, started("3")]
    assert [(each.seq, each.started.call, each.output) for each in unfinished(events)] == [
        (2, "2", output),
        (5, "3", None),
    ]


def test_a_file_tells_whether_it_was_written(tmp_path: Path) -> None:
    """S4: hashes of before and after are in the log before the tool acts."""
    names = ("written", "untouched", "meddled", "new", "removed", "unwritten")
    written, untouched, meddled, new, removed, unwritten = paths = [tmp_path / name for name in names]
    for path in (written, untouched, meddled, removed):
        path.write_text("before")
    after = tmp_path / "model"
    after.write_text("after")
    want = digest_of(after)
    call = started(
        "1",
        *(FileIntent(path=path, before=digest_of(path), after=None if path == removed else want) for path in paths),
    )
    written.write_text("after")
    meddled.write_text("somebody else")
    new.write_text("after")
    removed.unlink()
    assert [(intent.path.name, fate) for intent, fate in fates(call, digest_of)] == [
        ("written", "happened"),
        ("untouched", "did not happen"),
        ("meddled", "unknown"),
        ("new", "happened"),
        ("removed", "happened"),
        ("unwritten", "did not happen"),
    ]
    assert unwritten.exists() is False
