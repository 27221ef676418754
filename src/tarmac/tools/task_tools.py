"""Tools about the task itself: questions to the person, the result, the mode, the todo list, slash commands."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from tarmac.errors import BadArguments, ToolFailed
from tarmac.models.messages import Image, Part, Text
from tarmac.tools.read_file import parse_ranges
from tarmac.tools.tool import Bench, Done, Go, Group, Ready, Reply, Suggestion, TodoItem, Tool

LONGEST_OUTPUT = 20_000  # characters
_SUGGEST = re.compile(r"<suggest(?:\s+mode=\"([^\"]*)\")?\s*>(.*?)</suggest>", re.DOTALL)
_ITEM = re.compile(r"\s*(?:[-*+]|\d+[.)])?\s*\[([ xX~-])\]\s*(.+?)\s*")
_STATUS: Mapping[str, Literal["open", "doing", "done"]] = {" ": "open", "x": "done", "-": "doing", "~": "doing"}
INSTRUCTIONS: Mapping[str, str] = {
    "create_mode": """\
A mode is a Markdown file in `.tarmac/modes/` of the workspace, or in `modes/` of the user's folder for all workspaces.
Its name is the slug: `.tarmac/modes/reviewer.md`. The front matter is TOML, the text below it is the mode's
instructions:

+++
name = "Reviewer"
role = "You are Tarmac, a careful reviewer of code."
when = "To review a change before it is merged."
groups = ["read", {group = "edit", files = '\\.md$', description = "Markdown files only"}, "command"]
+++
Read the whole change first. Name each problem with file and line.

Groups are read, edit, command, browser and mcp. A group with `files` works only on paths that match this regular
expression. A file that is wrong is skipped and reported.""",
    "create_mcp_server": """\
Servers are in `mcp_servers.toml`, in the user's folder or in `.tarmac/` of the workspace:

[servers.weather]
command = "python"
args = ["weather_server.py"]

[servers.issues]
url = "https://example.com/mcp"

