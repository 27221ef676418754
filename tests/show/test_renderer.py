"""A task told on a terminal and in a pipe: what is printed for facts and signals, and that no escape gets through."""

import dataclasses
import json
import re
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.cli.recorded import DIFF, a_run
from tests.tasks.samples import any_event, one_of_each

from tarmac.cli.export import page
from tarmac.events import TerminalId
from tarmac.models.messages import NO_USAGE, Text, Usage
from tarmac.show.look import Look, cut, diff_lines, harmless, one_line, padded, width, wrapped
from tarmac.show.renderer import TaskRenderer, transcript
from tarmac.tasks import events as e
from tarmac.tasks import signals as s
from tarmac.tasks.events import CallId, QuestionId, RequestId
from tarmac.tasks.log.reader import Reading

SCREEN = Look(colour=True, columns=60, live=True)
PIPE = Look()
SGR = re.compile(r"\x1b\[[0-9;]*m")
EVIL = "\x1b]52;c;ZXZpbA==\x07\x1b[2J\x9b31m\x00\x7f\r\u202eabc\u2028\udcff\ud800 \x1bP+q\x1b\\\x08"
ALL_SIGNALS = [each for each in vars(s).values() if isinstance(each, type) and issubclass(each, s.Signal)]


def controls(text: str) -> set[str]:
    """What is left of it once our own colours are gone, and would do something to a terminal."""
    plain = SGR.sub("", text)
    odd = {c for c in plain if c not in "\n\u200c\u200d" and not c.isprintable()}
    return {c for c in odd if unicodedata.category(c) != "Co"}  # icons of patched fonts


def tell(look: Look, *said: e.TaskEvent | s.Signal, past: bool = False) -> str:
    renderer = TaskRenderer(look, past=past)
    return "".join(renderer.signal(each) if isinstance(each, s.Signal) else renderer.event(each) for each in said)


def plain(text: str) -> str:
    return SGR.sub("", text)


# Nothing gets through


def _signal(kind: type[s.Signal]) -> st.SearchStrategy[s.Signal]:
    hints = {"data": st.binary(max_size=60), "seconds": st.floats(0, 1e6)}
    nasty = st.text(st.characters(exclude_categories=()), max_size=40) | st.just(EVIL)
    ids = st.sampled_from(["a", "b"])
    fields = {
        each.name: hints.get(each.name, ids if each.name in ("request", "call", "terminal") else nasty)
        for each in dataclasses.fields(kind)
    }
    return st.builds(kind, **fields)


any_signal = st.one_of(*(_signal(each) for each in ALL_SIGNALS if each is not s.Signal))
looks = st.builds(Look, colour=st.booleans(), columns=st.integers(20, 130), live=st.booleans())


NAMELESS = e.ToolFinished(at=0.0, call=CallId("a"), name="", outcome="denied", content=())


@settings(max_examples=150, deadline=None)
@example(PIPE, [NAMELESS], False)
@given(looks, st.lists(any_event | any_signal, max_size=8), st.booleans())
def test_no_control_character_reaches_the_terminal(look: Look, said: list[e.TaskEvent | s.Signal], past: bool) -> None:
    """A5: whatever a model, a command or a file says, in any field of any fact or signal."""
    renderer = TaskRenderer(look, past=past)
    for each in said:
        told = renderer.signal(each) if isinstance(each, s.Signal) else renderer.event(each)
        live = renderer.live(look.columns)
        assert controls(told) == set() and controls("".join(live)) == set()
        assert look.colour or "\x1b" not in told
        assert all(width(line) < look.columns and "\n" not in line for line in live)


def evil_facts() -> list[e.TaskEvent]:
    """Every kind, every text in it hostile, and what front ends read of it as well."""
    request = {
        "kind": EVIL,
        "shown": EVIL,
        "warnings": [EVIL],
        "directory": EVIL,
        "terminal": EVIL,
        "risk": EVIL,
        "reason": EVIL,
        "explanation": EVIL,
        "file": {"path": EVIL, "diff": f"+{EVIL}\n-{EVIL}", "protected": EVIL, "outside": True, "new": False},
    }
    details = json.dumps({"requests": [request], "files": [{"path": EVIL, "diff": EVIL}, {"path": "b", "diff": EVIL}]})
    found: list[e.TaskEvent] = []
    for event in one_of_each():
        texts = {f.name: EVIL for f in dataclasses.fields(event) if isinstance(getattr(event, f.name), str)}
        kept = {"ask", "answer", "outcome", "decision", "what", "how", "stop", "about"}
        texts = {name: text for name, text in texts.items() if name not in kept or isinstance(event, e.RequestFailed)}
        if "details" in texts:
            texts["details"] = details
        found.append(dataclasses.replace(event, **texts))  # type: ignore[arg-type]
    found += [dataclasses.replace(each, what=EVIL) for each in found if isinstance(each, e.RequestFailed)]
    said = e.ModelSaid(at=1.0, request=RequestId("x"), parts=(Text(EVIL),), stop="end", usage=NO_USAGE)
    todos = e.TodosUpdated(at=1.0, todos=(e.Todo(text=EVIL),))
    asked = e.QuestionAsked(at=1.0, question=QuestionId("q"), ask="followup", text=EVIL, choices=(EVIL, EVIL))
    return [*found, said, todos, asked]


