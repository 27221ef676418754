"""Tarmac: real terminals for AI agents, and the agent that uses them.

`tarmac.terminals` has the terminals; the names below are its own. `tarmac.app` has the agent: `open_app` and its tasks.

    async with tarmac.open_terminal(cwd=Path.cwd()) as terminal:
        result = await terminal.run("make -j2", timeout=60)

Importing this module costs nothing: asyncio and the rest are loaded when a name is first used.
"""

TYPE_CHECKING = False  # as typing has it, without importing typing

__version__ = "0.1.0"
__all__ = ["Settings", "TerminalRegistry", "open_terminal", "run_batch", "run_once"]

if TYPE_CHECKING:
    from tarmac.terminals import Settings, TerminalRegistry, open_terminal, run_batch, run_once


def __getattr__(name: str) -> object:
    if name in __all__:
        import tarmac.terminals

        return getattr(tarmac.terminals, name)
    raise AttributeError(f"module 'tarmac' has no attribute {name!r}")
