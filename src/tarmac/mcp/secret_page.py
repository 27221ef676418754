"""A page on this machine where the person types a secret that a command asks for, past the client and its model.

command asks → SecretRequests → the client opens the page's address (URL elicitation) → the person types → the terminal

An address is good for one secret of one command. It is void when the command no longer asks. The page is refused to
processes of our terminals, to other host names and to forms of other pages. What is typed is never kept.
"""

import asyncio
import html
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qs

from tarmac.errors import SecretNotAsked, TarmacError
from tarmac.events import TaskId
from tarmac.mcp.client import CannotAsk, Client
from tarmac.policy.visible import shortened, visible
from tarmac.terminals.execution import Execution
from tarmac.terminals.pool import Pool
from tarmac.tools.execute_command import wants_secret

LARGEST: Final = 64 << 10  # bytes of a form
LOOK_AGAIN: Final = 0.2  # seconds: whether the command still asks
LONGEST_SHOWN: Final = 2_000  # characters of the command
_HEADERS: Final = (
    (b"content-type", b"text/html; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (
        b"content-security-policy",
        b"default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    ),
    (b"connection", b"close"),
)
_STYLE: Final = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:40rem;margin:3rem auto;padding:0 1rem;color-scheme:light dark}"
    "pre{white-space:pre-wrap;overflow-wrap:anywhere;border-left:3px solid;padding-left:.8rem}"
    "input,button{font:inherit;padding:.4rem .6rem}input{width:60%}"
)


@dataclass(slots=True)
class SecretAddress:
    """One secret that one command asks for."""

    execution: Execution
    prompt: str
    typed: asyncio.Event = field(default_factory=asyncio.Event)


class SecretPage:
    """The server of the page. It begins with the first secret and ends with `aclose`."""

    def __init__(self) -> None:
        self._open: dict[str, SecretAddress] = {}
        self._listening: socket.socket | None = None
        self._serving: asyncio.Task[None] | None = None

    def add(self, address: SecretAddress) -> str:
        """Its URL."""
        from tarmac.loopback import http_server
        from tarmac.loopback.http_server import listen

        if self._listening is None:
            self._listening = listen(0, hint="")
            self._serving = asyncio.create_task(http_server.serve(self, self._listening))
        token = secrets.token_urlsafe(24)
        self._open[token] = address
        return f"http://127.0.0.1:{self._port}/secret/{token}"

    def remove(self, address: SecretAddress) -> None:
        """It is void."""
        self._open = {token: each for token, each in self._open.items() if each is not address}

    async def aclose(self) -> None:
        """End it. May be called twice."""
        self._open.clear()
        serving, self._serving = self._serving, None
        if serving is not None:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)
        if self._listening is not None:
            self._listening.close()

    @property
    def _port(self) -> int:
        return int(self._listening.getsockname()[1]) if self._listening is not None else 0

    # Requests

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            while (await receive())["type"] != "lifespan.shutdown":
                await send({"type": "lifespan.startup.complete"})
            await send({"type": "lifespan.shutdown.complete"})
            return
        if scope["type"] != "http":
            return
        status, body = await self._answer(scope, receive)
        await send({"type": "http.response.start", "status": status, "headers": list(_HEADERS)})
        await send({"type": "http.response.body", "body": _page(body).encode()})

    async def _answer(self, scope: Any, receive: Any) -> tuple[int, str]:
        if why := await self._refusal(scope):
            return 403, f"<p>{why}</p>"
        token = scope["path"].removeprefix("/secret/")
        address = self._open.get(token)
        if address is None or not wants_secret(address.execution):
            return 404, "<p>Nothing asks for a secret here any more. You can close this page.</p>"
        if scope["method"] == "GET":
            return 200, _form(address)
        if scope["method"] != "POST":
            return 405, "<p>This page has one form.</p>"
        body = b""
        while (piece := await receive())["type"] == "http.request":
            body += piece.get("body", b"")
            if len(body) > LARGEST:
                return 413, "<p>This is too long for a secret. Nothing was typed.</p>"
            if not piece.get("more_body"):
                break
        typed = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True).get("secret", [])
        if len(typed) != 1 or any(each in typed[0] for each in "\r\n\0"):
            return 400, "<p>A secret is one line. Nothing was typed.</p>"
        if self._open.pop(token, None) is None:  # a second click
            return 404, "<p>It was typed already.</p>"
        try:
            await address.execution.send_secret(typed[0], timeout=2)
        except SecretNotAsked:
            return 409, "<p>The command no longer asks for it. Nothing was typed.</p>"
        except TarmacError as error:
            return 409, f"<p>{html.escape(visible(error.what))}</p>"
        finally:
            address.typed.set()
        return 200, "<p>It was typed. You can close this page.</p>"

    async def _refusal(self, scope: Any) -> str:
        """Why this request is not served; empty if it is."""
        from tarmac.loopback.http_server import own_names
        from tarmac.loopback.peer import Peer, peer_of

        given: dict[bytes, list[str]] = {}
        for name, value in scope["headers"]:
            given.setdefault(name.lower(), []).append(value.decode("latin-1"))
        ours = own_names(self._port)
        if len(given.get(b"host", ())) != 1 or given[b"host"][0] not in ours:
            return "This server has another name."
        origins = given.get(b"origin", [])
        if any(each not in [f"http://{name}" for name in ours] for each in origins):
            return "Other pages may not use this one."
        if scope["client"] and await asyncio.to_thread(peer_of, tuple(scope["client"]), tuple(scope["server"])) in (
            Peer.AGENT,
            Peer.GONE,
        ):
            return "A secret is typed by a person, not by a program in a terminal of Tarmac."
        return ""


