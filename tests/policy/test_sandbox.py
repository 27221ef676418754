"""The sandbox, by real tries to get out of it; and that a terminal inside works as any other."""

import asyncio
import os
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.conftest import lacking

from tarmac.errors import BadRequest, SandboxUnavailable
from tarmac.policy.sandbox import Bubblewrap
from tarmac.seccomp import sandbox_filter
from tarmac.terminals import Settings, open_terminal
from tarmac.terminals.settings import Sandbox
from tarmac.terminals.terminal import Provider

pytestmark = pytest.mark.shell
PYTHON = os.path.realpath(sys.executable)  # not the one of a virtual environment, which may lie in /tmp


@pytest.fixture
def here(tmp_path: Path, require: Callable[[str], None]) -> Iterator[Path]:
    """A workspace, on a machine that can make sandboxes; nothing of ours is left in it."""
    require("bwrap")
    place = tmp_path / "project"
    (place / "src").mkdir(parents=True)
    try:
        Bubblewrap(workspace=place).enforced()
    except SandboxUnavailable as error:
        lacking(error.what)
    yield place
    for name in (".tarmac", ".claude", ".vscode"):
        assert not (place / name).exists(), "a folder that stood in for an absent one was left"
    left = [*Path("/sys/fs/cgroup").glob(f"*/tarmac-{os.getpid()}-*"), *_own_groups()]
    assert left == [], "control groups were left"


def _own_groups() -> list[Path]:
    found: list[Path] = []
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        found += Path("/sys/fs/cgroup", names, path.lstrip("/")).glob(f"tarmac-{os.getpid()}-*")
    return found


async def said(box: Bubblewrap, *commands: str, cwd: Path | None = None, timeout: float = 20) -> str:
    """What the last of these commands prints in a terminal inside."""
    async with open_terminal(cwd=cwd or box.workspace, sandbox=box) as terminal:
        for command in commands:
            result = await terminal.run(command, timeout=timeout)
        assert result.reason == "done", result
        return result.output


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not true():  # noqa: ASYNC110 (what another process does rings no bell)
            await asyncio.sleep(0.01)


def python(code: str) -> str:
    """A command that runs this code with a Python outside of the workspace."""
    return f"{PYTHON} - <<'END'\n{textwrap.dedent(code).strip()}\nEND"


# Ways out


async def test_nothing_outside_the_workspace_can_be_written(here: Path, tmp_path: Path, own_state: Path) -> None:
    """P9: by its name, through a symlink, a hard link, /proc, or a mount."""
    (tmp_path / "neighbour.txt").write_text("before")
    (here / "way").symlink_to(tmp_path / "neighbour.txt")
    output = await said(
        Bubblewrap(workspace=here),
        f"""
        echo x > /etc/tarmac-was-here; echo x > ~/x; echo x > /usr/x; echo x > {tmp_path}/neighbour.txt; echo x > way
        ln /etc/hostname linked; echo x > /proc/1/root/etc/x; chmod 777 /etc/hostname; mount -t tmpfs none /usr
        mount -o remount,rw /; touch inside && ls inside
        """,
    )
    assert (tmp_path / "neighbour.txt").read_text() == "before"
    assert not Path("/etc/tarmac-was-here").exists() and not (own_state / "x").exists()
    assert output.splitlines()[-1] == "inside"
    assert output.count("Read-only file system") >= 4
    assert (here / "inside").exists() and not (here / "linked").exists()


async def test_the_kernels_settings_can_not_be_written(here: Path) -> None:
    """P9: with core_pattern in hand one gets out as root, and bubblewrap alone does not hold root back."""
    same = 'v=$(cat /proc/sys/kernel/core_pattern) && echo "$v" > /proc/sys/kernel/core_pattern || echo held'
    assert (await said(Bubblewrap(workspace=here), same)).splitlines()[-1] == "held"


async def test_the_network_is_out_of_reach(here: Path) -> None:
    """P9."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        output = await said(
            Bubblewrap(workspace=here),
            python(f"""
                import socket
                for address in (("127.0.0.1", {server.getsockname()[1]}), ("192.0.2.1", 80)):
                    try:
                        socket.create_connection(address, 2)
                        print("connected")
                    except OSError as error:
                        print("refused")
                try:
                    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("192.0.2.1", 53))
                    print("sent")
                except OSError:
                    print("refused")
                print([name for _, name in socket.if_nameindex()])
            """),
        )
    assert output.splitlines()[-4:] == ["refused", "refused", "refused", "['lo']"]


KNOCK = """
import socket
for name in {names!r}:
    try:
        with socket.socket(socket.AF_UNIX) as door:
            door.connect(name)
            print("connected")
    except OSError as error:
        print("refused")
