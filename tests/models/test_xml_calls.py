"""Tool calls that a model writes as text: read at any chunk borders, with any content."""

import asyncio
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.models.asking import GPT, Dialect, asked, talking
from tests.models.server import Reply, gpt

from tarmac.models.completion_builder import CompletionBuilder
from tarmac.models.factory import open_model
from tarmac.models.messages import Message, Part, Reasoning, Text, ToolResult, ToolUse
from tarmac.models.provider import CallDelta, Completion, ModelError, Prompt, TextDelta, ToolSchema
from tarmac.models.xml_calls import XmlCalls, as_text, call_as_xml, describe_tools
from tarmac.models.xml_parser import XmlParser
from tarmac.tools.toolbox import toolbox

STRING = {"type": "string"}
FILE = {"type": "object", "properties": {"path": STRING, "lines": {"type": "array", "items": {"type": "integer"}}}}
SUGGESTION = {"type": "object", "properties": {"text": STRING, "mode": STRING}, "required": ["text"]}


def tool(name: str, **properties: object) -> ToolSchema:
    return ToolSchema(
        name, f"Do {name}.", {"type": "object", "properties": properties, "required": list(properties)[:1]}
    )


WRITE = tool("write_to_file", path=STRING, content=STRING, line_count={"type": "integer"})
READ = tool("read_file", path=STRING)
MANY = ToolSchema(
    "read_files",
    "Read.",
    {
        "type": "object",
        "properties": {
            "files": {"type": "array", "items": {"$ref": "#/$defs/File"}},
            "tags": {"anyOf": [{"type": "array", "items": STRING}, {"type": "null"}]},
            "deep": {"type": "boolean"},
            "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "ratio": {"type": "number"},
            "options": FILE,
            "follow_up": {"type": "array", "items": SUGGESTION},
        },
        "$defs": {"File": FILE},
    },
)
TOOLS = (WRITE, READ, MANY)


def parsed(*pieces: str, complete: bool = True) -> tuple[Part, ...]:
    """The parts of a message, with what was given on the way checked against them."""
    draft = CompletionBuilder(set())
    parser = XmlParser(TOOLS, draft)
    given_ = [chunk for piece in pieces for chunk in parser.feed(piece)] + parser.finish(complete=complete)
    parts = draft.parts
    texts = "".join(chunk.text for chunk in given_ if isinstance(chunk, TextDelta))
    assert texts == "".join(part.text for part in parts if isinstance(part, Text))
    uses = [part for part in parts if isinstance(part, ToolUse)]
    for index, use in enumerate(uses):
        deltas = [chunk for chunk in given_ if isinstance(chunk, CallDelta) and chunk.index == index]
        assert deltas[0] == CallDelta(index, use.id, use.name, "")
        assert "".join(delta.arguments for delta in deltas) == use.arguments
    assert len({use.id for use in uses}) == len(uses)
    return parts


def plain(parts: tuple[Part, ...]) -> list[object]:
    """Texts, and (name, arguments) of calls; arguments that are no JSON as text."""
    return [part.text if isinstance(part, Text) else _call(part) for part in parts]


def _call(part: Part) -> object:
    assert isinstance(part, ToolUse)
    try:
        return part.name, json.loads(part.arguments)
    except ValueError:
        return part.name, part.arguments


def call(content: str, path: str = "a.py") -> str:
    return f"<write_to_file>\n<path>{path}</path>\n<content>\n{content}</content>\n</write_to_file>"


def wrote(content: str, path: str = "a.py") -> tuple[str, dict[str, str]]:
    return "write_to_file", {"path": path, "content": content}


def test_text_and_calls_come_in_their_order() -> None:
    found = parsed(
        "I look.\n\n<read_file>\n<path> a b.py\n</path>\n</read_file>\n\nThen:\n", call("x = 1\n"), "\n Done. "
    )
    assert plain(found) == ["I look.", ("read_file", {"path": "a b.py"}), "Then:", wrote("x = 1\n"), "Done."]


