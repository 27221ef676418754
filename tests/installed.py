"""Programs nobody here wrote, from the npm registry, for tests to speak with; kept in `.peers` of the repository.

A registry that can't be reached skips the test loudly, and fails it under TARMAC_REQUIRE_ALL.
"""

import fcntl
import os
import platform
import shutil
import subprocess
from pathlib import Path

from tests.conftest import lacking

FOLDER = Path(__file__).parent.parent / ".peers"
PATIENCE = 480.0  # seconds for a registry
NODE = 22  # the oldest that those programs take; npm gives old versions of them to an older one, and says nothing
NODE_VERSION = "22.23.3"  # the one that is fetched


def npm(name: str, package: str) -> tuple[Path, dict[str, str]]:
    """The folder of the programs of a package (or of several, with blanks), and an environment in which they run."""
    environ = {**os.environ, "PATH": f"{_node()}{os.pathsep}{os.environ['PATH']}"}
    return _installed(name, package, environ) / ".bin", environ


def _node() -> Path:
    """The folder of a node that is new enough: this machine's, or one from the registry."""
    own = shutil.which("node")
    if own:
        said = subprocess.run([own, "--version"], capture_output=True, text=True, check=False).stdout
        if said.removeprefix("v").partition(".")[0].isdigit() and int(said[1:].partition(".")[0]) >= NODE:
            return Path(own).parent
    package = f"node-{machine()}"
    return _installed("node", f"{package}@{NODE_VERSION}", dict(os.environ)) / package / "bin"


def machine() -> str:
    """As npm's packages for one kind of machine are named."""
    kind = {"x86_64": "x64", "aarch64": "arm64", "arm64": "arm64"}.get(platform.machine(), platform.machine())
    return f"{platform.system().lower()}-{kind}"


def _installed(name: str, package: str, environ: dict[str, str]) -> Path:
    folder, done = FOLDER / name, FOLDER / name / ".installed"
    FOLDER.mkdir(exist_ok=True)
    with (FOLDER / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two runs of the tests set up one after the other
        if not done.exists() or done.read_text() != package:
            _install(folder, package, environ)
            done.write_text(package)
    return folder / "node_modules"


def _install(folder: Path, package: str, environ: dict[str, str]) -> None:
    if shutil.which("npm") is None:
        lacking("npm is not installed")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    command = [
        "npm",
        "install",
        "--no-audit",
        "--no-fund",
        "--loglevel=error",
        "--fetch-retries=5",
        "--prefix",
        str(folder),
    ]
    command += package.split()
    # npm must not find a package.json of somebody above us, nor keep anything outside of our folder
    try:
        ran = subprocess.run(
            command, cwd=folder, env=environ, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        lacking(f"{package} did not come from its registry in {PATIENCE:.0f} s")
        return
    if ran.returncode:
        lacking(f"{package} can't be had from its registry: {ran.stderr.strip()[-300:]}")
