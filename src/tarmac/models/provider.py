"""What a language model is to the rest of Tarmac, and how one is opened by its name.

open_model("anthropic/claude-…", settings) → Model
model.stream(prompt, load=…) → TextDelta | ReasoningDelta | CallDelta …, then one Answer; or ModelError

A model never tries twice: whoever asks it does, where a person can see it. It keeps nothing between requests.
"""

from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from tarmac.errors import TarmacError
from tarmac.models.messages import NO_USAGE, Blob, Message, Part, StopReason, Usage

Load = Callable[[Blob], bytes]


@dataclass(frozen=True, slots=True)
class ToolSchema:
    """A tool as a model is told of it."""

    name: str
    description: str
    parameters: Mapping[str, object]  # JSON schema of an object


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """US dollars for a million tokens, where a person says so: for a server of their own, or in a script."""

    input: float
    output: float
    cache_reads: float | None = None  # None: as input
    cache_writes: float | None = None

    def of(self, usage: Usage) -> float:
        reads = self.input if self.cache_reads is None else self.cache_reads
        writes = self.input if self.cache_writes is None else self.cache_writes
        cached = usage.cache_reads * reads + usage.cache_writes * writes
        return (usage.input * self.input + usage.output * self.output + cached) / 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelInfo:
    """What is known of a model before it is asked."""

    id: str  # "provider/name"
    context_window: int | None = None  # tokens; None: unknown
    max_output: int | None = None
    images: bool = False  # may be shown pictures
    native_tools: bool = True  # False: XmlCalls writes and reads its tool calls
    caching: bool = False  # remembers the beginning of a prompt where we mark it
    scripted: bool = False  # plays a file: nothing it says is an answer to anything
    price: Price | None = None  # as a person said; else `price()` asks genai-prices

    @property
    def provider(self) -> str:
        return self.id.partition("/")[0]

    @property
    def name(self) -> str:
        return self.id.partition("/")[2]


@dataclass(frozen=True, slots=True)
class Prompt:
    """One request. Messages may begin and end with either side; results stand in the message after their calls."""

    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSchema, ...] = ()
    max_tokens: int | None = None  # of the answer; None: as many as the model may


@dataclass(frozen=True, slots=True)
class TextDelta:
    """The next piece of what it says."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """The next piece of what it thinks."""

    text: str


@dataclass(frozen=True, slots=True)
class CallDelta:
    """The next piece of a tool call's arguments. `id` and `name` are whole in each; calls may interleave by `index`."""

    index: int  # 0, 1, … in the order of the Answer's calls
    id: str
    name: str
    arguments: str  # a piece of JSON text; "" in the first of a call


@dataclass(frozen=True, slots=True)
class Answer:
    """All that came, in order; the last chunk of every stream that did not fail."""

    parts: tuple[Part, ...]  # Text, Reasoning, ToolUse
    stop: StopReason
    usage: Usage = NO_USAGE


Chunk = TextDelta | ReasoningDelta | CallDelta | Answer

ErrorKind = Literal[
    "rate_limit",  # slow down; `retry_after` where it was said
    "overloaded",  # the provider has too much to do
    "server",  # it broke
    "connection",  # never reached, or silent for too long
    "cut",  # the answer began and did not end
    "malformed",  # what came is not in the provider's language
    "auth",  # no key, a wrong one, one that may not
    "too_long",  # more than the context window holds
    "bad_request",
    "not_found",  # no such model, no such address
    "unknown",
]
PASSING = frozenset({"rate_limit", "overloaded", "server", "connection", "cut", "malformed"})


class ModelError(TarmacError, RuntimeError):
    """A model did not answer. `received` is what had come until then; a key is never in its words."""

    def __init__(
        self,
        what: str,
        *,
        kind: ErrorKind,
        status: int | None = None,
        retry_after: float | None = None,
        retryable: bool | None = None,  # None: by its kind
        received: tuple[Part, ...] = (),
        usage: Usage = NO_USAGE,
        hint: str = "",
    ) -> None:
        super().__init__(what, hint=hint)
        self.kind = kind
        self.status = status  # of HTTP; None: no response
        self.retry_after = retry_after  # seconds the provider asked for
        self.retryable = kind in PASSING if retryable is None else retryable
        self.received = received
        self.usage = usage  # as far as it was told


class Model(Protocol):
    """Somebody to ask. Ask it several things at once if you like."""

    @property
    def info(self) -> ModelInfo:
        """May know more after the first request than before it."""

    def stream(self, prompt: Prompt, *, load: Load) -> AsyncGenerator[Chunk, None]:
        """Ask. Raises ModelError; closing the generator (or cancelling who awaits it) ends the request.

        `load` gives a picture's bytes; it is called in a thread.
        """

    async def aclose(self) -> None:
        """Let go of connections. May be called twice; what streams ends in ModelError "cut"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """How models are reached. Keys are handed in (`keys_from(environ)`): nothing here reads the environment."""

    keys: Mapping[str, str] = field(default_factory=dict, repr=False)  # by provider
    base_urls: Mapping[str, str] = field(default_factory=dict, repr=False)  # by provider; may hold a password
    context_window: int | None = None  # in place of what is known of the model; same with the next five
    max_output: int | None = None
    images: bool | None = None
    native_tools: bool | None = None
    price: Price | None = None
    reasoning: Literal["off", "low", "medium", "high"] | None = None  # None: as the provider does by itself
    connect_timeout: float = 10.0
    read_timeout: float = 180.0  # seconds without a byte: between two chunks, or before the first


def open_model(spec: str, settings: ModelSettings | None = None) -> Model:
    """The model called "provider/name", with tool calls whether it has its own or not. Connects to nobody yet.

    ModelError "not_found" for a provider nobody knows, "auth" where a key is needed and missing.
    """
    from tarmac.models.known import opened

    return opened(spec, settings or ModelSettings())


def warm(spec: str) -> None:
    """Begin to import what `spec` will need, in a thread of its own; returns at once."""
    from tarmac.models.known import warmed

    warmed(spec)


def price(model: ModelInfo | str, usage: Usage) -> float | None:
    """US dollars; None: nobody knows, which is never 0.

    Quick once a request was answered (or after `warm`); before that it may import genai-prices: ask in a thread.
    """
    if isinstance(model, ModelInfo) and model.price is not None:
        return model.price.of(usage)
    from tarmac.models.catalog import priced

    return priced(model.id if isinstance(model, ModelInfo) else model, usage)