EXAMPLE = call("inner\n")
pieces = st.sampled_from(
    [
        "x = 1\n",
        "\n\n",
        "  ",
        "ü🎉",
        "<",
        ">",
        "</",
        "<content>",
        "</content>",
        "<path>b</path>",
        "</path>",
        "<html></html>",
        "```",
        "\n```xml\n",
        "`<read_file>`",
        '"quoted" \\ back',
        "<read_file><path>c</path></read_file>",
        "</conten",
        "&lt;",
        "]]>",
        "\r\n",
        "<think>",
        "\n<think>\n",
        "</think>",
    ]
)
balanced = pieces | st.just(EXAMPLE)
stray = balanced | st.sampled_from(["</write_to_file>", "</content>\n</write_to_file>", "</content></write_to_file>"])


@given(st.lists(balanced).map("".join), st.sampled_from(["", "<write_to_file>", "see <write_to_file> for that\n"]))
def test_a_content_may_hold_the_tags_of_its_own_tool(content: str, mention: str) -> None:
    """S6: a file's content that contains the same tag does not break it."""
    content = f"first\n{mention}{content}"
    assert plain(parsed(f"So.\n{call(content)}")) == ["So.", wrote(content)]


@given(st.lists(stray).map("".join))
def test_a_content_ends_at_the_last_closing_tag(content: str) -> None:
    assert plain(parsed(call(f"first\n{content}"))) == [wrote(f"first\n{content}")]


@given(st.lists(balanced).map("".join), st.lists(balanced).map("".join))
def test_several_calls_of_one_tool_stay_apart(one: str, two: str) -> None:
    one, two = f"1\n{one}", f"2\n{two}"
    assert plain(parsed(call(one), "\n\n", call(two, "b.py"))) == [wrote(one), wrote(two, "b.py")]


anything = st.lists(
    stray
    | st.sampled_from(
        [
            "<write_to_file>",
            "\n<write_to_file>\n<path>a</path>\n<content>\n",
            "</content>\n<line_count>3</line_count>\n</write_to_file>\n",
            "<read_file>",
            "<read_file/>",
            "</read_file>",
            "<read_files><deep>yes</deep>",
            "<files><file>",
            "`",
            "~~~\n",
            "\n",
            "Some words. ",
            "<path>",
            "<unknown>",
            "<limit x='1'>",
            "<path " + "y" * 300 + ">",
        ]
    ),
    max_size=12,
).map("".join)


@example("<write_to_file><read_file>" + call("inner\n") * 2, [], True)
@given(anything, st.lists(st.integers(0, 400), max_size=6), st.booleans())
def test_every_split_gives_the_same_parts(message: str, cuts: list[int], complete: bool) -> None:
    whole = plain(parsed(message, complete=complete))
    assert plain(parsed(*message, complete=complete)) == whole
    places = [0, *sorted(min(cut, len(message)) for cut in cuts), len(message)]
    split = [message[a:b] for a, b in pairwise(places)]
    assert plain(parsed(*split, complete=complete)) == whole


@given(
    st.text(max_size=60)
    | st.lists(st.sampled_from(["<b>", "</b>", "<a href='x'>", "1 < 2", "\n", "x", "`"])).map("".join)
)
def test_text_without_calls_is_text(text: str) -> None:
    assert "".join(map(str, plain(parsed(*text)))) == text.strip()


@pytest.mark.parametrize("tag", ["think", "thinking"])
def test_what_a_model_only_thinks_of_is_text(tag: str) -> None:
    """S6: models that write their thoughts into their text consider calls that nobody must make."""
    made = "<read_file><path>b</path></read_file>"
    thought = f"<{tag}>\nShall I <read_file><path>a</path></read_file>? Or\n```\n{EXAMPLE}\nNo.</{tag}>"
    assert plain(parsed(f"{thought}\n{made}")) == [thought, ("read_file", {"path": "b"})]
    assert plain(parsed(f"Well.\n  {thought}{made}")) == [f"Well.\n  {thought}", ("read_file", {"path": "b"})]
    assert plain(parsed(f"<{tag}>\n{made}")) == [f"<{tag}>\n{made}"]
    assert plain(parsed(f"Do <{tag}> of {made}")) == [f"Do <{tag}> of", ("read_file", {"path": "b"})]
    assert plain(parsed(f"{made}\n<{tag}>{made}</{tag}>")) == [
        ("read_file", {"path": "b"}),
        f"<{tag}>{made}</{tag}>",
    ]


