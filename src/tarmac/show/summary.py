"""A task in few words: when it was, what it cost, how large it is."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tarmac.models.messages import NO_USAGE, Usage
from tarmac.show.look import Look, cut, one_line
from tarmac.tasks.events import ModelSaid, RequestFailed, RequestStarted, TaskEvent
from tarmac.tasks.views.metadata import Metadata
from tarmac.tasks.views.timeline import AuditEntry


def when(at: float) -> str:
    """A time as people say it, in this machine's zone: `14:02` of today, `Mon 14:02` of this week, else the date."""
    if not at:
        return "-"
    moment, today = time.localtime(at), time.localtime()
    if moment[:3] == today[:3]:
        return time.strftime("%H:%M", moment)
    past = time.time() - at
    return time.strftime("%a %H:%M" if 0 <= past < 6 * 86400 else "%Y-%m-%d", moment)


def status(meta: Metadata, *, at_work: bool) -> str:
    """How it stands; of one whose log ends in the middle, though no process works on it, that it was stopped."""
    said: str = meta.outcome or meta.status
    return "stopped" if said in ("running", "waiting") and not at_work else said


def money(cost: float | None) -> str:
    """`$0.12`; `?` when some price is not known."""
    if cost is None:
        return "?"
    return f"${cost:.2f}" if cost >= 1 or not cost else f"${cost:.4f}" if cost < 0.01 else f"${cost:.3f}"


def size(count: int) -> str:
    """Bytes, for people."""
    value = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" or value >= 10 else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def tokens(count: int) -> str:
    """`950`, `12.3k`, `1.2M`."""
    if count < 1000:
        return str(count)
    return f"{count / 1000:.1f}k" if count < 999_950 else f"{count / 1e6:.1f}M"


def seconds(duration: float) -> str:
    """`0.3 s`, `2 min 5 s`."""
    if duration < 60:
        return f"{duration:.1f} s"
    minutes, rest = divmod(round(duration), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def spent(meta: Metadata) -> str:
    """`3 requests · 12.3k in, 800 out · $0.12`, with how full the context window is."""
    said = [f"{meta.requests} request{'s' * (meta.requests != 1)}"]
    if meta.usage.context:
        said.append(_usage(meta.usage))
    about = "about " if meta.estimated else ""
    said.append("price unknown" if meta.total_cost is None else f"{about}{money(meta.total_cost)}")
    if meta.children and meta.below != 0:
        said.append("price of subtasks unknown" if meta.below is None else f"{money(meta.below)} in subtasks")
    if meta.context_window and meta.context * 100 >= meta.context_window:
        said.append(f"{meta.context / meta.context_window:.0%} of the context")
    return " · ".join(said)


def _usage(usage: Usage) -> str:
    read = usage.input + usage.cache_reads + usage.cache_writes
    cached = f" ({usage.cache_reads / read:.0%} cached)" if usage.cache_reads and read else ""
    return f"{tokens(read)} in{cached}, {tokens(usage.output)} out"


COLOURS = {"allow": "32", "yes": "32", "deny": "31", "no": "31", "skip": "35", "ask": "35"}


def audit_lines(entries: Iterable[AuditEntry], look: Look) -> Iterator[str]:
    """A decision each: when, who, what was decided, about what, why."""
    for entry in entries:
        moment = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(entry.at))
        decision = look.paint(COLOURS.get(entry.decision, "36"), f"{entry.decision:<8}")
        what = one_line(entry.what)
        why = f" ({f'{entry.risk} risk: ' if entry.risk else ''}{one_line(entry.why)})" if entry.why else ""
        said = cut(what + why, max(look.columns - 46, 20)) if look.live else what + why
        yield f"{look.paint('2', moment)}  {one_line(entry.who):<15}{decision}{said}"


@dataclass(slots=True, kw_only=True)
class RequestUsage:
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


def requests_of(events: Iterable[TaskEvent]) -> list[RequestUsage]:
    """All of a task's, in their order."""
    found: dict[str, RequestUsage] = {}
    for event in events:
        match event:
            case RequestStarted(request=request, model=model, context_window=window):
                found[request] = RequestUsage(
                    at=event.at, request=request, model=model, outcome="no end", context_window=window
                )
            case ModelSaid(request=request) | RequestFailed(request=request):
                said = found.setdefault(request, RequestUsage(at=event.at, request=request, model="", outcome=""))
                said.outcome = "answered" if isinstance(event, ModelSaid) else "failed"
                said.usage, said.cost, said.estimated = event.usage, event.cost, event.estimated
                said.seconds = event.seconds if isinstance(event, ModelSaid) else event.at - said.at
    return list(found.values())


def usage_lines(requests: Iterable[RequestUsage], look: Look) -> Iterator[str]:
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
