"""Row 22: ten thousand commands in one terminal."""

import gc
import os
from pathlib import Path

from tarmac.terminals import open_terminal
from tarmac.terminals.process import processes
from tarmac.terminals.shell.pty_terminal import PtyTerminal


async def test_ten_thousand_commands_leave_nothing_behind(tmp_path: Path) -> None:
    """T17: no zombie, no descriptor, and no memory that grows with their number."""
    async with open_terminal(cwd=tmp_path, shell="bash") as terminal:
        assert isinstance(terminal, PtyTerminal) and terminal.session is not None
        pid = terminal.session.pid

        async def commands(count: int) -> None:
            for number in range(count):
                command = "true" if number % 50 else "/bin/echo out; true | cat; sh -c 'exit 1' &"
                assert (await terminal.run(command, timeout=60)).exit_code == 0

        await commands(1000)  # histories and caches are full, pools are warm
        before = _weight(pid)
        await commands(9000)
        await terminal.run("wait")
        after = _weight(pid)
        assert [each for _, each in processes.below(pid) if each and not each.alive] == []
    assert after[:2] == before[:2]
    assert after[2] <= before[2] * 1.05 + (1 << 20), (before, after)
    assert after[3] <= before[3] * 1.05 + (256 << 10), (before, after)


def _weight(shell: int) -> tuple[int, int, int, int]:
    """Descriptors of ours and of the shell, memory of ours and of the shell."""
    gc.collect()
    pids = (os.getpid(), shell)
    fds = [len(list(Path(f"/proc/{pid}/fd").iterdir())) for pid in pids]
    pages = [int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in pids]
    return fds[0], fds[1], pages[0] * 4096, pages[1] * 4096
