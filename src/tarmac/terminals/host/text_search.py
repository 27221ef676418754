"""Search files for a regular expression where there is no ripgrep. A program of its own: a bad pattern may never end.

standard input: JSON with what is wanted → standard output: the records of `rg --json`, as far as Tarmac reads them

It imports nothing of Tarmac, so it starts quickly. A pattern that Python understands otherwise than ripgrep is refused.
"""

import json
import os
import re
import stat
import sys
import warnings
from collections.abc import Iterator

LARGEST = 32 << 20  # bytes of a file; larger ones are passed over
CLASSES = {
    "alpha": "a-zA-Z",
    "digit": "0-9",
    "alnum": "0-9a-zA-Z",
    "upper": "A-Z",
    "lower": "a-z",
    "space": r"\t\n\v\f\r ",
    "blank": r"\t ",
    "xdigit": "0-9a-fA-F",
    "word": "0-9a-zA-Z_",
    "punct": r"!-/:-@\[-`{-~",
}
_CLASS = re.compile(r"\[:(\w+):\]")
_ANCHORED = re.compile(r"\\[AzZ]|\(\?<?[=!]")  # what means something else in a text than in one of its lines


def compiled(pattern: str, *, multiline: bool) -> "tuple[re.Pattern[str], bool]":
    """The pattern, and whether a line that matches does so in the whole text, too. ValueError says what is wrong."""
    translated = _CLASS.sub(lambda found: CLASSES.get(found[1], found[0]), pattern)
    translated = re.sub(r"\(\?<(?![=!])", "(?P<", translated).replace(r"\z", r"\Z")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # sets in sets
        try:
            made = re.compile(translated, re.MULTILINE)
        except (re.error, Warning, OverflowError, RecursionError) as error:
            raise ValueError(str(error)) from None
    if not multiline and "\n" in pattern:
        raise ValueError("a line has no newline")
    return made, not _ANCHORED.search(pattern)


def text_of(name: str) -> "str | None":
    """The text of a file; None if it is none."""
    try:
        fd = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    with os.fdopen(fd, "rb") as file:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_size > LARGEST:
            return None
        try:
            data = file.read()
        except OSError:
            return None
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace")
    return None if b"\0" in data else data.decode("utf-8-sig", "replace")


def matches(
    text: str, pattern: "re.Pattern[str]", *, multiline: bool, in_whole: bool
) -> "Iterator[tuple[int, int, int]]":
    """Each match as its first and last line, counted from 0, and the column where it begins."""
    if multiline:
        line, at = 0, 0
        for found in pattern.finditer(text):
            line += text.count("\n", at, found.start())
            at = found.start()
            last = line + text.count("\n", at, max(found.end() - 1, at))
            yield line, last, at - (text.rfind("\n", 0, at) + 1)
        return
    if in_whole and not pattern.search(text):
        return
    for number, line_text in enumerate(text.removesuffix("\n").split("\n") if text else ()):
        if one := pattern.search(line_text):
            yield number, number, one.start()


def records(
    name: str, text: str, found: "list[tuple[int, int, int]]", context: int
) -> "Iterator[tuple[str, dict[str, object]]]":
    """What ripgrep says of a file with matches."""
    lines = text.removesuffix("\n").split("\n")
    hits = {first: (last, column) for first, last, column in reversed(found)}
    covered = {number for first, last, _ in found for number in range(first, last + 1)}
    around = {
        number for each in covered for number in range(max(each - context, 0), min(each + context + 1, len(lines)))
    }
    yield "begin", {"path": {"text": name}}
    for number in sorted(around | covered):
        if number in hits:
            last, column = hits[number]
            whole = "\n".join(lines[number : last + 1]) + "\n"
            yield "match", {"lines": {"text": whole}, "line_number": number + 1, "submatches": [{"start": column}]}
        elif number not in covered:
            yield "context", {"lines": {"text": lines[number] + "\n"}, "line_number": number + 1, "submatches": []}
    yield "end", {"path": {"text": name}}


def main() -> int:
    wanted = json.load(sys.stdin)
    multiline, most = wanted["multiline"], wanted["most"]
    try:
        pattern, in_whole = compiled(wanted["pattern"], multiline=multiline)
    except ValueError as error:
        print(
            f"regex parse error:\nerror: {error} (Python searches there, as ripgrep is not installed)", file=sys.stderr
        )
        return 2
    count = 0
    for name in wanted["files"]:
        text = text_of(name)
        found = list(matches(text, pattern, multiline=multiline, in_whole=in_whole)) if text else []
        if not found or text is None:
            continue
        for kind, data in records(name, text, found[: most - count], wanted["context"]):
            print(json.dumps({"type": kind, "data": data}))
        count += len(found)
        if count >= most:
            break
    return 0 if count else 1


if __name__ == "__main__":
    sys.exit(main())
