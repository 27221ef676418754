"""PURE: what commands print, as values. Text in, values out; no terminal, no file, no model.

understand(command, text, exit_code) → Understanding(summary, tests, problems, facts, hints)
brief(understanding)                 → the failures first, in few words

test_runners.py   pytest, unittest, jest, vitest, cargo, go
compilers.py      gcc, clang, tsc, rustc, ruff, mypy, eslint
listings.py       ls, git status, git log, git diff --stat
hints.py          what helps after known errors and builds
output_summary.py  which parser reads an output, and one line about each command
values.py         what the parsers return

A text may come from anyone: every pattern is anchored to a line, and lines of more than 2,000 characters are skipped.
"""

from tarmac.tools.output.output_summary import Understanding, brief, understand
from tarmac.tools.output.values import Problem

__all__ = ["Problem", "Understanding", "brief", "understand"]
