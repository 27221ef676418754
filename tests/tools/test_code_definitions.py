"""list_code_definition_names, one small file for each language."""

from pathlib import Path

import pytest

from tarmac.errors import FileUnavailable
from tarmac.tools.code_definitions import list_definitions

SOURCES = {
    "a.py": ("@deco\nclass A:\n    async def f(self):\n        pass\n", ["class A:", "    async def f(self):"]),
    "a.js": (
        "const f = () => {\n}\nclass A {\n  m() {}\n}\nconst x = 1\n",
        ["const f = () => {", "class A {", "  m() {}"],
    ),
    "a.ts": (
        "export interface A { x: number }\ntype B = string\n",
        ["export interface A { x: number }", "type B = string"],
    ),
    "a.tsx": ("export function V() {\n  return <b/>\n}\n", ["export function V() {"]),
    "a.go": ("package a\ntype A struct {\n}\nfunc (a *A) B() {\n}\n", ["type A struct {", "func (a *A) B() {"]),
    "a.rs": ("struct A;\nimpl A {\n    fn b(&self) {}\n}\n", ["struct A;", "impl A {", "    fn b(&self) {}"]),
    "A.java": ("class A {\n  @Override\n  public void b() {}\n}\n", ["class A {", "  public void b() {}"]),
    "a.c": ("struct x *p;\nstruct y { int a; };\nint\nmain(void)\n{\n}\n", ["struct y { int a; };", "main(void)"]),
    "a.cpp": ("namespace n {\nclass A {\n};\n}\n", ["namespace n {", "class A {"]),
}


@pytest.mark.parametrize("name", SOURCES)
async def test_the_definitions_of_a_file(tmp_path: Path, name: str) -> None:
    """S10: list_code_definition_names."""
    source, expected = SOURCES[name]
    (tmp_path / name).write_text(source)
    (found,) = await list_definitions(tmp_path / name)
    assert [each.text for each in found.definitions] == expected


async def test_a_folder_gives_the_files_right_inside_it(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def f():\n    return 1\n")
    (tmp_path / "b.py").write_text("x = 1\n")
    (tmp_path / "c.txt").write_text("def no(): pass\n")
    (tmp_path / "hidden.py").write_text("def secret(): pass\n")
    found = await list_definitions(tmp_path, hidden=lambda path: path.name == "hidden.py")
    assert [str(each) for each in found] == ["# a.py\n1--2 | def f():"]


async def test_code_nested_without_end_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.js").write_text("x = " + "[" * 3000 + "]" * 3000 + "\nfunction f() {}\n")
    (found,) = await list_definitions(tmp_path / "a.js")
    assert [each.first for each in found.definitions] == [2]


async def test_a_file_without_a_grammar_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.zig").write_text("")
    with pytest.raises(FileUnavailable, match="no grammar"):
        await list_definitions(tmp_path / "a.zig")
