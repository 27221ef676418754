"""The tool list_code_definition_names: the classes and functions of source files, found by tree-sitter.

    # app.py
    1--20 | class App:
    4--9 |     def run(self):

The table says which nodes of a grammar define something. The text shown is the line with the name in it.
"""

import ast
import asyncio
import importlib
import stat
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from msgspec import Meta

from tarmac.errors import FileUnavailable, PlaceFailed, TarmacError, ToolFailed
from tarmac.file_system import LOCAL, FileSystem, entries_of, is_folder
from tarmac.paths import shown
from tarmac.tools import file_access
from tarmac.tools.list_files import printable
from tarmac.tools.tool import Bench, Done, Go, Group, Ready, Tool

if TYPE_CHECKING:
    from tree_sitter import Node, Parser


@dataclass(frozen=True, slots=True, kw_only=True)
class ListCodeDefinitionNames(Tool):
    name: ClassVar[str] = "list_code_definition_names"
    group: ClassVar[Group] = "read"
    parallel: ClassVar[bool] = True
    description: ClassVar[str] = (
        "List the classes, functions and types in a source file, or in the files of a folder (without subfolders). "
        "Supports Python, JavaScript, TypeScript, Go, Rust, Java, C and C++."
    )

    path: Annotated[str, Meta(min_length=1, description="A source file, or a folder of them.")]

    async def prepare(self, bench: Bench) -> Ready:
        place, want = await file_access.looking(bench, file_access.to_read, self.path)

        async def act(_: Go) -> Done:
            now = file_access.fresh(bench)
            hidden = file_access.hides(now, contents=True)
            try:
                path = (await file_access.looking(bench, file_access.unmoved, place)).path
                found = await list_definitions(path, hidden=hidden, system=now.files.system)
            except TarmacError as error:
                raise ToolFailed(error.what, hint=error.hint) from None
            return Done.text("\n\n".join(map(str, found)) or "No source code definitions found.")

        title = f"Listing definitions of {place.name}"
        return Ready(title=title, done=f"Listed definitions of {place.name}", wants=(want,), act=act)


MOST_BYTES = 2 << 20
MOST_FILES = 50
MOST_DEFINITIONS = 500
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class _Grammar:
    module: str
    nodes: frozenset[str]
    function: str = "language"


_JS = "class_declaration function_declaration generator_function_declaration method_definition"
_TS = (
    f"{_JS} interface_declaration type_alias_declaration enum_declaration abstract_class_declaration "
    "module internal_module function_signature"
)
_C = "function_definition struct_specifier enum_specifier union_specifier type_definition"
_GRAMMARS = {
    name: _Grammar(module, frozenset(nodes.split()), function)
    for name, module, nodes, function in (
        ("python", "tree_sitter_python", "class_definition function_definition", "language"),
        ("javascript", "tree_sitter_javascript", _JS, "language"),
        ("typescript", "tree_sitter_typescript", _TS, "language_typescript"),
        ("tsx", "tree_sitter_typescript", _TS, "language_tsx"),
        ("go", "tree_sitter_go", "function_declaration method_declaration type_spec", "language"),
        (
            "rust",
            "tree_sitter_rust",
            "function_item struct_item enum_item trait_item impl_item mod_item type_item union_item macro_definition",
            "language",
        ),
        (
            "java",
            "tree_sitter_java",
            "class_declaration interface_declaration enum_declaration record_declaration method_declaration "
            "constructor_declaration annotation_type_declaration",
            "language",
        ),
        ("c", "tree_sitter_c", _C, "language"),
        (
            "cpp",
            "tree_sitter_cpp",
            f"{_C} class_specifier namespace_definition alias_declaration concept_definition",
            "language",
        ),
    )
}
_BY_SUFFIX = {
    suffix: language
    for language, suffixes in {
        "python": ".py .pyi",
        "javascript": ".js .jsx .mjs .cjs",
        "typescript": ".ts .mts .cts",
        "tsx": ".tsx",
        "go": ".go",
        "rust": ".rs",
        "java": ".java",
        "c": ".c .h",
        "cpp": ".cc .cpp .cxx .hpp .hh .hxx",
    }.items()
    for suffix in suffixes.split()
}
_WHOLE = ("_statement", "_definition", "_declaration", "_item", "_directive", "comment", "preproc_include", "clause")
_NEED_BODY = {"struct_specifier", "enum_specifier", "union_specifier", "class_specifier"}  # else `struct x *p` is one
_FUNCTION_VALUES = {"arrow_function", "function_expression", "function", "generator_function", "class"}


@dataclass(frozen=True, slots=True)
class Definition:
    """A class, a function, a type."""

    first: int
    last: int
    text: str  # the line that names it, indented as it is


@dataclass(frozen=True, slots=True)
class FileDefinitions:
    """The definitions of one file."""

    path: str
    definitions: tuple[Definition, ...]
    error: str = ""

    def __str__(self) -> str:
        rows = [f"# {self.path}", *(f"{each.first}--{each.last} | {each.text}" for each in self.definitions)]
        return "\n".join([*rows, *([f"({self.error})"] if self.error else [])])


def is_known(path: Path) -> bool:
    """Whether there is a grammar for this kind of file."""
    return path.suffix.lower() in _BY_SUFFIX


def language_of(path: Path) -> str | None:
    """The language of a source file, by its name; None: there is no grammar for it."""
    return _BY_SUFFIX.get(path.suffix.lower())


