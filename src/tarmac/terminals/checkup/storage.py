"""Where output is kept, and the shells' private folders: can we write there, and is there room?"""

import os
from collections.abc import Iterator
from pathlib import Path

from tarmac.errors import TarmacError
from tarmac.paths import private_dir, remove_scratch, scratch_dir, state_dir
from tarmac.terminals.checkup.finding import Case, Finding, Findings, aside

ROOMY = 4  # full spools: less room than for these is worth a warning
SCRATCH = 16 << 20


async def look_at_storage(case: Case) -> Findings:
    """The spools, then the scratch folders; in a thread, as a file server may be gone."""
    for finding in await aside(lambda: list(_findings(case))):
        yield finding


def _findings(case: Case) -> Iterator[Finding]:
    yield _spools(case)
    yield _scratch(case)


def _spools(case: Case) -> Finding:
    base = case.settings.spool_directory or state_dir(case.environ) / "output"
    trial = base / f".doctor-{os.getpid()}"
    try:
        private_dir(base)
        trial.write_bytes(b"x" * 4096)
        trial.unlink()
        free, kept = _free(base), _size(base)
    except TarmacError as error:
        return Finding(name="kept output", level="problem", what=error.what, advice=_ELSEWHERE)
    except OSError as error:
        what = f"{base} can't be written to: {error.strerror}. Long output is lost"
        return Finding(name="kept output", level="problem", what=what, advice=_ELSEWHERE)
    facts = {"path": str(base), "free": free, "kept": kept}
    said = f"{base}: {_bytes(free)} free, {_bytes(kept)} kept"
    if free < ROOMY * case.settings.spool_limit:
        advice = (
            f"make room: one command may keep {_bytes(case.settings.spool_limit)}; or set TARMAC_STATE_DIR elsewhere"
        )
        return Finding(name="kept output", level="warning", what=said, advice=advice, facts=facts)
    return Finding(name="kept output", level="ok", what=said, facts=facts)


_ELSEWHERE = "set TARMAC_STATE_DIR to a folder of your own, on a disk with room"


def _scratch(case: Case) -> Finding:
    """Each shell has a folder of its own for what it is to run."""
    try:
        folder = scratch_dir(case.environ)
        try:
            (folder / "trial").write_bytes(b"x" * 4096)
            free = _free(folder)
        finally:
            remove_scratch(folder)
    except TarmacError as error:
        return Finding(name="temporary files", level="problem", what=error.what, advice=error.hint)
    except OSError as error:
        what = f"{folder.parent} can't be written to: {error.strerror}. No shell can be given a command"
        return Finding(name="temporary files", level="problem", what=what, advice="set TMPDIR to a folder with room")
    said = f"{folder.parent}: {_bytes(free)} free"
    if free < SCRATCH:
        return Finding(
            name="temporary files",
            level="warning",
            what=said,
            advice="make room there, or set TMPDIR to a folder with some",
        )
    return Finding(name="temporary files", level="ok", what=said, facts={"path": str(folder.parent), "free": free})


def _free(path: Path) -> int:
    found = os.statvfs(path)
    return found.f_bavail * found.f_frsize


def _size(path: Path) -> int:
    return sum(each.stat().st_blocks * 512 for each in path.rglob("*") if each.is_file())


def _bytes(number: int) -> str:
    size, unit = float(number), "bytes"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if size >= 1024:
            size, unit = size / 1024, larger
    return f"{size:.0f} {unit}" if size >= 10 or unit == "bytes" else f"{size:.1f} {unit}"
