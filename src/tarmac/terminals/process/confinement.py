"""Start programs under rules that the kernel keeps: Landlock and a filter of system calls, or bubblewrap.

ConfinementRules (data, made by the policy) → Confined.start(…) → a program that can read what is listed, and no more

Landlock and seccomp bind a thread and all it starts, for ever. So a thread of ours binds itself and then starts the
program. Nothing of ours runs between fork and exec. The thread stays for a while and starts the next program with the
same rules: a rule set that is used again costs a message to a thread. The filter is the same for all rule sets and
costs most, so one thread takes it on and starts the others.

Surprise: that thread can't open anything else either. It must not import, log or open files.
"""

import _thread
import ctypes
import errno
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Protocol, TypeVar

from tarmac.errors import SandboxUnavailable
from tarmac.seccomp import reader_filter
from tarmac.terminals.process.processes import read

T = TypeVar("T")

LEAST_ABI = 3  # below it files can be truncated
SIGNALS_ABI = 6  # from it on Landlock keeps signals inside
MOST_THREADS = 4  # rule sets that are kept
IDLE = 30.0  # seconds that one is kept without use

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF, _OPENAT2 = 444, 445, 446, 437
_SECCOMP = {"x86_64": 317, "aarch64": 277}
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _TRUNCATE = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 14
_REMOVE_DIR, _REMOVE_FILE, _MAKE_DIR, _MAKE_FILE, _MAKE_LINK, _MOVE = 1 << 4, 1 << 5, 1 << 7, 1 << 8, 1 << 12, 1 << 13
_CHANGE = _WRITE_FILE | _TRUNCATE | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_FILE | _MAKE_LINK | _MOVE
_READ = _READ_FILE | _READ_DIR
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
_PR_SET_NO_NEW_PRIVS, _PR_GET_SECUREBITS, _PR_SET_SECUREBITS, _PR_CAP_AMBIENT = 38, 27, 28, 47
_NOROOT = 3  # to be root brings no capabilities, and that stays so
_CAPABILITY_VERSION = 0x20080522
_CAP_DAC_READ_SEARCH = 1 << 2  # root may still read files of others in the workspace
_SYSTEM = ("/etc/", "/sys/", "/usr/", "/proc")  # where nobody in a workspace can put a link
_LINKS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")
_ON_DEVICES = ("/dev/null", _READ_FILE | _WRITE_FILE | _TRUNCATE, 0), *((each, _READ_FILE, 0) for each in DEVICES[1:])


# dash says -p for processes. A limit that is lower already can't be raised, and stays.
_LIMITED = """
{ ulimit -c 0; ulimit -d "$1"; ulimit -n "$2"; ulimit -f "$3"; ulimit -t "$4"; ulimit -u "$5" || ulimit -p "$5"
} 2>/dev/null
shift 5; exec "$@"
"""


class Means(Enum):
    """What keeps a program inside."""

    LANDLOCK = "landlock"
    BUBBLEWRAP = "bubblewrap"
    NONE = "none"


class ConfinementRules(Protocol):
    """What a program may do; see `tarmac.policy.Confinement`. All paths are real: no links on the way."""

    @property
    def programs(self) -> tuple[str, ...]:
        """Files and folders that may be read and run."""

    @property
    def reads(self) -> tuple[str, ...]:
        """Files and folders that may be read."""

    @property
    def lists(self) -> tuple[str, ...]:
        """Folders of which the names may be read, with all below."""

    @property
    def scratch(self) -> bool:
        """Whether there is a private folder for temporary files."""

    @property
    def private_home(self) -> bool:
        """Whether that folder is its home, too."""

    @property
    def variables(self) -> tuple[tuple[str, str], ...]:
        """More variables of its environment."""

    @property
    def memory(self) -> int: ...
    @property
    def processes(self) -> int: ...
    @property
    def open_files(self) -> int: ...
    @property
    def file_bytes(self) -> int: ...
    @property
    def cpu_seconds(self) -> int: ...


class CannotConfine(SandboxUnavailable):
    """The rules could not be put in force, so that nothing was started."""


