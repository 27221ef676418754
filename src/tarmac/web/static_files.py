"""The page itself: built by Vite into `static/`, and part of the wheel. All but index.html have a hash in their names.

The content security policy has a nonce for each response: xterm.js makes `<style>` elements, and gives them this nonce.
"""

import asyncio
import gzip
import secrets
from importlib import resources
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from tarmac.errors import TarmacError

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
