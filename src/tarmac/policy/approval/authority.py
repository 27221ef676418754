"""Who decided whether something may be done."""

from enum import StrEnum

from tarmac.policy.rule import Basis
from tarmac.policy.verdict import Part, Verdict


class Authority(StrEnum):
    """Who decided. The values are those of the audit log."""

    POLICY = "policy"
    RULES = "rules"  # the user's own
    GRANT = "grant"
    LEVEL = "auto-approval"
    MODE = "mode"
    NOBODY = "nobody to ask"


def authority(verdict: Verdict) -> Authority:
    """Who decided a verdict: the user's rules, a grant, or the policy itself."""
    if verdict.decision == "ask":  # what the user allowed did not suffice
        return Authority.POLICY
    return {Basis.GRANT: Authority.GRANT, Basis.USER_RULE: Authority.RULES}.get(verdict.basis, Authority.POLICY)


def proven_as(part: Part, program: str) -> bool:
    """Whether a part of a line was proven to only read by what is known of this program."""
    return part.basis is Basis.PROVEN and part.rule.split(".")[:2] == ["read", program]


def grant_used(verdict: Verdict) -> str | None:
    """The id of the grant that a verdict rests on."""
    return verdict.grant or None if authority(verdict) is Authority.GRANT else None
