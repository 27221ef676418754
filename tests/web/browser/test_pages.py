"""Every page for everybody: screen readers, narrow screens, light and dark, the keyboard alone."""

from pathlib import Path
from typing import Final, Literal

import pytest
from playwright.async_api import Locator, Page, expect
from tests.web.browser.conftest import Open, Serve, Visitor, finish, picture, run, turn

from tarmac.server.trials import can_try

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
AXE: Final = Path(__file__).parents[3] / "web" / "node_modules" / "axe-core" / "axe.min.js"
EDIT: Final = ("search_and_replace", {"path": "price.py", "search": "tax = 7", "replace": "tax = 19"})
STORY: Final = (
    turn("I look at `price.py`.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```python\nx = 1\n```", run("touch one; false"),
         ("update_todo_list", {"todos": "[x] look\n[-] repair"}), reasoning="Hm.")
    + turn("", EDIT) + turn("", finish("Raised."))
)  # fmt: skip


async def faults(page: Page) -> list[str]:
    """What axe finds. It is injected by the debugger, so the page's policy does not see it."""
    await page.evaluate(AXE.read_text())
    found = await page.evaluate(
        """async () => (await axe.run(document, {resultTypes: ["violations"]})).violations.flatMap((each) =>
            each.nodes.map((node) => `${each.id}: ${node.target} ${node.failureSummary}`))"""
    )
    return [str(each) for each in found]


async def story(serve: Serve, visit: Open, **more: object) -> Visitor:
    """A page with a task that waits for an answer about a file."""
    server = serve(STORY)
    (server.workspace / "price.py").write_text("net = 100\ntax = 7\ntotal = net + tax\n")
    visitor = await visit(await server.start(), **more)
    await visitor.begin("raise the tax")
    await expect(visitor.page.locator(".dock .question", has_text="touch one")).to_be_visible()
    await visitor.allow()
    await expect(visitor.page.locator(".dock .question .diff")).to_be_visible()
    return visitor