async def list_definitions(
    path: Path, *, hidden: Callable[[Path], bool] | None = None, system: FileSystem = LOCAL
) -> list[FileDefinitions]:
    """The definitions in a file, or in the files of a folder without subfolders. Files without any are left out."""
    return await asyncio.to_thread(_list, path, hidden, system)


def _list(path: Path, hidden: Callable[[Path], bool] | None, system: FileSystem) -> list[FileDefinitions]:
    if not is_folder(str(path), system):
        try:
            system.stat(str(path))
        except PlaceFailed:
            raise
        except FileNotFoundError:
            raise FileUnavailable(f"{shown(path)} does not exist") from None
        except OSError as error:
            raise FileUnavailable(f"{shown(path)} can't be read: {error.strerror}") from None
        if not is_known(path):
            known = " ".join(sorted(_BY_SUFFIX))
            raise FileUnavailable(
                f"{shown(path)}: there is no grammar for this kind of file", hint=f"supported are {known}"
            )
        return [_of_file(path, system)]
    try:
        names = system.entries(str(path)) if system.place else entries_of(path)
    except PlaceFailed:
        raise
    except OSError as error:
        raise FileUnavailable(f"{shown(path)} can't be read: {error.strerror}") from None
    inside = sorted(path / name for name, _ in names)
    files = (each for each in inside if is_known(each) and _is_file(each, system))
    seen = (each for each in files if hidden is None or not hidden(each))
    found = [_of_file(each, system) for each in islice(seen, MOST_FILES)]
    if next(seen, None) is not None:
        left = f"only the first {MOST_FILES} source files of this folder were looked at: name one of the others"
        found.append(FileDefinitions("…", (), left))
    return [each for each in found if each.definitions or each.error]


def _is_file(path: Path, system: FileSystem) -> bool:
    try:
        return stat.S_ISREG(system.lstat(str(path)).st_mode)
    except PlaceFailed:
        raise
    except OSError:  # gone
        return False


def _of_file(path: Path, system: FileSystem) -> FileDefinitions:
    try:
        source = system.read(path, most=MOST_BYTES)
    except TarmacError as error:
        return FileDefinitions(printable(path.name), (), error.what)
    found = definitions(source or b"", _BY_SUFFIX[path.suffix.lower()])
    more = f"only the first {MOST_DEFINITIONS} are shown" if len(found) > MOST_DEFINITIONS else ""
    return FileDefinitions(printable(path.name), tuple(found[:MOST_DEFINITIONS]), more)


def definitions(source: bytes, language: str) -> list[Definition]:
    """The definitions in `source`, in order."""
    grammar = _GRAMMARS[language]
    lines = source.decode("utf-8", "replace").split("\n")
    result: list[Definition] = []
    for node in _defining(_parser(grammar).parse(source).root_node, grammar.nodes):
        name = node.child_by_field_name("name") or node.child_by_field_name("declarator") or node
        row = name.start_point[0]
        text = lines[row].rstrip() if row < len(lines) else ""
        definition = Definition(node.start_point[0] + 1, node.end_point[0] + 1, text[:_LONGEST])
        if not result or result[-1] != definition:
            result.append(definition)
    return result


def syntax_errors(source: bytes, language: str) -> list[tuple[int, str]]:
    """The line and a few words of each syntax error; at most 20."""
    found: list[tuple[int, str]] = []
    root = _parser(_GRAMMARS[language]).parse(source).root_node
    if language == "python" and (known := _python_errors(source, tolerant=not root.has_error)) is not None:
        return known
    waiting = [root] if root.has_error else []
    while waiting and len(found) < 20:
        node = waiting.pop()
        if node.is_missing:
            found.append((node.start_point[0] + 1, f"syntax error: {node.type!r} is missing"))
        elif node.type == "ERROR":
            at = _broken_part(node).start_point[0]
            text = source.split(b"\n")[at].decode("utf-8", "replace").strip()[:60]
            found.append((at + 1, f"syntax error near `{text}`" if text else "syntax error"))
        elif node.has_error:
            waiting += reversed(node.children)
    return found


def _broken_part(node: "Node") -> "Node":
    """What follows the whole statements at the start of an error, which may reach over half of the file."""
    for child in node.children:
        if child.has_error or not child.type.endswith(_WHOLE):
            return child
    return node


def _python_errors(source: bytes, *, tolerant: bool) -> list[tuple[int, str]] | None:
    """What Python itself says: the exact line, and why. None if it can't tell.

    `tolerant`: the grammar can read it. It may be written for a later Python, so that only wrong indentation counts.
    """
    try:
        with warnings.catch_warnings(action="ignore"):
            compile(source, "", "exec", dont_inherit=True, flags=ast.PyCF_ONLY_AST)
    except SyntaxError as error:
        if tolerant and not isinstance(error, IndentationError):
            return []
        return [(error.lineno or 1, f"syntax error: {error.msg}")]
    except (ValueError, RecursionError, MemoryError):  # a NUL, nested too deeply
        return None
    return []


def _parser(grammar: _Grammar) -> "Parser":
    from tree_sitter import Language, Parser

    module = importlib.import_module(grammar.module)
    return Parser(Language(getattr(module, grammar.function)()))


def _defining(root: "Node", kinds: frozenset[str]) -> Iterator["Node"]:
    """All nodes that define something, depth first. No recursion, because code may be nested deeper than the stack."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.type in kinds and node.is_named and (node.type not in _NEED_BODY or node.child_by_field_name("body")):
            yield node
        elif node.type == "variable_declarator":  # const f = () => …
            value = node.child_by_field_name("value")
            if value is not None and value.type in _FUNCTION_VALUES:
                yield node
        waiting += reversed(node.named_children)
