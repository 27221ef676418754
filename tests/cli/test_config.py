"""`tarmac config`, as its users run it."""

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Outcome, tarmac

pytestmark = pytest.mark.slow


class Here:
    """A user's folder and a workspace, and the command run in them."""

    def __init__(self, root: Path) -> None:
        self.user = root / "user"
        self.workspace = root / "work"
        self.user.mkdir()
        (self.workspace / ".tarmac").mkdir(parents=True)

    def says(self, text: str) -> None:
        (self.user / "config.toml").write_text(text)
        (self.user / "config.toml").chmod(0o600)

    def workspace_says(self, text: str) -> None:
        (self.workspace / ".tarmac/config.toml").write_text(text)

    def config(self, *arguments: str, **environ: str) -> Outcome:
        environ = {"TARMAC_CONFIG_DIR": str(self.user), **environ}
        return tarmac("config", *arguments, "--workspace", str(self.workspace), **environ)


@pytest.fixture
def here(tmp_path: Path) -> Here:
    return Here(tmp_path)


def test_every_value_is_shown_with_its_origin(here: Here) -> None:
    """S16, P7: what is set, and who set it."""
    here.says('auto = "edit"\n[limits]\nmax_cost = 5\n')
    here.workspace_says('[limits]\nmax_cost = 2\n[policy]\ndeny = ["git push"]\n')
    outcome = here.config("show", TARMAC_LANGUAGE="de")
    assert (outcome.code, outcome.err) == (0, "")
    lines = {line.split(" = ")[0]: line for line in outcome.out.splitlines()}
    assert len(lines) > 80
    assert lines["auto"].endswith(f"  user: `{here.user / 'config.toml'}`, line 1")
    assert lines["language"].split("  ", 1) == ['language = "de"', lines["language"].split("  ", 1)[1]]
    assert lines["language"].endswith("environment: TARMAC_LANGUAGE")
    assert lines["limits.max_cost"].startswith("limits.max_cost = 2 ")
    assert lines["limits.max_cost"].endswith(f"workspace: `{here.workspace / '.tarmac/config.toml'}`, line 2")
    assert lines["mode"].endswith("  default")


def test_one_value_a_table_or_what_was_changed_can_be_asked_for(here: Here) -> None:
    here.says("[limits]\nmax_cost = 5\n")
    assert here.config("show", "mode").out == 'mode = "code"  default\n'
    limits = here.config("show", "limits").out.splitlines()
    assert [line.split(" = ")[0] for line in limits][:2] == ["limits.max_cost", "limits.max_requests"]
    assert here.config("show", "--changed").out.startswith("limits.max_cost = 5  user: ")


def test_as_json_it_is_one_object_and_without_secrets(here: Here) -> None:
    here.says(
        '[keys]\nanthropic = "sk-ant-0123456789abcdefghij"\n[terminals.environment]\nMY_TOKEN = "hunter2"\nCI = "1"\n'
    )
    here.workspace_says('model = "a/b"\n')
    outcome = here.config("show", "--json")
    shown = json.loads(outcome.out)
    assert shown["values"]["keys"]["value"] == {"anthropic": "…ghij"}
    assert shown["values"]["terminals.environment"]["value"] == {"MY_TOKEN": "…", "CI": "1"}
    assert shown["values"]["keys"]["origin"] == {"place": "user", "where": f"`{here.user / 'config.toml'}`", "line": 1}
    assert shown["values"]["auto"]["variable"] == "TARMAC_AUTO"
    assert len(shown["notes"]) == 1
    for text in (outcome.out, here.config("show").out):
        assert "0123456789" not in text
        assert "hunter2" not in text


def test_what_a_workspace_was_refused_is_noted(here: Here) -> None:
    here.workspace_says('auto = "all"\n')
    (note,) = [line for line in here.config("show", "auto").out.splitlines() if line.startswith("note: ")]
    assert 'line 1: auto = "all" is ignored; it stays "ask" (default)' in note


def test_the_path_is_alone_on_its_line(here: Here) -> None:
    assert here.config("path").out == f"{here.user / 'config.toml'}\n"
    listed = json.loads(here.config("path", "--json").out)
    assert listed["user"]["exists"] is False
    assert listed["workspace"][-1]["path"] == str(here.workspace / ".tarmac/config.toml")


def test_check_reads_all_that_a_task_would_read(here: Here) -> None:
    fine = here.config("check")
    assert (fine.code, fine.out) == (0, "the configuration is valid\n")
    here.says('mode = "cod"\n')
    (here.user / "policy.toml").write_text("alow = []\n")
    here.workspace_says('model = "a/b"\n')
    (here.workspace / ".tarmac/modes").mkdir()
    (here.workspace / ".tarmac/modes/x.md").write_text("no front matter")
    (here.workspace / "AGENTS.md").symlink_to("/etc/hostname")
    outcome = here.config("check")
    assert outcome.code == 1
    lines = outcome.out.splitlines()
    for words in (
        "a workspace can't set `model`",
        "`alow` is not known",
        "`.tarmac/modes/x.md`, line 1: a mode file must begin with",
        "there is no mode `cod`; did you mean `code`?",
        "`AGENTS.md`: leads out of the workspace",
    ):
        assert len([line for line in lines if words in line]) == 1, words
    assert json.loads(here.config("check", "--json").out) == {"ok": False, "trouble": lines}


def test_a_file_that_makes_no_sense_is_told_with_line_and_nearest_name(here: Here) -> None:
    here.says("[limits]\nmax_cots = 1\n")
    outcome = here.config("show")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == (
        f"tarmac: `{here.user / 'config.toml'}`, line 2: unknown setting `limits.max_cots`\n"
        "  hint: did you mean `limits.max_cost`?\n"
    )
    checked = here.config("check")
    assert checked.code == 1
    assert "did you mean `limits.max_cost`?" in checked.out


@pytest.mark.parametrize(
    ("arguments", "what", "hint"),
    [
        (["shwo"], "`shwo` is not a command of `tarmac config`", "did you mean `show`?"),
        (["show", "limits.max_cots"], "there is no setting `limits.max_cots`", "did you mean `limits.max_cost`?"),
        (["path", "x"], "`config path` takes no `x`", "tarmac config show KEY"),
        (["--jsn"], "there is no option `--jsn`", "did you mean `--json`?"),
    ],
)
def test_nonsense_is_answered(here: Here, arguments: list[str], what: str, hint: str) -> None:
    outcome = here.config(*arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith(f"tarmac: {what}")
    assert hint in outcome.err


def test_it_has_a_page() -> None:
    outcome = tarmac("config", "--help")
    assert outcome.code == 0
    for wanted in ("show", "check", "path", "--changed", "--workspace", "--json"):
        assert wanted in outcome.out
    assert max(map(len, outcome.out.splitlines())) <= 88
