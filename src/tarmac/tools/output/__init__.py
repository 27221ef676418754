"""PURE: what commands print, as values. Text in, values out; no terminal, no file, no model.

understand(command, text, exit_code) → Understanding(summary, tests, problems, facts, hints)
brief(understanding)                 → the failures first, in few words

test_runs.py       test runners
parsers.py         compilers and linters, ls, git
output_summary.py  which parser reads an output, one line about each command, hints
values.py          what the parsers return

A text may come from anyone: every pattern is anchored to a line, of which only the first 2,000 characters are read.
"""

from tarmac.tools.output.output_summary import Understanding, brief, understand
from tarmac.tools.output.values import Problem

__all__ = ["Problem", "Understanding", "brief", "understand"]
