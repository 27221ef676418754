"""`tarmac grants`: what was allowed for good: listed, added to, and taken back."""

import asyncio
import dataclasses
import json
import os
import shlex
import sys
from pathlib import Path
from typing import Literal

from tarmac.cli.parser import parse as parse_arguments
from tarmac.cli.parser import suggest
from tarmac.errors import BadRequest
from tarmac.events import TaskId
from tarmac.paths import state_dir
from tarmac.policy.grants import Grant, GrantFile
from tarmac.policy.visible import shortened, visible

ACTIONS = {"list": "list", "allow": "allow", "revoke": "revoke", "clear": "clear"}


def main(arguments: list[str]) -> int:
    """List, revoke or clear; the exit code."""
    options, words = parse_arguments("grants", arguments)
    given = {name: values[-1] for name, values in options.items()}
    action, rest = (words[0], words[1:]) if words else ("list", [])
    workspace = Path(given["workspace"]) if "workspace" in given else None
    task = TaskId(given["task"]) if "task" in given else None
    if action not in ACTIONS:
        raise BadRequest(
            f"`{action}` is not a command of `tarmac grants`",
            hint=suggest(action, ACTIONS) or "list, allow, revoke, clear",
        )
    if action != "allow" and ("everywhere" in given or "prefix" in given):
        raise BadRequest("--everywhere and --prefix are for `grants allow`")
    if action == "allow":
        return _allow(given, rest)
    if action != "revoke" and rest:
        raise BadRequest(f"`grants {action}` takes no `{rest[0]}`", hint="tarmac grants revoke ID revokes one")
    if action == "revoke" and (len(rest) != 1 or workspace or task):
        raise BadRequest("`grants revoke` takes one id", hint="tarmac grants list shows them")
    grants = GrantFile(grants_path())
    if action == "revoke":
        return _say(grants.revoke(rest[0]), json_wanted="json" in given)
    if action == "clear":
        gone = grants.clear(workspace=workspace, task=task)
        print(json.dumps({"revoked": gone}) if "json" in given else f"{_count(gone)} taken back")
        return 0
    return _list(grants, workspace, task, json_wanted="json" in given)


def _allow(given: dict[str, str], words: list[str]) -> int:
    """Store a grant for a command, as a person's "always" would; the exit code."""
    from tarmac.policy import Execute, Policy, SuggestedGrant

    if not words or "task" in given:
        raise BadRequest("`grants allow` takes a command", hint="tarmac grants allow -- 'npm test'")
    if "everywhere" in given and "workspace" in given:
        raise BadRequest("--everywhere and --workspace exclude each other", hint="give one of them")
    line = words[0] if len(words) == 1 else shlex.join(words)
    workspace = Path(given.get("workspace", ".")).absolute()
    verdict = asyncio.run(Policy().judge(Execute(line, cwd=workspace), workspace=workspace))
    if verdict.decision == "deny":
        raise BadRequest(verdict.reason)
    if "prefix" in given:
        wanted = SuggestedGrant("prefix", line, tuple(shlex.split(line)))
    else:
        wanted = SuggestedGrant("line", line)
    scope: Literal["everywhere", "workspace"] = "everywhere" if "everywhere" in given else "workspace"
    made = GrantFile(grants_path()).add(wanted, scope=scope, risk=verdict.risk, workspace=workspace, origin="cli")
    if "json" in given:
        print(json.dumps({"allowed": dataclasses.asdict(made)}))
    else:
        print(f"allowed: {_shown(made)} ({made.where}, id {made.id})")
    return 0


def grants_path() -> Path:
    """Where the user's grants are kept: beside Tarmac's other state, never in a workspace."""
    return state_dir(os.environ) / "grants.json"


def _list(grants: GrantFile, workspace: Path | None, task: TaskId | None, *, json_wanted: bool) -> int:
    found = grants.listing()
    if workspace or task:
        here = workspace or Path("/")
        found = tuple(each for each in found if each.scope != "everywhere" and each.reaches(workspace=here, task=task))
    if json_wanted:
        for each in found:
            print(json.dumps(dataclasses.asdict(each)))
        return 0
    if not found:
        sys.stdout.write("there are no grants\n")
        return 0
    for each in found:
        print(f"{each.id}  {each.granted[:10]}  {each.where}\n    {_shown(each)}")
    return 0


def _shown(grant: Grant) -> str:
    text = shortened(visible(grant.text), 400).replace("\n", "\n    ")
    return f"{text} …" if grant.kind == "prefix" else text


def _say(grant: Grant, *, json_wanted: bool) -> int:
    if json_wanted:
        print(json.dumps({"revoked": dataclasses.asdict(grant)}))
    else:
        print(f"taken back: {_shown(grant)} ({grant.where})")
    return 0


def _count(number: int) -> str:
    return {0: "nothing was", 1: "1 grant was"}.get(number, f"{number} grants were")
