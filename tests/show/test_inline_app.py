"""The editor below the scrollback: what is printed above it, and who gets the keys."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TextIO, cast

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.data_structures import Size
from prompt_toolkit.input import PipeInput, create_pipe_input

from tarmac.cli.run import SessionStart
from tarmac.config import load_config
from tarmac.show.inline_app import FrameOutput
from tarmac.show.look import Look
from tarmac.show.ui import SessionUI


class Stream:
    """A terminal's side of the output: each write by itself."""

    encoding = "utf-8"

    def __init__(self) -> None:
        self.writes: list[str] = []

    def write(self, text: str) -> None:
        self.writes.append(text)

    def flush(self) -> None:
        pass

    def fileno(self) -> int:
        raise OSError("no descriptor")


@contextmanager
def ui() -> Iterator[tuple[SessionUI, Stream, PipeInput, list[str]]]:
    """An editor, what it writes, its keys, and each time it left the raw mode."""
    stream, cooked = Stream(), list[str]()
    with create_pipe_input() as keys:
        leave_raw = keys.cooked_mode

        def cooked_mode() -> AbstractContextManager[None]:
            cooked.append("cooked")
            return leave_raw()

        keys.cooked_mode = cooked_mode  # type: ignore[method-assign]
        output = FrameOutput(cast(TextIO, stream), lambda: Size(24, 80), term="xterm", enable_cpr=False)
        with create_app_session(input=keys, output=output):
            yield SessionUI(Look(colour=False, live=True), input=keys, output=output), stream, keys, cooked


async def until(ready: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        while not ready():  # noqa: ASYNC110 - it is prompt_toolkit's own state
            await asyncio.sleep(0.01)


async def test_what_is_printed_above_is_one_write_and_the_raw_mode_stays() -> None:
    """U2: an Enter that was pressed while something was printed arrived as a newline."""
    with ui() as (shown, stream, _, cooked):
        async with shown.running():
            await until(lambda: shown.app.is_running and stream.writes)
            stream.writes.clear()
            shown.print("a line\nand one more")
            (write,) = stream.writes  # at once, and whole: erase, print, draw
            assert "a line\r\nand one more\r\n" in write and write.index("\x1b[J") < write.index("a line")
            assert write.rindex("❯") > write.index("one more")
        assert cooked == []


async def test_what_is_printed_while_another_program_has_the_terminal_comes_after_it() -> None:
    """U7."""
    with ui() as (shown, stream, _, _cooked):
        async with shown.running():
            await until(lambda: shown.app.is_running)
            async with shown.lend():
                shown.print("later")
                await asyncio.sleep(0.05)
                assert "later" not in "".join(stream.writes)
            await until(lambda: "later" in "".join(stream.writes))


async def test_the_session_ends_while_another_program_has_the_terminal() -> None:
    """U1: it waited for that program, and the program for the session."""
    with ui() as (shown, stream, keys, _):

        async def has_it(_: str) -> None:
            async with shown.lend():
                await asyncio.Event().wait()

        shown.on_submit = has_it
        async with asyncio.timeout(30):
            async with shown.running():
                await until(lambda: shown.app.is_running)
                keys.send_text("go\r")
                await until(lambda: shown.lent and shown.app.busy)
                shown.print("the last words")
        assert "the last words" in "".join(stream.writes)


@pytest.mark.parametrize("fails", [False, True])
async def test_keys_behind_a_line_that_hands_over_the_terminal_are_for_who_gets_it(fails: bool) -> None:
    """U2, U7: else they are the editor's."""
    got: list[bytes] = []
    with ui() as (shown, _, keys, _cooked):

        async def submitted(_: str) -> None:
            await asyncio.sleep(0.05)
            if not fails:
                async with shown.lend() as typed:
                    got.append(typed)
            got.append(b"end")

        shown.on_submit, shown.hands_over = submitted, lambda text: text == "/attach"
        async with shown.running():
            await until(lambda: shown.app.is_running)
            keys.send_text("/attach\rls\x1b[D")
            await until(lambda: b"end" in got and (not fails or shown.typed))
        typed = shown.typed
    assert (got, typed) == (([b"end"], "ls") if fails else ([b"ls\x1b[D", b"end"], ""))


async def test_what_is_typed_before_the_session_is_open_waits_for_it(tmp_path: Path) -> None:
    """U1, U2: the editor is drawn before the rest of Tarmac is imported. Lines, Tab and Shift-Tab wait."""
    seen: list[str] = []

    async def submitted(text: str) -> None:
        seen.append(text)

    with ui() as (shown, stream, keys, _cooked):
        start = SessionStart(shown, load_config(tmp_path, {}, {"model": "some/model"}))
        async with shown.running():
            assert "code · ask (shift-tab) · some/model" in "".join(stream.writes)
            keys.send_text("first\rsecond line\r\x1b[Z/al\t")
            await until(lambda: "❯ second line" in "".join(stream.writes) and shown.typed == "/al")
            assert seen == []
            shown.on_submit, shown.on_level = submitted, lambda: seen.append("level")
            shown.complete_with(WordCompleter(["/alone"], WORD=True))
            start.done.set()
            await until(lambda: len(seen) == 3)
            assert [each for each in seen if each != "level"] == ["first", "second line"]
            assert shown.typed == "/alone"


@pytest.mark.parametrize(
    "part",
    [
        "auto-suggestion",
        "completion-menu.completion",
        "completion-menu.completion.current",
        "completion-menu.meta.completion",
        "completion-menu.meta.completion.current",
    ],
)
def test_what_is_offered_has_the_colours_of_the_screen(part: str) -> None:
    """U6: names to complete were black, also on a black screen."""
    with ui() as (shown, _, _keys, _cooked):
        names = part.split(".")
        whole = " ".join(f"class:{'.'.join(names[:end])}" for end in range(1, len(names) + 1))
        drawn = shown.app.renderer.style.get_attrs_for_style_str(whole)
    assert drawn.color == "default" and drawn.bgcolor in ("default", "")
