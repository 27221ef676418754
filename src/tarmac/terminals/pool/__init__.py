"""Terminals for many callers: lent to tasks, used again, kept within limits.

in: requests for a terminal in a directory, for a task; ids
out: a `Terminal`, which the caller uses itself: `pool.get(id).run(…)`

`pool.py` has the public verbs; `reuse.py` decides; `entries.py` claims; the rest does what takes time.
"""

from tarmac.terminals.pool.pool import Pool

TerminalRegistry = Pool  # its name in the public API

__all__ = ["Pool", "TerminalRegistry"]
