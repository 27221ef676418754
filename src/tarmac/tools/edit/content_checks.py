"""Clean the content that a model wrote: remove fences and line numbers, find placeholders."""

import re
from dataclasses import dataclass
from itertools import takewhile

from tarmac.tools.edit.locate import loose

_FENCE = re.compile(r"^(`{3,}|~{3,})[ \t]*([\w+#.:/-]*)[ \t]*$")
_NUMBER = re.compile(r"^\s*(\d+)\s?\|(?: |$)")
_MOST_NAMED = 3
WRITE_ALL = "write these lines out; if the comment itself belongs in the file, word it differently"
_PROSE = (".md", ".mdx", ".markdown", ".rst", ".qmd", ".rmd")

_THING = (
    r"(?:code|content|contents|file|function|functions|class|classes|method|methods|component|components|import|imports|"
    r"implementation|logic|body|lines?|section|sections|styles?|tests?|handlers?|routes?|props|fields|definitions?)"
)
_LEFT_OUT = re.compile(
    rf"\b(?:the )?(?:rest|remainder) of (?:the |this |your |my )?(?:\w+ )?{_THING}\b"
    rf"|\b(?:existing|previous|remaining|original|other|unchanged|same) (?:\w+ )?{_THING}\b.{{0,30}}"
    r"\b(?:here|unchanged|the same|as before|as is|stays?|remains?|omitted|goes|continues?)\b"
    rf"|\b{_THING} (?:(?:remains?|stays?|is|are|was) )?(?:unchanged|omitted|as before|the same as before)\b"
    rf"|\bkeep (?:the |all )?(?:existing|previous|remaining|original|other|rest)\b"
    r"|(?:\.\.\.|…)\s*\(?(?:the )?(?:existing|rest|remaining|previous|unchanged|other|same)\b"
    rf"|\b(?:existing|rest|remaining|previous|unchanged)(?: of)?(?: \w+){{0,3}}\s*(?:\.\.\.|…)",
    re.IGNORECASE,
)
_ELLIPSIS = re.compile(r"^\s*(?://+|#+|/\*+|<!--|--|;+|%+|\{/\*)\s*(?:\.\.\.|…)\s*(?:\*/\}?|-->)?\s*$")
_BRACKETED = r"\((?=[^()]*(?:\.\.\.|…)\)\s*$)"
_COMMENT = re.compile(rf"^\s*(?://+|#+|/\*+|\*|<!--|--|;+|%+|\{{/\*|\(\*|\"\"\"|'''|\[?\.\.\.|…|{_BRACKETED})")


@dataclass(frozen=True, slots=True)
class Omission:
    """A placeholder: a line that stands for others."""

    line: int
    text: str


def clean_content(content: str, path: str = "") -> str:
    """The content without the fence and the line numbers that models add."""
    return strip_line_numbers(strip_fences(content, path))


def strip_fences(content: str, path: str = "") -> str:
    """Remove a code fence around the content. In prose, only one that encloses everything."""
    lines = content.split("\n")
    last = len(lines) - 1
    while last > 0 and not lines[last].strip():
        last -= 1
    opening, closing = _FENCE.match(lines[0]), _FENCE.match(lines[last]) if last > 0 else None
    if opening and closing and not closing[2] and _encloses(lines[1:last]):
        return _joined(lines[1:last])
    if is_prose(path) or not path:
        return content
    if opening:
        lines, last = lines[1:], last - 1
    if closing and not closing[2] and last > 0 and not _open_fence(lines[:last]):
        return _joined(lines[:last])
    return "\n".join(lines)


def _joined(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _encloses(inside: list[str]) -> bool:
    """Whether the fences inside come in pairs. If not, the outer fence ended before the last line."""
    return not _open_fence(inside, strict=True)


def _open_fence(lines: list[str], *, strict: bool = False) -> bool:
    is_open = False
    for line in lines:
        if fence := _FENCE.match(line):
            if strict and not is_open and not fence[2]:
                return True  # a bare fence here closes the outer one
            is_open = not is_open
    return is_open


def strip_line_numbers(content: str) -> str:
    """Remove `12 | ` before each line, if every line has a number and they count up, as in read_file."""
    lines = content.split("\n")
    filled = lines[:-1] if lines[-1] == "" else lines
    numbers = [int(found[1]) for found in takewhile(bool, map(_NUMBER.match, filled)) if found]
    if not filled or len(numbers) < len(filled):
        return content
    if numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        return content
    return "\n".join(_NUMBER.sub("", line, count=1) for line in lines)


def find_omissions(content: str, before: str = "", *, shorter: bool = False) -> list[Omission]:
    """Find comments such as `// rest of code unchanged` that were not in the file before.

    `shorter`: the content replaces more lines than it has. Then `// ...` alone is an omission, too.
    """
    found = [
        Omission(number, line.strip())
        for number, line in enumerate(content.split("\n"), 1)
        if len(line) < 300 and _COMMENT.match(line) and (_LEFT_OUT.search(line) or (shorter and _ELLIPSIS.match(line)))
    ]
    known = {loose(line) for line in before.split("\n")} if found else set()
    return [Omission(each.line, each.text[:200]) for each in found if loose(each.text) not in known]


def refuse_omissions(content: str, before: str = "", *, shorter: bool = False) -> str:
    """Why an edit with this content is refused; empty if nothing is left out of it."""
    omissions = find_omissions(content, before, shorter=shorter)
    if not omissions:
        return ""
    listed = "; ".join(f"`{each.text}`" for each in omissions[:_MOST_NAMED])
    return f"{listed} stands for lines that are left out, and they would be lost"


def is_prose(path: str) -> bool:
    """Whether the file is documentation, which may quote a placeholder."""
    return path.lower().endswith(_PROSE)


def is_cut_short(content: str, line_count: int) -> bool:
    """Whether the content has clearly fewer lines than the model said it would write."""
    return line_count >= 20 and content.count("\n") + 1 < 0.8 * line_count
