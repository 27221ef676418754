"""Text that streams → text and tool calls written as tags, whatever the chunk borders.

feed(text) … finish() → TextDelta | CallDelta;  what is certain is given at once, the rest when it is

    <write_to_file><path>a.py</path><content>
    …
    </content></write_to_file>

Where does a content end that holds such tags itself? At the last </content> before the tool's closing tag; and that
is the first </write_to_file> after which no other is left without its opening. So one of many lines is known to have
ended only when the message has; what follows it waits until then. Tags in code fences and backticks, of tools that are
not there, or in the middle of a sentence, are text; and so is all that stands between <think> and </think>, where a
line begins with it: what a model only considers, nobody does. A call that was cut off has arguments that are no JSON:
nobody runs it.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping

from tarmac.models.draft import Draft
from tarmac.models.provider import Chunk, ToolSchema
from tarmac.models.xmlend import LONGEST_TAG, Value, argument_tag, closing, first_word
from tarmac.models.xmlvalues import decoded, kinds, property_of, repeated

_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})(.*)", re.DOTALL)
_THOUGHTS = ("think", "thinking")
_MAYBE_FENCE = re.compile(r"[ \t]*(?:`{0,2}|~{0,2})\Z")


class XmlParser:
    """One answer. What it finds goes into the draft."""

    def __init__(self, tools: Iterable[ToolSchema], draft: Draft) -> None:
        self._tools = {tool.name: tool.parameters for tool in tools}
        self._tags = {*self._tools, *_THOUGHTS}
        names = "|".join(sorted(map(re.escape, self._tags), key=len, reverse=True))
        self._opening = re.compile(rf"<({names})[ \t]*(/?)>")
        self._draft = draft
        self._buffer = ""
        self._waiting: list[str] = []
        self._waiting_size = 0
        self._final = False
        self._complete = True
        self._step: Callable[[], bool] = self._text
        self._out: list[Chunk] = []
        # of the text
        self._line_start = True
        self._fence = ""
        self._thought = ""  # the tag of the thought we are in
        self._blank = True  # nothing stood in this line yet
        self._before = ""  # the character before the buffer
        self._blanks = ""  # not yet given: they are dropped before a call, and at the end
        self._begun = False  # words since the last call
        # of the call
        self._number = 0
        self._tool = ""
        self._seen: list[str] = []
        self._lists: dict[str, list[str]] = {}
        self._value: Value | None = None

    def feed(self, text: str) -> list[Chunk]:
        """More of the message."""
        if self._value is not None and self._value.held:  # seldom, then: a long text is not copied for each word
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
        """The end of the message; not `complete` where it was cut off."""
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
        if self._thought:
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
            return self._say(len(line))
        if found := self._opening.search(line):
            if (line[found.start() - 1] if found.start() else self._before) == "`":
                return self._say(found.end())  # somebody speaks of it
            if found.start():
                return self._say(found.start())
            return self._call(found) if found[1] in self._tools else self._think(found)
        if newline >= 0 or self._final:
            return self._say(len(line))
        held = line.rfind("<")
        if held < 0 or not self._may_open(line[held:]):
            return self._say(len(line))
        return held > 0 and self._say(held)

    def _may_open(self, tail: str) -> bool:
        name = tail[1:].rstrip(" \t/")
        return any(tag.startswith(name) for tag in self._tags) if tail[1:2] != " " else False

    def _think(self, opening: re.Match[str]) -> bool:
        """A thought begins, where its tag begins a line."""
        self._thought = opening[1] if self._blank and not opening[2] else ""
        return self._say(opening.end())

    def _thinking(self) -> bool:
        """Within a thought: all is text up to its closing tag."""
        end = f"</{self._thought}>"
        at = self._buffer.find(end)
        if at >= 0:
            self._thought = ""
            return self._say(at + len(end))
        tail = self._buffer.rfind("<", -len(end))
        held = tail if tail >= 0 and end.startswith(self._buffer[tail:]) and not self._final else len(self._buffer)
        return held > 0 and self._say(held)

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
        return self._say(len(line))

    def _say(self, length: int) -> bool:
        """Give the first `length` characters as text."""
        piece = self._consume(length)
        words = self._blanks + piece
        if not self._begun:
            words = words.lstrip()
        told = words.rstrip()
        self._blanks = words[len(told) :]
        if told:
            self._begun = True
            self._out.append(self._draft.text(told))
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
        """The buffer begins with a tool's tag: is it a call? It is if an argument follows, or its closing tag."""
        if opening[2]:  # <tool/>
            self._begin(opening[1], opening.end())
            return self._end()
        start = first_word(self._buffer, opening.end())
        rest = self._buffer[start : start + LONGEST_TAG]
        argument = argument_tag(rest, final=self._final)
        if argument or re.match(closing(opening[1]), rest):
            self._begin(opening[1], start)
            self._step = self._arguments
            return True
        return argument is None and self._say(opening.end())

    def _begin(self, name: str, length: int) -> None:
        self._consume(length)
        self._blanks, self._begun = "", False
        self._number += 1
        self._tool, self._seen, self._lists = name, [], {}
        self._out.append(self._draft.begin(self._number, None, name))
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
            self._out.append(self._draft.arguments(self._number, json_text))

    def _field(self, name: str, value: str) -> None:
        self._write(f"{', ' if self._seen else ''}{json.dumps(name)}: {value}")
        self._seen.append(name)

    def _arguments(self) -> bool:
        """Between two arguments: the next one, the end, or words that belong nowhere."""
        self._buffer = self._buffer.lstrip()
        if ending := re.match(closing(self._tool), self._buffer):
            self._consume(ending.end())
            return self._end()
        opening = argument_tag(self._buffer, final=self._final)
        if opening:
            self._consume(opening.end())
            self._value = Value(opening[1], self._tool, self._tools[self._tool])
            if self._value.streams:
                self._field(self._value.name, '"')
            self._step = self._argument
            return True
        if opening is False or not self._buffer:
            return False  # at the end of the message: cut off
        following = self._buffer.find("<", 1)
        self._consume(following if following > 0 else len(self._buffer))
        return True

    def _argument(self) -> bool:
        """Within an argument."""
        value = self._value
        assert value is not None
        found = value.scan(self._buffer, self._begins_next, final=self._final, complete=self._complete)
        if value.streams:
            self._write(value.json(self._buffer, ended=found is not None and found.whole))
        if found is None:
            self._buffer = self._buffer[value.forget(self._buffer) :]
            return False
        if not value.streams and found.whole:
            self._take(value.name, self._buffer[: found.value])
        between = self._buffer[found.tag : found.end]
        self._consume(found.end)
        self._step = self._arguments
        self._value = None
        if not found.closes:
            return found.whole
        for name, text in _pairs(between):
            if name not in self._seen:
                self._take(name, text)
        return self._end()

    def _begins_next(self, name: str) -> bool:
        """Does this tag begin the next argument: one that was not there, or one more of a list?"""
        schema = self._tools[self._tool]
        properties = schema.get("properties")
        if self._value is None or not isinstance(properties, Mapping) or name not in properties:
            return False
        return "array" in kinds(property_of(schema, name), schema) or name not in (*self._seen, self._value.name)

    def _take(self, name: str, text: str) -> None:
        """An argument that came whole."""
        schema = self._tools[self._tool]
        field = property_of(schema, name)
        if "array" in kinds(field, schema):
            self._lists.setdefault(name, []).append(text)
        else:
            self._field(name, json.dumps(decoded(text, field, schema, name), ensure_ascii=False))


def _pairs(text: str) -> list[tuple[str, str]]:
    """Arguments that stood between one's end and the tool's."""
    return [(found[1], found[2]) for found in re.finditer(r"<([A-Za-z_][\w.-]*)>(.*?)</\1\s*>", text, re.DOTALL)]
