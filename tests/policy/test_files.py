"""What a name means: through symlinks and `..`, by an ignore file, by what the file is."""

import os
import socket
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tarmac.policy import PolicySettings, ReadFile, WriteFile
from tarmac.policy.files import Files, PathStatus, look

APPROVED = PolicySettings(auto_approve_read=True, auto_approve_write=True, auto_approve_write_outside=True)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A workspace with something in it."""
    place = tmp_path / "project"
    (place / "src").mkdir(parents=True)
    (place / "src" / "main.py").write_text("print()\n")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "other.txt").write_text("of another\n")
    return place


def seen(path: str | Path, here: Path) -> PathStatus:
    return look(path, cwd=here, workspace=here)


def test_an_ordinary_file_of_the_workspace_has_nothing_special(here: Path) -> None:
    """P8."""
    found = seen("src/main.py", here)
    assert (found.inside, found.exists, found.unread) == (True, True, "")
    assert found.path == here / "src" / "main.py"


@pytest.mark.parametrize("path", ["../elsewhere/other.txt", "src/../../elsewhere/other.txt", "/etc/hosts.allow", ".."])
def test_outside_is_outside_however_it_is_written(path: str, here: Path) -> None:
    """P8."""
    found = seen(path, here)
    assert not found.inside
    assert found.unread


def test_a_neighbour_whose_name_begins_alike_is_outside(here: Path) -> None:
    """P8: by whole parts, never by text."""
    assert not seen(f"{here}-old/notes.txt", here).inside
    assert seen(f"{here}/", here).inside


def test_a_symlink_that_leads_out_is_outside(here: Path, tmp_path: Path) -> None:
    """P8."""
    (here / "way").symlink_to(tmp_path / "elsewhere")
    (here / "chain").symlink_to("way")
    for path in ("way", "way/other.txt", "chain/other.txt", "way/new.txt", "chain/../project/../elsewhere/other.txt"):
        assert not seen(path, here).inside, path


def test_a_symlink_to_what_does_not_exist_yet_leads_out_too(here: Path, tmp_path: Path) -> None:
    """P8: writing through it would make the file there."""
    (here / "later").symlink_to(tmp_path / "elsewhere" / "not yet")
    found = seen("later", here)
    assert (found.inside, found.path) == (False, tmp_path / "elsewhere" / "not yet")


def test_dots_after_a_symlink_are_the_kernels_not_the_texts(here: Path, tmp_path: Path) -> None:
    """P8: `way/..` is the parent of where `way` leads."""
    (tmp_path / "elsewhere" / "deep").mkdir()
    (here / "way").symlink_to(tmp_path / "elsewhere" / "deep")
    found = seen("way/../other.txt", here)
    assert (found.inside, found.path) == (False, tmp_path / "elsewhere" / "other.txt")


def test_a_workspace_known_by_a_symlink_is_the_same_workspace(here: Path, tmp_path: Path) -> None:
    """P8."""
    other = tmp_path / "alias"
    other.symlink_to(here)
    for path in (here / "src/main.py", other / "src/main.py", "src/main.py"):
        assert look(path, cwd=other, workspace=other).inside
        assert look(path, cwd=here, workspace=other).inside
        assert look(path, cwd=other, workspace=here).inside
    assert look(".git/config", cwd=other, workspace=here).protected


@pytest.mark.parametrize(
    "path", ["loop", "loop/x", "src/main.py/x", "a\0b", "", "/proc/self/cwd/src/main.py", "x" * 5000]
)
def test_what_cannot_be_followed_is_trouble_and_means_no(path: str, here: Path) -> None:
    """P8: an error means no."""
    (here / "loop").symlink_to("loop")
    found = seen(path, here)
    assert found.trouble and found.unread and not found.inside


def test_a_folder_that_may_not_be_entered_means_no(here: Path) -> None:
    """P8."""
    if os.geteuid() == 0:  # root enters everything: a path through a name that is too long is as closed to it
        path = "src/" + "y" * 300 + "/x"
    else:
        (here / "closed").mkdir(mode=0)
        path = "closed/x"
    assert seen(path, here).trouble


def test_a_link_through_proc_means_another_thing_to_each_process(here: Path) -> None:
    """P8: what we see behind /proc/self is ours, not the command's."""
    (here / "mine").symlink_to("/proc/self/cwd")
    assert seen("mine/src/main.py", here).trouble


