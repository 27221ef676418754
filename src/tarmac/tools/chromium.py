"""The system's Chromium, driven over a pipe with the DevTools protocol. One page, one profile that is thrown away.

Chromium ─proxy of ours→ resolved, judged → the internet          Chromium ⇄ descriptors 3 and 4 ⇄ commands, events

All connections go through a proxy in this process, also those of scripts and WebSockets. It connects to public
addresses, and to the hosts that were approved. So a page can't reach this machine or a private network. A page of
another host opens only when that host was approved. The pipe belongs to this process: no command can drive the browser.
"""

import asyncio
import base64
import fcntl
import json
import os
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit

from tarmac.errors import ToolFailed
from tarmac.tools.child_process import program
from tarmac.tools.fetch_url import FetchTarget, is_public

NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
STARTING: Final = 20.0  # seconds
PATIENCE: Final = 15.0  # for one command, and for a page to load
LAST_WORDS: Final = 3.0  # to close by itself
LARGEST: Final = 64 << 20  # bytes of one message: a screenshot, a tree
CONNECTING: Final = 10.0
WIDTH, HEIGHT = 1280, 800
# A page has settled when it was not changed for 100 ms; 2 s are enough.
SETTLED: Final = """new Promise(done => {
  let timer = setTimeout(done, 100);
  const seen = new MutationObserver(() => { clearTimeout(timer); timer = setTimeout(done, 100); });
  seen.observe(document, {subtree: true, childList: true, attributes: true, characterData: true});
  setTimeout(done, 2000);
}).then(() => document.readyState)"""


def find_chromium() -> str | None:
    """The path of Chromium or Chrome on this machine."""
    return next((found for name in NAMES if (found := program(name))), None)


