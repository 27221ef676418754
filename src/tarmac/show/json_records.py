"""Facts and signals as JSON objects: what `--json` prints, a line each, and what an export holds (docs/json.md).

{"seq": 3, "kind": "user_said", "at": …, "text": …}      a fact, as the log has it
{"signal": "text_streamed", "request": …, "text": …}     fleeting: no number, never stored
"""

import base64
import dataclasses
import json
from collections.abc import Mapping
from typing import Any, Final

from tarmac.tasks import signals
from tarmac.tasks.events import TaskEvent, UnknownEvent
from tarmac.tasks.log.records import decode, kind_of, to_plain, unknown
from tarmac.tasks.signals import Signal


def record(seq: int, event: TaskEvent) -> dict[str, object]:
    """A fact; large texts are whole."""
    if isinstance(event, UnknownEvent):
        return {"seq": seq, **json.loads(event.body)}
    return {"seq": seq, "kind": kind_of(type(event)), **json.loads(to_plain(event))}


def signal_record(signal: Signal) -> dict[str, object]:
    """A signal; bytes that are not UTF-8 come as {"base64": …}."""
    name = kind_of(type(signal))
    fields = {each.name: getattr(signal, each.name) for each in dataclasses.fields(signal)}
    return {"signal": name, **{key: _plain(value) for key, value in fields.items()}}


def read_record(record: Mapping[str, Any]) -> TaskEvent:
    """The fact behind a record; one of another version is an UnknownEvent."""
    kind, body = str(record.get("kind", "")).encode(), json.dumps(record).encode()
    return decode(body, kind) or unknown(kind, body)


def read_signal(record: Mapping[str, Any]) -> Signal | None:
    """The signal behind a record; None for one of another version."""
    made = _SIGNALS.get(str(record.get("signal")))
    if made is None:
        return None
    fields = {each.name: record[each.name] for each in dataclasses.fields(made) if each.name in record}
    try:
        return made(**{name: _rich(value) if name == "data" else value for name, value in fields.items()})
    except TypeError:  # a field is missing
        return None


_SIGNALS: Final = {
    kind_of(each): each for each in vars(signals).values() if isinstance(each, type) and issubclass(each, Signal)
}


def _rich(value: object) -> bytes:
    return base64.b64decode(value["base64"]) if isinstance(value, dict) else str(value).encode()


def _plain(value: object) -> object:
    if not isinstance(value, bytes):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value).decode()}
