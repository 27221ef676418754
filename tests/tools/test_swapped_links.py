"""A process of the workspace swaps files for links that lead out, as fast as it can, while tools read and write.

It may run in a sandbox that can't see those files. The tools can, so they must not be led there.
"""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.tools.workshop import Workshop, text_of

from tarmac.errors import TarmacError
from tarmac.policy import Policy, PolicySettings
from tarmac.policy.verdict import ReadFile
from tarmac.tools.tool import Go

SECRET = "secret_of_another_place"
SECONDS = 0.8  # of attack, for each tool; before they were mended, each of these was led out within it
SWAPS = """
import ctypes, sys
rename = ctypes.CDLL(None).renameat2
one, other = (each.encode() for each in sys.argv[1:])
print(rename(-100, one, -100, other, 2), flush=True)
while True:
    rename(-100, one, -100, other, 2)
"""
CALLS: dict[str, dict[str, object]] = {
    "read_file": {"path": "sub/a.py"},
    "list_files": {"path": "sub"},
    "search_files": {"path": "sub", "regex": "."},
    "list_code_definition_names": {"path": "sub"},
    "write_to_file": {"path": "sub/a.py", "content": "new\n"},
}


@contextmanager
def swapping(one: Path, other: Path) -> Iterator[None]:
    process = subprocess.Popen([sys.executable, "-c", SWAPS, one, other], stdout=subprocess.PIPE)
    with process:
        assert process.stdout is not None
        try:
            if process.stdout.readline() != b"0\n":
                pytest.skip("this file system can't swap two names")
            yield
        finally:
            process.kill()


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "a.py").write_text(f"def {SECRET}(): pass\n")
    (folder / SECRET).touch()
    return folder


@pytest.mark.parametrize("tool", CALLS)
@pytest.mark.parametrize("what", ["folder", "file"])
async def test_no_tool_is_led_out_by_a_link_that_comes_and_goes(
    shop: Workshop, outside: Path, tool: str, what: str
) -> None:
    """P8: what was judged is what is opened, at any moment."""
    shop.file("sub/a.py", "def mine(): pass\n")
    one, other = (
        (shop.folder / "sub", shop.folder / "other")
        if what == "folder"
        else (shop.folder / "sub/a.py", shop.folder / "b.py")
    )
    other.symlink_to(outside if what == "folder" else outside / "a.py")
    policy = Policy(PolicySettings(auto_approve_read=True, auto_approve_write=True))
    told: list[str] = []
    with swapping(one, other):
        end = time.monotonic() + SECONDS
        while time.monotonic() < end or not told:
            try:
                ready = await shop.prepare(tool, **CALLS[tool])
                verdicts = tuple([await policy.judge(each.action, workspace=shop.folder) for each in ready.wants])
                if all(each.decision == "allow" for each in verdicts):
                    told.append(text_of(await shop.act(ready, go=Go(verdicts=verdicts, approved=False))))
            except TarmacError:
                pass
    assert not any(SECRET in each for each in told)
    assert (outside / "a.py").read_text() == f"def {SECRET}(): pass\n"
    assert {each.name for each in outside.iterdir()} == {"a.py", SECRET}


async def test_definitions_of_a_folder_are_not_those_behind_its_links(shop: Workshop, outside: Path) -> None:
    """P8: a link in it may lead anywhere."""
    shop.file("sub/a.py", "def mine(): pass\n")
    (shop.folder / "sub/b.py").symlink_to(outside / "a.py")
    text = await shop.text("list_code_definition_names", path="sub")
    assert ("mine" in text, SECRET in text) == (True, False)


async def test_a_path_that_leads_elsewhere_when_it_is_judged_is_refused(shop: Workshop, outside: Path) -> None:
    """P8: the file that would be opened is not the one that is judged."""
    here = shop.file("a.py", "x\n")
    policy = Policy(PolicySettings(auto_approve_read=True))
    found = [
        (await policy.judge(ReadFile(here, leads_to=leads), workspace=shop.folder)).decision
        for leads in (here, outside / "a.py")
    ]
    assert found == ["allow", "deny"]
