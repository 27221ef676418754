"""The page in a real browser, beside a bare xterm.js page: attaching to a terminal, opening a long timeline.

Needs Chromium, the built page (`make web`) and the packages of the tests. The echo of a key is measured by
`pytest -m browser -s tests/web/browser/test_speed.py`.
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
    from playwright.async_api import Browser, Page

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
    from tests.web.browser.test_speed import XTERM

    page = await browser.new_page(viewport={"width": 1440, "height": 900})
    await page.goto(address)
    await page.fill("#composer", "make it")
    await page.keyboard.press("Enter")
    await page.locator(".dock .question").get_by_role("button", name="Allow once").click()
    await expect(page.locator(".screen .xterm-rows")).to_contain_text("the-end", timeout=30_000)
    attached: list[float] = []
    bare: list[float] = []
    opened: list[float] = []
    lines = "".join(f"{n}\r\n" for n in range(1, LINES + 1)) + "the-end\r\n"
    for _ in range(rounds + 1):
        for title, place, text, into in (
            ("make it", ".xterm-rows", "the-end", attached),
            ("a long task", ".said", f"Step {ITEMS - 1}", opened),
        ):
            await _home(page)
            into.append(await page.evaluate(PAINTED, [title, place, text]))
        simple = await browser.new_page(viewport={"width": 1440, "height": 900})
        await simple.set_content("<div id=place></div>")
        await simple.add_style_tag(path=XTERM / "css" / "xterm.css")
        await simple.add_script_tag(path=XTERM / "lib" / "xterm.js")
        bare.append(await simple.evaluate(BARE, [lines, "the-end"]))
        await simple.close()  # a page behind another one draws nothing
    return [
        _row(
            "page: click to painted terminal", attached[1:], bare[1:], 150, "floor: bare xterm.js draws the same lines"
        ),
        _row(f"page: a task of {ITEMS:,} items opens", opened[1:], None, 300, ""),
    ]


async def _home(page: "Page") -> None:
    """The list of tasks in a page that knows nothing yet."""
    await page.goto(page.url.partition("#")[0] + "#/")
    await page.reload()
    await page.locator("a.entry").nth(1).wait_for()


def _row(what: str, ours: list[float], floor: list[float] | None, most: float, note: str) -> Row:
    return Row(
        what=what,
        ours=median(ours),
        unit="ms",
        floor=median(floor) if floor else None,
        ratio=median(ours) / median(floor) if floor else None,
        goal=Goal("≤", most, "ours"),
        note=f"{note}; worst {max(ours):.0f} ms".removeprefix("; "),
    )
