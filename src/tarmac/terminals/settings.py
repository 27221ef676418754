"""The settings of terminals, the form of the sandbox among them, and checks of what a caller asks for.

Nothing is read from files or the environment. Any object with the methods of `Sandbox` will do:
`tarmac.policy.sandbox` has one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from tarmac.errors import BadRequest


class Wrapped(Protocol):
    """How to start something inside."""

    @property
    def argv(self) -> list[str]: ...

    def close(self) -> None:
        """Remove what was made for it, once it has ended."""


class Sandbox(Protocol):
    """A place that commands can't get out of."""

    def wrap(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        show: Sequence[Path] = (),
        write: Sequence[Path] = (),
        first: bool = True,
    ) -> Wrapped:
        """The argv that runs `argv` inside: a parent that has this one child, lives as long, and exits as it did.

        `show` must be readable inside, and the files `write` writable; `first`: it may be process 1 of its own world.
        """

    def describe(self) -> str:
        """What is enforced, and what is not, for a person."""


OnTimeout = Literal["leave", "interrupt", "kill"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PathContribution:
    """A directory that a named contributor puts in front of PATH in new terminals."""

    name: str
    directory: Path
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Times are in seconds, sizes in bytes."""

    # Shell integration
    shell_integration_disabled: bool = False
    shell_integration_timeout: float = 5.0
    shell: str | None = None  # the name or path of the shell; None: bash
    start_up_files: bool = True  # read ~/.bashrc and the like
    command_delay: float = 0.0

    # Time limits
    run_timeout: float = 30.0  # then a call in a persistent terminal returns `left running`
    once_timeout: float = 60.0  # then a temporary command is interrupted
    interactive_timeout: float = 60.0  # replaces run_timeout in a call with answers
    idle_timeout: float = 300.0  # without output for so long, the call returns `idle`
    interrupt_grace: float = 0.5  # from Ctrl-C to SIGTERM
    terminate_grace: float = 1.0  # from SIGTERM to SIGKILL
    hold_timeout: float = 30.0  # how long a command waits for a person to finish their line, or for another command

    # Lending terminals to tasks
    reuse_related_only: bool = True  # a terminal moves only to a parent or child of its directory
    max_directory_changes: int = 5  # after so many moves a terminal is not moved again
    warm_pool: int = 1  # terminals that wait ready-made
    max_per_task: int = 5
    max_terminals: int = 64
    lease_timeout: float = 30.0  # how long a caller waits at these limits
    terminal_idle_timeout: float = 1800.0  # then a terminal that nobody uses is closed

    # Terminals that outlive the program
    outlive: bool = False  # the terminal daemon is the parent of the shells
    outlive_seconds: float = 86400.0  # how long it keeps a terminal that no program uses

    # What is kept of output, and how often it is shown
    output_line_limit: int = 500
    output_character_limit: int = 50_000
    output_head_share: float = 0.7
    output_memory: int = 1 << 20
    spool_limit: int = 64 << 20
    spool_directory: Path | None = None  # None: `output` in Tarmac's state directory
    spool_days: float = 7.0  # how long output is kept that was too long for its result
    display_interval: float = 0.1
    compress_progress_bar: bool = True

    # The terminal itself
    rows: int = 40
    columns: int = 120
    environment: dict[str, str] = field(
        default_factory=dict
    )  # added to the commands' environment; "" for a value unsets
    secret_variables: tuple[str, ...] = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "TARMAC_*")
    path_contributions: tuple[PathContribution, ...] = ()

    sandbox: Sandbox | None = None  # around the shell; with `exec`, around each command

    # Switches for zsh and PowerShell
    zsh_clear_eol_mark: bool = True
    zsh_oh_my: bool = False
    zsh_p10k: bool = False
    zdotdir: bool = False
    powershell_counter: bool = False

    def __post_init__(self) -> None:
        for name in (
            "shell_integration_timeout",
            "run_timeout",
            "once_timeout",
            "interactive_timeout",
            "idle_timeout",
            "hold_timeout",
            "lease_timeout",
            "terminal_idle_timeout",
            "outlive_seconds",
        ):
            if not getattr(self, name) > 0:
                raise BadRequest(f"{name} must be more than 0 seconds, not {getattr(self, name)!r}")
        for name in (
            "rows",
            "columns",
            "output_line_limit",
            "output_character_limit",
            "output_memory",
            "max_per_task",
            "max_terminals",
        ):
            if getattr(self, name) < 1:
                raise BadRequest(f"{name} must be at least 1, not {getattr(self, name)!r}")
        for name in ("warm_pool", "max_directory_changes"):
            if getattr(self, name) < 0:
                raise BadRequest(f"{name} must be at least 0, not {getattr(self, name)!r}")
        if not (self.rows < 65536 and self.columns < 65536):
            raise BadRequest("a terminal has at most 65,535 rows and columns")


def check_timeout(timeout: float | None, name: str = "timeout") -> float | None:
    """`timeout`, unless it is a time that can't be waited for."""
    if timeout is None:
        return None
    if isinstance(timeout, bool) or not isinstance(timeout, int | float):
        raise BadRequest(f"{name} is a number of seconds, not {timeout!r}", hint="None waits without a limit")
    if not timeout > 0:
        raise BadRequest(f"{name} must be more than 0 seconds, not {timeout!r}", hint="None waits without a limit")
    return timeout


def check_on_timeout(on_timeout: str) -> None:
    if on_timeout not in ("leave", "interrupt", "kill"):
        raise BadRequest(f"on_timeout is 'leave', 'interrupt' or 'kill', not {on_timeout!r}")


def check_command(command: str) -> bytes:
    """The command's bytes, or why it can't be run."""
    if not isinstance(command, str):
        raise BadRequest(f"a command is text, not {type(command).__name__}")
    if not command.strip():
        raise BadRequest("the command is empty")
    if "\0" in command:
        raise BadRequest(
            "the command contains a NUL character, which no shell can read", hint="use printf '\\0' to print one"
        )
    try:
        return command.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise BadRequest(
            f"the command contains a lone surrogate at character {error.start}, which has no bytes"
        ) from error


def short(command: str) -> str:
    """The first line of a command, for a message."""
    line = command.strip().splitlines()[0]
    return line if len(line) <= 60 else line[:59] + "…"
