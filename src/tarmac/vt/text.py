"""Turn what a program wrote to its terminal into what a reader saw: plain text, safe for a model.

bytes → Sieve → text with cursor movement → Renderer → Page → text()
bytes → LiveText.feed() → the text to append, for a viewer of a running command
bytes → overwritten() → the texts that were printed and then hidden

Plain text goes to the page in one piece. A progress bar is folded from its last state backwards. Only the rest is
executed sequence by sequence.

Two surprises. Clearing the screen clears nothing, because this is a log: the following text begins on a new line. And
the page begins at the command's first line. A program that addresses the screen absolutely without clearing it first
lands relative to that line.
"""

import re
from collections.abc import Callable

from tarmac.vt.cells import is_simple
from tarmac.vt.page import Page
from tarmac.vt.sieve import ESC, Sieve

_SPECIAL = re.compile(r"[\r\x08]|\x1b(?!\[0?K)")  # what keeps a line from simply being appended
_TOKEN = re.compile(r"(\x1b\[[0-9;]*[@-~]|\x1b[78DEMc]|\x08+|[\r\n\t])")
_STRUCK = re.compile(r"(?:[ -~]\x08)+(?=[ -~])")  # typed, backspaced over, and typed over
_ERASE = re.compile(r"\x1b\[[02]?K")  # to the end of the line, or all of it
_NOT_QUICK = re.compile(r"\x1b(?!\[[02]?K(?:[^\x1b]|$))|[^\r]\x1b\[2K|\x08")  # what _fold_states cannot do
SLICE = 32 << 10
_HOME = frozenset({"\x1b[H", "\x1b[;H", "\x1b[1H", "\x1b[1;1H", "\x1b[f", "\x1b[1;1f"})


def clean(data: bytes, *, rows: int = 40) -> str:
    """The whole of `data` as a reader saw it."""
    renderer = Renderer(rows=rows)
    renderer.feed(data)
    return renderer.finish()


class Renderer:
    """Feed it bytes in any pieces, ask for the text at any time.

    The last `rows` lines are the screen: only they can change. Nothing is wrapped.
    """

    def __init__(self, *, rows: int = 40) -> None:
        self._sieve = Sieve()
        self._page = Page(rows=rows)
        self._last = ""  # the last sequence acted on

    def feed(self, data: bytes) -> None:
        self._draw(self._sieve.feed(data))

    def text(self) -> str:
        """All that can be read now. Half a character or half a sequence at the end is not shown yet."""
        return self._page.text()

    def finish(self) -> str:
        """The text, now that nothing more will come."""
        self._draw(self._sieve.finish())
        return self.text()

    @property
    def settled(self) -> int:
        """How many leading lines can never change any more."""
        return self._page.settled

    def screen(self) -> list[str]:
        """The lines that may still change, at least one; the last is the unfinished one."""
        return self._page.screen()

    def release(self) -> str:
        """Hand over the settled lines and forget them: `text()` is only the rest from now on."""
        return self._page.release()

    def forget_line(self) -> None:
        """Let go of the last line's text, for who has it already and watches a line without end."""
        self._page.forget_line()

    def _draw(self, text: str) -> None:
        """Append what can be appended, line by line or all at once; act out the rest."""
        if "\n" in text:
            text = text.replace("\r\n", "\n")
        plain = ESC not in text and "\r" not in text and "\b" not in text
        if ESC in text and _is_dense(text):
            self._act(text)
            return
        start, size = 0, len(text)
        while start < size:
            if self._page.at_end():
                special = None if plain else _SPECIAL.search(text, start)
                stop = text.rfind("\n", start, special.start()) + 1 if special else size
                if stop > start:
                    piece = text[start:stop]
                    self._page.append(_ERASE.sub("", piece) if ESC in piece else piece)  # there is nothing to erase
                    self._last = ""
                    start = stop
                    continue
            stop = text.find("\n", start) + 1 or size
            self._edit(text[start:stop])
            start = stop

    def _edit(self, text: str) -> None:
        """Take in one line, or a piece of one, in which the cursor moves."""
        if "\b" in text and ESC not in text:
            text = _STRUCK.sub("", text)
        if text.find("\r", text.find("\r") + 1) > 0:
            first, states = text.split("\r", 1)
            quick = (ESC not in text and "\b" not in text) or not _NOT_QUICK.search(text, len(first))
            if quick and is_simple(states):
                self._act(first)
                if self._fold_states(states):
                    return
                text = "\r" + states
        self._act(text)

    def _fold_states(self, text: str) -> bool:
        """The quick way for many states of one line, carriage returns between them: most never show.

        Work back from the last state until one has erased the line; whatever came before is gone.
        """
        line = self._page.current_line()
        if line is None:
            return False
        whole = text.removesuffix("\n")
        last = whole[whole.rfind("\r") + 1 :]
        longest = _longest_state(whole) if ESC not in whole else -1
        top, stop = "", len(whole)
        while stop >= 0 and len(top) != longest:  # at the longest nothing before it can show any more
            start = whole.rfind("\r", 0, stop)
            state = whole[start + 1 : stop]
            shown = _ERASE.sub("", state) if ESC in state else state
            if len(shown) > len(top):
                top += shown[len(top) :]
            if shown is not state:
                line = ""
                break
            stop = start
        self._page.replace_line(top + line[len(top) :], len(_ERASE.sub("", last)))
        self._last = "\r"
        if text.endswith("\n"):
            self._page.line_feed(0, 0)
        return True

    def _act(self, text: str) -> None:
        """Do what each sequence in `text` says, one after the other."""
        page, last = self._page, self._last
        tokens = _TOKEN.split(text)
        if tokens[0]:
            page.write(tokens[0])
        for token, after in zip(tokens[1::2], tokens[2::2], strict=True):
            act, first, second = _PLANS.get(token) or _plan(token)
            if act is Page.erase_screen and not first and last in _HOME and page.at_home:
                act = Page.clear  # how some terminals' `clear` is spelled
            act(page, first, second)
            last = token
            if after:
                page.write(after)
        self._last = last