"""


async def test_sockets_of_other_programs_are_out_of_reach(here: Path, own_state: Path) -> None:
    """P9: by a path in the workspace, by one in the home, and without a path."""
    names = [str(here / "door"), str(own_state / "door"), "\0tarmac-test-door"]
    with (
        socket.socket(socket.AF_UNIX) as one,
        socket.socket(socket.AF_UNIX) as two,
        socket.socket(socket.AF_UNIX) as three,
    ):
        for listener, name in zip((one, two, three), names, strict=True):
            listener.bind(name)
            listener.listen()
        knock = python(KNOCK.format(names=names))
        assert (await said(Bubblewrap(workspace=here), knock)).splitlines()[-3:] == ["refused"] * 3


async def test_where_sockets_are_wanted_those_of_others_are_hidden(here: Path, own_state: Path) -> None:
    """P9: docker's, an agent's of keys, the desktop's: in /run, in /tmp, and where somebody listens now."""
    own = 'import socket\nserver = socket.socket(socket.AF_UNIX)\nserver.bind("own")\nserver.listen()\n'
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(own_state / "agent"))
        listener.listen()
        output = await said(
            Bubblewrap(workspace=here, unix_sockets=True),
            python(own + KNOCK.format(names=["own", str(own_state / "agent"), "/run/docker.sock"])),
        )
    assert output.splitlines()[-3:] == ["connected", "refused", "refused"]


def make_repository(place: Path) -> None:
    subprocess.run(["git", "init", "-q", str(place)], check=True)


async def test_a_repository_can_neither_be_changed_nor_put_aside(here: Path) -> None:
    """P9: with `.git` moved away, another with hooks of one's own could take its place."""
    for place in (here, here / "src" / "inner"):
        make_repository(place)
    before = (here / ".git" / "config").read_text()
    output = await said(
        Bubblewrap(workspace=here),
        """
        mv .git .git2; rm -rf .git; echo x > .git/hooks/post-checkout; git config core.fsmonitor /tmp/x
        mv src/inner/.git x; echo "[core]" >> src/inner/.git/config; ln -sf /tmp .git; mv ../project ../other
        git status --short; echo $?
        """,
    )
    assert output.splitlines()[-1] == "0"
    assert "Device or resource busy" in output
    assert (here / ".git" / "config").read_text() == before
    assert sorted(each.name for each in here.iterdir()) == [".git", "src"]
    assert not (here / ".git" / "hooks" / "post-checkout").exists()


async def test_a_repository_that_is_not_there_can_not_be_made(here: Path) -> None:
    """P9: nor can Tarmac's or an agent's folder; what stood in for them is gone afterwards."""
    output = await said(
        Bubblewrap(workspace=here), "mkdir .git/hooks; git init -q .; rmdir .git; mkdir .claude/x; ls -A1"
    )
    assert output.splitlines()[-5:] == [".claude", ".git", ".tarmac", ".vscode", "src"]
    assert [each.name for each in here.iterdir()] == ["src"]


async def test_a_terminal_that_closes_takes_no_protection_from_another(here: Path) -> None:
    """P9: both rest on the same empty folders."""
    box = Bubblewrap(workspace=here)
    async with open_terminal(cwd=here, sandbox=box) as stays:
        async with open_terminal(cwd=here, sandbox=box) as goes:
            await goes.run("true")
        result = await stays.run("mkdir -p .git/hooks; mkdir .claude; rmdir .git")
        assert result.output.count("Read-only file system") == 1
        assert (here / ".git").exists() and not (here / ".git" / "hooks").exists()
        assert "busy" in result.output
    assert not (here / ".git").exists()


async def test_what_a_killed_tarmac_left_goes_with_the_next_and_a_persons_folder_stays(here: Path) -> None:
    """P9."""
    (here / ".git").mkdir(0o500)  # as a killed one leaves it
    (here / ".vscode").mkdir()
    await said(Bubblewrap(workspace=here), "true")
    assert sorted(each.name for each in here.iterdir()) == [".vscode", "src"]
    (here / ".vscode").rmdir()


