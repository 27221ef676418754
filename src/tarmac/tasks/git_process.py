"""Run git within a limit of time, and end what runs.

start(words, env, cwd) … → ends(those, until) → what each printed, or SnapshotFailed
"""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path


class SnapshotFailed(Exception):
    """No snapshot could be taken. The text says why."""


class GitFailed(SnapshotFailed):
    """Git said no."""

    def __init__(self, why: str, code: int) -> None:
        super().__init__(why)
        self.code = code


class GitProcesses:
    """Those of one caller. Several may run at once, for one call of `ends`."""

    def __init__(self) -> None:
        self._program: str | None = None
        self._running: set[subprocess.Popen[bytes]] = set()
        self._closed = False

    def close(self) -> None:
        """End what runs, and start no more."""
        self._closed = True
        for each in list(self._running):
            _kill(each)

    def start(
        self, words: Sequence[str], env: Mapping[str, str], cwd: Path, *, piped: bool = False
    ) -> "subprocess.Popen[bytes]":
        self._program = self._program or shutil.which("git")
        if self._program is None:
            raise SnapshotFailed("git is not installed")
        if self._closed:
            raise SnapshotFailed("the task was closed")
        try:
            started = subprocess.Popen(
                [self._program, *words],
                cwd=cwd,
                env=env,
                stdin=subprocess.PIPE if piped else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
            self._running.add(started)
            return started
        except OSError as error:
            raise SnapshotFailed(f"git can't be run: {error.strerror}") from None

    def ends(
        self, running: "Sequence[subprocess.Popen[bytes]]", until: float, given: bytes | None = None
    ) -> list[bytes]:
        """Their outputs. None of them runs on, whatever happens."""
        try:
            return [self._end(each, until, given) for each in running]
        finally:
            for each in running:
                if each.poll() is None:
                    _kill(each)
                    each.wait()
                self._running.discard(each)
                for pipe in (each.stdin, each.stdout, each.stderr):
                    if pipe is not None:
                        pipe.close()

    def _end(self, running: "subprocess.Popen[bytes]", until: float, given: bytes | None) -> bytes:
        try:
            out, err = running.communicate(given, timeout=max(until - time.monotonic(), 0.01))
        except subprocess.TimeoutExpired:
            raise SnapshotFailed("git took too long") from None
        if running.returncode:
            why = err.decode("utf-8", "replace").strip().rpartition("\n")[2]
            raise GitFailed(why or f"exit {running.returncode}", running.returncode)
        return out


def _kill(running: "subprocess.Popen[bytes]") -> None:
    """With all that it started."""
    try:
        os.killpg(running.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def environment() -> dict[str, str]:
    """Without what others told their own git."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return kept | {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
