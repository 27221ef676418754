"""Checks of the shells and of the terminal daemon.

Each shell check opens a real terminal and runs two commands. If the shell starts slowly or not at all, it is started
again without start-up files, to find out whether they are the reason. No daemon is started.
"""

import asyncio
import dataclasses
import os
import re
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tarmac.errors import DaemonUnavailable, ShellNotFound, TarmacError
from tarmac.terminals.daemon import Refusal, RequestKind
from tarmac.terminals.daemon.connection import RequestRefused, connect, daemon_folder
from tarmac.terminals.doctor import Case, Finding, Findings, Level, aside
from tarmac.terminals.exec import ExecTerminal
from tarmac.terminals.open import make_terminal
from tarmac.terminals.shell.dialects import find_shell
from tarmac.terminals.shell.pty_terminal import PtyTerminal
from tarmac.terminals.shell.session import LAST_SHOWN
from tarmac.terminals.terminal import NewTerminal, Terminal
from tarmac.vt.text import clean

OLDEST = {"bash": (4, 4), "zsh": (5, 3), "fish": (3, 4)}
DEFAULT_SHELL = "bash"
FILES = {"bash": "~/.bashrc", "zsh": "~/.zshrc", "fish": "~/.config/fish/config.fish"}
# What to put into these files, so that they stop early for an agent.
EARLY = {"bash": "[[ $AI_AGENT ]] && return", "zsh": "[[ $AI_AGENT ]] && return", "fish": "set -q AI_AGENT; and exit"}
SLOW = 0.5  # a share of shell_integration_timeout
COMMAND_LIMIT = 5.0
WORD = "tarmac-doctor"
PROMPT = b"\x1b]633;A;"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """The result of opening a terminal and running a command in it."""

    failed: str = ""  # why there is no live shell
    opened: float = 0.0  # seconds to its first prompt
    first: float = 0.0  # and to the first result
    round_trip: float = 0.0  # of the next one
    version: str = ""
    printed: str = ""  # by start-up files
    notes: tuple[str, ...] = ()


async def check_shells(case: Case) -> Findings:
    for name in case.shells:
        yield await check_shell(name, case)


async def check_shell(name: str, case: Case) -> Finding:
    """Whether a shell is installed, starts, how fast, and what its start-up files print."""
    kind = Path(name).name
    try:
        shell = find_shell(name, environ=case.environ)
    except ShellNotFound as error:
        if name in case.wanted:
            return Finding(name=kind, level="problem", what=error.what, advice=error.hint)
        if kind == DEFAULT_SHELL:
            what = "not installed, and it is the default shell"
            return Finding(
                name=kind, level="problem", what=what, advice="install it, or name another shell in each call"
            )
        return Finding(name=kind, level="note", what="not installed", advice="only needed if you want to use it")
    version = await _version(shell.path)
    facts: dict[str, object] = {"path": shell.path, "version": version}
    if version and _numbers(version) < OLDEST[kind]:
        oldest = ".".join(map(str, OLDEST[kind]))
        return Finding(
            name=f"{kind} {version}",
            level="problem" if kind == DEFAULT_SHELL else "warning",
            what=f"too old ({shell.path})",
            advice=f"install {kind} {oldest} or newer, and put it first in PATH",
            facts=facts,
        )
    tried = await _try(name, case)
    bare: Tried | None = None
    if tried.failed or tried.notes or tried.opened > SLOW * case.settings.shell_integration_timeout:
        bare = await _try(name, case, start_up_files=False)
    facts |= {key: value for key, value in dataclasses.asdict(tried).items() if value}
    if bare is not None:
        facts["without_start_up_files"] = {key: value for key, value in dataclasses.asdict(bare).items() if value}
    level, what, advice = judge(kind, tried, bare, patience=case.settings.shell_integration_timeout)
    return Finding(
        name=f"{kind} {version or tried.version}".strip(), level=level, what=what, advice=advice, facts=facts
    )


