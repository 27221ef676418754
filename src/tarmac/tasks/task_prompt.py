"""The prompt of a task: the system prompt and the tools of its mode."""

import asyncio

from tarmac.models.provider import Prompt
from tarmac.prompts.instructions import read_instructions, read_replacement
from tarmac.prompts.system import PromptContext, system_prompt, unsuited_edit_tools
from tarmac.tasks.conversation import commands
from tarmac.tasks.state import TaskState


class TaskPrompt:
    """The prompt of one open task, without its messages."""

    def __init__(self, state: TaskState) -> None:
        self._state = state
        self._made: tuple[object, Prompt] | None = None

    async def prepared(self) -> Prompt:
        """System prompt and tools: the same from turn to turn, so that a provider can remember them."""
        state = self._state
        key = (state.mode, state.model.info.id, state.model.info.images)
        if self._made is None or self._made[0] != key:
            self._made = (key, await asyncio.to_thread(self._write))
        return self._made[1]

    def _write(self) -> Prompt:
        state, settings = self._state, self._state.context.settings
        unsuited = unsuited_edit_tools(state.model.info.id)
        allowed = [each.name for each in state.context.toolbox if state.mode.allows(each.name, each.group) is None]
        names = [each for each in allowed if each not in unsuited]
        if not commands(state.context.workspace, settings.user_folder):
            names = [each for each in names if each != "run_slash_command"]
        tools = state.context.toolbox.schemas(names)
        context = PromptContext(
            mode=state.mode,
            modes=state.context.modes,
            tools=tools,
            workspace=state.context.workspace,
            system=settings.system,
            instructions=read_instructions(state.context.workspace, settings.user_folder, state.mode.slug),
            global_instructions=settings.instructions,
            language=settings.language,
            replacement=read_replacement(state.context.workspace, settings.user_folder, state.mode.slug)[0],
            several_calls=state.model.info.native_tools,
            images=state.model.info.images,
            attended=state.attended,
            level=settings.auto,
            command_timeout=settings.tools.command_timeout,
        )
        return Prompt(system=system_prompt(context), messages=(), tools=tools)
