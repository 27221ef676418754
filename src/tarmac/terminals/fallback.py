"""A live shell that, if its integration does not come up, is replaced by `exec` once and for all (T21)."""

import time
from pathlib import Path

from tarmac.terminals import events
from tarmac.terminals.exec import ExecTerminal
from tarmac.terminals.execution import Execution
from tarmac.terminals.pty_terminal import NoIntegration, PtyTerminal


class FallbackTerminal(PtyTerminal):
    """A `PtyTerminal` whose commands go through `exec` when there is no integration: once, never twice."""

    _instead: ExecTerminal | None = None

    async def open(self) -> None:
        try:
            await super().open()
        except NoIntegration as error:
            await self._fall_back(error.what)

    async def _fall_back(self, why: str) -> None:
        self._instead = ExecTerminal(
            self.shell,
            id=self.id,
            cwd=self.cwd,
            settings=self.settings,
            base_env=self.env,
            name=self.name,
            task=self.task,
        )
        self._emit(events.NoShellIntegration(at=time.monotonic(), terminal=self.id, why=why))
        self._emit_quality()
        self._why = why

    async def _begin(self, command: str, data: bytes, *, cwd: Path | None, input_open: bool) -> Execution:
        if self._instead is None:
            try:
                return await super()._begin(command, data, cwd=cwd, input_open=input_open)
            except NoIntegration as error:  # a fresh shell did not come up either
                await self._fall_back(error.what)
        assert self._instead is not None
        execution = await self._instead._begin(command, data, cwd=cwd or self.cwd, input_open=input_open)
        execution.notes.append(f"no shell integration ({self._why}): it ran by itself, `cd` and variables do not last")
        self.current = execution
        return execution
