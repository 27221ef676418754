"""The configuration as the rest of Tarmac is handed it: frozen, composed of each package's own settings."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tarmac.policy.settings import PolicySettings, PrefixRules
from tarmac.terminals.settings import Settings
from tarmac.tools.tool import ToolSettings

Auto = Literal["ask", "read", "edit", "safe", "all"]  # each includes those before it; none covers what is critical
Place = Literal["default", "user", "environment", "command line", "workspace"]


class Secret:
    """A key. It shows itself masked wherever it is printed; `reveal()` gives it to who must have it."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The secret itself."""
        return self._text

    def __str__(self) -> str:
        """Its last four characters at most, and none of a short one."""
        return f"…{self._text[-4:]}" if len(self._text) >= 20 else "…"

    def __repr__(self) -> str:
        return f"Secret({self})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """When a task stops by itself, in an orderly way and resumable (P7, S6, S11, S12, S16). None: no limit."""

    max_cost: float | None = None  # US dollars
    max_requests: int | None = None  # to the model
    max_turns: int | None = None
    max_seconds: float | None = None
    max_retries: int = 3  # of a request that failed, without asking
    max_mistakes: int = 3  # of the model, in a row, before the person is asked
    max_repetitions: int = 3  # the so-manieth identical call is not run but asked about


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a value was said."""

    place: Place
    where: str = ""  # the file, the variable, the option
    line: int | None = None

    def __str__(self) -> str:
        at = f", line {self.line}" if self.line else ""
        return f"{self.place}: {self.where}{at}" if self.where else self.place


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """All that is set. `policy` has what `auto` turns on; `rules` the user's own and what is denied here."""

    workspace: Path
    user_folder: Path
    model: str | None = None  # "anthropic/claude-…"
    base_url: str | None = None  # of an OpenAI-compatible server
    keys: Mapping[str, Secret] = field(default_factory=dict)  # by provider: "anthropic", "openai" …
    mode: str = "code"
    language: str = ""  # the model answers in it
    instructions: str = ""  # the user's, for every mode
    auto: Auto = "ask"
    approval_timeout: float | None = None  # seconds; then a question counts as skipped. None: it waits
    limits: Limits = field(default_factory=Limits)
    policy: PolicySettings = field(default_factory=PolicySettings)
    rules: PrefixRules = field(default_factory=PrefixRules)
    terminals: Settings = field(default_factory=Settings)
    tools: ToolSettings = field(default_factory=ToolSettings)
    notes: tuple[str, ...] = ()  # what was refused, and what a person should know

    def origin(self, key: str) -> Origin:
        """Where the value of `key` ("limits.max_cost") comes from."""
        raise NotImplementedError
