"""Every error Tarmac raises. Each says what went wrong and where; `hint` says what to do next.

`nearest` finds the name that was probably meant by one that is wrong.

TarmacError
├── BadRequest (ValueError)            the call itself makes no sense: an empty command, a NUL, a timeout of 0
├── ConfigError (ValueError)           something in the configuration makes no sense; it says in which file and line
├── DirectoryUnavailable (OSError)     a working directory is gone, forbidden, or is a file
├── StateUnavailable (OSError)         Tarmac's own files can't be read or written
├── FileUnavailable (OSError)          a file can't be read or written; it is as it was
├── EditFailed (ValueError)            an edit can't be made: binary, malformed, changed meanwhile; nothing was written
├── SearchFailed (RuntimeError)        ripgrep is missing, or did not finish
├── BadArguments (ValueError)          a model's tool call can't be read: its text is for the model
├── ToolFailed (RuntimeError)          a tool can't do what it was asked: its text is for the model
├── ToolDenied (ToolFailed)            a person did not want it, or nobody was there to be asked
├── ShellNotFound (FileNotFoundError)  no such shell on this machine
├── ShellFailed (RuntimeError)         the shell could not be started, or left before its first prompt
├── SandboxUnavailable (RuntimeError)  this machine can't keep commands in a sandbox
├── ParserUnavailable (RuntimeError)   the shell parser can't run, so that no command can be judged
├── OutOfTerminals (OSError)           PTYs, file descriptors or processes are used up
├── LeaseTimedOut (TimeoutError)       all terminals a task may have are in use, and stayed so
├── TerminalClosed (RuntimeError)      it was closed, by you or with its task
├── TerminalNotFound (KeyError)        no terminal has that id
├── TerminalBusy (RuntimeError)        another command is running in it
├── TerminalHeld (RuntimeError)        a person is typing in it
├── ExecutionEnded (RuntimeError)      input for a command that has ended
├── InputClosed (RuntimeError)         this command was started without input
├── SecretNotAsked (RuntimeError)      a secret was to be typed where the terminal would have shown it
├── DaemonUnavailable (OSError)        the terminal daemon can't be started or reached, is gone, or refused
├── ImportFailed (ValueError)          another program's files are damaged, or of no shape we know
├── TaskNotFound (KeyError)            no task has that id
├── TaskInUse (RuntimeError)           another process is working on that task
├── EditorSilent (TimeoutError)        an editor did not answer about a file
├── PlaceFailed (ConnectionError)      another machine or container failed, not a command that ran there
├── PlaceUnavailable (PlaceFailed)     it can't be reached or used; `trouble` says why
├── ConnectionLost (PlaceFailed)       the connection to it broke; commands may still run there
├── BadFrame (ValueError)              bytes between two of Tarmac's processes are damaged, or another program's
├── PeerGone (ConnectionError)         an editor or agent has closed its connection, or never reads
├── PeerRefused (RuntimeError)         it answered a request with an error; `code` is JSON-RPC's
├── ScriptWrong (ValueError)           a script for a scripted model can't be played, with file and line
└── ModelError (RuntimeError)          a model did not answer; of which kind, and what had come: models/provider.py

A command that exits non-zero, times out or is killed is a result, not an error.
"""

from collections.abc import Iterable
from enum import StrEnum


class TarmacError(Exception):
    """The root; shown to a person as `tarmac: what` and, under it, `hint: …`."""

    def __init__(self, what: str, *, hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.what}\n  hint: {self.hint}" if self.hint else self.what


class BadRequest(TarmacError, ValueError):
    """The call itself makes no sense."""


class ConfigError(TarmacError, ValueError):
    """Something in the configuration makes no sense."""


class DirectoryUnavailable(TarmacError, OSError):
    """A working directory is gone, forbidden, or is a file."""


class StateUnavailable(TarmacError, OSError):
    """Tarmac's own files can't be read or written."""


class FileUnavailable(TarmacError, OSError):
    """A file can't be read or written; it is as it was."""


class EditFailed(TarmacError, ValueError):
    """An edit can't be made; nothing was written."""


class SearchFailed(TarmacError, RuntimeError):
    """A search through files could not be run to its end."""


class BadArguments(TarmacError, ValueError):
    """A tool call that can't be read: an unknown tool, broken JSON, a missing or wrong argument."""


class ToolFailed(TarmacError, RuntimeError):
    """A tool can't do what it was asked, and did nothing."""


