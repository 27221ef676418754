"""`tarmac exec --jsonl`: a line of JSON in is a command, a line of JSON out is its result; all in one terminal.

A line that makes no sense gets an error object in its place, and the next one is served. How other programs, and our
own tests, drive Tarmac.
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, cast

from tarmac.cli import own_stdin
from tarmac.errors import BadRequest, TarmacError
from tarmac.terminals import Terminal
from tarmac.terminals.settings import OnTimeout

KEYS = ("command", "timeout", "cwd", "on_timeout", "answers")
EXAMPLE = 'a line is {"command": "make", "timeout": 60}'


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonlCommand:
    """One command, as asked for."""

    command: str
    timeout: float | None
    cwd: Path | None
    on_timeout: OnTimeout
    answers: dict[str, str] | None = None


async def serve(terminal: Terminal, default: float | None) -> int:
    """Run what standard input says, to its end. `default`: seconds for a command that names none."""
    number = 0
    async for data in own_stdin.lines(0):
        number += 1
        if data.strip():
            answer = await _answer(terminal, data, number, default)
            await own_stdin.write(1, json.dumps(answer).encode() + b"\n")
    return 0


async def _answer(terminal: Terminal, data: bytes, number: int, default: float | None) -> dict[str, object]:
    try:
        line = parse(data, default)
    except BadRequest as error:
        return _error(error, number)
    try:
        result = await terminal.run(
            line.command,
            timeout=line.timeout,
            on_timeout=line.on_timeout,
            idle_timeout=None,
            cwd=terminal.cwd / line.cwd if line.cwd else None,
            answers=line.answers,
        )
    except TarmacError as error:
        return _error(error, number) | {"command": line.command}
    return result.as_dict()


def _error(error: TarmacError, number: int) -> dict[str, object]:
    return {"error": error.what, "hint": error.hint, "line": number}


def parse(data: bytes, default: float | None = 60.0) -> JsonlCommand:
    """A line of input, or BadRequest with what is wrong with it."""
    fields = _fields(data)
    command, timeout = fields.get("command"), fields.get("timeout", default)
    cwd, on_timeout = fields.get("cwd"), fields.get("on_timeout", "interrupt")
    if unknown := [key for key in fields if key not in KEYS]:
        raise BadRequest(f"unknown key {_shown(unknown[0])}", hint=f"known are {', '.join(KEYS)}")
    if "command" not in fields:
        raise BadRequest("there is no `command`", hint=EXAMPLE)
    if not isinstance(command, str):
        raise BadRequest(f"`command` must be a text, not {_shown(command)}", hint=EXAMPLE)
    if timeout is not None and not _is_time(timeout):
        raise BadRequest(
            f"`timeout` must be a number of seconds, more than 0, not {_shown(timeout)}", hint="null waits forever"
        )
    if cwd is not None and not isinstance(cwd, str):
        raise BadRequest(f"`cwd` must be the name of a directory, not {_shown(cwd)}")
    if on_timeout not in ("interrupt", "kill", "leave"):
        raise BadRequest(f'`on_timeout` must be "interrupt", "kill" or "leave", not {_shown(on_timeout)}')
    answers = fields.get("answers")
    if answers is not None and not _is_texts(answers):
        raise BadRequest(
            f"`answers` must be texts by prompt, not {_shown(answers)}", hint='"answers": {"Overwrite (y/n)?": "y"}'
        )
    return JsonlCommand(
        command=command,
        timeout=None if timeout is None else float(cast(float, timeout)),
        cwd=Path(cwd) if cwd is not None else None,
        on_timeout=on_timeout,
        answers=cast("dict[str, str] | None", answers),
    )


def _fields(data: bytes) -> dict[str, object]:
    try:
        fields = json.loads(data.decode("utf-8-sig"), parse_constant=_no_number)
    except UnicodeDecodeError as error:
        raise BadRequest(f"not UTF-8: byte {data[error.start]:#04x} at {error.start}", hint=EXAMPLE) from error
    except json.JSONDecodeError as error:
        raise BadRequest(f"not JSON: {error.msg} at character {error.pos + 1}", hint=EXAMPLE) from error
    except RecursionError as error:
        raise BadRequest("not a command: nested too deeply", hint=EXAMPLE) from error
    except ValueError as error:  # a number of thousands of digits, NaN
        raise BadRequest(f"not JSON: {error}", hint=EXAMPLE) from error
    if not isinstance(fields, dict):
        raise BadRequest(f"not a JSON object: {_shown(fields)}", hint=EXAMPLE)
    return fields


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


def _is_texts(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(each, str) for each in value.values())


def _is_time(value: object) -> bool:
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and 0 < float(value) < math.inf
    except OverflowError:
        return False


def _shown(value: object) -> str:
    try:
        text = json.dumps(value)
    except RecursionError:
        text = "…"
    return text if len(text) <= 60 else text[:59] + "…"