class Chromium:
    """A browser with one page. It is started when it is first needed."""

    def __init__(self) -> None:
        self._process: int | None = None
        self._profile = ""
        self._proxy = _Proxy()
        self._approved: set[str] = set()  # hosts whose pages may be opened
        self._writer: asyncio.WriteTransport | None = None
        self._reading: asyncio.Task[None] | None = None
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._number = 0
        self._session = ""
        self._frame = ""  # the main frame
        self._loading = False
        self._loaded = asyncio.Event()
        self._jobs: set[asyncio.Task[Any]] = set()
        self._notes: list[str] = []

    @property
    def running(self) -> bool:
        return self._session != ""

    def take_notes(self) -> list[str]:
        """What the page wanted and did not get, since this was last asked."""
        notes, self._notes = list(dict.fromkeys([*self._notes, *self._proxy.take_refused()])), []
        return notes

    # Pages

    async def open(self, target: FetchTarget) -> None:
        """Show a page. Its host was approved."""
        await self._start()
        self._approved.add(_host(target.url))
        self._proxy.pinned[_host(target.url)] = target.addresses
        self._loading = True
        self._loaded.clear()
        answer = await self.send("Page.navigate", url=target.url)
        if why := answer.get("errorText"):
            self._loading = False
            raise ToolFailed(f"{target.host} can't be shown: {why}.")
        await self.settle()

    async def settle(self) -> None:
        """Wait until the page is loaded and no longer changes; not for ever."""
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                calm = 0
                while calm < 2 and self.running:  # twice: a script may go to another page
                    if self._loading:
                        await self._loaded.wait()
                    try:
                        await self.send("Runtime.evaluate", expression=SETTLED, awaitPromise=True)
                        calm += 1
                    except ToolFailed:  # between two pages there is none that could answer
                        calm = 0
                        await asyncio.sleep(0.05)

    async def where(self) -> tuple[str, str]:
        """The address of the page, and its title."""
        found = await self.send("Page.getNavigationHistory")
        entry = found["entries"][found["currentIndex"]]
        return entry["url"], entry["title"]

    async def screenshot(self) -> bytes:
        """What is to be seen, as PNG."""
        found = await self.send("Page.captureScreenshot", format="png")
        return base64.b64decode(found["data"])

    # The protocol

    async def send(self, method: str, **params: object) -> dict[str, Any]:
        """Send a command to the page. ToolFailed, with the browser's words, when it fails."""
        return await self._send({"method": method, "params": params, "sessionId": self._session})

    async def _command(self, method: str, **params: object) -> dict[str, Any]:
        """Send a command to the browser as a whole."""
        return await self._send({"method": method, "params": params})

    async def _send(self, message: dict[str, object]) -> dict[str, Any]:
        if self._writer is None:
            raise ToolFailed("The browser is not running.")
        self._number += 1
        number = message["id"] = self._number
        future = self._waiting[number] = asyncio.get_running_loop().create_future()
        self._writer.write(json.dumps(message).encode() + b"\0")
        try:
            async with asyncio.timeout(PATIENCE):
                answer = await future
        except TimeoutError:
            raise ToolFailed(f"The browser did not answer within {PATIENCE:g} s.") from None
        finally:
            self._waiting.pop(number, None)
        if "error" in answer:
            raise ToolFailed(f"The browser refused: {answer['error'].get('message', '')}.")
        result: dict[str, Any] = answer.get("result", {})
        return result

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while True:
                message = json.loads((await reader.readuntil(b"\0"))[:-1])
                if (future := self._waiting.get(message.get("id", 0))) and not future.done():
                    future.set_result(message)
                elif "method" in message:
                    self._heard(message["method"], message.get("params", {}))
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError):
            pass
        self._session = ""
        for future in self._waiting.values():
            if not future.done():
                future.set_result({"error": {"message": "it has ended"}})

    def _heard(self, method: str, params: dict[str, Any]) -> None:
        match method:
            case "Fetch.requestPaused":
                self._judge(params)
            case "Page.frameStartedLoading" if params["frameId"] == self._frame:
                self._loading = True
                self._loaded.clear()
            case "Page.frameStoppedLoading" if params["frameId"] == self._frame:
                self._loading = False
                self._loaded.set()
            case "Page.javascriptDialogOpening":
                self._notes.append(f"A dialog was dismissed: {params.get('message', '')[:300]}")
                self._do(self.send("Page.handleJavaScriptDialog", accept=params.get("type") == "beforeunload"))
            case "Target.targetCreated" if params["targetInfo"].get("openerId"):
                self._notes.append(f"The page wanted a new window for {params['targetInfo'].get('url', '')[:300]}")
                self._do(self._command("Target.closeTarget", targetId=params["targetInfo"]["targetId"]))

    def _judge(self, params: dict[str, Any]) -> None:
        """A page is about to be loaded: in the main frame only from a host that was approved."""
        url, request = params["request"]["url"], params["requestId"]
        if params.get("frameId") == self._frame and _host(url) not in self._approved:
            self._notes.append(f"The page wanted to go to another host. Open it if you want to follow: {url[:300]}")
            self._do(self.send("Fetch.failRequest", requestId=request, errorReason="Aborted"))  # so the page stays
        else:
            self._do(self.send("Fetch.continueRequest", requestId=request))

    def _do(self, command: Coroutine[Any, Any, object]) -> None:
        """Send a command whose answer does not matter."""

        async def sent() -> None:
            with suppress(ToolFailed):
                await command

        job = asyncio.create_task(sent())
        self._jobs.add(job)
        job.add_done_callback(self._jobs.discard)

    # Its life

    async def _start(self) -> None:
        if self.running:
            return
        await self.aclose()  # what is left of one that crashed
        path = find_chromium()
        if path is None:
            raise ToolFailed("There is no Chromium on this machine.")
        self._profile = tempfile.mkdtemp(prefix="tarmac-browser-")
        port = await self._proxy.serve()
        try:
            async with asyncio.timeout(STARTING):
                await self._spawn([path, *_options(self._profile, port)])
                created = await self._command("Target.createTarget", url="about:blank")
                target = created["targetId"]
                attached = await self._command("Target.attachToTarget", targetId=target, flatten=True)
                self._session, self._frame = attached["sessionId"], target
                await self._command("Browser.setDownloadBehavior", behavior="deny")
                await self._command("Target.setDiscoverTargets", discover=True)
                for domain in ("Page", "DOM", "Accessibility", "Runtime"):
                    await self.send(f"{domain}.enable")
                await self.send("Fetch.enable", patterns=[{"resourceType": "Document"}])
        except TimeoutError:
            await self.aclose()
            raise ToolFailed(f"The browser did not start within {STARTING:g} s.") from None
        except BaseException:
            await self.aclose()
            raise

    async def _spawn(self, argv: list[str]) -> None:
        theirs_in, ours_out = _far_pipe()
        ours_in, theirs_out = _far_pipe()
        actions = [
            (os.POSIX_SPAWN_DUP2, theirs_in, 3),
            (os.POSIX_SPAWN_DUP2, theirs_out, 4),
            *((os.POSIX_SPAWN_OPEN, each, os.devnull, os.O_RDWR, 0) for each in (0, 1, 2)),
        ]
        env = {"PATH": os.environ.get("PATH", os.defpath), "HOME": self._profile, "LANG": "C.UTF-8"}
        try:
            spawn = partial(os.posix_spawn, argv[0], argv, env, file_actions=actions, setsid=True)
            self._process = await asyncio.to_thread(spawn)
        except OSError as error:
            os.close(ours_in)
            os.close(ours_out)
            raise ToolFailed(f"The browser can't be started: {error.strerror}.") from None
        finally:
            os.close(theirs_in)
            os.close(theirs_out)
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(LARGEST)
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(ours_in, "rb", 0))
        transport, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, os.fdopen(ours_out, "wb", 0))
        self._writer = transport
        self._reading = asyncio.create_task(self._read(reader), name="reader of a browser")

    async def aclose(self) -> None:
        """End it, and all it started. May be called twice."""
        process, self._process = self._process, None
        if process is not None:
            if self._writer is not None:
                with suppress(ToolFailed, TimeoutError):
                    async with asyncio.timeout(LAST_WORDS):
                        await self._command("Browser.close")
            await asyncio.shield(asyncio.to_thread(_ended, process))
        if self._writer is not None:
            self._writer.close()
        for job in (*self._jobs, *([self._reading] if self._reading else ())):
            job.cancel()
            await asyncio.wait([job])
        self._writer, self._reading, self._session = None, None, ""
        self._approved.clear()
        await self._proxy.aclose()
        if self._profile:
            await asyncio.to_thread(shutil.rmtree, self._profile, ignore_errors=True)
            self._profile = ""


