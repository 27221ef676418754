"""A sandbox around a terminal's shell, by bubblewrap.

Bubblewrap(workspace).wrap(argv, …) → the argv that runs it inside      (what a terminal asks)
                     .enforced()    → what holds on this machine, found by trying, and what does not

Inside, only the workspace and an empty /tmp are writable. There is no network but its own loopback. Other processes
are invisible. Sockets and credentials are hidden. `.git` and other protected names in the workspace can't be changed.
The first process is the shell itself, so everything that it starts stays below it and dies with it.

Two surprises. bubblewrap leaves /proc/sys writable to root, which is a way out (core_pattern), so it is covered. And a
protected name that does not exist yet can be blocked only if it is a folder. While the sandbox lives, an empty folder
is in its place, on the host too.
"""

import fcntl
import os
import secrets
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path

from tarmac.errors import BadRequest, SandboxUnavailable
from tarmac.paths import remove_scratch, scratch_dir, state_dir
from tarmac.policy.files import protected_name
from tarmac.seccomp import sandbox_filter

# Joins the control groups, opens the filter, becomes bwrap. Without any of these it does not start.
JOIN = """
while [ "$1" != -- ]; do echo 0 >"$1/cgroup.procs" || exit 126; shift; done
shift; [ -z "$1" ] || exec 9<"$1" || exit 126; shift; exec "$@"
"""
# What holds, told from within; one word for each.
_TRY = r"""
(: >"$1/made") 2>/dev/null || echo files
[ $$ = 1 ] && [ "$(ls /proc | grep -c '^[0-9]')" -lt 9 ] && echo processes
[ "$(grep -c : /proc/net/dev)" = 1 ] && echo network
grep -q '^CapEff:[[:space:]]*0*$' /proc/self/status && [ ! -w /proc/sys/kernel/core_pattern ] && echo privileges
grep -q '^Seccomp:[[:space:]]*2' /proc/self/status && echo calls
"""


@dataclass(frozen=True, slots=True)
class BwrapProgram:
    """A bwrap that works, and how."""

    path: str
    flags: tuple[str, ...]
    holds: frozenset[str]


_BASE = ("--unshare-pid", "--unshare-ipc", "--unshare-cgroup-try", "--cap-drop", "ALL")
# The best first: in a user namespace that allows no other, in one that does, and for root without.
_WAYS = (("--unshare-user", "--disable-userns"), ("--unshare-user",), ())


@cache
def probe(program: str) -> BwrapProgram:
    """The way that works here, tried out; SandboxUnavailable when none does. Only a success is remembered."""
    path = shutil.which(program)
    if path is None:
        raise SandboxUnavailable(
            f"there is no `{program}` on this machine", hint="install bubblewrap (on Debian: apt install bubblewrap)"
        )
    why = ""
    outside = scratch_dir(os.environ)
    try:
        call_filter = sandbox_filter()
        (outside / "filter").write_bytes(call_filter or b"")
        for way in _WAYS if os.geteuid() == 0 else _WAYS[:2]:
            flags = (*_BASE, *way)
            words = [path, *flags, "--die-with-parent", "--as-pid-1", "--unshare-net", "--ro-bind", "/", "/"]
            words += ["--dev", "/dev", "--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys"]
            words += ["--perms", "1777", "--size", "1048576", "--tmpfs", "/var/tmp"]
            words += [*(["--seccomp", "9"] if call_filter else []), "--", "/bin/sh", "-c", _TRY, "sh", str(outside)]
            tried = subprocess.run(
                ["/bin/sh", "-c", JOIN, "sh", "--", str(outside / "filter"), *words],
                capture_output=True,
                text=True,
                timeout=10,
                check=False,
                stdin=subprocess.DEVNULL,
            )
            holds = frozenset(tried.stdout.split())
            if {"files", "processes", "privileges"} <= holds:
                return BwrapProgram(path, flags, holds)
            why = (
                why or tried.stderr.strip().rpartition("\n")[2] or f"only {', '.join(sorted(holds)) or 'nothing'} held"
            )
    except (OSError, subprocess.TimeoutExpired) as error:
        why = str(error)
    finally:
        remove_scratch(outside)
    raise SandboxUnavailable(
        f"`{program}` can't make a sandbox here: {why}",
        hint="user namespaces may be turned off: see kernel.unprivileged_userns_clone, user.max_user_namespaces",
    )


PREFIX = "tarmac-"
PATIENCE = 0.2  # seconds; the kernel takes a moment to forget the dead


