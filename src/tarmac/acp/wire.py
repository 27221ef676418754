"""Lines of JSON-RPC 2.0. PURE: bytes in, messages out; and back.

bytes → Lines.feed() → [Request | Notification | Response | Bad] …

No input stops the parser. Half a line is held, a batch is split, and a line that is too long is dropped. Invalid input
becomes `Bad`, with the answer to send, if any.
"""

from dataclasses import dataclass
from typing import Final

import msgspec

LONGEST: Final = 64 << 20  # bytes of one line: a few large files, images
MOST_IN_BATCH: Final = 1000

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
AUTH_REQUIRED: Final = -32000
NOT_FOUND: Final = -32002
DENIED: Final = -32010  # ours: the policy or the person said no
CANCELLED: Final = -32800

Id = str | int | None
Json = object  # what JSON can hold


@dataclass(frozen=True, slots=True)
class RpcRequest:
    """The other side asks; it wants a response with this id."""

    id: Id
    method: str
    params: Json


@dataclass(frozen=True, slots=True)
class Notification:
    """The other side tells."""

    method: str
    params: Json


@dataclass(frozen=True, slots=True)
class Response:
    """The other side answers."""

    id: Id
    result: Json = None
    error: "Error | None" = None


@dataclass(frozen=True, slots=True)
class Error:
    """Why a request has no result."""

    code: int
    message: str
    data: Json = None


@dataclass(frozen=True, slots=True)
class Bad:
    """No message, and what to say about it; with no id to answer to, it is told with a null one, as JSON-RPC wants."""

    error: Error
    id: Id = None
    answer: bool = True  # a response that makes no sense gets none: the two sides would go on for ever


Message = RpcRequest | Notification | Response | Bad


class LineFrames:
    """Feed it reads; it gives messages in order."""

    def __init__(self, *, longest: int = LONGEST) -> None:
        self._longest = longest
        self._held: list[bytes] = []
        self._size = 0
        self._skipping = False  # the rest of a line that was too long

    def feed(self, data: bytes) -> list[Message]:
        messages: list[Message] = []
        *whole, rest = data.split(b"\n")
        for line in whole:
            if self._skipping:
                self._skipping = False
                continue
            self._hold(line)
            if self._skipping:  # it grew too long with its very end
                messages.append(_too_long(self._longest))
                self._skipping = False
                continue
            messages += parse(b"".join(self._held))
            self._held.clear()
            self._size = 0
        if not self._skipping:
            self._hold(rest)
            if self._skipping:
                messages.append(_too_long(self._longest))
        return messages

    @property
    def half(self) -> int:
        """How many bytes of an unfinished line are held."""
        return self._size

    def _hold(self, piece: bytes) -> None:
        if not piece:
            return
        self._size += len(piece)
        if self._size > self._longest:
            self._held.clear()
            self._size = 0
            self._skipping = True
        else:
            self._held.append(piece)


def parse(line: bytes) -> list[Message]:
    """The messages of one line: none (a blank one), one, or those of a batch."""
    line = line.strip()
    if not line:
        return []
    try:
        found = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return [Bad(Error(PARSE_ERROR, f"this line is not valid JSON: {error}", data=_shown(line)))]
    if isinstance(found, list):
        if not 0 < len(found) <= MOST_IN_BATCH:
            return [Bad(Error(INVALID_REQUEST, f"a batch of {len(found):,} messages"))]
        return [_message(each) for each in found]
    return [_message(found)]


def _message(found: Json) -> Message:
    if not isinstance(found, dict):
        return Bad(Error(INVALID_REQUEST, f"a message is an object, not {_kind(found)}"))
    id = found.get("id")
    if isinstance(id, bool) or not isinstance(id, str | int | None):
        if not (isinstance(id, float) and id.is_integer()):
            return Bad(Error(INVALID_REQUEST, f"an id is a text or a whole number, not {_kind(id)}"))
        id = int(id)
    method = found.get("method")
    if isinstance(method, str):
        params = found.get("params")
        if params is not None and not isinstance(params, dict | list):
            if "id" in found:
                return Bad(Error(INVALID_PARAMS, f"params are an object, not {_kind(params)}"), id)
            return Bad(Error(INVALID_PARAMS, f"params are an object, not {_kind(params)}"), answer=False)
        return RpcRequest(id, method, params) if "id" in found else Notification(method, params)
    if method is not None:
        return Bad(Error(INVALID_REQUEST, f"a method is a text, not {_kind(method)}"), id, answer="id" in found)
    if "error" in found and found["error"] is not None:
        return (
            Response(id, error=_error(found["error"])) if "id" in found else Bad(_error(found["error"]), answer=False)
        )
    if "result" in found or "error" in found:
        return Response(id, found.get("result"))
    return Bad(Error(INVALID_REQUEST, "neither a request nor a response: it has no method, result or error"), id)


def _error(found: Json) -> Error:
    if not isinstance(found, dict):
        return Error(INTERNAL_ERROR, str(found)[:500])
    code, message = found.get("code"), found.get("message")
    return Error(
        code if isinstance(code, int) and not isinstance(code, bool) else INTERNAL_ERROR,
        message if isinstance(message, str) else "",
        found.get("data"),
    )


def encode(message: RpcRequest | Notification | Response | Bad) -> bytes:
    """One line; whatever texts hold, it has no newline in it."""
    body: dict[str, object] = {"jsonrpc": "2.0"}
    match message:
        case RpcRequest(id=id, method=method, params=params):
            body |= {"id": id, "method": method}
            if params is not None:
                body["params"] = params
        case Notification(method=method, params=params):
            body["method"] = method
            if params is not None:
                body["params"] = params
        case Response(id=id, error=None, result=result):
            body |= {"id": id, "result": result}
        case Response(id=id, error=Error() as error) | Bad(id=id, error=error):
            told: dict[str, object] = {"code": error.code, "message": error.message}
            if error.data is not None:
                told["data"] = error.data
            body |= {"id": id, "error": told}
    try:
        return msgspec.json.encode(body) + b"\n"
    except UnicodeEncodeError:  # a lone surrogate: bytes of a file name that were no text
        return msgspec.json.encode(_sound(body)) + b"\n"


def _sound(value: Json) -> Json:
    """The same with text that can be sent."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_sound(key): _sound(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_sound(each) for each in value]
    return value


def _too_long(longest: int) -> Bad:
    return Bad(Error(INVALID_REQUEST, f"a line of more than {longest:,} bytes was thrown away"))


def _kind(value: Json) -> str:
    names = {dict: "an object", list: "an array", str: "a text", bool: "a truth value", type(None): "null"}
    return names.get(type(value), "a number")


def _shown(line: bytes) -> str:
    return line[:80].decode("utf-8", "replace")
