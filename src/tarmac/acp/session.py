"""One session of an editor is one task. A prompt says something to it and lets it run; the turn ends when it stands.

prompt → task.say() → task runs → updates … → stopReason
question for approval → session/request_permission → task.answer()
followup question → the turn ends with it, and the next prompt is its answer
"""

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

from tarmac.acp import asking
from tarmac.acp.content import Said
from tarmac.acp.peer import Peer, Refused
from tarmac.acp.updates import Update, Updates
from tarmac.acp.wire import INTERNAL_ERROR
from tarmac.app import App
from tarmac.errors import BadRequest, PeerGone, PeerRefused, TarmacError
from tarmac.models.messages import ToolUse
from tarmac.prompts.modes import Modes
from tarmac.tasks import events as e
from tarmac.tasks import signals as s
from tarmac.tasks.desk import Ended
from tarmac.tasks.talking import commands
from tarmac.tasks.task import Task

LARGEST_SHOWN: Final = 1 << 20  # bytes of a file whose texts an editor is shown
_STOPS: Final[Mapping[str, str]] = {
    "completed": "end_turn",
    "idle": "end_turn",
    "paused": "end_turn",
    "interrupted": "cancelled",
    "aborted": "cancelled",
    "limit": "max_turn_requests",
    "refused": "refusal",
}