async def test_a_home_as_workspace_keeps_tarmacs_own_folder_and_start_up_files(own_state: Path, here: Path) -> None:
    """P9: with the grants in hand one could allow oneself the rest."""
    state = own_state / ".local" / "state" / "tarmac"
    (state / "output").mkdir(parents=True)
    (state / "output" / "long.txt").write_text("all of it")
    (state / "grants.json").write_text("before")
    (own_state / ".bashrc").write_text("")
    output = await said(
        Bubblewrap(workspace=own_state),
        f"echo x > {state}/grants.json; echo x >> ~/.bashrc; cat {state}/output/long.txt; echo x > {state}/output/y",
    )
    assert ((state / "grants.json").read_text(), (own_state / ".bashrc").read_text()) == ("before", "")
    assert "all of it" in output and not (state / "output" / "y").exists()


async def test_protected_files_that_are_there_stay_as_they_are(here: Path) -> None:
    """P8, P9."""
    (here / "AGENTS.md").write_text("before")
    (here / ".tarmacignore").write_text("before")
    await said(
        Bubblewrap(workspace=here), "echo x > AGENTS.md; rm -f .tarmacignore; mv AGENTS.md y; echo x > .tarmacignore"
    )
    assert [(here / name).read_text() for name in ("AGENTS.md", ".tarmacignore")] == ["before", "before"]