def judge(kind: str, tried: Tried, bare: Tried | None, *, patience: float) -> tuple[Level, str, str]:
    """The level, what was found, and what to do about it."""
    files = FILES[kind]
    grave: Level = "problem" if kind == DEFAULT_SHELL else "warning"
    if tried.failed and (bare is None or bare.failed):
        why = bare.failed if bare and bare.failed != tried.failed else ""
        what = f"it does not start, with or without start-up files: {tried.failed}" + (f"; {why}" if why else "")
        return (
            grave,
            what,
            "until it does, each command runs in a process of its own; start the shell by hand to see why",
        )
    if tried.failed:
        assert bare is not None
        advice = (
            f"add `{EARLY[kind]}` to {files}, before the part that an agent does not need. "
            f"Or set `start_up_files` to false: then it starts in {_ms(bare.opened)}"
        )
        if tried.opened >= patience:
            advice += f". Or set `shell_integration_timeout` to more than {patience:g} s"
        return grave, f"{tried.failed}. Until this is fixed, `cd` and variables do not last", advice
    said = f"starts in {_ms(tried.opened)}, first result after {_ms(tried.first)}, the next in {_ms(tried.round_trip)}"
    if tried.notes:
        return "warning", f"{'; '.join(tried.notes)} ({said})", f"check {files}"
    if tried.opened > SLOW * patience:
        assert bare is not None
        theirs = "" if bare.failed else f"; {_ms(bare.opened)} without start-up files"
        advice = f"make {files} faster, or stop early for agents: `{EARLY[kind]}`. The limit is {patience:g} s"
        return "warning", f"slow: {said}{theirs}", advice
    if tried.printed:
        said += f"; start-up files print {_first_line(tried.printed)}"
    return "ok", said, ""


async def _try(name: str, case: Case, *, start_up_files: bool = True) -> Tried:
    with tempfile.TemporaryDirectory(prefix="tarmac-doctor-") as folder:
        settings = dataclasses.replace(case.settings, spool_directory=Path(folder), start_up_files=start_up_files)
        new = NewTerminal(cwd=Path("/"), shell=name, settings=settings, environ=case.environ)
        began = time.monotonic()
        try:
            terminal = await make_terminal(new)
        except TarmacError as error:
            return Tried(failed=error.what, opened=time.monotonic() - began)
        opened = time.monotonic() - began
        try:
            return await _use(terminal, began, opened)
        finally:
            await terminal.aclose()


async def _use(terminal: Terminal, began: float, opened: float) -> Tried:
    if isinstance(terminal, ExecTerminal):
        return Tried(failed=terminal.stands_in, opened=opened)
    printed = _said_at_start(terminal)
    result = await terminal.run(f"echo {WORD}", timeout=COMMAND_LIMIT, on_timeout="kill")
    first = time.monotonic() - began
    if result.output != f"{WORD}\n" or result.exit_code != 0:
        what = f"`echo {WORD}` ended with {result.exit_code} ({result.reason}) and printed {_first_line(result.output)}"
        return Tried(failed=what, opened=opened)
    again = time.monotonic()
    await terminal.run("true", timeout=COMMAND_LIMIT, on_timeout="kill")
    return Tried(
        opened=opened,
        first=first,
        round_trip=time.monotonic() - again,
        version=terminal.shell_version,
        printed=printed,
        notes=result.notes,
    )


def _said_at_start(terminal: Terminal) -> str:
    """What start-up files printed: everything before the mark of the first prompt."""
    session = terminal.session if isinstance(terminal, PtyTerminal) else None
    if session is None:
        return ""
    shown = session.shown if len(session.shown) < LAST_SHOWN else session.shown.partition(b"\n")[2]
    return clean(shown.partition(PROMPT)[0]).strip()


async def _version(path: str) -> str:
    """What `--version` prints; empty when it does not answer in time."""
    process = await asyncio.create_subprocess_exec(
        path,
        "--version",
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(COMMAND_LIMIT):
            output, _ = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        return ""
    found = re.search(rb"\d+\.\d+(\.\d+)?", output)
    return found.group().decode() if found else ""


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(each) for each in re.findall(r"\d+", version)[:2])


def _first_line(text: str) -> str:
    first, *rest = text.strip().split("\n")
    more = f" and {len(rest)} more line{'s' if len(rest) > 1 else ''}" if rest else ""
    return f"`{first[:60]}{'…' if len(first) > 60 else ''}`{more}"


def _ms(seconds: float) -> str:
    if seconds >= 1:
        return f"{seconds:.1f} s"
    return f"{seconds * 1000:.0f} ms" if seconds >= 0.01 else f"{seconds * 1000:.1f} ms"


