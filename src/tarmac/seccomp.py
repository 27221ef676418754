"""PURE: filters of system calls, as the kernel reads them (classic BPF).

sandbox_filter() → bytes for `bwrap --seccomp FD`, around a terminal's shell
reader_filter()  → bytes for a program that was allowed without a person
Both are None on a machine whose system call numbers are not listed here.

Namespaces and Landlock leave gaps that these filters close. Both kinds deny sockets by name (AF_UNIX), typing into the
terminal (TIOCSTI), io_uring, which would get around the filter, and the parts of the kernel that are attacked most.
A reader may also not change modes, owners, times or attributes of files, which Landlock does not watch.
"""

import errno
import os
import struct

_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_LOAD, _EQUAL, _AT_LEAST, _AND_SET, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06  # ld [k], jeq, jge, jset, ret
_MASK = 0x54  # and k
_NR, _ARCH, _ARG0, _ARG1 = 0, 4, 16, 24  # offsets in struct seccomp_data; the low words of arguments
_X32 = 0x40000000
_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK = 1, 2, 10, 16
_SOCK_STREAM, _SOCK_KIND = 1, 0xF
_TIOCSTI, _TIOCLINUX, _TIOCSETD, _TIOCCONS = 0x5412, 0x541C, 0x5423, 0x541D
_FS_IOC_GETFLAGS = 0x80086601
_TTY = 0x5400  # the ioctls of terminals; FIONREAD and FIOCLEX are among them
_CLONE_NEW = 0x7E020000  # any of CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
# fcntl: leases stop other programs, and an owner or a signal of a file sends signals to them
_F_SETOWN, _F_SETSIG, _F_SETOWN_EX, _F_SETLEASE, _F_NOTIFY = 8, 10, 15, 1024, 1026

_GROUP = 12

_Code = list[tuple[int, int, int, int]]

