"""A pane in a sandbox that offers only `exec` and files, such as those of Harbor and inspect_ai.

SandboxPane.start() → our code, unpacked there → pane_server, which stays → type(), view(): one `exec` each

The sandbox needs only Python 3.11 or newer: no tmux, no network, no installation. Without it, a call raises
PlaceUnavailable. If the sandbox itself fails, a call raises ConnectionLost. So a dead sandbox is never mistaken for a
failing command.
"""

import hashlib
import json
import shlex
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

from tarmac.errors import ConnectionLost, PlaceUnavailable, Trouble
from tarmac.fleet.carried import carried_bytes, is_same_python
from tarmac.terminals.pane import CALL, SOCKET, PaneView, decode_view
from tarmac.vt.screen import new_emulator

SLACK = 30.0  # seconds that a call may take beyond the wait that was asked for
LONGEST_ARGUMENT = 90_000  # bytes: Linux allows 128 KiB for one
FIND_PYTHON = """for python in python3 python3.13 python3.12 python3.11 /usr/bin/python3 /usr/local/bin/python3; do
"$python" -ISc 'import sys; sys.version_info < (3, 11) and sys.exit(1)
from importlib._bootstrap_external import MAGIC_NUMBER
print(sys.executable, MAGIC_NUMBER.hex())' 2>/dev/null && exit; done; exit 3"""
UNPACK = """import json, os, sys, zlib
folder, options = sys.argv[1:]
with open(folder + "/carried", "rb") as file:
    index, _, data = zlib.decompress(file.read()).partition(b"\\n")
for name, size in json.loads(index):
    path = folder + "/code/" + name
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data[:size])
    data = data[size:]
sys.path.insert(0, folder + "/code")
from tarmac.terminals.pane import main
sys.exit(main([folder, options]))"""


class ExecOutcome(NamedTuple):
    code: int
    stdout: str
    stderr: str


Exec = Callable[[str, float], Awaitable[ExecOutcome]]  # a shell command and its time limit
Upload = Callable[[bytes, str], Awaitable[None]]  # contents, and the file's name there


class SandboxPane:
    """A pane in a sandbox."""

    def __init__(
        self, run: Exec, upload: Upload, *, rows: int = 40, columns: int = 160, address: tuple[str, str] = ("", "")
    ) -> None:
        """With the `address` of one that was started, go on with that."""
        self._run, self._upload = run, upload
        self._rows, self._columns = rows, columns
        self._folder, self._python = address

    @property
    def address(self) -> tuple[str, str]:
        """Where it lives in the sandbox, and the Python there."""
        return self._folder, self._python

    async def start(self, *, cwd: str | None = None, environment: Mapping[str, str] | None = None) -> PaneView:
        """Bring our code there and open a terminal."""
        found = await self._run(f"mktemp -d /tmp/tarmac-XXXXXXXX && sh -c {shlex.quote(FIND_PYTHON)}", SLACK)
        words = found.stdout.split()
        if found.code == 3:
            raise PlaceUnavailable(
                "the sandbox has no Python 3.11 or newer", trouble=Trouble.NO_PYTHON, hint="add one to its image"
            )
        if found.code != 0 or len(words) != 3:
            raise PlaceUnavailable(f"the sandbox can't run a shell: {found.stderr.strip() or found.code}")
        self._folder, self._python, magic = words
        await self._upload(carried_bytes(compiled=is_same_python(magic)), f"{self._folder}/carried")
        options = {"rows": self._rows, "columns": self._columns, "cwd": cwd, "environment": dict(environment or {})}
        return await self._view([UNPACK, self._folder, json.dumps(options)], SLACK)

    async def type(self, keys: str, *, wait: float) -> PaneView:
        """Type `keys`, as `tmux send-keys` takes them, and see what came of it after `wait` seconds at most."""
        return await self._call({"keys": keys, "wait": wait}, wait + SLACK)

    async def view(self) -> PaneView:
        return await self._call({}, SLACK)

    async def close(self) -> None:
        """End the terminal and all that runs in it."""
        if self._folder:
            await self._request({"end": True}, SLACK)
            self._folder = ""

    def screen_of(self, view: PaneView) -> str:
        """What a full-screen program shows; else the last rows. Needs the extra `screen` on this side for the first."""
        if not view.drawn:
            return view.screen
        emulator = new_emulator(self._rows, self._columns)
        emulator.feed(view.drawn)
        return "\n".join(emulator.picture().lines).rstrip("\n") + "\n"

    async def _call(self, request: Mapping[str, object], limit: float) -> PaneView:
        return self._read(await self._request(request, limit))

    async def _request(self, request: Mapping[str, object], limit: float) -> ExecOutcome:
        text = json.dumps(request)
        socket = f"{self._folder}/{SOCKET}"
        if len(text) < LONGEST_ARGUMENT:
            return await self._run(shlex.join([self._python, "-ISc", CALL, socket, text]), limit)
        path = f"{self._folder}/request-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
        await self._upload(text.encode(), path)
        return await self._run(f"{shlex.join([self._python, '-ISc', CALL, socket])} < {shlex.quote(path)}", limit)

    async def _view(self, words: list[str], limit: float) -> PaneView:
        return self._read(await self._run(shlex.join([self._python, "-IBc", *words]), limit))

    def _read(self, outcome: ExecOutcome) -> PaneView:
        try:
            values = json.loads(outcome.stdout)
        except ValueError:
            values = {}
        if outcome.code != 0 or not isinstance(values, dict) or "state" not in values:
            said = values.get("error") if isinstance(values, dict) else None
            raise ConnectionLost(
                f"the sandbox gave no answer: {said or outcome.stderr.strip()[-300:] or f'exit code {outcome.code}'}",
                hint="its terminal is gone; count this as a failure of the sandbox, not of the agent",
            )
        return decode_view(values)
