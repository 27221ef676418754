"""Real editors drive `tarmac acp`, by hand: Neovim with CodeCompanion, and Emacs with agent-shell (`make editors`).

Each editor runs in one of our own terminals. The test types keys and reads the screen, as a person does. The editor's
configuration is the one in docs/acp.md. What both sides said is written to `transcripts`, and test_transcripts.py
replays it in CI.
"""

import asyncio
import os
import re
import shlex
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.acp.test_transcripts import TRANSCRIPTS, WHOLE_LOOP
from tests.acp.wire_tap import keep, tapped

from tarmac.terminals import open_terminal
from tarmac.terminals.execution import Execution
from tarmac.vt.keys import keys

pytestmark = [pytest.mark.editors, pytest.mark.shell]
REPOSITORY = Path(__file__).parents[2]
LIMIT = 90.0  # seconds for anything to appear
PLUGINS = Path(os.environ.get("PLUGINS", "plugins")).absolute()


# Debian's LuaJIT has the `coroutine.running` of Lua 5.2, which CodeCompanion does not expect.
LUA_51 = """
local running = coroutine.running
coroutine.running = function()
  local thread, main = running()
  return not main and thread or nil
end
"""


class Screen:
    """An editor in a terminal."""

    def __init__(self, execution: Execution, tape: Path) -> None:
        self._execution, self._tape = execution, tape

    async def type(self, text: str, *named: str) -> None:
        """Letters as they are; then keys by their names."""
        await self._execution.send(text.encode() + b"".join(map(keys, named)))

    async def shows(self, *texts: str) -> str:
        """Wait until all of this is on the screen, however the lines are broken; the screen."""
        seen = ""
        try:
            async with asyncio.timeout(LIMIT):
                while True:
                    look = await self._execution.screen()
                    seen = "\n".join(look.lines)
                    if all(_joined(text) in _joined(seen) for text in texts):
                        return seen
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise AssertionError(f"the editor does not show {texts}:\n{seen}") from None

    async def wire(self, text: str) -> None:
        """Wait until this was said between the editor and Tarmac."""
        async with asyncio.timeout(LIMIT):
            while not self._tape.exists() or text not in self._tape.read_text():  # noqa: ASYNC110
                await asyncio.sleep(0.05)


def _joined(text: str) -> str:
    return re.sub(r"[\s│┃~\\]+", "", text)


def documented(language: str, after: str) -> str:
    """The configuration that docs/acp.md shows under a title."""
    page = (REPOSITORY / "docs/acp.md").read_text().partition(after)[2]
    found = re.search(rf"```{language}\n(.*?)```", page, re.DOTALL)
    assert found is not None
    return found[1]


@asynccontextmanager
async def opened(folder: Path, command: list[str]) -> AsyncIterator[Screen]:
    """A project, a scripted model, and an editor that finds `tarmac` on its PATH."""
    work, programs, tape = folder / "project", folder / "bin", folder / "tape.jsonl"
    for each in (work / "build", programs):
        each.mkdir(parents=True)
    (work / "app.py").write_text("def add(a, b):\n    return a - b\n")
    (folder / "script.toml").write_text(WHOLE_LOOP)
    agent = shlex.join(tapped(tape, "editor", "agent", [sys.executable, "-m", "tarmac"]))
    (programs / "tarmac").write_text(f'#!/bin/sh\nexec {agent} "$@"\n')
    (programs / "tarmac").chmod(0o755)
    environ = {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "TARMAC_MODEL": f"scripted/{folder / 'script.toml'}",
        "TARMAC_STATE_DIR": str(folder / "state"),
        "TARMAC_CONFIG_DIR": str(folder / "config"),
        "XDG_STATE_HOME": str(folder / "xdg"),
        "XDG_DATA_HOME": str(folder / "xdg"),
        "TERM": "xterm-256color",
    }
    words = [f"{name}={value}" for name, value in environ.items()]
    async with open_terminal(cwd=work, shell="bash") as terminal:
        execution = await terminal.start(shlex.join(["env", *words, *command]))
        try:
            yield Screen(execution, tape)
        finally:
            await execution.kill()


