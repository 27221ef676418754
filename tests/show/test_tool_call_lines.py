"""What tools do, as a person reads it: what a terminal printed later, why something was not done, how long it takes."""

import json

import pytest
from tests.show.test_renderer import PIPE, SCREEN, plain, tell

from tarmac.events import TerminalId
from tarmac.models.messages import Text
from tarmac.show.look import Look, width
from tarmac.show.renderer import TaskRenderer
from tarmac.tasks import events as e
from tarmac.tasks import signals as s
from tarmac.tasks.events import CallId, QuestionId
from tarmac.tools.report import inside, labelled

C = CallId("c")
LONG = "for each in one two three four five six seven eight nine ten; do echo $each; done"


def finished(name: str, text: str = "", *, outcome: e.Outcome = "done", **more: object) -> e.ToolFinished:
    details = json.dumps(more.pop("details", {}))
    fields = {"at": 1.0, "call": C, "name": name, "outcome": outcome, "content": (Text(text),), "details": details}
    return e.ToolFinished(**{**fields, **more})  # type: ignore[arg-type]


def test_what_a_terminal_printed_after_the_call_is_shown_with_the_call_that_looked() -> None:
    """A7: an answer is typed into it, and the person sees what came of it."""
    told = tell(
        SCREEN,
        finished(
            "send_to_terminal",
            "Command 1 has ended.\n" + labelled("Bob\nhello Bob\n", what="New output"),
            title="Sent `Bob` to t1",
            details={"terminal": {"id": "t1", "state": "idle", "exit_code": 0}},
        ),
    )
    assert plain(told) == "✓ Sent `Bob` to t1 · it ended with exit code 0\n  │ Bob\n  │ hello Bob\n"
    quiet = finished(
        "wait_for_terminal", "idle.\nNew output: (none)", title="Waited", details={"terminal": {"id": "t"}}
    )
    assert tell(PIPE, quiet) == "✓ Waited\n"


def test_much_of_it_is_bounded() -> None:
    text = labelled("".join(f"line {n}\n" for n in range(100)))
    told = tell(PIPE, finished("read_terminal", text, title="Read terminal t1", details={"terminal": {"id": "t1"}}))
    assert told.count("\n") == 1 + 12 + 1 + 6 and "… 82 lines not shown …" in told


def test_of_a_result_only_what_is_between_the_tags_is_output() -> None:
    assert inside("head\n" + labelled("a\n</output-0123456789ab>\nb") + "\ntail") == "a\n</output-0123456789ab>\nb\n"
    assert inside("no fence at all") == ""


def test_a_command_that_is_left_running_says_where_and_what_it_asks_and_not_once_more_what_it_is() -> None:
    """S8."""
    command = {"running": True, "terminal": "t1", "awaiting": "line", "prompt": "Your name? ", "duration": 0.6}
    told = tell(
        SCREEN,
        e.ToolStarted(at=1.0, call=C, name="execute_command", title=f"Running `{LONG}`", command=LONG),
        s.OutputStreamed(call=C, terminal=TerminalId("t1"), data=b"Your name? "),
        finished("execute_command", title=f"Ran `{LONG}`", details={"command": command}),
    )
    assert plain(told).splitlines()[-1] == "• Still running in t1 · 0.6 s, waits for input: Your name?"
    past = tell(PIPE, finished("execute_command", title="Ran `x`", details={"command": command}), past=True)
    assert past.splitlines()[0].startswith("• Ran `x` · ")


def test_why_something_was_not_done_is_told_where_nobody_was_asked() -> None:
    """S13: in a pipe a denial comes with its reason, and with what it was."""
    denied = finished("execute_command", "Nobody is here to approve this", outcome="denied", title="Running `make`")
    assert tell(PIPE, denied) == "✗ Denied: running `make`\n  │ Nobody is here to approve this\n"
    asked = e.QuestionAsked(at=1.0, question=QuestionId("q"), ask="tool", text="x", call=C)
    assert "Nobody" not in tell(SCREEN, asked, denied)


def test_what_a_model_reads_about_files_is_told_without_its_tags() -> None:
    text = (
        "<files>\n<file>\n<path>a</path>\n<error>File not found</error>\n</file>\n"
        "<file>\n<path>b</path>\n<lines>1-1</lines>\n<content>x</content>\n</file>\n</files>"
    )
    told = tell(PIPE, finished("read_file", text, outcome="failed", title="Reading a, b"))
    assert told == "✗ Reading a, b · failed\n  │ a: File not found\n"


