"""Row 18 where a command gets next to no processor: what could not act yet was not deaf."""

from pathlib import Path

import pytest
from tests.faults.limits import cgroup
from tests.terminals.test_interrupt import until

from tarmac.terminals import open_terminal
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
