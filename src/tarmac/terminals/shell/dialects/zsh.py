"""zsh: one line loads a command, with the line editor off. Read integration/zsh.zsh first.

A command of one line is evaluated. A longer one is sourced, because zsh parses all of an `eval` before it runs any of
it: an alias of line 1 would be unknown in line 2.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from tarmac.terminals.shell.shells import INTEGRATION, Shell, ShellInvocation, parse_variables, quote

# zsh reads a line byte by byte (1 µs each): it is short. `\` defeats aliases (and spelling correction); `&& [[ 1 ]]`
# keeps $? and spares our calls from `set -e` and ZERR; the first words empty what a missing loader would run again.
LOAD_SHORT = (
    b" __tarmac_cmd=;\\__tarmac_load %d '%s' && [[ 1 ]];"
    b'\\builtin eval "$__tarmac_cmd";\\__tarmac_done $? $- && [[ 1 ]]\n'
)
LOAD_FILE = (
    b" __tarmac_cmd= __tarmac_how=:;\\__tarmac_read now && [[ 1 ]];"
    b'\\builtin $__tarmac_how "$__tarmac_cmd";\\__tarmac_done $? $- && [[ 1 ]]\n'
)
# The same where there is more to do. Braces hide our words from `set -x`, which is off between commands.
_BEGIN = b" __tarmac_how=: __tarmac_cmd=; { __tarmac_flags=$-; \\builtin set +x; "
_RUN = b' && [[ 1 ]] } >/dev/null 2>&1; \\builtin "$__tarmac_how" "$__tarmac_cmd"; '
_END = b"{ __tarmac_said=$? __tarmac_flags=$-; \\builtin set +x; \\__tarmac_done && [[ 1 ]] } >/dev/null 2>&1\n"
LOAD = _BEGIN + b"\\__tarmac_read && [[ 1 ]]; \\__tarmac_start" + _RUN + _END
# The move is here and not in a function of ours, so that the user's chpwd hooks have their own options.
_MOVE = b'\\builtin cd -- "$__tarmac_dir" >/dev/null 2>&1 && [[ 1 ]]; \\__tarmac_start $?'
LOAD_MOVE = _BEGIN + b"\\__tarmac_read && [[ 1 ]]; " + _MOVE + _RUN + _END
NOTE = (  # as in zsh.zsh
    b"\n__tarmac_code=$? __tarmac_inner=(${pipestatus[@]}) __tarmac_arg=$_; (( ! ZSH_SUBSHELL )) || exit $__tarmac_code"
)
RESTORE = b'__tarmac_restore "$__tarmac_last"; '
TRACED = b"{ \\builtin set -x; " + RESTORE + b"} 2>/dev/null; "
ASK = (
    b" \\builtin printf '\\e]633;R;%%s;%%s;%%s;%%s;%%s\\a' \"$__tarmac_nonce\" %d"
    b' "${__tarmac_code:-${__tarmac_said:-$?}}" "${(t)__tarmac_said}" "${PWD//[$\'\\a\\e\\n\\r;\\\\\']/?}" >/dev/tty\n'
)

_STICKY = "no_aliases no_xtrace no_verbose no_err_exit no_err_return"
# Once in each shell, after its start-up files: see `Shell.start_up`.
SCRUB = """\
if (( ! ${{+__tarmac_scrubbed}} )); then 'builtin' 'typeset' -g __tarmac_scrubbed=1
{{ 'builtin' 'unset' -m {names} 2>/dev/null || [[ 1 ]] }} always {{ TRY_BLOCK_ERROR=0 }}; fi
"""
HEAL = """\
__tarmac_nonce={nonce} __tarmac_in={folder}/in
'builtin' 'emulate' zsh {options} -c "'builtin' '.' {script}"
if [[ -o aliases ]]; then 'builtin' 'unsetopt' aliases; 'builtin' '.' {script_options}; 'builtin' 'setopt' aliases; else
'builtin' '.' {script_options}; fi
"""
# Our .zshenv runs the user's, in the place they have for it, and then is gone: zsh finds the other files by itself, as
# it would without us. The first prompt loads our integration.
ZSHENV = """\
{place}
{user}
typeset -ga precmd_functions
precmd_functions+=(__tarmac_boot)
__tarmac_boot() {{ 'builtin' '.' {folder}/boot; __tarmac_precmd }}
"""
USERS_ZSHENV = """if [[ -r ${ZDOTDIR:-$HOME}/.zshenv ]]; then 'builtin' '.' "${ZDOTDIR:-$HOME}/.zshenv"; fi"""


@dataclass(frozen=True, slots=True)
class Zsh(Shell):
    """zsh 5.3 or newer."""

    name: ClassVar[str] = "zsh"
    hand_over: ClassVar[bytes] = b" \\__tarmac_hand_over 2>/dev/null\n"
    skips_after_interrupt: ClassVar[bool] = True
    marks_early: ClassVar[bool] = True
    take_back: ClassVar[bytes] = b"\x1b[7776~"
    take_back_plainly: ClassVar[bytes] = b" \\__tarmac_driven\n"

    def start_up(
        self, *, folder: Path, nonce: bytes, start_up_files: bool, env: Mapping[str, str], hidden: Sequence[str] = ()
    ) -> tuple[list[str], dict[str, str]]:
        self.write(folder, nonce, hidden)
        place = env.get("ZDOTDIR")
        zdotdir = folder / "zdotdir"
        zdotdir.mkdir()
        text = ZSHENV.format(
            folder=quote(str(folder)),
            place="'builtin' 'unset' ZDOTDIR" if place is None else f"'builtin' 'export' ZDOTDIR={quote(place)}",
            user=USERS_ZSHENV if start_up_files else "'builtin' 'setopt' no_rcs",
        )
        (zdotdir / ".zshenv").write_text(text)
        argv = [self.path, "-i"] if start_up_files else [self.path, "-d", "-i"]
        return [*argv, *self.arguments], {**env, "ZDOTDIR": str(zdotdir)}

    def write(self, folder: Path, nonce: bytes, hidden: Sequence[str] = ()) -> None:
        heal = HEAL.format(
            nonce=quote(nonce.decode()),
            folder=quote(str(folder)),
            options=" ".join(f"-o {each}" for each in _STICKY.split()),
            script=quote(str(INTEGRATION / "zsh.zsh")),
            script_options=quote(str(INTEGRATION / "zsh_options.zsh")),
        )
        heal = SCRUB.format(names=" ".join(map(quote, hidden))) + heal if hidden else heal
        (folder / "heal").write_text(heal)
        (folder / "boot").write_text(heal + "__tarmac_begin\n")

    def load(self, number: int, command: str, data: bytes, *, cwd: bytes, jobs: bool, traced: bool) -> ShellInvocation:
        if not cwd and not traced and is_short(command):
            return ShellInvocation(LOAD_SHORT % (number, data))
        line = LOAD_MOVE if cwd else LOAD if traced or _TRACE.search(command) else LOAD_FILE
        note = b"" if traced or not may_note(command) else NOTE
        text = (TRACED if traced else RESTORE if _LAST.search(command) else b"") + data + note
        if "\n" not in command:
            return ShellInvocation(line, b"%d\0%s\0%s\0" % (number, cwd, text))
        return ShellInvocation(line, b"%d\0%s\0\0" % (number, cwd), text)

    def heal(self, folder: Path) -> bytes:
        return f" 'builtin' '.' {quote(str(folder / 'heal'))}\n".encode()

    def inject(self, folder: Path) -> bytes:
        return f" 'builtin' '.' {quote(str(folder / 'boot'))}\r".encode()

    def ask(self, number: int) -> bytes:
        return ASK % number

    def goes_on(self, command: str) -> bool:
        return not is_short(command)

    def export(self, target: Path) -> str:
        return f'__tarmac_export {quote(str(target))} "$__tarmac_last"'

    def parse_exports(self, text: str) -> dict[str, str]:
        return parse_variables(text)

    def one(self, command: str) -> list[str]:
        return [self.path, "-f", "-c", command]


_SHORT = 512
_WORDS = r"for|foreach|case|select|function|if|while|until|repeat"
_PLAIN = re.compile(rf"(?!(?:{_WORDS}|time|coproc|set|setopt|stty)\b)[\w./=+:,@%^~ -]+", re.ASCII)
_OPEN = re.compile(rf"\b(?:{_WORDS})\b")
_CLOSED = re.compile(r"(?:\}|\b(?:done|end|fi|esac))\s*\Z")
_INCOMPLETE = re.compile(r"(?:[|&!\\({]|\(\s*\))\s*\Z")
_TRACE = re.compile(r"\bset\b|xtrace|\bsetopt\b|\bemulate\b|\bsource\b|(?:^|[;&|\s])\.\s")
_LAST = re.compile(r"\$\{?_(?!\w)")


def is_short(command: str) -> bool:
    """Whether it may be one quoted word on the line itself: a few plain words that nobody can mangle."""
    return len(command) <= _SHORT and _PLAIN.fullmatch(command) is not None


def may_note(command: str) -> bool:
    """Whether one more line at its end changes nothing of what it means, and shows in no trace."""
    if _INCOMPLETE.search(command) or "<<" in command or "#" in command or _TRACE.search(command):
        return False
    return not _OPEN.search(command) or _CLOSED.search(command) is not None
