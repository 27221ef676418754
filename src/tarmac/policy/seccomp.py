"""A filter of system calls for the sandbox, as the kernel reads it (classic BPF), made by hand: it is short.

filter_program(…) → bytes for `bwrap --seccomp FD`, or None on a machine whose calls we don't know

What namespaces do not keep inside: sockets by name in the file system (AF_UNIX) and of other families (vsock leads to
the host of a virtual machine), typing into one's own terminal (TIOCSTI), io_uring, which would get around this filter,
and the parts of the kernel that are broken into most (bpf, keys, userfaultfd, namespaces within namespaces).
"""

import errno
import os
import struct

_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_LOAD, _EQUAL, _AT_LEAST, _AND_SET, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06  # ld [k], jeq, jge, jset, ret
_NR, _ARCH, _ARG0, _ARG1 = 0, 4, 16, 24  # offsets in struct seccomp_data; the low words of arguments
_X32 = 0x40000000
_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK = 1, 2, 10, 16
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_CLONE_NEW = 0x7E020000  # any of CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET

# Of late new calls have one number on all machines.
_COMMON = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "clone3": 435, "open_tree": 428,
    "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "mount_setattr": 442,
}  # fmt: skip
_MACHINES: dict[str, tuple[int, dict[str, int]]] = {
    "x86_64": (0xC000003E, {
        "ioctl": 16, "socket": 41, "clone": 56, "ptrace": 101, "pivot_root": 155, "mount": 165, "umount2": 166,
        "add_key": 248, "request_key": 249, "keyctl": 250, "unshare": 272, "perf_event_open": 298, "setns": 308,
        "bpf": 321, "userfaultfd": 323, **_COMMON,
    }),
    "aarch64": (0xC00000B7, {
        "ioctl": 29, "umount2": 39, "mount": 40, "pivot_root": 41, "unshare": 97, "ptrace": 117, "socket": 198,
        "add_key": 217, "request_key": 218, "keyctl": 219, "clone": 220, "perf_event_open": 241, "setns": 268,
        "bpf": 280, "userfaultfd": 282, **_COMMON,
    }),
}  # fmt: skip
# Not there, as far as a program can tell: each has another way, or can do without.
_ABSENT = ("io_uring_setup", "io_uring_enter", "io_uring_register", "clone3", "bpf", "userfaultfd", "perf_event_open")
_FORBIDDEN = (
    "mount", "umount2", "pivot_root", "open_tree", "move_mount", "fsopen", "fsconfig", "fsmount", "fspick",
    "mount_setattr", "unshare", "setns", "add_key", "request_key", "keyctl",
)  # fmt: skip


def filter_program(*, unix_sockets: bool = False, machine: str | None = None) -> bytes | None:
    """The filter, for this machine unless another is named."""
    known = _MACHINES.get(machine or os.uname().machine)
    if known is None:
        return None
    arch, calls = known
    families = [_AF_INET, _AF_INET6, _AF_NETLINK, *([_AF_UNIX] if unix_sockets else [])]
    no, absent, family = (_ERRNO | number for number in (errno.EPERM, errno.ENOSYS, errno.EAFNOSUPPORT))
    # Each block tests one thing and falls through to the next. Jumps count instructions to skip.
    code: list[tuple[int, int, int, int]] = [
        (_LOAD, 0, 0, _ARCH),
        (_EQUAL, 1, 0, arch),
        (_RETURN, 0, 0, absent),  # a 32-bit program: its numbers mean other calls
        (_LOAD, 0, 0, _NR),
        (_AT_LEAST, 0, 1, _X32),
        (_RETURN, 0, 0, absent),
    ]
    for names, answer in ((_ABSENT, absent), (_FORBIDDEN, no)):
        for name in names:
            code += [(_EQUAL, 0, 1, calls[name]), (_RETURN, 0, 0, answer)]
    code += [
        (_EQUAL, 0, 4, calls["clone"]),
        (_LOAD, 0, 0, _ARG0),
        (_AND_SET, 0, 1, _CLONE_NEW),
        (_RETURN, 0, 0, no),
        (_RETURN, 0, 0, _ALLOW),
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
    return b"".join(struct.pack("<HBBI", *each) for each in code)
