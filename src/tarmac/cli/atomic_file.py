"""Write a file for a person: completely or not at all, and readable by that person alone."""

import os
import tempfile
from pathlib import Path

from tarmac.errors import FileUnavailable


def write_whole(path: Path, text: str) -> None:
    """Replace the file at `path` with `text`."""
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
