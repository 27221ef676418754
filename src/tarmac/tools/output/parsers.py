"""Read what known programs print.

parse_tests      test runners: pytest, unittest, jest, vitest, cargo test, go test
parse_problems   compilers and linters: gcc, clang, javac, go, tsc, rustc, ruff, mypy, eslint, Python
file_listing, git_status, git_log, diff_stat    listings: ls, git
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Final

from tarmac.tools.output.values import (
    LONGEST_LINE,
    DiffStat,
    FailedTest,
    GitCommit,
    GitLog,
    GitStatus,
    ListedFile,
    ListedFiles,
    Problem,
    Severity,
    TestRun,
)

LONGEST_TEXT: Final = 300  # characters of a failure's message
_COUNT = re.compile(r"(\d+) ([a-z]+)")
_PYTEST_END = re.compile(
    r"(?:=+ )?((?:\d+ (?:failed|passed|errors?|skipped|xfailed|xpassed|deselected|warnings?|rerun|subtests [a-z]+)"
    r"(?:, )?)+|no tests ran) in [\d.]+s\b.*"
)
_PYTEST_SUMMARY = re.compile(r"(?:(FAILED|ERROR)|SUBFAIL(?:ED)?((?:\[.*?\])?(?: ?\(.*?\))?)) (\S.*)")
_PYTEST_PART = re.compile(r"=+ (ERRORS|FAILURES|X?PASSES|XFAILURES|warnings summary.*|short test summary info) =+")
_PYTEST_HEAD = re.compile(r"_{3,} (\S.*?) _{3,}")
_PYTEST_PLACE = re.compile(r"([^\s:][^:]*):(\d+): ?(.*)")
_PYTEST_SYNTAX = re.compile(r'E\s+File "(.+)", line (\d+)')
_UNITTEST_HEAD = re.compile(r"(?:FAIL|ERROR): (\S+)(?: \(([^()\s]+)\))?(?: ([\[(].*))?")
_UNITTEST_END = re.compile(r"(?:FAILED|OK)(?: \((.*)\))?")
_TRACEBACK_PLACE = re.compile(r'\s*File "(.+)", line (\d+)')
_JEST_HEAD = re.compile(r" {0,3}● (?!Console$)(\S.*)")
_JEST_PART = re.compile(r" ?(?:FAIL +(\S.*)|PASS |Test Suites:|Summary of all failing tests)")  # a space: in colours
_JEST_TESTS = re.compile(r"Tests:\s+(\d.*)")
_STACK_PLACE = re.compile(r"\s+at (?:.*\()?(?:file://)?([^\s()]+?):(\d+):\d+\)?")
_VITEST_HEAD = re.compile(r"\s*FAIL\s+(\S.*)|⎯+ (Unhandled (?:Rejection|Exception|Error)) ⎯+")
_VITEST_PART = re.compile(r"⎯+ (?:Failed (?:Suites|Tests) \d+|Unhandled Errors) ⎯+")
_VITEST_PLACE = re.compile(r"\s*❯ (?:.*\s)?(\S+?):(\d+):\d+")
_VITEST_TESTS = re.compile(r"\s*Tests\s+(\d.*)")
_CARGO_TEST = re.compile(r"test (\S.*?)(?: - should panic)? \.\.\. (ok|FAILED|ignored)\b.*")
_CARGO_HEAD = re.compile(r"---- (\S.*?) (?:stdout|stderr) ----")
_CARGO_PANIC = re.compile(r"thread '?(.*?)'?(?: \(\d+\))? panicked at (?:'(.*)', )?(\S+?):(\d+):\d+:?")
_CARGO_END = re.compile(r"test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored.*")
_GO_TEST = re.compile(r"\s*--- (FAIL|PASS|SKIP): (\S+) \(.*")
_GO_RUN = re.compile(r"=== (?:RUN|CONT|NAME)\s+(\S+)")
_GO_PLACE = re.compile(r"\s+(\S+\.go):(\d+): ?(.*)")
_GO_PACKAGE = re.compile(r"(FAIL|ok  )\s+(\S+)(?:\s+(.*))?")


def parse_tests(text: str) -> TestRun | None:
    """The result of the test runner that printed `text`, if one did. Several runs become one."""
    runs = [run for parser in PARSERS if (run := parser(text)) is not None]
    if len(runs) < 2:
        return runs[0] if runs else None
    return TestRun(
        runner=", ".join(run.runner for run in runs),
        failures=tuple(each for run in runs for each in run.failures),
        passed=sum(run.passed for run in runs),
        failed=sum(max(run.failed, len(run.failures)) for run in runs),
        skipped=sum(run.skipped for run in runs),
    )


def _lines(text: str) -> list[str]:
    return [each for each in text.splitlines() if len(each) <= LONGEST_LINE]


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 1]}…"


def _unique(failures: Iterable[FailedTest]) -> tuple[FailedTest, ...]:
    return tuple(dict.fromkeys(failures))


def _sections(lines: Iterable[str], head: re.Pattern[str]) -> Iterator[tuple[str, list[str]]]:
    """The parts of a report that begin with a head line: its first group, and the lines after it."""
    name, body = "", list[str]()
    for line in lines:
        if match := head.fullmatch(line):
            if name:
                yield name, body
            name, body = next(each for each in match.groups() if each), []
        elif name:
            body.append(line)
    if name:
        yield name, body


def pytest_run(text: str) -> TestRun | None:
    """pytest, with any `--tb` and with or without `-v`."""
    lines = _lines(text)
    ends = [match for line in lines if (match := _PYTEST_END.fullmatch(line))]
    if not ends:
        return None
    counts = {word.rstrip("s"): int(count) for count, word in _COUNT.findall(ends[-1][1])}
    reports, rows = _pytest_reports(lines)
    failures: dict[str, FailedTest] = {}
    for match in filter(None, map(_PYTEST_SUMMARY.fullmatch, rows)):
        kind, more = match[1] or "FAILED", match[2] or ""
        name, text = _pytest_name(match[3], {each for known, each in reports if known == kind}, more)
        path, _, rest = name.partition("::")
        found = reports.get((kind, _pytest_test(rest, more) or path))
        known = found.pop(0) if found else FailedTest(name=name)
        shown = f"{name} {more.strip()}" if more else name
        failures[shown] = FailedTest(
            name=shown, path=known.path or path, line=known.line, text=known.text or _short(text)
        )
    left = [each for found in reports.values() for each in found]  # of which no row tells, as with `-rN`
    failed = counts.get("failed", 0) + counts.get("error", 0)
    skipped = counts.get("skipped", 0) + counts.get("xfailed", 0)
    return TestRun(
        runner="pytest",
        failures=(*failures.values(), *left),
        passed=counts.get("passed", 0),
        failed=failed,
        skipped=skipped,
    )


def _pytest_reports(lines: list[str]) -> tuple[dict[tuple[str, str], list[FailedTest]], list[str]]:
    """The reports of failures, by kind and test in their order, and the rows of the summary.

    A report has what the test printed, which may look like a row. So rows stand after the head of the summary or, where
    that was cut off, after the last report.
    """
    reports: dict[tuple[str, str], list[FailedTest]] = {}
    part, name, body, rows = "", "", list[str](), list[str]()

    def close() -> None:
        if name and part in ("", "ERRORS", "FAILURES"):
            kind = "ERROR" if name.startswith("ERROR ") else "FAILED"
            found = _pytest_failure(name, body)
            reports.setdefault((kind, found.name), []).append(found)

    for line in lines:
        if match := _PYTEST_PART.fullmatch(line):
            close()
            part, name, rows = match[1], "", []
        elif part != "short test summary info" and (match := _PYTEST_HEAD.fullmatch(line)):
            close()
            name, body = match[1], []
        elif name:
            body.append(line)
        else:
            rows.append(line)
    close()
    return reports, rows


def _pytest_name(row: str, known: set[str], more: str) -> tuple[str, str]:
    """The test and the message of a row. Both may have a ` - `: the test is one that is known, or has its brackets."""
    cuts = [match.start() for match in re.finditer(" - ", row)]
    names = [row[:at] for at in cuts]
    for name in names:
        path, _, rest = name.partition("::")
        if (_pytest_test(rest, more) or path) in known:
            return name, row[len(name) + 3 :]
    whole = next((each for each in names if each.count("[") <= each.count("]")), row)
    return whole, row[len(whole) + 3 :]


def _pytest_test(name: str, more: str) -> str:
    """`TestA::test_b[c::d]` as the head of its report has it."""
    base, bracket, values = name.partition("[")
    return f"{base.replace('::', '.')}{bracket}{values}{f' {more.strip()}' if more else ''}"


def _pytest_key(head: str) -> str:
    """`ERROR at setup of test_x` → `test_x`; `ERROR collecting a.py` → `a.py`."""
    return re.sub(r"\AERROR (?:at \w+ of|collecting) ", "", head)


def _pytest_failure(name: str, body: list[str]) -> FailedTest:
    messages = [line[1:].strip() for line in body if line.startswith("E ")]
    errors = [each for each in messages if re.match(r"[A-Za-z_.]+(?:Error|Exception|Exit|Interrupt|Warning)\b", each)]
    places = [match for line in body if (match := _PYTEST_PLACE.fullmatch(line))]
    own = [match for match in places if not match[1].startswith(("/", "<"))]
    own = own or [match for line in body if (match := _PYTEST_SYNTAX.fullmatch(line))] or places
    if not own and body[:1] == ["Traceback (most recent call last):"]:  # --tb=native
        return replace(_traceback_failure(_pytest_key(name), body), text="")  # the summary has it
    shown = (errors or messages or [""])[0]
    return FailedTest(
        name=_pytest_key(name),
        path=own[-1][1] if own else "",
        line=int(own[-1][2]) if own else 0,
        text=_short(shown),
    )


def unittest_run(text: str) -> TestRun | None:
    """Python's unittest, and Django's runner, which prints the same."""
    ran = re.search(r"^Ran (\d+) tests? in ", text, re.MULTILINE)
    if ran is None:
        return None
    counts: dict[str, int] = {}
    failures: list[FailedTest] = []
    for line in _lines(text[ran.end() :]):
        if match := _UNITTEST_END.fullmatch(line):
            counts = {name.strip(): int(count) for name, count in re.findall(r"([a-z ]+)=(\d+)", match[1] or "")}
    head, body = "", list[str]()
    for line in [*_lines(text[: ran.start()]), "=" * 70]:
        if match := _UNITTEST_HEAD.fullmatch(line):
            head, body = match[2] if match[2] and "." in match[2] else match[1], []
            head += f" {match[3]}" if match[3] else ""  # of a subtest
        elif line.startswith("=====") and head:
            failures.append(_traceback_failure(head, body))
            head = ""
        elif head:
            body.append(line)
    failed = counts.get("failures", 0) + counts.get("errors", 0) + counts.get("unexpected successes", 0)
    skipped = counts.get("skipped", 0)
    passed = max(int(ran[1]) - failed - skipped, 0)
    return TestRun(runner="unittest", failures=_unique(failures), passed=passed, failed=failed, skipped=skipped)


def _traceback_failure(name: str, body: list[str]) -> FailedTest:
    places = [match for line in body if (match := _TRACEBACK_PLACE.match(line))]
    own = [match for match in places if "/lib/python" not in match[1]] or places
    texts = [line for line in body if line and not line.startswith((" ", "-", "Traceback "))]
    return FailedTest(
        name=name,
        path=own[-1][1] if own else "",
        line=int(own[-1][2]) if own else 0,
        text=_short(texts[0] if texts else ""),
    )


def jest_run(text: str) -> TestRun | None:
    """jest. A suite that could not run is a failure, too."""
    totals = [match for line in _lines(text) if (match := _JEST_TESTS.fullmatch(line))]
    if not totals:
        return None
    counts = {word: int(count) for count, word in _COUNT.findall(totals[-1][1])}
    failures: list[FailedTest] = []
    suite, head, body = "", "", list[str]()

    def close() -> None:
        if head:
            failures.append(_jest_failure(head, body, suite))

    for line in _lines(text):
        if match := _JEST_PART.match(line):
            close()
            suite, head = match[1] or "", ""
        elif match := _JEST_HEAD.fullmatch(line):
            close()
            head, body = match[1], []
        elif head:
            body.append(line)
    close()
    return TestRun(
        runner="jest",
        failures=_unique(failures),
        passed=counts.get("passed", 0),
        failed=counts.get("failed", 0),
        skipped=counts.get("skipped", 0) + counts.get("todo", 0),
    )


def _jest_failure(name: str, body: list[str], suite: str) -> FailedTest:
    places = [match for line in body if (match := _STACK_PLACE.fullmatch(line))]
    own = [match for match in places if "node_modules" not in match[1] and not match[1].startswith("node:")]
    words = [line.strip() for line in body if line.strip() and not re.match(r"\s*(?:at |>?\s*\d* \|)", line)]
    wanted = [each for each in words[1:] if each.startswith(("Expected", "Received"))]
    path = suite.split(" (")[0].removeprefix("./")
    return FailedTest(
        name=name,
        path=own[0][1] if own else path,
        line=int(own[0][2]) if own else 0,
        text=_short("; ".join([*words[:1], *wanted])),
    )


def vitest_run(text: str) -> TestRun | None:
    """vitest."""
    if "Test Files" not in text:
        return None
    totals = [match for line in _lines(text) if (match := _VITEST_TESTS.fullmatch(line))]
    counts = {word: int(count) for count, word in _COUNT.findall(totals[-1][1])} if totals else {}
    lines = _lines(text)
    first = next((at for at, line in enumerate(lines) if _VITEST_PART.fullmatch(line)), 0)  # before: what tests printed
    failures = []
    for name, body in _sections(lines[first:], _VITEST_HEAD):
        unhandled = name.startswith("Unhandled")
        end = next((at for at, line in enumerate(body) if line.startswith("⎯⎯")), len(body))
        places = [match for line in body[:end] if (match := _VITEST_PLACE.fullmatch(line))]
        own = [match for match in places if "node_modules" not in match[1]]
        words = [line.strip() for line in body[:end] if line.strip()]
        path, line = (own[0][1], int(own[0][2])) if own else ("" if unhandled else name.split(" ")[0], 0)
        failures.append(FailedTest(name=name, path=path, line=line, text=_short(words[0] if words else "")))
    failed = counts.get("failed", 0)
    skipped = counts.get("skipped", 0) + counts.get("todo", 0)
    return TestRun(
        runner="vitest", failures=_unique(failures), passed=counts.get("passed", 0), failed=failed, skipped=skipped
    )


def cargo_run(text: str) -> TestRun | None:
    """cargo test: all crates and the examples in documentation."""
    totals = [match for line in _lines(text) if (match := _CARGO_END.fullmatch(line))]
    if not totals:
        return None
    failed: dict[str, None] = {}
    panics: dict[str, FailedTest] = {}  # as they happen, with `--nocapture`
    lines = _lines(text)
    told = False  # what failed tests printed, which may look like a result
    for at, line in enumerate(lines):
        if line == "failures:" or _CARGO_END.fullmatch(line):
            told = line == "failures:"
        elif told:
            continue
        elif line.startswith("test ") and (match := _CARGO_TEST.fullmatch(line)) and match[2] == "FAILED":
            failed[match[1]] = None
        elif match := _CARGO_PANIC.fullmatch(line):
            panics.setdefault(match[1], _cargo_failure(match[1], lines[at : at + 4]))
    details: dict[str, FailedTest] = {name: panics[name] for name in failed if name in panics}
    for name, body in _sections(lines, _CARGO_HEAD):
        details[name] = _cargo_failure(name, body)
    names = dict.fromkeys([*failed, *details])
    passed, lost, ignored = (sum(int(match[at]) for match in totals) for at in (1, 2, 3))
    failures = tuple(details.get(name, FailedTest(name=name)) for name in names)
    return TestRun(runner="cargo test", failures=failures, passed=passed, failed=lost, skipped=ignored)


def _cargo_failure(name: str, body: list[str]) -> FailedTest:
    for at, line in enumerate(body):
        if match := _CARGO_PANIC.fullmatch(line):
            after = [each.strip() for each in body[at + 1 : at + 4] if each.strip()]
            values = [each for each in after[1:] if each.startswith(("left:", "right:"))]
            shown = match[2] or "; ".join([*after[:1], *values])
            return FailedTest(name=name, path=match[3], line=int(match[4]), text=_short(shown))
    words = [each.strip() for each in body if each.strip()]
    return FailedTest(name=name, text=_short(words[0] if words else ""))


def go_run(text: str) -> TestRun | None:
    """go test. A test that failed only because of its subtests is left out; a package that could not run is not."""
    states: dict[str, str] = {}
    places: dict[str, tuple[str, int, str]] = {}
    packages: list[tuple[str, bool, str]] = []
    inside: list[str] = []  # tests that failed in the package that is being reported
    current, panic = "", ""
    for line in _lines(text):
        if match := _GO_TEST.fullmatch(line):
            current = match[2]
            states[current] = match[1]
            inside += [current] * (match[1] == "FAIL")
        elif match := _GO_RUN.fullmatch(line):
            current = match[1]
        elif match := _GO_PLACE.fullmatch(line):
            places.setdefault(current, (match[1], int(match[2]), match[3]))
        elif line.startswith("panic: "):
            panic = panic or line
        elif (match := _GO_PACKAGE.fullmatch(line)) and (match[3] or match[1] == "ok  "):
            bad = match[1] == "FAIL"
            packages.append((match[2], bad and not inside, panic or match[3] or ""))
            inside, panic = [], ""
    if not states and not packages:
        return None
    failed = [name for name, state in states.items() if state == "FAIL"]
    leaves = [name for name in failed if name in places or not any(other.startswith(f"{name}/") for other in failed)]
    failures = [FailedTest(name=name) if name not in places else _go_failure(name, places[name]) for name in leaves]
    failures += [FailedTest(name=name, text=_short(why)) for name, alone, why in packages if alone]
    count = {state: sum(each == state for each in states.values()) for state in ("PASS", "SKIP")}
    return TestRun(
        runner="go test",
        failures=tuple(failures),
        passed=count["PASS"] or sum(not alone for _, alone, _ in packages) if not failures else count["PASS"],
        failed=len(failures),
        skipped=count["SKIP"],
    )


def _go_failure(name: str, place: tuple[str, int, str]) -> FailedTest:
    return FailedTest(name=name, path=place[0], line=place[1], text=_short(place[2]))


PARSERS: Final[tuple[Callable[[str], TestRun | None], ...]] = (
    pytest_run,
    unittest_run,
    jest_run,
    vitest_run,
    cargo_run,
    go_run,
)


_SEVERITIES: dict[str, Severity] = {"error": "error", "fatal error": "error", "warning": "warning", "note": "note"}
_PATH = r"((?:[A-Za-z]:)?[^\s:()][^:()]*)"
_GCC = re.compile(rf"{_PATH}:(\d+)(?::(\d+))?:(?:\d+:)* (fatal error|error|warning|note)(?:\[(\w+)\])?: (.*)")
_CODE = re.compile(r"(.*?)\s+\[(-W[\w=+-]+|[a-z][a-z0-9-]+)\]")
_RUFF = re.compile(rf"{_PATH}:(\d+):(\d+): ([A-Z]+\d+|invalid-syntax:) (?:\[\*\] )?(.*)")
_GO = re.compile(r"(?:vet: )?((?:\./|\.\./)*[^\s:]+\.go):(\d+):(\d+): (.*)")
_TSC = re.compile(r"(\S[^()]*)\((\d+),(\d+)\): (error|warning) (TS\d+): (.*)")
_TSC_PRETTY = re.compile(rf"{_PATH}:(\d+):(\d+) - (error|warning) (TS\d+): (.*)")
_ARROW = re.compile(r"\s*--> (\S.*?):(\d+):(\d+)")
_RUSTC = re.compile(r"(error|warning)(?:\[(\w+)\])?: (.*)")
_RUFF_FULL = re.compile(r"([A-Z]+\d+|invalid-syntax:) (?:\[\*\] )?(.*)")
_ESLINT = re.compile(r"\s+(\d+):(\d+)\s+(error|warning)\s+(\S.*?)(?:\s{2,}(\S+))?\s*")
_ESLINT_PATH = re.compile(r"(?:/|\.{0,2}/|[A-Za-z]:\\)?[^\s:].*\.[A-Za-z]{1,5}")
_LINKER = re.compile(
    r"(?:\S*ld: )?(\S+?):\(\.[\w.+]+(?:\+0x[0-9a-f]+)?\): ((?:undefined reference to|multiple definition of) .*)"
)
_NO_LIBRARY = re.compile(r"(?:\S*ld): (cannot find -l\S+).*")
_TSC_ALONE = re.compile(r"(error|warning) (TS\d+): (.*)")
_PYTHON = re.compile(r'\s+File "(.+)", line (\d+)(?:, in .*)?')
_EXCEPTION = re.compile(r"(?:[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit|Warning)|[A-Za-z_]\w*(?:\.\w+)+)(?::.*)?")


def parse_problems(text: str) -> tuple[Problem, ...]:
    """Every error and warning, once, in the order of the text; notes are left out."""
    return tuple(dict.fromkeys(each for each in _problems(text) if each.severity != "note"))


def _problems(text: str) -> Iterator[Problem]:
    head: tuple[Severity, str, str] | None = None  # of rustc and ruff, whose place is on a later line
    file = ""  # of eslint, whose problems stand below it
    place: tuple[str, int] | None = None  # of a traceback, the innermost
    for line in text.splitlines():
        if not line or len(line) > LONGEST_LINE:
            continue
        if head and (match := _ARROW.fullmatch(line)):
            severity, code, message = head
            yield Problem(match[1], int(match[2]), message, int(match[3]), severity, code)
            head = None
        elif match := _PYTHON.fullmatch(line):
            place = (match[1], int(match[2]))
        elif place and not line.startswith(" ") and not line.startswith("Traceback "):
            if _EXCEPTION.fullmatch(line):
                yield Problem(*place, line)
            place = None
        elif file and (match := _ESLINT.fullmatch(line)):
            yield Problem(file, int(match[1]), match[4], int(match[2]), _SEVERITIES[match[3]], match[5] or "")
        elif found := _one_line(line):
            yield found
        elif match := _RUSTC.fullmatch(line):
            head = (_SEVERITIES[match[1]], match[2] or "", match[3])
        elif match := _RUFF_FULL.fullmatch(line):
            head = ("error", match[1].rstrip(":"), match[2])
        elif _ESLINT_PATH.fullmatch(line):
            file = line


def _one_line(line: str) -> Problem | None:
    """A problem that is said in one line."""
    if match := _GCC.fullmatch(line):
        message, code = match[6].rstrip(), match[5] or ""
        if own := _CODE.fullmatch(message):
            message, code = own[1], own[2]
        return Problem(match[1], int(match[2]), message, int(match[3] or 0), _SEVERITIES[match[4]], code)
    if match := _RUFF.fullmatch(line):
        return Problem(match[1], int(match[2]), match[5], int(match[3]), "error", match[4].rstrip(":"))
    if match := _TSC.fullmatch(line) or _TSC_PRETTY.fullmatch(line):
        return Problem(match[1], int(match[2]), match[6], int(match[3]), _SEVERITIES[match[4]], match[5])
    if match := _GO.fullmatch(line):
        return Problem(match[1], int(match[2]), match[4], int(match[3]))
    if match := _LINKER.fullmatch(line):
        return Problem(match[1], 0, match[2])
    if match := _NO_LIBRARY.fullmatch(line):
        return Problem("ld", 0, match[1])
    if match := _TSC_ALONE.fullmatch(line):  # of no file, or of one that is not there
        return Problem("tsc", 0, match[3], severity=_SEVERITIES[match[1]], code=match[2])
    return None


_LONG = re.compile(
    r"([-dlbcps])[-rwxsStT]{9}[.+@]?\s+\d+\s+\S+\s+\S+\s+(?:\d+,\s+\d+|([\d.]+[KMGTP]?))\s+"
    r"(?:\S+\s+\d+\s+[\d:]+|\d{4}-\d\d-\d\d \d\d:\d\d(?::[\d.]+ [-+]\d+)?)\s(.+)"
)
_KINDS = {"-": "file", "d": "folder", "l": "link"}
_MARKS = {"/": "folder", "@": "link", "*": "file", "|": "other", "=": "other"}
_UNITS = {"K": 10, "M": 20, "G": 30, "T": 40, "P": 50}
_SHORT = re.compile(r"([ MADRCUT?!])([ MADRCUT?!]) (.+)")
_STATE = re.compile(r"\t(?:(modified|new file|deleted|renamed|copied|typechange|both \w+|\w+ by \w+):\s+)?(.+)")
_COMMIT = re.compile(r"commit ([0-9a-f]{7,64})(?: .*)?")
_ONELINE = re.compile(r"[*|\\/ _]*([0-9a-f]{7,40}) (?:\([^)]*\) )?(\S.*)")
_CHANGED = re.compile(r" (\d+) files? changed(?:, (\d+) insertions?\(\+\))?(?:, (\d+) deletions?\(-\))?")
_STAT = re.compile(r" (.+?)\s+\|\s+(?:\d+ ?[-+]*|Bin\b.*)")


def file_listing(text: str) -> ListedFiles | None:
    """What `ls` printed, with or without `-l`."""
    found: list[ListedFile] = []
    rows = [each for each in _lines(text) if each.strip()]
    if any(_LONG.fullmatch(row) for row in rows):
        for row in rows:
            if match := _LONG.fullmatch(row):
                name, _, target = match[3].partition(" -> ") if match[1] == "l" else (match[3], "", "")
                if name not in (".", ".."):
                    found.append(_listed(name, _KINDS.get(match[1], "other"), _size(match[2]), target))
        return ListedFiles(tuple(found))
    for row in rows:
        if row.endswith(":") or row.startswith(("ls: ", "total ")):  # the head of a folder, an error
            continue
        mark = _MARKS.get(row[-1])
        found.append(_listed(row[:-1], mark) if mark and len(row) > 1 else _listed(row, "file"))
    return ListedFiles(tuple(found)) if found else None


def _listed(name: str, kind: str, size: int | None = None, target: str = "") -> ListedFile:
    match kind:
        case "folder" | "link" | "file":
            return ListedFile(name=name, kind=kind, size=size, target=target)
    return ListedFile(name=name, kind="other", size=size, target=target)


def _size(text: str | None) -> int | None:
    if text is None:
        return None
    shift = _UNITS.get(text[-1], 0)
    try:
        return int(float(text.rstrip("KMGTP")) * (1 << shift))
    except ValueError:
        return None


def git_status(text: str) -> GitStatus | None:
    """What `git status` printed, long or short."""
    lines = _lines(text)
    if any(each.startswith(("On branch ", "HEAD detached", "Not currently on any branch")) for each in lines):
        return _long_status(lines)
    rows = [each for each in lines if each]
    if not rows or not all(each.startswith("## ") or _SHORT.fullmatch(each) for each in rows):
        return None
    branch, names = "", {"staged": [], "changed": [], "untracked": [], "conflicts": []}  # type: ignore[var-annotated]
    for row in rows:
        if row.startswith("## "):
            branch = row[3:].partition("...")[0].removeprefix("No commits yet on ")
            continue
        index, tree, name = row[0], row[1], row[3:]
        if index == "?":
            names["untracked"].append(name)
        elif index == "!":
            continue
        elif "U" in (index, tree) or (index, tree) in (("A", "A"), ("D", "D")):
            names["conflicts"].append(name)
        else:
            if index != " ":
                names["staged"].append(name)
            if tree != " ":
                names["changed"].append(name)
    return GitStatus(branch=branch, **{key: tuple(each) for key, each in names.items()})


_SECTIONS = {
    "Changes to be committed:": "staged",
    "Changes not staged for commit:": "changed",
    "Untracked files:": "untracked",
    "Unmerged paths:": "conflicts",
}


def _long_status(lines: list[str]) -> GitStatus:
    branch, section = "", ""
    names: dict[str, list[str]] = {each: [] for each in _SECTIONS.values()}
    for row in lines:
        if row.startswith(("On branch ", "HEAD detached at ", "HEAD detached from ")):
            branch = row.removeprefix("On branch ")
        elif row in _SECTIONS:
            section = _SECTIONS[row]
        elif section and (match := _STATE.fullmatch(row)):
            names[section].append(match[2])
    return GitStatus(branch=branch, **{key: tuple(each) for key, each in names.items()})


def git_log(text: str) -> GitLog | None:
    """What `git log` printed, in its own format or with `--oneline`."""
    lines = _lines(text)
    if any(_COMMIT.fullmatch(each) for each in lines):
        return _long_log(lines)
    found = [match for each in lines if (match := _ONELINE.fullmatch(each))]
    rows = [each for each in lines if each.strip(" |\\/_*")]
    if not found or len(found) < len(rows):
        return None
    return GitLog(tuple(GitCommit(match[1], match[2]) for match in found))


def _long_log(lines: list[str]) -> GitLog:
    commits: list[GitCommit] = []
    id = author = date = ""
    for row in lines:
        if match := _COMMIT.fullmatch(row):
            if id:
                commits.append(GitCommit(id, "", author, date))
            id, author, date = match[1], "", ""
        elif row.startswith("Author: "):
            author = row[8:].strip()
        elif row.startswith("Date: "):
            date = row[6:].strip()
        elif id and row.startswith("    ") and row.strip():
            commits.append(GitCommit(id, row.strip(), author, date))
            id = ""
    if id:
        commits.append(GitCommit(id, "", author, date))
    return GitLog(tuple(commits))


def diff_stat(text: str) -> DiffStat | None:
    """What `git diff --stat` or `--shortstat` printed."""
    files: list[str] = []
    for row in _lines(text):
        if match := _CHANGED.fullmatch(row):
            changed, added, removed = (int(each or 0) for each in match.groups())
            return DiffStat(files=tuple(files), changed=changed, insertions=added, deletions=removed)
        if match := _STAT.fullmatch(row):
            files.append(match[1].strip())
    return None
