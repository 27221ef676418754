"""The page in the wheel and the sdist, the command line, and a checkout in which it was not built."""

import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from tests.cli.conftest import running, tarmac
from tests.conftest import lacking

from tarmac.web.server import PageMissing, find_static

ROOT = Path(__file__).parent.parent.parent
STATIC = ROOT / "src" / "tarmac" / "web" / "static"


def page_is_built() -> None:
    if not (STATIC / "index.html").is_file():
        lacking("the page is not built (`make web`)")


@pytest.mark.slow
def test_wheel_and_sdist_carry_the_built_page(tmp_path: Path) -> None:
    """A4: a wheel needs no Node; every asset has its hash in its name."""
    page_is_built()
    source = tmp_path / "source"
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(".venv", "node_modules", ".git", ".*_cache", "tests"))
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path / "dist")]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    wheel = zipfile.ZipFile(next((tmp_path / "dist").glob("*.whl"))).namelist()
    with tarfile.open(next((tmp_path / "dist").glob("*.tar.gz"))) as archive:
        sdist = ["/".join(name.split("/")[1:]) for name in archive.getnames()]
    built = {each.relative_to(STATIC).as_posix() for each in STATIC.rglob("*") if each.is_file()}
    assert {name.removeprefix("tarmac/web/static/") for name in wheel if "/static/" in name} == built
    assert built <= {name.removeprefix("src/tarmac/web/static/") for name in sdist}
    assert not any("node_modules" in name for name in (*wheel, *sdist))
    assets = [name for name in built if name.startswith("assets/")]
    assert assets and all(re.search(r"[\w-]{8,}\.\w+$", name) for name in assets)


def test_a_checkout_without_the_page_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(PageMissing) as missing:
        find_static(tmp_path)
    assert "make web" in missing.value.hint


@pytest.mark.slow
def test_the_address_is_on_a_line_of_its_own_and_a_second_call_finds_the_first(tmp_path: Path) -> None:
    """A4, F8."""
    page_is_built()
    with running("web", "--no-browser", "--cwd", str(tmp_path)) as process:
        assert process.stdout is not None
        lines = iter(process.stdout.readline, b"")
        address = next(line for line in lines if line.startswith(b"http"))
        assert re.fullmatch(rb"http://127\.0\.0\.1:\d+/#t=[\w-]{43}\n", address)
        second = tarmac("serve", "--cwd", str(tmp_path))
        assert second.code == 0 and second.out.splitlines()[-1].startswith(address.partition(b"#")[0].decode())
        process.terminate()
        assert process.wait(20) == 128 + 15


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--port", "many"], "--port takes a number up to 65535, not `many`"),
        (["--prot", "5"], "there is no option `--prot`"),
        (["make", "tea"], "`tarmac web` takes no `make`"),
        (["--lan"], "--lan needs a terminal: you are asked there about each device"),
    ],
)
def test_a_command_line_that_makes_no_sense_is_explained(arguments: list[str], said: str) -> None:
    outcome = tarmac("web", *arguments)
    assert (outcome.code, outcome.err.splitlines()[0]) == (2, f"tarmac: {said}")