async def test_credentials_are_not_there_to_be_read(
    here: Path, own_state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P9: in files, nor in variables; those are left where there is a network to use them on."""
    monkeypatch.setenv("DEPLOY_TOKEN", "KEY")
    monkeypatch.setenv("SSH_AUTH_SOCK", "/somewhere")
    (own_state / ".ssh").mkdir()
    (own_state / ".ssh" / "id_ed25519").write_text("KEY")
    (own_state / ".netrc").write_text("KEY")
    more = own_state / "vault"
    more.mkdir()
    (more / "token").write_text("KEY")
    output = await said(
        Bubblewrap(workspace=here, hidden=(more,)),
        "cat ~/.ssh/* ~/.netrc ~/vault/token /etc/shadow; echo $SSH_AUTH_SOCK.",
    )
    assert "KEY" not in output
    assert output.splitlines()[-1] == "."


async def test_it_can_not_type_into_its_own_terminal_or_make_worlds_of_its_own(here: Path) -> None:
    """P9: TIOCSTI; and with the upper half of the argument set, which the kernel ignores."""
    output = await said(
        Bubblewrap(workspace=here),
        python("""
            import ctypes, os
            libc = ctypes.CDLL(None, use_errno=True)
            tty = os.open("/dev/tty", os.O_RDWR)
            for request in (0x5412, 0x5412 | 1 << 32, 0x541C):
                failed = libc.ioctl(tty, ctypes.c_ulong(request), b"x")
                print("ioctl", failed, ctypes.get_errno())
            print("unshare", libc.unshare(0x10000000), ctypes.get_errno())
            print("io_uring", libc.syscall(425, 1, 0), ctypes.get_errno())
            print("vsock", libc.socket(40, 1, 0), ctypes.get_errno())
        """),
    )
    assert output.splitlines()[-6:] == [
        "ioctl -1 1", "ioctl -1 1", "ioctl -1 1", "unshare -1 1", "io_uring -1 38", "vsock -1 97",
    ]  # fmt: skip


async def test_other_processes_can_be_neither_seen_nor_signalled(here: Path) -> None:
    """P9."""
    output = await said(
        Bubblewrap(workspace=here), f"kill -0 {os.getpid()}; echo $?; ls /proc | grep -c '^[0-9]'; id -u"
    )
    refused, seen, user = output.splitlines()[-3:]
    assert refused == "1" and int(seen) < 8 and int(user) == os.getuid()


async def test_a_daemon_dies_with_its_terminal(here: Path) -> None:
    """P9, T17."""
    await said(Bubblewrap(workspace=here), "(setsid nohup sleep 86123 >/dev/null 2>&1 &); echo started")
    assert _running("sleep\0" + "86123") == []


def test_nothing_is_left_when_tarmac_itself_is_killed(here: Path) -> None:
    """P9: no chance to clean up, and yet no survivor."""
    code = f"""
        import asyncio
        from pathlib import Path
        from tarmac.policy.sandbox import Bubblewrap
        from tarmac.terminals import open_terminal
        async def main():
            here = Path({str(here)!r})
            box = Bubblewrap(workspace=here, memory=None, processes=None)
            async with open_terminal(cwd=here, sandbox=box) as terminal:
                await terminal.run("trap '' HUP; (setsid nohup sleep 86124 >/dev/null 2>&1 &)")
                print("ready", flush=True)
                await terminal.run("sleep 86124")
        asyncio.run(main())
    """
    host = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True)
    assert host.stdout is not None
    with host:
        assert host.stdout.readline() == "ready\n"
        end = time.monotonic() + 5
        while not (started := _running("sleep\0" + "86124")) and time.monotonic() < end:
            time.sleep(0.01)  # what was put in the background may not be there yet
        assert started
        host.kill()
    end = time.monotonic() + 5
    while _running("sleep\0" + "86124") and time.monotonic() < end:
        time.sleep(0.01)
    assert _running("sleep\0" + "86124") == []
    Bubblewrap(workspace=here).wrap(["true"], cwd=here, env=os.environ).close()  # cleans up after it
    assert [each.name for each in here.iterdir()] == ["src"]


def _running(command: str) -> list[int]:
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if command in each.read_text():
                found.append(int(each.parent.name))
        except OSError:
            pass
    return found


async def test_our_own_folder_inside_can_be_read_and_no_more(here: Path) -> None:
    """P9: a symlink in it would make Tarmac write elsewhere."""
    output = await said(
        Bubblewrap(workspace=here),
        'f=${__tarmac_in%/*}; rm -f "$f/in"; ln -s /etc/passwd "$f/new"; mv "$f" /tmp/x; mv "$f/in.env" "$f/y"',
        "echo still here",
    )
    assert output == "still here\n"


# Limits


async def test_memory_has_a_limit(here: Path) -> None:
    """P9: who takes too much is killed, and the terminal lives on."""
    box = Bubblewrap(workspace=here, memory=96 << 20)
    if "memory is not limited" in box.enforced().no:
        lacking("no control group for memory can be made")
    greedy = f"{PYTHON} -c 'x = bytearray(300 << 20)'"
    async with open_terminal(cwd=here, sandbox=box) as terminal:
        result = await terminal.run(greedy, timeout=20)
        assert result.exit_code == 137
        assert (await terminal.run("echo still here")).output == "still here\n"


async def test_the_number_of_processes_has_a_limit(here: Path) -> None:
    """P9."""
    box = Bubblewrap(workspace=here, processes=30)
    if "the number of processes is not limited" in box.enforced().no:
        lacking("no control group for processes can be made")
    output = await said(
        box,
        python("""
            import os, signal
            children = []
            try:
                while len(children) < 200:
                    if not (child := os.fork()):
                        signal.pause()
                    children.append(child)
            except OSError as error:
                print(error.strerror)
            for child in children:
                os.kill(child, signal.SIGKILL)
            print(len(children) < 30)
        """),
    )
    assert output.splitlines()[-2:] == ["Resource temporarily unavailable", "True"]


# A terminal like any other


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
async def test_every_shell_works_inside(here: Path, shell: str, require: Callable[[str], None]) -> None:
    """P9, T7, T8, T17: directory, variables, exit codes, interrupts; and it is inside."""
    require(shell)
    async with open_terminal(cwd=here, shell=shell, sandbox=Bubblewrap(workspace=here)) as terminal:
        await terminal.run("cd src; set -gx COLOUR green" if shell == "fish" else "cd src; export COLOUR=green")
        result = await terminal.run("echo $COLOUR; touch /etc/tarmac-was-here; false")
        assert (result.output.splitlines()[0], result.exit_code, result.cwd) == ("green", 1, here / "src")
        assert "Read-only file system" in result.output
        assert (await terminal.environment())["COLOUR"] == "green"
        slow = await terminal.run("sleep 60", timeout=0.2, on_timeout="interrupt")
        assert (slow.reason, slow.exit_code) == ("timeout", 130)
        assert (await terminal.run("echo still here")).output == "still here\n"


async def test_a_terminal_inside_works_as_any_other(here: Path) -> None:
    """P9, T7, T8, T14, T15: functions, pipelines, jobs, the environment, the size."""
    async with open_terminal(cwd=here, sandbox=Bubblewrap(workspace=here)) as terminal:
        assert terminal.sandbox is not None
        await terminal.run("cd src && export COLOUR=green && f() { return 7; }")
        result = await terminal.run("echo $COLOUR; f")
        assert (result.output, result.exit_code, result.cwd, result.evidence) == ("green\n", 7, here / "src", "mark")
        assert (await terminal.run("false | true | (exit 3)")).pipestatus == (1, 0, 3)
        assert (await terminal.run("sleep 60 & jobs -r | wc -l; kill %1")).output.splitlines()[-1] == "1"
        assert (await terminal.environment())["COLOUR"] == "green"
        assert (await terminal.environment())["COLOUR"] == "green"
        assert (await terminal.run("stty size")).output == "40 120\n"


async def test_it_can_be_interrupted_killed_and_answered(here: Path) -> None:
    """P9, T17, T19."""
    async with open_terminal(cwd=here, sandbox=Bubblewrap(workspace=here)) as terminal:
        result = await terminal.run("sleep 60", timeout=0.2, on_timeout="interrupt")
        assert (result.reason, result.exit_code) == ("timeout", 130)
        stubborn = await terminal.start("trap '' TERM INT; (setsid sleep 86125 &) ; sleep 86125")
        await until(lambda: len(_running("sleep\0" + "86125")) == 2)
        await stubborn.kill()
        assert (await stubborn.result()).reason == "killed"
        assert _running("sleep\0" + "86125") == []
        asking = await terminal.start("trap - TERM INT; read -p 'name? ' name; echo hello $name")
        await until(lambda: asking.waiting is not None)
        await asking.send("you\n")
        assert (await asking.result()).output.splitlines()[-1] == "hello you"


async def test_a_shell_that_dies_is_followed_by_one_that_is_inside_too(here: Path) -> None:
    """P9."""
    async with open_terminal(cwd=here, sandbox=Bubblewrap(workspace=here)) as terminal:
        assert (await terminal.run("exit 5")).exit_code == 5
        result = await terminal.run("echo x > /etc/tarmac-was-here; echo $?")
        assert result.fresh_shell and result.output.splitlines()[-1] == "1"


@pytest.mark.parametrize("settings", [Settings(), Settings(shell_integration_disabled=True)])
async def test_the_exec_provider_and_the_fallback_are_inside_too(here: Path, settings: Settings) -> None:
    """P9, T21: nothing is run outside for want of integration."""
    provider: Provider = "pty" if settings.shell_integration_disabled else "exec"
    box = Bubblewrap(workspace=here)
    async with open_terminal(cwd=here, sandbox=box, provider=provider, settings=settings) as terminal:
        assert terminal.provider == "exec"
        result = await terminal.run("touch /etc/tarmac-was-here; touch inside; ls; exit 4")
        assert (result.exit_code, result.output.splitlines()[1:]) == (4, ["inside", "src"])
        slow = await terminal.run("sleep 86126", timeout=0.3, on_timeout="interrupt")
        assert slow.reason == "timeout"
    assert _running("sleep\0" + "86126") == []


async def test_a_directory_outside_of_the_workspace_can_be_worked_in_but_not_changed(
    here: Path, tmp_path: Path
) -> None:
    """P9: also one in a folder that is otherwise empty inside."""
    (tmp_path / "other").mkdir()
    output = await said(Bubblewrap(workspace=here), "pwd; touch x", cwd=tmp_path / "other")
    assert output.splitlines()[0] == str(tmp_path / "other")
    assert not (tmp_path / "other" / "x").exists()


async def test_more_folders_can_be_opened_for_writing(here: Path, tmp_path: Path) -> None:
    """P9."""
    cache = tmp_path / "cache"
    (cache / ".git").mkdir(parents=True)
    (cache / "kept").mkdir()
    (cache / "kept" / "token").write_text("KEY")
    box = Bubblewrap(workspace=here, writable=(cache,), hidden=(cache / "kept",))
    output = await said(
        box, f"cat {cache}/kept/*; echo x > {cache}/.git/config; echo x > {cache}/made; cat {cache}/made"
    )
    assert (cache / "made").read_text() == "x\n"
    assert not (cache / ".git" / "config").exists()
    assert "KEY" not in output and output.endswith("x\n")


async def test_a_workspace_in_a_hidden_folder_is_there_and_its_neighbours_are_not(tmp_path: Path, here: Path) -> None:
    """P9: parents are covered before what is below them is shown."""
    (tmp_path / "neighbour").write_text("KEY")
    output = await said(Bubblewrap(workspace=here, hidden=(tmp_path,)), "touch made; ls ..; cat ../neighbour; ls -1")
    assert "KEY" not in output
    assert output.splitlines()[-2:] == ["made", "src"]


# What it says of itself


def test_it_says_what_holds_and_never_what_does_not(here: Path) -> None:
    """P9."""
    loose = Bubblewrap(workspace=here, network=True, unix_sockets=True, memory=None, processes=None)
    assert loose.enforced().no == (
        "the network can be used",
        "sockets of other programs can be reached where they are not hidden",
        "memory is not limited",
        "the number of processes is not limited",
    )
    assert not loose.enforced().strict
    assert "NOT enforced: the network can be used" in loose.describe()
    tight: Sandbox = Bubblewrap(workspace=here, memory=None)
    assert "enforced: no network" in tight.describe()


@pytest.mark.parametrize(
    ("program", "why"), [("tarmac-no-such-bwrap", "there is no"), ("/bin/false", "can't make a sandbox")]
)
async def test_without_a_sandbox_nothing_is_run(tmp_path: Path, program: str, why: str) -> None:
    """P9: no silent way without."""
    providers: tuple[Provider, ...] = ("pty", "exec")
    for provider in providers:
        with pytest.raises(SandboxUnavailable, match=why):
            async with open_terminal(
                cwd=tmp_path,
                sandbox=Bubblewrap(workspace=tmp_path, program=program),
                provider=provider,
            ) as terminal:
                await terminal.run("touch ran")
    assert list(tmp_path.iterdir()) == []


def test_a_sandbox_that_breaks_later_runs_nothing(here: Path) -> None:
    """P9: control groups that can't be joined, a filter that can't be read."""
    box = Bubblewrap(workspace=here)
    wrapped = box.wrap(["touch", "ran"], cwd=here, env=os.environ)
    wrapped.close()
    done = subprocess.run(wrapped.argv, cwd=here, capture_output=True, check=False, timeout=20)
    assert done.returncode != 0
    assert not (here / "ran").exists()


def test_a_workspace_must_be_one(here: Path) -> None:
    """P9."""
    for place, why in (
        (Path("/"), "whole machine"),
        (here / "gone", "not a folder"),
        (Path("/tmp"), "temporary files"),
    ):
        with pytest.raises(BadRequest, match=why):
            Bubblewrap(workspace=place).wrap(["true"], cwd=here, env=os.environ)


def test_it_holds_for_another_user_than_root_too(here: Path) -> None:
    """P9: there it rests on user namespaces, and on that user's own limit of processes."""
    if os.geteuid() != 0:
        pytest.skip("we are not root: all the other tests show it")
    for place in (here, *here.parents):  # pytest's folders are for root alone
        if place == Path("/tmp"):
            break
        place.chmod(0o755)
    here.chmod(0o777)
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        try:
            os.dup2(write, 1)
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            box = Bubblewrap(workspace=here, processes=30)
            script = "touch inside; touch /etc/x 2>/dev/null || echo held; id -u; ulimit -p"
            env = {"PATH": "/usr/bin:/bin", "HOME": str(here)}
            wrapped = box.wrap(["/bin/sh", "-c", script], cwd=here, env=env)
            subprocess.run(wrapped.argv, cwd=here, env=env, check=False, timeout=20)
            wrapped.close()
        finally:
            os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    with os.fdopen(read) as told:
        assert told.read().split() == ["held", "65534", "30"]
    assert (here / "inside").exists()


def test_a_machine_whose_calls_are_not_known_has_no_filter_and_all_known_ones_have_one() -> None:
    """P9."""
    assert sandbox_filter(machine="pdp11") is None
    for machine in ("x86_64", "aarch64"):
        made = sandbox_filter(machine=machine)
        assert made and len(made) % 8 == 0
