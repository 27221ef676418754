"""What commands print, read: on recordings of the real tools (`recorded/`), and on anything at all."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tools.workshop import Workshop, text_of

from tarmac.tasks.views.model_history import text_size
from tarmac.tools.output import brief, understand
from tarmac.tools.output.parsers import diff_stat, file_listing, git_log, git_status, parse_problems
from tarmac.tools.output.test_runs import parse_tests
from tarmac.tools.output.values import FailedTest, GitStatus, ListedFile, TestRun
from tarmac.vt.text import clean

RECORDED = Path(__file__).parent / "recorded"


def recorded(name: str) -> str:
    return clean((RECORDED / f"{name}.txt").read_bytes())


def run_of(name: str) -> TestRun:
    found = parse_tests(recorded(name))
    assert found is not None
    return found


@pytest.mark.parametrize("name", ["pytest", "pytest-verbose"])
def test_pytest_tells_each_failure_with_its_place_and_message(name: str) -> None:
    """T29."""
    run = run_of(name)
    assert (run.passed, run.failed, run.skipped) == (1, 4, 1)
    assert [(each.name, each.place, each.text) for each in run.failures] == [
        ("test_shop.py::test_empty", "test_shop.py:4", "AssertionError: an empty cart costs nothing"),
        ("test_shop.py::test_text", "test_shop.py:2", "TypeError: unsupported operand type(s) for +: 'int' and 'str'"),
        ("test_shop.py::TestCart::test_negative", "test_shop.py:7", "assert -1 == 1"),
        ("test_shop.py::test_database", "test_shop.py:11", "RuntimeError: no database"),
    ]


def test_pytest_without_tracebacks_and_with_a_file_that_can_not_be_read() -> None:
    """T29."""
    assert [each.text for each in run_of("pytest-short").failures] == [
        "AssertionError: an empty cart costs nothing",
        "TypeError: unsupported operand type(s) for +...",
        "assert -1 == 1",
        "RuntimeError: no database",
    ]
    (broken,) = run_of("pytest-collect").failures
    assert (broken.name, broken.place, broken.text) == (
        "broken.py",
        "broken.py:1",
        "SyntaxError: invalid syntax",
    )
    assert run_of("pytest-passed").summary == "pytest: 1 passed"


@pytest.mark.parametrize(
    ("name", "summary", "places"),
    [
        ("unittest", "unittest: 2 failed, 1 passed, 1 skipped", ["/src/py/ut_shop.py:5", "/src/py/ut_shop.py:4"]),
        ("jest", "jest: 2 failed, 1 passed, 1 skipped", ["shop.test.js:5", "shop.test.js:1"]),
        ("vitest", "vitest: 2 failed, 1 passed, 1 skipped", ["vshop.spec.js:6", "vshop.spec.js:2"]),
        ("cargo", "cargo test: 2 failed, 1 passed, 1 skipped", ["src/lib.rs:6", "src/lib.rs:8"]),
        ("go", "go test: 2 failed", ["shop_test.go:6", "shop_test.go:10"]),
    ],
)
def test_each_runner_tells_its_counts_and_places(name: str, summary: str, places: list[str]) -> None:
    """T29."""
    run = run_of(name)
    assert run.summary == summary
    assert [each.place for each in run.failures] == places
    assert all(each.text for each in run.failures)


HARD = {  # every failure of the file that was run, in words of its own: `t` printed what looks like a failure
    "pytest": "bad p[2] p[a p[a::b] p[\\xe9 raise custom exit nomsg xp out m sub sub u timeout_like setup teardown",
    "unittest": "sub sub u",
    "vitest": "b.test.ts d.test.ts sum throws obj async timeout prints f 2 Unhandled",
    "jest": "sum throws obj timeout prints b.test.js c.test.js",
    "cargo": "bad multi res sp sp2 unw thr",
}


@pytest.mark.parametrize(
    "name",
    [
        "pytest-colours", "pytest-xdist", "pytest-no-summary", "unittest-subtests", "vitest-colours", "jest-colours",
        "cargo-colours", "cargo-nocapture",
    ],
)  # fmt: skip
def test_no_failure_is_lost_and_none_is_invented(name: str) -> None:
    """T29: with colours, in parallel, with subtests, values with ` - ` and `::`, and tests that print failures."""
    run = run_of(name)
    words = [f"{each.name} {each.place}" for each in run.failures]
    wanted = HARD[name.partition("-")[0]].split()
    for word in wanted:
        assert any(re.search(rf"(?<![A-Za-z0-9]){re.escape(word)}(?!\w)", each) for each in words), word
    assert len(words) == len(wanted) and run.failed <= len(wanted)
    assert not any("fake" in each for each in words)


NASTY = [  # of the same tests, with other options
    "test_nasty.py::test_bad test_nasty.py:14",
    "test_nasty.py::test_in_helper test_nasty.py:5",
    "test_nasty.py::test_xp test_nasty.py",
    "test_nasty.py::TestCase::test_lists test_nasty.py:62",
    "test_nasty.py::TestCase::test_raises test_nasty.py:70",
    "test_nasty.py::TestCase::test_sub (i=0) test_nasty.py:67",
    "test_nasty.py::TestCase::test_sub (i=2) test_nasty.py:67",
    "test_nasty.py::test_setup test_nasty.py:28",
]


@pytest.mark.parametrize("name", ["pytest-native", "pytest-xdist-native", "pytest-qq"])
def test_every_way_of_pytest_tells_the_same_failures(name: str) -> None:
    """T29: a frame of unittest is never the place, and a traceback is told once."""
    found = understand("pytest", recorded(name), 1)
    assert sorted(f"{e.name} {e.place}".replace("'", "") for e in run_of(name).failures) == sorted(NASTY)
    assert found.problems == ()
    assert all(each.text for each in found.rows)


@pytest.mark.parametrize("name", ["pytest-line", "pytest-xdist-line", "pytest-tb-no"])
def test_pytest_without_reports_keeps_each_name(name: str) -> None:
    """T29: a line number is given where the output has it."""
    run = run_of(name)
    assert sorted(e.name.replace("'", "") for e in run.failures) == sorted(e.rpartition(" ")[0] for e in NASTY)
    known = {each.name.partition("::")[2]: each.line for each in run.failures if each.line}
    assert known == ({} if name == "pytest-tb-no" else {"test_bad": 14, "test_in_helper": 5})


def test_pytest_that_names_nothing_says_how_many_failed_and_where() -> None:
    """T29: also the wrong path of a run without tests is a failure."""
    run = run_of("pytest-line-rN")
    assert (len(run.failures), run.failed) == (8, 8)
    assert not any("fake" in each.name for each in run.failures)
    assert [each.place for each in run.failures[1:3]] == ["/src/py/test_nasty.py:14", "/src/py/test_nasty.py:5"]
    assert run.failures[-1].text.startswith("1 failed of which the output has no name")
    assert [each.text for each in run_of("pytest-wrong-path").failures] == ["file or directory not found: nosuch.py"]


NODE = "broken.test.mjs sum throws hash rejects negative timeout never hooks child thrown"
MOCHA = "sum obj rejects thrown negative timeout throws never"


@pytest.mark.parametrize(
    ("name", "summary", "names"),
    [
        ("node-tap", "TAP: 11 failed, 2 passed, 2 skipped", NODE),
        ("node-spec", "node --test: 11 failed, 2 passed, 2 skipped", NODE),
        ("node-colours", "node --test: 11 failed, 2 passed, 2 skipped", NODE),
        (
            "node-dot",
            "node --test: 14 failed",
            NODE.replace("never", "deep cart never").replace("child", "child parent"),
        ),
        ("mocha", "mocha: 8 failed, 2 passed, 2 skipped", MOCHA),
        ("mocha-dot", "mocha: 8 failed, 2 passed, 2 skipped", MOCHA),
        ("mocha-colours", "mocha: 8 failed, 2 passed, 2 skipped", MOCHA),
        ("mocha-tap", "TAP: 8 failed, 2 passed, 2 skipped", MOCHA),
        (
            "vitest-tap",
            "TAP: 11 failed, 1 passed, 3 skipped",
            "a.spec.js sum cart deep throws b y hooks async string b.spec.js",
        ),
        ("prove", "prove: 6 failed, 5 passed", "sum a.t:4 deep b inner b.t"),
        ("prove-verbose", "prove: 6 failed, 5 passed", "sum a.t:4 deep b inner b.t"),
        ("perl-tap", "TAP: 5 failed, 2 passed, 2 skipped", "sum 3 deep b inner"),
    ],
)
def test_node_mocha_and_tap_tell_every_failure(name: str, summary: str, names: str) -> None:
    """T29: what a test printed is no failure, and a test that is still to do is none."""
    run = run_of(name)
    assert run.summary == summary
    last = [re.split(r"[ />]", each.name)[-1].strip('"') for each in run.failures]
    assert " ".join(last) == names


def test_node_and_mocha_tell_the_place_in_the_test() -> None:
    """T29."""
    places = {each.name: each.place.rpartition("/")[2] for each in run_of("node-spec").failures}
    assert (places["sum"], places["throws"], places["timeout"]) == (
        "shop.test.mjs:11",
        "shop.test.mjs:5",
        "shop.test.mjs:24",
    )
    mocha = {each.name: (each.place, each.text) for each in run_of("mocha").failures}
    assert mocha["cart > deep > throws"] == ("t/mocha.spec.cjs:2", "RangeError: bad 3")
    wanted = "AssertionError [ERR_ASSERTION]: Expected values to be strictly equal: 2 !== 3"
    assert mocha["sum"] == ("t/mocha.spec.cjs:4", wanted)


RUNS = [each.stem for each in sorted(RECORDED.glob("*.txt")) if parse_tests(clean(each.read_bytes()))]


@pytest.mark.parametrize("first", RUNS)
def test_two_runs_in_one_output_lose_nothing(first: str) -> None:
    """T29: as in `pytest a; pytest b`."""
    for second in RUNS:
        both = parse_tests(f"{recorded(first)}\n{recorded(second)}")
        assert both is not None
        names = {each.name for each in both.failures}
        for alone in (first, second):
            assert {each.name for each in run_of(alone).failures} <= names, f"{first} and {second} lose some of {alone}"


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(sorted(each.stem for each in RECORDED.glob("*.txt"))),
    st.lists(st.tuples(st.integers(0, 500), st.integers(-3, 500)), max_size=6),
)
def test_a_mangled_output_breaks_no_parser(name: str, cuts: list[tuple[int, int]]) -> None:
    """T29: lines left out, doubled, moved or cut in the middle."""
    lines = recorded(name).splitlines(keepends=True)
    for at, to in cuts:
        at %= len(lines) or 1
        match to:
            case -3:
                lines[at:] = lines[at + 1 :]
            case -2:
                lines.insert(at, lines[at] if lines else "")
            case -1:
                lines = lines[at:]
            case _:
                lines[at : at + 1] = [each[: to % 80] for each in lines[at : at + 1]] + lines[to : to + 3]
    found = understand("./check", "".join(lines), 1)
    assert found.summary
    assert brief(found).startswith(found.summary)


def test_a_log_is_no_problem() -> None:
    """T29."""
    log = (
        'server.py:33: [info] listening\nserver.py:34: [debug] up\n::group::build\n{"file": "a.py", "line": 3}\nok 1\n'
    )
    assert parse_problems(log) == ()
    assert parse_tests(log) is None


def test_json_that_is_broken_deep_or_huge_is_read_past() -> None:
    """T29."""
    row = '{"file": "a.py", "line": 3, "column": 0, "message": "bad", "severity": "error", "code": "misc"}'
    for before in ("[INFO] x\n" * 500, "[" * 99 + "\n", "{" + "\n", '{"a": ["\n'):
        assert [each.place for each in parse_problems(f"{before}{row}\n")] == ["a.py:3:1"]
    for odd in (
        "[" * 100_000,
        f"[{'9' * 10_000}]",
        "[" * 3_000 + "]" * 3_000,
        '[{"file": 1, "filename": null}, 3, "x"]',
    ):
        assert parse_problems(odd) == ()


def test_a_very_long_line_does_not_hide_a_failure() -> None:
    """T29: the message of `pytest -vv` is one line, and so is one of a template in C++."""
    run = parse_tests(f"FAILED a.py::test_one - assert '{'x' * 9_000}' == ''\n1 failed in 0.10s\n")
    assert run is not None
    assert [each.name for each in run.failures] == ["a.py::test_one"]
    (problem,) = parse_problems(f"a.cpp:3:4: error: no match for '{'map<' * 2_000}'\n")
    assert problem.place == "a.cpp:3:4"


def test_tests_of_the_same_name_keep_their_places() -> None:
    """T29."""
    assert [(each.name, each.place, each.text) for each in run_of("pytest-two-files").failures] == [
        ("one/test_one.py::test_same", "one/test_one.py:2", "AssertionError: assert 'one' == ''"),
        ("two/test_two.py::test_same", "two/test_two.py:2", "AssertionError: assert 'two' == ''"),
    ]


@pytest.mark.parametrize(
    ("name", "first", "count"),
    [
        ("gcc", ("a.c:4:13", "warning", "-Wint-conversion"), 4),
        ("clang", ("a.c:4:9", "warning", "-Wint-conversion"), 4),
        ("gcc-link", ("link.c", "error", ""), 1),
        ("tsc", ("a.ts:1:7", "error", "TS2322"), 3),
        ("tsc-pretty", ("a.ts:1:7", "error", "TS2322"), 3),
        ("rustc", ("bad.rs:2:18", "error", "E0308"), 2),
        ("ruff", ("broken.py:1:7", "error", "invalid-syntax"), 5),
        ("ruff-concise", ("broken.py:1:7", "error", "invalid-syntax"), 5),
        ("mypy", ("lint.py:7", "error", "return-value"), 2),
        ("make-parallel", ("a.c:3:25", "warning", "-Wparentheses"), 12),
        ("gcc-ld", ("/tmp/ccxiSOqd.o", "error", ""), 2),
        ("tsc-no-file", ("tsc", "error", "TS6053"), 1),
        ("cargo-short", ("src/lib.rs:17:5", "error", "E0432"), 3),
        ("ruff-github", ("broken.py:1:12", "error", "invalid-syntax"), 8),
        ("ruff-grouped", ("broken.py:1:12", "error", "invalid-syntax"), 8),
        ("ruff-pylint", ("broken.py:1", "error", "invalid-syntax"), 8),
        ("ruff-json", ("/src/py/broken.py:1:12", "error", "invalid-syntax"), 8),
        ("ruff-json-lines", ("/src/py/broken.py:1:12", "error", "invalid-syntax"), 8),
        ("mypy-json", ("lint.py:11:12", "error", "return-value"), 2),
        ("eslint-json", ("/src/js/lint.js:1:7", "warning", "no-unused-vars"), 5),
        ("eslint", ("/src/js/lint.js:1:5", "error", "no-unused-vars"), 4),
    ],
)
def test_each_compiler_tells_file_line_and_message(name: str, first: tuple[str, str, str], count: int) -> None:
    """T29."""
    found = parse_problems(recorded(name))
    assert (found[0].place, found[0].severity, found[0].code) == first
    assert len(found) == count
    assert all(each.text for each in found)


def test_listings_and_git_are_values() -> None:
    """T29."""
    listing = file_listing(recorded("ls-l"))
    assert listing is not None
    assert listing.files[1:5] == (
        ListedFile(name="a.txt", size=7),
        ListedFile(name="b.txt", size=4),
        ListedFile(name="link", kind="link", size=5, target="a.txt"),
        ListedFile(name="new.txt", size=2),
    )
    assert understand("ls -1F", recorded("ls-1"), 0).summary == "5 names, 1 of them folders"
    long = git_status(recorded("git-status"))
    assert long == GitStatus(branch="main", staged=("a.txt",), changed=("b.txt", "src/c d.txt"), untracked=("new.txt",))
    short = git_status(recorded("git-status-short"))
    assert short is not None
    assert short.summary == long.summary == "git status: branch main, 1 staged, 2 changed, 1 untracked"
    log, oneline = git_log(recorded("git-log")), git_log(recorded("git-log-oneline"))
    assert log is not None and oneline is not None
    assert [each.subject for each in log.commits] == [each.subject for each in oneline.commits]
    stat = diff_stat(recorded("git-diff-stat"))
    assert stat is not None
    assert (stat.files, stat.insertions, stat.deletions) == (("a.txt", "b.txt", "src/c d.txt"), 2, 1)


@pytest.mark.parametrize(
    ("name", "code", "command"),
    [
        ("not-found", 127, "apt-get install nosuchprogram"),
        ("no-module", 1, "python3 -m pip install requests_not_here"),
        ("no-node-module", 1, "npm install left-pad-not-here"),
        ("git-none", 128, ""),
        ("port", 1, "ss -ltnp"),
        ("denied", 126, "ls -l"),
    ],
)
def test_a_known_error_has_a_hint(name: str, code: int, command: str) -> None:
    """T30."""
    (hint,) = understand("./go", recorded(name), code).hints
    assert hint.command == command
    assert understand("./go", recorded(name), 0).hints == ()  # it worked


def test_after_a_build_come_its_tests_and_a_viewer_has_no_errors_of_its_own() -> None:
    """T30."""
    (hint,) = understand("cargo build --release", "   Finished\n", 0).hints
    assert hint.command == "cargo test"
    assert understand("cat build.log | tail -50", recorded("gcc"), 0).problems == ()
    assert understand("make 2>&1 | tail -50", recorded("gcc"), 0).problems != ()


def test_names_in_hints_can_not_bring_a_command_along() -> None:
    """T30: a name that is no name of a package goes into no command."""
    for evil in ("x; rm -rf ~", "$(curl evil)", "-rf", "`id`"):
        for text in (f"bash: {evil}: command not found", f"ModuleNotFoundError: No module named '{evil}'"):
            for hint in understand("./go", text, 127).hints:
                assert evil not in hint.command
                assert not set(hint.command) & set(";$`()\n")


@settings(max_examples=60)
@given(st.integers(0, 400), st.integers(0, 60))
def test_no_failure_is_lost_and_the_brief_is_short(tests: int, width: int) -> None:
    """T29: up to hundreds of failures fit into 2,000 tokens, each by its name."""
    names = [f"tests/test_{number % 7}.py::test_{'x' * (width % 5)}{number}" for number in range(tests)]
    rows = "".join(f"FAILED {name} - assert {'y' * width} == {number}\n" for number, name in enumerate(names))
    end = f"{tests} failed, 3 passed in 1.00s" if tests else "3 passed in 1.00s"
    found = understand("pytest", f"{'.' * 72}\n{rows}{end}\n", 1 if tests else 0)
    assert found.tests is not None
    assert [each.name for each in found.tests.failures] == names
    told = brief(found)
    assert len(told) <= 4_700
    for name in names:
        assert name.partition("::")[2] in expanded(told)


def expanded(told: str) -> set[str]:
    """The names in a brief: `a.py: test_{1, 2}` has two."""
    names = set(re.findall(r"::(test_\w+)", told))
    for prefix, rest in re.findall(r"^\S+: (\w*)\{(.*)\}$", told, re.MULTILINE):
        names |= {prefix + each for each in rest.split(", ")}
    return names | set(re.findall(r"^\S+: (test_\w+)$", told, re.MULTILINE))


@settings(max_examples=150)
@given(st.text(alphabet=st.sampled_from("FAILED ERROR:.-_=●❯⎯/\\>()[]\n\t0123456789ab'\"` "), max_size=400))
def test_anything_can_be_read(text: str) -> None:
    """T29: no text breaks a parser, and every command has one line."""
    for command in ("pytest", "ls", "ls -l", "git status", "git log", "git diff --stat", "make"):
        for code in (0, 1, None):
            found = understand(command, text, code)
            assert found.summary
            assert "\n" not in found.summary
            assert brief(found).startswith(found.summary)


@given(
    st.lists(
        st.builds(
            FailedTest,
            name=st.from_regex(r"test_[a-z]{1,9}", fullmatch=True),
            text=st.from_regex(r"[a-z]{1,20}", fullmatch=True),
        ),
        max_size=8,
        unique_by=lambda each: each.name,
    )
)
def test_what_pytest_would_print_is_read_back(failures: list[FailedTest]) -> None:
    """T29."""
    rows = "".join(f"FAILED a.py::{each.name} - {each.text}\n" for each in failures)
    run = parse_tests(f"{rows}{len(failures)} failed, 1 passed in 0.10s\n")
    assert run is not None
    assert [(each.name, each.text) for each in run.failures] == [(f"a.py::{e.name}", e.text) for e in failures]


PRINTER = """
import sys
for number in range(10_000):
    if number % 250 == 7:
        print(f"tests/test_big.py::test_{number} FAILED")
    else:
        print(f"tests/test_big.py::test_{number} PASSED and a few words more")