@pytest.mark.parametrize("look", [SCREEN, PIPE], ids=["screen", "pipe"])
@pytest.mark.parametrize("past", [False, True])
def test_a_hostile_log_is_told_without_its_escapes(look: Look, past: bool) -> None:
    """A5."""
    told = tell(look, *evil_facts(), past=past)
    assert controls(told) == set() and "⟨U+001B⟩" in told
    reading = Reading(header=None, events=evil_facts(), damage=(), torn=None, size=1)
    assert controls("".join(transcript(EVIL, reading, look, at_work=False))) == set()
    assert controls(page(evil_facts(), at_work=False)) == set()


@given(st.text(st.characters(exclude_categories=())))
def test_harmless_text_is_harmless_and_stays_as_it_is(text: str) -> None:
    once = harmless(text)
    assert controls(once) == set() and harmless(once) == once
    once.encode()


def test_what_people_write_is_left_alone() -> None:
    for text in ("naïve café, e\u0301", "👩‍💻 ✅ ⚠️", "直して ください", "שלום", "a\nb", "\ue0b0 icon"):
        assert harmless(text) == text
    assert harmless("a\tb\r\nc") == "a   b\nc"


# Columns


texts = st.text(st.characters(exclude_categories=("Cc", "Cs", "Cf", "Zl", "Zp")), max_size=40)


@given(texts, st.integers(1, 30))
def test_what_is_cut_fits_and_says_so(text: str, columns: int) -> None:
    line = one_line(text)
    short = cut(line, columns)
    assert width(short) <= columns and (short == line or short.endswith("…"))
    assert width(padded(line, columns)) == columns


@given(texts, st.integers(8, 30))
def test_what_is_wrapped_fits_and_has_all_its_words(text: str, columns: int) -> None:
    lines = wrapped(text, columns)
    assert all(width(line) <= columns for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())


# What is told


def test_words_stream_and_are_not_told_twice() -> None:
    """S6."""
    r = RequestId("r")
    said = e.ModelSaid(at=1.0, request=r, parts=(Text("I look."),), stop="end", usage=NO_USAGE)
    streamed = [s.TextStreamed(request=r, text=piece) for piece in ("I ", "lo", "ok.")]
    assert tell(PIPE, *streamed, said) == "I look.\n"
    assert tell(PIPE, said) == "I look.\n"


@given(st.lists(st.text(st.sampled_from("ab \n"), min_size=1, max_size=5), max_size=8))
def test_however_an_answer_is_cut_no_line_is_doubled_or_lost(pieces: list[str]) -> None:
    """U6: in a pipe, and on a terminal that is dumb. A piece that ended its line doubled the line end."""
    r, text = RequestId("r"), "".join(pieces)
    said = e.ModelSaid(at=1.0, request=r, parts=(Text(text),), stop="end", usage=NO_USAGE)
    told = tell(PIPE, *(s.TextStreamed(request=r, text=piece) for piece in pieces), said)
    if text.strip("\n"):
        assert told == text.strip("\n") + "\n"


def test_a_line_end_cut_in_two_is_one() -> None:
    r = RequestId("r")
    assert tell(PIPE, *(s.TextStreamed(request=r, text=piece) for piece in ("a\r", "\nb"))) == "a\nb"


