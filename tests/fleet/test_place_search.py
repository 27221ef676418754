"""search_files and list_code_definition_names at a place say what they say here: with its ripgrep, and without."""

import subprocess
from pathlib import Path

import pytest
from tests.fleet.test_place_files import place_files

from tarmac.errors import BadRequest, FileUnavailable
from tarmac.file_system import FileSystem
from tarmac.tools.code_definitions import list_definitions
from tarmac.tools.search_files import search_files

RIPGREP = pytest.mark.parametrize("ripgrep", [True, False], ids=["ripgrep there", "only Python there"])
PATTERNS = [
    (r"def \w+", "*.py"),
    (r"def \w+", ""),
    (r"^\s*$", "*.py"),
    (r"run\(\)$", "*.{py,md}"),
    (r"def", "!*.py"),
    (r"def", "src/**"),
    (r"(?i)MAIN", ""),
    (r"main\(\):\n\s+run", ""),
    (r"[[:upper:]]+_[[:digit:]]", ""),
    (r"(?P<name>caf)", ""),
    (r"\bpass\b|import", ""),
    (r"ignored|dotted|hidden", ""),
    (r"wide", ""),
    ("nowhere to be found", ""),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    (work / "src/deep").mkdir(parents=True)
    (work / "build").mkdir()
    (work / ".dots").mkdir()
    subprocess.run(["git", "init", "-q", str(work)], check=True)
    (work / ".gitignore").write_text("build/\n*.o\n")
    (work / "src/app.py").write_text("import os\n\ndef main():\n    run()\n\n\n\ndef run():\n    pass\n\nUP_1 = 1")
    (work / "src/a.py").write_text("class A:\n    def first(self):\n        run()\n")
    (work / "src/deep/z.py").write_text("def z(): pass\n")
    (work / "src-more.md").write_text("# def\n\nrun()\n")
    (work / "other.txt").write_bytes(b"def caf\xe9():\r\nnext\r\n")
    (work / "wide.txt").write_bytes(b"\xff\xfe" + "one\nwide\n".encode("utf-16-le"))
    (work / "bin").write_bytes(b"def\0binary")
    (work / "build/made.py").write_text("def ignored(): pass\n")
    (work / "x.o").write_text("def ignored(): pass\n")
    (work / ".dots/one.py").write_text("def dotted(): pass\n")
    (work / "secret.py").write_text("def hidden(): pass\n")
    (work / "link.py").symlink_to("src/app.py")
    (work / "loop").symlink_to(".")
    return work


def without_ripgrep(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The host of these tests is in this process. On this side ripgrep is found beside our Python."""
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))


def hidden(path: Path) -> bool:
    return path.name == "secret.py"


@RIPGREP
async def test_a_search_there_says_what_it_says_here(
    ripgrep: bool, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F2, S10: hidden, binary and ignored files are left out, in the same order and with the same lines."""
    here = {each: str(await search_files(folder, each[0], file_pattern=each[1], hidden=hidden)) for each in PATTERNS}
    alone = str(await search_files(folder / "src/app.py", "def", hidden=hidden))
    if not ripgrep:
        without_ripgrep(monkeypatch, tmp_path)
    async with place_files() as (files, _):

        async def there(path: Path, pattern: str, glob: str = "") -> str:
            system: FileSystem = files.afresh()
            return str(await search_files(path, pattern, file_pattern=glob, hidden=hidden, system=system))

        assert {each: await there(folder, *each) for each in PATTERNS} == here
        assert await there(folder / "src/app.py", "def") == alone
    assert "No results" in here["nowhere to be found", ""]
    assert "No results" in here["ignored|dotted|hidden", ""]
    assert here[r"main\(\):\n\s+run", ""].count(">") == 2


@RIPGREP
async def test_what_can_go_wrong_with_a_search_there_is_said(
    ripgrep: bool, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F2, F5: also a pattern that never ends. Then the host still answers."""
    (folder / "hard.txt").write_text("a" * 40 + "\n")
    (folder / "long.txt").write_text("needle" + "x" * (3 << 20) + "\nneedle\n")
    (folder / "many.txt").write_text("needed\n" * 400)
    if not ripgrep:
        without_ripgrep(monkeypatch, tmp_path)
    async with place_files() as (files, machine):
        with pytest.raises(BadRequest, match="the pattern is invalid") as wrong:
            await search_files(folder, "(", system=files.afresh())
        with pytest.raises(FileUnavailable, match="does not exist"):
            await search_files(folder / "nothing", "x", system=files.afresh())
        with pytest.raises(FileUnavailable, match="not a file"):
            await search_files(Path("/dev/null"), "x", system=files.afresh())
        many = await search_files(folder, "needed", most=100, context=0, system=files.afresh())
        long = await search_files(folder, "needle", system=files.afresh())
        slow = await search_files(folder, "(a+)+$b|(a|aa)+$c", patience=0.5, system=files.afresh())
        assert await machine.load()
    assert "syntax" in wrong.value.hint
    assert (many.count, "at most 100 are shown" in many.truncated) == (100, True)
    assert "too long" in long.truncated
    assert "longer than 0.5 s" in slow.truncated or (ripgrep and slow.count == 0)


async def test_a_pattern_that_python_reads_otherwise_is_refused(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F2: a set in a set means another thing to Python, which would be a wrong result."""
    without_ripgrep(monkeypatch, tmp_path)
    async with place_files() as (files, _):
        for pattern in (r"[a-z&&[^d]]", r"\p{Lu}", r"[[a]]"):
            with pytest.raises(BadRequest, match="the pattern is invalid"):
                await search_files(folder, pattern, system=files.afresh())


async def test_definitions_there_are_those_here(folder: Path) -> None:
    """F2, S10."""
    here = await list_definitions(folder / "src")
    async with place_files() as (files, _):
        assert await list_definitions(folder / "src", system=files.afresh()) == here
        one = await list_definitions(folder / "src/a.py", system=files.afresh())
        with pytest.raises(FileUnavailable, match="does not exist"):
            await list_definitions(folder / "no.py", system=files.afresh())
        with pytest.raises(FileUnavailable, match="no grammar"):
            await list_definitions(folder / "other.txt", system=files.afresh())
    assert [str(each) for each in one] == ["# a.py\n1--3 | class A:\n2--3 |     def first(self):"]
    assert len(here) == 2
