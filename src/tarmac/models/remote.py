"""The base class of models behind an SDK: one client, created with the first request, and one path for every request.

import the SDK (in a thread) → translate the prompt → send → chunks → Completion;  any exception → ModelError

The SDK never retries, and every wait has a timeout. `bound`, an event hook of the HTTP client, limits what a server can
make us hold: the length of a line of its stream, and what its bytes unpack to. The SDKs join a line until its end
comes, and the HTTP client unpacks a whole piece at once: 64 KiB of gzip are 64 MiB.

normalized(messages) brings a conversation into the form that every provider accepts:
- Roles alternate. The user begins and ends.
- A message with calls is followed by one that begins with one result for each call, in order.
- Each id belongs to one call, and has a form that the provider accepts.

The messages of a task already have this form. Imported tasks, tasks that changed their model, and bugs may not. A
provider that rejects the history would reject it in every later request, too.
"""

import asyncio
import base64
import hashlib
import json
import re
import zlib
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from tarmac.errors import TarmacError
from tarmac.models import model_catalog
from tarmac.models.completion_builder import CompletionBuilder, used_ids
from tarmac.models.endpoint import Endpoint
from tarmac.models.failures import client_error, cut_stream, not_a_stream, sdk_error
from tarmac.models.messages import Blob, Image, Message, Part, Reasoning, Role, Text, ToolResult, ToolUse
from tarmac.models.provider import Chunk, Load, ModelError, ModelInfo, ModelSettings, Prompt

if TYPE_CHECKING:
    import httpx2

Event_co = TypeVar("Event_co", covariant=True)
Event = TypeVar("Event")
Client = TypeVar("Client", bound="SdkClient")
LONGEST_COMPLETION = 4_000_000  # characters; a longer one is a model that repeats itself
KEEPALIVE_FACTOR = 10  # times `read_timeout`: some servers send keep-alives while the model reasons
MOST_IMAGES = 20  # in one request; Anthropic accepts only small ones beyond that
MOST_IMAGE_BYTES = 20_000_000  # of base64 in one request
LONGEST_BODY = 16_000  # bytes to read of a response that is not a stream
IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


class HttpResponse(Protocol):
    """The part of an HTTP response that is used here."""

    @property
    def headers(self) -> Mapping[str, str]: ...

    def aiter_bytes(self) -> AsyncIterator[bytes]: ...


class EventStream(Protocol[Event_co]):
    """The stream that both SDKs return."""

    @property
    def response(self) -> HttpResponse: ...

    def __aiter__(self) -> AsyncIterator[Event_co]: ...

    async def close(self) -> None: ...


class SdkClient(Protocol):
    """The client of an SDK."""

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class EncodedImages:
    """The images of a prompt as base64. An image that is not sent is replaced by a note."""

    shown: Mapping[str, str]  # base64, by sha256
    why: str = ""  # no image is shown
    left_out: Mapping[str, str] = field(default_factory=dict)  # the reasons, by sha256

    def note(self, blob: Blob) -> str:
        why = self.left_out.get(blob.sha256) or self.why or "that can't be shown"
        return f"[an image ({blob.media_type}, {blob.size} bytes) {why}]"


