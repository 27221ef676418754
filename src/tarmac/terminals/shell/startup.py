"""Waiting for a shell to come up, whatever its start-up files do (T21).

until_up() → "" when it stands at its first prompt or has ended; else why it will not come up, in words

They may take their time, ask something, start another program, or put another shell in the place of ours. The kernel
tells who waits for keys. A question is never answered, and nothing is typed but one line, once: into the line editor of
a shell we know that came to stand where ours was.
"""

import os
import time

from tarmac.errors import TarmacError
from tarmac.terminals.execution import FROZEN
from tarmac.terminals.process import tty_probe
from tarmac.terminals.process.tty_probe import Waiting, Wants
from tarmac.terminals.shell.session import Session
from tarmac.terminals.shell.shells import KNOWN, find_shell

FIRST_LOOK = 0.25  # most shells are up by then
NEXT_LOOK = 0.1
INJECT_AFTER = 1.5
LONGEST_QUESTION = 200


async def until_up(session: Session, seconds: float) -> str:
    """Wait for the first prompt, up to `seconds`; no longer than somebody else waits for keys."""
    start = time.monotonic()
    before: Waiting | None = None
    injected = False
    pause = FIRST_LOOK
    while not session.prompted and session.alive:
        left = start + seconds - time.monotonic()
        if left <= 0:
            return f"it showed no prompt of ours within {seconds:g} s"
        before_wait = time.monotonic()
        await session.until_prompted(min(pause, left))
        start += max(time.monotonic() - before_wait - pause - FROZEN, 0)  # we were stopped: that time does not count
        pause = NEXT_LOOK
        seen = tty_probe.probe(session.pty.master, session.pid) if session.alive and not session.prompted else None
        if seen is None or seen != before or session.pty.has_unread_input():
            before = seen
        elif not _is_at_its_prompt(session, seen):
            return _why(session, seen)
        elif not injected and time.monotonic() - start > INJECT_AFTER:
            injected = True
            try:
                session.inject(find_shell(os.readlink(f"/proc/{session.pid}/exe")))
            except (OSError, TarmacError):
                return _why(session, seen)
    # It may show a prompt and leave at once.
    if session.alive:
        await session.learn_prompt()
    return ""


def _is_at_its_prompt(session: Session, seen: Waiting) -> bool:
    """Whether it is a shell's line editor that waits, in the place of the shell we started, with its start-up done."""
    if seen.wants is not Wants.KEYS or seen.process.pid != session.pid or seen.name not in KNOWN:
        return False
    if session.pty.echoes():  # `read -k`: a line editor shows by itself what is typed
        return False
    # Ours before its first prompt: one of its start-up files uses the editor to ask. (zsh has that file open; and its
    # prompt may be without our hook.)
    return session.replaced() or (seen.name == "zsh" and not _sources(session.pid))


def _sources(pid: int) -> bool:
    """Whether zsh has a start-up file open: it runs it."""
    try:
        names = os.listdir(f"/proc/{pid}/fd")  # noqa: PTH208
        links = [os.readlink(f"/proc/{pid}/fd/{each}") for each in names if int(each) > 2]
    except OSError:
        return True
    return any(not link.startswith(("/dev/", "pipe:", "socket:", "anon_inode:")) for link in links)


def _why(session: Session, seen: Waiting) -> str:
    from tarmac.vt.text import clean

    question = clean(session.shown).rstrip().rpartition("\n")[2].strip()[-LONGEST_QUESTION:]
    if seen.process.pid == session.pid and not session.replaced():
        return f"its start-up files wait for an answer: {question!r}"
    return f"its start-up files started {seen.name}, which waits for input: {question!r}"
