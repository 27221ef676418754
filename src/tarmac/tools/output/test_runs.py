"""Read what test runners print.

parse_tests    pytest, unittest, jest, vitest, mocha, node --test, TAP, prove, cargo test, go test
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

from tarmac.tools.output.values import FailedTest, TestRun, whole_lines

LONGEST_TEXT: Final = 300  # characters of a failure's message
_COUNT = re.compile(r"(\d+) ([a-z]+)")
_PYTEST_END = re.compile(
    r"(?:=+ )?((?:\d+ (?:failed|passed|errors?|skipped|xfailed|xpassed|deselected|warnings?|rerun|subtests [a-z]+)"
    r"(?:, )?)+|no tests ran) in [\d.]+s\b.*"
)
_PYTEST_START = re.compile(r"=+ test session starts =+")
_PYTEST_USAGE = re.compile(r"ERROR: ((?:file or directory )?not found: .*)")
_PYTEST_SUMMARY = re.compile(r"(?:(FAILED|ERROR)|SUBFAIL(?:ED)?((?:\[.*?\])?(?: ?\(.*?\))?)) (\S.*)")
_PYTEST_PART = re.compile(r"=+ (ERRORS|FAILURES|X?PASSES|XFAILURES|warnings summary.*|short test summary info) =+")
_PYTEST_HEAD = re.compile(r"_{3,} (\S.*?) _{3,}")
_PYTEST_PLACE = re.compile(r"([^\s:][^:]*):(\d+): ?(.*)")
_PYTEST_LONE = re.compile(r"(/[^\s:][^:]*):(\d+): (\S.*)")
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
_MOCHA_PASSING = re.compile(r"  (\d+) passing \(.*\)")
_MOCHA_COUNT = re.compile(r"  (\d+) (pending|failing)")
_MOCHA_HEAD = re.compile(r"  (\d+)\) (\S.*)")
_MOCHA_FILE = re.compile(r".*\((/[^()]+\.[cm]?[jt]sx?)\)")
_NODE_COUNT = re.compile(r"ℹ (tests|pass|fail|cancelled|skipped|todo) (\d+)")
_NODE_FAILED = re.compile(r"(?:✖ failing tests|Failed tests):")
_NODE_DEFINED = re.compile(r"test at (\S.*?):(\d+):\d+")
_NODE_HEAD = re.compile(r"✖ (\S.*?)(?: \([\d.]+m?s\))?( # (?:TODO|SKIP).*)?", re.IGNORECASE)
_TAP_PLAN = re.compile(r"1\.\.\d+(?: .*)?|TAP version 1[34]")
_TAP_TEST = re.compile(r"( *)(not )?ok(?: (\d+))?(?: -)?(?: (\S.*?))??(?: +# *((?i:skip|todo))\b.*)?")
_TAP_TIME = re.compile(r" # time=[\d.]+ms.*| \{\Z")  # of vitest
_TAP_SUBTEST = re.compile(r"( *)# Subtest: (.*)")
_TAP_STACK = re.compile(r"(?:^|[\s('\"])((?:node:|file://)?[^\s()'\":]+):(\d+):\d+")
_TAP_LINE = re.compile(r"[ #]*(?:Failed test )?(?:at |\(?in test file )(\S+?),? line (\d+)\.?\)?")
_TAP_SAID = re.compile(r"\s*(?:error|message): (.*)")
_TAP_NOISE = re.compile(r"(?:#|Failed test|Looks like|at |\(in test file|1\.\.|---|\.\.\.|\w+: \||~).*|")
_PROVE_START = re.compile(r"\S.* \.{2,} ?(?:ok|skipped.*)?")
_PROVE_END = re.compile(r"Files=\d+, Tests=(\d+),.*")
_PROVE_FILE = re.compile(r"(\S.*?)\s+\(Wstat: .*Tests: (\d+) Failed: (\d+)\)")
_PROVE_FAILED = re.compile(r" *#   Failed test(?: '(.*)')?( at \S+ line \d+\.)?")
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
    return _together([run for parser in PARSERS if (run := parser(text)) is not None])


def _together(runs: Sequence[TestRun]) -> TestRun | None:
    if len(runs) < 2:
        return runs[0] if runs else None
    return TestRun(
        runner=", ".join(dict.fromkeys(run.runner for run in runs)),
        failures=tuple(each for run in runs for each in run.failures),
        passed=sum(run.passed for run in runs),
        failed=sum(max(run.failed, len(run.failures)) for run in runs),
        skipped=sum(run.skipped for run in runs),
    )


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
    runs: list[TestRun] = []
    lines: list[str] = []
    end = ""  # the numbers, which a failed test may have printed, too
    in_report = in_summary = False

    def close() -> None:
        nonlocal lines, end, in_report, in_summary
        runs.append(_pytest_run(lines, end))
        lines, end, in_report, in_summary = [], "", False, False

    for line in whole_lines(text):
        part = _PYTEST_PART.fullmatch(line)
        if usage := runs and _PYTEST_USAGE.fullmatch(line):  # a wrong path or name, after the numbers
            runs.append(TestRun(runner="pytest", failures=(FailedTest(name="pytest", text=_short(usage[1])),)))
        begins = _PYTEST_START.fullmatch(line) or (part and (in_summary or part[1] in ("ERRORS", "FAILURES")))
        if begins and (end or in_summary):
            close()
        lines.append(line)
        if part:
            in_report, in_summary = False, part[1] == "short test summary info"
        elif not in_summary and _PYTEST_HEAD.fullmatch(line):
            in_report = True
        elif numbers := _PYTEST_END.fullmatch(line):
            end = numbers[1]
            if not in_report:
                close()
    if end or in_summary:  # with -qq the numbers are not printed
        close()
    return _together(runs)


def _pytest_run(lines: list[str], end: str) -> TestRun:
    counts: Counter[str] = Counter()
    for count, word in _COUNT.findall(end):
        counts[word.rstrip("s")] += int(count)
    reports, rows, lone = _pytest_reports(lines)
    failures: dict[str, FailedTest] = {}
    for match in filter(None, map(_PYTEST_SUMMARY.fullmatch, rows)):
        kind, more = match[1] or "FAILED", match[2] or ""
        name, text = _pytest_name(match[3], {each for known, each in reports if known == kind}, more)
        path, _, rest = name.partition("::")
        found = reports.get((kind, _pytest_test(rest, more) or path))
        known = found.pop(0) if found else _taken(lone, path, text)
        shown = f"{name} {more.strip()}" if more else name
        inside = known.path.endswith(f"/{path}")  # an absolute path, of a native traceback
        failures[shown] = FailedTest(
            name=shown,
            path=path if inside else known.path or path,
            line=known.line,
            text=known.text or _short(text),
        )
    left = [each for found in reports.values() for each in found]  # of which no row tells, as with `-rN`
    if not failures:
        left += lone
    failed = counts["failed"] + counts["error"]
    if (more := failed - len(failures) - len(left)) > 0:
        left.append(FailedTest(name="pytest", text=f"{more} failed of which the output has no name: run it with -rfE"))
    skipped = counts["skipped"] + counts["xfailed"]
    return TestRun(
        runner="pytest",
        failures=(*failures.values(), *left),
        passed=counts["passed"],
        failed=failed,
        skipped=skipped,
    )


def _taken(lone: list[FailedTest], path: str, text: str) -> FailedTest:
    """The line of `--tb=line` that tells of a row: the first with its message in its file. It is taken out."""
    for at, each in enumerate(lone):
        if each.text.startswith(text.removesuffix("...")) and each.path.endswith(path):
            return lone.pop(at)
    return FailedTest(name=path)


def _pytest_reports(
    lines: list[str],
) -> tuple[dict[tuple[str, str], list[FailedTest]], list[str], list[FailedTest]]:
    """The reports of failures, by kind and test in their order; the rows of the summary; failures told in one line.

    A report has what the test printed, which may look like a row. So rows stand after the head of the summary or, where
    that was cut off, after the last report.
    """
    reports: dict[tuple[str, str], list[FailedTest]] = {}
    part, name, body, rows = "", "", list[str](), list[str]()
    lone: list[FailedTest] = []

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
        elif part in ("ERRORS", "FAILURES"):
            if match := _PYTEST_LONE.fullmatch(line):
                lone.append(FailedTest(name=f"{match[1]}:{match[2]}", path=match[1], line=int(match[2]), text=match[3]))
        else:
            rows.append(line)
    close()
    return reports, rows, lone


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
    if not own and "Traceback (most recent call last):" in body[:2]:  # --tb=native, below the worker of xdist
        end = next((at for at, line in enumerate(body) if re.match(r"-+ Captured ", line)), len(body))
        last = max((at for at, line in enumerate(body[:end]) if line.startswith("Traceback ")), default=0)
        return _traceback_failure(_pytest_key(name), body[last:end])
    shown = (errors or messages or [""])[0]
    return FailedTest(
        name=_pytest_key(name),
        path=own[-1][1] if own else "",
        line=int(own[-1][2]) if own else 0,
        text=_short(shown),
    )


def unittest_run(text: str) -> TestRun | None:
    """Python's unittest, and Django's runner, which prints the same."""
    ends = list(re.finditer(r"^Ran (\d+) tests? in ", text, re.MULTILINE))
    starts = [0, *(each.end() for each in ends)]
    return _together(
        [
            _unittest_run(text[start : end.start()], int(end[1]), text[end.end() :])
            for start, end in zip(starts, ends, strict=False)
        ]
    )


def _unittest_run(text: str, ran: int, after: str) -> TestRun:
    failures: list[FailedTest] = []
    result = next(filter(None, map(_UNITTEST_END.fullmatch, whole_lines(after[:2_000]))), None)
    found = re.findall(r"([a-z ]+)=(\d+)", (result and result[1]) or "")
    counts = Counter({name.strip(): int(count) for name, count in found})
    head, body = "", list[str]()
    for line in [*whole_lines(text), "=" * 70]:
        if match := _UNITTEST_HEAD.fullmatch(line):
            head, body = match[2] if match[2] and "." in match[2] else match[1], []
            head += f" {match[3]}" if match[3] else ""  # of a subtest
        elif line.startswith("=====") and head:
            failures.append(_traceback_failure(head, body))
            head = ""
        elif head:
            body.append(line)
    failed = counts["failures"] + counts["errors"] + counts["unexpected successes"]
    skipped = counts["skipped"]
    passed = max(ran - failed - skipped, 0)
    return TestRun(runner="unittest", failures=_unique(failures), passed=passed, failed=failed, skipped=skipped)


def _traceback_failure(name: str, body: list[str]) -> FailedTest:
    places = [match for line in body if (match := _TRACEBACK_PLACE.match(line))]
    own = [match for match in places if "/lib/python" not in match[1]] or places
    texts = [line for line in body if line and not line.startswith((" ", "-", "[gw", "Traceback "))]
    return FailedTest(
        name=name,
        path=own[-1][1] if own else "",
        line=int(own[-1][2]) if own else 0,
        text=_short(texts[0] if texts else ""),
    )


def jest_run(text: str) -> TestRun | None:
    """jest. A suite that could not run is a failure, too."""
    totals = [match for line in whole_lines(text) if (match := _JEST_TESTS.fullmatch(line))]
    if not totals:
        return None
    counts = {word: int(count) for count, word in _COUNT.findall(totals[-1][1])}
    failures: list[FailedTest] = []
    suite, head, body = "", "", list[str]()

    def close() -> None:
        if head:
            failures.append(_jest_failure(head, body, suite))

    for line in whole_lines(text):
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
    totals = [match for line in whole_lines(text) if (match := _VITEST_TESTS.fullmatch(line))]
    counts = {word: int(count) for count, word in _COUNT.findall(totals[-1][1])} if totals else {}
    lines = whole_lines(text)
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


def mocha_run(text: str) -> TestRun | None:
    """mocha and Cypress, with a reporter that ends with the list of failures (spec, dot, min, list …)."""
    lines = whole_lines(text)
    starts = [at for at, line in enumerate(lines) if _MOCHA_PASSING.fullmatch(line)]
    if not starts:
        return None
    counts: Counter[str] = Counter()
    failures: list[FailedTest] = []
    for start, end in pairwise([*starts, len(lines)]):  # Cypress: a list for each file
        counts["passing"] += int(lines[start].split()[0])
        heads: list[int] = []
        for at in range(start + 1, end):
            if match := _MOCHA_COUNT.fullmatch(lines[at]):
                counts[match[2]] += int(match[1])
            elif (match := _MOCHA_HEAD.fullmatch(lines[at])) and int(match[1]) == len(heads) + 1:
                heads.append(at)
        failures += [_mocha_failure(lines[at:to]) for at, to in pairwise([*heads, end])]
    return TestRun(
        runner="mocha",
        failures=tuple(failures),
        passed=counts["passing"],
        failed=counts["failing"],
        skipped=counts["pending"],
    )


def _mocha_failure(rows: list[str]) -> FailedTest:
    """A title over one line for each suite, the last of which ends with a colon; what was thrown; the stack."""
    size = next((at for at, row in enumerate(rows) if row.endswith(":")), 0) + 1
    if not all(row.startswith("       ") for row in rows[1:size]):
        size = 1
    title = [rows[0].partition(") ")[2], *(row.strip() for row in rows[1:size])]
    words = [row.strip() for row in rows[size:] if row.strip()]
    place = _own_place(rows[size:])
    file = next((match for row in rows[size:] if (match := _MOCHA_FILE.fullmatch(row))), None)
    return FailedTest(
        name=" > ".join(title).removesuffix(":"),
        path=place[0] if place else file[1] if file else "",
        line=place[1] if place else 0,
        text=_said(words),
    )


def _said(words: list[str]) -> str:
    """The first line of a message, and the second if the first only announces it."""
    return _short(" ".join(words[: 2 if words and words[0].endswith(":") else 1]))


def _own_place(rows: list[str]) -> tuple[str, int] | None:
    """The first place of a stack of Node.js that is neither Node.js itself nor a package."""
    for row in rows:
        match = _STACK_PLACE.fullmatch(row)
        if match and not match[1].startswith("node:") and "node_modules" not in match[1]:
            return match[1], int(match[2])
    return None


def node_run(text: str) -> TestRun | None:
    """node --test with its reporters spec and dot. (Its other reporter is TAP.)"""
    lines = whole_lines(text)
    counts: Counter[str] = Counter()
    for match in filter(None, map(_NODE_COUNT.fullmatch, lines)):
        counts[match[1]] += int(match[2])
    starts = {at for at, line in enumerate(lines) if _NODE_FAILED.fullmatch(line)}
    if not counts and not starts:
        return None
    failures: list[FailedTest] = []
    defined: tuple[str, int] | None = None
    name, body = "", list[str]()

    def close() -> None:
        if name:
            words = [row.strip().strip("'") for row in body if row.strip()]
            place = _own_place(body) or defined or ("", 0)
            failures.append(FailedTest(name=name, path=place[0], line=place[1], text=_said(words)))

    # Where the list of failures was cut off, the tests themselves say it.
    listed = not starts and bool(counts["fail"] or counts["cancelled"])
    for at, line in enumerate(lines):
        if at in starts or (starts and line.startswith(("▶ ", "✔ ", "ℹ "))):
            close()
            name, defined, listed = "", None, at in starts
        elif not listed:
            continue
        elif place := _NODE_DEFINED.fullmatch(line):
            close()
            name, defined = "", (place[1], int(place[2]))
        elif head := _NODE_HEAD.fullmatch(line if starts else line.strip()):
            if name:
                close()
                defined = None
            name, body = "" if head[2] else head[1], []
        else:
            body.append(line)
    close()
    return TestRun(
        runner="node --test",
        failures=_unique(failures),
        passed=counts["pass"],
        failed=counts["fail"] + counts["cancelled"],
        skipped=counts["skipped"] + counts["todo"],
    )


def tap_run(text: str) -> TestRun | None:
    """The Test Anything Protocol: node --test, tape, bats, perl, mocha's reporter tap."""
    lines = whole_lines(text)
    ends = [at for at, line in enumerate(lines) if _PROVE_END.fullmatch(line)]
    if ends:  # what prove read itself is in its own report
        start = next((at for at, line in enumerate(lines) if _PROVE_START.fullmatch(line)), 0)
        lines = lines[:start] + lines[ends[-1] :]
    if not any(map(_TAP_PLAN.fullmatch, lines)):
        return None
    counts: Counter[str] = Counter()
    failures: list[FailedTest] = []
    inside: list[str] = []  # the subtests that this line is in
    open_: tuple[str, int] | None = None
    body: list[str] = []

    def close() -> None:
        if open_ and not any("failureType: 'subtestsFailed'" in row for row in body):
            failures.append(_tap_failure(open_[0], body))

    for line in lines:
        if match := _TAP_TEST.fullmatch(line):
            close()
            open_, body = None, []
            depth = len(match[1]) // 4
            inside += [""] * (depth - len(inside))
            kind = match[5].lower() if match[5] else "failed" if match[2] else "passed"
            counts[kind] += 1
            title = _TAP_TIME.sub("", match[4] or f"test {match[3] or counts.total()}").replace("\\#", "#")
            if kind == "failed":
                open_ = (" > ".join([*filter(None, inside[:depth]), title]), depth)
            if line.endswith(" {"):  # those in it follow
                inside = [*inside[:depth], title]
        elif match := _TAP_SUBTEST.fullmatch(line):
            depth = len(match[1]) // 4
            inside = [*inside[:depth], *[""] * (depth - len(inside)), match[2].replace("\\#", "#")]
            if open_ and depth > open_[1]:
                body.append(line)
            else:
                close()
                open_, body = None, []
        elif line.startswith("Bail out!"):
            close()
            open_, body = None, []
            failures.append(FailedTest(name=line))
        elif open_:
            body.append(line)
    close()
    if not counts and not failures:
        return None
    skipped = counts["skip"] + counts["todo"]
    return TestRun(
        runner="TAP", failures=_unique(failures), passed=counts["passed"], failed=len(failures), skipped=skipped
    )