@cache
def landlock_abi() -> int:
    """The version of Landlock here; 0 when there is none."""
    if sys.platform != "linux" or os.uname().machine not in _SECCOMP:
        return 0
    version: int = _kernel().syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), 1)
    return max(version, 0)


@cache
def means() -> Means:
    """The best that this machine has, found by trying it."""
    if landlock_abi() >= LEAST_ABI and _filter_works():
        return Means.LANDLOCK
    return Means.BUBBLEWRAP if _bubblewrap() else Means.NONE


class Confined:
    """The rules of one plan, ready to start its programs."""

    def __init__(self, confinement: ConfinementRules, *, scratch: Path | None) -> None:
        self._confinement = confinement
        self._scratch = scratch
        self.means = means()
        if self.means is Means.NONE:
            raise CannotConfine(
                "this machine can't confine commands: it has neither Landlock nor bubblewrap",
                hint="see `tarmac doctor`",
            )

    def start(self, start: Callable[[list[str], tuple[int, ...]], T], argv: list[str], cwd: Path) -> T:
        """What `start` returns, which is given the words and the descriptors to pass on; what it starts is confined."""
        if self.means is Means.BUBBLEWRAP:
            return self._in_bubblewrap(start, argv, cwd)
        rules = _Rules.of(self._confinement, self._scratch)
        return _call(rules, lambda: start(argv, ()))

    def call(self, work: Callable[[], T]) -> T:
        """The outcome of `work`, which can open what the program could, where the thread is bound by the same rules."""
        if self.means is Means.BUBBLEWRAP:
            return work()
        return _call(_Rules.of(self._confinement, self._scratch), work)

    def limit(self, pid: int) -> None:
        """Set the limits of a process that was just started, and of what it may have started meanwhile."""
        if self.means is Means.BUBBLEWRAP:
            return  # they are set inside
        import resource

        allowed = self._confinement
        limits = (
            (resource.RLIMIT_DATA, allowed.memory),
            (resource.RLIMIT_NPROC, _threads_now() + allowed.processes),
            (resource.RLIMIT_NOFILE, allowed.open_files),
            (resource.RLIMIT_FSIZE, allowed.file_bytes),
            (resource.RLIMIT_CPU, allowed.cpu_seconds),
            (resource.RLIMIT_CORE, 0),
        )
        try:
            for number, most in limits:
                hard = resource.getrlimit(number)[1]  # of ours, which it inherited
                most = most if hard == resource.RLIM_INFINITY else min(most, hard)
                resource.prlimit(pid, number, (most, most))
            for child in read(f"/proc/{pid}/task/{pid}/children").split():
                self.limit(int(child))
        except (OSError, ValueError):  # it has ended
            pass

    def _in_bubblewrap(self, start: Callable[[list[str], tuple[int, ...]], T], argv: list[str], cwd: Path) -> T:
        program = reader_filter(signals=True)  # it sees no others
        assert program is not None
        fd = os.memfd_create("filter")
        try:
            os.write(fd, program)
            os.lseek(fd, 0, os.SEEK_SET)
            return start([*self._bubblewrap_words(fd, cwd), *argv], (fd,))
        finally:
            os.close(fd)

    def _bubblewrap_words(self, fd: int, cwd: Path) -> list[str]:
        words = [_bubblewrap(), "--unshare-all", "--die-with-parent", "--cap-drop", "ALL", "--seccomp", str(fd)]
        words += ["--dev", "/dev", "--proc", "/proc"]
        shown: list[tuple[str, list[str]]] = []
        places = dict.fromkeys((*self._confinement.programs, *self._confinement.reads, *_LINKS))
        # What many a system has as links into /usr must be there by those names, too.
        folders = [f"{place}/" for place in places if os.path.isdir(place) and not os.path.islink(place)]  # noqa: PTH112, PTH114
        for place in places:
            if place.startswith(("/proc", "/dev")) or any(place.startswith(folder) for folder in folders):
                continue  # made anew, or there already
            if place in _LINKS and not os.path.islink(place):  # noqa: PTH114
                continue  # it is one of the folders, or is not there
            if os.path.islink(place):  # noqa: PTH114
                shown.append((place, ["--symlink", os.readlink(place), place]))
            else:
                shown.append((place, ["--ro-bind-try", place, place]))
        if self._scratch is not None:
            shown.append((str(self._scratch), ["--bind", str(self._scratch), str(self._scratch)]))
        for _, each in sorted(shown, key=lambda pair: pair[0].count("/")):
            words += each
        words += ["--dir", str(cwd)] if not cwd.is_relative_to("/proc") else []
        words += ["--remount-ro", "/", "--chdir", str(cwd), "--", "/bin/sh", "-c", _LIMITED, "sh"]
        allowed = self._confinement
        limits = (allowed.memory >> 10, allowed.open_files, allowed.file_bytes >> 9, allowed.cpu_seconds)
        return [*words, *map(str, (*limits, _threads_now() + allowed.processes))]


