"""Questions, the result, the mode, the todo list, slash commands."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tools.workshop import Workshop, text_of

from tarmac.errors import BadArguments, ToolFailed
from tarmac.models.messages import Blob, Image, Text
from tarmac.prompts.modes import load_modes
from tarmac.tools.servers import read_definitions
from tarmac.tools.task_tools import parse_checklist
from tarmac.tools.tool import Reply, Suggestion, TodoItem


async def test_a_question_waits_for_the_person(shop: Workshop) -> None:
    """S10, S19: ask_followup_question; an answer may carry pictures."""
    picture = Blob("0" * 64, 3, "image/png")
    shop.person.answers.append(Reply(text="the second", images=(picture,)))
    done = await shop.call(
        "ask_followup_question", question="Which?", follow_up=["one", {"text": "two", "mode": "ask"}]
    )
    assert shop.person.asked == [("Which?", (Suggestion(text="one"), Suggestion(text="two", mode="ask")))]
    assert done.content == (Text("<user_message>\nthe second\n</user_message>"), Image(picture))


async def test_a_result_is_accepted_or_answered(shop: Workshop) -> None:
    """S10: attempt_completion."""
    assert await shop.text("attempt_completion", result="Done.", command="open index.html") == ""
    shop.person.answers.append(Reply(text="not yet"))
    assert "not yet" in await shop.text("attempt_completion", result="Done.")
    assert shop.person.completed == ["Done.", "Done."]


async def test_a_mode_is_switched_or_does_not_exist(shop: Workshop) -> None:
    """S9: switch_mode."""
    assert (
        await shop.text("switch_mode", mode_slug="ask", reason="only reading") == "Successfully switched to ask mode."
    )
    assert shop.person.mode == "ask"
    assert await shop.failure("switch_mode", mode="nowhere") == "Invalid mode: nowhere"


@pytest.mark.parametrize(
    "todos",
    [
        "[x] read\n[-] edit\n[ ] test",
        "- [X] read\n* [~] edit\n\n1. [ ] test\n",
        ["[x] read", "[-] edit", "[ ] test"],
        [
            {"content": "read", "status": "completed"},
            {"content": "edit", "status": "in_progress"},
            {"content": "test", "status": "pending"},
        ],
    ],
)
async def test_the_todo_list_is_replaced(shop: Workshop, todos: object) -> None:
    """S10: update_todo_list."""
    assert await shop.text("update_todo_list", todos=todos) == "Todo list updated successfully."
    assert [(each.text, each.status) for each in shop.person.todos] == [
        ("read", "done"),
        ("edit", "doing"),
        ("test", "open"),
    ]


async def test_a_line_that_is_no_item_is_told(shop: Workshop) -> None:
    with pytest.raises(BadArguments, match="'just text' is not an item"):
        await shop.call("update_todo_list", todos="[ ] a\njust text")


async def test_a_slash_command_is_loaded(shop: Workshop) -> None:
    """S10: run_slash_command."""
    shop.person.commands["review"] = "Look at the diff."
    text = await shop.text("run_slash_command", command="/review", args="all of it")
    assert "Look at the diff." in text
    assert "Provided arguments: all of it" in text
    said = await shop.failure("run_slash_command", command="deploy")
    assert said == "There is no slash command 'deploy'. Available: review."


_MARKS = {"open": " ", "doing": "-", "done": "x"}
_texts = st.text(st.characters(blacklist_categories=("Cc", "Cs", "Zl", "Zp", "Zs")), min_size=1)


@given(
    st.lists(st.builds(lambda text, status: TodoItem(text=text, status=status), _texts, st.sampled_from(list(_MARKS))))
)
def test_every_list_is_read_back_from_its_checklist(items: list[TodoItem]) -> None:
    text = "\n".join(f"[{_MARKS[each.status]}] {each.text}" for each in items)
    assert parse_checklist(text) == tuple(items)


async def test_a_model_can_ask_for_condensing(shop: Workshop) -> None:
    """S17: a person and the model may ask for it."""
    assert "before your next answer" in text_of(await shop.call("condense", focus="the tests"))
    assert shop.person.condensed == ["the tests"]


@pytest.mark.parametrize("task", ["create_mode", "create_mcp_server"])
async def test_instructions_are_fetched_and_are_true(shop: Workshop, task: str) -> None:
    """S10: what they show can be read by what reads it."""
    text = text_of(await shop.call("fetch_instructions", task=task))
    if task == "create_mode":
        source = text[text.index("+++") : text.index("Groups are")].strip()
        shop.file(".tarmac/modes/reviewer.md", source)
        modes = load_modes(shop.folder, shop.folder / "nowhere")
        assert modes.trouble == () and (found := modes.get("reviewer")) is not None
        assert found.allows("write_to_file", "edit", "a.py") is not None
        assert found.allows("write_to_file", "edit", "a.md") is None
    else:
        shop.file(".tarmac/mcp_servers.toml", text[text.index("[servers.weather]") : text.index("Write the server")])
        found_servers = read_definitions(shop.folder, shop.folder / "nowhere")
        assert sorted(found_servers.servers) == ["issues", "weather"] and found_servers.trouble == ()
    with pytest.raises(ToolFailed, match="Available: create_mode, create_mcp_server"):
        await shop.call("fetch_instructions", task="fly")
