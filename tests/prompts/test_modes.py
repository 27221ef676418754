"""Modes: the five, those from files, who wins, and what is said of files that make no sense."""

import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarmac.prompts.mode import GroupRule, Mode
from tarmac.prompts.modes import Modes, built_in, load_modes

REVIEW = """\
+++
name = "Review"
role = "You review code."
when = "Before a merge."
groups = ["read", {group = "edit", files = '\\.md$', description = "notes"}]
+++
Be kind.
"""
YAML = """\
---
name: Écrivain
roleDefinition: >
  You write
  docs.
groups:
  - read
  - - edit
    - fileRegex: \\.(md|txt)$
      description: Text files
---
"""
ROO = """\
customModes:
  - slug: translate
    name: 🧑‍🚀 Translate
    roleDefinition: You translate.
    whenToUse: For other languages.
    iconName: codicon-globe
    groups:
      - read
      - [edit, {fileRegex: "\\\\.json$", description: JSON}]
      - modes
    source: project
  - slug: broken
    name: Broken
    roleDefinition: You break.
    groups: [read, edti]
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    made = tmp_path / "workspace"
    (made / ".tarmac" / "modes").mkdir(parents=True)
    return made


@pytest.fixture
def user(tmp_path: Path) -> Path:
    made = tmp_path / "user"
    (made / "modes").mkdir(parents=True)
    return made


def load(workspace: Path, user: Path) -> Modes:
    return load_modes(workspace, user)


# The five


def test_five_modes_are_built_in_with_their_tools() -> None:
    """S9: code all, architect reads and edits Markdown, ask reads, debug, orchestrator has none of its own."""
    every = {"read", "edit", "command", "browser", "mcp"}
    assert {mode.slug: {rule.group for rule in mode.groups} for mode in built_in()} == {
        "architect": {"read", "edit", "mcp"},
        "code": every,
        "ask": {"read", "browser", "mcp"},
        "debug": every,
        "orchestrator": set(),
    }
    assert all(mode.role and mode.when and mode.instructions and mode.description for mode in built_in())


def test_a_tool_outside_of_the_mode_is_refused_with_the_reason() -> None:
    """S9."""
    ask, architect = Modes(all=built_in()).get("ask"), Modes(all=built_in()).get("architect")
    assert ask and architect
    assert ask.allows("execute_command", "command") == "The tool execute_command is not available in Ask mode."
    assert ask.allows("read_file", "read", "src/app.py") is None
    assert architect.allows("write_to_file", "edit", "docs/plan.md") is None
    assert architect.allows("write_to_file", "edit", Path("src/app.py")) == (
        "Architect mode may only edit these files: Markdown files only (`\\.md$`). `src/app.py` is not one of them."
    )


@pytest.mark.parametrize("mode", built_in(), ids=lambda mode: mode.slug)
def test_what_every_mode_has_is_never_refused(mode: Mode) -> None:
    """S9: ask_followup_question, attempt_completion, switch_mode, update_todo_list always there."""
    assert mode.allows("attempt_completion", "always") is None
    assert mode.allows("switch_mode", "modes") is None


@pytest.mark.parametrize("path", ["x.md\n", "x.md\0", "x.MD", "x.md/y", "", "md"])
def test_a_path_that_only_looks_like_it_does_not_fit(path: str) -> None:
    rule = GroupRule(group="edit", file_pattern=r"\.md$")
    assert Mode(slug="x", name="X", role="r", groups=(rule,)).allows("t", "edit", path)


def test_a_pattern_that_takes_for_ever_means_no_and_soon() -> None:
    rule = GroupRule(group="edit", file_pattern=r"^(a|aa)+$")
    began = time.monotonic()
    assert Mode(slug="x", name="X", role="r", groups=(rule,)).allows("t", "edit", "a" * 200 + "!")
    assert time.monotonic() - began < 5


# From files


def test_a_mode_is_a_markdown_file_with_toml_in_front(workspace: Path, user: Path) -> None:
    """S9: custom modes from files."""
    (workspace / ".tarmac/modes/review.md").write_text(REVIEW)
    modes = load(workspace, user)
    assert modes.trouble == ()
    assert modes.get("review") == Mode(
        slug="review",
        name="Review",
        role="You review code.",
        when="Before a merge.",
        groups=(
            GroupRule(group="read"),
            GroupRule(group="edit", file_pattern=r"\.md$", description="notes"),
        ),
        instructions="Be kind.",
        source="workspace",
        origin="`.tarmac/modes/review.md`",
    )


def test_a_mode_is_a_markdown_file_with_yaml_in_front(workspace: Path, user: Path) -> None:
    (user / "modes/writer.md").write_text(YAML)
    modes = load(workspace, user)
    assert modes.trouble == ()
    mode = modes.get("writer")
    assert mode
    assert (mode.name, mode.role, mode.instructions, mode.source) == ("Écrivain", "You write docs.", "", "user")
    assert mode.groups[1] == GroupRule(group="edit", file_pattern=r"\.(md|txt)$", description="Text files")


@pytest.mark.parametrize("indent", ["yaml", "json", "json with tabs"])
def test_roo_codes_file_of_modes_is_read(workspace: Path, user: Path, indent: str) -> None:
    """S9: what Roo-Code's .roomodes holds; what is wrong with one mode does not take the others away."""
    import json

    import yaml

    text = ROO if indent == "yaml" else json.dumps(yaml.safe_load(ROO), indent="\t" if "tabs" in indent else 2)
    (workspace / ".roomodes").write_text(text)
    modes = load(workspace, user)
    mode = modes.get("translate")
    assert mode
    assert [(rule.group, rule.file_pattern) for rule in mode.groups] == [("read", None), ("edit", r"\.json$")]
    assert modes.get("broken") is None
    (trouble,) = modes.trouble
    assert trouble.startswith("`.roomodes`, line ")
    assert trouble.endswith("unknown group `edti`; did you mean `edit`?")
    assert indent != "yaml" or "line 15:" in trouble