class RemoteModel(ABC, Generic[Client, Event]):
    """A model behind an SDK. Several requests may run at once."""

    _largest_image = 20_000_000  # bytes of base64; the provider rejects the whole request with a larger one

    def __init__(self, info: ModelInfo, *, base_url: str, key: str, settings: ModelSettings) -> None:
        self._info = info
        self._key = key
        self._base_url = base_url
        self._settings = settings
        self._endpoint = Endpoint.of(info.id, base_url=base_url, key=key)
        self._client: Client | None = None
        self._client_lock = asyncio.Lock()
        self._looked_up = info.context_window is not None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._info.id}>"

    @property
    def info(self) -> ModelInfo:
        """After the first response, with the context window from genai-prices if it was unknown."""
        return self._info

    async def stream(self, prompt: Prompt, *, load: Load) -> AsyncGenerator[Chunk, None]:
        """See `provider.Model`."""
        builder = CompletionBuilder(used_ids(prompt.messages))
        read = self._reader(builder)
        failure: ModelError | None = None
        try:
            images = await self._images(prompt.messages, load)
            events = await self._send(await self._connected(), prompt, images)
            try:
                content_type = events.response.headers.get("content-type", "")
                if not content_type.lower().startswith("text/event-stream"):
                    raise not_a_stream(content_type, await _body_start(events.response), self._endpoint)
                iterator = aiter(events)
                while (event := await self._next(iterator)) is not None:
                    for chunk in read(event):
                        yield chunk
                    if builder.size > LONGEST_COMPLETION:
                        builder.stop = "max_tokens"
                        break
            finally:
                await _close(events)
            if builder.stop is None:
                raise cut_stream(self._endpoint, builder)
        except ModelError as error:
            failure = error
        except Exception as error:  # an error of the SDK, of httpx2, or of parsing an invalid response
            failure = sdk_error(error, self._endpoint, builder)
        if failure is not None:
            raise failure  # out here: the original error has the key in its request, and must not be the context
        await self._look_up()
        for last in builder.finish():
            yield last

    async def _next(self, iterator: AsyncIterator[Event]) -> Event | None:
        """The next event. The timeout also ends a stream of keep-alives, which the SDK does not report."""
        async with asyncio.timeout(self._settings.read_timeout * KEEPALIVE_FACTOR):
            return await anext(iterator, None)

    async def _connected(self) -> Client:
        async with self._client_lock:
            if self._client is None:
                try:
                    self._client = await asyncio.to_thread(self._make_client)
                except Exception as error:  # an error of the SDK, its HTTP client or the system
                    raise client_error(error, self._endpoint) from None
            return self._client

    async def aclose(self) -> None:
        """Close all connections. The next request opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _look_up(self) -> None:
        """Import genai-prices in a thread, and set the context window if it is unknown."""
        if not self._looked_up:
            self._looked_up = True
            if found := await asyncio.to_thread(model_catalog.context_window, self._info.id):
                self._info = replace(self._info, context_window=found)

    async def _images(self, messages: tuple[Message, ...], load: Load) -> EncodedImages:
        if not self._info.images:
            return EncodedImages({}, "that this model can't see")
        blobs, left_out = _chosen(messages, self._largest_image)
        if not blobs:
            return EncodedImages({}, left_out=left_out)
        return EncodedImages(await asyncio.to_thread(_encoded, blobs, load), left_out=left_out)

    @abstractmethod
    def _make_client(self) -> Client:
        """Import the SDK and create its client. Called in a thread."""

    @abstractmethod
    async def _send(self, client: Client, prompt: Prompt, images: EncodedImages) -> EventStream[Event]:
        """Send the request."""

    @abstractmethod
    def _reader(self, builder: CompletionBuilder) -> Callable[[Event], Iterable[Chunk]]:
        """A function that adds an event to the completion, and sets `builder.stop` at its end."""


async def _body_start(response: HttpResponse) -> bytes:
    """The beginning of a body, as far as it arrives within 2 s."""
    found = b""
    try:
        async with asyncio.timeout(2):
            async for piece in response.aiter_bytes():
                found += piece
                if len(found) > LONGEST_BODY:
                    break
    except Exception:  # cut, slow or invalid: the error has no details then
        pass
    return found[:LONGEST_BODY]


async def _close(events: EventStream[object]) -> None:
    """Close the response. First the generator of the SDK, which would be left to the garbage collector."""
    iterator = getattr(events, "_iterator", None)
    if isinstance(iterator, AsyncGenerator):
        await iterator.aclose()
    await events.close()


def _images(message: Message) -> list[Blob]:
    within = [part for part in message.parts if isinstance(part, ToolResult)]
    parts = [*message.parts, *(part for result in within for part in result.content)]
    return [part.blob for part in parts if isinstance(part, Image)]


def _chosen(messages: tuple[Message, ...], largest: int) -> tuple[dict[str, Blob], dict[str, str]]:
    """The images to send, the newest first, and why the others are left out. Providers limit their number and size."""
    chosen: dict[str, Blob] = {}
    left_out: dict[str, str] = {}
    room = MOST_IMAGE_BYTES
    for blob in (blob for message in reversed(messages) for blob in reversed(_images(message))):
        size = (blob.size + 2) // 3 * 4
        if blob.media_type not in IMAGE_TYPES or blob.sha256 in chosen or blob.sha256 in left_out:
            continue
        if size > largest:
            left_out[blob.sha256] = "that is too large to show"
        elif len(chosen) >= MOST_IMAGES or size > room:
            left_out[blob.sha256] = "that was left out in favour of newer ones"
        else:
            chosen[blob.sha256] = blob
            room -= size
    return chosen, left_out


def _encoded(blobs: Mapping[str, Blob], load: Load) -> dict[str, str]:
    encoded = {}
    for sha256, blob in blobs.items():
        try:
            encoded[sha256] = base64.b64encode(load(blob)).decode("ascii")
        except (OSError, TarmacError):  # its file is missing: continue without it
            continue
    return encoded


LONGEST_LINE = 8 << 20  # bytes: an answer of 4,000,000 letters as one event
MOST_STREAMED = 256 << 20  # bytes of all that one answer unpacks to
MOST_OTHERWISE = 1 << 20  # bytes of an answer that is not a stream: an error, a page
MOST_PACKED = 100  # times its size that packed text unpacks to, after the first MiB: events come to about 20
PIECE = 16 << 10  # bytes that are unpacked at a time
PACKED = frozenset({"gzip", "x-gzip", "deflate"})


async def bound(response: "httpx2.Response") -> None:
    """Put limits on a response before any of its body is read."""
    import httpx2

    class Stream(httpx2.AsyncByteStream):
        def __init__(self, inner: httpx2.AsyncByteStream) -> None:
            self._inner = inner

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for piece in self._inner:
                for part in limits.parts(piece):
                    yield part
                    if packed:  # else each piece is waited for
                        await asyncio.sleep(0)

        async def aclose(self) -> None:
            await self._inner.aclose()

    encoding = response.headers.get("content-encoding", "").strip().lower()
    packed = encoding in PACKED
    if encoding not in ("", "identity") and not packed:
        raise ModelError(f"the answer is packed with `{encoding[:20]}`, which is not supported", kind="malformed")
    streams = response.headers.get("content-type", "").lower().startswith("text/event-stream")
    limits = _Limits(packed=packed, most=MOST_STREAMED if streams else MOST_OTHERWISE)
    if packed:
        del response.headers["content-encoding"]
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    response.stream = Stream(response.stream)


class _Limits:
    """What came so far of one response; an SDK may stop reading and go on later."""

    def __init__(self, *, packed: bool, most: int) -> None:
        # 32: gzip or zlib, by its first bytes
        self._unpack = zlib.decompressobj(zlib.MAX_WBITS | 32) if packed else None
        self._most = most
        self._came = self._total = self._line = 0

    def parts(self, piece: bytes) -> Iterator[bytes]:
        """The bytes, unpacked; ModelError when a line, or all of it, is too long."""
        self._came += len(piece)
        if self._unpack is None:
            self._count(piece)
            yield piece
            return
        while piece:
            try:
                part = self._unpack.decompress(piece, PIECE)
            except zlib.error as error:
                raise ModelError(f"the answer can't be unpacked: {error}", kind="malformed") from None
            piece = self._unpack.unconsumed_tail
            self._count(part)
            if part:
                yield part

    def _count(self, part: bytes) -> None:
        self._total += len(part)
        end = max(part.rfind(b"\n"), part.rfind(b"\r"))
        self._line = self._line + len(part) if end < 0 else len(part) - end - 1
        if self._line > LONGEST_LINE:
            what = f"a line of the answer has more than {LONGEST_LINE >> 20} MiB"
            raise ModelError(what, kind="malformed", retryable=False)
        packed = self._unpack is not None
        most = min(self._most, (1 << 20) + MOST_PACKED * self._came) if packed else self._most
        if self._total > most:
            what = f"the answer has more than {most >> 20} MiB"
            raise ModelError(
                f"{what}, out of {self._came:,} bytes" if packed else what, kind="malformed", retryable=False
            )


NO_RESULT = "[this call has no result]"
ELSEWHERE = "[the result of an earlier call]"
CONTINUE = "[continue]"

FitId = Callable[[str], str]


def plain_id(id_: str) -> str:
    """An id that Anthropic and OpenAI accept: at most 40 letters, digits, _ and -."""
    return id_ if re.fullmatch(r"[A-Za-z0-9_-]{1,40}", id_) else f"call_{_digest(id_)[:24]}"


def short_id(id_: str) -> str:
    """An id that Mistral accepts: nine letters or digits."""
    return id_ if re.fullmatch(r"[A-Za-z0-9]{9}", id_) else _digest(id_)[:9]


def plain_name(name: str) -> str:
    """A tool name that Anthropic and OpenAI accept. The model may have called a tool that does not exist."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64] or "unnamed"


