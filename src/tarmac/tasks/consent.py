"""Ask once whether a workspace may replace what Tarmac tells the model: the system prompt, or one of the modes.

Consent(state, questions)
    settle()        before a request: ask about what is new, and put our own mode back where the answer was no
    replacement()   the system prompt of the workspace, if a person approved exactly this text

An answer is kept by a hash of the workspace and the text. A file that changes is asked about again. Nothing is replaced
without a person. A file is checked each time it is read, so that a swap after the answer changes nothing.
"""

import asyncio
import contextlib
from collections.abc import Mapping
from hashlib import sha256
from typing import Final

from tarmac.policy.approval import AnswerKind
from tarmac.prompts.instructions import Replacement, read_replacement
from tarmac.prompts.mode import Mode
from tarmac.tasks.context import now
from tarmac.tasks.events import Noted
from tarmac.tasks.questions import Questions, words
from tarmac.tasks.state import TaskState

LONGEST_SHOWN: Final = 3000  # characters of a text that is asked about


class Consent:
    """What a workspace may replace in one task."""

    def __init__(self, state: TaskState, questions: Questions) -> None:
        self._state = state
        self._questions = questions
        self._file = state.context.cache.parent / "workspace-prompts"
        self._declined: set[str] = set()  # in this process
        self._noted: set[str] = set()

    async def settle(self) -> None:
        """Ask about a mode and a system prompt of the workspace that replace ours, if no answer is known."""
        state = self._state
        mode = state.mode
        ours = state.context.modes.replaced.get(mode.slug) if mode.source == "workspace" else None
        what = f"the file {mode.origin} replaces the mode {mode.slug}"
        if ours and not await self._agreed(what, _mode_text(mode)):
            state.use_modes(state.context.modes.without(mode))
        found = await asyncio.to_thread(self._read)
        if found and not found.theirs:
            await self._agreed(f"the file {found.name} replaces the system prompt", found.text)

    def replacement(self) -> Replacement | None:
        """The system prompt to use in place of ours. Reads files."""
        found = self._read()
        if found is None or found.theirs or self._answers().get(self._digest(found.text)):
            return found
        context = self._state.context
        folder = context.settings.user_folder
        return read_replacement(context.project, folder, self._state.mode.slug, of_workspace=False)[0]

    def _read(self) -> Replacement | None:
        context = self._state.context
        return read_replacement(context.project, context.settings.user_folder, self._state.mode.slug)[0]

    async def _agreed(self, what: str, text: str) -> bool:
        state, digest = self._state, self._digest(text)
        known = (await asyncio.to_thread(self._answers)).get(digest)
        if known:
            return True
        if known is None and digest not in self._declined and state.attended:
            answered = await self._questions.ask(
                "workspace_prompt",
                f"In this workspace, {what}. This is its text:\n\n{_shortened(text)}",
                timeout=state.context.settings.approval_timeout,
                follows=words,
            )
            if answered.answer in (AnswerKind.YES, AnswerKind.NO):
                known = answered.answer is AnswerKind.YES
                await asyncio.to_thread(self._keep, digest, agreed=known)
            if known:
                return True
            self._declined.add(digest)
        if digest not in self._noted:
            self._noted.add(digest)
            why = "nobody is here to approve it" if known is None and not state.attended else "you did not approve it"
            hint = f"; remove {self._file} to be asked again" if known is False else ""
            state.add(Noted(at=now(), what="notice", text=f"not used: {what}, and {why}{hint}"))
        return False

    def _digest(self, text: str) -> str:
        return sha256(f"{self._state.context.workspace}\0{text}".encode("utf-8", "surrogatepass")).hexdigest()

    def _answers(self) -> Mapping[str, bool]:
        try:
            rows = [row.split() for row in self._file.read_text("ascii").splitlines()]
        except (OSError, UnicodeDecodeError):
            return {}
        return {row[1]: row[0] == "yes" for row in rows if len(row) == 2}

    def _keep(self, digest: str, *, agreed: bool) -> None:
        with contextlib.suppress(OSError):  # then it is asked again
            self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with self._file.open("a") as file:
                file.write(f"{'yes' if agreed else 'no'} {digest}\n")


def _mode_text(mode: Mode) -> str:
    """All of a mode that the model is told or that decides what it may do."""
    groups = ", ".join(
        f"{each.group} ({each.file_pattern})" if each.file_pattern else each.group for each in mode.groups
    )
    rows = {"name": mode.name, "role": mode.role, "tools": groups, "use": mode.when, "more": mode.instructions}
    return "\n".join(f"{name}: {value}" for name, value in rows.items() if value)


def _shortened(text: str) -> str:
    if len(text) <= LONGEST_SHOWN:
        return text
    return f"{text[:LONGEST_SHOWN]}\n… {len(text) - LONGEST_SHOWN:,} characters more are in the file"