# Calls that are new have one number on all machines. Those after the last one here answer "no such call" to a reader.
_COMMON = {
    "pidfd_send_signal": 424, "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428,
    "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "clone3": 435, "pidfd_getfd": 438,
    "process_madvise": 440, "mount_setattr": 442, "quotactl_fd": 443, "memfd_secret": 447, "fchmodat2": 452,
}  # fmt: skip
_FIRST_UNKNOWN = 463  # setxattrat
_MACHINES: dict[str, tuple[int, dict[str, int]]] = {
    "x86_64": (0xC000003E, {
        "ioctl": 16, "shmget": 29, "shmat": 30, "shmctl": 31, "socket": 41, "connect": 42, "accept": 43, "bind": 49,
        "listen": 50, "socketpair": 53, "clone": 56, "kill": 62, "semget": 64, "semop": 65, "semctl": 66, "msgget": 68,
        "msgsnd": 69, "msgrcv": 70, "msgctl": 71, "fcntl": 72, "chmod": 90, "fchmod": 91, "chown": 92, "fchown": 93,
        "lchown": 94, "ptrace": 101, "syslog": 103, "rt_sigqueueinfo": 129, "utime": 132, "mknod": 133,
        "setpriority": 141, "sched_setparam": 142, "sched_setscheduler": 144, "vhangup": 153, "pivot_root": 155,
        "adjtimex": 159, "chroot": 161, "acct": 163, "settimeofday": 164, "mount": 165, "umount2": 166, "swapon": 167,
        "swapoff": 168, "reboot": 169, "sethostname": 170, "setdomainname": 171, "iopl": 172, "ioperm": 173,
        "init_module": 175, "delete_module": 176, "quotactl": 179, "setxattr": 188, "lsetxattr": 189, "fsetxattr": 190,
        "removexattr": 197, "lremovexattr": 198, "fremovexattr": 199, "tkill": 200, "sched_setaffinity": 203,
        "semtimedop": 220, "clock_settime": 227, "tgkill": 234, "utimes": 235, "mq_open": 240, "mq_unlink": 241,
        "kexec_load": 246, "add_key": 248, "request_key": 249, "keyctl": 250, "ioprio_set": 251, "migrate_pages": 256,
        "mknodat": 259, "fchownat": 260, "futimesat": 261, "fchmodat": 268, "unshare": 272, "move_pages": 279,
        "utimensat": 280, "accept4": 288, "rt_tgsigqueueinfo": 297, "perf_event_open": 298, "fanotify_init": 300,
        "prlimit64": 302, "open_by_handle_at": 304, "clock_adjtime": 305, "setns": 308, "process_vm_readv": 310,
        "process_vm_writev": 311, "kcmp": 312, "finit_module": 313, "sched_setattr": 314, "kexec_file_load": 320,
        "bpf": 321, "userfaultfd": 323, **_COMMON,
    }),
    "aarch64": (0xC00000B7, {
        "setxattr": 5, "lsetxattr": 6, "fsetxattr": 7, "removexattr": 14, "lremovexattr": 15, "fremovexattr": 16,
        "fcntl": 25, "ioctl": 29, "ioprio_set": 30, "mknodat": 33, "umount2": 39, "mount": 40, "pivot_root": 41,
        "chroot": 51, "fchmod": 52, "fchmodat": 53, "fchownat": 54, "fchown": 55, "vhangup": 58, "quotactl": 60,
        "utimensat": 88, "acct": 89, "unshare": 97, "kexec_load": 104, "init_module": 105, "delete_module": 106,
        "clock_settime": 112, "syslog": 116, "ptrace": 117, "sched_setparam": 118, "sched_setscheduler": 119,
        "sched_setaffinity": 122, "kill": 129, "tkill": 130, "tgkill": 131, "rt_sigqueueinfo": 138, "setpriority": 140,
        "reboot": 142, "sethostname": 161, "setdomainname": 162, "settimeofday": 170, "adjtimex": 171, "mq_open": 180,
        "mq_unlink": 181, "msgget": 186, "msgctl": 187, "msgrcv": 188, "msgsnd": 189, "semget": 190, "semctl": 191,
        "semtimedop": 192, "semop": 193, "shmget": 194, "shmctl": 195, "shmat": 196, "socket": 198, "socketpair": 199,
        "bind": 200, "listen": 201, "accept": 202, "connect": 203, "add_key": 217, "request_key": 218, "keyctl": 219,
        "clone": 220, "swapon": 224, "swapoff": 225, "migrate_pages": 238, "move_pages": 239, "rt_tgsigqueueinfo": 240,
        "perf_event_open": 241, "accept4": 242, "prlimit64": 261, "fanotify_init": 262, "open_by_handle_at": 265,
        "clock_adjtime": 266, "setns": 268, "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272,
        "finit_module": 273, "sched_setattr": 274, "bpf": 280, "userfaultfd": 282, "kexec_file_load": 294, **_COMMON,
    }),
}  # fmt: skip
# Not there, as far as a program can tell: each has another way, or can do without.
_ABSENT = ("io_uring_setup", "io_uring_enter", "io_uring_register", "clone3", "bpf", "userfaultfd", "perf_event_open")
_FORBIDDEN = (
    "mount", "umount2", "pivot_root", "open_tree", "move_mount", "fsopen", "fsconfig", "fsmount", "fspick",
    "mount_setattr", "unshare", "setns", "add_key", "request_key", "keyctl",
)  # fmt: skip
# What a reader may not do besides: change what Landlock does not watch, look into or steer others, share memory.
_NOT_FOR_READERS = (
    *_FORBIDDEN,
    "chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "lchown", "fchownat",
    "utime", "utimes", "futimesat", "utimensat",
    "setxattr", "lsetxattr", "fsetxattr", "removexattr", "lremovexattr", "fremovexattr", "mknod", "mknodat",
    "ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "pidfd_getfd", "kcmp",
    "connect", "bind", "listen", "accept", "accept4",
    "shmget", "shmat", "shmctl", "msgget", "msgsnd", "msgrcv", "msgctl", "semget", "semop", "semctl", "semtimedop",
    "mq_open", "mq_unlink", "fanotify_init", "memfd_secret", "open_by_handle_at", "chroot", "quotactl", "quotactl_fd",
    "kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module", "reboot", "swapon", "swapoff",
    "acct", "settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "sethostname", "setdomainname", "syslog",
    "iopl", "ioperm", "vhangup", "migrate_pages", "move_pages",
)  # fmt: skip
_SIGNALS = ("tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_send_signal")
# These may be used on the program itself, which is number 0.
_ON_ITSELF = {
    "prlimit64": _ARG0, "sched_setaffinity": _ARG0, "sched_setscheduler": _ARG0, "sched_setparam": _ARG0,
    "sched_setattr": _ARG0, "setpriority": _ARG1, "ioprio_set": _ARG1,
}  # fmt: skip


def sandbox_filter(*, unix_sockets: bool = False, machine: str | None = None) -> bytes | None:
    """The filter of a sandbox, for this machine unless another is named."""
    known = _MACHINES.get(machine or os.uname().machine)
    if known is None:
        return None
    arch, calls = known
    families = [_AF_INET, _AF_INET6, _AF_NETLINK, *([_AF_UNIX] if unix_sockets else [])]
    no, absent, family = (_ERRNO | number for number in (errno.EPERM, errno.ENOSYS, errno.EAFNOSUPPORT))
    code = _own_calls(arch)
    code += _any_of(_ABSENT, calls, absent)
    code += _any_of((*_FORBIDDEN,), calls, no)
    code += _no_namespaces(calls, no)
    code += [
        (_EQUAL, 0, 5, calls["ioctl"]),
        (_LOAD, 0, 0, _ARG1),  # the kernel, too, looks at these 32 bits only
        (_EQUAL, 1, 0, _TIOCSTI),
        (_EQUAL, 0, 1, _TIOCLINUX),
        (_RETURN, 0, 0, no),
        (_RETURN, 0, 0, _ALLOW),
        (_EQUAL, 1, 0, calls["socket"]),
        (_RETURN, 0, 0, _ALLOW),
        (_LOAD, 0, 0, _ARG0),
    ]
    for each in families:
        code += [(_EQUAL, 0, 1, each), (_RETURN, 0, 0, _ALLOW)]
    code.append((_RETURN, 0, 0, family))
    return _packed(code)


