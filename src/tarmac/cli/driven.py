"""What a door drives, and the exit status that says how it ended."""

from collections.abc import Callable, Sequence
from typing import Protocol

from tarmac.events import TaskId
from tarmac.policy.approval import Answer, Picture
from tarmac.tasks.audience import Listener
from tarmac.tasks.context import Ended
from tarmac.tasks.events import MessageId, QuestionAsked, QuestionId
from tarmac.tasks.views.metadata import Metadata

STATUS = {
    "completed": 0,
    "idle": 0,
    "failed": 1,
    "refused": 1,
    "limit": 5,
    "paused": 5,
    "interrupted": 130,
    "aborted": 130,
}


class Driven(Protocol):
    """What a door needs: a Task, or an agent that we host (`tarmac.acp.host`)."""

    @property
    def id(self) -> TaskId: ...
    @property
    def afterwards(self) -> str: ...
    @property
    def metadata(self) -> Metadata: ...
    @property
    def attended(self) -> bool: ...
    @property
    def running(self) -> bool: ...
    @property
    def questions(self) -> tuple[QuestionAsked, ...]: ...
    def subscribe(self, listener: Listener) -> Callable[[], None]: ...
    async def say(self, text: str, images: Sequence[Picture] = ()) -> MessageId | None: ...
    async def answer(self, question: QuestionId, answer: Answer) -> None: ...
    def type_secrets(self) -> None: ...
    def hold(self, question: QuestionId) -> None: ...
    def cancel(self) -> None: ...
    async def run_until_idle(self) -> Ended: ...


def status_of(ended: Ended) -> int:
    """The exit status that says how it ended."""
    return STATUS[ended.why]