def _is_dense(text: str) -> bool:
    """True if nearly every line moves the cursor, so that looking for easy ones would only take longer."""
    lines = text.count("\n")
    return text.count(ESC) - text.count("\x1b[K") > lines >= text.count("\r")


def _longest_state(text: str) -> int:
    """How long the longest state is: mostly as long as one of the last two, of which a read may have cut the last.

    In slices: a list of all states of a megabyte costs more than the rest.
    """
    end = text.rfind("\r") + 1
    most = max(len(text) - end, end - 2 - text.rfind("\r", 0, max(end - 1, 0)))
    first = text.find("\r")
    if first <= most:
        every = text[first :: most + 1] if first >= 0 else ""
        if every.count("\r") == len(every) == text.count("\r"):  # all are of one length, as bars are
            return most
        if not re.search(f"\r[^\r]{{{most}}}[^\r]", text):
            return most
    longest, start = 0, 0
    while start <= len(text):
        stop = text.find("\r", start + SLICE)
        stop = len(text) if stop < 0 else stop
        longest = max(longest, max(map(len, text[start:stop].split("\r"))))
        start = stop + 1
    return longest


Act = Callable[[Page, int, int], None]

_ACTS: dict[str, Act] = {
    "\r": Page.carriage_return,
    "\n": Page.line_feed,
    "\t": Page.tab,
    "\b": Page.left,
    "\x1b7": Page.save,
    "\x1b8": Page.restore,
    "\x1bD": Page.down,
    "\x1bM": Page.up,
    "\x1bE": Page.line_feed,
    "\x1bc": Page.clear,
    "@": Page.insert_characters,
    "A": Page.up,
    "B": Page.down,
    "C": Page.right,
    "D": Page.left,
    "E": Page.next_line,
    "F": Page.previous_line,
    "G": Page.to_column,
    "H": Page.place,
    "J": Page.erase_screen,
    "K": Page.erase_line,
    "P": Page.delete_characters,
    "X": Page.erase_characters,
    "`": Page.to_column,
    "a": Page.right,
    "d": Page.to_row,
    "e": Page.down,
    "f": Page.place,
    "s": Page.save,
    "u": Page.restore,
}
_PLANS: dict[str, tuple[Act, int, int]] = {}  # what each sequence met so far means


def _plan(token: str) -> tuple[Act, int, int]:
    """Read a sequence: what to do, and its first two numbers."""
    plan: tuple[Act, int, int]
    if token[0] == "\b":
        plan = (Page.left, len(token), 0)
    elif token in _ACTS:
        plan = (_ACTS[token], 0, 0)
    else:
        first, second, *_ = [min(int(number or 0), 9999) for number in token[2:-1].split(";")] + [0]
        plan = (_ACTS[token[-1]], first, second)
    if len(_PLANS) < 4096:
        _PLANS[token] = plan
    return plan


_LONGEST = 16_384  # of a line's text kept, to see if it is rewritten; a longer line can only be continued