@pytest.mark.parametrize(
    "path",
    [
        ".git", ".git/hooks/pre-commit", "sub/.git/config", ".GIT/config", ".g\u200cit/config", ".tarmac/rules/a.md",
        ".tarmacignore", "AGENTS.md", "agents.md", "docs/CLAUDE.md", ".claude/settings.json", ".cursor/mcp.json",
        ".roo/rules", ".vscode/tasks.json", "x.code-workspace", ".mcp.json", ".github/workflows/ci.yml", ".bashrc",
        ".husky/pre-commit", ".envrc", "src/../.git/config", "./.git/config", "src/..//.git//config",
    ],
)  # fmt: skip
def test_a_protected_file_is_protected_also_when_it_does_not_exist_yet(path: str, here: Path) -> None:
    """P8."""
    found = seen(path, here)
    assert found.protected, path
    verdict = Files().judge(WriteFile(Path(path)), workspace=here, settings=APPROVED)
    assert (verdict.decision, verdict.risk) == ("ask", "high")


@pytest.mark.parametrize(
    "path", [".gitignore", "git/config", "my.git.txt", "agents/main.py", "claude.py", "src/.gitkeep"]
)
def test_names_that_only_resemble_protected_ones_are_not(path: str, here: Path) -> None:
    """P8."""
    assert not seen(path, here).protected


def test_a_link_to_a_protected_file_and_a_protected_name_that_is_a_link_are_both_protected(here: Path) -> None:
    """P8."""
    (here / ".git").mkdir()
    (here / ".git" / "config").write_text("")
    (here / "notes.txt").symlink_to(".git/config")
    (here / "AGENTS.md").symlink_to("src/main.py")
    assert seen("notes.txt", here).protected
    assert seen("AGENTS.md", here).protected


def test_a_workspace_below_a_folder_with_a_protected_name_is_not_all_protected(tmp_path: Path) -> None:
    """P8: names count from the workspace on."""
    here = tmp_path / ".vscode" / "extensions" / "mine"
    here.mkdir(parents=True)
    assert not seen("main.ts", here).protected


@pytest.mark.parametrize(
    "path", [".env", "app/.env.local", "keys/server.pem", "/etc/shadow", "id_rsa", "/proc/1/environ"]
)
def test_a_credential_is_asked_about_whatever_is_approved(path: str, here: Path) -> None:
    """P8."""
    verdict = Files().judge(ReadFile(Path(path)), workspace=here, settings=APPROVED)
    assert (verdict.decision, verdict.risk, verdict.rule) == ("ask", "high", "file.credential")


@pytest.mark.parametrize("path", [".env.example", "id_rsa.pub", "environment.py", "keyboard.py", "src/etc/shadow"])
def test_what_only_looks_like_a_credential_is_none(path: str, here: Path) -> None:
    """P8."""
    assert not seen(path, here).credential


def test_a_file_with_a_second_name_is_not_written_or_read_unasked(here: Path, tmp_path: Path) -> None:
    """P8: a hard link may be a file of another place, and nobody can tell of which."""
    os.link(tmp_path / "elsewhere" / "other.txt", here / "same.txt")
    assert seen("same.txt", here).linked
    for action in (ReadFile(Path("same.txt")), WriteFile(Path("same.txt"))):
        assert Files().judge(action, workspace=here, settings=APPROVED).decision == "ask"


def test_shared_copies_in_package_folders_are_ordinary(here: Path) -> None:
    """P8: pnpm and uv make hard links by the thousand."""
    (here / "node_modules").mkdir()
    os.link(here / "src" / "main.py", here / "node_modules" / "a.js")
    assert not seen("node_modules/a.js", here).linked
    assert seen("src/main.py", here).linked


