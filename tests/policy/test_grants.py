"""What was allowed for good: what can be, where it holds, and how the file is kept."""

import fcntl
import json
import os
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarmac.errors import BadRequest, StateUnavailable
from tarmac.events import TaskId
from tarmac.policy import Grants, Part, Risk, SuggestedGrant
from tarmac.policy.grants import GrantFile, Scope, fits, refusal, suggest

TASK = TaskId("task-1")


@pytest.fixture
def file(tmp_path: Path) -> GrantFile:
    return GrantFile(tmp_path / "state" / "grants.json")


def line(text: str) -> SuggestedGrant:
    return SuggestedGrant("line", text)


def prefix(text: str) -> SuggestedGrant:
    return SuggestedGrant("prefix", text, tuple(text.split()))


def covers(file: GrantFile, text: str, here: Path, task: TaskId | None = None) -> bool:
    """Whether the line, or its words, are covered."""
    words = tuple(text.split())
    by_line = file.covers_line(text, cwd=here, workspace=here, task=task)
    return bool(by_line or file.covers_words(words, workspace=here, task=task))


def part(text: str, risk: Risk = "medium", *, words: bool = True, decision: str = "ask") -> Part:
    return Part(
        text,
        tuple(text.split()) if words else None,
        decision="ask" if decision == "ask" else "allow",
        risk=risk,
        reason="",
        explanation="",
        rule="",
    )


# What a grant covers


def test_it_is_what_the_policy_asks(file: GrantFile) -> None:
    """P5: the protocol of policy.py."""
    asked: Grants = file
    assert asked.trouble is None


def test_an_exact_line_covers_that_line_and_no_other(file: GrantFile, tmp_path: Path) -> None:
    """P5."""
    file.add(line("npm test"), scope="everywhere", risk="medium")
    assert covers(file, "npm test", tmp_path)
    for other in ("npm test ", " npm test", "npm test x", "npm tests", "NPM test", "npm  test", "npm test; x"):
        assert not file.covers_line(other, cwd=tmp_path, workspace=tmp_path, task=None), other


def test_a_prefix_covers_whole_words(file: GrantFile, tmp_path: Path) -> None:
    """P4."""
    file.add(prefix("git push"), scope="everywhere", risk="high")
    assert covers(file, "git push origin main", tmp_path)
    for other in ("git pushes", "git pu", "git", "/usr/bin/git push", "gitpush", "x git push"):
        assert not covers(file, other, tmp_path), other


@pytest.mark.parametrize(
    ("scope", "here", "task", "covered"),
    [
        ("everywhere", "b", "task-2", True),
        ("workspace", "a", "task-2", True),
        ("workspace", "b", "task-1", False),
        ("workspace", "a/sub", "task-1", False),
        ("task", "b", "task-1", True),
        ("task", "a", "task-2", False),
        ("task", "a", None, False),
        ("once", "a", "task-1", True),
        ("once", "a", "task-2", False),
    ],
)
def test_a_grant_holds_where_it_was_given(
    file: GrantFile, tmp_path: Path, scope: Scope, here: str, task: str | None, covered: bool
) -> None:
    """P5."""
    file.add(line("make"), scope=scope, risk="medium", workspace=tmp_path / "a", task=TASK)
    found = file.covers_line("make", cwd=tmp_path, workspace=tmp_path / here, task=TaskId(task) if task else None)
    assert bool(found) is covered


def test_a_workspace_is_the_same_by_another_name(file: GrantFile, tmp_path: Path) -> None:
    """P5."""
    (tmp_path / "a").mkdir()
    (tmp_path / "alias").symlink_to("a")
    file.add(line("make"), scope="workspace", risk="medium", workspace=tmp_path / "alias")
    assert covers(file, "make", tmp_path / "a")


def test_once_is_used_up_and_never_stored(file: GrantFile, tmp_path: Path) -> None:
    """P5."""
    granted = file.add(line("make"), scope="once", risk="medium")
    assert not covers(GrantFile(file.path), "make", tmp_path)
    assert file.covers_line("make", cwd=tmp_path, workspace=tmp_path, task=None) == granted.id
    file.use(granted.id)
    assert not covers(file, "make", tmp_path)


# What can't be granted


