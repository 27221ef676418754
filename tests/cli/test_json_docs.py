"""docs/json.md is true: it lists every kind of fact and signal with its fields, and what is printed is among them."""

import dataclasses
import json
import re
from pathlib import Path

from tests.tasks.samples import one_of_each

from tarmac.cli.driven import STATUS
from tarmac.show.json_records import record, signal_record
from tarmac.tasks import signals as s
from tarmac.tasks.log.records import KINDS

PAGE = (Path(__file__).parent.parent.parent / "docs" / "json.md").read_text()


def rows(heading: str) -> dict[str, list[str]]:
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line.split("|") for line in section.splitlines() if line.startswith("| `")]
    return {line[1].strip(" `"): re.findall(r"`(\w+)`", line[2]) for line in lines}


def test_every_kind_of_fact_is_listed_with_its_fields() -> None:
    """A5."""
    assert rows("Facts") == {
        kind: [each.name for each in dataclasses.fields(event) if each.name != "at"] for kind, event in KINDS.items()
    }
    for seq, event in enumerate(one_of_each(), 1):
        line = json.loads(json.dumps(record(seq, event)))
        assert set(line) == {"seq", "kind", "at", *rows("Facts")[line["kind"]]}


def test_every_signal_is_listed_with_its_fields() -> None:
    """A5."""
    kinds = [each for each in vars(s).values() if isinstance(each, type) and issubclass(each, s.Signal)]
    listed = rows("Signals")
    assert len(listed) == len(kinds) - 1
    for kind in kinds:
        if kind is not s.Signal:
            fields = {each.name: b"\xff" if each.name == "data" else "x" for each in dataclasses.fields(kind)}
            line = json.loads(json.dumps(signal_record(kind(**fields))))
            assert list(line)[1:] == listed[line["signal"]]


def test_every_end_is_listed() -> None:
    assert all(f"`{why}`" in PAGE for why in STATUS)
