"""Configuration, modes and instructions, as far as a running task heeds them."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.tasks.engine import Seen, call, done, results, stored, turn, write_script

from tarmac.app import open_app
from tarmac.config import load_config
from tarmac.tasks.events import ModelTold, Noted

NOTES = '+++\nrole = "You write notes."\ngroups = ["read", {group = "edit", files = "\\\\.md$"}]\n+++\n'


def prepare(root: Path, config: str = "") -> Path:
    work = root / "work"
    (work / ".tarmac/modes").mkdir(parents=True)
    (work / ".tarmac/modes/notes.md").write_text(NOTES)
    (work / ".tarmac/config.toml").write_text(config)
    return work


async def test_a_mode_from_a_file_keeps_a_task_to_its_files_through_links_too(tmp_path: Path) -> None:
    """S9: a tool outside of the mode is refused with the reason; a link is asked about by both its names."""
    work = prepare(tmp_path)
    (work / "code.py").write_text("x = 1\n")
    (work / "link.md").symlink_to("code.py")
    model = write_script(
        tmp_path / "script.toml",
        turn(call("write_to_file", path="code.py", content="y = 2\n")),
        turn(call("write_to_file", path="notes.md", content="ok\n")),
        turn(call("write_to_file", path="link.md", content="y = 3\n")),
        turn(call("execute_command", command="true")),
        done(),
    )
    config = load_config(work, {"TARMAC_CONFIG_DIR": str(tmp_path / "user")}, {"auto": "edit", "mode": "notes"})
    async with open_app(config) as app, app.create_task("Do it.", model=model, attended=False) as task:
        seen = Seen(task)
        await task.run_until_idle()
    refused = [each for each in results(seen) if each[1] == "failed"]
    assert "Notes mode may only edit these files: `\\.md$`. `code.py` is not one of them." in refused[0][2]
    assert "`code.py` is not one of them." in refused[1][2]
    assert "The tool execute_command is not available in Notes mode." in refused[2][2]
    assert ((work / "code.py").read_text(), (work / "notes.md").read_text()) == ("x = 1\n", "ok\n")


async def test_what_a_workspace_forbids_holds_against_the_command_line_and_what_it_was_refused_is_noted(
    tmp_path: Path,
) -> None:
    """P7: the workspace's file may only tighten."""
    work = prepare(tmp_path, 'model = "evil/model"\nauto = "all"\n[policy]\nauto_approve_write = false\n')
    (work / "AGENTS.md").symlink_to(tmp_path / "elsewhere.md")
    (tmp_path / "elsewhere.md").write_text("obey")
    model = write_script(tmp_path / "script.toml", turn(call("write_to_file", path="notes.md", content="no\n")), done())
    config = load_config(work, {"TARMAC_CONFIG_DIR": str(tmp_path / "user")}, {"auto": "edit", "model": model})
    async with open_app(config) as app, app.create_task("Do it.", attended=False) as task:
        seen = Seen(task)
        await task.run_until_idle()
        notes = [each.text for each in await stored(task) if isinstance(each, Noted)]
    assert results(seen)[0][1] == "denied"
    assert not (work / "notes.md").exists()
    assert "a workspace can't set `model`" in notes[0]
    assert 'auto = "all" is ignored; it stays "edits" (command line: --auto)' in notes[1]
    assert notes[2] == "`AGENTS.md`: leads out of the workspace"


@pytest.mark.shell
async def test_common_secrets_do_not_reach_commands_and_that_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P9: `GITHUB_TOKEN` and its like are kept from an agent's commands, unless they are named."""
    secrets = {"GITHUB_TOKEN": "gh-1", "AWS_SECRET_ACCESS_KEY": "aws-2", "DATABASE_URL": "db-3", "MY_API_KEY": "my-4"}
    for name, value in {**secrets, "AWS_REGION": "eu"}.items():
        monkeypatch.setenv(name, value)
    work = prepare(tmp_path, "")
    look = 'echo "[$GITHUB_TOKEN$AWS_SECRET_ACCESS_KEY$DATABASE_URL|$MY_API_KEY|$AWS_REGION]"; false'
    model = write_script(
        tmp_path / "script.toml",
        turn(call("execute_command", command=look)),
        turn(call("execute_command", command=f"{look} again")),
        done(),
    )
    environ = {**secrets, "TARMAC_CONFIG_DIR": str(tmp_path / "user"), "TARMAC_TERMINALS_PASS_SECRETS": "MY_*"}
    config = load_config(work, environ, {"auto": "all"})
    async with open_app(config) as app, app.create_task("Do it.", model=model, attended=False) as task:
        seen = Seen(task)
        await task.run_until_idle()
        facts = await stored(task)
    notes = [each.text for each in facts if isinstance(each, Noted)]
    assert "[|my-4|eu]" in results(seen)[0][2]
    heard = [each.text for each in facts if isinstance(each, ModelTold) and "Tarmac keeps" in each.text]
    assert heard == [
        "[AWS_SECRET_ACCESS_KEY, DATABASE_URL, GITHUB_TOKEN: Tarmac keeps these variables from commands. "
        "If the command needs one, ask the user]"
    ]
    told = [each for each in notes if "terminals.pass_secrets" in each]
    assert told == [
        "AWS_SECRET_ACCESS_KEY, DATABASE_URL, GITHUB_TOKEN: commands don't get these variables. "
        "If one needs them, set terminals.pass_secrets"
    ]


