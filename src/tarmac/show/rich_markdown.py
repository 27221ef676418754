"""Markdown through rich, with our colours. Imported where a person reads answers: rich takes 50 ms.

All colours can be read on a black and on a white screen: no background, no yellow, nothing bright.
"""

from io import StringIO

from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Generic, Keyword, Name, Number, Operator, String, Token
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import BlockQuote, CodeBlock, Heading, Markdown
from rich.segment import Segment
from rich.style import Style
from rich.syntax import ANSISyntaxTheme, Syntax
from rich.theme import Theme

from tarmac.show.look import Look

_STYLES = Theme(
    {
        "markdown.code": "cyan",
        "markdown.code_block": "none",
        "markdown.block_quote": "magenta",
        "markdown.h1": "bold",
        "markdown.h2": "bold",
        "markdown.h3": "bold",
        "markdown.h4": "bold",
        "markdown.h5": "italic",
        "markdown.h6": "italic",
        "markdown.hr": "none",
        "markdown.item.bullet": "bold",
        "markdown.item.number": "bold",
        "markdown.link": "underline",
        "markdown.link_url": "underline",
        "markdown.table.border": "none",
        "markdown.table.header": "bold",
    }
)
_CODE = ANSISyntaxTheme(
    {
        Token: Style(),
        Comment: Style(italic=True),
        Keyword: Style(color="magenta"),
        Name.Function: Style(bold=True),
        Name.Class: Style(bold=True),
        Name.Tag: Style(color="magenta"),
        String: Style(color="green"),
        Number: Style(color="cyan"),
        Operator.Word: Style(color="magenta"),
        Generic.Deleted: Style(color="red"),
        Generic.Inserted: Style(color="green"),
        Generic.Heading: Style(bold=True),
    }
)


class _LeftHeading(Heading):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "left"
        yield self.text


class _PlainCode(CodeBlock):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = str(self.text).removesuffix("\n")
        yield Syntax(code, self.lexer_name, theme=_CODE, word_wrap=True, padding=(0, 1))


class _Quote(BlockQuote):
    """A quotation. rich would draw the bar that only a question of ours has."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        narrower = options.update(width=max(options.max_width - 4, 1))
        for line in console.render_lines(self.elements, narrower, style=self.style):
            yield Segment("│ ", self.style)
            yield from line
            yield Segment("\n")


class _Markdown(Markdown):
    elements = {  # noqa: RUF012 - rich's own way to choose them
        **Markdown.elements,
        "heading_open": _LeftHeading,
        "blockquote_open": _Quote,
        "fence": _PlainCode,
        "code_block": _PlainCode,
    }


def warm_up() -> None:
    """Compile the rules of the languages that most answers have. The first use of Python's takes 25 ms."""
    for language in ("python", "bash"):
        get_lexer_by_name(language)


def rendered(markdown: str, look: Look) -> str:
    """The text that a terminal shows for it."""
    console = Console(
        file=StringIO(),
        width=max(look.columns - 1, 20),
        force_terminal=look.colour,
        color_system="standard" if look.colour else None,
        no_color=not look.colour,
        theme=_STYLES,
        highlight=False,
        emoji=False,
        legacy_windows=False,
    )
    with console.capture() as captured:
        console.print(_Markdown(markdown, hyperlinks=False))
    return captured.get()
