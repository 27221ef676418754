"""Completion in the session's editor: `/commands` at the start of a line, `@files` anywhere."""

import os
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

MOST_FILES = 20_000
MOST_OFFERED = 50
FRESH = 5.0  # seconds that a list of files is used
SKIPPED = {".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", ".mypy_cache", ".ruff_cache", ".tox"}


class SessionCompleter(Completer):
    """Offers commands with what they do, their arguments, and files of the workspace."""

    def __init__(self, workspace: Path, commands: Callable[[], Mapping[str, "Offer"]]) -> None:
        self._workspace = workspace
        self._commands = commands
        self._files: list[str] = []
        self._read = -FRESH

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        before = document.text_before_cursor
        word = document.get_word_before_cursor(WORD=True)
        if before.startswith("/") and "\n" not in before:
            yield from self._slash(before)
        elif word.startswith("@"):
            for path in matching(word[1:], self._listed()):
                shown = path if " " not in path else f'"{path}"'
                yield Completion(f"@{shown}", start_position=-len(word), display=path)

    def _slash(self, before: str) -> Iterable[Completion]:
        name, blank, rest = before[1:].partition(" ")
        commands = self._commands()
        if not blank:
            for each in sorted(commands):
                if each.startswith(name):
                    yield Completion(f"/{each}", start_position=-len(before), display_meta=commands[each].what)
        elif name in commands:
            for value in commands[name].values():
                if value.startswith(rest):
                    yield Completion(value, start_position=-len(rest))

    def _listed(self) -> Sequence[str]:
        if time.monotonic() - self._read > FRESH:
            self._files = files(self._workspace)
            self._read = time.monotonic()
        return self._files


class Offer:
    """A command: what it does, and which arguments can be offered."""

    def __init__(self, what: str, values: Callable[[], Sequence[str]] = tuple) -> None:
        self.what = what
        self.values = values


def files(workspace: Path) -> list[str]:
    """The files of a workspace, without what git ignores; relative, sorted."""
    try:
        listed = subprocess.run(
            ["git", "-C", str(workspace), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            capture_output=True,
            timeout=2,
            check=True,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
        ).stdout
        found = [os.fsdecode(each) for each in listed.split(b"\0") if each]
    except (OSError, subprocess.SubprocessError):
        found = _walked(workspace)
    return sorted(found[:MOST_FILES])


def _walked(workspace: Path) -> list[str]:
    found: list[str] = []
    for folder, folders, names in os.walk(workspace):
        folders[:] = sorted(each for each in folders if each not in SKIPPED)
        found += [os.path.relpath(os.path.join(folder, name), workspace) for name in sorted(names)]  # noqa: PTH118
        if len(found) > MOST_FILES:
            break
    return found


def matching(typed: str, paths: Sequence[str]) -> list[str]:
    """PURE: the paths that fit what was typed: by prefix, then by name, then by letters in order."""
    wanted = typed.strip('"').lower()
    if not wanted:
        return list(paths[:MOST_OFFERED])

    def rank(path: str) -> tuple[int, int, str] | None:
        lower = path.lower()
        if lower.startswith(wanted):
            return 0, len(path), path
        if lower.rpartition("/")[2].startswith(wanted):
            return 1, len(path), path
        if wanted in lower:
            return 2, len(path), path
        rest = iter(lower)
        return (3, len(path), path) if all(letter in rest for letter in wanted) else None

    ranked = sorted(found for path in paths if (found := rank(path)) is not None)
    return [path for _, _, path in ranked[:MOST_OFFERED]]
