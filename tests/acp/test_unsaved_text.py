"""What a person has typed in the editor and not saved: read by the model, never written over, never saved for them.

Where the editor offers it, our edits are written through it.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.acp.editor import NEVER, Editor, Refusal, allow, inside
from tests.acp.test_agent import DONE

from tarmac.acp.editor_session import plain

pytestmark = pytest.mark.shell
READ = '[[turn]]\n[[turn.call]]\nname = "read_file"\narguments = { path = "a.txt" }\n'
EDIT = """[[turn]]
[[turn.call]]
name = "search_and_replace"
arguments = { path = "a.txt", search = "one", replace = "two" }
"""
WRITE = '[[turn]]\n[[turn.call]]\nname = "write_to_file"\narguments = { path = "a.txt", content = "all new\\n" }\n'
END = '[[turn]]\ntext = "Seen."\n' + DONE


class Buffers:
    """fs/read_text_file: what is open here, and else the file."""

    def __init__(self, ours: Editor, **texts: Any) -> None:
        self.texts = texts
        self.asked: list[str] = []
        self.written: list[str] = []
        self.answer: Any = {}  # to a write, or what it raises
        self.on_save: Callable[[bytes], bytes | None] = lambda data: data  # None: it only changes its buffer
        ours.serves["fs/read_text_file"] = self.read
        ours.serves["fs/write_text_file"] = self.write

    def read(self, params: dict[str, Any]) -> Any:
        self.asked.append(Path(params["path"]).name)
        found = self.texts.get(Path(params["path"]).stem, Path(params["path"]).read_text())
        if isinstance(found, Exception):
            raise found
        return found if found is NEVER or isinstance(found, list) else {"content": found}

    def write(self, params: dict[str, Any]) -> Any:
        self.written.append(params["content"])
        if isinstance(self.answer, Exception):
            raise self.answer
        if self.answer is not NEVER and (saved := self.on_save(params["content"].encode())) is not None:
            Path(params["path"]).write_bytes(saved)
        return self.answer


async def worked(ours: Editor, folder: Path, **fs: bool) -> str:
    """Let it work; what the model was told."""
    await ours.initialize(fs={"readTextFile": True, **fs})
    session = (await ours.call("session/new", {"cwd": str(folder), "mcpServers": []}))["sessionId"]
    assert await ours.prompt(session, "go") == "end_turn"
    assert ours.said() == "Seen. Done."
    return "".join(path.read_text() for path in folder.glob("state/tasks/*/*.jsonl"))


async def test_what_is_not_saved_is_read_and_told_as_such(tmp_path: Path) -> None:
    """A2, S10: the model sees what its person sees."""
    (tmp_path / "a.txt").write_text("one\n")
    async with inside(tmp_path, READ + END) as ours:
        Buffers(ours, a="one\nand a half\n")
        told = await worked(ours, tmp_path)
    assert "2 | and a half" in told and "with unsaved changes" in told


@pytest.mark.parametrize("edit", [EDIT, WRITE])
async def test_a_file_with_unsaved_changes_is_not_edited(tmp_path: Path, edit: str) -> None:
    """A2, S21: the person's words stay; the model is told to have them saved."""
    (tmp_path / "a.txt").write_text("one\n")
    async with inside(tmp_path, edit + END) as ours:
        Buffers(ours, a="one and more\n")
        told = await worked(ours, tmp_path)
    assert (tmp_path / "a.txt").read_text() == "one\n" and "Ask them to save the file" in told
    assert ours.asked == []  # nor is a person asked for leave


async def test_what_is_typed_while_the_person_is_asked_counts(tmp_path: Path) -> None:
    """A2, S21: looked at again right before the write."""
    (tmp_path / "a.txt").write_text("one\n")
    async with inside(tmp_path, EDIT + END) as ours:
        buffers = Buffers(ours)

        def choose(params: dict[str, Any]) -> dict[str, Any]:
            buffers.texts["a"] = "one, just typed\n"
            return allow(params)

        ours.choose = choose
        told = await worked(ours, tmp_path)
    assert (tmp_path / "a.txt").read_text() == "one\n" and "Ask them to save the file" in told
    assert len(ours.asked) == 1


@pytest.mark.parametrize(
    "theirs", ["one\nthree\n", "one\nthree", "\ufeffone\nthree\n", Refusal("no such buffer"), [1], 5]
)
async def test_an_editor_that_shows_the_saved_text_in_its_own_way_is_no_hindrance(tmp_path: Path, theirs: Any) -> None:
    """A2: line endings, the last newline and a mark at the start aside; the file keeps its own."""
    (tmp_path / "a.txt").write_bytes(b"one\r\nthree\r\n")
    async with inside(tmp_path, EDIT + END) as ours:
        Buffers(ours, a=theirs)
        await worked(ours, tmp_path)
    assert (tmp_path / "a.txt").read_bytes() == b"two\r\nthree\r\n"


