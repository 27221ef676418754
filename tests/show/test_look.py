"""Colours that can be read, on black and on white."""

import re
from pathlib import Path

import tarmac.show

ROOT = Path(tarmac.show.__file__).parents[1]
SOURCES = [*(ROOT / "show").rglob("*.py"), *(ROOT / "cli").rglob("*.py")]
# xterm's own, darker than most: who can be read in these can be read in others.
XTERM = {31: (205, 0, 0), 32: (0, 205, 0), 33: (205, 205, 0), 34: (0, 0, 238), 35: (205, 0, 205), 36: (0, 205, 205)}
BOLD = 0.3  # bold letters are read with less contrast


def light(colour: tuple[int, int, int]) -> float:
    parts = [each / 255 / 12.92 if each <= 10 else ((each / 255 + 0.055) / 1.055) ** 2.4 for each in colour]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def contrast(one: tuple[int, int, int], other: tuple[int, int, int]) -> float:
    """As WCAG 2 has it: 1 can't be seen, 21 is black on white."""
    darker, lighter = sorted((light(one), light(other)))
    return (lighter + 0.05) / (darker + 0.05)


def test_every_colour_can_be_read_on_black_and_on_white() -> None:
    """A5: nobody chose the screen for us. Yellow has 1.7 on white, and is left out."""
    used = {
        code
        for path in SOURCES
        for code in re.findall(r"""["'\[]((?:[0-9];)?(?:3[0-7]|9[0-7]))(?:m|["'])""", path.read_text())
    }
    assert {"31", "32", "35", "1;34"} <= used  # it finds them
    for code in used:
        bold, _, number = code.rpartition(";")
        least = 1.9 - BOLD * bool(bold)
        assert int(number) in XTERM, f"{code} is white, black or bright"
        for screen in ((255, 255, 255), (0, 0, 0)):
            assert contrast(XTERM[int(number)], screen) > least, (code, screen)
    assert contrast(XTERM[33], (255, 255, 255)) < 1.9
