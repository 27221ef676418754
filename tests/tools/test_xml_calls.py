"""Calls written as XML, as models know them from Roo-Code, through the real parser into our tools (S11)."""

from dataclasses import asdict

import pytest

from tarmac.models.completion_builder import CompletionBuilder
from tarmac.models.messages import ToolUse
from tarmac.models.xml_parser import XmlParser
from tarmac.tools.tool import Tool
from tarmac.tools.toolbox import toolbox

DIFF = "<<<<<<< SEARCH\n:start_line:3\n-------\n<old>\n=======\n</diff>\n>>>>>>> REPLACE"


def read(text: str) -> Tool:
    """The call in an answer, as the loop gets it."""
    draft = CompletionBuilder(set())
    parser = XmlParser(toolbox().schemas(), draft)
    for at in range(0, len(text), 7):
        parser.feed(text[at : at + 7])
    parser.finish()
    (use,) = [part for part in draft.parts if isinstance(part, ToolUse)]
    return toolbox().decode(use.name, use.arguments)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "<read_file>\n<args>\n  <file>\n    <path>a.py</path>\n    <line_range>1-20</line_range>\n"
            "    <line_range>40-50</line_range>\n  </file>\n  <file>\n    <path>b c.py</path>\n  </file>\n</args>\n"
            "</read_file>",
            {
                "files": (
                    {"path": "a.py", "line_ranges": ("1-20", "40-50")},
                    {"path": "b c.py", "line_ranges": ()},
                )
            },
        ),
        (
            "<read_file>\n<path>a.py</path>\n</read_file>",
            {"files": ({"path": "a.py", "line_ranges": ()},)},
        ),
        (
            "<read_file><files><file><path>a.py</path></file></files></read_file>",
            {"files": ({"path": "a.py", "line_ranges": ()},)},
        ),
        (
            '<read_file><files>[{"path": "a.py", "line_ranges": ["1-2"]}]</files></read_file>',
            {"files": ({"path": "a.py", "line_ranges": ("1-2",)},)},
        ),
        (
            "<write_to_file>\n<path>a.html</path>\n<content>\n<p>\n  <path>x</path>\n</p>\n</content>\n"
            "<line_count>3</line_count>\n</write_to_file>",
            {"path": "a.html", "content": "<p>\n  <path>x</path>\n</p>\n", "line_count": 3},
        ),
        (
            f"<apply_diff>\n<path>a.py</path>\n<diff>\n{DIFF}\n</diff>\n</apply_diff>",
            {"path": "a.py", "diff": f"{DIFF}\n"},
        ),
        (
            "<insert_content>\n<path>a.py</path>\n<line>0</line>\n<content>\nx = 1\n</content>\n</insert_content>",
            {"path": "a.py", "line": 0, "content": "x = 1\n"},
        ),
        (
            "<search_and_replace>\n<path>a.py</path>\n<search>x</search>\n<replace></replace>\n<use_regex>true</use_regex>\n"
            "<start_line>2</start_line>\n</search_and_replace>",
            {
                "path": "a.py",
                "search": "x",
                "replace": "",
                "start_line": 2,
                "end_line": None,
                "use_regex": True,
                "ignore_case": False,
                "expected_replacements": None,
            },
        ),
        (
            "<list_files>\n<path>src</path>\n<recursive>true</recursive>\n</list_files>",
            {"path": "src", "recursive": True},
        ),
        (
            "<search_files>\n<path>.</path>\n<regex>a</b>c</regex>\n<file_pattern>*.ts</file_pattern>\n</search_files>",
            {"path": ".", "regex": "a</b>c", "file_pattern": "*.ts"},
        ),
        (
            "<execute_command>\n<command>cat <<EOF > x\na && b\nEOF</command>\n<cwd>src</cwd>\n</execute_command>",
            {"command": "cat <<EOF > x\na && b\nEOF", "cwd": "src", "timeout": None},
        ),
        (
            "<ask_followup_question>\n<question>Which?</question>\n<follow_up>\n<suggest>One</suggest>\n"
            '<suggest mode="code">Two</suggest>\n</follow_up>\n</ask_followup_question>',
            {"question": "Which?", "follow_up": ({"text": "One", "mode": ""}, {"text": "Two", "mode": "code"})},
        ),
        (
            "<attempt_completion>\n<result>\nDone.\n</result>\n<command>open x</command>\n</attempt_completion>",
            {"result": "Done."},
        ),
        (
            "<switch_mode>\n<mode_slug>code</mode_slug>\n<reason>to edit</reason>\n</switch_mode>",
            {"mode_slug": "code", "reason": "to edit"},
        ),
        (
            "<update_todo_list>\n<todos>\n[x] one\n[-] two\n</todos>\n</update_todo_list>",
            {"todos": "[x] one\n[-] two"},
        ),
        (
            "<run_persistent_command><command>make</command><persistent_terminal_id>t1</persistent_terminal_id>"
            "</run_persistent_command>",
            {"command": "make", "id": "t1", "timeout": None},
        ),
        (
            "<wait_for_terminal><port>8080</port><quiet>2.5</quiet><input>false</input></wait_for_terminal>",
            {
                "id": "",
                "pattern": "",
                "port": 8080,
                "any_port": False,
                "input": False,
                "quiet": 2.5,
                "timeout": None,
            },
        ),
    ],
)
def test_a_call_in_xml_becomes_the_same_call(text: str, expected: dict[str, object]) -> None:
    """S11: XML in the text for models without native calls."""
    call = read(f"I will do this.\n\n{text}")
    assert asdict(call) == expected  # type: ignore[call-overload]


def test_a_diff_nested_in_args_becomes_the_same_diff() -> None:
    """S11: Roo-Code's form for several files, with one."""
    text = (
        "<apply_diff>\n<args>\n<file>\n  <path>a.py</path>\n  <diff>\n    <content>\n<<<<<<< SEARCH\nx\n=======\ny\n"
        ">>>>>>> REPLACE\n    </content>\n    <start_line>3</start_line>\n  </diff>\n</file>\n</args>\n</apply_diff>"
    )
    call = asdict(read(text))  # type: ignore[call-overload]
    assert call["path"] == "a.py"
    assert call["diff"].strip() == "<<<<<<< SEARCH\n:start_line:3\n-------\nx\n=======\ny\n>>>>>>> REPLACE"