class Session:
    """An open task, as an editor has it."""

    def __init__(
        self, app: App, task: Task, modes: Modes, workspace: Path, peer: Peer, *, model: str, terminals: bool
    ) -> None:
        self.app, self.task, self.modes, self.workspace = app, task, modes, workspace
        self.model = model
        self.owns = AsyncExitStack()  # what is closed with it
        self._peer = peer
        self._updates = Updates(terminals=terminals, read=_text_of)
        self._window: int | None = None
        self._tools: dict[str, str] = {}  # of each call, which tool
        self._asking: dict[str, asyncio.Task[None]] = {}  # by question
        self._run: asyncio.Task[Ended] | None = None
        self._standing = asyncio.Event()  # it asked something that the next prompt answers
        self._leave = task.subscribe(self._heard)

    @property
    def id(self) -> str:
        return self.task.id

    # Turns

    async def prompt(self, said: Said) -> dict[str, object]:
        """Say it and wait until the task stands; the stop reason."""
        self._standing.clear()
        text = self._expanded(said.text)
        question = next((each for each in self.task.questions if each.ask == "followup"), None)
        if question is not None:
            await self.task.answer(question.question, "message", text=text, images=said.pictures, by="acp")
        else:
            await self.task.say(text, said.pictures)
        if self._run is None or self._run.done():
            self._run = asyncio.create_task(self.task.run_until_idle())
        ended = await self._until_it_stands(self._run)
        if ended is not None and ended.why == "failed":
            raise Refused(INTERNAL_ERROR, ended.text or "the task failed")
        return {"stopReason": _STOPS.get(ended.why, "end_turn") if ended else "end_turn"}

    async def _until_it_stands(self, run: "asyncio.Task[Ended]") -> Ended | None:
        """How the run ended; None while it waits for the next prompt."""
        standing = asyncio.create_task(self._standing.wait())
        try:
            await asyncio.wait([run, standing], return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:  # the request was cancelled: so is the turn
            self.task.cancel()
            await asyncio.wait([run], timeout=5)
        finally:
            standing.cancel()
        return run.result() if run.done() else None

    def cancel(self) -> None:
        """Stop the turn, wherever it is."""
        if self._run is not None and not self._run.done():
            self.task.cancel()

    def _expanded(self, text: str) -> str:
        """`/name words` as what the project says under that name."""
        name, _, rest = text.removeprefix("/").partition(" ")
        if not text.startswith("/") or "\n" in name:
            return text
        path = commands(self.workspace, self.app.config.user_folder).get(name)
        try:
            return f"{path.read_text('utf-8', 'replace')}\n\n{rest}".strip() if path else text
        except OSError:
            return text

    # What happens in it

    def send(self, update: Update) -> None:
        self._peer.notify("session/update", {"sessionId": self.id, "update": update})

    def _heard(self, _: int | None, thing: e.TaskEvent | s.Signal) -> None:
        for each in self._updates.of(thing):
            self.send(each)
        match thing:
            case e.ModelSaid(parts=parts, usage=usage, cost=cost):
                self._tools |= {part.id: part.name for part in parts if isinstance(part, ToolUse)}
                if self._window:
                    update: Update = {"sessionUpdate": "usage_update", "used": usage.context, "size": self._window}
                    if (spent := self.task.metadata.total_cost) is not None and cost is not None:
                        update["cost"] = {"amount": round(spent, 6), "currency": "USD"}
                    self.send(update)
            case e.RequestStarted(context_window=window):
                self._window = window
            case e.ModeSwitched() | e.ModelSwitched():
                if isinstance(thing, e.ModelSwitched):
                    self.model = thing.model
                self.send({"sessionUpdate": "config_option_update", "configOptions": self.options()})
            case e.QuestionAsked(question=question):
                self._asking[question] = asyncio.create_task(self._ask(thing))
            case e.QuestionAnswered(question=question):
                if asked := self._asking.pop(question, None):
                    asked.cancel()
            case _:
                pass

    async def _ask(self, asked: e.QuestionAsked) -> None:
        """Put a question to the person; whatever becomes of it, the task is answered."""
        if asked.ask == "followup":
            self._standing.set()
            return
        if asked.ask == "completion_result":  # an editor's person says what they think with the next prompt
            await self._answer(asked, asking.Chosen("yes"))
            return
        tool = self._tools.get(asked.call or "", "")
        try:
            params = {"sessionId": self.id, **asking.permission(asked, tool)}
            outcome = await self._peer.request("session/request_permission", params)
        except (PeerRefused, PeerGone) as error:
            await self._answer(asked, asking.Chosen("no"), text=f"the editor could not ask: {error.what}")
            return
        found = asking.chosen(asked, outcome)
        if found is None:
            self.task.cancel()
        else:
            await self._answer(asked, found)

    async def _answer(self, asked: e.QuestionAsked, found: asking.Chosen, *, text: str = "") -> None:
        self._asking.pop(asked.question, None)
        try:
            await self.task.answer(
                asked.question, found.answer, text=text, always=found.always, grant=found.grant, by="acp"
            )
        except BadRequest:  # somebody was quicker, or it can't be allowed for good
            if found.always:
                await self._answer(asked, asking.Chosen(found.answer))
        except TarmacError:  # its log can't be written: the run itself says so
            pass

    # What it is

    def mode_state(self) -> dict[str, object]:
        return {
            "currentModeId": self.task.metadata.mode,
            "availableModes": [
                {"id": each.slug, "name": each.name, **({"description": each.when} if each.when else {})}
                for each in self.modes.all
            ],
        }

    def options(self) -> list[dict[str, object]]:
        """Mode and model, as things to choose."""
        models = list(dict.fromkeys(filter(None, (self.model, self.app.config.model))))
        return [
            {
                "type": "select",
                "id": "mode",
                "name": "Mode",
                "category": "mode",
                "currentValue": self.task.metadata.mode,
                "options": [{"value": each.slug, "name": each.name} for each in self.modes.all],
            },
            {
                "type": "select",
                "id": "model",
                "name": "Model",
                "category": "model",
                "currentValue": self.model,
                "options": [{"value": each, "name": each} for each in models],
            },
        ]

    def commands(self) -> Update:
        """The project's slash commands."""
        found = commands(self.workspace, self.app.config.user_folder)
        listed = [
            {"name": name, "description": f"From {path.name}", "input": {"hint": "more words"}}
            for name, path in sorted(found.items())
        ]
        return {"sessionUpdate": "available_commands_update", "availableCommands": listed}

    async def aclose(self) -> None:
        """Stop it in order; what was asked is withdrawn. The task stays, unless nothing was ever said to it."""
        self._leave()
        for each in list(self._asking.values()):
            each.cancel()
        silent = not self.task.metadata.requests and not self.task.metadata.title
        if self._run is not None and not self._run.done():
            self.task.cancel()
            await asyncio.wait([self._run], timeout=10)
        await self.owns.aclose()
        if silent:
            await self.app.store.delete(self.task.id)


def _text_of(path: Path) -> str | None:
    try:
        if path.stat().st_size > LARGEST_SHOWN:
            return None
        return path.read_text("utf-8")
    except (OSError, ValueError):
        return None
