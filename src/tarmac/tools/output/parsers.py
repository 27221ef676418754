"""Read what compilers, linters and listings print.

parse_problems   gcc, clang, javac, go, tsc, rustc, ruff, mypy, pylint, eslint, pyright, Python
file_listing, git_status, git_log, diff_stat    listings: ls, git
"""

import json
import re
from collections.abc import Iterator
from typing import Final

from tarmac.tools.output.values import (
    DiffStat,
    GitCommit,
    GitLog,
    GitStatus,
    ListedFile,
    ListedFiles,
    Problem,
    Severity,
    whole_lines,
)

_SEVERITIES: dict[str, Severity] = {
    "error": "error",
    "fatal error": "error",
    "warning": "warning",
    "note": "note",
    "notice": "note",
}
_PATH = r"((?:[A-Za-z]:)?[^\s:()][^:()]*)"
_GCC = re.compile(rf"{_PATH}:(\d+)(?::(\d+))?:(?:\d+:)* (fatal error|error|warning|note)(?:\[(\w+)\])?: (.*)")
_CODE = re.compile(r"(.*?)\s+\[(-W[\w=+-]+|[a-z][a-z0-9-]+)\]")
_RULE = r"([A-Z]+\d+|invalid-syntax):? (?:\[\*\] )?(.*)"
_RUFF = re.compile(rf"{_PATH}:(\d+):(\d+): {_RULE}")  # as flake8 and pylint
_RUFF_PYLINT = re.compile(rf"{_PATH}:(\d+): \[([A-Z]+\d+|invalid-syntax)[^\]]*\] (.*)")
_RUFF_GROUPED = re.compile(rf"\s+(\d+):(\d+)\s+{_RULE}")
_GITHUB = re.compile(r"::(error|warning|notice) ([^:].*?)::(.*)")
_GITHUB_FIELD = re.compile(r"(file|line|col|title)=([^,]*)")
_GO = re.compile(r"(?:vet: )?((?:\./|\.\./)*[^\s:]+\.go):(\d+):(\d+): (.*)")
_TSC = re.compile(r"(\S[^()]*)\((\d+),(\d+)\): (error|warning) (TS\d+): (.*)")
_TSC_PRETTY = re.compile(rf"{_PATH}:(\d+):(\d+) - (error|warning) (TS\d+): (.*)")
_ARROW = re.compile(r"\s*--> (\S.*?):(\d+):(\d+)")
_RUSTC = re.compile(r"(error|warning)(?:\[(\w+)\])?: (.*)")
_RUFF_FULL = re.compile(_RULE)
_ESLINT = re.compile(r"\s+(\d+):(\d+)\s+(error|warning)\s+(\S.*?)(?:\s{2,}(\S+))?\s*")
_HEADING = re.compile(r"((?:/|\.{0,2}/|[A-Za-z]:\\)?[^\s:].*\.[A-Za-z]{1,5}):?")
_LINKER = re.compile(
    r"(?:\S*ld: )?(\S+?):\(\.[\w.+]+(?:\+0x[0-9a-f]+)?\): ((?:undefined reference to|multiple definition of) .*)"
)
_NO_LIBRARY = re.compile(r"(?:\S*ld): (cannot find -l\S+).*")
_TSC_ALONE = re.compile(r"(error|warning) (TS\d+): (.*)")
_PYTHON = re.compile(r'\s+File "(.+)", line (\d+)(?:, in .*)?')
_EXCEPTION = re.compile(r"(?:[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit|Warning)|[A-Za-z_]\w*(?:\.\w+)+)(?::.*)?")


def parse_problems(text: str) -> tuple[Problem, ...]:
    """Every error and warning, once, in the order of the text; notes are left out."""
    found = [*_problems(text), *_json_problems(text)]
    return tuple(dict.fromkeys(each for each in found if each.severity != "note"))


def _problems(text: str) -> Iterator[Problem]:
    head: tuple[Severity, str, str] | None = None  # of rustc and ruff, whose place is on a later line
    file = ""  # of eslint and ruff, whose problems stand below it
    place: tuple[str, int] | None = None  # of a traceback: the innermost in the user's own files
    for line in whole_lines(text):
        if not line:
            continue
        if head and (match := _ARROW.fullmatch(line)):
            severity, code, message = head
            yield Problem(match[1], int(match[2]), message, int(match[3]), severity, code)
            head = None
        elif match := _PYTHON.fullmatch(line):
            if place is None or "/lib/python" not in match[1] or "/lib/python" in place[0]:
                place = (match[1], int(match[2]))
        elif place and not line.startswith(" ") and not line.startswith("Traceback "):
            if _EXCEPTION.fullmatch(line):
                yield Problem(*place, line)
            place = None
        elif file and (match := _ESLINT.fullmatch(line)):
            yield Problem(file, int(match[1]), match[4], int(match[2]), _SEVERITIES[match[3]], match[5] or "")
        elif file and (match := _RUFF_GROUPED.fullmatch(line)):
            yield Problem(file, int(match[1]), match[4], int(match[2]), "error", match[3])
        elif found := _one_line(line):
            yield found
        elif match := _RUSTC.fullmatch(line):
            head = (_SEVERITIES[match[1]], match[2] or "", match[3])
        elif match := _RUFF_FULL.fullmatch(line):
            head = ("error", match[1], match[2])
        elif match := _HEADING.fullmatch(line):
            file = match[1]