def test_the_workspace_counts_over_the_user_and_both_over_what_is_built_in(workspace: Path, user: Path) -> None:
    """S9: override order; within the workspace, .tarmac/modes over .roomodes."""

    def text(name: str) -> str:
        return f'+++\nname = "{name}"\nrole = "r"\ngroups = ["read"]\n+++\n'

    (user / "modes/ask.md").write_text(text("user's"))
    (user / "modes/debug.md").write_text(text("user's"))
    (workspace / ".roomodes").write_text(
        '{"customModes": [{"slug": "ask", "name": "roo", "roleDefinition": "r", "groups": []}]}'
    )
    (workspace / ".tarmac/modes/ask.md").write_text(text("workspace's"))
    modes = load(workspace, user)
    assert {mode.slug: mode.name for mode in modes.all} == {
        "architect": "Architect",
        "code": "Code",
        "ask": "workspace's",
        "debug": "user's",
        "orchestrator": "Orchestrator",
    }
    assert modes.trouble == ()


def test_modes_of_the_repository_hold_in_its_folders_and_the_nearest_counts(workspace: Path, user: Path) -> None:
    """S9."""

    def text(name: str) -> str:
        return f'+++\nname = "{name}"\nrole = "r"\n+++\n'

    inner = workspace / "a/b"
    (inner / ".tarmac/modes").mkdir(parents=True)
    (workspace / ".git").mkdir()
    (workspace / ".tarmac/modes/one.md").write_text(text("top"))
    (workspace / ".tarmac/modes/two.md").write_text(text("top"))
    (inner / ".tarmac/modes/two.md").write_text(text("inner"))
    modes = load(inner, user)
    assert {mode.slug: (mode.name, mode.origin) for mode in modes.all[5:]} == {
        "one": ("top", "`../../.tarmac/modes/one.md`"),
        "two": ("inner", "`.tarmac/modes/two.md`"),
    }


def test_a_workspace_that_gives_a_known_mode_more_power_is_told_of(workspace: Path, user: Path) -> None:
    (workspace / ".tarmac/modes/ask.md").write_text(
        '+++\nname = "Ask"\nrole = "r"\ngroups = ["read", "command"]\n+++\n'
    )
    (workspace / ".tarmac/modes/architect.md").write_text('+++\nrole = "r"\ngroups = ["edit"]\n+++\n')
    assert load(workspace, user).trouble == (
        "`.tarmac/modes/architect.md`: this file gives Architect mode more tools than usual: edit",
        "`.tarmac/modes/ask.md`: this file gives Ask mode more tools than usual: command",
    )


@pytest.mark.parametrize(
    ("text", "trouble"),
    [
        ("You review.", "line 1: a mode file must begin with front matter"),
        ("+++\nname = 'x'\n", "line 1: a mode file must begin with front matter"),
        ("+++\nname = 'x'\n+++\n", "line 1: a mode needs a `role`"),
        ("+++\nname = 'x'\nrole = ''\n+++\n", "line 3: `role` must be text"),
        ("+++\nname = 'x'\nrole = 3\n+++\n", "line 3: `role` must be text"),
        ("+++\nname = 'x'\nrole = 'r\n+++\n", "line 3: "),
        ("+++\nname = 'x'\nrole = 'r'\ngruops = []\n+++\n", "line 4: `gruops` is unknown; did you mean `groups`?"),
        ("+++\nrole = 'r'\ngroups = 'read'\n+++\n", "line 3: `groups` must be a list"),
        ("+++\nrole = 'r'\ngroups = [\n 'read',\n 'read']\n+++\n", "line 3: the group `read` is listed twice"),
        (
            "+++\nrole = 'r'\ngroups = [['edit', {fileregex = 'x'}]]\n+++\n",
            "line 3: `fileregex` is unknown; did you mean",
        ),
        (
            "+++\nrole = 'r'\ngroups = [{group = 'edit', files = '('}]\n+++\n",
            "line 3: `(` is not a valid regular expression",
        ),
        (
            "+++\nrole = 'r'\ngroups = [{group = 'command', files = 'x'}]\n+++\n",
            "line 3: the group `command` can't have a file pattern",
        ),
        ("+++\nrole = 'r'\nslug = '../x'\n+++\n", "line 3: `../x` is not a valid slug"),
        ("+++\nrole = 'r'\ninstructions = 'a'\n+++\nb", "line 3: instructions are both in `instructions` and below"),
        ('+++\nrole = "r"\nname = "a\\u001b[2J"\n+++\n', "line 3: `name` must be one line"),
        ('+++\n"\\u001b[2J" = 1\n+++\n', "line 2: `\\x1b[2J` is unknown"),
        ("---\nrole: r\nrole: s\n---\n", "line 3: `role` occurs twice"),
        ("---\nrole: [r\n---\n", "line 3: "),
        ("---\nrole: &a r\nwhen: *a\n---\n", "line 2: references (& and *) are not supported"),
        ("---\n- role\n---\n", "line 2: not a map"),
        ("---\nrole: r\ngroups:\n  - read\n  - tools\n---\n", "line 5: unknown group `tools`"),
    ],
)
def test_a_file_that_makes_no_sense_is_told_of_with_its_line_and_left_out(
    workspace: Path, user: Path, text: str, trouble: str
) -> None:
    """S9: never fatal."""
    (workspace / ".tarmac/modes/x.md").write_text(text)
    modes = load(workspace, user)
    assert len(modes.all) == 5
    assert len(modes.trouble) == 1
    assert modes.trouble[0].startswith(f"`.tarmac/modes/x.md`, {trouble}")


