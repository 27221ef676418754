"""A task's questions, put to the person at the editor; whatever becomes of them, the task is answered.

for approval → session/request_permission → task.answer()
followup     → elicitation/create, where the editor shows forms; else the turn ends, and the next prompt is the answer
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from tarmac.acp import asking
from tarmac.acp.client import Client
from tarmac.acp.peer import Peer
from tarmac.errors import BadRequest, PeerGone, PeerRefused, TarmacError
from tarmac.policy.approval import Answer, AnswerKind
from tarmac.tasks.events import RESTING, QuestionAsked
from tarmac.tasks.task import Task

NOT_ASKED: Final = "the editor could not ask"


class Questioning:
    """The open questions of one session. `stand`: the next prompt must answer one. `read` reads a file."""

    def __init__(
        self,
        task: Task,
        peer: Peer,
        client: Client,
        *,
        stand: Callable[[], None],
        read: Callable[[Path], str | None],
    ) -> None:
        self._task, self._peer, self._client = task, peer, client
        self._stand, self._read = stand, read
        self._open: dict[str, asyncio.Task[None]] = {}

    def ask(self, asked: QuestionAsked, tool: str) -> None:
        """Put it to the person; `tool` is what it is about."""
        self._open[asked.question] = asyncio.create_task(self._ask(asked, tool))

    def closed(self, question: str) -> None:
        """It was answered, or nobody needs an answer any more: the editor is told so if it still shows it."""
        if asked := self._open.pop(question, None):
            asked.cancel()

    def close(self) -> None:
        """Withdraw them all."""
        for question in list(self._open):
            self.closed(question)

    async def _ask(self, asked: QuestionAsked, tool: str) -> None:
        if asked.ask == "followup":
            await self._follow_up(asked)
        elif asked.ask not in RESTING:  # of these an editor's person says what they think with the next prompt
            await self._permission(asked, tool)

    async def _permission(self, asked: QuestionAsked, tool: str) -> None:
        try:
            outcome = await self._request("session/request_permission", asking.permission(asked, tool, self._read))
        except PeerGone:  # nobody said no: it is asked again, once somebody is there
            return
        except PeerRefused as error:
            await self._answer(asked, Answer(AnswerKind.NO, text=f"{NOT_ASKED}: {error.what}"))
            return
        found = asking.chosen(asked, outcome)
        if found is None:
            self._task.cancel()
        else:
            await self._answer(asked, found)

    async def _follow_up(self, asked: QuestionAsked) -> None:
        """With a form; dismissed, refused or without one, it stands until the next prompt."""
        found: Answer | None = None
        if self._client.asks:
            try:
                found = asking.filled(await self._request("elicitation/create", asking.form(asked)))
            except (PeerRefused, PeerGone):
                pass
        if found is None:
            self._stand()
        else:
            await self._answer(asked, found)

    async def _request(self, method: str, params: Mapping[str, object]) -> object:
        return await self._peer.request(method, {"sessionId": self._task.id, **params})

    async def _answer(self, asked: QuestionAsked, answer: Answer) -> None:
        self._open.pop(asked.question, None)
        try:
            await self._task.answer(asked.question, replace(answer, by="acp"))
        except BadRequest:  # somebody was quicker, or it can't be allowed for good
            if answer.always:
                await self._answer(asked, Answer(answer.kind))
        except TarmacError:  # its log can't be written: the run itself says so
            pass
