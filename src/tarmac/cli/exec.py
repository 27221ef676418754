"""`tarmac exec`: one command in a fresh terminal, its output as it comes, its exit status ours.

arguments → parse() → ExecRequest → run_one() → exit code
--jsonl: a line of JSON in is a command, a line of JSON out is its result; all in one terminal: serve()

With --jsonl, a line that makes no sense gets an error object in its place, and the next one is served. Other programs,
and our own tests, drive Tarmac with it.
"""

import asyncio
import json
import math
import os
import re
import shlex
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NoReturn, cast

from tarmac.cli import own_stdin
from tarmac.cli.exit_status import FAILED, complain
from tarmac.cli.own_stdin import Keys, own_input, same_size
from tarmac.cli.parser import Given, suggest
from tarmac.cli.parser import parse as parse_arguments
from tarmac.cli.shutdown import Stop, meanwhile, run
from tarmac.errors import BadRequest, PlaceFailed, TarmacError
from tarmac.paths import remove_scratch, scratch_dir
from tarmac.terminals import Answer, Execution, Gap, Result, Settings, Terminal, open_terminal
from tarmac.terminals.environment import wipe_own_environment
from tarmac.terminals.settings import OnTimeout
from tarmac.terminals.terminal import NewTerminal, Provider

PLACE_FAILED = 123  # another machine or container failed, not the command
TIMED_OUT = 124
AWAY = 60.0  # seconds that a command at another place goes on when we were killed
NOBODY_READS = 141  # 128 + SIGPIPE, as other programs die of it
LEAVE_FULL_SCREEN = b"\x1b[?1049l\x1b[?25h\x1b[m"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecRequest:
    """What the command line asks for."""

    command: str
    cwd: Path | None = None
    shell: str | None = None
    provider: Provider = "pty"
    timeout: float | Literal["default"] | None = "default"
    answers: tuple[Answer, ...] = ()
    json: bool = False
    jsonl: bool = False
    on: str | None = None  # the place, by its address or its name in the configuration


def main(arguments: list[str]) -> int:
    """Run one command in a fresh terminal, print its output, exit as it did."""
    request = parse(arguments)
    try:
        if request.jsonl:
            return run(lambda stop: _run_lines(request))
        return run(lambda stop: run_one(request, stop))
    except PlaceFailed as error:
        return complain(error.what, hint=error.hint, code=PLACE_FAILED)


async def _run_lines(request: ExecRequest) -> int:
    settings = Settings()
    wipe_own_environment(settings)
    default = settings.once_timeout if request.timeout == "default" else request.timeout
    async with open_where(request, settings) as terminal:
        return await serve(terminal, default)


def parse(arguments: list[str]) -> ExecRequest:
    """The arguments as an ExecRequest."""
    options, words = parse_arguments("exec", arguments)
    given = {name: values[-1] for name, values in options.items()}
    request = ExecRequest(
        command=words[0] if len(words) == 1 else shlex.join(words),
        cwd=Path(given["cwd"]) if "cwd" in given else None,
        shell=given.get("shell"),
        provider=_provider(given.get("provider", "pty")),
        timeout=_seconds(given["timeout"]) if "timeout" in given else "default",
        answers=tuple(_answer(each) for each in options.get("answer", ())),
        json="json" in given,
        jsonl="jsonl" in given,
        on=given.get("on"),
    )
    if request.jsonl and (words or request.json):
        raise BadRequest(
            "--jsonl reads its commands from standard input" if words else "--json and --jsonl exclude each other",
            hint="""echo '{"command": "pwd"}' | tarmac exec --jsonl""",
        )
    if request.answers and (request.jsonl or request.provider == "exec"):
        other = "--jsonl has answers in its lines" if request.jsonl else "--provider exec has no terminal to ask on"
        raise BadRequest(f"--answer can't be used here: {other}")
    if not request.jsonl and not words:
        raise BadRequest("there is no command to run", hint="tarmac exec -- COMMAND; see `tarmac exec --help`")
    return request


def _provider(name: str) -> Provider:
    if name not in ("pty", "exec"):
        raise BadRequest(f"--provider is pty or exec, not `{name}`", hint=suggest(name, ["pty", "exec"]))
    return cast("Provider", name)


