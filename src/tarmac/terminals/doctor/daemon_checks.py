"""The terminal daemon: its folder, whether it answers, and the terminals it keeps. No daemon is started."""

import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

from tarmac.errors import DaemonUnavailable
from tarmac.terminals.daemon.connection import RequestRefused, connect, daemon_folder
from tarmac.terminals.daemon.daemon_requests import Refusal, RequestKind
from tarmac.terminals.doctor.check import Case, Finding, Findings, aside


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
