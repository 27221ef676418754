"""Terminals that outlive the program: a small process per user is the parent of their shells.

    program ── connection (one a terminal) ──→ daemon ──fork──→ shell
       │  ←──── PTY master, journal's pipe (SCM_RIGHTS) ────┘
       └── reads and writes the PTY itself, through the journal

process.py           the daemon: its loop, its requests, its time to live
kept_shell.py        one shell in it: fork, wait status, draining; and a program that is attached to some
journal.py           what a PTY printed, on disk before anybody reads it
connection.py        the program's end of a connection; starts the daemon on demand
kept_pty.py          the PTY of a shell that the daemon forked
terminal_records.py  the stored facts about a terminal and its commands
kept_terminal.py     a terminal whose shell the daemon keeps
takeover.py          list, attach, restore

Below are the kinds of frames (frames.py) that both sides send. A client asks with a request number, and gets OK or
ERROR with the same. Descriptors travel beside a frame. The daemon answers a kind that it does not know with ERROR
`unknown kind`, and both sides ignore header fields they don't know.

The daemon's half imports neither asyncio nor pathlib, so the daemon stays under 15 MB.
"""

from enum import IntEnum, StrEnum

VERSION = 1


class RequestKind(IntEnum):
    HELLO = 1  # version → version, pid
    LIST = 2  # → terminals: id, pid, status, host, idle, time_to_live
    SPAWN = 3  # id, argv, cwd, env, mark, time_to_live, journal; master and slave → pid; the journal's pipe
    ATTACH = 4  # id → pid, status, drained_from; master, slave, pipe, and what is held
    HOLD = 5  # descriptors that must stay open while nobody is attached
    FORGET = 6  # id: its shell has ended, or must end now; nothing of it is kept
    SYSTEM_CALL = 7  # pid, path → what only an ancestor may read of a process below the shell
    LEAVE = 8  # time_to_live: the client goes in order
    OK = 64
    ERROR = 65  # code, what
    EXITED = 66  # pid, status: the shell has ended


class Refusal(StrEnum):
    """Why the daemon does not do it."""

    PEER = "peer"  # the client may not talk to it at all
    UNKNOWN_KIND = "unknown kind"
    UNKNOWN_TERMINAL = "unknown terminal"
    IN_USE = "in use"
    BAD_REQUEST = "bad request"
    FAILED = "failed"  # the operating system said no; `errno` tells
