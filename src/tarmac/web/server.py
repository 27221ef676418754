"""The server of the page: its files, its HTTP and its sockets, behind the guard, on the loopback interface.

async with open_server(config, environ, options) as server:
    print(server.address())
    await server.serve()

Vite builds the page into `static/`, a part of the wheel. All file names but index.html have a hash in them. The content
security policy has a nonce for each response: xterm.js makes `<style>` elements, and gives them this nonce.
"""

import asyncio
import gzip
import os
import secrets
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Final
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from tarmac.config import Config
from tarmac.errors import BadRequest, DirectoryUnavailable, PeerGone, ScreenUnavailable, TarmacError
from tarmac.loopback.http_server import LOOPBACK, listen, own_names, serve
from tarmac.paths import state_dir
from tarmac.server.running_app import RunningApp
from tarmac.server.served_client import ServedClient, serve_client
from tarmac.server.unix_socket import listen as listen_for_clients
from tarmac.server.verbs import read_hello
from tarmac.vt.screen import import_emulator
from tarmac.web.api import Api
from tarmac.web.guard import Access, Guard
from tarmac.web.run_file import RunFile, ServerRun

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; connect-src 'self'; "
    "img-src 'self' data: blob:; font-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'"
)
TYPES: Final = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
    ".webmanifest": "application/manifest+json",
}
FOREVER: Final = "public, max-age=31536000, immutable"


class PageMissing(TarmacError):
    """The page was not built."""


def find_static(folder: Path | None = None) -> Path:
    """The folder of the built page."""
    found = folder or Path(str(resources.files("tarmac.web"))) / "static"
    if not (found / "index.html").is_file():
        raise PageMissing(
            "the page is not built",
            hint="in a checkout: `make web` (it needs Node.js and npm); the wheel has it built in",
        )
    return found


class StaticFiles:
    """Answers everything that is not under /api/."""

    def __init__(self, folder: Path) -> None:
        self._index = (folder / "index.html").read_text("utf-8")
        self._files = {  # read once: nothing that a request names is ever looked for on the disk
            f"/{each.relative_to(folder).as_posix()}": each.read_bytes()
            for each in sorted(folder.rglob("*"))
            if each.is_file() and each.suffix in TYPES
        }
        self._compressed: dict[str, bytes] = {}

    async def index(self, _: Request) -> Response:
        nonce = secrets.token_urlsafe(16)
        return Response(
            self._index.replace("__NONCE__", nonce),
            media_type="text/html; charset=utf-8",
            headers={"content-security-policy": POLICY.format(nonce=nonce)},
        )

    async def file(self, request: Request) -> Response:
        path = request.url.path
        found = self._files.get(path)
        if found is None:
            return PlainTextResponse("there is nothing here\n", status_code=404)
        kind = TYPES[Path(path).suffix]
        headers = {"cache-control": FOREVER} if path.startswith("/assets/") else {}
        headers["content-security-policy"] = POLICY.format(nonce=secrets.token_urlsafe(16))  # an SVG can be a page
        if kind.startswith("text/"):
            headers["vary"] = "accept-encoding"
            if "gzip" in request.headers.get("accept-encoding", ""):
                if path not in self._compressed:
                    self._compressed[path] = await asyncio.to_thread(gzip.compress, found)
                found, headers["content-encoding"] = self._compressed[path], "gzip"
        return Response(found, media_type=kind, headers=headers)


PORT_TAKEN = "--port 0 chooses a free port"
TO_PROVE = 2.0  # seconds from a page's connection to its proof
NO_PROOF, WRONG_PROOF = 4408, 4401  # how a socket is closed


async def _admit_nobody(_: str) -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """How the page is served."""

    port: int | None = None  # None: that of the last time, if it is free; 0: a free one
    lan: str = ""  # this machine's address in its network, to listen on it as well
    admit: Callable[[str], Awaitable[bool]] = _admit_nobody  # whether a device of that address may come in
    static: Path | None = None  # where the page was built
    overrides: Mapping[str, object] = field(default_factory=dict)  # of the configuration, from the command line


@asynccontextmanager
async def open_server(config: Config, environ: Mapping[str, str], options: ServerOptions) -> AsyncIterator["WebServer"]:
    """Listening, but not serving yet; on the way out its tasks are left in order and its terminals closed."""
    files = StaticFiles(find_static(options.static))
    kept = RunFile(state_dir(environ))
    before = kept.read()
    with ExitStack() as sockets:
        listening = [sockets.enter_context(_listen(options.port, before.port))]
        port = listening[0].getsockname()[1]
        if options.lan:
            listening.append(sockets.enter_context(listen(port, host=options.lan, hint=PORT_TAKEN)))
        state = RunningApp(config, environ, options.overrides)
        server = WebServer(state, files, kept, before, listening, options)
        try:
            yield server
        finally:
            kept.leave()
            await state.aclose()


