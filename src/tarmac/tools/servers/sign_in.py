"""Sign in to a server over HTTP (OAuth 2.1): tokens in a private file, and a redirect to this machine.

Only `tarmac mcp-servers login NAME` asks a person to sign in. A task never waits for a browser. It uses and refreshes
the stored tokens.
"""

import asyncio
import json
import os
import secrets
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from tarmac.errors import TarmacError
from tarmac.paths import private_dir

PATIENCE: Final = 300.0  # seconds that a person has in the browser
PAGE: Final = b"<!doctype html><title>Tarmac</title><p>You can close this page and go back to the terminal."


class SignInNeeded(TarmacError):
    """The server wants a person to sign in."""


@dataclass(frozen=True, slots=True)
class TokenFile:
    """The tokens of one server, in a file that only the user can read. The SDK reads and writes it."""

    folder: Path
    url: str

    @property
    def path(self) -> Path:
        """Its file."""
        return self.folder / f"{sha256(self.url.encode()).hexdigest()[:24]}.json"

    async def get_tokens(self) -> Any:
        """The stored tokens, if there are any."""
        from mcp.shared.auth import OAuthToken

        found = self._read().get("tokens")
        return OAuthToken.model_validate(found) if found else None

    async def set_tokens(self, tokens: Any) -> None:
        """Store them."""
        self._write({**self._read(), "tokens": tokens.model_dump(mode="json", exclude_none=True)})

    async def get_client_info(self) -> Any:
        """How this client is registered there."""
        from mcp.shared.auth import OAuthClientInformationFull

        found = self._read().get("client")
        return OAuthClientInformationFull.model_validate(found) if found else None

    async def set_client_info(self, client_info: Any) -> None:
        """Store it."""
        self._write({**self._read(), "client": client_info.model_dump(mode="json", exclude_none=True)})

    def forget(self) -> bool:
        """Remove them. Returns whether there were any."""
        try:
            self.path.unlink()
        except FileNotFoundError:
            return False
        return True

    def port(self) -> int:
        """The port that was registered for the redirect; 0: none yet."""
        try:
            return urlsplit(self._read()["client"]["redirect_uris"][0]).port or 0
        except (KeyError, IndexError, TypeError, ValueError):
            return 0

    def _read(self) -> dict[str, Any]:
        try:
            found = json.loads(self.path.read_text())
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def _write(self, values: dict[str, Any]) -> None:
        private_dir(self.folder)
        new = self.path.with_name(f".{self.path.name}.{secrets.token_hex(4)}")
        fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "w") as file:
            file.write(json.dumps(values))
        new.replace(self.path)


class SignInListener:
    """Listens on this machine for the browser that comes back from signing in."""

    def __init__(self, port: int = 0) -> None:
        self._socket = _bound(port)
        self._server: asyncio.Server | None = None
        self._answer: asyncio.Future[dict[str, str]] = asyncio.get_running_loop().create_future()

    @property
    def url(self) -> str:
        """Where the browser is sent to."""
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}/callback"

    async def listen(self) -> None:
        """Accept connections from now on."""
        if self._server is None:
            self._server = await asyncio.start_server(self._serve, sock=self._socket)

    async def answer(self) -> dict[str, str]:
        """The parameters that the browser brought. SignInNeeded after five minutes."""
        try:
            return await asyncio.wait_for(asyncio.shield(self._answer), PATIENCE)
        except TimeoutError:
            raise SignInNeeded("nobody signed in within five minutes", hint="try it again") from None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            line = await asyncio.wait_for(reader.readline(), 5)
            target = line.decode("latin-1").split(" ")[1] if line.count(b" ") >= 2 else ""
            parts = urlsplit(target)
            found = {key: values[0] for key, values in parse_qs(parts.query).items()}
            good = parts.path == "/callback" and ("code" in found or "error" in found)
            status = b"200 OK" if good else b"404 Not Found"
            body = PAGE if good else b""
            head = b"HTTP/1.1 %s\r\nContent-Type: text/html\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
            writer.write(head % (status, len(body)) + body)
            await writer.drain()
            if good and not self._answer.done():
                self._answer.set_result(found)
        except (OSError, TimeoutError, ValueError):
            pass
        finally:
            writer.close()

    async def aclose(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()
        self._socket.close()
        self._answer.cancel()


def _bound(port: int) -> socket.socket:
    for each in dict.fromkeys((port, 0)):
        made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            made.bind(("127.0.0.1", each))
            made.listen(4)
            return made
        except OSError:
            made.close()
    raise SignInNeeded("no port on this machine is free for signing in")


def provider(
    url: str, tokens: TokenFile, redirect: SignInListener | None, show: Callable[[str], Awaitable[None]] | None
) -> Any:
    """The authentication of the SDK's requests.

    The SDK does not know when stored tokens expire, nor where they are renewed. So they are renewed once a server has
    refused them, because the SDK looks up that address then.
    """
    from httpx2 import Request, Response
    from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
    from mcp.shared.auth import OAuthClientMetadata

    async def redirected(address: str) -> None:
        if redirect is None or show is None:
            raise SignInNeeded("it wants you to sign in", hint="tarmac mcp-servers login NAME")
        await redirect.listen()
        await show(address)

    async def came_back() -> AuthorizationCodeResult:
        assert redirect is not None
        found = await redirect.answer()
        if "error" in found:
            raise SignInNeeded(f"signing in failed: {found.get('error_description') or found['error']}")
        return AuthorizationCodeResult(code=found["code"], state=found.get("state"), iss=found.get("iss"))

    class Renewing(OAuthClientProvider):
        """Tries the refresh token before it wants a person."""

        _expired = _renews = False

        async def _auth_flow(self, request: Request) -> AsyncGenerator[Request, Response]:
            async with aclosing(super()._auth_flow(request)) as flow:
                sent = await anext(flow)
                while True:
                    response = yield sent
                    if sent is request:
                        self._expired = response.status_code == 401
                    try:
                        sent = await flow.asend(response)
                    except StopAsyncIteration:
                        return

        async def _perform_authorization(self) -> Request:
            self._renews = self._expired and self.context.can_refresh_token()
            return await (self._refresh_token() if self._renews else super()._perform_authorization())

        async def _handle_token_response(self, response: Response) -> None:
            if not self._renews:
                await super()._handle_token_response(response)
            elif not await self._handle_refresh_response(response):
                raise SignInNeeded("it wants you to sign in", hint="tarmac mcp-servers login NAME")

    where = redirect.url if redirect else "http://127.0.0.1:0/callback"
    metadata = OAuthClientMetadata.model_validate(
        {"client_name": "Tarmac", "redirect_uris": [where], "grant_types": ["authorization_code", "refresh_token"]}
    )
    kind = Renewing if redirect is None else OAuthClientProvider
    return kind(
        server_url=url,
        client_metadata=metadata,
        storage=tokens,
        redirect_handler=redirected,
        callback_handler=came_back,
    )