def test_examples_in_fences_and_backticks_are_text() -> None:
    for message in (
        f"Like so:\n```xml\n{EXAMPLE}\n```\nSee?",
        f"Like so:\n  ~~~~\n{EXAMPLE}\n~~~\n```\n  ~~~~\nSee?",
        "Use `<read_file>` and `<read_file><path>x</path></read_file>`.",
        "I would use <read_file> here, or <write_to_file>.",
        "An unknown <tool><path>x</path></tool>.",
        "5 < 6, <read_fil",
        "```\n<read_file><path>x</path></read_file>",
    ):
        assert plain(parsed(message)) == [message.strip()]
    found = parsed(f"```js\nx\n```\n{EXAMPLE}")
    assert plain(found) == ["```js\nx\n```", wrote("inner\n")]
    assert plain(parsed("Inline ```code``` here.\n", EXAMPLE))[1] == wrote("inner\n")


def test_arguments_have_the_types_of_the_schema() -> None:
    message = """
<read_files>
<files><file><path>a</path><lines>[1, 2]</lines></file>
<file><path>b</path><lines>3</lines><lines>4</lines></file></files>
<tags>["x", "y"]</tags>
<deep>True</deep>
<limit>7</limit>
<ratio>0.5</ratio>
<options>{"path": "c"}</options>
<follow_up><suggest>Yes</suggest><suggest mode="code">No</suggest></follow_up>
</read_files>"""
    assert plain(parsed(*message)) == [
        (
            "read_files",
            {
                "deep": True,
                "limit": 7,
                "ratio": 0.5,
                "options": {"path": "c"},
                "files": [{"path": "a", "lines": [1, 2]}, {"path": "b", "lines": [3, 4]}],
                "tags": ["x", "y"],
                "follow_up": [{"text": "Yes"}, {"text": "No", "mode": "code"}],
            },
        )
    ]
    odd = (
        "<read_files><tags>x</tags><tags>y</tags><limit>null</limit><deep>maybe</deep><ratio>much</ratio></read_files>"
    )
    assert plain(parsed(odd)) == [("read_files", {"limit": None, "deep": "maybe", "ratio": "much", "tags": ["x", "y"]})]
    fields = "<read_files><files><path>a</path></files><options><path>p</path></options></read_files>"
    assert plain(parsed(fields)) == [("read_files", {"options": {"path": "p"}, "files": [{"path": "a"}]})]
    assert plain(parsed("<read_file><wrong>x</wrong></read_file>")) == [("read_file", {"wrong": "x"})]
    assert plain(parsed("<read_file/> <read_file></read_file>")) == [("read_file", {}), ("read_file", {})]


def test_arguments_after_a_content_are_not_lost() -> None:
    message = "<write_to_file><content>\na\n</content>\n<path>p</path> and <line_count>1</line_count></write_to_file>"
    assert plain(parsed(*message)) == [("write_to_file", {"content": "a\n", "path": "p", "line_count": 1})]
    inner = "<path>p</path><content>\na <write_to_file>\n</content><line_count>1</line_count>"
    assert plain(parsed(f"<write_to_file>{inner}</write_to_file>")) == [
        ("write_to_file", {"path": "p", "content": "a <write_to_file>\n", "line_count": 1})
    ]


def test_a_call_that_was_cut_off_can_not_be_run() -> None:
    whole = call("one\ntwo\n")
    for end in range(len("<write_to_file>\n<path>"), whole.index("</content>")):
        last = parsed(whole[:end], complete=False)[-1]
        assert isinstance(last, ToolUse)
        with pytest.raises(ValueError, match=r"."):
            json.loads(last.arguments)
    # forgotten, not cut off
    assert plain(parsed(whole.removesuffix("</write_to_file>"))) == [wrote("one\ntwo\n")]
    assert plain(parsed(whole.replace("</content>\n", ""))) == [wrote("one\ntwo\n")]


def test_a_long_content_is_given_while_it_comes() -> None:
    parser = XmlParser(TOOLS, CompletionBuilder(set()))
    parser.feed("<write_to_file><path>a</path><content>\n")
    for number in range(3):
        (delta,) = parser.feed(f"line {number}\n")
        assert isinstance(delta, CallDelta)
        assert delta.arguments == f"line {number}\\n"


