"""Which parser reads an output, one line about every command, and its failures in few words."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from tarmac.tools.output.compilers import parse_problems
from tarmac.tools.output.hints import hints
from tarmac.tools.output.listings import diff_stat, file_listing, git_log, git_status
from tarmac.tools.output.test_runners import parse_tests
from tarmac.tools.output.values import Facts, FailedTest, Hint, Problem, TestRun

LONGEST_SUMMARY: Final = 200
_PARTS = re.compile(r"\|\|?|&&?|;|\n")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=\S*")
# They print what others wrote: an error in it is not theirs.
VIEWERS: Final = frozenset(
    "ack ag awk bat cat cd cut diff echo egrep fgrep find fd git grep head jq less ls more nl printf rg sed sort tac "
    "tail tee tree true uniq wc xxd zcat zgrep".split()
)
_ERROR_LINE = re.compile(r"(?i)\b(?:error|fatal|failed|failure|exception|panic|denied|not found|cannot|can't)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Understanding:
    """What a command's output says. Words in it come from the output."""

    summary: str
    tests: TestRun | None = None
    problems: tuple[Problem, ...] = ()
    facts: Facts | None = None
    hints: tuple[Hint, ...] = ()

    @property
    def structured(self) -> bool:
        """Whether a parser knew the output."""
        return bool(self.tests or self.problems or self.facts)

    @property
    def rows(self) -> tuple[FailedTest | Problem, ...]:
        """Failed tests, then errors, then warnings."""
        errors = [each for each in self.problems if each.severity == "error"]
        warnings = [each for each in self.problems if each.severity != "error"]
        return (*(self.tests.failures if self.tests else ()), *errors, *warnings)


def understand(command: str, text: str, exit_code: int | None) -> Understanding:
    """Read the output of a command; `text` is clean, without escape sequences."""
    found = hints(command, text, exit_code)
    if facts := _facts(command, text):
        return Understanding(summary=_one_line(facts.summary), facts=facts, hints=found)
    if not _own(command):
        return Understanding(summary=_one_line(_plain(text, exit_code)), hints=found)
    tests, problems = parse_tests(text), parse_problems(text)
    if tests:  # a traceback of a failed test is not another problem, nor is what a passed test printed
        known = {(each.path, each.line) for each in tests.failures}
        problems = tuple(each for each in problems if exit_code and (each.path, each.line) not in known)
    lines = [tests.summary] if tests else []
    if problems:
        lines.append(_counted(problems))
    summary = "; ".join(lines) or _plain(text, exit_code)
    return Understanding(summary=_one_line(summary), tests=tests, problems=problems, hints=found)


def brief(understanding: Understanding, *, most: int = 4_500) -> str:
    """The summary and every failure, in at most about `most` characters.

    Each failure is there with its place and its message. If there are too many, first messages are shortened, then
    left out, then names are joined by file, as in `tests/a.py: test_{one, two}`.
    """
    rows = understanding.rows
    if not rows:
        return understanding.summary
    room = max(most - len(understanding.summary), 200)
    for longest in (300, 160, 80, 30, 0):
        made = "\n".join(_row(each, longest) for each in rows)
        if len(made) <= room:
            return f"{understanding.summary}\n{made}"
    joined = "\n".join(_by_file(rows))
    if len(joined) <= room:
        return f"{understanding.summary}\n{joined}"
    kept = joined[:room].rpartition("\n")[0] or joined[:room]
    left = joined[len(kept) :].count("\n")
    return f"{understanding.summary}\n{kept}\n… and {left} lines of failures more: search the output for them."


def _row(each: FailedTest | Problem, longest: int) -> str:
    text = each.text if len(each.text) <= longest else f"{each.text[:longest]}…" if longest else ""
    if isinstance(each, FailedTest):
        place = "" if not each.place or each.name.startswith(each.place) else f" {each.place}"
        return f"FAILED {each.name}{place}{f': {text}' if text else ''}"
    code = f" {each.code}" if each.code else ""
    return f"{each.severity} {each.place}{code}{f': {text}' if text else ''}"


def _by_file(rows: Sequence[FailedTest | Problem]) -> Iterator[str]:
    """Each file once, with what failed in it."""
    files: dict[str, list[str]] = {}
    for each in rows:
        path, _, rest = each.name.partition("::") if isinstance(each, FailedTest) else (each.path, "", "")
        name = rest or (path if isinstance(each, FailedTest) else str(each.line))
        files.setdefault(each.path or path, []).append(name)
    for path, names in files.items():
        different = list(dict.fromkeys(names))
        same = _common_prefix(different) if len(different) > 1 else ""
        rest = ", ".join(name[len(same) :] for name in different)
        yield f"{path}: {same}{{{rest}}}" if same else f"{path}: {rest}"


def _common_prefix(names: Sequence[str]) -> str:
    first, last = min(names), max(names)
    at = next((at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), len(first))
    return first[:at]


def _facts(command: str, text: str) -> Facts | None:
    """Of a command that only lists."""
    words = command.split()
    if not words or not text.strip() or any(each in command for each in ("|", ";", "&", "\n", ">", "$(", "`")):
        return None
    if words[0] in ("ls", "dir"):
        return file_listing(text)
    if words[0] != "git":
        return None
    verb = next((each for each in words[1:] if not each.startswith("-")), "")
    if verb == "status":
        return git_status(text)
    if verb == "log":
        return git_log(text)
    return diff_stat(text) if any(each in ("--stat", "--shortstat") for each in words) else None


def _own(command: str) -> bool:
    """Whether something in the command may have made the errors that it printed."""
    for part in _PARTS.split(command):
        words = [each for each in part.split() if not _ASSIGNMENT.fullmatch(each)]
        if words and words[0].rpartition("/")[2] not in VIEWERS:
            return True
    return False


def _counted(problems: Sequence[Problem]) -> str:
    errors = sum(each.severity == "error" for each in problems)
    warnings = len(problems) - errors
    files = len({each.path for each in problems})
    counts = [
        f"{count} {name}{'s' * (count != 1)}" for count, name in ((errors, "error"), (warnings, "warning")) if count
    ]
    return f"{', '.join(counts)} in {files} file{'s' * (files != 1)}"


def _plain(text: str, exit_code: int | None) -> str:
    """One line about an output that no parser knows."""
    lines = [each.strip() for each in text.splitlines() if each.strip()]
    count = f"{len(lines)} line{'s' * (len(lines) != 1)}"
    if exit_code:
        errors = [each for each in lines if _ERROR_LINE.search(each[:LONGEST_SUMMARY])]
        shown = (errors or lines or ["printed nothing"])[-1]
        return f"failed with exit code {exit_code}: {shown}"
    state = "succeeded" if exit_code == 0 else "no exit code"
    return f"{state}, {count}: {lines[-1]}" if lines else f"{state}, printed nothing"


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_SUMMARY else f"{line[: LONGEST_SUMMARY - 1]}…"
