"""Two browsers on a busy task, for a while: one reloads all the time, the other stays; memory stays flat.

By hand, for half an hour: TARMAC_SOAK=1800 python -m pytest -m browser -s tests/web/browser/test_soak.py
"""

import asyncio
import os
import re
import time
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Final

import pytest
from playwright.async_api import CDPSession, expect
from tests.web.browser.conftest import Open, Serve, Server, Visitor, invite, run, turn

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
SECONDS: Final = float(os.environ.get("TARMAC_SOAK", "120"))
WARM: Final = min(300.0, SECONDS / 2)  # seconds until every buffer is full
SAMPLES: Final = 25
MOST: Final = 1.25  # the last third beside the first
LINES: Final = 30
PRINTED: Final = re.compile(r"^tick-(\d+)-(\d+)$", re.MULTILINE)
STEP: Final = re.compile(r"^Step (\d+)\.$", re.MULTILINE)


@dataclass
class Memory:
    """Samples of the page that stays, and of the server, in MB."""

    heap: list[float] = field(default_factory=list)
    nodes: list[float] = field(default_factory=list)
    listeners: list[float] = field(default_factory=list)
    server: list[float] = field(default_factory=list)

    async def sample(self, session: CDPSession, server: Server) -> str:
        """Take one, and say what it is."""
        await session.send("HeapProfiler.collectGarbage")
        self.heap.append((await session.send("Runtime.getHeapUsage"))["usedSize"] / 1e6)
        counters = await session.send("Memory.getDOMCounters")
        self.nodes.append(counters["nodes"])
        self.listeners.append(counters["jsEventListeners"])
        status = Path(f"/proc/{server.pid}/status").read_text()
        self.server.append(int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) / 1e3)
        return (
            f"heap {self.heap[-1]:.2f} MB, {self.nodes[-1]:.0f} nodes, {self.listeners[-1]:.0f} listeners,"
            f" server {self.server[-1]:.0f} MB"
        )


def growth(samples: list[float]) -> float:
    third = len(samples) // 3
    return median(samples[-third:]) / median(samples[:third])


def numbered(text: str) -> list[tuple[int, int]]:
    return [(int(one), int(other)) for one, other in PRINTED.findall(text)]


async def steps_in(visitor: Visitor) -> list[int]:
    """The steps of the whole timeline, read from its beginning to its end as a person would."""
    page = visitor.page
    found: dict[int, str] = {}
    box = page.locator(".timeline")
    while not await page.locator(".timeline [aria-posinset='1']").count():
        await box.evaluate("(list) => list.scrollTo(0, 0)")
        await page.wait_for_timeout(60)
    while True:
        await expect(page.locator(".timeline .ghost")).to_have_count(0)
        seen, done = await box.evaluate("""(list) => [
            [...list.querySelectorAll("[aria-posinset]")].map((each) => [Number(each.ariaPosInSet), each.innerText]),
            list.scrollTop + list.clientHeight >= list.scrollHeight - 2,
        ]""")
        found |= {int(place): str(text) for place, text in seen}
        if done:
            return [int(step) for place in sorted(found) for step in STEP.findall(found[place])]
        await box.evaluate("(list) => list.scrollBy(0, list.clientHeight * 0.8)")
        await page.wait_for_timeout(60)


async def press_keys(visitor: Visitor, word: str) -> None:
    """Take the keyboard of the person's own terminal, use it, and give it back."""
    page = visitor.page
    await page.get_by_role("tab").nth(1).click()
    await page.get_by_role("button", name="Take the keyboard").click()
    await expect(page.get_by_role("button", name="Give it back")).to_be_visible()
    await page.keyboard.type(f"echo {word}")
    await page.keyboard.press("Enter")
    await expect(page.locator(".screen .xterm-rows")).to_contain_text(re.compile(rf"{word}.*{word}", re.DOTALL))
    await page.get_by_role("button", name="Give it back").click()
    await page.get_by_role("tab").first.click()


async def test_two_browsers_on_a_busy_task_use_no_more_memory_and_lose_nothing(serve: Serve, visit: Open) -> None:
    """A4, T26: reloads, keyboards taken and given back, terminals that print all the time."""
    count = int(SECONDS * 2) + 60
    script = "".join(turn(f"Step {n}.", run(f"./ticks {n}")) for n in range(count))
    server = serve(script, options=("--auto", "all"))
    ticks = server.workspace / "ticks"  # plain words: no parser that could take too long, and ask, on a busy machine
    ticks.write_text(f"#!/bin/sh\nfor i in $(seq {LINES}); do echo tick-$1-$i; sleep 0.02; done\n")
    ticks.chmod(0o755)
    stays = await visit(await server.start())
    await stays.begin("count")
    await expect(stays.page.locator(".screen .xterm-rows")).to_contain_text("tick-")
    reloads = await visit(await invite(stays.page), viewport={"width": 1300, "height": 700})
    await reloads.page.goto(stays.page.url)
    await stays.page.get_by_role("button", name="New terminal").click()
    await expect(stays.page.get_by_role("tab")).to_have_count(2)
    session = await stays.context.new_cdp_session(stays.page)
    await session.send("HeapProfiler.enable")
    memory = Memory()
    await stays.page.get_by_role("tab").first.click()
    begin = time.monotonic()
    every = (SECONDS - WARM) / SAMPLES
    due, rounds = begin + WARM, 0
    while time.monotonic() < begin + SECONDS:
        rounds += 1
        await reloads.page.reload()
        for each in (stays, reloads):
            await expect(each.page.locator(".screen .xterm-rows")).to_contain_text("tick-")
            shown = numbered(await each.screen_text())
            assert shown == sorted(set(shown)), "a line was drawn twice, or out of order"
            assert all(after == (one, line + 1) for (one, line), after in pairwise(shown) if after[0] == one), (
                "a line is missing"
            )
        await press_keys((stays, reloads)[rounds % 2], f"word-{rounds}")
        while time.monotonic() > due:
            print(f"\n{time.monotonic() - begin:5.0f} s: {await memory.sample(session, server)}", end="", flush=True)
            due += every
    await stays.page.get_by_role("button", name="Pause").click()
    await expect(stays.page.get_by_role("button", name="Go on")).to_be_visible()
    both = await asyncio.gather(steps_in(stays), steps_in(reloads))
    print(
        f"\n{SECONDS:.0f} s, {rounds} reloads, {len(both[0])} steps; last third beside the first: JS heap"
        f" ×{growth(memory.heap):.3f} ({memory.heap[-1]:.1f} MB), DOM nodes ×{growth(memory.nodes):.3f}"
        f" ({memory.nodes[-1]:.0f}),"
        f" listeners ×{growth(memory.listeners):.3f}, server ×{growth(memory.server):.3f} ({memory.server[-1]:.0f} MB)"
    )
    assert both[0] == both[1] == list(range(len(both[0])))
    assert growth(memory.heap) <= MOST
    assert growth(memory.server) <= MOST
