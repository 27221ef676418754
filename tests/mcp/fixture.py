"""The server that the conformance suite wants to see, with tools of its own names, on Tarmac's own code path.

`python -m tests.mcp.fixture PORT FOLDER` serves the real tools beside the suite's, without a token: the suite has none.
"""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from tarmac.config import Config
from tarmac.errors import BadRequest
from tarmac.mcp import adapter, http_server
from tarmac.mcp.catalog import CatalogEntry
from tarmac.mcp.client import Client, Form, Lacking
from tarmac.mcp.outputs import ListedOutput
from tarmac.mcp.tool_server import ToolAnswer, ToolServer
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


ASKING = (
    "test_elicitation",
    "test_streaming_elicitation",
    "test_input_required_result_elicitation",
    "test_input_required_result_request_state",
    "test_input_required_result_tampered_state",
)
NAMES = (
    "test_simple_text",
    "test_error_handling",
    "test_tool_with_progress",
    "test_logging_tool",
    "test_missing_capability",
    "test_input_required_result_list_roots",
    "test_input_required_result_multi_round",
    *ASKING,
)


CONTACT = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
REGION = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
SCHEMAS: dict[str, dict[str, Any]] = {"json_schema_2020_12_tool": CONTACT, "test_custom_headers": REGION}


class Told(CatalogEntry):
    """A tool whose schema is told word for word."""

    __slots__ = ()

    @property
    def input(self) -> dict[str, Any]:
        return SCHEMAS[self.name]


@dataclass(slots=True)
class Fixture(ToolServer):
    """A door with the suite's tools in front of the real ones."""

    asked: dict[str, Form] = field(default_factory=dict)

    def tools(self) -> Sequence[CatalogEntry]:
        output = {"type": "object"}
        mine = [CatalogEntry(name=each, title=each, tool=Nothing, output=output, read_only=True) for each in NAMES]
        told = [Told(name=each, title=each, tool=Nothing, output=output, read_only=True) for each in SCHEMAS]
        return (*mine, *told, *ToolServer.tools(self))

    async def call(self, name: str, arguments: Mapping[str, Any], client: Client) -> ToolAnswer:
        match name:
            case "test_simple_text":
                return ToolAnswer(text="This is a simple text response for testing.", data={})
            case "test_error_handling":
                return ToolAnswer(text="This tool intentionally returns an error for testing", error=True)
            case "test_tool_with_progress":
                for done in (0, 50, 100):
                    await client.progress(done, f"{done} of 100")
                    await asyncio.sleep(0.05)
                return ToolAnswer(text="done", data={})
            case "json_schema_2020_12_tool" | "test_custom_headers":
                return ToolAnswer(text="ok", data={})
            case "test_logging_tool":  # nothing is ever logged to a client
                return ToolAnswer(text="done", data={})
            case "test_missing_capability":
                raise Lacking("sampling")
            case "test_input_required_result_list_roots":
                return ToolAnswer(text=f"Roots: {await client.roots()}", data={})
            case "test_input_required_result_multi_round":
                first = Form(id="first", message="What is your name?", choices=("Alice", "Bob"))
                if client.answered is None:
                    await client.ask(first)
                elif client.answered[0] == "first":
                    await client.ask(replace(first, id="second", message="And your colour?"))
                return ToolAnswer(text="done", data={})
            case _ if name in ASKING:
                if name == "test_streaming_elicitation":
                    await client.progress(0, "asking")
                if client.answered is None:
                    reply = await client.ask(Form(id=name, message="What is your name?", choices=("Alice", "Bob")))
                else:
                    reply = client.answered[1]
                return ToolAnswer(
                    text=f"User response: action={reply.action}, Hello, {reply.choice}! state-ok", data={}
                )
            case _:
                return await ToolServer.call(self, name, arguments, client)

    async def workspace_of(self, client: Client) -> Any:
        return self

    def check_address(self, uri: str) -> None:
        """Its own are no outputs of commands."""

    def listing(self) -> list[ListedOutput]:
        return [ListedOutput(STATIC, "static text", 0)]

    async def read(self, uri: str) -> str:
        if uri == STATIC or uri.startswith("test://template/"):
            return f"This is the content of {uri.split('/')[3] if 'template' in uri else 'the static text resource.'}"
        raise BadRequest(f"there is no resource {uri}")


async def serve(port: int, folder: Path) -> None:
    adapter.ASKED = "user_name"  # type: ignore[misc]  # the suite's name for the one question
    door = Fixture(load=lambda workspace: Config(workspace=workspace, user_folder=folder), workspace=folder)
    try:
        with http_server.listen(port) as listening:
            port = listening.getsockname()[1]
            print(port, flush=True)
            await http_server.serve(adapter.http_app(door, port), listening)
    finally:
        await door.aclose()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), Path(sys.argv[2])))