def reader_filter(*, signals: bool, machine: str | None = None) -> bytes | None:
    """The filter of a program that only reads. `signals`: it may send some, because Landlock watches where to."""
    known = _MACHINES.get(machine or os.uname().machine)
    if known is None:
        return None
    arch, calls = known
    no, denied, absent = (_ERRNO | number for number in (errno.EPERM, errno.EACCES, errno.ENOSYS))
    code = _own_calls(arch)
    code += [(_AT_LEAST, 0, 1, _FIRST_UNKNOWN), (_RETURN, 0, 0, absent)]
    code += _any_of(_ABSENT, calls, absent)
    code += _any_of(_NOT_FOR_READERS, calls, no)
    code += _any_of(("socket",), calls, denied)
    if not signals:
        code += _any_of(_SIGNALS, calls, no)
        code += _only_if("kill", calls, _ARG0, 0, no)  # its own group
    for name, argument in _ON_ITSELF.items():
        code += _only_if(name, calls, argument, 0, no)
    code += _no_namespaces(calls, no)
    code += [  # a stream between two of its own; a datagram socket could be sent anywhere
        (_EQUAL, 0, 5, calls["socketpair"]),
        (_LOAD, 0, 0, _ARG1),
        (_MASK, 0, 0, _SOCK_KIND),
        (_EQUAL, 0, 1, _SOCK_STREAM),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, denied),
    ]
    code += [
        (_EQUAL, 0, 8, calls["fcntl"]),
        (_LOAD, 0, 0, _ARG1),
        (_EQUAL, 4, 0, _F_SETOWN),
        (_EQUAL, 3, 0, _F_SETSIG),
        (_EQUAL, 2, 0, _F_SETOWN_EX),
        (_EQUAL, 1, 0, _F_SETLEASE),
        (_EQUAL, 0, 1, _F_NOTIFY),
        (_RETURN, 0, 0, no),
        (_LOAD, 0, 0, _NR),
    ]
    # Of ioctl only a terminal's: others change flags of files and make snapshots through a descriptor that only reads.
    code += [
        (_EQUAL, 1, 0, calls["ioctl"]),
        (_RETURN, 0, 0, _ALLOW),
        (_LOAD, 0, 0, _ARG1),
        (_EQUAL, 7, 0, _FS_IOC_GETFLAGS),
        (_EQUAL, 5, 0, _TIOCSTI),
        (_EQUAL, 4, 0, _TIOCLINUX),
        (_EQUAL, 3, 0, _TIOCSETD),
        (_EQUAL, 2, 0, _TIOCCONS),
        (_MASK, 0, 0, 0xFFFFFF00),
        (_EQUAL, 1, 0, _TTY),
        (_RETURN, 0, 0, _ERRNO | errno.ENOTTY),
        (_RETURN, 0, 0, _ALLOW),
    ]
    return _packed(code)


def _own_calls(arch: int) -> _Code:
    """Refuse the calls of other machines: a 32-bit program's numbers mean other calls. Leave the number loaded."""
    absent = _ERRNO | errno.ENOSYS
    return [
        (_LOAD, 0, 0, _ARCH),
        (_EQUAL, 1, 0, arch),
        (_RETURN, 0, 0, absent),
        (_LOAD, 0, 0, _NR),
        (_AT_LEAST, 0, 1, _X32),
        (_RETURN, 0, 0, absent),
    ]


def _any_of(names: tuple[str, ...], calls: dict[str, int], answer: int) -> _Code:
    """The answer to each of these calls; a machine may lack some.

    They are compared in groups, which are skipped by number. Loading a filter tries it on every call there is, so that
    a long list would take 0.1 ms.
    """
    numbers = sorted(calls[name] for name in names if name in calls)
    code: _Code = []
    for start in range(0, len(numbers), _GROUP):
        group = numbers[start : start + _GROUP]
        code.append((_AT_LEAST, len(group) + 1, 0, group[-1] + 1))
        code += [(_EQUAL, len(group) - 1 - place, 0, number) for place, number in enumerate(group[:-1])]
        code += [(_EQUAL, 0, 1, group[-1]), (_RETURN, 0, 0, answer)]
    return code


def _only_if(name: str, calls: dict[str, int], argument: int, value: int, answer: int) -> _Code:
    """Allow a call with this value; jumps count instructions to skip."""
    return [
        (_EQUAL, 0, 4, calls[name]),
        (_LOAD, 0, 0, argument),
        (_EQUAL, 0, 1, value),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, answer),
    ]


def _no_namespaces(calls: dict[str, int], answer: int) -> _Code:
    return [
        (_EQUAL, 0, 4, calls["clone"]),
        (_LOAD, 0, 0, _ARG0),
        (_AND_SET, 0, 1, _CLONE_NEW),
        (_RETURN, 0, 0, answer),
        (_RETURN, 0, 0, _ALLOW),
    ]


def _packed(code: _Code) -> bytes:
    return b"".join(struct.pack("<HBBI", *each) for each in code)
