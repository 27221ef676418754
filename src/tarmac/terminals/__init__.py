"""Terminals without agents: real shells that never hang, never guess an exit code, never lose output.

    async with open_terminal(cwd=path) as terminal:
        result = await terminal.run("make -j2", timeout=60)

Standard library only.
"""

from tarmac.terminals.execution import Execution, Gap
from tarmac.terminals.opening import open_terminal, run_batch, run_once
from tarmac.terminals.registry import TerminalRegistry
from tarmac.terminals.result import Result
from tarmac.terminals.settings import PathContribution, Settings
from tarmac.terminals.terminal import Terminal

__all__ = [
    "Execution",
    "Gap",
    "PathContribution",
    "Result",
    "Settings",
    "Terminal",
    "TerminalRegistry",
    "open_terminal",
    "run_batch",
    "run_once",
]
