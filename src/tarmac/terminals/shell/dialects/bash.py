"""bash: one constant line loads a command; read integration/bash.sh first."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from tarmac.terminals.shell.shells import INTEGRATION, Shell, ShellInvocation, quote

# The line begins with a simple word (after an unbalanced quote bash 5.2 misparses a leading `{`) that empties what a
# missing loader would run again; `&& [[ 1 ]]` keeps $? and spares our calls from `set -e` and the ERR trap.
LAST = '"${__tarmac_last[__tarmac_k-1!=__tarmac_from]-$__tarmac_natural}"'  # $_ of the last command, loaded or typed
LOAD = (
    b" __tarmac_cmd=; \\__tarmac_load " + LAST.encode() + b" && [[ 1 ]]; "
    b'\\builtin eval -- "$__tarmac_cmd"; __tarmac_code=$?; \\__tarmac_done "$__tarmac_code" && [[ 1 ]]\n'
)
# The same with an end mark of its own, not the prompt's, and braces that hide our last words from `set -x`.
LOAD_OWN_END = LOAD.replace(b"; __tarmac_code", b"; { __tarmac_code").replace(b"]]\n", b"]]; } 2>/dev/null\n")
NOTE = b"\n__tarmac_note"
# A shell that must be asked is not calm: its hook looks at everything before the next prompt.
ASK = (
    b" \\builtin printf '\\e]633;R;%%s;%%s;%%s;%%s;%%s\\a' \"$__tarmac_nonce\" %d"
    b' "${__tarmac_inner:-${__tarmac_code:-$?}}" "${__tarmac_code@a}" "${PWD//[$\'\\a\\e\\n\\r;\\\\\']/?}" >/dev/tty;'
    b" __tarmac_calm=-\n"
)
# Once in each shell, after its start-up files: see `Shell.start_up`. (`readonly` ones can't be had off it.)
SCRUB = (
    "if [[ ! -v __tarmac_scrubbed ]]; then __tarmac_scrubbed=1; \\unset -v {names} 2>/dev/null || \\builtin true; fi\n"
)
LOGIN = (
    "[[ -r /etc/profile ]] && . /etc/profile\n"
    "for __tarmac_file in {home}/.bash_profile {home}/.bash_login {home}/.profile; do\n"
    '  if [[ -r $__tarmac_file ]]; then . "$__tarmac_file"; break; fi\n'
    "done; unset -v __tarmac_file\n"
)
ASK_TYPED = ASK.replace(b"${__tarmac_inner:-${__tarmac_code:-$?}}", b"$?").replace(b"${__tarmac_code@a}", b"")


@dataclass(frozen=True, slots=True)
class Bash(Shell):
    """bash 4.4 or newer."""

    name: ClassVar[str] = "bash"
    takes_value: ClassVar[frozenset[str]] = frozenset({"-o", "+o", "-O", "+O"})
    hand_over: ClassVar[bytes] = b" \\__tarmac_hand_over 2>/dev/null\n"
    take_back: ClassVar[bytes] = b"\x1b[7776~\x1b[7777~"
    take_back_plainly: ClassVar[bytes] = b" __tarmac_driven\n"

    def start_up(
        self, *, folder: Path, nonce: bytes, start_up_files: bool, env: Mapping[str, str], hidden: Sequence[str] = ()
    ) -> tuple[list[str], dict[str, str]]:
        self.write(folder, nonce, hidden)
        rc = Path(env.get("HOME", "/")) / ".bashrc"
        user = f"if [[ -r {quote(str(rc))} ]]; then . {quote(str(rc))}; fi\n" if start_up_files else ""
        more = [each for each in self.arguments if each not in ("-l", "--login")]
        if start_up_files and len(more) < len(self.arguments):  # a login shell would read these, and not our file
            user = LOGIN.format(home=quote(env.get("HOME", "/"))) + user
        (folder / "rc").write_text(user + (folder / "heal").read_text())
        long, short = ([each for each in more if each.startswith("--") is wanted] for wanted in (True, False))
        return [self.path, "--rcfile", str(folder / "rc"), "--noediting", *long, "-i", *short], dict(env)

    def write(self, folder: Path, nonce: bytes, hidden: Sequence[str] = ()) -> None:
        head = f"__tarmac_nonce={quote(nonce.decode())} __tarmac_in={quote(str(folder / 'in'))}\n"
        head += SCRUB.format(names=" ".join(f'"${{!{each[:-1]}@}}"' if each.endswith("*") else each for each in hidden))
        (folder / "heal").write_text(head + f"\\builtin . {quote(str(INTEGRATION / 'bash.sh'))}\n")

    def load(self, number: int, command: str, data: bytes, *, cwd: bytes, jobs: bool, traced: bool) -> ShellInvocation:
        # The end mark must be one of its own, not the prompt's, where the prompt may be late or stale.
        note = note_for(command)
        own = traced or jobs or not note or may_trace(command)
        return ShellInvocation(LOAD_OWN_END if own else LOAD, b"%d\0%s\0%s\0%s\0" % (number, cwd, data, note))

    def may_type(self, command: str) -> bool:
        return len(command) <= SHORT and is_plain(command) and not _TELLING.search(command)

    def moving(self, number: int, cwd: bytes, data: bytes) -> bytes:
        """`data` to be typed after a move to `cwd`; nothing when that can't be typed."""
        if len(cwd) > SHORT or not _PLAIN_PATH.fullmatch(cwd):
            return b""
        return b"\\builtin cd -- %s && __tarmac_go %d || __tarmac_stay %d && %s" % (
            cwd,
            number,
            number,
            data,
        )

    def heal(self, folder: Path) -> bytes:
        return f" \\builtin . {quote(str(folder / 'heal'))}\n".encode()

    def inject(self, folder: Path) -> bytes:
        return f" \\builtin . {quote(str(folder / 'heal'))}; __tarmac_driven\r".encode()

    def ask(self, number: int) -> bytes:
        return ASK % number

    def ask_typed(self, number: int) -> bytes:
        return ASK_TYPED % number

    def goes_on(self, command: str) -> bool:
        return not is_plain(command)

    def export(self, target: Path) -> str:
        return f"__tarmac_export {quote(str(target))} {LAST}"

    def parse_exports(self, text: str) -> dict[str, str]:
        return parse_exports(text)


