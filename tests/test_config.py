"""The configuration: where values come from, who wins, and what is said when something is wrong."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarmac.config import Config, Secret, load_config
from tarmac.config.config import shown_settings
from tarmac.errors import ConfigError
from tarmac.tasks.limits import Limits


class Places:
    """A user's folder and a workspace."""

    def __init__(self, root: Path) -> None:
        self.user = root / "user"
        self.workspace = root / "workspace"
        self.user.mkdir()
        (self.workspace / ".tarmac").mkdir(parents=True)

    @property
    def file(self) -> Path:
        return self.user / "config.toml"

    def says(self, text: str) -> None:
        self.file.write_text(text)
        self.file.chmod(0o600)

    def workspace_says(self, text: str) -> None:
        (self.workspace / ".tarmac/config.toml").write_text(text)

    def load(self, overrides: dict[str, object] | None = None, **environ: str) -> Config:
        return load_config(self.workspace, {"TARMAC_CONFIG_DIR": str(self.user), **environ}, overrides)

    def fails(self, overrides: dict[str, object] | None = None, **environ: str) -> ConfigError:
        with pytest.raises(ConfigError) as caught:
            self.load(overrides, **environ)
        return caught.value


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path)


# Where values come from


def test_without_any_file_everything_is_as_by_default(places: Places) -> None:
    """P7: auto-approval is off by default; S16: no limits."""
    config = places.load()
    assert (config.model, config.mode, config.auto, config.limits) == (None, "code", "ask", Limits())
    assert (config.rules.allow, config.rules.deny, config.approval_timeout, config.notes) == ((), (), None, ())
    assert {str(config.origin(key)) for key in config.values} == {"default"}


def test_each_place_counts_over_the_one_before_and_is_told(places: Places) -> None:
    places.says('auto = "read"\nlanguage = "de"\n\n[limits]\nmax_cost = 1\nmax_turns = 10\n')
    config = places.load({"limits.max_cost": 3}, TARMAC_LIMITS_MAX_COST="2", TARMAC_LANGUAGE="fr")
    shown = {key: (config.values[key], str(config.origin(key))) for key in ("auto", "language", "mode")}
    assert shown == {
        "auto": ("ask", f"user: `{places.file}`, line 1"),
        "language": ("fr", "environment: TARMAC_LANGUAGE"),
        "mode": ("code", "default"),
    }
    assert config.limits == Limits(max_cost=3.0, max_turns=10)
    assert str(config.origin("limits.max_cost")) == "command line: --max-cost"
    assert str(config.origin("limits.max_turns")) == f"user: `{places.file}`, line 6"


def test_each_package_is_handed_its_own_settings(places: Places) -> None:
    places.says(
        'model = "ollama/qwen"\nbase_url = "http://box:1/v1"\n[policy]\nask_medium = false\nallow = ["npm test"]\n'
        'deny = ["git push"]\n[terminals]\nrows = 50\nenvironment = {CI = "1"}\nspool_directory = "/var/x"\n'
        '[tools]\nfiles_per_read = 7\n[models]\nreasoning = "low"\nprice_input = 1\nprice_output = 2\n'
        "[sandbox]\nenabled = true\nnetwork = true\n"
    )
    (places.user / "policy.toml").write_text('allow = ["make lint"]\n')
    (places.user / "policy.toml").chmod(0o600)
    config = places.load()
    assert config.policy.ask_medium is False
    assert (config.rules.allow, config.rules.deny) == ((("make", "lint"), ("npm", "test")), (("git", "push"),))
    assert (config.terminals.rows, config.terminals.environment) == (50, {"CI": "1"})
    assert config.terminals.spool_directory == Path("/var/x")
    assert config.terminals.sandbox is not None
    assert config.tools.files_per_read == 7
    assert config.models.base_urls["ollama"] == "http://box:1/v1"
    assert config.models.price is not None
    assert (config.models.reasoning, config.models.price.output) == ("low", 2.0)