def test_a_command_is_told_before_while_and_after_it_runs() -> None:
    """A7: in the present tense, then in the past tense with its exit code."""
    c, t = CallId("c"), TerminalId("t1")
    told = tell(
        PIPE,
        e.ToolStarted(at=1.0, call=c, name="execute_command", title="Running `make`", command="make"),
        s.OutputStreamed(call=c, terminal=t, data=b"one\r\n\x1b[31mtwo\x1b[m\r\nthr"),
        s.OutputStreamed(call=c, terminal=t, data=b"ee\r\n"),
        e.ToolFinished(
            at=2.0,
            call=c,
            name="execute_command",
            outcome="done",
            content=(),
            title="Ran `make`",
            exit_code=0,
            seconds=3.0,
        ),
    )
    assert told == "• Running `make`\n  │ one\n  │ two\n  │ three\n✓ Ran `make` · exit code 0, 3.0 s\n"


def test_much_output_is_bounded_with_its_first_and_last_lines() -> None:
    c, t = CallId("c"), TerminalId("t1")
    lines = b"".join(b"line %d\n" % n for n in range(10_000))
    told = tell(
        PIPE,
        e.ToolStarted(at=1.0, call=c, name="execute_command", title="Running `x`", command="x"),
        *(s.OutputStreamed(call=c, terminal=t, data=lines[at : at + 4096]) for at in range(0, len(lines), 4096)),
        e.ToolFinished(at=2.0, call=c, name="execute_command", outcome="done", content=(), title="Ran `x`"),
    )
    shown = told.splitlines()
    assert len(shown) == 1 + 12 + 1 + 6 + 1
    assert (shown[1], shown[-2], "9,982 lines not shown" in told) == ("  │ line 0", "  │ line 9999", True)


def test_a_progress_bar_is_one_line_and_its_state_is_the_status() -> None:
    c, t = CallId("c"), TerminalId("t1")
    renderer = TaskRenderer(SCREEN)
    renderer.event(e.ToolStarted(at=1.0, call=c, name="execute_command", title="Running `x`", command="x"))
    told = "".join(renderer.signal(s.OutputStreamed(call=c, terminal=t, data=b"\r%d%%" % n)) for n in (10, 20))
    assert "20%" in "".join(renderer.live(60)) and "20%" not in told


def test_a_quick_tool_is_one_line_on_a_screen_and_two_in_a_pipe() -> None:
    c = CallId("c")
    pair = (
        e.ToolStarted(at=1.0, call=c, name="read_file", title="Reading a.py"),
        e.ToolFinished(at=1.0, call=c, name="read_file", outcome="done", content=(Text("…"),), title="Read a.py"),
    )
    assert plain(tell(SCREEN, *pair)) == "✓ Read a.py\n"
    assert tell(PIPE, *pair) == "• Reading a.py\n✓ Read a.py\n"


def test_an_edit_shows_its_diff_in_colour_unless_it_was_in_the_question() -> None:
    c = CallId("c")
    done = e.ToolFinished(
        at=1.0,
        call=c,
        name="apply_diff",
        outcome="done",
        content=(),
        title="Edited a.py",
        details=json.dumps({"files": [{"path": "a.py", "diff": DIFF}]}),
    )
    assert "\x1b[31m-    return a - b\x1b[m" in tell(SCREEN, done)
    file = {"path": "a.py", "new": False, "diff": DIFF, "outside": False, "protected": ""}
    request = {"kind": "WriteFile", "shown": "a.py", "risk": "medium", "reason": "it writes a file", "file": file}
    asked = e.QuestionAsked(
        at=1.0, question=QuestionId("q"), ask="tool", text="a.py", call=c, details=json.dumps({"requests": [request]})
    )
    told = plain(tell(SCREEN, asked, done))
    assert told.count("return a + b") == 1
    assert told.splitlines()[:2] == ["▌ ? Write this file?", "▌     a.py"]
    assert "✓ Edited a.py · +1 −1" in told


def test_a_diff_hides_no_line_that_looks_like_a_header() -> None:
    """P6: a removed `-- x` is `--- x` in a diff; it was left out of what a person approves."""
    diff = "--- a.sql\n+++ a.sql\n@@ -1,2 +1,2 @@\n--- drop nothing\n+++ drop everything\n\n"
    shown = [line.strip() for line in diff_lines(diff, PIPE, most=60)]
    assert shown == ["@@ -1,2 +1,2 @@", "--- drop nothing", "+++ drop everything"]


def test_a_failed_tool_says_why() -> None:
    c = CallId("c")
    done = e.ToolFinished(
        at=1.0,
        call=c,
        name="apply_diff",
        outcome="failed",
        content=(Text("no place\nin a.py"),),
        title="Editing a.py",
    )
    assert tell(PIPE, done) == "✗ Editing a.py · failed\n  │ no place\n  │ in a.py\n"


