"""A task's accounts: who allowed what (`tarmac tasks audit`), and what each request took (`tarmac tasks usage`)."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tarmac.models.messages import NO_USAGE, Usage
from tarmac.show.columns import cut
from tarmac.show.harmless import one_line
from tarmac.show.look import Look
from tarmac.show.summary import money, seconds, tokens
from tarmac.tasks.events import ModelSaid, RequestFailed, RequestStarted, TaskEvent
from tarmac.tasks.views.audit import Entry
from tarmac.tasks.views.metadata import Metadata

COLOURS = {"allow": "32", "yes": "32", "deny": "31", "no": "31", "skip": "35", "ask": "35"}


def audit_lines(entries: Iterable[Entry], look: Look) -> Iterator[str]:
    """A decision each: when, who, what was decided, about what, why."""
    for entry in entries:
        moment = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(entry.at))
        decision = look.paint(COLOURS.get(entry.decision, "36"), f"{entry.decision:<8}")
        what = one_line(entry.what)
        why = f" ({f'{entry.risk} risk: ' if entry.risk else ''}{one_line(entry.why)})" if entry.why else ""
        said = cut(what + why, max(look.columns - 46, 20)) if look.live else what + why
        yield f"{look.paint('2', moment)}  {one_line(entry.who):<15}{decision}{said}"


@dataclass(slots=True, kw_only=True)
class Request:
    """One request to a model, as it ended."""

    at: float
    request: str
    model: str
    outcome: str  # "answered", "failed", "no end"
    usage: Usage = NO_USAGE
    cost: float | None = 0.0
    estimated: bool = False
    seconds: float = 0.0
    context_window: int | None = None


def requests_of(events: Iterable[TaskEvent]) -> list[Request]:
    """All of a task's, in their order."""
    found: dict[str, Request] = {}
    for event in events:
        match event:
            case RequestStarted(request=request, model=model, context_window=window):
                found[request] = Request(
                    at=event.at, request=request, model=model, outcome="no end", context_window=window
                )
            case ModelSaid(request=request) | RequestFailed(request=request):
                said = found.setdefault(request, Request(at=event.at, request=request, model="", outcome=""))
                said.outcome = "answered" if isinstance(event, ModelSaid) else "failed"
                said.usage, said.cost, said.estimated = event.usage, event.cost, event.estimated
                said.seconds = event.seconds if isinstance(event, ModelSaid) else event.at - said.at
    return list(found.values())


def usage_lines(requests: Iterable[Request], look: Look) -> Iterator[str]:
    """A request each: when, how it ended, tokens in (of these cached) and out, cost, time, how full the window was."""
    head = f"{'WHEN':<10}{'OUTCOME':<10}{'IN':>8}{'CACHED':>8}{'OUT':>8}{'COST':>11}{'TIME':>12}{'CONTEXT':>9}  MODEL"
    yield look.paint("2", head)
    for each in requests:
        read = each.usage.input + each.usage.cache_reads + each.usage.cache_writes
        about = "~" if each.estimated else ""
        full = f"{each.usage.context / each.context_window:.0%}" if each.context_window and each.usage.context else "-"
        yield (
            f"{time.strftime('%H:%M:%S', time.localtime(each.at)):<10}{each.outcome:<10}"
            f"{about + tokens(read):>8}{tokens(each.usage.cache_reads):>8}{about + tokens(each.usage.output):>8}"
            f"{about + money(each.cost):>11}{seconds(each.seconds):>12}{full:>9}  {one_line(each.model)}"
        )


def tool_line(meta: Metadata) -> str:
    """`read_file 3 · execute_command 5 (1 failed)`; the most used first."""
    counts = sorted(meta.tools.items(), key=lambda each: (-each[1].calls, each[0]))
    return " · ".join(
        f"{one_line(name)} {count.calls}{f' ({count.failures} failed)' if count.failures else ''}"
        for name, count in counts
    )