async def test_an_editor_that_does_not_answer_is_asked_again_and_model_and_person_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A2, S21: the guard stays on; each wait is bounded, and what is not known is not passed over."""
    monkeypatch.setattr("tarmac.acp.editor_session.ANSWERS", 0.1)
    (tmp_path / "a.txt").write_text("one\n")
    async with inside(tmp_path, READ + EDIT + END) as ours:
        buffers = Buffers(ours, a=NEVER)
        await ours.initialize(fs={"readTextFile": True})
        session = (await ours.call("session/new", {"cwd": str(tmp_path), "mcpServers": []}))["sessionId"]
        assert await ours.prompt(session, "go") == "end_turn"
    told = "".join(path.read_text() for path in tmp_path.glob("state/tasks/*/*.jsonl"))
    assert (tmp_path / "a.txt").read_text() == "two\n" and len(buffers.asked) > 1
    assert "as it is on disk: the editor did not say within 0.1 s whether" in told
    assert "Note: the editor did not say within 0.1 s whether" in told
    assert ours.said().count("Your editor did not answer") == 1


async def test_an_editor_that_was_late_once_still_guards_what_is_not_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A2, S21: Emacs asks its person to reload, and answers only after that."""
    monkeypatch.setattr("tarmac.acp.editor_session.ANSWERS", 0.1)
    (tmp_path / "a.txt").write_text("one\n")
    async with inside(tmp_path, READ + EDIT + END) as ours:
        answers = iter([NEVER, {"content": "one and more\n"}])
        ours.serves["fs/read_text_file"] = lambda params: next(answers)
        await ours.initialize(fs={"readTextFile": True})
        session = (await ours.call("session/new", {"cwd": str(tmp_path), "mcpServers": []}))["sessionId"]
        await ours.prompt(session, "go")
    told = "".join(path.read_text() for path in tmp_path.glob("state/tasks/*/*.jsonl"))
    assert (tmp_path / "a.txt").read_text() == "one\n" and "Ask them to save the file" in told


async def test_it_is_asked_only_for_what_may_be_read_and_only_if_it_can(tmp_path: Path) -> None:
    """A2, P8: hidden files are no question for an editor; no capability, no question."""
    (tmp_path / "a.txt").write_text("one\n")
    async with inside(tmp_path, READ + END) as ours:
        buffers = Buffers(ours, a="other\n")
        told = await worked(ours, tmp_path, readTextFile=False)
    assert buffers.asked == [] and "1 | one" in told
    (tmp_path / ".tarmacignore").write_text("a.txt\n")
    async with inside(tmp_path, READ + END) as ours:
        buffers = Buffers(ours, a="other\n")
        await worked(ours, tmp_path)
    assert buffers.asked == []


# Writes through the editor


@pytest.mark.parametrize(("edit", "after"), [(EDIT, "two\nthree\n"), (WRITE, "all new\n")])
async def test_an_edit_is_written_through_an_editor_that_offers_it(tmp_path: Path, edit: str, after: str) -> None:
    """A2: so its buffers and its own review show it; the editor is asked for unsaved text right before."""
    (tmp_path / "a.txt").write_text("one\nthree\n")
    async with inside(tmp_path, edit + END) as ours:
        buffers = Buffers(ours)
        told = await worked(ours, tmp_path, writeTextFile=True)
    assert buffers.written == [after] and (tmp_path / "a.txt").read_text() == after
    assert "You do not need to read the file again" in told and "Tarmac wrote the file itself" not in told


async def test_a_new_file_in_a_new_folder_is_written_through_the_editor(tmp_path: Path) -> None:
    """A2."""
    async with inside(tmp_path, WRITE.replace("a.txt", "new/deep/a.txt") + END) as ours:
        buffers = Buffers(ours)
        await worked(ours, tmp_path, writeTextFile=True)
    assert buffers.written == ["all new\n"] and (tmp_path / "new/deep/a.txt").read_text() == "all new\n"


async def test_nothing_is_written_through_the_editor_over_unsaved_text(tmp_path: Path) -> None:
    """A2, S21: the guard comes first."""
    (tmp_path / "a.txt").write_text("one\n")
    async with inside(tmp_path, EDIT + END) as ours:
        buffers = Buffers(ours, a="one and more\n")
        told = await worked(ours, tmp_path, writeTextFile=True)
    assert buffers.written == [] and (tmp_path / "a.txt").read_text() == "one\n" and "Ask them to save" in told