LOOKS: Final[dict[str, dict[str, object]]] = {
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark"},
    "phone": {"color_scheme": "dark", "viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True},
}


@pytest.mark.parametrize("look", LOOKS)
async def test_every_page_is_accessible_and_fits(look: str, serve: Serve, visit: Open) -> None:
    """A4: axe finds nothing on any page, in light, dark and on a phone; nothing is wider than the screen."""
    visitor = await story(serve, visit, **LOOKS[look])
    page, base = visitor.page, visitor.page.url.partition("#")[0]
    task = visitor.page.url.partition("#")[2]
    wrong: list[str] = []
    for place in (task, "/", "/usage", "/settings", "/terminals", f"{task}/replay"):
        await page.goto(f"{base}#{place}")
        await expect(page.locator("main")).to_be_visible()
        await page.wait_for_timeout(400)
        wrong += [f"{place}: {each}" for each in await faults(page)]
        wide = await page.evaluate("() => document.documentElement.scrollWidth - innerWidth")
        wrong += [f"{place}: {wide} px too wide"] * (wide > 0)
    assert not wrong, "\n".join(wrong)


async def test_the_keyboard_does_everything(serve: Serve, visit: Open) -> None:
    """A4: from an empty page to an answered question, a terminal and back, without a mouse."""
    server = serve(turn("", run("touch one; echo by-hand")) + turn("Made."))
    visitor = await visit(await server.start())
    page = visitor.page
    await expect(page.locator("#composer")).to_be_visible()
    await page.keyboard.press("n")
    await expect(page.locator("#composer")).to_be_focused()
    await page.keyboard.type("make it")
    await page.keyboard.press("Enter")
    card = page.locator(".dock .question")
    await expect(card).to_be_visible()
    await expect(card.get_by_role("button", name="Allow once")).to_be_enabled()
    for _ in range(6):
        if await card.evaluate("(card) => card === document.activeElement"):
            break
        await page.keyboard.press("F6")
    await page.keyboard.press("y")
    await expect(page.locator(".screen .xterm-rows")).to_contain_text("by-hand")
    for _ in range(8):
        if await page.evaluate("() => document.activeElement.matches('.xterm-helper-textarea')"):
            break
        await page.keyboard.press("F6")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("button", name="Give it back")).to_be_visible()
    await page.keyboard.type("echo typed-$((1+1))")
    await page.keyboard.press("Enter")
    await expect(page.locator(".screen .xterm-rows")).to_contain_text("typed-2")
    await page.keyboard.press("F6")
    assert not await page.evaluate("() => document.activeElement.matches('.xterm-helper-textarea')")
    await page.keyboard.press("Escape")
    await page.locator(".timeline").focus()
    await page.keyboard.press("?")
    await expect(page.get_by_role("dialog")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await page.keyboard.press("/")
    await expect(page.locator("#search")).to_be_focused()
    await page.keyboard.type("make")
    await expect(page.locator("a.entry")).to_have_count(1)
    await page.keyboard.type(" nothing like it")
    await expect(page.locator("a.entry")).to_have_count(0)


NARROW: Final = {"viewport": {"width": 360, "height": 740}, "color_scheme": "dark"}


async def reach(page: Page, target: Locator) -> None:
    """Press Tab until it has the focus, as somebody without a mouse does."""
    await expect(target.first).to_be_visible()
    for _ in range(120):
        if await target.evaluate_all("(all) => all.includes(document.activeElement)"):
            return
        await page.keyboard.press("Tab")
    raise AssertionError(f"Tab does not reach {target}")


async def choose(page: Page, role: Literal["button", "link", "tab", "checkbox"], name: str) -> None:
    await reach(page, page.get_by_role(role, name=name))
    await page.keyboard.press("Space" if role == "checkbox" else "Enter")


async def to_card(page: Page) -> None:
    """F6 goes to the question, which takes letters as answers."""
    card = page.locator(".dock .question")
    await expect(card.get_by_role("button", name="Allow once")).to_be_enabled()
    for _ in range(8):
        if await card.evaluate("(card) => card === document.activeElement"):
            return
        await page.keyboard.press("F6")
    raise AssertionError("F6 does not reach the question")


async def test_a_narrow_page_needs_no_mouse_for_a_task(serve: Serve, visit: Open) -> None:
    """A4: 360 px wide, by keyboard: begin, answer, always, diffs, todos, undo, replay, grants; axe finds nothing."""
    todos = ("update_todo_list", {"todos": "[x] look\n[-] repair"})
    script = (
        turn("I look.", run("mkdir -p build/docs"), todos, reasoning="Hm.")
        + turn("", EDIT)
        + turn("", finish("Raised."))
    )
    server = serve(script)
    price = server.workspace / "price.py"
    price.write_text("net = 100\ntax = 7\ntotal = net + tax\n")
    visitor = await visit(await server.start(), **NARROW)
    page = visitor.page
    wrong = await faults(page)
    await reach(page, page.locator("#composer"))
    await page.keyboard.type("raise the tax")
    await page.keyboard.press("Enter")
    await to_card(page)
    await page.keyboard.press("a")
    await choose(page, "button", "in this workspace")
    await expect(page.locator(".dock .question .diff")).to_be_visible()
    await choose(page, "button", "Side by side")
    await expect(page.get_by_role("button", name="Unified")).to_be_visible()
    wrong += await faults(page)
    await to_card(page)
    await page.keyboard.press("y")
    await expect(page.locator(".result")).to_be_visible()
    assert "tax = 19" in price.read_text()
    await reach(page, page.locator(".task-head .fold-head"))
    await page.keyboard.press("Enter")
    await expect(page.locator(".todos")).to_contain_text("repair")
    await reach(page, page.locator(".fold-head", has_text="Thought"))
    await page.keyboard.press("Enter")
    await expect(page.locator(".timeline")).to_contain_text("Hm.")
    await choose(page, "button", "Undo to here…")
    await choose(page, "button", "Bring back")
    await expect(page.locator(".undo")).to_have_count(0)
    assert "tax = 7" in price.read_text()
    await choose(page, "button", "Replay")
    await expect(page.get_by_role("slider", name="Place in the replay")).to_be_focused()
    await page.keyboard.press("End")
    await expect(page.locator(".film .result")).to_be_visible()
    wrong += await faults(page)
    await choose(page, "link", "Settings")
    await choose(page, "checkbox", "only what differs from its default")
    await reach(page, page.locator(".grants li", has_text="mkdir").get_by_role("button"))
    await page.keyboard.press("Enter")
    await expect(page.locator(".grants li", has_text="mkdir")).to_have_count(0)
    await choose(page, "link", "Usage")
    await choose(page, "button", "Tokens")
    await choose(page, "link", "Tasks")
    await reach(page, page.locator("#search"))
    await page.keyboard.type("raise")
    await reach(page, page.locator("a.entry"))
    await page.keyboard.press("Enter")
    await expect(page.locator(".result")).to_be_visible()
    wide = await page.evaluate("() => document.documentElement.scrollWidth - innerWidth")
    assert (wrong, wide) == ([], 0)


async def test_a_narrow_page_needs_no_mouse_for_terminals(serve: Serve, visit: Open) -> None:
    """A4, T31: 360 px wide, by keyboard: a secret, the keyboard, search, what was found as context, more terminals."""
    command = 'read -rs -p "Password: " word; echo; echo "it has ${#word} letters"'
    visitor = await visit(await serve(turn("", run(command)) + turn("Made.") + turn("I see.")).start(), **NARROW)
    page = visitor.page
    await reach(page, page.locator("#composer"))
    await page.keyboard.type("ask me")
    await page.keyboard.press("Enter")
    await to_card(page)
    await page.keyboard.press("y")
    await reach(page, page.locator(".secret input"))
    wrong = await faults(page)
    await page.keyboard.type("hunter2")
    await page.keyboard.press("Enter")
    await expect(page.locator(".said", has_text="Made.")).to_be_visible()
    await reach(page, page.locator(".parts").get_by_role("button", name="Terminals"))
    await page.keyboard.press("Enter")
    screen = page.locator(".screen .xterm-rows")
    await expect(screen).to_contain_text("it has 7 letters")
    await reach(page, page.locator(".xterm-helper-textarea"))
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("button", name="Give it back")).to_be_visible()
    await page.keyboard.type("echo typed-$((1+1))")
    await page.keyboard.press("Enter")
    await expect(screen).to_contain_text("typed-2")
    wrong += await faults(page)
    await page.keyboard.press("F6")
    await choose(page, "button", "Give it back")
    await choose(page, "button", "Search")
    await expect(page.get_by_role("searchbox", name="Search in this terminal")).to_be_focused()
    await page.keyboard.type("typed-2")
    await expect(page.locator(".terminal-search")).to_contain_text("1 of 1")
    await choose(page, "button", "Ask about it")
    await reach(page, page.locator(".parts").get_by_role("button", name="Timeline"))
    await page.keyboard.press("Enter")
    await expect(page.locator(".chip")).to_contain_text("typed-2")
    await reach(page, page.locator("#composer"))
    await page.keyboard.type("what is this?")
    await page.keyboard.press("Enter")
    await expect(page.locator(".user").last).to_contain_text("typed-2")
    await reach(page, page.locator(".parts").get_by_role("button", name="Terminals"))
    await page.keyboard.press("Enter")
    await choose(page, "button", "New terminal")
    await expect(page.get_by_role("tab")).to_have_count(2)
    await reach(page, page.get_by_role("tab", selected=True))
    await page.keyboard.press("ArrowLeft")
    await expect(screen).to_contain_text("typed-2")
    wrong += await faults(page)
    assert wrong == []


