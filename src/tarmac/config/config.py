"""The configuration as the rest of Tarmac is handed it: frozen, and composed of each package's own settings.

A package's settings are made when they are first asked for: to know which model to ask costs no import of the policy.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, cast

from tarmac.config.keys import KEYS, by_name
from tarmac.errors import ConfigError
from tarmac.tasks.limits import Limits

if TYPE_CHECKING:
    from tarmac.models.provider import ModelSettings
    from tarmac.policy.settings import PolicySettings, PrefixRules
    from tarmac.tasks.auto import Kinds
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
class Origin:
    """Where a value was said."""

    place: Place
    where: str = ""  # the file, the variable, the option
    line: int | None = None

    def __str__(self) -> str:
        at = f", line {self.line}" if self.line else ""
        return f"{self.place}: {self.where}{at}" if self.where else self.place


@dataclass(frozen=True, kw_only=True, eq=False)
class Config:
    """All that is set. Made by `load_config`, or by hand from the values that are not as by default."""

    workspace: Path
    user_folder: Path
    values: Mapping[str, object] = field(default_factory=dict, repr=False)  # by key, all of them
    origins: Mapping[str, Callable[[], Origin]] = field(default_factory=dict, repr=False)
    notes: tuple[str, ...] = ()  # what was refused, and what a person should know
    keys: Mapping[str, Secret] = field(default_factory=dict)  # by provider, from the environment and the user's file
    base_urls: Mapping[str, str] = field(default_factory=dict)  # the same
    meant_for: Mapping[str, str | None] = field(default_factory=dict)  # settings of a model → which; None: of any

    def __post_init__(self) -> None:
        if unknown := [name for name in self.values if name not in by_name()]:
            raise ConfigError(f"`{unknown[0]}` is not known", hint="tarmac.config.keys lists them all")
        whole = {key.name: self.values.get(key.name, key.default) for key in KEYS}
        object.__setattr__(self, "values", MappingProxyType(whole))

    def origin(self, key: str) -> Origin:
        """Where the value of `key` ("limits.max_cost") comes from."""
        found = self.origins.get(key)
        return found() if found else Origin(place="default")

    def _section(self, name: str) -> dict[str, Any]:
        return {key.partition(".")[2]: value for key, value in self.values.items() if key.startswith(f"{name}.")}

    # What is set at the top

    @property
    def model(self) -> str | None:
        """ "provider/name"."""
        return cast(str | None, self.values["model"])

    @property
    def base_url(self) -> str | None:
        """Where the server of the model's provider is."""
        return cast(str | None, self.values["base_url"])

    @property
    def mode(self) -> str:
        """The mode a task begins in."""
        return cast(str, self.values["mode"])

    @property
    def language(self) -> str:
        """That the model shall speak; empty: as it likes."""
        return cast(str, self.values["language"])

    @property
    def instructions(self) -> str:
        """The user's, for every mode."""
        return cast(str, self.values["instructions"])

    @property
    def auto(self) -> Auto:
        """What runs without asking."""
        return cast(Auto, self.values["auto"])

    @property
    def approval_timeout(self) -> float | None:
        """Seconds until a question counts as skipped; None: it waits."""
        return cast(float | None, self.values["approval_timeout"])

    # What each package is handed

    @cached_property
    def limits(self) -> Limits:
        """When a task stops by itself."""
        named = self._section("limits")
        for name in ("max_mistakes", "max_repetitions"):
            named[name] = named[name] or 0  # its word for never
        return Limits(**named)

    @cached_property
    def policy(self) -> "PolicySettings":
        """The switches as they are set by name; `auto` adds to them."""
        from tarmac.policy.settings import PolicySettings

        others = {"allow", "deny", *self._kinds()}
        return PolicySettings(**{name: value for name, value in self._section("policy").items() if name not in others})

    @cached_property
    def approved(self) -> "Kinds":
        """What else is approved in a person's place; `auto` adds to it."""
        from tarmac.tasks.auto import Kinds

        named = self._section("policy")
        return Kinds(**{kind: named[name] for name, kind in self._kinds().items()})

    def _kinds(self) -> dict[str, str]:
        """The switches that are the task's, not the policy's, and how it calls them."""
        kinds = ("browser", "mcp", "modes", "subtasks", "retries", "questions")
        return {f"auto_approve_{kind}": kind for kind in kinds} | {"question_timeout": "question_timeout"}

    @cached_property
    def rules(self) -> "PrefixRules":
        """The user's rules (policy.toml and `policy.allow`), and all that is denied."""
        from dataclasses import replace

        from tarmac.policy.userrules import load_rules, prefixes

        own = load_rules(self.user_folder / "policy.toml")
        try:
            allow, deny = (prefixes(self._section("policy")[name]) for name in ("allow", "deny"))
        except ValueError as error:
            raise ConfigError(f"`policy.allow` and `policy.deny` are lists of commands: {error}") from None
        return replace(own, allow=(*own.allow, *allow), deny=(*own.deny, *deny))

    @cached_property
    def terminals(self) -> "Settings":
        """With the sandbox, when there shall be one; no command gets a provider's key."""
        from tarmac.models.catalog import KEY_VARIABLES
        from tarmac.terminals.settings import Settings

        named = self._section("terminals")
        hidden = dict.fromkeys((*named.pop("secret_variables"), *sorted(KEY_VARIABLES)))
        return Settings(**named, secret_variables=tuple(hidden), sandbox=self._sandbox())

    def _sandbox(self) -> "Any":
        named = self._section("sandbox")
        if not named.pop("enabled"):
            return None
        from tarmac.policy.sandbox import Bubblewrap

        return Bubblewrap(workspace=self.workspace, **named)

    @cached_property
    def tools(self) -> "ToolSettings":
        """Times and sizes of tools."""
        from tarmac.tools.tool import ToolSettings

        return ToolSettings(**self._section("tools"))

    @property
    def client_terminals(self) -> bool:
        """Whether approved commands run in the terminals of an editor that has some."""
        return cast(bool, self.values["acp.client_terminals"])

    @property
    def models(self) -> "ModelSettings":
        """How the model of the configuration is reached."""
        return self.models_for(self.model or "")

    def models_for(self, spec: str) -> "ModelSettings":
        """How the model "provider/name" is reached, with the keys themselves: it prints without them.

        What was said of another model (its price, its address) does not count for this one. An address counts for all
        of its provider's, and for no other: that one's key would go there.
        """
        from tarmac.models.provider import ModelSettings, Price

        named: dict[str, Any] = {
            name: value if self._is_meant(f"models.{name}", spec) else None
            for name, value in self._section("models").items()
        }
        prices = {name.removeprefix("price_"): named.pop(name) for name in list(named) if name.startswith("price_")}
        price = Price(**prices) if prices["input"] is not None and prices["output"] is not None else None
        named["base_urls"] = {**self.base_urls}
        if self.base_url and self._is_meant("base_url", spec):
            named["base_urls"][spec.partition("/")[0]] = self.base_url
        return ModelSettings(**named, price=price, keys={name: key.reveal() for name, key in self.keys.items()})

    def _is_meant(self, key: str, spec: str) -> bool:
        model = self.meant_for.get(key)
        if model is None:
            return True
        return model.partition("/")[0] == spec.partition("/")[0] if key == "base_url" else model == spec
