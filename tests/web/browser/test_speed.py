"""How long a person waits for the page. The figures are printed (`-s`); docs/benchmarks.md keeps those of one run.

The bounds are wide, because the machine may be busy: they catch a page that became slow, not one that is 10 ms slower.
"""

import statistics
from pathlib import Path
from typing import Final

import pytest
from playwright.async_api import Browser, expect
from tests.web.browser.conftest import Open, Serve, run, turn

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
XTERM: Final = Path(__file__).parents[3] / "web" / "node_modules" / "@xterm" / "xterm"
KEYS: Final = 60
ECHO: Final = """async (count) => {
    const area = document.querySelector(".xterm-helper-textarea");
    const rows = document.querySelector(".xterm-rows");
    const took = [];
    for (let each = 0; each < count; each++) {
        const drawn = new Promise((resolve) => {
            const before = rows.textContent;
            const seen = new MutationObserver(() => {
                if (rows.textContent === before) return;
                seen.disconnect();
                resolve();
            });
            seen.observe(rows, {childList: true, characterData: true, subtree: true});
        });
        const begin = performance.now();
        area.dispatchEvent(new KeyboardEvent("keydown", {key: "x", code: "KeyX", keyCode: 88, bubbles: true}));
        area.dispatchEvent(new KeyboardEvent("keypress", {key: "x", charCode: 120, keyCode: 120, bubbles: true}));
        await Promise.race([drawn, new Promise((_, reject) => setTimeout(() => reject("no echo"), 5000))]);
        took.push(performance.now() - begin);
    }
    return took;
}"""


async def test_a_key_is_echoed_and_a_terminal_is_painted_soon(serve: Serve, visit: Open, browser: Browser) -> None:
    """T26: from a key to its echo, beside bare xterm.js; from a click on a task to the picture of its terminal."""
    visitor = await visit(await serve(turn("", run("touch made; seq 1 2000; echo the-end")) + turn("Made.")).start())
    page = visitor.page
    await visitor.begin("make it")
    await visitor.allow()
    await expect(page.locator(".screen .xterm-rows")).to_contain_text("the-end")
    await page.goto(page.url.partition("#")[0] + "#/")
    await page.reload()  # nothing of the terminal is here
    await expect(page.locator("a.entry")).to_be_visible()
    painted = await page.evaluate("""async () => {
        const begin = performance.now();
        document.querySelector("a.entry").click();
        while (!document.querySelector(".xterm-rows")?.textContent.includes("the-end"))
            await new Promise(requestAnimationFrame);
        return performance.now() - begin;
    }""")
    await page.get_by_role("button", name="Take the keyboard").click()
    await expect(page.get_by_role("button", name="Give it back")).to_be_visible()
    await page.wait_for_timeout(500)  # a new size is drawn
    echo = statistics.median(await page.evaluate(ECHO, KEYS))

    bare = await browser.new_page()
    await bare.set_content("<div id=place></div>")
    await bare.add_style_tag(path=XTERM / "css" / "xterm.css")
    await bare.add_script_tag(path=XTERM / "lib" / "xterm.js")
    await bare.evaluate("""() => {
        const terminal = new Terminal({cols: 120, rows: 40});
        terminal.open(document.querySelector("#place"));
        terminal.onData((data) => terminal.write(data));
    }""")
    floor = statistics.median(await bare.evaluate(ECHO, KEYS))
    await bare.close()
    print(f"\nclick to painted terminal {painted:.0f} ms · key to echo {echo:.1f} ms, bare xterm.js {floor:.1f} ms")
    assert painted < 1500
    assert echo < 200