def test_what_is_said_of_one_model_does_not_count_for_another(places: Places) -> None:
    """S16: a price of nothing is that of the server at home, not of whatever is asked instead."""
    places.says(
        'model = "vllm/qwen"\nbase_url = "http://box:8000/v1"\n[models]\nread_timeout = 900\ncontext_window = 32000\n'
        "price_input = 0\nprice_output = 0\n[keys]\nopenai = 'sk-x'\n"
    )
    own = places.load().models
    assert (own.base_urls, own.context_window, own.read_timeout) == ({"vllm": "http://box:8000/v1"}, 32_000, 900.0)
    assert own.price is not None
    for other in (
        places.load({"model": "openai/gpt-5"}).models,
        places.load(None, TARMAC_MODEL="openai/gpt-5").models,
        places.load().models_for("openai/gpt-5"),
    ):
        assert (other.base_urls, other.context_window, other.price, other.read_timeout) == ({}, None, None, 900.0)
    sibling = places.load().models_for("vllm/llama")
    assert (sibling.base_urls, sibling.context_window) == ({"vllm": "http://box:8000/v1"}, None)


def test_an_address_without_a_model_is_for_the_model_that_comes(places: Places) -> None:
    places.says('base_url = "http://box:8000/v1"\n')
    assert places.load({"model": "vllm/qwen"}).models.base_urls == {"vllm": "http://box:8000/v1"}
    assert places.load({"model": "vllm/qwen"}).models_for("openai/gpt-5").base_urls == {}
    config = places.load({"model": "vllm/qwen", "base_url": "http://other/v1"})
    assert config.models.base_urls == {"vllm": "http://other/v1"}


