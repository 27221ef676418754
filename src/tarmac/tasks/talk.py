"""What is said beside the model: messages that wait for a busy task, and the `Talk` of a bench.

Queue    messages of the person, in order, until they are delivered or taken back
Talk     what tools may say to the person, and change in the task itself; slash commands too
"""

import json
import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from tarmac.errors import BadRequest, ToolDenied, ToolFailed
from tarmac.policy import Decision
from tarmac.policy.approval import Answer, AnswerKind, Authority
from tarmac.tasks.condense import Condenser, CondenseWish
from tarmac.tasks.context import find_mode, judged, now
from tarmac.tasks.events import (
    CallId,
    MessageDelivered,
    MessageId,
    MessageQueued,
    MessageWithdrawn,
    ModeSwitched,
    TaskEvent,
    Todo,
    TodosUpdated,
)
from tarmac.tasks.log import TaskLog
from tarmac.tasks.questions import SKIPPED, Questions
from tarmac.tasks.state import TaskState
from tarmac.tasks.subtasks import Subtasks
from tarmac.tasks.views.model_history import text_of
from tarmac.tools.tool import Reply, Suggestion, TodoItem


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


NOBODY: Final = (
    "Nobody is here to answer. Decide by what is most likely meant, say in your result what you assumed, and go on."
)
FOLDERS: Final = (".tarmac/commands", ".roo/commands", ".claude/commands")
LONGEST: Final = 100_000  # characters of a slash command
INIT: Final = (
    "Look at this project and write AGENTS.md: what the project is, how to build and test it, where things live, and "
    "the conventions that a newcomer must know. Keep it under 60 lines. If AGENTS.md exists, improve it."
)
_NAME: Final = re.compile(r"[\w-]{1,64}")


class Conversation:
    """One call's way to the person and the task."""

    def __init__(
        self,
        state: TaskState,
        questions: Questions,
        queue: Queue,
        subtasks: Subtasks | None,
        call: CallId,
        condenser: Condenser | None = None,
    ) -> None:
        self._state = state
        self._condenser = condenser
        self._questions = questions
        self._queue = queue
        self._subtasks = subtasks
        self._call = call

    async def ask(self, question: str, suggestions: tuple[Suggestion, ...]) -> Reply:
        """Wait for a person's answer; one of the suggestions may switch the mode."""
        settings = self._state.context.settings
        first = suggestions[0].text if suggestions and settings.approved.questions else ""
        if not self._state.attended and not first:
            raise ToolFailed(NOBODY)
        shown: dict[str, object] = {"suggestions": [{"text": each.text, "mode": each.mode} for each in suggestions]}
        patience = settings.approval_timeout
        if first:
            patience = min(settings.approved.question_timeout, patience or math.inf) if self._state.attended else 0.0
            shown["takes_first_after"] = patience
        answered = await self._questions.ask(
            "followup",
            question,
            call=self._call,
            choices=tuple(each.text for each in suggestions),
            details=json.dumps(shown),
            timeout=patience,
            otherwise=Answer(AnswerKind.MESSAGE, text=first, by=Authority.LEVEL) if first else SKIPPED,
            check=_says_something,
            once_begun=settings.approval_timeout,
        )
        by_itself = answered.by == Authority.LEVEL
        if by_itself:
            why = "the first suggestion is taken when nobody answers"
            self._state.add(judged(self._call, "allow", why, part=first, by=Authority.LEVEL))
        if answered.answer in (AnswerKind.SKIP, AnswerKind.NO) and not answered.text:
            raise ToolFailed("The person did not answer this question. Go on without it, or ask another one.")
        chosen = next((each for each in suggestions if each.text == answered.text and each.mode), None)
        if chosen and (settings.approved.modes or not by_itself):
            self._switch(chosen.mode, why="chosen with an answer")
        said = answered.text or ("(a picture)" if answered.images else answered.answer)
        return Reply(text=f"{said}\n(Taken by itself: nobody answered.)" if by_itself else said, images=answered.images)

    async def complete(self, result: str) -> Reply | None:
        """Accepted, unless the person has said something meanwhile: then that is the answer."""
        if self._queue:
            return Reply(text="(They have said something meanwhile, before they saw this result. It follows.)")
        self._state.present(result)
        return None

    async def switch_mode(self, mode: str, why: str) -> str:
        """Go on in another mode, if the person agrees."""
        try:
            wanted = find_mode(self._state.context.modes, mode)
        except BadRequest as error:
            raise ToolFailed(f"Invalid mode: {mode}. {error.hint}") from None
        if wanted.slug == self._state.mode.slug:
            return f"Already in {wanted.name} mode."
        if self._state.context.settings.approved.modes:
            self._judged("allow", "switching modes is approved", wanted.slug, by=Authority.LEVEL)
        else:
            if not self._state.attended:
                self._judged("deny", "switching modes is asked about", wanted.slug, by=Authority.NOBODY)
                raise ToolDenied(f"Nobody is here to approve a switch to {wanted.name} mode. Go on in this one.")
            self._judged("ask", "switching modes is asked about", wanted.slug, by=Authority.POLICY)
            text = f"Switch to {wanted.name} mode{f': {why}' if why else ''}"
            answered = await self._questions.ask(
                "tool", text, call=self._call, timeout=self._state.context.settings.approval_timeout
            )
            if answered.answer is not AnswerKind.YES:
                said = f" They say: {answered.text}" if answered.text else ""
                raise ToolDenied(f"The person did not approve the switch to {wanted.name} mode.{said}")
        self._switch(wanted.slug, why=why)
        return f"Successfully switched to {wanted.name} mode{f' because: {why}' if why else ''}."

    def _judged(self, decision: Decision, reason: str, part: str, *, by: str) -> None:
        self._state.add(judged(self._call, decision, reason, part=part, by=by))

    def _switch(self, mode: str, *, why: str) -> None:
        found = self._state.context.modes.get(mode)
        if found is not None and found.slug != self._state.mode.slug:
            self._state.add(ModeSwitched(at=now(), mode=found.slug, why=why))

    async def subtask(self, mode: str, message: str) -> str:
        """Have something done by a child task: its result."""
        if self._subtasks is None:
            raise ToolFailed("There are no subtasks here.")
        return await self._subtasks.run(self._call, mode, message)

    async def set_todos(self, todos: tuple[TodoItem, ...]) -> None:
        """The whole list, from now on."""
        items = tuple(Todo(text=each.text, status=each.status) for each in todos)
        self._state.add(TodosUpdated(at=now(), todos=items))

    def condense(self, focus: str) -> None:
        """Condense the conversation before the next request."""
        if self._condenser is not None and self._condenser.wanted is None:
            self._condenser.wanted = CondenseWish(focus)

    def output(self, number: int) -> str | None:
        """What an earlier call returned, by the number of its fact."""
        found = self._state.history.output(number)
        return None if found is None else text_of(found.content)

    def slash_command(self, name: str) -> str | None:
        """The text behind a command of that name, if there is one."""
        path = commands(self._state.context.project, self._state.context.settings.user_folder).get(name)
        try:
            return path.read_text("utf-8", "replace")[:LONGEST] if path else None
        except OSError:
            return None

    def slash_commands(self) -> Mapping[str, str]:
        """All of them, with what they are for: the first line of each."""
        found = commands(self._state.context.project, self._state.context.settings.user_folder)
        return {name: first_line(path) for name, path in found.items()}