def test_a_mode_that_leads_out_of_the_workspace_is_not_read(workspace: Path, user: Path, tmp_path: Path) -> None:
    (tmp_path / "x.md").write_text(REVIEW)
    (workspace / ".tarmac/modes/x.md").symlink_to(tmp_path / "x.md")
    modes = load(workspace, user)
    assert (len(modes.all), modes.trouble) == (5, ("`.tarmac/modes/x.md`: leads out of the workspace",))


def test_the_users_own_may_be_a_link_to_anywhere(workspace: Path, user: Path, tmp_path: Path) -> None:
    (tmp_path / "x.md").write_text(REVIEW)
    (user / "modes/x.md").symlink_to(tmp_path / "x.md")
    modes = load(workspace, user)
    assert (len(modes.all), modes.trouble) == (6, ())


def test_a_folder_and_a_pipe_and_nothing_at_all_are_no_modes(workspace: Path, user: Path) -> None:
    (workspace / ".tarmac/modes/a.md").mkdir()
    os.mkfifo(workspace / ".tarmac/modes/b.md")
    (workspace / ".tarmac/modes/c.md").symlink_to("nowhere.md")
    modes = load(workspace, user)
    assert len(modes.all) == 5
    assert [each.split(": ")[0] for each in modes.trouble] == ["`.tarmac/modes/b.md`", "`.tarmac/modes/c.md`"]


def test_deep_yaml_and_a_billion_laughs_are_harmless(workspace: Path, user: Path) -> None:
    laughs = "a: &a [x,x]\n" + "".join(f"b{n}: &b{n} [*a,*a]\n" for n in range(50))
    (workspace / ".roomodes").write_text("customModes: " + "[" * 100_000)
    (user / "custom_modes.yaml").write_text(laughs)
    assert len(load(workspace, user).trouble) == 2


@given(st.text(alphabet=st.sampled_from("+-=:[]{}'\"\n rolegups#&*!|>\t\\")) | st.text())
def test_no_text_breaks_the_reader(text: str) -> None:
    from tarmac.prompts.located import InvalidText
    from tarmac.prompts.mode import parse_mode

    for front in (text, f"+++\n{text}\n+++\n", f"---\n{text}\n---\n"):
        try:
            mode = parse_mode(front, slug="x", source="workspace", origin="x")
        except InvalidText as wrong:
            assert 1 <= wrong.line <= front.count("\n") + 2
        else:
            assert mode.role


@given(
    st.dictionaries(
        st.sampled_from(["role", "name", "when"]), st.text(alphabet=st.characters(codec="utf-8")), min_size=1
    )
)
def test_yaml_is_read_as_pyyaml_reads_it(data: dict[str, str]) -> None:
    import yaml

    from tarmac.prompts.located import read_yaml

    text = yaml.safe_dump(data, allow_unicode=True)
    assert read_yaml(text).data == yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def test_a_pattern_and_its_description_may_be_items_of_their_own(workspace: Path, user: Path) -> None:
    """As some of Roo-Code's users write it."""
    entry = "- - edit\n  - fileRegex: \\.json$\n  - description: JSON\n"
    (workspace / ".tarmac/modes/x.md").write_text(f"---\nrole: r\ngroups:\n{entry}---\n")
    (workspace / ".tarmac/modes/y.md").write_text(f"---\nrole: r\ngroups:\n{entry}  - fileRegex: \\.py$\n---\n")
    modes = load(workspace, user)
    mode = modes.get("x")
    assert mode
    assert mode.groups == (GroupRule(group="edit", file_pattern=r"\.json$", description="JSON"),)
    assert modes.trouble == (
        "`.tarmac/modes/y.md`, line 4: a group must be a name, or a name with `files` and `description`",
    )
