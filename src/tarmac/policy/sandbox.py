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
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from tarmac.errors import BadRequest
from tarmac.paths import remove_scratch, scratch_dir, state_dir
from tarmac.policy.bwrap import JOIN, Groups, make_groups, probe
from tarmac.policy.files import protected_name
from tarmac.seccomp import sandbox_filter

MODE = 0o500  # nobody's choice, and left alone by every common umask
_TRIES = 20


@dataclass(frozen=True, slots=True)
class Stub:
    """One of them, in use."""

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
# They lead to somebody outside who would act for us.
SOCKET_VARIABLES = (
    "SSH_AUTH_SOCK", "SSH_AGENT_PID", "GPG_AGENT_INFO", "DBUS_SESSION_BUS_ADDRESS", "DBUS_SYSTEM_BUS_ADDRESS",
    "DOCKER_HOST", "CONTAINER_HOST", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "PULSE_SERVER",
    "NOTIFY_SOCKET", "LISTEN_FDS",
)  # fmt: skip
# What a variable is named by whose value is a secret: without a network it is good for nothing but to be printed.
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

        `show` can be read inside even where all else is hidden, the files `write` be written. `first`: it is the first
        process of its own world, which is right for a shell that cares for its signals; without, bwrap's own is.
        """
        program = probe(self.program)
        root = Path(os.path.realpath(self.workspace))
        if root == Path("/"):
            raise BadRequest("the workspace of a sandbox can't be the whole machine")
        if not root.is_dir():
            raise BadRequest(f"the workspace {root} is no folder")
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
