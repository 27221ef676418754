"""Where a terminal keeps what its commands print: one folder, one file a command, and what is left of it later."""

import math
import os
import time
from pathlib import Path
from typing import Final
from weakref import WeakSet

from tarmac.errors import TarmacError
from tarmac.paths import private_dir, remove_scratch, state_dir
from tarmac.terminals.output.spool import Spool
from tarmac.terminals.settings import Settings

SWEEP_EVERY: Final = 3600.0  # seconds: to look at all that is kept, for each command, would cost more the more there is
_swept: dict[Path, float] = {}  # when this process last looked through a folder


class Spools:
    """The spools of one terminal. Their folder is named by its cookie: `survivors` reads it there."""

    def __init__(self, cookie: str, settings: Settings) -> None:
        self._cookie = cookie
        self._settings = settings
        self._folder: Path | None = None
        self._live: WeakSet[Spool] = WeakSet()  # those somebody may still read; the others are known by their files
        self._kept: set[str] = set()  # the names of files that are worth keeping

    def new(self, number: int) -> Spool:
        """The spool of command `number`. It never fails: without a place it keeps little, and the result says why."""
        no_place = ""
        try:
            folder = self.folder()
        except OSError as error:  # no room, no right
            folder = Path(os.devnull)
            no_place = error.what if isinstance(error, TarmacError) else str(error)
        spool = Spool(folder / f"{number}.out", limit=self._settings.spool_limit, no_place=no_place, kept=self._kept)
        self._live.add(spool)
        return spool

    def folder(self) -> Path:
        """The folder, made when it is first asked for."""
        if self._folder is None:
            base = self._settings.spool_directory or state_dir(os.environ) / "output"
            private_dir(base)
            if time.monotonic() - _swept.get(base, -math.inf) > SWEEP_EVERY:
                _swept[base] = time.monotonic()
                sweep_old(base, older_than=self._settings.spool_days * 86400)
            folder = base / self._cookie
            folder.mkdir(mode=0o700)
            self._folder = folder
        return self._folder

    def clear(self) -> None:
        """Only what was too long for its result is worth keeping on disk after the terminal is gone."""
        if self._folder is None:
            return
        for spool in list(self._live):
            if not spool.worth_keeping:
                spool.remove()
        try:
            for file in self._folder.iterdir():
                if file.name not in self._kept:
                    file.unlink()
            self._folder.rmdir()
        except OSError:
            pass


def sweep_old(folder: Path, *, older_than: float) -> None:
    """Remove output that was kept by terminals long gone."""
    limit = time.time() - older_than
    try:
        for each in folder.iterdir():
            if each.stat().st_mtime < limit:
                remove_scratch(each)
    except OSError:
        pass
