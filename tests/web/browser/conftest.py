"""A real server, a real browser, and the page between them, under the content security policy that people get."""

import asyncio
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page, async_playwright, expect
from tests.conftest import lacking

FLAGS: Final = [
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
ADDRESS: Final = re.compile(rb"http://[\w.:\[\]]+/#t=\S+")
PATIENCE: Final = 30.0  # seconds for a server to begin, on a busy machine
expect.set_options(timeout=20_000)
# What the policy of the page refused. It must stay empty.
VIOLATIONS: Final = """
    window.__violations = [];
    document.addEventListener("securitypolicyviolation", (event) =>
        window.__violations.push(`${event.violatedDirective}: ${event.blockedURI} ${event.lineNumber}`));
"""


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Server:
    """`tarmac web` with a scripted model, as a process of its own."""

    def __init__(self, folder: Path, script: str, *, options: tuple[str, ...] = ()) -> None:
        self.workspace = folder / "shop"
        self.workspace.mkdir(exist_ok=True)
        self._script = folder / "script.toml"
        self._script.write_text(script)
        self._options = options
        self.port = free_port()
        self._log = folder / "server.log"
        self._process: subprocess.Popen[bytes] | None = None

    async def start(self) -> str:
        """Its address, with a token that works once."""
        environ = {**os.environ, "PS1": "$ "}
        if self._script.stat().st_size:  # without a script there is no model
            environ["TARMAC_MODEL"] = f"scripted/{self._script}"
        argv = [sys.executable, "-m", "tarmac", "web", "--no-browser", "--port", str(self.port), *self._options]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(  # noqa: ASYNC220
                argv, cwd=self.workspace, env=environ, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        async with asyncio.timeout(PATIENCE):
            while not (found := ADDRESS.search(self._log.read_bytes())):
                assert self._process.poll() is None, self._log.read_text()
                await asyncio.sleep(0.02)
        return found[0].decode()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """As a crash would."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(10)

    def stop(self) -> None:
        if self._process is None or self._process.poll() is not None:
            return
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(15)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def browser(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Browser]:
    """Debian's chromium, with a profile of its own, for all tests."""
    program = shutil.which("chromium") or shutil.which("chromium-headless-shell")
    if program is None:
        lacking("chromium is not installed")
        raise AssertionError
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    async with async_playwright() as playwright:
        opened = await playwright.chromium.launch(executable_path=program, headless=True, args=[*FLAGS, *sandbox])
        yield opened
        await opened.close()


def turn(text: str = "", *calls: tuple[str, Mapping[str, object]], **more: object) -> str:
    """One answer of the scripted model, in TOML."""
    fields = {"text": text, **more}
    lines = ["[[turn]]", *(f"{name} = {json.dumps(value)}" for name, value in fields.items() if value != "")]
    for name, arguments in calls:
        lines += ["[[turn.call]]", f"name = {json.dumps(name)}", f"arguments = {json.dumps(json.dumps(arguments))}"]
    return "\n".join(lines) + "\n"


def picture(width: int, height: int) -> bytes:
    """An orange PNG."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + bytes((210, 120, 40)) * width) * height
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def run(command: str) -> tuple[str, dict[str, object]]:
    return "execute_command", {"command": command}


def finish(result: str) -> tuple[str, dict[str, object]]:
    return "attempt_completion", {"result": result}


class Visitor:
    """One browser window with the page in it, and what went wrong in it."""

    def __init__(self, context: BrowserContext, page: Page) -> None:
        self.context = context
        self.page = page
        self.errors: list[str] = []
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.errors.append(str(error)))

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type == "error" and "ERR_CONNECTION_REFUSED" not in message.text:  # a server that is down, as told
            self.errors.append(message.text)

    async def begin(self, text: str) -> None:
        """Start a task."""
        await self.page.fill("#composer", text)
        await self.page.keyboard.press("Enter")

    async def allow(self) -> None:
        """Answer the open question with a yes, as soon as it takes one."""
        await self.page.locator(".dock .question").get_by_role("button", name="Allow once").click()

    async def screen_text(self) -> str:
        """What the terminal in view shows."""
        rows = await self.page.locator(".screen .xterm-rows").all_inner_texts()
        return "\n".join(rows)

    async def violations(self) -> list[str]:
        found: list[str] = await self.page.evaluate("() => window.__violations")
        return found


async def invite(page: Page) -> str:
    """An address for another browser."""
    address: str = await page.evaluate(
        """async () => (await (await fetch("/api/invite", {method: "POST", body: "{}", headers: {
            "Content-Type": "application/json",
            Authorization: `Bearer ${sessionStorage.getItem("tarmac.proof")}`,
        }})).json()).address"""
    )
    return address


Serve = Callable[..., Server]
Open = Callable[..., Awaitable[Visitor]]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Make a server; it ends with the test."""
    made: list[Server] = []

    def make(script: str, **more: tuple[str, ...]) -> Server:
        made.append(Server(tmp_path, script, **more))
        return made[-1]

    yield make
    for each in made:
        each.stop()


@pytest_asyncio.fixture(loop_scope="session")
async def visit(browser: Browser) -> AsyncIterator[Open]:
    """Open an address in a new browser window. Afterwards: no violation of the policy, no error."""
    visitors: list[Visitor] = []

    async def open_address(address: str, **more: object) -> Visitor:
        options: dict[str, object] = {"viewport": {"width": 1440, "height": 900}, **more}
        context = await browser.new_context(**options)  # type: ignore[arg-type]
        await context.add_init_script(VIOLATIONS)
        visitor = Visitor(context, await context.new_page())
        visitors.append(visitor)
        await visitor.page.goto(address)
        return visitor

    yield open_address
    for each in visitors:
        assert await each.violations() == []
        assert each.errors == []
        await each.context.close()