@dataclass(frozen=True, slots=True)
class Groups:
    """The control groups that were made, and what they limit."""

    folders: tuple[Path, ...] = ()
    memory: bool = False
    processes: bool = False

    def close(self) -> None:
        """End what is left in them, and remove them. What takes too long is removed when the next ones are made."""
        end = time.monotonic() + PATIENCE
        for folder in self.folders:
            while not _remove(folder) and time.monotonic() < end:
                for pid in _lines(folder / "cgroup.procs"):
                    _kill(int(pid))
                time.sleep(0.001)


def make_groups(*, memory: int | None, processes: int | None) -> Groups:
    """Groups with these limits, as far as that is possible; with none of them when it is not."""
    folders: list[Path] = []
    done: set[str] = set()
    wanted = {"memory": memory, "pids": processes}
    for controller, limit in wanted.items():
        if limit is None:
            continue
        for parent, names in _places(controller):
            shared = next((each for each in folders if each.parent == parent), None)
            folder = shared or _make(parent)
            if folder and _limit(folder, names, limit):
                done.add(controller)
                folders += [] if shared else [folder]
                break
            if folder and not shared:
                folder.rmdir()
    return Groups(tuple(folders), memory="memory" in done, processes="pids" in done)


def _places(controller: str) -> list[tuple[Path, tuple[str, ...]]]:
    """Where a group with this controller could be made, best first, and the files that hold its limit."""
    found: list[tuple[Path, tuple[str, ...]]] = []
    mounts = _mounts()
    for line in _lines(Path("/proc/self/cgroup")):
        number, names, path = line.split(":", 2)
        if controller in names.split(","):
            root = mounts.get(controller)
            files = {"memory": ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes"), "pids": ("pids.max",)}
            found += [(root / path.lstrip("/"), files[controller])] if root else []
        elif number == "0" and not names and "" in mounts:
            own = mounts[""] / path.lstrip("/")
            handed_down = [
                each
                for each in (own, *own.parents)
                if each.is_relative_to(mounts[""])
                and controller in " ".join(_lines(each / "cgroup.subtree_control")).split()
            ]
            found += [(each, (f"{controller}.max",)) for each in handed_down]
    return found


def _mounts() -> dict[str, Path]:
    """Controller → where its tree is; "" for the one tree of version 2."""
    found: dict[str, Path] = {}
    for line in _lines(Path("/proc/self/mountinfo")):
        before, _, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        if len(fields) < 5 or len(kind) < 3 or fields[3] != "/":  # a part of a tree only: a container's
            continue
        place = Path(fields[4].encode().decode("unicode_escape"))
        if kind[0] == "cgroup2":
            found.setdefault("", place)
        elif kind[0] == "cgroup":
            for each in kind[2].split(","):
                found.setdefault(each, place)
    return found


def _make(parent: Path) -> Path | None:
    folder = parent / f"{PREFIX}{os.getpid()}-{secrets.token_hex(4)}"
    try:
        _sweep(parent)
        folder.mkdir()
    except OSError:
        return None
    return folder


def _sweep(parent: Path) -> None:
    """Remove what one of us left: rmdir takes only those that are empty of processes."""
    for each in parent.glob(f"{PREFIX}*-*"):
        owner = each.name.removeprefix(PREFIX).partition("-")[0]
        old = time.time() - each.stat().st_mtime > 60  # a new one of ours may be waiting for its first process
        if owner.isdigit() and (old if owner == str(os.getpid()) else not Path(f"/proc/{owner}").exists()):
            _remove(each)


def _remove(folder: Path) -> bool:
    """Whether it is gone: the kernel keeps one with processes in it."""
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        pass


def _limit(folder: Path, names: tuple[str, ...], limit: int) -> bool:
    """Set it; True when the kernel has it. The first file must be there, others are when swap is counted."""
    for name in names:
        file = folder / name
        if not file.exists() and name != names[0]:
            continue
        try:
            file.write_text(str(limit))
        except OSError:
            return False
    page = os.sysconf("SC_PAGE_SIZE")
    said = "".join(_lines(folder / names[0]))
    return said.isdigit() and abs(int(said) - limit) < page


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text().splitlines()
    except OSError:
        return []


MODE = 0o500  # a mode that nobody chooses, and that no common umask changes: so we know our own
_TRIES = 20


@dataclass(frozen=True, slots=True)
class Stub:
    """An empty folder where a protected name does not exist yet: while it is in use, nobody can make another there."""

    folder: Path
    fd: int

    def close(self) -> None:
        """Give it up, and remove it if nobody else uses it."""
        try:
            fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.folder.rmdir()
        except OSError:
            pass  # another sandbox has it, or it is no longer empty
        finally:
            os.close(self.fd)


def stand_in(folder: Path) -> Stub | None:
    """A stub at `folder`, made or shared; None when there is something of somebody's."""
    for _ in range(_TRIES):
        try:
            folder.mkdir(MODE)
        except FileExistsError:
            pass
        try:
            fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            continue  # its last user has just gone
        except OSError:
            return None
        try:
            found = os.fstat(fd)
            if stat.S_IMODE(found.st_mode) != MODE or os.listdir(fd):  # noqa: PTH208
                os.close(fd)
                return None
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
            if os.path.samestat(found, os.stat(folder, follow_symlinks=False)):
                return Stub(folder, fd)
        except OSError:
            pass  # it is being removed at this moment
        os.close(fd)
    return None


# In the user's home, and of the machine: never to be seen inside.
SECRET_PLACES = (
    ".ssh", ".gnupg", ".aws", ".azure", ".oci", ".kube", ".docker", ".config/gcloud", ".config/gh",
    ".config/op", ".netrc", ".config/rclone", ".git-credentials", ".config/git/credentials", ".npmrc",
    ".pypirc", ".pgpass", ".my.cnf", ".vault-token", ".cargo/credentials", ".cargo/credentials.toml",
    ".gem/credentials", ".terraform.d", ".password-store", ".mozilla", ".local/share/keyrings",
    ".config/google-chrome", ".config/chromium", ".claude.json", ".claude/.credentials.json",
    ".codex/auth.json", ".bash_history", ".zsh_history", ".python_history", ".local/share/fish/fish_history",
    "/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d",
    "/etc/ssl/private", "/var/lib/docker", "/var/lib/containerd", "/var/run/secrets",
)  # fmt: skip
# Sockets and folders of programs outside that would act for whoever reaches them.
SOCKET_VARIABLES = (
    "SSH_AUTH_SOCK", "SSH_AGENT_PID", "GPG_AGENT_INFO", "DBUS_SESSION_BUS_ADDRESS", "DBUS_SYSTEM_BUS_ADDRESS",
    "DOCKER_HOST", "CONTAINER_HOST", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "PULSE_SERVER",
    "NOTIFY_SOCKET", "LISTEN_FDS",
)  # fmt: skip
# Names of variables that hold secrets. Without a network a secret is good for nothing but to be printed.
SECRET_WORDS = frozenset(
    ["KEY", "APIKEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASS", "CREDENTIALS", "AUTH", "PAT"]
)
MASKED = ("/tmp", "/var/tmp", "/run")
STILL_WANTED = ("/run/current-system", "/run/wrappers", "/run/systemd/resolve")  # what other files are links to
ABSENT = (".git", ".tarmac", ".claude", ".vscode")  # folders that may not appear in a workspace
TEMPORARY = 1 << 30  # bytes in each of its own temporary folders
MOST_FOLDERS = 500  # looked through for repositories within the workspace
DEEPEST = 3
_LIMITED = '{ ulimit -u "$1" || ulimit -p "$1" || exit 126; } 2>/dev/null; shift; exec "$@"'  # dash says -p


@dataclass(frozen=True, slots=True)
class Enforced:
    """What holds, and what does not, in plain words."""

    yes: tuple[str, ...]
    no: tuple[str, ...]

    @property
    def strict(self) -> bool:
        """Whether every restriction holds. Then a command of medium risk need not ask."""
        return not self.no

    def __str__(self) -> str:
        return "\n".join([*(f"enforced: {each}" for each in self.yes), *(f"NOT enforced: {each}" for each in self.no)])


@dataclass(frozen=True, slots=True)
class WrappedCommand:
    """How to start something inside; `close` it when that has ended."""

    argv: list[str]
    folder: Path
    groups: Groups
    stubs: tuple[Stub, ...]

    def close(self) -> None:
        """Remove what was made for it."""
        self.groups.close()
        remove_scratch(self.folder)
        for each in self.stubs:
            each.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Bubblewrap:
    """The sandbox of a workspace. It does nothing until something is wrapped."""

    workspace: Path
    writable: tuple[Path, ...] = ()  # more folders that may be changed
    hidden: tuple[Path, ...] = ()  # more that may not be seen
    network: bool = False
    unix_sockets: bool = False  # True: sockets may be made; those of others stay hidden where we know of them
    memory: int | None = 4 << 30  # bytes, of all its processes together
    processes: int | None = 1024
    program: str = "bwrap"

    def describe(self) -> str:
        """What it enforces on this machine, and what it does not."""
        return str(self.enforced())

    def enforced(self) -> Enforced:
        """Found by trying, the first time; SandboxUnavailable when nothing would be."""
        holds = set(probe(self.program).holds)
        groups = make_groups(memory=self.memory, processes=self.processes)
        groups.close()
        sockets = "sockets of other programs can be reached where they are not hidden"
        claims = [
            (True, "only the workspace and its own /tmp can be written to", ""),
            ("network" in holds and not self.network, "no network", "the network can be used"),
            (
                "processes" in holds,
                "other processes are out of sight, and its own die with it",
                "it sees other processes",
            ),
            ("privileges" in holds, "no privileges", "it may have privileges"),
            (
                "calls" in holds and not self.unix_sockets,
                "sockets of other programs are out of reach, and it can't type into its own terminal",
                sockets if "calls" in holds else f"system calls are not filtered: {sockets}",
            ),
            (groups.memory, f"at most {(self.memory or 0) >> 20:,} MiB of memory", "memory is not limited"),
            (
                groups.processes or self._limits_here(groups),
                f"at most {self.processes or 0:,} processes",
                "the number of processes is not limited",
            ),
        ]
        yes: list[str] = []
        no: list[str] = []
        for holds_here, good, bad in claims:
            (yes if holds_here else no).append(good if holds_here else bad)
        return Enforced(tuple(yes), tuple(no))

    def wrap(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        show: Sequence[Path] = (),
        write: Sequence[Path] = (),
        first: bool = True,
    ) -> WrappedCommand:
        """The argv that runs `argv` inside, in `cwd`.

        The files in `show` can be read inside even where all else is hidden, and those in `write` can be written.
        `first`: it is the first process inside, which is right for a shell, because it handles its signals. Otherwise
        the first process is bwrap's own.
        """
        program = probe(self.program)
        root = Path(os.path.realpath(self.workspace))
        if root == Path("/"):
            raise BadRequest("the workspace of a sandbox can't be the whole machine")
        if not root.is_dir():
            raise BadRequest(f"the workspace {root} is not a folder")
        for place in (env.get("TMPDIR") or "/tmp", "/tmp"):
            if Path(os.path.realpath(place)).is_relative_to(
                root
            ):  # other shells' folders are there, to be tampered with
                raise BadRequest(f"the workspace {root} holds the folder for temporary files, {place}")
        folder = scratch_dir({})
        groups = make_groups(memory=self.memory, processes=self.processes)
        stubs: list[Stub] = []
        try:
            call_filter = sandbox_filter(unix_sockets=self.unix_sockets) if "calls" in program.holds else None
            if call_filter:
                (folder / "filter").write_bytes(call_filter)
            inside = [program.path, *program.flags, "--die-with-parent", *(["--as-pid-1"] if first else [])]
            inside += ["--seccomp", "9"] if call_filter else []
            inside += [] if self.network else ["--unshare-net"]
            inside += self._mounts(root, env, stubs, call_filter is None)
            for each in show:
                inside += ["--ro-bind", str(each), str(each)]
            for each in write:
                inside += ["--bind", str(each), str(each)]
            here = Path(os.path.realpath(cwd))
            if _is_masked(here) and not _is_seen(here, [root, *self.writable]):
                inside += ["--ro-bind", str(here), str(here)]
            inside += ["--chdir", str(here)]
            for name in env:
                secret = not self.network and not SECRET_WORDS.isdisjoint(name.upper().split("_"))
                inside += ["--unsetenv", name] if name in SOCKET_VARIABLES or secret else []
            for name, value in (
                ("TMPDIR", "/tmp"),
                ("XDG_CACHE_HOME", "/tmp/.cache"),
                ("npm_config_cache", "/tmp/.npm"),
            ):
                inside += ["--setenv", name, value]
            limit = ["/bin/sh", "-c", _LIMITED, "sh", str(self.processes)] if self._limits_here(groups) else []
            joined = ["/bin/sh", "-c", JOIN, "sh", *map(str, groups.folders), "--"]
            joined.append(str(folder / "filter") if call_filter else "")
            return WrappedCommand([*joined, *inside, "--", *limit, *argv], folder, groups, tuple(stubs))
        except BaseException:
            WrappedCommand([], folder, groups, tuple(stubs)).close()
            raise

    def _limits_here(self, groups: Groups) -> bool:
        """By the limit of a user's processes, which counts anew in a user namespace; root has none."""
        return self.processes is not None and not groups.processes and os.geteuid() != 0

    def _mounts(self, root: Path, env: Mapping[str, str], stubs: list[Stub], any_call: bool) -> list[str]:
        """What is seen of the machine. Parents come before what is below them; of the same place, the last counts."""
        mounts: list[tuple[str, list[str]]] = []

        def put(place: Path | str, *words: str) -> None:
            mounts.append((str(place), [*words, str(place)]))

        for each in [*MASKED, *filter(None, [env.get("XDG_RUNTIME_DIR")])]:
            if os.path.isdir(each):  # noqa: PTH112 (one we may not look at is no harm)
                put(os.path.realpath(each), "--perms", "1777", "--size", str(TEMPORARY), "--tmpfs")
        for each in STILL_WANTED:
            put(each, "--ro-bind-try", each)
        folders = [root, *(Path(os.path.realpath(each)) for each in self.writable)]
        for folder in folders:
            put(folder, "--bind", str(folder))
        for place in (place for folder in folders for place in _protected(folder)):
            put(place, "--ro-bind-try", str(place))
        for name in ABSENT:
            if stub := stand_in(root / name):
                stubs.append(stub)
                put(stub.folder, "--ro-bind", str(stub.folder))
        for place in (*self._secrets(env), *(_listening() if any_call or self.unix_sockets else ())):
            if not _is_masked(place) or any(place.is_relative_to(folder) for folder in folders):
                put(place, *(("--perms", "0500", "--tmpfs") if place.is_dir() else ("--ro-bind", "/dev/null")))
        if (outputs := Path(os.path.realpath(state_dir(env) / "output"))).is_dir():
            put(outputs, "--ro-bind", str(outputs))
        mounts.sort(key=lambda each: each[0].rstrip("/").count("/"))
        fixed = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys"]
        return [*fixed, *(word for _, words in mounts for word in words)]

    def _secrets(self, env: Mapping[str, str]) -> Iterator[Path]:
        """Those that exist, by their real names."""
        home = Path(env.get("HOME") or "/nonexistent")
        for place in (*(home / each for each in SECRET_PLACES), state_dir(env), *self.hidden):
            if os.path.exists(place):  # noqa: PTH110 (what may not be looked at can't be read either)
                yield Path(os.path.realpath(place))


def _is_masked(path: Path) -> bool:
    return any(path.is_relative_to(os.path.realpath(each)) for each in MASKED)


def _is_seen(here: Path, folders: Sequence[Path]) -> bool:
    """Whether it is there anyway: in one of these, or as the top of an empty folder."""
    return str(here) in map(os.path.realpath, MASKED) or any(
        here.is_relative_to(os.path.realpath(each)) for each in folders
    )


def _protected(root: Path) -> list[Path]:
    """What exists in the workspace and may not be changed: at its top, and repositories further down."""
    try:
        top = [each for each in root.iterdir() if protected_name(each.name)]
    except OSError as error:
        raise BadRequest(f"the workspace {root} can't be looked at: {error.strerror}") from error
    inner = [each for each in islice(_repositories(root), MOST_FOLDERS) if each not in top]
    return [each for each in (*top, *inner) if not each.is_symlink()]  # a link can't be held in its place


def _repositories(root: Path) -> Iterator[Path]:
    folders = [root]
    for _ in range(MOST_FOLDERS):
        if not folders:
            return
        folder = folders.pop(0)
        try:
            for each in os.scandir(folder):
                if each.name == ".git" and folder != root:
                    yield Path(each.path)
                elif each.is_dir(follow_symlinks=False) and each.name not in ("node_modules", ".git", ".venv"):
                    below = Path(each.path)
                    folders += [below] if len(below.parts) - len(root.parts) <= DEEPEST else []
        except OSError:
            continue


def _listening() -> Iterator[Path]:
    """The sockets that somebody listens on now, by name; those in masked folders are hidden anyway."""
    try:
        lines = Path("/proc/net/unix").read_text().splitlines()[1:]
    except OSError:
        return
    for line in lines:
        fields = line.split(maxsplit=7)
        if len(fields) == 8 and fields[7].startswith("/") and fields[3] == "00010000":
            place = Path(fields[7])
            if os.path.exists(place):  # noqa: PTH110
                yield Path(os.path.realpath(place))
