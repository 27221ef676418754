"""PURE: what runs without asking a person, by the level they chose (P7).

ask   only what the policy proves to be harmless
read  also files of the workspace, read by tools
edit  also files of the workspace, changed by tools
safe  also commands that are known and of medium risk, and switching modes
all   also what else is asked about

No level covers what is critical, protected files, credentials, or a line that nobody can read; and none makes up
for a denial.
"""

from dataclasses import replace
from typing import Final, Literal

from tarmac.policy import PolicySettings, Verdict

Auto = Literal["ask", "read", "edit", "safe", "all"]
LEVELS: Final[tuple[Auto, ...]] = ("ask", "read", "edit", "safe", "all")


def reaches(auto: Auto, level: Auto) -> bool:
    """Whether `auto` covers all that `level` does."""
    return LEVELS.index(auto) >= LEVELS.index(level)


def settings_for(auto: Auto, own: PolicySettings) -> PolicySettings:
    """The policy's switches at this level; a level only adds to what the person set."""
    return replace(
        own,
        auto_approve_read=own.auto_approve_read or reaches(auto, "read"),
        auto_approve_write=own.auto_approve_write or reaches(auto, "edit"),
        ask_medium=own.ask_medium and not reaches(auto, "safe"),
    )


def covers(auto: Auto, verdict: Verdict) -> bool:
    """Whether the level says yes in a person's place, where the policy would have one asked."""
    return auto == "all" and verdict.decision == "ask" and verdict.risk != "critical" and not verdict.personal
