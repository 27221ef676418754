"""The session's part of the screen: an input editor and a status line below the terminal's own scrollback.

print(text)                    printed above, once; the terminal keeps it
live()                         lines that change: the answer that streams, the command that runs
submitted → on_submit(text)    what the person typed, pastes unfolded
ask(choices) → text            an answer to a question; what was typed before stays in the editor

One prompt_toolkit application runs from the first prompt to the end of the session. A question has an input line of
its own. Keys reach it only after the person could have read it, so a key that was meant for the editor never
answers a question.
"""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from prompt_toolkit.application import in_terminal
from prompt_toolkit.application.current import set_app
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, DummyCompleter, get_common_complete_suffix
from prompt_toolkit.document import Document
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import Condition, has_completions, has_focus
from prompt_toolkit.formatted_text import ANSI, AnyFormattedText, StyleAndTextTuples
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import (
    BufferControl,
    ConditionalContainer,
    Float,
    FloatContainer,
    FormattedTextControl,
    HSplit,
    Layout,
    Window,
)
from prompt_toolkit.layout.dimension import Dimension
from prompt_toolkit.layout.menus import CompletionsMenu
from prompt_toolkit.layout.processors import AppendAutoSuggestion, BeforeInput, ConditionalProcessor, PasswordProcessor
from prompt_toolkit.output import ColorDepth, Output
from prompt_toolkit.styles import Style
from prompt_toolkit.widgets import SearchToolbar

from tarmac.show.inline_app import InlineApplication, frame_output
from tarmac.show.look import Look, width

if TYPE_CHECKING:
    from tarmac.show.question import Choices  # with it comes the policy, and the first paint does not wait for that

READ = 0.3  # seconds before a question takes keys
TYPING = 0.7  # seconds without a key after which a person who was typing has stopped
SINGLE = 0.25  # seconds after a single key in which more keys make it a word
REST = 1.5  # seconds in which the rest of a word ("es" after "y") is dropped
FOLD_LINES = 4  # lines of a paste that are shown as they are
FOLD_CHARACTERS = 800
TALLEST = 10  # rows of the input editor
LIVE = 10  # rows of what changes
MENU = 8  # rows of names to complete
EVERY = 0.05  # seconds between two drawings of what changes; a key is drawn at once
LAST_DRAWING = 2.0  # seconds for the editor to take itself off the screen
WORDS = ("yes", "no", "always", "session", "edit", "view", "help")


class Status(Protocol):
    """What the lines below the editor say."""

    def live(self, columns: int) -> Sequence[str]: ...
    def status(self, columns: int) -> str: ...


