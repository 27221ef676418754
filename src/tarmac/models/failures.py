"""Turn every failure of a request into a ModelError whose message contains no key.

The two SDKs have similar errors with different base classes. They are recognised by their attributes and class names.
The original error is not kept as the cause, because its request has the key in the headers.
"""

import json
import math
import os
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

from tarmac.models.completion_builder import CompletionBuilder
from tarmac.models.endpoint import Endpoint, is_local
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
# Error codes inside a stream with status 200, of Anthropic and OpenAI. Other servers send a number.
BY_CODE: dict[str, ErrorKind] = {
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
CLIENT_ERROR = re.compile(r"invalid|image|policy")  # in a code: the request is wrong, and a retry can't help
NO_CREDIT = re.compile(r"insufficient_quota|credit balance|billing|insufficient balance", re.IGNORECASE)
RETRY_DELAY = re.compile(
    r'"?retryDelay"?\s*[:=]\s*"?(?P<delay>\d+(?:\.\d+)?)s|'
    r"try again in (?:(?P<h>\d+)h)?(?:(?P<m>\d+)m(?!s))?(?:(?P<s>\d+(?:\.\d+)?) ?(?P<unit>ms|s)\b)?"
)
LONGEST_MESSAGE = 600  # characters of a provider's message


def sdk_error(error: Exception, endpoint: Endpoint, builder: CompletionBuilder) -> ModelError:
    """An exception of the SDK as a ModelError, with what was received before."""
    if isinstance(error.__cause__, ModelError):  # ours, raised while the SDK read the response
        return error.__cause__
    status = getattr(error, "status_code", None)
    response = getattr(error, "response", None)
    names = {each.__name__ for each in type(error).__mro__}  # httpx2 is not imported here
    body = getattr(error, "body", None)
    if isinstance(status, int) and response is not None:
        return _rejected(status, dict(response.headers), body, endpoint, builder)
    if names & {"APITimeoutError", "TimeoutException", "TimeoutError"}:
        return _failure(
            "connection", f"{endpoint.model}: no response in time from {endpoint.base_url}", endpoint, builder
        )
    if "APIConnectionError" in names or "TransportError" in names:
        if builder.parts or _mid_stream(error):
            return _failure("cut", f"{endpoint.model}: the connection broke during the response", endpoint, builder)
        why = _reason(error)
        return _failure(
            "connection",
            f"{endpoint.model}: {endpoint.base_url} can't be reached{': ' + why if why else ''}",
            endpoint,
            builder,
            hint="check that the server is running, and that the base URL is right"
            if is_local(endpoint.base_url)
            else "",
        )
    if "APIError" in names:  # an error event in the stream
        return stream_error(body, endpoint, builder)
    what = f"{endpoint.model}: the response is invalid: {type(error).__name__}: {error}"
    return _failure("malformed", what, endpoint, builder)


def not_a_stream(content_type: str, body: bytes, endpoint: Endpoint) -> ModelError:
    """A response that is not an event stream, such as an HTML page."""
    try:
        found = json.loads(body)
        message = _message(found)[0] if isinstance(found, dict) and found.get("error") else ""
    except (ValueError, RecursionError):
        message = ""
    what = (
        f"{endpoint.model}: {endpoint.base_url} returned {content_type or 'no content type'} instead of an event stream"
    )
    return ModelError(
        endpoint.mask(f"{what}: {message}" if message else what),
        kind="malformed",
        status=200,
        retryable=False,
        hint="check the base URL; for OpenAI-compatible servers it usually ends with /v1",
    )


def client_error(error: Exception, endpoint: Endpoint) -> ModelError:
    """The client of the SDK could not be created."""
    why = re.sub(r"//[^/@\s]*@", "//", f"{type(error).__name__}: {error}")  # the password of a proxy
    return ModelError(
        endpoint.mask(f"{endpoint.model}: no request can be sent: {why}"),
        kind="unknown",
        hint="check the environment variables for proxies and certificates (HTTPS_PROXY, ALL_PROXY, SSL_CERT_FILE)",
    )


def stream_error(body: object, endpoint: Endpoint, builder: CompletionBuilder) -> ModelError:
    """An error event in a stream."""
    return _rejected(200, {}, body, endpoint, builder)


def cut_stream(endpoint: Endpoint, builder: CompletionBuilder) -> ModelError:
    """A stream that ended before the response was complete."""
    return _failure("cut", f"{endpoint.model}: the response ended early", endpoint, builder)


def _rejected(
    status: int, headers: Mapping[str, str], body: object, endpoint: Endpoint, builder: CompletionBuilder
) -> ModelError:
    message, code = _message(body)
    everything = f"{message} {code}"
    kind = BY_STATUS.get(status, "server" if status >= 500 else "not_found" if 300 <= status < 400 else "bad_request")
    if status == 200:
        number = int(code) if code.isdigit() else 0
        kind = BY_CODE.get(code, BY_STATUS.get(number, "bad_request" if CLIENT_ERROR.search(code) else "server"))
    if kind == "bad_request" and TOO_LONG.search(everything):
        kind = "too_long"
    no_credit = bool(NO_CREDIT.search(everything)) or status == 402
    retryable: bool | None = False if no_credit else None
    should_retry = headers.get("x-should-retry", "").lower()
    if should_retry in ("true", "false") and not no_credit:
        retryable = should_retry == "true"
    return ModelError(
        endpoint.mask(f"{endpoint.model}: {message or 'no message'}" + (f" ({status})" if status != 200 else "")),
        kind=kind,
        status=status if status != 200 else None,
        retry_after=retry_after(headers, message if kind in ("rate_limit", "overloaded") else ""),
        retryable=retryable,
        received=builder.parts,
        usage=builder.usage,
        hint=_hint(kind, endpoint) if not no_credit else "the account has no credit left, or reached its limit",
    )


def _failure(
    kind: ErrorKind, what: str, endpoint: Endpoint, builder: CompletionBuilder, *, hint: str = ""
) -> ModelError:
    return ModelError(endpoint.mask(what), kind=kind, received=builder.parts, usage=builder.usage, hint=hint)


def _hint(kind: ErrorKind, endpoint: Endpoint) -> str:
    match kind:
        case "auth":
            return f"check the key for {endpoint.model.partition('/')[0]}, and that it may use this model"
        case "not_found":
            bare = not endpoint.model.startswith("anthropic/") and not urlsplit(endpoint.base_url).path.strip("/")
            return "check the name of the model and the base URL" + (", which usually ends with /v1" if bare else "")
        case _:
            return ""


def _message(body: object) -> tuple[str, str]:
    """The message and the code of an error body."""
    inner = body.get("error", body) if isinstance(body, Mapping) else body
    if isinstance(inner, list) and inner:  # Google wraps it in a list
        inner = inner[0].get("error", inner[0]) if isinstance(inner[0], Mapping) else inner[0]
    if not isinstance(inner, Mapping):
        return _short(inner if isinstance(inner, str) else json.dumps(inner) if inner else ""), ""
    message = inner.get("message") or inner.get("detail") or json.dumps(dict(inner), default=str)
    code = inner.get("code") or inner.get("type") or ""
    details = json.dumps(inner.get("details"), default=str) if inner.get("details") else ""
    delay = RETRY_DELAY.search(details)
    return _short(str(message)) + (f" ({delay[0]})" if delay else ""), str(code)


def _short(text: str) -> str:
    plain = re.sub(r"<[^>]{0,500}>|\s+", " ", text).strip() if "<html" in text.lower() else text.strip()
    return plain if len(plain) <= LONGEST_MESSAGE else f"{plain[:LONGEST_MESSAGE]}…"


def _reason(error: BaseException) -> str:
    """The message of the system, such as "Connection refused"."""
    seen: BaseException | None = error
    while seen is not None and not (isinstance(seen, OSError) and seen.errno):
        seen = seen.__cause__ or seen.__context__
    if not isinstance(seen, OSError) or seen.errno is None:
        return ""
    return os.strerror(seen.errno) if seen.errno > 0 else str(seen.strerror or "")  # negative: a name lookup failed


def _mid_stream(error: Exception) -> bool:
    return any("RemoteProtocolError" in type(each).__name__ for each in (error, error.__cause__) if each)


def retry_after(headers: Mapping[str, str], message: str = "", *, now: datetime | None = None) -> float | None:
    """The seconds to wait, from the headers or from the message."""
    lower = {name.lower(): value for name, value in headers.items()}
    try:
        if "retry-after-ms" in lower:
            return _finite(float(lower["retry-after-ms"]) / 1000)
        if "retry-after" in lower:
            return _finite(_seconds(lower["retry-after"], now or datetime.now(UTC)))
    except (ValueError, OverflowError):
        pass
    if found := RETRY_DELAY.search(message):
        seconds = float(found["delay"] or found["s"] or 0) / (1000 if found["unit"] == "ms" else 1)
        return seconds + 60 * int(found["m"] or 0) + 3600 * int(found["h"] or 0) or None
    return None


def _seconds(text: str, now: datetime) -> float:
    try:
        return float(text)
    except ValueError:
        then = parsedate_to_datetime(text)
        return (then if then.tzinfo else then.replace(tzinfo=UTC)).timestamp() - now.timestamp()


def _finite(seconds: float) -> float | None:
    return max(0.0, seconds) if math.isfinite(seconds) else None
