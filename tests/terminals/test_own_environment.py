"""What others see of our own environment."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="as the Linux kernel shows it")

PROGRAM = """
import os, subprocess
from pathlib import Path
from tarmac.terminals.settings import Settings
from tarmac.terminals.environment import wipe_own_environment

wipe_own_environment(Settings(secret_variables=("A_KEY", "MY_*", "TARMAC_*")))
wipe_own_environment(Settings(secret_variables=("A_KEY", "MY_*", "TARMAC_*")))
for line in Path("/proc/self/environ").read_bytes().split(b"\\0"):
    if line:
        print("seen", line.decode())
print("child", subprocess.run(["env"], capture_output=True, text=True).stdout.split())
print("ours", os.environ["A_KEY"], os.environ["MY_ONE"], os.environ["TARMAC_MODEL"])
"""


def test_what_no_command_may_see_is_not_in_our_own_environment_either() -> None:
    """P-keys (issue 5, Models): others see neither name nor value; we keep them; the rest stays as it was."""
    given = {"A_KEY": "sk-1", "A_KEYS": "kept", "MY_ONE": "sk-2", "EMPTY": "", "ÜBER": "ß", "TARMAC_TERMINAL": "t1"}
    given |= {"TARMAC_MODEL": "x/y", "PATH": os.environ["PATH"], "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    run = subprocess.run([sys.executable, "-c", PROGRAM], env=given, capture_output=True, text=True, check=True)
    lines = run.stdout.splitlines()
    assert {"seen A_KEYS=kept", "seen EMPTY=", "seen ÜBER=ß", "seen TARMAC_TERMINAL=t1"} <= set(lines)
    assert not [each for each in lines if each.startswith("seen") and ("sk-" in each or "x/y" in each)]
    (child,) = [each for each in lines if each.startswith("child")]
    assert "A_KEYS=kept" in child and "sk-" not in child and "A_KEY=" not in child and "TARMAC_MODEL" not in child
    assert lines[-1] == "ours sk-1 sk-2 x/y"
