"""Commands that print a lot, each in the way that hurts most.

Their bytes are prepared files where that is possible, so that time goes into reading and not into making them.
"""

from dataclasses import dataclass
from pathlib import Path

MB = 1_000_000


@dataclass(frozen=True, slots=True)
class Workload:
    what: str
    command: str


def volume(folder: Path, megabytes: int) -> Path:
    """A file of numbered lines of 100 bytes."""
    path = folder / f"{megabytes}MB"
    text = "the quick brown fox jumps over the lazy dog, again and again, until the line is full at last;"[:91]
    path.write_text("".join(f"{n:07} {text}\n" for n in range(megabytes * MB // 100)))
    return path


def many_lines(share: float = 1) -> Workload:
    count = int(200_000 * share)
    return Workload(f"{count:,} short lines", f"seq {count}")


def progress(folder: Path, share: float = 1) -> Workload:
    count = int(100_000 * share)
    path = folder / "progress"
    path.write_bytes(b"".join(b"\r%5.1f%% [%-20s]" % (n * 100 / count, b"#" * (n * 20 // count)) for n in range(count)))
    return Workload(f"{count:,} carriage-return updates", f"cat {path}")


def one_line(folder: Path, share: float = 1) -> Workload:
    size = int(3 * MB * share)
    path = folder / "one-line"
    path.write_text("".join(f"{n:09} " for n in range(size // 10)))
    return Workload(f"{size / MB:g} MB without a newline", f"cat {path}")