class SessionUI:
    """The lower part of the screen. Open it with `async with ui.running():`."""

    def __init__(
        self,
        look: Look,
        *,
        history: Path | None = None,
        input: Input | None = None,
        output: Output | None = None,
    ) -> None:
        self.look = look
        self.shows: Status | None = None
        self.on_submit: Callable[[str], Awaitable[None]] | None = None
        self.on_interrupt: Callable[[], bool] = bool  # True: something was stopped
        self.on_leave: Callable[[], object] = bool
        self.on_gone: Callable[[], object] = bool
        self.on_level: Callable[[], object] = bool
        self.on_background: Callable[[], object] = bool
        self.can_leave: Callable[[], bool] = bool  # whether a command runs that can be sent to the background
        self.hands_over: Callable[[str], bool] = lambda _: False  # whether a line gives the terminal to another program
        self._early: list[KeyPress] | None = None  # keys pressed for that program before it has the terminal
        self._pastes: dict[str, str] = {}
        self._pending: list[str] = []
        self._flushing: asyncio.Task[None] | None = None
        self._drawing: asyncio.TimerHandle | None = None
        self._jobs: set[asyncio.Task[None]] = set()
        self._running: asyncio.Task[None] | None = None
        self._question: _Question | None = None
        self._last_key = 0.0
        self._drop = ("", 0.0)  # the rest of a word after a single key, and until when it is dropped
        self._leaving = 0.0
        self._tabbed = False  # Tab was pressed before there was something to offer
        self._hint = ""
        self._editor = Buffer(
            name="editor",
            multiline=True,
            history=_history(history),
            completer=DummyCompleter(),
            complete_while_typing=Condition(self._completes),
            auto_suggest=AutoSuggestFromHistory(),
            enable_history_search=False,
            tempfile_suffix=".md",
            on_text_changed=self._editor_changed,
        )
        self._answer = Buffer(name="answer", multiline=False, on_text_changed=self._answer_changed)
        self.app = InlineApplication(
            layout=self._layout(),
            key_bindings=self._bindings(),
            style=_STYLE,
            editing_mode=EditingMode.EMACS,
            color_depth=ColorDepth.DEPTH_4_BIT if look.colour else ColorDepth.DEPTH_1_BIT,
            erase_when_done=True,
            refresh_interval=1.0,
            mouse_support=False,
            enable_page_navigation_bindings=False,
            input=input,
            output=output or frame_output(sys.stdout),
        )
        self.app.ttimeoutlen = 0.05
        self.app.renderer.cpr_not_supported_callback = None  # a warning in the middle of a conversation helps nobody

    @property
    def lent(self) -> bool:
        """Whether another program has the terminal. Ctrl-C is for that one."""
        return self.app.lent

    # Its life

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Show it during the block, or until it is closed. It is drawn when the block begins."""
        drawn = asyncio.Event()
        self.app.after_render += lambda _: drawn.set()
        self._running = asyncio.create_task(self.app.run_async(handle_sigint=False, set_exception_handler=False))
        self._running.add_done_callback(self._gone)
        drawing = asyncio.create_task(drawn.wait())
        try:
            await asyncio.wait({drawing, self._running}, return_when=asyncio.FIRST_COMPLETED)
            yield
        finally:
            drawing.cancel()
            await self.close()

    def _gone(self, _: object) -> None:
        """The terminal is gone: nobody can type any more."""
        if self._running is not None:
            self.on_gone()

    async def close(self) -> None:
        """Take it off the screen. What was printed stays there."""
        if self._running is None:
            return
        running, self._running = self._running, None
        for job in list(self._jobs):  # first: a program that has the terminal would keep us from printing
            job.cancel()
        await asyncio.gather(*self._jobs, return_exceptions=True)
        if self._flushing is not None:
            await asyncio.wait({self._flushing}, timeout=LAST_DRAWING)
            self._flushing.cancel()
        if self.app.is_running and self.app.future is not None and not self.app.future.done():
            self.app.exit()
        await asyncio.wait({running}, timeout=LAST_DRAWING)  # on a terminal that is gone it never ends
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        self._print_pending()

    def complete_with(self, completer: Completer) -> None:
        """What Tab offers in the editor. A Tab that was pressed before counts now."""
        self._editor.completer = completer
        with set_app(self.app):
            if self._tabbed:
                self._complete(self._editor)
            else:
                self.offer_again()

    def print(self, text: str) -> None:
        """Print whole lines above the editor, at once; while another program has the terminal, when it has ended."""
        if not text:
            return
        self._pending.append(text if text.endswith("\n") else text + "\n")
        if not self.app.busy:
            self._print_pending()
        elif self._flushing is None or self._flushing.done():
            self._flushing = asyncio.ensure_future(self._flush())

    def changed(self) -> None:
        """What `shows` says has changed: draw it again, soon. A model streams faster than anybody reads."""
        if self._drawing is None:
            self._drawing = asyncio.get_running_loop().call_later(EVERY, self._draw)

    def _draw(self) -> None:
        self._drawing = None
        self.app.invalidate()

    def hint(self, text: str) -> None:
        """Say something in the status line until the next key."""
        self._hint = text
        self.app.invalidate()

    @property
    def typed(self) -> str:
        """What is in the editor, pastes unfolded."""
        return self._unfolded(self._editor.text)

    def prefill(self, text: str) -> None:
        """Put text into the editor, unless something is there."""
        if not self._editor.text:
            self._editor.set_document(Document(text))

    async def _flush(self) -> None:
        """Wait for the terminal, and print."""
        with set_app(self.app):
            async with in_terminal():
                pass
        self._print_pending()

    def _print_pending(self) -> None:
        text = "".join(self._pending)
        self._pending.clear()
        if text:
            self.app.print_above(text)

    @asynccontextmanager
    async def lend(self) -> AsyncIterator[bytes]:
        """Let another program have the terminal during the block; keys that were pressed for it already."""
        async with self.app.lend():
            typed, self._early = self._early or [], None
            yield "".join(press.data for press in typed).encode()

    def type(self, keys: bytes) -> None:
        """Keys that another program did not want are the editor's."""
        self.app.type(keys)

    async def _edit(self) -> None:
        """Open what is in the editor in the person's own program; pastes are unfolded for it."""
        self._editor.set_document(Document(self.typed, len(self.typed)))
        self._pastes.clear()
        self.app.lent = True
        try:
            with set_app(self.app):
                await self._editor.open_in_editor()
        finally:
            self.app.lent = False

    # Questions

    async def ask(self, choices: "Choices", typing: Callable[[], object] = bool) -> str | None:
        """The person's answer: one of the keys, or words; None: they ended the input. One question at a time.

        `typing` is called when they begin to type.
        """
        question = _Question(choices, asyncio.get_running_loop().create_future(), typing)
        self._question = question
        self._answer.set_document(Document(choices.text), bypass_readonly=True)
        self.later(self._focus_soon(question))
        self.app.invalidate()
        try:
            return await question.answered
        finally:
            self._question = None
            self._answer.reset()
            self.app.layout.focus(self._editor)
            self.app.invalidate()

    async def _focus_soon(self, question: "_Question") -> None:
        """Give the question the keys once it could be read, and nobody is in the middle of a line.

        What asks for a secret is shown at that moment: whoever reads it can type, and it goes nowhere else.
        """
        await asyncio.sleep(0 if question.choices.head else READ)
        while (left := TYPING - (time.monotonic() - self._last_key)) > 0:  # noqa: ASYNC110 - each key extends it
            await asyncio.sleep(left)
        if self._question is question:
            question.takes_keys = True
            self.app.layout.focus(self._answer)
            self.print(question.choices.head)
            self.app.invalidate()

    def _answer_changed(self, buffer: Buffer) -> None:
        question = self._question
        if question is None or not question.takes_keys:
            return
        if buffer.text:
            question.typing()
        if question.choices.secret:
            return
        text = buffer.text
        if len(text) == 1 and text.lower() in {key for key, _ in question.choices.keys}:
            self.later(self._single(question, text))

    async def _single(self, question: "_Question", key: str) -> None:
        """A single key answers, unless more keys follow at once: then it is the first letter of words."""
        await asyncio.sleep(SINGLE)
        if self._question is question and self._answer.text == key:
            rest = next((word[1:] for word in WORDS if word.startswith(key.lower())), "")
            self._drop = (rest, time.monotonic() + REST)
            question.settle(key.lower())

    # What the person typed

    def _submit(self, buffer: Buffer) -> None:
        text = self._unfolded(buffer.text)
        if not text.strip() or self.on_submit is None:
            return
        buffer.append_to_history()
        buffer.reset()
        self._tabbed = False
        self._pastes.clear()
        if self.hands_over(text):
            self._early = []
        self.later(self._submitted(text))

    async def _submitted(self, text: str) -> None:
        assert self.on_submit is not None
        try:
            await self.on_submit(text)
        finally:
            early, self._early = self._early, None
            self.app.type(early or [])

    def _paste(self, event: KeyPressEvent) -> None:
        text = event.data.replace("\r\n", "\n").replace("\r", "\n")
        buffer = event.current_buffer
        if buffer is not self._editor:
            buffer.insert_text(" ".join(text.split("\n")) if not buffer.multiline() else text)
            return
        lines = text.count("\n") + 1
        if lines <= FOLD_LINES and len(text) <= FOLD_CHARACTERS:
            buffer.insert_text(text)
            return
        what = f"{lines} lines" if lines > 1 else f"{len(text):,} characters"
        mark = f"[pasted {what}]"
        number = 2
        while mark in self._pastes:
            mark, number = f"[pasted {what}, {number}]", number + 1
        self._pastes[mark] = text
        buffer.insert_text(mark)

    def _unfolded(self, text: str) -> str:
        for mark, pasted in self._pastes.items():
            text = text.replace(mark, pasted)
        return text

    def _completes(self) -> bool:
        """Whether names are offered while the person types: of commands and their arguments, and after an at sign."""
        word = self._editor.document.get_word_before_cursor(WORD=True)
        before = self._editor.document.text_before_cursor
        return word.startswith(("/", "@")) or (before.startswith("/") and before.count(" ") == 1 and "\n" not in before)

    def offer_again(self) -> None:
        """There are new names to complete: show them, if the person waits for some."""
        if self._completes() and not self._editor.complete_state:
            self._editor.start_completion()

    def _complete(self, buffer: Buffer) -> None:
        """Tab. While names are looked up for the menu, prompt_toolkit would drop the key."""
        self._tabbed = isinstance(buffer.completer, DummyCompleter)
        if self._tabbed:
            return
        if buffer.complete_state:
            buffer.complete_next()
            return
        found = list(buffer.completer.get_completions(buffer.document, CompleteEvent(completion_requested=True)))
        if len(found) == 1:
            buffer.apply_completion(found[0])
        elif common := get_common_complete_suffix(buffer.document, found):
            buffer.insert_text(common)
        else:
            buffer.start_completion()

    # Keys

    def _bindings(self) -> KeyBindings:
        keys = KeyBindings()
        in_editor, in_answer = has_focus(self._editor), has_focus(self._answer)

        @keys.add(Keys.Any, filter=Condition(lambda: self._early is not None), eager=True)
        def _(event: KeyPressEvent) -> None:
            assert self._early is not None
            self._early += [press for press in event.key_sequence if not self.app.take_cursor_report(press)]

        @keys.add(Keys.CPRResponse, save_before=lambda _: False)
        def _(event: KeyPressEvent) -> None:
            self.app.take_cursor_report(event.key_sequence[-1])

        @keys.add(Keys.BracketedPaste)
        def _(event: KeyPressEvent) -> None:
            self._pressed()
            self._paste(event)

        @keys.add(Keys.Any, filter=in_editor)
        def _(event: KeyPressEvent) -> None:
            self._pressed()
            if not self._dropped(event.data):
                event.current_buffer.insert_text(event.data)

        @keys.add("enter", filter=in_editor)
        def _(event: KeyPressEvent) -> None:
            self._pressed()
            buffer = event.current_buffer
            if self._dropped("\r"):
                return
            if buffer.complete_state and buffer.complete_state.current_completion:
                buffer.apply_completion(buffer.complete_state.current_completion)
                buffer.cancel_completion()
            elif buffer.document.current_line_before_cursor.endswith("\\") and buffer.document.is_cursor_at_the_end:
                buffer.delete_before_cursor()
                buffer.newline(copy_margin=False)
            else:
                self._submit(buffer)

        @keys.add("escape", "enter", filter=in_editor)
        @keys.add("c-j", filter=in_editor)
        def _(event: KeyPressEvent) -> None:
            self._pressed()
            event.current_buffer.newline(copy_margin=False)

        @keys.add("tab", filter=in_editor)
        def _(event: KeyPressEvent) -> None:
            self._pressed()
            self._complete(event.current_buffer)

        @keys.add("enter", filter=in_answer)
        def _(event: KeyPressEvent) -> None:
            if self._question is not None and (self._answer.text.strip() or self._question.choices.secret):
                self._question.settle(self._answer.text)

        @keys.add("escape", filter=in_answer, eager=True)
        def _(event: KeyPressEvent) -> None:
            self._answer.reset()

        @keys.add("c-c")
        def _(event: KeyPressEvent) -> None:
            self._interrupt()

        @keys.add("c-d")
        def _(event: KeyPressEvent) -> None:
            if event.current_buffer.text:
                event.current_buffer.delete()
            elif self._question is not None:
                self._question.settle(None)
            else:
                self.on_leave()

        @keys.add("s-tab")
        def _(event: KeyPressEvent) -> None:
            self.on_level()

        @keys.add("c-b", filter=in_editor & Condition(lambda: not self._editor.text or self.can_leave()))
        def _(event: KeyPressEvent) -> None:
            self.on_background()

        @keys.add("c-x", "c-e", filter=in_editor)
        def _(event: KeyPressEvent) -> None:
            self.later(self._edit())

        @keys.add("c-z")
        def _(event: KeyPressEvent) -> None:
            event.app.suspend_to_background()

        @keys.add("c-l")
        def _(event: KeyPressEvent) -> None:
            event.app.renderer.clear()

        return keys

    def _editor_changed(self, _: Buffer) -> None:
        self._hint = ""

    def _pressed(self) -> None:
        self._last_key = time.monotonic()
        self._hint = ""

    def _dropped(self, data: str) -> bool:
        """Whether a key is the rest of a word whose first letter answered a question."""
        rest, until = self._drop
        if time.monotonic() > until or self._editor.text:
            self._drop = ("", 0.0)
            return False
        if rest and data == rest[0]:
            self._drop = (rest[1:], time.monotonic() + REST)
            return True
        done, self._drop = not rest and until > 0, ("", 0.0)
        return done and data == "\r"

    def _interrupt(self) -> None:
        """Ctrl-C: stop what runs; else drop the line (history keeps it); else leave at the second one."""
        now = time.monotonic()
        if self.on_interrupt():
            self._leaving = 0.0
        elif self._editor.text:
            self._editor.append_to_history()
            self._editor.reset()
            self.hint("the line is in the history: Up brings it back")
        elif now - self._leaving < 2.0:
            self.on_leave()
        else:
            self._leaving = now
            self.hint("Ctrl-C again leaves")

    def later(self, work: Awaitable[object]) -> None:
        """Do something beside; what is left of it ends with the session."""

        async def run() -> None:
            await work

        job = asyncio.ensure_future(run())
        self._jobs.add(job)
        job.add_done_callback(self._jobs.discard)

    # Layout

    def _layout(self) -> Layout:
        search = SearchToolbar()
        asking = Condition(lambda: self._question is not None)
        secret = Condition(lambda: self._question is not None and self._question.choices.secret)
        editor = Window(
            BufferControl(
                self._editor,
                input_processors=[BeforeInput([("class:prompt", "❯ ")]), AppendAutoSuggestion()],
                search_buffer_control=search.control,
                include_default_input_processors=True,
            ),
            height=Dimension(min=1, max=TALLEST),
            wrap_lines=True,
            dont_extend_height=True,
        )
        answer = Window(
            BufferControl(
                self._answer,
                input_processors=[BeforeInput(self._answer_prompt), ConditionalProcessor(PasswordProcessor(), secret)],
            ),
            wrap_lines=True,
            dont_extend_height=True,
        )
        body = HSplit(
            [
                ConditionalContainer(
                    Window(FormattedTextControl(self._live_text), dont_extend_height=True, wrap_lines=False),
                    filter=Condition(lambda: bool(self._live_lines())),
                ),
                ConditionalContainer(
                    HSplit(
                        [
                            Window(FormattedTextControl(self._choices_text), dont_extend_height=True, wrap_lines=True),
                            answer,
                        ]
                    ),
                    filter=asking,
                ),
                ConditionalContainer(editor, filter=~asking | Condition(self._editing)),
                search,
                Window(FormattedTextControl(self._status_text), height=1, style="class:status"),
                ConditionalContainer(Window(height=MENU - 1), filter=has_completions),  # room for the menu
            ]
        )
        menu = Float(xcursor=True, ycursor=True, content=CompletionsMenu(max_height=MENU, scroll_offset=1))
        return Layout(FloatContainer(body, floats=[menu]), focused_element=self._editor)

    def _editing(self) -> bool:
        """Whether the editor is shown beside a question: it has text, or the question takes no keys yet."""
        return bool(self._editor.text) or (self._question is not None and not self._question.takes_keys)

    @property
    def _columns(self) -> int:
        return self.app.output.get_size().columns

    def _live_lines(self) -> list[str]:
        return list(self.shows.live(self._columns))[-LIVE:] if self.shows else []

    def _live_text(self) -> AnyFormattedText:
        return ANSI("\n".join(self._live_lines()))

    def _status_text(self) -> AnyFormattedText:
        if self._hint:
            return self._hint
        return ANSI(self.shows.status(self._columns)) if self.shows else ""

    def _choices_text(self) -> AnyFormattedText:
        question = self._question
        if question is None:
            return ""
        if not question.takes_keys:
            return [("class:dim", "  …")]
        items = [(key, f" {what}") for key, what in question.choices.keys]
        if question.choices.words:
            items.append(("", f"{'or ' if items else ''}{question.choices.words}"))
        parts: StyleAndTextTuples = []
        used = self._columns
        for key, what in items:  # a line ends between two of them
            wide = width(key + what)
            between, used = ("   ", used + 3 + wide) if used + 3 + wide < self._columns else ("\n  ", 2 + wide)
            parts += [("", between if parts else "  "), ("class:key", key), ("", what)]
        return parts

    def _answer_prompt(self) -> AnyFormattedText:
        return [("class:question", "? ")]


