"""What a workspace may say about the configuration: it may only tighten, key by key."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.test_config import Places

from tarmac.config.schema import KEYS, LEVELS, Key, Tightening, WouldLoosen, by_name, tightened
from tarmac.config.value_types import toml


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path)


# For each way to tighten: what the user has, a tighter value, a looser one; as text for a file.
SAMPLES = {
    Tightening.OFF: ("true", "false", None),  # with the user's false, true is looser: see below
    Tightening.ON: ("false", "true", None),
    Tightening.SAFER: ('"edits"', '"ask"', '"all"'),
}
NUMBERS = {
    "limits.max_cost": ("5", "1.5", "6"),
    "policy.longest_command": ("100", "50", "101"),
    "sandbox.memory": ("2000000", "1500000", "3000000"),
    "tools.fuzzy_threshold": ("0.8", "0.95", "0.5"),
}


def samples(key: Key) -> tuple[str, str, str | None]:
    if key.way in SAMPLES:
        return SAMPLES[key.way]
    return NUMBERS.get(key.name, ("5", "4", "6"))


def said(name: str, value: str) -> str:
    table, _, last = name.rpartition(".")
    return f"[{table}]\n{last} = {value}\n" if table else f"{last} = {value}\n"


SINGLE = [key for key in KEYS if key.way not in (None, Tightening.MORE)]


@pytest.mark.parametrize("key", SINGLE, ids=lambda key: key.name)
def test_a_workspace_may_tighten(places: Places, key: Key) -> None:
    users, tighter, _ = samples(key)
    places.says(said(key.name, users))
    places.workspace_says(said(key.name, tighter))
    config = places.load()
    assert toml(config.values[key.name]) == tighter
    assert (config.origin(key.name).place, config.notes) == ("workspace", ())
    assert config.origin(key.name).line == (2 if "." in key.name else 1)


@pytest.mark.parametrize("key", SINGLE, ids=lambda key: key.name)
def test_a_workspace_may_not_loosen_and_the_tighter_stays(places: Places, key: Key) -> None:
    users, tighter, looser = samples(key)
    if looser is None:
        users, looser = tighter, users
    places.says(said(key.name, users))
    places.workspace_says(said(key.name, looser))
    config = places.load()
    assert toml(config.values[key.name]) == users
    assert config.origin(key.name).place == "user"
    (note,) = config.notes
    line = 2 if "." in key.name else 1
    assert f"/.tarmac/config.toml`, line {line}: {key.name} = {looser} is ignored; it stays {users} (user: " in note
    assert "a workspace can only set" in note


@pytest.mark.parametrize("key", SINGLE, ids=lambda key: key.name)
def test_a_workspace_may_not_loosen_a_default_or_what_the_command_line_says(places: Places, key: Key) -> None:
    users, tighter, looser = samples(key)
    if looser is None:
        users, looser = tighter, users
    places.workspace_says(said(key.name, looser))
    config = places.load({key.name: users.strip('"')})
    assert toml(config.values[key.name]) == users
    assert config.origin(key.name).place == "command line"
    assert len(config.notes) == 1


@pytest.mark.parametrize("key", [key for key in KEYS if key.way is None], ids=lambda key: key.name)
def test_what_has_no_direction_can_not_be_set_by_a_workspace(places: Places, key: Key) -> None:
    value = {
        "model": '"openai/x"',
        "image_model": '"openai/x"',
        "agents": '{evil = {command = ["evil"]}}',
        "places": '{build = "ssh://evil"}',
        "base_url": '"http://evil"',
        "mode": '"ask"',
        "auto_condense_percent": "50",
        "keys": '{openai = "mine"}',
        "models.base_urls": '{openai = "http://evil"}',
        "models.reasoning": '"high"',
        "terminals.environment": '{LD_PRELOAD = "evil.so"}',
        "terminals.spool_directory": '"/evil"',
        "terminals.shell": '"fish"',
        "tools.diagnostics": '["*.py: evil {file}"]',
    }.get(key.name)
    if value is None:
        value = {bool: "true", int: "3", float: "0.5", str: '"x"', tuple: '["/x"]', type(None): "1"}[type(key.default)]
        value = "true" if key.name in ("models.images", "models.native_tools") else value
    places.workspace_says(said(key.name, value))
    config = places.load()
    assert config.values[key.name] == key.default
    (note,) = config.notes
    assert ("a workspace can't set" in note) or ("a workspace can't set keys" in note)
    assert "mine" not in note
    assert config.keys == {}


@pytest.mark.parametrize(
    ("name", "ours", "theirs"),
    [
        ("policy.deny", '["git push"]', '["rm", "git push"]'),
        ("policy.ask", '["git push"]', '["rm", "git push"]'),
        ("terminals.secret_variables", '["A"]', '["B"]'),
        ("sandbox.hidden", '["/a"]', '["/b"]'),
    ],
)
def test_a_workspace_may_add_to_what_is_forbidden_and_takes_nothing_away(
    places: Places, name: str, ours: str, theirs: str
) -> None:
    assert {key.name for key in KEYS if key.way is Tightening.MORE} == {
        "policy.deny",
        "policy.ask",
        "terminals.secret_variables",
        "sandbox.hidden",
    }
    places.says(said(name, ours))
    places.workspace_says(said(name, theirs))
    config = places.load()
    held = [str(each) for each in config.values[name]]  # type: ignore[attr-defined]
    assert (
        held
        == {
            "policy.deny": ["git push", "rm"],
            "policy.ask": ["git push", "rm"],
            "terminals.secret_variables": ["A", "B"],
            "sandbox.hidden": ["/a", "/b"],
        }[name]
    )
    places.workspace_says(said(name, "[]"))
    assert [str(each) for each in places.load().values[name]] == held[:1]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("switch", "level"),
    [
        ("auto_approve_read = false", "ask"),
        ("auto_approve_write = false", "ask"),
        ("ask_medium = true", "edits"),
        ("auto_approve_safe_commands = false", "edits"),
        ("auto_approve_modes = false", "edits"),
        ("auto_approve_write_outside = false", "workspace"),
        ("auto_approve_browser = false", "workspace"),
        ("auto_approve_mcp = false", "workspace"),
        ("auto_approve_subtasks = false", "workspace"),
    ],
)
def test_a_switch_that_a_workspace_sets_holds_down_the_level_that_would_turn_it(
    places: Places, switch: str, level: str
) -> None:
    """P7: `--auto all` in a workspace that wants to be asked about edits asks about edits."""
    places.workspace_says(f"[policy]\n{switch}\n")
    config = places.load({"auto": "all"})
    assert config.auto == level
    assert config.origin("auto").place == "workspace"
    assert config.origin("auto").line == 2
    assert places.load({"auto": "ask"}).auto == "ask"


def test_every_folder_up_to_the_top_of_the_repository_may_tighten(places: Places) -> None:
    inner = places.workspace / "a/b"
    (inner / ".tarmac").mkdir(parents=True)
    (places.workspace / ".git").mkdir()
    above = places.workspace.parent / ".tarmac"
    above.mkdir()
    (above / "config.toml").write_text("[limits]\nmax_cost = 0.1\n")
    places.workspace_says("[limits]\nmax_cost = 2\nmax_turns = 9\n")
    (inner / ".tarmac/config.toml").write_text("[limits]\nmax_cost = 1\nmax_turns = 10\n")
    places.workspace = inner
    config = places.load()
    assert (config.limits.max_cost, config.limits.max_turns) == (1.0, 9)
    assert len(config.notes) == 1


def test_without_a_repository_only_the_workspace_itself_speaks(places: Places) -> None:
    places.workspace_says("[limits]\nmax_turns = 9\n")
    places.workspace = places.workspace / "sub"
    places.workspace.mkdir()
    assert places.load().limits.max_turns is None


def test_ones_own_folder_as_a_workspace_stays_ones_own(places: Places) -> None:
    places.workspace = places.user.parent / "home"
    places.user = places.workspace / ".tarmac"
    places.user.mkdir(parents=True)
    places.says('auto = "all"\n')
    config = places.load()
    assert (config.auto, config.notes) == ("all", ())


numbers = st.none() | st.floats(0, 1e6) | st.integers(0, 10**6)


@given(st.sampled_from(list(Tightening)), st.data())
def test_whatever_a_workspace_says_nothing_gets_looser(way: Tightening, data: st.DataObject) -> None:
    value: st.SearchStrategy[object] = {
        Tightening.LOWER: numbers,
        Tightening.HIGHER: st.floats(0, 1),
        Tightening.OFF: st.booleans(),
        Tightening.ON: st.booleans(),
        Tightening.SAFER: st.sampled_from(LEVELS),
        Tightening.MORE: st.lists(st.sampled_from("abc")).map(tuple),
    }[way]

    def power(held: object) -> object:
        """How much a value allows."""
        match way:
            case Tightening.LOWER:
                return float("inf") if held is None else held
            case Tightening.HIGHER:
                return -held  # type: ignore[operator]
            case Tightening.ON:
                return not held
            case Tightening.SAFER:
                return LEVELS.index(held)
            case Tightening.MORE:
                return -len(set(held))  # type: ignore[call-overload]
        return held

    now, wanted = data.draw(value), data.draw(value)
    try:
        result = tightened(way, now, wanted)
    except WouldLoosen:
        assert power(wanted) > power(now)  # type: ignore[operator]
    else:
        assert power(result) <= power(now)  # type: ignore[operator]
        assert way is not Tightening.MORE or set(result) >= set(now)  # type: ignore[call-overload]


def test_every_key_is_known_by_one_name() -> None:
    assert len(by_name()) == len(KEYS)
