"""Judge what an agent wants to do. Order: floor > ask always > the user's longest match > built-in allow."""

from pathlib import Path
from typing import Protocol

from tarmac.events import TaskId
from tarmac.policy.actions import Action, Execute, KillTerminal, OpenTerminal, ReadFile, SendInput, WriteFile
from tarmac.policy.settings import PolicySettings, PrefixRules
from tarmac.policy.verdict import Verdict


class Grants(Protocol):
    """What the person allowed before. The policy asks; it never stores."""

    def covers_line(self, line: str, *, cwd: Path, workspace: Path, task: TaskId | None) -> str | None:
        """The id of a grant for exactly this line, in this place."""

    def covers_words(self, words: tuple[str, ...], *, workspace: Path, task: TaskId | None) -> str | None:
        """The id of a grant for a prefix of these words."""

    @property
    def trouble(self) -> str | None:
        """Why the stored grants can't be trusted: then everything asks."""


class Policy:
    """The judge. It holds rules and a cache, and no process."""

    def __init__(
        self,
        settings: PolicySettings | None = None,
        *,
        rules: PrefixRules | None = None,
        grants: Grants | None = None,
    ) -> None:
        self.settings = settings or PolicySettings()
        self.rules = rules or PrefixRules()
        self.grants = grants

    async def judge(self, action: Action, *, workspace: Path, task: TaskId | None = None) -> Verdict:
        """May this be done? It never raises for what the action holds, and never waits for a person."""
        match action:
            case Execute():
                part = action.command
            case OpenTerminal() | KillTerminal() | SendInput() | ReadFile() | WriteFile():
                part = type(action).__name__
        return Verdict(
            decision="ask",
            risk="medium",
            reason="it is not known what this does",
            part=part,
            explanation="runs something that is not known",
            rule="ask.unknown",
        )
