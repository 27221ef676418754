"""browser_action: a real Chromium, and pages of a real server on loopback."""

import shutil
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tools.test_fetch_url import ok, served
from tests.tools.workshop import Workshop, text_of

from tarmac.errors import BadArguments, ToolFailed
from tarmac.models.messages import Image
from tarmac.policy import Connect
from tarmac.tools.browser_action import Browser, describe_tree

FORM = b"""<!doctype html><title>Sign up</title><h1>Welcome</h1>
<form action=/done><label>Name <input name=who value=nobody></label><button>Send</button></form>
<a href="http://localhost:9/elsewhere">Elsewhere</a> <a href="/two" target=_blank>A new window</a>
<button onclick="fetch('http://127.0.0.1:4123/').catch(e => document.title = 'refused')">Reach in</button>
<button onclick="alert('Hello')">Say</button>"""


@pytest.fixture
async def browsing(shop: Workshop) -> AsyncIterator[Workshop]:
    if shutil.which("chromium") is None:
        pytest.skip("no chromium")
    shop.bench = replace(shop.bench, browser=Browser(), sees=True)
    try:
        yield shop
    finally:
        assert shop.bench.browser is not None
        await shop.bench.browser.aclose()


def _answer(path: str) -> bytes:
    if path.startswith("/done"):
        return ok(f"<title>Done</title><p>Thanks, {path.partition('who=')[2]}".encode())
    return ok(FORM)


def _ref(text: str, what: str) -> str:
    """The ref of a line of the tree."""
    line = next(each for each in text.splitlines() if what in each)
    return line.rpartition("[")[2].rstrip("]")


@pytest.mark.browser
async def test_a_form_is_filled_in_and_sent(browsing: Workshop) -> None:
    """S10: the page as a tree with refs; type, click, back; a screenshot for a model that sees."""
    async with served(_answer) as url:
        page = text_of(await browsing.call("browser_action", action="launch", url=url))
        assert '- heading "Welcome" (level 1)' in page and "Sign up" in page
        with pytest.raises(ToolFailed, match="nothing with the ref 'e99'"):
            await browsing.call("browser_action", action="click", ref="e99")
        page = text_of(await browsing.call("browser_action", action="type", ref=_ref(page, "textbox"), text="Ada"))
        assert 'textbox "Name" (focused, value "Ada")' in page
        done = await browsing.call("browser_action", action="click", ref=_ref(page, '"Send"'), screenshot=True)
        assert "Thanks, Ada" in text_of(done) and f"{url}/done?who=Ada" in text_of(done)
        [picture] = [part for part in done.content if isinstance(part, Image)]
        assert browsing.blobs[picture.blob.sha256].startswith(b"\x89PNG")
        assert "Welcome" in text_of(await browsing.call("browser_action", action="back"))
        assert text_of(await browsing.call("browser_action", action="close")) == "The browser is closed."
        with pytest.raises(ToolFailed, match="No page is open"):
            await browsing.call("browser_action", action="look")


@pytest.mark.browser
async def test_a_page_can_not_leave_its_host_nor_reach_into_this_machine(browsing: Workshop) -> None:
    """P1: another host needs a call of its own; private addresses are refused to scripts; no windows, no dialogs."""
    async with served(_answer) as url:
        page = text_of(await browsing.call("browser_action", action="open", url=url))
        for name, note in (
            ("Elsewhere", "another host. Open it if you want to follow: http://localhost:9/elsewhere"),
            ("A new window", "wanted a new window"),
            ("Say", "A dialog was dismissed: Hello"),
            ("Reach in", "A connection to 127.0.0.1:4123 was refused"),
        ):
            page = text_of(await browsing.call("browser_action", action="click", ref=_ref(page, f'"{name}"')))
            assert note in page and '- heading "Welcome"' in page, name
        assert "refused" in page.splitlines()[2]  # the title that the script set


async def test_a_host_is_judged_as_by_fetch_url(shop: Workshop) -> None:
    """P1: opening a page asks about its host; what is done on that page asks nothing more."""
    shop.bench = replace(shop.bench, browser=Browser())
    ready = await shop.prepare("browser_action", action="open", url="http://127.0.0.1:9/x")
    assert [each.action for each in ready.wants] == [Connect("http://127.0.0.1:9/x", host="127.0.0.1:9", private=True)]
    with pytest.raises(ToolFailed, match="No page is open"):
        await shop.prepare("browser_action", action="scroll_down")
    with pytest.raises(ToolFailed, match="No page is open"):
        await shop.prepare("browser_action", action="click", ref="e1")
    with pytest.raises(BadArguments, match="one of these keys"):
        await shop.prepare("browser_action", action="press", text="F13")
    with pytest.raises(ToolFailed, match="not file"):
        await shop.prepare("browser_action", action="open", url="file:///etc/passwd")


_nodes = st.lists(
    st.fixed_dictionaries(
        {
            "nodeId": st.sampled_from("abcdef"),
            "ignored": st.booleans(),
            "role": st.fixed_dictionaries({"value": st.sampled_from(["button", "generic", "StaticText", "list"])}),
            "name": st.fixed_dictionaries({"value": st.text(max_size=5)}),
            "childIds": st.lists(st.sampled_from("abcdef"), max_size=4),
            "backendDOMNodeId": st.integers(1, 99),
        }
    ),
    max_size=6,
    unique_by=lambda each: each["nodeId"],
)


@given(_nodes)
def test_every_tree_is_described_and_every_ref_is_in_it(nodes: list[dict[str, object]]) -> None:
    """S10: whatever a page says, circles too, its description ends, and names each ref once."""
    text, refs = describe_tree(nodes)
    assert [each for each in refs if text.count(f"[{each}]") != 1] == []
