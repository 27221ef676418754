"""What the build makes, and what it is made from."""

import gzip
import json
import re
from pathlib import Path

import pytest

import tarmac.web

pytestmark = pytest.mark.browser
STATIC = Path(tarmac.web.__file__).parent / "static"
WEB = Path(__file__).parents[3] / "web"


def test_the_script_is_small() -> None:
    """A4: at most 140 KB of script, compressed."""
    size = sum(len(gzip.compress(each.read_bytes(), 9)) for each in (STATIC / "assets").glob("*.js"))
    print(f"{size:,} bytes of script, compressed")
    assert 0 < size <= 140_000


def test_every_asset_is_named_by_its_hash() -> None:
    names = [each.name for each in (STATIC / "assets").iterdir()]
    assert names and all(re.fullmatch(r"[\w-]{8,}\.(js|css|svg)", name) for name in names)


def test_the_lock_file_has_versions_and_hashes_but_no_addresses() -> None:
    text = (WEB / "package-lock.json").read_text()
    assert "://" not in text
    packages = json.loads(text)["packages"]
    assert all("integrity" in each for name, each in packages.items() if name)
    asked = json.loads((WEB / "package.json").read_text())
    versions = [*asked["dependencies"].values(), *asked["devDependencies"].values()]
    assert all(re.fullmatch(r"[\d.]+", each) for each in versions), "versions are pinned"