def test_a_question_about_a_command_has_all_one_must_see() -> None:
    """P6, U8: what it would do first, the command, where, how dangerous, and what is odd about its characters."""
    request = {
        "kind": "Execute",
        "shown": "rm -rf build⟨U+202E⟩",
        "warnings": ["it has characters that can't be seen"],
        "directory": "/project",
        "risk": "critical",
        "reason": "it removes files for good",
        "explanation": "it removes build and all in it",
    }
    asked = e.QuestionAsked(
        at=1.0, question=QuestionId("q"), ask="command", text="x", details=json.dumps({"requests": [request]})
    )
    assert tell(PIPE, asked).splitlines() == [
        "▌ ? Run this command? It removes build and all in it.",
        "▌     rm -rf build⟨U+202E⟩",
        "▌   ! it has characters that can't be seen",
        "▌   in /project",
        "▌   critical risk: it removes files for good",
    ]


def test_a_request_that_failed_is_told_with_when_it_is_tried_again() -> None:
    """S6: a visible countdown."""
    r = RequestId("r")
    renderer = TaskRenderer(SCREEN)
    failed = e.RequestFailed(at=1.0, request=r, what="overloaded", hint="ask less", status=529, retry_in=4.0)
    told = renderer.event(failed)
    assert plain(told) == "! the model did not answer: overloaded (529); again in 4 s\n"
    renderer.signal(s.RetryCounted(request=r, seconds=3.0))
    assert renderer.live(60) == ["• again in 3 s"]
    told = renderer.event(dataclasses.replace(failed, retry_in=None))
    assert plain(told).strip() == "! the model did not answer: overloaded (529)\n  hint: ask less"


def test_the_end_has_the_result_and_what_it_cost() -> None:
    """S16."""
    told = tell(PIPE, *a_run()).splitlines()
    assert told[-3:] == [
        "✓ Done",
        "All tests pass.",
        "  2 requests · 3.6k in (33% cached), 160 out · $0.030 · 19% of the context",
    ]
    unknown = tell(
        PIPE,
        e.ModelSaid(at=1.0, request=RequestId("r"), parts=(), stop="end", usage=Usage(input=5, output=1)),
        e.TaskCompleted(at=1.0, result="", usage=NO_USAGE),
    )
    assert "price unknown" in unknown


def test_without_colour_nothing_but_text_and_on_a_screen_no_line_is_too_wide() -> None:
    facts = a_run(text="a task " * 40)
    assert "\x1b" not in tell(Look(columns=60, live=True), *facts)
    tools = [
        line for line in plain(tell(SCREEN, *facts)).splitlines() if line.startswith(("✓", "✗", "•", "  │", "  ☐"))
    ]
    assert tools and max(map(width, tools)) < 60


def test_every_kind_of_fact_can_be_told() -> None:
    """A5: none is unknown to the renderer by mistake."""
    quiet = {e.TaskCreated, e.TaskStarted, e.TaskSaved, e.CallJudged, e.FileSeen, e.CommandOutput, e.RequestStarted,
             e.MessageDelivered, e.MessageWithdrawn, e.ModelTold, e.ToolStarted, e.FilesChanged}  # fmt: skip
    silent = {type(event) for event in one_of_each() if not TaskRenderer(PIPE, past=True).event(event)}
    assert silent == quiet


def test_what_a_hosted_agent_said_before_it_acts_stands_above_the_question() -> None:
    """U6: it was shown below, and joined to what came next."""
    renderer = TaskRenderer(SCREEN)
    first = renderer.signal(s.TextStreamed(request=RequestId("r"), text="I will **edit** it."))
    asked = e.QuestionAsked(at=1.0, question=QuestionId("q"), ask="tool", text="Edit a.py")
    told = plain(first + renderer.event(asked))
    assert told.index("I will edit it.") < told.index("? Allow this?") < told.index("Edit a.py")
    assert renderer.live(80) == []


def test_condensing_is_under_way_from_its_beginning_to_its_end() -> None:
    """S17: after `/compact` at rest the line stayed, with the time since the last request."""
    renderer = TaskRenderer(SCREEN)
    renderer.signal(s.ProgressMade(call=CallId(""), text="condensing the conversation"))
    assert [plain(line) for line in renderer.live(60)] == ["• condensing the conversation"]
    renderer.event(e.HistoryCondensed(at=1.0, first=1, last=2, summary="It read files."))
    assert renderer.live(60) == []
