"""Pictures that a person speaks of (P6: feedback may carry images)."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarmac.errors import BadRequest
from tarmac.show.pictures import named, picture, pictures_in

PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 50


@pytest.mark.parametrize(
    ("text", "files"),
    [
        ("n like @shot.png", ["shot.png"]),
        ("@a.PNG, and @b/c.jpeg.", ["a.PNG", "b/c.jpeg"]),
        ('see @"my shot.png"!', ["my shot.png"]),
        (r"see @my\ shot.webp", ["my shot.webp"]),
        ("(@a.gif)", []),
        ("ask @jane about @types/node and mail@a.png", []),
        ("@a.png @a.png", ["a.png"]),
        ("@a.pngs @png", []),
        ("", []),
    ],
)
def test_words_that_name_a_picture(text: str, files: list[str]) -> None:
    assert named(text) == files


@given(st.text())
def test_any_text_can_be_looked_at(text: str) -> None:
    assert all(each.lower().endswith((".png", ".jpg", ".jpeg", ".gif", ".webp")) for each in named(text))


def test_what_is_no_picture_is_said(tmp_path: Path) -> None:
    """S19: missing, a folder, too large, not a picture, a pipe that nobody writes to."""
    (tmp_path / "good.png").write_bytes(PNG)
    (tmp_path / "text.png").write_text("hello")
    os.truncate((tmp_path / "text.png").as_posix(), 5)
    with (tmp_path / "large.png").open("wb") as file:
        file.truncate(50_000_000)
    os.mkfifo(tmp_path / "pipe.png")
    assert picture(tmp_path / "good.png") == (PNG, "image/png")
    wrong = {
        "gone.png": "No such file",
        ".": "Is a directory",
        "large.png": "20 MiB",
        "text.png": "not an image",
        "pipe.png": "not an image",
    }
    for name, why in wrong.items():
        with pytest.raises(BadRequest, match=why):
            picture(tmp_path / name)
    assert pictures_in(f"like @{tmp_path}/good.png") == [(PNG, "image/png")]
