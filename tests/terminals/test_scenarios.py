"""The seeds' scenarios, word for word (T36).

Seed 000, "典型场景分析" 1 to 3; seed 002, "场景重现". Their `cwd="/"`, `/app` and `/project` stand below a directory of
the test's own; the third command of scenario 1 has the result that seed 002 wants: a switch, no second terminal.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tarmac.terminals import Result, Settings, TerminalRegistry
from tarmac.terminals import events as ev
from tarmac.terminals.terminal import Terminal

pytestmark = pytest.mark.shell


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    for name in ("app", "project/src"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "project" / "file").write_text("content\n")
    yield tmp_path


async def execute_command(
    terminals: TerminalRegistry, command: str, *, cwd: Path, task: str
) -> tuple[Terminal, Result]:
    """What the seeds call execute_command: a terminal of the registry, and the command in it."""
    async with terminals.lease(cwd=cwd, task=task) as terminal:
        return terminal, await terminal.run(command, timeout=20)


async def test_scenario_1_successive_cd(root: Path) -> None:
    """T36: seed 000, scenario 1 (连续 cd 操作)."""
    async with TerminalRegistry(Settings()) as terminals:
        # 1. execute_command("cd /app", cwd="/") → 创建 Terminal-1 (taskId=A, cwd="/") → 执行后 cwd = "/app"
        terminal_1, _ = await execute_command(terminals, f"cd {root}/app", cwd=root, task="A")
        assert (terminal_1.task, terminal_1.initial_cwd, terminal_1.cwd) == ("A", root, root / "app")
        # 2. execute_command("ls", cwd="/app") → Terminal-1.getCurrentWorkingDirectory() === "/app"? ✓ → 复用 Terminal-1
        terminal, _ = await execute_command(terminals, "ls", cwd=root / "app", task="A")
        assert (terminal, terminal.moves) == (terminal_1, 0)
        # 3. execute_command("pwd", cwd="/") → 002: a switch of Terminal-1, no Terminal-2
        terminal, result = await execute_command(terminals, "pwd", cwd=root, task="A")
        assert (terminal, terminal.moves, result.output) == (terminal_1, 1, f"{root}\n")
        assert terminals.listing() == [terminal_1]


async def test_scenario_2_tasks_at_once(root: Path) -> None:
    """T36: seed 000, scenario 2 (多任务并发)."""
    project = root / "project"
    async with TerminalRegistry(Settings()) as terminals:
        # 1. 任务 A: execute_command("npm install", cwd="/project") → 创建 Terminal-1 (taskId=A) → busy = true
        terminal_1 = await terminals.get_or_create(cwd=project, task="A")
        npm_install = await terminal_1.start("npm() { read line; }; npm install")
        assert (terminal_1.task, terminal_1.cwd, terminal_1.busy) == ("A", project, True)
        # 2. 任务 B: execute_command("ls", cwd="/project") → Terminal-1.busy === true ✗ → 创建 Terminal-2 (taskId=B)
        terminal_2, result = await execute_command(terminals, "ls", cwd=project, task="B")
        assert terminal_2 is not terminal_1
        assert (terminal_2.task, terminal_2.cwd, result.output.split()) == ("B", project, ["file", "src"])
        # 3. 任务 A 完成 → releaseTerminalsForTask("A") → Terminal-1.taskId = undefined（变为背景终端）
        await npm_install.send("\n")
        await npm_install.result(timeout=10)
        terminals.release_for_task("A")
        assert (terminal_1.task, terminals.background()) == (None, [terminal_1])
        # 4. 任务 B: execute_command("cat file", cwd="/project") → 第一优先级：无匹配 ✗ (so Terminal-2 is busy now)
        # → 第二优先级：Terminal-1.busy === false, cwd 匹配 ✓ → 复用 Terminal-1（现在绑定到任务 B）
        await terminal_2.start("read line")
        terminal, result = await execute_command(terminals, "cat file; declare -F npm", cwd=project, task="B")
        assert (terminal, terminal.task, result.output) == (terminal_1, "B", "content\n")  # and npm() of A is gone
        assert terminals.listing() == [terminal_1, terminal_2]


async def test_scenario_3_no_shell_integration(root: Path, own_state: Path) -> None:
    """T36: seed 000, scenario 3 (Shell Integration 失败)."""
    (own_state / ".bashrc").write_text("read -p 'update? [y/n] ' answer\n")
    seen: list[str] = []
    async with TerminalRegistry(Settings(shell_integration_timeout=0.5)) as terminals:
        terminals.subscribe(lambda each: seen.append(each.why) if isinstance(each, ev.NoShellIntegration) else None)
        # 1. execute_command("ls", cwd="/project") → 超时：emit("no_shell_integration") → 降级到 execa provider
        terminal, result = await execute_command(terminals, "echo ran >>log; ls", cwd=root / "project", task="A")
        assert (terminal.provider, result.exit_code, len(seen)) == ("exec", 0, 1)
        # 2. 后续命令 → 使用 ExecaTerminal → getCurrentWorkingDirectory() 始终返回 initialCwd
        again, result = await execute_command(terminals, "cd src; pwd", cwd=root / "project", task="A")
        assert (again, result.output, len(seen)) == (terminal, f"{root}/project/src\n", 1)
        assert (again.cwd, again.initial_cwd) == (root / "project", root / "project")
        assert (root / "project" / "log").read_text() == "ran\n"


async def test_scenario_of_seed_002(root: Path) -> None:
    """T36: seed 002, 场景重现: `/project` → `cd src` → `/project`, and no second terminal."""
    project = root / "project"
    async with TerminalRegistry(Settings()) as terminals:
        # 1. 任务 A 在 /project 目录执行命令 → 创建 Terminal-1 (taskId=A, cwd=/project)
        terminal_1, _ = await execute_command(terminals, "ls", cwd=project, task="A")
        # 2. 执行 cd src 命令 → Terminal-1 的 cwd 更新为 /project/src
        terminal, result = await execute_command(terminals, "cd src", cwd=project, task="A")
        assert (terminal, terminal.cwd, result.cwd) == (terminal_1, project / "src", project / "src")
        # 3. 任务 A 再次执行命令，请求 cwd=/project → Terminal-1, switched
        terminal, result = await execute_command(terminals, "pwd", cwd=project, task="A")
        assert (terminal, terminal.moves, result.output) == (terminal_1, 1, f"{project}\n")
        assert terminals.listing() == [terminal_1]
        said = f"reused {terminal_1.id}: bound to this task, moved from {project}/src to {project}, 1st move of 5"
        assert terminals.why(terminal_1) == said


async def test_seed_002_limits_how_often_a_terminal_is_switched(root: Path) -> None:
    """T36: seed 002: 限制最多切换 5 次，超过后建议创建新终端."""
    project = root / "project"
    async with TerminalRegistry(Settings()) as terminals:
        used = []
        for _ in range(7):
            terminal, _ = await execute_command(terminals, "cd src", cwd=project, task="A")
            used.append((terminal.id, terminal.moves))
        first, second = (each.id for each in terminals.listing(task="A"))
        assert used == [*((first, moves) for moves in range(6)), (second, 0)]
