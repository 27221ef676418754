"""What a terminal asks of a sandbox. Any object of this form will do; `tarmac.policy.sandbox` has one."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol


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
