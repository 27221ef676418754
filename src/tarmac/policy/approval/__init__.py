"""Approvals: a request, its answer, and what that answer allows.

make_request(action, verdict, …) → Request           what a door shows
Answer(AnswerKind.YES, …)                            what a person says, through any door, and what the log keeps
Pending(request, action).answer(answer) → Resolved   approved, edited, denied or unanswered
Resolved.approval.use(action, …)                     once, and only for what was shown

Every step is a typed value. `explain` turns values into words for people and models. Nothing reads the words back.
An approval lives in memory only. After a restart the user is asked again.
"""

from tarmac.policy.approval.request import Request, ShownFile, ShownPart, digest, make_request
from tarmac.policy.approval.resolution import (
    Always,
    Answer,
    AnswerKind,
    Approval,
    Authority,
    Choice,
    GrantScope,
    Pending,
    Picture,
    Resolution,
    Resolved,
    authority,
    denied_text,
    grant_used,
    named,
    no_person_text,
    proven_as,
)

__all__ = [
    "Always",
    "Answer",
    "AnswerKind",
    "Approval",
    "Authority",
    "Choice",
    "GrantScope",
    "Pending",
    "Picture",
    "Request",
    "Resolution",
    "Resolved",
    "ShownFile",
    "ShownPart",
    "authority",
    "denied_text",
    "digest",
    "grant_used",
    "make_request",
    "named",
    "no_person_text",
    "proven_as",
]
