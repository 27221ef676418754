"""PURE: what runs without asking a person: single kinds, or a level, which is a bundle of kinds.

plan       reads only; changes are denied
ask        only what the policy proves to be harmless, and files of the workspace, read by tools
edits      also files of the workspace, changed by tools
workspace  also known commands of medium risk that stay in the workspace; and switching modes
all        also everything else that is asked about: files elsewhere, other commands, the browser, MCP tools, subtasks

Two kinds are in no bundle and must be named: endless retries, and answers to the model's questions. No level covers
critical commands, protected files, credentials, or a line that can't be read. No level overrides a denial. A kind of
action that is not listed here is always asked about.
"""

from dataclasses import dataclass, replace
from typing import Final, Literal

from tarmac.policy import (
    Action,
    Connect,
    Execute,
    KillTerminal,
    OpenTerminal,
    PolicySettings,
    ReadFile,
    SendInput,
    UseServer,
    Verdict,
    WriteFile,
)

Auto = Literal["plan", "ask", "edits", "workspace", "all", "read", "edit", "safe"]  # the last three: older names
LEVELS: Final[tuple[Auto, ...]] = ("plan", "ask", "edits", "workspace", "all")
OLDER_NAMES: Final[dict[str, Auto]] = {"read": "ask", "edit": "edits", "safe": "workspace"}
LISTED: Final = (Execute, OpenTerminal, KillTerminal, SendInput, ReadFile, WriteFile, Connect, UseServer)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kinds:
    """Kinds that are approved in a person's place. (For files and commands the policy has switches of its own.)"""

    browser: bool = False
    mcp: bool = False
    modes: bool = False  # switching them
    subtasks: bool = False
    retries: bool = False  # of requests that fail, after the first few
    questions: bool = False  # the model's: its first suggestion is taken …
    question_timeout: float = 60.0  # … when nobody has answered for so many seconds


def kinds_for(auto: Auto, own: Kinds) -> Kinds:
    """The kinds at this level; a level only adds to what the person set."""
    everything = reaches(auto, "all")
    return replace(
        own,
        modes=own.modes or reaches(auto, "workspace"),
        browser=own.browser or everything,
        mcp=own.mcp or everything,
        subtasks=own.subtasks or everything,
    )


def level_named(name: str) -> Auto | None:
    """The level of this name, which may be an older one; None: there is none."""
    return OLDER_NAMES.get(name) or next((each for each in LEVELS if each == name), None)


def reaches(auto: Auto, level: Auto) -> bool:
    """Whether `auto` covers all that `level` does."""
    return LEVELS.index(OLDER_NAMES.get(auto, auto)) >= LEVELS.index(level)


def settings_for(auto: Auto, own: PolicySettings, *, sandboxed: bool = False) -> PolicySettings:
    """The policy's switches at this level; a level only adds to what the person set."""
    return replace(
        own,
        sandboxed=own.sandboxed or sandboxed,
        only_reads=own.only_reads or auto == "plan",
        auto_approve_read=own.auto_approve_read or reaches(auto, "edits"),
        auto_approve_write=own.auto_approve_write or reaches(auto, "edits"),
        ask_medium=own.ask_medium and not reaches(auto, "workspace"),
    )


def covers(auto: Auto, verdict: Verdict, action: Action, *, kinds: Kinds = Kinds()) -> bool:
    """Whether the level or a kind says yes where the policy would ask a person."""
    level = auto == "all" and isinstance(action, LISTED)
    kind = (kinds.mcp and isinstance(action, UseServer)) or (kinds.browser and isinstance(action, Connect))
    return (level or kind) and verdict.decision == "ask" and verdict.risk != "critical" and not verdict.personal
