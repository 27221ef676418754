"""What helps after a known error, and what follows a build.

A name that comes from the output goes into a command only if it looks like the name of a package or a program.
"""

import re
from collections.abc import Iterator
from typing import Final

from tarmac.tools.output.values import Hint

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