def test_pipes_sockets_and_devices_are_no_files(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """P8."""
    os.mkfifo(here / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        monkeypatch.chdir(here)  # a socket's name is short
        listener.bind("door")
    for path in ("pipe", "door"):
        assert seen(path, here).special
        assert Files().judge(ReadFile(Path(path)), workspace=here, settings=APPROVED).decision == "deny"


def test_case_counts_as_it_does_on_the_disk(here: Path) -> None:
    """P8: `ignore_case` is how macOS looks at names."""
    (here / ".tarmacignore").write_text("Secret.txt\n")
    mac, linux = Files(ignore_case=True), Files(ignore_case=False)
    shouted = Path(str(here).upper())
    assert mac.look(here / "SECRET.TXT", cwd=here, workspace=here).ignored
    assert not linux.look(here / "SECRET.TXT", cwd=here, workspace=here).ignored
    assert mac.look(shouted / "a.txt", cwd=here, workspace=here).inside
    assert not linux.look(shouted / "a.txt", cwd=here, workspace=here).inside


def test_tarmacs_own_folders_are_closed_to_tools(here: Path, tmp_path: Path) -> None:
    """P8."""
    own = here / "state"
    own.mkdir()
    (here / "way").symlink_to("state")
    files = Files(own=[own])
    for action in (ReadFile(own / "grants.json"), WriteFile(Path("way/grants.json"))):
        assert files.judge(action, workspace=here, settings=APPROVED).decision == "deny"


@pytest.mark.parametrize(
    ("action", "settings", "decision", "risk"),
    [
        (ReadFile(Path("src/main.py")), PolicySettings(auto_approve_read=False), "ask", "low"),
        (ReadFile(Path("src/main.py")), PolicySettings(), "allow", "low"),
        (ReadFile(Path("src/main.py")), APPROVED, "allow", "low"),
        (WriteFile(Path("src/main.py")), PolicySettings(), "ask", "medium"),
        (WriteFile(Path("src/new.py")), APPROVED, "allow", "medium"),
        (WriteFile(Path("../elsewhere/other.txt")), PolicySettings(auto_approve_write=True), "ask", "high"),
        (WriteFile(Path("../elsewhere/other.txt")), APPROVED, "allow", "high"),
        (ReadFile(Path("../elsewhere/other.txt")), APPROVED, "ask", "medium"),
        (ReadFile(Path("/etc/hosts")), APPROVED, "allow", "low"),
        (WriteFile(Path("/etc/hosts")), PolicySettings(auto_approve_write=True), "ask", "high"),
    ],
)
def test_only_reading_the_workspace_is_approved_until_a_person_says_more(
    action: ReadFile | WriteFile, settings: PolicySettings, decision: str, risk: str, here: Path
) -> None:
    """P7: reading and writing; the other kinds, limits and the audit log come with tasks."""
    verdict = Files().judge(action, workspace=here, settings=settings)
    assert (verdict.decision, verdict.risk) == (decision, risk)


def test_an_explanation_says_what_would_happen_and_where(here: Path, tmp_path: Path) -> None:
    """P6."""
    said = [
        Files().judge(action, workspace=here, settings=APPROVED).explanation
        for action in (
            WriteFile(Path("new.py")),
            WriteFile(Path("src/main.py")),
            ReadFile(Path("../elsewhere/other.txt")),
        )
    ]
    assert said == [
        f"makes the file {here}/new.py",
        f"changes the file {here}/src/main.py",
        f"reads the file {tmp_path}/elsewhere/other.txt, outside of the workspace",
    ]


parts = st.sampled_from([".", "..", "src", "main.py", "way", "new", ".git", "loop", "/", "elsewhere"])


@given(st.lists(parts, max_size=8))
@example(["..", "src", "..", "elsewhere", "new"])  # a link behind what does not exist
@example(["main.py", "..", "way"])
def test_what_is_said_to_be_inside_is_inside_by_the_kernels_word(
    tmp_path_factory: pytest.TempPathFactory, names: list[str]
) -> None:
    """P8: for any path, the answer is that of realpath, or trouble."""
    top = _tree(tmp_path_factory)
    here = top / "project"
    path = "/".join(names) or "."
    found = look(path, cwd=here, workspace=here)
    real = Path(os.path.realpath(here / path))
    if not found.trouble:
        assert found.path == real
        assert found.inside == (real == here or here in real.parents)
    inside_only = PolicySettings(auto_approve_write=True)
    if Files().judge(WriteFile(Path(path)), workspace=here, settings=inside_only).decision == "allow":
        assert here in (real, *real.parents) and ".git" not in real.parts


@given(st.text(max_size=60))
def test_no_name_at_all_makes_it_fail(tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    """P8."""
    here = _tree(tmp_path_factory) / "project"
    assert isinstance(look(name, cwd=here, workspace=here), PathStatus)
    assert Files().judge(WriteFile(Path(name)), workspace=here, settings=PolicySettings()).decision != "allow"


def _tree(factory: pytest.TempPathFactory) -> Path:
    """One tree for all examples: none changes it."""
    top = factory.getbasetemp() / "tree"
    if not top.exists():
        (top / "project" / "src").mkdir(parents=True)
        (top / "project" / ".git").mkdir()
        (top / "project" / "src" / "main.py").write_text("")
        (top / "elsewhere").mkdir()
        (top / "project" / "way").symlink_to("../elsewhere")
        (top / "elsewhere" / "new").symlink_to("../project/.git")
        (top / "project" / "loop").symlink_to("loop")
    return top
