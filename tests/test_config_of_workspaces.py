"""Which folders may be a workspace."""

from pathlib import Path

import pytest

from tarmac.app import check_workspace
from tarmac.errors import BadRequest, DirectoryUnavailable


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    home = tmp_path / "users" / "ann"
    for each in (".ssh/keys", ".gnupg", ".aws", "src/shop/.git", ".config/tarmac/modes", ".local/state/tarmac/tasks"):
        (home / each).mkdir(parents=True)
    return {"HOME": str(home)}


@pytest.mark.parametrize(
    ("folder", "why"),
    [
        ("/", "the whole machine"),
        ("{home}", "contains your home directory"),
        ("{home}/..", "contains your home directory"),
        ("{home}/link", "contains your home directory"),
        ("{home}/.ssh", "may contain credentials"),
        ("{home}/.ssh/keys", "may contain credentials"),
        ("{home}/.gnupg", "may contain credentials"),
        ("{home}/.aws", "may contain credentials"),
        ("{home}/.config/tarmac", "belongs to Tarmac"),
        ("{home}/.config/tarmac/modes", "belongs to Tarmac"),
        ("{home}/.local/state/tarmac/tasks", "belongs to Tarmac"),
    ],
)
def test_the_machine_the_home_credentials_and_our_own_folders_are_no_workspace(
    folder: str, why: str, environ: dict[str, str]
) -> None:
    """A2, A3, P8."""
    (Path(environ["HOME"]) / "link").symlink_to(environ["HOME"])
    with pytest.raises(BadRequest, match=why):
        check_workspace(Path(folder.format(home=environ["HOME"])), environ)


def test_a_project_is_a_workspace(environ: dict[str, str]) -> None:
    project = Path(environ["HOME"]) / "src" / "shop"
    assert check_workspace(project, environ) == project
    with pytest.raises(DirectoryUnavailable):
        check_workspace(project / "nowhere", environ)
