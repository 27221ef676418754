"""Whatever goes wrong between us and a provider → one ModelError, without the key in its words.

Both SDKs have the same errors under different roots, so they are known here by shape: a status and a response, a
connection, a stream. What was raised is not kept as a cause: its request has the key in its headers.
"""

import json
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

from tarmac.models.address import is_local
from tarmac.models.draft import Draft
from tarmac.models.provider import ErrorKind, ModelError

BY_STATUS: dict[int, ErrorKind] = {
    400: "bad_request",
    401: "auth",
    403: "auth",
    404: "not_found",
    408: "server",
    409: "server",
    413: "too_long",
    429: "rate_limit",
    503: "overloaded",
    529: "overloaded",
}
# Words for an error inside a stream, where the status was 200: Anthropic's, OpenAI's; others send a number
BY_WORD: dict[str, ErrorKind] = {
    "overloaded_error": "overloaded",
    "rate_limit_error": "rate_limit",
    "api_error": "server",
    "timeout_error": "server",
    "server_error": "server",
    "authentication_error": "auth",
    "permission_error": "auth",
    "not_found_error": "not_found",
    "request_too_large": "too_long",
    "invalid_request_error": "bad_request",
    "billing_error": "bad_request",
    "rate_limit_exceeded": "rate_limit",
    "insufficient_quota": "rate_limit",
    "context_length_exceeded": "too_long",
    "invalid_prompt": "bad_request",
}
TOO_LONG = re.compile(
    r"prompt is too long|context[ _]length|context[ _]?window|context[ _](limit|size)|maximum context|"
    r"exceed_context_size|too many tokens|input token count|reduce the length|input is too long",
    re.IGNORECASE,
)
OF_OURS = re.compile(r"invalid|image|policy")  # in a word for an error: what we sent is wrong, and stays so
NO_MONEY = re.compile(r"insufficient_quota|credit balance|billing|insufficient balance", re.IGNORECASE)
LATER = re.compile(
    r'"?retryDelay"?\s*[:=]\s*"?(?P<delay>\d+(?:\.\d+)?)s|'
    r"try again in (?:(?P<h>\d+)h)?(?:(?P<m>\d+)m(?!s))?(?:(?P<s>\d+(?:\.\d+)?) ?(?P<unit>ms|s)\b)?"
)
LONGEST = 600  # characters of a provider's own words


@dataclass(frozen=True, slots=True)
class Asked:
    """Who was asked, and what must not be told."""

    model: str  # "provider/name"
    base_url: str
    secrets: tuple[str, ...]

    def hide(self, text: str) -> str:
        """The text without keys."""
        for secret in self.secrets:
            text = text.replace(secret, "…")
        return text


def translated(error: Exception, asked: Asked, draft: Draft) -> ModelError:
    """What the SDK raised, as ours, with what had come until then."""
    status = getattr(error, "status_code", None)
    response = getattr(error, "response", None)
    names = {each.__name__ for each in type(error).__mro__}  # httpx2's are not ours to import
    body = getattr(error, "body", None)
    if isinstance(status, int) and response is not None:
        return _refused(status, dict(response.headers), body, asked, draft)
    if names & {"APITimeoutError", "TimeoutException", "TimeoutError"}:
        return _failure("connection", f"{asked.model}: no answer in time from {asked.base_url}", asked, draft)
    if "APIConnectionError" in names or "TransportError" in names:
        if draft.parts or _mid_stream(error):
            return _failure("cut", f"{asked.model}: the connection broke in the middle of the answer", asked, draft)
        why = _reason(error)
        return _failure(
            "connection",
            f"{asked.model}: {asked.base_url} can't be reached{': ' + why if why else ''}",
            asked,
            draft,
            hint="is the server running, and the base URL right?" if is_local(asked.base_url) else "",
        )
    if "APIError" in names:  # an error that came as an event of the stream
        return said_in_stream(body, asked, draft)
    words = f"{asked.model} sent what can't be read: {type(error).__name__}: {error}"
    return _failure("malformed", words, asked, draft)


def not_a_stream(content_type: str, body: bytes, asked: Asked) -> ModelError:
    """A page, or a document, where a stream was asked for."""
    try:
        found = json.loads(body)
        said = _words(found)[0] if isinstance(found, dict) and found.get("error") else ""
    except (ValueError, RecursionError):
        said = ""
    what = f"{asked.model}: {asked.base_url} answered with {content_type or 'nothing known'}, not with a stream"
    return ModelError(
        asked.hide(f"{what}: {said}" if said else what),
        kind="malformed",
        status=200,
        retryable=False,
        hint="is the base URL right? One for OpenAI's dialect mostly ends with /v1",
    )


def not_asked(error: Exception, asked: Asked) -> ModelError:
    """We could not even begin: something is missing here, or set wrongly."""
    why = re.sub(r"//[^/@\s]*@", "//", f"{type(error).__name__}: {error}")  # a proxy's password
    return ModelError(
        asked.hide(f"{asked.model} can't be asked from here: {why}"),
        kind="unknown",
        hint="look at what the environment says of proxies and certificates (HTTPS_PROXY, ALL_PROXY, SSL_CERT_FILE)",
    )


