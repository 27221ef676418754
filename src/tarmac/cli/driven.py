"""What `task_driver.py` drives, what is said beforehand, and the exit status that says how it ended."""

from collections.abc import Callable, Sequence
from typing import Protocol

from tarmac.app import App
from tarmac.config import Config
from tarmac.errors import BadRequest
from tarmac.events import TaskId
from tarmac.models.model_catalog import model_info
from tarmac.policy.approval import Answer, Picture
from tarmac.tasks.context import Ended
from tarmac.tasks.events import MessageId, Noted, QuestionAsked, QuestionId
from tarmac.tasks.signals import Listener
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
    """What is driven: a Task, or an agent that we host (`tarmac.acp.host`)."""

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


async def notes_before(app: App, task: Driven) -> list[Noted]:
    """What a new task noted before anybody could listen: what its workspace was refused, files that make no sense."""
    if task.metadata.requests:
        return []
    return [each for each in (await app.store.read(task.id)).events if isinstance(each, Noted)]


def cannot_see(model: str, config: Config) -> BadRequest | None:
    """What to say of a picture for this model, where it takes none."""
    if model.startswith("scripted/") or model_info(model, config.models_for(model)).images:
        return None
    hint = "choose another model, or set `models.images = true` if this one can"
    return BadRequest(f"{model} can't see pictures: it gets your words only", hint=hint)