async def check_daemon(case: Case) -> Findings:
    """Whether terminals can outlive the program, and which do."""
    for finding in await aside(lambda: list(_daemon(daemon_folder(case.environ)))):
        yield finding


def _daemon(folder: Path) -> Iterator[Finding]:
    if sys.platform != "linux":
        yield Finding(name="terminal daemon", level="note", what="needs Linux: no terminal outlives its program here")
        return
    try:
        found = folder.lstat()
    except FileNotFoundError:
        yield Finding(name="terminal daemon", level="ok", what="was never needed: no terminal outlives its program")
        return
    wrong = _wrong_folder(folder, found)
    if wrong is not None:
        yield wrong
        return
    yield Finding(name="daemon's folder", level="ok", what=f"{folder}: yours alone", facts={"path": str(folder)})
    try:
        connection = connect(folder, start=False)
    except RequestRefused as error:
        yield _refused(error)
        return
    except DaemonUnavailable as error:
        yield _silent(folder, error)
        return
    try:
        listed = connection.request(RequestKind.LIST, {}).header.get("terminals")
    finally:
        connection.close()
    what = f"process {connection.daemon} answers"
    yield Finding(name="terminal daemon", level="ok", what=what, facts={"pid": connection.daemon})
    yield _terminals(folder, listed if isinstance(listed, list) else [])


def _wrong_folder(folder: Path, found: os.stat_result) -> Finding | None:
    """What keeps the daemon from its folder, or lets others into it."""
    if not stat.S_ISDIR(found.st_mode):
        what, advice = f"{folder} is not a folder: no terminal can outlive the program", f"move {folder} away"
    elif found.st_uid != os.geteuid():
        what = f"{folder} belongs to user {found.st_uid}: no terminal can outlive the program"
        advice = "set TARMAC_STATE_DIR to a folder of your own"
    elif found.st_mode & 0o077:
        mode = stat.S_IMODE(found.st_mode)
        what, advice = f"{folder} is open to other users (mode {mode:04o})", f"chmod 700 {folder}"
    else:
        return None
    facts = {"path": str(folder), "mode": stat.S_IMODE(found.st_mode), "owner": found.st_uid}
    return Finding(name="daemon's folder", level="problem", what=what, advice=advice, facts=facts)


def _refused(error: RequestRefused) -> Finding:
    if error.code == Refusal.PEER:
        what = "runs, and refuses this program because a terminal of Tarmac started it"
        return Finding(name="terminal daemon", level="note", what=what, advice="look from a terminal of your own")
    return Finding(name="terminal daemon", level="problem", what=error.what, advice=error.hint)


def _silent(folder: Path, error: DaemonUnavailable) -> Finding:
    if not isinstance(error.__cause__, FileNotFoundError | ConnectionRefusedError):
        why = error.__cause__ if isinstance(error.__cause__, DaemonUnavailable) else error
        return Finding(name="terminal daemon", level="problem", what=why.what, advice=why.hint)
    lost = len(_stored(folder))
    if not lost:
        return Finding(name="terminal daemon", level="ok", what="not needed now: no terminal outlives its program")
    return Finding(
        name="terminal daemon",
        level="note",
        what=f"was killed, and the shells of {_count(lost)} with it",
        advice="`tarmac terminals attach ID` opens a new shell in the same folder, `end ID` forgets it",
        facts={"lost": lost},
    )


def _terminals(folder: Path, listed: list[dict[str, object]]) -> Finding:
    used = sum(each.get("host") is not None for each in listed)
    lost = len(_stored(folder) - {str(each.get("id")) for each in listed})
    what = f"keeps {_count(len(listed))}, {used} of them in use" if listed else "keeps none"
    return Finding(
        name="kept terminals",
        level="ok",
        what=what + (f"; {_count(lost)} went with a daemon that was killed" if lost else ""),
        advice="`tarmac terminals` lists them" if listed or lost else "",
        facts={"kept": len(listed), "used": used, "lost": lost},
    )


def _stored(folder: Path) -> set[str]:
    try:
        return {each.parent.name for each in (folder / "terminals").glob("*/terminal.json")}
    except OSError:
        return set()


def _count(number: int) -> str:
    return f"{number} terminal{'' if number == 1 else 's'}"
