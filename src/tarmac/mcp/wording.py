"""PURE: the question as a person reads it, and what a model is told when nobody could be asked."""

import shlex
from pathlib import Path
from typing import Final

from tarmac.policy import Action, Execute, KillTerminal, OpenTerminal, SendInput, Verdict
from tarmac.policy.approval import Request, named
from tarmac.policy.visible import shortened, visible

YES: Final = "Allow once"
NO: Final = "Deny"
NOT_ASKED: Final = "The person closed the question without an answer, so it was not done."
MOST_SHOWN: Final = 200  # characters of a command in a hint
MOST_OFFERED: Final = 3
NARROW: Final = 80  # characters of a line that is seen whole everywhere
_VERBS: Final = {
    "Execute": "run this command",
    "SendInput": "type this into a running program",
    "OpenTerminal": "open a terminal with this shell",
    "KillTerminal": "close this terminal",
}
_DOING: Final[dict[type[Action], str]] = {
    SendInput: "Typing",
    OpenTerminal: "Opening a terminal with",
    KillTerminal: "Closing terminal",
}


def choices(request: Request) -> tuple[str, ...]:
    """What a person can say: yes, yes for good to what could be allowed for good, and no."""
    always = []
    for each in request.always[:MOST_OFFERED]:
        what = "exactly this line" if each.kind == "line" else f"`{shortened(visible(' '.join(each.words)), 60)} …`"
        always.append(f"Always allow {what} in this workspace")
    return (YES, *always, NO)


def message(request: Request, verdict: Verdict, who: str) -> str:
    """All of what would be done, where, how dangerous it is, and why it is asked.

    Claude Code shows three lines, each cut at the width of its window. So the danger and the command come first, and
    that there is more of it than can be seen is told in the first line.
    """
    shown, lines = request.shown, request.shown.count("\n") + 1
    verb = _VERBS.get(request.kind, "do this")
    if request.kind == "Execute" and (lines > 1 or len(shown) > NARROW):
        verb = f"run these {lines} lines" if lines > 1 else f"run this command of {len(shown)} characters"
    first = shown if lines == 1 else f"{' ⏎ '.join(shown.split(chr(10)))[:MOST_SHOWN]} …"
    rows = [f"{_sentence(verb)}? Risk: {request.risk}. {_sentence(request.reason)}", first]
    rows += [f"Careful: {each}" for each in request.warnings]
    where = f"in {request.directory}" if request.directory else ""
    if request.terminal:
        where += f" (terminal {request.terminal})"
    if where:
        rows.append(where.strip())
    if lines > 1:
        rows += ["", shown, ""]
    if request.explanation:
        rows.append(f"What it would do: {request.explanation}")
    rows.append(f"Asked by {visible(who) or 'an agent'} (rule: {verdict.rule})")
    return "\n".join(rows)


def cannot_ask(action: Action, verdict: Verdict, why: str, *, workspace: Path) -> str:
    """What a model is told where a person's yes is needed and nobody can be asked: reason, rule, way out."""
    what = named(action, _DOING.get(type(action)))
    return (
        f"{what} was not done: it needs a person's yes, and {why}. Reason: {visible(verdict.reason)} "
        f"(risk: {verdict.risk}, rule: {verdict.rule}). {how_to_allow(action, verdict, workspace=workspace)}"
    )


def how_to_allow(action: Action, verdict: Verdict, *, workspace: Path) -> str:
    """What the person can do about it; the model can't."""
    if isinstance(action, Execute) and verdict.suggested_grants and verdict.risk != "critical":
        line = shlex.quote(action.command) if len(action.command) <= MOST_SHOWN else "'…'"
        prefix = next((each for each in verdict.suggested_grants if each.kind == "prefix"), None)
        also = f", or starts the server with --allow {shlex.quote(' '.join(prefix.words))}" if prefix else ""
        where = shlex.quote(str(workspace))
        return (
            "It is allowed if the person (not you) runs this in a shell of theirs: "
            f"tarmac grants allow --workspace {where} -- {line}{also}. "
            "Or find a way that only reads, and in the workspace."
        )
    if isinstance(action, Execute):
        return "It can't be allowed for good: the person may run it themselves, or use a client that can ask them."
    if isinstance(action, KillTerminal):
        return "End what runs in it first (interrupt_terminal), then close it."
    if isinstance(action, SendInput):
        return "Use a client that can ask the person, or a command that asks nothing."
    return "Use a client that can ask the person."


def waiting(action: Action) -> str:
    """What a model is told while the person has not answered yet."""
    what = "the command" if isinstance(action, Execute) else "this"
    return (
        f"The person was asked, and has not answered yet: {what} was not done. The question stays open; make the same "
        "call again, with the same arguments, to wait on for the answer."
    )


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
