"""A task in the page: what is said, asked, done and shown."""

import base64
import secrets
import subprocess
from pathlib import Path

import pytest
from playwright.async_api import expect
from tests.web.browser.conftest import Open, Serve, finish, run, turn

from tarmac.server.trials import can_try

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def runs(command: str) -> bool:
    return subprocess.run(["pgrep", "-fx", command], capture_output=True, check=False).returncode == 0


async def test_a_task_is_begun_asks_and_is_done(serve: Serve, visit: Open) -> None:
    """A4: the page shows the conversation, asks before a command runs, and shows what it printed."""
    script = turn(
        "I *look* at it.", run("touch here; echo from-the-$((40+2)); false"), reasoning="What is **there**?"
    ) + turn("", finish("It is `42`."))
    visitor = await visit(await serve(script).start())
    page = visitor.page
    await visitor.begin("what is it?")
    await expect(page.locator(".dock .question")).to_contain_text("touch here; echo from-the-$((40+2)); false")
    await expect(page.locator(".user")).to_have_text("what is it?")
    await expect(page.locator(".said em")).to_have_text("look")
    await expect(page).to_have_title("(1) what is it? · Tarmac")
    await visitor.allow()
    tool = page.locator(".tool", has_text="touch here")
    await expect(tool).to_contain_text("Ran")
    await expect(tool.locator(".tool-facts")).to_contain_text("exit 1")
    await expect(tool.locator(".output")).to_contain_text("from-the-42")
    await expect(page.locator(".result .markdown code")).to_have_text("42")
    await expect(page).to_have_title("what is it? · Tarmac")
    thought = page.get_by_role("button", name="Thought")
    await expect(thought).to_have_attribute("aria-expanded", "false")
    await thought.click()
    await expect(page.locator(".fold-body strong")).to_have_text("there")
    assert "#t=" not in page.url


async def test_a_command_is_tried_on_a_copy_and_its_changes_are_kept(serve: Serve, visit: Open) -> None:
    """P9, A4: the card shows what a command does to a copy; nothing is changed before the person keeps it."""
    if not can_try():
        pytest.skip("commands can't be tried here: bubblewrap 0.11 with overlays is missing")
    visitor = await visit(await serve(turn("", run("echo hello > made")) + turn("It is made.")).start())
    page = visitor.page
    await visitor.begin("make it")
    await page.get_by_role("button", name="Try it").click()
    tried = page.locator(".tried")
    await expect(tried).to_contain_text("exit code 0; 1 file changed", timeout=60_000)
    await expect(tried).to_contain_text("hello")
    await tried.get_by_role("button", name="Discard").click()
    await expect(tried).to_have_count(0)
    await page.get_by_role("button", name="Try it").click()
    await page.get_by_role("button", name="Keep these changes").click(timeout=60_000)
    await expect(page.locator(".said").last).to_contain_text("It is made.")
    await expect(page.locator(".dock .question")).to_have_count(0)
    assert await visitor.violations() == []


async def test_a_running_command_is_sent_to_the_background_or_stopped(serve: Serve, visit: Open) -> None:
    """S5, A4: the ask `command_output` is two buttons at the command, and both do what they say."""
    left, stopped = (f"sleep 6{secrets.randbelow(10**9):09}" for _ in range(2))
    script = turn("", run(f"touch a; {left}")) + turn("", run(f"touch b; {stopped}")) + turn("I go on.")
    visitor = await visit(await serve(script).start())
    page = visitor.page
    await visitor.begin("wait")
    for command, button in ((left, "Continue in the background"), (stopped, "Stop the command")):
        await expect(page.locator(".dock .question")).to_contain_text(command)
        await visitor.allow()
        await page.locator(".tool", has_text=command).get_by_role("button", name=button).click()
    await expect(page.locator(".said").last).to_contain_text("I go on.")
    await expect(page.locator(".running-command")).to_have_count(0)
    assert [each for each in (left, stopped) if runs(each)] == [left]


async def test_what_a_model_writes_is_never_markup(serve: Serve, visit: Open) -> None:
    """A4: HTML, scripts and hostile links of a model are text."""
    text = "<img src=x onerror=alert(1)> [click](javascript:alert(1)) <script>alert(2)</script> **bold <b>x</b>**"
    visitor = await visit(await serve(turn(text)).start())
    await visitor.begin("hello")
    said = visitor.page.locator(".said").first
    await expect(said).to_contain_text("<img src=x onerror=alert(1)> click <script>alert(2)</script>")
    assert await said.locator("img, script, b, a").count() == 0


