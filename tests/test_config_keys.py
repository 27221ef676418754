"""The table of settings agrees with the packages it is for, and with the documentation."""

import dataclasses
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarmac.config import Config
from tarmac.config.schema import KEYS, LEVELS, Key, by_name
from tarmac.config.value_types import toml
from tarmac.models.provider import ModelSettings, Price
from tarmac.policy.sandbox import Bubblewrap
from tarmac.policy.verdict import PolicySettings
from tarmac.tasks.auto import LEVELS as TASK_LEVELS
from tarmac.tasks.auto import Kinds
from tarmac.tasks.limits import Limits
from tarmac.terminals.settings import Settings
from tarmac.tools.tool import ToolSettings

# Fields that are composed of other keys, or not for a person to set.
ELSEWHERE = {
    "terminals": {"sandbox", "path_contributions"},
    "sandbox": {"workspace", "program"},
    "models": {"keys", "price"},
    "policy": {"only_reads", "sandboxed"},  # by the level `plan`, and by `sandbox.enabled`
}
MORE = {
    "terminals": {"pass_secrets", "path"},
    "policy": {
        "allow",
        "ask",
        "deny",
        "question_timeout",
        *(f"auto_approve_{each.name}" for each in dataclasses.fields(Kinds)),
    },
    "sandbox": {"enabled"},
    "models": {f"price_{each.name}" for each in dataclasses.fields(Price)},
}
SECTIONS = {
    "limits": Limits,
    "policy": PolicySettings,
    "terminals": Settings,
    "tools": ToolSettings,
    "sandbox": Bubblewrap,
    "models": ModelSettings,
}


@pytest.mark.parametrize("section", SECTIONS)
def test_every_field_of_a_packages_settings_can_be_set_and_has_its_default(section: str) -> None:
    fields = {
        each.name: each.default_factory() if callable(each.default_factory) else each.default
        for each in dataclasses.fields(SECTIONS[section])
        if each.name not in ELSEWHERE.get(section, ())
    }
    keys = {
        key.name.partition(".")[2]: key.default
        for key in KEYS
        if key.name.startswith(f"{section}.") and key.name.partition(".")[2] not in MORE.get(section, ())
    }
    assert keys == fields


def test_every_kind_that_can_be_approved_is_a_key_and_is_off() -> None:
    """P7: all off by default."""
    config = Config(workspace=Path("/w"), user_folder=Path("/u"))
    assert config.approved == Kinds()
    names = [each.name for each in dataclasses.fields(Kinds) if each.name != "question_timeout"]
    on = Config(
        workspace=Path("/w"), user_folder=Path("/u"), values={f"policy.auto_approve_{name}": True for name in names}
    )
    assert all(getattr(on.approved, name) and not getattr(config.approved, name) for name in names)
    assert on.policy == config.policy


def test_the_levels_are_those_of_tasks() -> None:
    assert LEVELS == TASK_LEVELS


def test_every_default_is_a_value_it_may_have() -> None:
    for key in KEYS:
        assert key.kind.check(key.default) == key.default, key.name


values = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.text(), max_size=2)


@pytest.mark.parametrize("section", SECTIONS)
@given(data=st.data())
def test_whatever_is_accepted_makes_settings(section: str, data: st.DataObject) -> None:
    """No package finds wrong, too late, what was accepted here."""
    key = data.draw(st.sampled_from([key for key in KEYS if key.name.startswith(f"{section}.")]))
    try:
        accepted = key.kind.check(data.draw(values))
    except ValueError as error:
        assert str(error).startswith(("must be", "begins with"))
        return
    config = Config(workspace=Path("/src"), user_folder=Path("/nowhere"), values={key.name: accepted})
    for part in {"sandbox": ["terminals"], "policy": ["policy", "rules"]}.get(section, [section]):
        assert getattr(config, part)


@pytest.mark.parametrize("key", [key for key in KEYS if key.variable], ids=lambda key: key.name)
def test_a_default_survives_being_written_as_a_variable(key: Key) -> None:
    default = key.default
    text = ",".join(default) if isinstance(default, tuple) else toml(default).strip('"')
    assert key.kind.parse(text) == default


def test_variables_are_named_after_their_keys() -> None:
    assert by_name()["limits.max_cost"].variable == "TARMAC_LIMITS_MAX_COST"
    assert by_name()["keys"].variable == by_name()["terminals.environment"].variable == ""
    variables = [key.variable for key in KEYS if key.variable]
    assert len(set(variables)) == len(variables)


def test_the_guide_lists_every_key_with_its_default_and_who_may_set_it() -> None:
    """A8: docs/configuration.md is what the code is."""
    page = (Path(__file__).parent.parent / "docs" / "configuration.md").read_text()
    rows = re.findall(r"^\| `([a-z0-9_.]+)` \| (.*?) \| (.*?) \| (.*?) \|$", page, re.MULTILINE)
    assert rows == [
        (
            key.name,
            f"`{toml(key.default)}`" if len(toml(key.default)) < 60 else "see below",
            key.way.value if key.way else "no",
            key.about,
        )
        for key in KEYS
    ]
