"""Live terminals in the page: the keyboard, its size, secrets, search, selection."""

import asyncio
import re
from pathlib import Path

import pytest
from playwright.async_api import Page, WebSocketRoute, expect
from tests.web.browser.conftest import Open, Serve, Visitor, finish, invite, run, turn

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
MAKES = turn("", run("touch made; echo the-agent-$((40+2))")) + turn("", finish("Made."))


async def shown(visitor: Visitor, text: str) -> None:
    """The terminal in view has drawn this."""
    await expect(visitor.page.locator(".screen .xterm-rows")).to_contain_text(text)


async def take(visitor: Visitor) -> None:
    await visitor.page.get_by_role("button", name="Take the keyboard").click()
    await expect(visitor.page.get_by_role("button", name="Give it back")).to_be_visible()


async def with_terminal(serve: Serve, visit: Open, script: str = MAKES) -> tuple[Visitor, Path]:
    """A page whose task has run one command in its terminal."""
    server = serve(script)
    visitor = await visit(await server.start())
    await visitor.begin("make it")
    await expect(visitor.page.locator(".dock .question")).to_be_visible()
    await visitor.allow()
    return visitor, server.workspace


async def test_the_agents_own_shell_is_live_and_a_person_types_into_it(serve: Serve, visit: Open) -> None:
    """T26: the page draws the agent's terminal; the person takes the keyboard, types, and gives it back."""
    visitor, workspace = await with_terminal(serve, visit)
    page = visitor.page
    await shown(visitor, "the-agent-42")
    await page.locator(".xterm-helper-textarea").press("x")  # without the keyboard nothing is typed
    await take(visitor)
    await page.keyboard.type("echo the-person-$((6*7)) > typed; cat typed")
    await page.keyboard.press("Enter")
    await shown(visitor, "the-person-42")
    assert (workspace / "typed").read_text() == "the-person-42\n"
    await expect(page.locator(".terminal-bar")).to_contain_text("You have the keyboard")
    await page.get_by_role("button", name="Give it back").click()
    await expect(page.get_by_role("button", name="Take the keyboard")).to_be_visible()
    await page.locator(".xterm-helper-textarea").press("Enter")  # Enter takes it, and is not typed
    await expect(page.get_by_role("button", name="Give it back")).to_be_visible()


async def test_colours_of_programs_are_drawn_under_the_policy(serve: Serve, visit: Open) -> None:
    """T26: colours and cell sizes are right, under the strict content security policy."""
    command = r"touch made; printf '\033[31mred\033[0m \033[38;2;10;200;40mgreen\033[0m\n'"
    script = turn("", run(command)) + turn("", finish("Made."))
    visitor, _ = await with_terminal(serve, visit, script)
    await shown(visitor, "red green")
    colours = await visitor.page.evaluate(
        """() => [...document.querySelectorAll(".xterm-rows span")]
            .filter((span) => span.textContent === "red" || span.textContent === "green")
            .map((span) => getComputedStyle(span).color)"""
    )
    assert len(set(colours)) == 2
    assert "rgb(0, 0, 0)" not in colours


async def grid(page: Page) -> tuple[int, int]:
    """Rows and columns that are drawn."""
    rows = await page.locator(".xterm-rows > div").count()
    wide = await page.evaluate(
        """() => {
            const screen = document.querySelector(".xterm-screen").getBoundingClientRect().width;
            const canvas = document.createElement("canvas").getContext("2d");
            const style = getComputedStyle(document.querySelector(".xterm-rows"));
            canvas.font = `${style.fontSize} ${style.fontFamily}`;
            return screen / canvas.measureText("W".repeat(100)).width * 100;
        }"""
    )
    return rows, round(wide)


async def test_the_size_follows_the_holder_and_others_fit_it_in(serve: Serve, visit: Open) -> None:
    """T26: who has the keyboard decides the size. Another page shows the same rows and columns, smaller if need be."""
    visitor, _ = await with_terminal(serve, visit)
    other = await visit(await invite(visitor.page), viewport={"width": 1300, "height": 700})
    await other.page.locator("a.entry").first.click()
    await shown(other, "the-agent-42")
    await take(visitor)
    await visitor.page.keyboard.type("stty size")
    await visitor.page.keyboard.press("Enter")
    found = re.compile(r"\n(\d+) (\d+)\s")
    await expect(visitor.page.locator(".screen .xterm-rows")).to_contain_text(re.compile(r"\d+ \d+"))
    size = found.search("\n".join(await visitor.page.locator(".xterm-rows > div").all_inner_texts()))
    assert size
    rows, columns = int(size[1]), int(size[2])
    assert await grid(visitor.page) == (rows, columns)
    await shown(other, f"{rows} {columns}")
    assert await grid(other.page) == (rows, columns)
    # the other one takes the keyboard: the first one is told, and its keys go nowhere
    await take(other)
    await expect(visitor.page.get_by_role("button", name="Take the keyboard")).to_be_visible()
    await expect(visitor.page.locator(".terminal-bar")).to_contain_text("Somebody else has the keyboard")
    await visitor.page.locator(".xterm-helper-textarea").press("Z")
    await other.page.keyboard.type("echo mine-$((1+1))")
    await other.page.keyboard.press("Enter")
    await shown(visitor, "mine-2")
    assert "Z" not in await visitor.screen_text()


