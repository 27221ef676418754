"""A tool for inspect_ai: `terminal()`, a real terminal in any sandbox."""

from tarmac_inspect.terminal import terminal

__all__ = ["terminal"]