Write the server with the official SDK of its language. For Python: `pip install mcp`, make an `MCPServer`, decorate a
typed function with `@server.tool()`, and run it over stdio. Its docstring and types become the tool's description.
Print nothing to stdout: it belongs to the protocol. Keys come from the environment of the server (`env`), never from
the code. The user is asked before a server is started, and once for each of its tools.""",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowUp:
    """A suggested answer."""

    text: Annotated[str, Meta(description="The complete answer.")]
    mode: Annotated[str, Meta(description="The mode to switch to if this answer is chosen.")] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskFollowupQuestion(Tool):
    name: ClassVar[str] = "ask_followup_question"
    group: ClassVar[Group] = "always"
    description: ClassVar[str] = (
        "Ask the user a question if you can't find out something that the task needs. "
        "Offer two to four answers to choose from."
    )
    spellings: ClassVar[Mapping[str, str]] = {"suggestions": "follow_up", "options": "follow_up"}

    question: Annotated[str, Meta(min_length=1, description="A clear question, about one thing.")]
    follow_up: Annotated[
        tuple[FollowUp, ...], Meta(max_length=10, description="Suggested answers, the most likely first.")
    ] = ()

    @classmethod
    def tidy(cls, arguments: dict[str, object]) -> dict[str, object]:
        """Accept `<suggest>` elements and plain strings as suggested answers."""
        given = arguments.get("follow_up")
        if isinstance(given, dict) and "suggest" in given:
            given = given["suggest"]
            given = given if isinstance(given, list) else [given]
        if isinstance(given, str) and "<suggest" in given:
            given = [{"text": text.strip(), "mode": mode or ""} for mode, text in _SUGGEST.findall(given)]
        if isinstance(given, list):
            given = [{"text": each} if isinstance(each, str) else each for each in given]
        return {**arguments, "follow_up": given} if given is not None else arguments

    async def prepare(self, bench: Bench) -> Ready:
        suggestions = tuple(Suggestion(text=each.text, mode=each.mode) for each in self.follow_up)

        async def act(_: Go) -> Done:
            return Done(content=_answered(await bench.talk.ask(self.question, suggestions)))

        return Ready(title="Asking a question", done="Asked a question", act=act)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptCompletion(Tool):
    name: ClassVar[str] = "attempt_completion"
    group: ClassVar[Group] = "always"
    description: ClassVar[str] = "Present the result, once everything is done and you have seen that it works."

    result: Annotated[str, Meta(min_length=1, description="The final result.")]

    @classmethod
    def tidy(cls, arguments: dict[str, object]) -> dict[str, object]:
        """Drop the `command` that older models add."""
        return {key: value for key, value in arguments.items() if key != "command"}

    async def prepare(self, bench: Bench) -> Ready:
        async def act(_: Go) -> Done:
            reply = await bench.talk.complete(self.result)
            return Done(content=(Text(""),) if reply is None else _answered(reply))

        return Ready(title="Presenting the result", done="Presented the result", act=act)


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchMode(Tool):
    name: ClassVar[str] = "switch_mode"
    group: ClassVar[Group] = "modes"
    description: ClassVar[str] = "Switch to another mode if the task needs its tools or its way of working."
    spellings: ClassVar[Mapping[str, str]] = {"mode": "mode_slug"}

    mode_slug: Annotated[str, Meta(min_length=1, description="The slug of the mode, such as code, ask or architect.")]
    reason: Annotated[str, Meta(description="The reason.")] = ""

    async def prepare(self, bench: Bench) -> Ready:
        async def act(_: Go) -> Done:
            return Done.text(await bench.talk.switch_mode(self.mode_slug, self.reason))

        return Ready(title=f"Switching to {self.mode_slug} mode", done=f"Switched to {self.mode_slug} mode", act=act)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTask(Tool):
    name: ClassVar[str] = "new_task"
    group: ClassVar[Group] = "modes"
    description: ClassVar[str] = (
        "Delegate a part to a subtask and get its result. It knows only your message. Several run at once."
    )
    spellings: ClassVar[Mapping[str, str]] = {"mode_slug": "mode", "prompt": "message", "description": "message"}

    mode: Annotated[str, Meta(description="The mode's slug. Default: the current mode.")] = ""
    message: Annotated[str, Meta(min_length=1, description="The whole task.")]

    @classmethod
    def tidy(cls, arguments: dict[str, object]) -> dict[str, object]:
        """Drop the `todos` that some models add."""
        return {key: value for key, value in arguments.items() if key != "todos"}

    async def prepare(self, bench: Bench) -> Ready:
        async def act(_: Go) -> Done:
            return Done.text(await bench.talk.subtask(self.mode, self.message))

        short = " ".join(self.message.split())[:60]
        return Ready(title=f"Working on a subtask: {short}", done=f"Finished a subtask: {short}", act=act)


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateTodoList(Tool):
    name: ClassVar[str] = "update_todo_list"
    group: ClassVar[Group] = "always"
    description: ClassVar[str] = (
        "Replace the todo list, which the user sees. Use it for tasks with several steps. Work on one item at a "
        "time and mark it when it is finished. Always send the whole list."
    )

    todos: Annotated[
        str, Meta(description="A checklist with one item per line: `[ ] open`, `[-] in progress`, `[x] finished`.")
    ]

    @classmethod
    def tidy(cls, arguments: dict[str, object]) -> dict[str, object]:
        """Accept a list of lines, or of items with a status, as a checklist."""
        todos = arguments.get("todos")
        if not isinstance(todos, list):
            return arguments
        marks = {"completed": "x", "done": "x", "in_progress": "-", "doing": "-"}
        lines = [
            f"[{marks.get(str(each.get('status', '')), ' ')}] {each.get('content', each.get('text', ''))}"
            if isinstance(each, dict)
            else str(each)
            for each in todos
        ]
        return {**arguments, "todos": "\n".join(lines)}

    async def prepare(self, bench: Bench) -> Ready:
        todos = parse_checklist(self.todos)

        async def act(_: Go) -> Done:
            await bench.talk.set_todos(todos)
            return Done.text("Todo list updated successfully.")

        return Ready(title="Updating the todo list", done="Updated the todo list", act=act)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSlashCommand(Tool):
    name: ClassVar[str] = "run_slash_command"
    group: ClassVar[Group] = "always"
    description: ClassVar[str] = "Get the instructions of one of the project's slash commands, then follow them."

    command: Annotated[str, Meta(min_length=1, description="The command's name, without the slash.")]
    args: Annotated[str, Meta(description="The arguments of the command.")] = ""

    async def prepare(self, bench: Bench) -> Ready:
        name = self.command.strip().removeprefix("/")
        text = bench.talk.slash_command(name)
        if text is None:
            known = ", ".join(sorted(bench.talk.slash_commands())) or "there are none"
            raise ToolFailed(f"There is no slash command '{name}'. Available: {known}.")

        async def act(_: Go) -> Done:
            given = f"\n\nProvided arguments: {self.args}" if self.args else ""
            return Done.text(f"Command: /{name}{given}\n\n--- Command Content ---\n\n{text}")

        return Ready(title=f"Loading /{name}", done=f"Loaded /{name}", act=act)


@dataclass(frozen=True, slots=True, kw_only=True)
class Condense(Tool):
    name: ClassVar[str] = "condense"
    group: ClassVar[Group] = "always"
    description: ClassVar[str] = (
        "Replace the older conversation by a summary that you are asked to write. The user's words stay."
    )
    spellings: ClassVar[Mapping[str, str]] = {"message": "focus", "context": "focus", "summary": "focus"}

    focus: Annotated[str, Meta(description="What the summary must keep.")] = ""

    async def prepare(self, bench: Bench) -> Ready:
        async def act(_: Go) -> Done:
            bench.talk.condense(self.focus.strip())
            return Done.text("If there is enough to condense, that is done before your next answer.")

        return Ready(title="Condensing the conversation", done="Asked to condense the conversation", act=act)


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchInstructions(Tool):
    name: ClassVar[str] = "fetch_instructions"
    group: ClassVar[Group] = "always"
    described: ClassVar[bool] = False
    description: ClassVar[str] = "Get instructions for a task: create_mode or create_mcp_server."

    task: Annotated[str, Meta(description="create_mode or create_mcp_server.")]

    async def prepare(self, bench: Bench) -> Ready:
        name = self.task.strip().removesuffix("_instructions")
        text = INSTRUCTIONS.get(name)
        if text is None:
            raise ToolFailed(f"There are no instructions for '{name}'. Available: {', '.join(INSTRUCTIONS)}.")

        async def act(_: Go) -> Done:
            return Done.text(text)

        return Ready(title=f"Reading the instructions for {name}", done=f"Read the instructions for {name}", act=act)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOutput(Tool):
    name: ClassVar[str] = "read_output"
    group: ClassVar[Group] = "always"
    description: ClassVar[str] = "Show a folded tool output again."
    parallel: ClassVar[bool] = True

    id: Annotated[int, Meta(description="The number in the folded output.")]
    lines: Annotated[str, Meta(description="A range of lines, such as `1-50`. Default: all.")] = ""

    async def prepare(self, bench: Bench) -> Ready:
        text = bench.talk.output(self.id)
        span = parse_ranges((self.lines,), tool=self.name) if self.lines else None
        if text is None:
            raise ToolFailed(f"There is no output {self.id}. The number is in the folded output.")

        async def act(_: Go) -> Done:
            lines = text.splitlines()
            shown = "\n".join(line for first, last in span for line in lines[first - 1 : last]) if span else text
            if len(shown) > LONGEST_OUTPUT:
                shown = f"{shown[:LONGEST_OUTPUT]}\n[cut: read fewer lines]"
            return Done.text(shown or "(no such lines)")

        return Ready(title=f"Reading the output {self.id}", done=f"Read the output {self.id} again", act=act)


def parse_checklist(text: str) -> tuple[TodoItem, ...]:
    """The items of a Markdown checklist; BadArguments for a line that is not an item."""
    items: list[TodoItem] = []
    for line in text.splitlines():
        if not line.strip():
            continue
        found = _ITEM.fullmatch(line)
        if found is None:
            raise BadArguments(
                f"update_todo_list: '{line.strip()[:80]}' is not an item. Write `[ ] text`, `[-] text` or `[x] text`."
            )
        items.append(TodoItem(text=found[2], status=_STATUS[found[1].lower()]))
    return tuple(items)


def _answered(reply: Reply) -> tuple[Part, ...]:
    text = Text(f"<user_message>\n{reply.text}\n</user_message>")
    return (text, *(Image(each) for each in reply.images))