print("=========================== short test summary info ============================")
for number in range(7, 10_000, 250):
    print(f"FAILED tests/test_big.py::test_{number} - AssertionError: number {number}")
for number in range(3_000):
    print("teardown", number)
print("============ 40 failed, 9960 passed in 12.00s ============")
sys.exit(1)
"""


@pytest.mark.shell
async def test_ten_thousand_lines_of_tests_cost_two_thousand_tokens_and_lose_no_failure(shop: Workshop) -> None:
    """T29: the failures come first, and the rest can be asked for."""
    shop.file("printer.py", PRINTER)
    done = await shop.act(await shop.prepare("execute_command", command="python3 printer.py"))
    told = text_of(done)
    assert text_size(told) * 4 / 3 <= 2_000  # three characters a token, the worst that providers count for such text
    for number in range(7, 10_000, 250):
        assert f"test_{number}" in told
    assert told.index("40 failed, 9960 passed") < told.index("teardown 2999")
    assert "read_terminal with id" in told
    assert done.details["command"]["summary"] == "pytest: 40 failed, 9960 passed"
    assert len(done.details["command"]["failures"]) == 40
    id = done.details["command"]["terminal"]
    rest = await shop.act(await shop.prepare("read_terminal", id=id, search="test_257 "))
    assert "test_257 FAILED" in text_of(rest)


@pytest.mark.shell
async def test_a_hint_follows_a_failed_command(shop: Workshop) -> None:
    """T30."""
    done = await shop.act(await shop.prepare("execute_command", command="no-such-program-here"))
    assert "Hint: `no-such-program-here` is not installed, or not on PATH." in text_of(done)