@dataclass(frozen=True, slots=True)
class _Rules:
    """What a thread is bound by: places, what may be done there, and which files those are now."""

    places: tuple[tuple[str, int, int], ...]  # path, rights, inode; 0: a place of the system, whatever file it is

    @classmethod
    def of(cls, confinement: ConfinementRules, scratch: Path | None) -> "_Rules":
        programs = confinement.programs
        places = [(place, _READ | _EXECUTE, 0) for place in programs]
        for place in confinement.reads:
            if place.startswith(_SYSTEM):
                places.append((place, _rights_at(place), 0))
            else:
                places.append((place, _READ, 0 if place in programs else _inode(place)))
        places += [(place, _READ_DIR, _inode(place)) for place in confinement.lists]
        if scratch is not None:
            places.append((str(scratch), _READ | _CHANGE, _inode(str(scratch))))
        return cls((*places, *_ON_DEVICES))

    def enforce(self) -> None:
        """Bind the calling thread, which has no privileges any more, and all that it starts, for ever."""
        kernel, abi = _kernel(), landlock_abi()
        handled = (1 << (16 if abi >= 5 else 15)) - 1
        asked = _RulesetAttributes(handled, 3 if abi >= 4 else 0, 3 if abi >= SIGNALS_ABI else 0)
        size = 24 if abi >= SIGNALS_ABI else 16 if abi >= 4 else 8
        rules = kernel.check(
            kernel.syscall(_CREATE_RULESET, ctypes.byref(asked), ctypes.c_size_t(size), 0), "landlock_create_ruleset"
        )
        try:
            for place, rights, inode in self.places:
                kernel.add_rule(rules, place, rights, inode)
            kernel.check(kernel.syscall(_RESTRICT_SELF, rules, 0), "landlock_restrict_self")
        finally:
            os.close(rules)


@cache
def _rights_at(place: str) -> int:
    """What reading means at a place of the system, which is remembered: the kernel is asked once less."""
    return _READ if os.path.isdir(place) else _READ_FILE  # noqa: PTH112


class _ConfinedThread:
    """A thread that is bound by rules and starts programs for others, until nobody has wanted it for a while.

    What is wanted waits in a queue until the rules are in force. `parent` is the thread that starts it, whose own rules
    it keeps. Nobody waits for the start alone, as `threading.Thread` would: hence `_thread`.
    """

    def __init__(self, bind: Callable[[], None], parent: "_ConfinedThread | None" = None) -> None:
        self.owner = os.getpid()
        self._bind = bind
        self._wanted: SimpleQueue[_Call | _ConfinedThread] = SimpleQueue()
        self.closed = False
        self._refusal: CannotConfine | None = None
        self._lock = threading.Lock()
        if parent is None:
            self.make()
        else:
            parent.want(self)

    @property
    def usable(self) -> bool:
        return not self.closed and self.owner == os.getpid()  # a fork has no threads

    def want(self, what: "_Call | _ConfinedThread") -> None:
        """Have the thread make a call, or start another thread."""
        with self._lock:
            if self.closed:
                raise self._refusal or _Gone()
            self._wanted.put(what)

    def end(self) -> None:
        with self._lock:
            self.closed = True
            self._wanted.put(_Call(lambda: None))

    def make(self) -> None:
        """Start the thread. The calling thread's rules are its own."""
        try:
            _thread.start_new_thread(self._run, ())
        except RuntimeError as error:
            self.refuse(CannotConfine(f"no thread can be started: {error}"))

    def refuse(self, error: CannotConfine) -> None:
        """The rules are not in force: nothing that was wanted is done, nor will be."""
        with self._lock:
            self.closed, self._refusal = True, error
        while not self._wanted.empty():
            self._wanted.get().refuse(error)

    def _run(self) -> None:
        try:
            self._bind()
        except BaseException as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            self.refuse(CannotConfine(f"the command can't be confined: {why}"))
            return
        while True:
            try:
                wanted = self._wanted.get(timeout=IDLE)
            except Empty:
                with self._lock:
                    if not self._wanted.empty():
                        continue
                    self.closed = True
                return
            wanted.make()
            if self.closed and self._wanted.empty():
                return
            del wanted  # it holds the caller's values


