"""Files that people wrote for agents: which are read, in which order, and what is done about bad ones."""

import os
from pathlib import Path

import pytest

from tarmac.prompts.instructions import LONGEST, MOST, read_instructions, read_replacement


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    made = tmp_path / "workspace"
    made.mkdir()
    return made


@pytest.fixture
def user(tmp_path: Path) -> Path:
    made = tmp_path / "user"
    made.mkdir()
    return made


def write(root: Path, *names: str) -> None:
    """Files that say their own names."""
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"I am {name} of {root.name}\n")


def test_all_kinds_are_read_in_their_order(workspace: Path, user: Path) -> None:
    """S7: the user's, the project's, those of the mode."""
    write(user, "AGENTS.md", "rules/a.md", "rules-code/b.md", "rules-ask/no.md")
    write(
        workspace,
        *("AGENTS.md", "AGENT.md", "AGENTS.local.md", "CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md"),
        *(".tarmac/rules/2.md", ".tarmac/rules/10.md", ".tarmac/rules/deep/3.md", ".tarmac/rules/.hidden.md"),
        *(
            ".tarmac/rules/x.py",
            ".tarmac/rules/old.md~",
            ".roo/rules/r.txt",
            ".roorules",
            ".clinerules",
            ".roo-code/c.md",
        ),
        *(".tarmac/rules-code/m.md", ".roo/rules-code/n.md", ".roorules-code", ".tarmac/rules-ask/no.md"),
    )
    found = read_instructions(workspace, user, "code")
    assert found.trouble == ()
    assert [each.text for each in found.files] == [
        *("I am AGENTS.md of user", "I am rules/a.md of user", "I am rules-code/b.md of user"),
        *("I am AGENTS.md of workspace", "I am AGENTS.local.md of workspace", "I am CLAUDE.md of workspace"),
        "I am CLAUDE.local.md of workspace",
        *("I am .tarmac/rules/10.md of workspace", "I am .tarmac/rules/2.md of workspace"),
        "I am .tarmac/rules/deep/3.md of workspace",
        *("I am .roo/rules/r.txt of workspace", "I am .roo-code/c.md of workspace"),
        *("I am .tarmac/rules-code/m.md of workspace", "I am .roo/rules-code/n.md of workspace"),
    ]
    assert [each.name for each in found.files][3:6] == ["`AGENTS.md`", "`AGENTS.local.md`", "`CLAUDE.md`"]
    assert [each.theirs for each in found.files] == [True] * 3 + [False] * 11


def test_older_names_count_where_the_newer_are_missing(workspace: Path, user: Path) -> None:
    """S7: as Roo-Code does."""
    write(workspace, "AGENT.md", ".claude/CLAUDE.md", ".clinerules/one.md", ".roorules-code")
    names = [each.name for each in read_instructions(workspace, user, "code").files]
    assert names == ["`AGENT.md`", "`.claude/CLAUDE.md`", "`.clinerules/one.md`", "`.roorules-code`"]


def test_a_copy_or_a_link_within_the_workspace_is_told_once(workspace: Path, user: Path) -> None:
    write(workspace, "AGENTS.md", "docs/agents.md")
    (workspace / "CLAUDE.md").symlink_to("AGENTS.md")
    (workspace / "CLAUDE.local.md").symlink_to("docs/agents.md")
    found = read_instructions(workspace, user, "code")
    assert [each.name for each in found.files] == ["`AGENTS.md`", "`CLAUDE.local.md`"]
    assert found.trouble == ()


def test_what_should_not_be_read_is_not_and_is_told_of(workspace: Path, user: Path, tmp_path: Path) -> None:
    """S7, P8: out of the workspace, secret, hidden, into .git, a pipe, binary, not UTF-8, nothing, unreadable."""
    outside = tmp_path / "outside"
    write(outside, "secret.md", "folder/secret.md")
    write(workspace, ".env", ".git/config", "hidden.md", "pl.md")
    (workspace / ".tarmacignore").write_text("hidden.md\n")
    rules = workspace / ".tarmac/rules"
    rules.mkdir(parents=True)
    (workspace / "AGENTS.md").symlink_to(outside / "secret.md")
    (workspace / "CLAUDE.md").symlink_to(".env")
    (workspace / "CLAUDE.local.md").symlink_to(".git/config")
    (workspace / "AGENTS.local.md").symlink_to("hidden.md")
    (rules / "folder").symlink_to(outside / "folder")
    (rules / "loop.md").symlink_to("loop.md")
    (rules / "none.md").symlink_to("nowhere")
    (rules / "dots.md").symlink_to("../../../outside/secret.md")
    os.mkfifo(rules / "pipe.md")
    (rules / "binary.md").write_bytes(b"a\0b")
    (rules / "latin.md").write_bytes(b"caf\xe9")
    (rules / "good.md").write_bytes(b"\xef\xbb\xbfgood\r\nlines\r\n")
    found = read_instructions(workspace, user, "code")
    assert [(each.name, each.text) for each in found.files] == [("`.tarmac/rules/good.md`", "good\nlines")]
    assert found.hides_files
    assert {each.split(": ")[0].split("/")[-1].strip("`"): each.split(": ", 1)[1] for each in found.trouble} == {
        "AGENTS.md": "leads out of the workspace",
        "CLAUDE.md": "it often holds secrets",
        "CLAUDE.local.md": "leads into `.git`",
        "AGENTS.local.md": ".tarmacignore hides it (hidden.md)",
        "folder": "leads out of the workspace",
        "loop.md": "nobody can tell what it leads to: too many levels of symbolic links",
        "none.md": "is a link to a missing file",
        "dots.md": "leads out of the workspace",
        "pipe.md": "it is a device, a pipe or a socket",
        "binary.md": "is binary",
        "latin.md": "is not UTF-8",
    }


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_told_of(workspace: Path, user: Path) -> None:
    write(workspace, "AGENTS.md")
    (workspace / "AGENTS.md").chmod(0)
    assert read_instructions(workspace, user, "code").trouble == ("`AGENTS.md`: can't be read: permission denied",)


