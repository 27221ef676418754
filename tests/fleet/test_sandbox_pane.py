"""A pane in a sandbox that has only `exec`: here the sandbox is a plain process."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tarmac.errors import ConnectionLost, PlaceUnavailable, Trouble
from tarmac.fleet.sandbox_pane import ExecOutcome, SandboxPane
from tarmac.terminals.pane import PaneState

pytestmark = pytest.mark.shell
LONG = 60.0


class ProcessSandbox:
    """Each command is a process with an almost empty environment."""

    def __init__(self, folder: Path, path: str = "/usr/local/bin:/usr/bin:/bin") -> None:
        self.folder = folder
        self.path = path
        self.lost = False

    async def run(self, command: str, limit: float) -> ExecOutcome:
        if self.lost:
            return ExecOutcome(137, "", "the container is not running")
        process = await asyncio.create_subprocess_exec(
            "/bin/bash",
            "-c",
            command,
            cwd=self.folder,
            env={"PATH": self.path, "HOME": str(self.folder), "TMPDIR": str(self.folder)},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await asyncio.wait_for(process.communicate(), limit + LONG)
        return ExecOutcome(process.returncode or 0, out.decode(), err.decode())

    async def upload(self, data: bytes, path: str) -> None:
        Path(path).write_bytes(data)


@pytest.fixture
async def sandbox(tmp_path: Path) -> ProcessSandbox:
    return ProcessSandbox(tmp_path)


@pytest.fixture
async def pane(sandbox: ProcessSandbox) -> AsyncIterator[SandboxPane]:
    pane = SandboxPane(sandbox.run, sandbox.upload)
    await pane.start(cwd=str(sandbox.folder), environment={"STAGE": "blue"})
    yield pane
    sandbox.lost = False
    await pane.close()


async def test_commands_run_there_with_their_exit_codes(pane: SandboxPane, sandbox: ProcessSandbox) -> None:
    """F3, F7."""
    view = await pane.type("echo $STAGE > f; cat f; (exit 3)\n", wait=LONG)
    assert (view.state, view.exit_code) == (PaneState.PROMPT, 3)
    assert "\nblue\n" in view.text
    assert (sandbox.folder / "f").read_text() == "blue\n"


async def test_a_request_longer_than_an_argument_arrives(pane: SandboxPane) -> None:
    """F7."""
    view = await pane.type(f"echo {'x' * 150_000} | wc -c\n", wait=LONG)
    assert "\n150001\n" in view.text


async def test_a_lost_sandbox_is_no_failing_command(pane: SandboxPane, sandbox: ProcessSandbox) -> None:
    """F5."""
    sandbox.lost = True
    with pytest.raises(ConnectionLost):
        await pane.type("true\n", wait=1.0)


async def test_a_sandbox_without_python_is_told_by_type(tmp_path: Path) -> None:
    """F3, F5."""
    (tmp_path / "bin").mkdir()
    for name in ("mktemp", "sh"):
        (tmp_path / "bin" / name).symlink_to(f"/bin/{name}")
    bare = ProcessSandbox(tmp_path, path=str(tmp_path / "bin"))
    pane = SandboxPane(_without_system_python(bare), bare.upload)
    with pytest.raises(PlaceUnavailable) as caught:
        await pane.start()
    assert caught.value.trouble is Trouble.NO_PYTHON


def _without_system_python(sandbox: ProcessSandbox):  # type: ignore[no-untyped-def]
    async def run(command: str, limit: float) -> ExecOutcome:
        return await sandbox.run(
            command.replace("/usr/bin/python3", "/no").replace("/usr/local/bin/python3", "/no"), limit
        )

    return run
