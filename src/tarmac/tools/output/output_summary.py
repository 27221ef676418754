"""Choose the parser for an output; one line about every command, its failures in few words, and hints.

A hint says what helps after a known error, or what follows a build. A name from the output goes into a suggested
command only if it looks like the name of a package or a program.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from tarmac.tools.output.parsers import diff_stat, file_listing, git_log, git_status, parse_problems
from tarmac.tools.output.test_runs import parse_tests
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
        problems = tuple(each for each in problems if exit_code and not any(_same(each, one) for one in tests.failures))
    lines = [tests.summary] if tests else []
    if problems:
        lines.append(_counted(problems))
    summary = "; ".join(lines) or _plain(text, exit_code)
    return Understanding(summary=_one_line(summary), tests=tests, problems=problems, hints=found)


def _same(problem: Problem, failure: FailedTest) -> bool:
    """Whether both tell of one line. A traceback has the absolute path."""
    return problem.line == failure.line and f"/{problem.path}".endswith(f"/{failure.path}")


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


MOST_TEXT: Final = 200_000  # characters at the end of an output in which errors are looked for
_NAME = r"[A-Za-z0-9][A-Za-z0-9._+-]{0,60}"
_NOT_FOUND = re.compile(
    rf"^(?:.{{0,200}}: )?(?:line \d+: |\d+: )?({_NAME}): (?:command )?not found$"
    rf"|^(?:zsh: )?command not found: ({_NAME})$|^fish: Unknown command: ({_NAME})$",
    re.MULTILINE,
)
_PYTHON_MODULE = re.compile(rf"^(?:E +)?ModuleNotFoundError: No module named '({_NAME})'", re.MULTILINE)
_NODE_MODULE = re.compile(r"Cannot find (?:module|package) '((?:@[\w.-]+/)?[A-Za-z0-9][\w.-]{0,60})['/]", re.MULTILINE)
_GO_MODULE = re.compile(r"no required module provides package ([A-Za-z0-9][\w./~-]{0,200})")
_RUST_CRATE = re.compile(r"(?:unresolved import|use of unresolved module or unlinked crate) `(\w+)")
_GIT = re.compile(r"^fatal: not a git repository", re.MULTILINE)
_PORT = re.compile(r"EADDRINUSE|[Aa]ddress already in use|[Pp]ort \d+ is (?:already )?in use", re.MULTILINE)
_PORT_NUMBER = re.compile(r"(?:EADDRINUSE[^\n]{0,80}?:|[Pp]ort |already in use[^\n]{0,40}?:)(\d{2,5})\b")
_DENIED = re.compile(r"(?:^|: )(\S{1,200}): [Pp]ermission denied", re.MULTILINE)
_ANY_DENIED = re.compile(r"[Pp]ermission denied|EACCES|Operation not permitted")
_NO_FILE = re.compile(r"No such file or directory|ENOENT: no such file")
_NO_SPACE = re.compile(r"No space left on device|ENOSPC")
_NO_SCRIPT = re.compile(r"Missing script: ")
_NO_TARGET = re.compile(r"No rule to make target")
_CONFLICT = re.compile(r"^CONFLICT \(|Automatic merge failed", re.MULTILINE)

# Where a program is in another package than its name says
PACKAGES: Final = {
    "c++": "build-essential",
    "cargo": "cargo",
    "cc": "build-essential",
    "convert": "imagemagick",
    "docker": "docker.io",
    "fd": "fd-find",
    "g++": "g++",
    "go": "golang-go",
    "ifconfig": "net-tools",
    "javac": "default-jdk",
    "java": "default-jre",
    "netstat": "net-tools",
    "node": "nodejs",
    "pip": "python3-pip",
    "pip3": "python3-pip",
    "psql": "postgresql-client",
    "python": "python-is-python3",
    "rg": "ripgrep",
    "rustc": "rustc",
    "sqlite3": "sqlite3",
    "xxd": "xxd",
}
PYTHON_PROGRAMS: Final = frozenset(
    "black coverage flake8 ipython isort mypy poetry pre-commit pytest ruff tox uv".split()
)
NODE_PROGRAMS: Final = frozenset("eslint jest next nx pnpm prettier tsc tsx turbo vite vitest webpack yarn".split())
# Where a Python package has another name than its module
DISTRIBUTIONS: Final = {
    "PIL": "pillow",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python",
    "dateutil": "python-dateutil",
    "dotenv": "python-dotenv",
    "git": "gitpython",
    "jwt": "pyjwt",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
}
# A build's first words, and what usually follows it
BUILDS: Final = {
    ("./configure",): "make",
    ("cargo", "build"): "cargo test",
    ("cmake", "-B"): "cmake --build build",
    ("go", "build"): "go test ./...",
    ("make",): "make test",
    ("mvn", "package"): "mvn test",
    ("npm", "ci"): "npm test",
    ("npm", "install"): "npm test",
    ("npm", "run", "build"): "npm test",
    ("pip", "install"): "python3 -m pytest",
    ("python", "-m", "build"): "python3 -m pip install dist/*.whl",
    ("tsc",): "npm test",
    ("uv", "sync"): "uv run pytest",
}


def hints(command: str, text: str, exit_code: int | None) -> tuple[Hint, ...]:
    """At most three things that may help next."""
    found = _after_error(text[-MOST_TEXT:]) if exit_code else _after_build(command) if exit_code == 0 else ()
    return tuple(dict.fromkeys(found))[:3]


def _after_error(text: str) -> Iterator[Hint]:
    if match := _NOT_FOUND.search(text):
        yield _install(next(each for each in match.groups() if each))
    if match := _PYTHON_MODULE.search(text):
        name = match[1].partition(".")[0]
        name = DISTRIBUTIONS.get(name, name)
        yield Hint(
            f"The Python module is not installed. Check that `{name}` is its package.", f"python3 -m pip install {name}"
        )
    if match := _NODE_MODULE.search(text):
        yield Hint(
            "A Node module is not installed. If package.json lists it, `npm install` is enough.",
            f"npm install {match[1]}",
        )
    if match := _GO_MODULE.search(text):
        yield Hint("A Go module is missing in go.mod.", f"go get {match[1]}")
    if match := _RUST_CRATE.search(text):
        yield Hint("A crate is missing in Cargo.toml, or the path is wrong.", f"cargo add {match[1]}")
    if _GIT.search(text):
        yield Hint(
            "This folder is in no git repository. Give the right `cwd`, or make one with `git init` if asked to."
        )
    if _PORT.search(text):
        number = _PORT_NUMBER.search(text)
        port = f" sport = :{number[1]}" if number else ""
        yield Hint("Another process listens on that port. Find it, or use another port.", f"ss -ltnp{port}")
    if _NO_SPACE.search(text):
        yield Hint("The disk is full.", "df -h .")
    if _NO_SCRIPT.search(text):
        yield Hint("package.json has no such script.", "npm run")
    if _NO_TARGET.search(text):
        yield Hint("The Makefile has no such target, or a file that it needs is missing.")
    if _CONFLICT.search(text):
        yield Hint("There are conflicts to resolve by hand.", "git diff --name-only --diff-filter=U")
    if _ANY_DENIED.search(text):
        yield _denied(text)
    elif _NO_FILE.search(text):
        yield Hint("A path is wrong, or seen from another `cwd`. list_files shows what is there.")


def _install(program: str) -> Hint:
    if program in PYTHON_PROGRAMS:
        return Hint(
            f"`{program}` is not on PATH. Look for a virtual environment first.", f"python3 -m pip install {program}"
        )
    if program in NODE_PROGRAMS:
        return Hint(f"`{program}` is not on PATH. npx runs the project's own.", f"npx {program}")
    package = PACKAGES.get(program, program)
    return Hint(f"`{program}` is not installed, or not on PATH.", f"apt-get install {package}")


def _denied(text: str) -> Hint:
    match = _DENIED.search(text)
    if match and match[1].startswith(("./", "/")):
        return Hint("It may not be executable: run it with its interpreter, or make it executable.", "ls -l")
    return Hint("The user may not do that. Do not use sudo unless the user wants it.")


def _after_build(command: str) -> Iterator[Hint]:
    words = tuple(command.split("|")[0].split())
    if words[:1] == ("python3",):
        words = ("python", *words[1:])
    for build, then in BUILDS.items():
        if words[: len(build)] == build and (build != ("make",) or len(words) == 1):
            yield Hint("The build succeeded. Its tests come next, if it has some.", then)
