"""What is stored about commands: it is read as it was written, also after a kill at any byte."""

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from tarmac.terminals.daemon.terminal_records import (
    KEPT_COMMANDS,
    MOST_RECORDS,
    CommandRecord,
    EndRecord,
    Records,
    StoredCommand,
    read_commands,
)

texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])).map(
    lambda text: text + b"\xff".decode("utf-8", "surrogateescape")
)
sizes = st.integers(0, 2**60)
times = st.floats(allow_nan=False)

starts = st.builds(
    CommandRecord,
    number=st.integers(1, 2**32 - 1),
    command=texts,
    offset=sizes,
    cwd=texts,
    by_person=st.booleans(),
    move=texts,
    internal=st.booleans(),
    began=times,
    started_at=times,
    typed_line=st.none() | st.integers(0, 2**40),
    traced=st.booleans(),
    fresh=st.booleans(),
    jobs=st.booleans(),
)
ends = st.builds(
    EndRecord,
    number=st.just(1),
    reason=st.sampled_from(["done", "timeout", "daemon lost"]),
    evidence=st.sampled_from(["mark", "unknown"]),
    cwd=texts,
    offset=sizes,
    exit_code=st.none() | st.integers(-255, 255),
    pipestatus=st.lists(st.integers(0, 255), min_size=2).map(tuple) | st.just(()),
    notes=st.lists(texts).map(tuple),
    output_bytes=sizes,
    by_person=st.booleans(),
    duration=times,
)


@given(starts, st.none() | ends)
def test_a_command_is_read_as_it_was_stored(start: CommandRecord, end: EndRecord | None) -> None:
    """F1."""
    end = end and end._replace(number=start.number)
    with TemporaryDirectory() as name:
        records = Records(Path(name))
        records.append(start, *([end] if end else []))
        records.close()
        assert read_commands(Path(name)) == [StoredCommand(start, end)]


@given(starts, ends, st.data())
def test_a_torn_record_hides_none_before_and_none_after_it(
    start: CommandRecord, end: EndRecord, data: st.DataObject
) -> None:
    """F1: a kill can cut a write at any byte."""
    end = end._replace(number=start.number)
    following = start._replace(number=start.number % 1000 + 1, command="next")
    torn = end.encode()[: data.draw(st.integers(0, len(end.encode()) - 1))]
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "commands").write_bytes(start.encode() + torn)
        assert read_commands(folder) == [StoredCommand(start, None)]
        records = Records(folder)
        records.append(following)
        records.append(end)
        records.close()
        expected = {each.number: StoredCommand(each, None) for each in (start, following)}
        expected[start.number] = StoredCommand(expected[start.number].start, end)
        assert read_commands(folder) == list(expected.values())


def test_only_the_last_commands_are_kept(tmp_path: Path) -> None:
    """F1: the file stays small, and the command that runs stays in it."""
    records = Records(tmp_path)
    for number in range(1, MOST_RECORDS):
        start = CommandRecord(number=number, command=f"command {number}", offset=0, cwd="/")
        records.append(start)
        if number < MOST_RECORDS - 1:
            records.append(EndRecord(number=number, reason="done", evidence="mark", cwd="/", exit_code=number % 100))
    records.close()
    found = read_commands(tmp_path)
    assert (found[-1].start.command, found[-1].end) == (f"command {MOST_RECORDS - 1}", None)
    assert KEPT_COMMANDS <= len(found) <= MOST_RECORDS
    for each in found[:-1]:
        assert each.end is not None and each.end.exit_code == each.start.number % 100
    assert (tmp_path / "commands").stat().st_size < MOST_RECORDS * 100