SHORT = 512  # a line on a terminal ends at 4,095 bytes
_INCOMPLETE = re.compile(r"(?:[|&!\\({]|\(\s*\))\s*\Z")
_ODD = re.compile(r"\bset\b|xtrace|\bshopt\b|\bstty\b|\b(?:for|case|select|function)\b")
_TRACE = re.compile(r"\bset\b|\bexit\b|xtrace|\bshopt\b|\bstty\b|\bsource\b|(?:^|[;&|\s])\.\s")
_RESERVED = "case|coproc|do|done|elif|else|esac|fi|for|function|if|in|select|then|time|until|while"
_PLAIN = re.compile(rf"(?!\s*(?:{_RESERVED})\b)[\w./=+:,@%^~ -]+", re.ASCII)
_PLAIN_PATH = re.compile(rb"/[\w./=+:,@%-]*", re.ASCII)
# What may change how the prompt tells the end of a command.
_TELLING = re.compile(
    r"PS\d|PROMPT_COMMAND|tarmac|\b(?:alias|builtin|command|enable|eval|exec|exit|history|readonly|set|shopt|source|stty|trap|unset)\b"
    r"|(?:^|\s)\.\s"
)


def may_trace(command: str) -> bool:
    """Whether it may turn on `set -x`, turn off `promptvars`, or run what does."""
    return _TRACE.search(command) is not None


def is_plain(command: str) -> bool:
    """Whether it is one simple command of plain words, which no terminal and no shell can mangle."""
    return _PLAIN.fullmatch(command) is not None and not _ODD.search(command)


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
        return NOTE
    return b"e" + NOTE


_EXPORT = re.compile(
    r"""^declare -[a-zA-Z]*x[a-zA-Z]* (\w+)(?:=("(?:[^"\\]|\\.)*"|\$'(?:[^'\\]|\\.)*'))?$""", re.MULTILINE | re.DOTALL
)
_IN_QUOTES = re.compile(r"\\([\\\"$`])")
_IN_ANSI = re.compile(rb"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2})|(.))", re.DOTALL)
_LETTERS = dict(zip(b"ntrabeEfv", b"\n\t\r\a\b\x1b\x1b\f\v", strict=True))


def parse_exports(text: str) -> dict[str, str]:
    """What bash's `export -p` says, back into variables."""
    variables: dict[str, str] = {}
    for name, value in _EXPORT.findall(text):
        if value.startswith('"'):
            variables[name] = _IN_QUOTES.sub(r"\1", value[1:-1])
        elif value:
            quoted = value[2:-1].encode("utf-8", "surrogateescape")
            variables[name] = _IN_ANSI.sub(_unquote, quoted).decode("utf-8", "surrogateescape")
    return variables


def _unquote(found: re.Match[bytes]) -> bytes:
    octal, hexadecimal, letter = found.groups()
    if octal or hexadecimal:
        return bytes([int(octal, 8) & 255 if octal else int(hexadecimal, 16)])
    return bytes([_LETTERS.get(letter[0], letter[0])])
