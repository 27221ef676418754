"""The protocol between a host and its client: kinds of frames, and values as JSON.

client → HELLO · CALL … · ACK · PING · BYE           host → WELCOME · REPLY | FAILED · EVENT · OUTPUT · PONG

Calls are numbered from 1. Both sides count REPLY, FAILED and EVENT. After a broken connection each side says what it
has received, and the other side sends the rest again. OUTPUT has an offset, so it needs no count.
"""

import os
from collections.abc import Mapping
from dataclasses import fields
from enum import IntEnum
from pathlib import Path
from typing import cast

from tarmac import errors
from tarmac.errors import BadFrame, PlaceFailed, PlaceUnavailable, TarmacError, Trouble
from tarmac.terminals.execution import Execution
from tarmac.terminals.process.processes import Process
from tarmac.terminals.process.tty_probe import Waiting, Wants
from tarmac.terminals.result import Ending, Evidence, Reason
from tarmac.terminals.settings import Settings

VERSION = 1
OLDEST = 1  # the oldest version that is still understood


class HostFrameKind(IntEnum):
    """The kinds of frames between a host and its client."""

    HELLO = 1
    WELCOME = 2
    CALL = 3
    REPLY = 4
    FAILED = 5
    EVENT = 6
    OUTPUT = 7  # of a command; with `ending` in its header it is the last one
    ACK = 8
    PING = 9
    PONG = 10
    BYE = 11  # the client needs its terminals no more


COUNTED = frozenset((HostFrameKind.REPLY, HostFrameKind.FAILED, HostFrameKind.EVENT))

Header = Mapping[str, object]


# Reading headers: a peer may send anything


def text(header: Header, name: str, default: str | None = None) -> str:
    value = header.get(name, default)
    if not isinstance(value, str):
        raise BadFrame(f"`{name}` must be text, not {value!r}")
    return value


def whole(header: Header, name: str, default: int | None = None) -> int:
    value = header.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool):
        raise BadFrame(f"`{name}` must be a whole number, not {value!r}")
    return value


def seconds(header: Header, name: str, default: float) -> float:
    value = header.get(name, default)
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise BadFrame(f"`{name}` must be a number, not {value!r}")
    return float(value)


def table(header: Header, name: str) -> dict[str, object]:
    value = header.get(name, {})
    if not isinstance(value, dict):
        raise BadFrame(f"`{name}` must be an object, not {value!r}")
    return value


def path_text(path: Path) -> str:
    """A path for JSON: bytes that are not UTF-8 become lone surrogates, which JSON escapes."""
    return os.fspath(path)


# Settings

_PLAIN = tuple(
    each.name
    for each in fields(Settings)
    if each.name not in ("sandbox", "spool_directory", "path_contributions", "secret_variables", "environment")
)
_DEFAULTS = Settings()


def settings_to_wire(settings: Settings) -> dict[str, object]:
    """Those that differ from the defaults and make sense elsewhere."""
    changed = {name: getattr(settings, name) for name in _PLAIN if getattr(settings, name) != getattr(_DEFAULTS, name)}
    return changed | {"environment": settings.environment, "secret_variables": list(settings.secret_variables)}


def settings_from_wire(given: Header) -> Settings:
    """Unknown ones are ignored. BadRequest when a value makes no sense."""
    known: dict[str, object] = {}
    for name in _PLAIN:
        if name in given:
            default, value = getattr(_DEFAULTS, name), given[name]
            wanted = int | float if isinstance(default, float) else type(default)
            if default is not None and not isinstance(value, wanted):
                raise BadFrame(f"setting `{name}` has the wrong type: {value!r}")
            known[name] = value
    environment = {name: str(value) for name, value in table(given, "environment").items()}
    hidden = given.get("secret_variables", list(_DEFAULTS.secret_variables))
    secret = tuple(map(str, hidden)) if isinstance(hidden, list) else _DEFAULTS.secret_variables
    return Settings(**known, environment=environment, secret_variables=secret)  # type: ignore[arg-type]


# How a command ended


def ending_to_wire(execution: Execution) -> dict[str, object]:
    """What is as usual is left out."""
    ending = execution.ending
    assert ending is not None
    told = {"reason": ending.reason, "evidence": ending.evidence, "cwd": path_text(ending.cwd)}
    unusual = {
        "pipestatus": ending.pipestatus,
        "notes": [*execution.notes, *ending.notes],
        "signal": ending.signal,
        "fresh_shell": execution.fresh_shell,
        "forged_marks": execution.forged_marks,
    }
    return {**told, "exit_code": ending.exit_code, **{name: value for name, value in unusual.items() if value}}


def ending_from_wire(given: Header, *, cwd: Path) -> Ending:
    """`cwd`: where the terminal was. To make a path takes longer than to compare its text."""
    there = text(given, "cwd")
    code = given.get("exit_code")
    statuses = given.get("pipestatus")
    notes = given.get("notes")
    return Ending(
        reason=cast(Reason, text(given, "reason")),
        evidence=cast(Evidence, text(given, "evidence", "unknown")),
        cwd=cwd if there == path_text(cwd) else Path(there),
        exit_code=code if isinstance(code, int) else None,
        pipestatus=tuple(each for each in statuses if isinstance(each, int)) if isinstance(statuses, list) else (),
        notes=tuple(map(str, notes)) if isinstance(notes, list) else (),
        signal=whole(given, "signal", 0),
    )


# Errors


def error_to_wire(error: Exception) -> dict[str, object]:
    """One of ours by its name; any other as text."""
    if not isinstance(error, TarmacError):
        return {"error": "PlaceFailed", "what": f"{type(error).__name__}: {error}"}
    told: dict[str, object] = {"error": type(error).__name__, "what": error.what, "hint": error.hint}
    if isinstance(error, PlaceUnavailable):
        told["trouble"] = error.trouble
    return told


def error_from_wire(given: Header) -> TarmacError:
    """The same error here. One that this version does not know is a PlaceFailed."""
    what, hint = text(given, "what", "it failed there"), text(given, "hint", "")
    kind = getattr(errors, text(given, "error", ""), None)
    if kind is PlaceUnavailable:
        trouble = text(given, "trouble", "other")
        known = Trouble(trouble) if trouble in list(Trouble) else Trouble.OTHER
        return PlaceUnavailable(what, trouble=known, hint=hint)
    if isinstance(kind, type) and issubclass(kind, TarmacError):
        return kind(what, hint=hint)
    return PlaceFailed(what, hint=hint)


# What a program waits for


def waiting_to_wire(waiting: Waiting | None) -> dict[str, object]:
    if waiting is None:
        return {}
    return {
        "wants": str(waiting.wants),
        "pid": waiting.process.pid,
        "name": waiting.name,
        "prompt": waiting.prompt,
        "timed": waiting.timed,
        "scripted": waiting.scripted,
    }


def waiting_from_wire(given: Header) -> Waiting | None:
    wants = given.get("wants")
    if not isinstance(wants, str):
        return None
    return Waiting(
        Wants(wants) if wants in list(Wants) else Wants.UNKNOWN,
        Process(whole(given, "pid", 0), 0),
        text(given, "name", ""),
        text(given, "prompt", ""),
        timed=given.get("timed") is True,
        scripted=given.get("scripted") is True,
    )
