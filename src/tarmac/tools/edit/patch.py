"""The patch format that Codex models know, parsed.

    *** Begin Patch
    *** Update File: src/app.py
    *** Move to: src/main.py        optional
    @@ class App                    optional: a line above the change, to say which place is meant
     context
    -old
    +new
    *** End of File                 optional: the change is at the end
    *** Add File: new.txt
    +its lines
    *** Delete File: old.txt
    *** End Patch

Lenient where models are careless: spaces around marks, a shell here-document around the patch, a code fence, no end
mark, a context line whose one space was lost on an empty line.
"""

from dataclasses import dataclass, field

from tarmac.errors import EditFailed

_BEGIN, _END = "*** Begin Patch", "*** End Patch"
_ADD, _DELETE, _UPDATE, _MOVE = "*** Add File:", "*** Delete File:", "*** Update File:", "*** Move to:"
_EOF, _ENVIRONMENT = "*** End of File", "*** Environment ID:"
_FORM = "*** Begin Patch / *** Update File: path / @@ / -old / +new / *** End Patch"


@dataclass(slots=True)
class Chunk:
    """Old lines and new ones, both with their context."""

    anchors: list[str] = field(default_factory=list)
    old: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)
    at_end: bool = False


@dataclass(slots=True)
class AddFile:
    """A new file."""

    path: str
    lines: list[str] = field(default_factory=list)


@dataclass(slots=True)
class DeleteFile:
    """A file to remove."""

    path: str


@dataclass(slots=True)
class UpdateFile:
    """Changes to a file, and perhaps a new name."""

    path: str
    moved_to: str | None = None
    chunks: list[Chunk] = field(default_factory=list)


Section = AddFile | DeleteFile | UpdateFile


def parse_patch(patch: str) -> list[Section]:
    """The files of a patch, in order; EditFailed says which line is wrong."""
    sections: list[Section] = []
    chunk: Chunk | None = None
    for number, line in _body(patch):
        text = line.strip()
        section = sections[-1] if sections else None
        # In a change, a line that begins with a space is context, even if it looks like a mark.
        if text.startswith("*** ") and (line.startswith("***") or (chunk is None and line[:1] not in "+-")):
            if text.startswith(_ENVIRONMENT) and not sections:
                pass  # where Codex runs; there is only one here
            elif text == _EOF and chunk is not None:
                chunk.at_end, chunk = True, None
            elif text.startswith(_MOVE) and isinstance(section, UpdateFile) and not section.chunks:
                section.moved_to = _named(text, _MOVE, number)
            else:
                sections.append(_section(text, number))
                chunk = None
            continue
        match section:
            case AddFile():
                if not line.startswith("+"):
                    raise _wrong(number, line, "each line of a new file begins with +")
                section.lines.append(line[1:])
            case UpdateFile():
                chunk = _change(section, chunk, line, number)
            case _ if text:
                raise _wrong(number, line, f"expected *** Add File:, *** Update File: or *** Delete File:; {_FORM}")
    if not sections:
        raise EditFailed("the patch changes no file", hint=_FORM)
    for each in sections:
        if isinstance(each, UpdateFile):
            each.chunks = [one for one in each.chunks if one.old or one.new]
            if not each.chunks and each.moved_to is None:
                raise EditFailed(f"the patch has no change for {each.path}", hint=_FORM)
    return sections


def _body(patch: str) -> list[tuple[int, str]]:
    """The lines between the marks, with their numbers."""
    lines = list(enumerate(patch.replace("\r\n", "\n").split("\n"), 1))
    begin = next((at for at, (_, line) in enumerate(lines) if line.strip() == _BEGIN), None)
    if begin is None:
        raise EditFailed(f"the patch does not begin with {_BEGIN!r}", hint=_FORM)
    rest = lines[begin + 1 :]
    ends = [at for at, (_, line) in enumerate(rest) if line.strip() == _END and line[:1] not in "+-"]
    if ends:
        return rest[: ends[-1]]  # the last: one before it is content
    while rest and rest[-1][1].strip() in ("", "EOF", "```"):  # cut off after the last change: it is whole all the same
        rest.pop()
    return rest


def _section(text: str, number: int) -> Section:
    if text.startswith(_ADD):
        return AddFile(_named(text, _ADD, number))
    if text.startswith(_DELETE):
        return DeleteFile(_named(text, _DELETE, number))
    if text.startswith(_UPDATE):
        return UpdateFile(_named(text, _UPDATE, number))
    raise _wrong(number, text, f"unknown; {_FORM}")


def _named(text: str, mark: str, number: int) -> str:
    name = text.removeprefix(mark).strip()
    if not name:
        raise _wrong(number, text, "the name of the file is missing")
    return name


def _change(section: UpdateFile, chunk: Chunk | None, line: str, number: int) -> Chunk | None:
    """One line of an update; returns the chunk it belongs to."""
    if line.rstrip() == "@@" or line.startswith("@@ "):
        anchor = line[3:].strip().removesuffix("@@").strip()
        if chunk is None or chunk.old or chunk.new:
            chunk = Chunk()
            section.chunks.append(chunk)
        if anchor and not _is_range(anchor):
            chunk.anchors.append(anchor)
        return chunk
    if chunk is None:
        if not line.strip():
            return None
        chunk = Chunk()
        section.chunks.append(chunk)
    match line[:1]:
        case "+":
            chunk.new.append(line[1:])
        case "-":
            chunk.old.append(line[1:])
        case " " | "":
            chunk.old.append(line[1:])
            chunk.new.append(line[1:])
        case _:
            raise _wrong(number, line, "each line of a change begins with a space, + or -")
    return chunk


def _is_range(anchor: str) -> bool:
    """`-1,3 +1,4`: the line numbers of another format, which models can't count."""
    return all(word[:1] in "+-" and word[1:].replace(",", "").isdigit() for word in anchor.split()[:2])


def _wrong(number: int, line: str, what: str) -> EditFailed:
    return EditFailed(f"line {number} of the patch, {line[:80]!r}: {what}")
