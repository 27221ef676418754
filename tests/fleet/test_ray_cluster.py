"""Terminals on a real Ray cluster: three nodes on this machine."""

import importlib.util
import json
import os
import socket
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest


@pytest.mark.ray
@pytest.mark.shell
def test_a_ray_node_that_is_killed_fails_only_its_own_terminals() -> None:
    """F6, F5."""
    if importlib.util.find_spec("ray") is None:
        message = "Ray is not installed (make ray installs it): clusters are NOT TESTED"
        if os.environ.get("TARMAC_REQUIRE_ALL"):
            pytest.fail(message)
        pytest.skip(message)
    scenario = Path(__file__).parent / "ray_scenario.py"
    done = subprocess.run([sys.executable, str(scenario)], capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["codes"] == [3] * 6
    assert sorted(found["terminals"]) == [2, 2, 2]
    assert "3 of 3 nodes alive, 6 terminals" in found["table"]
    by_node = Counter(zip(found["nodes"], found["fates"], strict=True))
    assert sorted(by_node.values()) == [2, 2, 2], "terminals of one node share their fate"
    assert Counter(found["fates"]) == {"connection lost": 2, "done": 4}
    dead = next(node for node, fate in by_node if fate == "connection lost")
    assert found["again"][0] != dead
    assert found["again"][1] == "again\n"


def test_without_ray_the_address_says_what_to_install() -> None:
    """F6."""
    code = (
        "import sys; sys.modules['ray'] = None\n"
        "import asyncio\nfrom tarmac.fleet import open_terminals\nfrom tarmac.errors import PlaceUnavailable\n"
        "async def go():\n    async with open_terminals('ray://'): pass\n"
        "try: asyncio.run(go())\nexcept PlaceUnavailable as error: print(error.trouble, error.hint)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "no client pip install 'tarmac[ray]'\n"


@pytest.mark.parametrize("listens", [True, False])
def test_a_wrong_address_is_told_and_holds_no_program(listens: bool) -> None:
    """F5, F6. Ray tries to connect for ever, in a call that no signal ends. Its `init` is played here."""
    code = (
        "import sys, threading, types; ray = sys.modules['ray'] = types.ModuleType('ray')\n"
        "ray.is_initialized = lambda: False; ray.init = lambda **_: threading.Event().wait()\n"
        "import asyncio\nfrom tarmac.fleet import open_terminals\nfrom tarmac.errors import PlaceUnavailable\n"
        "from tarmac.fleet import cluster; cluster.INIT_PATIENCE = 0.2\n"
        "async def go():\n    async with open_terminals(f'ray://127.0.0.1:{sys.argv[1]}'): pass\n"
        "try: asyncio.run(go())\nexcept PlaceUnavailable as error: print(error.trouble, error.what)\n"
    )
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        if not listens:
            server.close()
        words = [sys.executable, "-c", code, str(port)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    why = "it did not answer within 0.2 s" if listens else "Connection refused"
    assert done.stdout.startswith(f"unreachable no Ray cluster answers at 127.0.0.1:{port}: ")
    assert why in done.stdout