async def test_a_question_takes_no_answer_in_its_first_300_ms(serve: Serve, visit: Open) -> None:
    """P6: the focus is on the card and never on Allow; a click or key of the first 300 ms allows nothing."""
    visitor = await visit(await serve(turn("", run("touch made"))).start())
    page = visitor.page
    await page.evaluate("""() => {
        window.tried = 0;
        new MutationObserver(() => {
            const card = document.querySelector(".dock .question");
            if (!card || window.tried) return;
            window.tried = 1;
            for (const button of card.querySelectorAll("button")) button.click();
            card.dispatchEvent(new KeyboardEvent("keydown", {key: "y", bubbles: true}));
        }).observe(document.body, {childList: true, subtree: true});
    }""")
    await visitor.begin("make it")
    await expect(page.locator(".dock .question")).to_be_visible()
    await page.wait_for_function("() => window.tried === 1")
    allow = page.locator(".dock .question").get_by_role("button", name="Allow once")
    await expect(allow).to_be_enabled()
    assert await page.locator(".dock .question").is_visible(), "an early answer was taken"
    assert await page.evaluate("() => !document.activeElement.matches('.question button')")
    await page.locator(".dock .question").focus()
    await page.keyboard.press("y")
    await expect(page.locator(".tool.done", has_text="touch made")).to_be_visible()


async def test_a_question_is_answered_from_the_list(serve: Serve, visit: Open) -> None:
    """A4: what waits for the person is on every page, and is answered there."""
    server = serve(turn("", run("touch made-from-the-list")) + turn("", finish("Made.")))
    visitor = await visit(await server.start())
    page = visitor.page
    await visitor.begin("make it")
    await expect(page.locator(".dock .question")).to_be_visible()
    await page.goto(page.url.partition("#")[0] + "#/usage")
    card = page.locator(".tasks .question")
    await expect(card).to_contain_text("touch made-from-the-list")
    await card.get_by_role("button", name="Allow once").click()
    await expect(page.locator(".tasks .entry .dot.done")).to_be_visible()
    assert (server.workspace / "made-from-the-list").exists()
    await page.get_by_role("link", name="New").click()
    await expect(page.locator("#composer")).to_have_value("")  # what was sent is no draft


async def test_always_shows_what_it_stores_and_settings_take_it_back(serve: Serve, visit: Open) -> None:
    """A4: the card shows what "always" would store, and settings list it and take it back."""
    visitor = await visit(await serve(turn("", run("mkdir -p build/docs")) + turn("", finish("Made."))).start())
    page = visitor.page
    await visitor.begin("make it")
    await page.locator(".dock .question").get_by_role("button", name="Always…").click()
    offer = page.locator(".offer").first
    stored = await offer.locator("code").inner_text()
    assert stored.startswith("mkdir")
    await offer.get_by_role("button", name="in this workspace").click()
    await expect(page.locator(".result")).to_be_visible()
    await page.get_by_role("link", name="Settings").click()
    grant = page.locator(".grants li", has_text="mkdir")
    await expect(grant).to_contain_text("workspace")
    await grant.get_by_role("button").click()
    await expect(page.locator(".grants li", has_text="mkdir")).to_have_count(0)
    await page.reload()
    await expect(page.get_by_text("Nothing is allowed for good")).to_be_visible()


async def test_a_command_is_edited_or_refused_with_words(serve: Serve, visit: Open) -> None:
    """A4: the person changes a command, or says what to do instead."""
    script = turn("", run("touch one")) + turn("", run("touch two")) + turn("", finish("Enough."))
    server = serve(script)
    visitor = await visit(await server.start())
    page = visitor.page
    await visitor.begin("make files")
    card = page.locator(".dock .question")
    await card.get_by_role("button", name="Edit").click()
    await card.locator("textarea").fill("touch uno")
    await card.get_by_role("button", name="Run this instead").click()
    again = page.locator(".dock .question", has_text="touch uno")
    second = page.locator(".dock .question", has_text="touch two")
    await expect(again.or_(second)).to_be_visible()
    if await again.count():  # the new command is judged like any other
        await again.get_by_role("button", name="Allow once").click()
    await expect(second).to_be_visible()
    await second.get_by_role("textbox").fill("no more files, please")
    await second.get_by_role("button", name="Send").click()
    await expect(page.locator(".result")).to_be_visible()
    await expect(page.locator(".timeline")).to_contain_text("no more files, please")
    await expect(page.locator(".tool-title", has_text="touch two")).to_have_text("Denied: running touch two")
    made = {each.name for each in server.workspace.iterdir()}
    assert made == {"uno"}