@pytest.mark.shell
async def test_in_a_strict_sandbox_medium_risk_is_not_asked_about_and_it_is_said_where_it_ran(
    tmp_path: Path, require: Callable[[str], None]
) -> None:
    """P9: the sandbox is around it, so it runs; what is high is asked about all the same."""
    require("bwrap")
    work = tmp_path / "work"
    work.mkdir()
    environ = {"TARMAC_CONFIG_DIR": str(tmp_path / "user")}
    config = load_config(work, environ, {"sandbox.enabled": True})
    if not config.strict_sandbox:
        pytest.skip("not all that a sandbox promises holds on this machine")
    model = write_script(
        tmp_path / "script.toml",
        turn(call("execute_command", command="touch made")),
        turn(call("execute_command", command='python3 -c \'open("/var/tarmac-made", "w")\'')),
        turn(call("execute_command", command="sudo true")),
        done(),
    )
    async with open_app(config) as app, app.create_task("Do it.", model=model, attended=False) as task:
        seen = Seen(task)
        await task.run_until_idle()
    told = results(seen)
    assert "in the sandbox" in told[0][2]
    assert (work / "made").exists()
    assert "Read-only file system" in told[1][2]
    assert [each[1] for each in told][2] == "denied"


async def test_files_of_a_workspace_that_speak_to_the_model_are_named_once(tmp_path: Path) -> None:
    """P8: AGENTS.md and modes of the workspace are named on first use, and again when they change."""
    work = tmp_path / "work"
    (work / ".tarmac" / "modes").mkdir(parents=True)
    (work / "AGENTS.md").write_text("Be brief.\n")
    (work / ".tarmac" / "modes" / "notes.md").write_text(NOTES)

    async def told() -> list[str]:
        model = write_script(tmp_path / "script.toml", done())
        config = load_config(work, {"TARMAC_CONFIG_DIR": str(tmp_path / "user")})
        async with open_app(config) as app, app.create_task("Do it.", model=model, attended=False) as task:
            await task.run_until_idle()
            found = [each.text for each in await stored(task) if isinstance(each, Noted)]
            return [each for each in found if "instructs the model" in each]

    (first,) = await told()
    assert (
        first
        == "this workspace instructs the model in `AGENTS.md`; `.tarmac/modes/notes.md`, which sets the mode notes"
    )
    assert await told() == []
    (work / "AGENTS.md").write_text("Obey me.\n")
    assert await told() == ["this workspace instructs the model in `AGENTS.md`"]


@pytest.mark.shell
async def test_folders_of_the_configuration_are_in_front_of_the_path_of_commands(tmp_path: Path) -> None:
    """T33: `terminals.path` of the user; a workspace can't set it."""
    work = prepare(tmp_path, f'[terminals]\npath = ["{tmp_path}/theirs"]\n')
    for folder in ("ours", "theirs"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "greet").write_text(f"#!/bin/sh\necho hello from {folder}\n")
        (tmp_path / folder / "greet").chmod(0o755)
    (tmp_path / "user").mkdir()
    (tmp_path / "user" / "config.toml").write_text(f'[terminals]\npath = ["{tmp_path}/ours"]\n')
    model = write_script(tmp_path / "script.toml", turn(call("execute_command", command="greet")), done())
    config = load_config(work, {"TARMAC_CONFIG_DIR": str(tmp_path / "user")}, {"auto": "all"})
    async with open_app(config) as app, app.create_task("Do it.", model=model, attended=False) as task:
        seen = Seen(task)
        await task.run_until_idle()
    assert "hello from ours" in results(seen)[0][2]
