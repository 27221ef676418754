"""`tarmac check`: what the policy says of a command, part by part, without running it.

arguments → parse() → CheckRequest → one verdict, shown or as JSON | serve(): JSON lines in, verdicts out, in order
"""

import asyncio
import json
import math
import os
import re
import shlex
import sys
from dataclasses import dataclass, is_dataclass, replace
from enum import Enum
from pathlib import Path
from typing import NoReturn

from tarmac.cli import own_stdin
from tarmac.cli.grants import grants_path
from tarmac.cli.parser import parse as parse_arguments
from tarmac.cli.shutdown import run
from tarmac.config import load_config
from tarmac.errors import BadRequest
from tarmac.policy import Enforcement, Execute, Policy, PolicySettings, PrefixRules, SuggestedGrant, Verdict
from tarmac.policy.grants import GrantFile, prefixes, refusal
from tarmac.policy.parse.parser import DIALECTS
from tarmac.policy.visible import visible
from tarmac.show.look import Look, look_of, wrapped
from tarmac.tasks.auto import settings_for

EXIT = {"allow": 0, "ask": 3, "deny": 4}
AT_ONCE = 16  # verdicts under way; the parser's processes are limited by the policy itself
SHELLS = (*DIALECTS, "fish", "pwsh", "powershell", "nu", "elvish", "xonsh", "tcsh", "csh")
KEYS = ("id", "command", "cwd", "workspace", "shell")
COLOURS = {"allow": "32", "ask": "35", "deny": "31", "low": "32", "medium": "35", "high": "31", "critical": "1;31"}
_SAID = re.compile(r"^( {4}|)(allow|ask|deny)(,? )(low|medium|high|critical)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRequest:
    """What the command line asks for."""

    command: str
    cwd: Path
    workspace: Path
    shell: str
    rules: PrefixRules
    settings: PolicySettings
    json: bool = False
    jsonl: bool = False


def main(arguments: list[str]) -> int:
    """Judge a command, or many; 0 allow, 3 ask, 4 deny."""
    request = parse(arguments)
    from tarmac.terminals.process.confinement import means

    policy = Policy(
        request.settings,
        rules=request.rules,
        grants=GrantFile(grants_path()),
        enforcement=Enforcement(means().value),
    )
    for rule in request.rules.allow:
        if why := refusal(rule):
            print(f"tarmac: the rule `{visible(' '.join(rule))}` is not taken: {why}", file=sys.stderr)
    if request.jsonl:
        try:
            return run(lambda stop: serve(policy, request))
        except* BrokenPipeError:  # nobody reads any more
            nobody_reads = True
        if nobody_reads:
            raise BrokenPipeError
    return run(lambda stop: check_one(policy, request))


def parse(arguments: list[str]) -> CheckRequest:
    """The arguments as a CheckRequest."""
    options, words = parse_arguments("check", arguments)
    given = {name: values[-1] for name, values in options.items()}
    jsonl = "jsonl" in given
    if jsonl == bool(words):
        what = "--jsonl reads commands from standard input" if jsonl else "there is no command to check"
        raise BadRequest(what, hint="tarmac check -- 'git log | head'")
    try:
        allow = prefixes([*options.get("allow", ())])
        deny = prefixes([*options.get("deny", ())])
    except ValueError as error:
        raise BadRequest(str(error), hint="a rule is words: --allow 'npm test'") from error
    cwd = Path(given.get("cwd", ".")).absolute()
    workspace = Path(given["workspace"]).absolute() if "workspace" in given else cwd
    config = load_config(workspace, os.environ)  # so that a check says what a task there would hear
    own = config.rules
    return CheckRequest(
        command=words[0] if len(words) == 1 else shlex.join(words),
        cwd=cwd,
        workspace=workspace,
        shell=_check_shell(given.get("shell", "bash")),
        rules=replace(own, allow=own.allow + allow, deny=own.deny + deny),
        settings=settings_for(config.auto, config.policy, sandboxed=config.strict_sandbox),
        json="json" in given,
        jsonl=jsonl,
    )


async def check_one(policy: Policy, request: CheckRequest) -> int:
    """Judge one command and show why."""
    action = Execute(request.command, cwd=request.cwd, shell=request.shell)
    verdict = await policy.judge(action, workspace=request.workspace)
    shown = (
        json.dumps(as_json(verdict), ensure_ascii=False)
        if request.json
        else as_text(verdict, look_of(sys.stdout, os.environ), sandboxed=request.settings.sandboxed)
    )
    print(shown.encode("utf-8", "backslashreplace").decode())
    return EXIT[verdict.decision]


def as_text(verdict: Verdict, look: Look, *, sandboxed: bool = False) -> str:
    """For a person: the decision, why, what it would do, and each part."""
    lines = [
        f"{verdict.decision}, {verdict.risk} risk: {visible(verdict.reason)}",
        f"  would: {visible(verdict.explanation)}",
        f"  rule:  {verdict.rule}",
    ]
    if verdict.part.strip() and len(verdict.parts) != 1:
        lines.append(f"  part:  {visible(verdict.part)}")
    if len(verdict.parts) > 1:
        lines.append("  parts:")
        for part in verdict.parts:
            said = f"{part.decision} {part.risk}"
            lines.append(f"    {said:14} {visible(part.text)}  ({visible(part.reason)})")
    if verdict.plan is not None:
        lines.append(f"  runs:  without a shell, in {visible(str(verdict.plan.cwd))}")
    if verdict.decision == "allow" and sandboxed and verdict.plan is None:
        lines.append("  runs:  in the sandbox")
    lines += [f"  always: {_offer(grant)}" for grant in verdict.suggested_grants]

    def painted(found: re.Match[str]) -> str:
        indent, decision, between, risk = found.groups()
        return f"{indent}{look.paint(COLOURS[decision], decision)}{between}{look.paint(COLOURS[risk], risk)}"

    if look.live:
        lines = [each for line in lines for each in wrapped(line, look.columns - 1, indent=" " * 9)]
    return "\n".join(_SAID.sub(painted, line) for line in lines)


def _offer(grant: SuggestedGrant) -> str:
    if grant.kind == "use":
        return visible(grant.text)
    return "this line" if grant.kind == "line" else f"every command that begins with `{visible(grant.text)}`"


def as_json(verdict: Verdict) -> dict[str, object]:
    """All of a verdict, as JSON has it."""
    fields = {name: _plain(getattr(verdict, name)) for name in verdict.__dataclass_fields__}
    if verdict.plan is not None:
        fields["plan"] = {"cwd": str(verdict.plan.cwd), "steps": _plain(verdict.plan.steps)}
    return fields


def _plain(value: object) -> object:
    """As dataclasses.asdict has it, which copies every text on the way and takes three times as long."""
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    if is_dataclass(value):
        return {name: _plain(getattr(value, name)) for name in value.__dataclass_fields__}
    if isinstance(value, Enum):
        return value.value
    return str(value) if isinstance(value, Path) else value


# many, as JSON lines


async def serve(policy: Policy, request: CheckRequest) -> int:
    """Judge standard input to its end: several at a time, answered in order."""
    waiting: asyncio.Queue[asyncio.Task[dict[str, object]] | None] = asyncio.Queue(AT_ONCE)

    async def answer() -> None:
        held = bytearray()
        while (task := await waiting.get()) is not None:
            held += json.dumps(await task).encode() + b"\n"
            if waiting.empty() or len(held) > 1 << 16:
                await own_stdin.write(1, bytes(held))
                held.clear()
        await own_stdin.write(1, bytes(held))

    async with asyncio.TaskGroup() as group:
        answering = group.create_task(answer())
        number = 0
        async for data in own_stdin.lines(0):
            number += 1
            if data.strip():
                await waiting.put(group.create_task(_judged(policy, request, data, number)))
        await waiting.put(None)
        await answering
    return 0


async def _judged(policy: Policy, request: CheckRequest, data: bytes, number: int) -> dict[str, object]:
    try:
        id, action, workspace = _line(data, request)
    except BadRequest as error:
        verdict = Verdict(
            decision="ask",
            risk="high",
            reason=error.what,
            part="",
            explanation="could do anything",
            rule="ask.unreadable",
        )
        return {"id": _id(data), **as_json(verdict), "error": error.what, "hint": error.hint, "line": number}
    verdict = await policy.judge(action, workspace=workspace)
    return {"id": id, **as_json(verdict)}


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


def _number(text: str) -> float:
    return float(text) if math.isfinite(float(text)) else _no_number(text)


def _fields(data: bytes) -> object:
    """What a line of JSON holds; ValueError for what could not be said back in JSON: NaN, Infinity, 1e999."""
    return json.loads(data, parse_constant=_no_number, parse_float=_number)


def _id(data: bytes) -> object:
    """By which an asker knows a line, also when the rest of it makes no sense; None when there is none."""
    try:
        fields = _fields(data)
    except (ValueError, RecursionError):
        return None
    return fields.get("id") if isinstance(fields, dict) else None


def _check_shell(shell: str) -> str:
    """`shell`, when it is one that is known; a wrong name would be judged as a shell nobody can read."""
    if shell.rpartition("/")[2].lstrip("-") not in SHELLS:
        raise BadRequest(f"{shell!r} is not a known shell", hint=f"known are {', '.join(SHELLS)}")
    return shell


def _line(data: bytes, request: CheckRequest) -> tuple[object, Execute, Path]:
    """One line of input; what it leaves out is as on the command line."""
    hint = 'a line is {"id": 1, "command": "git log", "cwd": "/src", "workspace": "/src", "shell": "bash"}'
    try:
        fields = _fields(data)
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"not valid JSON: {error}", hint=hint) from error
    if not isinstance(fields, dict):
        raise BadRequest("not a JSON object", hint=hint)
    texts = {key: fields.get(key) for key in KEYS if key != "id" and fields.get(key) is not None}
    if wrong := [key for key, value in texts.items() if not isinstance(value, str)]:
        raise BadRequest(f"`{wrong[0]}` must be a text", hint=hint)
    if "command" not in texts:
        raise BadRequest("there is no `command`", hint=hint)
    cwd = Path(str(texts.get("cwd", request.cwd)))
    workspace = Path(str(texts.get("workspace", texts.get("cwd", request.workspace))))
    action = Execute(
        str(texts["command"]), cwd=request.cwd / cwd, shell=_check_shell(str(texts.get("shell", request.shell)))
    )
    return fields.get("id"), action, request.cwd / workspace
