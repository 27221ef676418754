"""What all models behind a network have in common: one SDK client, opened late, and one way for a request to go.

import the SDK (in a thread) → translate the prompt → ask → pieces → Answer;  anything raised → ModelError

The SDK never tries again by itself, and nothing waits for ever: there is a limit for connecting and one for silence.
"""

import asyncio
import base64
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Generic, Protocol, TypeVar
from urllib.parse import urlsplit

from tarmac.errors import TarmacError
from tarmac.models import catalog
from tarmac.models.address import without_password
from tarmac.models.draft import Draft, used_ids
from tarmac.models.failures import Asked, cut, not_a_stream, not_asked, translated
from tarmac.models.messages import Blob, Image, Message, ToolResult
from tarmac.models.provider import Chunk, Load, ModelError, ModelInfo, ModelSettings, Prompt

Event_co = TypeVar("Event_co", covariant=True)
Event = TypeVar("Event")
Client = TypeVar("Client", bound="Closing")
MOST_LETTERS = 4_000_000  # of one answer: no model is meant to say as much
SIGNS_OF_LIFE = 10  # times the limit for silence: some think for long, and their server says that it is there
MOST_PICTURES = 20  # in one request: with more of them Anthropic takes only small ones
MOST_PICTURED = 20_000_000  # bytes of base64, all together
MOST_SAID = 16_000  # bytes of what came in place of a stream
SHOWN = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


class Headed(Protocol):
    """A response, as far as we look at it."""

    @property
    def headers(self) -> Mapping[str, str]: ...

    def aiter_bytes(self) -> AsyncIterator[bytes]: ...


class Streaming(Protocol[Event_co]):
    """What both SDKs give for a request that streams."""

    @property
    def response(self) -> Headed: ...

    def __aiter__(self) -> AsyncIterator[Event_co]: ...

    async def close(self) -> None: ...


class Closing(Protocol):
    """What both SDKs call a client."""

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Pictures:
    """The images of a prompt, as text that can be sent; what can't be shown has a note in its place."""

    shown: Mapping[str, str]  # base64, by sha256
    why: str = ""  # not, when the model sees none
    left_out: Mapping[str, str] = field(default_factory=dict)  # why others are not, by sha256

    def note(self, blob: Blob) -> str:
        why = self.left_out.get(blob.sha256) or self.why or "that can not be shown"
        return f"[a picture ({blob.media_type}, {blob.size} bytes) {why}]"


