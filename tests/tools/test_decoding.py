"""What a model sent, read or refused with a sentence that says what is wrong (S11)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarmac.errors import BadArguments
from tarmac.tools.task_tools import AskFollowupQuestion, FollowUp, UpdateTodoList
from tarmac.tools.toolbox import toolbox

QUESTION = "ask_followup_question"


def refusal(name: str, arguments: str) -> str:
    with pytest.raises(BadArguments) as error:
        toolbox().decode(name, arguments)
    return error.value.what


def test_arguments_become_the_fields_of_the_tool() -> None:
    """S11: native calls are JSON."""
    call = toolbox().decode(QUESTION, '{"question": "Which?", "follow_up": [{"text": "a", "mode": "code"}]}')
    assert call == AskFollowupQuestion(question="Which?", follow_up=(FollowUp(text="a", mode="code"),))


def test_an_unknown_tool_is_told_with_the_nearest_name() -> None:
    """S11: unknown tool."""
    said = refusal("ask_folowup_question", "{}")
    assert "There is no tool 'ask_folowup_question'. Did you mean 'ask_followup_question'?" in said
    assert said.endswith('A right call: ask_followup_question {"question": "…"}')


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("{}", "missing value for required argument 'question' (a string: A clear question, about one thing)"),
        ("", "missing value for required argument 'question'"),
        ('{"question": null}', "argument 'question' must be a string: A clear question, about one thing; it is null"),
        (
            '{"question": 3}',
            "argument 'question' must be a string: A clear question, about one thing; it is an integer",
        ),
        ('{"question": ""}', "argument 'question' must be a string of length >= 1"),
        ('{"question": "?", "follow_up": 1}', "argument 'follow_up' must be a list"),
        ('{"question": "?", "follow_up": [{}]}', "missing value for required argument 'follow_up[0].text'"),
        ('{"question": "?", "follow_up": [{"text": []}]}', "argument 'follow_up[0].text' must be a string"),
        ('{"quesion": "?"}', "has no argument 'quesion'. Did you mean 'question'? Its arguments: question, follow_up."),
        ("[1]", "must be a JSON object, not a list"),
        ("3", "must be a JSON object, not an integer"),
        ('{"question": "?"', "are not valid JSON: they end too early"),
        ('{"question": "half a', "are not valid JSON: they end too early"),
        ('{"question" "?"}', "are not valid JSON: Expecting ':' delimiter at character 12"),
        ("[" * 100_000, "nested too deeply"),
        ('{"path": ' + "1" * 5_000 + "}", "a number with too many digits"),
        ('{"question": "\\ud83d"}', "hold half of a surrogate pair"),
    ],
)
def test_wrong_arguments_are_told_by_name_with_what_was_expected(arguments: str, expected: str) -> None:
    """S11: broken JSON, missing argument, wrong type."""
    said = refusal(QUESTION, arguments)
    assert expected in said
    assert QUESTION in said
    assert len(said) < 400


def test_a_call_that_was_encoded_twice_is_read() -> None:
    assert toolbox().decode(QUESTION, json.dumps('{"question": "?"}')) == AskFollowupQuestion(question="?")


def test_words_about_the_call_are_passed_over() -> None:
    """S11: other agents want models to say why with each call."""
    call = toolbox().decode(QUESTION, '{"question": "?", "explanation": "I must know", "requires_approval": false}')
    assert call == AskFollowupQuestion(question="?")


def test_a_time_in_milliseconds_is_told() -> None:
    said = refusal("execute_command", '{"command": "ls", "timeout": 120000}')
    assert "argument 'timeout' must be a number <= 3600.0 (a number: Seconds to wait for its end" in said


def test_line_ends_inside_a_string_are_taken_as_they_are() -> None:
    assert toolbox().decode("update_todo_list", '{"todos": "[ ] a\n[x] b"}') == UpdateTodoList(todos="[ ] a\n[x] b")


@pytest.mark.parametrize(
    "given",
    [
        ["yes", "no"],
        "<suggest>yes</suggest>\n<suggest>no</suggest>",
        {"suggest": ["yes", "no"]},
        '[{"text": "yes"}, {"text": "no"}]',
    ],
)
def test_suggestions_are_read_in_every_shape_models_know(given: object) -> None:
    """S11: calls that came as XML are JSON by now, in Roo's spelling."""
    call = toolbox().decode(QUESTION, json.dumps({"question": "?", "follow_up": given}))
    assert isinstance(call, AskFollowupQuestion)
    assert [each.text for each in call.follow_up] == ["yes", "no"]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.text(max_size=8)
            | st.sampled_from(["file", "path", "diff", "content", "suggest", "start", "end", "text"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)


ELSEWHERE = "args file path line_range line_ranges lines offset limit start_line end_line diff content suggest".split()


@given(name=st.sampled_from(toolbox().names), value=json_values, as_field=st.booleans(), data=st.data())
def test_no_arguments_whatever_are_more_than_bad(name: str, value: object, as_field: bool, data: st.DataObject) -> None:
    """S11: a call with broken arguments is told to the model, never a crash."""
    if as_field:
        fields = [*toolbox().schemas([name])[0].parameters["properties"], *toolbox().tools[name].spellings, *ELSEWHERE]  # type: ignore[misc]
        value = data.draw(st.dictionaries(st.sampled_from(fields), st.just(value) | json_values, max_size=3))
    try:
        toolbox().decode(name, json.dumps(value))
    except BadArguments as error:
        assert error.what


@given(name=st.sampled_from(toolbox().names), text=st.text())
def test_no_text_whatever_is_more_than_bad(name: str, text: str) -> None:
    try:
        toolbox().decode(name, text)
    except BadArguments as error:
        assert error.what
