"""A model that plays a file, and what is said of a file that can't be played."""

import asyncio
from contextlib import aclosing
from pathlib import Path

import pytest

from tarmac.errors import FileUnavailable, ScriptWrong
from tarmac.models.factory import open_model
from tarmac.models.messages import Message, Reasoning, Text, ToolUse, Usage
from tarmac.models.model_catalog import price
from tarmac.models.provider import (
    CallDelta,
    Chunk,
    Completion,
    Model,
    ModelError,
    Price,
    Prompt,
    ReasoningDelta,
    TextDelta,
)

HELLO = Prompt("", (Message("user", (Text("hello"),)),))

PLAY = """
context_window = 1000
price = { input = 3, output = 15 }

[[turn]]
reasoning = "Hm."
text = "Let me look."
usage = { input = 10, output = 4 }
[[turn.call]]
name = "read_file"
arguments = { path = "ä.py" }
[[turn.call]]
id = "mine"
name = "list_files"
arguments = '{"path": '

[[turn]]
text = "No."
[turn.error]
kind = "rate_limit"
status = 429
retry_after = 2

[[turn]]
text = "One two  three."
pace = 0.001
times = 2
"""


def call_as_xml(folder: Path, text: str) -> Model:
    file = folder / "play.toml"
    file.write_text(text)
    return open_model(f"scripted/{file}")


async def asked(model: Model, prompt: Prompt = HELLO) -> list[Chunk]:
    async with aclosing(model.stream(prompt, load=lambda blob: b"")) as stream:
        return [chunk async for chunk in stream]


async def test_a_script_says_its_turns_one_after_the_other(tmp_path: Path) -> None:
    model = call_as_xml(tmp_path, PLAY)
    *deltas, answer = await asked(model)
    assert isinstance(answer, Completion)
    assert (answer.stop, answer.usage) == ("tool_use", Usage(input=10, output=4))
    reasoning, text, look, mine = answer.parts
    assert isinstance(look, ToolUse)
    assert (reasoning, text) == (Reasoning("Hm."), Text("Let me look."))
    assert (look.name, look.arguments) == ("read_file", '{"path": "ä.py"}')
    assert mine == ToolUse("mine", "list_files", '{"path": ')
    assert deltas == [
        ReasoningDelta("Hm."),
        TextDelta("Let me look."),
        CallDelta(0, look.id, "read_file", ""),
        CallDelta(0, look.id, "read_file", look.arguments),
        CallDelta(1, "mine", "list_files", ""),
        CallDelta(1, "mine", "list_files", '{"path": '),
    ]
    with pytest.raises(ModelError) as caught:
        await asked(model)
    error = caught.value
    assert (error.kind, error.status, error.retry_after, error.retryable) == ("rate_limit", 429, 2.0, True)
    assert error.received == (Text("No."),)
    for _ in range(2):
        assert await asked(model) == [
            TextDelta("One "),
            TextDelta("two  "),
            TextDelta("three."),
            Completion((Text("One two  three."),), "end"),
        ]
    with pytest.raises(ModelError, match="has only 4 turns") as caught:
        await asked(model)
    assert not caught.value.retryable


async def test_a_script_says_that_it_is_one_and_what_it_would_cost(tmp_path: Path) -> None:
    info = call_as_xml(tmp_path, PLAY).info
    assert (info.id, info.scripted, info.context_window) == ("scripted/play", True, 1000)
    assert info.price == Price(input=3, output=15)
    assert price(info, Usage(input=1_000_000, output=100_000)) == 4.5
    assert price(call_as_xml(tmp_path, '[[turn]]\ntext = "hi"').info, Usage(input=1)) is None


async def test_a_conversation_that_is_resumed_goes_on_where_the_script_was(tmp_path: Path) -> None:
    model = call_as_xml(tmp_path, PLAY)
    said = Message("assistant", (Text("Let me look."),))
    with pytest.raises(ModelError, match="rate_limit"):  # comes after the first answer, and is none
        await asked(model, Prompt("", (*HELLO.messages, said, *HELLO.messages)))
    model = call_as_xml(tmp_path, PLAY)
    turns = (*HELLO.messages, said) * 2
    assert (await asked(model, Prompt("", (*turns, *HELLO.messages))))[0] == TextDelta("One ")
    with pytest.raises(ModelError, match="all were played"):
        await asked(call_as_xml(tmp_path, PLAY), Prompt("", turns * 3))


async def test_a_turn_that_waits_can_be_cancelled(tmp_path: Path) -> None:
    model = call_as_xml(tmp_path, '[[turn]]\ntext = "late"\ndelay = 60')
    waiting = asyncio.create_task(asked(model))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(waiting, 1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[turn]]\ntxt = 1", "line 2: turn 1 has no 'txt': did you mean text?"),
        ("# nothing\n", "line 1: a script needs at least one [[turn]]"),
        ("[[turn]]\ntext = 1", "line 2: text of turn 1 must be text"),
        ('[[turn]]\n\n\ntext = """\n[[turn]]\n"""\n[[turn]]\npace = -1', "line 8: pace of turn 2 must be a number"),
        ('[[turn]]\ntext = ""\nstop = """\nno"""', "line 3: stop of turn 1 must be one of end, tool_use"),
        ("[[turn]]\n[[turn.call]]\narguments = {}", "line 2: call 1 of turn 1 has no name"),
        ("[[turn]]\n[[turn.call]]\nname = 'x'\narguments = 2", "line 4: arguments of call 1 of turn 1 must be a table"),
        ("[[turn]]\n[[turn.call]]\nname = 'x'\narguments = { d = 2026-11-16 }", "line 4: arguments of call 1"),
        ("[[turn]]\n[turn.error]\nkind = 'rate'", "line 3: kind of error of turn 1 must be one of rate_limit"),
        ("[[turn]]\nusage = { inputs = 1 }", "line 2: usage of turn 1 has no 'inputs': did you mean input?"),
        ("[[turn]]\ntimes = true", "line 2: times of turn 1 must be a whole number"),
        ("name = 'x'\nturns = []\n[[turn]]", "line 2: a script has no 'turns': did you mean turn?"),
        ("turn = 3", "line 1: turn of a script must be tables: [[turn]]"),
        ("[[turn]]\ntext = nope", "(at line 2, column 8)"),
    ],
)
def test_a_wrong_script_is_told_with_file_and_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ScriptWrong) as caught:
        call_as_xml(tmp_path, text)
    assert said in str(caught.value)
    assert "play.toml" in str(caught.value)


def test_a_script_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileUnavailable, match=r"none\.toml does not exist"):
        open_model(f"scripted/{tmp_path}/none.toml")
