"""Every question with every key: what is offered, what `?` lists, and what each key answers."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tarmac.policy.approval import Always, Answer, AnswerKind, Choice, GrantScope
from tarmac.show.look import Look
from tarmac.show.question import NO_INPUT, Choices, QuestionDialog, choices_for, help_lines
from tarmac.tasks.events import Ask, QuestionAsked, QuestionId

OFFERS = [{"kind": "exact", "text": "mkdir sub"}, {"kind": "prefix", "text": "mkdir"}]
COMMAND: dict[str, object] = {"kind": "Execute", "shown": "mkdir sub", "risk": "medium", "directory": "/project"}


def file(path: str, kind: str = "WriteFile", lines: int = 1) -> dict[str, object]:
    diff = "--- a\n+++ b\n@@ -1 +1 @@\n" + "+x\n" * lines
    return {"kind": kind, "shown": path, "risk": "low", "file": {"path": path, "new": False, "diff": diff}}


def question(ask: Ask, *requests: dict[str, object], choices: tuple[str, ...] = (), **more: object) -> QuestionAsked:
    details = json.dumps({"requests": requests, **more}) if requests or more else ""
    return QuestionAsked(at=1.0, question=QuestionId("q"), ask=ask, text="?", choices=choices, details=details)


QUESTIONS = {
    "command": (question("command", {**COMMAND, "always": OFFERS}), "ynsaet?"),
    "critical command": (question("command", COMMAND), "ynet?"),
    "long command": (question("command", {**COMMAND, "shown": "x\n" * 200}), "ynetv?"),
    "edit": (question("tool", file("a.py")), "yn?"),
    "long edit": (question("tool", file("a.py", lines=400)), "ynv?"),
    "patch over several files": (question("tool", file("a.py"), file("b.py")), "ynf?"),
    "several files to read": (question("tool", file("a", "ReadFile"), file("b", "ReadFile")), "ynf?"),
    "text for a terminal": (question("tool", {"kind": "SendInput", "shown": "y", "terminal": "t1"}), "yn?"),
    "tool of a server": (
        question("tool", {"kind": "UseServer", "shown": "fetch", "always": [{"kind": "exact", "text": "fetch"}]}),
        "ynsa?",
    ),
    "request that tells nothing": (question("tool"), "yn?"),
    "followup with suggestions": (question("followup", choices=("red", "blue")), "12?"),
    "followup": (question("followup"), "?"),
    "limit reached": (question("auto_approval_limit"), "yn?"),
    "mistakes": (question("mistake_limit_reached"), "yn?"),
    "failed request": (question("api_req_failed"), "yn?"),
    "prompt of the workspace": (question("workspace_prompt"), "yn?"),
}
each_question = pytest.mark.parametrize(("asked", "keys"), QUESTIONS.values(), ids=QUESTIONS)


class Person:
    """Somebody who types these lines, one for each time that they are asked."""

    look = Look()

    def __init__(self, *lines: str | None) -> None:
        self.lines = list(lines)
        self.shown: list[str] = []
        self.asked: list[Choices] = []
        self.lent = 0

    def print(self, text: str) -> None:
        self.shown.append(text)

    async def ask(self, choices: Choices, typing: Callable[[], object] = bool) -> str | None:
        self.asked.append(choices)
        typing()
        return self.lines.pop(0)

    @asynccontextmanager
    async def lend(self) -> AsyncIterator[None]:
        self.lent += 1
        yield


async def tried() -> Answer | None:
    return Answer(AnswerKind.DONE, text="tried")


async def answer(asked: QuestionAsked, *lines: str | None) -> tuple[Answer | None, Person]:
    person = Person(*lines)
    found = await QuestionDialog(asked, person, tries=tried).answered()
    assert person.lines == []
    return found, person


@each_question
def test_a_question_offers_these_keys_and_help_lists_exactly_these(asked: QuestionAsked, keys: str) -> None:
    """U8."""
    offered = choices_for(asked, tries=True)
    assert "".join(key for key, _ in offered.keys) == keys
    listed = [
        line.split()[0] for line in help_lines(asked, offered, 200) if line.startswith("    ") and line[5:7] == "  "
    ]
    assert "".join(listed) == keys.rstrip("?")
    assert bool(offered.words)


EDIT = {"kind": "WriteFile", "shown": "a", "file": {"path": "a", "outside": False, "protected": ""}}


@pytest.mark.parametrize(
    ("request_", "offered"),
    [
        (EDIT, True),
        ({**EDIT, "file": {"path": "/etc/a", "outside": True, "protected": ""}}, False),
        ({**EDIT, "file": {"path": ".git/config", "outside": False, "protected": "git runs what it names"}}, False),
        ({**EDIT, "kind": "ReadFile"}, False),
    ],
)
async def test_only_a_question_that_the_level_edits_would_answer_offers_it(
    request_: dict[str, object], offered: bool
) -> None:
    """U5."""
    asked = question("tool", request_)
    levels: list[str] = []
    keys = [key for key, _ in choices_for(asked, levels=True).keys]
    assert ("s" in keys) is offered
    if offered:
        dialog = QuestionDialog(asked, Person("s"), allow_edits=lambda: levels.append("edits"))
        assert await dialog.answered() == Answer(AnswerKind.YES)
        assert levels == ["edits"]
    assert "s" not in [key for key, _ in choices_for(asked).keys]


@each_question
async def test_every_key_that_is_offered_does_something(
    asked: QuestionAsked, keys: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """U8: and no other key does."""
    monkeypatch.setenv("EDITOR", "true")
    more = {"a": ("n",), "f": ("y", "n"), "e": ()}
    for key in keys:
        _, person = await answer(asked, key, *more.get(key, ()))
        assert person.shown or key == "t"
        assert not any("not one of the keys" in text for text in person.shown)
    for key in set("ynsaetfv?z") - set(keys):
        if asked.ask != "followup" and key not in "yn":
            found, person = await answer(asked, key)
            assert found is None and "not one of the keys" in person.shown[0]


async def test_yes_and_no_with_and_without_words() -> None:
    """U8, S13: other words are a no that the model reads."""
    asked, _ = QUESTIONS["command"]
    expected = {
        "y": Answer(AnswerKind.YES),
        "yes": Answer(AnswerKind.YES),
        "Y": Answer(AnswerKind.YES),
        "y but gently": Answer(AnswerKind.YES, text="but gently"),
        "n": Answer(AnswerKind.NO),
        "no use mkdir": Answer(AnswerKind.NO, text="use mkdir"),
        "rather not": Answer(AnswerKind.MESSAGE, text="rather not"),
        "s": Answer(AnswerKind.YES, always=Always(GrantScope.TASK)),
        "t": Answer(AnswerKind.DONE, text="tried"),
    }
    for line, wanted in expected.items():
        assert (await answer(asked, line))[0] == wanted
    assert (await answer(asked, None))[0] == Answer(AnswerKind.NO, text=NO_INPUT)


async def test_always_says_what_it_allows_and_where() -> None:
    """P5."""
    asked, _ = QUESTIONS["command"]
    found, person = await answer(asked, "a", "5")
    assert found == Answer(AnswerKind.YES, always=Always(GrantScope.WORKSPACE, 1))
    assert "mkdir … (whatever follows these words)" in "".join(person.shown)
    for nothing in ("n", "7", "0", None):
        found, person = await answer(asked, "a", nothing)
        assert found is None and "nothing is always allowed" in person.shown[-1]


async def test_several_files_are_decided_one_by_one() -> None:
    """S13: what is read is not said to be changed."""
    found, person = await answer(QUESTIONS["patch over several files"][0], "f", "y", "n")
    chosen = (Choice(path=Path("a.py"), answer=AnswerKind.YES), Choice(path=Path("b.py"), answer=AnswerKind.NO))
    assert found == Answer(AnswerKind.PER_FILE, choices=chosen)
    assert person.asked[1].keys[0] == ("y", "change this file")
    _, person = await answer(QUESTIONS["several files to read"][0], "f", "y", None)
    assert person.asked[1].keys[0] == ("y", "read this file")


async def test_a_command_is_edited_in_its_line_or_in_the_persons_editor(monkeypatch: pytest.MonkeyPatch) -> None:
    """P6: what is shown is what runs."""
    asked, _ = QUESTIONS["command"]
    monkeypatch.delenv("EDITOR", raising=False)
    monkeypatch.delenv("VISUAL", raising=False)
    found, person = await answer(asked, "e", "mkdir other")
    assert found == Answer(AnswerKind.YES, edited="mkdir other") and person.asked[1].text == "mkdir sub"
    assert (await answer(asked, "e", None))[0] is None
    monkeypatch.setenv("VISUAL", "sed -i s/sub/third/")
    found, person = await answer(asked, "e")
    assert (found, person.lent) == (Answer(AnswerKind.YES, edited="mkdir third"), 1)


async def test_a_question_of_the_model_takes_numbers_and_words() -> None:
    """S5: `n` is an answer like any other."""
    asked, _ = QUESTIONS["followup with suggestions"]
    for line, text in {"2": "blue", "green": "green", "n": "n", "3": "3"}.items():
        assert (await answer(asked, line))[0] == Answer(AnswerKind.MESSAGE, text=text)


async def test_a_slash_command_at_a_question_is_no_answer() -> None:
    """S13: `/diff` was told to the model as the reason of a no. A path is words as before."""
    for line, found in {"/diff": None, "/diff 3": None, "/etc is not yours": "/etc is not yours"}.items():
        person = Person(line)
        said = await QuestionDialog(QUESTIONS["command"][0], person, commands={"diff"}).answered()
        assert said == (Answer(AnswerKind.MESSAGE, text=found) if found else None)
        assert ("Answer first" in person.shown[0]) is (found is None)


async def test_words_at_a_question_about_the_task_are_no_denial() -> None:
    """S13."""
    for name in ("limit reached", "mistakes", "failed request"):
        found, person = await answer(QUESTIONS[name][0], "use another model")
        assert found == Answer(AnswerKind.MESSAGE, text="use another model")
        assert person.shown == ["  → use another model"]


@pytest.mark.parametrize(("after", "told"), [(None, 0), (4, 1)])
async def test_the_task_is_told_that_somebody_types_only_where_an_answer_would_be_taken_for_them(
    after: int | None, told: int
) -> None:
    """P7."""
    typed: list[int] = []
    more = {"takes_first_after": after} if after else {}
    asked = question("followup", choices=("red",), **more)
    await QuestionDialog(asked, Person("1"), typing=lambda: typed.append(1)).answered()
    assert len(typed) == told
