"""What may run: the policy judges every action of an agent first. It reads a command as the shell would.

    policy = Policy()
    verdict = await policy.judge(Execute("git log | head", cwd=path), workspace=path)

It does not know tasks, and never waits for a person.
"""

from tarmac.policy.decision import Grants
from tarmac.policy.grants import PrefixRules
from tarmac.policy.judge import Policy
from tarmac.policy.verdict import (
    Action,
    Confinement,
    Connect,
    Decision,
    Enforcement,
    Execute,
    KillTerminal,
    OpenTerminal,
    Part,
    Plan,
    PolicySettings,
    ReadFile,
    Risk,
    SendInput,
    Stage,
    Step,
    SuggestedGrant,
    UseServer,
    Verdict,
    WriteFile,
)

__all__ = [
    "Action",
    "Confinement",
    "Connect",
    "Decision",
    "Enforcement",
    "Execute",
    "Grants",
    "KillTerminal",
    "OpenTerminal",
    "Part",
    "Plan",
    "Policy",
    "PolicySettings",
    "PrefixRules",
    "ReadFile",
    "Risk",
    "SendInput",
    "Stage",
    "Step",
    "SuggestedGrant",
    "UseServer",
    "Verdict",
    "WriteFile",
]