class ToolDenied(ToolFailed):
    """A person did not want it, or nobody was there to be asked."""


class ShellNotFound(TarmacError, FileNotFoundError):
    """No such shell on this machine."""


class ShellFailed(TarmacError, RuntimeError):
    """The shell could not be started, or left before its first prompt."""


class SandboxUnavailable(TarmacError, RuntimeError):
    """This machine can't keep commands in a sandbox, and nothing is run without it."""


class ScreenUnavailable(TarmacError, RuntimeError):
    """The screen of a terminal can't be shown: the emulator is not installed, or the terminal has no screen."""


class ParserUnavailable(TarmacError, RuntimeError):
    """The shell parser can't run, so that no command can be judged."""


class OutOfTerminals(TarmacError, OSError):
    """PTYs, file descriptors or processes are used up."""


class LeaseTimedOut(TarmacError, TimeoutError):
    """No terminal became free in time."""


class TerminalClosed(TarmacError, RuntimeError):
    """The terminal was closed."""


class TerminalNotFound(TarmacError, KeyError):
    """No terminal has that id."""


class TerminalBusy(TarmacError, RuntimeError):
    """Another command is running in that terminal."""


class TerminalHeld(TarmacError, RuntimeError):
    """A person is typing in that terminal."""


class ExecutionEnded(TarmacError, RuntimeError):
    """Input was sent to a command that has ended."""


class InputClosed(TarmacError, RuntimeError):
    """Input was sent to a command that was started without any."""


class SecretNotAsked(TarmacError, RuntimeError):
    """A secret was to be typed where nobody asked for one: the terminal would have shown it."""


class DaemonUnavailable(TarmacError, OSError):
    """The terminal daemon can't be started or reached, is gone, or refused."""


class ImportFailed(TarmacError, ValueError):
    """Another program's files can't be understood; nothing was taken in, and they are as they were."""


class TaskNotFound(TarmacError, KeyError):
    """No task has that id."""


class TaskInUse(TarmacError, RuntimeError):
    """Another process (`pid`, where it is known) writes that task's log; one may follow it meanwhile."""

    def __init__(self, what: str, *, pid: int | None = None, hint: str = "") -> None:
        super().__init__(what, hint=hint)
        self.pid = pid


class EditorSilent(TarmacError, TimeoutError):
    """An editor did not answer about a file, or could not do what it was asked."""


class Trouble(StrEnum):
    """Why a place can't be used."""

    NOT_FOUND = "not found"  # no such machine, container or socket
    UNREACHABLE = "unreachable"  # nothing listens there, or the network does not lead there
    DENIED = "denied"  # the key or the password is not accepted, or the machine is not the known one
    NO_CLIENT = "no client"  # `ssh`, `docker` and so on is not installed here
    NO_PYTHON = "no Python"
    OLD_PYTHON = "old Python"
    NO_ROOM = "no room"
    GARBAGE = "garbage"  # something else answered
    SILENT = "silent"  # nothing answered in time
    VERSION = "version"  # the two Tarmacs are too far apart
    OTHER = "other"


class PlaceFailed(TarmacError, ConnectionError):
    """Another machine or container failed. A command that fails there is a result, and never this."""


class PlaceUnavailable(PlaceFailed):
    """The place can't be reached or used."""

    def __init__(self, what: str, *, trouble: Trouble = Trouble.OTHER, hint: str = "") -> None:
        super().__init__(what, hint=hint)
        self.trouble = trouble


class ConnectionLost(PlaceFailed):
    """The connection to a place broke. Commands may still run there."""


class BadFrame(TarmacError, ValueError):
    """The bytes are not frames: another program is at the other end, or the stream is damaged."""


class PeerGone(TarmacError, ConnectionError):
    """The program at the other end of a connection is gone."""


class PeerRefused(TarmacError, RuntimeError):
    """The program at the other end answered with an error."""

    def __init__(self, what: str, *, hint: str = "", code: int = 0) -> None:
        super().__init__(what, hint=hint)
        self.code = code


class ScriptWrong(TarmacError, ValueError):
    """A script for a scripted model can't be played."""


def nearest(wrong: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """The one of `known` that looks most like it; empty when none does. Two letters swapped are the likeliest slip."""
    from difflib import get_close_matches  # only here: nobody needs it who types well

    names = list(known)
    swapped = [each for each in names if sorted(each) == sorted(wrong)]
    return next(iter(swapped or get_close_matches(wrong, names, n=1, cutoff=cutoff)), "")
