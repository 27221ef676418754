"""No line keeps the judge busy, whatever it repeats: each shape here once took seconds to days."""

import asyncio
import gc
import glob
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tarmac.policy import Execute, Policy, PolicySettings, Verdict
from tarmac.policy.budget import FEW, OFTEN, Budget, Spent
from tarmac.policy.parse.words import _expands, ansi_c
from tarmac.policy.places import expand

pytestmark = pytest.mark.slow

LONG = 32_000  # characters: as long as a line may be
CPU = 0.5  # seconds of our own work for a line
LATE = 0.1  # seconds of our own work during which nothing else gets its turn


def of(head: str, piece: str, tail: str = "", *, length: int = LONG) -> str:
    return head + piece * ((length - len(head) - len(tail)) // len(piece)) + tail


SHAPES = {
    "a word": ("echo ", "a", ""),
    "a word of lookalikes": ("ls ", "a", "йа"),
    "a word of both": ("ls ", "aй", ""),
    "a name that ends like a secret": ("cat ", "a", "tokenx"),
    "a name of pieces": ("cat ", "a-", "key"),
    "a name of dots": ("cat ", ".env.", "x"),
    "a deep path": ("cat ", "a/", "x"),
    "a path that goes back": ("cat ", "a/../", "x"),
    "a path of patterns": ("rm -rf /", "*/", "x"),
    "a path of braces": ("rm -rf /", "{a}/", "x"),
    "a path of closing braces": ("rm -rf /{", "}", "/x"),
    "many names": ("cat ", "ab ", ""),
    "many removed": ("rm -rf ", "ab ", "/"),
    "many options": ("git push ", "-a ", ""),
    "many long options": ("docker run ", "--ab ", ""),
    "a long option": ("bash ", "-", "x"),
    "a long option of letters": ("bash -", "c", "1 x"),
    "options of su": ("su ", "-x ", ""),
    "options of env": ("env ", "-a ", ""),
    "variables of env": ("env ", "A=1 ", "ls"),
    "an awk program": ("awk '", "x", "'"),
    "an awk program of slashes": ("awk '", "a/", "'"),
    "a jq filter": ("jq '", ".a|", ".'"),
    "a sed script": ("sed 's/a/", "a", "'"),
    "a sed script of commas": ("sed '", "s,,", "'"),
    "a sed script of empty lines": ("sed '", "\n", "x'"),
    "a sed script of slashes": ("sed '", "/g", "x'"),
    "code that removes": ('python -c "', "rm -x ", '"'),
    "code that removes much": ('python -c "', "rm -rm ", '"'),
    "code of options": ('python -c "rm -', "r", '!"'),
    "code of blanks": ('python -c "rm', " ", '"'),
    "code that spawns": ('python -c "', "spawn", '"'),
    "patterns": ("ls ", "* ", ""),
    "patterns of folders": ("ls ", "/usr/*/* ", ""),
    "patterns of the disk": ("rm ", "/*/*/*/* ", ""),
    "distinct patterns": ("ls ", "/usr/*/*[", ""),
    "a pattern of stars": ("ls ", "*a", "b"),
    "escapes": ("echo $'", r"\x41", "'"),
    "short escapes": ("echo $'", r"\n", "'"),
    "backslashes": ("echo $'", "\\\\", "'"),
    "open braces": ("rm ", "{", "a"),
    "open braces and letters": ("rm {", "a{", "a"),
    "a list in braces": ("rm -rf {", "a,", "b}"),
    "lists in braces": ("{rm,a} ", "{rm,a} ", ""),
    "nice": ("", "nice ", "ls"),
    "timeouts": ("", "timeout 5 ", "ls"),
    "sudo": ("", "sudo ", "rm -rf /"),
    "xargs": ("", "xargs rm ", ""),
    "npx": ("", "npx bash ", ""),
    "a function": ("", "a", "() { b; }"),
    "functions": ("", "a() ", "{ b; }"),
    "colons": ("git show ", ":/", "x"),
    "brackets": ("test -v '", "[", "'"),
    "a host": ("scp ", "a@", " b"),
    "slashes": ("ls ", "/;", "x"),
    "quotes": ("echo ", '"a"', ""),
    "escaped letters": ("echo ", r"\a", ""),
    "variables": ("echo ", "$a", ""),
    "assignments": ("", "A=b ", "ls"),
    "redirections": ("ls ", ">a ", ""),
    "ps": ("ps ", "e", "w"),
    "printf": ("printf '", "%1", "'"),
    "find": ("find . ", "-name x ", ""),
    "find that runs": ("find . ", "-exec ls {} + ", ""),
    "find in find": ("", "find . -exec ", "ls"),
    "curl": ("curl ", "-d @x ", ""),
    "urls": ("curl ", "http://", ""),
    "chmod": ("chmod ", "+r", "x"),
    "tarmac": ("", "/;", "tarmacx"),
    "dd": ("dd ", "of=x ", ""),
}


@pytest.fixture(autouse=True, scope="module")
def what_other_tests_left() -> Iterator[None]:
    """Set aside: to collect the garbage of a thousand tests takes 0.1 s, which is no work of the judge."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    for number in range(300):
        (tmp_path / f"file{number}.txt").touch()
    return tmp_path


@pytest.mark.parametrize("length", [LONG, 4_000])
@pytest.mark.parametrize("shape", SHAPES)
async def test_whatever_a_line_repeats_it_is_judged_in_time(shape: str, length: int, workspace: Path) -> None:
    """P2: half a second of work at most, and never a tenth of one in which the event loop stands still."""
    await judge_in_time(of(*SHAPES[shape], length=length), workspace, allowed=length != LONG)


async def judge_in_time(line: str, workspace: Path, *, allowed: bool) -> None:
    policy = Policy(PolicySettings(parse_timeout=2))  # the parser is not what is measured here
    assert (await judge(policy, "ls", workspace)).decision == "allow"  # the tables are read once, and the judge works
    loop_busy = 0.0

    async def tick() -> None:
        nonlocal loop_busy
        while True:
            before = time.thread_time()  # of the event loop's thread: a busy machine doesn't count
            await asyncio.sleep(0.001)
            loop_busy = max(loop_busy, time.thread_time() - before)

    ticking = asyncio.create_task(tick())
    start = time.process_time()
    verdict = await judge(policy, line, workspace)
    took = time.process_time() - start
    await asyncio.sleep(0.002)
    ticking.cancel()
    await asyncio.gather(ticking, return_exceptions=True)
    assert verdict.rule != "ask.failed"  # a judge that gives up is quick too
    assert took < CPU
    assert loop_busy < LATE
    assert allowed or verdict.decision != "allow"


def test_the_time_of_a_few_looks_is_not_held_against_a_line() -> None:
    """P2: a collection of garbage in their middle made a line of three names one that names too many."""
    late = Budget(since=time.thread_time() - 10)
    for _ in range(FEW - 1):
        late.spend(looks=1)
    with pytest.raises(Spent):
        for _ in range(OFTEN):
            late.spend(looks=1)


async def judge(policy: Policy, line: str, workspace: Path) -> Verdict:
    return await policy.judge(Execute(line, cwd=workspace), workspace=workspace)


@pytest.mark.parametrize(
    "pattern",
    ["*", "*.txt", "file1?.txt", "s*/*", ".*", "s*/.h*", "*/", "nothing*", "sub/x", "[fs]*", "*/../*", "/*", "link/*"],
)
def test_patterns_give_the_names_that_glob_gives(pattern: str, workspace: Path) -> None:
    """P2: with a budget, and otherwise the same."""
    (workspace / "sub" / "deep").mkdir(parents=True)
    for name in ("sub/x", "sub/.hidden", ".env", "sub/deep/y"):
        (workspace / name).touch()
    (workspace / "link").symlink_to("sub")
    for hidden in (False, True):
        expected = glob.glob(pattern, root_dir=workspace, include_hidden=hidden)  # noqa: PTH207 it is what is compared with
        assert sorted(expand(pattern, str(workspace), hidden=hidden)) == sorted(expected)


@pytest.mark.parametrize(
    ("script", "runs"),
    [
        ("s/a/b/e", True), ("s,a,b,ge", True), ("1e ls", True), ("e", True), ("s/a/b/;e ls", True),
        ("$!\n  e ls", True),
        ("s/a/b/", False), ("s/e/e/g", False), ("1,5p", False), ("/re/p", False), ("s,a,b,", False),
    ],
)  # fmt: skip
async def test_sed_that_runs_a_command_is_still_seen(script: str, runs: bool, workspace: Path) -> None:
    verdict = await judge(Policy(), f"sed -i '{script}' a", workspace)
    assert ("makes sed run a command" in verdict.explanation) == runs


@pytest.mark.parametrize(
    ("line", "critical"),
    [
        ("python -c \"os.system('rm -rf /')\"", True), ("python -c \"os.system('rm -rf -v ~')\"", True),
        ("python -c \"x('rm -r build')\"", False), (":(){ :|:& };:", True), ("f () { f | f; }", True),
        ("f () { g | f; }", False), ("rm -rf {a,/}", True), ("rm -rf /{,}", True),
    ],
)  # fmt: skip
async def test_what_destroys_all_is_still_seen(line: str, critical: bool, workspace: Path) -> None:
    assert ((await judge(Policy(), line, workspace)).risk == "critical") == critical


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (r"\x41\x42", "AB"), (r"a\nb", "a\nb"), (r"\\n", "\\n"), (r"\101b", "Ab"), (r"\'", "'"), (r"\u0041z", "Az"),
        (r"\xe9", None), (r"\q", None), ("\\", None), (r"\\\\x41", r"\\x41"), (r"\\\x41", r"\A"),
    ],
)  # fmt: skip
def test_escapes_are_read_as_before(written: str, meant: str | None) -> None:
    assert ansi_c(written) == meant


@pytest.mark.parametrize(
    ("written", "several"),
    [
        ("a{b,c}", True), ("{1..3}", True), ("{a{b,c}}", True), ("{{a,", True),
        ("{a}", False), ("{a,b", False), ("a}{,", False),
    ],
)  # fmt: skip
def test_braces_are_read_as_before(written: str, several: bool) -> None:
    assert _expands(written) == several


@pytest.mark.parametrize(
    "line",
    [
        "for x in " + " ".join("abcdefghijklmnopqrstuvwxyz") + "; do cat $x; wc $x; head $x; ls $x; done",
        "cat a" + " | sort" * 48,
        "for a in 1 2 3 4 5; do for b in 1 2 3 4 5; do for c in 1 2 3 4 5; do cd .; done; done; done",
        "for a in {1,2,3,4,5,6,7,8}; do for b in {1,2,3,4,5,6}; do for c in {1,2,3,4,5,6}; do cd .; done; done; done",
        "if ls; then " * 19 + "ls" + "; fi" * 19,
        "[[ -f a ]] && " * 40 + "ls",
        "echo " + "$(git status) " * 40,
    ],
)
async def test_what_is_written_out_is_judged_in_time(line: str, workspace: Path) -> None:
    """P2: loops, conditions and long lists, each command of which is proven."""
    await judge_in_time(line, workspace, allowed=True)