def test_to_load_it_imports_neither_policy_nor_terminals_nor_sdks(places: Places) -> None:
    """The first line of `tarmac run` waits for it."""
    import subprocess
    import sys

    code = (
        "import sys; from pathlib import Path; from tarmac.config import load_config;"
        f"load_config(Path({str(places.workspace)!r}), {{'TARMAC_CONFIG_DIR': {str(places.user)!r}}});"
        "print([name for name in ('tarmac.policy', 'asyncio', 'yaml', 'anthropic', 'openai') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"


def test_none_takes_a_limit_away(places: Places) -> None:
    places.says("[limits]\nmax_cost = 1\n")
    assert places.load(TARMAC_LIMITS_MAX_COST="none").limits.max_cost is None
    places.says('[limits]\nmax_cost = "none"\nmax_repetitions = "none"\n')
    assert (places.load().limits.max_cost, places.load().limits.max_repetitions) == (None, 0)


def test_an_option_that_was_not_given_says_nothing(places: Places) -> None:
    assert places.load({"auto": None, "limits.max_cost": None}).auto == "ask"


def test_a_variable_that_is_empty_says_nothing(places: Places) -> None:
    assert places.load(TARMAC_AUTO=" ").auto == "ask"


# What is wrong


@pytest.mark.parametrize(
    ("text", "line", "what", "hint"),
    [
        ("atuo = 'read'", 1, "unknown setting `atuo`", "did you mean `auto`?"),
        ("[limits]\n\nmax_cots = 1", 3, "unknown setting `limits.max_cots`", "did you mean `limits.max_cost`?"),
        ("max_cost = 1", 1, "unknown setting `max_cost`", "did you mean `limits.max_cost`?"),
        ("[limts]\nmax_cost = 1", 2, "unknown setting `limts.max_cost`", "did you mean `limits.max_cost`?"),
        ("[zebra]", 1, "unknown setting `zebra`", "`tarmac config show` lists all settings"),
        ("'limits.max_cost' = 1", 1, 'unknown setting `"limits.max_cost"`', "did you mean `limits.max_cost`?"),
        ("limits = 3", 1, "unknown setting `limits`", ""),
        ("auto = 'edtis'", 1, '`auto` must be one of plan, ask, edits, workspace, all, not "edtis"; did you mean', ""),
        ("auto = true", 1, "`auto` must be one of plan, ask, edits, workspace, all, not true", ""),
        ("\n\n[limits]\n# how much\nmax_cost = 'lots'", 5, "`limits.max_cost` must be an amount in US dollars", ""),
        ("[limits]\nmax_cost = -1", 2, "`limits.max_cost` must be an amount in US dollars", ""),
        ("[limits]\nmax_cost = nan", 2, "`limits.max_cost` must be an amount in US dollars", ""),
        ("[limits]\nmax_turns = 1.5", 2, "`limits.max_turns` must be a whole number, at least 1", ""),
        ("[limits]\nmax_turns = true", 2, "`limits.max_turns` must be a whole number, at least 1", ""),
        ("[terminals]\nrows = 0", 2, "`terminals.rows` must be a whole number from 1 to 65535, not 0", ""),
        ("[policy]\ndeny = [\n  'git push',\n  3]", 2, "`policy.deny` must be a list of commands", ""),
        ("[policy]\ndeny = 'git push'", 2, "`policy.deny` must be a list of commands", ""),
        ('[policy]\nallow = ["it\'s"]', 2, "`policy.allow` must be a list of commands", ""),
        ("model = 'claude'", 1, "`model` must be provider/name", ""),
        ("base_url = 'ftp://x'\nmodel = 'a/b'", 1, "`base_url` must be a URL", ""),
        ("auto = read", 1, "not valid TOML: ", "strings need quotes"),
        ("auto = 'read'\nauto = 'edit'", 2, "not valid TOML: ", ""),
        ("[limits\n", 1, "not valid TOML: ", ""),
        ("language = '''\nx", 2, "not valid TOML: ", ""),
        ("[keys]\nantropic = 'x'", 2, "`keys.antropic`: unknown provider", "did you mean `anthropic`?"),
        ("[keys]\nanthropic = 3", 1, "`keys` must be a table of providers and their keys", ""),
        ('"\\u001b[2J" = 1', 1, "unknown setting `\\x1b[2J`", ""),
        ("[limits]\nmax_cost = " + "9" * 5_000, 2, "not valid TOML", ""),
        ("language = " + "[" * 5_000, 1, "not valid TOML", ""),
        ("[models]\nprice_input = 3", 2, "set both", ""),
    ],
)
def test_what_is_wrong_in_a_file_is_told_with_its_line_and_the_nearest_right_name(
    places: Places, text: str, line: int, what: str, hint: str
) -> None:
    places.says(text)
    error = places.fails()
    assert error.what.startswith(f"`{places.file}`, line {line}: {what}")
    assert hint in error.hint


def test_what_is_wrong_in_a_workspaces_file_is_an_error_too(places: Places) -> None:
    places.workspace_says("[limits]\nmax_cots = 1\n")
    error = places.fails()
    assert error.what.endswith("/workspace/.tarmac/config.toml`, line 2: unknown setting `limits.max_cots`")


@pytest.mark.parametrize(
    ("environ", "what", "hint"),
    [
        ({"TARMAC_AUTO": "everything"}, "TARMAC_AUTO: `auto` must be one of", ""),
        ({"TARMAC_MAX_COST": "1"}, "TARMAC_MAX_COST: unknown setting", "did you mean TARMAC_LIMITS_MAX_COST?"),
        (
            {"TARMAC_LIMITS_MAX_COST": "1 €"},
            "TARMAC_LIMITS_MAX_COST: `limits.max_cost` must be an amount in US dollars",
            "",
        ),
        ({"TARMAC_POLICY_ASK_MEDIUM": "perhaps"}, "TARMAC_POLICY_ASK_MEDIUM: `policy.ask_medium` must be true", ""),
    ],
)
def test_what_is_wrong_in_the_environment_is_told(
    places: Places, environ: dict[str, str], what: str, hint: str
) -> None:
    error = places.fails(None, **environ)
    assert error.what.startswith(what)
    assert hint in error.hint


def test_variables_that_are_no_settings_are_left_alone(places: Places) -> None:
    assert (
        places.load(TARMAC_STATE_DIR="/x", TARMAC_TERMINAL="t1", TARMAC_REQUIRE_ALL="1", TARMAC_THOROUGH="1").notes
        == ()
    )


def test_what_is_wrong_on_the_command_line_is_told(places: Places) -> None:
    assert places.fails({"auto": "al"}).what.startswith("--auto: `auto` must be one of")
    assert places.fails({"limits.max_cots": 1}).hint == "did you mean `limits.max_cost`?"
    assert "command line" in places.fails({"keys": "x"}).what


def test_a_file_that_others_may_write_to_is_not_ones_own(places: Places) -> None:
    places.says("auto = 'all'")
    places.file.chmod(0o666)
    assert places.fails().what == f"`{places.file}`: other users can write to it"


def test_things_that_are_no_files_are_told_of_and_nothing_hangs(places: Places) -> None:
    os.mkfifo(places.file)
    assert places.fails().what == f"`{places.file}`: can't be read: it is not a file"
    places.file.unlink()
    places.file.mkdir()
    assert places.fails().what == f"`{places.file}`: can't be read: it is a folder"
    places.file.rmdir()
    places.file.write_bytes(b"\xff\xfe")
    places.file.chmod(0o600)
    assert places.fails().what == f"`{places.file}`: not UTF-8"
    places.file.write_bytes(b"#" * 300_000)
    assert "longer than" in places.fails().what


@given(st.text() | st.text(alphabet=st.sampled_from("autolimsx_c=.[]{}'\"\n #0123,")))
def test_no_text_makes_it_fail_but_with_a_line(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    places = Places(tmp_path_factory.mktemp("any"))
    places.file.write_bytes(text.encode("utf-8", "surrogatepass"))
    places.file.chmod(0o600)
    try:
        places.load()
    except ConfigError as error:
        assert str(places.file) in error.what


# Secrets


def test_keys_come_from_the_users_file_and_the_environment_and_are_never_printed(places: Places) -> None:
    """Never logged, shown masked."""
    places.says('[keys]\nanthropic = "sk-ant-0123456789abcdefghij"\nopenai = "short"\n')
    config = places.load(GROQ_API_KEY="gsk-0123456789abcdefghij", OPENAI_API_KEY="from-the-environment")
    assert {name: key.reveal() for name, key in config.keys.items()} == config.models.keys
    assert config.models.keys == {
        "anthropic": "sk-ant-0123456789abcdefghij",
        "openai": "short",
        "groq": "gsk-0123456789abcdefghij",
    }
    printed = f"{config!r} {config.values!r} {config.models!r} {config.keys} {config.notes}"
    assert not any(secret in printed for secret in ("0123456789", "short", "from-the-environment"))
    assert "…ghij" in printed
    assert "GROQ_API_KEY" in config.terminals.secret_variables


def test_a_file_with_keys_that_others_may_read_is_noted(places: Places) -> None:
    places.says('[keys]\nopenai = "x"\n')
    places.file.chmod(0o644)
    (note,) = places.load().notes
    assert note.startswith(f"`{places.file}` contains keys, and other users can read it")


@pytest.mark.parametrize(
    "text", ['[keys]\nanthropic = ["hunter2"]', 'keys = "hunter2"', '[key]\nanthropic = "hunter2"']
)
def test_a_wrong_key_is_told_without_its_value(places: Places, text: str) -> None:
    places.says(text)
    assert "hunter2" not in str(places.fails())


@given(st.text(min_size=1))
def test_a_secret_shows_at_most_its_end(text: str) -> None:
    secret = Secret(text)
    assert secret.reveal() == text
    assert len(str(secret)) <= 5
    assert json.dumps(str(secret))


AGENT_ERRORS = {
    "x = 1": "`x` is not a table",
    "x = {}": "`x` has no command",
    'x = {command = "a b"}': "`x.command` must be a list",
    "x = {command = []}": "`x` has no command",
    'x = {command = ["./a"]}': "`x.command` must be a list",
    'x = {command = ["a"], envi = {}}': "`x.envi` is unknown; there are command, env, name",
    'x = {command = ["a"], env = {TARMAC_X = "1"}}': "none of them TARMAC_*: `TARMAC_X` is invalid",
    'x = {command = ["a"], env = {"A=B" = "1"}}': "`A=B` is invalid",
    '"a b" = {command = ["a"]}': "not `a b`",
}


@pytest.mark.parametrize("said", AGENT_ERRORS)
def test_a_wrong_agent_is_an_error_with_its_line(places: Places, said: str) -> None:
    """A1: never a program of the workspace, which a relative path would be."""
    places.says(f"[agents]\n{said}\n")
    error = places.fails()
    assert "`agents` must be tables such as [agents.opencode]" in error.what and "line 1" in error.what
    assert AGENT_ERRORS[said] in error.what


def test_agents_have_a_command_and_if_wanted_a_name_and_variables(places: Places) -> None:
    """A1: secrets in their variables are masked wherever settings are shown."""
    places.says('[agents.a]\ncommand = ["a", ""]\n[agents.b]\ncommand = ["~/b"]\nname = "B"\nenv = {B_KEY = "hush"}\n')
    places.workspace_says('[agents.a]\ncommand = ["evil"]\n')
    config = places.load()
    found = [(each.id, each.name, each.command, dict(each.env)) for each in config.agents.values()]
    assert found == [("a", "a", ("a", ""), {}), ("b", "B", ("~/b",), {"B_KEY": "hush"})]
    (note,) = config.notes
    assert "a workspace can't set `agents`" in note and "hush" not in note
    assert all("hush" not in str(row) for row in shown_settings(config))
