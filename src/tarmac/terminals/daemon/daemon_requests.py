"""What the daemon and its clients say to each other, as kinds of frames (frames.py).

A client asks with a request number, and gets OK or ERROR with the same. Descriptors travel beside a frame. The daemon
answers a kind that it does not know with ERROR `unknown kind`, and both sides ignore header fields they don't know.
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
