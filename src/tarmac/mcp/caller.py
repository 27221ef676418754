"""Who calls, as the `mcp` SDK shows it: what the client is, what it answered, and how it is asked.

older era       a question is a request of ours, and the call waits for its answer
stateless era   a question is the call's result; the same call comes again with the answer, and with the state that we
                gave it: sealed by the SDK for this very call, so that it says what we said, and nobody else's word
"""

import json
from typing import Any, Final, TypeAlias

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from tarmac.mcp.client import CannotAsk, Form, Lacking, Reply, RootsWanted, Unanswered

Context: TypeAlias = ServerRequestContext[Any, Any]
Params: TypeAlias = types.CallToolRequestParams | types.ReadResourceRequestParams

ASKED: Final = "approval"  # the key of our question in the stateless era
ROOTS: Final = "roots"
GOOD_FOR: Final = 600.0  # seconds that a question may stay open
FOR_ROOTS: Final = 5.0


class Caller:
    """A client, as one of its requests shows it; see `Client`."""

    def __init__(self, ctx: Context, params: Params | None) -> None:
        """`params` of a request whose result may be a question; None of the others."""
        info = ctx.session.client_params.client_info if ctx.session.client_params is not None else None
        capabilities = ctx.session.client_capabilities
        elicitation = capabilities.elicitation if capabilities is not None else None
        forms = elicitation is not None and (elicitation.form is not None or elicitation.url is None)
        self.name = f"{info.name} {info.version}".strip() if info is not None else ""
        self.stateless = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        self.session = session_of(ctx)
        self.can_ask = forms and (self.stateless or ctx.session.can_send_request)
        self._has_roots = capabilities is not None and capabilities.roots is not None
        self._ctx = ctx
        self._askable = params is not None
        self._state = _state(params)
        self._responses = (params.input_responses if params is not None else None) or {}
        question, found = self._state.get("question"), self._responses.get(ASKED)
        self.answered = (question, _reply(found)) if question and isinstance(found, types.ElicitResult) else None

    # The person

    async def ask(self, form: Form) -> Reply:
        if not self.can_ask:
            raise Lacking("elicitation")
        if self.stateless:
            raise Unanswered(form)
        request = types.ElicitRequest(params=_form(form))
        related = ServerMessageMetadata(related_request_id=self._ctx.request_id)
        try:
            result = await self._ctx.session.send_request(
                request, types.ElicitResult, request_read_timeout_seconds=GOOD_FOR, metadata=related
            )
        except MCPError as error:
            raise CannotAsk(error.error.message) from None
        except ValidationError:
            raise CannotAsk("its answer can't be read") from None
        return _reply(result)

    async def progress(self, done: float, message: str) -> None:
        await self._ctx.session.report_progress(done, None, encodable(message))

    # Where it works

    async def roots(self) -> tuple[str, ...] | None:
        if not self._has_roots:
            return ()
        if not self.stateless:
            return await self._list_roots()
        if ROOTS in self._state:
            return (self._state[ROOTS],) if self._state[ROOTS] else ()
        if not self._askable:
            return None
        found = self._responses.get(ROOTS)
        if isinstance(found, types.ListRootsResult):
            roots = tuple(str(each.uri) for each in found.roots)
            self._state[ROOTS] = roots[0] if roots else ""
            return roots
        if "wanted" in self._state:  # it was asked, and did not say
            return ()
        raise RootsWanted

    async def _list_roots(self) -> tuple[str, ...]:
        try:
            found = await self._ctx.session.send_request(
                types.ListRootsRequest(), types.ListRootsResult, request_read_timeout_seconds=FOR_ROOTS
            )
        except (MCPError, ValidationError):
            return ()
        return tuple(str(each.uri) for each in found.roots)

    # What a call of the stateless era comes to when something is to be asked

    def wants_answer(self, form: Form) -> types.InputRequiredResult:
        request = types.ElicitRequest(params=_form(form))
        return _required({ASKED: request}, {**self._state, "question": form.id})

    def wants_roots(self) -> types.InputRequiredResult:
        return _required({ROOTS: types.ListRootsRequest()}, {"wanted": ROOTS})


def session_of(ctx: Context) -> str | None:
    """The session's id on HTTP in the older era, "" where a connection is a process, None where nothing lasts."""
    if ctx.request is None:
        return ""
    if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
        return None
    return str(ctx.request.headers.get("mcp-session-id") or "") or None


def encodable(text: str) -> str:
    """Bytes that are no text come in as halves of characters, which no message can carry."""
    return text.encode("utf-8", "backslashreplace").decode()


def _state(params: Params | None) -> dict[str, str]:
    """What we had to say to ourselves. The SDK has unsealed it; without a seal there is none."""
    if params is None or not params.request_state:
        return {}
    found: dict[str, str] = json.loads(params.request_state)
    return found


def _required(requests: types.InputRequests, state: dict[str, str]) -> types.InputRequiredResult:
    return types.InputRequiredResult(input_requests=requests, request_state=json.dumps(state))


def _form(form: Form) -> types.ElicitRequestFormParams:
    """One field, no more: in Codex a form with a text that is left empty, optional or not, can't be sent off."""
    return types.ElicitRequestFormParams(
        message=encodable(form.message),
        requested_schema={
            "type": "object",
            "properties": {"decision": {"type": "string", "title": "Decision", "enum": list(form.choices)}},
            "required": ["decision"],
        },
    )


def _reply(result: types.ElicitResult) -> Reply:
    content = result.content or {}
    choice, feedback = content.get("decision"), content.get("feedback")
    return Reply(
        action=result.action,
        choice=choice if isinstance(choice, str) else "",
        feedback=feedback if isinstance(feedback, str) else "",
    )
