"""PURE: what an editor sends, read: what it can do, its open files and problems, and prompts as text and pictures.

An embedded resource is named, and its text is put in a fence that the text can't close. A link is only named, so that
the model reads it with its tools. What an editor does not say in `initialize`, it can't do.

The methods for files are those of ACP's draft for suggested edits: document/did* are told, and nes/suggest comes with
the rest. Tarmac suggests nothing. It offers them only to an editor that says `nes` itself.
"""

import base64
import binascii
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tarmac.errors import BadRequest
from tarmac.models.messages import Image, Text

if TYPE_CHECKING:  # this is loaded before the first answer, and the events of tasks are not
    from tarmac.tasks.events import ToolFinished

MOST_PICTURES: Final = 20
LARGEST_PICTURE: Final = 20 << 20
LONGEST_TEXT: Final = 4 << 20

Picture = tuple[bytes, str]
_TICKS: Final = re.compile("`{3,}")


@dataclass(frozen=True, slots=True)
class EditorPrompt:
    """A prompt, taken apart."""

    text: str
    pictures: tuple[Picture, ...] = ()


def read_prompt(blocks: object) -> EditorPrompt:
    """The content blocks of a prompt; BadRequest says which one can't be taken."""
    if not isinstance(blocks, list) or not blocks:
        raise BadRequest("a prompt must be a list of content blocks, not empty")
    words: list[str] = []
    pictures: list[Picture] = []
    for number, block in enumerate(blocks):
        if not isinstance(block, dict):
            raise BadRequest(f"block {number} of the prompt is not an object")
        match block.get("type"):
            case "text":
                words.append(_text(block, "text", number))
            case "image":
                pictures.append(_picture(block, number))
            case "resource_link":
                name, uri = block.get("name"), _text(block, "uri", number)
                words.append(f"[{name}]({uri})" if isinstance(name, str) and name else uri)
            case "resource":
                resource = block.get("resource")
                if isinstance(resource, dict) and str(resource.get("mimeType")).startswith("image/"):
                    picture = {**resource, "data": resource.get("blob")}
                    pictures.append(_picture(picture, number))
                else:
                    words.append(_resource(resource, number))
            case "audio":
                raise BadRequest(f"block {number} of the prompt is audio, which is not supported")
            case kind:
                raise BadRequest(f"block {number} of the prompt has an unknown type: {str(kind)[:40]!r}")
    text = "\n".join(words)
    if len(text) > LONGEST_TEXT:
        raise BadRequest(f"the prompt has {len(text):,} characters; at most {LONGEST_TEXT:,} are taken")
    if len(pictures) > MOST_PICTURES:
        raise BadRequest(f"the prompt has {len(pictures)} pictures; at most {MOST_PICTURES} are taken")
    return EditorPrompt(text, tuple(pictures))


def _text(block: dict[str, object], name: str, number: int) -> str:
    value = block.get(name)
    if not isinstance(value, str):
        raise BadRequest(f"block {number} of the prompt has no `{name}`")
    return value


def _picture(block: dict[str, object], number: int) -> Picture:
    kind = block.get("mimeType")
    if not isinstance(kind, str) or not kind.startswith("image/"):
        raise BadRequest(f"block {number} of the prompt is an image without a valid `mimeType`")
    try:
        data = base64.b64decode(_text(block, "data", number), validate=True)
    except (binascii.Error, ValueError):
        raise BadRequest(f"the image in block {number} of the prompt is not base64") from None
    if not 0 < len(data) <= LARGEST_PICTURE:
        raise BadRequest(f"the image in block {number} of the prompt has {len(data):,} bytes")
    return data, kind


def _resource(resource: object, number: int) -> str:
    if not isinstance(resource, dict):
        raise BadRequest(f"block {number} of the prompt has no `resource`")
    uri, text = resource.get("uri"), resource.get("text")
    name = uri if isinstance(uri, str) else "a resource"
    if not isinstance(text, str):
        return f"[{name}, which is not text and was left out]"
    return f"{name}:\n{fenced(text)}"