class LiveText:
    """The clean text of a running command for a viewer. It only ever grows.

    A line that continues is continued. A line that was given out and is then rewritten (a progress bar, a redraw
    further up) is given out again below, in its newest state. This happens at most once for each call. So the caller
    decides, by how often it feeds, how much of a progress bar is seen.
    """

    def __init__(self, *, rows: int = 40) -> None:
        self._page = Renderer(rows=rows)
        self._first = 0  # the number of the line that `_shown` begins with
        self._shown: list[str] = []  # the lines of the screen as they were when we last looked
        self._at = -1  # the number of the line that was given out last
        self._given = ""  # and its text: where the watcher's cursor stands

    def feed(self, data: bytes) -> str:
        """Take in `data`; return what to append."""
        self._page.feed(data)
        return self._news()

    def finish(self) -> str:
        """The rest, now that nothing more will come."""
        self._page.finish()
        news = self._news()
        return news if self._shown[-1] or not self._given else news + "\n"

    def _news(self) -> str:
        lines = self._page.release().split("\n")[:-1] + self._page.screen()
        known = len(self._shown)
        pairs = zip(self._shown, lines, strict=False)
        news = [self._changed(number, was, now) for number, (was, now) in enumerate(pairs, self._first)]
        if fresh := lines[known:]:
            news.append("\n" * (self._at >= 0) + "\n".join(fresh))
            self._at, self._given = self._first + len(lines) - 1, fresh[-1]
        # A line that is gone is remembered as empty: drawn again, it counts as rewritten.
        lines += [""] * (known - len(lines))
        gone = self._page.settled - self._first
        self._first, self._shown = self._page.settled, lines[gone:]
        self._let_go()
        return "".join(news)

    def _changed(self, number: int, was: str, now: str) -> str:
        """What to append for a line that was given out as `was` and now reads `now`."""
        if was == now:
            return ""
        if number == self._at and now.startswith(self._given):
            news = now[len(self._given) :]
        elif not now:  # wiped: worth no line of its own
            return ""
        else:
            news = "\n" * bool(self._given) + now
        self._at, self._given = number, now
        return news

    def _let_go(self) -> None:
        """Forget the text of a line without end."""
        if len(self._given) > _LONGEST and self._at == self._first + len(self._shown) - 1:
            self._page.forget_line()
            self._shown[-1] = self._given = ""


MOST_HIDDEN_TEXTS = 5  # texts that are reported
MOST_OF_A_HIDDEN_TEXT = 160  # of each
_MOST_BYTES_LOOKED_AT = 1 << 20
_MOST_LINES_LOOKED_AT = 2_000  # lines with hidden words that are looked at
_MORE = "and more"
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|.)|[\x00-\x07\x0b-\x1f\x7f-\x9f]")
_BOLD = re.compile(r"(.)\x08(?=\1)|_\x08|(?<=.)\x08_")  # bold and underlined, as in manual pages
_STATES = re.compile(r"[\r\x08]+")
_WORD = re.compile(r"[^\W\d_]{2,}|[$`&;{}~]")
_NO_WORD = bytes.maketrans(*((each := b"0123456789 !\"#%'()*+,-./:<=>?@[\\]^_|"), b" " * len(each)))
_CONTROLS = bytes({*range(0x20), 0x7F} - {*b"\t\r"})


def overwritten(data: bytes) -> tuple[str, ...]:
    """The texts that a carriage return or a backspace hid: at most MOST_HIDDEN_TEXTS, and a word if there are more.

    A model would read the line that was drawn last, and not know of the one below it. Progress bars do the same, but
    their words stay. So a state of a line is reported only if it has words that nobody can see any more.
    """
    data = data[:_MOST_BYTES_LOOKED_AT].replace(b"\r\n", b"\n").rstrip(b"\r")
    if b"\r" not in data and b"\b" not in data:
        return ()
    found: dict[frozenset[str], str] = {}
    looked = 0
    for line in data.split(b"\n"):
        line = line.rstrip(b"\r")
        if (b"\r" not in line and b"\b" not in line) or _keeps_its_words(line):
            continue
        states = [_ESCAPE.sub("", each) for each in _STATES.split(_BOLD.sub("", line.decode("utf-8", "replace")))]
        if set(_WORD.findall(" ".join(states))) <= set(_WORD.findall(states[-1])):
            continue  # a progress bar whose words stay
        looked += 1
        if looked > _MOST_LINES_LOOKED_AT or len(found) >= MOST_HIDDEN_TEXTS:
            return (*found.values(), _MORE)
        visible = clean(line)
        seen = set(_WORD.findall(visible))
        for state in states:
            words = frozenset(_WORD.findall(state)) - seen
            if words and words not in found and state.strip() not in visible:
                if len(found) >= MOST_HIDDEN_TEXTS:
                    return (*found.values(), _MORE)
                found[words] = _hidden_text(state)
    return tuple(found.values())


def _keeps_its_words(line: bytes) -> bool:
    """Whether it is surely a progress bar whose words stay. Without their numbers, few different states remain."""
    if b"\xc2" in line or line.translate(None, _CONTROLS) != line:
        return False  # (0xC2 begins the control characters above 0x7F.)
    *states, last = line.translate(_NO_WORD).split(b"\r")
    return set(_WORD.findall(b" ".join({*states}).decode("utf-8", "replace"))) <= set(
        _WORD.findall(last.decode("utf-8", "replace"))
    )


def overwritten_notice(texts: tuple[str, ...]) -> str:
    """A line for the model; empty if nothing was hidden."""
    if not texts:
        return ""
    return f"[overwritten, and not visible above: {'; '.join(map(repr, texts))}]\n"


def _hidden_text(state: str) -> str:
    state = "".join(each if each.isprintable() else " " for each in state).strip()
    return state if len(state) <= MOST_OF_A_HIDDEN_TEXT else f"{state[: MOST_OF_A_HIDDEN_TEXT - 1]}…"
