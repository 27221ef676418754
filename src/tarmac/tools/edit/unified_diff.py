"""Make a unified diff of two texts, and count the added and removed lines. Or apply one."""

import difflib
import re
from dataclasses import dataclass

from tarmac.tools.edit.text_file import common_ends

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@.*")
_MOST_TO_ALIGN = 6000  # changed lines on a side; more are shown as one replacement


@dataclass(frozen=True, slots=True)
class FileDiff:
    """The diff of one file."""

    text: str
    added: int
    removed: int
    left_out: int = 0  # lines of the diff that are not in `text`

    def __str__(self) -> str:
        return self.text


def unified_diff(
    before: str | None,
    after: str | None,
    path: str,
    *,
    context: int = 3,
    most_lines: int | None = None,
    longest: int | None = None,
) -> FileDiff:
    """The diff from `before` to `after`. None means no file. Lines longer than `longest` are cut."""
    old, new = _lines(before), _lines(after)
    rows: list[str] = []
    added = removed = 0
    for group in _groups(old, new, context):
        (_, a, _, c, _), (_, _, b, _, d) = group[0], group[-1]
        rows.append(f"@@ -{_range(a, b)} +{_range(c, d)} @@")
        for tag, a1, a2, c1, c2 in group:
            if tag == "equal":
                rows += [f" {each}" for each in old[a1:a2]]
                continue
            removed, added = removed + a2 - a1, added + c2 - c1
            rows += [f"-{each}" for each in old[a1:a2]]
            rows += [f"+{each}" for each in new[c1:c2]]
    if rows:
        head = [f"--- {'/dev/null' if before is None else path}", f"+++ {'/dev/null' if after is None else path}"]
        rows = head + rows
    left_out = 0
    if most_lines is not None and len(rows) > most_lines:
        left_out = len(rows) - most_lines
        rows = [*rows[:most_lines], f"({left_out} more lines of the diff left out)"]
    if longest is not None:
        rows = [_cut(row, longest) for row in rows]
    return FileDiff("".join(f"{row}\n" for row in rows), added, removed, left_out)


_NO_NEWLINE = "\n\\ No newline at end of file"
_Opcode = tuple[str, int, int, int, int]


def _cut(row: str, longest: int) -> str:
    if len(row) <= longest:
        return row
    end = _NO_NEWLINE if row.endswith(_NO_NEWLINE) else ""
    return f"{row[:longest]}… ({len(row) - longest - len(end):,} more characters){end}"


def _lines(text: str | None) -> list[str]:
    if not text:
        return []
    lines = text.split("\n")
    if lines[-1] == "":
        return lines[:-1]
    return [*lines[:-1], lines[-1] + _NO_NEWLINE]


def _groups(old: list[str], new: list[str], context: int) -> list[list[_Opcode]]:
    """The groups of difflib. Equal lines at both ends are skipped, and a very large change is not aligned."""
    head, tail = common_ends(old, new)
    middle_old, middle_new = old[head : len(old) - tail], new[head : len(new) - tail]
    if not middle_old and not middle_new:
        return []
    codes: list[_Opcode]
    if max(len(middle_old), len(middle_new)) > _MOST_TO_ALIGN:
        codes = [("replace", head, head + len(middle_old), head, head + len(middle_new))]
    else:
        inner = difflib.SequenceMatcher(None, middle_old, middle_new, autojunk=False).get_opcodes()
        codes = [(tag, a + head, b + head, c + head, d + head) for tag, a, b, c, d in inner]
    codes = [("equal", 0, head, 0, head), *codes, ("equal", len(old) - tail, len(old), len(new) - tail, len(new))]
    return _grouped(codes, context)


def _grouped(codes: list[_Opcode], context: int) -> list[list[_Opcode]]:
    """Changes with some equal lines around them. Many equal lines start a new group."""
    groups: list[list[_Opcode]] = [[]]
    for index, (tag, a, b, c, d) in enumerate(codes):
        if tag != "equal":
            groups[-1].append((tag, a, b, c, d))
            continue
        inside = 0 < index < len(codes) - 1
        if inside and b - a <= 2 * context:
            groups[-1].append((tag, a, b, c, d))
            continue
        size = min(context, b - a)
        if index > 0 and size:
            groups[-1].append((tag, a, a + size, c, c + size))
        if inside:
            groups.append([])
        if index < len(codes) - 1 and size:
            groups[-1].append((tag, b - size, b, d - size, d))
    return groups


def _range(first: int, end: int) -> str:
    size = end - first
    if size == 1:
        return str(first + 1)
    return f"{first + 1 if size else first},{size}"


def patched(before: str, diff: str) -> str | None:
    """The text after a unified diff; None if a line does not fit, as where the diff was shortened or escaped.

    A diff that says nothing about the end of the file leaves that as it is.
    """
    old, new, at, left = before.splitlines(), list[str](), 0, 0
    open_end = bool(before) and not before.endswith("\n")  # of the old last line
    bare = False  # the last line in `new` has no end
    rows = diff.removesuffix("\n").split("\n")[2:]
    for number, row in enumerate(rows):
        if hunk := _HUNK.fullmatch(row):
            start = int(hunk[1]) - (hunk[2] != "0")
            if left or not at <= start <= len(old):
                return None
            bare = bare and at == start
            new, at, left = new + old[at:start], start, int(hunk[2] or 1)
        elif row.startswith("+"):
            new.append(row[1:])
            bare = open_end
        elif row == "\\ No newline at end of file" and number:
            bare, open_end = not rows[number - 1].startswith("-"), False
        elif left and at < len(old) and row[:1] in (" ", "-") and row[1:] == old[at]:
            if row[0] == " ":
                new.append(old[at])
                bare = open_end and at == len(old) - 1
            at, left = at + 1, left - 1
        else:
            return None
    if left:
        return None
    if at < len(old):
        new, bare = new + old[at:], bool(before) and not before.endswith("\n")
    end = "\r\n" if "\r\n" in before else "\n"
    return end.join(new) + (end if new and not bare else "")