def _one_line(line: str) -> Problem | None:
    """A problem that is said in one line."""
    if match := _GCC.fullmatch(line):
        message, code = match[6].rstrip(), match[5] or ""
        if own := _CODE.fullmatch(message):
            message, code = own[1], own[2]
        return Problem(match[1], int(match[2]), message, int(match[3] or 0), _SEVERITIES[match[4]], code)
    if match := _RUFF.fullmatch(line):
        severity: Severity = "warning" if re.fullmatch(r"[CRW]\d{4}", match[4]) else "error"  # of pylint
        return Problem(match[1], int(match[2]), match[5], int(match[3]), severity, match[4])
    if match := _RUFF_PYLINT.fullmatch(line):
        return Problem(match[1], int(match[2]), match[4], code=match[3])
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
    if match := _GITHUB.fullmatch(line):
        return _annotation(_SEVERITIES[match[1]], dict(_GITHUB_FIELD.findall(match[2])), match[3])
    return None


def _annotation(severity: Severity, fields: dict[str, str], text: str) -> Problem | None:
    """A problem as a workflow of GitHub reads it. Its text may begin with the place, as in another format."""
    if "file" not in fields:
        return None
    message = text.partition("%0A")[0].replace("%25", "%")
    if found := _one_line(message):
        return found
    line, column = (int(fields.get(each, "")) if fields.get(each, "").isdecimal() else 0 for each in ("line", "col"))
    return Problem(fields["file"], line, message, column, severity)


MOST_READ_AGAIN: Final = 1_000_000  # characters that only looked like JSON


def _json_problems(text: str) -> Iterator[Problem]:
    """Problems in JSON: a whole document, or one in each line."""
    decoder, end, wasted = json.JSONDecoder(), 0, 0
    for match in re.finditer(r"^[\[{]", text, re.MULTILINE):
        if match.start() < end or wasted > MOST_READ_AGAIN:
            continue
        try:
            value, end = decoder.raw_decode(text, match.start())
        except json.JSONDecodeError as error:
            wasted += error.pos - match.start()
            continue
        except (ValueError, RecursionError):  # a number of thousands of digits, thousands of brackets
            return
        for each in value if isinstance(value, list) else [value]:
            yield from _in_json(each)


def _in_json(value: object) -> Iterator[Problem]:
    """The problems of ruff, mypy, eslint or pyright in a value."""
    match value:
        case {"filename": str(path), "location": {"row": int(line), "column": int(column)}, "message": str(said)}:
            yield Problem(path, line, said, column, "error", _word(value, "code"))
        case {"file": str(path), "line": int(line), "message": str(said), "severity": str(severity)}:
            column = _number(value, "column") + 1  # mypy counts from 0 here
            yield Problem(path, line, said, column, _SEVERITIES.get(severity, "error"), _word(value, "code"))
        case {"filePath": str(path), "messages": list(messages)}:
            for each in messages:
                match each:
                    case {"message": str(said), "severity": int(level)}:
                        line, column = _number(each, "line"), _number(each, "column")
                        kind: Severity = "error" if level == 2 else "warning"
                        yield Problem(path, line, said, column, kind, _word(each, "ruleId"))
        case {"generalDiagnostics": list(messages)}:
            for each in messages:
                match each:
                    case {"file": str(path), "message": str(said), "severity": str(severity)}:
                        match each:
                            case {"range": {"start": {"line": int(line), "character": int(column)}}}:
                                line, column = line + 1, column + 1
                            case _:
                                line, column = 0, 0
                        known = _SEVERITIES.get(severity, "note")
                        yield Problem(path, line, said.partition("\n")[0], column, known, _word(each, "rule"))


def _word(value: object, key: str) -> str:
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""


def _number(value: object, key: str) -> int:
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, int) else 0


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
    rows = [each for each in whole_lines(text) if each.strip()]
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
    lines = whole_lines(text)
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
    lines = whole_lines(text)
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
    for row in whole_lines(text):
        if match := _CHANGED.fullmatch(row):
            changed, added, removed = (int(each or 0) for each in match.groups())
            return DiffStat(files=tuple(files), changed=changed, insertions=added, deletions=removed)
        if match := _STAT.fullmatch(row):
            files.append(match[1].strip())
    return None
