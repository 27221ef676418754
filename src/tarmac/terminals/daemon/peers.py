"""Decide who may talk to the daemon: processes of the same user that no agent's shell has started.

    peer → its parent → … → init: is one of them a shell of the daemon, or does it carry the mark of a terminal?

An agent can clear its environment and its birthmark, but not its ancestors. Every shell is a subreaper, so its
processes stay below it, also after `setsid` and a second fork. A shell that belongs to another program is known by two
facts: it leads a session, and its parent has terminals open. The watchdog beside the parent shows that.

This protects against an agent's mistakes. A hostile program of the same user could trace or kill the daemon anyway.
"""

import os
from collections.abc import Collection, Iterator

from tarmac.terminals.process import birthmark
from tarmac.terminals.process.processes import Stat, command_line, entries, stat
from tarmac.terminals.process.watchdog import SCRIPT

_MOST_ANCESTORS = 200
_COOKIE = f"{birthmark.COOKIE}=".encode()


def refusal(pid: int, shells: Collection[int]) -> str:
    """Why the process may not talk to the daemon, which has these `shells`; empty if it may."""
    chain = list(_ancestors(pid))
    if not chain:
        return "it is gone"
    for place, each in enumerate(chain):
        if each.process.pid in shells:
            return f"it was started in a terminal (its shell is process {each.process.pid})"
        if birthmark.is_marked(each.process.pid) or any(one.startswith(_COOKIE) for one in entries(each.process.pid)):
            return f"process {each.process.pid}, which started it, belongs to a terminal"
        parent = chain[place + 1] if place + 1 < len(chain) else None
        if parent is not None and each.session == each.process.pid and _has_terminals(parent.process.pid):
            return f"process {each.process.pid} was started by a program that has terminals open"
    return ""


def _ancestors(pid: int) -> Iterator[Stat]:
    """The process itself, its parent, and so on, without init."""
    for _ in range(_MOST_ANCESTORS):
        found = stat(pid) if pid > 1 else None
        if found is None:
            return
        yield found
        pid = found.parent


def _has_terminals(pid: int) -> bool:
    """Whether it is a daemon, or a watchdog runs beside it: see process/watchdog.py."""
    if any("tarmac.terminals.daemon.process import main" in word for word in command_line(pid)[:6]):
        return True
    return any(command_line(each)[-1:] == [SCRIPT] for each in _children(pid))


def _children(pid: int) -> Iterator[int]:
    try:
        threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208
    except OSError:
        return
    for thread in threads:
        try:
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:  # noqa: PTH123
                yield from map(int, file.read().split())
        except OSError:
            continue