def _options(profile: str, port: int) -> list[str]:
    box = ["--no-sandbox"] if os.geteuid() == 0 else []  # Chromium refuses its own sandbox to root
    return [
        "--headless=new",
        "--remote-debugging-pipe",
        f"--user-data-dir={profile}",
        f"--proxy-server=http://127.0.0.1:{port}",
        "--proxy-bypass-list=<-loopback>",
        "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
        f"--window-size={WIDTH},{HEIGHT}",
        "--no-first-run",
        "--no-default-browser-check",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-default-apps",
        "--disable-dev-shm-usage",
        "--disable-extensions",
        "--disable-gpu",
        "--disable-sync",
        "--mute-audio",
        *box,
        "about:blank",
    ]


def _far_pipe() -> tuple[int, int]:
    """A pipe whose descriptors are not among those that a child gets."""
    pair = os.pipe()
    far = tuple(fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, 10) for each in pair)
    for each in pair:
        os.close(each)
    return far[0], far[1]


def _ended(process: int) -> None:
    """Wait a moment for the end of a process, then kill all of its group."""
    end = time.monotonic() + LAST_WORDS
    done = 0
    while not done and time.monotonic() < end:
        done, _ = os.waitpid(process, os.WNOHANG)
        if not done:
            time.sleep(0.02)
    with suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)
    if not done:
        os.waitpid(process, 0)


def _host(url: str) -> str:
    """The host of an address with its port; "" for one that has none."""
    try:
        parts = urlsplit(url)
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme, 0)
    except ValueError:
        return ""
    return f"{(parts.hostname or '').rstrip('.').lower()}:{port}" if port else ""


class _Proxy:
    """An HTTP proxy on loopback that connects to public addresses, and to those that were approved."""

    def __init__(self) -> None:
        self.pinned: dict[str, tuple[str, ...]] = {}  # "host:port" → the addresses that were judged
        self._refused: list[str] = []
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()

    def take_refused(self) -> list[str]:
        refused, self._refused = self._refused, []
        return refused

    async def serve(self) -> int:
        """Begin; its port."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def aclose(self) -> None:
        server, self._server = self._server, None
        if server is None:
            return
        server.close()
        for each in list(self._open):
            each.cancel()
            await asyncio.wait([each])
        self.pinned.clear()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            await self._serve(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, asyncio.CancelledError):
            pass
        finally:
            self._open.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        method, address, _ = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ", 2)
        tunnel = method == "CONNECT"
        parts = urlsplit(f"//{address}" if tunnel else address)
        name, port = (parts.hostname or "").lower(), parts.port or 80
        connected = await self._connected(name, port)
        if connected is None:
            writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            await writer.drain()
            return
        there, out = connected
        if tunnel:
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        else:  # one request a connection: the next may be for another host
            path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            lines = [line for line in head.split(b"\r\n")[1:-2] if not line.lower().startswith(_HOP_BY_HOP)]
            first = f"{method} {path} HTTP/1.1".encode("latin-1")
            out.write(b"\r\n".join([first, *lines, b"Connection: close", b"", b""]))
        await _relayed(reader, out, there, writer)

    async def _connected(self, name: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        addresses = self.pinned.get(f"{name.rstrip('.')}:{port}")
        if addresses is None:
            loop = asyncio.get_running_loop()
            try:
                async with asyncio.timeout(CONNECTING):
                    found = await loop.getaddrinfo(name, port, type=socket.SOCK_STREAM)
            except (OSError, UnicodeError, TimeoutError):
                return None
            addresses = tuple(dict.fromkeys(str(each[4][0]) for each in found))
            if not addresses or not all(map(is_public, addresses)):
                self._refused.append(f"A connection to {name}:{port} was refused: it is in a private network")
                return None
        for address in addresses:
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(CONNECTING):
                    return await asyncio.open_connection(address, port)
        return None


_HOP_BY_HOP = (b"connection:", b"proxy-", b"keep-alive:")


async def _relayed(
    here: asyncio.StreamReader, out: asyncio.StreamWriter, there: asyncio.StreamReader, back: asyncio.StreamWriter
) -> None:
    """Copy both ways until one end is done."""

    async def copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while data := await source.read(1 << 16):
            sink.write(data)
            await sink.drain()

    ways = [asyncio.create_task(copy(here, out)), asyncio.create_task(copy(there, back))]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in ways:
            each.cancel()
        await asyncio.gather(*ways, return_exceptions=True)
        out.close()
