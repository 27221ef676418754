"""Results of test runners: pytest, unittest, jest, vitest, cargo test, go test."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from tarmac.tools.output.values import LONGEST_LINE, FailedTest, TestRun

LONGEST_TEXT: Final = 300  # characters of a failure's message
_COUNT = re.compile(r"(\d+) ([a-z]+)")
_PYTEST_END = re.compile(
    r"(?:=+ )?((?:\d+ (?:failed|passed|errors?|skipped|xfailed|xpassed|deselected|warnings?|rerun|subtests [a-z]+)"
    r"(?:, )?)+|no tests ran) in [\d.]+s\b.*"
)
_PYTEST_SUMMARY = re.compile(r"(?:FAILED|ERROR) (\S(?:.*?\S)?)(?: - (.*))?")
_PYTEST_HEAD = re.compile(r"_{3,} (\S.*?) _{3,}")
_PYTEST_PLACE = re.compile(r"([^\s:][^:]*):(\d+): ?(.*)")
_PYTEST_SYNTAX = re.compile(r'E\s+File "(.+)", line (\d+)')
_UNITTEST_HEAD = re.compile(r"(FAIL|ERROR): (\S+)(?: \((.+)\))?(?: \[.*)?")
_UNITTEST_END = re.compile(r"(?:FAILED|OK)(?: \((.*)\))?")
_TRACEBACK_PLACE = re.compile(r'\s*File "(.+)", line (\d+)')
_JEST_HEAD = re.compile(r"\s*● (?!Console$)(\S.*)")
_JEST_TESTS = re.compile(r"Tests:\s+(\d.*)")
_STACK_PLACE = re.compile(r"\s+at (?:.*\()?(?:file://)?([^\s()]+?):(\d+):\d+\)?")
_VITEST_HEAD = re.compile(r"\s*FAIL\s+(\S.*)")
_VITEST_PLACE = re.compile(r"\s*❯ (?:.*\s)?(\S+?):(\d+):\d+")
_VITEST_TESTS = re.compile(r"\s*Tests\s+(\d.*)")
_CARGO_TEST = re.compile(r"test (\S.*?) \.\.\. (ok|FAILED|ignored)\b.*")
_CARGO_HEAD = re.compile(r"---- (\S.*?) (?:stdout|stderr) ----")
_CARGO_PANIC = re.compile(r"thread .* panicked at (?:'(.*)', )?(\S+?):(\d+):\d+:?")
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


def _lines(text: str) -> Iterator[str]:
    return (each for each in text.splitlines() if len(each) <= LONGEST_LINE)


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
            name, body = match[1], []
        elif name:
            body.append(line)
    if name:
        yield name, body


def pytest_run(text: str) -> TestRun | None:
    """pytest, with any `--tb` and with or without `-v`."""
    ends = [match for line in _lines(text) if (match := _PYTEST_END.fullmatch(line))]
    if not ends:
        return None
    counts = {word.rstrip("s"): int(count) for count, word in _COUNT.findall(ends[-1][1])}
    details = {_pytest_key(name): _pytest_failure(name, body) for name, body in _pytest_sections(text)}
    failures: dict[str, FailedTest] = {}
    for line in _lines(text):
        if not line.startswith(("FAILED ", "ERROR ")) or not (match := _PYTEST_SUMMARY.fullmatch(line)):
            continue
        path, _, rest = match[1].partition("::")
        known = details.get(rest.replace("::", ".") or path, FailedTest(name=match[1]))
        failures[match[1]] = FailedTest(
            name=match[1], path=known.path or path, line=known.line, text=known.text or _short(match[2] or "")
        )
    failed = counts.get("failed", 0) + counts.get("error", 0)
    found = tuple(failures.values()) or tuple(details.values())
    skipped = counts.get("skipped", 0) + counts.get("xfailed", 0)
    return TestRun(runner="pytest", failures=found, passed=counts.get("passed", 0), failed=failed, skipped=skipped)


def _pytest_sections(text: str) -> Iterator[tuple[str, list[str]]]:
    for name, body in _sections(_lines(text), _PYTEST_HEAD):
        end = next((at for at, line in enumerate(body) if line.startswith("=====")), len(body))
        yield name, body[:end]


def _pytest_key(head: str) -> str:
    """`ERROR at setup of test_x` → `test_x`; `ERROR collecting a.py` → `a.py`."""
    return re.sub(r"\AERROR (?:at \w+ of|collecting) ", "", head)


def _pytest_failure(name: str, body: list[str]) -> FailedTest:
    messages = [line[1:].strip() for line in body if line.startswith("E ")]
    errors = [each for each in messages if re.match(r"[A-Za-z_.]+(?:Error|Exception|Exit|Interrupt|Warning)\b", each)]
    places = [match for line in body if (match := _PYTEST_PLACE.fullmatch(line))]
    own = [match for match in places if not match[1].startswith(("/", "<"))]
    own = own or [match for line in body if (match := _PYTEST_SYNTAX.fullmatch(line))] or places
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
            head, body = match[3] if match[3] and "." in match[3] else match[2], []
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
        if line.startswith(("FAIL ", "PASS ", "Test Suites:", "Summary of all failing tests")):
            close()
            suite, head = line[5:].strip() if line.startswith("FAIL ") else "", ""
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
    own = [match for match in places if "node_modules" not in match[1] and not match[1].startswith("node:")] or places
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
    failures = []
    for name, body in _sections(_lines(text), _VITEST_HEAD):
        end = next((at for at, line in enumerate(body) if line.startswith("⎯⎯")), len(body))
        places = [match for line in body[:end] if (match := _VITEST_PLACE.fullmatch(line))]
        own = [match for match in places if "node_modules" not in match[1]] or places
        words = [line.strip() for line in body[:end] if line.strip()]
        path, line = (own[0][1], int(own[0][2])) if own else (name.split(" ")[0], 0)
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
    failed = dict.fromkeys(
        match[1]
        for line in _lines(text)
        if line.startswith("test ") and (match := _CARGO_TEST.fullmatch(line)) and match[2] == "FAILED"
    )
    details: dict[str, FailedTest] = {}
    for name, body in _sections(_lines(text), _CARGO_HEAD):
        details.setdefault(name, _cargo_failure(name, body))
    names = dict.fromkeys([*failed, *details])
    passed, lost, ignored = (sum(int(match[at]) for match in totals) for at in (1, 2, 3))
    failures = tuple(details.get(name, FailedTest(name=name)) for name in names)
    return TestRun(runner="cargo test", failures=failures, passed=passed, failed=lost, skipped=ignored)


def _cargo_failure(name: str, body: list[str]) -> FailedTest:
    for at, line in enumerate(body):
        if match := _CARGO_PANIC.fullmatch(line):
            after = [each.strip() for each in body[at + 1 : at + 4] if each.strip()]
            values = [each for each in after[1:] if each.startswith(("left:", "right:"))]
            shown = match[1] or "; ".join([*after[:1], *values])
            return FailedTest(name=name, path=match[2], line=int(match[3]), text=_short(shown))
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
