"""Shells: how to start one with our integration, and the one constant line that makes it load a command."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tarmac.errors import BadRequest, ShellNotFound

INTEGRATION = Path(__file__).parent / "integration"

# Read integration/bash.sh first. The line begins with a simple word (after an unbalanced quote bash 5.2 misparses a
# leading `{`) that empties what a missing loader would run again; `&& [[ 1 ]]` keeps $? and spares our calls from
# `set -e` and the ERR trap.
BASH_LOAD = (
    b' __tarmac_cmd=; \\__tarmac_load %s"$__tarmac_last" && [[ 1 ]]; \\builtin eval -- "$__tarmac_cmd"; '
    b'__tarmac_code=$?; \\__tarmac_done "$__tarmac_code" && [[ 1 ]]\n'
)
# The same with an end mark of its own, not the prompt's, and braces that hide our last words from `set -x`.
BASH_LOAD_OWN_END = BASH_LOAD.replace(b"; __tarmac_code", b"; { __tarmac_code").replace(b"]]\n", b"]]; } 2>/dev/null\n")
BASH_NOTE = b"\n__tarmac_note"
BASH_HAND_OVER = b" \\__tarmac_hand_over 2>/dev/null\n"
BASH_TAKE_BACK = b"\x1b[7776~\x1b[7777~"
# Asked after an interrupt when no mark came: it does not rely on any function of ours.
BASH_ASK = (
    b" \\builtin printf '\\e]633;D;%%s;%%s;%%s;;%%s\\a' \"$__tarmac_nonce\" %d"
    b' "${__tarmac_inner:-${__tarmac_code:-$?}}" "${PWD//[$\'\\a\\e\\n\\r;\\\\\']/?}" >/dev/tty\n'
)


@dataclass(frozen=True, slots=True)
class Shell:
    """A shell on this machine."""

    name: str
    path: str

    def start_up(self, *, folder: Path, nonce: bytes, start_up_files: bool, home: str) -> list[str]:
        """Write what it needs into the private `folder`; its argv with our integration."""
        script = INTEGRATION / "bash.sh"
        head = f"__tarmac_nonce={quote(nonce.decode())} __tarmac_in={quote(str(folder / 'in'))}\n"
        load = f"\\builtin . {quote(str(script))}\n"
        (folder / "heal").write_text(head + load)
        rc = Path(home) / ".bashrc"
        user = f"if [[ -r {quote(str(rc))} ]]; then . {quote(str(rc))}; fi\n" if start_up_files else ""
        (folder / "rc").write_text(user + head + load)
        return [self.path, "--rcfile", str(folder / "rc"), "--noediting", "-i"]

    def heal(self, folder: Path) -> bytes:
        """The line that loads our functions again after a command removed them."""
        return f" \\builtin . {quote(str(folder / 'heal'))}\n".encode()

    def bare(self) -> list[str]:
        """Its argv without our integration."""
        return [self.path, "--noediting", "-i"]

    def one(self, command: str) -> list[str]:
        """Its argv to run one command and exit."""
        return [self.path, "-c", command]


KNOWN = ("bash",)  # zsh and fish come next


def find_shell(name: str | None = None, *, environ: Mapping[str, str] | None = None) -> Shell:
    """The shell of that name or path; bash by default, whatever the person's own login shell is."""
    wanted = name or "bash"
    kind = Path(wanted).name
    if "\0" in wanted or not kind:
        raise BadRequest(f"{wanted!r} is not the name of a shell")
    search = (environ or os.environ).get("PATH") or os.defpath
    found = _which(wanted, search) or _which(wanted, os.defpath)
    if kind not in KNOWN:
        if found:
            raise ShellNotFound(f"{kind} is not a shell Tarmac can drive yet", hint=f"it can drive: {', '.join(KNOWN)}")
        raise ShellNotFound(f"there is no shell {wanted!r} on this machine", hint=f"try one of: {', '.join(KNOWN)}")
    if not found:
        raise ShellNotFound(
            f"there is no {wanted} on this machine", hint=f"install it, or give the full path of a {kind}"
        )
    return Shell(kind, str(Path(found).absolute()))


def _which(name: str, search: str) -> str | None:
    """Where the program is (shutil.which, without importing every compression there is)."""
    places = [""] if "/" in name else search.split(":")
    for place in places:
        path = os.path.join(place, name)  # noqa: PTH118
        if os.access(path, os.X_OK) and Path(path).is_file():
            return path
    return None


def quote(text: str) -> str:
    """One word for any of our shells, whatever is in it."""
    return "'" + text.replace("'", "'\\''") + "'"


_SHORT = 512  # a line on a terminal ends at 4,095 bytes
_INCOMPLETE = re.compile(r"(?:[|&!\\({]|\(\s*\))\s*\Z")
_ODD = re.compile(r"\bset\b|xtrace|\bshopt\b|\bstty\b|\b(?:for|case|select|function)\b")
_TRACE = re.compile(r"\bset\b|xtrace|\bshopt\b|\bstty\b|\bsource\b|(?:^|[;&|\s])\.\s")
_PLAIN = re.compile(r"(?!(?:for|case|select|function|if|while|until|time|coproc)\b)[\w./=+:,@%^~ -]+", re.ASCII)


def may_trace(command: str) -> bool:
    """Whether it may turn on `set -x`, turn off `promptvars`, or run what does."""
    return _TRACE.search(command) is not None


def is_short(command: str) -> bool:
    """Whether it may be one quoted word on the line itself: a few plain words that no terminal and no shell can mangle.

    Everything else goes through the file. This spares a shell that runs `:` half its work.
    """
    return len(command) <= _SHORT and _PLAIN.fullmatch(command) is not None and not _ODD.search(command)


def note_for(command: str) -> bytes:
    """One more line for the end of the command, where it changes nothing of what that means: see __tarmac_note.

    It may not follow a trailing `|` or `\\`, an open here-document, or a comment that could hide either. It is worth
    it for a pipeline and for plain words, whose last one the next command may want (`mkdir a`, `cd $_`); for the rest
    ("e") only under `set -e`, where the status of our own `eval` would end a shell that bash spares (`! true`).
    """
    if _INCOMPLETE.search(command) or "<<" in command or "#" in command:
        return b""
    odd = _ODD.search(command)
    if not odd and ("|" in command or _PLAIN.fullmatch(command)):
        return BASH_NOTE
    return b"e" + BASH_NOTE
