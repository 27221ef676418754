"""Checks of this machine: what would keep terminals from working. Run by `tarmac doctor`.

CHECKS → examine() → findings, one after another, each check within its own time limit

A new check is an `async def` that takes a Case and yields Findings, and a line in CHECKS or in the list of the caller.
It may fail, block or hang: then that is the finding.
"""

from tarmac.terminals.doctor.check import Case, Check, Finding, Findings, Level, aside, examine
from tarmac.terminals.doctor.system_checks import check_confinement, check_kernel, check_limits, check_storage
from tarmac.terminals.doctor.terminal_checks import check_daemon, check_shells

CHECKS = (
    Check("shells", check_shells, seconds=120),
    Check("kernel", check_kernel, seconds=30),
    Check("kernel", check_confinement, seconds=30),
    Check("limits", check_limits, seconds=10),
    Check("files", check_storage, seconds=10),
    Check("terminals that outlive the program", check_daemon, seconds=20),
)

__all__ = ["CHECKS", "Case", "Check", "Finding", "Findings", "Level", "aside", "examine"]