@pytest.mark.parametrize("answer", [NEVER, Refusal("the buffer is read-only")])
async def test_where_the_editor_can_not_write_we_do_and_model_and_person_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: Any
) -> None:
    """A2: each wait is bounded."""
    monkeypatch.setattr("tarmac.acp.editor_session.WRITES", 0.1)
    (tmp_path / "a.txt").write_text("one\n")
    async with inside(tmp_path, EDIT + END) as ours:
        Buffers(ours).answer = answer
        await ours.initialize(fs={"readTextFile": True, "writeTextFile": True})
        session = (await ours.call("session/new", {"cwd": str(tmp_path), "mcpServers": []}))["sessionId"]
        assert await ours.prompt(session, "go") == "end_turn"
    told = "".join(path.read_text() for path in tmp_path.glob("state/tasks/*/*.jsonl"))
    assert (tmp_path / "a.txt").read_text() == "two\n" and "Tarmac wrote the file itself. The user was told." in told
    assert ours.said().count("Tarmac wrote the file itself, because the editor") == 1


async def test_what_a_person_denies_in_the_editor_is_not_written_around_them(tmp_path: Path) -> None:
    """A2, P6: `tarmac host` asks again about what its agent writes."""
    (tmp_path / "a.txt").write_text("one\n")
    async with inside(tmp_path, EDIT + END) as ours:
        buffers = Buffers(ours)
        buffers.answer = Refusal("The person denied this", -32010)
        ours.serves["session/request_permission"] = allow
        told = await worked(ours, tmp_path, writeTextFile=True)
    assert buffers.written == ["two\n"]
    assert (tmp_path / "a.txt").read_text() == "one\n"
    assert '"outcome":"denied"' in told and "was not written: the editor refused: The person denied this" in told


async def test_an_editor_that_only_changes_its_buffer_is_no_hindrance(tmp_path: Path) -> None:
    """A2: the edit is on disk when the model hears of it."""
    (tmp_path / "a.txt").write_text("one\n")
    async with inside(tmp_path, EDIT + END) as ours:
        Buffers(ours).on_save = lambda data: None
        await worked(ours, tmp_path, writeTextFile=True)
    assert (tmp_path / "a.txt").read_text() == "two\n"


async def test_an_editor_with_line_endings_of_its_own_does_not_change_those_of_the_file(tmp_path: Path) -> None:
    """A2, S10."""
    (tmp_path / "a.txt").write_bytes(b"one\r\nthree\r\n")
    async with inside(tmp_path, EDIT + END) as ours:
        Buffers(ours).on_save = lambda data: data.replace(b"\r\n", b"\n")
        await worked(ours, tmp_path, writeTextFile=True)
    assert (tmp_path / "a.txt").read_bytes() == b"two\r\nthree\r\n"


async def test_what_the_editor_makes_of_it_when_it_saves_stays_and_is_told(tmp_path: Path) -> None:
    """A2, S21: a formatter, or somebody who typed just then; the model must read it again."""
    (tmp_path / "a.txt").write_text("one\n")
    async with inside(tmp_path, EDIT + EDIT.replace('"one"', '"two"') + END) as ours:
        Buffers(ours).on_save = lambda data: data + b"typed meanwhile\n"
        told = await worked(ours, tmp_path, writeTextFile=True)
    assert (tmp_path / "a.txt").read_text() == "two\ntyped meanwhile\n"
    assert "The editor changed the text when it saved the file" in told and "by somebody else since" in told


async def test_a_file_that_is_not_plain_utf_8_is_written_by_us(tmp_path: Path) -> None:
    """A2: an editor is sent text, and could lose a mark or an encoding."""
    (tmp_path / "a.txt").write_bytes("\ufeffone\n".encode())
    async with inside(tmp_path, EDIT + END) as ours:
        buffers = Buffers(ours)
        await worked(ours, tmp_path, writeTextFile=True)
    assert buffers.written == [] and (tmp_path / "a.txt").read_bytes() == "\ufefftwo\n".encode()


@given(st.text())
def test_the_same_text_in_other_line_endings_is_the_same(text: str) -> None:
    """A2: and a text is always itself."""
    assert plain(text) == plain(text.replace("\r\n", "\n").replace("\r", "\n"))
    assert plain(plain(text).replace("\n", "\r\n") + "\r\n") == plain(plain(text) + "\n")
