"""`tarmac doctor --confinement`: attack what confines commands on this machine, and say what was stopped.

plant() canaries → intruder.py, once without rules and once confined → the canaries are looked at → Attack, Attack, …

The rules are those that the policy makes for a command that searches the whole workspace. The program that runs under
them is our own intruder, which is as hostile as it can be. What is planted lies in a temporary folder.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tarmac.cli import intruder
from tarmac.cli.intruder import Aim
from tarmac.policy.files import Files
from tarmac.policy.places import Ground
from tarmac.policy.plan_confinement import confine, installation
from tarmac.policy.verdict import Confinement, Enforcement, Plan, Stage, Step
from tarmac.terminals.plans import run_plan
from tarmac.terminals.process.confinement import Means, means

SECRET = "a canary's secret"
_STOPPED_BY = {Aim.CALL: "seccomp", Aim.AMOUNT: "a limit", Aim.PRIVILEGE: "no_new_privs"}
_BUBBLEWRAP = {Aim.FILE: "bubblewrap", Aim.PROCESS: "a process namespace"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """One attempt, and what came of it."""

    name: str
    stopped: bool
    by: str = ""  # what stopped it
    error: str = ""  # what the kernel answered
    possible: bool = True  # whether it works here without rules


@dataclass(slots=True)
class Canaries:
    """What is there to be read, changed and reached."""

    root: Path
    workspace: Path
    places: dict[str, str]
    listeners: list[socket.socket]
    victim: "subprocess.Popen[bytes]"
    before: dict[str, tuple[bytes, int, int]]

    def note(self) -> None:
        """Remember the current state."""
        self.before = {str(each): _state(str(each)) for each in self.root.rglob("*")}

    def damage(self) -> list[str]:
        """What was changed or added since."""
        found = [path for path, was in self.before.items() if _state(path) != was]
        found += sorted({str(each) for each in self.root.rglob("*")} - set(self.before))
        for each in self.listeners:
            try:
                each.recv(1) if each.type == socket.SOCK_DGRAM else each.accept()[0].close()
                found.append(f"a message to {each.getsockname()}")
            except BlockingIOError:
                pass
        if self.victim.poll() is not None:
            found.append("the process of another is gone")
        return found


@contextmanager
def plant() -> Iterator[Canaries]:
    """Canaries in a folder of their own; all is taken away on the way out."""
    with ExitStack() as stack:
        root = Path(os.path.realpath(stack.enter_context(tempfile.TemporaryDirectory(prefix="tarmac-canaries-"))))
        workspace, home = root / "workspace", root / "home"
        (home / ".ssh").mkdir(parents=True)
        (workspace / "src").mkdir(parents=True)
        files = {
            "inside": workspace / "src/inside.txt", "doomed": workspace / "src/doomed.txt", "env": workspace / ".env",
            "ignored": workspace / "src/hidden.txt", "outside": root / "outside.txt", "key": home / ".ssh/id_ed25519",
        }  # fmt: skip
        for kind, file in files.items():
            file.write_text("no secret" if kind in ("inside", "doomed") else SECRET)
        (workspace / ".tarmacignore").write_text("hidden.txt\n")
        (workspace / "link").symlink_to(files["key"])
        sockets = [socket.socket(), socket.socket(type=socket.SOCK_DGRAM)]
        sockets += [socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)]
        names: list[tuple[str, int] | str] = [
            ("127.0.0.1", 0),
            ("127.0.0.1", 0),
            str(root / "stream"),
            str(root / "datagrams"),
        ]
        for made, name in zip(sockets, names, strict=True):
            stack.enter_context(made)
            made.bind(name)
            made.setblocking(False)
            if made.type == socket.SOCK_STREAM:
                made.listen()
        victim = subprocess.Popen([sys.executable, "-I", "-S", "-c", "import time; time.sleep(86_400)"])
        stack.callback(victim.wait)
        stack.callback(victim.kill)
        places = {name: str(file) for name, file in files.items()}
        places |= {"link": str(workspace / "link"), "workspace": str(workspace), "victim": str(victim.pid)}
        places |= {"tcp": str(sockets[0].getsockname()[1]), "udp": str(sockets[1].getsockname()[1])}
        places |= {"unix": str(root / "stream"), "unix_datagrams": str(root / "datagrams")}
        places["temporary"] = str(Path(tempfile.gettempdir()) / f"{root.name}-written")
        stack.callback(Path(places["temporary"]).unlink, missing_ok=True)
        planted = Canaries(root, workspace, places, sockets, victim, {})
        planted.note()
        yield planted


async def attack() -> tuple[list[Attack], list[str]]:
    """Run all attacks. Return them, and what they damaged under the rules: nothing, if all is well."""
    with plant() as canaries:
        possible = {each["attack"]: each["done"] for each in await _run(canaries, confined=False)}
    with plant() as canaries:
        tried = await _run(canaries, confined=True)
        damage = canaries.damage()
    found = [
        Attack(
            name=each["attack"],
            stopped=not each["done"],
            by="" if each["done"] else _by(Aim(each["aim"])),
            error=each["error"],
            possible=possible[each["attack"]],
        )
        for each in tried
    ]
    return found, damage


def rules(workspace: Path) -> Confinement:
    """What the policy lets a search of this workspace read, and the Python that the intruder is written in."""
    ground = Ground.of(workspace, workspace)
    made = confine((Step((Stage(("find", ".")),), cwd=workspace),), ground, Files(), Enforcement(means().value))
    assert made is not None, "commands can't be confined on this machine"
    libraries = (os.path.realpath(sys.base_prefix), os.path.realpath(sys.prefix))
    return replace(made, programs=(*made.programs, *installation(sys.executable, ()), *libraries))


async def _run(canaries: Canaries, *, confined: bool) -> list[dict[str, Any]]:
    script = Path(intruder.__file__).read_text(encoding="utf-8")
    stage = Stage((sys.executable, "-I", "-S", "-c", script, json.dumps(canaries.places)))
    plan = Plan(
        canaries.workspace,
        (Step((stage,), cwd=canaries.workspace),),
        confinement=rules(canaries.workspace) if confined else None,
    )
    result = await run_plan(plan, command="the intruder", environment={"PATH": os.defpath})
    return [json.loads(line) for line in result.output.splitlines() if line.startswith("{")]


def _by(aim: Aim) -> str:
    """What stops an attack with this aim."""
    return _STOPPED_BY.get(aim) or ("Landlock" if means() is Means.LANDLOCK else _BUBBLEWRAP[aim])


def _state(path: str) -> tuple[bytes, int, int]:
    """What is in a file, its mode, and when it was changed."""
    try:
        found = os.lstat(path)
        content = Path(path).read_bytes() if os.path.isfile(path) else b""  # noqa: PTH113
    except OSError:
        return b"", 0, 0
    return content, found.st_mode, found.st_mtime_ns if os.path.isfile(path) else 0  # noqa: PTH113
