"""The house rules that a machine can check. Everything is read from the files, and nothing is imported."""

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src/tarmac"
DEMO = SOURCE / "cli/demo/project"  # what the demonstration works on
MODULES = sorted(path for path in SOURCE.rglob("*.py") if DEMO not in path.parents)
PACKAGES = [path.parent for path in MODULES if path.name == "__init__.py" and path.parent != SOURCE]

# Names that already mean two things. Take one away when you rename it, and add none.
FILE_NAMES_USED_TWICE = {
    "checkpoints",
    "config",
    "events",
    "exec",
    "frames",
    "grants",
    "host",
    "parser",
    "process",
    "sandbox",
    "screen",
    "signals",
    "state",
}
CLASS_NAMES_USED_TWICE = {
    "Answer",
    "ReadFile",
}


def named(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def twice(names: Iterable[str]) -> set[str]:
    return {name for name, number in Counter(names).items() if number > 1}


@pytest.fixture(scope="module")
def trees() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in MODULES}


def test_every_module_says_what_it_is_for(trees: dict[Path, ast.Module]) -> None:
    silent = [named(path) for path, tree in trees.items() if not ast.get_docstring(tree)]
    assert not silent, "begin these files with a docstring: what it is for, how things flow, what would surprise"


def test_the_map_names_every_package() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| `")]

    def on_the_map(package: Path) -> bool:
        own, inside = f"`{named(package)}/`", f"`{package.name}/`"
        above = f"`{named(package.parent)}/`"
        return any(own in row or (above in row and inside in row) for row in rows)

    lost = [named(package) for package in PACKAGES if not on_the_map(package)]
    assert not lost, "name these packages in the map of CONTRIBUTING.md (Where things live)"


def test_no_module_is_named_by_a_gerund() -> None:
    gerunds = [named(path) for path in MODULES if path.stem.endswith("ing")]
    assert not gerunds, "name the thing that is in the file, not that something happens (`reader`, not `reading`)"


def test_a_file_name_means_one_thing() -> None:
    found = twice(path.stem for path in MODULES if not path.stem.startswith("__"))
    new = {name: [named(path) for path in MODULES if path.stem == name] for name in found - FILE_NAMES_USED_TWICE}
    assert not new, "another package has a file of this name: say in the name of yours what it is about"


def test_a_class_name_means_one_thing(trees: dict[Path, ast.Module]) -> None:
    homes = [(each.name, path) for path, tree in trees.items() for each in tree.body if isinstance(each, ast.ClassDef)]
    found = twice(name for name, _ in homes)
    new = {each: [named(path) for name, path in homes if name == each] for each in found - CLASS_NAMES_USED_TWICE}
    assert not new, "another module has a class of this name: say in the name of yours what it is about"


def test_no_module_imports_itself_by_a_detour(trees: dict[Path, ast.Module]) -> None:
    """Imports inside functions count, too. Imports for the type checker alone do not."""
    modules = {_module(path): tree for path, tree in trees.items()}
    graph = {name: set(_imported(name, tree, modules)) for name, tree in modules.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"these import each other: {' ← '.join(error.args[1])}")


def _module(path: Path) -> str:
    parts = ("tarmac", *path.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported(name: str, tree: ast.Module, modules: Iterable[str]) -> Iterator[str]:
    for node in _without_types(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for each in node.names:
                inside = f"{node.module}.{each.name}"
                found = inside if inside in modules else node.module
                if found in modules and found != name:
                    yield found


def _without_types(node: ast.AST) -> Iterator[ast.AST]:
    """Every node that is not below `if TYPE_CHECKING:`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and isinstance(child.test, ast.Name) and child.test.id == "TYPE_CHECKING":
            continue
        yield child
        yield from _without_types(child)


def test_only_help_names_pages_that_are_not_installed(trees: dict[Path, ast.Module]) -> None:
    """A message or a hint says itself what to do. Help says where the pages are (`tarmac --help`)."""
    found = [
        f"{named(path)}: {node.value}"
        for path, tree in trees.items()
        if named(path) != "cli/parser.py"
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if "docs/" in node.value and ".md" in node.value and node.value not in docstrings(tree)
    ]
    assert found == []


def docstrings(tree: ast.Module) -> set[str]:
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return {ast.get_docstring(node, clean=False) or "" for node in ast.walk(tree) if isinstance(node, documented)}