class _Gone(Exception):
    """The thread ended a moment ago."""


class _Call:
    """Work for another thread, and what came of it."""

    __slots__ = ("_done", "_error", "_result", "_work")

    def __init__(self, work: Callable[[], object]) -> None:
        self._work = work
        self._done = threading.Lock()
        self._done.acquire()
        self._result: object = None
        self._error: BaseException | None = None

    def make(self) -> None:
        try:
            self._result = self._work()
        except BaseException as error:
            self._error = error
        self._done.release()

    def refuse(self, error: CannotConfine) -> None:
        self._error = error
        self._done.release()

    def wait(self) -> object:
        self._done.acquire()
        if self._error is not None:
            raise self._error
        return self._result


_threads: dict[_Rules, _ConfinedThread] = {}  # the one used last is the last
_parents: list[_ConfinedThread] = []  # the thread without privileges that starts the others, if there is one
_choosing = threading.Lock()


def _call(rules: _Rules, work: Callable[[], T]) -> T:
    """The outcome of `work`, done by a thread that is bound by these rules."""
    call = _Call(work)
    while True:
        try:
            _thread_with(rules).want(call)
        except _Gone:
            continue
        result: T = call.wait()  # type: ignore[assignment]
        return result


def _thread_with(rules: _Rules) -> _ConfinedThread:
    with _choosing:
        found = _threads.pop(rules, None)
        if found is None or not found.usable:
            if not _parents or not _parents[0].usable:
                _parents[:] = [_ConfinedThread(_give_up_privileges)]
            found = _ConfinedThread(rules.enforce, _parents[0])
        _threads[rules] = found
        while len(_threads) > MOST_THREADS:
            _threads.pop(next(iter(_threads))).end()
        return found


def _give_up_privileges() -> None:
    """For the calling thread and all that it starts: no privileges, and only the calls of a reader."""
    kernel = _kernel()
    kernel.check(kernel.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    kernel.drop_capabilities()
    kernel.filter_calls()


def _inode(place: str) -> int:
    try:
        return os.stat(place, follow_symlinks=False).st_ino
    except OSError:
        return -1


def _threads_now() -> int:
    """All threads of the machine, of which this user's are a part: the limit on processes counts all of a user's."""
    return int(read("/proc/loadavg").split()[3].partition(b"/")[2])


# The kernel, by way of the C library


class _RulesetAttributes(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("rights", ctypes.c_uint64), ("parent", ctypes.c_int32))


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


class _FilterProgram(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))


