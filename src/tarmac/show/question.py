"""PURE: a question to a person, as text: all that must be seen before one says yes.

Every line of a question has a bar before it. No other text can have one: `harmless` takes it out of what models say and
commands print. So a text can't pass for a question.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from tarmac.show import details
from tarmac.show.columns import folded, wrapped
from tarmac.show.diffs import content_lines, diff_lines
from tarmac.show.harmless import BAR, harmless, one_line
from tarmac.show.look import Look
from tarmac.tasks.events import QuestionAsked

RISKS = {"low": "32", "medium": "35", "high": "31", "critical": "1;31"}
HEAD = "1;35"
MOST = 120  # lines of a file or command; more is shown when asked for
_HEADS = {
    "Execute": "Run this command?",
    "SendInput": "Type this into the terminal {terminal}?",
    "OpenTerminal": "Open a terminal with this shell?",
    "KillTerminal": "Close this terminal?",
    "ReadFile": "Read this file?",
    "WriteFile": "Write this file?",
    "Connect": "Connect to this address?",
    "UseServer": "Use this MCP server?",
}
_PLAIN = {
    "completion_result": "The task is done, says the model. Is it?",
    "api_req_failed": "The model can't be reached.",
    "resume_task": "Go on with this task?",
    "resume_completed_task": "This task was completed. Go on with it?",
    "mistake_limit_reached": "The model is stuck.",
    "workspace_prompt": "This workspace replaces what Tarmac tells the model. Use it?",
    "auto_approval_limit": "The limit of what runs without asking is reached. Go on?",
}


def question_lines(asked: QuestionAsked, look: Look, *, whole: bool = False) -> Iterator[str]:
    """The question and what it is about. `whole`: however long that is."""
    bar, narrower = look.paint(HEAD, BAR), replace(look, columns=look.columns - 2)
    found = details.requests(asked.details)
    if not found:
        yield from (f"{bar} {line}" for line in _plain(asked, narrower))
    for request in found:
        yield from (f"{bar} {line}" for line in _request(request, narrower, most=10**9 if whole else MOST))
    yield from (f"  {line}" for line in wrapped(_who_acts(asked), look.columns - 3) if line)


def _who_acts(asked: QuestionAsked) -> str:
    """Of a hosted agent: whether Tarmac or the agent does it."""
    agent = details.read(asked.details).get("agent")
    if not isinstance(agent, dict):
        return ""
    name = one_line(details.text(agent, "name")) or "The agent"
    if agent.get("itself") is True:
        return f"{name} does this itself, outside Tarmac's terminals."
    return f"Tarmac does this for {name}."


def is_cut(asked: QuestionAsked) -> bool:
    """Whether something was too long to be shown."""
    return any(_lines(request) > MOST for request in details.requests(asked.details))


def _lines(request: Mapping[str, object]) -> int:
    file = request.get("file")
    diff = details.text(file, "diff") if isinstance(file, dict) else ""
    return max(details.text(request, "shown").count("\n"), diff.count("\n")) + 1


def _plain(asked: QuestionAsked, look: Look) -> Iterator[str]:
    if asked.ask == "api_req_failed" and look.live:  # why stands right above
        yield look.paint(HEAD, f"? {_PLAIN[asked.ask]} Ask again?")
        return
    head = "Allow this?" if asked.ask == "tool" else _PLAIN.get(asked.ask, "")
    yield look.paint(HEAD, f"? {head}" if head else "? The model asks:")
    if asked.text.strip():
        yield from (f"  {line}" for line in wrapped(harmless(asked.text.strip()), look.columns - 3))
    for number, choice in enumerate(asked.choices, 1):
        first, *rest = wrapped(harmless(choice), look.columns - 7)
        yield f"  {look.paint('1', str(number))}  {first}"
        yield from (f"     {line}" for line in rest)
    if (after := details.takes_first_after(asked.details)) is not None:
        said = f"(the first is taken after {after:g} s, unless you begin to type)"
        yield from (f"  {line}" for line in wrapped(said, look.columns - 3))


def _request(request: Mapping[str, object], look: Look, *, most: int) -> Iterator[str]:
    kind = details.text(request, "kind")
    risk = details.text(request, "risk")
    head = _HEADS.get(kind, f"Allow this ({one_line(kind)})?").format(
        terminal=one_line(details.text(request, "terminal"))
    )
    explanation = one_line(details.text(request, "explanation"))
    if kind == "ReadFile" and explanation.startswith("reads the folder "):
        head = "Look into this folder?"
    if kind == "WriteFile" and explanation.startswith("deletes the file "):
        head = "Delete this file?"
    reason = one_line(details.text(request, "reason"))
    subject = one_line(details.text(request, "shown"))
    known = request.get("file") is not None and explanation.endswith((f" the file {subject}", f" the folder {subject}"))
    would = "" if known else explanation
    room = look.columns - 5
    said = f"? {head} {_sentence(would)}".rstrip()
    yield from (look.paint(HEAD, line) for line in wrapped(said, look.columns - 3, indent="  "))
    lines = harmless(details.text(request, "shown")).split("\n")
    if len(lines) > most:
        lines = [*lines[: most - 20], f"… {len(lines) - most:,} lines more: `v` shows them …", *lines[-20:]]
    yield from (f"    {look.paint('1', part)}" for line in lines for part in _parts(line, look))
    yield from _file(request.get("file"), look, most)
    for text in details.texts(request.get("warnings")):
        yield from (look.paint("1;31", f"  ! {line}") for line in wrapped(harmless(text), room))
    if directory := details.text(request, "directory"):
        yield f"  in {one_line(directory)}"
    if risk:
        why = reason if _sentence(reason) != _sentence(would) else ""
        lines = wrapped(f"{one_line(risk)} risk{f': {why}' if why else ''}", room)
        yield from (f"  {look.paint(RISKS.get(risk, '35'), line)}" for line in lines)


def _sentence(what: str) -> str:
    """`sends commits` and `it sends commits` as `It sends commits.`"""
    what = what.removeprefix("it ").removeprefix("It ").rstrip(".")
    return f"It {what}." if what else ""


def _parts(line: str, look: Look) -> list[str]:
    return folded(line, look.columns - 5) if look.live else [line]


def _file(file: object, look: Look, most: int) -> Iterator[str]:
    if not isinstance(file, dict):
        return
    if file.get("outside") is True:
        yield look.paint("35", "  It is outside of the workspace.")
    if why := details.text(file, "protected"):
        yield from (
            look.paint("35", f"  {line}") for line in wrapped(f"It is protected: {one_line(why)}", look.columns - 3)
        )
    if diff := details.text(file, "diff"):
        if file.get("new") is True:
            yield "  It is new:"
            yield from content_lines(diff, look, most=most)
        else:
            yield from diff_lines(diff, look, most=most)
