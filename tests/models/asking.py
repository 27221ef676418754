"""Three ways to talk to a model, each with answers of its own: what holds for one must hold for the others."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from tests.models.server import Reply, Server, claude, gpt, responses, serving

from tarmac.models.factory import open_model
from tarmac.models.messages import Blob, Message, Text
from tarmac.models.model_catalog import model_info
from tarmac.models.openai_responses import Responses
from tarmac.models.provider import Chunk, Model, ModelError, ModelSettings, Prompt, ToolSchema

KEY = "sk-hidden-4711"
READ = ToolSchema("read_file", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}})
HELLO = Prompt("Be brief.", (Message("user", (Text("hello"),)),), (READ,))


@dataclass(frozen=True)
class Dialect:
    """A way to talk to a model."""

    provider: str
    model: str
    path: str
    says: Callable[..., list[bytes]]  # the events of an answer that says these pieces of text
    name: str = ""

    def __str__(self) -> str:
        return self.name or self.provider

    @property
    def spec(self) -> str:
        return f"{self.provider}/{self.model}"


CLAUDE = Dialect("anthropic", "claude-opus-5", "", lambda *texts: claude({"type": "text", "text": list(texts)}))
GPT = Dialect("openai", "gpt-5", "/v1", lambda *texts: gpt(*({"content": text} for text in texts)))
RESPONSES = Dialect(
    "openai", "gpt-6-sol", "/v1", lambda *texts: responses({"type": "message", "text": list(texts)}), "responses"
)
ALL = [CLAUDE, GPT, RESPONSES]


def nothing(blob: Blob) -> bytes:
    raise AssertionError("there is no picture")


def opened(dialect: Dialect, url: str, **settings: Any) -> Model:
    keys, url = {dialect.provider: KEY}, url + dialect.path
    chosen = ModelSettings(keys=keys, base_urls={dialect.provider: url}, **settings)
    if dialect is RESPONSES:  # by name only at OpenAI's own address
        return Responses(model_info(dialect.spec, chosen), base_url=url, key=KEY, settings=chosen)
    return open_model(dialect.spec, chosen)


@asynccontextmanager
async def talking(dialect: Dialect, *replies: Reply, **settings: Any) -> AsyncIterator[tuple[Model, Server]]:
    """A model, and the server it talks to."""
    async with serving(*replies) as server:
        model = opened(dialect, server.url, **settings)
        try:
            yield model, server
        finally:
            await model.aclose()
            for _ in range(10):  # generators within the SDK's are closed by asyncio itself, one a turn of the loop
                await asyncio.sleep(0)


async def asked(model: Model, prompt: Prompt = HELLO, load: Callable[[Blob], bytes] = nothing) -> list[Chunk]:
    async with aclosing(model.stream(prompt, load=load)) as stream:
        return [chunk async for chunk in stream]


async def failed(dialect: Dialect, *replies: Reply, **settings: Any) -> ModelError:
    """The error that comes of it."""
    async with talking(dialect, *replies, **settings) as (model, _):
        try:
            await asked(model)
        except ModelError as error:
            return error
    raise AssertionError("it answered")