class _Kernel:
    """System calls that Python has no names for."""

    def __init__(self) -> None:
        library = ctypes.PyDLL(None, use_errno=True)  # keeps the GIL: each call is short
        self.syscall = library.syscall
        self.syscall.restype = ctypes.c_long
        self.prctl = library.prctl
        self.prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
        self._filter: _FilterProgram | None = None
        self._no_links = _OpenHow(os.O_PATH | os.O_CLOEXEC, 0, 4)  # RESOLVE_NO_SYMLINKS

    def check(self, result: int, what: str) -> int:
        if result < 0:
            number = ctypes.get_errno()
            raise OSError(number, f"{what}: {os.strerror(number)}")
        return result

    def add_rule(self, ruleset: int, place: str, rights: int, inode: int) -> None:
        """One rule. A place that is not there, or was swapped for another or for a link, gets none."""
        try:
            fd = self._open_without_links(place) if inode else os.open(place, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            return
        try:
            if inode and os.fstat(fd).st_ino != inode:
                return
            added = self.syscall(_ADD_RULE, ruleset, 1, ctypes.byref(_PathBeneath(rights, fd)), 0)
            if added < 0 and ctypes.get_errno() == errno.EINVAL:  # a file, which the rights of folders are refused for
                rights &= _OF_FILES
                rule = _PathBeneath(rights, fd)
                added = self.syscall(_ADD_RULE, ruleset, 1, ctypes.byref(rule), 0) if rights else 0
            self.check(added, f"a rule for {place}")
        finally:
            os.close(fd)

    def _open_without_links(self, place: str) -> int:
        how = self._no_links
        fd = self.syscall(_OPENAT2, -100, os.fsencode(place), ctypes.byref(how), ctypes.c_size_t(ctypes.sizeof(how)))
        return self.check(fd, place)

    def drop_capabilities(self) -> None:
        """No program that this thread starts has any, also not one that root starts.

        Root's thread keeps its own. glibc has every thread make `seteuid`, and aborts the process if one of them fails.
        """
        header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
        sets = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable: the low halves, then the high ones
        capget, capset = (90, 91) if os.uname().machine == "aarch64" else (125, 126)
        self.check(self.syscall(capget, header, sets), "capget")
        kept = sets[1] & _CAP_DAC_READ_SEARCH
        bits = self.prctl(_PR_GET_SECUREBITS, 0, 0, 0, 0)
        if bits >= 0 and self.prctl(_PR_SET_SECUREBITS, bits | _NOROOT, 0, 0, 0) == 0:
            sets[2], sets[5] = kept, 0
            self.check(self.syscall(capset, header, sets), "capset")
            self.check(self.prctl(_PR_CAP_AMBIENT, 4, 0, 0, 0), "ambient capabilities")  # none
            if kept:
                self.check(self.prctl(_PR_CAP_AMBIENT, 2, 2, 0, 0), "ambient capabilities")
            return
        sets[:] = [kept, kept, 0, 0, 0, 0]  # it may not set that: with no_new_privs, a program gets none back
        self.check(self.syscall(capset, header, sets), "capset")

    def filter_calls(self) -> None:
        program = self._filter = self._filter or self._make_filter()
        self.check(self.syscall(_SECCOMP[os.uname().machine], 1, 0, ctypes.byref(program)), "seccomp")

    def _make_filter(self) -> _FilterProgram:
        program = reader_filter(signals=landlock_abi() >= SIGNALS_ABI)
        assert program is not None
        self._code = ctypes.create_string_buffer(program, len(program))
        return _FilterProgram(len(program) // 8, ctypes.addressof(self._code))


@cache
def _kernel() -> _Kernel:
    return _Kernel()


def _filter_works() -> bool:
    """Whether this kernel takes filters: a container may not let us."""
    kernel = _kernel()
    call = _SECCOMP[os.uname().machine]
    answer = ctypes.c_uint32(0x00050000)  # SECCOMP_RET_ERRNO
    return bool(kernel.syscall(call, 2, 0, ctypes.byref(answer)) == 0)  # SECCOMP_GET_ACTION_AVAIL


@cache
def _bubblewrap() -> str:
    """Where bubblewrap is, if it works here; else nothing."""
    if sys.platform != "linux" or reader_filter(signals=True) is None:
        return ""
    for folder in ("/usr/local/bin", "/usr/bin", "/bin"):
        program = f"{folder}/bwrap"
        if os.access(program, os.X_OK):
            tried = subprocess.run(
                [program, "--unshare-all", "--cap-drop", "ALL", "--ro-bind", "/", "/", "--", "/bin/sh", "-c", ":"],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=10,
                check=False,
            )
            return program if tried.returncode == 0 else ""
    return ""