@pytest.mark.parametrize(
    "words",
    [
        "bash", "sh", "zsh -c", "python3", "python3.11 -c", "/usr/bin/python3", "node -e", "env", "xargs", "sudo",
        "sudo ls", "git", "git -c", "git -C x", "/usr/bin/git", "git config", "npm", "npm run", "npx", "make",
        "make -f", "find",
        "find .", "ssh", "ssh host", "docker", "docker run", "docker exec", "kubectl exec", "tarmac", "tarmac check",
        "uv run", "uv run python", "eval", "timeout 5", "awk", "sed -n", "tar", "perl x.pl", "FOO=1", "A=b ls",
        "python -m",
        "python -m pdb", "ls\u200b", "vim", "command", "./env", "nohup x", "watch ls", "",
    ],
)  # fmt: skip
def test_a_launcher_cannot_be_granted_by_its_first_word(file: GrantFile, words: str) -> None:
    """P5: nor by words after which it can still run anything."""
    with pytest.raises(BadRequest, match="can't be allowed for good"):
        file.add(prefix(words), scope="everywhere", risk="medium")
    assert file.listing() == ()


@pytest.mark.parametrize(
    "words",
    ["git push", "npm test", "npm run test", "make test", "pytest", "cargo build", "python manage.py",
     "python3 -m pytest", "bash build.sh", "docker ps", "docker compose up", "uv run pytest", "ls", "kubectl get"],
)  # fmt: skip
def test_a_named_thing_can_be_granted(words: str) -> None:
    """P5."""
    assert refusal(words.split()) == ""


@pytest.mark.parametrize("extra", ["-f /tmp/other", "SHELL=/tmp/x", "--eval=x", "-C /tmp", "-sf /tmp/x", "$(x)"])
def test_a_target_of_make_is_no_other_makefile(extra: str) -> None:
    """P4."""
    assert fits(("make", "test"), ["make", "test", "-j8", "lint"])
    assert not fits(("make", "test"), ["make", "test", *extra.split()])


def test_critical_is_never_granted(file: GrantFile) -> None:
    """P5."""
    with pytest.raises(BadRequest, match="critical"):
        file.add(line("rm -rf build"), scope="once", risk="critical")


@pytest.mark.parametrize(
    "text", ["tarmac grants clear", "cd x && /usr/bin/tarmac run y", "ls\x1b[8m", "ls\u202e", "", " ", "x" * 5000]
)
def test_lines_that_nobody_could_judge_by_looking_are_not_granted(file: GrantFile, text: str) -> None:
    """P5, P6."""
    with pytest.raises(BadRequest):
        file.add(line(text), scope="everywhere", risk="low")


@pytest.mark.parametrize(
    ("text", "parts", "risk", "offered"),
    [
        ("npm test", [part("npm test")], "medium", ["npm test", "npm test …"]),
        ("git push origin main", [part("git push origin main")], "medium", ["git push origin main", "git push …"]),
        ("pytest -x a.py", [part("pytest -x a.py")], "medium", ["pytest -x a.py", "pytest …"]),
        ("make test", [part("make test")], "medium", ["make test", "make test …"]),
        ("python manage.py migrate", [part("python manage.py migrate")], "medium",
         ["python manage.py migrate", "python manage.py …"]),
        ("npm run build -- -w", [part("npm run build -- -w")], "medium", ["npm run build -- -w", "npm run build …"]),
        ("rm notes", [part("rm notes")], "medium", ["rm notes"]),
        ("cat ../x", [part("cat ../x", "low")], "low", ["cat ../x"]),
        ("git diff --no-index a b", [part("git diff --no-index a b")], "medium", ["git diff --no-index a b"]),
        ("npm test > out", [replace(part("npm test"), text="npm test > out")], "medium", ["npm test > out"]),
        ("X=1 npm test", [replace(part("npm test"), text="X=1 npm test")], "medium", ["X=1 npm test"]),
        ("git reset --hard", [part("git reset --hard", "high")], "high", ["git reset --hard"]),
        ("find . -delete", [part("find . -delete")], "medium", ["find . -delete"]),
        ("ls; npm test", [part("ls", "low", decision="allow"), part("npm test")], "medium",
         ["ls; npm test", "npm test …"]),
        ("npm ci; npm test", [part("npm ci"), part("npm test")], "medium", ["npm ci; npm test"]),
        ("rm -rf x", [part("rm -rf x", "critical")], "critical", []),
        ("echo $X", [part("echo $X", words=False)], "medium", []),
        ("tarmac run x", [part("tarmac run x")], "medium", []),
        ("ls\u200b", [part("ls")], "medium", []),
    ],
)  # fmt: skip
def test_what_always_would_store_is_the_line_and_where_it_makes_sense_a_prefix(
    text: str, parts: list[Part], risk: Risk, offered: list[str]
) -> None:
    """P5, P6."""
    found = suggest(text, parts, risk=risk)
    assert [each.text + (" …" if each.kind == "prefix" else "") for each in found] == offered


