"""Terminus-2, unchanged but for its terminal."""

from typing import override

from harbor.agents.terminus_2 import Terminus2
from harbor.environments.base import BaseEnvironment

import tarmac
from tarmac.errors import PlaceUnavailable, Trouble
from tarmac_harbor.pane_session import PaneSession


class TarmacTerminus(Terminus2):
    """Terminus-2's prompt, parser, loop and summaries, on a Tarmac terminal.

    Where the environment has no Python 3.11, it is Terminus-2 with tmux, and the log says so.
    """

    @staticmethod
    @override
    def name() -> str:
        return "tarmac-terminus-2"

    @override
    def version(self) -> str:
        return f"{super().version()}+tarmac.{tarmac.__version__}"

    @override
    async def setup(self, environment: BaseEnvironment) -> None:
        session = PaneSession(
            environment,
            pane_width=self.options.tmux_pane_width,
            pane_height=self.options.tmux_pane_height,
            extra_env=self._extra_env,
            user=environment.default_user,
        )
        try:
            await session.start()
        except PlaceUnavailable as error:
            if error.trouble not in (Trouble.NO_PYTHON, Trouble.OLD_PYTHON):
                raise
            self.logger.warning("%s: this trial uses tmux", error)
            await super().setup(environment)
            return
        self._session = session  # type: ignore[assignment]
