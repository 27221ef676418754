"""Pictures that a person gives: files by their names, and names in what they say (`@shot.png`)."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tarmac.errors import BadRequest

LARGEST: Final = 20 << 20  # bytes
_MAGIC: Final = {b"\x89PNG\r\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}
# A word that begins with @ and ends like a picture, in quotes or with escaped blanks where it has some.
_NAMED = re.compile(
    r"""(?:(?<=\s)|^)@(?:"(?P<a>[^"\n]+)"|'(?P<b>[^'\n]+)'|(?P<c>(?:\\.|[^\s\\"'])+))(?=$|[\s.,;:!?)])"""
)
_LIKE_ONE = re.compile(r"\.(?:png|jpe?g|gif|webp)$", re.IGNORECASE)


def picture(path: Path) -> tuple[bytes, str]:
    """A file that models can see, and its media type; BadRequest when it is none."""
    try:
        if path.stat().st_size > LARGEST:
            raise BadRequest(f"{path} is too large: an image may have {LARGEST >> 20} MiB")
        data = b"" if path.exists() and not (path.is_file() or path.is_dir()) else path.read_bytes()  # a pipe may wait
    except OSError as error:
        raise BadRequest(f"{path} can't be read: {error.strerror}") from None
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return data, "image/webp"
    for magic, media in _MAGIC.items():
        if data.startswith(magic):
            return data, media
    raise BadRequest(f"{path} is not an image that models take", hint="PNG, JPEG, GIF or WebP")


def pictures_in(text: str) -> Sequence[tuple[bytes, str]]:
    """The pictures that `text` names with an @. Other words with one (`@types/node`, `@name`) are words."""
    return [picture(Path(name).expanduser()) for name in named(text)]


def named(text: str) -> list[str]:
    """PURE: the files of pictures that `text` speaks of, each once."""
    found: dict[str, None] = {}
    for match in _NAMED.finditer(text):
        name = match["a"] or match["b"] or re.sub(r"\\(.)", r"\1", match["c"])
        if match["c"] and not _LIKE_ONE.search(name):
            name = name.rstrip(".,;:!?)")
        if _LIKE_ONE.search(name):
            found[name] = None
    return list(found)
