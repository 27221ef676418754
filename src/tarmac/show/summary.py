"""A task in few words: when it was, what it cost, how large it is."""

import time

from tarmac.models.messages import Usage
from tarmac.tasks.views.metadata import Metadata


def when(at: float, *, now: float | None = None) -> str:
    """A time as people say it, in this machine's zone: `14:02` of today, `Mon 14:02` of this week, else the date."""
    if not at:
        return "-"
    moment, today = time.localtime(at), time.localtime(now)
    if moment[:3] == today[:3]:
        return time.strftime("%H:%M", moment)
    past = (time.time() if now is None else now) - at
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
    if meta.context_window and meta.context * 100 >= meta.context_window:
        said.append(f"{meta.context / meta.context_window:.0%} of the context")
    return " · ".join(said)


def _usage(usage: Usage) -> str:
    read = usage.input + usage.cache_reads + usage.cache_writes
    cached = f" ({usage.cache_reads / read:.0%} cached)" if usage.cache_reads and read else ""
    return f"{tokens(read)} in{cached}, {tokens(usage.output)} out"
