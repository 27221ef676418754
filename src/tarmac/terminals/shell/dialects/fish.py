"""fish: its line editor can't be turned off, so it waits for commands on a pipe. Read integration/fish.fish first."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from tarmac.terminals.shell.shells import INTEGRATION, Shell, ShellInvocation, parse_variables

BOOT = """\
set -g fish_history '' # an agent's lines are none of the user's history
__tarmac_find
__tarmac_export $__tarmac_in.env
builtin printf '\\e]633;P;%s;Shell=fish;Version=%s\\a' $__tarmac_nonce $version >/dev/tty
"""
# Once in each shell, after its start-up files: see `Shell.start_up`. A universal variable is the user's for all shells
# to come: it is hidden behind an empty one, not erased.
SCRUB = """\
if not set -q __tarmac_scrubbed
    set -g __tarmac_scrubbed 1
    for __tarmac_name in (for __tarmac_name in {names}; set -n | string match -- $__tarmac_name; end)
        set -eg $__tarmac_name
        set -q $__tarmac_name; and set -gx $__tarmac_name
    end
    set -e __tarmac_name
end
"""
BETWEEN = os.urandom(12).hex().encode()  # in no command, nor any directory's name
NOTE = b"\nbuiltin set -g __tarmac_parts $pipestatus"  # which leaves $status as it is


@dataclass(frozen=True, slots=True)
class Fish(Shell):
    """fish 3.4 or newer."""

    name: ClassVar[str] = "fish"
    takes_value: ClassVar[frozenset[str]] = frozenset({"-C", "-d", "-D", "-f", "-o"})
    pipe: ClassVar[bool] = True
    hides_stops: ClassVar[bool] = True
    marks_early: ClassVar[bool] = True
    enter: ClassVar[bytes] = b"\x1b[7776~"
    hand_over: ClassVar[bytes] = b"person\n"
    take_back: ClassVar[bytes] = b"\x1b[7776~"
    take_back_plainly: ClassVar[bytes] = b""  # nobody can turn its line editor off

    def start_up(
        self, *, folder: Path, nonce: bytes, start_up_files: bool, env: Mapping[str, str], hidden: Sequence[str] = ()
    ) -> tuple[list[str], dict[str, str]]:
        self.write(folder, nonce, hidden)
        quiet = [] if start_up_files else ["--no-config"]
        boot = f"builtin source {quote(str(folder / 'boot'))}"
        return [self.path, *quiet, *self.arguments, "-i", "-C", boot], dict(env)

    def write(self, folder: Path, nonce: bytes, hidden: Sequence[str] = ()) -> None:
        heal = (
            f"set -g __tarmac_nonce {quote(nonce.decode())}\nset -g __tarmac_in {quote(str(folder / 'in'))}\n"
            f"set -g __tarmac_between {BETWEEN.decode()}\n"
            f"set -g __tarmac_pipe {quote(str(folder / 'pipe'))}\nset -g __tarmac_heal {quote(str(folder / 'heal'))}\n"
            f"builtin source {quote(str(INTEGRATION / 'fish.fish'))}\n"
        )
        heal = SCRUB.format(names=" ".join(map(quote, hidden))) + heal if hidden else heal
        (folder / "heal").write_text(heal)
        (folder / "boot").write_text(heal + BOOT)

    def load(self, number: int, command: str, data: bytes, *, cwd: bytes, jobs: bool, traced: bool) -> ShellInvocation:
        note = NOTE if may_note(command) else b""
        keep = b"keep" if "status" in command else b""
        return ShellInvocation(b"%d\n" % number, BETWEEN.join((b"%d" % number, cwd, data + note, keep)))

    def heal(self, folder: Path) -> bytes:
        return f" builtin source {quote(str(folder / 'heal'))}\r".encode()

    def inject(self, folder: Path) -> bytes:
        return f" builtin source {quote(str(folder / 'boot'))}\r".encode()

    def ask(self, number: int) -> bytes:
        return b"ask\n"

    def goes_on(self, command: str) -> bool:
        return True

    def export(self, target: Path) -> str:
        return f"__tarmac_export {quote(str(target))}"

    def parse_exports(self, text: str) -> dict[str, str]:
        return parse_variables(text)

    def one(self, command: str) -> list[str]:
        return [self.path, "--no-config", "-c", command]


_INCOMPLETE = re.compile(r"(?:[|&!\\({]|\b(?:and|or|not|begin|else|time|in))\s*\Z")


def may_note(command: str) -> bool:
    """Whether it is a pipeline, and one more line at its end changes nothing of what it means."""
    if "|" not in command or _INCOMPLETE.search(command):
        return False
    return command.count("'") % 2 == 0 and command.count('"') % 2 == 0


def quote(text: str) -> str:
    """One word for fish, whatever is in it."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
