"""The names that a pattern of the shell matches, within the budget of the line.

expand("src/*.py", cwd) → ["src/a.py", …] | Spent

As glob.glob, which has no end to its patience: folder by folder, hidden names only where a pattern begins with a dot.
"""

import fnmatch
import os
import re

from tarmac.policy.budget import Budget, current

_MAGIC = re.compile(r"[*?[]")


def expand(pattern: str, cwd: str, *, hidden: bool = False) -> list[str]:
    """What `pattern`, said in `cwd`, matches; with `hidden`, names that begin with a dot as well."""
    budget = current()
    key = (cwd, pattern, hidden)
    if key not in budget.found:
        budget.found[key] = _expand(pattern, cwd, hidden=hidden, budget=budget)
    budget.spend(looks=len(budget.found[key]) // 10)  # known before, and yet somebody goes through them again
    return list(budget.found[key])


def _expand(pattern: str, cwd: str, *, hidden: bool, budget: Budget) -> list[str]:
    root = "/" if pattern.startswith("/") else ""
    found = [root]
    parts = [part for part in pattern.split("/") if part]
    if pattern.endswith("/"):
        parts.append("")
    for number, part in enumerate(parts):
        if not _MAGIC.search(part):
            found = [os.path.join(each, part) for each in found]
            if number == len(parts) - 1:
                found = [each for each in found if _exists(os.path.join(cwd, each), budget)]
            continue
        matches = re.compile(fnmatch.translate(part)).match
        dotted = hidden or part.startswith(".")
        last = number == len(parts) - 1
        deeper: list[str] = []
        for each in found:
            for name, folder in _names(os.path.join(cwd, each), budget):
                if (dotted or not name.startswith(".")) and (last or folder) and matches(name):
                    deeper.append(os.path.join(each, name))
        found = deeper
    return found


def _names(folder: str, budget: Budget) -> list[tuple[str, bool]]:
    """What is in a folder, and which of it may be a folder; nothing when it can't be read."""
    budget.spend(folders=1)
    names: list[tuple[str, bool]] = []
    try:
        with os.scandir(folder or ".") as entries:
            for entry in entries:
                names.append((entry.name, entry.is_symlink() or entry.is_dir(follow_symlinks=False)))
                if len(names) % 64 == 0:
                    budget.spend(names=64)
    except OSError:
        return []
    budget.spend(names=len(names) % 64)
    return names


def _exists(path: str, budget: Budget) -> bool:
    budget.spend(looks=1)
    return os.path.lexists(path)