words = st.lists(
    st.sampled_from(["git", "npm", "run", "-c", "bash", "x.sh", "sudo", "env", "python3", "-m", "test", "ls"]),
    min_size=1,
    max_size=4,
)


@settings(deadline=None)  # it writes files
@given(words)
def test_all_that_is_suggested_can_be_stored(tmp_path_factory: pytest.TempPathFactory, words: list[str]) -> None:
    """P5."""
    text = " ".join(words)
    file = GrantFile(tmp_path_factory.getbasetemp() / "suggested" / "grants.json")
    for each in suggest(text, [part(text)], risk="medium"):
        granted = file.add(each, scope="everywhere", risk="medium")
        assert covers(file, text, Path("/"))
        file.revoke(granted.id)


@given(words, words)
def test_a_prefix_never_covers_a_line_that_does_not_begin_with_it(a: list[str], b: list[str]) -> None:
    """P4."""
    assert not fits(a, b) or b[: len(a)] == a


# The file


def test_what_is_granted_is_listed_with_its_date_and_taken_back(tmp_path: Path) -> None:
    """P5."""
    file = GrantFile(tmp_path / "grants.json", now=lambda: 1_794_787_205.0)
    first = file.add(line("make"), scope="workspace", risk="medium", workspace=tmp_path, origin="web")
    second = file.add(prefix("git push"), scope="task", risk="medium", task=TASK)
    assert file.add(line("make"), scope="workspace", risk="medium", workspace=tmp_path) == first
    assert [(each.text, each.where, each.granted) for each in GrantFile(file.path).listing()] == [
        ("make", f"in {tmp_path}", "2026-11-16T00:00:05Z"),
        ("git push", "in task task-1", "2026-11-16T00:00:05Z"),
    ]
    assert file.revoke(first.id[:5]) == first
    assert file.listing() == (second,)
    with pytest.raises(BadRequest, match="no grant"):
        file.revoke(first.id)
    with pytest.raises(BadRequest):
        file.revoke("")


def test_clearing_takes_all_or_those_of_one_place(file: GrantFile, tmp_path: Path) -> None:
    """P5."""
    for scope, where in (("everywhere", ""), ("workspace", "a"), ("workspace", "b"), ("task", "")):
        file.add(line(f"make {scope}{where}"), scope=scope, risk="low", workspace=tmp_path / where, task=TASK)  # type: ignore[arg-type]
    assert file.clear(workspace=tmp_path / "a") == 1
    assert file.clear(task=TASK) == 1
    assert [each.text for each in file.listing()] == ["make everywhere", "make workspaceb"]
    assert file.clear() == 2
    assert file.listing() == ()


def test_what_another_process_takes_back_is_gone_here_too(file: GrantFile, tmp_path: Path) -> None:
    """P5."""
    granted = file.add(line("make"), scope="everywhere", risk="medium")
    assert covers(file, "make", tmp_path)
    GrantFile(file.path).revoke(granted.id)
    assert not covers(file, "make", tmp_path)


def test_the_file_is_private_whatever_the_umask(file: GrantFile) -> None:
    """P5."""
    before = os.umask(0)
    try:
        file.add(line("make"), scope="everywhere", risk="medium")
    finally:
        os.umask(before)
    modes = [
        stat.S_IMODE(each.stat().st_mode) for each in (file.path, file.path.parent, file.path.with_suffix(".lock"))
    ]
    assert modes == [0o600, 0o700, 0o600]
    assert sorted(each.name for each in file.path.parent.iterdir()) == ["grants.json", "grants.lock"]


