"""Messages that a person sent while the task was busy, in order, until they are delivered or taken back."""

from collections.abc import Iterable

from tarmac.tasks.context import now
from tarmac.tasks.events import MessageDelivered, MessageId, MessageQueued, MessageWithdrawn, TaskEvent
from tarmac.tasks.log import TaskLog


class Queue:
    """The words that wait. It survives a restart: they are in the log."""

    def __init__(self, log: TaskLog, past: Iterable[TaskEvent] = ()) -> None:
        self._log = log
        self._waiting: dict[MessageId, MessageQueued] = {}
        for event in past:
            match event:
                case MessageQueued(message=message):
                    self._waiting[message] = event
                case MessageDelivered(message=message) | MessageWithdrawn(message=message):
                    self._waiting.pop(message, None)

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def waiting(self) -> tuple[MessageQueued, ...]:
        """In the order they were said."""
        return tuple(self._waiting.values())

    async def put(self, message: MessageQueued) -> None:
        """Durable on return."""
        self._waiting[message.message] = message
        try:
            await self._log.append(message)
        except BaseException:
            self._waiting.pop(message.message, None)
            raise

    def take(self) -> tuple[MessageQueued, ...]:
        """All of them: they are delivered with the next group of facts, and can't be withdrawn any more."""
        taken, self._waiting = self.waiting, {}
        for each in taken:
            self._log.add(MessageDelivered(at=now(), message=each.message))
        return taken

    async def withdraw(self, message: MessageId) -> bool:
        """Take one back; False when it has been delivered, or never was."""
        if self._waiting.pop(message, None) is None:
            return False
        await self._log.append(MessageWithdrawn(at=now(), message=message))
        return True