async def test_an_edit_is_shown_as_a_diff_before_and_after(serve: Serve, visit: Open) -> None:
    """A4: a change of a file is a diff, unified or side by side."""
    edit = ("search_and_replace", {"path": "price.py", "search": "tax = 7", "replace": "tax = 19"})
    server = serve(turn("", edit) + turn("", finish("Raised.")))
    (server.workspace / "price.py").write_text("net = 100\ntax = 7\ntotal = net + tax\n")
    visitor = await visit(await server.start())
    page = visitor.page
    await visitor.begin("raise the tax")
    card = page.locator(".dock .question")
    await expect(card.locator("tr.added")).to_contain_text("tax = 19")
    await expect(card.locator("tr.removed mark")).to_have_text("7")
    await card.get_by_role("button", name="Side by side").click()
    await expect(card.locator(".sides tr:has(td.removed) td.added.line")).to_have_text("tax = 19")
    await visitor.allow()
    done = page.locator(".tool", has_text="Edited price.py")
    await expect(done.locator(".diff td.added.line")).to_have_text("tax = 19")
    assert "tax = 19" in (server.workspace / "price.py").read_text()


async def test_a_change_is_undone_from_its_checkpoint(serve: Serve, visit: Open) -> None:
    """S14: the page shows what an undo would change, and brings the file back."""
    edit = ("search_and_replace", {"path": "price.py", "search": "tax = 7", "replace": "tax = 19"})
    server = serve(turn("", edit) + turn("Raised."))
    (server.workspace / "price.py").write_text("net = 100\ntax = 7\n")
    visitor = await visit(await server.start())
    page = visitor.page
    await visitor.begin("raise the tax")
    await visitor.allow()
    await expect(page.locator(".said", has_text="Raised.")).to_be_visible()
    assert "tax = 19" in (server.workspace / "price.py").read_text()
    await page.get_by_role("button", name="Undo to here…").first.click()
    await expect(page.locator(".undo .diff")).to_contain_text("tax = 7")
    await page.get_by_role("button", name="Bring back this file").click()
    await expect(page.locator(".undo")).to_have_count(0)
    assert (server.workspace / "price.py").read_text() == "net = 100\ntax = 7\n"


async def test_messages_are_queued_while_a_task_works_and_can_be_taken_back(serve: Serve, visit: Open) -> None:
    """S5: what is said meanwhile is shown as queued, delivered later, or taken back."""
    script = turn("Slowly, ", pace=0.4) + turn("Heard.")
    visitor = await visit(await serve(turn("One two three four five six seven eight nine.", pace=0.5) + script).start())
    page = visitor.page
    await visitor.begin("begin")
    await expect(page.get_by_role("button", name="Stop")).to_be_visible()
    for words in ("first thing", "second thing"):
        await page.fill("#composer", words)
        await page.get_by_role("button", name="Queue").click()
        await expect(page.locator(".queue")).to_contain_text(words)
    await page.get_by_role("button", name="Take back: first thing").click()
    await expect(page.locator(".queue li")).to_have_count(1)
    await expect(page.locator(".user.withdrawn")).to_contain_text("first thing")
    await expect(page.locator(".queue")).to_have_count(0)
    await expect(page.locator(".user:not(.withdrawn)", has_text="second thing")).to_be_visible()


async def test_commands_and_files_complete_as_in_the_terminal(serve: Serve, visit: Open) -> None:
    """A4: `/` completes commands and `@` files; the keyboard chooses."""
    server = serve(turn("Yes."))
    (server.workspace / "prices").mkdir()
    (server.workspace / "prices" / "table.csv").write_text("1\n")
    (server.workspace / ".tarmac" / "commands").mkdir(parents=True)
    (server.workspace / ".tarmac" / "commands" / "audit.md").write_text("Look for $ARGUMENTS in the books.\n")
    visitor = await visit(await server.start())
    page = visitor.page
    await page.locator("#composer").press_sequentially("/au")
    await expect(page.locator(".offers li .mono")).to_have_text(["/auto", "/audit"])
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Enter")
    await expect(page.locator("#composer")).to_have_value("/audit ")
    await page.locator("#composer").press_sequentially("errors of @tab")
    await expect(page.locator(".offers li")).to_contain_text("@prices/table.csv")
    await page.keyboard.press("Tab")
    await expect(page.locator("#composer")).to_have_value("/audit errors of @prices/table.csv ")
    await page.keyboard.press("Enter")
    await expect(page.locator(".user")).to_contain_text("Look for errors of @prices/table.csv")


