"""The interface of every language model: requests, chunks, errors, settings.

model.stream(prompt, load=…) → TextDelta | ReasoningDelta | CallDelta …, then one Completion; or ModelError

A model never retries. The caller does, so that the user can see it. A model keeps no state between requests.
"""

from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from tarmac.errors import TarmacError
from tarmac.models.messages import NO_USAGE, Blob, Message, Part, StopReason, Usage

Load = Callable[[Blob], bytes]


@dataclass(frozen=True, slots=True)
class ToolSchema:
    """The description of a tool that a model receives."""

    name: str
    description: str
    parameters: Mapping[str, object]  # JSON schema of an object


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """US dollars for a million tokens, as configured by the user or by a script."""

    input: float
    output: float
    cache_reads: float | None = None  # None: the price of input
    cache_writes: float | None = None

    def of(self, usage: Usage) -> float:
        reads = self.input if self.cache_reads is None else self.cache_reads
        writes = self.input if self.cache_writes is None else self.cache_writes
        cached = usage.cache_reads * reads + usage.cache_writes * writes
        return (usage.input * self.input + usage.output * self.output + cached) / 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelInfo:
    """What is known about a model."""

    id: str  # "provider/name"
    context_window: int | None = None  # tokens; None: unknown
    max_output: int | None = None
    images: bool = False  # accepts images
    native_tools: bool = True  # False: XmlCalls translates its tool calls
    caching: bool = False  # caches the prefix of a prompt where we mark it
    scripted: bool = False  # replays a file; its text does not depend on the prompt
    price: Price | None = None  # as configured; otherwise `catalog.price()` looks it up

    @property
    def provider(self) -> str:
        return self.id.partition("/")[0]

    @property
    def name(self) -> str:
        return self.id.partition("/")[2]


@dataclass(frozen=True, slots=True)
class Prompt:
    """One request. Messages may begin and end with either role. Results are in the message after their calls."""

    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSchema, ...] = ()
    max_tokens: int | None = None  # of the completion; None: the maximum of the model
    cache_key: str = ""  # the same for requests that share a prefix


@dataclass(frozen=True, slots=True)
class TextDelta:
    """The next piece of the text."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """The next piece of the reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class CallDelta:
    """The next piece of a call's arguments, with its whole `id` and `name`. Calls may interleave by `index`."""

    index: int  # 0, 1, … in the order of the calls in the Completion
    id: str
    name: str
    arguments: str  # a piece of JSON text; "" in the first of a call


@dataclass(frozen=True, slots=True)
class Completion:
    """The whole response, in order. It is the last chunk of every stream that did not fail."""

    parts: tuple[Part, ...]  # Text, Reasoning, ToolUse
    stop: StopReason
    usage: Usage = NO_USAGE


Chunk = TextDelta | ReasoningDelta | CallDelta | Completion

ErrorKind = Literal[
    "rate_limit",  # too many requests; `retry_after` if the provider named a time
    "overloaded",  # the provider has no capacity now
    "server",  # an internal error of the provider
    "connection",  # not reached, or no data in time
    "cut",  # the response began and did not end
    "malformed",  # the response does not follow the provider's API
    "auth",  # the key is missing, wrong, or not permitted
    "too_long",  # exceeds the context window
    "bad_request",
    "not_found",  # no such model or address
    "unknown",
]
TRANSIENT = frozenset({"rate_limit", "overloaded", "server", "connection", "cut", "malformed"})


class ModelError(TarmacError, RuntimeError):
    """A request to a model failed. `received` is what arrived before. The message never contains a key."""

    def __init__(
        self,
        what: str,
        *,
        kind: ErrorKind,
        status: int | None = None,
        retry_after: float | None = None,
        retryable: bool | None = None,  # None: decided by `kind`
        received: tuple[Part, ...] = (),
        usage: Usage = NO_USAGE,
        hint: str = "",
    ) -> None:
        super().__init__(what, hint=hint)
        self.kind = kind
        self.status = status  # HTTP status; None: no response
        self.retry_after = retry_after  # seconds, as the provider asked
        self.retryable = kind in TRANSIENT if retryable is None else retryable
        self.received = received
        self.usage = usage  # as far as the provider reported it


class Model(Protocol):
    """A language model. Several requests may run at once."""

    @property
    def info(self) -> ModelInfo:
        """What is known about the model. The first request may add the context window."""

    def stream(self, prompt: Prompt, *, load: Load) -> AsyncGenerator[Chunk, None]:
        """Send the prompt and yield the response. Raises ModelError.

        Closing the generator, or cancelling its consumer, ends the request. `load` returns the bytes of an image.
        It is called in a thread.
        """

    async def aclose(self) -> None:
        """Close all connections. May be called twice. A running stream ends with ModelError "cut"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """How models are reached. Keys are passed in (`keys_from(environ)`). This package does not read the environment."""

    keys: Mapping[str, str] = field(default_factory=dict, repr=False)  # by provider
    base_urls: Mapping[str, str] = field(default_factory=dict, repr=False)  # by provider; may contain a password
    context_window: int | None = None  # this and the next five override what is known
    max_output: int | None = None
    images: bool | None = None
    native_tools: bool | None = None
    price: Price | None = None
    reasoning: Literal["off", "low", "medium", "high"] | None = None  # None: the provider's default
    connect_timeout: float = 10.0
    read_timeout: float = 180.0  # seconds without a byte, also before the first one