def _digest(id_: str) -> str:
    return hashlib.sha256(id_.encode("utf-8", "surrogatepass")).hexdigest()


def encodable(text: str) -> str:
    """The text without lone surrogates, which file names may contain and UTF-8 can't encode."""
    return text.encode("utf-8", "replace").decode("utf-8")


def json_object(arguments: str) -> str:
    """The arguments of a call as a JSON object: unchanged if they are one, otherwise wrapped as invalid.

    Many servers parse the arguments of earlier calls. They reject every request with broken ones.
    """
    text = encodable(arguments)
    try:
        found = json.loads(text.strip() or "{}", strict=False)  # line breaks in strings: the tool accepted them
        if isinstance(found, str):  # encoded twice: accepted, too
            found = json.loads(found, strict=False)
        whole = encodable(json.dumps(found, ensure_ascii=False, allow_nan=False))
        if not isinstance(found, dict):
            raise ValueError
    except (ValueError, RecursionError):
        return json.dumps({"INVALID_JSON": text}, ensure_ascii=False)
    try:
        return text if json.loads(text) == json.loads(whole) else whole
    except ValueError:
        return whole


def normalized(messages: Iterable[Message], fit: FitId = plain_id) -> list[Message]:
    turns: list[tuple[Role, list[Part]]] = [("user", [])]
    for message in messages:
        parts = list(_user_parts(message.parts) if message.role == "user" else _assistant_parts(message.parts))
        if not parts:
            continue
        if turns[-1][0] == message.role:
            turns[-1][1].extend(parts)
        else:
            turns.append((message.role, parts))
    if turns[-1][0] == "assistant":
        turns.append(("user", []))
    used: set[str] = set()
    calls: dict[str, str] = {}  # of the previous message: id in the task → id in the request
    result = []
    for role, parts in turns:
        if role == "assistant":
            calls = {}
            parts = [_renamed(part, calls, used, fit) if isinstance(part, ToolUse) else part for part in parts]
        else:
            parts = _results_first(parts, calls) or [Text(CONTINUE)]
        result.append(Message(role, tuple(parts)))
    return result