async def test_a_picture_is_attached_and_shown(serve: Serve, visit: Open, tmp_path: Path) -> None:
    """A4: pictures of the person are in the timeline, also after a reload."""
    (tmp_path / "shot.png").write_bytes(PIXEL)
    visitor = await visit(await serve(turn("A red dot.")).start())
    page = visitor.page
    await page.set_input_files("input[type=file]", tmp_path / "shot.png")
    await expect(page.locator(".attached img")).to_be_visible()
    await visitor.begin("what is this?")
    await expect(page.locator(".user .picture img")).to_be_visible()
    await page.reload()
    await expect(page.locator(".user .picture img")).to_be_visible()


async def test_a_model_asks_and_a_choice_answers(serve: Serve, visit: Open) -> None:
    """A4: a question of the model is answered by a choice, or by the person's own words."""
    asks = ("ask_followup_question", {"question": "Which **colour**?", "follow_up": ["red", "green"]})
    visitor = await visit(await serve(turn("", asks) + turn("", finish("So be it."))).start())
    page = visitor.page
    await visitor.begin("paint it")
    card = page.locator(".dock .question")
    await expect(card.locator("strong")).to_have_text("colour")
    await expect(card.get_by_role("button", name="green")).to_be_enabled()
    await card.focus()
    await page.keyboard.press("2")
    await expect(page.locator(".result")).to_be_visible()
    await expect(page.locator(".timeline")).to_contain_text("green")


async def test_subtasks_are_a_tree_and_ask_wherever_one_looks(serve: Serve, visit: Open) -> None:
    """A4, S15: subtasks stand below their parents while they run and later; a question is answered on either page."""
    # Every task plays the script from its beginning; the fourth one is too deep to have a subtask.
    script = (
        turn("I share it.", ("new_task", {"message": "Count the apples", "mode": "code"}))
        + turn("", run("touch apples"))
        + turn("", finish("There are 3."))
    )
    server = serve(script)
    visitor = await visit(await server.start())
    page = visitor.page
    card = page.locator(".dock .question")
    await visitor.begin("count the fruit")
    await expect(card).to_contain_text("Allow this?")
    below = page.locator(".tasks .below a.entry", has_text="Count the apples")

    async def allow() -> None:
        known = await card.element_handle()
        await visitor.allow()
        await page.wait_for_function("(card) => !card.isConnected", arg=known)

    for depth in range(3):
        await allow()
        await expect(below).to_have_count(depth + 1)
    await expect(card).to_contain_text("touch apples")
    await expect(page.locator(".tasks .below .below .below a.entry")).to_have_count(1)
    await page.get_by_role("button", name="1 subtask").click()
    await expect(page.locator(".subtasks li li li")).to_contain_text("Count the apples")
    await below.last.click()
    await expect(page.locator(".crumb")).to_contain_text("Subtask of Count the apples")
    await expect(card).to_contain_text("touch apples")
    await visitor.allow()
    await expect(page.locator(".result")).to_contain_text("There are 3.")
    assert (server.workspace / "apples").exists()
    await page.locator(".tasks a.entry", has_text="count the fruit").click()
    for _ in range(3):
        await expect(card).to_contain_text("touch apples")
        await allow()
    await expect(page.locator(".result")).to_contain_text("There are 3.")
    await expect(page.locator(".subtask")).to_contain_text("There are 3.")
    await expect(below).to_have_count(3)


async def test_todos_and_cost_are_in_the_head(serve: Serve, visit: Open) -> None:
    """A4: the todo list, the cost and the context are in view."""
    todos = ("update_todo_list", {"todos": "[x] look\n[-] repair\n[ ] release"})
    script = "price = { input = 3.0, output = 15.0 }\ncontext_window = 10000\n" + turn(
        "", todos, usage={"input": 2000, "output": 100}
    ).replace('usage = {"input": 2000, "output": 100}', "usage = { input = 2000, output = 100 }")
    visitor = await visit(await serve(script + turn("", finish("Done."))).start())
    page = visitor.page
    await visitor.begin("work")
    await expect(page.locator(".task-head")).to_contain_text("1 of 3 done")
    await page.get_by_role("button", name="1 of 3 done").click()
    await expect(page.locator(".todos .doing")).to_contain_text("repair")
    await expect(page.locator(".context")).to_contain_text("%")
    await expect(page.locator(".cost")).to_contain_text("$0.0")