async def test_a_narrow_page_needs_no_mouse_to_try_a_command(serve: Serve, visit: Open) -> None:
    """A4, P9: 360 px wide, by keyboard: try it, discard it, try it again, keep it."""
    if not can_try():
        pytest.skip("commands can't be tried here: bubblewrap 0.11 with overlays is missing")
    server = serve(turn("", run("echo hello > made")) + turn("It is made."))
    visitor = await visit(await server.start(), **NARROW)
    page = visitor.page
    await reach(page, page.locator("#composer"))
    await page.keyboard.type("make it")
    await page.keyboard.press("Enter")
    await to_card(page)
    await page.keyboard.press("t")
    await expect(page.locator(".tried")).to_contain_text("hello", timeout=60_000)
    wrong = await faults(page)
    wide = await page.evaluate("() => document.documentElement.scrollWidth - innerWidth")
    await choose(page, "button", "Discard")
    await expect(page.locator(".tried")).to_have_count(0)
    assert not (server.workspace / "made").exists()
    await choose(page, "button", "Try it")
    await choose(page, "button", "Keep these changes")
    await expect(page.locator(".said").last).to_contain_text("It is made.")
    assert ((server.workspace / "made").read_text(), wrong, wide) == ("hello\n", [], 0)


async def test_a_narrow_page_needs_no_mouse_for_pictures(serve: Serve, visit: Open, tmp_path: Path) -> None:
    """A4: 360 px wide, by keyboard: attach a picture, take it away, attach it again, send it, look at it."""
    (tmp_path / "shot.png").write_bytes(picture(900, 300))
    visitor = await visit(await serve(turn("Orange.")).start(), **NARROW)
    page = visitor.page

    async def attach() -> None:
        async with page.expect_file_chooser() as asked:
            await choose(page, "button", "Attach a picture")
        await (await asked.value).set_files(tmp_path / "shot.png")
        await expect(page.locator(".attached img")).to_be_visible()

    await attach()
    await choose(page, "button", "Remove this picture")
    await expect(page.locator(".attached img")).to_have_count(0)
    await attach()
    wrong = await faults(page)
    await reach(page, page.locator("#composer"))
    await page.keyboard.type("what is this?")
    await page.keyboard.press("Enter")
    shown = page.locator(".user .picture")
    await expect(shown.locator("img")).to_be_visible()
    await expect(page.locator(".said")).to_have_text("Orange.")
    await reach(page, shown)
    small = await shown.bounding_box()
    await page.keyboard.press("Enter")
    await expect(shown).to_have_attribute("aria-expanded", "true")
    large = await shown.bounding_box()
    assert small and large and small["width"] < large["width"] <= 360
    wrong += await faults(page)
    await page.keyboard.press("Enter")
    await expect(shown).to_have_attribute("aria-expanded", "false")
    assert (wrong, await page.evaluate("() => document.documentElement.scrollWidth - innerWidth")) == ([], 0)


