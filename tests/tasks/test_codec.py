"""Records of any event, and of events nobody here knows."""

import dataclasses
from pathlib import Path
from typing import get_type_hints

import pytest
from hypothesis import given
from tests.tasks.samples import any_event, of_type, one_of_each

from tarmac.models.messages import Text
from tarmac.tasks import events as e
from tarmac.tasks.log.records import FORMAT, INLINE, KINDS, Scanner, decode, encode, frame, header_line, kind_of

GOLDEN = Path(__file__).parent / "golden"


@given(any_event)
def test_any_event_comes_back_as_it_went(event: e.TaskEvent) -> None:
    """S3."""
    body, blobs = encode(event)
    assert decode(body, kind_of(type(event)).encode(), blobs.get) == event


@given(any_event)
def test_a_record_is_one_line_of_utf8(event: e.TaskEvent) -> None:
    line = frame(7, encode(event)[0])
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    line.decode("utf-8")


@pytest.mark.parametrize("text", ["x" * 100_000, "\udcff" * 20_000, '{"$text":' * 5_000, "\n" * 50_000, "é€😀" * 9_000])
def test_a_large_text_becomes_a_blob_and_comes_back(text: str) -> None:
    """S3: a line stays small, whatever was read or printed."""
    event = e.ToolFinished(at=1.0, call=e.CallId("c"), name="x", outcome="done", content=(Text(text), Text("small")))
    body, blobs = encode(event)
    assert len(body) < INLINE
    assert len(blobs) == 1
    assert decode(body, b"tool_finished", blobs.get) == event


def test_a_text_that_looks_like_a_blob_is_a_text() -> None:
    event = e.UserSaid(at=1.0, text='{"$text":"abc","size":1,"start":""}')
    assert decode(encode(event)[0], b"user_said", None) == event


def test_a_lost_blob_is_told_in_the_text_itself() -> None:
    body, _ = encode(e.UserSaid(at=1.0, text="beginning " + "x" * 100_000))
    found = decode(body, b"user_said", lambda _: None)
    assert isinstance(found, e.UserSaid)
    assert found.text.startswith("beginning xxx")
    assert "100,010 bytes is lost" in found.text


def test_a_kind_of_a_newer_version_survives_a_round_trip_byte_for_byte() -> None:
    """S3: a newer Tarmac's facts are neither lost nor in the way."""
    body = b'{"kind":"dream_dreamt","at":12.5,"of":{"sheep":[1,2.50,"\\u00e9"]}}'
    scanner = Scanner()
    (found,) = scanner.scan(header_line("t", at=1.0, by="test") + frame(1, body))
    assert (found, found.at) == (e.UnknownEvent(at=12.5, kind="dream_dreamt", body=body), 12.5)
    assert encode(found) == (body, {})


def test_a_known_kind_in_a_shape_we_do_not_know_is_kept_as_unknown() -> None:
    body = b'{"kind":"user_said","at":1.0,"text":{"rich":true}}'
    (found,) = Scanner(seq=1).scan(frame(1, body))
    assert found == e.UnknownEvent(at=1.0, kind="user_said", body=body)


def test_fields_of_a_newer_version_do_not_hinder() -> None:
    body = b'{"kind":"model_told","at":1.0,"text":"t","about":"other","colour":"green"}'
    assert decode(body, b"model_told") == e.ModelTold(at=1.0, text="t", about="other")


@pytest.mark.parametrize("event", [e.RecordLost(at=0.0, seq=1, why=""), e.TaskEvent(at=1.0)])
def test_what_is_no_fact_is_not_written(event: e.TaskEvent) -> None:
    with pytest.raises(TypeError):
        encode(event)


def test_the_golden_file_of_format_1_reads_as_what_was_written() -> None:
    """S3: logs of this version are readable for ever. Never change a line of that file; add new kinds at its end."""
    data = (GOLDEN / "format-1.jsonl").read_bytes()
    scanner = Scanner()
    found = scanner.scan(data)
    assert (scanner.damage, scanner.torn(len(data))) == ([], None)
    assert scanner.header is not None and scanner.header.format == 1
    assert found == one_of_each()


def test_the_golden_file_has_every_kind() -> None:
    assert {kind_of(type(each)) for each in one_of_each()} == set(KINDS)
    assert FORMAT == 1, "a new format needs a golden file of its own"


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_events_are_frozen_and_leave_no_room_for_strangers(kind: type[e.TaskEvent]) -> None:
    """Names of fields may not collide with those of the line, nor may values be what JSON or a reader can't carry."""
    assert not {"seq", "kind", "crc", "$text"} & {each.name for each in dataclasses.fields(kind)}
    assert kind.__dataclass_params__.frozen  # type: ignore[attr-defined]
    assert "__dict__" not in dir(kind)
    for hint in get_type_hints(kind).values():
        of_type(hint)
