"""The tool browser_action: look at a page in a real browser, and use it.

The model gets the accessibility tree, in which what can be used has a ref (`e7`). A model that sees may ask for a
screenshot. Opening a page is judged by its host, as with fetch_url; what is done on that page needs no other approval.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Final, Literal

from msgspec import Meta

from tarmac.errors import BadArguments, ToolFailed
from tarmac.models.messages import Image, Part, Text
from tarmac.tools.chromium import HEIGHT, Chromium
from tarmac.tools.fetch_url import UNTRUSTED, FetchTarget, reach
from tarmac.tools.report import fenced, untagged
from tarmac.tools.tool import Bench, Done, Go, Group, Need, Ready, Tool
from tarmac.vt.fold import bound, show_invisibles

MOST_TREE: Final = 20_000  # characters
LONGEST_NAME: Final = 300
DEEPEST: Final = 40
USABLE: Final = frozenset(
    "button checkbox combobox link listbox menuitem menuitemcheckbox menuitemradio option radio searchbox slider "
    "spinbutton switch tab textbox treeitem".split()
)
PLAIN: Final = frozenset("generic none presentation InlineTextBox LineBreak RootWebArea paragraph".split())
STATES: Final = ("checked", "disabled", "expanded", "focused", "pressed", "required", "selected")
KEYS: Final[Mapping[str, tuple[int, str]]] = {
    "Enter": (13, "\r"),
    "Tab": (9, ""),
    "Escape": (27, ""),
    "Backspace": (8, ""),
    "Delete": (46, ""),
    "ArrowUp": (38, ""),
    "ArrowDown": (40, ""),
    "ArrowLeft": (37, ""),
    "ArrowRight": (39, ""),
    "PageUp": (33, ""),
    "PageDown": (34, ""),
    "Home": (36, ""),
    "End": (35, ""),
}
CONTROL: Final = 2  # the modifier, in events of the protocol
Act = Literal["open", "look", "click", "type", "press", "scroll_down", "scroll_up", "back", "close"]
_ROO: Final = {"launch": "open", "hover": "look", "resize": "look", "screenshot": "look"}  # names from elsewhere


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserAction(Tool):
    name: ClassVar[str] = "browser_action"
    group: ClassVar[Group] = "browser"
    needs: ClassVar[Need | None] = "browser"
    description: ClassVar[str] = (
        "Use a page in a browser. The result is its accessibility tree, with a ref for what can be used."
    )

    action: Annotated[Act, Meta(description="What to do.")]
    url: Annotated[str, Meta(description="For open.")] = ""
    ref: Annotated[str, Meta(description="For click and type, such as e7.")] = ""
    text: Annotated[str, Meta(description="For type; for press a key such as Enter.")] = ""
    screenshot: Annotated[bool, Meta(description="Also return a picture.")] = False

    @classmethod
    def tidy(cls, arguments: dict[str, object]) -> dict[str, object]:
        """Accept the names of other agents."""
        action = arguments.get("action")
        kept = {key: value for key, value in arguments.items() if key not in ("coordinate", "size")}
        return {**kept, "action": _ROO.get(action, action)} if isinstance(action, str) else kept

    async def prepare(self, bench: Bench) -> Ready:
        browser = bench.browser
        if browser is None:
            raise ToolFailed("There is no browser here.")
        self._check(browser)
        if self.action == "open":

            async def opened(target: FetchTarget, _: Go) -> Done:
                await browser.page.open(target)
                return await self._shown(browser, bench)

            def titles(host: str) -> tuple[str, str]:
                return f"Opening {host} in the browser", f"Opened {host} in the browser"

            return await reach(self.url.strip(), titles, opened)

        async def act(_: Go) -> Done:
            if self.action == "close":
                await browser.aclose()
                return Done.text("The browser is closed.")
            await self._use(browser)
            await browser.page.settle()
            return await self._shown(browser, bench)

        about = self.ref or (self.text if self.action == "press" else "")
        what = f"{self.action.replace('_', ' ')} {about}".strip()
        return Ready(title=f"Browser: {what}", done=f"Browser: {what}", act=act)

    def _check(self, browser: "Browser") -> None:
        if self.action == "open" and not self.url.strip():
            raise BadArguments("browser_action: open needs a url.")
        if self.action == "press" and self.text not in KEYS:
            raise BadArguments(f"browser_action: press needs one of these keys as text: {', '.join(KEYS)}.")
        if self.action not in ("open", "close") and not browser.page.running:
            raise ToolFailed("No page is open. Open one first: action open, with its url.")
        if self.action in ("click", "type") and self.ref.strip() not in browser.refs:
            known = "Look at the page first." if not browser.refs else f"Refs are e1 to e{len(browser.refs)}."
            raise ToolFailed(f"There is nothing with the ref '{self.ref}' on this page. {known}")

    async def _use(self, browser: "Browser") -> None:
        page = browser.page
        match self.action:
            case "click":
                await _click(page, browser.refs[self.ref.strip()])
            case "type":
                await page.send("DOM.focus", backendNodeId=browser.refs[self.ref.strip()])
                await _press(page, "a", 65, modifiers=CONTROL, commands=["selectAll"])
                await page.send("Input.insertText", text=self.text)
            case "press":
                code, text = KEYS[self.text]
                await _press(page, self.text, code, text=text)
            case "scroll_down" | "scroll_up":
                distance = (HEIGHT - 100) * (1 if self.action == "scroll_down" else -1)
                await page.send("Runtime.evaluate", expression=f"window.scrollBy(0, {distance})")
            case "back":
                found = await page.send("Page.getNavigationHistory")
                if found["currentIndex"] < 2:  # the first is the empty page
                    raise ToolFailed("There is no page before this one.")
                before = found["entries"][found["currentIndex"] - 1]
                await page.send("Page.navigateToHistoryEntry", entryId=before["id"])

    async def _shown(self, browser: "Browser", bench: Bench) -> Done:
        """The page as it is now."""
        page = browser.page
        url, title = await page.where()
        found = await page.send("Accessibility.getFullAXTree")
        text, browser.refs = describe_tree(found["nodes"])
        tree = bound(show_invisibles(text), characters=MOST_TREE, lines=2_000, head_share=1.0).text
        notes = page.take_notes()
        said = "".join(f"\nNote: {show_invisibles(each)}." for each in notes)
        told = f"{title or 'A page'}\n{url}\n{tree}"
        parts: list[Part] = [Text(f"The page ({UNTRUSTED}):\n{fenced(told, 'page')}{said}")]
        if self.screenshot and bench.sees:
            parts.append(Image(bench.store(await page.screenshot(), "image/png")))
        elif self.screenshot:
            parts.append(Text("You can't see pictures: there is no screenshot."))
        return Done(
            content=tuple(parts),
            details={"page": {"url": url, "title": title, "notes": notes}},
            output=told,
            essence=untagged(told),
        )


@dataclass(slots=True)
class Browser:
    """The browser of a task, and what can be used on its page. Started when it is first needed."""

    page: Chromium = field(default_factory=Chromium)
    refs: dict[str, int] = field(default_factory=dict)  # "e7" → the node of the page

    async def aclose(self) -> None:
        """End it. May be called twice."""
        self.refs = {}
        await self.page.aclose()


async def _click(page: Chromium, node: int) -> None:
    try:
        await page.send("DOM.scrollIntoViewIfNeeded", backendNodeId=node)
        quads = (await page.send("DOM.getContentQuads", backendNodeId=node))["quads"]
    except ToolFailed:
        quads = []
    if not quads:
        raise ToolFailed("That element is no longer on the page. Look at the page again.")
    quad = quads[0]
    x, y = sum(quad[0::2]) / 4, sum(quad[1::2]) / 4
    for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
        button = {} if kind == "mouseMoved" else {"button": "left", "clickCount": 1}
        await page.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, **button)


async def _press(
    page: Chromium, key: str, code: int, *, text: str = "", modifiers: int = 0, commands: Sequence[str] = ()
) -> None:
    event: dict[str, object] = {"key": key, "code": key, "windowsVirtualKeyCode": code, "modifiers": modifiers}
    down = {"text": text} if text else {}
    await page.send("Input.dispatchKeyEvent", type="keyDown", commands=list(commands), **down, **event)
    await page.send("Input.dispatchKeyEvent", type="keyUp", **event)


def describe_tree(nodes: Sequence[Mapping[str, Any]]) -> tuple[str, dict[str, int]]:
    """PURE: an accessibility tree as indented lines, and the nodes of its refs."""
    by_id = {each["nodeId"]: each for each in nodes}
    refs: dict[str, int] = {}
    lines: list[str] = []
    if not nodes:
        return "(empty)", {}
    stack: list[tuple[str, int, str]] = [(nodes[0]["nodeId"], 0, "")]
    seen: set[str] = set()
    while stack:
        id, depth, above = stack.pop()
        if id in seen or (node := by_id.get(id)) is None:
            continue
        seen.add(id)
        role, name = _value(node, "role"), " ".join(_value(node, "name").split())[:LONGEST_NAME]
        line = "" if node.get("ignored") or role in PLAIN else _line(node, role, name, above)
        if line:
            if role in USABLE and "backendDOMNodeId" in node:
                refs[ref := f"e{len(refs) + 1}"] = node["backendDOMNodeId"]
                line += f" [{ref}]"
            lines.append("  " * min(depth, DEEPEST) + line)
        below = depth + bool(line)
        stack += [(each, below, name if line else above) for each in reversed(node.get("childIds", ()))]
    return "\n".join(lines) or "(empty)", refs


def _line(node: Mapping[str, Any], role: str, name: str, above: str) -> str:
    if role == "StaticText":
        return f"- {name}" if name and name != above else ""  # else the line above says it
    states = list(_states(node))
    value = _value(node, "value")
    if value and value != name:
        states.append(f"value {json.dumps(value[:LONGEST_NAME], ensure_ascii=False)}")
    quoted = f" {json.dumps(name, ensure_ascii=False)}" if name else ""
    listed = f" ({', '.join(states)})" if states else ""
    return f"- {role}{quoted}{listed}"


def _states(node: Mapping[str, Any]) -> Iterator[str]:
    for each in node.get("properties", ()):
        name, value = each.get("name"), each.get("value", {}).get("value")
        if name == "level":
            yield f"level {value}"
        elif name in STATES and value not in (None, False, "false"):
            yield name if value in (True, "true") else f"{name}: {value}"


def _value(node: Mapping[str, Any], field: str) -> str:
    found = node.get(field, {}).get("value", "")
    return found if isinstance(found, str) else str(found)