@pytest.mark.parametrize(
    "content",
    [
        "", "{", "[]", "null", '{"version": 2, "grants": []}', '{"version": 1}', '{"version": 1, "grants": [1]}',
        '{"version": 1, "grants": [{"id": "a"}]}', "\udcff", "[" * 100_000,
        json.dumps({"version": 1, "grants": [{"id": "a", "kind": "prefix", "text": "bash", "words": ["bash"],
                                               "scope": "everywhere", "granted": "2026"}]}),
        json.dumps({"version": 1, "grants": [{"id": "a", "kind": "line", "text": "ls", "words": [], "scope": "once",
                                               "granted": "2026"}]}),
    ],
)  # fmt: skip
def test_a_damaged_file_counts_for_nothing_says_so_and_is_kept_aside(
    file: GrantFile, tmp_path: Path, content: str
) -> None:
    """P5: nothing is lost, and nothing is allowed by it."""
    file.add(line("make"), scope="everywhere", risk="medium")
    file.path.write_bytes(content.encode("utf-8", "surrogateescape"))
    assert file.trouble is not None and "damaged" in file.trouble
    assert not covers(file, "make", tmp_path)
    with pytest.raises(StateUnavailable, match="damaged"):
        file.listing()
    file.add(line("ls x"), scope="everywhere", risk="low")
    assert file.trouble is None
    assert [each.text for each in file.listing()] == ["ls x"]
    (aside,) = file.path.parent.glob("grants.json.damaged-*")
    assert aside.read_bytes() == content.encode("utf-8", "surrogateescape")


def test_a_file_that_others_could_write_counts_for_nothing(file: GrantFile, tmp_path: Path) -> None:
    """P5."""
    file.add(line("make"), scope="everywhere", risk="medium")
    for path, mode in ((file.path, 0o666), (file.path, 0o620), (file.path.parent, 0o777)):
        before = stat.S_IMODE(path.stat().st_mode)
        path.chmod(mode)
        assert "others may write" in (GrantFile(file.path).trouble or "")
        assert not covers(GrantFile(file.path), "make", tmp_path)
        path.chmod(before)
    assert covers(GrantFile(file.path), "make", tmp_path)


def test_a_symlink_a_folder_or_a_pipe_in_its_place_counts_for_nothing(file: GrantFile, tmp_path: Path) -> None:
    """P5: and a pipe makes nobody wait."""
    file.add(line("make"), scope="everywhere", risk="medium")
    kept = tmp_path / "kept.json"
    file.path.rename(kept)
    file.path.symlink_to(kept)
    assert file.trouble
    file.path.unlink()
    file.path.mkdir()
    assert file.trouble
    file.path.rmdir()
    os.mkfifo(file.path, 0o600)
    assert file.trouble
    assert not covers(file, "make", tmp_path)


def test_a_full_disk_leaves_what_was_there(tiny_disk: Path) -> None:
    """P5."""
    file = GrantFile(tiny_disk / "state" / "grants.json")
    file.add(line("make"), scope="everywhere", risk="medium")
    with pytest.raises(OSError, match="No space left"):
        (tiny_disk / "ballast").write_bytes(b"x" * (1 << 20))
    with pytest.raises(StateUnavailable, match="No space left"):
        file.add(line("make " + "y" * 4000), scope="everywhere", risk="medium")
    assert [each.text for each in file.listing()] == ["make"]


def test_a_lock_that_is_never_given_up_is_an_error_not_a_hang(tmp_path: Path) -> None:
    """P5."""
    file = GrantFile(tmp_path / "grants.json", patience=0.05)
    file.add(line("make"), scope="everywhere", risk="medium")
    with file.path.with_suffix(".lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(StateUnavailable, match="another Tarmac"):
            file.clear()
    assert file.clear() == 1


def test_many_processes_add_at_once_and_none_is_lost(tmp_path: Path) -> None:
    """P5."""
    code = (
        "import sys; from pathlib import Path; from tarmac.policy import SuggestedGrant;"
        "from tarmac.policy.grants import GrantFile; file = GrantFile(Path(sys.argv[1]));"
        "[file.add(SuggestedGrant('line', f'make {sys.argv[2]}-{n}'), scope='everywhere', risk='low')"
        " for n in range(5)]"
    )
    path = tmp_path / "state" / "grants.json"
    running = [subprocess.Popen([sys.executable, "-c", code, str(path), str(number)]) for number in range(4)]
    assert [each.wait(30) for each in running] == [0] * 4
    assert len(GrantFile(path).listing()) == 20
