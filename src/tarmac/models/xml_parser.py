"""Parse streamed text into text and XML tool calls, wherever the chunks are cut.

feed(text) … finish() → TextDelta | CallDelta.  What is certain is returned at once.

    <write_to_file><path>a.py</path><content>
    …
    </content></write_to_file>

Where an argument ends:
- The tag of the next argument, directly after </content>, ends it.
- Otherwise the closing tag of the tool does. A content may contain such tags itself, so this is the first
  </write_to_file> after which every other one has its opening tag. Only the end of the message can tell, so text after
  a multi-line argument waits until then. In a value of one line, the first closing tag counts.

Plain text are: tags in code fences and backticks, tags of unknown tools, tags in the middle of a sentence, and
everything between <think> and </think> at the start of a line. A call that was cut off gets arguments that are not
valid JSON, so no tool runs.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Literal, NamedTuple

from tarmac.models.completion_builder import CompletionBuilder
from tarmac.models.provider import Chunk, ToolSchema
from tarmac.models.xml_values import VERBATIM, Schema, decoded, is_text, kinds, property_of, repeated

_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})(.*)", re.DOTALL)
_REASONING_TAGS = ("think", "thinking")
_MAYBE_FENCE = re.compile(r"[ \t]*(?:`{0,2}|~{0,2})\Z")
LONGEST_TAG = 200  # characters; anything longer is text
_NAME = r"[A-Za-z_][\w.-]*"
_ARGUMENT = re.compile(rf"<({_NAME})(?:\s[^<>]*)?>")
_BLANKS = re.compile(r"\s*")
_PARTIAL = re.compile(r"</?[\w.-]*(?:\s[^<>]*)?\Z")


class ValueEnd(NamedTuple):
    """The end of an argument, as positions in the text."""

    value: int  # the end of the value
    tag: int  # the end of its closing tag
    end: int  # where the parser continues
    closes: bool  # the call ends here, too
    whole: bool = True  # False: the message was cut off


def argument_tag(text: str, *, final: bool) -> re.Match[str] | Literal[False] | None:
    """The argument tag at the start of `text`; False if more text is needed to tell."""
    if found := _ARGUMENT.match(text[:LONGEST_TAG]):
        return found
    waits = not final and len(text) < LONGEST_TAG and (not text or _PARTIAL.match(text))
    return False if waits else None


def skip_blanks(text: str, start: int) -> int:
    """The position of the next character that is not blank."""
    found = _BLANKS.match(text, start)
    return found.end() if found else start


def closing(name: str) -> str:
    """A pattern for a closing tag."""
    return rf"</{re.escape(name)}[ \t]{{0,8}}>"


class ArgumentScanner:
    """Finds the end of an argument. The text passed to it begins with the value."""

    def __init__(self, name: str, tool: str, schema: Schema) -> None:
        self.name = name
        self.streams = is_text(property_of(schema, name), schema)
        own, opened, closed = closing(name), rf"<{re.escape(tool)}[ \t]{{0,8}}>", closing(tool)
        self._tokens = re.compile(f"(?P<own>{own})|(?P<opened>{opened})|(?P<closed>{closed})")
        self._tool_end = re.compile(rf"{closed}\s*\Z")
        self._at = 0  # scanned up to here
        self._certain = 0  # up to here it is certainly value
        self._given = 0  # returned as JSON up to here
        self._first = True
        self._blanks = ""
        self._lines = False  # the discarded text contained a newline
        self._depth = 0
        self._close: tuple[int, int] | None = None  # the last </argument>
        self._lone: tuple[int, int] | None = None  # the last </tool> without an </argument> before it
        self._ends: list[tuple[ValueEnd, int]] = []  # candidates, each with its index in `_tags`
        self._tags: list[int] = []  # +1 <tool>, -1 </tool>, since the first candidate

    @property
    def held(self) -> bool:
        """A closing tag was seen. Text after it waits for the next one, or for the end."""
        return self._close is not None

    def scan(self, text: str, begins_next: Callable[[str], bool], *, final: bool, complete: bool) -> ValueEnd | None:
        """The end of the value, once it is known."""
        while token := self._tokens.search(text, self._at):
            if token.lastgroup == "own":
                start = skip_blanks(text, token.end())
                following = argument_tag(text[start : start + LONGEST_TAG], final=final)
                if following is False:
                    self._certain = self._limit(token.start())
                    return None
                if following and self._depth <= 0 and not self._ends and begins_next(following[1]):
                    return self._ended(ValueEnd(token.start(), token.end(), token.end(), closes=False))
                self._close = token.span()
            elif found := self._tool_tag(text, token):
                return self._ended(found)
            self._at = token.end()
        if final:
            return self._ended(self._at_last(text, complete))
        tail = text.rfind("<", self._at)
        partial = tail >= 0 and len(text) - tail < LONGEST_TAG and ">" not in text[tail:]
        self._at = tail if partial else len(text)
        self._certain = self._limit(self._at)
        if self._lone and not self._close and not text[self._lone[1] :].strip():
            self._certain = self._lone[0]  # this may be the end, if the model forgot </argument>
        return None

    def _tool_tag(self, text: str, token: re.Match[str]) -> ValueEnd | None:
        opened = token.lastgroup == "opened"
        self._depth += 1 if opened else -1
        if self._ends or (not opened and self._close):
            self._tags.append(1 if opened else -1)
        if not opened and self._close is None:
            self._lone = token.span()
        if opened or self._close is None:
            return None
        value, tag = self._close
        found = ValueEnd(value, tag, token.end(), closes=True)
        one_line = not self._lines and "\n" not in text[:value]
        if one_line and not self._ends and not text[tag : token.start()].strip():
            return found
        self._ends.append((found, len(self._tags)))
        return None

    def _at_last(self, text: str, complete: bool) -> ValueEnd:
        deepest = [0]  # the minimum of the running sums from each tag on; negative: a closing tag without its opening
        for tag in reversed(self._tags):
            deepest.append(min(tag, tag + deepest[-1]))
        deepest.reverse()
        for found, place in self._ends:
            if deepest[place] >= 0:
                return found
        if complete and self._close and not text[self._close[1] :].strip():  # only </tool> is missing
            return ValueEnd(*self._close, len(text), closes=True)
        if complete and (tool_end := self._tool_end.search(text)):  # only </argument> is missing
            return ValueEnd(tool_end.start(), tool_end.start(), len(text), closes=True)
        return ValueEnd(len(text), len(text), len(text), closes=False, whole=False)

    def _limit(self, place: int) -> int:
        """The value reaches at least to here."""
        if self._ends:
            return self._ends[0][0].value
        return self._close[0] if self._close else place

    def _ended(self, found: ValueEnd) -> ValueEnd:
        self._certain = found.value
        return found

    def json(self, text: str, *, ended: bool) -> str:
        """The next piece of the JSON string, after its opening quote."""
        piece = text[self._given : self._certain]
        if self._first and self.name in VERBATIM:
            if piece in ("", "\r") and not ended:
                return ""
            piece = re.sub(r"\A\r?\n", "", piece)
        elif self.name not in VERBATIM:
            piece = self._blanks + piece
            piece = piece.lstrip() if self._first else piece
            kept = piece.rstrip()
            self._blanks = piece[len(kept) :]
            if not kept and not ended:
                self._given = self._certain
                self._blanks = "" if self._first else self._blanks
                return ""
            piece = kept
        self._first = False
        self._given = self._certain
        return json.dumps(piece, ensure_ascii=False)[1:-1] + ('"' if ended else "")

    def discard(self, text: str) -> int:
        """How many characters are no longer needed."""
        if not self.streams or self._close is not None:
            return 0
        gone = self._given
        self._lines = self._lines or "\n" in text[:gone]
        self._at, self._certain, self._given = self._at - gone, self._certain - gone, 0
        if self._lone:
            self._lone = (self._lone[0] - gone, self._lone[1] - gone) if gone <= self._lone[0] else None
        return gone


class XmlParser:
    """One answer. What it finds goes into the draft."""

    def __init__(self, tools: Iterable[ToolSchema], builder: CompletionBuilder) -> None:
        self._tools = {tool.name: tool.parameters for tool in tools}
        self._tags = {*self._tools, *_REASONING_TAGS}
        names = "|".join(sorted(map(re.escape, self._tags), key=len, reverse=True))
        self._opening = re.compile(rf"<({names})[ \t]*(/?)>")
        self._builder = builder
        self._buffer = ""
        self._waiting: list[str] = []
        self._waiting_size = 0
        self._final = False
        self._complete = True
        self._step: Callable[[], bool] = self._text
        self._out: list[Chunk] = []
        # state of the text
        self._line_start = True
        self._fence = ""
        self._thinking_tag = ""  # of the current reasoning
        self._blank = True  # this line is blank so far
        self._before = ""  # the character before the buffer
        self._blanks = ""  # pending; dropped before a call and at the end
        self._begun = False  # there was text since the last call
        # state of the call
        self._number = 0
        self._tool = ""
        self._seen: list[str] = []
        self._lists: dict[str, list[str]] = {}
        self._value: ArgumentScanner | None = None

    def feed(self, text: str) -> list[Chunk]:
        """Parse the next piece of the message."""
        if self._value is not None and self._value.held:  # in batches, so that a long text is not copied for each piece
            self._waiting.append(text)
            self._waiting_size += len(text)
            if self._waiting_size * 8 < len(self._buffer):
                return []
        self._take_in(text)
        return self._run()

    def _take_in(self, text: str) -> None:
        self._buffer += "".join(self._waiting) if self._waiting else text
        self._waiting, self._waiting_size = [], 0

    def finish(self, *, complete: bool = True) -> list[Chunk]:
        """Parse the end of the message. `complete` is false if it was cut off."""
        self._take_in("")
        self._final, self._complete = True, complete
        return self._run()

    def _run(self) -> list[Chunk]:
        while self._step():
            pass
        found, self._out = self._out, []
        return found

    # Text

    def _text(self) -> bool:
        buffer = self._buffer
        if not buffer:
            return False
        if self._thinking_tag:
            return self._thinking()
        if self._line_start:
            if _MAYBE_FENCE.match(buffer) and not self._final:
                return False
            if fence := _FENCE.match(buffer):
                return self._fence_line(fence[1])
            self._line_start = False
        newline = buffer.find("\n")
        line = buffer if newline < 0 else buffer[: newline + 1]
        if self._fence:
            return self._emit(len(line))
        if found := self._opening.search(line):
            if (line[found.start() - 1] if found.start() else self._before) == "`":
                return self._emit(found.end())  # the model only mentions the tag
            if found.start():
                return self._emit(found.start())
            return self._call(found) if found[1] in self._tools else self._think(found)
        if newline >= 0 or self._final:
            return self._emit(len(line))
        held = line.rfind("<")
        if held < 0 or not self._may_open(line[held:]):
            return self._emit(len(line))
        return held > 0 and self._emit(held)

    def _may_open(self, tail: str) -> bool:
        name = tail[1:].rstrip(" \t/")
        return any(tag.startswith(name) for tag in self._tags) if tail[1:2] != " " else False

    def _think(self, opening: re.Match[str]) -> bool:
        """Reasoning begins if its tag is the first text of a line."""
        self._thinking_tag = opening[1] if self._blank and not opening[2] else ""
        return self._emit(opening.end())

    def _thinking(self) -> bool:
        """Inside reasoning, everything up to the closing tag is text."""
        end = f"</{self._thinking_tag}>"
        at = self._buffer.find(end)
        if at >= 0:
            self._thinking_tag = ""
            return self._emit(at + len(end))
        tail = self._buffer.rfind("<", -len(end))
        held = tail if tail >= 0 and end.startswith(self._buffer[tail:]) and not self._final else len(self._buffer)
        return held > 0 and self._emit(held)

    def _fence_line(self, mark: str) -> bool:
        newline = self._buffer.find("\n")
        if newline < 0 and not self._final:
            return False
        line = self._buffer[: newline + 1] if newline >= 0 else self._buffer
        rest = line.strip().lstrip(mark[0])
        if not self._fence and not (mark[0] == "`" and "`" in rest):
            self._fence = mark
        elif self._fence and mark.startswith(self._fence) and not rest:
            self._fence = ""
        return self._emit(len(line))

    def _emit(self, length: int) -> bool:
        """Emit the first `length` characters as text."""
        piece = self._consume(length)
        text = self._blanks + piece
        if not self._begun:
            text = text.lstrip()
        stripped = text.rstrip()
        self._blanks = text[len(stripped) :]
        if stripped:
            self._begun = True
            self._out.append(self._builder.text(stripped))
        return True

    def _consume(self, length: int) -> str:
        piece, self._buffer = self._buffer[:length], self._buffer[length:]
        if piece:
            self._before = piece[-1]
            self._line_start = piece.endswith("\n")
            line = piece.rpartition("\n")[2]
            self._blank = (self._blank or "\n" in piece) and not line.strip()
        return piece

    # A call

    def _call(self, opening: re.Match[str]) -> bool:
        """The buffer begins with the tag of a tool. It is a call if an argument or the closing tag follows."""
        if opening[2]:  # <tool/>
            self._begin(opening[1], opening.end())
            return self._end()
        start = skip_blanks(self._buffer, opening.end())
        rest = self._buffer[start : start + LONGEST_TAG]
        argument = argument_tag(rest, final=self._final)
        if argument or re.match(closing(opening[1]), rest):
            self._begin(opening[1], start)
            self._step = self._arguments
            return True
        return argument is None and self._emit(opening.end())

    def _begin(self, name: str, length: int) -> None:
        self._consume(length)
        self._blanks, self._begun = "", False
        self._number += 1
        self._tool, self._seen, self._lists = name, [], {}
        self._out.append(self._builder.begin(self._number, None, name))
        self._write("{")

    def _end(self) -> bool:
        schema = self._tools[self._tool]
        for name, texts in self._lists.items():
            self._field(name, json.dumps(repeated(texts, property_of(schema, name), schema), ensure_ascii=False))
        self._write("}")
        self._before, self._line_start, self._blank = "", False, True
        self._step = self._text
        return True

    def _write(self, json_text: str) -> None:
        if json_text:
            self._out.append(self._builder.arguments(self._number, json_text))

    def _field(self, name: str, value: str) -> None:
        self._write(f"{', ' if self._seen else ''}{json.dumps(name)}: {value}")
        self._seen.append(name)

    def _arguments(self) -> bool:
        """Between two arguments: read the next one or the end, and skip other text."""
        self._buffer = self._buffer.lstrip()
        if ending := re.match(closing(self._tool), self._buffer):
            self._consume(ending.end())
            return self._end()
        opening = argument_tag(self._buffer, final=self._final)
        if opening:
            self._consume(opening.end())
            self._value = ArgumentScanner(opening[1], self._tool, self._tools[self._tool])
            if self._value.streams:
                self._field(self._value.name, '"')
            self._step = self._argument
            return True
        if opening is False or not self._buffer:
            return False  # at the end of the message, the call was cut off
        following = self._buffer.find("<", 1)
        self._consume(following if following > 0 else len(self._buffer))
        return True

    def _argument(self) -> bool:
        """Inside an argument."""
        value = self._value
        assert value is not None
        found = value.scan(self._buffer, self._begins_next, final=self._final, complete=self._complete)
        if value.streams:
            self._write(value.json(self._buffer, ended=found is not None and found.whole))
        if found is None:
            self._buffer = self._buffer[value.discard(self._buffer) :]
            return False
        if not value.streams and found.whole:
            self._add(value.name, self._buffer[: found.value])
        between = self._buffer[found.tag : found.end]
        self._consume(found.end)
        self._step = self._arguments
        self._value = None
        if not found.closes:
            return found.whole
        for name, text in _pairs(between):
            if name not in self._seen:
                self._add(name, text)
        return self._end()

    def _begins_next(self, name: str) -> bool:
        """Whether this tag begins a new argument, or another item of a list."""
        schema = self._tools[self._tool]
        properties = schema.get("properties")
        if self._value is None or not isinstance(properties, Mapping) or name not in properties:
            return False
        return "array" in kinds(property_of(schema, name), schema) or name not in (*self._seen, self._value.name)

    def _add(self, name: str, text: str) -> None:
        """Add a complete argument."""
        schema = self._tools[self._tool]
        field = property_of(schema, name)
        if "array" in kinds(field, schema):
            self._lists.setdefault(name, []).append(text)
        else:
            self._field(name, json.dumps(decoded(text, field, schema, name), ensure_ascii=False))


def _pairs(text: str) -> list[tuple[str, str]]:
    """Arguments between the end of one argument and the end of the call."""
    return [(found[1], found[2]) for found in re.finditer(r"<([A-Za-z_][\w.-]*)>(.*?)</\1\s*>", text, re.DOTALL)]
