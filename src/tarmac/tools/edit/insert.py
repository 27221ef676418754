"""insert_content: new lines before a line, or at the end."""

from tarmac.tools.edit.lines import join_lines, split_lines
from tarmac.tools.edit.result import Applied, Edited, Failure


def insert_content(text: str, line: int, content: str) -> Edited:
    """`text` with `content` before `line` (from 1); 0 puts it at the end. A missing final newline stays missing."""
    content = content.replace("\r\n", "\n").removesuffix("\n")
    lines, ended = split_lines(text)
    last = len(lines)
    if not 0 <= line <= last + 1:
        what = f"line {line} is outside the file, which has {last} line{'s' if last != 1 else ''}"
        return Edited(text, failed=(Failure(1, "out of range", what, f"1 to {last + 1}, or 0 for the end"),))
    at = last if line == 0 else line - 1
    lines[at:at] = content.split("\n")
    return Edited(join_lines(lines, ended), (Applied(1, at + 1, at),))
