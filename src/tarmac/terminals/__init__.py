"""Terminals without agents: real shells that never hang, never guess an exit code, never lose output.

    async with open_terminal(cwd=path) as terminal:
        result = await terminal.run("make -j2", timeout=60)

Standard library only. The names below are loaded when first used: importing a part pays for that part.
"""

TYPE_CHECKING = False  # as typing has it, without importing typing

if TYPE_CHECKING:
    from tarmac.terminals.answers import Answer
    from tarmac.terminals.daemon.takeover import LeftTerminal, attach_terminal, end_terminal, list_terminals
    from tarmac.terminals.execution import Execution
    from tarmac.terminals.open import open_terminal, run_batch, run_once
    from tarmac.terminals.output.follow import Gap
    from tarmac.terminals.plans import run_plan, start_plan
    from tarmac.terminals.pool import Pool, TerminalRegistry
    from tarmac.terminals.pool.protocol import NoTerminals, Terminals
    from tarmac.terminals.result import Result
    from tarmac.terminals.settings import PathContribution, Settings
    from tarmac.terminals.terminal import Terminal
    from tarmac.terminals.wait_conditions import Happened

__all__ = [
    "Answer",
    "Execution",
    "Gap",
    "Happened",
    "LeftTerminal",
    "NoTerminals",
    "PathContribution",
    "Pool",
    "Result",
    "Settings",
    "Terminal",
    "TerminalRegistry",
    "Terminals",
    "attach_terminal",
    "end_terminal",
    "list_terminals",
    "open_terminal",
    "run_batch",
    "run_once",
    "run_plan",
    "start_plan",
]
_HOMES = {
    "Answer": "answers",
    "Execution": "execution",
    "Gap": "output.follow",
    "Happened": "wait_conditions",
    "LeftTerminal": "daemon.takeover",
    "NoTerminals": "pool.protocol",
    "PathContribution": "settings",
    "Pool": "pool",
    "Result": "result",
    "Settings": "settings",
    "Terminal": "terminal",
    "TerminalRegistry": "pool",
    "Terminals": "pool.protocol",
    "attach_terminal": "daemon.takeover",
    "end_terminal": "daemon.takeover",
    "list_terminals": "daemon.takeover",
    "open_terminal": "open",
    "run_batch": "open",
    "run_once": "open",
    "run_plan": "plans",
    "start_plan": "plans",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'tarmac.terminals' has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(f"tarmac.terminals.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