def _user_parts(parts: Iterable[Part]) -> Iterable[Part]:
    for part in parts:
        if isinstance(part, ToolResult | Image) or (isinstance(part, Text) and part.text.strip()):
            yield part


def _assistant_parts(parts: tuple[Part, ...]) -> Iterable[Part]:
    kept = [
        part
        for part in parts
        if isinstance(part, ToolUse | Reasoning) or (isinstance(part, Text) and part.text.strip())
    ]
    return kept if any(not isinstance(part, Reasoning) for part in kept) else ()


def _renamed(call: ToolUse, calls: dict[str, str], used: set[str], fit: FitId) -> ToolUse:
    name = fit(call.id)
    again = 1
    while name in used:
        again += 1
        name = fit(f"{call.id}#{again}")
    used.add(name)
    calls.setdefault(call.id, name)
    if calls[call.id] != name:  # the same id twice in one message: the first gets the result
        calls[f"{call.id}#{again}"] = name
    return ToolUse(name, plain_name(call.name), call.arguments)


def _results_first(parts: list[Part], calls: dict[str, str]) -> list[Part]:
    results: dict[str, ToolResult] = {}
    rest: list[Part] = []
    for part in parts:
        if not isinstance(part, ToolResult):
            rest.append(part)
        elif part.call in calls and part.call not in results:
            results[part.call] = part
        else:  # no provider accepts a result without its call
            rest += [Text(ELSEWHERE), *_user_parts(part.content)]
    missing = (Text(NO_RESULT),)
    first: list[Part] = []
    for call, name in calls.items():
        found = results.get(call)
        first.append(ToolResult(name, found.content, found.failed) if found else ToolResult(name, missing, failed=True))
    return first + rest
