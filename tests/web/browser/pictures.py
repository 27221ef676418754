"""Make the pictures of the docs anew: python -m tests.web.browser.pictures WORKSPACE [FOLDER].

WORKSPACE is a folder that is not there yet. Its path is in the pictures. Look at them before you commit them.
"""

import asyncio
import os
import shutil
import sys
import tempfile
from pathlib import Path

from playwright.async_api import Browser, Page, async_playwright, expect
from tests.web.browser.conftest import FLAGS, Server, invite

from tarmac.cli import demo

DOCS = Path(__file__).parents[3] / "docs" / "images"
WIDE = {"width": 1440, "height": 900}
PHONE = {"width": 390, "height": 844}


async def opened(browser: Browser, address: str, size: dict[str, int], colours: str, scale: float = 1) -> Page:
    context = await browser.new_context(
        viewport=size,  # type: ignore[arg-type]
        color_scheme=colours,  # type: ignore[arg-type]
        device_scale_factor=scale,
        has_touch=size is PHONE,
    )
    page = await context.new_page()
    await page.goto(address)
    return page


async def take(server: Server, browser: Browser, folder: Path) -> None:
    page = await opened(browser, await server.start(), WIDE, "dark")
    await page.fill("#composer", demo.TASK)
    await page.keyboard.press("Enter")
    card = page.locator(".dock .question")
    while "old-builds" not in await card.inner_text(timeout=60_000):
        await card.get_by_role("button", name="Allow once").click()
        await page.wait_for_timeout(500)
    await expect(page.locator(".screen .xterm-rows")).to_contain_text("OK")
    await page.wait_for_timeout(1500)
    await page.screenshot(path=folder / "web-dark.png")
    for name, size, colours, scale in (("web-light", WIDE, "light", 1.0), ("web-phone", PHONE, "light", 1.5)):
        other = await opened(browser, await invite(page), size, colours, scale)
        if size is PHONE:
            await expect(other.locator(".question").first).to_be_visible()
            await other.wait_for_timeout(1000)
            await other.screenshot(path=folder / "web-phone-list.png")
        await other.goto(page.url)
        await expect(other.locator(".dock .question")).to_be_visible()
        await other.wait_for_timeout(1500)
        await other.screenshot(path=folder / f"{name}.png")
        await other.context.close()
    await card.get_by_role("button", name="Try it").click()
    await page.wait_for_timeout(6000)
    await page.screenshot(path=folder / "web-try.png")
    discard = card.get_by_role("button", name="Discard")
    await (discard if await discard.count() else card.get_by_role("button", name="Allow once")).click()
    if await card.count():
        await card.get_by_role("button", name="Allow once").click()
    await expect(page.locator(".result")).to_be_visible()
    await page.get_by_role("button", name="Replay").click()
    slider = page.get_by_role("slider", name="Place in the replay")
    await slider.focus()
    await page.keyboard.press("End")
    await page.wait_for_timeout(500)
    for _ in range(5):
        await page.keyboard.press(",")
    await page.wait_for_timeout(1500)
    await page.screenshot(path=folder / "web-replay.png")


async def main(workspace: Path, folder: Path) -> None:
    shutil.copytree(Path(demo.__file__).parent / "project", workspace)
    program = shutil.which("chromium") or shutil.which("chromium-headless-shell")
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    with tempfile.TemporaryDirectory() as place:
        os.environ |= {"TARMAC_STATE_DIR": f"{place}/state", "HOME": place}
        Path(place, ".bashrc").write_text(r"PS1='\[\e[32m\]\W\[\e[m\] $ '")
        server = Server(Path(place), (Path(demo.__file__).parent / "script.toml").read_text())
        server.workspace = workspace
        try:
            async with async_playwright() as playwright:
                browser = await playwright.chromium.launch(executable_path=program, args=[*FLAGS, *sandbox])
                await take(server, browser, folder)
                await browser.close()
        finally:
            server.stop()
            shutil.rmtree(workspace)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else DOCS))
