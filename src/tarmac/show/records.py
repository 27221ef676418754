"""Facts and signals as JSON objects: what `--json` prints, a line each, and what an export holds (docs/json.md).

{"seq": 3, "kind": "user_said", "at": …, "text": …}      a fact, as the log has it
{"signal": "text_streamed", "request": …, "text": …}     fleeting: no number, never stored
"""

import base64
import dataclasses
import json
import re

from tarmac.tasks.events import TaskEvent, UnknownEvent
from tarmac.tasks.log.codec import kind_of, to_plain
from tarmac.tasks.signals import Signal


def record(seq: int, event: TaskEvent) -> dict[str, object]:
    """A fact; large texts are whole."""
    if isinstance(event, UnknownEvent):
        return {"seq": seq, **json.loads(event.body)}
    return {"seq": seq, "kind": kind_of(type(event)), **json.loads(to_plain(event))}


def signal_record(signal: Signal) -> dict[str, object]:
    """A signal; bytes that are no UTF-8 come as {"base64": …}."""
    name = re.sub(r"(?<!^)(?=[A-Z])", "_", type(signal).__name__).lower()
    fields = {each.name: getattr(signal, each.name) for each in dataclasses.fields(signal)}
    return {"signal": name, **{key: _plain(value) for key, value in fields.items()}}


def _plain(value: object) -> object:
    if not isinstance(value, bytes):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value).decode()}
