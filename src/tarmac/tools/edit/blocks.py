"""Roo-Code's SEARCH/REPLACE blocks: a diff a model can write without counting.

    <<<<<<< SEARCH
    :start_line:12          where the model believes it; may be left out, may be a little wrong
    -------
    the lines as they are
    =======
    the lines as they shall be
    >>>>>>> REPLACE

Text around the blocks is ignored. A line of the file that looks like one of the marks is written with `\\` before it.
"""

import re
from dataclasses import dataclass

from tarmac.errors import EditFailed

_SEARCH = re.compile(r"<<<<<<< SEARCH>?")
_MARK = re.compile(r"^(\s*\\*)\\(?=<{7}|={7}\s*$|>{7}|-{7}\s*$|:start_line:|:end_line:)")
_LINE = re.compile(r":(start|end)_line:\s*(\d*)")
_SHAPE = "<<<<<<< SEARCH / :start_line:N / ------- / old lines / ======= / new lines / >>>>>>> REPLACE"


@dataclass(frozen=True, slots=True)
class Block:
    """Old lines and what takes their place."""

    old: tuple[str, ...]
    new: tuple[str, ...]
    start_line: int | None = None  # counted from 1


def parse_blocks(diff: str) -> list[Block]:
    """The blocks of a diff; EditFailed says which line is wrong."""
    blocks: list[Block] = []
    state, start = "outside", None
    old: list[str] = []
    new: list[str] = []
    in_header = False
    for number, raw in enumerate(diff.replace("\r\n", "\n").split("\n"), 1):
        line = raw.strip()
        match state:
            case "outside":
                if _SEARCH.fullmatch(line):
                    state, start, old, new, in_header = "search", None, [], [], True
                elif line == "=======" or line.startswith((">>>>>>>", "<<<<<<<")):
                    raise _wrong(number, line, "<<<<<<< SEARCH")
            case "search":
                if line == "=======":
                    state = "replace"
                elif line.startswith((">>>>>>>", "<<<<<<<")):
                    raise _wrong(number, line, "=======")
                elif in_header and (found := _LINE.fullmatch(line)):
                    start = int(found[2]) if found[1] == "start" and found[2] else start
                elif in_header and line == "-------":
                    in_header = False
                else:
                    in_header = False
                    old.append(_unescaped(raw))
            case "replace":
                if line == ">>>>>>> REPLACE":
                    blocks.append(Block(tuple(old), tuple(new), start))
                    state = "outside"
                elif line == "=======" or line.startswith((">>>>>>>", "<<<<<<<")):
                    raise _wrong(number, line, ">>>>>>> REPLACE")
                elif _LINE.match(line):
                    raise EditFailed(
                        f"line {number} of the diff: {line!r} stands in a REPLACE section",
                        hint=":start_line: belongs right after <<<<<<< SEARCH; put \\ before it if it is content",
                    )
                else:
                    new.append(_unescaped(raw))
    if state != "outside":
        missing = "=======" if state == "search" else ">>>>>>> REPLACE"
        raise EditFailed(f"the diff ends without {missing!r}", hint=f"each block is: {_SHAPE}")
    if not blocks:
        raise EditFailed("the diff has no SEARCH/REPLACE block", hint=f"each block is: {_SHAPE}")
    return blocks


def _unescaped(line: str) -> str:
    return _MARK.sub(r"\1", line)


def _wrong(number: int, line: str, expected: str) -> EditFailed:
    return EditFailed(
        f"line {number} of the diff: {line!r} where {expected!r} was expected",
        hint=f"if it is content of the file, put \\ before it; each block is: {_SHAPE}",
    )


_FILE = re.compile(r"<file>\s*<path>(.*?)</path>(.*?)</file>", re.DOTALL)
_DIFF = re.compile(r"<diff>(.*?)</diff>", re.DOTALL)
_CONTENT = re.compile(r"<content>\n?(.*?)\s*</content>", re.DOTALL)
_START = re.compile(r"<start_line>\s*(\d+)\s*</start_line>")


def parse_file_diffs(args: str) -> list[tuple[str, list[Block]]]:
    """Roo-Code's form for several files: <file><path>…</path><diff><content>blocks</content>…</diff></file> …"""
    files: list[tuple[str, list[Block]]] = []
    for path, body in _FILE.findall(args):
        blocks: list[Block] = []
        for diff in _DIFF.findall(body):
            content = _CONTENT.search(diff)
            text = (content[1] if content else diff).strip("\n")
            text = text.removeprefix("<![CDATA[").removesuffix("]]>")
            outside = _START.search(_CONTENT.sub("", diff)) if content else None
            for block in parse_blocks(text):
                start = block.start_line or (int(outside[1]) if outside else None)
                blocks.append(Block(block.old, block.new, start))
        if not blocks:
            raise EditFailed(f"no <diff> for {path.strip()}", hint="<file><path>…</path><diff><content>…")
        files.append((path.strip(), blocks))
    if not files:
        raise EditFailed(
            "no <file> in the arguments", hint="<file><path>…</path><diff><content>…</content></diff></file>"
        )
    return files
