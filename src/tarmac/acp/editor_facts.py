"""PURE: what an editor says of itself in `initialize`, and of its files: which are open or selected, its problems.

What it does not say, it can't. The methods for files are those of ACP's draft for suggested edits: document/did* are
told, and nes/suggest comes with the rest. Tarmac suggests nothing. It offers them only to an editor that says `nes`
itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class EditorAbilities:
    """An editor's abilities."""

    version: int = 1  # of the protocol that both sides speak
    shows_terminals: bool = False  # ours, by `_meta.terminal_*`
    terminals: bool = False  # it runs commands in its own: all of terminal/*
    reads_files: bool = False  # it tells what its buffers hold: fs/read_text_file
    writes_files: bool = False  # it writes files, into its buffers too: fs/write_text_file
    asks: bool = False  # it shows forms: elicitation/create
    tells_documents: bool = False  # it asks for suggested edits, and tells which files are open
    names_options: bool = True  # it shows what each "always" of a permission request covers


LATEST: Final = 2  # a draft: spoken with who offers it or a later one

# It has one key for every "always", which chooses the last one, and shows no names.
WITHOUT_NAMES: Final = frozenset({"CodeCompanion.nvim"})


def read_client(params: object) -> EditorAbilities:
    """From the params of `initialize`, whatever they are."""
    if isinstance(offered := _object(params).get("protocolVersion"), int) and offered >= LATEST:
        return _of_version_two(_object(params))
    capabilities = _object(_object(params).get("clientCapabilities"))
    files = _object(capabilities.get("fs"))
    return EditorAbilities(
        shows_terminals=_object(capabilities.get("_meta")).get("terminal_output") is True,
        terminals=capabilities.get("terminal") is True,
        reads_files=files.get("readTextFile") is True,
        writes_files=files.get("writeTextFile") is True,
        tells_documents=isinstance(capabilities.get("nes"), dict),
        names_options=_object(_object(params).get("clientInfo")).get("name") not in WITHOUT_NAMES,
        asks=isinstance(_object(capabilities.get("elicitation")).get("form"), dict),  # an empty one says yes
    )


def _of_version_two(params: dict[str, object]) -> EditorAbilities:
    """Terminals of ours are shown by every editor of v2. Files and terminals of its own are no part of it."""
    capabilities = _object(params.get("capabilities"))
    return EditorAbilities(
        version=LATEST,
        shows_terminals=True,
        tells_documents=isinstance(capabilities.get("nes"), dict),
        names_options=_object(params.get("info")).get("name") not in WITHOUT_NAMES,
        asks=isinstance(_object(capabilities.get("elicitation")).get("form"), dict),
    )


MOST: Final = 500  # files, and problems
LONGEST: Final = 500  # characters of a problem
OFFERED: Final[dict[str, object]] = {
    "events": {"document": {"didOpen": {}, "didClose": {}, "didFocus": {}}},
    "context": {"openFiles": {}, "diagnostics": {}},
}
Params = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class EditorProblem:
    """A diagnostic of the editor."""

    path: Path
    line: int  # from 1
    text: str


@dataclass(slots=True)
class EditorDocuments:
    """Of one editor, whichever session it tells them in."""

    open: dict[Path, None] = field(default_factory=dict)  # in the order in which they were opened
    current: Path | None = None
    selected: tuple[int, int] | None = None  # lines of the current file, from 1
    problems: tuple[EditorProblem, ...] = ()

    def told(self, method: str, params: Params) -> bool:
        """Take a notification in; False: it is about something else."""
        if method not in ("document/didOpen", "document/didClose", "document/didFocus"):
            return False
        path = path_of(params.get("uri"))
        if path is not None and method == "document/didClose":
            self.open.pop(path, None)
            self.current = None if self.current == path else self.current
        elif path is not None:
            self._see(path)
            if method == "document/didFocus":
                self.current, self.selected = path, None
        return True

    def suggest(self, params: Params) -> None:
        """Take in what comes with a request for suggestions."""
        context = params.get("context")
        given: Params = context if isinstance(context, dict) else {}
        if isinstance(files := given.get("openFiles"), list):
            self.open = {path: None for each in files[:MOST] if (path := path_of(_object(each).get("uri")))}
        if isinstance(found := given.get("diagnostics"), list):
            self.problems = tuple(each for one in found[:MOST] if (each := _problem(_object(one))))
        if path := path_of(params.get("uri")):
            self._see(path)
            self.current, self.selected = path, _lines(_object(params.get("selection")))

    def _see(self, path: Path) -> None:
        if path in self.open or len(self.open) < MOST:
            self.open[path] = None


def path_of(uri: object) -> Path | None:
    """The file behind an address; None for anything else."""
    if not isinstance(uri, str) or not uri.startswith("file://"):
        return None
    from urllib.parse import unquote, urlsplit

    try:
        path = unquote(urlsplit(uri).path)
    except ValueError:
        return None
    return Path(path) if path.startswith("/") and path.isprintable() else None


def _problem(found: Params) -> EditorProblem | None:
    path, line = path_of(found.get("uri")), _line(_object(found.get("range")), "start")
    if path is None or line is None:
        return None
    text = " ".join(str(found.get("message", "")).split())[:LONGEST]
    return EditorProblem(path, line, f"{str(found.get('severity', 'error'))[:20]}: {text}")


def _lines(selection: Params) -> tuple[int, int] | None:
    """The first and the last selected line; None if nothing is."""
    if not selection or selection.get("start") == selection.get("end"):
        return None
    start, end = _line(selection, "start"), _line(selection, "end")
    return (start, end) if start is not None and end is not None and start <= end else None


def _line(span: Params, name: str) -> int | None:
    line = _object(span.get(name)).get("line")
    return line + 1 if isinstance(line, int) and 0 <= line < 1 << 31 else None


def _object(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}
