"""PURE: where a server is, and the key for it, as people write them → as a request can use them; or what is wrong.

address("localhost:11434", …) → ModelError "did you mean http://localhost:11434?"   …/v1/chat/completions → …/v1
"""

import re
from urllib.parse import urlsplit

from tarmac.models.provider import ModelError

# What an SDK adds by itself, and people copy along. Anthropic's adds /v1, too.
_ADDED = {"anthropic": r"(?:/v1)?(?:/messages)?", "openai": r"(?:/chat/completions|/responses|/completions)?"}
_LOCAL = re.compile(r"localhost|127(?:\.\d+){3}|::1|0\.0\.0\.0")


def address(url: str, *, dialect: str, usual: str | None) -> str:
    """The base URL that is meant. `usual`: the provider's own, whose path a bare server of that name has, too."""
    plain = url.strip()
    try:
        parts = urlsplit(plain)
        known = parts.scheme in ("http", "https") and parts.hostname and plain.isprintable() and " " not in plain
        _ = parts.port  # ValueError for one that is none
    except ValueError:
        known = False
    if not known:
        shown = "the base URL" if "@" in plain else repr(plain)
        bare = re.fullmatch(r"[\w.-]+(?::\d{1,5})?(?:/\S*)?", plain)
        hint = f"did you mean http://{plain}?" if bare else "http://HOST:PORT/v1, or https://…"
        raise ModelError(f"{shown} is no address of a server", kind="not_found", hint=hint)
    plain = re.sub(rf"{_ADDED.get(dialect, '')}/*\Z", "", plain.rstrip("/"))
    path = urlsplit(usual).path if usual else ""
    return plain + path if path == "/v1" and not urlsplit(plain).path else plain


def usable(key: str, provider: str, variable: str) -> str:
    """The key as it is sent; ModelError for one that can't be."""
    plain = key.strip()
    if not plain.isascii() or not plain.isprintable():
        where = f"look at {variable}: " if variable else ""
        raise ModelError(
            f"the key for {provider} holds a character that no key has",
            kind="auth",
            hint=f"{where}a line end, a quotation mark or the like was copied along",
        )
    return plain


def is_local(url: str) -> bool:
    """Whether it is a server on this machine: it is not reached through a proxy."""
    try:
        return bool(_LOCAL.fullmatch(urlsplit(url).hostname or ""))
    except ValueError:
        return False


def without_password(url: str) -> str:
    """As it may be shown."""
    parts = urlsplit(url)
    return url.replace(f"{parts.username or ''}:{parts.password}@", "") if parts.password else url
