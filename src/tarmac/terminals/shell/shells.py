"""What Tarmac must know of a shell to drive it. Each shell has a subclass in `dialects/`.

start_up() → argv and environment, with our integration in a private folder
load() → the line that makes it run a command, and what it finds in its file
hand_over, take_back, ask(), heal() → the other lines that Tarmac types
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple

INTEGRATION = Path(__file__).parent / "integration"


class ShellInvocation(NamedTuple):
    """What makes a shell run a command: a line, and what it finds in its files, if anything."""

    line: bytes
    fields: bytes = b""
    script: bytes = b""


@dataclass(frozen=True, slots=True)
class Shell(ABC):
    """A shell on this machine."""

    path: str
    arguments: tuple[str, ...] = ()  # more options to start it with

    name: ClassVar[str]
    takes_value: ClassVar[frozenset[str]] = frozenset({"-o", "+o"})  # options that are followed by a word
    hand_over: ClassVar[bytes]  # turns line editor and history on for a person's next line
    take_back: ClassVar[bytes]  # and off again: keys that work in every keymap
    take_back_plainly: ClassVar[bytes]  # the same where a person has turned the line editor off
    pipe: ClassVar[bool] = False  # it reads our lines from a pipe, not from the terminal
    enter: ClassVar[bytes] = b""  # the key that makes it do so
    hides_stops: ClassVar[bool] = False  # its status does not tell that a program was stopped
    skips_after_interrupt: ClassVar[bool] = False  # one at the end of a loop: it runs nothing before the next one
    marks_early: ClassVar[bool] = False  # the mark of its prompt comes before its line editor listens

    @abstractmethod
    def start_up(
        self, *, folder: Path, nonce: bytes, start_up_files: bool, env: Mapping[str, str], hidden: Sequence[str] = ()
    ) -> tuple[list[str], dict[str, str]]:
        """Write what it needs into the private `folder`; its argv and environment with our integration.

        `hidden` are variables that no command may see: start-up files may have set them, so they are unset after these.
        """

    @abstractmethod
    def write(self, folder: Path, nonce: bytes, hidden: Sequence[str] = ()) -> None:
        """Write our integration into the private `folder`."""

    @abstractmethod
    def load(self, number: int, command: str, data: bytes, *, cwd: bytes, jobs: bool, traced: bool) -> ShellInvocation:
        """What makes it run `command` (`data` in bytes).

        It moves to `cwd` before, if that is not empty. With `jobs` something may run in the background; `traced`: the
        last command left a trace on.
        """

    def may_type(self, command: str) -> bool:
        """Whether `command` may be typed as it is, when the shell has said that all is calm."""
        return False

    def moving(self, number: int, cwd: bytes, data: bytes) -> bytes:
        """What to type instead of `data` when it is to run in `cwd`; empty when that must be loaded."""
        return b""

    @abstractmethod
    def heal(self, folder: Path) -> bytes:
        """The line that loads our functions again after a command removed them."""

    @abstractmethod
    def inject(self, folder: Path) -> bytes:
        """The line that loads our integration into a shell which start-up files have put in place of another."""

    @abstractmethod
    def ask(self, number: int) -> bytes:
        """The line that has it say the status of what it ran last as the end of command `number`.

        Typed when no mark came: it does not rely on any function of ours.
        """

    def ask_typed(self, number: int) -> bytes:
        """The same for a command that was typed as it is."""
        return self.ask(number)

    @abstractmethod
    def goes_on(self, command: str) -> bool:
        """Whether the shell may go on with the rest of `command` when a part of it is killed."""

    @abstractmethod
    def export(self, target: Path) -> str:
        """The command that writes its exported variables to `target`."""

    @abstractmethod
    def parse_exports(self, text: str) -> dict[str, str]:
        """What it wrote there, back into variables."""

    def one(self, command: str) -> list[str]:
        """Its argv to run one command and exit."""
        return [self.path, "-c", command]


def parse_variables(text: str) -> dict[str, str]:
    """`name=value` with a NUL after each, back into variables."""
    pairs = (each.partition("=") for each in text.split("\0") if each)
    return {name: value for name, _, value in pairs}


def quote(text: str) -> str:
    """One word for bash and zsh, whatever is in it."""
    return "'" + text.replace("'", "'\\''") + "'"
