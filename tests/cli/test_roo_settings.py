"""Roo-Code's modes and MCP servers, in and out (S3). The files are in its own format, as it writes them."""

import json
import shutil
from pathlib import Path

import pytest
from tests.cli.conftest import Outcome, tarmac
from tests.cli.test_import import NATIVE, ROO

pytestmark = pytest.mark.slow

MODES = """\
customModes:
  - slug: translate
    name: 🌐 Translate
    roleDefinition: |-
      You are a linguist.
      You keep placeholders.
    whenToUse: When texts are translated.
    description: Texts in other languages
    customInstructions: |-
      # Style
      ---
      Be brief.
    groups:
      - read
      - - edit
        - fileRegex: (.*\\.(md|ts|json)$)
          description: Sources and texts
      - command
    source: global
    iconName: codicon-globe
  - slug: code
    name: Code
    roleDefinition: You write code.
    groups: [read, edit]
  - slug: broken
    name: Broken
    groups: [read]
"""
SERVERS = '{"mcpServers": {"files": {"command": "touch", "args": ["STARTED"], "env": {"TOKEN": "s3cret"}}}}\n'


@pytest.fixture
def storage(tmp_path: Path) -> Path:
    """The folder that Roo-Code has in VS Code's globalStorage."""
    folder = tmp_path / "rooveterinaryinc.roo-cline"
    shutil.copytree(ROO / NATIVE, folder / "tasks" / NATIVE)
    (folder / "settings").mkdir()
    (folder / "settings/custom_modes.yaml").write_text(MODES)
    (folder / "settings/mcp_settings.json").write_text(SERVERS)
    return folder


@pytest.fixture
def own(tmp_path: Path) -> Path:
    return tmp_path / "own"


def here(own: Path, *arguments: str) -> Outcome:
    return tarmac(*arguments, TARMAC_CONFIG_DIR=str(own))


def test_modes_become_ours_and_servers_are_kept_but_not_started(storage: Path, own: Path) -> None:
    """S3, S9: what makes no sense is told with its line, the rest is taken in."""
    outcome = here(own, "import", "roo", str(storage))
    assert outcome.code == 1
    assert "custom_modes.yaml" in outcome.err and "a mode needs a `role`" in outcome.err
    lines = outcome.out.splitlines()
    assert lines[0].startswith(f"+ {NATIVE}") and lines[1] == f"+ mode translate  {own}/modes/translate.md"
    assert lines[2].endswith("code.md, in place of the one that is built in")
    assert lines[3].startswith("+ MCP servers (files)") and "a server is started when it is first needed" in lines[3]
    assert "s3cret" not in outcome.out + outcome.err
    kept = own / "mcp_settings.json"
    assert (kept.read_text(), kept.stat().st_mode & 0o777) == (SERVERS, 0o600)
    assert list(storage.rglob("STARTED")) == [] and not Path("STARTED").exists()
    text = (own / "modes/translate.md").read_text()
    assert text.startswith("---\nslug: translate\nname: 🌐 Translate\n") and text.endswith(
        "\n# Style\n---\nBe brief.\n"
    )


def test_nothing_of_the_persons_own_is_written_over(storage: Path, own: Path) -> None:
    (own / "modes").mkdir(parents=True)
    (own / "modes/translate.md").write_text("+++\nrole = 'mine'\n+++\n")
    (own / "mcp_settings.json").write_text("{}")
    outcome = here(own, "import", "roo", str(storage / "settings"), "--json")
    said = [json.loads(line) for line in outcome.out.splitlines()]
    assert [(each.get("mode"), each["taken"]) for each in said] == [
        ("translate", False),
        ("code", True),
        (None, False),
        (None, False),
    ]
    assert (own / "modes/translate.md").read_text() == "+++\nrole = 'mine'\n+++\n"
    assert (own / "mcp_settings.json").read_text() == "{}"
    again = here(own, "import", "roo", str(storage))
    assert "= mode code  a mode of that name is here already" in again.out


def test_there_and_back_again_modes_and_servers_are_the_same(storage: Path, own: Path, tmp_path: Path) -> None:
    """S3: the round trip; what Roo-Code alone knows of a mode (its icon) is not kept."""
    (storage / "settings/custom_modes.yaml").write_text(MODES.partition("  - slug: broken")[0])
    assert here(own, "import", "roo", str(storage)).code == 0
    back = here(own, "tasks", "export", "--settings", "--to", str(tmp_path / "back"))
    assert (back.code, len(back.out.splitlines())) == (0, 2), back.err
    assert (tmp_path / "back/mcp_settings.json").read_text() == SERVERS
    again = here(tmp_path / "second", "import", "roo", str(tmp_path / "back"))
    assert again.code == 0, again.err
    for name in ("translate", "code"):
        one, two = (place / "modes" / f"{name}.md" for place in (own, tmp_path / "second"))
        assert one.read_text() == two.read_text()
    twice = here(own, "tasks", "export", "--settings", "--to", str(tmp_path / "back"))
    assert (twice.code, "--force" in twice.err) == (2, True)
    assert here(own, "tasks", "export", NATIVE, "--settings", "--to", "x").code == 2


def test_a_folder_without_tasks_and_settings_is_none_of_roo_codes(tmp_path: Path, own: Path) -> None:
    outcome = here(own, "import", "roo", str(tmp_path))
    assert (outcome.code, "there is no task of Roo-Code" in outcome.err) == (2, True)
