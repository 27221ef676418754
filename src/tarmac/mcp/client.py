"""What the server knows about its caller: who it is, what it can be asked, how to report progress, what it is told."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from tarmac.calls.call_judge import Postponed

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
