"""A file that the command line writes for a person: whole, or not at all, and theirs alone."""

import os
import tempfile
from pathlib import Path

from tarmac.errors import FileUnavailable


def write_whole(path: Path, text: str) -> None:
    """Put `text` there, in place of what was there."""
    new = ""
    try:
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", errors="replace", dir=path.parent, delete=False
        ) as file:
            new = file.name
            file.write(text)
        os.replace(new, path)  # noqa: PTH105
    except OSError as error:
        if new:
            Path(new).unlink(missing_ok=True)
        raise FileUnavailable(f"{path} can't be written: {error.strerror}") from None
