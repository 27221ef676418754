"""Slash commands are files of the project, which somebody else may have written."""

from pathlib import Path

from tarmac.tasks.talk import commands


def test_a_command_of_the_project_that_leads_elsewhere_is_none(tmp_path: Path) -> None:
    """S10, P8: a link to a person's secret would be sent to the model by its name; a person's own links are theirs."""
    project, user = tmp_path / "project", tmp_path / "user"
    secret = tmp_path / "secret"
    secret.write_text("key\n")
    folder = project / ".tarmac" / "commands"
    folder.mkdir(parents=True)
    (folder / "good.md").write_text("Do it.\n")
    (folder / "bad.md").symlink_to(secret)
    (project / ".env").write_text("KEY=1\n")
    (folder / "env.md").symlink_to(project / ".env")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "there.md").write_text("x\n")
    (project / ".claude").mkdir()
    (project / ".claude" / "commands").symlink_to(elsewhere)
    (user / "commands").mkdir(parents=True)
    (user / "commands" / "mine.md").symlink_to(secret)
    assert set(commands(project, user)) == {"good", "mine"}
    linked = tmp_path / "linked"
    linked.symlink_to(project)  # the workspace itself may be reached by a link
    assert set(commands(linked, user)) == {"good", "mine"}
