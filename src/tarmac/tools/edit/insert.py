"""Insert new lines before a line, or at the end."""

from tarmac.tools.edit.content_checks import WRITE_ALL, refuse_omissions
from tarmac.tools.edit.edit_result import Applied, Edited, Failure
from tarmac.tools.edit.indentation import broken_by, first_indent, placements
from tarmac.tools.edit.lines import join_lines, split_lines


def insert_content(text: str, line: int, content: str, *, path: str = "") -> Edited:
    """`text` with `content` before `line` (from 1); 0 puts it at the end. A missing final newline stays missing."""
    content = content.replace("\r\n", "\n").removesuffix("\n")
    lines, ended = split_lines(text)
    last = len(lines)
    if not 0 <= line <= last + 1:
        what = f"line {line} is outside the file, which has {last} line{'s' if last != 1 else ''}"
        return Edited(text, failed=(Failure(1, "out of range", what, f"1 to {last + 1}, or 0 for the end"),))
    if why := refuse_omissions(content, text):
        return Edited(text, failed=(Failure(1, "placeholder", why, WRITE_ALL),))
    at = last if line == 0 else line - 1
    new = content.split("\n")

    def problem(candidate: list[str]) -> str:
        return broken_by(text, join_lines([*lines[:at], *candidate, *lines[at:]], ended), path)

    why = problem(new)
    moved = new
    if why:
        indents = dict.fromkeys([first_indent(lines[at:]), first_indent(lines[:at][::-1])])
        candidates = [each for indent in indents for each in placements(new, indent)]
        repaired = next((each for each in candidates if not problem(each)), None)
        if repaired is None:
            hint = "write the new lines with the indentation that the file has there"
            what = f"the indentation would be broken: {why}"
            return Edited(text, failed=(Failure(1, "indentation", what, hint),))
        moved = repaired
    result = [*lines[:at], *moved, *lines[at:]]
    return Edited(join_lines(result, ended), (Applied(1, at + 1, at, reindented=bool(why)),))
