"""`tarmac grants`: listed and taken back."""

import json
from pathlib import Path

import pytest
from tests.cli.conftest import tarmac

from tarmac.cli.grants import grants_path
from tarmac.events import TaskId
from tarmac.policy import SuggestedGrant
from tarmac.policy.grants import GrantFile

pytestmark = pytest.mark.slow


@pytest.fixture
def file(tmp_path: Path) -> GrantFile:
    """The user's own, with one of each kind."""
    file = GrantFile(grants_path())
    file.add(SuggestedGrant("line", "make all"), scope="workspace", risk="low", workspace=tmp_path)
    file.add(SuggestedGrant("prefix", "git push", ("git", "push")), scope="everywhere", risk="medium")
    file.add(SuggestedGrant("line", "for a in 1 2\ndo ls\ndone"), scope="task", risk="low", task=TaskId("t-7"))
    return file


@pytest.mark.parametrize("arguments", [(), ("list",)])
def test_it_lists_id_date_place_and_line(arguments: tuple[str, ...], file: GrantFile, tmp_path: Path) -> None:
    """P5."""
    outcome = tarmac("grants", *arguments)
    one, two, three = file.listing()
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.splitlines() == [
        f"{one.id}  {one.granted[:10]}  in {tmp_path}", "    make all",
        f"{two.id}  {two.granted[:10]}  everywhere", "    git push …",
        f"{three.id}  {three.granted[:10]}  in task t-7", "    for a in 1 2", "    do ls", "    done",
    ]  # fmt: skip


def test_json_is_one_object_a_grant(file: GrantFile, tmp_path: Path) -> None:
    """A5."""
    listed = [json.loads(line) for line in tarmac("grants", "list", "--json").out.splitlines()]
    assert [(each["kind"], each["text"], each["words"], each["scope"]) for each in listed] == [
        ("line", "make all", [], "workspace"),
        ("prefix", "git push", ["git", "push"], "everywhere"),
        ("line", "for a in 1 2\ndo ls\ndone", [], "task"),
    ]
    here = tarmac("grants", "list", "--json", "--workspace", str(tmp_path))
    assert [json.loads(line)["text"] for line in here.out.splitlines()] == ["make all"]


def test_one_is_taken_back_by_its_id(file: GrantFile) -> None:
    """P5."""
    second = file.listing()[1]
    outcome = tarmac("grants", "revoke", second.id)
    assert (outcome.code, outcome.out) == (0, "taken back: git push … (everywhere)\n")
    assert second not in file.listing()
    again = tarmac("grants", "revoke", second.id)
    assert (again.code, again.err) == (
        2,
        f"tarmac: there is no grant `{second.id}`\n  hint: `tarmac grants list` shows their ids\n",
    )


def test_all_are_taken_back_or_those_of_a_task(file: GrantFile) -> None:
    """P5."""
    assert tarmac("grants", "clear", "--task", "t-7").out == "1 grant was taken back\n"
    assert json.loads(tarmac("grants", "clear", "--json").out) == {"revoked": 2}
    assert tarmac("grants").out == "there are no grants\n"


def test_a_damaged_file_is_said_and_put_aside(file: GrantFile) -> None:
    """P5."""
    file.path.write_text("nonsense")
    outcome = tarmac("grants")
    assert (outcome.code, outcome.out) == (125, "")
    assert "are damaged" in outcome.err and "hint: " in outcome.err
    assert tarmac("grants", "clear").code == 0
    assert tarmac("grants").out == "there are no grants\n"
    assert [each.read_text() for each in file.path.parent.glob("*.damaged-*")] == ["nonsense"]


@pytest.mark.parametrize(
    ("arguments", "what", "hint"),
    [
        (["lsit"], "`lsit` is not a command of `tarmac grants`", "did you mean `list`?"),
        (["revoke"], "`grants revoke` takes one id", "tarmac grants list"),
        (["list", "x"], "`grants list` takes no `x`", "revoke ID"),
        (["--jsn"], "there is no option `--jsn`", "did you mean `--json`?"),
    ],
)
def test_nonsense_is_answered_by_what_is_wrong(arguments: list[str], what: str, hint: str) -> None:
    outcome = tarmac("grants", *arguments)
    first, second = outcome.err.splitlines()
    assert (outcome.code, first) == (2, f"tarmac: {what}")
    assert hint in second


def test_it_has_a_page_of_its_own() -> None:
    outcome = tarmac("help", "grants")
    assert outcome.code == 0
    for wanted in ("list", "revoke", "clear", "--workspace", "--json", "125"):
        assert wanted in outcome.out
    assert max(map(len, outcome.out.splitlines())) <= 90


def test_a_person_allows_a_command_for_good_from_the_shell(tmp_path: Path) -> None:
    """P5: where nobody can be asked, a person can have said yes before; never to what is critical."""
    line = tarmac("grants", "allow", "--workspace", str(tmp_path), "--", "npm test")
    prefix = tarmac("grants", "allow", "--prefix", "--everywhere", "--json", "--", "make", "lint")
    assert (line.code, line.out.startswith("allowed: npm test (in ")) == (0, True)
    assert json.loads(prefix.out)["allowed"]["words"] == ["make", "lint"]
    file = GrantFile(grants_path())
    assert file.covers_line("npm test", cwd=tmp_path, workspace=tmp_path, task=None)
    assert not file.covers_line("npm test", cwd=tmp_path, workspace=tmp_path.parent, task=None)
    assert file.covers_words(("make", "lint", "-j2"), workspace=tmp_path.parent, task=None)
    for wrong in (
        ["--", "rm -rf .git"],
        ["--", "rm -rf /"],
        ["--prefix", "--", "sudo"],
        [],
        ["--task", "t", "--", "ls"],
    ):
        assert tarmac("grants", "allow", *wrong).code == 2
    assert tarmac("grants", "list", "--prefix").code == 2
    assert len(file.listing()) == 2