class Remote(ABC, Generic[Client, Event]):
    """A model behind an SDK. Several requests may be under way at once."""

    _largest_picture = 20_000_000  # bytes, as base64: with a larger one the provider refuses the whole conversation

    def __init__(self, info: ModelInfo, *, base_url: str, key: str, settings: ModelSettings) -> None:
        self._info = info
        self._key = key
        self._base_url = base_url
        self._settings = settings
        self._asked = Asked(info.id, without_password(base_url), _secrets(key, base_url))
        self._client: Client | None = None
        self._opening = asyncio.Lock()
        self._looked_up = info.context_window is not None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._info.id}>"

    @property
    def info(self) -> ModelInfo:
        """After the first answer with the context window that genai-prices knows, if we knew none."""
        return self._info

    async def stream(self, prompt: Prompt, *, load: Load) -> AsyncGenerator[Chunk, None]:
        """See `provider.Model`."""
        draft = Draft(used_ids(prompt.messages))
        read = self._reader(draft)
        failure: ModelError | None = None
        try:
            pictures = await self._pictures(prompt.messages, load)
            events = await self._ask(await self._opened(), prompt, pictures)
            try:
                kind = events.response.headers.get("content-type", "")
                if not kind.lower().startswith("text/event-stream"):
                    raise not_a_stream(kind, await _beginning(events.response), self._asked)
                coming = aiter(events)
                while (event := await self._next(coming)) is not None:
                    for chunk in read(event):
                        yield chunk
                    if draft.size > MOST_LETTERS:  # a model that goes round in its own words
                        draft.stop = "max_tokens"
                        break
            finally:
                await _ended(events)
            if draft.stop is None:
                raise cut(self._asked, draft)
        except ModelError as error:
            failure = error
        except Exception as error:  # whatever the SDK raises: an SDK's own, httpx2's, or one of reading nonsense
            failure = translated(error, self._asked, draft)
        if failure is not None:
            raise failure  # out here, so that what was raised (and has the key in its request) is not its context
        await self._look_up()
        for last in draft.finish():
            yield last

    async def _next(self, coming: AsyncIterator[Event]) -> Event | None:
        """The next event, with an end also for who sends nothing but signs of life: the SDK does not tell of those."""
        async with asyncio.timeout(self._settings.read_timeout * SIGNS_OF_LIFE):
            return await anext(coming, None)

    async def _opened(self) -> Client:
        async with self._opening:
            if self._client is None:
                try:
                    self._client = await asyncio.to_thread(self._open)
                except Exception as error:  # whatever the SDK, its HTTP client or the system has against it
                    raise not_asked(error, self._asked) from None
            return self._client

    async def aclose(self) -> None:
        """Let go of connections; a next request opens them again."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _look_up(self) -> None:
        """Import the prices while it is in a thread, and fill in the context window."""
        if not self._looked_up:
            self._looked_up = True
            if found := await asyncio.to_thread(catalog.window, self._info.id):
                self._info = replace(self._info, context_window=found)

    async def _pictures(self, messages: tuple[Message, ...], load: Load) -> Pictures:
        if not self._info.images:
            return Pictures({}, "that this model can't see")
        blobs, left_out = _chosen(messages, self._largest_picture)
        if not blobs:
            return Pictures({}, left_out=left_out)
        return Pictures(await asyncio.to_thread(_encoded, blobs, load), left_out=left_out)

    @abstractmethod
    def _open(self) -> Client:
        """The SDK's client; runs in a thread, and imports the SDK."""

    @abstractmethod
    async def _ask(self, client: Client, prompt: Prompt, pictures: Pictures) -> Streaming[Event]:
        """Send the request."""

    @abstractmethod
    def _reader(self, draft: Draft) -> Callable[[Event], Iterable[Chunk]]:
        """Called with every event, says what it adds; sets `draft.stop` once the answer has its end."""


async def _beginning(response: Headed) -> bytes:
    """What it said instead of streaming, as far as it comes soon."""
    found = b""
    try:
        async with asyncio.timeout(2):
            async for piece in response.aiter_bytes():
                found += piece
                if len(found) > MOST_SAID:
                    break
    except Exception:  # cut, slow or nonsense: then there is nothing to tell
        pass
    return found[:MOST_SAID]


async def _ended(events: Streaming[object]) -> None:
    """Close the response, and first the SDK's generator, which would be left to the garbage collector."""
    iterator = getattr(events, "_iterator", None)
    if isinstance(iterator, AsyncGenerator):
        await iterator.aclose()
    await events.close()


def _images(message: Message) -> list[Blob]:
    within = [part for part in message.parts if isinstance(part, ToolResult)]
    parts = [*message.parts, *(part for result in within for part in result.content)]
    return [part.blob for part in parts if isinstance(part, Image)]


def _chosen(messages: tuple[Message, ...], largest: int) -> tuple[dict[str, Blob], dict[str, str]]:
    """The pictures that are shown, the last ones first; and why others are not: no provider takes any number."""
    chosen: dict[str, Blob] = {}
    left_out: dict[str, str] = {}
    room = MOST_PICTURED
    for blob in (blob for message in reversed(messages) for blob in reversed(_images(message))):
        size = (blob.size + 2) // 3 * 4
        if blob.media_type not in SHOWN or blob.sha256 in chosen or blob.sha256 in left_out:
            continue
        if size > largest:
            left_out[blob.sha256] = "that is too large to be shown"
        elif len(chosen) >= MOST_PICTURES or size > room:
            left_out[blob.sha256] = "that is not shown any more, as there are newer ones"
        else:
            chosen[blob.sha256] = blob
            room -= size
    return chosen, left_out


def _encoded(blobs: Mapping[str, Blob], load: Load) -> dict[str, str]:
    encoded = {}
    for sha256, blob in blobs.items():
        try:
            encoded[sha256] = base64.b64encode(load(blob)).decode("ascii")
        except (OSError, TarmacError):  # its file is gone: the conversation goes on without it
            continue
    return encoded


def _secrets(key: str, base_url: str) -> tuple[str, ...]:
    password = urlsplit(base_url).password
    return tuple(secret for secret in (key, password) if secret)
