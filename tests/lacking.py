"""Run Python where the kernel lacks something, for real: a filter answers as a kernel without it would.

python tests/lacking.py landlock -c '…'                 no Landlock
python tests/lacking.py landlock,namespaces -c '…'      nor namespaces, so that bubblewrap can't work either
"""

import ctypes
import errno
import os
import struct
import sys

LANDLOCK = 444
CALLS = {
    "x86_64": {"clone": 56, "unshare": 272, "seccomp": 317},
    "aarch64": {"clone": 220, "unshare": 97, "seccomp": 277},
}
LOAD, EQUAL, AND_SET, RETURN = 0x20, 0x15, 0x45, 0x06
ALLOW, ERRNO = 0x7FFF0000, 0x00050000


def filter_for(lacking: set[str]) -> bytes:
    calls = CALLS[os.uname().machine]
    code = [(LOAD, 0, 0, 0)]
    if "landlock" in lacking:
        code += [(EQUAL, 0, 1, LANDLOCK), (RETURN, 0, 0, ERRNO | errno.ENOSYS)]
    if "namespaces" in lacking:
        code += [(EQUAL, 0, 1, calls["unshare"]), (RETURN, 0, 0, ERRNO | errno.EPERM)]
        code += [(EQUAL, 0, 4, calls["clone"]), (LOAD, 0, 0, 16), (AND_SET, 0, 1, 0x7E020000)]
        code += [(RETURN, 0, 0, ERRNO | errno.EPERM), (RETURN, 0, 0, ALLOW)]
    code.append((RETURN, 0, 0, ALLOW))
    return b"".join(struct.pack("<HBBI", *each) for each in code)


class Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))


if __name__ == "__main__":
    made = filter_for(set(sys.argv[1].split(",")))
    libc = ctypes.CDLL(None, use_errno=True)
    held = ctypes.create_string_buffer(made, len(made))
    program = Program(len(made) // 8, ctypes.addressof(held))
    if libc.prctl(38, 1, 0, 0, 0) or libc.syscall(CALLS[os.uname().machine]["seccomp"], 1, 0, ctypes.byref(program)):
        raise OSError(ctypes.get_errno(), "no filter")
    os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
