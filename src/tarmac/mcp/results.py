"""PURE: what came of a call, as data that fits its tool's schema: what does not apply is left out."""

from pathlib import Path
from typing import Any

from tarmac.policy import Verdict
from tarmac.policy.visible import visible
from tarmac.tools.tool import Done

Data = dict[str, Any]
_COMMAND = {"line": "command", "terminal": "terminal_id"}  # names in a report's details, and here
_SHOWN = (
    "command", "exit_code", "signal", "running", "reason", "duration", "cwd", "cwd_after", "terminal_id", "number",
    "awaiting", "prompt", "truncated", "output_bytes", "notes",
)  # fmt: skip
NEXT = {
    "running": "It goes on. wait_for_terminal waits for its end, read_terminal looks, interrupt_terminal ends it.",
    "line": "Answer with send_to_terminal, or end it with interrupt_terminal.",
    "ended": (
        "It only reads, so it ran without a terminal, and was ended when its time was over. Ask for less, or give it a "
        "longer timeout."
    ),
    "secret": "Nobody can type a secret here: interrupt_terminal, and use a way that asks for none.",
}


def data_of(name: str, done: Done) -> Data:
    """The structured content of a tool's result."""
    found: Data = dict(done.details)
    match name:
        case "run_command" | "run_persistent_command":
            return _command(found["command"], done.output)
        case "list_terminals":
            return {"terminals": [_present(each) for each in found["terminals"]]}
        case "open_persistent_terminal":
            return _present(found["terminal"])
        case "kill_persistent_terminal":
            return _present(found["terminal"])
        case _:
            return {**found, "terminal": _present(found["terminal"]), "output": done.output}


def output_path(done: Done) -> Path | None:
    """Where all that a command printed is kept, if its result says so."""
    command: Data = done.details.get("command", {})
    found = command.get("output_path")
    return Path(found) if found else None


def _command(details: Data, output: str) -> Data:
    named = {_COMMAND.get(key, key): value for key, value in details.items()}
    made = {key: named[key] for key in _SHOWN if named.get(key) not in (None, "", [])}
    made["output"] = output
    if not made.get("terminal_id"):
        made.pop("number", None)
    if made["running"]:
        awaiting = named.get("awaiting")
        made["next"] = NEXT["running"] if not awaiting else NEXT["secret" if awaiting == "secret" else "line"]
    elif made["reason"] == "timeout" and not made.get("terminal_id"):
        made["next"] = NEXT["ended"]
    return made


def _present(found: Data) -> Data:
    return {key: value for key, value in found.items() if value not in (None, "")}


def verdict_data(verdict: Verdict) -> Data:
    """The policy's word."""
    return {
        "decision": verdict.decision,
        "risk": verdict.risk,
        "reason": visible(verdict.reason),
        "rule": visible(verdict.rule),
        "explanation": visible(verdict.explanation),
        "parts": [
            {
                "text": visible(each.text),
                "decision": each.decision,
                "risk": each.risk,
                "reason": visible(each.reason),
                "rule": visible(each.rule),
            }
            for each in verdict.parts
        ],
    }
