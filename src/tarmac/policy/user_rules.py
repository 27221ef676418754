"""The user's own rules, from one TOML file outside of every workspace. If it can't be trusted, everything asks.

allow = ["npm test", "make lint"]        # prefixes of whole words
ask = ["docker", "git commit --amend"]   # always asked about, at every level, whatever was granted
deny = ["git push"]

[risk]                                   # at least this dangerous; medium, high or critical
high = ["make release"]
critical = ["./deploy production"]       # no grant and no level allows it

[read.mytool]                            # a program known to only read: with the keys of programs/rules/read_*.py
why = "lists my things"
short = "la"
operands = "path"
"""

import os
import shlex
import stat
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from tarmac.policy.programs.grammar import read_programs
from tarmac.policy.programs.program import Grammar
from tarmac.policy.verdict import RISKS, Risk


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixRules:
    """The user's rules: prefixes of whole words. The longest that matches wins; deny wins a tie."""

    allow: tuple[tuple[str, ...], ...] = ()
    deny: tuple[tuple[str, ...], ...] = ()
    ask: tuple[tuple[str, ...], ...] = ()  # always asked about; as long as an allow rule, it wins
    risks: tuple[tuple[tuple[str, ...], Risk], ...] = ()  # prefixes, and how dangerous they are at least
    programs: Mapping[str, Grammar] = field(default_factory=dict)  # programs the user knows to only read
    trouble: str | None = field(default=None)  # why the file they come from can't be trusted: then everything asks


LARGEST = 1 << 20
KNOWN = frozenset(["allow", "ask", "deny", "read", "risk"])


def load_rules(path: Path) -> PrefixRules:
    """The rules in `path`; none when it doesn't exist. It never raises: trouble is part of the answer."""
    try:
        with path.open("rb") as file:
            found = os.fstat(file.fileno())
            if why := _distrust(found):
                return PrefixRules(trouble=f"the rules in {path} can't be trusted: {why}")
            raw = file.read(LARGEST + 1)
    except FileNotFoundError:
        return PrefixRules()
    except OSError as error:
        return PrefixRules(trouble=f"the rules in {path} can't be read: {error.strerror}")
    try:
        return _parsed(raw)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        return PrefixRules(trouble=f"the rules in {path} make no sense: {error}")


def _distrust(found: os.stat_result) -> str:
    if found.st_uid not in (os.geteuid(), 0):
        return "they belong to another user"
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return "others may write to them"
    return "" if stat.S_ISREG(found.st_mode) else "that is no file"


def _parsed(raw: bytes) -> PrefixRules:
    if len(raw) > LARGEST:
        raise ValueError("they are too long")
    data = tomllib.loads(raw.decode("utf-8"))
    if unknown := data.keys() - KNOWN:
        raise ValueError(f"`{min(unknown)}` is not known")
    return PrefixRules(
        allow=prefixes(data.get("allow", ())),
        deny=prefixes(data.get("deny", ())),
        ask=prefixes(data.get("ask", ())),
        risks=_risks(data.get("risk", {})),
        programs=read_programs(data.get("read", {})),
    )


def _risks(table: Mapping[str, Sequence[object]]) -> tuple[tuple[tuple[str, ...], Risk], ...]:
    if unknown := table.keys() - set(RISKS[1:]):
        raise ValueError(f"`{min(unknown)}` is not a risk: medium, high or critical")
    return tuple((rule, cast("Risk", risk)) for risk, lines in table.items() for rule in prefixes(lines))


def prefixes(lines: Sequence[object]) -> tuple[tuple[str, ...], ...]:
    """Prefixes of whole words, from lines as a person writes them."""
    if not isinstance(lines, list | tuple) or not all(isinstance(line, str) for line in lines):
        raise ValueError("a rule is a line of words")
    found = [tuple(shlex.split(cast(str, line))) for line in lines]
    if not all(found):
        raise ValueError("a rule without words would fit everything")
    return tuple(found)
