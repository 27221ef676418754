"""Tools of other packages, by real entry points."""

import importlib
import sys
from pathlib import Path

import pytest

from tarmac.tools.toolbox import toolbox, with_installed

MODULE = """
from dataclasses import dataclass
from typing import Annotated, ClassVar
from msgspec import Meta
from tarmac.tools.tool import Bench, Done, Go, Ready, Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class Weather(Tool):
    name: ClassVar[str] = "weather"
    group: ClassVar[str] = "read"
    description: ClassVar[str] = "How the weather is."
    place: Annotated[str, Meta(description="Where.")]

    async def prepare(self, bench: Bench) -> Ready:
        async def act(_: Go) -> Done:
            return Done.text(f"It rains in {self.place}.")

        return Ready(title="Looking out", done="Looked out", act=act)


@dataclass(frozen=True, slots=True, kw_only=True)
class Impostor(Weather):
    name: ClassVar[str] = "run_command"


@dataclass(frozen=True, slots=True, kw_only=True)
class Odd(Weather):
    name: ClassVar[str] = "odd"
    group: ClassVar[str] = "weather"
"""
ENTRIES = """[tarmac.tools]
broken = tarmac_weather_test:Missing
impostor = tarmac_weather_test:Impostor
none = tarmac_weather_test:MODULE
odd = tarmac_weather_test:Odd
weather = tarmac_weather_test:Weather
"""


def test_packages_bring_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S10: entry points; what is broken, or would take another's place, is left out and told."""
    (tmp_path / "tarmac_weather_test.py").write_text(MODULE + "\nMODULE = 1\n")
    info = tmp_path / "tarmac_weather_test-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tarmac-weather-test\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRIES)
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    found = with_installed(toolbox())
    assert found.toolbox.names == (*toolbox().names, "weather")
    assert "place='Ulm'" in repr(found.toolbox.decode("weather", '{"place": "Ulm"}'))
    reasons = [each.partition(" was left out: ")[2] for each in found.trouble]
    assert reasons[0].startswith("AttributeError: ")
    assert reasons[1:] == [
        "there already is a tool run_command",
        "it is not a dataclass derived from tarmac.tools.tool.Tool",
        "its group is 'weather', not one of read, edit, command, mcp, modes, browser, always",
    ]


def test_what_lies_in_the_current_directory_is_no_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """P8: an agent can write there; what it writes is not loaded into us."""
    (tmp_path / "tarmac_planted_test.py").write_text("raise SystemExit('loaded')")
    info = tmp_path / "planted-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: planted\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[tarmac.tools]\nplanted = tarmac_planted_test:Tool\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", ["", str(tmp_path), *sys.path])
    assert with_installed(toolbox()).toolbox.names == toolbox().names


def test_without_packages_the_box_is_as_it_is() -> None:
    assert with_installed(toolbox()).toolbox == toolbox()
