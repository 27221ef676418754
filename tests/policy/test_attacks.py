"""Attacks of our own on the policy: each line is asked about or refused, or what it does under confinement is harmless.

The lines are in corpus/attacks.txt, below the shell that they are for. Where they run, there is a hostile repository
around them, with secrets, and a listener on loopback.
"""

import asyncio
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.policy.test_plan import carry_out

from tarmac.policy import Execute, Policy
from tarmac.policy.plan import environment

pytestmark = pytest.mark.slow

CANARY = "the-canary-sings"
SECRETS = {"AWS_SECRET_ACCESS_KEY": CANARY, "GITHUB_TOKEN": CANARY, "DATABASE_URL": f"postgres://x:{CANARY}@localhost/"}


def attacks() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in (Path(__file__).parent / "corpus" / "attacks.txt").read_text().splitlines():
        if line.startswith("## "):
            found[line[3:]] = []
        elif line and not line.startswith("#!"):
            found[list(found)[-1]].append(line.replace("␤", "\n"))
    return found


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server


@pytest.fixture
def hostile(tmp_path: Path, listener: socket.socket) -> Path:
    """A repository whose every setting would run, write or send something."""
    root = tmp_path / "shop"
    root.mkdir()
    (root / "a.txt").write_text("touch P\nSECRET\n")
    _git(root, "init -q")
    _git(root, "add a.txt")
    _git(root, "commit -qm first")
    (root / "a.txt").write_text("touch P\nSECRET\nchanged\n")
    evil = root / "evil"
    evil.write_text(f"#!/bin/sh\ntouch {root}/P {tmp_path}/P; cat {root}/.env {tmp_path}/id_rsa\n")
    evil.chmod(0o755)
    for name in ("core.fsmonitor", "core.pager", "diff.external", "diff.x.textconv", "filter.x.clean", "core.editor"):
        _git(root, f"config {name} {evil}")
    (root / ".gitattributes").write_text("* diff=x filter=x\n")
    (root / ".env").write_text(f"SECRET={CANARY}\n")
    (tmp_path / "id_rsa").write_text(CANARY)
    host, port = listener.getsockname()
    (root / ".npmrc").write_text(f"registry=http://{host}:{port}/\nproxy=http://{host}:{port}/\nscript-shell={evil}\n")
    (root / "package.json").write_text('{"name": "x", "dependencies": {"left-pad": "1"}, "scripts": {"ls": "touch P"}}')
    (root / "pip.conf").write_text(f"[global]\nindex-url=http://{host}:{port}/\n")
    return root


def _git(where: Path, line: str) -> None:
    who = ("-c", "user.name=x", "-c", "user.email=x@x.example")
    subprocess.run(["git", *who, *line.split()], cwd=where, check=True, timeout=20, capture_output=True)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
async def test_attacks_are_asked_about_or_harmless(shell: str, hostile: Path, listener: socket.socket) -> None:
    """P1, P2, P9: by the policy's word, or by the kernel's."""
    policy = Policy()
    pager = str(hostile / "evil")
    env = environment({**os.environ, **SECRETS, "LESSOPEN": f"|{pager} %s", "PAGER": pager}, workspace=hostile)
    before, ran = _files(hostile.parent), 0
    for line in attacks()[shell]:
        verdict = await policy.judge(Execute(line, cwd=hostile, shell=shell), workspace=hostile)
        if verdict.decision != "allow":
            continue
        assert verdict.plan is not None, line
        output, _ = await asyncio.wait_for(carry_out(verdict.plan, env), 60)
        assert CANARY not in output, line
        assert _files(hostile.parent) == before, line
        with pytest.raises(BlockingIOError):
            listener.accept()
        ran += 1
    assert ran > 5 or shell != "bash", "nothing was tried"


def _files(root: Path) -> dict[str, tuple[int, int]]:
    return {str(each): (each.stat().st_size, each.stat().st_mtime_ns) for each in sorted(root.rglob("*"))}


def test_there_are_many() -> None:
    """A list that was not read proves nothing."""
    assert {shell: len(lines) > 25 for shell, lines in attacks().items()} == dict.fromkeys(
        ("bash", "zsh", "fish"), True
    )
