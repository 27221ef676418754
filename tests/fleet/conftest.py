"""Places for the tests of the fleet. None of them touches the person's own files."""

import getpass
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.conftest import lacking

from tarmac.fleet import CommandTransport


@pytest.fixture(autouse=True)
def own_sockets(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A short folder for sockets. After the test no host may be left that listens in it."""
    folder = Path(tempfile.mkdtemp(prefix="tf-", dir="/tmp"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    yield folder
    end = time.monotonic() + 30
    while (left := [each for each in folder.glob("tarmac/*.sock") if _listens(each)]) and time.monotonic() < end:
        time.sleep(0.02)
    shutil.rmtree(folder, ignore_errors=True)
    assert left == [], "a host was left running"


def _listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as connection:
        return connection.connect_ex(str(path)) == 0


@pytest.fixture
def elsewhere(tmp_path: Path) -> CommandTransport:
    """A place of the same shape as `docker exec -i`: another environment and home, files carried, a banner before."""
    home = tmp_path / "their home"
    home.mkdir()
    runtime = os.environ["XDG_RUNTIME_DIR"]
    settings = [f"HOME={home}", f"XDG_RUNTIME_DIR={runtime}", "PATH=/usr/local/bin:/usr/bin:/bin", "WHERE=elsewhere"]
    argv = ("env", "-i", *settings, "sh", "-c", 'echo "Welcome to elsewhere"; exec "$@"', "sh")
    return CommandTransport("test://elsewhere", argv, python=their_python())


def their_python() -> str:
    """The Python that the tests run with, as a place without a virtual environment sees it."""
    return str(Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}")


# A real sshd on loopback, with keys, configuration and folders of the test's own


@dataclass(frozen=True, slots=True)
class Sshd:
    """A running sshd, and how the system's ssh reaches it as `testhost`."""

    port: int
    folder: Path
    process: "subprocess.Popen[bytes]"

    @property
    def address(self) -> str:
        return f"ssh://testhost?python={their_python()}"

    def connections(self) -> list[int]:
        """The processes of ssh clients that the test's programs started, and of the connection that they share."""
        found = []
        for each in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = each.read_bytes()
            except OSError:
                continue
            ours = words.startswith(b"/usr/bin/ssh\0") and str(self.folder).encode() in words
            shared = words.startswith(b"ssh: ") and os.environ["XDG_RUNTIME_DIR"].encode() in words
            if ours or shared:
                found.append(int(each.parent.name))
        return found


def _keygen(path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)


@pytest.fixture
def sshd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, require: Callable[[str], None]) -> Iterator[Sshd]:
    """An sshd that takes one key. The `ssh` on PATH reads the test's configuration, and no other."""
    program = shutil.which("sshd") or "/usr/sbin/sshd"
    if not Path(program).exists():
        require("sshd")
    require("ssh-keygen")
    folder = tmp_path / "ssh"
    folder.mkdir(mode=0o700)
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    _keygen(folder / "host_key")
    _keygen(folder / "key")
    shutil.copy(folder / "key.pub", folder / "authorized_keys")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    their = tmp_path / "their-cache"
    (folder / "sshd_config").write_text(
        f"ListenAddress 127.0.0.1\nPort {port}\nHostKey {folder}/host_key\nPidFile none\nUsePAM no\nStrictModes no\n"
        f"AuthorizedKeysFile {folder}/authorized_keys\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n"
        f"SetEnv XDG_CACHE_HOME={their} XDG_RUNTIME_DIR={os.environ['XDG_RUNTIME_DIR']} WHERE=sshd\nPrintMotd no\n"
        "MaxStartups 100\nLogLevel ERROR\n"
    )
    (folder / "ssh_config").write_text(
        f"Host testhost badkey\n  HostName 127.0.0.1\n  Port {port}\n  User {getpass.getuser()}\n  IdentitiesOnly yes\n"
        f"  IdentityAgent none\n  UserKnownHostsFile {folder}/known_hosts\n  GlobalKnownHostsFile /dev/null\n"
        f"  StrictHostKeyChecking accept-new\nHost testhost\n  IdentityFile {folder}/key\n"
        f"Host badkey\n  IdentityFile {folder}/no_key\n"
    )
    tools = tmp_path / "tools"
    tools.mkdir(exist_ok=True)
    wrapper = tools / "ssh"
    wrapper.write_text(f'#!/bin/sh\nexec /usr/bin/ssh -F {folder}/ssh_config "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    process = subprocess.Popen([program, "-D", "-f", str(folder / "sshd_config"), "-E", str(folder / "log")])
    try:
        end = time.monotonic() + 20
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert process.poll() is None, (folder / "log").read_text()
                assert time.monotonic() < end
                time.sleep(0.02)
        yield Sshd(port, folder, process)
    finally:
        for pid in Sshd(port, folder, process).connections():  # the shared connection stays for a minute
            try:
                os.kill(pid, signal.SIGTERM)
            except ProcessLookupError:
                pass
        process.terminate()
        process.wait(20)


# Something like a container: its own root, processes and /tmp, which programs can be started in


@dataclass(frozen=True, slots=True)
class Container:
    """A running stand-in of a container, known to the fake `docker`, `podman` and `kubectl` on PATH as `box`."""

    pid: int
    tools: Path


FAKE_CLIENT = """\
#!/bin/sh
# Only `exec -i [-n NAMESPACE] NAME [--] COMMAND …`, as docker, podman and kubectl have it.
shift; shift
[ "$1" = -n ] && {{ shift; shift; }}
name=$1; shift
[ "$1" = -- ] && shift
[ -e {tools}/$name.pid ] || {{ echo "Error response from daemon: No such container: $name" >&2; exit 1; }}
exec nsenter --target "$(cat {tools}/$name.pid)" --mount --pid --uts --root --wd -- env -i \\
  PATH={path} HOME=/home XDG_RUNTIME_DIR= WHERE=box "$@"
"""


@pytest.fixture
def container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, require: Callable[[str], None]) -> Iterator[Container]:
    """Bubblewrap's sandbox with its own root, entered by nsenter. A container runtime does the same and more."""
    require("bwrap")
    require("nsenter")
    if os.geteuid() != 0:
        lacking("only root may enter the namespaces of another process")
    tools = tmp_path / "tools"
    tools.mkdir(exist_ok=True)
    reads, writes = os.pipe()
    base = sys.base_prefix
    layout = ["--ro-bind", "/usr", "/usr", "--ro-bind", "/etc", "/etc", "--dev", "/dev", "--proc", "/proc"]
    for name in ("bin", "lib", "lib64", "sbin"):
        if Path("/", name).is_symlink():
            layout += ["--symlink", f"usr/{name}", f"/{name}"]
        elif Path("/", name).is_dir():
            layout += ["--ro-bind", f"/{name}", f"/{name}"]
    if not Path(base).is_relative_to("/usr"):
        layout += ["--ro-bind", base, base]
    process = subprocess.Popen(
        ["bwrap", *layout, "--tmpfs", "/tmp", "--tmpfs", "/home", "--unshare-pid", "--unshare-uts", "--hostname", "box",
         "--die-with-parent", "--info-fd", str(writes), "sleep", "infinity"],
        pass_fds=[writes],
    )  # fmt: skip
    os.close(writes)
    with os.fdopen(reads) as info:
        pid = json.load(info)["child-pid"]
    (tools / "box.pid").write_text(str(pid))
    for name in ("docker", "podman", "kubectl"):
        client = tools / name
        client.write_text(FAKE_CLIENT.format(tools=tools, path=f"{base}/bin:/usr/bin:/bin"))
        client.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    # bubblewrap tells the process before its root is ready; what it runs there starts after that
    end = time.monotonic() + 60
    while not _sleeps(pid):
        assert time.monotonic() < end
        time.sleep(0.02)
    yield Container(pid, tools)
    process.kill()
    process.wait(20)


def _sleeps(pid: int) -> bool:
    """Whether the process, or a child of it, is the `sleep` that was to be started."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return any(Path(f"/proc/{each}/comm").read_text() == "sleep\n" for each in (pid, *children))
    except OSError:
        return False