def _answer(text: str) -> Answer:
    """PROMPT=TEXT, or /PATTERN/=TEXT."""
    prompt, equals, answer = text.partition("=")
    pattern = re.fullmatch(r"/(.+)/=(.*)", text, re.DOTALL)
    if not prompt or not equals:
        raise BadRequest(f"--answer is PROMPT=TEXT, not `{text}`", hint="--answer 'Overwrite (y/n)?=y'")
    if pattern is None:
        return Answer(prompt, answer)
    try:
        return Answer(re.compile(pattern[1]), pattern[2])
    except re.error as error:
        raise BadRequest(f"`/{pattern[1]}/` is not a pattern: {error}") from error


def _seconds(text: str) -> float | None:
    if text == "none":
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise BadRequest(
            f"--timeout must be a number of seconds, more than 0, not `{text}`", hint="`--timeout none` waits forever"
        )
    return seconds


# Running it


async def run_one(request: ExecRequest, stop: Stop) -> int:
    """Open a terminal, run the command in it, close it; the exit code."""
    with _own_folder() as folder:
        settings = _settings(None if request.json else folder)  # what was streamed need not be kept
        wipe_own_environment(settings)
        async with open_where(request, settings) as terminal:
            with own_input(terminal) as feed, same_size(terminal):
                limit = request.timeout
                if limit == "default":
                    limit = None if isinstance(feed, Keys) else settings.once_timeout
                # With answers it reads the terminal, and our own input is nobody's.
                execution = await terminal.start(request.command if request.answers else feed.wrap(request.command))
                stop.interrupt = _interrupter(execution)
                execution.streamed = not request.json
                show = _nothing() if request.json else _show(execution)
                feeding = _nothing() if request.answers else feed.feed(execution)
                async with meanwhile(feeding), meanwhile(show) as shown:
                    result = await _result(execution, request, limit)
                    while result.reason == "connection lost" and execution.running and stop.number is None:
                        complain(f"the connection to {request.on} broke; reconnecting, and the command continues")
                        result = await _result(execution, request, limit)
                    try:
                        if not execution.running:  # else it is out of reach, and more of its output may never come
                            await shown
                    except BrokenPipeError:
                        return NOBODY_READS
    kept = result.output_path if result.output_path and result.output_path.exists() else None  # only what is too long
    result = result._replace(command=request.command, output_path=kept)
    if request.json:
        await own_stdin.write(1, json.dumps(result.as_dict()).encode() + b"\n")
    return _exit_code(result, stop, limit, quiet=request.json)


@asynccontextmanager
async def open_where(request: ExecRequest, settings: Settings) -> AsyncIterator[Terminal]:
    """A terminal here, or at the place that the request names."""
    if request.on is None:
        async with open_terminal(
            cwd=request.cwd, shell=request.shell, provider=request.provider, settings=settings
        ) as terminal:
            yield terminal
        return
    from tarmac.fleet import open_machine

    # A stream can't be typed into a terminal: the command reads it from a pipe.
    provider: Provider = "exec" if own_stdin.is_stream() and not request.jsonl else request.provider
    async with open_machine(address_of(request.on), time_to_live=AWAY) as machine:
        cwd = machine.check_directory(request.cwd)
        new = NewTerminal(cwd=cwd, shell=request.shell, provider=provider, settings=settings)
        async with await machine.open(new) as terminal:
            yield terminal


def place_of(given: Given) -> str:
    """The address that --on gives; empty for this machine. BadRequest for one that is none."""
    if "on" not in given:
        return ""
    from tarmac.fleet.open_address import parse_place

    address = address_of(given["on"][-1])
    return "" if parse_place(address) is None else address


def address_of(place: str) -> str:
    """The address of a place that is given by its address, or by its name in `[places]` of the configuration."""
    if ":" in place:
        return place
    from tarmac.config.load import load_config
    from tarmac.errors import nearest

    known = load_config(Path.cwd(), os.environ).places
    if place not in known:
        close = nearest(place, known)
        advice = f"give its address, as in ssh://{place or 'host'}, or name it under [places] in config.toml"
        raise BadRequest(f"there is no place `{place}`", hint=f"did you mean `{close}`?" if close else advice)
    return known[place]