async def test_a_secret_goes_to_the_terminal_and_nowhere_else(serve: Serve, visit: Open, own_state: Path) -> None:
    """A4: a masked field takes a secret. Neither the model nor the log ever has it."""
    command = 'read -rs -p "Password: " word; echo; echo "it has ${#word} letters" > length; cat length'
    visitor, workspace = await with_terminal(serve, visit, turn("", run(command)) + turn("", finish("Done.")))
    page = visitor.page
    field = page.locator(".secret input[type=password]")
    await expect(page.locator(".secret")).to_contain_text("Password:")
    await field.fill("hunter2-secret")
    await field.press("Enter")
    await expect(page.locator(".secret")).to_have_count(0)
    await shown(visitor, "it has 14 letters")
    assert (workspace / "length").read_text() == "it has 14 letters\n"
    await expect(page.locator(".result")).to_be_visible()
    kept = [file for file in own_state.rglob("*") if file.is_file() and b"hunter2-secret" in file.read_bytes()]
    assert kept == []
    assert "hunter2-secret" not in await page.content()


async def test_text_is_searched_selected_and_asked_about(serve: Serve, visit: Open) -> None:
    """T31: what the person selects in a terminal can be told to the agent; search finds what scrolled away."""
    script = (
        turn("", run("touch made; seq 1 400; echo the-needle-is-$((40+2)); seq 500 700"))
        + turn("Made.")
        + turn("I see.")
    )
    visitor, _ = await with_terminal(serve, visit, script)
    page = visitor.page
    await shown(visitor, "700")
    assert "the-needle" not in await visitor.screen_text()
    await page.get_by_role("button", name="Search", exact=True).click()
    await page.get_by_role("searchbox", name="Search in this terminal").fill("needle-is-42")
    await expect(page.locator(".terminal-search")).to_contain_text("1 of 1")
    await shown(visitor, "the-needle-is-42")
    found = await page.locator(".xterm-rows > div", has_text="the-needle-is-42").bounding_box()
    assert found
    await page.mouse.dblclick(found["x"] + 40, found["y"] + 6)
    await page.get_by_role("button", name="Ask about it").click()
    await expect(page.locator(".chip")).to_contain_text("the-needle-is-42")
    await page.fill("#composer", "what is this?")
    await page.keyboard.press("Enter")
    await expect(page.locator(".user").last).to_contain_text("the-needle-is-42")


async def test_a_person_opens_a_terminal_of_their_own(serve: Serve, visit: Open) -> None:
    """A4: terminals are tabs; the person opens more, and moves between them with the arrow keys."""
    visitor, _ = await with_terminal(serve, visit)
    page = visitor.page
    await shown(visitor, "the-agent-42")
    await page.get_by_role("button", name="New terminal").click()
    await expect(page.get_by_role("tab")).to_have_count(2)
    await take(visitor)
    await page.keyboard.type("echo second-$((1+1))")
    await page.keyboard.press("Enter")
    await shown(visitor, "second-2")
    await page.get_by_role("tab").nth(1).focus()
    await page.keyboard.press("ArrowLeft")
    await shown(visitor, "the-agent-42")
    await page.keyboard.press("ArrowRight")
    await shown(visitor, "second-2")


async def test_a_flood_is_drawn_to_its_end(serve: Serve, visit: Open) -> None:
    """T26: acknowledgements keep a fast program from drowning the page, and nothing of the end is lost."""
    script = turn("", run("touch made; yes 'a line of a flood' | head -n 400000; echo the-end-$((1+1))")) + turn(
        "Made."
    )
    visitor, _ = await with_terminal(serve, visit, script)
    await expect(visitor.page.locator(".screen .xterm-rows")).to_contain_text("the-end-2", timeout=60_000)


async def test_keys_that_a_cut_connection_lost_are_said_and_never_sent_later(serve: Serve, visit: Open) -> None:
    """T26: who types while the connection is cut is told. Nothing of it reaches the line that is there afterwards."""
    server = serve(MAKES)
    visitor = await visit(await server.start())
    page = visitor.page
    sockets: list[WebSocketRoute] = []

    async def through(route: WebSocketRoute) -> None:
        sockets.append(route)
        route.connect_to_server()

    await expect(page.locator(".level")).to_be_visible()  # the address was used, and can be loaded again
    await page.route_web_socket("**/api/socket", through)
    await page.reload()
    await visitor.begin("make it")
    await expect(page.locator(".dock .question")).to_be_visible()
    await visitor.allow()
    await shown(visitor, "the-agent-42")
    await take(visitor)
    await page.keyboard.type("echo one-")
    await shown(visitor, "echo one-")
    await page.unroute_all()
    cut = asyncio.Event()

    async def nowhere(route: WebSocketRoute) -> None:
        if cut.is_set():
            route.connect_to_server()
        else:
            await route.close()

    await page.route_web_socket("**/api/socket", nowhere)
    await sockets[-1].close()
    lost = page.locator(".keyboard-lost")
    await expect(lost).to_contain_text("The connection was cut")
    assert "last keys" not in await lost.inner_text()
    await page.keyboard.type("$((20+3))")
    await page.keyboard.press("Enter")
    await expect(lost).to_contain_text("Your last keys may be lost")
    cut.set()
    await expect(page.locator(".offline")).to_have_count(0)
    await page.keyboard.press("Enter")  # one who did not look up goes on: it is not taken for "take the keyboard"
    await expect(page.get_by_role("button", name="Take the keyboard")).to_be_visible()
    await take(visitor)
    await expect(lost).to_be_visible()
    await page.keyboard.type("two")
    await expect(lost).to_have_count(0)
    await page.keyboard.press("Enter")
    await shown(visitor, "one-two")
    assert "23" not in await visitor.screen_text()
