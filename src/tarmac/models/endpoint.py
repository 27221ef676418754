"""Where a model is reached: its base URL and its key, checked and normalised.

normalized_url("localhost:11434", …) → ModelError "did you mean http://localhost:11434?"
normalized_url("https://host/v1/chat/completions", …) → "https://host/v1"
"""

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from tarmac.models.provider import ModelError

# The paths that an SDK appends to the base URL. Users copy them along. Anthropic's SDK appends /v1 too.
_APPENDED = {"anthropic": r"(?:/v1)?(?:/messages)?", "openai": r"(?:/chat/completions|/responses|/completions)?"}
_LOCAL = re.compile(r"localhost|127(?:\.\d+){3}|::1|0\.0\.0\.0")
SHORTEST_SECRET = 8  # masking a shorter one would mangle ordinary words


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The server behind a model, and the secrets that no message may contain."""

    model: str  # "provider/name"
    base_url: str  # without a password
    secrets: tuple[str, ...]

    @classmethod
    def of(cls, model: str, *, base_url: str, key: str) -> "Endpoint":
        password = urlsplit(base_url).password or ""
        secrets = tuple(secret for secret in (key, password) if len(secret) >= SHORTEST_SECRET)
        return cls(model, _without_password(base_url), secrets)

    def mask(self, text: str) -> str:
        """The text without keys and passwords."""
        for secret in self.secrets:
            text = text.replace(secret, "…")
        return text


def normalized_url(url: str, *, dialect: str, default: str | None) -> str:
    """A usable base URL. `default` is the provider's own: a URL without a path gets the path of that one."""
    text = url.strip()
    try:
        parts = urlsplit(text)
        valid = parts.scheme in ("http", "https") and parts.hostname and text.isprintable() and " " not in text
        _ = parts.port  # raises ValueError when it is not a number
    except ValueError:
        valid = False
    if not valid:
        quoted = "the base URL" if "@" in text else repr(text)  # it may contain a password
        bare = re.fullmatch(r"[\w.-]+(?::\d{1,5})?(?:/\S*)?", text)
        hint = f"did you mean http://{text}?" if bare else "use http://HOST:PORT/v1 or https://HOST/v1"
        raise ModelError(f"{quoted} is not a valid server address", kind="not_found", hint=hint)
    text = re.sub(rf"{_APPENDED.get(dialect, '')}/*\Z", "", text.rstrip("/"))
    path = urlsplit(default).path if default else ""
    return text + path if path == "/v1" and not urlsplit(text).path else text


def checked_key(key: str, provider: str, variable: str) -> str:
    """The key without surrounding blanks. ModelError if it can't be sent in a header."""
    text = key.strip()
    if not text.isascii() or not text.isprintable():
        where = f"check {variable}: " if variable else ""
        raise ModelError(
            f"the key for {provider} contains an invalid character",
            kind="auth",
            hint=f"{where}a line break or a quotation mark may have been copied along",
        )
    return text


def is_local(url: str) -> bool:
    """Whether the server runs on this machine. Such a server is never reached through a proxy."""
    try:
        return bool(_LOCAL.fullmatch(urlsplit(url).hostname or ""))
    except ValueError:
        return False


def _without_password(url: str) -> str:
    parts = urlsplit(url)
    return url.replace(f"{parts.username or ''}:{parts.password}@", "") if parts.password else url
