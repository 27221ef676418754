"""What a person can turn, and what they add: settings, and rules by prefix."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tarmac.policy.programs.grammar import Program


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySettings:
    """The switches of the policy; the floor has none."""

    auto_approve_safe_commands: bool = True  # what is proven read-only runs without asking
    auto_approve_read: bool = True  # files in the workspace, by tools; never hidden ones or credentials
    auto_approve_write: bool = False  # in the workspace; never protected files
    auto_approve_write_outside: bool = False
    ask_medium: bool = True  # False: a known command of low or medium risk runs without asking, in its terminal
    longest_command: int = 32_768  # characters; what is longer is asked about unread
    longest_allowed: int = 4_096  # characters of a line that is allowed by itself: a person could still read it
    most_parts: int = 50  # simple commands in one line
    deepest_nesting: int = 40  # of brackets, blocks and substitutions
    parse_timeout: float = 0.4  # seconds for the parser
    cache_size: int = 512  # parsed lines


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixRules:
    """The user's rules: prefixes of whole words. The longest that matches wins; deny wins a tie."""

    allow: tuple[tuple[str, ...], ...] = ()
    deny: tuple[tuple[str, ...], ...] = ()
    programs: Mapping[str, Program] = field(default_factory=dict)  # programs the user knows to only read
    trouble: str | None = field(default=None)  # why the file they come from can't be trusted: then everything asks
