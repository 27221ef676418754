"""Texts compared exactly with what is kept in `snapshots/`.

To renew them after a change that was meant:  RENEW_SNAPSHOTS=1 pytest tests/prompts
and read the difference before you commit it: it is what every model will read from then on.
"""

import os
from pathlib import Path

FOLDER = Path(__file__).parent / "snapshots"


def same_as_snapshot(name: str, text: str) -> None:
    """Fail unless `text` is what was kept under this name."""
    path = FOLDER / f"{name}.txt"
    if os.environ.get("RENEW_SNAPSHOTS"):
        path.write_text(text + "\n", "utf-8")
    assert path.exists(), f"there is no snapshot {name}: RENEW_SNAPSHOTS=1 pytest tests/prompts makes it"
    kept = path.read_text("utf-8").removesuffix("\n")
    assert text == kept, f"{name} is not as it was; if that is meant: RENEW_SNAPSHOTS=1 pytest tests/prompts"
