"""Errors and warnings of compilers and linters: gcc, clang, javac, go, tsc, rustc, ruff, mypy, eslint, Python."""

import re
from collections.abc import Iterator

from tarmac.tools.output.values import LONGEST_LINE, Problem, Severity

_SEVERITIES: dict[str, Severity] = {"error": "error", "fatal error": "error", "warning": "warning", "note": "note"}
_PATH = r"((?:[A-Za-z]:)?[^\s:()][^:()]*)"
_GCC = re.compile(rf"{_PATH}:(\d+)(?::(\d+))?:(?:\d+:)* (fatal error|error|warning|note): (.*)")
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
_LINKER = re.compile(r"(?:\S*ld: )?(\S+?):\(\.[\w.+]+(?:\+0x[0-9a-f]+)?\): (undefined reference to .*)")
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
        message, code = match[5], ""
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
    return None
