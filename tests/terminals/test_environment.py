"""The environment of commands, and what is said of its changes: pure functions."""

import subprocess
from fnmatch import fnmatchcase

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarmac.errors import BadRequest
from tarmac.terminals import Settings
from tarmac.terminals.environment import build, changes
from tarmac.terminals.shell.dialects.bash import Bash, note_for, parse_exports

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30)


@settings(deadline=None, max_examples=40)
@given(st.dictionaries(st.sampled_from(["A", "B_2", "LONG_NAME"]), TEXT))
def test_exports_of_a_real_bash_are_read_back(variables: dict[str, str]) -> None:
    """T31: whatever is in a value."""
    env = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", **variables}
    told = subprocess.run(["bash", "-c", "export -p"], env=env, capture_output=True, check=True).stdout
    read = parse_exports(told.decode("utf-8", "surrogateescape"))
    assert {name: read.get(name) for name in variables} == variables


def test_changes_mask_secrets_and_leave_out_book_keeping() -> None:
    """T31: set, changed, unset."""
    before = {"A": "1", "B": "2", "GONE": "x", "PWD": "/a", "_": "y"}
    now = {"A": "1", "B": "3", "MY_TOKEN": "abc", "PWD": "/b", "_": "z"}
    assert changes(before, now) == {"B": "3", "MY_TOKEN": "********", "GONE": None}


def test_the_hosts_secrets_and_foreign_terminals_variables_are_left_out() -> None:
    """T23: provider keys, and what an editor's terminal left behind."""
    base = {
        "OPENAI_API_KEY": "k",
        "TARMAC_X": "k",
        "VSCODE_NONCE": "k",
        "TMUX": "k",
        "HOME": "/h",
        "LANG": "de_DE.UTF-8",
    }
    env = build(base, Settings(), cookie="t1")
    assert "k" not in env.values()
    assert (env["HOME"], env["LANG"], env["TERM"], "LC_CTYPE" in env) == ("/h", "de_DE.UTF-8", "xterm-256color", False)


@given(
    st.lists(st.sampled_from(["KEY", "my_KEY", "MYKEY2", "A.B", "AxB", "key", "É", "A\nB"]), unique=True),
    st.lists(st.sampled_from(["*KEY*", "A.B", "A?B", "[!A]*", "KEY", "*", ""]), max_size=3),
)
def test_a_secret_is_left_out_by_the_rules_for_names_of_files(names: list[str], patterns: list[str]) -> None:
    """T23: case counts, a dot is a dot."""
    env = build(dict.fromkeys(names, "v"), Settings(secret_variables=tuple(patterns)), cookie="t1")
    assert {name for name in names if name in env} == {
        name for name in names if not any(fnmatchcase(name, each) for each in patterns)
    }


@pytest.mark.parametrize(
    "bad", [{"rows": 0}, {"columns": 70000}, {"run_timeout": 0}, {"hold_timeout": -1}, {"output_memory": 0}]
)
def test_settings_that_make_no_sense_are_refused(bad: dict[str, int]) -> None:
    """T18: at once, by name."""
    with pytest.raises(BadRequest, match=next(iter(bad)) if bad != {"columns": 70000} else "65,535"):
        Settings(**bad)  # type: ignore[arg-type]


@given(st.text(max_size=60))
def test_what_is_typed_as_it_is_has_nothing_to_mangle(command: str) -> None:
    """T22: short plain words only; no quote, no control character, nothing but ASCII."""
    if Bash("bash").may_type(command):
        assert command.isascii()
        assert command.isprintable()
        assert not set(command) & set("'\"\\$`!;&|<>(){}[]*?#\n\t")


@pytest.mark.parametrize("command", ["ls |", "a &&", "echo \\", "cat <<E\nx\nE", "ls # x", "f()", "f ()  "])
def test_nothing_is_appended_where_it_could_change_the_meaning(command: str) -> None:
    """Our own last line must not be swallowed, nor complete what is incomplete."""
    assert note_for(command) == b""
