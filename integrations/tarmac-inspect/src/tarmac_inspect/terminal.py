"""`terminal()`: keys in, what came of them out. One terminal for each sample (or `instance`), in its sandbox.

The terminal lives in the sandbox; a call is one `exec` there. Where it lives is kept in inspect's store, so calls,
solvers and agents of one sample share it.
"""

import shlex

from inspect_ai.tool import Tool, ToolError, tool
from inspect_ai.util import SandboxEnvironment, StoreModel, sandbox, store_as
from pydantic import Field

from tarmac.errors import PlaceFailed, PlaceUnavailable
from tarmac.fleet.sandbox_pane import ExecOutcome, SandboxPane

LONGEST_WAIT = 300.0


class TerminalStore(StoreModel):
    folder: str = Field(default="")
    python: str = Field(default="")


@tool
def terminal(
    *,
    wait: float = 30.0,
    rows: int = 40,
    columns: int = 120,
    sandbox_name: str | None = None,
    user: str | None = None,
    instance: str | None = None,
) -> Tool:
    """A real terminal in the sandbox.

    Args:
      wait: Seconds to wait at most, where the model does not say.
      rows: Its height.
      columns: Its width.
      sandbox_name: The sandbox, where a sample has several.
      user: Whose shell it is.
      instance: Each name is another terminal. Default: one for the sample.
    """

    async def execute(keys: str, wait: float = wait) -> str:
        """
        Type into a terminal with a bash shell that stays open.

        The directory, variables and background jobs last from call to call. The call returns as soon as the command
        has ended or asks for input, so a generous wait costs nothing. The last line of the result says how it stands:
        the exit code, still running, or waiting for input.

        Args:
          keys: What to type. End a command with a newline, or it will not run. A single name is a key: C-c, C-d,
            Enter, Escape, Tab, Up, Down. An empty text only waits for what is running.
          wait: Seconds to wait at most for the end of the command.

        Returns:
          The new output, and how the command stands.
        """
        where = sandbox(sandbox_name)
        held = store_as(TerminalStore, instance=instance)
        pane = _pane(where, user, rows=rows, columns=columns, address=(held.folder, held.python))
        try:
            if not held.folder:
                await pane.start()
                held.folder, held.python = pane.address
            view = await pane.type(keys, wait=min(max(wait, 0.0), LONGEST_WAIT))
        except PlaceUnavailable as error:
            raise ToolError(str(error)) from error
        except PlaceFailed as error:  # the sandbox, not the command: end the sample, and don't score it
            raise RuntimeError(str(error)) from error
        shown = pane.screen_of(view) if view.drawn else view.text
        return f"{shown}\n{view.status}".strip("\n")

    return execute


def _pane(
    where: SandboxEnvironment, user: str | None, *, rows: int, columns: int, address: tuple[str, str]
) -> SandboxPane:
    async def run(command: str, limit: float) -> ExecOutcome:
        done = await where.exec(["bash", "-c", command], user=user, timeout=int(limit) + 1, timeout_retry=False)
        return ExecOutcome(done.returncode, done.stdout, done.stderr)

    async def upload(data: bytes, path: str) -> None:
        await where.write_file(path, data)
        if user is not None:
            await where.exec(["bash", "-c", f"chmod a+r {shlex.quote(path)}"])

    return SandboxPane(run, upload, rows=rows, columns=columns, address=address)