def _tap_failure(name: str, body: list[str]) -> FailedTest:
    end = next((at for at, row in enumerate(body) if row.startswith(("TAP version", "# tests "))), len(body))
    body = body[:end]
    stack = [match for row in body if (match := _TAP_STACK.search(row)) and not match[1].startswith("node:")]
    own = [match for match in stack if "node_modules" not in match[1] and "location: " not in match.string]
    places = own or stack or [match for row in body if (match := _TAP_LINE.fullmatch(row))]
    said = next((at for at, row in enumerate(body) if _TAP_SAID.fullmatch(row)), None)
    words = [row.strip(" #") for row in body]
    if said is not None:
        value = words[said].partition(": ")[2]
        words = words[said + 1 :] if re.fullmatch(r"[|>][+-]?", value) else [value.strip("'\"")]
    words = [each for each in words if not _TAP_NOISE.fullmatch(each)]
    first, second = [*words, "", ""][:2]
    alone = not second or said is not None or second.endswith(first)
    return FailedTest(
        name=name,
        path=places[0][1].removeprefix("file://") if places else "",
        line=int(places[0][2]) if places else 0,
        text=_said(words) if alone or first.endswith(":") else _short(f"{first}; {second}"),
    )


def prove_run(text: str) -> TestRun | None:
    """prove, and `make test` of Perl: the comments of the tests, and the files of the report."""
    lines = whole_lines(text)
    totals = [int(match[1]) for line in lines if (match := _PROVE_END.fullmatch(line))]
    if not totals:
        return None
    failures: list[FailedTest] = []
    for at, line in enumerate(lines):
        if (match := _PROVE_FAILED.fullmatch(line)) and "(TODO)" not in line:
            depth = len(line) - len(line.lstrip())
            body = [row for row in lines[at + 1 : at + 8] if row.startswith(f"{' ' * depth}#  ")]
            again = next((to for to, row in enumerate(body) if _PROVE_FAILED.fullmatch(row)), len(body))
            found = _tap_failure(match[1] or "", [match[2] or "", *body[:again]])
            failures.append(replace(found, name=found.name or found.place))
    lost = 0
    files = [at for at, line in enumerate(lines) if _PROVE_FILE.fullmatch(line)]
    for at, end in pairwise([*files, len(lines)]):
        if match := _PROVE_FILE.fullmatch(lines[at]):
            said = [row.strip() for row in lines[at + 1 : end] if row.startswith("  ")]
            known = sum(each.path == match[1] for each in failures)
            lost += max(int(match[3]), 1)
            if known < int(match[3]) or not known or any(row.startswith("Parse errors") for row in said):
                failures.append(FailedTest(name=match[1], path=match[1], text=_short("; ".join(said))))
    return TestRun(runner="prove", failures=_unique(failures), passed=max(sum(totals) - lost, 0), failed=lost)


def cargo_run(text: str) -> TestRun | None:
    """cargo test: all crates and the examples in documentation."""
    totals = [match for line in whole_lines(text) if (match := _CARGO_END.fullmatch(line))]
    if not totals:
        return None
    failed: dict[str, None] = {}
    panics: dict[str, FailedTest] = {}  # as they happen, with `--nocapture`
    lines = whole_lines(text)
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
    for line in whole_lines(text):
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
    mocha_run,
    node_run,
    tap_run,
    prove_run,
    cargo_run,
    go_run,
)
