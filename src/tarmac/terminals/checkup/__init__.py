"""Is this machine fit for terminals, and what would not work as it should? Asked by `tarmac doctor`.

CHECKS → examine() → Finding, Finding, …   one after another, each check within its own limit on time

To add a check: an `async def` that takes a Case and yields Findings, and a line in CHECKS (or in the list of whoever
calls `examine`). It may fail, block or hang: then that is the finding.
"""

from tarmac.terminals.checkup.confinement import look_at_confinement
from tarmac.terminals.checkup.finding import Case, Check, Finding, Findings, Level, aside, examine
from tarmac.terminals.checkup.kernel import look_at_the_kernel
from tarmac.terminals.checkup.limits import look_at_limits
from tarmac.terminals.checkup.shells import look_at_shells
from tarmac.terminals.checkup.storage import look_at_storage

CHECKS = (
    Check("shells", look_at_shells, seconds=120),
    Check("kernel", look_at_the_kernel, seconds=30),
    Check("kernel", look_at_confinement, seconds=30),
    Check("limits", look_at_limits, seconds=10),
    Check("files", look_at_storage, seconds=10),
)

__all__ = ["CHECKS", "Case", "Check", "Finding", "Findings", "Level", "aside", "examine"]