def said_in_stream(body: object, asked: Asked, draft: Draft) -> ModelError:
    """An error that came as an event."""
    return _refused(200, {}, body, asked, draft)


def cut(asked: Asked, draft: Draft) -> ModelError:
    """A stream that ended before the answer did."""
    return _failure("cut", f"{asked.model}: the answer ended in the middle", asked, draft)


def _refused(status: int, headers: Mapping[str, str], body: object, asked: Asked, draft: Draft) -> ModelError:
    said, word = _words(body)
    everything = f"{said} {word}"
    kind = BY_STATUS.get(status, "server" if status >= 500 else "not_found" if 300 <= status < 400 else "bad_request")
    if status == 200:
        code = int(word) if word.isdigit() else 0
        kind = BY_WORD.get(word, BY_STATUS.get(code, "bad_request" if OF_OURS.search(word) else "server"))
    if kind == "bad_request" and TOO_LONG.search(everything):
        kind = "too_long"
    money = bool(NO_MONEY.search(everything)) or status == 402
    retryable: bool | None = False if money else None
    told = headers.get("x-should-retry", "").lower()
    if told in ("true", "false") and not money:
        retryable = told == "true"
    return ModelError(
        asked.hide(f"{asked.model}: {said or 'no words'}" + (f" ({status})" if status != 200 else "")),
        kind=kind,
        status=status if status != 200 else None,
        retry_after=retry_after(headers, said if kind in ("rate_limit", "overloaded") else ""),
        retryable=retryable,
        received=draft.parts,
        usage=draft.usage,
        hint=_hint(kind, asked) if not money else "the account has no money left, or a limit is reached",
    )


def _failure(kind: ErrorKind, what: str, asked: Asked, draft: Draft, *, hint: str = "") -> ModelError:
    return ModelError(asked.hide(what), kind=kind, received=draft.parts, usage=draft.usage, hint=hint)


def _hint(kind: ErrorKind, asked: Asked) -> str:
    match kind:
        case "auth":
            return f"is the key for {asked.model.partition('/')[0]} right, and may it use this model?"
        case "not_found":
            bare = not asked.model.startswith("anthropic/") and not urlsplit(asked.base_url).path.strip("/")
            return "is the model's name right, and the base URL?" + (" Such a one mostly ends with /v1" if bare else "")
        case _:
            return ""


def _words(body: object) -> tuple[str, str]:
    """What an error's body says to people, and the one word it is filed under."""
    inner = body.get("error", body) if isinstance(body, Mapping) else body
    if isinstance(inner, list) and inner:  # Google wraps it once more
        inner = inner[0].get("error", inner[0]) if isinstance(inner[0], Mapping) else inner[0]
    if not isinstance(inner, Mapping):
        return _short(inner if isinstance(inner, str) else json.dumps(inner) if inner else ""), ""
    said = inner.get("message") or inner.get("detail") or json.dumps(dict(inner), default=str)
    word = inner.get("code") or inner.get("type") or ""
    details = json.dumps(inner.get("details"), default=str) if inner.get("details") else ""
    delay = LATER.search(details)
    return _short(str(said)) + (f" ({delay[0]})" if delay else ""), str(word)


def _short(text: str) -> str:
    plain = re.sub(r"<[^>]{0,500}>|\s+", " ", text).strip() if "<html" in text.lower() else text.strip()
    return plain if len(plain) <= LONGEST else f"{plain[:LONGEST]}…"


def _reason(error: BaseException) -> str:
    """The system's own words: "Connection refused"."""
    seen: BaseException | None = error
    while seen is not None and not (isinstance(seen, OSError) and seen.errno):
        seen = seen.__cause__ or seen.__context__
    if not isinstance(seen, OSError) or seen.errno is None:
        return ""
    return os.strerror(seen.errno) if seen.errno > 0 else str(seen.strerror or "")  # a name that is not found: < 0


def _mid_stream(error: Exception) -> bool:
    return any("RemoteProtocolError" in type(each).__name__ for each in (error, error.__cause__) if each)


def retry_after(headers: Mapping[str, str], said: str = "", *, now: datetime | None = None) -> float | None:
    """How many seconds the provider wants us to wait: by header, else by its words."""
    small = {name.lower(): value for name, value in headers.items()}
    try:
        if "retry-after-ms" in small:
            return _sane(float(small["retry-after-ms"]) / 1000)
        if "retry-after" in small:
            return _sane(_seconds(small["retry-after"], now or datetime.now(UTC)))
    except (ValueError, OverflowError):
        pass
    if found := LATER.search(said):
        seconds = float(found["delay"] or found["s"] or 0) / (1000 if found["unit"] == "ms" else 1)
        return seconds + 60 * int(found["m"] or 0) + 3600 * int(found["h"] or 0) or None
    return None


def _seconds(text: str, now: datetime) -> float:
    try:
        return float(text)
    except ValueError:
        then = parsedate_to_datetime(text)
        return (then if then.tzinfo else then.replace(tzinfo=UTC)).timestamp() - now.timestamp()


def _sane(seconds: float) -> float | None:
    return max(0.0, seconds) if math.isfinite(seconds) else None
