"""The files of a place: what is said of them is what the kernel there says, whatever lies on the way."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tarmac.errors import ConnectionLost, EditFailed, FileUnavailable
from tarmac.file_system import LOCAL, FileSystem
from tarmac.fleet.place_files import PlaceFiles
from tarmac.fleet.remote_terminal import RemoteMachine
from tarmac.policy.files import Files, PathStatus
from tarmac.terminals.host.byte_stream import ByteStream, memory_streams
from tarmac.terminals.host.host import Host
from tarmac.tools.list_files import list_folder


class HostInMemory:
    """A place in this process: the same host and frames, without a connection that takes time."""

    name = "memory:"

    def __init__(self, host: Host) -> None:
        self._host = host
        self.serving: list[asyncio.Task[None]] = []

    async def connect(self, session: str, *, new: bool) -> ByteStream:
        ours, theirs = memory_streams()
        self.serving.append(asyncio.create_task(self._host.serve(theirs)))
        return ours


@asynccontextmanager
async def place_files() -> AsyncIterator[tuple[PlaceFiles, RemoteMachine]]:
    async with Host() as host:
        transport = HostInMemory(host)
        async with RemoteMachine(transport) as machine:
            yield PlaceFiles(machine.connection), machine
        await asyncio.gather(*transport.serving)


def tree(root: Path) -> Path:
    """A workspace with everything that makes a path mean another thing."""
    work = root / "work"
    (work / "a/b").mkdir(parents=True)
    (root / "out").mkdir()
    (root / "out/far.txt").write_text("far")
    (work / ".tarmacignore").write_text("*.secret\n")
    (work / "a/.rooignore").write_text("b/x\n")
    (work / ".gitignore").write_text("build/\n*.o\n")
    (work / "build").mkdir()
    for name in ("a/b/x", "a/b/y", "plain", "k.secret", "m.o", "build/made", ".env"):
        (work / name).write_text(name)
    (work / "b\udcff\n").write_text("odd")
    os.link(work / "plain", work / "other-name")
    (work / "inner").symlink_to("a/b")
    (work / "outer").symlink_to("../out")
    (work / "loop").symlink_to("loop")
    (work / "dangling").symlink_to("nowhere/at/all")
    os.mkfifo(work / "pipe")
    (root / "alias").symlink_to("work")
    return work


PATHS = (
    "plain", "other-name", "a", "a/b/x", "a/b/y", "inner/x", "inner/y", "inner/../b/x", "outer/far.txt", "outer/new",
    "outer/../work/plain", "loop", "loop/x", "dangling", "pipe", "k.secret", "missing/deep/x", "plain/below", ".env",
    "../out/far.txt", "/etc/passwd", "/dev/null", ".", "..", "b\udcff\n", ".git/config", "a" * 300, "x\0y",
)  # fmt: skip


def looks(files: Files, workspace: Path) -> list[PathStatus]:
    return [files.look(each, cwd=workspace, workspace=workspace) for each in PATHS]


async def test_a_path_of_a_place_means_what_the_kernel_there_says(tmp_path: Path) -> None:
    """F2: the same look, over requests; by the workspace's own name and by that of a link to it."""
    work = tree(tmp_path)
    async with place_files() as (there, _):
        for workspace in (work, tmp_path / "alias"):
            local, remote = Files(), Files(system=there)
            for path in PATHS:
                seen = await asyncio.to_thread(remote.afresh().look, path, cwd=workspace, workspace=workspace)
                assert seen == local.look(path, cwd=workspace, workspace=workspace), path
            kept = remote.afresh()  # which answers many questions from what it remembers
            both = await asyncio.to_thread(looks, kept, workspace)
            assert both == looks(local, workspace)


async def test_a_folder_of_a_place_is_listed_as_here(tmp_path: Path) -> None:
    """F2."""
    work = tree(tmp_path)
    async with place_files() as (there, _):
        files, here = Files(system=there), Files()

        def listed(system: FileSystem, judge: Files) -> tuple[str, ...]:
            def hidden(path: Path) -> bool:
                return bool(judge.look(path, cwd=work, workspace=work).ignored)

            return list_folder(work, recursive=True, most=200, hidden=hidden, system=system).names

        fresh = files.afresh()
        assert await asyncio.to_thread(listed, fresh.system, fresh) == listed(LOCAL, here)
        with pytest.raises(FileUnavailable, match="not a directory"):
            await asyncio.to_thread(
                list_folder, work / "plain", recursive=False, most=9, hidden=None, system=files.afresh().system
            )


async def test_a_file_of_a_place_is_written_with_the_same_checks(tmp_path: Path) -> None:
    """F2: atomic, with its mode, and not over what somebody else wrote."""
    path = tmp_path / "run.sh"
    path.write_text("one\n")
    path.chmod(0o755)
    async with place_files() as (there, _):
        saved = await asyncio.to_thread(there.save, path, b"two\n", expected=b"one\n")
        assert (saved.created, path.read_text(), path.stat().st_mode & 0o777) == (False, "two\n", 0o755)
        with pytest.raises(EditFailed, match="was changed by somebody else"):
            await asyncio.to_thread(there.save, path, b"three\n", expected=b"one\n")
        with pytest.raises(EditFailed, match="was made by somebody else"):
            await asyncio.to_thread(there.save, path, b"three\n", new=True)
        with pytest.raises(FileUnavailable, match="is a folder"):
            await asyncio.to_thread(there.read, tmp_path)
        with pytest.raises(FileUnavailable, match="at most 3 are read"):
            await asyncio.to_thread(lambda: there.read(path, most=3))
        assert await asyncio.to_thread(there.read, tmp_path / "missing") is None
        await asyncio.to_thread(there.remove, path, expected=b"two\n")
        assert not path.exists()


async def test_a_place_that_is_lost_says_nothing_of_its_files(tmp_path: Path) -> None:
    """F5: that a path can't be looked at is a failure of the place. It does not mean that there is no file."""
    async with place_files() as (there, machine):
        files = Files(system=there)
        await machine.connection.aclose()
        with pytest.raises(ConnectionLost):
            await asyncio.to_thread(files.look, "x", cwd=tmp_path, workspace=tmp_path)
        with pytest.raises(ConnectionLost):
            await asyncio.to_thread(there.read, tmp_path / "x")


async def test_files_of_a_place_are_never_waited_for_in_the_event_loop(tmp_path: Path) -> None:
    """F2: that would wait for ever."""
    async with place_files() as (there, _):
        with pytest.raises(AssertionError, match="in a thread"):
            there.lstat(str(tmp_path))
