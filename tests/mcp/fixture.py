"""The server that the conformance suite wants to see, with tools of its own names, on Tarmac's own code path.

`python -m tests.mcp.fixture PORT FOLDER` serves the real tools beside the suite's, without a token: the suite has none.
"""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from tarmac.config import Config
from tarmac.errors import BadRequest
from tarmac.mcp import adapter, gate
from tarmac.mcp.catalog import Entry
from tarmac.mcp.client import Client, Question
from tarmac.mcp.door import Answer, Door
from tarmac.mcp.outputs import Listed
from tarmac.tools.tool import Bench, Group, Ready, Tool

STATIC = "test://static-text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Nothing(Tool):
    """A tool without arguments; the fixture itself makes its calls."""

    name: ClassVar[str] = "nothing"
    group: ClassVar[Group] = "always"
    description: ClassVar[str] = "Of the conformance suite."

    async def prepare(self, bench: Bench) -> Ready:
        raise NotImplementedError


NAMES = (
    "test_simple_text",
    "test_error_handling",
    "test_tool_with_progress",
    "test_elicitation",
    "test_input_required_result_elicitation",
    "test_input_required_result_tampered_state",
)


@dataclass(slots=True)
class Fixture(Door):
    """A door with the suite's tools in front of the real ones."""

    asked: dict[str, Question] = field(default_factory=dict)

    def tools(self) -> Sequence[Entry]:
        output = {"type": "object"}
        mine = [Entry(name=each, title=each, tool=Nothing, output=output, read_only=True) for each in NAMES]
        return (*mine, *Door.tools(self))

    async def call(self, name: str, arguments: Mapping[str, Any], client: Client) -> Answer:
        match name:
            case "test_simple_text":
                return Answer(text="This is a simple text response for testing.", data={})
            case "test_error_handling":
                return Answer(text="This tool intentionally returns an error for testing", error=True)
            case "test_tool_with_progress":
                for done in (0, 50, 100):
                    await client.progress(done, f"{done} of 100")
                    await asyncio.sleep(0.05)
                return Answer(text="done", data={})
            case _ if name in NAMES:
                if client.answered is None:
                    reply = await client.ask(Question(id=name, message="What is your name?", choices=("Alice", "Bob")))
                else:
                    reply = client.answered[1]
                return Answer(text=f"User response: action={reply.action}, Hello, {reply.choice}!", data={})
            case _:
                return await Door.call(self, name, arguments, client)

    async def place(self, client: Client) -> Any:
        return self

    def listing(self) -> list[Listed]:
        return [Listed(STATIC, "static text", 0)]

    async def read(self, uri: str) -> str:
        if uri == STATIC or uri.startswith("test://template/"):
            return f"This is the content of {uri.split('/')[3] if 'template' in uri else 'the static text resource.'}"
        raise BadRequest(f"there is no resource {uri}")


async def serve(port: int, folder: Path) -> None:
    adapter.ASKED = "user_name"  # type: ignore[misc]  # the suite's name for the one question
    door = Fixture(load=lambda workspace: Config(workspace=workspace, user_folder=folder), workspace=folder)
    try:
        with gate.listen(port) as listening:
            port = listening.getsockname()[1]
            print(port, flush=True)
            await gate.serve(adapter.http_app(door, port), listening)
    finally:
        await door.aclose()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), Path(sys.argv[2])))
