"""Judge the whole corpus through the policy's public interface, and tell what differs.

entries → judge_all → Judged … → differences, by what went wrong
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from tests.policy.entries import Entry, entries

from tarmac.policy import Execute, Policy

AT_ONCE = 16  # enough to keep both the parser and the judge busy


@dataclass(frozen=True, slots=True)
class Judged:
    """An entry and the verdict it got."""

    entry: Entry
    decision: str
    risk: str
    reason: str

    @property
    def wrongly_allowed(self) -> bool:
        """The one thing that must never happen."""
        return self.decision == "allow" and "allow" not in self.entry.decisions

    @property
    def wrongly_asked(self) -> bool:
        """Everyday reading that a person is bothered with."""
        return self.entry.decisions == {"allow"} and self.decision != "allow"

    @property
    def wrongly_denied(self) -> bool:
        """Refused without asking, though not on the floor."""
        return self.decision == "deny" and "deny" not in self.entry.decisions

    @property
    def floor_missed(self) -> bool:
        """On the floor, and yet not refused."""
        return self.entry.decisions == {"deny"} and self.decision != "deny"

    @property
    def risk_differs(self) -> bool:
        """The level is none of those expected."""
        return self.risk not in self.entry.risks

    def __str__(self) -> str:
        expected = "|".join(sorted(self.entry.decisions)), "|".join(sorted(self.entry.risks))
        where = "".join(f" [{each}]" for each in (self.entry.shell, self.entry.cwd) if each not in ("bash", "."))
        line = self.entry.line if len(self.entry.line) < 160 else self.entry.line[:150] + "…"
        return (
            f"{line!r}{where}: {self.decision}/{self.risk}, not {'/'.join(expected)}; {self.entry.why} ({self.reason})"
        )


async def judge_all(workspace: Path, chosen: Sequence[Entry] | None = None) -> list[Judged]:
    """A verdict for each entry, in order, a slice at a time."""
    policy = Policy()
    chosen = entries() if chosen is None else chosen

    async def judge(entry: Entry) -> Judged:
        action = Execute(entry.line_in(workspace), cwd=(workspace / entry.cwd).resolve(), shell=entry.shell)
        verdict = await policy.judge(action, workspace=workspace)
        return Judged(entry, verdict.decision, verdict.risk, verdict.reason)

    judged: list[Judged] = []
    for start in range(0, len(chosen), AT_ONCE):
        judged += await asyncio.gather(*map(judge, chosen[start : start + AT_ONCE]))
    return judged


def differing(judged: Iterable[Judged], wrong: Callable[[Judged], bool], *, held_out: bool = False) -> str:
    """The wrong ones by topic, one a line; held-out ones as a number unless asked for, so that they stay unseen."""
    found = sorted(filter(wrong, judged), key=lambda each: (each.entry.topic, each.entry.held_out))
    text = ""
    for (topic, unseen), group in groupby(found, key=lambda each: (each.entry.topic, each.entry.held_out)):
        lines = [str(each) for each in group]
        hide = unseen and not held_out
        text += f"\n{topic}: {len(lines)} held out" if hide else "".join(f"\n{topic}: {line}" for line in lines)
    return text
