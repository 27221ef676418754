"""PURE: the JSON that events carry for front ends (`details`), read with care: a log may be damaged or newer."""

import json
from collections.abc import Mapping

from tarmac.show.look import one_line


def read(details: str) -> Mapping[str, object]:
    """The object in it; an empty one when there is none."""
    try:
        found = json.loads(details) if details else {}
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def objects(value: object) -> list[Mapping[str, object]]:
    """Those of a list that are objects; of an object, itself."""
    if isinstance(value, dict):
        return [value]
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def text(found: Mapping[str, object], name: str) -> str:
    """A text in it, or nothing."""
    value = found.get(name)
    return value if isinstance(value, str) else ""


def texts(value: object) -> list[str]:
    """The texts of a list."""
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def requests(details: str) -> list[Mapping[str, object]]:
    """The requests for approval behind a question."""
    found = read(details)
    return objects(found.get("requests")) or ([found] if "shown" in found else [])


def diffs(details: str) -> list[tuple[str, str, bool]]:
    """Path, diff (or content), and whether it is new, of each file that a tool changed."""
    found = read(details)
    files = objects(found.get("files")) or [found]
    return [(text(each, "path"), text(each, "diff"), each.get("new") is True) for each in files if text(each, "diff")]


def standing(details: str) -> list[str]:
    """Of a command that has not ended: that it runs, where, and what it asks."""
    found = read(details).get("command")
    if not isinstance(found, dict) or found.get("running") is not True:
        return []
    said = [f"still running in {one_line(text(found, 'terminal'))}"]
    if wants := text(found, "awaiting"):
        prompt = one_line(text(found, "prompt"))
        asks = "asks for a secret" if wants == "secret" else "waits for input"
        said.append(f"{asks}: {prompt}" if prompt else asks)
    return said


def terminal(details: str) -> Mapping[str, object]:
    """Of a tool that looked at a terminal: where that stands."""
    found = read(details).get("terminal")
    return found if isinstance(found, dict) else {}


def ended(details: str) -> list[str]:
    """Of a tool that looked at a terminal: how the command in it ended, or what that waits for."""
    found = terminal(details)
    if text(found, "state") == "idle" and isinstance(code := found.get("exit_code"), int):
        return [f"it ended with exit code {code}"]
    states = {"running": "it runs on", "waiting": "it waits for input", "closed": "it is closed"}
    return [states[state]] if (state := text(found, "state")) in states else []


def takes_first_after(details: str) -> float | None:
    """Of a question: the seconds after which the first answer is taken for one; None: it waits."""
    after = read(details).get("takes_first_after")
    return float(after) if isinstance(after, int | float) and after > 0 else None


def duration(details: str) -> float:
    """How long a command took by itself; 0: that is not said."""
    found = read(details).get("command")
    value = found.get("duration") if isinstance(found, dict) else None
    return float(value) if isinstance(value, int | float) and 0 <= value < 1e9 else 0.0