def _says_something(answer: Answer) -> None:
    if answer.kind in (AnswerKind.MESSAGE, AnswerKind.PER_FILE) and not (answer.text.strip() or answer.images):
        raise BadRequest("the message is empty", hint="this question wants words")


def commands(workspace: Path, user_folder: Path) -> dict[str, Path]:
    """The slash commands by name; of one name the workspace's counts, which must not lead out of its folder."""
    found: dict[str, Path] = {}
    root = workspace.resolve()
    for folder in (user_folder / "commands", *(root / each for each in reversed(FOLDERS))):
        try:
            files = sorted(each for each in folder.iterdir() if each.suffix == ".md" and each.is_file())
        except OSError:
            continue
        ours = folder.parent == user_folder
        found |= {each.stem: each for each in files if _NAME.fullmatch(each.stem) and (ours or each.resolve() == each)}
    return found


def first_line(path: Path) -> str:
    """What a slash command is for."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return next((line.strip("# \n") for line in file if line.strip("#- \n")), "")[:200]
    except OSError:
        return ""


def expand_command(text: str, workspace: Path, user_folder: Path) -> str:
    """What `/name words` stands for; any other text as it is. BadRequest: there is no such command."""
    name, _, rest = text.removeprefix("/").partition(" ")
    if not text.startswith("/") or not _NAME.fullmatch(name):
        return text
    if name == "init":
        return INIT
    path = commands(workspace, user_folder).get(name)
    if path is None:
        raise BadRequest(f"there is no command /{name}", hint="begin with a space to say it as it is")
    try:
        return expanded(path.read_text("utf-8", "replace"), rest.strip())
    except OSError as error:
        raise BadRequest(f"{path} can't be read: {error.strerror}") from None


def expanded(template: str, arguments: str) -> str:
    """PURE: the text of a command of one's own: without front matter, `$ARGUMENTS` and `$1` … filled in."""
    text = template[:LONGEST]
    if text.startswith("---\n") and (end := text.find("\n---\n", 3)) >= 0:
        text = text[end + 5 :]
    words = arguments.split()
    filled = text.replace("$ARGUMENTS", arguments)
    for number in range(9, 0, -1):
        filled = filled.replace(f"${number}", words[number - 1] if number <= len(words) else "")
    return filled.strip() if filled != text or not arguments else f"{text.strip()}\n\n{arguments}"
