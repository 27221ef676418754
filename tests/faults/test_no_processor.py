"""Row 18 where a command gets next to no processor: what could not act yet was not deaf."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from tests.faults.limits import cgroup
from tests.terminals.test_interrupt import until

from tarmac.terminals import Settings, open_terminal
from tarmac.terminals.shell.pty_terminal import PtyTerminal

COMMANDS = (
    "echo ready; sleep 100",
    "echo ready; sh -c 'sleep 100; sleep 100'",
    "python3 -c 'import time; print(\"ready\", flush=True); time.sleep(100)'",
)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
async def test_ctrl_c_is_waited_for_where_there_is_no_processor(tmp_path: Path, shell: str) -> None:
    """T17: with 5 ms of processor a second, as a container may have. It ends with 130, and the shell lives."""
    with cgroup("cpu", cpu_cfs_period_us=1_000_000, cpu_cfs_quota_us=-1) as group:
        async with open_terminal(cwd=tmp_path, shell=shell) as terminal:
            assert isinstance(terminal, PtyTerminal) and terminal.session is not None
            for command in COMMANDS:
                (group / "cgroup.procs").write_text(str(terminal.session.pid))
                execution = await terminal.start(command)
                await until(execution, "ready")
                (group / "cpu.cfs_quota_us").write_text("5000")
                await execution.interrupt()
                result = await execution.result(timeout=60)
                (group / "cpu.cfs_quota_us").write_text("-1")
                assert (result.exit_code, result.reason, result.notes) == (130, "interrupted", ()), command
                assert not (await terminal.run("echo same", timeout=60)).fresh_shell


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
async def test_a_shell_that_gets_no_processor_is_waited_for(
    tmp_path: Path, shell: str, own_state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T4: its start takes longer by the clock than it may, and not by its own time. It is a live shell all the same."""
    for name in ("ZDOTDIR", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    with cgroup("cpu", cpu_cfs_period_us=1_000_000, cpu_cfs_quota_us=50_000) as group:
        file = own_state / {"bash": ".bashrc", "zsh": ".zshrc", "fish": ".config/fish/config.fish"}[shell]
        file.parent.mkdir(parents=True, exist_ok=True)
        pid = "$fish_pid" if shell == "fish" else "$$"
        file.write_text(f"echo {pid} > {group}/cgroup.procs\n{sys.executable} -c 'sum(range(8_000_000))'\n")
        async with open_terminal(cwd=tmp_path, shell=shell, settings=Settings(shell_integration_timeout=2)) as terminal:
            assert isinstance(terminal, PtyTerminal), "it was given up"
            (group / "cpu.cfs_quota_us").write_text("-1")
            assert (await terminal.run("echo same", timeout=60)).notes == ()


@pytest.mark.parametrize("shell", ["bash", "zsh"])  # of fish, another thread waits for a processor
async def test_an_environment_is_waited_for_where_there_is_no_processor(tmp_path: Path, shell: str) -> None:
    """T31: the shell's own time counts. Chance decides when the shell is let run, so it is asked three times."""
    settings = Settings(shell_integration_timeout=1)
    with cgroup("cpu", cpu_cfs_period_us=1_000_000, cpu_cfs_quota_us=-1) as group:
        async with open_terminal(cwd=tmp_path, shell=shell) as terminal:
            assert isinstance(terminal, PtyTerminal) and terminal.session is not None
            await terminal.run("export COLOUR=green")
            terminal.settings = settings
            (group / "cgroup.procs").write_text(str(terminal.session.pid))
            (group / "cpu.cfs_quota_us").write_text("1000")
            others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(3)]  # noqa: ASYNC220
            try:
                for other in others:
                    (group / "cgroup.procs").write_text(str(other.pid))
                for _ in range(3):
                    await asyncio.sleep(1)  # they use up what there is
                    changed = await terminal.environment()
            finally:
                (group / "cpu.cfs_quota_us").write_text("-1")
                for other in others:
                    other.kill()
                    other.wait()
            assert changed["COLOUR"] == "green"
            assert (await terminal.run("echo same", timeout=60)).output == "same\n"
