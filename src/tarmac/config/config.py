"""The frozen configuration, and the settings of each package that are made from it.

The settings of a package are made on first use, so that reading one value does not import every package.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, cast

from tarmac.config.schema import KEYS, Key, by_name
from tarmac.config.value_types import toml
from tarmac.errors import ConfigError
from tarmac.tasks.limits import Limits

if TYPE_CHECKING:
    from tarmac.models.provider import ModelSettings
    from tarmac.policy.grants import PrefixRules
    from tarmac.policy.verdict import PolicySettings
    from tarmac.tasks.auto import Kinds
    from tarmac.terminals.settings import Settings
    from tarmac.tools.tool import ToolSettings

Auto = Literal["plan", "ask", "edits", "workspace", "all"]  # each includes the previous ones
OriginPlace = Literal["default", "user", "environment", "command line", "workspace"]


class Secret:
    """A key. It prints masked. `reveal()` returns it."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The plain text."""
        return self._text

    def __str__(self) -> str:
        """The last four characters; nothing of a short one."""
        return f"…{self._text[-4:]}" if len(self._text) >= 20 else "…"

    def __repr__(self) -> str:
        return f"Secret({self})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a value was set."""

    place: OriginPlace
    where: str = ""  # the file, the variable, the option
    line: int | None = None

    def __str__(self) -> str:
        at = f", line {self.line}" if self.line else ""
        return f"{self.place}: {self.where}{at}" if self.where else self.place


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfiguredAgent:
    """How to start an agent that speaks ACP."""

    id: str  # for `tarmac host ID`
    name: str  # shown to the user
    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict, repr=False)  # added to ours; it may have keys