def test_what_went_wrong_is_told_whole_on_a_narrow_screen() -> None:
    why = "block 1: not found, nor anything like it; the text is from another file, or the file was changed since"
    told = plain(tell(SCREEN, finished("apply_diff", why, outcome="failed", title="apply_diff a.txt")))
    lines = told.splitlines()[1:]
    assert len(lines) == 2 and max(map(width, lines)) < SCREEN.columns
    assert " ".join(line.removeprefix("  │ ").strip() for line in lines) == why


@pytest.mark.parametrize("columns", [20, 30, 40, 60, 90])
def test_how_it_went_is_never_cut_off(columns: int) -> None:
    """A5: the exit code is what one looks for; on a narrow screen it stands below."""
    done = finished("execute_command", title=f"Ran `{LONG}`", exit_code=127, details={"command": {"duration": 61.5}})
    told = plain(tell(Look(live=True, columns=columns), done))
    assert "exit code 127, 1 min 2 s" in " ".join(told.split()) and "Ran `for" in told
    assert all(width(line) < columns for line in told.splitlines())


def test_remarks_are_broken_between_words_and_those_for_the_model_are_short() -> None:
    note = e.ModelTold(
        at=1.0, text="[ERROR] You did not use a tool. Every answer uses one: " + "a " * 99, about="mistake"
    )
    assert plain(tell(SCREEN, note)) == "! the model is told: You did not use a tool\n"
    long = e.Noted(at=1.0, what="error", text="words of seven letters, of which there are many " * 3)
    shown = plain(tell(SCREEN, long)).splitlines()
    assert (
        max(map(width, shown)) < SCREEN.columns and " ".join(each.strip() for each in shown) == f"! {long.text}".strip()
    )


def test_questions_stand_apart() -> None:
    asked = [
        e.QuestionAsked(at=1.0, question=QuestionId(each), ask="followup", text="Which?", choices=("a",))
        for each in "ab"
    ]
    assert "\n\n▌ ? " in tell(PIPE, *asked)


def test_a_running_command_shows_its_latest_lines_and_how_long_it_takes() -> None:
    """U7: and nothing is printed before it ends."""
    renderer = TaskRenderer(Look(columns=60, live=True))
    renderer.event(e.ToolStarted(at=1.0, call=C, name="execute_command", title="Running `make`", command="make"))
    assert renderer.live(60) == ["  │ …"]
    lines = b"".join(b"line %d\r\n" % number for number in range(100)) + b"37% of a very long line " * 9
    assert renderer.signal(s.OutputStreamed(call=C, terminal=TerminalId("t1"), data=lines)) == ""
    live = renderer.live(60)
    assert live[-3:-1] == ["  │ line 99", live[-2]] and "37%" in live[-2] and live[-1] == "  │ … · 88 lines more"
    assert all(width(line) < 60 for line in live)
    told = plain(renderer.event(finished("execute_command", title="Ran `make`")))
    assert "line 0\n" in told and "lines not shown" in told and renderer.live(60) == []


def test_a_wait_is_never_said_to_be_shorter_than_it_is() -> None:
    renderer = TaskRenderer(SCREEN)
    r = e.RequestId("r")
    told = renderer.event(e.RequestFailed(at=1.0, request=r, what="slow down", retry_in=5.2))
    renderer.signal(s.RetryCounted(request=r, seconds=6.0))
    assert ("again in 6 s" in told, renderer.live(60)) == (True, ["• again in 6 s"])


def test_a_screen_that_became_narrower_is_not_overrun() -> None:
    """A5: in the middle of an answer, and of a command."""
    renderer = TaskRenderer(Look(live=True, columns=90))
    words = "words of seven letters, of which there are many and more, " * 3
    request = e.RequestId("r")
    renderer.signal(s.TextStreamed(request=request, text=words))
    renderer.look = Look(live=True, columns=30)
    told = renderer.signal(s.TextStreamed(request=request, text=words + "\n"))
    assert all(width(line.rstrip()) < 30 for line in told.splitlines()[1:])
    renderer.look = Look(live=True, columns=90)
    renderer.signal(s.OutputStreamed(call=C, terminal=TerminalId("t"), data=b"first\r\n"))
    renderer.look = Look(live=True, columns=30)
    told = renderer.signal(s.OutputStreamed(call=C, terminal=TerminalId("t"), data=b"long " * 30 + b"\r\n"))
    assert all(width(line) < 30 for line in plain(told).splitlines())
