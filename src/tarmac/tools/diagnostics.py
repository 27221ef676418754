"""Problems that an edit brought: syntax errors by tree-sitter, and what the configured commands say.

A command is set for files by their names: `diagnostics = ["*.py: ruff check --output-format concise {file}"]`.
It is the user's own, so it runs without a question. Its output is read as that of any compiler.
"""

import asyncio
import fnmatch
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tarmac.tools.child_process import program, running
from tarmac.tools.code_definitions import language_of, syntax_errors
from tarmac.tools.output import Problem
from tarmac.tools.output.compilers import parse_problems
from tarmac.tools.tool import Bench

MOST_BYTES: Final = 1 << 20
MOST_TOLD: Final = 10
PATIENCE: Final = 15.0  # seconds for all commands of an edit
MOST_OUTPUT: Final = 1 << 20


def new_syntax_errors(path: Path, before: bytes | None, after: bytes | None) -> tuple[Problem, ...]:
    """The syntax errors of a file that were not there before the edit."""
    language = language_of(path)
    if language is None or after is None or len(after) > MOST_BYTES:
        return ()
    found = syntax_errors(after, language)
    if not found:
        return ()
    if before is not None and len(syntax_errors(before, language)) >= len(found):
        return ()  # it was broken before, or its grammar does not know everything
    return tuple(Problem(str(path.name), line, text) for line, text in found)


async def reported(bench: Bench, files: Sequence[Path]) -> tuple[Problem, ...]:
    """What the configured commands say of these files."""
    found: list[Problem] = []
    try:
        async with asyncio.timeout(PATIENCE):
            for file in files:
                for argv in _commands(bench, file):
                    found += [each for each in await _run(argv, bench.workspace) if _is(file, each, bench.workspace)]
    except TimeoutError:
        pass  # the edit was made; a linter that hangs does not take that back
    return tuple(dict.fromkeys(found))


def _commands(bench: Bench, file: Path) -> list[list[str]]:
    found = []
    for rule in bench.settings.diagnostics:
        pattern, _, command = rule.partition(":")
        if fnmatch.fnmatch(file.name, pattern.strip()):
            words = shlex.split(command)
            found.append([str(file) if each == "{file}" else each for each in words])
    return found


async def _run(argv: list[str], cwd: Path) -> tuple[Problem, ...]:
    path = program(argv[0]) if argv else None
    if path is None:
        return ()
    async with running([path, *argv[1:]], cwd=cwd) as process:
        assert process.stdout is not None and process.stderr is not None
        out, err = await asyncio.gather(process.stdout.read(MOST_OUTPUT), process.stderr.read(MOST_OUTPUT))
    return parse_problems((out + b"\n" + err).decode("utf-8", "replace"))


def _is(file: Path, problem: Problem, workspace: Path) -> bool:
    return (workspace / problem.path) == file


def told(problems: Sequence[Problem]) -> str:
    """New problems, for the model; empty if there are none."""
    if not problems:
        return ""
    rows = [f"{each.place}{f' {each.code}' if each.code else ''}: {each.text[:200]}" for each in problems[:MOST_TOLD]]
    more = [f"and {len(problems) - MOST_TOLD} more"] if len(problems) > MOST_TOLD else []
    return "\n".join(["New problems after this edit:", *rows, *more])
