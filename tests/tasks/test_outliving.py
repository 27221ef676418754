"""A task that is resumed goes on with the terminals that it had in another program."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.tasks.engine import Seen, an_app, call, done, turn, write_script
from tests.terminals.daemon.conftest import daemon as daemon

from tarmac.tasks.events import ModelTold, Noted
from tarmac.terminals import list_terminals

pytestmark = pytest.mark.shell
COMMAND = "export COLOUR=green; until [ -e go ]; do sleep 0.05; done; echo built; (exit 3)"


async def test_a_resumed_task_goes_on_with_its_terminals(tmp_path: Path, daemon: Path) -> None:
    """F1: its command runs on, the model is told, and shell and exit code are the ones of before."""
    work = tmp_path / "work"
    work.mkdir()
    asks = turn(call("execute_command", command=COMMAND, timeout=0.3))
    model = write_script(tmp_path / "script.toml", asks, turn(text="I wait."))
    outlive: dict[str, object] = {"terminals.outlive": True}
    async with an_app(work, **outlive) as app, app.create_task("Do it.", model=model, auto="all") as task:
        await task.run_until_idle()
        id = task.id
    (left,) = await list_terminals(session=id)
    assert (left.running, left.host, left.command) == (True, None, COMMAND)
    model = write_script(tmp_path / "script.toml", turn(text="Good."), done())
    async with an_app(work, **outlive) as app, app.resume_task(id, model=model, auto="all", attended=False) as task:
        seen = Seen(task)
        await task.say("Go on.")
        told = await seen_told(seen, task.run_until_idle)
        assert f"Your terminals of before are still there: {left.id}" in told
        assert "still runs" in told
        assert any("terminals of before go on" in each.text for each in seen.of(Noted) if isinstance(each, Noted))
        terminal = app.registry.get(left.id)
        running = terminal.current
        assert running is not None
        (work / "go").write_text("")
        result = await running.result(timeout=20)
        assert (result.output, result.exit_code) == ("built\n", 3)
        assert (await terminal.run("echo $COLOUR")).output == "green\n"
        await app.registry.kill(left.id)
    assert await list_terminals() == []


async def seen_told(seen: Seen, run: Callable[[], Awaitable[object]]) -> str:
    """What the model was told about the resumption."""
    await run()
    return "\n".join(each.text for each in seen.of(ModelTold) if isinstance(each, ModelTold))


async def test_a_finished_task_leaves_no_idle_shell(tmp_path: Path, daemon: Path) -> None:
    """F1: what nobody will want is ended with the program."""
    work = tmp_path / "work"
    work.mkdir()
    script = (turn(call("execute_command", command="export A=1; touch made")), done())
    model = write_script(tmp_path / "script.toml", *script)
    async with (
        an_app(work, **{"terminals.outlive": True}) as app,
        app.create_task("Do it.", model=model, auto="all", attended=False) as task,
    ):
        assert (await task.run_until_idle()).why == "completed"
    assert (work / "made").exists()
    assert await list_terminals() == []