@dataclass(slots=True)
class _Question:
    choices: "Choices"
    answered: "asyncio.Future[str | None]"
    typing: Callable[[], object]
    takes_keys: bool = False

    def settle(self, answer: str | None) -> None:
        if not self.answered.done():
            self.answered.set_result(answer)


def _history(file: Path | None) -> History:
    """The lines of earlier sessions; in memory where they can't be kept."""
    if file is None:
        return InMemoryHistory()
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        file.touch(mode=0o600, exist_ok=True)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(file))


_STYLE = Style.from_dict(
    {
        "prompt": "bold ansiblue",
        "question": "bold ansimagenta",
        "key": "bold",
        "dim": "italic",
        "status": "noreverse",
        # prompt_toolkit's own are black, white and grey: on a screen of that colour nobody could read them.
        "auto-suggestion": "fg:default italic",
        "completion-menu": "noreverse fg:default bg:default",
        "completion-menu.completion": "noreverse fg:default bg:default",
        "completion-menu.completion.current": "fg:default bg:default reverse",
        "completion-menu.meta.completion": "noreverse fg:default bg:default italic",
        "completion-menu.meta.completion.current": "fg:default bg:default italic reverse",
        "scrollbar.background": "bg:default",
        "scrollbar.button": "reverse",
    }
)
