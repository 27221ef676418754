"""The documentation is true: its examples run, its links lead somewhere, its tables list what the code has.

python    executed, all blocks of a page in one namespace and one temporary directory; top-level await is fine, and one
          with `asyncio.run` is a program of its own; where a block has comments `# → …`, they are what it prints
console   each `$ … tarmac …` is run and its output compared; `...` stands for anything
sh        must parse

`<!-- not run: reason -->` before a block leaves it out; `<!-- needs: program -->` in a page is what its examples take.
"""

import ast
import contextlib
import dataclasses
import inspect
import io
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import pytest

from tarmac import errors
from tarmac.terminals import Result, Settings
from tarmac.terminals.environment import QUIET
from tarmac.terminals.events import TerminalEvent
from tarmac.terminals.result import Evidence, Reason

ROOT = Path(__file__).parent.parent
WITH_EXAMPLES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
ALL = [*WITH_EXAMPLES, ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"]
REFERENCE = ROOT / "docs" / "terminals-reference.md"
LANGUAGES = {"python", "console", "sh", "text", "json", "toml", "lua", "elisp", ""}
LEFT_OUT = 0  # blocks that are not run: said here, so that none is added unnoticed
PATIENCE = 60.0

_FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
_NOT_RUN = re.compile(r"<!-- not run:(.*?)-->\s*\Z", re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a page."""

    file: Path
    line: int
    language: str
    text: str
    not_run: str | None  # the reason

    def __str__(self) -> str:
        return f"{self.file.relative_to(ROOT)}:{self.line}"


def blocks(file: Path, language: str | None = None) -> Iterator[Block]:
    page = file.read_text()
    for found in _FENCE.finditer(page):
        before = page[: found.start()]
        reason = _NOT_RUN.search(before)
        block = Block(file, before.count("\n") + 2, found[1], found[2], reason[1].strip() if reason else None)
        if language is None or (block.language == language and block.not_run is None):
            yield block


def having(language: str) -> list[Path]:
    return [file for file in WITH_EXAMPLES if any(blocks(file, language))]


def name(file: Path) -> str:
    return str(file.relative_to(ROOT))


# Examples


@pytest.mark.shell
@pytest.mark.parametrize("file", having("python"), ids=name)
async def test_python_examples_run_and_print_what_they_say(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, require: Callable[[str], None]
) -> None:
    """A8."""
    for program in re.findall(r"<!-- needs: (\S+) -->", file.read_text()):
        require(program)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "example"}
    for block in blocks(file, "python"):
        printed = _program(block) if "asyncio.run(" in block.text else await _executed(block, names)
        if said := re.findall(r"# → (.*)$", block.text, re.MULTILINE):
            assert printed.splitlines() == said, str(block)


def _program(block: Block) -> str:
    """What it prints as a program of its own."""
    return subprocess.run(
        [sys.executable, "-c", block.text], capture_output=True, text=True, check=True, timeout=PATIENCE
    ).stdout


async def _executed(block: Block, names: dict[str, object]) -> str:
    """What it prints; in a traceback its lines have the numbers they have in the page."""
    text = "\n" * (block.line - 1) + block.text
    code = compile(text, str(block.file), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        running = eval(code, names)
        if inspect.isawaitable(running):
            await running
    return printed.getvalue()


@pytest.mark.shell
@pytest.mark.parametrize("file", having("console"), ids=name)
def test_console_examples_show_what_the_program_shows(file: Path, tmp_path: Path) -> None:
    """A8: with the installed `tarmac`."""
    program = Path(sys.executable).parent
    assert (program / "tarmac").exists(), "tarmac is not installed beside this Python"
    environ = os.environ | {"PATH": f"{program}:{os.environ['PATH']}", "PYTHONASYNCIODEBUG": ""}
    for block in blocks(file, "console"):
        for command, shown in _commands(block):
            ran = subprocess.run(
                ["bash", "-c", command],
                cwd=tmp_path,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=PATIENCE,
                check=False,
            )
            said = _without_times(ran.stdout)
            assert _pattern(shown).fullmatch(said), f"{block}: {command}\nshown:\n{shown}\nis:\n{ran.stdout}"


def _without_times(text: str) -> str:
    """A busy machine takes longer, and then the time of a call is shown: `✓ Edited a.py · 0.2 s, +1 −1`."""
    return re.sub(r"^([✓✗] .* ·) [\d.]+ s, ", r"\1 ", text, flags=re.MULTILINE)


def _commands(block: Block) -> Iterator[tuple[str, str]]:
    """Each command in which tarmac is run, and the output shown under it."""
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        if re.search(r"(^|\| |[A-Z_]=\S+ )tarmac\b", command):
            yield command, shown


def _pattern(shown: str) -> re.Pattern[str]:
    """What the output must look like: a line `...` is any number of lines, `...` in a line any part of it."""
    lines = [
        r"(?:.*\n)*" if line == "..." else re.escape(line).replace(re.escape("..."), ".*") + r"\n"
        for line in shown.splitlines()
    ]
    return re.compile("".join(lines))


@pytest.mark.shell
@pytest.mark.parametrize("file", having("sh"), ids=name)
def test_shell_examples_parse(file: Path) -> None:
    for block in blocks(file, "sh"):
        ran = subprocess.run(["bash", "-n"], input=block.text, capture_output=True, text=True, check=False)
        assert (ran.returncode, ran.stderr) == (0, ""), str(block)


def test_every_block_has_a_language_we_know_and_what_is_not_run_says_why() -> None:
    every = [block for file in WITH_EXAMPLES for block in blocks(file)]
    assert [str(block) for block in every if block.language not in LANGUAGES] == []
    left_out = [block for block in every if block.not_run is not None]
    assert [str(block) for block in left_out if len((block.not_run or "").split()) < 2] == [], "a reason is missing"
    assert len(left_out) == LEFT_OUT, [str(block) for block in left_out]


# Links


@pytest.mark.parametrize("file", ALL, ids=name)
def test_links_lead_somewhere(file: Path) -> None:
    missing = []
    for target in _LINK.findall(_prose(file)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        there = (file.parent / path).resolve() if path else file
        if not there.exists() or ROOT not in there.parents or (anchor and anchor not in _anchors(there)):
            missing.append(target)
    assert missing == []


def _prose(file: Path) -> str:
    """The page without its code."""
    return re.sub(r"`[^`\n]*`", "", _FENCE.sub("", file.read_text()))


def _anchors(file: Path) -> set[str]:
    """What the headings of a page are called in links, as GitHub makes them."""
    headings = _HEADING.findall(_FENCE.sub("", file.read_text()))
    return {re.sub(r"[^\w\- ]", "", each.lower()).strip().replace(" ", "-") for each in headings}


@pytest.mark.parametrize("file", ALL, ids=name)
def test_no_page_names_a_place_of_the_machine_it_was_written_on(file: Path) -> None:
    assert (
        re.findall(r"(?<![\w.])/(?:work|root|home|Users)/\S*|https?://(?:localhost|127\.|10\.)\S*", file.read_text())
        == []
    )


# Tables


def test_the_settings_table_has_every_setting_with_its_default() -> None:
    shown = {row[0].strip("`"): eval(row[1].strip("`"), {"__builtins__": {}}) for row in _rows("Settings")}
    assert shown == {
        each.name: each.default_factory() if callable(each.default_factory) else each.default
        for each in dataclasses.fields(Settings)
    }


@pytest.mark.parametrize(
    ("heading", "names"),
    [
        ("Results", list(Result._fields)),
        ("Reasons", list(get_args(Reason))),
        ("Evidence", list(get_args(Evidence))),
        ("Events", sorted({each.__name__ for each in TerminalEvent.__subclasses__()})),
        ("The environment of commands", list(QUIET)),
    ],
)
def test_a_table_of_the_reference_lists_what_the_code_has(heading: str, names: list[str]) -> None:
    assert sorted(cell for row in _rows(heading) for cell in re.findall(r"`([^`]+)`", row[0])) == sorted(names)


def _rows(heading: str) -> list[list[str]]:
    """The first table under a heading of the reference, without its head."""
    _, _, section = REFERENCE.read_text().partition(f"\n## {heading}\n")
    assert section, f"there is no heading {heading}"
    table = re.search(r"^\|.*\n\|[-| ]+\n((?:\|.*\n)+)", section.partition("\n## ")[0], re.MULTILINE)
    assert table, f"there is no table under {heading}"
    cells = (re.split(r"(?<!\\)\|", line.strip().strip("|")) for line in table[1].splitlines())
    return [[cell.strip() for cell in row] for row in cells]


def test_the_reference_draws_the_error_tree_as_the_code_does() -> None:
    tree = [line for line in (errors.__doc__ or "").splitlines() if line.startswith(("TarmacError", "├", "└"))]
    assert "\n".join(tree) in REFERENCE.read_text()


@pytest.mark.parametrize("file", sorted((ROOT / "docs" / "adr").glob("[0-9]*.md")), ids=name)
def test_a_decision_is_told_in_fifteen_lines(file: Path) -> None:
    text = file.read_text()
    assert len(text.splitlines()) <= 15
    assert text.startswith(f"# {int(file.name[:4])}. ")
    for part in ("Status: ", "Context: ", "Decision: ", "Consequences: ", "Rejected: "):
        assert f"\n{part}" in text, part
