"""The server that the conformance suite wants to see, with tools of its own names, on Tarmac's own code path.

`python -m tests.mcp.fixture PORT FOLDER` serves the real tools beside the suite's, without a token: the suite has none.
What Tarmac does not offer (prompts, completion, sound, sampling …) is added with the SDK's own handlers, on the same
server, so that every scenario of the suite runs.
"""

import asyncio
import base64
import struct
import sys
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import mcp_types as types

from tarmac.config import Config
from tarmac.errors import BadRequest
from tarmac.mcp import adapter, http
from tarmac.mcp.catalog import CatalogEntry
from tarmac.mcp.client import Client, Form, Lacking, ToolAnswer
from tarmac.mcp.resources import ListedOutput, ResourceChanges
from tarmac.mcp.tool_server import ToolServer
from tarmac.tools.tool import Bench, Group, Ready, Tool

STATIC, BINARY = "test://static-text", "test://static-binary"


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
ADDED = (  # made by `added_tool`, as our tools have no such results or questions
    "test_image_content",
    "test_audio_content",
    "test_embedded_resource",
    "test_multiple_content_types",
    "test_tool_with_logging",
    "test_sampling",
    "test_elicitation_sep1034_defaults",
    "test_elicitation_sep1330_enums",
    "test_input_required_result_sampling",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_capabilities",
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
    """A server with the suite's tools in front of the real ones."""

    asked: dict[str, Form] = field(default_factory=dict)
    changes: ResourceChanges = field(default_factory=lambda: ResourceChanges(lambda _: None))  # it is its own workspace

    def tools(self) -> Sequence[CatalogEntry]:
        output = {"type": "object"}
        mine = [
            CatalogEntry(name=each, title=each, tool=Nothing, output=output, read_only=True)
            for each in (*NAMES, *ADDED)
        ]
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
        return [ListedOutput(STATIC, "static text", 0), ListedOutput(BINARY, "static binary", 0)]

    async def read(self, uri: str) -> str:
        if uri == STATIC or uri.startswith("test://template/"):
            return f"This is the content of {uri.split('/')[3] if 'template' in uri else 'the static text resource.'}"
        raise BadRequest(f"there is no resource {uri}")


# What Tarmac does not offer


def _png() -> str:
    """One red pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    pixel = zlib.compress(b"\0\xff\0\0")
    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixel) + chunk(b"IEND", b"")
    return base64.b64encode(png).decode()


def _wav() -> str:
    """One silent sample."""
    form = (
        b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 8000, 1, 8) + b"data" + struct.pack("<I", 1) + b"\x80\0"
    )
    return base64.b64encode(b"RIFF" + struct.pack("<I", len(form)) + form).decode()


IMAGE = types.ImageContent(type="image", data=_png(), mime_type="image/png")
DEFAULTS = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}
_PLAIN, _TITLED = ["option1", "option2", "option3"], [{"const": f"value{n}", "title": f"Choice {n}"} for n in (1, 2, 3)]
ENUMS = {
    "untitledSingle": {"type": "string", "enum": _PLAIN},
    "titledSingle": {"type": "string", "oneOf": _TITLED},
    "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["One", "Two", "Three"]},
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": _PLAIN}},
    "titledMulti": {"type": "array", "items": {"anyOf": _TITLED}},
}


def _resource(uri: str, text: str, media: str = "text/plain") -> types.EmbeddedResource:
    return types.EmbeddedResource(
        type="resource", resource=types.TextResourceContents(uri=uri, mime_type=media, text=text)
    )


def _text(text: str) -> types.TextContent:
    return types.TextContent(type="text", text=text)


def _sampling(text: str, most: int = 100) -> types.CreateMessageRequest:
    message = types.SamplingMessage(role="user", content=_text(text))
    return types.CreateMessageRequest(params=types.CreateMessageRequestParams(messages=[message], max_tokens=most))


def _asking(message: str, name: str) -> types.ElicitRequest:
    schema = {"type": "object", "properties": {name: {"type": "string"}}, "required": [name]}
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=message, requested_schema=schema))


async def added_tool(ctx: Any, params: types.CallToolRequestParams) -> Any:
    """A call of one of ADDED."""
    given = params.input_responses or {}
    match params.name:
        case "test_image_content":
            content: list[Any] = [IMAGE]
        case "test_audio_content":
            content = [types.AudioContent(type="audio", data=_wav(), mime_type="audio/wav")]
        case "test_embedded_resource":
            content = [_resource("test://embedded-resource", "This is an embedded resource content.")]
        case "test_multiple_content_types":
            mixed = _resource("test://mixed-content-resource", '{"test":"data","value":123}', "application/json")
            content = [_text("Multiple content types test:"), IMAGE, mixed]
        case "test_tool_with_logging":
            for text in ("Tool execution started", "Tool processing data", "Tool execution completed"):
                await ctx.session.send_log_message("info", text, related_request_id=ctx.request_id)
                await asyncio.sleep(0.05)
            content = [_text("done")]
        case "test_sampling":
            asked = _sampling(str((params.arguments or {}).get("prompt", ""))).params
            reply = await ctx.session.create_message(
                asked.messages, max_tokens=asked.max_tokens, related_request_id=ctx.request_id
            )
            content = [_text(f"LLM response: {getattr(reply.content, 'text', '')}")]
        case "test_elicitation_sep1034_defaults" | "test_elicitation_sep1330_enums":
            fields: dict[str, Any] = DEFAULTS if "defaults" in params.name else ENUMS
            schema = {"type": "object", "properties": fields, "required": []}
            reply = await ctx.session.elicit("Please fill it in", schema, related_request_id=ctx.request_id)
            content = [_text(f"Elicitation completed: action={reply.action}, content={reply.content}")]
        case "test_input_required_result_sampling":
            if "capital_question" not in given:
                return types.InputRequiredResult(
                    input_requests={"capital_question": _sampling("What is the capital of France?")}
                )
            content = [_text(str(getattr(given["capital_question"], "content", "")))]
        case _:
            capabilities = ctx.session.client_capabilities
            wanted: dict[str, Any] = {"user_name": _asking("What is your name?", "name")}
            if capabilities is None or capabilities.elicitation is None:
                wanted = {}
            if "capabilities" not in params.name or (capabilities is not None and capabilities.sampling is not None):
                wanted["greeting"] = _sampling("Generate a greeting", 50)
            if "capabilities" not in params.name:
                wanted["client_roots"] = types.ListRootsRequest()
            if wanted and not set(wanted) <= set(given):
                return types.InputRequiredResult(input_requests=wanted, request_state="state")
            content = [_text("done")]
    return types.CallToolResult(content=content)


async def list_prompts(_: Any, __: Any) -> types.ListPromptsResult:
    def prompt(name: str, *arguments: str) -> types.Prompt:
        taken = [types.PromptArgument(name=each, description=each, required=True) for each in arguments]
        return types.Prompt(name=name, description=f"Of the conformance suite: {name}", arguments=taken)

    return types.ListPromptsResult(
        prompts=[
            prompt("test_simple_prompt"),
            prompt("test_prompt_with_arguments", "arg1", "arg2"),
            prompt("test_prompt_with_embedded_resource", "resourceUri"),
            prompt("test_prompt_with_image"),
            prompt("test_input_required_result_prompt"),
        ]
    )


async def get_prompt(_: Any, params: types.GetPromptRequestParams) -> Any:
    given = params.arguments or {}
    match params.name:
        case "test_prompt_with_arguments":
            parts: list[Any] = [_text(f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'")]
        case "test_prompt_with_embedded_resource":
            embedded = _resource(given["resourceUri"], "Embedded resource content for testing.")
            parts = [embedded, _text("Please process the embedded resource above.")]
        case "test_prompt_with_image":
            parts = [IMAGE, _text("Please analyze the image above.")]
        case "test_input_required_result_prompt" if "user_context" not in (params.input_responses or {}):
            asked = _asking("What context should the prompt use?", "context")
            return types.InputRequiredResult(input_requests={"user_context": asked})
        case _:
            parts = [_text("This is a simple prompt for testing.")]
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=each) for each in parts])


async def complete(_: Any, params: types.CompleteRequestParams) -> types.CompleteResult:
    return types.CompleteResult(completion=types.Completion(values=["paris", "park", "party"], total=3, has_more=False))


async def nothing(_: Any, __: Any) -> types.EmptyResult:
    return types.EmptyResult()


def with_everything(server: adapter.TarmacServer) -> adapter.TarmacServer:
    """Our server, with what it does not offer."""
    taken = ("tools/call", "resources/read", "resources/subscribe", "resources/unsubscribe")
    ours = {name: server.get_request_handler(name) for name in taken}

    async def call(ctx: Any, params: types.CallToolRequestParams) -> Any:
        entry = ours["tools/call"]
        assert entry is not None
        return await (added_tool if params.name in ADDED else entry.handler)(ctx, params)

    async def read(ctx: Any, params: types.ReadResourceRequestParams) -> Any:
        entry = ours["resources/read"]
        assert entry is not None
        if str(params.uri) != BINARY:
            return await entry.handler(ctx, params)
        blob = types.BlobResourceContents(uri=BINARY, mime_type="image/png", blob=_png())
        return types.ReadResourceResult(contents=[blob])

    def watch(method: str) -> Any:
        async def answer(ctx: Any, params: Any) -> Any:
            entry = ours[method]
            assert entry is not None
            known = not str(params.uri).startswith("test://")  # the suite's own: Tarmac has only terminals
            return await entry.handler(ctx, params) if known else types.EmptyResult()

        return answer

    server.add_request_handler("tools/call", types.CallToolRequestParams, call)
    server.add_request_handler("resources/read", types.ReadResourceRequestParams, read)
    server.add_request_handler("prompts/list", types.PaginatedRequestParams, list_prompts)
    server.add_request_handler("prompts/get", types.GetPromptRequestParams, get_prompt)
    server.add_request_handler("completion/complete", types.CompleteRequestParams, complete)
    server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, nothing)
    server.add_request_handler("resources/subscribe", types.SubscribeRequestParams, watch("resources/subscribe"))
    server.add_request_handler("resources/unsubscribe", types.UnsubscribeRequestParams, watch("resources/unsubscribe"))
    return server


async def serve(port: int, folder: Path) -> None:
    make = adapter.make_server
    adapter.make_server = lambda tools: with_everything(make(tools))
    adapter.ASKED = "user_name"  # type: ignore[misc]  # the suite's name for the one question
    server = Fixture(load=lambda workspace: Config(workspace=workspace, user_folder=folder), workspace=folder)
    try:
        with http.listen(port) as listening:
            port = listening.getsockname()[1]
            print(port, flush=True)
            await http.serve(adapter.http_app(server, port), listening)
    finally:
        await server.aclose()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), Path(sys.argv[2])))
