"""Judge what leaves the machine by a tool: connections to hosts, and the tools of MCP servers."""

from pathlib import Path

from tarmac.events import TaskId
from tarmac.policy.actions import Connect, UseServer
from tarmac.policy.decision import Grants
from tarmac.policy.rule import Basis
from tarmac.policy.verdict import SuggestedGrant, Verdict

METADATA = frozenset({"169.254.169.254", "fd00:ec2::254", "metadata.google.internal", "100.100.100.200"})


def judge_connection(action: Connect, grants: Grants | None, *, workspace: Path, task: TaskId | None) -> Verdict:
    """Each host is asked about once; one of this machine or a private network in any case."""
    words = ("host", action.host)
    explanation = f"fetches from {action.host}"
    if action.host.strip("[]").rpartition(":")[0] in METADATA or action.host.strip("[]") in METADATA:
        return Verdict(
            decision="deny",
            risk="critical",
            reason="it gives away the credentials of this machine",
            part=action.url,
            explanation=explanation,
            rule="connect.metadata",
        )
    grant = grants.covers_use(words, workspace=workspace, task=task) if grants else None
    if grant:
        return _granted(grant, action.url, explanation)
    return Verdict(
        decision="ask",
        risk="high" if action.private else "medium",
        reason="it is an address of this machine or a private network"
        if action.private
        else "the host is not allowed yet",
        part=action.url,
        explanation=explanation,
        rule="connect.private" if action.private else "connect.host",
        suggested_grants=(SuggestedGrant("use", f"connections to {action.host}", words),),
        personal="it reaches into a private network" if action.private else "",
    )


def judge_server(action: UseServer, grants: Grants | None, *, workspace: Path, task: TaskId | None) -> Verdict:
    """Each tool is asked about once, and again when the server describes it in another way."""
    words = ("server", action.server, action.tool, action.digest)
    what = (
        f"the tool {action.tool} of the MCP server {action.server}"
        if action.tool
        else f"the MCP server {action.server}"
    )
    part = f"{action.server} {action.tool}".strip()
    explanation = f"uses {what}" if action.tool else f"starts {what}"
    if action.allowed and not action.changed:
        return Verdict(
            decision="allow",
            risk="low",
            reason="your mcp_servers.toml allows it",
            part=part,
            explanation=explanation,
            rule="server.user",
            basis=Basis.USER_RULE,
        )
    grant = grants.covers_use(words, workspace=workspace, task=task) if grants else None
    if grant:
        return _granted(grant, part, explanation)
    changed = f"{what} has changed since it was used before"
    return Verdict(
        decision="ask",
        risk="high" if action.changed or not action.tool else "medium",
        reason=changed if action.changed else "it runs code that Tarmac does not know",
        part=part,
        explanation=explanation,
        rule="server.changed" if action.changed else "server.tool" if action.tool else "server.start",
        suggested_grants=(SuggestedGrant("use", what, words),),
        personal=changed if action.changed else "" if action.tool else "the workspace names the command",
    )


def _granted(grant: str, part: str, explanation: str) -> Verdict:
    return Verdict(
        decision="allow",
        risk="medium",
        reason="you allowed it",
        part=part,
        explanation=explanation,
        rule=f"grant.{grant}",
        basis=Basis.GRANT,
        grant=grant,
    )