def fenced(text: str, kind: str = "") -> str:
    """`text` as a block of code that nothing in it can close: what stands after it in an editor is ours."""
    fence = "`" * (1 + max((len(run) for run in _TICKS.findall(text)), default=2))
    return f"{fence}{kind}\n{text}\n{fence}"


Update = dict[str, object]

MOST_OUTPUT: Final = 16_000  # characters of a command's output as text
_KINDS: Final = {
    "read_file": "read",
    "list_files": "search",
    "search_files": "search",
    "list_code_definition_names": "search",
    "write_to_file": "edit",
    "apply_diff": "edit",
    "insert_content": "edit",
    "search_and_replace": "edit",
    "apply_patch": "edit",
    "execute_command": "execute",
    "run_command": "execute",
    "open_persistent_terminal": "execute",
    "run_persistent_command": "execute",
    "send_to_terminal": "execute",
    "wait_for_terminal": "execute",
    "read_terminal": "read",
    "kill_persistent_terminal": "execute",
    "switch_mode": "switch_mode",
}


def kind_of(tool: str) -> str:
    """ACP's word for what a tool does."""
    return _KINDS.get(tool, "other")


def call_update(id: str) -> Update:
    return {"sessionUpdate": "tool_call_update", "toolCallId": id}


def chunk(kind: str, text: str, message: str = "") -> Update:
    """A piece of a message, and the message's id if it has one."""
    update: Update = {"sessionUpdate": kind, "content": {"type": "text", "text": text}}
    return {**update, "messageId": message} if message else update


def user_message(at: float) -> str:
    """The id of what a person said: the same when it is said and when it is replayed."""
    return f"user-{at}"


def content(text: str) -> Update:
    return {"type": "content", "content": {"type": "text", "text": text}}


def console(text: str, total: int) -> Update:
    """The last of `total` characters, in a fence that none of its lines can close."""
    text = text.rstrip("\n")
    shown = text if total <= MOST_OUTPUT else f"[… {total - MOST_OUTPUT:,} characters before this]\n{text}"
    return content(fenced(shown, "console"))


def text_of(finished: "ToolFinished") -> str:
    words = [
        part.text if isinstance(part, Text) else "[an image]"
        for part in finished.content
        if isinstance(part, Text | Image)
    ]
    return "\n".join(words)[:MOST_OUTPUT]


def screen_of(found: dict[str, object]) -> list[Update]:
    """What a full-screen program shows, by a call's details."""
    screen = found.get("screen")
    return [console(screen, len(screen))] if isinstance(screen, str) and screen else []


def object_of(text: str) -> dict[str, object] | None:
    try:
        found = json.loads(text) if text else None
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def named(arguments: dict[str, object], workspace: Path | None) -> list[Update]:
    """The files that a call names, for an editor that goes along."""
    files = arguments.get("files")
    each_file = [each for each in files if isinstance(each, dict)] if isinstance(files, list) else [arguments]
    found: list[Update] = []
    for each in each_file:
        path = each.get("path")
        if isinstance(path, str) and path and "\0" not in path and workspace is not None:
            at: Update = {"path": str(workspace / path)}
            ranges = each.get("line_ranges")
            first = str(ranges[0]).partition("-")[0] if isinstance(ranges, list) and ranges else each.get("line")
            if str(first).isdecimal() and 0 < int(str(first)) < 1 << 31:
                at["line"] = int(str(first))
            found.append(at)
    return found


def files_of(found: dict[str, object]) -> list[dict[str, object]]:
    files = found.get("files")
    return [each for each in files if isinstance(each, dict)] if isinstance(files, list) else []


def paths_of(found: dict[str, object]) -> list[str]:
    return [path for file in files_of(found) if isinstance(path := file.get("path"), str) and Path(path).is_absolute()]


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
    """Terminals of ours are shown by every editor of v2. Files and terminals of its own are not part of it."""
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