def _listen(port: int | None, last: int) -> socket.socket:
    if port is not None or not last:
        return listen(port or 0, hint=PORT_TAKEN)
    try:
        return listen(last, hint=PORT_TAKEN)
    except BadRequest:
        return listen(0, hint=PORT_TAKEN)


class WebServer:
    """A server that listens. `serve` runs until it is cancelled."""

    def __init__(
        self,
        state: RunningApp,
        files: StaticFiles,
        kept: RunFile,
        before: ServerRun,
        listening: list[socket.socket],
        options: ServerOptions,
    ) -> None:
        self.state = state
        self.port: int = listening[0].getsockname()[1]
        self._before = before
        self._kept = kept
        self._listening = listening
        self._lan = options.lan
        self._id = secrets.token_hex(8)
        self._secret = secrets.token_urlsafe(32)
        # A proof counts only on the port that it was given out on: who took that port meanwhile may have heard it.
        self.access = Access(proofs=before.proofs if before.port == self.port else ())
        self.access.changed = state.open_changed = self._keep
        names = (*own_names(self.port), *([f"{options.lan}:{self.port}"] if options.lan else []))
        api = Api(state, self.access, self.address, _admit(options), self._secret)
        routes = [
            *api.routes(),
            WebSocketRoute("/api/socket", self._socket),
            Route("/", files.index, methods=["GET"]),
            Route("/{path:path}", files.file, methods=["GET"]),
        ]
        self.app = Guard(Starlette(routes=routes), names)

    def address(self, *, lan: bool = False, cwd: str = "") -> str:
        """An address that lets one browser in, once. `cwd` is the folder that the page offers for new tasks."""
        host = self._lan if lan else LOOPBACK
        where = f"&cwd={quote(cwd)}" if cwd else ""
        return f"http://{host}:{self.port}/#t={self.access.token()}{where}"

    async def serve(self) -> None:
        """Serve until cancelled. The tasks of an earlier run are opened again meanwhile."""
        async with AsyncExitStack() as clients:
            try:
                folder = state_dir(self.state.environ)
                await clients.enter_async_context(
                    listen_for_clients(folder, lambda channel: serve_client(channel, self.state))
                )
            except (OSError, DirectoryUnavailable):  # then no other front end can join
                pass
            self._keep(opening=self._before.open)  # who finds the server by its file finds its socket, too
            opening = asyncio.create_task(self._reopen())
            try:
                await serve(self.app, *self._listening, websockets=True)
            finally:
                opening.cancel()
                await asyncio.gather(opening, return_exceptions=True)

    async def _reopen(self) -> None:
        for trouble in await self.state.reopen(self._before.open):
            self.state.say_trouble(trouble)
        self._keep()
        with suppress(ScreenUnavailable):  # else the first look at a terminal would wait for it
            await asyncio.to_thread(import_emulator)

    async def _socket(self, socket: WebSocket) -> None:
        await socket.accept()
        page = PageTransport(socket)
        try:
            if await self._proves_itself(page):
                await ServedClient(page, self.state, server=self._id).run()
        except PeerGone:
            pass

    async def _proves_itself(self, page: "PageTransport") -> bool:
        try:
            async with asyncio.timeout(TO_PROVE):
                frame = await page.receive()
        except TimeoutError:
            await page.close(NO_PROOF, "no proof came")
            return False
        if self.access.knows(read_hello(frame if isinstance(frame, str) else "").hello):
            return True
        await page.close(WRONG_PROOF, "the proof is wrong")
        return False

    def _keep(self, opening: tuple[str, ...] = ()) -> None:
        run = ServerRun(
            pid=os.getpid(),
            port=self.port,
            workspace=str(self.state.config.workspace),
            open=tuple({*opening, *self.state.unfinished()}),
            proofs=tuple(self.access.proofs),
            secret=self._secret,
        )
        self._kept.write(run)


class PageTransport:
    """A page's WebSocket."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket
        self.send_text = socket.send_text
        self.send_bytes = socket.send_bytes
        self.close = socket.close

    async def receive(self) -> str | bytes:
        try:
            return await self._socket.receive_text()
        except WebSocketDisconnect:
            raise PeerGone("the page is closed") from None
        except KeyError:  # a binary frame
            return b""


def _admit(options: ServerOptions) -> Callable[[str], Awaitable[bool]]:
    async def admit(host: str) -> bool:
        return host.startswith("127.") or host in ("::1", options.lan) or await options.admit(host)

    return admit