def renew(folder: Path, name: str, told: str) -> None:
    """The recording takes the place of older ones; a text of the plugin's tells its version."""
    version = re.search(r"\d+\.\d+\.\d+", told.partition("Version:")[2] or told)
    assert version is not None
    for old in TRANSCRIPTS.glob(f"{name}-*.jsonl"):
        old.unlink()
    keep(folder / "tape.jsonl", TRANSCRIPTS / f"{name}-{version[0]}.jsonl", project=folder / "project")


async def test_neovim(tmp_path: Path) -> None:
    """A2: prompt, an edit with its diff, a command whose danger is in the middle, a failure, stop."""
    (tmp_path / "init.lua").write_text(
        LUA_51 + f"vim.opt.rtp:prepend({str(PLUGINS / 'plenary.nvim')!r})\n"
        f"vim.opt.rtp:prepend({str(PLUGINS / 'codecompanion.nvim')!r})\n"
        + documented("lua", "**Neovim** with CodeCompanion")
    )
    command = [os.environ.get("NVIM", "nvim"), "-n", "-u", str(tmp_path / "init.lua"), "app.py"]
    async with opened(tmp_path, command) as screen:
        await screen.shows("return a - b")
        await screen.type(":CodeCompanionChat", "Enter")
        await screen.shows("Welcome to CodeCompanion")
        await screen.wire("available_commands_update")  # it asks for a second session of who types sooner
        await screen.type("iMend it", "C-s")
        await screen.shows("Proposed edits", "-    return a - b", "+    return a + b", "`g2` - Accept")
        await screen.type("g2")
        await screen.shows("Riskiest: `rm -rf build` (critical risk: deletes the folder build", "touch eleven twelve`")
        await screen.type("g2")
        await screen.shows("test -e build (exit code 1)", "It adds now.", "return a + b")
        await screen.type("GoGo on", "C-s")
        await screen.shows("Run `echo it has begun; sleep 1000`", "`g1` - Always accept")
        await screen.type("g2")
        await screen.wire("it has begun\\n```")
        await screen.type("q")
        await screen.wire('"stopReason": "cancelled"')
        await screen.type(":qa!", "Enter")
    renew(tmp_path, "codecompanion", (PLUGINS / "codecompanion.nvim/version.txt").read_text())


async def test_emacs(tmp_path: Path) -> None:
    """A2: the same in Emacs."""
    (tmp_path / "tarmac.el").write_text(
        "(require 'agent-shell)\n"
        "(setq agent-shell-activity-group-expand-by-default t)\n"  # what is done stays to be seen
        + documented("elisp", "**Emacs** with agent-shell")
    )
    folders = [word for name in ("shell-maker", "acp.el", "agent-shell") for word in ("-L", str(PLUGINS / name))]
    command = [os.environ.get("EMACS", "emacs"), "-nw", "-Q", *folders, "-l", str(tmp_path / "tarmac.el"), "app.py"]
    async with opened(tmp_path, command) as screen:
        await screen.shows("return a - b")
        await screen.type("\x1bxagent-shell", "Enter")
        await screen.shows("Start shell (default: ")
        await screen.type("", "Enter")
        await screen.shows("Available /commands", "app.py:1-1")
        await screen.type("Mend it", "Enter")
        await screen.shows("It changes the file", "-    return a - b", "+    return a + b", "View (v)")
        await screen.type("v")
        await screen.shows("next hunk", "-    return a - b", "+    return a + b")
        await screen.type("y")
        await screen.shows("Riskiest: rm -rf build (critical risk: deletes the folder build", "touch eleven twelve")
        await screen.type("y")
        await screen.shows("test -e build (exit code 1)", "It adds now.")
        await screen.type("Go on", "Enter")
        await screen.shows("Run echo it has begun; sleep 1000")
        await screen.type("y")
        await screen.wire("it has begun\\n```")
        await screen.type("", "C-c", "C-c")
        await screen.shows("Interrupt?")
        await screen.type("y")
        await screen.wire('"stopReason": "cancelled"')
    renew(tmp_path, "agent-shell", (PLUGINS / "agent-shell/agent-shell.el").read_text())
