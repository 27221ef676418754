"""After an edit the result names the problems that are new."""

import sys

from tests.tools.workshop import Workshop

LINTER = """import sys
for number, line in enumerate(open(sys.argv[1]), 1):
    if "bad" in line:
        print(f"{sys.argv[1]}:{number}:1: X001 this is bad")
"""


async def test_a_syntax_error_that_an_edit_brings_is_told(shop: Workshop) -> None:
    """S10: with its line; what was broken before is not."""
    shop.file("a.py", "def f():\n    return 1\n")
    await shop.call("read_file", path="a.py")
    broken = await shop.text("search_and_replace", path="a.py", search="return 1", replace="return (1")
    assert "New problems after this edit:\na.py:2: syntax error: '(' was never closed" in broken
    again = await shop.text("search_and_replace", path="a.py", search="return (1", replace="return (2")
    assert "New problems" not in again
    fixed = await shop.text("search_and_replace", path="a.py", search="return (2", replace="return 2")
    assert "New problems" not in fixed
    made = await shop.text("write_to_file", path="b.js", content="function f( {\n")
    assert "New problems after this edit:\nb.js:1" in made
    assert "New problems" not in await shop.text("write_to_file", path="c.txt", content="function f( {\n")


async def test_a_command_of_the_configuration_checks_the_file(shop: Workshop) -> None:
    """S10: for files that its pattern names; one that is missing or hangs does not hinder the edit."""
    linter = shop.file("lint.py", LINTER)
    rules = (f"*.md: {sys.executable} {linter} {{file}}", "*.md: no-such-linter {file}")
    shop.settle(diagnostics=rules)
    told = await shop.text("write_to_file", path="n.md", content="good\nbad\n")
    assert "New problems after this edit:\n" in told and "n.md:2:1 X001: this is bad" in told
    assert "New problems" not in await shop.text("write_to_file", path="n.txt", content="bad\n")


async def test_the_line_of_a_syntax_error_is_where_it_is(shop: Workshop) -> None:
    """S10: an error at the end of a file does not stand at its first line."""
    fine = "import os\n\n\ndef f():\n    return os\n"
    assert "a.py:8: syntax error" in await shop.text("write_to_file", path="a.py", content=f"{fine}\n\nx = (\n")
    wrong = f"{fine}\n\ndef g():\n  x = 1\n    y = 2\n"
    assert "b.py:10: syntax error: unexpected indent" in await shop.text("write_to_file", path="b.py", content=wrong)
    script = "function f() {\n  return 1;\n}\n\nfunction g() {\n  return (;\n}\n"
    assert "c.js:6: syntax error near" in await shop.text("write_to_file", path="c.js", content=script)


async def test_problems_that_were_there_before_are_not_called_new(shop: Workshop) -> None:
    """S10: on whatever line they are now; the file may be a part of a word of the command."""
    linter = shop.file("lint.py", LINTER.replace("sys.argv[1]", "sys.argv[1].partition('=')[2]"))
    shop.settle(diagnostics=(f"*.md: {sys.executable} {linter} --file={{file}}",))
    shop.file("n.md", "bad\ngood\n")
    assert "New problems" not in await shop.text("insert_content", path="n.md", line=1, content="fine\n")
    told = await shop.text("insert_content", path="n.md", line=0, content="bad too\n")
    assert told.count("X001: this is bad") == 1
