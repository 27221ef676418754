"""The clean text of a running command for a viewer. It only ever grows.

bytes → Renderer → compare with what was given out → the text to append

A line that continues is continued. A line that was given out and is then rewritten (a progress bar, a redraw further
up) is given out again below, in its newest state. This happens at most once for each call. So the caller decides, by
how often it feeds, how much of a progress bar is seen.
"""

from tarmac.vt.text import Renderer

_LONGEST = 16_384  # of a line's text kept, to see if it is rewritten; a longer line can only be continued


class LiveText:
    """Append-only text of one stream. Keeps one screen of lines, however much passes through."""

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