@pytest.mark.parametrize("encrypted", [True, False])
async def test_a_narrow_page_needs_no_mouse_to_copy(encrypted: bool, serve: Serve, visit: Open) -> None:
    """A4, T31: 360 px wide, by keyboard: scroll, select lines, copy; also where the page is not encrypted (--lan)."""
    command = "touch made; seq 300; echo the-needle; echo 'two  words'; seq 301 330"
    answer = "Done:\n\n```\nmake all\n```"
    server = serve(turn("", run(command)) + turn(answer))
    visitor = await visit(await server.start(), **NARROW, permissions=["clipboard-read", "clipboard-write"])
    page = visitor.page
    if not encrypted:  # what a browser has on http://192.168.…
        await expect(page.locator(".level")).to_be_visible()  # the address was used, and can be loaded again
        await page.context.add_init_script(
            "Object.defineProperty(Navigator.prototype, 'clipboard', {value: undefined})"
        )
        await page.reload()
    await reach(page, page.locator("#composer"))
    await page.keyboard.type("make it")
    await page.keyboard.press("Enter")
    await to_card(page)
    await page.keyboard.press("y")
    await expect(page.locator(".said code")).to_have_text("make all")

    async def pasted() -> str:
        await reach(page, page.locator("#composer"))
        await page.keyboard.press("Control+a")
        await page.keyboard.press("Control+v")
        return await page.locator("#composer").input_value()

    await choose(page, "button", "Copy")
    await expect(page.get_by_role("button", name="Copied")).to_be_focused()
    assert (await pasted()).strip() == "make all"
    await reach(page, page.locator(".parts").get_by_role("button", name="Terminals"))
    await page.keyboard.press("Enter")
    screen = page.locator(".screen .xterm-rows")
    await expect(screen).to_contain_text("330")
    terminal = page.locator(".xterm-helper-textarea")
    await reach(page, terminal)
    await page.keyboard.press("Home")
    await expect(screen).to_contain_text("touch made")
    await page.keyboard.press("End")
    await expect(screen).to_contain_text("330")
    search = page.get_by_role("searchbox", name="Search in this terminal")
    await page.keyboard.press("Control+Shift+f")
    await expect(search).to_be_focused()
    await page.keyboard.type("the-needle")
    await expect(page.locator(".terminal-search")).to_contain_text("of ")
    await page.keyboard.press("Escape")
    await expect(terminal).to_be_focused()
    await page.keyboard.press("Control+Shift+f")
    await expect(search).to_be_focused()
    await page.keyboard.press("Enter")
    await reach(page, terminal)
    await page.keyboard.press("Shift+ArrowDown")
    await page.keyboard.press("Shift+ArrowDown")
    await expect(page.locator(".terminal-bar")).to_contain_text("2 lines selected")
    wrong = await faults(page)
    await page.keyboard.press("Control+c")
    await reach(page, page.locator(".parts").get_by_role("button", name="Timeline"))
    await page.keyboard.press("Enter")
    assert (await pasted()).split("\n")[:2] == ["the-needle", "two  words"]
    assert wrong == []