@given(st.dictionaries(st.sampled_from(["path", "content", "line_count"]), st.text() | st.integers()))
def test_a_call_of_the_history_reads_back_as_itself(arguments: dict[str, Any]) -> None:
    arguments["path"] = str(arguments.get("path", "p")).strip()
    arguments["content"] = str(arguments.get("content", ""))
    arguments["line_count"] = len(arguments["content"])
    if "<" in "".join(map(str, arguments.values())):
        return
    text = call_as_xml("write_to_file", json.dumps(arguments), WRITE.parameters)
    assert plain(parsed(text)) == [("write_to_file", arguments)]


def test_the_history_is_told_in_words() -> None:
    calls = (ToolUse("1", "read_file", '{"path": "a"}'), ToolUse("2", "read_file", "{"))
    results = (ToolResult("1", (Text("x = 1"),)), ToolResult("2", (Text("no JSON"),), failed=True))
    messages = (
        Message("user", (Text("go"),)),
        Message("assistant", (Reasoning("hm"), Text("I look."), *calls)),
        Message("user", (*results, Text("and?"))),
    )
    told = as_text(Prompt("Be brief.", messages, TOOLS))
    assert told.tools == ()
    assert told.system == f"Be brief.\n\n{describe_tools(TOOLS)}"
    assert told.messages[1].parts == (
        Reasoning("hm"),
        Text("I look.\n\n<read_file>\n<path>a</path>\n</read_file>\n\n<read_file>\n{\n</read_file>"),
    )
    assert told.messages[2].text == "[read_file] Result:\n\nx = 1\n\n[read_file] Failed:\n\nno JSON\n\nand?"


def test_tools_are_described_as_a_call_with_types_and_what_is_required() -> None:
    """S11."""
    text = describe_tools((WRITE, MANY))
    assert "<path>required" in text
    assert "<line_count>integer" in text
    assert "<files>array" in text
    assert '"$ref"' not in describe_tools((WRITE,))
    assert "<write_to_file>\n<path>" in text
    read = describe_tools(toolbox().schemas(["read_file"]))
    assert 'JSON: [{"path": "The file.", "line_ranges": ["Parts to read' in read


PHI = Dialect("ollama", "phi", "/v1", GPT.says)


async def test_a_model_without_tools_of_its_own_calls_them_in_text() -> None:
    """S6: XML tool calls in text for models without native ones."""
    message = "I look.\n<read_file>\n<path>a</path>\n</read_file>\n"
    prompt = Prompt("Be brief.", (Message("user", (Text("go"),)),), TOOLS)
    letters: list[dict[str, object]] = [{"content": each} for each in message]
    async with talking(PHI, Reply(gpt(*letters)), native_tools=False) as (
        model,
        server,
    ):
        assert isinstance(model, XmlCalls)
        last = (await asked(model, prompt))[-1]
        assert isinstance(last, Completion)
        assert (plain(last.parts), last.stop) == (["I look.", ("read_file", {"path": "a"})], "tool_use")
        body: Any = server.requests[0].body
        assert "tools" not in body
        assert "## read_file" in body["messages"][0]["content"]


async def test_what_had_come_of_a_cut_answer_is_told_in_parts() -> None:
    events = gpt({"reasoning": "hm"}, {"content": "I look.\n<read_file>\n<path>a"})
    async with talking(PHI, Reply(events[:-2], cut=True), native_tools=False) as (model, _):
        with pytest.raises(ModelError) as caught:
            await asked(model, Prompt("", (Message("user", (Text("go"),)),), TOOLS))
        thought, text, use = caught.value.received
        assert isinstance(thought, Reasoning)
        assert isinstance(use, ToolUse)
        assert (text, use.arguments) == (Text("I look."), '{"path": "a')


async def test_a_script_may_write_its_calls_as_text(tmp_path: Path) -> None:
    script = 'native_tools = false\n[[turn]]\npace = 0.0001\ntext = """<read_file><path>a</path></read_file>"""'
    file = tmp_path / "play.toml"
    await asyncio.to_thread(file.write_text, script)
    model = open_model(f"scripted/{file}")
    last = (await asked(model, Prompt("", (), TOOLS)))[-1]
    assert isinstance(last, Completion)
    assert (plain(last.parts), last.stop, model.info.scripted) == ([("read_file", {"path": "a"})], "tool_use", True)