@dataclass(frozen=True, kw_only=True, eq=False)
class Config:
    """All settings. Made by `load_config`, or directly from the values that differ from the defaults."""

    workspace: Path
    user_folder: Path
    values: Mapping[str, object] = field(default_factory=dict, repr=False)  # by name
    origins: Mapping[str, Callable[[], Origin]] = field(default_factory=dict, repr=False)
    notes: tuple[str, ...] = ()  # for the user: refused settings and warnings
    keys: Mapping[str, Secret] = field(default_factory=dict)  # by provider
    base_urls: Mapping[str, str] = field(default_factory=dict)  # by provider
    variables: tuple[str, ...] = field(default=(), repr=False)  # names of the environment
    meant_for: Mapping[str, str | None] = field(default_factory=dict)  # setting → the model it is for; None: any

    def __post_init__(self) -> None:
        if unknown := [name for name in self.values if name not in by_name()]:
            raise ConfigError(f"unknown setting `{unknown[0]}`", hint="`tarmac config show` lists all settings")
        whole = {key.name: self.values.get(key.name, key.default) for key in KEYS}
        object.__setattr__(self, "values", MappingProxyType(whole))

    def origin(self, key: str) -> Origin:
        """The origin of a setting such as "limits.max_cost"."""
        found = self.origins.get(key)
        return found() if found else Origin(place="default")

    def _section(self, name: str) -> dict[str, Any]:
        return {key.partition(".")[2]: value for key, value in self.values.items() if key.startswith(f"{name}.")}

    # Top level

    @property
    def model(self) -> str | None:
        """ "provider/name"."""
        return cast(str | None, self.values["model"])

    @property
    def image_model(self) -> str | None:
        """The model that makes pictures, as provider/name."""
        return cast(str | None, self.values["image_model"])

    @property
    def base_url(self) -> str | None:
        """The base URL of the model's provider."""
        return cast(str | None, self.values["base_url"])

    @property
    def mode(self) -> str:
        """The first mode of a task."""
        return cast(str, self.values["mode"])

    @property
    def language(self) -> str:
        """The language of the model; empty: its choice."""
        return cast(str, self.values["language"])

    @property
    def instructions(self) -> str:
        """Custom instructions for every mode."""
        return cast(str, self.values["instructions"])

    @property
    def auto(self) -> Auto:
        """What runs without asking."""
        return cast(Auto, self.values["auto"])

    @property
    def approval_timeout(self) -> float | None:
        """Seconds until an unanswered question counts as skipped; None: never."""
        return cast(float | None, self.values["approval_timeout"])

    @property
    def auto_condense(self) -> bool:
        """Condense a conversation before it exceeds the context window."""
        return cast(bool, self.values["auto_condense"])

    @property
    def auto_condense_percent(self) -> int:
        """How full the window is then."""
        return cast(int, self.values["auto_condense_percent"])

    @property
    def places(self) -> Mapping[str, str]:
        """The addresses of machines and containers, by name."""
        return cast(Mapping[str, str], self.values["places"])

    @property
    def agents(self) -> Mapping[str, ConfiguredAgent]:
        """The agents for `tarmac host NAME`, by name."""
        found = cast(Mapping[str, Mapping[str, Any]], self.values["agents"])
        return {
            id: ConfiguredAgent(id=id, name=each.get("name") or id, command=each["command"], env=each.get("env", {}))
            for id, each in found.items()
        }

    # Settings of each package

    @cached_property
    def limits(self) -> Limits:
        """The limits of a task."""
        named = self._section("limits")
        for name in ("max_mistakes", "max_repetitions"):
            named[name] = named[name] or 0  # 0 means never
        return Limits(**named)

    @cached_property
    def policy(self) -> "PolicySettings":
        """The switches that are set by name. `auto` adds to them."""
        from tarmac.policy.verdict import PolicySettings

        others = {"allow", "ask", "deny", *self._kinds()}
        return PolicySettings(**{name: value for name, value in self._section("policy").items() if name not in others})

    @cached_property
    def approved(self) -> "Kinds":
        """What else is approved automatically. `auto` adds to it."""
        from tarmac.tasks.auto import Kinds

        named = self._section("policy")
        return Kinds(**{kind: named[name] for name, kind in self._kinds().items()})

    def _kinds(self) -> dict[str, str]:
        """The switches of the task rather than the policy, and their names there."""
        kinds = ("browser", "mcp", "modes", "subtasks", "retries", "questions")
        return {f"auto_approve_{kind}": kind for kind in kinds} | {"question_timeout": "question_timeout"}

    @cached_property
    def rules(self) -> "PrefixRules":
        """The rules of policy.toml, `policy.allow`, `policy.ask` and `policy.deny`."""
        from dataclasses import replace

        from tarmac.policy.grants import load_rules, prefixes

        own = load_rules(self.user_folder / "policy.toml")
        try:
            allow, ask, deny = (prefixes(self._section("policy")[name]) for name in ("allow", "ask", "deny"))
        except ValueError as error:
            raise ConfigError(f"`policy.allow`, `ask` and `deny` must be lists of commands: {error}") from None
        return replace(own, allow=(*own.allow, *allow), ask=(*own.ask, *ask), deny=(*own.deny, *deny))

    @cached_property
    def held_secrets(self) -> tuple[str, ...]:
        """Variables of the environment that commands of agents don't get; keys of providers, which none gets, aside."""
        from tarmac.models.model_catalog import KEY_VARIABLES
        from tarmac.terminals.environment import common_secrets

        others = [name for name in self.variables if name not in KEY_VARIABLES and not name.startswith("TARMAC_")]
        return common_secrets(others, passed=cast("tuple[str, ...]", self.values["terminals.pass_secrets"]))

    @cached_property
    def terminals(self) -> "Settings":
        """With the sandbox, if enabled. No command gets the key of a provider."""
        from tarmac.models.model_catalog import KEY_VARIABLES
        from tarmac.terminals.settings import PathContribution, Settings

        named = self._section("terminals")
        named["path_contributions"] = tuple(
            PathContribution(name=str(each), directory=each, description="terminals.path")
            for each in cast("tuple[Path, ...]", named.pop("path"))
        )
        del named["pass_secrets"]  # what is left of the common secrets without these is `held_secrets`
        hidden = dict.fromkeys((*named.pop("secret_variables"), *sorted(KEY_VARIABLES), *self.held_secrets))
        return Settings(**named, secret_variables=tuple(hidden), sandbox=self._sandbox())

    @cached_property
    def strict_sandbox(self) -> bool:
        """Whether a sandbox is around every command, and all that it promises holds here. Found by trying, once."""
        from tarmac.errors import SandboxUnavailable

        box = self._sandbox()
        try:
            return box is not None and bool(box.enforced().strict)
        except SandboxUnavailable:  # opening a terminal says why
            return False

    def _sandbox(self) -> "Any":
        named = self._section("sandbox")
        if not named.pop("enabled"):
            return None
        from tarmac.policy.sandbox import Bubblewrap

        return Bubblewrap(workspace=self.workspace, **named)

    @cached_property
    def tools(self) -> "ToolSettings":
        """Timeouts and size limits of tools."""
        from tarmac.tools.tool import ToolSettings

        return ToolSettings(**self._section("tools"))

    @property
    def client_terminals(self) -> bool:
        """Whether approved commands run in the editor's terminals."""
        return cast(bool, self.values["acp.client_terminals"])

    @property
    def models(self) -> "ModelSettings":
        """Settings for the configured model."""
        return self.models_for(self.model or "")

    def models_for(self, spec: str) -> "ModelSettings":
        """Settings for the model "provider/name", with the plain keys.

        The price and limits of another model do not apply. A base URL applies to all models of its provider, and to no
        other provider, whose key would be sent there.
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


_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ShownSetting:
    """A setting with its current value."""

    key: Key
    value: object  # for JSON; secrets are masked
    origin: Origin

    def __str__(self) -> str:
        return f"{self.key.name} = {toml(self.value)}"


def shown_settings(config: Config) -> list[ShownSetting]:
    """All settings, in the order of the documentation."""
    return [ShownSetting(key, plain_value(config.values[key.name]), config.origin(key.name)) for key in KEYS]


def plain_value(value: object) -> object:
    """The value for JSON. Keys, and variables that sound like secrets, are masked."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case list() | tuple():
            return [plain_value(each) for each in value]
        case dict():
            return {name: "…" if _masks(name, each) else plain_value(each) for name, each in value.items()}
    return str(value)


def _masks(name: str, value: object) -> bool:
    return isinstance(value, str) and bool(value) and bool(_SECRET.search(name))