async def test_a_page_without_a_model_says_how_to_choose_one(serve: Serve, visit: Open) -> None:
    """A4: before somebody has written a task that nobody can do."""
    visitor = await visit(await serve("").start())
    await expect(visitor.page.locator(".home .notice")).to_contain_text("No model is chosen yet")
    await visitor.begin("do it")
    await expect(visitor.page.locator(".trouble")).to_contain_text("No model is chosen.")
    await expect(visitor.page.locator("#composer")).to_have_value("do it")


async def test_settings_tell_value_default_and_origin(serve: Serve, visit: Open) -> None:
    """A4: every setting has its value, its default and its origin; MCP servers are listed; the look changes."""
    server = serve(turn("Hello."))
    (server.workspace / ".mcp.json").write_text('{"mcpServers": {"db": {"command": "db-mcp", "args": ["--read"]}}}')
    visitor = await visit(await server.start())
    page = visitor.page
    await page.get_by_role("link", name="Settings").click()
    model = page.locator(".settings tr", has=page.locator("code", has_text="model")).first
    await expect(model).to_contain_text("scripted/")
    await expect(model).to_contain_text("TARMAC_MODEL")
    await expect(page.locator(".grants li", has_text="db")).to_be_visible()
    await page.get_by_label("only what differs from its default").check()
    assert await page.locator(".settings tbody tr").count() < 20
    for look in ("Dark", "Light"):
        await page.get_by_role("button", name=look).click()
        assert await page.evaluate("() => getComputedStyle(document.documentElement).colorScheme") == look.lower()


async def test_usage_is_plotted(serve: Serve, visit: Open) -> None:
    """A4: what was used is a plot over days, and a table of models."""
    script = "price = { input = 3.0, output = 15.0 }\n" + turn("Hello.").replace(
        "[[turn]]", "[[turn]]\nusage = { input = 2000, output = 100 }"
    )
    visitor = await visit(await serve(script).start())
    page = visitor.page
    await visitor.begin("hello")
    await expect(page.locator(".said", has_text="Hello.")).to_be_visible()
    await page.get_by_role("link", name="Usage").click()
    await page.get_by_role("button", name="Tokens").click()
    await expect(page.locator(".total strong")).to_have_text("2.1k")
    assert await page.locator(".plot .bar").count() == 30
    await expect(page.locator(".page table")).to_contain_text("scripted/")


async def test_an_old_address_says_what_to_do(serve: Serve, visit: Open) -> None:
    """A4: a token works once; a second browser with the same address is told how to get in."""
    address = await serve(turn("Hello.")).start()
    await visit(address)
    second = await visit(address)
    await expect(second.page.get_by_role("heading")).to_have_text("This address was used before, or is too old.")
    second.errors.clear()  # the browser reports the 403
