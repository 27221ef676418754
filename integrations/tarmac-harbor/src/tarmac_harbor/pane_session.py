"""What Terminus-2 asks of its terminal, answered by Tarmac: the methods of Harbor's TmuxSession.

send_keys(keys, min_timeout_sec) → SandboxPane.type(keys, wait): returns at the end of the command, not after the time

With tmux `min_timeout_sec` is how long Terminus sleeps. Here it is the longest wait. What the screen shows afterwards
comes back with the same call, so that looking costs no second `exec`.
"""

import tempfile
from pathlib import Path

from harbor.environments.base import BaseEnvironment

from tarmac.fleet.sandbox_pane import ExecOutcome, SandboxPane
from tarmac.terminals.pane import PaneView

LOOK_AGAIN = 0.05  # the least wait: a look costs an exec, so it may as well see the end of what is immediate


class PaneSession:
    """A terminal in a Harbor environment."""

    def __init__(
        self,
        environment: BaseEnvironment,
        *,
        pane_width: int = 160,
        pane_height: int = 40,
        extra_env: dict[str, str] | None = None,
        user: str | int | None = None,
    ) -> None:
        self.environment = environment
        self._extra_env = extra_env
        self._user = user
        self._pane = SandboxPane(self._exec, self._upload, rows=pane_height, columns=pane_width)
        self._last: PaneView | None = None
        self._unseen = ""  # what views brought that nobody has asked for yet
        self._looked = False

    async def start(self) -> None:
        self._last = await self._pane.start(environment=self._extra_env)

    async def stop(self) -> None:
        await self._pane.close()

    async def is_session_alive(self) -> bool:
        """Always, once started: where the shell ends, the next command opens another. A dead environment raises."""
        return self._last is not None

    async def send_keys(
        self,
        keys: str | list[str],
        block: bool = False,
        min_timeout_sec: float = 0.0,
        max_timeout_sec: float = 180.0,
    ) -> None:
        """Type `keys`. Wait for what comes of them, `min_timeout_sec` at most (with `block`, `max_timeout_sec`)."""
        wait = max_timeout_sec if block else max(min_timeout_sec, LOOK_AGAIN)
        for each in [keys] if isinstance(keys, str) else keys:
            self._take(await self._pane.type(each, wait=wait))

    async def capture_pane(self, capture_entire: bool = False) -> str:
        self._take(await self._pane.view())
        assert self._last is not None
        return self._pane.screen_of(self._last)

    async def get_incremental_output(self) -> str:
        """The new output, or the screen of a program that paints one; and how the command stands."""
        if self._last is None or not (self._unseen or self._looked):
            self._take(await self._pane.view())
        assert self._last is not None
        first, self._looked = not self._looked, True
        new, self._unseen = self._unseen, ""
        if first or self._last.drawn or not new.strip():
            return f"Current Terminal Screen:\n{self._pane.screen_of(self._last)}\n{self._last.status}".rstrip("\n")
        return f"New Terminal Output:\n{new}\n{self._last.status}".rstrip("\n")

    def _take(self, view: PaneView) -> None:
        # The line with the prompt is written once, at the end.
        self._unseen = _without_foot(self._unseen) + view.text
        self._last = view

    async def _exec(self, command: str, limit: float) -> ExecOutcome:
        result = await self.environment.exec(command, timeout_sec=int(limit) + 1, user=self._user)
        return ExecOutcome(result.return_code, result.stdout or "", result.stderr or "")

    async def _upload(self, data: bytes, path: str) -> None:
        with tempfile.NamedTemporaryFile() as file:
            file.write(data)
            file.flush()
            await self.environment.upload_file(Path(file.name), path)
        if self._user is not None:  # files are uploaded as root
            await self.environment.exec(f"chmod a+r {path}", user="root")


def _without_foot(text: str) -> str:
    """All but the last line, which is the prompt if it has no end."""
    return text[: text.rfind("\n") + 1]
