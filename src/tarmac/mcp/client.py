"""What the server knows about its caller: who it is, what it can be asked, and what it is told while a command runs.

A running command is told by its title, the last lines once a second, or a sign of life. Some clients give up on a
silent call. They keep waiting while they hear something.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

from tarmac.calls.call_judge import Postponed
from tarmac.tools.tool import Live, Output
from tarmac.vt.fold import show_invisibles
from tarmac.vt.text import clean

FormAction = Literal["accept", "decline", "cancel"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """A form with one choice. `id` is how an answer finds it where nothing else connects the two."""

    id: str
    message: str
    choices: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FormReply:
    """What came back. `choice` is empty where the client sent none of those it was offered."""

    action: FormAction
    choice: str = ""
    feedback: str = ""


Ask = Callable[[Form], Awaitable[FormReply]]


class Unanswered(Postponed):
    """The stateless era: the question goes back as the call's result, and the call comes again with the answer."""

    def __init__(self, form: Form) -> None:
        super().__init__(form.id)
        self.form = form


class RootsWanted(Exception):
    """The stateless era: the client is asked where it works; the call comes again with its answer."""


class Lacking(Exception):
    """Something was to be asked of the client that it never said it could do."""

    def __init__(self, capability: str) -> None:
        super().__init__(f"this client has no {capability}")
        self.capability = capability


class CannotAsk(Exception):
    """The client said that it could be asked, and can't."""


class Client(Protocol):
    """One call's caller."""

    name: str  # "claude-code 2.1"
    session: str | None  # the connection it belongs to, "" on a pipe; None where each request stands alone
    can_ask: bool
    can_open: bool  # it opens addresses for the person: URL elicitation
    stateless: bool  # the era in which a question is a call's result
    answered: tuple[str, FormReply] | None  # the stateless era: the question's id, and what the person said

    async def ask(self, form: Form) -> FormReply:
        """Wait for the person; Unanswered where that is another call's matter; CannotAsk, Lacking."""

    async def open_url(self, url: str, message: str) -> FormAction:
        """Ask the person to open an address; accept: they are on their way. CannotAsk."""

    async def progress(self, done: float, message: str) -> None:
        """Tell how far it is, where it was asked for."""

    async def roots(self) -> tuple[str, ...] | None:
        """The folders the client works in, as URIs; none where it does not tell; None: nobody can ask it now.
        RootsWanted where its answer is another call's matter."""


class HostedClient:
    """A client that somebody else hosts: its person is asked by its host, whatever it can do itself."""

    def __init__(self, client: Client, ask: Ask) -> None:
        self.name, self.session = client.name, client.session
        self.can_ask, self.can_open, self.stateless = True, False, False
        self.answered: tuple[str, FormReply] | None = None
        self._client, self._ask = client, ask

    async def ask(self, form: Form) -> FormReply:
        return await self._ask(form)

    async def open_url(self, url: str, message: str) -> FormAction:
        raise CannotAsk("its host asks for it")

    async def progress(self, done: float, message: str) -> None:
        await self._client.progress(done, message)

    async def roots(self) -> tuple[str, ...] | None:
        return await self._client.roots()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAnswer:
    """What a call comes to: words for the model, data for the client; an error is one that a model can act on."""

    text: str
    data: Mapping[str, Any] | None = None
    error: bool = False
    images: tuple[tuple[bytes, str], ...] = ()  # each with its media type
    title: str = ""  # "Ran `make`": what was done, for a person who looks at the calls
    essence: str = ""  # what makes it the same answer as another time's, where that is not its text


EVERY: Final = 1.0  # seconds
SILENT: Final = 5.0  # without news: then it is told that nothing is new
KEPT: Final = 8 << 10  # bytes of the end of the output
MOST_LINES: Final = 5
MOST_CHARACTERS: Final = 500


class Tail:
    """The end of what a command printed."""

    def __init__(self) -> None:
        self.changed = False
        self._kept = b""

    def show(self, live: Live) -> None:
        if isinstance(live, Output):
            self._kept = (self._kept + live.data)[-KEPT:]
            self.changed = True

    def text(self) -> str:
        """Its last lines, as a person may see them."""
        lines = [each for each in show_invisibles(clean(self._kept)).splitlines() if each.strip()]
        return "\n".join(lines[-MOST_LINES:])[-MOST_CHARACTERS:]


@asynccontextmanager
async def telling(client: Client, tail: Tail, what: Callable[[], str]) -> AsyncIterator[None]:
    """Tell the client how it goes during the block."""
    task = asyncio.create_task(_tell(client, tail, what))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _tell(client: Client, tail: Tail, what: Callable[[], str]) -> None:
    began = told = time.monotonic()
    await client.progress(0, what())
    while True:
        await asyncio.sleep(EVERY)
        now = time.monotonic()
        if not tail.changed and now - told < SILENT:
            continue
        tail.changed, told = False, now
        await client.progress(round(now - began, 1), tail.text() or what())
