"""Logs that were cut or changed anywhere: what is whole is found, and what is not is told."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tasks.samples import a_task, one_of_each

from tarmac.errors import StateUnavailable
from tarmac.tasks.events import RecordLost, TaskEvent, UserSaid
from tarmac.tasks.log.records import Scanner, encode, frame, header_line

some_event = st.sampled_from([*a_task(2), *one_of_each()])  # that any event survives is test_codec.py's
HEADER = header_line("t", at=1.0, by="test")


def lines(events: list[TaskEvent]) -> list[bytes]:
    return [HEADER, *(frame(seq, encode(event)[0]) for seq, event in enumerate(events, 1))]


def test_cut_at_any_byte_the_longest_whole_prefix_is_found_and_the_rest_is_told() -> None:
    """S4."""
    events = list(a_task(2))
    written = lines(events)
    whole = b"".join(written)
    ends = [len(b"".join(written[:count])) for count in range(len(written) + 1)]
    for cut in range(len(whole) + 1):
        scanner = Scanner()
        found = scanner.scan(whole[:cut])
        count = max(number for number, end in enumerate(ends) if end <= cut)
        torn = scanner.torn(cut)
        assert found == events[: max(count - 1, 0)]
        assert (scanner.damage, scanner.offset) == ([], ends[count])
        assert (torn.offset, torn.size) == (ends[count], cut - ends[count]) if torn else cut == ends[count]


@settings(max_examples=200)
@given(st.lists(some_event, min_size=3, max_size=8), st.data())
def test_a_byte_that_changed_is_noticed_wherever_it_is(events: list[TaskEvent], data: st.DataObject) -> None:
    """S3: detected, told with its place, and everything else is still there."""
    written = lines(events)
    whole = bytearray(b"".join(written))
    place = data.draw(st.integers(0, len(whole) - 1))
    whole[place] ^= data.draw(st.integers(1, 255))
    hit = next(number for number in range(len(written)) if len(b"".join(written[: number + 1])) > place)
    scanner = Scanner()
    found = scanner.scan(bytes(whole))
    told = [*scanner.damage, *filter(None, [scanner.torn(len(whole))])]
    assert any(each.offset <= place < each.offset + each.size for each in told)
    gone = (hit, hit + 1)  # the line after it, too, when the newline between them was hit
    for seq, event in enumerate(events, 1):  # and each other stands in its own place
        there = found[seq - 1] if seq <= len(found) else None
        assert there == event or (seq in gone and (there is None or isinstance(there, RecordLost)))


@given(st.lists(some_event, min_size=4, max_size=8), st.data())
def test_a_line_that_is_missing_doubled_or_moved_is_noticed(events: list[TaskEvent], data: st.DataObject) -> None:
    written = lines(events)
    place = data.draw(st.integers(1, len(written) - 2))
    change = data.draw(st.sampled_from(["missing", "doubled", "swapped"]))
    line = written.pop(place)
    if change == "doubled":
        written[place:place] = [line, line]
    elif change == "swapped":
        written.insert(place + 1, line)
    scanner = Scanner()
    found = scanner.scan(b"".join(written))
    torn = scanner.torn(len(b"".join(written)))
    assert scanner.damage or torn
    for seq, event in enumerate(found, 1):
        assert isinstance(event, RecordLost) or event == events[seq - 1]


def test_bytes_between_records_are_told_and_cost_nothing() -> None:
    events: list[TaskEvent] = [UserSaid(at=1.0, text="one"), UserSaid(at=2.0, text="two")]
    header, one, two = lines(events)
    scanner = Scanner()
    assert scanner.scan(header + one + b"\0\0junk\n" + two) == events
    (damage,) = scanner.damage
    assert (damage.offset, damage.size, damage.lost) == (len(header + one), 7, 0)


@given(st.lists(some_event, max_size=8), st.integers(1, 400))
def test_a_scanner_goes_on_where_another_stopped(events: list[TaskEvent], size: int) -> None:
    whole = b"".join(lines(events))
    found: list[TaskEvent] = []
    seq = offset = 0
    step = size
    while offset < len(whole):
        scanner = Scanner(seq=seq, offset=offset)
        found += scanner.scan(whole[offset : offset + step])
        step = size if scanner.offset > offset else step * 2
        seq, offset = scanner.seq, scanner.offset
    assert found == events


def test_a_log_of_a_newer_format_is_refused_with_a_hint() -> None:
    newer = frame(0, b'{"kind":"header","format":2,"task":"t","at":1.0}')
    with pytest.raises(StateUnavailable, match=r"format 2.*\n.*newer Tarmac"):
        Scanner().scan(newer)