class SecretRequests:
    """The secrets that the commands of one call ask for. False once the person declined: then nobody waits for them."""

    def __init__(self, page: SecretPage, client: Client, registry: Pool, task: TaskId) -> None:
        self._page, self._client, self._registry, self._task = page, client, registry, task
        self._asking: dict[Execution, asyncio.Task[None]] = {}
        self._declined = False

    def __bool__(self) -> bool:
        return not self._declined

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Held while a call waits for a secret: whoever is not asked yet is asked."""
        busy = [each.current for each in self._registry.listing(task=self._task, busy=True)]
        for execution in (each for each in busy if each is not None and wants_secret(each)):
            if (asking := self._asking.get(execution)) is None or asking.done():
                self._asking[execution] = asyncio.create_task(self._ask(execution))
        yield

    async def aclose(self) -> None:
        """The call is over."""
        mine, self._asking = list(self._asking.values()), {}
        for each in mine:
            each.cancel()
        await asyncio.gather(*mine, return_exceptions=True)

    async def _ask(self, execution: Execution) -> None:
        """Until it was typed, declined, or is no longer asked for."""
        seen = execution.waiting
        address = SecretAddress(execution, seen.prompt if seen else "")
        url = self._page.add(address)
        told = f"A command asks for a secret: {shortened(execution.command, 200)}. Type it on this page of Tarmac."
        try:
            if await self._client.open_url(url, told) != "accept":
                self._declined = True
                return
            while wants_secret(execution) and not address.typed.is_set():
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_AGAIN):
                        await address.typed.wait()
        except CannotAsk:
            self._declined = True
        finally:
            self._page.remove(address)


def _form(address: SecretAddress) -> str:
    command = html.escape(shortened(visible(address.execution.command), LONGEST_SHOWN))
    prompt = html.escape(visible(address.prompt.strip()))
    return (
        f"<p>This command, which runs in a terminal of Tarmac, asks for a secret:</p><pre>{command}</pre>"
        f"<p>Its prompt: <b>{prompt or '(none)'}</b></p>"
        '<form method="post"><input type="password" name="secret" aria-label="Secret" autofocus autocomplete="off"> '
        "<button>Type it</button></form>"
        "<p>It goes to that command alone. Tarmac does not keep it, and no model sees it.</p>"
    )


def _page(body: str) -> str:
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>Tarmac: a secret</title><style>{_STYLE}</style><h1>Tarmac</h1>{body}</html>"
    )
