"""The box: schemas as models get them, exactly as kept; the table in docs/tools.md; names and aliases.

To renew the snapshot after a change that was meant:  RENEW_SNAPSHOTS=1 pytest tests/tools/test_toolbox.py
"""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, get_args

import pytest
from msgspec import Meta

from tarmac.tools.edit_file import WriteToFile
from tarmac.tools.tool import Bench, Done, Go, Group, Ready, Tool
from tarmac.tools.toolbox import toolbox

SNAPSHOT = Path(__file__).parent / "data" / "schemas.json"
GUIDE = Path(__file__).parents[2] / "docs" / "tools.md"
KEYWORDS = {"type", "description", "properties", "required", "items", "enum"}
POINT_4 = """
    read_file write_to_file apply_diff insert_content search_and_replace apply_patch list_files search_files
    list_code_definition_names execute_command open_persistent_terminal run_persistent_command
    read_terminal send_to_terminal wait_for_terminal kill_persistent_terminal ask_followup_question
    attempt_completion switch_mode update_todo_list run_slash_command read_output use_mcp_tool access_mcp_resource
    run_command codebase_search fetch_url browser_action generate_image fetch_instructions condense
    new_task
"""


def parts(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A schema and all inside it."""
    yield schema
    for each in schema.get("properties", {}).values():
        yield from parts(each)
    if "items" in schema:
        yield from parts(schema["items"])


def test_schemas_are_as_they_are_kept() -> None:
    """S10: what a model is told of each tool changes only when somebody means it to."""
    made = [
        {"name": each.name, "description": each.description, "parameters": each.parameters}
        for each in toolbox().schemas()
    ]
    text = json.dumps(made, indent=2, ensure_ascii=False) + "\n"
    if os.environ.get("RENEW_SNAPSHOTS"):
        SNAPSHOT.write_text(text)
    assert json.loads(SNAPSHOT.read_text()) == made


@pytest.mark.parametrize("name", toolbox().names)
def test_schemas_are_plain_enough_for_every_provider(name: str) -> None:
    """S10: no references, no null, each argument described."""
    (schema,) = toolbox().schemas([name])
    for part in parts(dict(schema.parameters)):
        assert set(part) <= KEYWORDS
        assert part["type"] in ("string", "integer", "number", "boolean", "array", "object")
        if part.get("type") == "object":
            assert set(part.get("required", [])) <= set(part["properties"])
            assert all(each.get("description") for each in part["properties"].values())
    assert schema.parameters["type"] == "object"
    assert 20 < len(schema.description) < 1024


def test_every_tool_of_the_seeds_is_there() -> None:
    """S10."""
    assert set(POINT_4.split()) == set(toolbox().names)
    assert {each.group for each in toolbox()} <= set(get_args(Group))
    assert {each.name for each in toolbox() if each.parallel} == {
        *("read_file", "list_files", "search_files", "list_code_definition_names", "read_output")
    }


def test_one_tool_has_two_names() -> None:
    """S10: write_file is another agent's name for write_to_file."""
    assert isinstance(toolbox().decode("write_file", '{"path": "a", "content": ""}'), WriteToFile)
    (schema,) = toolbox().schemas(["write_file"])
    assert schema.name == "write_file"
    assert toolbox().group("write_file") == "edit"
    assert "write_file" in toolbox()
    assert "no_such_tool" not in toolbox()
    assert toolbox().group("no_such_tool") is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shout(Tool):
    name: ClassVar[str] = "shout"
    group: ClassVar[Group] = "always"
    description: ClassVar[str] = "Say it louder."

    text: Annotated[str, Meta(description="What to say.")]

    async def prepare(self, bench: Bench) -> Ready:
        async def act(_: Go) -> Done:
            return Done.text(self.text.upper())

        return Ready(title="Shouting", done="Shouted", act=act)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        *(("functions.read_file", "read_file"), ("default_api:read_file", "read_file"), (" read_file\n", "read_file")),
        *(("read_file<|channel|>json", "read_file"), ("functions.write_file", "write_to_file")),
        *(("read_files", "read_files"), ("functions.", "functions."), ("", ""), ("x.read_file", "x.read_file")),
    ],
)
def test_what_servers_leave_around_a_name_does_not_count(written: str, meant: str) -> None:
    """S11: a model can't mend what its server's parser does."""
    assert toolbox().canonical(written) == meant


def test_a_box_takes_more_tools() -> None:
    """S10: packages can bring their own."""
    box = toolbox().with_tools(Shout)
    assert box.decode("shout", '{"text": "hi"}') == Shout(text="hi")
    assert "shout" not in toolbox()


def test_the_guide_lists_every_tool_with_its_arguments() -> None:
    """S10: docs/tools.md."""
    rows = []
    for tool, schema in zip(toolbox(), toolbox().schemas(), strict=True):
        fields: Any = schema.parameters["properties"]
        required: Any = schema.parameters.get("required", [])
        named = [f"**`{each}`**" if each in required else f"`{each}`" for each in fields]
        rows.append(f"| `{schema.name}` | {tool.group} | {', '.join(named)} |")
    listed = [line for line in GUIDE.read_text().splitlines() if line.startswith("| `")]
    assert [each.rpartition(" | ")[0] + " |" for each in listed[: len(rows)]] == rows