@contextmanager
def _own_folder() -> Iterator[Path]:
    """A folder of our own. If we are killed, a later Tarmac finds its lock free and removes it."""
    import fcntl

    folder = scratch_dir(os.environ)
    lock = os.open(folder / "in", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder
    finally:
        os.close(lock)
        remove_scratch(folder)


async def _result(execution: Execution, request: ExecRequest, limit: float | None) -> Result:
    if not request.answers:
        return await execution.result(limit, on_timeout="interrupt")
    from tarmac.terminals.answers import run_answering

    return await run_answering(
        execution, list(request.answers), timeout=limit, idle_timeout=None, on_timeout="interrupt"
    )


def _settings(spools: Path | None) -> Settings:
    if not os.isatty(1):
        return Settings(spool_directory=spools)
    columns, rows = os.get_terminal_size(1)
    if not columns or not rows:  # nobody told it
        return Settings(spool_directory=spools, display_interval=0.0)
    return Settings(spool_directory=spools, display_interval=0.0, rows=rows, columns=columns)


def _interrupter(execution: Execution) -> Callable[[], bool]:
    tasks: set[asyncio.Task[None]] = set()

    def interrupt() -> bool:
        if execution.running:
            tasks.add(asyncio.create_task(execution.interrupt()))
        return execution.running

    return interrupt


async def _nothing() -> None:
    pass


async def _show(execution: Execution) -> None:
    """Its output on ours: as it is for a person's terminal, as text for everybody else."""
    try:
        if os.isatty(1):
            await _show_raw(execution)
        else:
            async for chunk in execution:
                if isinstance(chunk, Gap):
                    _tell_gap(chunk)
                else:
                    await own_stdin.write(1, chunk.encode("utf-8", "replace"))
    except BrokenPipeError:
        await execution.kill()
        raise


async def _show_raw(execution: Execution) -> None:
    full_screen = False
    async for piece in execution.follow():
        if isinstance(piece, Gap):
            _tell_gap(piece)
            continue
        await own_stdin.write(1, piece)
        enters, leaves = piece.rfind(b"\x1b[?1049h"), piece.rfind(b"\x1b[?1049l")
        full_screen = enters > leaves if enters != leaves else full_screen
    if full_screen:  # it was ended before it could tidy up
        await own_stdin.write(1, LEAVE_FULL_SCREEN)


def _tell_gap(gap: Gap) -> None:
    complain_line = f"[… {gap.bytes:,} bytes left out …]\n"
    os.write(2, complain_line.encode())


def _exit_code(result: Result, stop: Stop, limit: float | None, *, quiet: bool) -> int:
    """The command's own; 124 after a timeout, 125 when nobody knows. With the reason on standard error."""
    if not quiet:
        for note in result.notes:
            complain(note)
    if stop.number is not None:
        return 128 + stop.number
    if result.reason in ("timeout", "awaiting input"):
        if not quiet:
            _tell_interrupted(result, limit)
        return TIMED_OUT
    if result.reason == "stopped" and not quiet:
        complain("it was stopped (Ctrl-Z), and killed because nobody could continue it here")
    if result.exit_code is not None:
        return result.exit_code
    if result.reason == "connection lost":
        if not quiet:
            complain("the connection is lost, so it is unknown how the command ended", hint="it may still run there")
        return PLACE_FAILED
    if not quiet:
        complain(f"nobody knows the exit code of `{_short(result.command)}`: {result.reason}")
    return FAILED


def _tell_interrupted(result: Result, limit: float | None) -> None:
    command, question = _short(result.command), result.prompt.strip()
    if limit is None or result.duration < limit:
        complain(
            f"`{command}` was interrupted: it asked “{question}”, and no answer was given for that",
            hint="`--answer 'PROMPT=TEXT'` answers one question",
        )
    elif result.awaiting:
        asked = f": “{question}”" if question else ""
        complain(
            f"`{command}` was interrupted after {limit:g} s: it was waiting for input{asked}",
            hint="give it its input on standard input",
        )
    else:
        complain(f"`{command}` was interrupted after {limit:g} s", hint="`--timeout S` gives it more time")


def _short(command: str) -> str:
    line = (command.strip().splitlines() or [""])[0]
    return line if len(line) <= 60 else line[:59] + "…"


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
            answer = await _served(terminal, data, number, default)
            await own_stdin.write(1, json.dumps(answer).encode() + b"\n")
    return 0


async def _served(terminal: Terminal, data: bytes, number: int, default: float | None) -> dict[str, object]:
    try:
        line = parse_request(data, default)
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


def parse_request(data: bytes, default: float | None = 60.0) -> JsonlCommand:
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
        timeout=None if timeout is None else float(cast("float", timeout)),
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
