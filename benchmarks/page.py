"""The page in a real browser, beside a bare xterm.js page: attaching to a terminal, the echo of a key, a long timeline.

Needs Chromium, the built page (`make web`) and the packages of the tests. The floor of the long timeline is the page
with a task of ten items.
"""

import asyncio
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.home import private_home
from benchmarks.rounds import Goal, Row

if TYPE_CHECKING:
    from playwright.async_api import Browser, CDPSession, Page

LINES = 2000  # in the terminal that is attached to
ITEMS = 10_000
PAINTED = """async ([title, place, text]) => {
    const entry = [...document.querySelectorAll("a.entry")].find((each) => each.textContent.includes(title));
    const begin = performance.now();
    entry.click();
    while (![...document.querySelectorAll(place)].some((each) => each.textContent.includes(text)))
        await new Promise(requestAnimationFrame);
    return performance.now() - begin;
}"""
BARE = """async ([lines, text]) => {
    const begin = performance.now();
    const terminal = new Terminal({cols: 120, rows: 40, scrollback: 5000});
    terminal.open(document.querySelector("#place"));
    terminal.onData((data) => terminal.write(data));
    terminal.write(lines);
    while (!document.querySelector(".xterm-rows").textContent.includes(text))
        await new Promise(requestAnimationFrame);
    return performance.now() - begin;
}"""


def measure(*, quick: bool) -> Iterator[Row]:
    try:
        import playwright.async_api  # noqa: F401
    except ImportError:
        yield Row(what="the page", ours=None, note="playwright is not installed")
        return
    program = shutil.which("chromium") or shutil.which("chromium-headless-shell")
    if program is None:
        yield Row(what="the page", ours=None, note="there is no chromium")
        return
    with private_home() as home:
        os.environ["TARMAC_STATE_DIR"] = str(home / "state")
        yield from asyncio.run(_figures(home, program, rounds=2 if quick else 9))


async def _figures(home: Path, program: str, *, rounds: int) -> list[Row]:
    from playwright.async_api import async_playwright
    from tests.web.browser.conftest import FLAGS, Server, run, turn
    from tests.web.browser.test_state import long_task

    server = Server(home, turn("", run(f"touch made; seq 1 {LINES}; echo the-end")) + turn("Made."))
    await long_task(home / "state" / "tasks", server.workspace, ITEMS)
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    try:
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=program, args=[*FLAGS, *sandbox])
            found = await _measured(browser, await server.start(), rounds)
            await browser.close()
            return found
    finally:
        server.stop()


async def _measured(browser: "Browser", address: str, rounds: int) -> list[Row]:
    from playwright.async_api import expect
    from tests.web.browser.test_speed import ECHO, KEYS, XTERM

    page = await browser.new_page(viewport={"width": 1440, "height": 900})
    await page.goto(address)
    await page.fill("#composer", "make it")
    await page.keyboard.press("Enter")
    await page.locator(".dock .question").get_by_role("button", name="Allow once").click()
    await expect(page.locator(".screen .xterm-rows")).to_contain_text("the-end", timeout=30_000)
    attached, bare, opened, short = Timed(), Timed(), Timed(), Timed()
    echo: list[float] = []
    bare_echo: list[float] = []
    lines = "".join(f"{n}\r\n" for n in range(1, LINES + 1)) + "the-end\r\n"
    for _ in range(rounds + 1):
        for title, place, text, into in (
            ("make it", ".xterm-rows", "the-end", attached),
            ("a long task", ".said", f"Step {ITEMS - 1}", opened),
            ("make it", ".said", "Made.", short),
        ):
            await _home(page)
            await into.time(page, PAINTED, [title, place, text])
        simple = await browser.new_page(viewport={"width": 1440, "height": 900})
        await simple.set_content("<div id=place></div>")
        await simple.add_style_tag(path=XTERM / "css" / "xterm.css")
        await simple.add_script_tag(path=XTERM / "lib" / "xterm.js")
        await bare.time(simple, BARE, [lines, "the-end"])
        bare_echo += await simple.evaluate(ECHO, KEYS)
        await simple.close()  # a page behind another one draws nothing
        await page.get_by_role("button", name="Take the keyboard").click()
        await page.get_by_role("button", name="Give it back").wait_for()
        await page.wait_for_timeout(500)  # a new size is drawn
        echo += await page.evaluate(ECHO, KEYS)
        await page.get_by_role("button", name="Give it back").click()
    lines_too, ten_items = "floor: bare xterm.js draws the same lines", "floor: a task of ten items"
    return [
        _row("page: click to painted terminal", attached.took, bare.took, 150, lines_too),
        _row("page: the same, CPU of its main thread", attached.cpu, bare.cpu, None, lines_too),
        _row(
            "page: key to its echo",
            echo[KEYS - 1 :],
            bare_echo[KEYS - 1 :],
            20,
            "floor: bare xterm.js echoes by itself",
        ),
        _row(f"page: a task of {ITEMS:,} items opens", opened.took, short.took, 300, ten_items),
        _row("page: the same, CPU of its main thread", opened.cpu, short.cpu, None, ten_items),
    ]


class Timed:
    """Milliseconds by the clock, and of CPU of the page's main thread, of one thing that is done again and again."""

    def __init__(self) -> None:
        self.took: list[float] = []
        self.cpu: list[float] = []

    async def time(self, page: "Page", script: str, about: list[str]) -> None:
        session = await page.context.new_cdp_session(page)
        await session.send("Performance.enable", {"timeDomain": "threadTicks"})
        before = await self._busy(session)
        self.took.append(await page.evaluate(script, about))
        self.cpu.append(await self._busy(session) - before)
        await session.detach()

    @staticmethod
    async def _busy(session: "CDPSession") -> float:
        metrics = (await session.send("Performance.getMetrics"))["metrics"]
        return next(1000 * float(each["value"]) for each in metrics if each["name"] == "TaskDuration")


async def _home(page: "Page") -> None:
    """The list of tasks in a page that knows nothing yet."""
    await page.goto(page.url.partition("#")[0] + "#/")
    await page.reload()
    await page.locator("a.entry").nth(1).wait_for()


def _row(what: str, ours: list[float], floor: list[float], most: float | None, note: str) -> Row:
    one, other = median(ours[1:]), median(floor[1:])
    goal = Goal("≤", most, "ours") if most is not None else None
    return Row(
        what=what,
        ours=one,
        unit="ms",
        floor=other,
        ratio=one / other,
        goal=goal,
        note=f"{note}; worst {max(ours[1:]):.0f} ms",
    )