def test_folders_that_lead_back_to_themselves_end(workspace: Path, user: Path) -> None:
    write(workspace, ".tarmac/rules/a/one.md")
    (workspace / ".tarmac/rules/a/back").symlink_to("..")
    (workspace / ".tarmac/rules/self").symlink_to(".")
    found = read_instructions(workspace, user, "code")
    assert [each.name for each in found.files] == ["`.tarmac/rules/a/one.md`"]


def test_a_huge_file_is_cut_and_says_how_much_is_missing(workspace: Path, user: Path) -> None:
    """S7: bounded."""
    (workspace / "AGENTS.md").write_text("é" * (LONGEST + 5_000))
    (file,) = read_instructions(workspace, user, "code").files
    assert (file.text, file.left_out) == ("é" * LONGEST, 5_000)


def test_a_giant_that_nobody_could_read_costs_nothing(workspace: Path, user: Path) -> None:
    with (workspace / "AGENTS.md").open("wb") as file:
        file.write(b"x" * LONGEST * 8)
        file.truncate(1 << 40)  # a hole: no disk is used
    (found,) = read_instructions(workspace, user, "code").files
    assert len(found.text) == LONGEST
    assert found.left_out > 1 << 39


def test_all_together_are_bounded(workspace: Path, user: Path) -> None:
    for number in range(300):
        write(workspace, f".tarmac/rules/{number}.md")
        (workspace / f".tarmac/rules/{number}.md").write_text(f"{number:04}" * 1_000)
    found = read_instructions(workspace, user, "code")
    assert sum(len(each.text) for each in found.files) == MOST
    assert any("all instructions together" in each for each in found.trouble)
    assert any("more than 200 files" in each for each in found.trouble)


@pytest.mark.parametrize("mode", ["../rules", "a/b", "", ".", "x" * 100, "\0"])
def test_a_mode_that_is_no_slug_leads_nowhere(workspace: Path, user: Path, mode: str) -> None:
    write(workspace, "AGENTS.md", "rules/x.md")
    assert [each.name for each in read_instructions(workspace, user, mode).files] == ["`AGENTS.md`"]
    assert read_replacement(workspace, user, mode) == (None, ())


def test_a_workspace_that_is_not_there_has_no_instructions(tmp_path: Path) -> None:
    found = read_instructions(tmp_path / "no", tmp_path / "neither", "code")
    assert (found.files, found.hides_files, found.trouble) == ((), False, ())


# Below the top of a repository


def test_in_a_folder_of_a_repository_what_stands_above_is_read_first(workspace: Path, user: Path) -> None:
    """S7."""
    inner = workspace / "a/b"
    write(workspace.parent, "AGENTS.md")
    write(workspace, "AGENTS.md", ".git/HEAD", ".tarmac/rules/x.md", ".tarmac/rules-code/y.md")
    write(inner, "AGENTS.md", ".tarmac/rules-code/z.md")
    (inner.parent / "CLAUDE.md").symlink_to("../../AGENTS.md")
    found = read_instructions(inner, user, "code")
    assert [each.name for each in found.files] == [
        *("`../../AGENTS.md`", "`../../.tarmac/rules/x.md`", "`AGENTS.md`"),
        *("`../../.tarmac/rules-code/y.md`", "`.tarmac/rules-code/z.md`"),
    ]
    assert found.trouble == ("`../CLAUDE.md`: leads out of the workspace",)


def test_without_a_repository_nothing_above_is_read(workspace: Path, user: Path) -> None:
    write(workspace, "AGENTS.md", "a/x.py")
    assert read_instructions(workspace / "a", user, "code").files == ()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
@pytest.mark.parametrize("given_away", [".git", "."])
def test_a_repository_that_somebody_else_put_around_ones_work_is_not_read(
    workspace: Path, user: Path, given_away: str
) -> None:
    write(workspace, "AGENTS.md", ".git/HEAD", "a/x.py")
    os.chown(workspace / given_away, 12345, 12345)
    assert read_instructions(workspace / "a", user, "code").files == ()


# A file in place of the prompt


def test_the_workspaces_file_replaces_the_prompt_then_roo_codes_then_the_users(workspace: Path, user: Path) -> None:
    """S7."""
    places = [
        (user, "system-prompt-code.md"),
        (workspace, ".roo/system-prompt-code"),
        (workspace, ".tarmac/system-prompt-code.md"),
    ]
    assert read_replacement(workspace, user, "code") == (None, ())
    for root, name in places:
        write(root, name)
        found, trouble = read_replacement(workspace, user, "code")
        assert found
        assert (found.text, found.theirs, trouble) == (f"I am {name} of {root.name}", root == user, ())
    assert read_replacement(workspace, user, "ask") == (None, ())


def test_a_replacement_that_leads_out_of_the_workspace_is_passed_over(workspace: Path, user: Path) -> None:
    write(user, "system-prompt-code.md")
    (workspace / ".tarmac").mkdir()
    (workspace / ".tarmac/system-prompt-code.md").symlink_to(user / "system-prompt-code.md")
    found, trouble = read_replacement(workspace, user, "code")
    assert found
    assert found.theirs
    assert trouble == ("`.tarmac/system-prompt-code.md`: leads out of the workspace",)
